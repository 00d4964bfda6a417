//! Locked packages of another CUDA major than the stack's.

use std::collections::BTreeMap;

use super::question::{Misfit, MisfitKind, Question};
use crate::model::local_version::cuda_major;
use crate::model::lock::LockedWheel;
use crate::model::resolve::mismatches_by_name;

/// The wheels of a toolkit without a CUDA major in their name: their version is that of the toolkit.
const VERSIONED_BY_TOOLKIT: [&str; 2] = ["nvidia-cuda-nvrtc", "nvidia-cuda-runtime"];
/// The most libraries of a major that are named.
const NAMED: usize = 3;

/// Packages by name and row, then libraries of CUDA, all of one major together.
pub(super) fn misfits(question: Question<'_>) -> Vec<Misfit> {
    let stack = &question.lock.stack;
    let release = |wheel: &LockedWheel| format!("{}=={}", wheel.name, wheel.version);
    let releases: Vec<String> = question.added_wheels().map(release).collect();
    let mut all = Vec::new();
    for (at, violation) in mismatches_by_name(&releases, stack, question.known.matrix) {
        let name = releases[at].split("==").next().unwrap_or_default().to_owned();
        let text = format!("{}{}", violation.text, question.required_by(&name));
        let source = Some(violation.source);
        all.push(Misfit::new(MisfitKind::OtherCuda, vec![name], text, source));
    }
    let mut majors: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    for wheel in question.added_wheels() {
        if let Some(major) = library_major(wheel).filter(|major| *major != stack.cuda.major) {
            majors.entry(major).or_default().push(wheel.name.clone());
        }
    }
    all.extend(majors.into_iter().map(|(major, mut packages)| {
        packages.sort();
        let named: Vec<_> = packages.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
        let more = packages.len().saturating_sub(NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "libraries of CUDA {major} are locked next to those of the stack, which has CUDA {}: {}{more}{}",
            stack.cuda.major,
            named.join(", "),
            question.required_by(&packages[0])
        );
        Misfit::new(MisfitKind::OtherCuda, packages, text, None)
    }));
    all
}

/// The CUDA major of a wheel with NVIDIA's libraries.
fn library_major(wheel: &LockedWheel) -> Option<u8> {
    let part = wheel.name.strip_prefix("nvidia-")?.rsplit('-').next()?;
    let by_version = || {
        let is_toolkit = VERSIONED_BY_TOOLKIT.contains(&wheel.name.as_str());
        is_toolkit.then(|| wheel.version.split('.').next()?.parse().ok()).flatten()
    };
    cuda_major(part).or_else(by_version)
}
