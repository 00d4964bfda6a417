//! Why nodes cannot be asked, or reports cannot be read.

use crate::failure::{Exit, Failure, reason};
use crate::fleet::HostListError;
use crate::model::diagnosis::{Diagnosis, diagnose};

/// Words of `srun` and `sbatch` where the queue is full, or the controller is away: they try again for minutes.
pub(super) const RETRIES: &str = "sleeping and retrying";

/// The most reasons that an error names.
const MOST_REASONS: usize = 2;
/// How a site's own options reach `srun`.
const OF_SITE: &str = "options of the site follow `--`: `-- --account=ml --qos=normal`";
/// The programs of Slurm.
const SLURM: [&str; 4] = ["sinfo", "srun", "sbatch", "squeue"];

/// Why nodes were not asked, or gave no answer.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// `--on` without an image by its digest: nodes would take different ones.
    #[error("--on requires one image by its digest, got {got}")]
    NoDigest {
        /// What was given.
        got: String,
    },
    /// The file of an image cannot be read here.
    #[error("cannot read image file `{file}`: {}", reason(cause))]
    ImageFile {
        /// Its path.
        file: String,
        /// Why.
        cause: std::io::Error,
    },
    /// The project's file is not in the directory of its cluster.
    #[error("image file of the project not found: {file}")]
    NotWritten {
        /// Its path.
        file: String,
        /// The command that writes it.
        call: &'static str,
    },
    /// No runtime of this machine starts a file.
    #[error("cannot start `{file}` on this machine: {why}")]
    NoRuntime {
        /// Its path.
        file: String,
        /// Which runtimes are missing, or why they are not used.
        why: String,
    },
    /// The checks in a file gave no report.
    #[error("cannot verify `{file}` on this machine: {why}")]
    FileHere {
        /// Its path.
        file: String,
        /// How far it came, and why no further.
        why: String,
    },
    /// A file is verified alone.
    #[error("`{file}` cannot be combined with other images")]
    FileAndImages {
        /// The file.
        file: String,
    },
    /// An option about images of an engine.
    #[error("{option} cannot be combined with the file `{file}`")]
    FileOption {
        /// The file.
        file: String,
        /// The option.
        option: &'static str,
    },
    /// No runtime starts such a file.
    #[error("`{file}` is neither a squashfs nor a SIF")]
    FileKind {
        /// Its path.
        file: String,
    },
    /// The SHA-256 that a file is named by is none.
    #[error("invalid SHA-256 `{got}` of `{file}` (expected 64 lower-case hex digits)")]
    FileDigest {
        /// The file.
        file: String,
        /// What was typed.
        got: String,
    },
    /// Evidence is attached to an image in its registry.
    #[error("--attest requires an image in a registry, got the file `{file}`")]
    NoRegistry {
        /// Its path.
        file: String,
    },
    /// A list of nodes or hosts cannot be read.
    #[error("invalid value for --on: {0}")]
    Hosts(#[from] HostListError),
    /// An option for a scheduler, with hosts of ssh.
    #[error("{option} requires `--on slurm`")]
    NoScheduler {
        /// The option.
        option: &'static str,
    },
    /// A word of the site that is no option: `ssh` would take it for the host, `srun` for the program.
    #[error("`{word}` after `--` is not an option of `{program}`")]
    Word {
        /// The word.
        word: String,
        /// The program.
        program: &'static str,
    },
    /// No node is left to ask.
    #[error("no node found{}", within.as_ref().map_or_else(String::new, |within| format!(" in `{within}`")))]
    NoNode {
        /// The partition, or the file.
        within: Option<String>,
    },
    /// A program of the scheduler, or ssh, cannot be started.
    #[error("cannot run `{program}`: {cause}")]
    Program {
        /// Its name.
        program: &'static str,
        /// Why.
        cause: std::io::Error,
    },
    /// The scheduler does not answer.
    #[error("`{program}` failed: {text}")]
    Scheduler {
        /// Its program.
        program: &'static str,
        /// Its message.
        text: String,
    },
    /// No node ran the checks.
    #[error("no node gave a report: {}", why[..why.len().min(MOST_REASONS)].join("; "))]
    NoneAsked {
        /// The program that leads to them.
        program: &'static str,
        /// Each reason once, the most frequent first.
        why: Vec<String>,
    },
    /// A file of reports cannot be read.
    #[error("cannot read report `{file}`: {}", reason(cause))]
    File {
        /// Its path.
        file: String,
        /// Why.
        cause: std::io::Error,
    },
    /// Nodes cannot write their reports to the directory.
    #[error("cannot write reports to `{folder}`: {cause}")]
    Folder {
        /// Its path.
        folder: String,
        /// Why.
        cause: std::io::Error,
    },
    /// The directory has no file.
    #[error("no report found in `{folder}`")]
    Empty {
        /// Its path.
        folder: String,
    },
}

impl Failure for FleetError {
    fn exit(&self) -> Exit {
        match self {
            Self::NoDigest { .. }
            | Self::ImageFile { .. }
            | Self::NotWritten { .. }
            | Self::FileAndImages { .. }
            | Self::FileOption { .. }
            | Self::FileKind { .. }
            | Self::FileDigest { .. }
            | Self::NoRegistry { .. }
            | Self::NoScheduler { .. }
            | Self::Word { .. }
            | Self::Hosts(_)
            | Self::File { .. }
            | Self::Folder { .. }
            | Self::Empty { .. } => Exit::Usage,
            Self::NoRuntime { .. }
            | Self::FileHere { .. }
            | Self::NoNode { .. }
            | Self::Program { .. }
            | Self::Scheduler { .. }
            | Self::NoneAsked { .. } => Exit::Outside,
        }
    }

    fn hints(&self) -> Vec<String> {
        let one = |text: &str| vec![text.to_owned()];
        match self {
            Self::NoDigest { .. } => one(
                "push the image (`envforge push IMAGE REF`), then pass `REGISTRY/NAME@sha256:…` as it prints it; or pass a .sqsh or .sif file; a project with `[cluster] folder` has one",
            ),
            Self::NotWritten { call, .. } => vec![format!("write it in the project: `envforge {call}`")],
            Self::ImageFile { file, .. } => vec![format!(
                "if nodes alone have it, name its SHA-256: `{file}@sha256:…`, as `sha256sum` prints it there"
            )],
            Self::NoRuntime { file, .. } => vec![format!(
                "install Apptainer and run this as an ordinary user; or ask nodes that have it: `envforge verify {file} --on slurm`, `--on ssh:HOST`"
            )],
            Self::FileHere { file, .. } => {
                vec![format!("ask another machine: `envforge verify {file} --on ssh:HOST`")]
            }
            Self::FileAndImages { file } => {
                vec![format!("verify it by a call of its own: `envforge verify {file}`")]
            }
            Self::FileKind { .. } => {
                one("`envforge export squashfs IMAGE FILE.sqsh` and `export sif IMAGE FILE.sif` write one")
            }
            Self::NoRegistry { .. } => one("verify the pushed image by its digest to sign it"),
            Self::Program { program, .. } if SLURM.contains(program) => vec![format!(
                "install `{program}`, or run this on a login node of the cluster; `--on ssh:HOST,…` needs no Slurm"
            )],
            Self::Program { program, .. } => vec![format!("install `{program}`, or run this where it is")],
            Self::Scheduler { text, .. } => match diagnose(text) {
                Some(known) => vec![known.hint()],
                None => one(
                    "`scontrol ping` shows whether Slurm's controller answers; `--on ssh:HOST,…` asks nodes without it",
                ),
            },
            Self::NoneAsked { program, why } => what_to_do(program, why),
            Self::NoNode { .. } => one("`sinfo --Node` lists the nodes and partitions that Slurm knows"),
            Self::Word { program, .. } => {
                vec![format!("options that `{program}` needs at this site follow `--`: `-- --account=ml`")]
            }
            Self::FileDigest { .. }
            | Self::FileOption { .. }
            | Self::NoScheduler { .. }
            | Self::Hosts(_)
            | Self::File { .. }
            | Self::Folder { .. }
            | Self::Empty { .. } => Vec::new(),
        }
    }
}

/// What helps where no node could be asked.
fn what_to_do(program: &str, why: &[String]) -> Vec<String> {
    if !SLURM.contains(&program) {
        return vec![
            "`ssh HOST true` must connect without a prompt; its options follow `--`: `-- -p 2222`".to_owned(),
        ];
    }
    let mut hints: Vec<String> = diagnose(&why.join("\n")).iter().map(Diagnosis::hint).collect();
    if why.iter().any(|why| why.contains(RETRIES)) {
        hints.push("the queue is full, or `scontrol ping` shows no controller: try again later".to_owned());
    }
    if why.iter().any(|why| why.starts_with("busy: ")) {
        hints.push(
            "`--as-they-free DIR` leaves each node a job, which waits until the node is free".to_owned(),
        );
    }
    hints.push(format!("`sinfo --Node --long` shows the state of each node; {OF_SITE}"));
    hints
}
