//! The context of a build as a directory that any engine can build, for `export`.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::base::BaseArchive;
use crate::failure::{Exit, Failure};
use crate::model::compat::Matrix;
use crate::model::editable::EditableFile;
use crate::model::export::project_code::CODE_FOLDER;
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::plan::{BaseSource, BuildPlan, CachedFile, plan};
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::project::Shell;
use crate::model::request;
use crate::model::stack::Stack;
use crate::report::reporter;
use crate::settings::Settings;
use crate::store::last_push::last_push;
use crate::store::{Store, copy_verified, write_atomically};
use crate::workflow::base::check_processor;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::context_files::files;
use crate::workflow::custom_base::{BaseAtHand, NamedBase, custom_base, matrix_on, named_base};
use crate::workflow::damaged::{Replaced, Subject};
use crate::workflow::error::CommandError;
use crate::workflow::installed_project::with_project;
use crate::workflow::listed_names::with_listed;
use crate::workflow::local_wheels::WheelPlaces;
use crate::workflow::lock::{LockedBuild, fitting_lock, lock_to_read};
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::project_code::declared;
use crate::workflow::project_sources::image_hash;
use crate::workflow::session::LazySession;
use crate::workflow::stack::{stack, stack_at_hand};

/// Written last: a directory that holds it is a complete export.
pub(crate) const MARK: &str = ".envforge-export";

/// The contents of an export.
pub(crate) struct Exported {
    pub(crate) lock: Lock,
    pub(crate) shell: Shell,
    /// The project's folder.
    pub(crate) folder: Option<Utf8PathBuf>,
    pub(crate) code: Option<ExportedCode>,
    pub(crate) plan: BuildPlan,
    pub(crate) bottom: BaseSource,
    pub(crate) published: bool,
}

/// The project's own code for files that other tools read.
pub(crate) struct ExportedCode {
    /// The project's folder, without links.
    pub(crate) folder: Utf8PathBuf,
    /// The files that make it importable.
    pub(crate) files: Vec<EditableFile>,
}

/// Returns the code of the requested project; what cannot be imported is reported.
fn code_of(
    wanted: &BuildRequest,
    lock: &Lock,
    settings: &Settings,
) -> Result<Option<ExportedCode>, CommandError> {
    let Some(folder) = &wanted.folder else { return Ok(None) };
    let reporter = reporter(settings.output);
    let found = declared(folder, &wanted.code, Some(lock), &*reporter)?;
    let folder = folder.canonicalize_utf8()?;
    Ok(found.map(|project| ExportedCode { folder, files: project.files }))
}

/// Writes the code below a directory, in place of that of an earlier export: anything else there is an error.
pub(crate) fn write_code(dir: &Utf8Path, code: &ExportedCode, force: bool) -> Result<(), CommandError> {
    check_no_link(dir, &format!("{CODE_FOLDER}/"))?;
    let root = dir.join(CODE_FOLDER);
    check_empty(&root, force)?;
    if root.exists() {
        fs_err::remove_dir_all(&root)?;
    }
    for file in &code.files {
        let path = root.join(&file.path);
        write_atomically(&path, file.text.as_bytes())?;
        let mode = if file.executable { 0o755 } else { 0o644 };
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode))?;
    }
    Ok(write_atomically(&root.join(MARK), b"\n")?)
}

/// What an export is asked for, with its stack.
pub(crate) struct Requested {
    wanted: BuildRequest,
    /// With the row of a base of the user's own.
    matrix: Arc<Matrix>,
    named: Option<NamedBase>,
    stack: Stack,
}

/// Returns what an export is asked for. An engine is asked only for a base of the user's own that no lock file has.
pub(crate) async fn requested(
    args: &request::Export,
    lazy: &LazySession<'_>,
) -> Result<Requested, CommandError> {
    let settings = lazy.settings;
    let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?
        .with_parts(&args.parts)?;
    let base = BaseAtHand::read(&wanted, settings)?;
    if base.unread.is_some() {
        return Requested::on_named_base(wanted, lazy).await;
    }
    let stack = stack_at_hand(settings, &wanted, &base)?;
    Ok(Requested { wanted, matrix: base.matrix, named: None, stack })
}

impl Requested {
    /// Looks into a base of the user's own.
    async fn on_named_base(wanted: BuildRequest, lazy: &LazySession<'_>) -> Result<Self, CommandError> {
        let settings = lazy.settings;
        let named = named_base(lazy, &wanted.source, &wanted.target).await?;
        let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
        let matrix = Arc::clone(matrix_on(named.as_ref(), settings));
        Ok(Self { wanted, matrix, named, stack })
    }

    /// Returns the image of the last push of the lock, if the lock file fits and was pushed from here. Asks no engine.
    pub(crate) fn last_pushed(
        &self,
        settings: &Settings,
    ) -> Result<Option<(ImageRef, Described)>, CommandError> {
        let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
        let places = WheelPlaces { settings, store: &store, matrix: &self.matrix };
        let found = fitting_lock(places, &self.stack, &self.wanted)?;
        let Some((lock, _)) = found else { return Ok(None) };
        let hash = image_hash(&store, &self.wanted, &lock)?;
        let Some(reference) = hash.and_then(|hash| last_push(&store, &hash)) else { return Ok(None) };
        let code = code_of(&self.wanted, &lock, settings)?;
        let BuildRequest { shell, folder, .. } = self.wanted.clone();
        Ok(Some((reference, Described { lock, shell, folder, code })))
    }
}

/// Locks the requested image and writes its context, with the lock file, into a directory.
pub(crate) async fn exported(
    requested: Requested,
    dir: &Utf8Path,
    lazy: &LazySession<'_>,
) -> Result<Exported, CommandError> {
    let settings = lazy.settings;
    // An image on a base of the user's own needs its apt sources, which no lock file has.
    let is_read = requested.named.is_some() || custom_base(&requested.wanted.source, settings).is_none();
    let requested =
        if is_read { requested } else { Requested::on_named_base(requested.wanted, lazy).await? };
    let Requested { wanted, named, stack, .. } = requested;
    let wanted = with_listed(&wanted, &stack, settings).await?;
    let session = &lazy.session().await?.on_base(named.as_ref());
    let locked = Box::pin(lock_to_read(session, stack, named.as_ref(), &wanted)).await?;
    let project = Box::pin(with_project(session, &locked, &wanted, false)).await?;
    let LockedBuild { lock, base, .. } = locked;
    let lock = project.unwrap_or(lock);
    check_processor(session, &lock.stack)?;
    let bottom = match &base.archive {
        Some(BaseArchive { path, sha256 }) => BaseSource::Archive(CachedFile {
            size: fs_err::metadata(path)?.len(),
            sha256: sha256.clone(),
            path: path.clone(),
        }),
        None => BaseSource::Image(base.published.clone().unwrap_or_else(|| base.reference.clone())),
    };
    let plan = plan(&lock, files(session, &lock, &base, bottom.clone(), &wanted).await?);
    let (mut replaced, subject) =
        (Replaced::default(), Subject { session, lock: &lock, base: &base, wanted: &wanted });
    while let Err(error) = write_folder(dir, &plan.context) {
        replaced.again(error, subject).await?;
    }
    let write = |name: &str, text: &str| write_atomically(&dir.join(name), text.as_bytes());
    write("envforge.lock", &lock.to_toml())?;
    write(".dockerignore", "envforge.lock\n.dockerignore\n.gitignore\n.envforge-export\n")?;
    write(MARK, &format!("{}\n", plan.image.lock))?;
    let code = code_of(&wanted, &lock, settings)?;
    let BuildRequest { shell, folder, .. } = wanted;
    let published = base.published.is_some();
    Ok(Exported { lock, shell, folder, code, plan, bottom, published })
}

/// What an export is made of that names a pushed image.
pub(crate) struct Described {
    pub(crate) lock: Lock,
    pub(crate) shell: Shell,
    /// The project's folder.
    pub(crate) folder: Option<Utf8PathBuf>,
    pub(crate) code: Option<ExportedCode>,
}

/// A lock that is there, with what it is for.
pub(crate) struct RequestedLock {
    pub(crate) wanted: BuildRequest,
    pub(crate) lock: Lock,
}

/// The lock for an export that builds nothing: nothing is locked, and no engine is asked.
pub(crate) fn requested_lock(
    args: &request::Export,
    settings: &Settings,
) -> Result<RequestedLock, CommandError> {
    let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?
        .with_parts(&args.parts)?;
    let path = if let Some(file) = &wanted.source.lockfile {
        settings.paths.current_dir.join(file)
    } else {
        let stack = stack_at_hand(settings, &wanted, &BaseAtHand::read(&wanted, settings)?)?;
        lock_path(settings, &stack, &wanted.source)
    };
    let lock = read_lock(&path)?.ok_or_else(|| LockingError::Missing { file: path.to_string() })?;
    Ok(RequestedLock { wanted, lock })
}

/// The lock and the settings for an export that names a pushed image.
pub(crate) fn described(args: &request::Export, settings: &Settings) -> Result<Described, CommandError> {
    let RequestedLock { wanted, lock } = requested_lock(args, settings)?;
    let code = code_of(&wanted, &lock, settings)?;
    let BuildRequest { shell, folder, .. } = wanted;
    Ok(Described { lock, shell, folder, code })
}

/// The reference of a pushed image, which must have its digest: a tag may be another image tomorrow.
pub(crate) fn pushed(text: &str) -> Result<ImageRef, CommandError> {
    let reference: ImageRef = text.parse()?;
    match reference.digest() {
        Some(digest) => Ok(reference.pinned(digest)),
        None => Err(NoDigest { reference: text.to_owned() }.into()),
    }
}

/// The lock was not pushed from this machine.
#[derive(Debug, thiserror::Error)]
#[error("the image of this lock was not pushed from this machine")]
pub(crate) struct NotPushed;

impl Failure for NotPushed {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec!["push it (`envforge push HOST/NAME:TAG`), or name it: `--image NAME@sha256:…`".to_owned()]
    }
}

/// The reference of a pushed image has no digest.
#[derive(Debug, thiserror::Error)]
#[error("`{reference}` has no digest: a tag may be another image tomorrow")]
struct NoDigest {
    reference: String,
}

impl Failure for NoDigest {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["write `--image NAME@sha256:…`; `envforge push` prints the digest".to_owned()]
    }
}

/// Refuses a directory that holds anything but an earlier export, and that only with `force`.
pub(crate) fn check_empty(dir: &Utf8Path, force: bool) -> Result<(), CommandError> {
    let refuse = || NotEmpty { dir: dir.to_string() };
    match fs_err::read_dir(dir) {
        Ok(mut entries) => {
            let ours = dir.join(MARK).is_file();
            if entries.next().is_some() && !(force && ours) { Err(refuse().into()) } else { Ok(()) }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Writes the entries below `dir`, each through a temporary name, files of the cache compared with their hash. A link in place
/// of a file is replaced, one in place of a directory below `dir` is an error: it would lead elsewhere.
fn write_folder(dir: &Utf8Path, entries: &[ContextEntry]) -> Result<(), CommandError> {
    for entry in entries {
        let path = dir.join(&entry.path);
        check_no_link(dir, &entry.path)?;
        match &entry.content {
            ContextContent::Bytes(bytes) => write_atomically(&path, bytes)?,
            ContextContent::File { path: from, sha256, .. } => copy_verified(from, &path, sha256)?,
        }
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(entry.mode))?;
    }
    Ok(())
}

/// Refuses a path below a directory whose folders, each with a `/` after it, lead through a link.
pub(crate) fn check_no_link(dir: &Utf8Path, path: &str) -> Result<(), CommandError> {
    for (end, _) in path.match_indices('/') {
        let folder = dir.join(&path[..end]);
        if fs_err::symlink_metadata(&folder).is_ok_and(|found| found.is_symlink()) {
            return Err(LinkInside { link: folder.to_string() }.into());
        }
    }
    Ok(())
}

/// The directory to write to has a link that leads elsewhere.
#[derive(Debug, thiserror::Error)]
#[error("`{link}` is a symbolic link; an export is written to directories only")]
struct LinkInside {
    link: String,
}

impl Failure for LinkInside {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["remove the link, or export to another directory".to_owned()]
    }
}

/// The directory to write to holds something else.
#[derive(Debug, thiserror::Error)]
#[error("directory `{dir}` is not empty")]
pub(crate) struct NotEmpty {
    pub(crate) dir: String,
}

impl Failure for NotEmpty {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["use an empty or new directory, or add --force".to_owned()]
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make links")]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::model::sha256::sha256_hex;

    struct Fixture {
        root: Utf8PathBuf,
        _folder: tempfile::TempDir,
    }

    /// A directory `export`, and a file `precious` beside it.
    fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        fs_err::create_dir_all(root.join("export")).expect("ours");
        fs_err::create_dir_all(root.join("elsewhere")).expect("ours");
        fs_err::write(root.join("precious"), "kept").expect("ours");
        Fixture { root, _folder: folder }
    }

    fn entry(path: &str) -> ContextEntry {
        ContextEntry::text(path, "exported")
    }

    #[test]
    fn link_in_place_of_a_file_is_replaced_and_not_followed() {
        let f = fixture();
        std::os::unix::fs::symlink(f.root.join("precious"), f.root.join("export/Dockerfile")).expect("ours");
        write_folder(&f.root.join("export"), &[entry("Dockerfile")]).expect("written");
        assert_eq!(fs_err::read_to_string(f.root.join("precious")).expect("ours"), "kept");
        let written = f.root.join("export/Dockerfile");
        assert!(!written.is_symlink() && fs_err::read_to_string(written).expect("ours") == "exported");
    }

    #[test]
    fn link_in_place_of_a_directory_is_refused() {
        let f = fixture();
        std::os::unix::fs::symlink(f.root.join("elsewhere"), f.root.join("export/steps")).expect("ours");
        let error = write_folder(&f.root.join("export"), &[entry("steps/a/system.sh")]).expect_err("refused");
        assert!(error.to_string().contains("export/steps` is a symbolic link"), "{error}");
        assert_eq!(fs_err::read_dir(f.root.join("elsewhere")).expect("ours").count(), 0);
    }

    #[test]
    fn code_replaces_that_of_an_earlier_export_and_nothing_else() {
        let f = fixture();
        let dir = f.root.join("export");
        let code = |path: &str| {
            let file = EditableFile { path: path.to_owned(), text: "x".to_owned(), executable: true };
            ExportedCode { folder: f.root.clone(), files: vec![file] }
        };
        write_code(&dir, &code("bin/one"), false).expect("written");
        let error = write_code(&dir, &code("bin/two"), false).expect_err("not empty");
        assert!(error.to_string().contains("is not empty"), "{error}");
        write_code(&dir, &code("bin/two"), true).expect("written");
        let there = |path: &str| dir.join(CODE_FOLDER).join(path).exists();
        assert_eq!((there("bin/one"), there("bin/two")), (false, true));
        fs_err::remove_file(dir.join(CODE_FOLDER).join(MARK)).expect("there");
        for force in [false, true] {
            write_code(&dir, &code("bin/one"), force).expect_err("a directory of the user's");
        }
        assert!(there("bin/two"), "nothing of the user's is removed");
    }

    #[test]
    fn file_of_the_cache_is_exported_with_its_hash_only() {
        let f = fixture();
        let export = |sha256: String| {
            let content = ContextContent::File { path: f.root.join("precious"), size: 4, sha256 };
            write_folder(&f.root.join("export"), &[ContextEntry { content, ..entry("debs/a.deb") }])
        };
        export(sha256_hex(b"other")).expect_err("other content");
        assert!(!f.root.join("export/debs/a.deb").exists());
        export(sha256_hex(b"kept")).expect("written");
    }
}
