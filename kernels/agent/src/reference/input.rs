//! Inputs that are the same on every machine: a small generator, and the two kinds of numbers the checks use.

/// `SplitMix64`: one multiplication chain per number, any seed is good.
#[derive(Debug, Clone)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A whole number from `-limit` to `limit`.
    pub(crate) fn small(&mut self, limit: u8) -> i8 {
        let span = u64::from(limit) * 2 + 1;
        // The upper half of a product: no division, a bias below 2^-32.
        let drawn = ((self.next() >> 32) * span) >> 32;
        i8::try_from(i64::try_from(drawn).unwrap_or(0) - i64::from(limit)).unwrap_or(0)
    }

    /// Whole numbers from `-limit` to `limit`: exact in every format, their sums of products in any order.
    pub(crate) fn integers(&mut self, count: usize, limit: u8) -> Vec<f64> {
        (0..count).map(|_| f64::from(self.small(limit))).collect()
    }

    /// Numbers in [-1, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(crate) fn uniform(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| (self.next() >> 11) as f64 * 2f64.powi(-52) - 1.0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // The first outputs for seed 1234567 in the reference implementation's own test.
        let mut generator = Generator::new(1_234_567);
        assert_eq!(
            [generator.next(), generator.next(), generator.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]
        );
    }

    #[test]
    fn integers_fill_their_range_evenly_and_uniform_numbers_theirs() {
        let mut generator = Generator::new(7);
        let mut counts = [0usize; 17];
        for number in generator.integers(17_000, 8) {
            let place = (-8..=8).position(|whole| f64::from(whole).to_bits() == (number + 0.0).to_bits());
            counts[place.expect("a whole number in the range")] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let numbers = generator.uniform(10_000);
        assert!(numbers.iter().all(|number| (-1.0..1.0).contains(number)));
        assert!((numbers.iter().sum::<f64>() / 10_000.0).abs() < 0.02);
    }
}
