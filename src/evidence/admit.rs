//! Whether evidence proves an image for a machine: the GPU model, the driver, the level, the age.

use std::collections::BTreeSet;

use envforge_protocol::Level;
use jiff::{SignedDuration, Timestamp};

use super::collection::{Collection, Known, is_ahead};
use super::entry::Entry;
use super::key::short_fingerprint;
use crate::model::compat::{GpuNames, Matrix};
use crate::model::versions::{ComputeCapability, DriverVersion};

/// Reasons of a refusal that are shown.
const SHOWN: usize = 8;

/// The GPU that an image is to run on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WantedGpu {
    /// A model, by the name that the matrix or NVML has for it.
    Model(String),
    /// Any GPU of this compute capability.
    Capability(ComputeCapability),
}

/// What is asked of the evidence.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The GPUs; empty: any that was proven.
    pub gpus: Vec<WantedGpu>,
    /// How many of them at once: several need NCCL to have run on at least two.
    pub count: u32,
    /// The driver; `None`: any.
    pub driver: Option<DriverVersion>,
    /// Whether only this very driver counts.
    pub exact_driver: bool,
    /// The lowest level.
    pub level: Level,
    /// The oldest checks that count.
    pub max_age: SignedDuration,
    /// SHA-256 of the agents whose checks count; empty: all.
    pub agents: BTreeSet<String>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Admission {
    /// An entry for each GPU that was asked for; each with what has to be said of it.
    Admitted(Vec<(Known, Vec<String>)>),
    /// Why not, all reasons.
    Refused(Vec<String>),
}

/// Answers whether evidence by trusted keys proves an image for a machine.
pub fn admit(evidence: &Collection, wanted: &Wanted, matrix: &Matrix, now: Timestamp) -> Admission {
    let mut proofs = Vec::new();
    let mut reasons = Vec::new();
    let names = matrix.gpu_names();
    let gpus: Vec<Option<&WantedGpu>> =
        if wanted.gpus.is_empty() { vec![None] } else { wanted.gpus.iter().map(Some).collect() };
    for gpu in gpus {
        match one(evidence, gpu, wanted, (&names, now)) {
            Ok(proof) => proofs.push(proof),
            Err(why) => reasons.extend(why),
        }
    }
    if reasons.is_empty() {
        return Admission::Admitted(proofs);
    }
    reasons.extend(evidence.ignored.iter().map(|text| format!("not counted: {text}")));
    let more = reasons.len().saturating_sub(SHOWN);
    reasons.truncate(SHOWN);
    if more > 0 {
        reasons.push(format!("and {more} more"));
    }
    Admission::Refused(reasons)
}

/// The best entry for one GPU, or why there is none.
fn one(
    evidence: &Collection,
    gpu: Option<&WantedGpu>,
    wanted: &Wanted,
    (names, now): (&GpuNames<'_>, Timestamp),
) -> Result<(Known, Vec<String>), Vec<String>> {
    let asked = gpu.map_or_else(|| "any GPU".to_owned(), WantedGpu::to_string);
    let checked: Vec<&Known> = evidence.known.iter().filter(|known| known.checked).collect();
    let (same, others): (Vec<&Known>, Vec<&Known>) =
        checked.into_iter().partition(|known| gpu.is_none_or(|gpu| is_of(&known.entry, gpu, names)));
    if same.is_empty() {
        let mut models: Vec<_> = others.iter().map(|known| known.entry.gpu.as_str()).collect();
        models.sort_unstable();
        models.dedup();
        let proven = if models.is_empty() {
            "no evidence by a trusted key".to_owned()
        } else {
            format!("evidence only for {}", models.join(", "))
        };
        return Err(vec![format!("{asked}: {proven}")]);
    }
    let mut refused = Vec::new();
    let mut found: Vec<(&Known, Vec<String>)> = Vec::new();
    for known in &same {
        match fits(&known.entry, wanted, now).and_then(|notes| not_failed_later(known, &same, wanted, notes))
        {
            Ok(notes) => found.push((known, notes)),
            Err(why) => refused.push(format!("{}: {why}", named(&known.entry))),
        }
    }
    // The highest level, then the newest driver's branch that fits, then the newest run.
    found.sort_by_key(|(known, _)| (known.entry.level, known.entry.branch(), known.entry.checked));
    found.pop().map(|(known, notes)| (known.clone(), notes)).ok_or(refused)
}

/// An error if the same signer saw a failure at that level with a newer driver branch, up to the one that is asked for.
fn not_failed_later(
    known: &Known,
    all: &[&Known],
    wanted: &Wanted,
    notes: Vec<String>,
) -> Result<Vec<String>, String> {
    let entry = &known.entry;
    let newest = wanted.driver.as_ref().map_or(u32::MAX, DriverVersion::major);
    let is_failure = |other: &&&Known| {
        let failed = &other.entry;
        let is_between = failed.branch() > entry.branch() && failed.branch() <= newest;
        !failed.stands() && other.signer == known.signer && is_between && failed.level <= entry.level
    };
    match all.iter().find(is_failure) {
        Some(failed) => Err(format!(
            "withdrawn for R{} on {}",
            failed.entry.branch(),
            failed.entry.checked.strftime("%F")
        )),
        None => Ok(notes),
    }
}

/// Whether an entry is of a GPU that was asked for.
fn is_of(entry: &Entry, gpu: &WantedGpu, names: &GpuNames<'_>) -> bool {
    match gpu {
        WantedGpu::Capability(capability) => entry.capability == *capability,
        WantedGpu::Model(name) => is_model(entry, name, names),
    }
}

/// Whether an entry is of a GPU model by that name, in any spelling that the matrix knows; a slice of it (MIG) is another one. A family
/// such as `H100` is none: its models differ.
pub fn is_model(entry: &Entry, name: &str, names: &GpuNames<'_>) -> bool {
    let canonical = |name: &str| names.canonical(name).to_lowercase();
    Entry::slice(&entry.gpu) == Entry::slice(name) && canonical(&entry.gpu) == canonical(name)
}

/// What has to be said of an entry that proves what was asked, or why it does not.
fn fits(entry: &Entry, wanted: &Wanted, now: Timestamp) -> Result<Vec<String>, String> {
    let day = entry.checked.strftime("%F");
    if !entry.stands() {
        return Err(format!("withdrawn on {day}"));
    }
    if entry.level < wanted.level {
        return Err(format!("level {} is below {}", entry.level, wanted.level));
    }
    if is_ahead(entry.checked, now) {
        return Err(format!("checked on {}, and this machine's clock says {now}", entry.checked));
    }
    let age = now.duration_since(entry.checked);
    if age > wanted.max_age {
        let days = |duration: SignedDuration| duration.as_hours() / 24;
        return Err(format!("checked on {day}, {} days ago; limit {}", days(age), days(wanted.max_age)));
    }
    if !wanted.agents.is_empty() && !wanted.agents.contains(&entry.agent) {
        let agent = short_fingerprint(&entry.agent);
        let agent = if agent.is_empty() { "not named" } else { agent };
        return Err(format!("checked by an agent ({agent}) that `[policy] agents` does not list"));
    }
    let mut notes = Vec::new();
    if let Some(driver) = &wanted.driver {
        let (own, proven) = (driver.major(), entry.branch());
        if wanted.exact_driver && *driver != entry.driver {
            return Err(format!("proven with driver {}, not {driver}", entry.driver));
        }
        if own < proven {
            return Err(format!("proven on R{proven}, newer than the driver {driver}"));
        }
        if own > proven {
            notes.push(format!("proven on R{proven}; the driver is {driver}"));
        }
    }
    if wanted.count > 1 && entry.nccl < 2 {
        let ran = match entry.nccl {
            _ if entry.is_slice() => "on a MIG slice".to_owned(),
            0 => "not at all".to_owned(),
            _ => "on one GPU".to_owned(),
        };
        return Err(format!("{} GPUs need NCCL on at least two; it ran {ran}", wanted.count));
    }
    Ok(notes)
}

/// `level full on NVIDIA H200, driver 580.1`.
fn named(entry: &Entry) -> String {
    format!("level {} on {}, driver {}", entry.level, entry.gpu, entry.driver)
}

impl std::fmt::Display for WantedGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Model(name) => f.write_str(name),
            Self::Capability(capability) => write!(f, "{capability}"),
        }
    }
}
