//! What a verb was asked to do, as plain values. The command line makes them; everything below takes them.

mod build;
mod compat;
mod containers;
mod doctor;
mod edit_packages;
mod evidence;
mod export;
mod fleet;
mod global;
mod images;
mod import;
mod init;
mod list;
mod lock;
pub mod network;
mod outdated;
mod plan;
mod project;
mod push;
mod shell;
mod spec;
mod spec_parts;
mod target;
mod vendor;
mod verify;
mod why;

pub use build::{Build, BuilderChoice};
pub use compat::{CompatAbi, CompatLint, CompatShow, CompatUse, WheelArgument};
pub use containers::{Logs, Ps, Stop};
pub use doctor::Doctor;
pub use edit_packages::{EditPackages, PackageAction};
pub use evidence::{Evidence, EvidenceAdmit, EvidenceWithdraw, MaxAge};
pub use export::{
    Export, ExportFile, ExportFormat, ExportOci, ExportPolicy, ExportedImage, FileKind, PolicyController,
};
pub use fleet::{FleetOptions, Nodes, SshHosts};
pub use global::{GlobalOptions, ProgressMode};
pub use images::{Diff, Inspect, Prune, Size, SizeBy};
pub use import::Import;
pub use init::Init;
pub use list::List;
pub use lock::{BaseChoice, Lock, LockOptions};
pub use outdated::Outdated;
pub use plan::Plan;
pub use project::ProjectOptions;
pub use push::Push;
pub use shell::{
    ChecksBefore, ContainerOptions, LimitOptions, ServiceOptions, Shell, StartOptions, mount_hint,
};
pub use spec::{RequestedSpec, SpecArgument};
pub use spec_parts::SpecParts;
pub use target::TargetOptions;
pub use vendor::Vendor;
pub use verify::{Level, Verify};
pub use why::Why;

/// A verb with its request.
#[derive(Debug, Clone)]
pub enum Command {
    /// No verb: where one is.
    Status,
    /// `init`.
    Init(Init),
    /// `add` or `remove`.
    EditPackages(EditPackages),
    /// `build`.
    Build(Build),
    /// `plan`.
    Plan(Plan),
    /// `list`.
    List(List),
    /// `lock`.
    Lock(Lock),
    /// `outdated`.
    Outdated(Outdated),
    /// `why`.
    Why(Why),
    /// `verify`.
    Verify(Verify),
    /// `evidence`.
    Evidence(Evidence),
    /// `evidence admit`.
    EvidenceAdmit(EvidenceAdmit),
    /// `evidence withdraw`.
    EvidenceWithdraw(EvidenceWithdraw),
    /// `push`.
    Push(Push),
    /// `import`.
    Import(Import),
    /// `shell`.
    Shell(Shell),
    /// `ps`.
    Ps(Ps),
    /// `stop`.
    Stop(Stop),
    /// `logs`.
    Logs(Logs),
    /// `vendor`.
    Vendor(Vendor),
    /// `images`.
    Images,
    /// `inspect`.
    Inspect(Inspect),
    /// `diff`.
    Diff(Diff),
    /// `size`.
    Size(Size),
    /// `prune`.
    Prune(Prune),
    /// `export`, to one of its formats.
    Export(ExportFormat, Export),
    /// `export oci`.
    ExportOci(ExportOci),
    /// `export squashfs` and `export sif`.
    ExportFile(FileKind, ExportFile),
    /// `export policy`.
    ExportPolicy(ExportPolicy),
    /// `doctor`.
    Doctor(Doctor),
    /// `compat lint`.
    CompatLint(CompatLint),
    /// `compat use`.
    CompatUse(CompatUse),
    /// `compat show`.
    CompatShow(CompatShow),
    /// `compat abi`.
    CompatAbi(CompatAbi),
    /// `generate`.
    Generate(Generate),
}

/// A kind of values that complete a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKind {
    /// Specs of the matrix.
    Specs,
    /// GPUs of the matrix.
    Gpus,
    /// Images that were built here.
    Images,
    /// Containers of `shell`.
    Containers,
    /// Python packages that are built for a framework, of the matrix.
    Packages,
}

/// What `generate` prints or writes. Texts of the argument parser come with the request: only it knows them.
#[derive(Debug, Clone)]
pub enum Generate {
    /// A completion script, printed as it is.
    Completions(Vec<u8>),
    /// Manual pages, by file name, and the directory they are written to.
    Man(Vec<(String, Vec<u8>)>, camino::Utf8PathBuf),
    /// Values that complete a command line: their kinds, and how they begin.
    Candidates(Vec<CandidateKind>, String),
    /// The JSON schema of envforge.toml.
    Schema,
}
