//! `export`: the context of a build, written to a folder that any engine can build, and what other tools need beside it.
#![expect(clippy::disallowed_methods, reason = "writes the folder")]

use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::{Exit, Failure};
use crate::model::export::cluster;
use crate::model::export::devcontainer::{IMAGE_FOLDER, devcontainer as devcontainer_json};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::image::plan::{BaseSource, BuildPlan, plan};
use crate::model::lock::Lock;
use crate::model::project::Shell;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::base::check_processor;
use crate::workflow::build_request::wanted;
use crate::workflow::context_files::{cached_file, files};
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::lock::{LockedBuild, lock_for};
use crate::workflow::session::Session;
use crate::workflow::stack::stack;

/// Written last, so that a folder which holds it is a whole export of ours.
const MARK: &str = ".envforge-export";
const APPTAINER_README: &str = "\
Build it in this directory, as root or with `--fakeroot`: `apptainer build image.sif image.def`.
Run it: `apptainer run --nv image.sif python train.py` (omit `--nv` without a GPU).

It has the content of the Dockerfile in `image`, plus files of Apptainer, so its content digest differs. The build reads secrets from
the directory `secrets`; `image.def` lists them.
";
const SLURM_README: &str = "\
Run a command in the image: `sbatch --gpus=1 job.sbatch python train.py`, in the directory to mount at /workspace.
This directory must be on storage that all nodes share. The first job builds the image unless you run
`apptainer build image.sif image.def` here first; nodes with docker or podman build it from `image` once each.

The job's memory and CPU limits apply to Apptainer's containers, not to Docker's. The build reads secrets from the directory
`secrets`; `image.def` lists them.
";

pub(super) async fn dockerfile(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    exported(args, &dir, settings).await?;
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

/// The Dockerfile's folder below `DIR/image`, and a `compose.yaml` that builds and opens it.
pub(super) async fn compose(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let (dir, Exported { lock, shell, .. }) = below(args, settings).await?;
    fs_err::write(dir.join("compose.yaml"), crate::model::export::compose::compose(&lock, &shell))?;
    finish(
        &dir,
        &lock,
        "Build it and open a shell: `docker compose run --rm --build dev`. Start its services, such as Jupyter: `docker compose up --build`.\n",
    )
}

/// The Dockerfile's folder below `DIR/image`, and a definition file that Apptainer builds the same lock from.
pub(super) async fn apptainer(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let (dir, exported) = below(args, settings).await?;
    write_definition(&dir, &exported)?;
    finish(&dir, &exported.lock, APPTAINER_README)
}

/// The same with a batch script for Slurm.
pub(super) async fn slurm(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let (dir, exported) = below(args, settings).await?;
    write_definition(&dir, &exported)?;
    fs_err::write(dir.join("job.sbatch"), cluster::slurm(&exported.lock, &exported.shell))?;
    finish(&dir, &exported.lock, SLURM_README)
}

/// The folder, with the image's context in `image/` below it; what stands beside that is still to be written.
async fn below(args: &request::Export, settings: &Settings) -> Result<(Utf8PathBuf, Exported), CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let exported = exported(args, &dir.join(IMAGE_FOLDER), settings).await?;
    Ok((dir, exported))
}

fn write_definition(dir: &Utf8Path, exported: &Exported) -> Result<(), CommandError> {
    let Exported { plan, bottom, published, .. } = exported;
    for (name, text) in cluster::apptainer(plan, bottom, *published) {
        fs_err::write(dir.join(name), text)?;
    }
    Ok(())
}

/// Marks the folder as a whole export, and says where it is.
fn finish(dir: &Utf8Path, lock: &Lock, readme: &str) -> Result<Exit, CommandError> {
    fs_err::write(dir.join("README.md"), readme)?;
    fs_err::write(dir.join(MARK), format!("{}\n", lock.hash()))?;
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

/// The same below `image/`, with the devcontainer.json that builds and opens it.
pub(super) async fn devcontainer(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    let (file, image) = (dir.join("devcontainer.json"), dir.join(IMAGE_FOLDER));
    if file.exists() && !args.force {
        return Err(NotEmpty { dir: dir.to_string() }.into());
    }
    check_empty(&image, args.force)?;
    let Exported { lock, .. } = exported(args, &image, settings).await?;
    let value = devcontainer_json(&crate::model::image::plan::name(&lock));
    let json = serde_json::to_string_pretty(&value).expect("it holds text keys only");
    write_atomically(&file, format!("{json}\n").as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}

/// What an export wrote.
struct Exported {
    lock: Lock,
    shell: Shell,
    plan: BuildPlan,
    bottom: BaseSource,
    published: bool,
}

/// Writes the context of the image to a folder.
async fn exported(
    args: &request::Export,
    dir: &Utf8Path,
    settings: &Settings,
) -> Result<Exported, CommandError> {
    let wanted = wanted(args.spec.as_deref(), &args.project, &args.source, &args.target, settings)?;
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let session = Session::open(settings, Some(&wanted.source)).await?;
    let LockedBuild { lock, base, .. } = Box::pin(lock_for(&session, stack, named.as_ref(), &wanted)).await?;
    check_processor(&session, &lock.stack)?;
    let bottom = match &base.archive {
        Some(archive) => BaseSource::Archive(cached_file(archive.clone())?),
        None => BaseSource::Image(base.published.clone().unwrap_or_else(|| base.reference.clone())),
    };
    let plan = plan(&lock, files(&session, &lock, &base, bottom.clone(), &wanted).await?);
    write_folder(dir, &plan.context)?;
    fs_err::write(dir.join("envforge.lock"), lock.to_toml())?;
    fs_err::write(dir.join(".dockerignore"), "envforge.lock\n.dockerignore\n.envforge-export\n")?;
    fs_err::write(dir.join(MARK), format!("{}\n", plan.image.lock))?;
    Ok(Exported { lock, shell: wanted.shell, plan, bottom, published: base.published.is_some() })
}

fn check_empty(dir: &Utf8Path, force: bool) -> Result<(), CommandError> {
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

/// Writes the entries below `dir`, each through a temporary name.
fn write_folder(dir: &Utf8Path, entries: &[ContextEntry]) -> Result<(), CommandError> {
    for entry in entries {
        let path = dir.join(&entry.path);
        fs_err::create_dir_all(path.parent().unwrap_or(dir))?;
        match &entry.content {
            ContextContent::Bytes(bytes) => fs_err::write(&path, bytes)?,
            ContextContent::File { path: from, .. } => {
                fs_err::copy(from, &path)?;
            }
        }
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(entry.mode))?;
    }
    Ok(())
}

/// The directory to write to holds something else.
#[derive(Debug, thiserror::Error)]
#[error("directory `{dir}` is not empty")]
struct NotEmpty {
    dir: String,
}

impl Failure for NotEmpty {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["use an empty or new directory, or add --force".to_owned()]
    }
}
