//! The number formats of GPUs, bit for bit: how a number is stored, and which number stored bits are.

/// A format of matrix elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// IEEE double.
    Fp64,
    /// IEEE single.
    Fp32,
    /// Single with 10 bits of mantissa, stored in 32 bits.
    Tf32,
    /// IEEE half.
    Fp16,
    /// The upper half of a single.
    Bf16,
    /// 4 bits of exponent, 3 of mantissa; no infinity, the largest number is 448.
    E4m3,
    /// 5 bits of exponent, 2 of mantissa: the upper half of a half.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no check uses it; its rounding is tested with the others")
    )]
    E5m2,
    /// Signed byte.
    Int8,
    /// Signed 32 bits.
    Int32,
}

/// A small float: bits of exponent and mantissa, and whether the highest exponent is infinity.
struct Small {
    exponent: u32,
    mantissa: u32,
    infinity: bool,
}

const FP16: Small = Small { exponent: 5, mantissa: 10, infinity: true };
const BF16: Small = Small { exponent: 8, mantissa: 7, infinity: true };
const E5M2: Small = Small { exponent: 5, mantissa: 2, infinity: true };
const E4M3: Small = Small { exponent: 4, mantissa: 3, infinity: false };

impl Format {
    /// Bytes of one element.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Fp64 => 8,
            Self::Fp32 | Self::Tf32 | Self::Int32 => 4,
            Self::Fp16 | Self::Bf16 => 2,
            Self::E4m3 | Self::E5m2 | Self::Int8 => 1,
        }
    }

    /// The stored form of numbers. Rounds to the nearest, ties to even; tf32 away from zero, as `cvt.rna` does; what is
    /// too large becomes infinity, in e4m3 its largest number; integers saturate.
    #[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
    pub(crate) fn bytes(self, numbers: &[f64]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(numbers.len() * self.size());
        for &number in numbers {
            match self {
                Self::Fp64 => bytes.extend(number.to_le_bytes()),
                Self::Fp32 => bytes.extend((number as f32).to_le_bytes()),
                Self::Tf32 => bytes.extend(tf32(number as f32).to_le_bytes()),
                Self::Fp16 => bytes.extend((FP16.pack(number) as u16).to_le_bytes()),
                Self::Bf16 => bytes.extend((BF16.pack(number) as u16).to_le_bytes()),
                Self::E4m3 => bytes.push(E4M3.pack(number) as u8),
                Self::E5m2 => bytes.push(E5M2.pack(number) as u8),
                Self::Int8 => bytes.extend((number.round_ties_even() as i8).to_le_bytes()),
                Self::Int32 => bytes.extend((number.round_ties_even() as i32).to_le_bytes()),
            }
        }
        bytes
    }

    /// The numbers that stored bytes are, exactly. A rest that is no whole element is left out.
    pub(crate) fn numbers(self, bytes: &[u8]) -> Vec<f64> {
        fn each<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
            let whole = bytes.chunks_exact(N).filter_map(|chunk| chunk.try_into().ok());
            whole.map(number).collect()
        }
        match self {
            Self::Fp64 => each(bytes, f64::from_le_bytes),
            Self::Fp32 | Self::Tf32 => each(bytes, |four| f64::from(f32::from_le_bytes(four))),
            Self::Fp16 => each(bytes, |two| FP16.unpack(u32::from(u16::from_le_bytes(two)))),
            Self::Bf16 => each(bytes, |two| BF16.unpack(u32::from(u16::from_le_bytes(two)))),
            Self::E4m3 => each(bytes, |[one]| E4M3.unpack(u32::from(one))),
            Self::E5m2 => each(bytes, |[one]| E5M2.unpack(u32::from(one))),
            Self::Int8 => each(bytes, |one| f64::from(i8::from_le_bytes(one))),
            Self::Int32 => each(bytes, |four| f64::from(i32::from_le_bytes(four))),
        }
    }

    /// The numbers as this format can hold them.
    pub(crate) fn rounded(self, numbers: &[f64]) -> Vec<f64> {
        self.numbers(&self.bytes(numbers))
    }
}

/// Nearest with 10 bits of mantissa, ties away from zero.
fn tf32(number: f32) -> f32 {
    if number.is_finite() { f32::from_bits((number.to_bits() + 0x1000) & !0x1fff) } else { number }
}

impl Small {
    fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// The highest stored magnitude that is a number.
    fn largest(&self) -> u32 {
        let all = (1 << (self.exponent + self.mantissa)) - 1;
        if self.infinity { all - (1 << self.mantissa) } else { all - 1 }
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_possible_wrap,
        reason = "the values are small and whole"
    )]
    fn pack(&self, number: f64) -> u32 {
        let sign = u32::from(number.is_sign_negative()) << (self.exponent + self.mantissa);
        if number.is_nan() {
            // All ones: the quiet NaN of every format here.
            return sign | ((1 << (self.exponent + self.mantissa)) - 1);
        }
        let magnitude = number.abs();
        let lowest = 1 - self.bias();
        let exponent = (((magnitude.to_bits() >> 52) as i32) - 1023).max(lowest);
        // Whole units of the last place, exact before the rounding: a power of two changes no digit.
        let units = (magnitude * 2f64.powi(self.mantissa as i32 - exponent)).round_ties_even();
        let overflow = sign | if self.infinity { self.largest() + 1 } else { self.largest() };
        if units > f64::from(1u32 << (self.mantissa + 1)) {
            return overflow;
        }
        // The implicit one of a normal number adds one to the exponent's field, a carry adds another.
        let stored = (((exponent - lowest) as u32) << self.mantissa) + units as u32;
        if stored > self.largest() { overflow } else { sign | stored }
    }

    #[expect(clippy::cast_possible_wrap, reason = "the values are small")]
    fn unpack(&self, bits: u32) -> f64 {
        let stored = bits & ((1 << (self.exponent + self.mantissa)) - 1);
        let sign = if bits >> (self.exponent + self.mantissa) & 1 == 1 { -1.0 } else { 1.0 };
        if stored > self.largest() {
            let infinite = self.infinity && stored == self.largest() + 1;
            return if infinite { sign * f64::INFINITY } else { f64::NAN };
        }
        let (field, fraction) = (stored >> self.mantissa, stored & ((1 << self.mantissa) - 1));
        let whole = if field == 0 { fraction } else { fraction + (1 << self.mantissa) };
        let exponent = field.max(1) as i32 - self.bias() - self.mantissa as i32;
        sign * f64::from(whole) * 2f64.powi(exponent)
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "conversions are exact or wrong")]
mod tests {
    use super::*;

    fn same(a: f64, b: f64) -> bool {
        (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits()
    }

    /// Halves through the processor's own single precision: another way than the one above.
    fn half(bits: u16) -> f64 {
        let bits = u32::from(bits);
        let magnitude = if bits & 0x7c00 == 0x7c00 {
            f32::from_bits(0x7f80_0000 | (bits & 0x3ff) << 13)
        } else {
            f32::from_bits((bits & 0x7fff) << 13) * f32::from_bits(0x7780_0000)
        };
        f64::from(if bits & 0x8000 == 0 { magnitude } else { -magnitude })
    }

    #[test]
    fn every_stored_half_and_bfloat_is_the_number_it_is() {
        for bits in 0..=u16::MAX {
            let stored = bits.to_le_bytes();
            assert!(same(Format::Fp16.numbers(&stored)[0], half(bits)), "fp16 {bits:#06x}");
            let wide = f64::from(f32::from_bits(u32::from(bits) << 16));
            assert!(same(Format::Bf16.numbers(&stored)[0], wide), "bf16 {bits:#06x}");
        }
    }

    #[test]
    fn every_stored_number_comes_back_and_ties_go_to_even() {
        for format in [Format::Fp16, Format::Bf16, Format::E4m3, Format::E5m2] {
            let sign = 1u32 << (8 * format.size() - 1);
            let number = |bits: u32| format.numbers(&bits.to_le_bytes()[..format.size()])[0];
            let stored = |number: f64| {
                let mut bytes = format.bytes(&[number]);
                bytes.resize(4, 0);
                u32::from_le_bytes(bytes.try_into().expect("four bytes"))
            };
            for bits in 0..sign {
                let (this, next) = (number(bits), number(bits + 1));
                if this.is_nan() {
                    assert!(number(stored(this)).is_nan(), "{format:?} {bits:#x}");
                    continue;
                }
                assert_eq!(stored(this), bits, "{format:?}");
                assert_eq!(stored(-this), bits | sign, "{format:?}");
                if bits + 1 < sign && next.is_finite() {
                    let middle = f64::midpoint(this, next);
                    assert_eq!(stored(middle), bits + (bits & 1), "{format:?} tie above {bits:#x}");
                    assert_eq!(stored(middle.next_down()), bits, "{format:?} below the tie");
                    assert_eq!(stored(middle.next_up()), bits + 1, "{format:?} above the tie");
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_or_too_small_ends_as_the_format_says() {
        let first = |format: Format, number: f64| format.rounded(&[number])[0];
        assert_eq!(first(Format::Fp16, 65519.9), 65504.0);
        assert_eq!(first(Format::Fp16, 65520.0), f64::INFINITY);
        assert_eq!(first(Format::Bf16, -1e39), f64::NEG_INFINITY);
        assert_eq!(first(Format::E5m2, 1e9), f64::INFINITY);
        assert_eq!(first(Format::E4m3, 1e9), 448.0);
        assert_eq!(first(Format::E4m3, f64::INFINITY), 448.0);
        assert_eq!(first(Format::Fp16, 5e-324), 0.0);
        assert_eq!([first(Format::Int8, 127.6), first(Format::Int8, -1e9)], [127.0, -128.0]);
    }

    #[test]
    fn eight_bits_are_what_their_tables_say() {
        for byte in 0..=u8::MAX {
            let upper = (u16::from(byte) << 8).to_le_bytes();
            let five = Format::E5m2.numbers(&[byte])[0];
            assert!(same(five, Format::Fp16.numbers(&upper)[0]), "e5m2 {byte:#04x}");
        }
        for (byte, number) in
            [(0x01, 0.001_953_125), (0x08, 0.015_625), (0x38, 1.0), (0x7e, 448.0), (0xc0, -2.0)]
        {
            assert_eq!(Format::E4m3.numbers(&[byte])[0], number, "{byte:#04x}");
        }
        assert!(Format::E4m3.numbers(&[0x7f])[0].is_nan() && Format::E4m3.numbers(&[0xff])[0].is_nan());
    }

    #[test]
    fn tf32_keeps_ten_bits_and_rounds_ties_away() {
        let step = 2f64.powi(-10);
        assert_eq!(Format::Tf32.rounded(&[1.0 + step]), [1.0 + step]);
        assert_eq!(Format::Tf32.rounded(&[1.0 + step / 2.0, -1.0 - step / 2.0]), [1.0 + step, -1.0 - step]);
        assert_eq!(Format::Tf32.rounded(&[1.0 + step * 0.499]), [1.0]);
    }

    #[test]
    fn small_integers_are_exact_in_every_format() {
        let all: Vec<f64> = (-8..=8).map(f64::from).collect();
        let exact = [Format::Tf32, Format::Fp16, Format::Bf16, Format::E4m3, Format::E5m2, Format::Int8];
        for format in exact {
            assert_eq!(format.rounded(&all), all, "{format:?}");
        }
    }
}
