//! `export squashfs` and `export sif`: an assembled image as a file that a cluster starts.

use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::model::lock::Lock;
use crate::model::request::{self, FileKind, LockOptions, TargetOptions};
use crate::model::versions::Machine;
use crate::report::{Event, Printer, Reporter, reporter};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::assemble::Recipe;
use crate::workflow::build_request::wanted;
use crate::workflow::cluster_folder::{ClusterError, ClusterFolder};
use crate::workflow::error::CommandError;
use crate::workflow::export_file::{ImageFile, check_target, recipe_of_image, recipe_of_lock, write_file};
use crate::workflow::export_layout::LayoutError;
use crate::workflow::image_error::ImageError;
use crate::workflow::image_info::{NamedImage, build_request_of, described, image_lock_at_hand};
use crate::workflow::image_parts::bring_base;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::read_lock;
use crate::workflow::project_sources::built_hash;
use crate::workflow::proven::reports_of;
use crate::workflow::session::{LazySession, Session};
use crate::workflow::shell::build_first;

/// What `export squashfs --json` and `export sif --json` print.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    /// Its id; null: the file of this lock was there.
    image: Option<&'a str>,
    path: &'a str,
    size: u64,
    /// Null: the file of this lock was there.
    compression: Option<String>,
    /// Whether it was written now.
    written: bool,
}

pub(super) async fn export_file(
    kind: FileKind,
    args: &request::ExportFile,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let target = match &args.target {
        Some(name) if name == "-" || name.as_str().ends_with('/') => return Err(FileNameError.into()),
        Some(name) => settings.paths.current_dir.join(name),
        None => {
            let target = of_cluster(kind, args, settings)?;
            if let Some(size) = size_of_file(&target)?.filter(|_| !args.force) {
                kept(&target, size, settings);
                return Ok(Exit::Done);
            }
            target
        }
    };
    let written = write(kind, args, &target, settings).await;
    if args.target.is_none() && !args.force { unless_there(written, &target, settings) } else { written }
}

/// Writes the file and reports it.
async fn write(
    kind: FileKind,
    args: &request::ExportFile,
    target: &Utf8Path,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    check_target(target, args.force)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let reporter = reporter(settings.output);
    let Found { image, machine, recipe, lock } = Box::pin(found(args, settings, (&store, &reporter))).await?;
    let (compression, force) = (args.compression, args.force);
    let file = ImageFile { kind, machine, compression, force };
    let size = write_file((&store, &reporter), recipe, file, target).await?;
    if settings.output.json {
        let (path, compression) = (target.as_str(), Some(compression.to_string()));
        let image = Some(image.as_str());
        Printer.json(&Report { schema: 1, image, path, size, compression, written: true });
    } else {
        Printer.text(target.as_str());
    }
    let proven = reports_of(&store, &*reporter, &image)?.proven(lock.as_ref());
    reporter.report(Event::Note { text: proven.to_string() });
    Ok(Exit::Done)
}

/// The file of the project's image in the directory of its cluster: one for each lock.
fn of_cluster(
    kind: FileKind,
    args: &request::ExportFile,
    settings: &Settings,
) -> Result<Utf8PathBuf, CommandError> {
    let (source, of_machine) = (LockOptions::default(), TargetOptions::default());
    let wanted = wanted(None, &args.project, &source, &of_machine, settings)?;
    let cluster = ClusterFolder::of(&wanted, settings)?.ok_or(ClusterError::NoFile { kind })?;
    if cluster.runtime.kind() != kind {
        return Err(ClusterError::OtherKind { kind, runtime: cluster.runtime }.into());
    }
    cluster.check()?;
    let file =
        settings.paths.current_dir.join(wanted.source.lockfile.as_ref().expect("a project has a lock file"));
    let lock = read_lock(&file)?.ok_or_else(|| LockingError::Missing { file: file.to_string() })?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    Ok(cluster.file(&built_hash(&store, &wanted, &lock)?))
}

/// The size of a file; `None`: it is missing, or something else is there.
fn size_of_file(path: &Utf8Path) -> Result<Option<u64>, CommandError> {
    match fs_err::symlink_metadata(path) {
        Ok(found) => Ok(found.is_file().then_some(found.len())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A file that another export of this lock has put there in the meantime is this one's, too.
fn unless_there(
    written: Result<Exit, CommandError>,
    target: &Utf8Path,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let error = match written {
        Ok(exit) => return Ok(exit),
        Err(error) => error,
    };
    let is_there = matches!(error.downcast_ref(), Some(LayoutError::Exists { .. }));
    match size_of_file(target)?.filter(|_| is_there) {
        Some(size) => {
            kept(target, size, settings);
            Ok(Exit::Done)
        }
        None => Err(error),
    }
}

/// Reports a file of the lock that is there.
fn kept(target: &Utf8Path, size: u64, settings: &Settings) {
    let path = target.as_str();
    if settings.output.json {
        let report = Report { schema: 1, image: None, path, size, compression: None, written: false };
        Printer.json(&report);
    } else {
        Printer.text(path);
    }
    let text = "the file of this lock exists: nothing written (--force writes it again)".to_owned();
    reporter(settings.output).report(Event::Note { text });
}

/// The file was to go to standard output, or is a directory.
#[derive(Debug, thiserror::Error)]
#[error("the output must be a file, neither standard output nor a directory: its first bytes are known last")]
struct FileNameError;

impl Failure for FileNameError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["name a file: `envforge export sif torch.sif`".to_owned()]
    }
}

/// An image that can be written.
struct Found {
    /// Its id.
    image: String,
    machine: Machine,
    recipe: Recipe,
    lock: Option<Lock>,
}

/// The image of the engine, or the one that was built here from the lock, which needs no engine; else it is built first.
async fn found(
    args: &request::ExportFile,
    settings: &Settings,
    parts: (&Store, &Arc<dyn Reporter>),
) -> Result<Found, CommandError> {
    let lazy = LazySession::of(settings);
    let session = match lazy.session().await {
        Ok(session) => session,
        Err(error) => return at_hand(args, settings, parts, error),
    };
    let unbuilt = match on_engine(args, session).await {
        Err(error) if is_unbuilt(&error) => error,
        answer => return answer,
    };
    match at_hand(args, settings, parts, unbuilt) {
        Err(error) if is_unbuilt(&error) => {
            let wanted = build_request_of(settings, args.image.as_deref(), &args.project)?;
            Box::pin(build_first(session, wanted.ok_or(error)?)).await?;
            on_engine(args, session).await
        }
        answer => {
            let found = answer?;
            bring_base(session, &found.recipe).await?;
            Ok(found)
        }
    }
}

/// The image that the engine has.
async fn on_engine(args: &request::ExportFile, session: &Session<'_>) -> Result<Found, CommandError> {
    let NamedImage { name, image, lock } = described(session, args.image.as_deref(), &args.project).await?;
    let Some(image) = image else { return Err(ImageError::SpecNotBuilt { spec: name }.into()) };
    let machine = lock.as_ref().map_or(session.engine.info().machine, |lock| lock.stack.machine);
    let recipe = recipe_of_image(session, &image.id, &name).await?;
    Ok(Found { image: image.id, machine, recipe, lock })
}

fn is_unbuilt(error: &CommandError) -> bool {
    matches!(error.downcast_ref(), Some(ImageError::SpecNotBuilt { .. }))
}

/// The image that was built here from the lock of what was named; `error` if there is none.
fn at_hand(
    args: &request::ExportFile,
    settings: &Settings,
    parts: (&Store, &Arc<dyn Reporter>),
    error: CommandError,
) -> Result<Found, CommandError> {
    let name = args.image.as_deref();
    let is_file = name.is_none_or(|name| settings.paths.current_dir.join(name).exists());
    let lock = match image_lock_at_hand(settings, parts.0, name, &args.project) {
        // A name that is no spec names an image of the engine.
        Err(_) if !is_file => None,
        lock => lock?,
    };
    let Some(lock) = lock else { return Err(error) };
    let (image, recipe) = recipe_of_lock(parts, &lock)?.ok_or(error)?;
    Ok(Found { image, machine: lock.stack.machine, recipe, lock: Some(lock) })
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests write a project")]
mod tests {
    use super::*;
    use crate::model::cluster::digits_of;
    use crate::model::lock::{UserAdditions, sample};
    use crate::model::markdown::{documented_fields, printed_fields};
    use crate::model::request::ProjectOptions;
    use crate::model::sha256::sha256_hex;
    use crate::store::built_images::remember_built;
    use crate::workflow::assemble::{LayerSource, RecipeLayer};

    /// An image of one file, built here from the lock.
    fn built(store: &Store, lock: &Lock, content: &str) {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, "a", content.as_bytes()).expect("a file");
        let tar = tar.into_inner().expect("a tar");
        let sha256 = sha256_hex(&tar);
        store.put(&sha256, &tar).expect("stored");
        let diff_id = format!("sha256:{sha256}");
        let layer =
            RecipeLayer { title: "base".to_owned(), diff_id, packed: None, source: LayerSource::Kept };
        let image = format!("sha256:{}", sha256_hex(content.as_bytes()));
        let recipe = Recipe::new("{}".to_owned(), "debian:12".to_owned(), vec![layer]);
        recipe.keep(store, &image).expect("kept");
        remember_built(store, &image, &lock.hash()).expect("kept");
    }

    #[tokio::test]
    async fn image_of_each_lock_is_written_once_to_the_cluster() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        let settings = Settings::below(&root);
        let project = "schema = 1\nname = 'p'\nspec = 'pytorch-cuda:2.8-cu128'\n[target]\nany = true\n\
                       [cluster]\nruntime = 'apptainer'\nfolder = 'images'\n";
        fs_err::write(root.join("envforge.toml"), project).expect("ours");
        fs_err::create_dir(root.join("images")).expect("ours");
        let store = Store::open(&settings.paths.cache, &settings.paths.state).expect("a store");
        let export = async |force: bool| {
            let (image, target, project) = (None, None, ProjectOptions::default());
            let compression = crate::model::file_compression::FileCompression::default();
            let args = request::ExportFile { image, target, compression, force, project };
            export_file(FileKind::Sif, &args, &settings).await.map_err(|error| error.to_string())
        };
        let mut names = Vec::new();
        for project in ["p", "p-other"] {
            let added = UserAdditions { project: Some(project.to_owned()), ..UserAdditions::default() };
            let lock = Lock { added, ..sample::lock() };
            fs_err::write(root.join("envforge.lock"), lock.to_toml()).expect("ours");
            built(&store, &lock, project);
            assert_eq!(export(false).await, Ok(Exit::Done));
            names.push(format!("p-{}.sif", &lock.hash()[..12]));
        }
        let [first, second] = [&names[0], &names[1]].map(|name| root.join("images").join(name));
        let (one, other) = (fs_err::read(&first).expect("written"), fs_err::read(&second).expect("written"));
        assert!(one != other && digits_of(&names[0], "p").is_some(), "{names:?}");
        // The last lock's file is there, and is written again only where that is requested.
        fs_err::write(&second, "kept").expect("ours");
        assert_eq!(export(false).await, Ok(Exit::Done));
        assert_eq!(fs_err::read(&second).expect("there"), b"kept");
        assert_eq!(export(true).await, Ok(Exit::Done));
        assert_eq!(fs_err::read(&second).expect("there"), other);
        assert_eq!(
            fs_err::read_dir(root.join("images")).expect("a folder").count(),
            2,
            "nothing else is left"
        );
    }

    /// Two exports of one lock begin when its file is missing: the second one finds it when it is done.
    #[tokio::test]
    async fn export_that_another_one_overtakes_ends_well() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        let settings = Settings::below(&root);
        let store = Store::open(&settings.paths.cache, &settings.paths.state).expect("a store");
        let project = "schema = 1\nname = 'p'\nspec = 'pytorch-cuda:2.8-cu128'\n[target]\nany = true\n";
        fs_err::write(root.join("envforge.toml"), project).expect("ours");
        let added = UserAdditions { project: Some("p".to_owned()), ..UserAdditions::default() };
        let lock = Lock { added, ..sample::lock() };
        fs_err::write(root.join("envforge.lock"), lock.to_toml()).expect("ours");
        built(&store, &lock, "p");
        let args = request::ExportFile {
            image: None,
            target: None,
            compression: crate::model::file_compression::FileCompression::default(),
            force: false,
            project: ProjectOptions::default(),
        };
        let target = root.join("images/p.sif");
        let written = async || write(FileKind::Sif, &args, &target, &settings).await;
        assert_eq!(written().await.expect("the first"), Exit::Done);
        let size = size_of_file(&target).expect("read").expect("there");
        let second = written().await;
        let error = second.as_ref().expect_err("the file is there").to_string();
        assert!(error.contains("p.sif"), "{error}");
        assert_eq!(unless_there(second, &target, &settings).expect("the same file"), Exit::Done);
        assert_eq!(size_of_file(&target).expect("read"), Some(size));
        // Any other failure stays one, whatever is there.
        let failed = unless_there(Err(FileNameError.into()), &target, &settings);
        assert!(failed.is_err());
        fs_err::remove_file(&target).expect("ours");
        let gone = Err(LayoutError::Exists { target: target.clone() }.into());
        assert!(unless_there(gone, &target, &settings).is_err());
    }

    #[test]
    fn every_field_is_documented() {
        let (image, compression) = (Some("sha256:1"), Some("zstd:1".to_owned()));
        let path = "/torch.sqsh";
        let report = Report { schema: 1, image, path, size: 1, compression, written: true };
        let documented = documented_fields("envforge export squashfs pytorch-cuda:2.8-cu128 torch.sqsh");
        assert_eq!(printed_fields(&report), documented);
    }
}
