//! An image of an OCI image layout, from a directory or a tar: every byte is compared with its digest before it is used.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::Deserialize;

use super::limits::{LARGEST_LAYER, LARGEST_MANIFEST};
use crate::evidence::{Attestation, Bundle, is_bundle_manifest};
use crate::failure::{Exit, Failure};
use crate::model::bounded::{Bounded, read_bounded};
use crate::model::bounded_tar::BoundedTar;
use crate::model::image::config::{ConfiguredLayers, RootFs};
use crate::model::image::manifest::{BlobDescriptor, blob_path};
use crate::model::image_digest::Digest;
use crate::model::sha256::{HashingReader, HashingWriter, Sha256Hex};

const CHUNK: usize = 1 << 20;
/// The most files of a tar.
const MOST_ENTRIES: usize = 10_000;
/// Documents of evidence that are read.
const MOST_DOCUMENTS: usize = 2000;
/// The most bytes of them.
const MOST_EVIDENCE: u64 = 48 << 20;
/// The most layers of an image: engines take no more.
const MOST_LAYERS: usize = 127;

/// Why an image layout cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LayoutError {
    /// Not a layout of one image.
    #[error("`{path}` is not an OCI layout of one image: {found}")]
    Invalid {
        /// The directory or file.
        path: Utf8PathBuf,
        /// What is there instead.
        found: String,
    },
    /// The bytes of a blob are not those of its name.
    #[error("cannot use `{path}`: blob {wanted} has the content of {found}")]
    OtherBlob {
        /// The directory or file.
        path: Utf8PathBuf,
        /// Its name.
        wanted: Digest,
        /// The digest and size of its bytes.
        found: String,
    },
    /// A layer is not the one of the configuration.
    #[error("cannot use `{path}`: layer {number} has the content of {found} instead of {wanted}")]
    OtherLayer {
        /// The directory or file.
        path: Utf8PathBuf,
        /// Counted from 1.
        number: usize,
        /// The diff ID of the configuration.
        wanted: Digest,
        /// The digest of its tar.
        found: Digest,
    },
    /// An image for other machines than the engine's.
    #[error("the image of `{path}` is for {found}, the engine's machine is {wanted}")]
    Machine {
        /// The directory or file.
        path: Utf8PathBuf,
        /// The architecture of its configuration.
        found: String,
        /// That of the engine.
        wanted: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{path}`: {cause}")]
    Read {
        /// The directory or file.
        path: Utf8PathBuf,
        /// Why.
        cause: io::Error,
    },
}

impl Failure for LayoutError {
    fn exit(&self) -> Exit {
        match self {
            Self::Invalid { .. } | Self::Machine { .. } => Exit::Usage,
            Self::OtherBlob { .. } | Self::OtherLayer { .. } => Exit::No,
            Self::Read { .. } => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Invalid { .. } => vec!["write one with `envforge export oci IMAGE FILE.tar`".to_owned()],
            Self::OtherBlob { .. } | Self::OtherLayer { .. } => {
                vec![
                    "copy it again, or export it again where it was written: nothing of it was used"
                        .to_owned(),
                ]
            }
            Self::Machine { .. } => vec!["select an engine of that machine with DOCKER_HOST".to_owned()],
            Self::Read { cause, .. } => cause.hints(),
        }
    }
}

/// The image of a layout.
#[derive(Debug)]
pub(crate) struct LayoutImage {
    /// The digest of its manifest: the image's digest in a registry.
    pub(crate) digest: Digest,
    /// Its configuration, whose digest is the image's id.
    pub(crate) config: Vec<u8>,
    /// The architecture that its configuration names: `amd64`.
    pub(crate) architecture: String,
    /// Its layers, lowest first.
    pub(crate) layers: Vec<LayoutLayer>,
    blobs: Arc<Blobs>,
    evidence: Vec<Entry>,
}

/// A layer of a layout, not yet compared.
#[derive(Debug, Clone)]
pub(crate) struct LayoutLayer {
    blobs: Arc<Blobs>,
    blob: BlobDescriptor,
    is_compressed: bool,
    number: usize,
    /// The digest of its tar, as the configuration has it.
    pub(crate) diff_id: Digest,
}

/// Where blobs lie.
#[derive(Debug)]
struct Blobs {
    path: Utf8PathBuf,
    tar: Option<Tar>,
}

/// A tar: the file, and start and size of each member.
#[derive(Debug)]
struct Tar {
    file: Arc<File>,
    members: BTreeMap<String, (u64, u64)>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Index {
    manifests: Vec<Entry>,
}

/// A manifest that refers to another one.
#[derive(Deserialize)]
struct Referring {
    subject: Subject,
}

#[derive(Deserialize)]
struct Subject {
    digest: Digest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Manifest {
    config: Entry,
    layers: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    media_type: String,
    #[serde(default)]
    artifact_type: String,
    digest: Digest,
    size: u64,
}

impl LayoutImage {
    /// Reads the one image of a layout; its layers are compared by [`LayoutLayer::check`].
    pub(crate) fn open(path: &Utf8Path) -> Result<Self, LayoutError> {
        let blobs = Arc::new(Blobs::open(path)?);
        blobs.file("oci-layout")?;
        let index: Index = blobs.json(&blobs.file("index.json")?)?;
        let (evidence, images): (Vec<Entry>, Vec<Entry>) =
            index.manifests.into_iter().partition(|entry| is_bundle_manifest(&entry.artifact_type));
        let [image] = images.as_slice() else {
            return Err(blobs.invalid(format!("it has {} images", images.len())));
        };
        if !is_one_of(&image.media_type, &["oci.image.manifest.v1", "docker.distribution.manifest.v2"]) {
            return Err(blobs.invalid(format!("its index names a `{}`", image.media_type)));
        }
        let manifest: Manifest = blobs.json(&blobs.document(image)?)?;
        let config = blobs.document(&manifest.config)?;
        let ConfiguredLayers { architecture, rootfs: RootFs { diff_ids }, history: _ } =
            blobs.json(&config)?;
        if manifest.layers.len() > MOST_LAYERS {
            let there = manifest.layers.len();
            return Err(blobs.invalid(format!("it has {there} layers, engines take {MOST_LAYERS}")));
        }
        if diff_ids.len() != manifest.layers.len() {
            let (listed, there) = (diff_ids.len(), manifest.layers.len());
            return Err(blobs.invalid(format!("it has {there} layers, its configuration {listed}")));
        }
        let layers = manifest.layers.into_iter().zip(diff_ids).enumerate();
        let layers: Result<_, LayoutError> = layers
            .map(|(below, (entry, diff_id))| {
                let is_compressed = match entry.media_type.rsplit('.').next().unwrap_or_default() {
                    "tar+gzip" | "gzip" => true,
                    "tar" => false,
                    _ => return Err(blobs.invalid(format!("a layer is a `{}`", entry.media_type))),
                };
                if entry.size > LARGEST_LAYER {
                    return Err(blobs.invalid(format!("a layer has {} bytes", entry.size)));
                }
                let blob = BlobDescriptor { digest: entry.digest, size: entry.size };
                let blobs = Arc::clone(&blobs);
                Ok(LayoutLayer { blobs, blob, is_compressed, number: below + 1, diff_id })
            })
            .collect();
        let digest = image.digest.clone();
        Ok(Self { digest, config, architecture, layers: layers?, blobs: Arc::clone(&blobs), evidence })
    }

    /// How many documents of evidence lie in it.
    pub(crate) fn evidence_count(&self) -> usize {
        self.evidence.len()
    }

    /// The evidence in it that refers to the image. Nothing of it is believed: its readers check signatures.
    pub(crate) fn evidence(&self) -> Result<Vec<Attestation>, LayoutError> {
        if self.evidence.len() > MOST_DOCUMENTS {
            let found =
                format!("it has {} documents of evidence, limit {MOST_DOCUMENTS}", self.evidence.len());
            return Err(self.blobs.invalid(found));
        }
        let (mut all, mut size) = (Vec::new(), 0);
        for entry in &self.evidence {
            let manifest = self.blobs.document(entry)?;
            let refers = serde_json::from_slice(&manifest)
                .is_ok_and(|Referring { subject }| subject.digest == self.digest);
            let Some(blob) = Bundle::of_manifest(&manifest).filter(|_| refers) else { continue };
            let entry = Entry {
                media_type: String::new(),
                artifact_type: String::new(),
                digest: blob.digest,
                size: blob.size,
            };
            let bytes = self.blobs.document(&entry)?;
            size += bytes.len() as u64;
            if size > MOST_EVIDENCE {
                return Err(self
                    .blobs
                    .invalid(format!("it has more than {MOST_EVIDENCE} bytes of evidence")));
            }
            all.extend(Bundle::attestation(&bytes));
        }
        Ok(all)
    }
}

fn is_one_of(media_type: &str, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| media_type == format!("application/vnd.{kind}+json"))
}

impl LayoutLayer {
    /// Reads the layer once, compares blob and tar with their digests, and returns the tar's size in bytes.
    pub(crate) fn check(&self) -> Result<u64, LayoutError> {
        let blobs = &self.blobs;
        let mut blob = HashingReader::new(blobs.reader(&self.blob)?);
        let mut tar = Sha256Hex::default();
        let copied = self.unpack(&mut blob, &mut tar);
        // What follows the compressed form belongs to the blob.
        let rest = io::copy(&mut blob, &mut io::sink());
        let found = format!("sha256:{}", blob.finish());
        if rest.is_ok() && found != self.blob.digest.as_str() {
            return Err(blobs.other(&self.blob.digest, found));
        }
        rest.map_err(|cause| blobs.read(cause))?;
        let size = copied.map_err(|cause| blobs.invalid(format!("layer {}: {cause}", self.number)))?;
        self.compare(&tar.finish()).map(|()| size)
    }

    /// Writes its tar; an error that holds a [`LayoutError`] if it has changed since.
    pub(crate) fn write_to(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let reader = self.blobs.reader(&self.blob).map_err(io::Error::other)?;
        let mut tar = HashingWriter::new(out);
        self.unpack(reader, &mut tar)?;
        self.compare(&tar.finish()).map_err(io::Error::other)
    }

    /// Its compressed form, if it lies there so.
    pub(crate) fn packed(&self) -> Option<&BlobDescriptor> {
        self.is_compressed.then_some(&self.blob)
    }

    /// Writes the blob as it is, unless it changed since [`LayoutLayer::check`].
    pub(crate) fn write_blob(&self, out: &mut dyn io::Write) -> io::Result<()> {
        let reader = self.blobs.reader(&self.blob).map_err(io::Error::other)?;
        let mut blob = HashingWriter::new(out);
        io::copy(&mut BufReader::with_capacity(CHUNK, reader), &mut blob)?;
        let found = format!("sha256:{}", blob.finish());
        if found == self.blob.digest.as_str() {
            return Ok(());
        }
        Err(io::Error::other(self.blobs.other(&self.blob.digest, found)))
    }

    fn compare(&self, found: &str) -> Result<(), LayoutError> {
        let found = format!("sha256:{found}").parse().expect("a hash of ours is a digest");
        if self.diff_id == found {
            return Ok(());
        }
        let (path, wanted) = (self.blobs.path.clone(), self.diff_id.clone());
        Err(LayoutError::OtherLayer { path, number: self.number, wanted, found })
    }

    fn unpack(&self, blob: impl Read, mut out: impl io::Write) -> io::Result<u64> {
        let blob = BufReader::with_capacity(CHUNK, blob);
        if self.is_compressed {
            io::copy(&mut Bounded::new(flate2::bufread::MultiGzDecoder::new(blob), LARGEST_LAYER), &mut out)
        } else {
            io::copy(&mut Bounded::new(blob, LARGEST_LAYER), &mut out)
        }
    }
}

impl Blobs {
    fn open(path: &Utf8Path) -> Result<Self, LayoutError> {
        let mut blobs = Self { path: path.to_owned(), tar: None };
        if fs_err::metadata(path).map_err(|cause| blobs.read(cause))?.is_dir() {
            return Ok(blobs);
        }
        let file = open_file(path).map_err(|cause| blobs.read(cause))?;
        let members = members(&file).map_err(|cause| blobs.invalid(cause.to_string()))?;
        blobs.tar = Some(Tar { file: Arc::new(file), members });
        Ok(blobs)
    }

    /// A file of the layout whose content nothing names.
    fn file(&self, name: &str) -> Result<Vec<u8>, LayoutError> {
        let (file, start, size) = self.place(name)?;
        let section = Section { file, at: start, end: start + size };
        read_bounded(section, LARGEST_MANIFEST).map_err(|cause| match cause.kind() {
            io::ErrorKind::FileTooLarge | io::ErrorKind::UnexpectedEof => {
                self.invalid(format!("{name}: {cause}"))
            }
            _ => self.read(cause),
        })
    }

    /// A blob in memory, compared with its digest.
    fn document(&self, entry: &Entry) -> Result<Vec<u8>, LayoutError> {
        let bytes = self.file(&blob_path(entry.digest.as_str()))?;
        let found = Digest::of(&bytes);
        if found == entry.digest { Ok(bytes) } else { Err(self.other(&entry.digest, found.to_string())) }
    }

    fn json<T: serde::de::DeserializeOwned>(&self, text: &[u8]) -> Result<T, LayoutError> {
        serde_json::from_slice(text).map_err(|error| self.invalid(error.to_string()))
    }

    /// The bytes of a blob of that size.
    fn reader(&self, blob: &BlobDescriptor) -> Result<Section, LayoutError> {
        let (file, start, size) = self.place(&blob_path(blob.digest.as_str()))?;
        if size == blob.size {
            Ok(Section { file, at: start, end: start + size })
        } else {
            Err(self.other(&blob.digest, format!("{size} bytes instead of {}", blob.size)))
        }
    }

    fn place(&self, name: &str) -> Result<(Arc<File>, u64, u64), LayoutError> {
        let absent = || self.invalid(format!("it has no `{name}`"));
        if let Some(Tar { file, members }) = &self.tar {
            let (start, size) = members.get(name).copied().ok_or_else(absent)?;
            return Ok((Arc::clone(file), start, size));
        }
        let file = open_file(&self.path.join(name)).map_err(|cause| match Errno::from_io_error(&cause) {
            Some(Errno::NOENT) => absent(),
            // A link, or what `open_file` refuses.
            Some(Errno::LOOP) | None => self.invalid(format!("{name}: {cause}")),
            Some(_) => self.read(cause),
        })?;
        let size = file.metadata().map_err(|cause| self.read(cause))?.len();
        Ok((Arc::new(file), 0, size))
    }

    fn invalid(&self, found: String) -> LayoutError {
        LayoutError::Invalid { path: self.path.clone(), found }
    }

    fn other(&self, wanted: &Digest, found: String) -> LayoutError {
        LayoutError::OtherBlob { path: self.path.clone(), wanted: wanted.clone(), found }
    }

    fn read(&self, cause: io::Error) -> LayoutError {
        LayoutError::Read { path: self.path.clone(), cause }
    }
}

/// Opens a regular file, never a link or a pipe: a pipe would never end.
fn open_file(path: &Utf8Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

/// Start and size of each regular file of a tar.
fn members(file: &File) -> io::Result<BTreeMap<String, (u64, u64)>> {
    let mut members = BTreeMap::new();
    let mut tar = BoundedTar::new(BufReader::new(file.try_clone()?));
    for (count, entry) in tar.entries_with_seek()?.enumerate() {
        let entry = entry?;
        if count >= MOST_ENTRIES {
            return Err(io::Error::other(format!("more than {MOST_ENTRIES} files")));
        }
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).trim_start_matches("./").to_owned();
        let (start, size) = (entry.raw_file_position(), entry.size());
        if start.checked_add(size).is_none_or(|end| file.metadata().is_ok_and(|file| end > file.len())) {
            return Err(io::Error::other(format!("it ends inside `{name}`")));
        }
        if members.insert(name.clone(), (start, size)).is_some() {
            return Err(io::Error::other(format!("it has `{name}` twice")));
        }
    }
    Ok(members)
}

/// A part of a file, read without its cursor.
struct Section {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let most = left.min(buffer.len());
        let count = self.file.read_at(&mut buffer[..most], self.at)?;
        if count == 0 && most > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += count as u64;
        Ok(count)
    }
}

#[cfg(test)]
#[path = "layout_reader_tests.rs"]
mod tests;
