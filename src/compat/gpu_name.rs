//! From the name of a GPU, as a driver or a person writes it, to its compute capability.
//!
//! Owns the rules by which two spellings are the same product; they are exact (prefixes, MIG and vGPU suffixes, case),
//! never a similarity. Must not guess: a name that matches nothing is an error that lists the nearest real names.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::tables::{Gpu, Matrix};
use crate::versions::ComputeCapability;

/// How many names an error offers.
const NEAREST: usize = 3;
/// Words a name may begin with that do not tell products apart.
const PREFIXES: [&str; 5] = ["nvidia ", "tesla ", "geforce ", "quadro ", "grid "];

/// A GPU found by its name.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedGpu<'a> {
    /// The name as the matrix writes it.
    pub name: &'a str,
    /// The architecture's name.
    pub arch: &'a str,
    /// Its compute capability.
    pub compute_capability: ComputeCapability,
    /// Where that is known from.
    pub source: &'a str,
    /// The product's own row with its figures, if there is one.
    pub product: Option<&'a Gpu>,
}

/// Why a name gives no compute capability.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum GpuNameError {
    /// No row has this name.
    #[error("no GPU is known as `{name}`")]
    Unknown {
        /// The name given.
        name: String,
        /// The nearest real names, nearest first.
        nearest: Vec<String>,
    },
    /// The name was sold with different chips.
    #[error("`{name}` names products of different compute capability: {}", listed(found))]
    Ambiguous {
        /// The name given.
        name: String,
        /// The capabilities, each with its architecture.
        found: Vec<(ComputeCapability, String)>,
    },
}

fn listed(found: &[(ComputeCapability, String)]) -> String {
    found.iter().map(|(cc, arch)| format!("{cc} ({arch})")).collect::<Vec<_>>().join(", ")
}

impl GpuNameError {
    /// What the user can do about it.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Unknown { nearest, .. } => {
                let mut hints = Vec::new();
                if !nearest.is_empty() {
                    let names: Vec<_> = nearest.iter().map(|name| format!("`{name}`")).collect();
                    hints.push(format!("the nearest known names are {}", names.join(", ")));
                }
                hints.push("give the compute capability instead: `--gpu sm_XX`".to_owned());
                hints
            }
            Self::Ambiguous { found, .. } => {
                let options: Vec<_> = found.iter().map(|(cc, _)| format!("`--gpu {cc}`")).collect();
                vec![format!(
                    "name the chip that is in the machine: {}; `nvidia-smi --query-gpu=compute_cap --format=csv` prints it",
                    options.join(" or ")
                )]
            }
        }
    }

    /// The process exit code: the call is wrong.
    pub fn exit_code(&self) -> u8 {
        2
    }
}

impl Matrix {
    /// The GPU with this name, in any spelling that is exactly the same product.
    ///
    /// A MIG slice and a vGPU stand for the GPU they are cut from.
    pub fn gpu_named(&self, name: &str) -> Result<NamedGpu<'_>, GpuNameError> {
        let candidates = self.candidates();
        for key in keys(name) {
            let Some(matches) = candidates.get(&key) else { continue };
            let different: BTreeSet<_> = matches.iter().map(|gpu| gpu.compute_capability).collect();
            if different.len() == 1 {
                return Ok(matches[0].clone());
            }
            let found = matches.iter().map(|gpu| (gpu.compute_capability, gpu.arch.to_owned()));
            let found = found.collect::<BTreeSet<_>>().into_iter().collect();
            return Err(GpuNameError::Ambiguous { name: name.to_owned(), found });
        }
        Err(GpuNameError::Unknown { name: name.to_owned(), nearest: nearest(name, &candidates) })
    }

    /// Every known name under its plain key; rows with figures come before bare names.
    fn candidates(&self) -> BTreeMap<String, Vec<NamedGpu<'_>>> {
        let mut all: BTreeMap<String, Vec<NamedGpu<'_>>> = BTreeMap::new();
        for gpu in &self.gpus {
            let named = NamedGpu {
                name: &gpu.name,
                arch: &gpu.arch,
                compute_capability: gpu.compute_capability,
                source: &gpu.source,
                product: Some(gpu),
            };
            for name in std::iter::once(&gpu.name).chain(&gpu.aliases) {
                all.entry(plain(name)).or_default().push(named.clone());
            }
        }
        for chip in &self.chips {
            for name in &chip.names {
                all.entry(plain(name)).or_default().push(NamedGpu {
                    name,
                    arch: &chip.arch,
                    compute_capability: chip.compute_capability,
                    source: &chip.source,
                    product: None,
                });
            }
        }
        all
    }
}

/// The name without what does not tell products apart: case, spacing, vendor and series prefixes.
fn plain(name: &str) -> String {
    let mut rest = name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
    while let Some(shorter) = PREFIXES.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
        rest = shorter.to_owned();
    }
    rest
}

/// The keys a name may stand under, most literal first: as written, without a MIG slice, without a vGPU profile.
fn keys(name: &str) -> Vec<String> {
    let whole = plain(name);
    let mut keys = vec![whole.clone()];
    let physical = without_mig(&whole);
    if let Some(physical) = physical {
        keys.push(physical.to_owned());
    }
    if let Some(board) = without_vgpu_profile(physical.unwrap_or(&whole)) {
        keys.push(board.to_owned());
    }
    keys
}

/// `a100-sxm4-80gb mig 3g.40gb` is a slice of `a100-sxm4-80gb`; the slice may carry media extensions (`1g.10gb+me`).
fn without_mig(name: &str) -> Option<&str> {
    let (board, slice) = name.rsplit_once(" mig ")?;
    let (compute, memory) = slice.split_once('.')?;
    let memory = memory.split('+').next().unwrap_or(memory);
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let profile = compute.rsplit_once("c.").map_or(compute, |(_, instance)| instance);
    let is_slice =
        profile.strip_suffix('g').is_some_and(digits) && memory.strip_suffix("gb").is_some_and(digits);
    is_slice.then_some(board)
}

/// `a100d-80c` is the vGPU profile `80c` of the board `a100d`: digits, then one of the series A, B, C, Q; before it
/// there may be the MIG size (`a100d-3-40c`).
fn without_vgpu_profile(name: &str) -> Option<&str> {
    let (board, profile) = name.rsplit_once('-')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let size = profile.strip_suffix(['a', 'b', 'c', 'q'])?;
    if !digits(size) {
        return None;
    }
    Some(board.rsplit_once('-').filter(|(_, slices)| digits(slices)).map_or(board, |(board, _)| board))
}

fn nearest(name: &str, candidates: &BTreeMap<String, Vec<NamedGpu<'_>>>) -> Vec<String> {
    let wanted = plain(name);
    let mut scored: Vec<_> = candidates
        .iter()
        .map(|(key, rows)| (strsim::normalized_damerau_levenshtein(&wanted, key), rows[0].name))
        .filter(|(score, _)| *score >= 0.4)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().map(|(_, name)| name.to_owned()).take(NEAREST).collect()
}
