//! `export`: the context of a build, written to a folder that any engine can build, and what other tools need beside it.

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::Exit;
use crate::model::export::cluster;
use crate::model::export::devcontainer::{IMAGE_FOLDER, devcontainer as devcontainer_json};
use crate::model::lock::Lock;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::export_context::{Exported, MARK, NotEmpty, check_empty, check_no_link, exported};

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
    write_atomically(
        &dir.join("compose.yaml"),
        crate::model::export::compose::compose(&lock, &shell).as_bytes(),
    )?;
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
    write_atomically(&dir.join("job.sbatch"), cluster::slurm(&exported.lock, &exported.shell).as_bytes())?;
    finish(&dir, &exported.lock, SLURM_README)
}

/// The folder, with the image's context in `image/` below it; what stands beside that is still to be written.
async fn below(args: &request::Export, settings: &Settings) -> Result<(Utf8PathBuf, Exported), CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    check_no_link(&dir, &format!("{IMAGE_FOLDER}/"))?;
    let exported = exported(args, &dir.join(IMAGE_FOLDER), settings).await?;
    Ok((dir, exported))
}

fn write_definition(dir: &Utf8Path, exported: &Exported) -> Result<(), CommandError> {
    let Exported { plan, bottom, published, .. } = exported;
    for (name, text) in cluster::apptainer(plan, bottom, *published) {
        write_atomically(&dir.join(name), text.as_bytes())?;
    }
    Ok(())
}

/// Marks the folder as a whole export, and says where it is.
fn finish(dir: &Utf8Path, lock: &Lock, readme: &str) -> Result<Exit, CommandError> {
    write_atomically(&dir.join("README.md"), readme.as_bytes())?;
    write_atomically(&dir.join(MARK), format!("{}\n", lock.hash()).as_bytes())?;
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
    check_no_link(&dir, &format!("{IMAGE_FOLDER}/"))?;
    let Exported { lock, .. } = exported(args, &image, settings).await?;
    let value = devcontainer_json(&crate::model::image::plan::name(&lock));
    let json = serde_json::to_string_pretty(&value).expect("it holds text keys only");
    write_atomically(&file, format!("{json}\n").as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}
