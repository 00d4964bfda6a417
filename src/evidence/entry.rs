//! One thing that was proven, or withdrawn: an image ran its checks on a GPU model with a driver, at a level.

use std::collections::{BTreeMap, BTreeSet};

use envforge_protocol::{CheckId, Level, Outcome, Stage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::model::verdict::{Check, Verdict, VerdictStatus, is_kernel_check, labels, model_of, ran_on};
use crate::model::versions::{ComputeCapability, DriverVersion};

/// How NVML marks a slice of a GPU in its name: `NVIDIA A100-SXM4-40GB MIG 1g.5gb`.
const SLICE: &str = " MIG ";

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryOutcome {
    /// Every check passed.
    Passed,
    /// It failed later, or was taken back: nothing is proven at this level and those above it.
    Withdrawn,
}

/// One entry of the list that evidence is. It names no user and no path, and a machine or the UUID of a GPU only where that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Entry {
    /// The GPU model by the name that NVML prints: `NVIDIA H100 80GB HBM3`.
    pub gpu: String,
    /// Its compute capability.
    pub capability: ComputeCapability,
    /// How many GPUs of the model ran kernels.
    pub count: u32,
    /// On how many GPUs at once NCCL computed right results; 1: one rank, 0: it did not run.
    pub nccl: u32,
    /// The driver.
    pub driver: DriverVersion,
    /// The level.
    #[serde(with = "level")]
    pub level: Level,
    /// What became of it.
    pub outcome: EntryOutcome,
    /// When the checks ran, or when it was withdrawn.
    pub checked: Timestamp,
    /// SHA-256 of the agent that ran the checks.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub agent: String,
    /// Hash of the lock that the image was held to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lock: String,
    /// Name and version of the container engine.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Versions that the checks found inside the image.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// Checks that passed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub passed: BTreeSet<String>,
    /// Checks that did not run, each with the reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub skipped: BTreeMap<String, String>,
    /// Speeds by check: TFLOP/s, GB/s.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub speeds: BTreeMap<String, BTreeMap<String, String>>,
    /// The machines that passed by name, each with the UUIDs of its GPUs: with `--attest-nodes` alone.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: AttestedNodes,
}

/// Machines by name, each with the UUIDs of its GPUs.
pub type AttestedNodes = BTreeMap<String, BTreeSet<String>>;

/// What an entry is about: a later one of the same key takes its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct EntryKey {
    gpu: String,
    branch: u32,
    level: Level,
}

impl EntryKey {
    /// Whether a withdrawal of this key takes another back, too: the same GPU and branch, at this level or a higher one.
    pub(super) fn withdraws(&self, other: &Self) -> bool {
        self.gpu == other.gpu && self.branch == other.branch && other.level >= self.level
    }
}

impl Entry {
    /// The driver's branch: 580 of 580.159.04.
    pub fn branch(&self) -> u32 {
        self.driver.major()
    }

    /// Whether it proves anything: it passed and was not withdrawn.
    pub fn stands(&self) -> bool {
        self.outcome == EntryOutcome::Passed
    }

    /// Whether this passed entry takes the place of another of its key: only a later run restores what
    /// was withdrawn; repeating an old entry does not.
    pub(super) fn may_replace(&self, before: &Self) -> bool {
        before.stands() || self.checked > before.checked
    }

    /// The profile of the slice of a GPU that it ran on: `1g.5gb`.
    pub(super) fn slice(name: &str) -> Option<&str> {
        name.split_once(SLICE).map(|(_, profile)| profile)
    }

    /// Whether the checks ran on a slice of a GPU (MIG).
    pub fn is_slice(&self) -> bool {
        Self::slice(&self.gpu).is_some()
    }

    pub(super) fn key(&self) -> EntryKey {
        EntryKey { gpu: self.gpu.clone(), branch: self.branch(), level: self.level }
    }

    /// The same without what was checked, as a withdrawal.
    #[must_use]
    pub fn withdrawn(&self, at: Timestamp) -> Self {
        Self {
            outcome: EntryOutcome::Withdrawn,
            checked: at,
            versions: BTreeMap::new(),
            passed: BTreeSet::new(),
            skipped: BTreeMap::new(),
            speeds: BTreeMap::new(),
            nodes: AttestedNodes::new(),
            ..self.clone()
        }
    }

    /// What a report proves, an entry for each GPU model; a failure withdraws. Empty: nothing ran on a GPU that the report names, or
    /// the host hindered the checks. `agent`: SHA-256 of the agent that ran.
    pub fn of_report(report: &Verdict, agent: &str) -> Vec<Self> {
        let outcome = match report.verdict {
            VerdictStatus::Passed => EntryOutcome::Passed,
            VerdictStatus::Failed => EntryOutcome::Withdrawn,
            VerdictStatus::Undecided | VerdictStatus::StaticOnly => return Vec::new(),
        };
        let driver = report.driver().and_then(|driver| driver.parse::<DriverVersion>().ok());
        let (Some(driver), Some(level)) = (driver, Level::parse(&report.level)) else { return Vec::new() };
        let Ok(checked) = report.checked.parse::<Timestamp>() else { return Vec::new() };
        // A failed check counts for the GPU that it names.
        let seen: BTreeSet<String> = match outcome {
            EntryOutcome::Passed => ran_on(&report.checks).into_iter().map(|gpu| gpu.label).collect(),
            EntryOutcome::Withdrawn => report.seen_gpus().into_iter().collect(),
        };
        let named = seen.iter().filter_map(|label| Some((label, model_of(label)?)));
        let entry = |(label, (gpu, capability)): (&String, (&str, ComputeCapability))| {
            let entry = Self {
                nccl: if Self::slice(gpu).is_some() { 0 } else { nccl_ranks(&report.checks, label) },
                gpu: gpu.to_owned(),
                capability,
                count: count_of(&report.checks, label),
                driver: driver.clone(),
                level,
                outcome: EntryOutcome::Passed,
                checked,
                agent: agent.to_owned(),
                lock: report.lock.clone().unwrap_or_default(),
                engine: report.engine.clone().unwrap_or_default(),
                versions: report.versions.clone(),
                passed: ids(report, |check| check.outcome == Outcome::Passed),
                skipped: skipped(report),
                speeds: speeds(report),
                nodes: AttestedNodes::new(),
            };
            if outcome == EntryOutcome::Passed { entry } else { entry.withdrawn(checked) }
        };
        named.map(entry).collect()
    }
}

/// On how many GPUs of a label some check ran a kernel.
fn count_of(checks: &[Check], label: &str) -> u32 {
    let kernels = checks.iter().filter(|check| is_kernel_check(check) && check.outcome == Outcome::Passed);
    most_labels(kernels, label)
}

/// The most GPUs of a label that one of the checks names.
fn most_labels<'a>(checks: impl Iterator<Item = &'a Check>, label: &str) -> u32 {
    let counts = checks.map(|check| labels(check).filter(|one| *one == label).count());
    u32::try_from(counts.max().unwrap_or(0)).unwrap_or(u32::MAX)
}

/// The most GPUs of a label over which an NCCL check computed right results.
fn nccl_ranks(checks: &[Check], label: &str) -> u32 {
    let is_nccl = |check: &&Check| {
        check.outcome == Outcome::Passed
            && check.stage == Stage::Gpu.as_str()
            && check.id.starts_with("nccl-")
    };
    let transport = CheckId::NcclTransport.as_str();
    let collectives = checks.iter().filter(is_nccl).filter(|check| check.id != transport);
    most_labels(collectives, label)
}

fn ids(report: &Verdict, wanted: impl Fn(&Check) -> bool) -> BTreeSet<String> {
    report.checks.iter().filter(|check| wanted(check)).map(|check| check.id.clone()).collect()
}

fn skipped(report: &Verdict) -> BTreeMap<String, String> {
    let skipped = report.checks.iter().filter(|check| check.outcome == Outcome::Skipped);
    // The reason's name alone: a text of the image may say anything.
    let reason = |check: &Check| check.skip.map_or("not stated", |reason| reason.as_str()).to_owned();
    skipped.map(|check| (check.id.clone(), reason(check))).collect()
}

fn speeds(report: &Verdict) -> BTreeMap<String, BTreeMap<String, String>> {
    let perf = report.checks.iter().filter(|check| check.stage == Stage::Perf.as_str());
    let is_number = |text: &str| text.parse::<f64>().is_ok();
    let numbers = |check: &Check| -> BTreeMap<String, String> {
        let measured = check.measured.iter().filter(|(_, value)| is_number(value));
        measured.map(|(name, value)| (name.clone(), value.clone())).collect()
    };
    perf.map(|check| (check.id.clone(), numbers(check))).filter(|(_, found)| !found.is_empty()).collect()
}

mod level {
    use envforge_protocol::Level;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
    pub(super) fn serialize<S: Serializer>(value: &Level, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(value.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Level, D::Error> {
        let name = String::deserialize(from)?;
        Level::parse(&name).ok_or_else(|| D::Error::custom(format_args!("unknown level `{name}`")))
    }
}
