//! What of a lock does not go together, or lacks something: told when it is locked, before anything is downloaded.
//!
//! Owns what is said of locked packages beside each other. Must not refuse: the rules of `resolve` do.

mod closure;
mod cuda;
mod library;
mod paths;
mod question;
mod release;

pub use closure::{ImageLibraries, missing_libraries};
pub use paths::shared_paths;
pub use question::{FileContent, KnownPackages, ListedReleases, Misfit, MisfitKind, SharedPath, WheelFiles};

use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedWheel};
use question::Question;

/// Returns everything that does not go together in a lock, the gravest first.
pub fn misfits(lock: &Lock, known: KnownPackages<'_>) -> Vec<Misfit> {
    let question = Question { lock, known };
    let mut all = paths::misfits(question);
    all.extend(cuda::misfits(question));
    all.extend(library::misfits(question));
    all.extend(release::misfits(question));
    all
}

/// Returns the distributions of a lock that would replace files of the stack's framework: each with the reason.
pub fn in_place_of_framework(lock: &Lock, matrix: &Matrix) -> Vec<String> {
    let stack = &lock.stack;
    let others = lock.wheels.iter().filter(|wheel| wheel.name != stack.package);
    let text = |wheel: &LockedWheel| {
        let row = matrix.same_module(&stack.package, &wheel.name)?;
        Some(format!(
            "`{} {}` installs the module `{}`, as `{} {}` of the stack does",
            wheel.name, wheel.version, row.module, stack.package, stack.version
        ))
    };
    others.filter_map(text).collect()
}

#[cfg(test)]
mod tests;
