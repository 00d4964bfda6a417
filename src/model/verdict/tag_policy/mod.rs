//! The tags that a report allows an image.
//!
//! Pure. A check that did not run never earns a tag.

use std::slice;

use crate::model::image::plan::UNVERIFIED;
use crate::model::lock::Lock;
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::verdict::{GpuCoverage, Outcome, Verdict, is_allowed_skip, is_kernel_check, ran_on};
use crate::model::versions::ComputeCapability;

/// The tags that an image may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TagStatus {
    /// Every required check ran on a target GPU: the verified tags.
    Verified,
    /// Nothing failed, but not every check ran on a target GPU: tags that end in `-unverified`.
    Unverified {
        /// The reason, as a clause.
        because: String,
    },
    /// Something failed: no tag.
    Failed,
}

impl TagStatus {
    /// Whether the image may have its verified tags.
    pub fn is_verified(&self) -> bool {
        *self == Self::Verified
    }
}

/// Returns the target GPUs of an image, or all that its binary has code for.
pub fn target_gpus(lock: &Lock) -> Vec<ComputeCapability> {
    let named = lock.stack.target.capabilities();
    if named.is_empty() { lock.stack.requires.gpu.clone() } else { named }
}

/// Returns the target GPUs on which no kernel of the report ran; without a named target the GPUs whose code never ran.
pub fn not_proven(lock: &Lock, verdict: &Verdict) -> Vec<ComputeCapability> {
    let ran = ran_on(&verdict.checks).into_iter().filter_map(|gpu| gpu.capability);
    let is_named = !lock.stack.target.gpus.is_empty();
    let proven: Vec<_> =
        ran.filter_map(|gpu| if is_named { Some(gpu) } else { lock.stack.requires.code_for(gpu) }).collect();
    target_gpus(lock).into_iter().filter(|capability| !proven.contains(capability)).collect()
}

/// Whether checks on a GPU count for the image: the binary has code that runs there, and the GPU is one of the named
/// targets, if there are any. Unknown code counts on a named target only.
fn counts(lock: &Lock, gpu: ComputeCapability) -> bool {
    let (requires, named) = (&lock.stack.requires, lock.stack.target.capabilities());
    if requires.gpu.is_empty() && requires.ptx.is_empty() {
        return named.contains(&gpu);
    }
    requires.code_for(gpu).is_some() && (named.is_empty() || named.contains(&gpu))
}

/// Whether one of the GPUs counts for the image.
fn any_counts(lock: &Lock, gpus: &[GpuCoverage]) -> bool {
    gpus.iter().filter_map(|gpu| gpu.capability).any(|gpu| counts(lock, gpu))
}

/// Returns what the report proves for the lock: verified, unverified with the reason, or failed.
pub fn claim(lock: &Lock, verdict: &Verdict) -> TagStatus {
    let unverified = |because: String| TagStatus::Unverified { because };
    if verdict.failures() > 0 {
        return TagStatus::Failed;
    }
    let statics = static_checks(lock);
    if let Some(id) = statics.iter().find(|id| outcome(verdict, id) != Some(Outcome::Passed)) {
        return unverified(format!("the required check `{id}` did not run"));
    }
    if let Some(check) = verdict.checks.iter().find(|check| check.required && check.is_hindered()) {
        return unverified(format!("the host is busy: {}", check.detail));
    }
    let ran = ran_on(&verdict.checks);
    if ran.is_empty() {
        return unverified("nothing ran on a GPU".to_owned());
    }
    if !any_counts(lock, &ran) {
        let ran: Vec<_> = ran.into_iter().map(|gpu| gpu.label).collect();
        let wanted: Vec<_> = target_gpus(lock).iter().map(|capability| capability.dotted()).collect();
        return unverified(format!(
            "checks ran on {}, the image targets {}",
            ran.join(", "),
            wanted.join(" ")
        ));
    }
    for id in gpu_checks(lock, true) {
        let check = verdict.checks.iter().find(|check| check.id == id);
        match check {
            Some(check) if check.outcome == Outcome::Passed => {
                // With several kinds of GPU a check may have run on another kind than the one that counts.
                let gpus = ran_on(slice::from_ref(check));
                if is_kernel_check(check) && !any_counts(lock, &gpus) {
                    return unverified(format!(
                        "the required check `{id}` ran on no GPU that counts for the image"
                    ));
                }
            }
            Some(check) if is_allowed_skip(check) => {}
            Some(check) => {
                return unverified(format!("the required check `{id}` was skipped: {}", check.detail));
            }
            None => {
                return unverified(format!(
                    "the required check `{id}` was not executed at level {}",
                    verdict.level
                ));
            }
        }
    }
    TagStatus::Verified
}

fn outcome(verdict: &Verdict, id: &str) -> Option<Outcome> {
    verdict.checks.iter().find(|check| check.id == id).map(|check| check.outcome)
}

/// Returns an image's tags: as requested if it is verified, with the suffix if not, none if it failed.
pub fn tags_for(claim: &TagStatus, wanted: &[String]) -> Vec<String> {
    match claim {
        TagStatus::Verified => wanted.to_vec(),
        TagStatus::Unverified { .. } => wanted.iter().map(|tag| unverified(tag)).collect(),
        TagStatus::Failed => Vec::new(),
    }
}

/// Returns the tags that move to an image from the project's image before it: with the suffix to whatever was built, without it to
/// what is verified. The one with the suffix moves in any case: a later `verify` of the older image would otherwise take the other back.
pub fn moving_tags(current: &str, is_verified: bool) -> Vec<String> {
    is_verified.then(|| current.to_owned()).into_iter().chain([unverified(current)]).collect()
}

/// Returns the tag to call an image by: one that stays with it and has no suffix, if there is one.
pub fn main_tag(tags: &[String]) -> Option<&String> {
    tags.iter().min_by_key(|tag| (is_moving(tag), tag.ends_with(UNVERIFIED)))
}

/// Whether a tag moves from one image of a project to the next.
pub fn is_moving(tag: &str) -> bool {
    let name = tag.strip_suffix(UNVERIFIED).unwrap_or(tag);
    name.starts_with("envforge/") && name.ends_with(":current")
}

/// Adds the suffix to a reference's tag; no tag means `latest`, as in Docker.
pub fn unverified(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    if name.contains(':') {
        format!("{reference}{UNVERIFIED}")
    } else {
        format!("{reference}:latest{UNVERIFIED}")
    }
}

/// Returns the verified tags that an image does not have yet.
pub fn verified_tags(tags: &[String]) -> Vec<String> {
    let real = tags.iter().filter_map(|tag| tag.strip_suffix(UNVERIFIED));
    real.filter(|tag| !tags.iter().any(|known| known == tag)).map(str::to_owned).collect()
}

#[cfg(test)]
pub(in crate::model::verdict) mod tests;
