//! The wheels of a lock that no index has because they were compiled, and the keys of what they were made of.

use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedSource, LockedWheel};
use crate::source_build::{PackageBuild, Recipe};

/// What decides the wheel of a source distribution above that image.
pub(crate) fn package_build<'a>(
    below: &'a Lock,
    source: &'a LockedSource,
    matrix: &'a Matrix,
) -> PackageBuild<'a> {
    let recipe = matrix.source_recipe(&source.name, &source.sha256);
    let compiler = matrix.compiler(&below.stack.toolkit);
    let nvcc_targets = compiler.map_or(&[][..], |compiler| &compiler.targets);
    PackageBuild { below, source, recipe, nvcc_targets }
}

/// The wheels of a lock that are built of a source distribution or of an unpublished framework, each with the key of its inputs.
/// A wheel that the user gave has the key of the build whose place it takes.
pub(crate) fn compiled_wheels<'a>(lock: &'a Lock, matrix: &Matrix) -> Vec<(String, &'a LockedWheel)> {
    let below = lock.without_user_layers();
    let key = |wheel: &LockedWheel| match lock.sources.iter().find(|source| source.name == wheel.name) {
        Some(source) => Some(package_build(&below, source, matrix).key()),
        None if wheel.name == lock.stack.package => {
            Recipe::of(&lock.stack, matrix).map(|recipe| recipe.key(lock.base.digest.as_deref()))
        }
        None => None,
    };
    lock.local_wheels().filter_map(|wheel| Some((key(wheel)?, wheel))).collect()
}
