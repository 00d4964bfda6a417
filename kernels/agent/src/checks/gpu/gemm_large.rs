//! Proves one product as large as training uses them, 8192 cubed by cuBLAS, with Freivalds' check: C·x is A·(B·x).

use envforge_protocol::{CheckGroup, CheckId};

use super::gemm::{blas, needs};
use super::{CheckFailure, CheckPass, all_alike, each_kind, on_all};
use crate::checks::Options;
use crate::gpu::cublas::{Arithmetic, Operands};
use crate::gpu::device::Device;
use crate::reference::{Format, Generator, Shape, freivalds};
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::GemmLarge.checks();

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    match each_kind(options) {
        Ok(devices) => say(on_all(CheckId::GemmLarge, &devices, |device| check(options, device))),
        Err(failure) => all_alike(IDS, &failure, say),
    }
}

fn check(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    needs(device, (5, 3))?;
    let arithmetic = if device.facts.capability >= (8, 0) { Arithmetic::Bf16 } else { Arithmetic::Fp16 };
    let (format, _) = arithmetic.formats();
    let blas = blas(options)?;
    let (free, _) = device.memory()?;
    let shape = Shape::cube(size(free));
    let mut generator = Generator::new(4);
    let mut matrix = || -> Vec<i8> { (0..shape.m * shape.k).map(|_| generator.small(8)).collect() };
    let (a, b) = (matrix(), matrix());
    let left = device.holding(&stored(format, &a))?;
    let right = device.holding(&stored(format, &b))?;
    let result = device.buffer(shape.m * shape.n * 4)?;
    blas.multiply(arithmetic, shape, &Operands { a: &left, b: &right, c: &result })?;
    device.synchronize()?;
    let bytes = result.download()?;
    let c: Vec<f32> =
        bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap_or_default())).collect();
    match freivalds(shape, &a, &b, &c, 5) {
        None => Ok(CheckPass::new(format!("{shape} in {arithmetic:?} exact")).with("size", shape.m)),
        Some(mismatch) => {
            Err(CheckFailure::fail(format!("{shape} in {arithmetic:?}, rows times a vector: {mismatch}")))
        }
    }
}

/// The largest size whose three matrices take at most half of what is free.
fn size(free: usize) -> usize {
    [8192, 4096, 2048].into_iter().find(|size| 8 * size * size <= free / 2).unwrap_or(1024)
}

/// Whole numbers from -8 to 8 in a format of two bytes, by a table of the seventeen.
fn stored(format: Format, numbers: &[i8]) -> Vec<u8> {
    let table: Vec<[u8; 2]> = (-8..=8)
        .map(|number: i8| {
            let bytes = format.bytes(&[f64::from(number)]);
            [bytes[0], bytes[1]]
        })
        .collect();
    numbers.iter().flat_map(|number| table[usize::try_from(number + 8).unwrap_or(0)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stores_what_the_format_does() {
        let all: Vec<i8> = (-8..=8).collect();
        let wide: Vec<f64> = all.iter().map(|number| f64::from(*number)).collect();
        for format in [Format::Bf16, Format::Fp16] {
            assert_eq!(stored(format, &all), format.bytes(&wide));
        }
        assert_eq!([size(8 << 30), size(512 << 20), size(1)], [8192, 4096, 1024]);
    }
}
