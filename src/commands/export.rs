//! `export`: the context of a build, written to a folder that any engine can build, and what other tools need beside it.

use camino::{Utf8Path, Utf8PathBuf};
use jiff::tz::TimeZone;

use crate::evidence::Signer;
use crate::failure::{Exit, Failure};
use crate::model::cluster::ClusterRuntime;
use crate::model::export::cluster::{self, JobImage};
use crate::model::export::compose::{ProjectPaths, compose as compose_text};
use crate::model::export::devcontainer::{IMAGE_FOLDER, devcontainer as devcontainer_json};
use crate::model::export::kubernetes::{
    AdmitCall, AdmitKey, admitting_image, kubernetes as kubernetes_files,
};
use crate::model::export::nfd::compatibility;
use crate::model::export::project_code::CODE_FOLDER;
use crate::model::image::plan::{BaseSource, BuildPlan, UNVERIFIED, name};
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::project::Shell;
use crate::model::request::{self, ExportedImage};
use crate::model::versions::Machine;
use crate::model::visible::visible_line;
use crate::registry::{Registry, RetryPolicy};
use crate::report::{Event, Printer, reporter};
use crate::settings::{KeyPurpose, ProvenOn, Settings};
use crate::store::{Store, write_atomically};
use crate::workflow::build_request::wanted;
use crate::workflow::check_container::agent_call;
use crate::workflow::cluster_folder::ClusterFolder;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{EvidenceError, trusted_keys};
use crate::workflow::export_context::{
    Described, Exported, ExportedCode, MARK, NotEmpty, NotPushed, Requested, RequestedLock, check_empty,
    check_no_link, described, exported, pushed, requested, requested_lock, write_code,
};
use crate::workflow::export_file::check_target;
use crate::workflow::project_sources::built_hash;
use crate::workflow::session::{LazySession, SessionOptions, downloads};

const APPTAINER_README: &str = "\
Build it in this directory, as root or with `--fakeroot`: `apptainer build image.sif image.def`.
Run it: `apptainer run --nv image.sif python train.py` (omit `--nv` without a GPU).

It has the content of the Dockerfile in `image`, plus files of Apptainer, so its content digest differs. The build reads secrets from
the directory `secrets`; `image.def` lists them.
";
const SLURM_README: &str = "\
Run a command in the image: `sbatch --gpus=1 job.sbatch python train.py`, in the directory to mount at /workspace.
This directory must be on storage that all nodes share. The first job builds the image unless image.sif is here:
`envforge export sif IMAGE image.sif` writes it from the built image of this lock, `apptainer build image.sif image.def` from the
files here.
Nodes with docker or podman build it from `image` once each.

The job's memory and CPU limits apply to Apptainer's containers, not to Docker's. The build reads secrets from the directory
`secrets`; `image.def` lists them.
";

const KUBERNETES_README: &str = "\
A kustomize base; the image comes from its registry, by digest. `kubectl apply -k .`, or name this directory in `resources` of an overlay
that sets namespace, command, volumes and number of GPUs.

job.yaml runs a command once. shell.yaml is a JupyterLab with a Service inside the cluster; its first lines make the token it needs.
verify.yaml runs the checks of the image on one node, which you name, verify-group.yaml on a group of nodes; the logs are the reports.
jobset.yaml runs on several nodes, needs JobSet in the cluster and a volume of yours, so that the base does not name it.

The other pods come only to nodes whose labels of NVIDIA's GPU feature discovery (nvidia.com/gpu.compute.*, nvidia.com/cuda.driver-version.*)
say that GPU and driver run the image, by its lock. Without these labels no node fits, and the pods stay Pending.
";
/// What follows where evidence is asked for.
const ADMIT_README: &str = "
The command, the JupyterLab and the JobSet start only if a key in admit.yaml signed that the checks of the image passed: an init container
runs `envforge evidence admit`. It needs an image of envforge, which is not published: push one, or name yours in `images` of an overlay.
examples/admit in envforge's repository has the Dockerfile, and says how a private registry gets a login. This one is meant:

    ";
const PUSHED_APPTAINER_README: &str = "\
Build it in this directory: `apptainer build image.sif image.def`. The image comes from its registry, by digest.
Run it: `apptainer run --nv image.sif python train.py` (omit `--nv` without a GPU).
";
const PUSHED_SLURM_README: &str = "\
Run a command in the image: `sbatch --gpus=1 job.sbatch python train.py`, in the directory to mount at /workspace.
This directory must be on storage that all nodes share. The first job takes the image from its registry, by digest: once as
image.sif, or once per node with docker and podman.
";
const PYXIS_SLURM_README: &str = "\
Run a command in the image: `sbatch --gpus=1 job.sbatch python train.py`, in the directory to mount at /workspace.
Each node takes the image from its registry, by digest, with pyxis and enroot; a login is in ~/.config/enroot/.credentials.
";

pub(super) async fn dockerfile(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let lazy = LazySession::new(settings, SessionOptions::of(&args.source));
    let requested = Box::pin(requested(args, &lazy)).await?;
    Box::pin(exported(requested, &dir, &lazy)).await?;
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

/// The Dockerfile's folder below `DIR/image`, and a `compose.yaml` that builds and opens it.
pub(super) async fn compose(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let source = Box::pin(below(args, settings)).await.map_err(or_pushed)?;
    let code = source.code.as_ref().map(|code| between(&source.dir, &code.folder)).transpose()?;
    let settings_of = source.folder.as_ref().map(|folder| between(&source.dir, folder)).transpose()?;
    if let Some(code) = &source.code {
        write_code(&source.dir, code, args.force)?;
    }
    let paths = ProjectPaths { code: code.as_deref(), settings: settings_of.as_deref() };
    let text = compose_text(&source.lock, &source.shell, source.pushed(), paths);
    write_atomically(&source.dir.join("compose.yaml"), text.as_bytes())?;
    let readme = match source.image {
        Image::Pushed(_) => {
            "Open a shell: `docker compose run --rm dev`. Start JupyterLab, if compose.yaml has it: `docker compose up jupyter`.\n"
        }
        Image::Built(..) => {
            "Build it and open a shell: `docker compose run --rm --build dev`. Start JupyterLab, if compose.yaml has it: \
             `docker compose up --build jupyter`.\n"
        }
    };
    finish(&source, readme)
}

/// The Dockerfile's folder below `DIR/image`, and a definition file that Apptainer builds the same lock from.
pub(super) async fn apptainer(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let source = Box::pin(below(args, settings)).await.map_err(or_pushed)?;
    write_definition(&source)?;
    finish(&source, if source.pushed().is_some() { PUSHED_APPTAINER_README } else { APPTAINER_README })
}

/// The same with a batch script for Slurm.
pub(super) async fn slurm(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    if args.image == ExportedImage::PushedOrBuilt {
        let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?;
        if let Some(folder) = ClusterFolder::of(&wanted, settings)? {
            return slurm_of_file(args, &folder, settings);
        }
    }
    let source = Box::pin(below(args, settings)).await.map_err(or_pushed);
    let source = source.map_err(|error| if args.spec.is_none() { or_file(error) } else { error })?;
    let write_job = |image| {
        let text = cluster::slurm(&source.lock, &source.shell, image);
        write_atomically(&source.dir.join("job.sbatch"), text.as_bytes())
    };
    if let Some(reference) = source.pushed()
        && runtime_of_cluster(args, settings)? == Some(ClusterRuntime::Pyxis)
    {
        write_job(JobImage::Pyxis(reference))?;
        return finish(&source, PYXIS_SLURM_README);
    }
    write_definition(&source)?;
    write_job(source.pushed().map_or(JobImage::Folder, JobImage::Pushed))?;
    finish(&source, if source.pushed().is_some() { PUSHED_SLURM_README } else { SLURM_README })
}

/// The container runtime of the cluster's nodes: the project's, else that of the configuration.
fn runtime_of_cluster(
    args: &request::Export,
    settings: &Settings,
) -> Result<Option<ClusterRuntime>, CommandError> {
    let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?;
    Ok(wanted.cluster.runtime.or(settings.cluster.runtime))
}

/// A batch script that starts the file of the lock in the directory of the cluster. Asks no engine.
fn slurm_of_file(
    args: &request::Export,
    folder: &ClusterFolder,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let RequestedLock { wanted, lock } = requested_lock(args, settings)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let hash = built_hash(&store, &wanted, &lock)?;
    let file = folder.file(&hash);
    let (runtime, call) = (folder.runtime, folder.runtime.kind().call());
    let text = cluster::slurm(&lock, &wanted.shell, JobImage::File(runtime, &file));
    let readme = format!(
        "Run a command in the image: `sbatch --gpus=1 job.sbatch python train.py`, in the directory to mount at /workspace.\n\
         The nodes start this file with {}; `envforge {call}` in the project writes it:\n\n    {}\n",
        runtime.as_str(),
        visible_line(file.as_str())
    );
    write_atomically(&dir.join("job.sbatch"), text.as_bytes())?;
    write_atomically(&dir.join("README.md"), readme.as_bytes())?;
    write_atomically(&dir.join(MARK), format!("{hash}\n").as_bytes())?;
    if !file.is_file() {
        let text = format!("{file} does not exist yet: run `envforge {call}`");
        reporter(settings.output).report(Event::Note { text });
    }
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

/// A kustomize base that names a pushed image.
pub(super) async fn kubernetes(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let reference = pushed(args.image.name().unwrap_or_default())?;
    let Described { lock, shell, .. } = described(args, settings)?;
    let admit = admit_call((&reference, lock.stack.machine), settings).await?;
    let calls = (&agent_call(), admit.as_ref());
    let files = kubernetes_files(&lock, &shell, &reference, calls, &settings.matrix);
    let files = files.ok_or_else(|| NoNode { name: name(&lock) })?;
    for (file, text) in files {
        write_atomically(&dir.join(file), text.as_bytes())?;
    }
    let mut readme = KUBERNETES_README.to_owned();
    if let Some(AdmitCall { image, .. }) = &admit {
        let text =
            format!("the pods start only with evidence of a trusted key; `{image}` must hold envforge");
        reporter(settings.output).report(Event::Note { text });
        readme = format!("{readme}{ADMIT_README}{image}\n");
    }
    write_atomically(&dir.join("README.md"), readme.as_bytes())?;
    write_atomically(&dir.join(MARK), format!("{}\n", lock.hash()).as_bytes())?;
    Printer.text(dir.as_str());
    Ok(Exit::Done)
}

/// What the pods ask of the image's evidence, as the configuration does here; `None`: it neither requires evidence nor names a key.
async fn admit_call(
    (pushed, machine): (&ImageRef, Machine),
    settings: &Settings,
) -> Result<Option<AdmitCall>, CommandError> {
    let signers = trusted_keys(&[], settings, KeyPurpose::Tests)?;
    let required = settings.policy.require_evidence.clone();
    if signers.is_empty() {
        return if required.is_some() { Err(EvidenceError::NoTrustedKey.into()) } else { Ok(None) };
    }
    let key = |Signer { key, not_after }: Signer| {
        // A signer ends with the first moment that no longer counts, a key of the configuration with the day before.
        let day = not_after.and_then(|end| end.to_zoned(TimeZone::UTC).date().yesterday().ok());
        AdmitKey { pem: key.to_pem(), not_after: day.map(|day| day.to_string()) }
    };
    let required = required.unwrap_or_default();
    Ok(Some(AdmitCall {
        image: admitting(pushed, machine, settings).await?,
        keys: signers.into_iter().map(key).collect(),
        agents: settings.policy.agents.clone().unwrap_or_default(),
        here: required.gpu() == ProvenOn::Here,
        level: required.level(),
        max_age: required.max_age(),
    }))
}

/// The image of the init container: by the digest that its tag has now, so that nobody who may write tags exchanges what decides; by the
/// tag alone where its registry does not say.
async fn admitting(
    pushed: &ImageRef,
    machine: Machine,
    settings: &Settings,
) -> Result<ImageRef, CommandError> {
    let image: ImageRef = admitting_image(pushed).parse()?;
    let (fetch, _) = downloads(settings)?;
    let registry = Registry::new(fetch, settings.registry.clone());
    match registry.resolve(&image, machine, RetryPolicy::SHORT).await {
        Ok(found) => Ok(image.pinned(&found.digest)),
        Err(error) => {
            let text =
                format!("the init container is named by its tag, since its digest is not known: {error}");
            reporter(settings.output).report(Event::Warning { text });
            Ok(image)
        }
    }
}

/// The GPUs and drivers that run the image, for Node Feature Discovery. Asks no engine.
pub(super) fn nfd(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let file = settings.paths.current_dir.join(&args.dir);
    check_target(&file, args.force)?;
    let RequestedLock { lock, .. } = requested_lock(args, settings)?;
    let text = compatibility(&lock, &settings.matrix).ok_or_else(|| NoNode { name: name(&lock) })?;
    write_atomically(&file, text.as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}

/// No GPU fits the image.
#[derive(Debug, thiserror::Error)]
#[error("no node to name: the matrix knows no GPU that runs `{name}`")]
struct NoNode {
    name: String,
}

impl Failure for NoNode {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec!["`envforge list --all` shows what is known of its GPU code".to_owned()]
    }
}

/// The path that leads from one folder to another: `../..`, `.`.
fn between(from: &Utf8Path, to: &Utf8Path) -> Result<String, CommandError> {
    // The folder may not be there yet: what is there of its path decides where it will be.
    let real = |path: &Utf8Path| -> Result<Utf8PathBuf, CommandError> {
        let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Utf8Path::new("."));
        let rest = path.strip_prefix(there).unwrap_or(Utf8Path::new(""));
        let real = there.canonicalize_utf8()?;
        Ok(if rest.as_str().is_empty() { real } else { real.join(rest) })
    };
    let (from, to) = (real(from)?, real(to)?);
    let shared = from.components().zip(to.components()).take_while(|(one, other)| one == other).count();
    let up = from.components().skip(shared).map(|_| "..".to_owned());
    let down = to.components().skip(shared).map(|part| part.as_str().to_owned());
    let parts: Vec<String> = up.chain(down).collect();
    Ok(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

/// What an export is made of.
struct Source {
    dir: Utf8PathBuf,
    lock: Lock,
    shell: Shell,
    folder: Option<Utf8PathBuf>,
    code: Option<ExportedCode>,
    image: Image,
}

/// Where the exported files get the image from.
enum Image {
    /// A registry.
    Pushed(ImageRef),
    /// The context in `image/` below the folder: its plan, its base, and whether that is in a registry.
    Built(Box<BuildPlan>, BaseSource, bool),
}

impl Source {
    fn pushed(&self) -> Option<&ImageRef> {
        match &self.image {
            Image::Pushed(reference) => Some(reference),
            Image::Built(..) => None,
        }
    }
}

/// The image of an export, before anything is written.
enum Chosen {
    /// A registry has it.
    Pushed(ImageRef, Box<Described>),
    /// It is built from the exported files.
    Built(Box<Requested>),
}

/// Returns the image that was named, else that of the lock's last push, else one to build.
async fn chosen(args: &request::Export, lazy: &LazySession<'_>) -> Result<Chosen, CommandError> {
    let settings = lazy.settings;
    if let Some(text) = args.image.name() {
        let reference = pushed(text)?;
        return Ok(Chosen::Pushed(reference, Box::new(described(args, settings)?)));
    }
    let requested = Box::new(Box::pin(requested(args, lazy)).await?);
    if args.image == ExportedImage::Built {
        return Ok(Chosen::Built(requested));
    }
    match requested.last_pushed(settings)? {
        Some((reference, described)) => {
            let text = format!("image of the last push: {reference}");
            reporter(settings.output).report(Event::Note { text });
            check_verified(&reference, settings)?;
            Ok(Chosen::Pushed(pushed(&reference.to_string())?, Box::new(described)))
        }
        None if args.image == ExportedImage::LastPush => Err(NotPushed.into()),
        None => Ok(Chosen::Built(requested)),
    }
}

/// Warns of a last push whose checks had not passed; an error where the policy asks for proof.
fn check_verified(last: &ImageRef, settings: &Settings) -> Result<(), EvidenceError> {
    if !last.tag().is_some_and(|tag| tag.ends_with(UNVERIFIED)) {
        return Ok(());
    }
    if let Some(required) = &settings.policy.require_evidence {
        return Err(EvidenceError::Required {
            image: last.to_string(),
            level: required.level(),
            file: settings.origin("policy.require-evidence").unwrap_or_default(),
            reasons: vec!["it was pushed as unverified: its checks have not passed on a GPU".to_owned()],
            is_known: true,
        });
    }
    let text =
        format!("{last} was pushed before its checks passed on a GPU: `envforge verify {last} --push`");
    reporter(settings.output).report(Event::Warning { text });
    Ok(())
}

/// Says what an export needs no engine for.
fn or_pushed(error: CommandError) -> CommandError {
    error.or_without_engine(
        "or name a pushed image, with its lock file here: `--image NAME@sha256:…` needs no engine",
    )
}

/// The same of a job that starts the file of a cluster.
fn or_file(error: CommandError) -> CommandError {
    error.or_without_engine(
        "or set `[cluster] folder` and `runtime`: a job that starts the cluster's file needs no engine",
    )
}

/// The folder, with the image's context in `image/` unless a pushed image is named. The caller writes the other files.
async fn below(args: &request::Export, settings: &Settings) -> Result<Source, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    check_empty(&dir, args.force)?;
    let lazy = LazySession::new(settings, SessionOptions::of(&args.source));
    let requested = match Box::pin(chosen(args, &lazy)).await? {
        Chosen::Pushed(reference, described) => {
            let Described { lock, shell, folder, code } = *described;
            return Ok(Source { dir, lock, shell, folder, code, image: Image::Pushed(reference) });
        }
        Chosen::Built(requested) => requested,
    };
    check_no_link(&dir, &format!("{IMAGE_FOLDER}/"))?;
    let Exported { lock, shell, folder, code, plan, bottom, published } =
        Box::pin(exported(*requested, &dir.join(IMAGE_FOLDER), &lazy)).await?;
    Ok(Source { dir, lock, shell, folder, code, image: Image::Built(Box::new(plan), bottom, published) })
}

fn write_definition(source: &Source) -> Result<(), CommandError> {
    match &source.image {
        Image::Pushed(reference) => {
            let text = cluster::apptainer_of(&source.lock, reference);
            write_atomically(&source.dir.join("image.def"), text.as_bytes())?;
        }
        Image::Built(plan, bottom, published) => {
            for (name, text) in cluster::apptainer(plan, bottom, *published) {
                write_atomically(&source.dir.join(name), text.as_bytes())?;
            }
        }
    }
    Ok(())
}

/// Keeps the packages of an image out of a repository. The file lies in the folder that is ours alone.
fn ignore(dir: &Utf8Path) -> Result<(), CommandError> {
    Ok(write_atomically(&dir.join(IMAGE_FOLDER).join(".gitignore"), b"*\n")?)
}

/// Marks the folder as a whole export, and says where it is.
fn finish(source: &Source, readme: &str) -> Result<Exit, CommandError> {
    let write = |name: &str, text: &str| write_atomically(&source.dir.join(name), text.as_bytes());
    write("README.md", readme)?;
    if source.pushed().is_none() {
        ignore(&source.dir)?;
    }
    write(MARK, &format!("{}\n", source.lock.hash()))?;
    Printer.text(source.dir.as_str());
    Ok(Exit::Done)
}

/// The same below `image/`, with the devcontainer.json that builds and opens it, or that file alone for a pushed image.
pub(super) async fn devcontainer(args: &request::Export, settings: &Settings) -> Result<Exit, CommandError> {
    let dir = settings.paths.current_dir.join(&args.dir);
    let (file, image) = (dir.join("devcontainer.json"), dir.join(IMAGE_FOLDER));
    if file.exists() && !args.force {
        return Err(NotEmpty { dir: dir.to_string() }.into());
    }
    check_empty(&dir.join(CODE_FOLDER), args.force)?;
    let lazy = LazySession::new(settings, SessionOptions::of(&args.source));
    let (lock, code, reference) = match Box::pin(chosen(args, &lazy)).await.map_err(or_pushed)? {
        Chosen::Pushed(reference, described) => {
            let Described { lock, code, .. } = *described;
            (lock, code, Some(reference))
        }
        Chosen::Built(requested) => {
            check_empty(&image, args.force)?;
            check_no_link(&dir, &format!("{IMAGE_FOLDER}/"))?;
            let made = Box::pin(exported(*requested, &image, &lazy)).await;
            let Exported { lock, code, .. } = made.map_err(or_pushed)?;
            ignore(&dir)?;
            (lock, code, None)
        }
    };
    let mut files = None;
    if let Some(code) = &code {
        // Such a file can name a folder only below the one that is opened.
        match between(&code.folder, &dir)? {
            path if path.starts_with("..") => {
                let text =
                    "the project's code cannot be imported there: export to a directory of the project";
                reporter(settings.output).report(Event::Note { text: text.to_owned() });
            }
            path => {
                write_code(&dir, code, args.force)?;
                files = Some(path);
            }
        }
    }
    let value =
        devcontainer_json(&crate::model::image::plan::name(&lock), reference.as_ref(), files.as_deref());
    let json = serde_json::to_string_pretty(&value).expect("it holds text keys only");
    write_atomically(&file, format!("{json}\n").as_bytes())?;
    Printer.text(file.as_str());
    Ok(Exit::Done)
}
