//! GPUs beyond the range of a framework's build whose code runs all the same: code of one major runs on each later minor of it.

use super::index::Match;
use super::log::Log;

/// Whether a warning names a GPU and a range, and code of the range runs on that GPU.
pub(super) fn is_in_reach(found: &Match, log: &Log) -> bool {
    let version = |name: &str| {
        let (_, start, end) = found.values.iter().find(|(known, ..)| *known == name)?;
        capability(&log.text()[*start..*end])
    };
    let (Some(own), Some(least), Some(most)) = (version("own"), version("least"), version("most")) else {
        return false;
    };
    found.row.id == "no-code-for-gpu" && own >= least && own.0 <= most.0
}

/// `(12, 1)` of `12.1`.
fn capability(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim_end_matches('.').split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
