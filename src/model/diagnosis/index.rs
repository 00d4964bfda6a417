//! All patterns of all rows, found in a text in one pass.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::entry::KnownError;
use super::log::Log;
use super::pattern::{Found, Pattern};
use super::table::entries;

/// Bytes at the start of a pattern that the index knows.
const HEAD: usize = 3;

/// A row's place in the table, and one of its patterns.
type Candidate = (usize, Pattern);

struct Index {
    rows: Vec<&'static KnownError>,
    by_head: BTreeMap<[u8; HEAD], Vec<Candidate>>,
    /// Whether a pattern begins with a pair of bytes.
    pairs: Vec<bool>,
}

static INDEX: LazyLock<Index> = LazyLock::new(|| {
    let rows: Vec<_> = entries().collect();
    let mut by_head = BTreeMap::<_, Vec<Candidate>>::new();
    let mut pairs = vec![false; 1 << 16];
    for (at, row) in rows.iter().enumerate() {
        for parts in row.texts {
            let pattern = Pattern::new(parts);
            if let Some(head) = pattern.head().as_bytes().first_chunk::<HEAD>() {
                pairs[pair(*head)] = true;
                by_head.entry(*head).or_default().push((at, pattern));
            }
        }
    }
    Index { rows, by_head, pairs }
});

fn pair(head: [u8; HEAD]) -> usize {
    usize::from(head[0]) << 8 | usize::from(head[1])
}

/// A match of a row.
pub(super) struct Match {
    pub(super) row: &'static KnownError,
    /// The row's place in the table.
    pub(super) rank: usize,
    pub(super) place: usize,
    pub(super) values: Found,
}

/// Returns each match in a text, in the order of their places.
pub(super) fn matches(log: &Log) -> Vec<Match> {
    let index = &*INDEX;
    let mut all = Vec::new();
    for (place, head) in log.lower().as_bytes().windows(HEAD).enumerate() {
        let Some(head) = head.first_chunk::<HEAD>().filter(|head| index.pairs[pair(**head)]) else {
            continue;
        };
        let candidates = index.by_head.get(head).map(Vec::as_slice).unwrap_or_default();
        for (rank, pattern) in candidates {
            if let Some(values) = pattern.found_at(log, place) {
                all.push(Match { row: index.rows[*rank], rank: *rank, place, values });
            }
        }
    }
    all
}
