//! An assembled image as a file that a cluster starts, straight from wheels and the cache: no engine, no root and no copy of the files.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::available_parallelism;

use camino::Utf8Path;

use crate::archive::content_digest::ContentError;
use crate::archive::image_layout::parent_of;
use crate::archive::section::Section;
use crate::archive::tree::{Kind, Node, Tree};
use crate::assemble::{AssembleError, FileReader, LayerContent, LayerFile, LayerPlan, on_all_cores};
use crate::cluster_file::{
    ClusterFileError, Contents, FRONT, Slot, SquashfsOptions, sif_front, write_squashfs,
};
use crate::failure::{Exit, Failure};
use crate::model::export::runtime_files::runtime_files;
use crate::model::file_compression::FileCompression;
use crate::model::request::FileKind;
use crate::model::versions::Machine;
use crate::report::{Event, Reporter, in_step};
use crate::workflow::assemble::{OpenedLayer, Recipe, RemadeLayer};
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::export_layout::{LayoutError, packed_size};
use crate::workflow::image_parts::{MissingParts, bring_base};
use crate::workflow::session::Session;

const STEP: &str = "file";
/// Bytes of a part of a file.
const CHUNK: usize = 256 << 10;
/// Bytes between two reports of progress.
const REPORTED: u64 = 32 << 20;
/// Threads that compress, at most: each has some megabytes of blocks before it.
const MOST_THREADS: usize = 16;

/// A file to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageFile<'a> {
    pub(crate) kind: FileKind,
    /// The image's id in the engine.
    pub(crate) image: &'a str,
    /// Its name, for messages.
    pub(crate) name: &'a str,
    pub(crate) machine: Machine,
    pub(crate) compression: FileCompression,
    /// Whether a file that is there is replaced.
    pub(crate) force: bool,
}

/// Why an image is not written to a file.
#[derive(Debug, thiserror::Error)]
enum FileError {
    /// The image has paths that the file cannot hold, or the file cannot be written.
    #[error(transparent)]
    Cluster(#[from] ClusterFileError),
    /// A wheel or another part cannot be read.
    #[error(transparent)]
    Part(#[from] AssembleError),
    /// A layer is not an archive.
    #[error(transparent)]
    Archive(#[from] ContentError),
    /// The image's configuration is not one.
    #[error("cannot read the image's configuration: {0}")]
    Configuration(#[from] serde_json::Error),
    /// Nobody waits for the file any more.
    #[error("interrupted")]
    Interrupted,
}

impl From<std::io::Error> for FileError {
    fn from(cause: std::io::Error) -> Self {
        Self::Cluster(ClusterFileError::Write(cause))
    }
}

impl Failure for FileError {
    fn exit(&self) -> Exit {
        match self {
            Self::Cluster(ClusterFileError::Paths { .. }) => Exit::No,
            Self::Part(error) => error.exit(),
            _ => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Cluster(ClusterFileError::Paths { .. }) => vec![
                "remove what they have in a `run` step, such as `setcap -r FILE`, or deliver the image with \
                 `envforge push`"
                    .to_owned(),
            ],
            Self::Cluster(ClusterFileError::Write(cause)) => cause.hints(),
            Self::Part(error) => error.hints(),
            _ => Vec::new(),
        }
    }
}

/// Writes the image to a file and returns its size in bytes. The file exists whole or not at all.
pub(crate) async fn write_file(
    session: &Session<'_>,
    file: ImageFile<'_>,
    target: &Utf8Path,
) -> Result<u64, CommandError> {
    check_target(target, file.force)?;
    let not_assembled = || LayoutError::NotAssembled { image: file.name.to_owned() };
    let recipe = Recipe::of(&session.store, file.image).ok_or_else(not_assembled)?;
    bring_base(session, &recipe).await?;
    let layers: Vec<RemadeLayer> = recipe
        .layers
        .iter()
        .map(|layer| RemadeLayer { layer: layer.clone(), store: session.store.clone() })
        .collect();
    let parts: Vec<String> = layers.iter().flat_map(RemadeLayer::missing).collect();
    if !parts.is_empty() {
        return Err(MissingParts { purpose: "export", parts }.into());
    }
    disk_space::check_folder(parent_of(target).as_str(), recipe.layers.iter().map(packed_size).sum())?;
    let interrupted = Interrupted::default();
    let job = Job {
        layers,
        config: recipe.config,
        kind: file.kind,
        machine: file.machine,
        compression: file.compression,
        threads: available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS),
        reporter: Arc::clone(&session.reporter),
        interrupted: Arc::clone(&interrupted.0),
    };
    let (place, force) = (target.to_owned(), file.force);
    let written = async {
        let done = tokio::task::spawn_blocking(move || job.write_to(&place, force)).await;
        done.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
    };
    let text = format!("write {} layers to {target}", recipe.layers.len());
    let written = in_step(&*session.reporter, STEP, text, written).await;
    written.map_err(|error| match error {
        FileError::Cluster(ClusterFileError::Write(cause)) => of_target(target, cause).into(),
        error => error.into(),
    })
}

fn of_target(target: &Utf8Path, cause: std::io::Error) -> LayoutError {
    match cause.kind() {
        std::io::ErrorKind::AlreadyExists => LayoutError::Exists { target: target.to_owned() },
        _ => LayoutError::Write { target: target.to_owned(), cause },
    }
}

/// Refuses what is there already, before minutes of work.
fn check_target(target: &Utf8Path, force: bool) -> Result<(), CommandError> {
    match fs_err::symlink_metadata(target) {
        Ok(found) if force && found.is_file() => Ok(()),
        Ok(_) => Err(LayoutError::Exists { target: target.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(LayoutError::Write { target: target.to_owned(), cause }.into()),
    }
}

/// Says that nobody waits any more, when it is dropped.
#[derive(Default)]
struct Interrupted(Arc<AtomicBool>);

impl Drop for Interrupted {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Where the content of a file lies.
enum Source {
    /// In the archive of a layer.
    Archive(Section),
    /// In a wheel, or here.
    File(LayerFile),
    /// In the byte code of a layer, by its path.
    ByteCode { layer: usize, path: String, size: u64 },
}

impl Source {
    /// Bytes of the content.
    fn size(&self) -> u64 {
        match self {
            Self::Archive(part) => part.size(),
            Self::File(file) => file.size(),
            Self::ByteCode { size, .. } => *size,
        }
    }
}

/// Everything it takes to write the file.
struct Job {
    layers: Vec<RemadeLayer>,
    config: String,
    kind: FileKind,
    machine: Machine,
    compression: FileCompression,
    threads: usize,
    reporter: Arc<dyn Reporter>,
    interrupted: Arc<AtomicBool>,
}

impl Job {
    /// Writes the file next to its place and puts it there.
    fn write_to(&self, target: &Utf8Path, force: bool) -> Result<u64, FileError> {
        let parent = parent_of(target);
        fs_err::create_dir_all(parent)?;
        let mut file = tempfile::Builder::new().prefix(".envforge-file-").tempfile_in(parent)?;
        let size = self.write(file.as_file_mut())?;
        set_readable(file.as_file())?;
        if force {
            file.persist(target).map_err(|error| error.error)?;
        } else {
            file.persist_noclobber(target).map_err(|error| error.error)?;
        }
        Ok(size)
    }

    fn write(&self, out: &mut File) -> Result<u64, FileError> {
        let (tree, sources) = self.tree()?;
        let front = if self.kind == FileKind::Sif { FRONT } else { 0 };
        let options = SquashfsOptions { compression: self.compression, cores: self.threads, front };
        let size = write_squashfs(out, options, &tree, |contents| self.fill(contents, &tree, &sources))?;
        if self.kind == FileKind::Sif {
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&sif_front(size, self.machine, "bootstrap: scratch\n"))?;
        }
        Ok(front + size)
    }

    /// The paths of the image with the files of the runtimes, and where the content of each file lies.
    fn tree(&self) -> Result<(Tree<Slot>, Vec<Source>), FileError> {
        let (mut tree, mut sources) = (Tree::default(), Vec::new());
        let opened = on_all_cores(&self.layers, RemadeLayer::open)?;
        for (layer, opened) in opened.into_iter().enumerate() {
            match opened {
                OpenedLayer::Archive(file) => {
                    tree.add_with(&Section::whole(file)?, &mut |part| keep(&mut sources, Source::Archive(part)))?;
                }
                OpenedLayer::Files(plan) => add_plan(&mut tree, &plan, &mut |_, file| {
                    keep(&mut sources, Source::File(file.clone()))
                }),
                OpenedLayer::ByteCode(plan) => add_plan(&mut tree, &plan, &mut |path, file| {
                    let (path, size) = (path.to_owned(), file.size());
                    keep(&mut sources, Source::ByteCode { layer, path, size })
                }),
            }
        }
        for file in runtime_files(&self.config)? {
            let path = file.path.as_bytes().to_vec();
            if let Some(text) = file.text {
                let slot = keep(&mut sources, Source::File(LayerFile::of_bytes(file.mode, text)));
                tree.insert(path, Node::of_root(Kind::File(slot), file.mode));
            } else if !tree.has_directory(&path) {
                tree.insert(path, Node::of_root(Kind::Directory, file.mode));
            }
        }
        Ok((tree, sources))
    }

    /// Gives the content of each file of the tree, layer by layer.
    fn fill(
        &self,
        contents: &mut Contents<'_>,
        tree: &Tree<Slot>,
        sources: &[Source],
    ) -> Result<(), FileError> {
        let mut slots: Vec<Slot> = tree
            .iter()
            .filter_map(|(_, node)| match node.kind {
                Kind::File(slot) => Some(slot),
                _ => None,
            })
            .collect();
        slots.sort_unstable();
        slots.dedup();
        let total = slots.iter().map(|slot| sources[*slot as usize].size()).sum();
        let mut progress = Progress { reporter: &*self.reporter, done: 0, reported: 0, total };
        let (mut reader, mut chunk) = (FileReader::default(), vec![0; CHUNK]);
        let mut code: Option<(usize, LayerPlan)> = None;
        for slot in slots {
            if self.interrupted.load(Ordering::Relaxed) {
                return Err(FileError::Interrupted);
            }
            let source = &sources[slot as usize];
            let size = source.size();
            match source {
                Source::Archive(part) => {
                    contents.add(slot, (size, None), |give| copy(part, &mut chunk, give))?;
                }
                Source::File(file) => {
                    let sha256 = match &file.content {
                        LayerContent::FromWheel { sha256, .. } => *sha256,
                        _ => None,
                    };
                    contents.add(slot, (size, sha256), |give| Ok::<_, FileError>(reader.read(file, give)?))?;
                }
                Source::ByteCode { layer, path, .. } => {
                    if code.as_ref().is_none_or(|(opened, _)| opened != layer) {
                        // The former one first: two lie in no memory.
                        drop(code.take());
                        code = Some((*layer, self.layers[*layer].byte_code()?));
                    }
                    let found = code.as_ref().and_then(|(_, plan)| plan.files().get(path));
                    let found = found.filter(|file| file.size() == size);
                    let file = found.ok_or_else(|| AssembleError::Gone { what: format!("`{path}`") })?;
                    contents.add(slot, (size, None), |give| Ok::<_, FileError>(reader.read(file, give)?))?;
                }
            }
            progress.add(size);
        }
        Ok(())
    }
}

fn keep(sources: &mut Vec<Source>, source: Source) -> Slot {
    sources.push(source);
    Slot::try_from(sources.len() - 1).expect("an image has some ten thousand files")
}

/// Puts the files of a plan on top.
fn add_plan(tree: &mut Tree<Slot>, plan: &LayerPlan, keep: &mut dyn FnMut(&str, &LayerFile) -> Slot) {
    for (path, file) in plan.files() {
        let kind = match &file.content {
            LayerContent::Folder => Kind::Directory,
            LayerContent::Symlink(target) => Kind::Symlink(target.clone().into_bytes()),
            LayerContent::File(_) | LayerContent::FromWheel { .. } => Kind::File(keep(path, file)),
        };
        let (uid, gid) = (file.uid.into(), file.gid.into());
        tree.insert(path.clone().into_bytes(), Node { uid, gid, ..Node::of_root(kind, file.mode) });
    }
}

fn copy(
    part: &Section,
    chunk: &mut [u8],
    give: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<(), FileError> {
    let mut part = part.clone();
    loop {
        match part.read(chunk)? {
            0 => return Ok(()),
            count => give(&chunk[..count])?,
        }
    }
}

fn set_readable(file: &File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(0o644))
}

/// Reports bytes now and then.
struct Progress<'a> {
    reporter: &'a dyn Reporter,
    done: u64,
    reported: u64,
    total: u64,
}

impl Progress<'_> {
    fn add(&mut self, bytes: u64) {
        self.done += bytes;
        if self.done - self.reported >= REPORTED {
            self.reported = self.done;
            let (id, done, total) = (STEP.to_owned(), self.done, Some(self.total));
            self.reporter.report(Event::StepProgress { id, done, total });
        }
    }
}
