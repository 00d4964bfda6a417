//! Sizes for people.

/// Returns bytes as gigabytes with two decimals.
pub(crate) fn gigabytes(bytes: u64) -> String {
    format!("{}.{:02} GB", bytes / 1_000_000_000, bytes / 10_000_000 % 100)
}

/// Returns bytes in the unit that reads best.
pub(crate) fn readable(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{} kB", bytes / 1_000),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => gigabytes(bytes),
    }
}

/// Returns a share in percent with one decimal: `12.5`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_reads_best() {
        let all = [999, 1_999, 12_000_000, 7_931_000_000].map(readable);
        assert_eq!(all, ["999 B", "1 kB", "12 MB", "7.93 GB"]);
        assert_eq!([percent(1, 8), percent(0, 0), percent(u64::MAX, u64::MAX)], ["12.5", "0.0", "100.0"]);
    }
}
