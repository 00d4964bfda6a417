//! Which tags a report earns an image (DESIGN §9).
//!
//! Pure. Nothing earns a tag by not having been looked at.

use crate::lock::Lock;
use crate::plan::UNVERIFIED;
use crate::required::{gpu_checks, static_checks};
use crate::verdict::{Outcome, Verdict, allowed_skip, ran_on};
use crate::versions::ComputeCapability;

/// What an image's tags may claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// Every required check ran, on a GPU that counts: the real tags.
    Verified,
    /// Nothing failed, but it was not all executed on a GPU that counts: tags that end in `-unverified`.
    Unverified {
        /// Why, as a clause.
        because: String,
    },
    /// Something failed: no tag.
    Failed,
}

impl Claim {
    /// True if the image may have its real tags.
    pub fn is_verified(&self) -> bool {
        *self == Self::Verified
    }
}

/// The GPUs an image is for: those of its target, or all that its binary has code for.
pub fn promised(lock: &Lock) -> Vec<ComputeCapability> {
    let named = lock.stack.target.capabilities();
    if named.is_empty() { lock.stack.requires.gpu.clone() } else { named }
}

/// The promised GPUs on which no kernel of the report ran.
pub fn not_proven(lock: &Lock, verdict: &Verdict) -> Vec<ComputeCapability> {
    let ran: Vec<_> = ran_on(&verdict.checks).into_iter().filter_map(|gpu| gpu.capability).collect();
    promised(lock).into_iter().filter(|capability| !ran.contains(capability)).collect()
}

/// What the report allows the image's tags to claim.
pub fn claim(lock: &Lock, verdict: &Verdict) -> Claim {
    let unverified = |because: String| Claim::Unverified { because };
    if verdict.failures() > 0 {
        return Claim::Failed;
    }
    let statics = static_checks(lock);
    if let Some(id) = statics.iter().find(|id| outcome(verdict, id) != Some(Outcome::Passed)) {
        return unverified(format!("the required check `{id}` did not run"));
    }
    let ran = ran_on(&verdict.checks);
    if ran.is_empty() {
        return unverified("nothing ran on a GPU".to_owned());
    }
    let promised = promised(lock);
    let counts = |capability: Option<ComputeCapability>| capability.is_some_and(|it| promised.contains(&it));
    if !ran.iter().any(|gpu| counts(gpu.capability)) {
        let ran: Vec<_> = ran.into_iter().map(|gpu| gpu.label).collect();
        let wanted: Vec<_> = promised.iter().map(|capability| capability.dotted()).collect();
        return unverified(format!(
            "it ran on {}, and the image is for {}",
            ran.join(", "),
            wanted.join(" ")
        ));
    }
    for id in gpu_checks(&lock.stack, true) {
        let check = verdict.checks.iter().find(|check| check.id == id);
        match check {
            Some(check) if check.outcome == Outcome::Passed || allowed_skip(check) => {}
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
    Claim::Verified
}

fn outcome(verdict: &Verdict, id: &str) -> Option<Outcome> {
    verdict.checks.iter().find(|check| check.id == id).map(|check| check.outcome)
}

/// The tags an image gets: the wanted ones, with the suffix unless the claim is the whole one; none if it failed.
pub fn tags_for(claim: &Claim, wanted: &[String]) -> Vec<String> {
    match claim {
        Claim::Verified => wanted.to_vec(),
        Claim::Unverified { .. } => wanted.iter().map(|tag| unverified(tag)).collect(),
        Claim::Failed => Vec::new(),
    }
}

/// A reference with the suffix at its tag; one without a tag means `latest`, as Docker reads it.
pub fn unverified(reference: &str) -> String {
    let name = reference.rsplit('/').next().unwrap_or(reference);
    if name.contains(':') {
        format!("{reference}{UNVERIFIED}")
    } else {
        format!("{reference}:latest{UNVERIFIED}")
    }
}

/// The tags that a verified image earns beside those it has.
pub fn promoted(tags: &[String]) -> Vec<String> {
    let real = tags.iter().filter_map(|tag| tag.strip_suffix(UNVERIFIED));
    real.filter(|tag| !tags.iter().any(|known| known == tag)).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests;
