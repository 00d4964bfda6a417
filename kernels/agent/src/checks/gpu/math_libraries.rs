//! Proves the further libraries of CUDA, one small problem with a known answer each: cuFFT, cuSOLVER, cuSPARSE and cuRAND.

use std::path::{Path, PathBuf};

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::gemm::opened;
use super::{CheckFailure, CheckPass, all_alike, each_kind, on_all};
use crate::checks::Options;
use crate::dlopen;
use crate::gpu::cufft::{Cufft, Direction};
use crate::gpu::curand::{Curand, Source};
use crate::gpu::cusolver::Cusolver;
use crate::gpu::cusparse::{Cusparse, Rows};
use crate::gpu::device::Device;
use crate::libraries::SearchPaths;
use crate::reference::{Format, Generator, differences, frobenius};
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::MathLibraries.checks();

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let devices = match each_kind(options) {
        Ok(devices) => devices,
        Err(failure) => return all_alike(IDS, &failure, say),
    };
    for (id, check) in IDS.iter().zip([fourier, solver, sparse, random]) {
        say(on_all(*id, &devices, |device| check(options, device)));
    }
}

/// A library of the image, with those that it calls loaded before. Missing is a reason to skip.
fn found(options: &Options, name: &str, before: &[&str]) -> Result<PathBuf, CheckFailure> {
    let places = SearchPaths::of(&options.root);
    let path = places.other(name).ok_or_else(|| {
        CheckFailure::skip(SkipReason::NotInImage, format!("lib{name} is not in the image"))
    })?;
    for other in before.iter().filter_map(|other| places.other(other)) {
        dlopen::Library::open(&other)
            .map_err(|problem| CheckFailure::fail(format!("{}: {problem}", other.display())))?;
    }
    Ok(path)
}

/// Opens a library by its path, with the fix for one that does not start.
fn open<T>(
    path: &Path,
    open: impl FnOnce(&Path) -> Result<T, crate::gpu::status::OpenError>,
) -> Result<T, CheckFailure> {
    open(path).map_err(|problem| opened(path, problem))
}

fn compared(what: &str, wanted: &[f64], found: &[f64]) -> Result<(), CheckFailure> {
    differences(wanted, found)
        .map_or(Ok(()), |mismatch| Err(CheckFailure::fail(format!("{what}: {mismatch}"))))
}

fn within(what: &str, wanted: &[f64], found: &[f64], bound: f64) -> Result<f64, CheckFailure> {
    let error = frobenius(wanted, found);
    if error <= bound {
        return Ok(error);
    }
    Err(CheckFailure::fail(format!("{what}: relative error {error:.1e}, bound {bound:.0e}")))
}

/// Real and imaginary parts in turn: the transform of such numbers by its definition.
#[expect(clippy::cast_precision_loss, reason = "small counts")]
fn transformed(numbers: &[f64]) -> Vec<f64> {
    let size = numbers.len() / 2;
    let roots: Vec<(f64, f64)> =
        (0..size).map(|at| (-std::f64::consts::TAU * at as f64 / size as f64).sin_cos()).collect();
    let element = |k: usize| {
        let mut sum = [0.0; 2];
        for (at, number) in numbers.chunks_exact(2).enumerate() {
            let (sine, cosine) = roots[at * k % size];
            sum[0] += number[0] * cosine - number[1] * sine;
            sum[1] += number[0] * sine + number[1] * cosine;
        }
        sum
    };
    (0..size).flat_map(element).collect()
}

/// The transform of a single number is that number everywhere, exactly; random numbers against the definition, there and back.
fn fourier(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    const EXACT: usize = 1024;
    const SIZE: usize = 360;
    let cufft = open(&found(options, "cufft", &["nvJitLink"])?, Cufft::open)?;
    let run = |numbers: &[f64], double: bool, direction| -> Result<Vec<f64>, CheckFailure> {
        let format = if double { Format::Fp64 } else { Format::Fp32 };
        let from = device.holding(&format.bytes(numbers))?;
        let to = device.buffer(from.bytes)?;
        cufft.transform((numbers.len() / 2, double), direction, [&from, &to])?;
        device.synchronize()?;
        Ok(format.numbers(&to.download()?))
    };
    let mut single = vec![0.0; 2 * EXACT];
    single[0] = 3.0;
    let wanted = [3.0, 0.0].repeat(EXACT);
    compared("the transform of a single number", &wanted, &run(&single, false, Direction::Forward)?)?;
    let numbers = Generator::new(60).uniform(2 * SIZE);
    let wanted = transformed(&numbers);
    let mut worst = 0.0f64;
    for (double, bound) in [(false, 1e-6), (true, 1e-13)] {
        let input = if double { numbers.clone() } else { Format::Fp32.rounded(&numbers) };
        let there = run(&input, double, Direction::Forward)?;
        let name = if double { "fp64" } else { "fp32" };
        worst = worst.max(within(&format!("{SIZE} numbers in {name}"), &wanted, &there, bound)?);
        let back = run(&there, double, Direction::Inverse)?;
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let scaled: Vec<f64> = input.iter().map(|number| number * SIZE as f64).collect();
        within(&format!("{SIZE} numbers in {name}, there and back"), &scaled, &back, bound)?;
    }
    Ok(CheckPass::new(format!("{EXACT} exact, {SIZE} there and back within {worst:.1e}"))
        .with("cufft", cufft.version()?))
}

/// A matrix M·Mᵀ + n of whole numbers, a solution of whole numbers, and one matrix that has no factor.
fn solver(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    const SIZE: usize = 128;
    let path = found(options, "cusolver", &["nvJitLink", "cublasLt", "cublas", "cusparse"])?;
    let cusolver = open(&path, Cusolver::open)?;
    let (matrix, solution, right) = equations(SIZE);
    let factor = device.holding(&Format::Fp64.bytes(&matrix))?;
    let sides = device.holding(&Format::Fp64.bytes(&right))?;
    device.synchronize()?;
    let infos = [cusolver.factor(device, SIZE, &factor)?, cusolver.solve(device, SIZE, [&factor, &sides])?];
    if infos != [0, 0] {
        return Err(CheckFailure::fail(format!("cuSOLVER reports {infos:?} for a good matrix")));
    }
    let error = within("the solution", &solution, &Format::Fp64.numbers(&sides.download()?), 1e-12)?;
    let mut bad = matrix;
    bad[2 * SIZE + 2] = -1.0;
    let row = cusolver.factor(device, SIZE, &device.holding(&Format::Fp64.bytes(&bad))?)?;
    if row != 3 {
        return Err(CheckFailure::fail(format!(
            "a matrix that is not positive definite at row 3 is reported at row {row}"
        )));
    }
    Ok(CheckPass::new(format!("{SIZE} equations within {error:.1e}")).with("cusolver", cusolver.version()?))
}

/// A symmetric matrix, a solution and the right side, all of whole numbers.
#[expect(clippy::cast_precision_loss, reason = "a small count")]
fn equations(size: usize) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
    let mut generator = Generator::new(61);
    let half = generator.integers(size * size, 2);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let row = |at: usize| &half[at * size..(at + 1) * size];
    let mut matrix = Vec::with_capacity(size * size);
    for i in 0..size {
        matrix.extend((0..size).map(|j| dot(row(i), row(j)) + if i == j { size as f64 } else { 0.0 }));
    }
    let solution = generator.integers(size, 8);
    let right = (0..size).map(|at| dot(&matrix[at * size..(at + 1) * size], &solution)).collect();
    (matrix, solution, right)
}

/// Whole numbers at one place of twenty: each sum is exact in any order.
fn sparse(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    const SHAPE: [usize; 2] = [512, 384];
    let cusparse = open(&found(options, "cusparse", &["nvJitLink"])?, Cusparse::open)?;
    let mut generator = Generator::new(62);
    let x = generator.integers(SHAPE[1], 8);
    let (mut begins, mut columns, mut elements) = (vec![0u32], Vec::new(), Vec::new());
    let mut wanted = Vec::new();
    for _ in 0..SHAPE[0] {
        let mut sum = 0.0;
        for (column, other) in x.iter().enumerate() {
            if generator.next().is_multiple_of(20) {
                let element = f64::from(1 + generator.small(7).unsigned_abs());
                sum += element * other;
                columns.push(u32::try_from(column).unwrap_or(0));
                elements.push(element);
            }
        }
        wanted.push(sum);
        begins.push(u32::try_from(columns.len()).unwrap_or(0));
    }
    let words = |all: &[u32]| all.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let buffers = [
        device.holding(&words(&begins))?,
        device.holding(&words(&columns))?,
        device.holding(&Format::Fp32.bytes(&elements))?,
    ];
    let (source, target) = (device.holding(&Format::Fp32.bytes(&x))?, device.buffer(4 * SHAPE[0])?);
    let rows = Rows { shape: SHAPE, elements: elements.len(), buffers: buffers.each_ref() };
    cusparse.multiply(device, &rows, [&source, &target])?;
    compared("a sparse matrix times a vector", &wanted, &Format::Fp32.numbers(&target.download()?))?;
    Ok(CheckPass::new(format!("{} elements of {}x{} exact", elements.len(), SHAPE[0], SHAPE[1]))
        .with("cusparse", cusparse.version()?))
}

/// The first numbers of Sobol's sequence are known; Philox repeats with its seed, and its mean is a half.
fn random(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    const COUNT: usize = 1 << 12;
    const UNIFORM: usize = 1 << 18;
    let curand = open(&found(options, "curand", &[])?, Curand::open)?;
    let fill = |source, is_uniform, count: usize| -> Result<Vec<u8>, CheckFailure> {
        let buffer = device.buffer(4 * count)?;
        curand.fill(source, is_uniform, &buffer)?;
        device.synchronize()?;
        Ok(buffer.download()?)
    };
    let bytes = fill(Source::Sobol, false, COUNT)?;
    let mut words: Vec<u32> =
        bytes.chunks_exact(4).map(|four| u32::from_le_bytes(four.try_into().unwrap_or_default())).collect();
    words.sort_unstable();
    // In whatever order: of the first 2^12 points each multiple of 2^20 is one.
    if let Some(at) = words.iter().enumerate().position(|(at, word)| *word as usize != at << 20) {
        let text = format!("Sobol's first {COUNT} numbers: {:#x} instead of {:#x}", words[at], at << 20);
        return Err(CheckFailure::fail(text));
    }
    let first = fill(Source::Philox(42), true, UNIFORM)?;
    if first != fill(Source::Philox(42), true, UNIFORM)? {
        return Err(CheckFailure::fail("Philox gives other numbers for the same seed"));
    }
    if first == fill(Source::Philox(43), true, UNIFORM)? {
        return Err(CheckFailure::fail("Philox gives the same numbers for another seed"));
    }
    let numbers = Format::Fp32.numbers(&first);
    #[expect(clippy::cast_precision_loss, reason = "2^18 fits")]
    let mean = numbers.iter().sum::<f64>() / UNIFORM as f64;
    // The mean of so many numbers is off by 0.0006 in the usual case.
    if !numbers.iter().all(|number| (0.0..=1.0).contains(number)) || (mean - 0.5).abs() > 0.005 {
        return Err(CheckFailure::fail(format!("the mean of numbers from 0 to 1 is {mean:.4}")));
    }
    Ok(CheckPass::new(format!("Sobol's first {COUNT} numbers exact, Philox repeats, mean {mean:.4}"))
        .with("curand", curand.version()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transform_is_that_of_the_definition() {
        let mut single = vec![0.0; 16];
        single[0] = 3.0;
        assert_eq!(transformed(&single), [3.0, 0.0].repeat(8));
        // One turn of cosine and sine: all of it in one place.
        let turn: Vec<f64> = (0..8)
            .flat_map(|at| {
                let (sine, cosine) = (std::f64::consts::TAU * f64::from(at) / 8.0).sin_cos();
                [cosine, sine]
            })
            .collect();
        let mut wanted = vec![0.0; 16];
        wanted[2] = 8.0;
        assert!(frobenius(&wanted, &transformed(&turn)) < 1e-15);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "sums of small whole numbers are exact")]
    fn equations_have_the_known_solution_and_a_good_matrix() {
        let (matrix, solution, right) = equations(8);
        for (at, sum) in right.iter().enumerate() {
            let row = &matrix[8 * at..8 * at + 8];
            assert_eq!(*sum, row.iter().zip(&solution).map(|(a, x)| a * x).sum::<f64>());
            assert!(row[at] >= 8.0 && (0..8).all(|other| row[other] == matrix[8 * other + at]));
        }
    }
}
