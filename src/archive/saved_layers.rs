//! The layers of a saved image (`docker save`), written anew: as the differences of their files, without the times of their build.
//!
//! Opens no files; the caller provides scratch files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Error, ErrorKind, Read, Seek, SeekFrom};
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::difference::write_difference;
use super::limits::{LARGEST_LAYER, LARGEST_MANIFEST};
use super::section::Section;
use super::tree::Tree;
use crate::archive::content_digest::ContentError;
use crate::failure::{Exit, Failure};
use crate::model::bounded::{Bounded, read_bounded};
use crate::model::bounded_tar::BoundedTar;
use crate::model::sha256::HashingWriter;

const CHUNK: usize = 1 << 20;
const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Why the layers of an archive cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SavedImageError {
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

impl Failure for SavedImageError {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        vec!["run the same command again; `--builder dockerfile` builds without this step".to_owned()]
    }
}

/// `manifest.json` of an image archive.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    config: String,
    layers: Vec<String>,
}

/// A layer of an image in a file of its own.
pub(crate) struct SavedLayer {
    /// SHA-256 of the tar, hex.
    pub(crate) sha256: String,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// The tar.
    pub(crate) file: tempfile::NamedTempFile,
}

impl SavedLayer {
    /// Writes the canonical form of a layer's tar, of which nothing lies below, into an empty file.
    pub(crate) fn of(tar: File, file: tempfile::NamedTempFile) -> Result<Self, ContentError> {
        let mut tree = Tree::default();
        tree.add(&Section::whole(tar)?)?;
        Self::difference(&Tree::default(), &tree, file)
    }

    /// Writes the layer that makes `above` of `below` into an empty file.
    fn difference(
        below: &Tree,
        above: &Tree,
        mut file: tempfile::NamedTempFile,
    ) -> Result<Self, ContentError> {
        let sha256 = write_difference(below, above, BufWriter::with_capacity(CHUNK, &mut file))?;
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self { sha256, size, file })
    }
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

/// Returns the layers of an image above those of its base (diff IDs), lowest first. `scratch` creates an empty temporary file.
pub(crate) fn layers_above(
    mut saved: File,
    base: &[String],
    scratch: impl Fn() -> std::io::Result<tempfile::NamedTempFile>,
) -> Result<Vec<SavedLayer>, SavedImageError> {
    let places = places(&mut saved)?;
    let Described { entry, diff_ids, .. } = described(&mut saved, &places)?;
    if !diff_ids.starts_with(base) {
        return Err(SavedImageError::Archive("the image does not stand on its base".to_owned()));
    }
    let (saved, mut below, mut made) = (Arc::new(saved), Tree::default(), Vec::new());
    for (number, name) in entry.layers.iter().enumerate() {
        let (start, size) = find(&places, name)?;
        let layer = plain(Section::new(Arc::clone(&saved), start, size), &scratch)?;
        let of_layer = |source| SavedImageError::Layer { layer: number + 1, source };
        if number < base.len() {
            below.add(&layer).map_err(of_layer)?;
            continue;
        }
        let mut above = below.clone();
        above.add(&layer).map_err(of_layer)?;
        made.push(SavedLayer::difference(&below, &above, scratch()?).map_err(of_layer)?);
        below = above;
    }
    Ok(made)
}

/// Returns the layers of an image as they are, lowest first. Each has the digest that the configuration names.
pub(crate) fn layers_of(
    saved: File,
    scratch: impl Fn() -> std::io::Result<tempfile::NamedTempFile>,
) -> Result<Vec<SavedLayer>, SavedImageError> {
    image_of(saved, scratch).map(|image| image.layers)
}

/// A reader of a layer's tar.
pub(crate) type LayerTar = Box<dyn Read>;

/// Returns the configuration of the one image of an archive, and a reader of each layer's tar, lowest first. Nothing is compared.
pub(crate) fn layer_readers(mut saved: File) -> Result<(Vec<u8>, Vec<LayerTar>), SavedImageError> {
    let places = places(&mut saved)?;
    let Described { entry, config, .. } = described(&mut saved, &places)?;
    let saved = Arc::new(saved);
    let layer = |name: &String| {
        let (start, size) = find(&places, name)?;
        let mut layer = Section::new(Arc::clone(&saved), start, size);
        let magic = magic_of(&mut layer)?;
        Ok::<_, SavedImageError>(unpacked(&magic, layer)?)
    };
    let layers = entry.layers.iter().map(layer).collect::<Result<_, _>>()?;
    Ok((config, layers))
}

/// The one image of an archive: everything of it that counts.
pub(crate) struct SavedImage {
    /// Its configuration.
    pub(crate) config: Vec<u8>,
    /// Its layers, lowest first. Each has the digest that the configuration names.
    pub(crate) layers: Vec<SavedLayer>,
}

/// Takes the one image out of an archive. Nothing else of the archive is used: no tag, no second list.
pub(crate) fn image_of(
    mut saved: File,
    scratch: impl Fn() -> std::io::Result<tempfile::NamedTempFile>,
) -> Result<SavedImage, SavedImageError> {
    let places = places(&mut saved)?;
    let Described { entry, diff_ids, config } = described(&mut saved, &places)?;
    let (saved, mut layers) = (Arc::new(saved), Vec::new());
    for (name, wanted) in entry.layers.iter().zip(&diff_ids) {
        let (start, size) = find(&places, name)?;
        let mut tar = plain(Section::new(Arc::clone(&saved), start, size), &scratch)?;
        let mut file = scratch()?;
        let mut hashed = HashingWriter::new(&mut file);
        let size = std::io::copy(&mut tar, &mut hashed)?;
        let sha256 = hashed.finish();
        if *wanted != format!("sha256:{sha256}") {
            return Err(SavedImageError::Archive(format!(
                "layer `{wanted}` has the content of sha256:{sha256}"
            )));
        }
        layers.push(SavedLayer { sha256, size, file });
    }
    Ok(SavedImage { config, layers })
}

/// What an archive says of its one image.
struct Described {
    entry: Entry,
    /// The diff IDs of its layers.
    diff_ids: Vec<String>,
    config: Vec<u8>,
}

/// The one image of the archive.
fn described(saved: &mut File, places: &BTreeMap<String, Place>) -> Result<Described, SavedImageError> {
    let mut manifest: Vec<Entry> = json(&read(saved, places, "manifest.json")?)?;
    let entry = match (manifest.pop(), manifest.len()) {
        (Some(entry), 0) => entry,
        (_, more) => return Err(SavedImageError::Archive(format!("{more} images instead of one"))),
    };
    let config = read(saved, places, &entry.config)?;
    let parsed: Value = json(&config)?;
    let diff_ids: Vec<String> = json(parsed["rootfs"]["diff_ids"].to_string().as_bytes())?;
    if diff_ids.len() != entry.layers.len() {
        let text = format!("{} layers, {} listed", entry.layers.len(), diff_ids.len());
        return Err(SavedImageError::Archive(text));
    }
    Ok(Described { entry, diff_ids, config })
}

fn places(saved: &mut File) -> Result<BTreeMap<String, Place>, SavedImageError> {
    saved.rewind()?;
    let mut places = BTreeMap::new();
    let mut archive = BoundedTar::new(saved);
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

fn find(places: &BTreeMap<String, Place>, name: &str) -> Result<(u64, u64), SavedImageError> {
    let mut name = name;
    // A link leads to a file, not to another link.
    for _ in 0..2 {
        match places.get(name) {
            Some(Place::File { start, size }) => return Ok((*start, *size)),
            Some(Place::Link(target)) => name = target,
            None => break,
        }
    }
    Err(SavedImageError::Archive(format!("`{name}` not found")))
}

fn read(saved: &mut File, places: &BTreeMap<String, Place>, name: &str) -> Result<Vec<u8>, SavedImageError> {
    let (start, size) = find(places, name)?;
    saved.seek(SeekFrom::Start(start))?;
    Ok(read_bounded(saved.take(size), LARGEST_MANIFEST)?)
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, SavedImageError> {
    serde_json::from_slice(bytes).map_err(|error| SavedImageError::Archive(error.to_string()))
}

/// The first bytes of a layer, which say how it is compressed.
fn magic_of(layer: &mut Section) -> std::io::Result<Vec<u8>> {
    let mut magic = Vec::new();
    layer.take(4).read_to_end(&mut magic)?;
    layer.rewind()?;
    Ok(magic)
}

/// A reader of a layer's tar.
fn unpacked(magic: &[u8], layer: Section) -> std::io::Result<Box<dyn Read>> {
    Ok(match magic {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::MultiGzDecoder::new(layer)),
        ZSTD => Box::new(zstd::stream::read::Decoder::new(layer)?),
        _ => Box::new(layer),
    })
}

/// Returns a layer as an uncompressed tar: some engines save it compressed.
fn plain(
    mut layer: Section,
    scratch: &impl Fn() -> std::io::Result<tempfile::NamedTempFile>,
) -> std::io::Result<Section> {
    let magic = magic_of(&mut layer)?;
    if !magic.starts_with(GZIP) && magic != ZSTD {
        return Ok(layer);
    }
    let unpacked = unpacked(&magic, layer)?;
    let mut file = scratch()?.into_file();
    let named = |error: std::io::Error| match error.kind() {
        ErrorKind::UnexpectedEof => Error::new(error.kind(), "a compressed layer is cut: its end is missing"),
        _ => error,
    };
    std::io::copy(&mut Bounded::new(unpacked, LARGEST_LAYER), &mut file).map_err(named)?;
    Section::whole(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;
    use std::sync::LazyLock;

    use super::*;
    use crate::model::sha256::sha256_hex;

    /// The layer of the base: a file that the layer above has again.
    static BASE: LazyLock<Vec<u8>> = LazyLock::new(|| tar_of(&[("opt/b", "2")], 7));

    fn layer(time: u64, reversed: bool) -> Vec<u8> {
        let mut files = [("opt/b", "2"), ("opt/a", "1")];
        if reversed {
            files.reverse();
        }
        tar_of(&files, time)
    }

    fn tar_of(files: &[(&str, &str)], time: u64) -> Vec<u8> {
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

    fn append(tar: &mut tar::Builder<File>, name: &str, bytes: &[u8]) {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, Path::new(name), bytes).expect("written");
    }

    /// An archive as an engine makes it at some time: a base layer and one above it, by a link as old engines write it.
    fn saved(time: u64, gzip: bool) -> File {
        packed(time, if gzip { Packing::Gzip } else { Packing::None })
    }

    #[derive(Clone, Copy)]
    enum Packing {
        None,
        Gzip,
        Zstd,
    }

    fn pack(bytes: &[u8], packing: Packing) -> Vec<u8> {
        match packing {
            Packing::None => bytes.to_vec(),
            Packing::Zstd => zstd::encode_all(bytes, 1).expect("a vector"),
            // In two members, as layers of wheels are.
            Packing::Gzip => [&bytes[..700], &bytes[700..]].iter().flat_map(|part| gzip(part)).collect(),
        }
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packer.write_all(bytes).expect("a vector");
        packer.finish().expect("a vector")
    }

    fn packed(time: u64, packing: Packing) -> File {
        let above = layer(time, time.is_multiple_of(2));
        let config = serde_json::json!({
            "rootfs": {"type": "layers", "diff_ids": [diff_id(&BASE), diff_id(&above)]},
        });
        let manifest = br#"[{"Config":"c.json","RepoTags":null,"Layers":["one/layer.tar","two/layer.tar"]}]"#;
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        append(&mut tar, "base/layer.tar", &pack(&BASE, packing));
        append(&mut tar, "other/layer.tar", &pack(&above, packing));
        append(&mut tar, "c.json", config.to_string().as_bytes());
        append(&mut tar, "manifest.json", manifest);
        for (name, target) in [("one", "../base/layer.tar"), ("two", "../other/layer.tar")] {
            let mut link = tar::Header::new_gnu();
            link.set_entry_type(tar::EntryType::Symlink);
            link.set_size(0);
            tar.append_link(&mut link, format!("{name}/layer.tar"), target).expect("written");
        }
        tar.into_inner().expect("written")
    }

    fn canonical(saved: File, base: &[String]) -> Result<Vec<(String, u64)>, SavedImageError> {
        let layers = layers_above(saved, base, tempfile::NamedTempFile::new)?;
        Ok(layers.into_iter().map(|layer| (layer.sha256, layer.size)).collect())
    }

    #[test]
    fn layers_are_independent_of_times_order_and_compression() {
        let base = [diff_id(&BASE)];
        let first = canonical(saved(1, false), &base).expect("layers");
        assert_eq!(first.len(), 1);
        for other in [saved(2, false), saved(3, true), packed(4, Packing::Zstd)] {
            assert_eq!(canonical(other, &base).expect("layers"), first);
        }
    }

    #[test]
    fn returned_file_has_the_returned_digest_and_what_the_base_lacks() {
        let layers = layers_above(saved(1, true), &[diff_id(&BASE)], tempfile::NamedTempFile::new);
        for mut layer in layers.expect("layers") {
            let mut bytes = Vec::new();
            layer.file.rewind().and_then(|()| layer.file.read_to_end(&mut bytes)).expect("a file");
            assert_eq!((sha256_hex(&bytes), bytes.len() as u64), (layer.sha256, layer.size));
            let mut archive = tar::Archive::new(bytes.as_slice());
            let path = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
                entry.expect("an entry").path().expect("a path").display().to_string()
            };
            assert_eq!(archive.entries().expect("a tar").map(path).collect::<Vec<_>>(), ["opt/", "opt/a"]);
        }
    }

    #[test]
    fn layers_as_they_are_have_the_digests_of_the_configuration() {
        for gzip in [false, true] {
            let layers = layers_of(saved(1, gzip), tempfile::NamedTempFile::new).expect("layers");
            let found: Vec<_> = layers.iter().map(|one| (one.sha256.clone(), one.size)).collect();
            let wanted = [BASE.clone(), layer(1, false)].map(|tar| (sha256_hex(&tar), tar.len() as u64));
            assert_eq!(found, wanted);
        }
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        let config = serde_json::json!({ "rootfs": { "diff_ids": [diff_id(b"another base")] } });
        append(&mut tar, "base/layer.tar", &BASE);
        append(&mut tar, "c.json", config.to_string().as_bytes());
        append(&mut tar, "manifest.json", br#"[{"Config":"c.json","Layers":["base/layer.tar"]}]"#);
        let changed = layers_of(tar.into_inner().expect("written"), tempfile::NamedTempFile::new);
        assert!(matches!(changed, Err(SavedImageError::Archive(_))));
    }

    #[test]
    fn invalid_image_archive_is_reported() {
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        append(&mut tar, "manifest.json", b"[]");
        let other = canonical(saved(1, false), &[diff_id(b"another base")]);
        let none = canonical(tar.into_inner().expect("written"), &[]);
        for result in [other, none] {
            assert!(matches!(result, Err(SavedImageError::Archive(_))), "{result:?}");
        }
    }

    #[test]
    fn cut_archive_is_an_error_that_says_so() {
        let error = |saved: File| canonical(saved, &[diff_id(&BASE)]).expect_err("cut").to_string();
        assert!(error(tempfile::tempfile().expect("a file")).contains("the archive is cut"));
        let whole = saved(1, false);
        // At the end of an entry: nothing but the mark is missing.
        whole.set_len(whole.metadata().expect("a file").len() - 1024).expect("ours");
        assert!(error(whole).contains("the archive is cut"));
    }

    #[test]
    fn cut_compressed_layer_is_an_error_that_says_so() {
        let packed = gzip(&layer(1, false));
        let config = serde_json::json!({ "rootfs": { "diff_ids": [diff_id(b"any")] } });
        let mut tar = tar::Builder::new(tempfile::tempfile().expect("a file"));
        append(&mut tar, "layer.tar", &packed[..packed.len() - 9]);
        append(&mut tar, "c.json", config.to_string().as_bytes());
        append(&mut tar, "manifest.json", br#"[{"Config":"c.json","Layers":["layer.tar"]}]"#);
        let error = canonical(tar.into_inner().expect("written"), &[]).expect_err("cut").to_string();
        assert!(error.contains("a compressed layer is cut"), "{error}");
    }
}
