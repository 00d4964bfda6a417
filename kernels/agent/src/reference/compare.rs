//! Whether a result is the one expected: element by element, or within a bound on the whole.

/// Where a result is not the one expected.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mismatch {
    /// How many elements differ.
    pub(crate) count: usize,
    /// Of how many.
    pub(crate) of: usize,
    /// The first that differs, with both values.
    pub(crate) first: usize,
    pub(crate) wanted: f64,
    pub(crate) found: f64,
}

impl std::fmt::Display for Mismatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { count, of, first, wanted, found } = self;
        write!(f, "{count} of {of} elements are wrong, the first at {first}: {found} instead of {wanted}")
    }
}

/// The elements that differ at all. Minus zero is zero; NaN is never right; a missing element differs.
#[expect(clippy::float_cmp, reason = "exact inputs have one exact answer")]
pub(crate) fn differences(wanted: &[f64], found: &[f64]) -> Option<Mismatch> {
    let at = |index: usize| found.get(index).copied().unwrap_or(f64::NAN);
    let mut wrong = wanted.iter().enumerate().filter(|(index, value)| at(*index) != **value);
    let (first, &value) = wrong.next()?;
    Some(Mismatch { count: 1 + wrong.count(), of: wanted.len(), first, wanted: value, found: at(first) })
}

/// The relative error of the whole: |found - wanted| / |wanted|, as vectors. Infinite if anything is not a number or
/// missing. It does not grow with the size, as the largest error of an element does.
pub(crate) fn frobenius(wanted: &[f64], found: &[f64]) -> f64 {
    if wanted.len() != found.len() {
        return f64::INFINITY;
    }
    let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let error = squares(&mut wanted.iter().zip(found).map(|(wanted, found)| found - wanted)).sqrt();
    let size = squares(&mut wanted.iter().copied()).sqrt();
    let relative = if size > 0.0 { error / size } else { error };
    if relative.is_finite() { relative } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wrong_element_is_found_and_named() {
        let wanted: Vec<f64> = (0..100).map(f64::from).collect();
        assert_eq!(differences(&wanted, &wanted), None);
        assert_eq!(differences(&[0.0], &[-0.0]), None);
        let mut found = wanted.clone();
        found[41] += 1.0;
        found[77] = f64::NAN;
        let mismatch = differences(&wanted, &found).expect("a difference");
        assert_eq!((mismatch.count, mismatch.first), (2, 41));
        assert_eq!(mismatch.to_string(), "2 of 100 elements are wrong, the first at 41: 42 instead of 41");
        assert_eq!(differences(&wanted, &wanted[..99]).expect("one is missing").first, 99);
        assert_eq!(differences(&wanted, &[]).expect("all are missing").count, 100);
    }

    #[test]
    fn the_error_is_relative_and_nothing_hides_in_it() {
        let error = frobenius(&[3.0, 4.0], &[3.0, 4.5]);
        assert!((error - 0.1).abs() < 1e-15, "{error}");
        for wrong in [&[f64::NAN, 4.0][..], &[f64::INFINITY, 4.0], &[3.0], &[]] {
            assert!(frobenius(&[3.0, 4.0], wrong).is_infinite(), "{wrong:?}");
        }
        // Nothing computed: all zeros is an error of the whole size.
        assert!((frobenius(&[3.0, 4.0], &[0.0, 0.0]) - 1.0).abs() < f64::EPSILON);
        assert!(frobenius(&[0.0], &[0.5]) > 0.4);
    }
}
