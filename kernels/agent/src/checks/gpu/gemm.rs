//! Proves that products of matrices are right, by this program's kernels and by cuBLAS: whole numbers bit for bit in any
//! order of summation, then random numbers within the precision's bound, against the processor in double precision.

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::{CheckFailure, CheckPass, all_alike, builtin_kernels, each_kind, library, on_all};
use crate::checks::Options;
use crate::gpu::cublas::{Arithmetic, Cublas, CublasLt, Operands};
use crate::gpu::device::{Argument, Device, Kernel};
use crate::gpu::status::{GpuLibraryError, OpenError};
use crate::reference::{Generator, Shape, differences, frobenius, product};
use crate::report::Report;

const OWN_IDS: &[CheckId] = CheckGroup::GemmOwn.checks();
const CUBLAS_IDS: &[CheckId] = CheckGroup::GemmCublas.checks();

/// Three different sizes, so that no mix-up of rows and columns passes; multiples of 16, as tensor cores want them.
const SHAPE: Shape = Shape { m: 384, n: 256, k: 512 };

/// The lowest compute capability that has the arithmetic in hardware, by CUDA's programming guide.
pub(crate) fn lowest(arithmetic: Arithmetic) -> (u32, u32) {
    match arithmetic {
        Arithmetic::Fp64 | Arithmetic::Fp32 => (0, 0),
        Arithmetic::Fp16 => (5, 3),
        Arithmetic::Int8 => (6, 1),
        Arithmetic::Tf32 | Arithmetic::Bf16 => (8, 0),
        Arithmetic::Fp8 => (8, 9),
    }
}

/// The bound on the relative Frobenius error with random inputs; `None`: exact or wrong. fp32, tf32, fp16 and bf16 are
/// some ten times what was measured on GPUs, and apart from each other. fp64: k times half a unit of the last
/// place. fp8: its inputs are rounded before, and the sums are as coarse as bf16's at worst.
fn bound(arithmetic: Arithmetic) -> Option<f64> {
    match arithmetic {
        Arithmetic::Fp64 => Some(1e-13),
        Arithmetic::Fp32 => Some(1e-5),
        Arithmetic::Tf32 | Arithmetic::Fp16 => Some(1e-3),
        Arithmetic::Bf16 | Arithmetic::Fp8 => Some(8e-3),
        Arithmetic::Int8 => None,
    }
}

/// Matrices and their product.
struct Case {
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Case {
    fn new(shape: Shape, a: Vec<f64>, b: Vec<f64>) -> Self {
        let c = product(shape, &a, &b);
        Self { a, b, c }
    }
}

/// What all precisions are given.
struct Inputs {
    whole: Case,
    random: Case,
}

impl Inputs {
    fn new(shape: Shape) -> Self {
        let mut generator = Generator::new(2);
        let (left, right) = (shape.m * shape.k, shape.k * shape.n);
        let whole = Case::new(shape, generator.integers(left, 8), generator.integers(right, 8));
        let random = Case::new(shape, generator.uniform(left), generator.uniform(right));
        Self { whole, random }
    }
}

/// What fp8 is given, which sums in fewer bits: its whole numbers are smaller, and no sum passes 2^13.
fn small_numbers(shape: Shape) -> Case {
    let mut generator = Generator::new(3);
    Case::new(shape, generator.integers(shape.m * shape.k, 4), generator.integers(shape.k * shape.n, 4))
}

type Multiply<'a> = &'a dyn Fn(Shape, &Operands<'_>) -> Result<(), GpuLibraryError>;

/// One precision by one way of multiplying.
fn check(
    device: &Device,
    arithmetic: Arithmetic,
    inputs: &Inputs,
    multiply: Multiply<'_>,
) -> Result<CheckPass, CheckFailure> {
    let (input, output) = arithmetic.formats();
    let computed = |case: &Case| -> Result<Vec<f64>, CheckFailure> {
        let b = if arithmetic.transposed() { transposed(&case.b, SHAPE.k, SHAPE.n) } else { case.b.clone() };
        let a = device.holding(&input.bytes(&case.a))?;
        let b = device.holding(&input.bytes(&b))?;
        let c = device.buffer(SHAPE.m * SHAPE.n * output.size())?;
        multiply(SHAPE, &Operands { a: &a, b: &b, c: &c }).map_err(|fault| refused(fault, arithmetic))?;
        device.synchronize()?;
        Ok(output.numbers(&c.download()?))
    };
    let small = (arithmetic == Arithmetic::Fp8).then(|| small_numbers(SHAPE));
    let whole = small.as_ref().unwrap_or(&inputs.whole);
    exact(&whole.c, &computed(whole)?)?;
    let Some(bound) = bound(arithmetic) else {
        return Ok(CheckPass::new(format!("{SHAPE} exact")));
    };
    let error = if arithmetic == Arithmetic::Fp8 {
        let rounded = Case::new(SHAPE, input.rounded(&inputs.random.a), input.rounded(&inputs.random.b));
        frobenius(&rounded.c, &computed(&rounded)?)
    } else {
        frobenius(&inputs.random.c, &computed(&inputs.random)?)
    };
    within(error, bound)
}

/// A precision that this cuBLAS does not offer on this GPU is no fault; the others are offered everywhere.
fn refused(fault: GpuLibraryError, arithmetic: Arithmetic) -> CheckFailure {
    const NOT_SUPPORTED: i32 = 15;
    if fault.code == NOT_SUPPORTED && matches!(arithmetic, Arithmetic::Fp8 | Arithmetic::Int8) {
        return CheckFailure::skip(SkipReason::NotOffered, fault.to_string());
    }
    fault.into()
}

/// Whole numbers have one answer.
fn exact(wanted: &[f64], found: &[f64]) -> Result<(), CheckFailure> {
    match differences(wanted, found) {
        None => Ok(()),
        Some(mismatch) => Err(CheckFailure::fail(format!("{SHAPE} of whole numbers: {mismatch}"))
            .hint("try another driver, then another GPU: the GPU computes wrong results, or the library lacks correct code for it")),
    }
}

fn within(error: f64, bound: f64) -> Result<CheckPass, CheckFailure> {
    if error <= bound {
        return Ok(CheckPass::new(format!("{SHAPE} exact, random within {error:.1e} of {bound:.0e}"))
            .with("error", format!("{error:.3e}"))
            .with("bound", format!("{bound:e}")));
    }
    Err(CheckFailure::fail(format!(
        "{SHAPE} of random numbers: relative error {error:.1e}, bound {bound:.0e}"
    ))
    .hint("check for NVIDIA_TF32_OVERRIDE in the environment: the precision was lower than requested"))
}

fn transposed(matrix: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| matrix[row * columns + column])).collect()
}

/// Refuses what the GPU does not have.
pub(crate) fn needs(device: &Device, (major, minor): (u32, u32)) -> Result<(), CheckFailure> {
    if device.facts.capability >= (major, minor) {
        return Ok(());
    }
    Err(CheckFailure::skip(
        SkipReason::ComputeCapability,
        format!("requires compute capability {major}.{minor}"),
    ))
}

pub(crate) fn run_own(options: &Options, say: &mut dyn FnMut(Report)) {
    let devices = match each_kind(options) {
        Ok(devices) => devices,
        Err(failure) => return all_alike(OWN_IDS, &failure, say),
    };
    let inputs = Inputs::new(SHAPE);
    let kinds = [
        (Arithmetic::Fp32, "gemm_f32", "gemm_f32", (0, 0)),
        (Arithmetic::Tf32, "gemm_wmma", "gemm_wmma_tf32", (8, 0)),
        (Arithmetic::Fp16, "gemm_wmma", "gemm_wmma_f16", (7, 0)),
        (Arithmetic::Bf16, "gemm_wmma", "gemm_wmma_bf16", (8, 0)),
    ];
    for (id, (arithmetic, source, entry, lowest)) in OWN_IDS.iter().zip(kinds) {
        say(on_all(*id, &devices, |device| {
            needs(device, lowest)?;
            let code = builtin_kernels::code(options, device, source)?;
            let kernel = device.kernel(&code.bytes, entry)?;
            let multiply =
                |shape: Shape, operands: &Operands<'_>| own_product(&kernel, entry, shape, operands);
            Ok(check(device, arithmetic, &inputs, &multiply)?.with("target", code.target))
        }));
    }
}

/// One launch, as the heads of the sources say.
pub(crate) fn own_product(
    kernel: &Kernel,
    entry: &str,
    shape: Shape,
    operands: &Operands<'_>,
) -> Result<(), GpuLibraryError> {
    let (tile, block) = if entry == "gemm_f32" { (64, [16, 16, 1]) } else { (32, [128, 1, 1]) };
    let int = |size: usize| Argument::Int(i32::try_from(size).unwrap_or(i32::MAX));
    let pointers = [operands.a, operands.b, operands.c].map(|buffer| Argument::Pointer(buffer.address));
    let arguments = [pointers[0], pointers[1], pointers[2], int(shape.m), int(shape.n), int(shape.k)];
    kernel.launch([shape.n.div_ceil(tile), shape.m.div_ceil(tile), 1], block, &arguments)
}

pub(crate) fn run_cublas(options: &Options, say: &mut dyn FnMut(Report)) {
    let devices = match each_kind(options) {
        Ok(devices) => devices,
        Err(failure) => return all_alike(CUBLAS_IDS, &failure, say),
    };
    let inputs = Inputs::new(SHAPE);
    let kinds = [
        Arithmetic::Fp64,
        Arithmetic::Fp32,
        Arithmetic::Tf32,
        Arithmetic::Fp16,
        Arithmetic::Bf16,
        Arithmetic::Int8,
        Arithmetic::Fp8,
    ];
    for (id, arithmetic) in CUBLAS_IDS.iter().zip(kinds) {
        say(on_all(*id, &devices, |device| {
            needs(device, lowest(arithmetic))?;
            let blas = blas(options)?;
            let good = if arithmetic == Arithmetic::Fp8 {
                let lt = lt(options, device)?;
                let multiply =
                    |shape: Shape, operands: &Operands<'_>| lt.multiply(arithmetic, shape, operands);
                check(device, arithmetic, &inputs, &multiply)
                    .map_err(|failure| old_fp8(failure, device, &blas))?
            } else {
                let multiply =
                    |shape: Shape, operands: &Operands<'_>| blas.multiply(arithmetic, shape, operands);
                check(device, arithmetic, &inputs, &multiply)?
            };
            Ok(good.with("cublas", blas.version()))
        }));
    }
}

/// cuBLAS before 12.1 has fp8 for Hopper alone.
fn old_fp8(failure: CheckFailure, device: &Device, blas: &Cublas) -> CheckFailure {
    let old = blas.version() < 120_100;
    if old && device.facts.capability == (8, 9) {
        return CheckFailure::skip(
            SkipReason::ComputeCapability,
            "this cuBLAS supports fp8 on compute capability 9.0 only",
        );
    }
    failure
}

/// cuBLAS on the current GPU.
pub(crate) fn blas(options: &Options) -> Result<Cublas, CheckFailure> {
    let path = library(options, "cublas", &["cublasLt"])?;
    Cublas::open(&path).map_err(|problem| opened(&path, problem))
}

/// cuBLASLt on a GPU.
pub(crate) fn lt(options: &Options, device: &Device) -> Result<CublasLt, CheckFailure> {
    let path = library(options, "cublasLt", &[])?;
    CublasLt::open(&path, device).map_err(|problem| opened(&path, problem))
}

/// A library that is there and does not start.
pub(crate) fn opened(path: &std::path::Path, error: OpenError) -> CheckFailure {
    const REINSTALL: &str =
        "reinstall the library: it is damaged, from another CUDA, or newer than the driver";
    match error {
        OpenError::Load(problem) => {
            CheckFailure::fail(format!("{}: {problem}", path.display())).hint(REINSTALL)
        }
        OpenError::Call(fault) => {
            let failure = CheckFailure::from(fault);
            let detail = format!("{}: {}", path.display(), failure.detail);
            CheckFailure { detail, hint: failure.hint.or(Some(REINSTALL.to_owned())), ..failure }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::reference::Format;
    use envforge_protocol::Outcome;

    use super::*;

    /// As deep as the real ones, since errors grow with the depth alone.
    const SMALL: Shape = Shape { m: 24, n: 16, ..SHAPE };

    #[test]
    fn a_wrong_result_in_the_compare_path_fails() {
        let inputs = Inputs::new(SMALL);
        assert!(exact(&inputs.whole.c, &inputs.whole.c).is_ok());
        for at in [0, 1, SMALL.n, SMALL.m * SMALL.n - 1] {
            let mut wrong = inputs.whole.c.clone();
            wrong[at] += 1.0;
            assert_eq!(exact(&inputs.whole.c, &wrong).expect_err("wrong").outcome, Outcome::Failed);
        }
        // What a driver leaves that computes nothing: the fill of every buffer, or zeros.
        for nothing in [0xff, 0x00] {
            let untouched = Format::Fp32.numbers(&vec![nothing; 4 * inputs.whole.c.len()]);
            assert!(exact(&inputs.whole.c, &untouched).is_err());
            assert!(within(frobenius(&inputs.random.c, &untouched), 8e-3).is_err());
        }
        let swapped = transposed(&inputs.whole.c, SMALL.m, SMALL.n);
        assert!(exact(&inputs.whole.c, &swapped).is_err());
    }

    /// The processor as a chip of each precision: inputs rounded, sums in fp64.
    #[test]
    fn each_bound_admits_its_precision_and_refuses_the_next_coarser() {
        let inputs = Inputs::new(SMALL);
        let error = |format: Format| {
            let c = product(SMALL, &format.rounded(&inputs.random.a), &format.rounded(&inputs.random.b));
            frobenius(&inputs.random.c, &Format::Fp32.rounded(&c))
        };
        let steps = [
            (Arithmetic::Fp32, Format::Fp32, Format::Tf32),
            (Arithmetic::Tf32, Format::Tf32, Format::Bf16),
            (Arithmetic::Fp16, Format::Fp16, Format::Bf16),
            (Arithmetic::Bf16, Format::Bf16, Format::E4m3),
        ];
        for (arithmetic, own, coarser) in steps {
            let bound = bound(arithmetic).expect("a bound");
            assert!(error(own) < bound / 2.0, "{arithmetic:?}: {}", error(own));
            assert!(error(coarser) > bound, "{arithmetic:?}: {}", error(coarser));
        }
    }

    #[test]
    fn no_sum_leaves_the_range_in_which_it_is_exact() {
        let inputs = Inputs::new(SMALL);
        let largest = |case: &Case| case.c.iter().fold(0.0f64, |most, value| most.max(value.abs()));
        let small = small_numbers(SMALL);
        assert!(largest(&inputs.whole) < 16_777_216.0 && largest(&small) < 8192.0);
        assert_eq!(Format::E4m3.rounded(&small.a), small.a);
    }
}
