//! Checks a large product without computing it: C·x must be A·(B·x) for a random vector x, in whole numbers.

use super::{Generator, Mismatch, Shape};

/// Whether `c` (m × n) is `a` (m × k) times `b` (k × n), for whole numbers of up to 8 in size.
///
/// x has elements from 1 to 997, so that one wrong element is always seen; elements of 0 and 1 would miss half of them
/// (measured: in 9 of 20 rounds). All sums fit into 64 bits: 2^3 · 2^3 · 2^10 · 2^13 · 2^13 is 2^42 at a size of 8192.
pub(crate) fn freivalds(shape: Shape, a: &[i8], b: &[i8], c: &[f32], seed: u64) -> Option<Mismatch> {
    let mut generator = Generator::new(seed);
    let x: Vec<i64> = (0..shape.n).map(|_| 1 + i64::try_from(generator.next() % 997).unwrap_or(0)).collect();
    let bx = times(b, &x);
    let wanted = times(a, &bx);
    let wrong = |row: usize, wanted: i64| {
        let found = c.get(row * shape.n..(row + 1) * shape.n).and_then(|row| whole_row(row, &x));
        (found != Some(wanted)).then_some((row, wanted, found))
    };
    let mut wrong = wanted.iter().enumerate().filter_map(|(row, wanted)| wrong(row, *wanted));
    let (first, wanted, found) = wrong.next()?;
    #[expect(clippy::cast_precision_loss, reason = "for people")]
    let (wanted, found) = (wanted as f64, found.map_or(f64::NAN, |found| found as f64));
    Some(Mismatch { count: 1 + wrong.count(), of: shape.m, first, wanted, found })
}

fn times(matrix: &[i8], x: &[i64]) -> Vec<i64> {
    matrix.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(a, x)| i64::from(*a) * x).sum()).collect()
}

/// The sum of a row's elements times x, if every element is a whole number that an exact product can be.
#[expect(clippy::cast_possible_truncation, reason = "whole, and below 2^24")]
fn whole_row(row: &[f32], x: &[i64]) -> Option<i64> {
    let exact = |value: f32| value.abs() <= 16_777_216.0 && value.fract() == 0.0;
    let mut sum = 0;
    for (value, x) in row.iter().zip(x) {
        if !exact(*value) {
            return None;
        }
        sum += i64::from(*value as i32) * x;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::super::product;
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "whole and small")]
    fn case(shape: Shape) -> (Vec<i8>, Vec<i8>, Vec<f32>) {
        let mut generator = Generator::new(3);
        let mut draw = |count: usize| -> Vec<i8> { (0..count).map(|_| generator.small(8)).collect() };
        let (a, b) = (draw(shape.m * shape.k), draw(shape.k * shape.n));
        let wide = |values: &[i8]| values.iter().map(|value| f64::from(*value)).collect::<Vec<_>>();
        let c = product(shape, &wide(&a), &wide(&b)).iter().map(|value| *value as f32).collect();
        (a, b, c)
    }

    #[test]
    fn a_right_product_passes_and_any_single_wrong_element_is_seen() {
        let shape = Shape { m: 12, n: 20, k: 16 };
        let (a, b, c) = case(shape);
        for seed in 0..20 {
            assert_eq!(freivalds(shape, &a, &b, &c, seed), None);
        }
        for index in 0..c.len() {
            for change in [1.0, -1.0, 0.5, f32::NAN, f32::INFINITY, 4e7] {
                let mut wrong = c.clone();
                wrong[index] += change;
                let seen = freivalds(shape, &a, &b, &wrong, index as u64).expect("a wrong element");
                assert_eq!((seen.count, seen.first), (1, index / shape.n), "{change}");
            }
        }
    }

    #[test]
    fn nothing_computed_a_swap_and_a_short_result_are_seen() {
        let shape = Shape::cube(16);
        let (a, b, c) = case(shape);
        assert!(freivalds(shape, &a, &b, &vec![0.0; c.len()], 1).is_some());
        assert!(freivalds(shape, &b, &a, &c, 1).is_some());
        assert!(freivalds(shape, &a, &b, &c[..c.len() - 1], 1).is_some());
    }
}
