//! The error of a command: what is printed, which hints follow, which code the process exits with.

use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;

use owo_colors::OwoColorize;

use crate::address::AddressError;
use crate::base::BaseError;
use crate::compat::{CompatError, GpuNameError};
use crate::diagnosis::diagnose;
use crate::engine::EngineError;
use crate::fetch::FetchError;
use crate::fixed_image::FixError;
use crate::lock::LockError;
use crate::packages::PackagesError;
use crate::project::{CopyError, ProjectError};
use crate::registry::{ReferenceError, RegistryError};
use crate::resolve::PlanReport;
use crate::settings::SettingsError;
use crate::shell::ShellError;
use crate::source_build::SourceError;
use crate::spec::SpecError;
use crate::store::StoreError;
use crate::versions::VersionError;

/// How a command ended. These codes are public: people script against them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// It is done.
    Done = 0,
    /// It worked and the answer is no: impossible stack, failed check, stale lock.
    No = 1,
    /// The call or a file is wrong.
    Usage = 2,
    /// Something outside failed: engine, network, driver, disk.
    Outside = 3,
    /// Interrupted.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// The async runtime could not start.
    #[error("the program's runtime cannot start")]
    Runtime {
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// A setting cannot be used.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The spec cannot be read.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// An edition of the matrix that is not the one that was named.
    #[error("`{file}` has SHA-256 {found}, and {wanted} was named")]
    OtherEdition {
        /// The file.
        file: String,
        /// Its hash.
        found: String,
        /// The one that was named.
        wanted: String,
    },
    /// A file that holds no edition.
    #[error("`{file}` is no edition of the matrix")]
    NoEdition {
        /// The file.
        file: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// The compatibility data cannot be read.
    #[error(transparent)]
    Compat(#[from] CompatError),
    /// The GPU is not known.
    #[error(transparent)]
    Gpu(#[from] GpuNameError),
    /// A version on the command line cannot be read.
    #[error("{option}: {cause}")]
    Version {
        /// The option.
        option: &'static str,
        /// Why.
        cause: VersionError,
    },
    /// An address in a setting cannot be read. The address itself is not repeated: it may hold credentials.
    #[error("{setting}: {cause}")]
    Address {
        /// The setting.
        setting: &'static str,
        /// Why.
        cause: AddressError,
    },
    /// No stack fits; the text lists every reason.
    #[error("{text}")]
    Impossible {
        /// The refusal, as people read it.
        text: String,
        /// The same for programs, as `plan --json` prints it.
        plan: Box<PlanReport>,
    },
    /// An option that is about one image was given for several.
    #[error("{option} is about one image, and {count} specs were given")]
    OneSpecOnly {
        /// The option.
        option: &'static str,
        /// How many specs.
        count: usize,
    },
    /// A filter covers only what no official list names.
    #[error("no listed variant is covered by `{filter}`")]
    NothingListed {
        /// What was typed.
        filter: String,
    },
    /// It was asked whether to compile, and the answer was no.
    #[error("nothing was compiled")]
    Declined {
        /// What is published near it, as commands.
        nearest: Vec<String>,
    },
    /// What nobody publishes could not be built.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// `--wheel` for what is published.
    #[error("--wheel is for what nobody publishes, and `{name}` is published")]
    WheelOfPublished {
        /// The stack.
        name: String,
    },
    /// The checks before the tag failed.
    #[error("the image was built but not tagged: {failed} of its checks failed")]
    ChecksFailed {
        /// How many failed or errored.
        failed: usize,
        /// The image, which stays for inspection.
        image: String,
    },
    /// The image holds something else than the image its lock was recorded with.
    #[error("{}", content_text(recorded, found, differences.as_deref()))]
    ContentDiffers {
        /// The content digest the lock records.
        recorded: String,
        /// The content digest of the image.
        found: String,
        /// What differs, one line each; `None`: the list of the recorded image is not at hand.
        differences: Option<Vec<String>>,
        /// The image, which stays for inspection.
        image: String,
    },
    /// An image for another processor than the engine's.
    #[error("the engine runs {engine} and cannot run what is for {wanted}")]
    OtherProcessor {
        /// The platform asked for.
        wanted: &'static str,
        /// The engine's.
        engine: &'static str,
    },
    /// The agent of this build of envforge does not start on a C library that old.
    #[error(
        "images on {base} cannot be checked: its glibc is {glibc}, and the agent of this envforge needs {needs}"
    )]
    AgentTooNew {
        /// The base.
        base: String,
        /// Its C library.
        glibc: String,
        /// What the agent needs.
        needs: String,
    },
    /// The image could not be written anew for `--bit-identical`.
    #[error(transparent)]
    Fix(#[from] FixError),
    /// The agent could not compute the content digest.
    #[error("there is no content digest of `{image}`: {detail}")]
    NoContent {
        /// The image.
        image: String,
        /// What the agent said.
        detail: String,
    },
    /// The engine has no image of a lock.
    #[error("the engine has no image of this lock: `{tag}` is not there or was built from another one")]
    NotBuilt {
        /// The tag looked for.
        tag: String,
        /// What was typed.
        spec: String,
    },
    /// `--require-gpu`, and the checks did not run on a GPU that counts.
    #[error("the image is not proven on a GPU: {because}")]
    NotProven {
        /// Why.
        because: String,
        /// The image, which stays for inspection; `None`: nothing was built.
        image: Option<String>,
    },
    /// `--gpus` names nothing that is a GPU.
    #[error("`--gpus {found}` names no GPU")]
    BadGpus {
        /// What was typed.
        found: String,
    },
    /// A spec that is not built on this engine.
    #[error("`{spec}` is not built on this engine")]
    SpecNotBuilt {
        /// The spec.
        spec: String,
    },
    /// A SPEC beside an option that is about a project.
    #[error("`{spec}` is a spec, and -e and --project are about envforge.toml")]
    SpecAndProject {
        /// The spec.
        spec: String,
    },
    /// `--with` or `--apt` for a project.
    #[error(
        "--with and --apt add to a SPEC, and there is none: a project says in envforge.toml what it needs"
    )]
    AdditionToProject,
    /// Something that cannot be added.
    #[error("{option}: {text}")]
    Addition {
        /// The option.
        option: &'static str,
        /// Why.
        text: String,
    },
    /// No SPEC and no project file.
    #[error("there is no SPEC, and no envforge.toml in `{folder}` or above")]
    NoProject {
        /// Where it was looked for.
        folder: String,
    },
    /// `lock --upgrade PACKAGE` of what is not in the lock.
    #[error("{file} has no package `{}`", packages.join("`, `"))]
    NotLocked {
        /// The packages.
        packages: Vec<String>,
        /// The lock.
        file: String,
    },
    /// `init` where a project file is.
    #[error("`{file}` is there already")]
    ProjectExists {
        /// The file.
        file: String,
    },
    /// A project names an index that nobody configured.
    #[error("the package index `{name}` of envforge.toml is not configured here")]
    UnknownIndex {
        /// Its name.
        name: String,
        /// The configuration file.
        config: String,
    },
    /// The matrix is to be compared with an index, and none is configured.
    #[error("no package index is configured to compare the matrix with")]
    NoIndex,
    /// A framework that is no product.
    #[error("`{name}` is no framework of the matrix: {known}")]
    NoSuchFramework {
        /// What was typed.
        name: String,
        /// Those there are.
        known: String,
    },
    /// No row of the default channel is of that release.
    #[error("no row of the default channel is {framework} {release}")]
    NoSuchRelease {
        /// What was typed.
        framework: String,
        /// The release that was typed.
        release: String,
    },
    /// A run step names a secret that nobody configured.
    #[error("the secret `{name}` of a run step is not to be had: {why}")]
    NoSecret {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
    /// The project file, or one it names, cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// Files of the project cannot be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// What was named is no reference of an image.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// An image that is neither on the engine nor in its registry.
    #[error("there is no image `{image}`: {text}")]
    NoImage {
        /// What was named.
        image: String,
        /// The engine's words.
        text: String,
    },
    /// The lock named is not that of the image.
    #[error("`{file}` is not the image's lock: its hash is {hash}, and the image's label says {label}")]
    OtherLock {
        /// The lock file.
        file: String,
        /// Its hash.
        hash: String,
        /// The image's.
        label: String,
    },
    /// The agent cannot run in the image.
    #[error(
        "the checks cannot start in this image: it has {libc}, and the agent of this envforge needs glibc {needs}"
    )]
    AgentCannotStart {
        /// The image's C library.
        libc: String,
        /// What the agent needs.
        needs: String,
    },
    /// No report is kept of the image.
    #[error("no report of `{image}` is kept here")]
    NoReport {
        /// What was named.
        image: String,
    },
    /// A kept report cannot be read.
    #[error("the report `{file}` cannot be read")]
    Report {
        /// The file.
        file: String,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The base.
    #[error(transparent)]
    Base(#[from] BaseError),
    /// An image registry.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Packages.
    #[error(transparent)]
    Packages(#[from] PackagesError),
    /// nvcc is configured but out of reach.
    #[error("{cause}")]
    NvccOutOfReach {
        /// What happened.
        #[source]
        cause: PackagesError,
        /// Commands for the nearest devel specs with another source.
        nearest: Vec<String>,
    },
    /// What the user wants does not fit together.
    #[error(transparent)]
    Conflict(#[from] Box<Conflict>),
    /// Downloads.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Cache and state.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The lock file cannot be read.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A shell.
    #[error(transparent)]
    Shell(#[from] ShellError),
    /// `--locked`, and there is no lock or it does not fit.
    #[error("{}", stale_text(file, differences))]
    Stale {
        /// The lock file.
        file: String,
        /// What differs; empty: there is no lock.
        differences: Vec<String>,
    },
    /// `--push`, and no tag names a registry.
    #[error("nothing to push: no tag names a registry")]
    NothingToPush,
    /// `verify --push`, and the image earned no tag.
    #[error("nothing was pushed: {because}")]
    NotPushed {
        /// Why, as a clause.
        because: String,
    },
    /// A folder that is no vendor folder.
    #[error("`{folder}` holds no lock: it was not filled by `envforge vendor`")]
    NoVendor {
        /// The folder.
        folder: String,
    },
    /// Files of a vendor folder are missing or damaged.
    #[error("the vendor folder `{folder}` is not whole:{}", list(wrong))]
    VendorDamaged {
        /// The folder.
        folder: String,
        /// What is wrong, one line each.
        wrong: Vec<String>,
    },
    /// The lock of an image is not on this machine.
    #[error("the lock of `{image}` is not on this machine: what it holds cannot be told")]
    UnknownLock {
        /// The image.
        image: String,
    },
    /// The command cannot build this yet.
    #[error("`{what}` is planned but cannot be built by this version: {why}")]
    Unsupported {
        /// The spec or flavour.
        what: String,
        /// Why not.
        why: &'static str,
    },
    /// The engine's disk has too little space.
    #[error("too little disk space: {} needed in `{folder}`, {} free", gigabytes(*need_bytes), gigabytes(*free_bytes))]
    NoSpace {
        /// The folder.
        folder: String,
        /// What a build needs, bytes.
        need_bytes: u64,
        /// What is free, bytes.
        free_bytes: u64,
    },
    /// The folder to write to holds something else.
    #[error("`{dir}` is not empty")]
    NotEmpty {
        /// The folder.
        dir: String,
    },
    /// A file cannot be written.
    #[error("{0}")]
    File(#[from] std::io::Error),
}

fn content_text(recorded: &str, found: &str, differences: Option<&[String]>) -> String {
    const SHOWN: usize = 20;
    let short = |digest: &str| digest.chars().take(12).collect::<String>();
    let mut text = format!(
        "the image does not hold what its lock records: content {}, and the lock says {}",
        short(found),
        short(recorded)
    );
    match differences {
        None => {
            text.push_str("; which paths differ cannot be told, the list of the recorded image is not here");
        }
        Some(lines) => {
            for line in &lines[..lines.len().min(SHOWN)] {
                text.extend(["\n  - ", line]);
            }
            if lines.len() > SHOWN {
                text.extend([format!("\n  and {} more paths", lines.len() - SHOWN)]);
            }
        }
    }
    text
}

/// Wishes that no set of versions meets.
#[derive(Debug, thiserror::Error)]
#[error("what is asked for does not fit together{}", wishes_text(wishes, pinned.as_deref()))]
pub struct Conflict {
    /// The resolver's words.
    #[source]
    pub cause: PackagesError,
    /// The wishes that are in it, and where they stand.
    pub wishes: Vec<String>,
    /// What the image pins, if that is in it.
    pub pinned: Option<String>,
    /// The product.
    pub product: String,
}

fn wishes_text(wishes: &[String], pinned: Option<&str>) -> String {
    let pinned = pinned.map(|pin| format!("{pin} is what the image is built around"));
    let all: Vec<_> = wishes.iter().cloned().chain(pinned).collect();
    if all.is_empty() { String::new() } else { format!(":\n  - {}", all.join("\n  - ")) }
}

fn list(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |all, line| all + "\n  - " + line)
}

fn stale_text(file: &str, differences: &[String]) -> String {
    if differences.is_empty() {
        return format!("there is no lock at `{file}`");
    }
    format!("the lock `{file}` does not fit what was asked:\n  - {}", differences.join("\n  - "))
}

impl CommandError {
    /// The exit code.
    pub fn exit(&self) -> Exit {
        let code = match self {
            Self::Interrupted => return Exit::Interrupted,
            Self::Runtime { .. }
            | Self::NoSpace { .. }
            | Self::File(_)
            | Self::NoContent { .. }
            | Self::Fix(_)
            | Self::OtherProcessor { .. }
            | Self::SpecNotBuilt { .. }
            | Self::NoImage { .. }
            | Self::AgentCannotStart { .. }
            | Self::Report { .. } => {
                return Exit::Outside;
            }
            Self::Settings(_)
            | Self::SpecAndProject { .. }
            | Self::NoVendor { .. }
            | Self::VendorDamaged { .. }
            | Self::AdditionToProject
            | Self::Addition { .. }
            | Self::NoProject { .. }
            | Self::ProjectExists { .. }
            | Self::NotLocked { .. }
            | Self::UnknownIndex { .. }
            | Self::NoIndex
            | Self::OtherEdition { .. }
            | Self::NoEdition { .. }
            | Self::NoSuchFramework { .. }
            | Self::NoSuchRelease { .. }
            | Self::NoSecret { .. }
            | Self::Address { .. }
            | Self::Version { .. }
            | Self::NotEmpty { .. }
            | Self::NothingToPush
            | Self::OneSpecOnly { .. }
            | Self::WheelOfPublished { .. }
            | Self::BadGpus { .. }
            | Self::OtherLock { .. }
            | Self::Reference(_)
            | Self::Unsupported { .. } => {
                return Exit::Usage;
            }
            Self::Stale { .. }
            | Self::Impossible { .. }
            | Self::NothingListed { .. }
            | Self::Declined { .. }
            | Self::ChecksFailed { .. }
            | Self::ContentDiffers { .. }
            | Self::AgentTooNew { .. }
            | Self::NotProven { .. }
            | Self::NotPushed { .. }
            | Self::NoReport { .. }
            | Self::UnknownLock { .. }
            | Self::NotBuilt { .. } => return Exit::No,
            Self::Spec(error) => error.exit_code(),
            Self::Compat(error) => error.exit_code(),
            Self::Gpu(error) => error.exit_code(),
            Self::Engine(error) => error.exit_code(),
            Self::Base(error) => error.exit_code(),
            Self::Registry(error) => error.exit_code(),
            Self::Packages(error) | Self::NvccOutOfReach { cause: error, .. } => error.exit_code(),
            Self::Conflict(conflict) => conflict.cause.exit_code(),
            Self::Source(error) => error.exit_code(),
            Self::Fetch(error) => error.exit_code(),
            Self::Store(error) => error.exit_code(),
            Self::Lock(error) => error.exit_code(),
            Self::Project(error) => error.exit_code(),
            Self::Copy(error) => error.exit_code(),
            Self::Shell(error) => error.exit_code(),
        };
        match code {
            0 => Exit::Done,
            1 => Exit::No,
            2 => Exit::Usage,
            130 => Exit::Interrupted,
            _ => Exit::Outside,
        }
    }

    /// What the user can do, one line each.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Settings(error) => error.hints(),
            Self::Spec(error) => error.hints(),
            Self::Compat(error) => error.hints(),
            Self::Gpu(error) => error.hints(),
            Self::Engine(error) => error.hints(),
            Self::Base(error) => error.hints(),
            Self::Registry(error) => error.hints(),
            Self::Packages(error) => error.hints(),
            Self::Conflict(conflict) => {
                let Conflict { cause, wishes, pinned, product } = &**conflict;
                let mut hints: Vec<_> = cause.source_hint().into_iter().collect();
                let words = std::error::Error::source(cause).map(ToString::to_string).unwrap_or_default();
                if words.contains("was not found in the package registry") {
                    hints.push("no index has a package of that name: check its spelling; one of a private index needs `indexes`".to_owned());
                } else if !wishes.is_empty() {
                    hints.push("loosen or leave out one of them".to_owned());
                }
                if pinned.is_some() {
                    hints.push(format!("or choose another version of the framework: envforge list {product}"));
                }
                hints
            }
            Self::NvccOutOfReach { cause, nearest } => {
                let near = nearest.iter().map(|command| format!("nvcc from another source: `{command}`"));
                cause.hints().into_iter().chain(near).collect()
            }
            Self::Source(error) => error.hints(),
            Self::Fetch(error) => error.hints(),
            Self::Store(error) => error.hints(),
            Self::Lock(error) => error.hints(),
            Self::Project(error) => error.hints(),
            Self::Copy(error) => error.hints(),
            Self::SpecAndProject { .. } => vec!["leave out one of them".into()],
            Self::AdditionToProject => {
                vec!["add it to `[packages]` of envforge.toml, or name a SPEC".into()]
            }
            Self::NoProject { .. } => {
                vec!["name a SPEC such as pytorch-cuda:2.8, or write a project file: envforge init".into()]
            }
            Self::NotLocked { .. } => vec!["check the spelling; a package that is new is added to envforge.toml, or by --with".into()],
            Self::ProjectExists { .. } => vec!["change it by hand, or overwrite it with --force".into()],
            Self::OtherEdition { .. } => vec!["fetch it again, or take the hash from where it was published".to_owned()],
            Self::NoEdition { .. } => {
                vec!["an edition is made by `tar -C compat -cf edition.tar .`".to_owned()]
            }
            Self::NoIndex => {
                vec!["set `[index] default` in the configuration, or ENVFORGE_INDEX, to its simple address".to_owned()]
            }
            Self::NoSuchFramework { .. } | Self::NoSuchRelease { .. } => vec!["envforge list shows what each of them has".to_owned()],
            Self::UnknownIndex { name, config } => vec![format!(
                "add `[indexes]` with `{name} = \"https://user:token@host/simple\"` to {config}, or set ENVFORGE_INDEX_{}",
                name.to_ascii_uppercase().replace(['-', '.'], "_")
            )],
            Self::NoSecret { name, .. } => vec![format!(
                "add `[secrets]` with `{name} = {{ env = \"VARIABLE\" }}` or `{name} = {{ file = \"/path\" }}` to your configuration"
            )],
            Self::Shell(error) => error.hints(),
            Self::Stale { differences, .. } if differences.is_empty() => {
                vec!["make it with `envforge lock`; without --locked, `build` does so itself".into()]
            }
            Self::Stale { .. } => vec!["update it with `envforge lock`; without --locked, `build` does so itself".into()],
            Self::NoSpace { .. } => vec!["free space there, or remove images you no longer need".into()],
            Self::NoVendor { .. } => vec!["fill it where there is a network: envforge vendor DIR".into()],
            Self::VendorDamaged { .. } => vec!["mend it where there is a network: `envforge vendor DIR` brings what is missing; remove damaged files first".into()],
            Self::UnknownLock { .. } => vec!["name its lock file instead, from where it was built".into()],
            Self::NothingToPush => {
                vec!["name the whole tag: `-t registry.example.com/team/torch:2.8 --push`".into()]
            }
            Self::NotPushed { .. } => {
                vec!["`verify --push` pushes verified tags only: run it on a machine with a GPU of the target".into()]
            }
            Self::NotEmpty { .. } => vec!["name an empty or new folder, or add --force".into()],
            Self::ChecksFailed { image, .. } => {
                vec![
                    format!("look inside: docker run --rm -it {image} bash"),
                    format!("remove it: docker rmi {image}"),
                ]
            }
            Self::OneSpecOnly { option, .. } => {
                vec![format!("build that one by itself, or leave {option} out")]
            }
            Self::NothingListed { filter } => {
                vec![format!(
                    "see what there is with `envforge list {filter} --all`, and name it with its CUDA"
                )]
            }
            Self::WheelOfPublished { .. } => vec!["leave it out; a package beside the framework is `--with REQUIREMENT`".into()],
            Self::Declined { nearest } => {
                let wheel = "if somebody has built it, name the file: `--wheel FILE`".to_owned();
                let nearest = nearest.iter().map(|command| format!("published near it: `{command}`"));
                nearest.chain([wheel]).collect()
            }
            Self::ContentDiffers { differences, image, .. } => {
                let list = "the list lies in the state folder where the lock was recorded: build there, or copy \
                            `content/` of that state folder to this machine's";
                let mut hints: Vec<String> =
                    differences.is_none().then(|| list.to_owned()).into_iter().collect();
                hints.push(format!("look inside: docker run --rm -it {image} bash"));
                hints.push(format!("remove it: docker rmi {image}"));
                hints
            }
            Self::OtherProcessor { wanted, .. } => vec![
                format!(
                    "lock it here with `envforge lock SPEC --platform {wanted} --lockfile FILE` and bring the lock"
                ),
                format!(
                    "build it where the engine is {wanted}: envforge build SPEC --locked --lockfile FILE"
                ),
            ],
            Self::AgentTooNew { .. } => vec![
                "use a released envforge, or build it with the agent of kernels/release-agent.sh \
                 (ENVFORGE_AGENT=/path at build time), which needs glibc 2.17"
                    .into(),
                "or name a newer base: `--base debian:12`".into(),
            ],
            Self::NotBuilt { spec, .. } => vec![format!("build it: envforge build {spec} --locked")],
            Self::NotProven { image, .. } => {
                let mut hints = vec!["build on a machine with a GPU of the target, or leave out --require-gpu".to_owned()];
                hints.extend(image.iter().map(|image| format!("look inside: docker run --rm -it {image} bash")));
                hints
            }
            Self::BadGpus { .. } => {
                vec!["give `all`, `none`, or indices and UUIDs apart by commas, as `nvidia-smi -L` prints them".into()]
            }
            Self::SpecNotBuilt { spec } => vec![format!("build it: envforge build {spec}")],
            Self::Reference(_) => {
                vec!["an image is `NAME`, `NAME:TAG` or `REGISTRY/NAME@sha256:…`".into()]
            }
            Self::NoImage { text, .. } => {
                let mut hints = vec!["check the name and your access to its registry (`docker login`), or pull it first".to_owned()];
                hints.extend(diagnose(text).map(|finding| finding.hint()));
                hints
            }
            Self::OtherLock { .. } => vec!["name the lock it was built from, or leave out --lock".into()],
            Self::AgentCannotStart { .. } => vec![
                "use an envforge whose agent was linked against an older C library (ENVFORGE_AGENT at its build, see kernels/README.md)".into(),
            ],
            Self::NoReport { image } => vec![format!("make one: envforge verify {image}")],
            Self::Report { file, .. } => vec![format!("remove `{file}` and verify the image again")],
            Self::Address { .. } => vec!["an address is a URL such as `http://host/path`".into()],
            Self::Interrupted
            | Self::Impossible { .. }
            | Self::Runtime { .. }
            | Self::Version { .. }
            | Self::Addition { .. }
            | Self::Unsupported { .. }
            | Self::NoContent { .. } => Vec::new(),
            Self::File(cause) => match cause.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => vec!["free some disk space there, and run it again".to_owned()],
                _ => Vec::new(),
            },
            Self::Fix(_) => vec!["build without --bit-identical: the content is the same, only the times differ".to_owned()],
        }
    }

    /// The whole message: the error, its causes, then the hints after a blank line.
    pub fn report(&self, color: bool) -> String {
        let head = if color { "error:".red().bold().to_string() } else { "error:".to_owned() };
        let mut text = format!("{head} {self}");
        let mut shown = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let line = error.to_string();
            if !shown.contains(&line) {
                text.extend(["\n  caused by: ", &line]);
                shown.push_str(&line);
            }
            cause = error.source();
        }
        if let Self::Engine(EngineError::BuildFailed { output, .. })
        | Self::Source(SourceError::Engine(EngineError::BuildFailed { output, .. })) = self
        {
            for line in output {
                text.extend(["\n  | ", line]);
            }
        }
        let mut hints = self.hints();
        hints.dedup();
        if !hints.is_empty() {
            text.push('\n');
        }
        for hint in hints {
            let label = if color { "hint:".cyan().to_string() } else { "hint:".to_owned() };
            text.extend(["\n", &label, " ", &hint]);
        }
        text
    }
}

/// Bytes as gigabytes with one decimal: `7.3 GB`.
fn gigabytes(bytes: u64) -> String {
    format!("{}.{} GB", bytes / 1_000_000_000, bytes / 100_000_000 % 10)
}
