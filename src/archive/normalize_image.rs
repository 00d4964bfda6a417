//! Normalized images: rewrites the archive of a built image (`docker save`) without any trace of its build time.
//! Images loaded from it have the same digest each time.
//!
//! Opens no files; the caller provides scratch files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::archive::canonical_tar::{TIME, canonicalize};
use crate::archive::content_digest::ContentError;
use crate::archive::scope::Scope;
use crate::failure::{Exit, Failure};
use crate::model::sha256::sha256_hex;

/// [`TIME`] as an image's configuration writes it.
const CREATED: &str = "1980-01-02T00:00:00Z";
const CHUNK: usize = 1 << 20;
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Why an archive cannot be rewritten.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FixError {
    /// Not an image archive, or not of exactly one image.
    #[error("cannot read the engine's image archive: {0}")]
    Archive(String),
    /// A layer cannot be rewritten.
    #[error("cannot rewrite layer {layer} of the image: {source}")]
    Layer {
        /// Counted from 1.
        layer: usize,
        /// Why.
        source: ContentError,
    },
    /// A file could not be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Failure for FixError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        vec!["build without --bit-identical: the content is the same, only the times differ".to_owned()]
    }
}

/// `manifest.json` of an image archive.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// Location of a member in the archive.
#[derive(Debug, Clone)]
enum Place {
    File {
        start: u64,
        size: u64,
    },
    /// A link: old engines write a repeated layer as one.
    Link(String),
}

/// Writes the image of the archive `saved` to `out`, tagged `tag`, and returns its configuration's digest (`sha256:…`), which
/// is the image's ID. Layers of `base` (diff IDs) are unchanged. `scratch` creates an empty temporary file.
pub(crate) fn normalize_image(
    mut saved: File,
    out: impl Write,
    tag: &str,
    base: &[String],
    scratch: impl Fn() -> std::io::Result<File>,
) -> Result<String, FixError> {
    let places = places(&mut saved)?;
    let manifest: Vec<Entry> = json(&read(&mut saved, &places, "manifest.json")?)?;
    let [entry] = manifest.as_slice() else {
        return Err(FixError::Archive(format!("{} images", manifest.len())));
    };
    let mut config: Value = json(&read(&mut saved, &places, &entry.config)?)?;
    let diff_ids: Vec<String> = json(config["rootfs"]["diff_ids"].to_string().as_bytes())?;
    if diff_ids.len() != entry.layers.len() {
        return Err(FixError::Archive(format!("{} layers, {} listed", entry.layers.len(), diff_ids.len())));
    }
    let mut tar = tar::Builder::new(out);
    let (mut fixed_ids, mut names) = (Vec::new(), Vec::new());
    for (index, (name, diff_id)) in entry.layers.iter().zip(&diff_ids).enumerate() {
        let (start, size) = find(&places, name)?;
        let mut layer = plain(Section { file: &mut saved, start, size, at: 0 }, &scratch)?;
        let mut id = diff_id.clone();
        if base.get(index) != Some(diff_id) {
            let mut fixed = scratch()?;
            let source = BufReader::with_capacity(CHUNK, layer);
            let done = canonicalize(source, BufWriter::with_capacity(CHUNK, &mut fixed), Scope::Layer)
                .map_err(|source| FixError::Layer { layer: index + 1, source })?;
            (layer, id) = (Box::new(fixed), format!("sha256:{}", done.sha256));
        }
        let name = format!("{}.tar", id.trim_start_matches("sha256:"));
        // One layer can occur twice.
        if !names.contains(&name) {
            let size = layer.seek(SeekFrom::End(0))?;
            layer.rewind()?;
            append(&mut tar, &name, size, &mut layer)?;
        }
        fixed_ids.push(id);
        names.push(name);
    }
    fix_config(&mut config, fixed_ids);
    let config = config.to_string();
    let id = sha256_hex(config.as_bytes());
    let name = format!("{id}.json");
    append(&mut tar, &name, config.len() as u64, config.as_bytes())?;
    let entry = Entry { config: name, repo_tags: Some(vec![tag.to_owned()]), layers: names };
    let manifest = serde_json::to_vec(&[entry]).map_err(std::io::Error::from)?;
    append(&mut tar, "manifest.json", manifest.len() as u64, manifest.as_slice())?;
    tar.into_inner()?.flush()?;
    Ok(format!("sha256:{id}"))
}

/// Sets the new layers and one fixed time in the configuration; keeps only fields that define the image.
fn fix_config(config: &mut Value, diff_ids: Vec<String>) {
    const KEPT: [&str; 7] = ["architecture", "config", "created", "history", "os", "rootfs", "variant"];
    let Value::Object(fields) = config else { return };
    fields.retain(|name, _| KEPT.contains(&name.as_str()));
    config["created"] = CREATED.into();
    config["rootfs"]["diff_ids"] = diff_ids.into();
    for step in config["history"].as_array_mut().into_iter().flatten() {
        step["created"] = CREATED.into();
    }
}

fn places(saved: &mut File) -> Result<BTreeMap<String, Place>, FixError> {
    saved.rewind()?;
    let mut places = BTreeMap::new();
    let mut archive = tar::Archive::new(saved);
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        let path = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        let place = match entry.header().entry_type() {
            tar::EntryType::Symlink => {
                let target = entry.link_name_bytes().unwrap_or_default();
                Place::Link(beside(&path, &String::from_utf8_lossy(&target)))
            }
            _ => Place::File { start: entry.raw_file_position(), size: entry.size() },
        };
        places.insert(path, place);
    }
    Ok(places)
}

/// Returns the target path of a link at `path`.
fn beside(path: &str, target: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn find(places: &BTreeMap<String, Place>, name: &str) -> Result<(u64, u64), FixError> {
    let mut name = name;
    // A link leads to a file, not to another link.
    for _ in 0..2 {
        match places.get(name) {
            Some(Place::File { start, size }) => return Ok((*start, *size)),
            Some(Place::Link(target)) => name = target,
            None => break,
        }
    }
    Err(FixError::Archive(format!("`{name}` not found")))
}

fn read(saved: &mut File, places: &BTreeMap<String, Place>, name: &str) -> Result<Vec<u8>, FixError> {
    let (start, size) = find(places, name)?;
    saved.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    saved.take(size).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, FixError> {
    serde_json::from_slice(bytes).map_err(|error| FixError::Archive(error.to_string()))
}

/// A seekable reader.
trait Source: Read + Seek {}
impl<T: Read + Seek> Source for T {}

/// A part of a file.
struct Section<'a> {
    file: &'a mut File,
    start: u64,
    size: u64,
    at: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.start + self.at))?;
        let count = (&mut *self.file).take(self.size.saturating_sub(self.at)).read(buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Section<'_> {
    fn seek(&mut self, position: SeekFrom) -> std::io::Result<u64> {
        let at = match position {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.size.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(std::io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Returns a layer as an uncompressed tar: some engines save it compressed.
fn plain<'a>(
    mut layer: Section<'a>,
    scratch: &impl Fn() -> std::io::Result<File>,
) -> std::io::Result<Box<dyn Source + 'a>> {
    let mut magic = Vec::new();
    (&mut layer).take(2).read_to_end(&mut magic)?;
    layer.rewind()?;
    if magic != GZIP {
        return Ok(Box::new(layer));
    }
    let mut file = scratch()?;
    std::io::copy(&mut flate2::read::GzDecoder::new(layer), &mut file)?;
    Ok(Box::new(file))
}

fn append(
    tar: &mut tar::Builder<impl Write>,
    name: &str,
    size: u64,
    bytes: impl Read,
) -> std::io::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_mtime(TIME);
    header.set_size(size);
    tar.append_data(&mut header, Path::new(name), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &[u8] = b"the layer of the base";

    fn layer(time: u64, reversed: bool) -> Vec<u8> {
        let mut files = [("opt/b", "2"), ("opt/a", "1")];
        if reversed {
            files.reverse();
        }
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o644);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(time);
            header.set_size(1);
            tar.append_data(&mut header, path, content.as_bytes()).expect("a vector");
        }
        tar.into_inner().expect("a vector")
    }

    fn diff_id(layer: &[u8]) -> String {
        format!("sha256:{}", sha256_hex(layer))
    }

    /// An archive as an engine makes it at some time: a base layer and one above it.
    fn saved(time: u64, gzip: bool) -> File {
        let above = layer(time, time.is_multiple_of(2));
        let config = serde_json::json!({
            "architecture": "amd64", "os": "linux", "created": format!("2026-01-01T00:00:0{time}Z"),
            "config": {"User": "1000:1000"}, "container": format!("run {time}"),
            "history": [{"created": format!("2026-01-01T00:00:0{time}Z"), "created_by": "RUN x"}],
            "rootfs": {"type": "layers", "diff_ids": [diff_id(BASE), diff_id(&above)]},
        });
        let packed = if gzip {
            let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            packer.write_all(&above).expect("a vector");
            packer.finish().expect("a vector")
        } else {
            above
        };
        let manifest = br#"[{"Config":"c.json","RepoTags":null,"Layers":["one/layer.tar","two/layer.tar"]}]"#;
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        let config = config.to_string();
        for (name, bytes) in [
            ("base/layer.tar", BASE),
            ("two/layer.tar", packed.as_slice()),
            ("c.json", config.as_bytes()),
            ("manifest.json", manifest),
        ] {
            append(&mut tar, name, bytes.len() as u64, bytes).expect("written");
        }
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        tar.append_link(&mut link, "one/layer.tar", "../base/layer.tar").expect("written");
        tar.into_inner().expect("written")
    }

    fn fixed(saved: File) -> (Vec<u8>, Result<String, FixError>) {
        let mut out = Vec::new();
        let id = normalize_image(saved, &mut out, "scratch:1", &[diff_id(BASE)], tempfile::tempfile);
        (out, id)
    }

    #[test]
    fn image_is_independent_of_times_order_and_compression() {
        let (first, id) = fixed(saved(1, false));
        let id = id.expect("an image");
        for other in [saved(2, false), saved(3, true)] {
            let (bytes, other) = fixed(other);
            assert_eq!(other.expect("an image"), id);
            assert!(bytes == first);
        }
    }

    #[test]
    fn base_layers_are_unchanged_and_configuration_is_minimal() {
        let (bytes, id) = fixed(saved(1, false));
        let mut found = BTreeMap::new();
        for entry in tar::Archive::new(bytes.as_slice()).entries().expect("a tar") {
            let mut entry = entry.expect("an entry");
            let name = entry.path().expect("a path").to_string_lossy().into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("read");
            found.insert(name, content);
        }
        let manifest: Vec<Entry> = json(&found["manifest.json"]).expect("a manifest");
        assert_eq!(manifest[0].repo_tags.as_deref(), Some(["scratch:1".to_owned()].as_slice()));
        assert_eq!(found[&manifest[0].layers[0]], BASE);
        let config = &found[&manifest[0].config];
        assert_eq!(diff_id(config), id.expect("an image"));
        let config: Value = json(config).expect("a configuration");
        assert_eq!(config["rootfs"]["diff_ids"][1], diff_id(&found[&manifest[0].layers[1]]));
        assert_eq!(
            (&config["created"], &config["history"][0]["created"]),
            (&CREATED.into(), &CREATED.into())
        );
        assert_eq!((config["config"]["User"].as_str(), config.get("container")), (Some("1000:1000"), None));
    }

    #[test]
    fn invalid_image_archive_is_reported() {
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        append(&mut tar, "manifest.json", 2, b"[]".as_slice()).expect("written");
        for file in [tar.into_inner().expect("written"), tempfile::tempfile().expect("a file")] {
            let (_, result) = fixed(file);
            assert!(matches!(result, Err(FixError::Archive(_))), "{result:?}");
        }
    }
}
