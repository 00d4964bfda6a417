//! How far an alternative is from what was asked. Smaller is nearer; the numbers only order the offers.
//!
//! - 3 for each release line (`2.7` to `2.8`) between the versions, 1 for each patch release (2 at most);
//!   for a version that does not exist, 10 for each keystroke between the spellings on top;
//! - 1 for each published CUDA between the CUDAs; where none was asked, 1 if it is not the default index's;
//! - 1 if the variant is experimental, 2 if it is in no official list;
//! - 4 if the Python that was asked for has to go;
//! - 50 if `devel` has to go, since nothing else replaces a compiler.

use super::candidate::Question;
use super::rules::{all_versions, version_near};
use crate::compat::tables::{Channel, Product, Status, Variant};
use crate::versions::{CudaVariant, FrameworkVersion};

const LINE: u32 = 3;
const KEYSTROKE: u32 = 10;
const MOST_PATCHES: u32 = 2;
pub(super) const PYTHON: u32 = 4;
pub(super) const FLAVOUR: u32 = 50;

/// The distance between what was asked and a published variant.
pub(super) fn between(question: &Question<'_>, product: &Product, row: &Variant) -> u32 {
    version(question, product, &row.version) + cuda(question, product, row) + status(row.status)
}

/// The part of the distance that lies in the version.
pub(super) fn version(question: &Question<'_>, product: &Product, version: &FrameworkVersion) -> u32 {
    let all = all_versions(question, product);
    let asked = question.spec.version.as_ref();
    let anchor = match asked {
        Some(asked) => all.iter().copied().find(|version| version.starts_with(asked)).unwrap_or(asked),
        None => all.first().copied().unwrap_or(version),
    };
    let line = |version: &FrameworkVersion| (version.major(), version.minor());
    let mut lines: Vec<_> = all.iter().map(|version| line(version)).collect();
    lines.dedup();
    let far = LINE * steps(&lines, &line(anchor), &line(version));
    let patch = |version: &FrameworkVersion| version.parts().get(2).copied().unwrap_or(0);
    let patches = if line(anchor) == line(version) { patch(anchor).abs_diff(patch(version)) } else { 0 };
    let exists = all.contains(&anchor);
    let keys = asked.filter(|_| !exists).map_or(0, |asked| version_near(asked, version));
    far + patches.min(MOST_PATCHES) + KEYSTROKE * u32::try_from(keys).unwrap_or(u32::MAX / KEYSTROKE)
}

fn cuda(question: &Question<'_>, product: &Product, row: &Variant) -> u32 {
    let Some(wish) = question.spec.cuda else { return u32::from(row.channel != Channel::Default) };
    if wish.covers(row.cuda, &row.toolkit) {
        return 0;
    }
    let rows = question.matrix.variants.iter().filter(|row| row.framework == product.framework);
    let mut all: Vec<_> = rows.map(|row| row.cuda).collect();
    all.sort_unstable();
    all.dedup();
    steps(&all, &CudaVariant { major: wish.major, minor: wish.minor }, &row.cuda)
}

fn status(status: Status) -> u32 {
    match status {
        Status::Stable | Status::Legacy => 0,
        Status::Experimental => 1,
        Status::Unlisted => 2,
    }
}

/// How many of the list are passed on the way from `from` (which need not be in it) to `to`.
fn steps<T: Ord>(list: &[T], from: &T, to: &T) -> u32 {
    let (low, high) = if from < to { (from, to) } else { (to, from) };
    let passed = list.iter().filter(|item| *item != from && *item >= low && *item <= high);
    u32::try_from(passed.count()).unwrap_or(u32::MAX)
}
