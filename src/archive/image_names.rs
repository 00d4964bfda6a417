//! The names of files in an image, and its variables, without unpacking it: of `docker save` or an OCI image layout.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};

use camino::Utf8Path;

use super::layout_reader::{LayoutError, LayoutImage};
use super::limits::LARGEST_LAYER;
use super::saved_layers::{SavedImageError, layer_readers};
use crate::model::bounded::Bounded;
use crate::model::bounded_tar::BoundedTar;
use crate::model::migrate::{ImageContent, is_record};
use crate::model::whiteout::deleted;

/// Reads an archive that an engine saved.
pub(crate) fn names_in_saved(saved: File) -> Result<ImageContent, SavedImageError> {
    let (config, layers) = layer_readers(saved)?;
    let mut content = ImageContent { variables: variables(&config), ..ImageContent::default() };
    for layer in layers {
        add(&mut content.records, layer)?;
    }
    Ok(content)
}

/// Reads an image layout, a directory or a tar; every byte is compared with its digest on the way.
pub(crate) fn names_in_layout(path: &Utf8Path) -> Result<ImageContent, LayoutError> {
    let image = LayoutImage::open(path)?;
    let mut content = ImageContent { variables: variables(&image.config), ..ImageContent::default() };
    for layer in &image.layers {
        let failed = |cause| LayoutError::Read { path: path.to_owned(), cause };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let (written, added) = std::thread::scope(|scope| {
            let writes = scope.spawn(move || {
                let mut writer = writer;
                layer.write_to(&mut writer)
            });
            let added = drained(&mut content.records, reader);
            (writes.join(), added)
        });
        added.map_err(failed)?;
        written
            .unwrap_or_else(|_| Err(io::Error::other("the layer could not be unpacked")))
            .map_err(failed)?;
    }
    Ok(content)
}

/// Adds the names of a layer, and reads its tar to the end, so that all of it is compared.
fn drained(records: &mut BTreeSet<String>, mut reader: io::PipeReader) -> io::Result<()> {
    let added = add(records, &mut reader);
    io::copy(&mut reader, &mut io::sink())?;
    added
}

/// Adds the names that a layer has, and removes those that it deletes.
fn add(records: &mut BTreeSet<String>, layer: impl Read) -> io::Result<()> {
    let mut own = BTreeSet::new();
    let mut archive = BoundedTar::new(Bounded::new(layer, LARGEST_LAYER));
    for entry in archive.entries()? {
        let entry = entry?;
        let bytes = entry.path_bytes();
        let Ok(path) = std::str::from_utf8(&bytes) else { continue };
        let path = path.trim_start_matches("./").trim_start_matches('/').trim_end_matches('/');
        if let Some(gone) = deleted(path.as_bytes()) {
            let gone = String::from_utf8_lossy(&gone).into_owned();
            records.retain(|known| *known != gone && !is_below(known, &gone));
        } else if is_record(path) {
            own.insert(path.to_owned());
        }
    }
    // What a layer deletes is below it, never its own.
    records.append(&mut own);
    Ok(())
}

fn is_below(path: &str, folder: &str) -> bool {
    folder.is_empty() || path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

/// The variables of an image configuration.
fn variables(config: &[u8]) -> Vec<String> {
    let parsed: serde_json::Value = serde_json::from_slice(config).unwrap_or_default();
    let list = parsed["config"]["Env"].as_array().cloned().unwrap_or_default();
    list.iter().filter_map(serde_json::Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(names: &[&str]) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            tar.append_data(&mut header, name, &[][..]).expect("a vector");
        }
        tar.into_inner().expect("a vector")
    }

    #[test]
    fn later_layers_delete_names() {
        let torch = "opt/lib/python3.11/site-packages/torch-2.3.1.dist-info/METADATA";
        let numpy = "opt/lib/python3.11/site-packages/numpy-1.26.4.dist-info/METADATA";
        let left = |above: &[&str]| {
            let mut records = BTreeSet::new();
            add(&mut records, layer(&[torch, numpy, "opt/other"]).as_slice()).expect("a tar");
            add(&mut records, layer(above).as_slice()).expect("a tar");
            records.into_iter().collect::<Vec<_>>()
        };
        assert_eq!(left(&["etc/x"]), [numpy, torch]);
        assert_eq!(left(&["opt/lib/python3.11/site-packages/.wh.torch-2.3.1.dist-info"]), [numpy]);
        assert_eq!(left(&["opt/lib/.wh..wh..opq"]), Vec::<String>::new());
        assert_eq!(left(&[".wh.opt"]), Vec::<String>::new());
        assert_eq!(left(&["opt/lib/.wh.python3"]), [numpy, torch]);
    }
}
