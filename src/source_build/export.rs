//! The wheel out of an image that holds nothing else: the engine's archive of the image is read, and nothing of it is run.
#![expect(clippy::disallowed_methods, reason = "edge: writes the wheel to the cache's disk")]

use std::io::{BufReader, BufWriter, Read};
use std::path::Path;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::SourceError;

use crate::model::bounded_tar::BoundedTar;

/// Extracts the only wheel at the root of an image archive (`docker save`) into a directory.
pub(super) fn wheel_of(archive: &Path, folder: &Utf8Path) -> Result<Utf8PathBuf, SourceError> {
    let mut found = Vec::new();
    let mut outer = BoundedTar::new(BufReader::new(fs_err::File::open(archive)?));
    for entry in outer.entries()? {
        let entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        found.extend(wheels_of_layer(entry, folder)?);
    }
    match found.as_slice() {
        [wheel] => Ok(wheel.clone()),
        [] => Err(SourceError::Export { found: "no wheel".to_owned() }),
        many => Err(SourceError::Export { found: format!("{} wheels", many.len()) }),
    }
}

/// Extracts the wheels of a layer; none from other files of the archive.
fn wheels_of_layer(layer: impl Read, folder: &Utf8Path) -> Result<Vec<Utf8PathBuf>, SourceError> {
    let mut found = Vec::new();
    let mut inner = BoundedTar::new(layer);
    let Ok(entries) = inner.entries() else { return Ok(found) };
    for entry in entries {
        let Ok(mut entry) = entry else { return Ok(found) };
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = path.trim_start_matches("./");
        if name.contains('/') || Utf8Path::new(name).extension() != Some("whl") {
            continue;
        }
        let target = folder.join(name);
        let mut file = BufWriter::new(fs_err::File::create(&target)?);
        std::io::copy(&mut entry, &mut file)?;
        file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        found.push(target);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            builder.append_data(&mut header, name, *bytes).expect("memory takes it");
        }
        builder.into_inner().expect("memory takes it")
    }

    fn exported(layer: &[(&str, &[u8])]) -> Result<(String, Vec<u8>), SourceError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let image =
            tar(&[("manifest.json", b"[]"), ("abc/layer.tar", &tar(layer)), ("abc.json", b"{\"a\": 1}")]);
        fs_err::write(root.join("image.tar"), image).expect("written");
        let wheel = wheel_of(root.join("image.tar").as_std_path(), &root)?;
        Ok((wheel.file_name().expect("a name").to_owned(), fs_err::read(&wheel).expect("read")))
    }

    #[test]
    fn wheel_is_extracted_from_image_archive() {
        let (name, bytes) =
            exported(&[(".gitignore", b"*"), ("torch-1-py3-none-any.whl", b"wheel")]).expect("one");
        assert_eq!((name.as_str(), bytes.as_slice()), ("torch-1-py3-none-any.whl", b"wheel".as_slice()));
    }

    #[test]
    fn rejects_missing_and_multiple_wheels() {
        let error = exported(&[("a.txt", b"")]).expect_err("none");
        assert_eq!(error.to_string(), "source build: expected one wheel, found no wheel");
        let error = exported(&[("a.whl", b""), ("b.whl", b"")]).expect_err("two");
        assert!(error.to_string().contains("2 wheels"), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }
}
