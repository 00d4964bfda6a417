//! The distance between an alternative and the request. Smaller is closer; the numbers only order the alternatives.
//!
//! - 3 for each release line (`2.7` to `2.8`) between the versions, 1 for each patch release (2 at most);
//!   for an unknown version, 100 more for each edit between the spellings;
//! - 1 for each published CUDA between the CUDAs; without a requested CUDA, 1 if it is not in the default index;
//! - 1 if the variant is experimental, 2 if it is not in the official release list;
//! - 4 if it drops the requested Python;
//! - 50 if it drops `devel`, since nothing else replaces a compiler.

use super::candidate::ResolveRequest;
use super::rules::{all_versions, is_misspelt, version_near};
use crate::matrix::tables::{Channel, Product, Status, Variant};
use crate::spec::CudaRequest;
use crate::versions::{CudaVariant, FrameworkVersion};

const LINE: u32 = 3;
const KEYSTROKE: u32 = 100;
const MOST_PATCHES: u32 = 2;
pub(super) const PYTHON: u32 = 4;
pub(super) const FLAVOUR: u32 = 50;

/// The distances from one request.
pub(super) struct DistanceMetric<'a> {
    /// The version from which distances are counted.
    anchor: Option<&'a FrameworkVersion>,
    /// The requested version, if it is unknown.
    misspelt: Option<&'a FrameworkVersion>,
    /// Release lines, newest first.
    lines: Vec<(u32, u32)>,
    /// Published CUDAs, oldest first.
    cudas: Vec<CudaVariant>,
    request: Option<CudaRequest>,
}

fn line(version: &FrameworkVersion) -> (u32, u32) {
    (version.major(), version.minor())
}

impl<'a> DistanceMetric<'a> {
    pub(super) fn new(question: &ResolveRequest<'a>, product: &Product) -> Self {
        let all = all_versions(question, product);
        let asked = question.spec.version.as_ref();
        let named = |asked: &FrameworkVersion| all.iter().copied().find(|version| version.is_named_by(asked));
        let meant = |asked: &FrameworkVersion| all.iter().copied().find(|version| version.is_meant_by(asked));
        let covered = asked.and_then(|asked| named(asked).or_else(|| meant(asked)));
        let mut lines: Vec<_> = all.iter().map(|version| line(version)).collect();
        lines.dedup();
        let rows = question.matrix.variants.iter().filter(|row| row.framework == product.framework);
        let mut cudas: Vec<_> = rows.map(|row| row.cuda).collect();
        cudas.sort_unstable();
        cudas.dedup();
        let misspelt = asked.filter(|asked| is_misspelt(question, product, asked));
        let anchor = covered.or(asked).or(all.first().copied());
        Self { anchor, misspelt, lines, cudas, request: question.spec.cuda }
    }

    /// Returns the distance to a published variant.
    pub(super) fn between(&self, row: &Variant) -> u32 {
        let status = match row.status {
            Status::Stable | Status::Legacy => 0,
            Status::Experimental => 1,
            Status::Unlisted => 2,
        };
        self.version(&row.version) + self.cuda(row) + status
    }

    /// Returns the version's part of the distance.
    pub(super) fn version(&self, version: &FrameworkVersion) -> u32 {
        let anchor = self.anchor.unwrap_or(version);
        let far = LINE * steps(&self.lines, &line(anchor), &line(version));
        let patch = |version: &FrameworkVersion| version.parts().get(2).copied().unwrap_or(0);
        let patches = if line(anchor) == line(version) { patch(anchor).abs_diff(patch(version)) } else { 0 };
        let keys = self.misspelt.map_or(0, |asked| version_near(asked, version));
        far + patches.min(MOST_PATCHES) + KEYSTROKE * u32::try_from(keys).unwrap_or(u32::MAX / KEYSTROKE)
    }

    fn cuda(&self, row: &Variant) -> u32 {
        let Some(request) = self.request else { return u32::from(row.channel != Channel::Default) };
        if request.covers(row.cuda, &row.toolkit) {
            return 0;
        }
        steps(&self.cudas, &CudaVariant { major: request.major, minor: request.minor }, &row.cuda)
    }
}

/// Counts the list items between `from` (which need not be in the list) and `to`.
fn steps<T: Ord>(list: &[T], from: &T, to: &T) -> u32 {
    let (low, high) = if from < to { (from, to) } else { (to, from) };
    let passed = list.iter().filter(|item| *item != from && *item >= low && *item <= high);
    u32::try_from(passed.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::steps;

    #[test]
    fn steps_count_items_between_even_from_outside_the_list() {
        let list = [11, 12, 14, 15];
        assert_eq!(steps(&list, &12, &12), 0);
        assert_eq!(steps(&list, &12, &14), 1);
        assert_eq!(steps(&list, &15, &11), 3);
        assert_eq!(steps(&list, &13, &14), 1);
        assert_eq!(steps(&list, &13, &12), 1);
        assert_eq!(steps(&list, &99, &15), 1);
    }
}
