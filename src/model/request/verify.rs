//! `verify`.

use camino::Utf8PathBuf;
pub use envforge_protocol::Level;

/// A request for `verify`.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
#[derive(Debug, Clone)]
pub struct Verify {
    /// Images or specs.
    pub images: Vec<String>,
    /// How much is checked.
    pub level: Level,
    /// Which GPUs: `all`, `none`, or indices and UUIDs apart by commas.
    pub gpus: Option<String>,
    /// GPUs that are not here and that the image must have code for.
    pub gpu: Vec<String>,
    /// The lock the image must agree with.
    pub lock: Option<Utf8PathBuf>,
    /// Write the reports as `JUnit` XML, too.
    pub junit: Option<Utf8PathBuf>,
    /// Write the reports as one HTML page, too.
    pub html: Option<Utf8PathBuf>,
    /// Keep the speeds measured (`--level perf`) as what this host should reach from now on.
    pub record: bool,
    /// Put the tags that a verified image earned on the same digest in the registry they name; exit 1 if it earned none.
    pub push: bool,
    /// Sign what the checks proved and attach it to the image in its registry.
    pub attest: bool,
    /// Sign the names of the machines that passed, and the UUIDs of their GPUs, too.
    pub attest_nodes: bool,
    /// The key that signs; without one that of the environment.
    pub key: Option<Utf8PathBuf>,
    /// Show the last report of the image and check nothing.
    pub last: bool,
    /// Many nodes instead of this machine's engine.
    pub fleet: super::FleetOptions,
    /// What the specs are restricted to.
    pub parts: super::SpecParts,
    /// The project, where no image is named.
    pub project: super::ProjectOptions,
}
