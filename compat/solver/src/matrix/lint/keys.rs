//! Sources and duplicate rows.

use std::collections::BTreeSet;

use super::super::tables::Matrix;
use super::fault::{Faults, Problem};

pub(super) fn check(matrix: &Matrix, faults: &mut Faults) {
    let mut seen = BTreeSet::new();
    for row in matrix.rows() {
        if row.source().trim().is_empty() {
            faults.add(row, Problem::NoSource);
        }
        if !seen.insert(key(&row.label())) {
            faults.add(row, Problem::Twice);
        }
    }
}

/// Returns the key of a label: rows that differ only in spelling (`12.8` and `12.8.0`, case) are the same row.
pub(in super::super) fn key(label: &str) -> String {
    let word = |word: &str| {
        let mut word = word.to_lowercase();
        while word.contains('.') && word.ends_with(".0") {
            word.truncate(word.len() - 2);
        }
        word
    };
    label.split(' ').map(word).collect::<Vec<_>>().join(" ")
}
