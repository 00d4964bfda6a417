//! The matrix as it was at a moment: rows that were published later are left out.

use std::collections::BTreeMap;

use crate::matrix::Matrix;
use crate::matrix::tables::KnownVersion;

/// Whether a day (`2026-03-01`) lies before a moment (RFC 3339, UTC). Rows without a day belong to no release.
fn published_by(released: &str, moment: &str) -> bool {
    let day = moment.get(..10).unwrap_or(moment);
    let whole_days = moment.ends_with("T00:00:00Z");
    if whole_days { released < day } else { released <= day }
}

/// Returns the matrix without the rows of later releases; their versions stay known, with the day.
pub(super) fn matrix_as_of(matrix: &Matrix, moment: &str) -> Matrix {
    let mut past = matrix.clone();
    past.variants.retain(|row| row.released.is_empty() || published_by(&row.released, moment));
    past.coupled_releases
        .retain(|row| row.released.as_deref().is_none_or(|released| published_by(released, moment)));
    let mut later: BTreeMap<_, &_> = BTreeMap::new();
    for row in &matrix.variants {
        let same = |kept: &&crate::matrix::tables::Variant| {
            kept.framework == row.framework && kept.version == row.version
        };
        if !past.variants.iter().any(|kept| same(&kept)) {
            later.entry((row.framework.clone(), row.version.to_string())).or_insert(row);
        }
    }
    past.known_versions.extend(later.into_values().map(|row| KnownVersion {
        framework: row.framework.clone(),
        version: row.version.clone(),
        last: None,
        what: format!("published on {}, after the requested date", row.released),
        source: row.source.clone(),
    }));
    past
}

#[cfg(test)]
mod tests {
    use super::published_by;

    #[test]
    fn day_before_the_moment_counts_as_published() {
        assert!(published_by("2026-03-01", "2026-03-02T00:00:00Z"));
        assert!(!published_by("2026-03-02", "2026-03-02T00:00:00Z"));
        assert!(published_by("2026-03-02", "2026-03-02T10:00:00Z"));
        assert!(!published_by("2026-03-03", "2026-03-02T10:00:00Z"));
    }
}
