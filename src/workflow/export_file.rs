//! An assembled image as a file that a cluster starts, straight from wheels and the cache: no engine, no root and no copy of the files.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use camino::Utf8Path;

use crate::archive::content_digest::ContentError;
use crate::archive::image_layout::parent_of;
use crate::archive::section::Section;
use crate::archive::tree::{Kind, Node, Tree};
use crate::assemble::{AssembleError, FileReader, LayerContent, LayerFile, LayerPlan, on_all_cores};
use crate::cluster_file::{
    ClusterFileError, Contents, FRONT, Slot, SquashfsOptions, StagedFile, sif_front, write_squashfs,
};
use crate::failure::{Exit, Failure};
use crate::model::counted::counted;
use crate::model::export::runtime_files::runtime_files;
use crate::model::file_compression::FileCompression;
use crate::model::lock::Lock;
use crate::model::request::FileKind;
use crate::model::verdict::ImageState;
use crate::model::versions::Machine;
use crate::report::{Event, Reporter, in_step};
use crate::store::Store;
use crate::store::built_images::built_of;
use crate::workflow::assemble::{LayerSource, OpenedLayer, Recipe, RemadeLayer};
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::export_layout::{LayoutError, packed_size};
use crate::workflow::image_parts::{bring_base, whole_layers};
use crate::workflow::proven::reports_of;
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
pub(crate) struct ImageFile {
    pub(crate) kind: FileKind,
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
    /// The command was interrupted.
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
            Self::Cluster(ClusterFileError::Paths { .. }) => {
                vec!["use a base without them, or deliver the image with `envforge push`".to_owned()]
            }
            Self::Cluster(ClusterFileError::Write(cause)) => cause.hints(),
            Self::Part(error) => error.hints(),
            _ => Vec::new(),
        }
    }
}

/// How the image of that id is made, with its base at hand. `name` is for messages.
pub(crate) async fn recipe_of_image(
    session: &Session<'_>,
    image: &str,
    name: &str,
) -> Result<Recipe, CommandError> {
    let not_assembled = || LayoutError::NotAssembled { image: name.to_owned() };
    let recipe = Recipe::of(&session.store, image).ok_or_else(not_assembled)?;
    bring_base(session, &recipe).await?;
    Ok(recipe)
}

/// How the best image of a lock that was built here is made, with the image's id; no engine is asked. Verified ones come first, then
/// the newest; one whose checks failed counts for nothing.
pub(crate) fn recipe_of_lock(
    (store, reporter): (&Store, &Arc<dyn Reporter>),
    lock: &Lock,
) -> Result<Option<(String, Recipe)>, CommandError> {
    let mut found = Vec::new();
    for id in built_of(store, &lock.hash())? {
        let state = reports_of(store, &**reporter, &id)?.proven(Some(lock));
        if state.state != ImageState::Failed {
            found.push((!state.is_verified(), id));
        }
    }
    // The order of time within each is kept.
    found.sort_by_key(|(unverified, _)| *unverified);
    Ok(found.into_iter().find_map(|(_, id)| Recipe::of(store, &id).map(|recipe| (id, recipe))))
}

/// Writes the image of a recipe to a file and returns its size in bytes. The file exists whole or not at all.
pub(crate) async fn write_file(
    (store, reporter): (&Store, &Arc<dyn Reporter>),
    recipe: Recipe,
    file: ImageFile,
    target: &Utf8Path,
) -> Result<u64, CommandError> {
    let layers = whole_layers(store, &recipe)?;
    disk_space::check_folder(parent_of(target).as_str(), recipe.layers.iter().map(packed_size).sum())?;
    let interrupted = Interrupted::default();
    let job = Job {
        layers,
        config: recipe.config,
        file,
        threads: available_parallelism().map_or(1, std::num::NonZero::get).min(MOST_THREADS),
        reporter: Arc::clone(reporter),
        interrupted: Arc::clone(&interrupted.0),
    };
    let place = target.to_owned();
    let written = async {
        let done = tokio::task::spawn_blocking(move || job.write_to(&place)).await;
        done.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
    };
    let text = format!("write {} to {target}", counted(recipe.layers.len(), "layer"));
    let written = in_step(&**reporter, STEP, text, written).await;
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
pub(crate) fn check_target(target: &Utf8Path, force: bool) -> Result<(), CommandError> {
    match fs_err::symlink_metadata(target) {
        Ok(found) if force && found.is_file() => Ok(()),
        Ok(found) if !found.is_file() => Err(LayoutError::NotAFile { target: target.to_owned() }.into()),
        Ok(_) => Err(LayoutError::Exists { target: target.to_owned() }.into()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(cause) => Err(LayoutError::Write { target: target.to_owned(), cause }.into()),
    }
}

/// Says that the command was interrupted, when it is dropped.
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

/// What a layer consists of, without byte code in memory: all layers of it have hundreds of megabytes.
enum Listed {
    Archive(File),
    Files(LayerPlan),
    /// Each path with its file, empty, and the size of its content.
    ByteCode(Vec<(String, LayerFile, u64)>),
}

impl Listed {
    fn of(opened: OpenedLayer) -> Self {
        let without_content = |(path, file): (&String, &LayerFile)| {
            let content = match &file.content {
                LayerContent::File(_) => LayerContent::File(bytes::Bytes::new()),
                other => other.clone(),
            };
            (path.clone(), LayerFile { content, ..*file }, file.size())
        };
        match opened {
            OpenedLayer::Archive(file) => Self::Archive(file),
            OpenedLayer::Files(plan) => Self::Files(plan),
            OpenedLayer::ByteCode(plan) => Self::ByteCode(plan.files().iter().map(without_content).collect()),
        }
    }
}

/// Everything it takes to write the file.
struct Job {
    layers: Vec<RemadeLayer>,
    config: String,
    file: ImageFile,
    threads: usize,
    reporter: Arc<dyn Reporter>,
    interrupted: Arc<AtomicBool>,
}

impl Job {
    /// Writes the file next to its place and puts it there.
    fn write_to(&self, target: &Utf8Path) -> Result<u64, FileError> {
        let mut staged = StagedFile::create(parent_of(target))?;
        let size = self.write(staged.file())?;
        staged.put(target, self.file.force)?;
        Ok(size)
    }

    fn write(&self, out: &mut File) -> Result<u64, FileError> {
        let (tree, sources) = self.tree()?;
        self.write_tree(out, (&tree, &sources))
    }

    fn write_tree(
        &self,
        out: &mut File,
        (tree, sources): (&Tree<Slot>, &[Source]),
    ) -> Result<u64, FileError> {
        let ImageFile { kind, machine, compression, .. } = self.file;
        let front = if kind == FileKind::Sif { FRONT } else { 0 };
        let options = SquashfsOptions { compression, cores: self.threads, front };
        let size = write_squashfs(out, options, tree, |contents| self.fill(contents, tree, sources))?;
        if kind == FileKind::Sif {
            out.seek(SeekFrom::Start(0))?;
            out.write_all(&sif_front(size, machine, "bootstrap: scratch\n"))?;
        }
        Ok(front + size)
    }

    /// The paths of the image with the files of the runtimes, and where the content of each file lies.
    fn tree(&self) -> Result<(Tree<Slot>, Vec<Source>), FileError> {
        let (mut tree, mut sources) = (Tree::default(), Vec::new());
        let one_code = Mutex::new(());
        let opened = on_all_cores(&self.layers, |layer| {
            self.check_wanted()?;
            // That of two layers lies in no memory.
            let is_code = matches!(layer.layer.source, LayerSource::ByteCode { .. });
            let _alone = is_code.then(|| one_code.lock().unwrap_or_else(PoisonError::into_inner));
            Ok::<_, FileError>(Listed::of(layer.open()?))
        })?;
        for (layer, opened) in opened.into_iter().enumerate() {
            match opened {
                Listed::Archive(file) => {
                    let keep = &mut |part| keep(&mut sources, Source::Archive(part));
                    tree.add_with(&Section::whole(file)?, keep)?;
                }
                Listed::Files(plan) => {
                    for (path, file) in plan.files() {
                        insert(&mut tree, path, file, || keep(&mut sources, Source::File(file.clone())));
                    }
                }
                Listed::ByteCode(files) => {
                    for (path, file, size) in files {
                        insert(&mut tree, &path, &file, || {
                            keep(&mut sources, Source::ByteCode { layer, path: path.clone(), size })
                        });
                    }
                }
            }
        }
        // A runtime mounts its own, and unpacks as a user who may make no device.
        tree.retain(|path| !path.starts_with(b"dev/"));
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

    /// The byte code of a layer, compared with its digest again: it was read anew.
    fn byte_code(&self, layer: usize) -> Result<LayerPlan, FileError> {
        match self.layers[layer].open()? {
            OpenedLayer::ByteCode(plan) | OpenedLayer::Files(plan) => Ok(plan),
            OpenedLayer::Archive(_) => Ok(LayerPlan::default()),
        }
    }

    /// An error after an interruption.
    fn wanted(&self) -> std::io::Result<()> {
        let ended = std::io::Error::new(std::io::ErrorKind::Interrupted, "interrupted");
        if self.interrupted.load(Ordering::Relaxed) { Err(ended) } else { Ok(()) }
    }

    fn check_wanted(&self) -> Result<(), FileError> {
        self.wanted().map_err(|_| FileError::Interrupted)
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
            self.check_wanted()?;
            let source = &sources[slot as usize];
            let size = source.size();
            match source {
                Source::Archive(part) => {
                    contents.add(slot, (size, None), |give| {
                        copy(part, &mut chunk, &mut |part| self.check_wanted().and_then(|()| Ok(give(part)?)))
                    })?;
                }
                Source::File(file) => {
                    let sha256 = match &file.content {
                        LayerContent::FromWheel { sha256, .. } => *sha256,
                        _ => None,
                    };
                    contents.add(slot, (size, sha256), |give| {
                        Ok::<_, FileError>(
                            reader.read(file, &mut |part| self.wanted().and_then(|()| give(part)))?,
                        )
                    })?;
                }
                Source::ByteCode { layer, path, .. } => {
                    if code.as_ref().is_none_or(|(opened, _)| opened != layer) {
                        // The former one first: two lie in no memory.
                        drop(code.take());
                        code = Some((*layer, self.byte_code(*layer)?));
                    }
                    let found = code.as_ref().and_then(|(_, plan)| plan.files().get(path));
                    let found = found.filter(|file| file.size() == size);
                    let file = found.ok_or_else(|| AssembleError::Gone { what: format!("`{path}`") })?;
                    contents.add(slot, (size, None), |give| {
                        Ok::<_, FileError>(
                            reader.read(file, &mut |part| self.wanted().and_then(|()| give(part)))?,
                        )
                    })?;
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

/// Puts a file of a plan on top, with the number that `slot` gives its content.
fn insert(tree: &mut Tree<Slot>, path: &str, file: &LayerFile, slot: impl FnOnce() -> Slot) {
    let kind = match &file.content {
        LayerContent::Folder => Kind::Directory,
        LayerContent::Symlink(target) => Kind::Symlink(target.clone().into_bytes()),
        LayerContent::File(_) | LayerContent::FromWheel { .. } => Kind::File(slot()),
    };
    let (uid, gid) = (file.uid.into(), file.gid.into());
    tree.insert(path.as_bytes().to_vec(), Node { uid, gid, ..Node::of_root(kind, file.mode) });
}

fn copy(
    part: &Section,
    chunk: &mut [u8],
    give: &mut dyn FnMut(&[u8]) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let mut part = part.clone();
    loop {
        match part.read(chunk)? {
            0 => return Ok(()),
            count => give(&chunk[..count])?,
        }
    }
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests read what was written")]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples::locked;
    use crate::container_layers::byte_code::{SourceFile, keep as keep_code};
    use crate::model::lock::WheelLayer;
    use crate::model::sha256::sha256_hex;
    use crate::report::NullReporter;
    use crate::workflow::assemble::{RecipeLayer, RecipeWheel};

    struct Fixture {
        root: Utf8PathBuf,
        store: Store,
        _folder: tempfile::TempDir,
    }

    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        Fixture { root, store, _folder: folder }
    }

    const SQUASHFS: ImageFile = ImageFile {
        kind: FileKind::Squashfs,
        machine: Machine::X86_64,
        compression: FileCompression::Zstd(1),
        force: false,
    };

    impl Fixture {
        /// A layer of the cache with these files; a path that ends in `/` is a directory, a content `-> a` a hard link.
        fn layer(&self, title: &str, entries: &[(&str, &str)]) -> RecipeLayer {
            let mut builder = tar::Builder::new(Vec::new());
            for (path, content) in entries {
                let mut header = tar::Header::new_gnu();
                header.set_mode(0o644);
                header.set_uid(0);
                header.set_gid(0);
                header.set_mtime(7);
                header.set_size(0);
                if let Some(target) = content.strip_prefix("-> ") {
                    header.set_entry_type(tar::EntryType::Link);
                    builder.append_link(&mut header, path, target).expect("a link");
                } else if path.ends_with('/') {
                    header.set_entry_type(tar::EntryType::Directory);
                    builder.append_data(&mut header, path, std::io::empty()).expect("a directory");
                } else {
                    header.set_size(content.len() as u64);
                    builder.append_data(&mut header, path, content.as_bytes()).expect("a file");
                }
            }
            let tar = builder.into_inner().expect("a tar");
            let sha256 = sha256_hex(&tar);
            self.store.put(&sha256, &tar).expect("stored");
            let diff_id = format!("sha256:{sha256}");
            RecipeLayer { title: title.to_owned(), diff_id, packed: None, source: LayerSource::Kept }
        }

        fn job(&self, layers: Vec<RecipeLayer>) -> Job {
            let remade = |layer| RemadeLayer { layer, store: self.store.clone() };
            Job {
                layers: layers.into_iter().map(remade).collect(),
                config: "{}".to_owned(),
                file: SQUASHFS,
                threads: 1,
                reporter: Arc::new(NullReporter),
                interrupted: Arc::default(),
            }
        }

        async fn write(&self, layers: &[&RecipeLayer], file: ImageFile) -> Result<u64, CommandError> {
            let layers = layers.iter().map(|layer| (*layer).clone()).collect();
            let recipe = Recipe::new("{}".to_owned(), "debian:12".to_owned(), layers);
            let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
            write_file((&self.store, &reporter), recipe, file, &self.root.join("out/image.sqsh")).await
        }

        fn written(&self) -> Vec<String> {
            let Ok(entries) = fs_err::read_dir(self.root.join("out")) else { return Vec::new() };
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
        }
    }

    /// The paths of a tree with the texts of its files.
    fn shown(tree: &Tree<Slot>, sources: &[Source]) -> Vec<String> {
        let line = |(path, node): (&[u8], &Node<Slot>)| {
            let path = String::from_utf8_lossy(path).into_owned();
            match &node.kind {
                Kind::File(slot) => format!("{path}={}", sources[*slot as usize].size()),
                _ => format!("{path}/"),
            }
        };
        let of_runtimes = |line: &String| line.starts_with(".singularity.d") || line.starts_with("etc");
        tree.iter().map(line).filter(|line| !of_runtimes(line)).collect()
    }

    #[test]
    fn upper_layer_wins_markers_remove_and_links_share_their_content() {
        let f = fixture();
        let layers = vec![
            f.layer(
                "base",
                &[("a/", ""), ("a/x", "1"), ("a/y", "22"), ("b/gone", "3"), ("c", "4"), ("d/e", "5")],
            ),
            f.layer("more", &[("a/x", "4444"), ("b/.wh.gone", ""), ("c/", ""), ("d", "a file now")]),
            f.layer("links", &[("dev/", ""), ("dev/console", ""), ("l/one", "333"), ("l/two", "-> l/one")]),
        ];
        let (tree, sources) = f.job(layers).tree().expect("a tree");
        let expected = ["a/", "a/x=4", "a/y=2", "b/", "c/", "d=10", "dev/", "l/", "l/one=3", "l/two=3"];
        assert_eq!(shown(&tree, &sources), expected);
        let slot = |path: &str| match tree.get(path.as_bytes()).expect("there").kind {
            Kind::File(slot) => slot,
            _ => panic!("{path} is no file"),
        };
        assert_eq!(slot("l/one"), slot("l/two"));
        assert_eq!(tree.get(b"a/y").expect("there").time, 7);
        for path in ["etc/rc", ".singularity.d/runscript", "etc/profile.d/zz-envforge.sh"] {
            assert!(tree.get(path.as_bytes()).is_some(), "{path}");
        }
    }

    #[test]
    fn wheels_and_their_byte_code_are_read_when_it_is_their_turn() {
        let f = fixture();
        let made = MadeWheel::new("demo").file("demo/a.py", b"a = 1\n").record("").build();
        f.store.put(&sha256_hex(&made), &made).expect("stored");
        let wheel =
            RecipeWheel { locked: locked("demo", WheelLayer::User, &made), path: None, left_out: Vec::new() };
        let code = SourceFile {
            path: "/opt/env/lib/python3.11/site-packages/demo/__pycache__/a.cpython-311.pyc".to_owned(),
            content: bytes::Bytes::from_static(b"code"),
        };
        keep_code(&f.store, &wheel.locked.sha256, "3.11", &[code]).expect("kept");
        let layer = |source| {
            let unknown = RecipeLayer {
                title: "demo".to_owned(),
                diff_id: format!("sha256:{}", "0".repeat(64)),
                packed: None,
                source,
            };
            let diff_id = {
                use crate::registry::BlobContent as _;
                let remade = RemadeLayer { layer: unknown.clone(), store: f.store.clone() };
                let text = remade.write_to(&mut Vec::new()).expect_err("another digest").to_string();
                text.split("content: ").nth(1).expect("named")[..71].to_owned()
            };
            RecipeLayer { diff_id, ..unknown }
        };
        let wheels = || vec![wheel.clone()];
        let layers = vec![
            layer(LayerSource::Wheels { minor: 11, wheels: wheels() }),
            layer(LayerSource::ByteCode { python: "3.11".to_owned(), wheels: wheels() }),
        ];
        let job = f.job(layers.clone());
        let (tree, sources) = job.tree().expect("a tree");
        let shown = shown(&tree, &sources);
        assert!(shown.iter().any(|line| line.ends_with("demo/a.py=6")), "{shown:?}");
        assert!(shown.iter().any(|line| line.ends_with("a.cpython-311.pyc=4")), "{shown:?}");
        let mut out = tempfile::tempfile().expect("a file");
        assert!(job.write(&mut out).expect("written") >= 4096);

        // Other byte code than that of the image is none.
        let code =
            SourceFile { path: "/opt/env/b.pyc".to_owned(), content: bytes::Bytes::from_static(b"other") };
        keep_code(&f.store, &wheel.locked.sha256, "3.11", &[code]).expect("kept");
        let error = f.job(layers).tree().err().expect("refused").to_string();
        assert!(error.contains("the cache has other content"), "{error}");
    }

    /// The wheel is open when its list is read: another file under its name is not read, one that is written to is refused.
    #[test]
    fn wheel_that_changes_in_the_middle_is_not_what_is_written() {
        let f = fixture();
        let content = vec![7; 3 << 20];
        let entry = MadeEntry::new("demo/b.bin", &content).stored();
        let made = MadeWheel::new("demo").entry(entry).record("").build();
        let path = f.store.put(&sha256_hex(&made), &made).expect("stored");
        let locked = locked("demo", WheelLayer::User, &made);
        let wheels = vec![RecipeWheel { locked, path: None, left_out: Vec::new() }];
        let diff_id = format!("sha256:{}", "0".repeat(64));
        let source = LayerSource::Wheels { minor: 11, wheels };
        let job = f.job(vec![RecipeLayer { title: "demo".to_owned(), diff_id, packed: None, source }]);
        let (tree, sources) = job.tree().expect("a tree");
        let write = || {
            let mut out = tempfile::tempfile().expect("a file");
            let size = job.write_tree(&mut out, (&tree, &sources)).map_err(|error| error.to_string())?;
            let mut written = Vec::new();
            out.seek(SeekFrom::Start(0)).and_then(|_| out.read_to_end(&mut written)).expect("readable");
            assert_eq!(written.len() as u64, size);
            Ok::<_, String>(written)
        };
        let before = write().expect("written");
        let at = made.windows(9).position(|bytes| bytes == [7; 9]).expect("it is stored");
        let mut other = made.clone();
        other[at] = 8;
        fs_err::write(&path, &other).expect("ours");
        let error = write().expect_err("one byte differs");
        assert!(error.contains("`demo/b.bin`: CRC-32 mismatch"), "{error}");
        fs_err::write(&path, &made[..at + 5]).expect("ours");
        let error = write().expect_err("it ends early");
        assert!(error.contains("demo-1.0-py3-none-any.whl"), "{error}");
        fs_err::write(&path, &made).expect("ours");
        let beside = f.root.join("other.whl");
        fs_err::write(&beside, &other).expect("ours");
        fs_err::rename(&beside, &path).expect("ours");
        assert!(write().expect("the file that was open") == before);
    }

    #[tokio::test]
    async fn file_is_whole_or_absent_and_replaced_only_when_told_so() {
        let f = fixture();
        let layer = f.layer("base", &[("a", "1")]);
        let size = f.write(&[&layer], SQUASHFS).await.expect("written");
        let file = f.root.join("out/image.sqsh");
        assert_eq!(fs_err::metadata(&file).expect("there").len(), size);
        let error = f.write(&[&layer], SQUASHFS).await.expect_err("there already");
        assert!(error.to_string().ends_with("image.sqsh` already exists"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
        let sif = ImageFile { kind: FileKind::Sif, force: true, ..SQUASHFS };
        assert_eq!(f.write(&[&layer], sif).await.expect("written"), size + FRONT);
        assert_eq!(f.written(), ["image.sqsh"]);

        assert!(check_target(&file, true).is_ok() && check_target(&file, false).is_err());
        assert!(check_target(&f.root.join("out"), true).is_err(), "a directory is not replaced");
        let link = f.root.join("link");
        std::os::unix::fs::symlink(&file, &link).expect("ours");
        assert!(check_target(&link, true).is_err(), "nor is a link");
    }

    #[tokio::test]
    async fn missing_and_damaged_parts_are_named_and_nothing_is_left() {
        let f = fixture();
        let (there, gone) = (f.layer("system", &[("a", "1")]), f.layer("torch", &[("b", "2")]));
        f.store.discard(gone.hex()).expect("removed");
        let error = f.write(&[&there, &gone], SQUASHFS).await.expect_err("missing");
        let text = "cannot export the image: not in the cache any more:\n  - the layer `torch`";
        assert_eq!((error.to_string().as_str(), error.exit()), (text, Exit::Outside));
        let path = f.store.blob_path(there.hex()).expect("a path");
        fs_err::write(path, "other").expect("damaged");
        let error = f.write(&[&there], SQUASHFS).await.expect_err("damaged").to_string();
        assert!(error.contains("the cache has other content"), "{error}");
        assert_eq!(f.written(), [""; 0]);
    }

    #[test]
    fn interruption_ends_the_work_and_leaves_nothing() {
        let f = fixture();
        let job = f.job(vec![f.layer("base", &[("a", "1")])]);
        job.interrupted.store(true, Ordering::Relaxed);
        let out = f.root.join("out");
        fs_err::create_dir(&out).expect("ours");
        assert!(matches!(job.write_to(&out.join("image.sqsh")), Err(FileError::Interrupted)));
        assert_eq!(f.written(), [""; 0]);
    }
}
