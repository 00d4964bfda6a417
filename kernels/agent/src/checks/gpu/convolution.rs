//! Proves that convolutions are right: by this program's two kernels, and by cuDNN forward and backward with an
//! algorithm whose sums are exact. Whole numbers, bit for bit, against the processor.

use envforge_protocol::{CheckGroup, CheckId};

use super::gemm::opened;
use super::{CheckFailure, CheckPass, all_alike, builtin_kernels, each_kind, library, on_all};
use crate::checks::Options;
use crate::gpu::cudnn::{Cudnn, Described, Math, Pass, is_refused};
use crate::gpu::device::{Argument, Buffer, Device};
use crate::reference::{Convolution, Format, Generator, Layout, differences, elements, frobenius};
use crate::report::Report;

const OWN_IDS: &[CheckId] = CheckGroup::ConvOwn.checks();
const CUDNN_IDS: &[CheckId] = CheckGroup::ConvCudnn.checks();

const PLAIN: Convolution = Convolution {
    images: 2,
    channels: 16,
    size: [14, 12],
    filters: 32,
    filter: [3, 3],
    pad: [1, 1],
    ..Convolution::ONE
};

/// The shapes: each adds one property to the plain one, the last has all.
fn cases() -> [(&'static str, Convolution); 6] {
    [
        ("plain", PLAIN),
        ("1x1", Convolution { filter: [1, 1], pad: [0, 0], ..PLAIN }),
        ("groups", Convolution { groups: 4, ..PLAIN }),
        ("stride", Convolution { stride: [2, 1], pad: [1, 0], ..PLAIN }),
        ("dilation", Convolution { dilation: [2, 2], pad: [2, 2], ..PLAIN }),
        (
            "groups, stride and dilation",
            Convolution { groups: 2, stride: [2, 2], dilation: [1, 2], pad: [0, 2], ..PLAIN },
        ),
    ]
}

/// Images, filters and what the definition makes of them; the numbers are small enough for fp16 sums to be exact.
struct Data {
    x: Vec<f64>,
    w: Vec<f64>,
    dy: Vec<f64>,
}

impl Data {
    fn whole(conv: &Convolution, limit: u8) -> Self {
        let mut generator = Generator::new(9);
        let mut draw = |sizes| generator.integers(elements(sizes), limit);
        Self { x: draw(conv.x()), w: draw(conv.w()), dy: draw(conv.y()) }
    }

    fn random(conv: &Convolution) -> Self {
        let mut generator = Generator::new(10);
        let mut draw = |sizes| generator.uniform(elements(sizes));
        Self { x: draw(conv.x()), w: draw(conv.w()), dy: draw(conv.y()) }
    }

    fn answer(&self, conv: &Convolution, pass: Pass) -> Vec<f64> {
        match pass {
            Pass::Forward => conv.forward(&self.x, &self.w),
            Pass::Data => conv.backward_data(&self.dy, &self.w),
            Pass::Filter => conv.backward_filter(&self.dy, &self.x),
        }
    }
}

fn compared(what: &str, wanted: &[f64], found: &[f64]) -> Result<(), CheckFailure> {
    match differences(wanted, found) {
        None => Ok(()),
        Some(mismatch) => Err(CheckFailure::fail(format!("{what}: {mismatch}"))),
    }
}

pub(crate) fn run_own(options: &Options, say: &mut dyn FnMut(Report)) {
    match each_kind(options) {
        Ok(devices) => say(on_all(CheckId::ConvOwn, &devices, |device| own_kernels(options, device))),
        Err(failure) => all_alike(OWN_IDS, &failure, say),
    }
}

fn own_kernels(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    let mut target = String::new();
    for name in ["conv_direct", "conv_implicit"] {
        let code = builtin_kernels::code(options, device, name)?;
        let kernel = device.kernel(&code.bytes, name)?;
        target = code.target;
        for (case, conv) in cases() {
            let data = Data::whole(&conv, 8);
            let x = device.holding(&Format::Fp32.bytes(&data.x))?;
            let w = device.holding(&Format::Fp32.bytes(&data.w))?;
            let y = device.buffer(4 * elements(conv.y()))?;
            let (grid, block) = launch(name, &conv);
            kernel.launch(grid, block, &arguments(&conv, [&x, &w, &y]))?;
            device.synchronize()?;
            let found = Format::Fp32.numbers(&y.download()?);
            compared(&format!("{name}, {case}"), &data.answer(&conv, Pass::Forward), &found)?;
        }
    }
    Ok(CheckPass::new(format!("two kernels, {} shapes, exact", cases().len())).with("target", target))
}

/// Returns grid and block, as the heads of the sources define them.
fn launch(name: &str, conv: &Convolution) -> ([usize; 3], [u32; 3]) {
    let [images, _, rows, columns] = conv.y();
    if name == "conv_direct" {
        return ([elements(conv.y()).div_ceil(256), 1, 1], [256, 1, 1]);
    }
    let outputs = images * rows * columns;
    ([outputs.div_ceil(16), (conv.filters / conv.groups).div_ceil(16), conv.groups], [16, 16, 1])
}

fn arguments(conv: &Convolution, buffers: [&Buffer; 3]) -> Vec<Argument> {
    let pointers = buffers.map(|buffer| Argument::Pointer(buffer.address));
    let [n, c, h, w] = conv.x();
    let sizes = [n, c, h, w, conv.filters, conv.filter[0], conv.filter[1], conv.groups];
    let pairs = [conv.stride, conv.pad, conv.dilation].concat();
    let ints = sizes.into_iter().chain(pairs);
    pointers
        .into_iter()
        .chain(ints.map(|size| Argument::Int(i32::try_from(size).unwrap_or(i32::MAX))))
        .collect()
}

pub(crate) fn run_cudnn(options: &Options, say: &mut dyn FnMut(Report)) {
    let devices = match each_kind(options) {
        Ok(devices) => devices,
        Err(failure) => return all_alike(CUDNN_IDS, &failure, say),
    };
    for (id, pass) in CUDNN_IDS.iter().zip([Pass::Forward, Pass::Data, Pass::Filter]) {
        say(on_all(*id, &devices, |device| with_cudnn(options, device, pass)));
    }
}

/// cuDNN on the current GPU.
pub(crate) fn cudnn(options: &Options) -> Result<Cudnn, CheckFailure> {
    let path = library(options, "cudnn", &["cublasLt", "cublas", "nvrtc"])?;
    Cudnn::open(&path).map_err(|problem| opened(&path, problem))
}

/// fp32 NCHW, and fp16 NHWC on tensor cores, each by an exact algorithm; then fp32 random within its bound.
fn with_cudnn(options: &Options, device: &Device, pass: Pass) -> Result<CheckPass, CheckFailure> {
    let cudnn = cudnn(options)?;
    let tensor = device.facts.capability >= (7, 0);
    let mut computed = Vec::new();
    let mut refused = Vec::new();
    for (case, nchw) in cases() {
        let nhwc = Convolution { layout: Layout::Nhwc, ..nchw };
        let mut kinds = vec![(nchw, Format::Fp32, Math::Plain, 8), (nhwc, Format::Fp32, Math::Plain, 8)];
        if tensor {
            kinds.push((nhwc, Format::Fp16, Math::Tensor, 2));
            kinds.push((nchw, Format::Fp16, Math::Tensor, 2));
        }
        for (conv, format, math, limit) in kinds {
            let what = format!("{case}, {} {format:?}", conv.layout.word());
            let data = Data::whole(&conv, limit);
            match one(&cudnn, device, (&conv, format, math), pass, &data)? {
                Some((found, algorithm)) => {
                    compared(&format!("{what}, {algorithm}"), &data.answer(&conv, pass), &found)?;
                    computed.push((what, algorithm));
                }
                None => refused.push(what),
            }
        }
    }
    // What every cuDNN offers: without it nothing was proven. Channels last needs tensor cores in some versions.
    for due in [Layout::Nchw, Layout::Nhwc].iter().take(1 + usize::from(tensor)).map(|layout| layout.word()) {
        if !computed.iter().any(|(what, _)| what.starts_with(&format!("plain, {due}"))) {
            return Err(CheckFailure::fail(format!(
                "cuDNN offers no exact algorithm for the plain {due} convolution"
            )));
        }
    }
    let data = Data::random(&PLAIN);
    let error = match one(&cudnn, device, (&PLAIN, Format::Fp32, Math::Plain), pass, &data)? {
        Some((found, _)) => frobenius(&data.answer(&PLAIN, pass), &found),
        None => return Err(CheckFailure::fail("cuDNN computed a shape once and then rejected it")),
    };
    if error > 1e-5 {
        return Err(CheckFailure::fail(format!("random numbers: relative error {error:.1e}, bound 1e-5"))
            .hint(
                "check for NVIDIA_TF32_OVERRIDE in the environment: the precision was lower than requested",
            ));
    }
    let names: std::collections::BTreeSet<_> = computed.iter().map(|(_, algorithm)| *algorithm).collect();
    let names = names.into_iter().collect::<Vec<_>>().join(", ");
    let mut detail = format!("{} shapes exact by {names}, random within {error:.1e}", computed.len());
    if !refused.is_empty() {
        detail.push_str(&format!("; not offered: {}", refused.join("; ")));
    }
    Ok(CheckPass::new(detail).with("cudnn", cudnn.version()).with("shapes", computed.len()))
}

/// What cuDNN computes and by which algorithm; `None` if it offers no exact one for that.
fn one(
    cudnn: &Cudnn,
    device: &Device,
    (conv, format, math): (&Convolution, Format, Math),
    pass: Pass,
    data: &Data,
) -> Result<Option<(Vec<f64>, &'static str)>, CheckFailure> {
    let described: Described = cudnn.describe(conv, format, math)?;
    let holding = |sought: bool, values: &[f64]| {
        if sought {
            device.buffer(values.len() * format.size())
        } else {
            device.holding(&format.bytes(values))
        }
    };
    let buffers = [
        holding(pass == Pass::Data, &data.x)?,
        holding(pass == Pass::Filter, &data.w)?,
        holding(pass == Pass::Forward, &data.dy)?,
    ];
    for number in Pass::ALGORITHMS {
        let Some(algorithm) = cudnn.algorithm(device, &described, pass, number)? else { continue };
        let [x, w, y] = &buffers;
        match cudnn.run(&described, pass, &algorithm, [x, w, y]) {
            Ok(()) => {}
            Err(fault) if is_refused(&fault) => continue,
            Err(fault) => return Err(fault.into()),
        }
        device.synchronize()?;
        let sought = match pass {
            Pass::Forward => y,
            Pass::Data => x,
            Pass::Filter => w,
        };
        return Ok(Some((format.numbers(&sought.download()?), pass.algorithm(number))));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sum_is_exact_in_the_format_it_ends_in() {
        for (case, conv) in cases() {
            for (limit, most) in [(8, 16_777_216.0), (2, 2048.0)] {
                let data = Data::whole(&conv, limit);
                for pass in [Pass::Forward, Pass::Data, Pass::Filter] {
                    let largest = data.answer(&conv, pass).iter().fold(0.0f64, |most, v| most.max(v.abs()));
                    assert!(largest > 0.0 && largest <= most, "{case} {pass:?}: {largest}");
                }
            }
        }
    }

    #[test]
    fn the_launches_cover_every_output() {
        for (_, conv) in cases() {
            let (grid, block) = launch("conv_direct", &conv);
            assert!(grid[0] * block[0] as usize >= elements(conv.y()));
            let (grid, _) = launch("conv_implicit", &conv);
            assert_eq!(grid[2], conv.groups);
            assert!(
                grid[1] * 16 * conv.groups >= conv.filters
                    && grid[0] * 16 * conv.filters >= elements(conv.y())
            );
            assert_eq!(conv.channels % conv.groups, 0);
            assert_eq!(conv.filters % conv.groups, 0);
        }
    }
}
