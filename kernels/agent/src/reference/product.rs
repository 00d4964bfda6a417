//! The product of two matrices in double precision, row-major.

/// The sizes of a product: `m × k` times `k × n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) m: usize,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

impl Shape {
    /// All three alike.
    pub(crate) fn cube(size: usize) -> Self {
        Self { m: size, n: size, k: size }
    }

    /// Multiplications and additions, as peak figures count them.
    #[expect(clippy::cast_precision_loss, reason = "a figure, not a count")]
    pub(crate) fn operations(self) -> f64 {
        2.0 * self.m as f64 * self.n as f64 * self.k as f64
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}x{}", self.m, self.n, self.k)
    }
}

/// `a` (m × k) times `b` (k × n).
pub(crate) fn product(shape: Shape, a: &[f64], b: &[f64]) -> Vec<f64> {
    let Shape { n, k, .. } = shape;
    let mut c = vec![0.0; shape.m * n];
    for (row, sums) in c.chunks_exact_mut(n).enumerate() {
        for (factor, line) in a[row * k..(row + 1) * k].iter().zip(b.chunks_exact(n)) {
            for (sum, element) in sums.iter_mut().zip(line) {
                *sum += factor * element;
            }
        }
    }
    c
}

#[cfg(test)]
mod tests {
    use super::super::{Generator, frobenius};
    use super::*;

    /// By the definition, each element on its own.
    fn slow(shape: Shape, a: &[f64], b: &[f64]) -> Vec<f64> {
        let element = |i: usize, j: usize| -> f64 {
            (0..shape.k).rev().map(|l| a[i * shape.k + l] * b[l * shape.n + j]).sum()
        };
        (0..shape.m).flat_map(|i| (0..shape.n).map(move |j| (i, j))).map(|(i, j)| element(i, j)).collect()
    }

    #[test]
    fn it_is_the_definition() {
        let mut generator = Generator::new(1);
        for shape in [Shape { m: 1, n: 1, k: 1 }, Shape { m: 7, n: 5, k: 11 }, Shape { m: 3, n: 17, k: 2 }] {
            let (a, b) = (generator.integers(shape.m * shape.k, 8), generator.integers(shape.k * shape.n, 8));
            assert_eq!(product(shape, &a, &b), slow(shape, &a, &b), "{shape}");
            let (a, b) = (generator.uniform(shape.m * shape.k), generator.uniform(shape.k * shape.n));
            assert!(frobenius(&slow(shape, &a, &b), &product(shape, &a, &b)) < 1e-15, "{shape}");
        }
    }
}
