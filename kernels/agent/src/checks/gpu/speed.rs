//! The perf stage: how fast products, memory, copies, convolutions and collectives are, compared with this GPU's expected speeds.
//!
//! Speed only warns. A shared, throttled or sliced GPU does not make a broken image: an outcome here is passed or skipped, failed
//! only if nothing could be run at all. Results are not looked at; the stage before did that.

use std::ffi::c_int;

use envforge_protocol::{CheckGroup, CheckId, Expectation, SkipReason, Speed, SpeedSource};

use super::convolution::cudnn;
use super::gemm::{blas, lowest, lt, needs, opened};
use super::speed_verdict::{Due, Tries, verdict};
use super::{CheckFailure, CheckPass, all_alike, at_once, each_kind, library, machine, on_all, open};
use crate::checks::{Group, Options};
use crate::gpu::cublas::{Arithmetic, Operands};
use crate::gpu::cudnn::{Math, Pass};
use crate::gpu::device::{Address, Buffer, Device};
use crate::gpu::health::{Health, Pcie};
use crate::gpu::nccl::{Collective, Nccl};
use crate::gpu::nvml::{Nvml, State};
use crate::gpu::status::GpuLibraryError;
use crate::reference::{Convolution, Format, Generator, Layout, Shape, elements};
use crate::report::Report;

/// The groups of the stage "perf". Bandwidth comes before what heats the chip.
pub(crate) const GROUPS: &[Group] = &[
    group!(SpeedMemory, 60, run_memory),
    group!(SpeedNccl, 90, run_nccl),
    group!(SpeedConv, 60, run_conv),
    group!(SpeedPeers, 180, super::speed_more::run_peers),
    group!(SpeedGemm, 120, run_gemm),
    group!(SpeedSustained, 180, super::speed_more::run_sustained),
];

const MEMORY_IDS: &[CheckId] = CheckGroup::SpeedMemory.checks();
const GEMM_IDS: &[CheckId] = CheckGroup::SpeedGemm.checks();
const CONV_IDS: &[CheckId] = CheckGroup::SpeedConv.checks();

/// Runs before the clock, and tries on it.
const WARM: usize = 3;
const TRIES: usize = 9;
/// Seconds that one try should at least take, by repeating: a launch is not what is measured.
const TRY: f64 = 0.02;

/// Results of several tries, in work per second, and the GPU's state under that load.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rate {
    pub(super) tries: Tries,
    /// Each try, in the order in which they ran.
    pub(super) each: Vec<f64>,
    pub(super) load: Load,
}

/// What NVML says of a GPU under load.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Load {
    pub(super) state: Option<State>,
    pub(super) health: Option<Health>,
}

/// Times a piece of work: `each` is its size, the answer in sizes per second.
pub(super) fn rate<E: From<GpuLibraryError>>(
    device: &Device,
    each: f64,
    work: impl Fn() -> Result<(), E>,
) -> Result<Rate, E> {
    for _ in 0..WARM {
        work()?;
    }
    let once = device.seconds(&work)?;
    let repeats = repeats(once);
    let mut rates = Vec::with_capacity(TRIES);
    for _ in 0..TRIES {
        let seconds = device.seconds(|| (0..repeats).try_for_each(|_| work()))?;
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        rates.push(each * repeats as f64 / seconds.max(f64::MIN_POSITIVE));
    }
    let load = under_load(device, || (0..repeats).try_for_each(|_| work()))?;
    Ok(Rate { tries: Tries::of(&rates), each: rates, load })
}

/// Reads the GPU's clocks and links while it works: after the work an idle GPU has no reason to reduce its clocks, and
/// lowers its link.
pub(super) fn under_load<E: From<GpuLibraryError>>(
    device: &Device,
    load: impl FnOnce() -> Result<(), E>,
) -> Result<Load, E> {
    let nvml = Nvml::open().ok().flatten();
    load()?;
    device.make_current()?;
    let bus = &device.facts.bus;
    let found = nvml.map(|nvml| Load { state: nvml.state(bus), health: nvml.health(bus) });
    device.synchronize()?;
    Ok(found.unwrap_or_default())
}

/// How often a piece of work has to run to fill one try.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 1000")]
pub(super) fn repeats(once: f64) -> usize {
    if once > 0.0 { (TRY / once).ceil().clamp(1.0, 1000.0) as usize } else { 1000 }
}

/// The speeds to compare with: the model's peak, unless it is a slice of a GPU, and what was recorded on this host.
fn due(key: Speed, device: &Device, expected: &Expectation, load: &Load) -> Vec<Due> {
    let link = load.health.as_ref().and_then(|health| health.pcie).and_then(Pcie::bandwidth);
    let linked = load.health.as_ref().and_then(|health| health.nvlinks).is_some_and(|(up, _)| up > 0);
    let row = expected.expected_speed(SpeedSource::Peak, key);
    let peak = match key {
        // What the link can carry, not what the card could in another slot.
        Speed::HostToDevice | Speed::DeviceToHost => link,
        // Without links between the GPUs all goes over PCIe.
        Speed::Bus if !linked => link,
        _ => row,
    };
    // A slice of a GPU has a part of its peak.
    let peak = peak.filter(|_| !device.facts.is_slice());
    let recorded = expected.expected_speed(SpeedSource::Recorded, key);
    let is_limit = key != Speed::Bus;
    let peak = peak.map(|speed| Due { source: SpeedSource::Peak, speed, is_limit });
    let recorded = recorded.map(|speed| Due { source: SpeedSource::Recorded, speed, is_limit: false });
    peak.into_iter().chain(recorded).collect()
}

/// Describes a measurement: median, best and spread, clocks, the comparison with expected speeds, and the verdict.
fn describe(rate: Rate, key: Speed, unit: &str, device: &Device, expected: &Expectation) -> CheckPass {
    let Rate { tries, each, load } = rate;
    let each: Vec<_> = each.iter().map(|rate| format!("{rate:.1}")).collect();
    let Tries { median, best, .. } = tries;
    let spread = 100.0 * tries.spread();
    let mut good = CheckPass::new(format!("{median:.1} {unit} (best {best:.1}, spread {spread:.0} %)"))
        .with("median", format!("{median:.3}"))
        .with("best", format!("{best:.3}"))
        .with("spread_percent", format!("{spread:.1}"))
        .with("tries", each.join(" "))
        .with("unit", unit);
    let due = due(key, device, expected, &load);
    for one in &due {
        let (part, speed) = (median / one.speed, one.speed);
        good.detail.push_str(&format!(", {:.0} % of {} of {speed}", part * 100.0, one.words()));
        let name = one.source.as_str();
        good = good.with(name, speed).with(&format!("part_of_{name}"), format!("{part:.3}"));
    }
    let throttled = load.state.as_ref().map_or(Vec::new(), |state| state.throttled.clone());
    if let Some(state) = load.state {
        let (chip, memory) = state.clocks;
        good = good.with("clock_mhz", chip).with("memory_clock_mhz", memory).with("celsius", state.celsius);
    }
    if !throttled.is_empty() {
        let reasons = throttled.join(", ");
        good.detail.push_str(&format!("; clocks reduced by {reasons}"));
        good = good.with("throttled", reasons);
    }
    if let Some(Pcie { generation, width, most }) = load.health.and_then(|health| health.pcie)
        && matches!(key, Speed::HostToDevice | Speed::DeviceToHost)
    {
        good.detail
            .push_str(&format!("; PCIe generation {generation} of {}, {width} of {} lanes", most.0, most.1));
        good = good.with("pcie_generation", generation).with("pcie_width", width);
    }
    if let Some(verdict) = verdict(tries, &due, &throttled) {
        good = good.with("verdict", verdict.word());
        if let Some(reason) = verdict.reason() {
            good.detail.push_str(&format!(": {}", verdict.word()));
            good = good.with("warning", reason);
        }
    }
    good
}

/// Runs a measurement for every kind of GPU, in this stage's name.
fn measured(
    options: &Options,
    ids: &[CheckId],
    say: &mut dyn FnMut(Report),
    each: impl Fn(usize, &Device, &Expectation) -> Result<CheckPass, CheckFailure>,
) {
    let ready = each_kind(options)
        .and_then(|devices| Ok((devices, options.expectation_if_given().map_err(CheckFailure::error)?)));
    match ready {
        Err(failure) => all_alike(ids, &failure, &mut |report| say(report)),
        Ok((devices, expected)) => {
            for (at, id) in ids.iter().enumerate() {
                say(on_all(*id, &devices, |device| each(at, device, &expected)));
            }
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "figures, not counts")]
fn run_memory(options: &Options, say: &mut dyn FnMut(Report)) {
    measured(options, MEMORY_IDS, say, |at, device, expected| {
        let (free, _) = device.memory()?;
        let bytes = (1usize << 30).min(free / 8);
        let buffer = device.buffer(bytes)?;
        if at == 0 {
            let other = device.buffer(bytes)?;
            // Every byte is read once and written once.
            let rate = rate(device, 2.0 * bytes as f64 / 1e9, || other.copy_from(&buffer))?;
            return Ok(describe(rate, Speed::Memory, "GB/s", device, expected));
        }
        let bytes = bytes.min(256 << 20);
        let part = device.buffer(bytes)?;
        let pinned = device.pinned(bytes)?;
        let size = bytes as f64 / 1e9;
        let (rate, key) = if at == 1 {
            (rate(device, size, || part.upload_pinned(&pinned))?, Speed::HostToDevice)
        } else {
            (rate(device, size, || part.download_pinned(&pinned))?, Speed::DeviceToHost)
        };
        Ok(describe(rate, key, "GB/s", device, expected))
    });
}

fn run_gemm(options: &Options, say: &mut dyn FnMut(Report)) {
    let kinds = [
        (Arithmetic::Fp64, 4096, Speed::Fp64),
        (Arithmetic::Fp32, 4096, Speed::Fp32),
        (Arithmetic::Tf32, 8192, Speed::Tf32),
        (Arithmetic::Fp16, 8192, Speed::Fp16),
        (Arithmetic::Bf16, 8192, Speed::Bf16),
        (Arithmetic::Int8, 8192, Speed::Int8),
        (Arithmetic::Fp8, 8192, Speed::Fp8),
    ];
    measured(options, GEMM_IDS, say, |at, device, expected| {
        let (arithmetic, size, key) = kinds[at];
        needs(device, lowest(arithmetic))?;
        let (input, output) = arithmetic.formats();
        let (free, _) = device.memory()?;
        let fits = |size: &usize| size * size * (2 * input.size() + output.size()) <= free / 2;
        let shape = Shape::cube([size, 4096, 2048].into_iter().find(fits).unwrap_or(1024));
        // Numbers as in training: zeros draw less power and look faster.
        let mut generator = Generator::new(40);
        let spread = if arithmetic == Arithmetic::Int8 { 100.0 } else { 1.0 };
        let numbers: Vec<f64> =
            generator.uniform(shape.k * 64).iter().map(|number| number * spread).collect();
        let stored = input.bytes(&numbers).repeat(shape.m / 64);
        let (a, b) = (device.holding(&stored)?, device.holding(&stored)?);
        let c = device.buffer(shape.m * shape.n * output.size())?;
        let operands = Operands { a: &a, b: &b, c: &c };
        let each = shape.operations() / 1e12;
        let rate = if arithmetic == Arithmetic::Fp8 {
            let lt = lt(options, device)?.with_fast_accumulation();
            rate(device, each, || lt.multiply(arithmetic, shape, &operands))?
        } else {
            let blas = blas(options)?;
            rate(device, each, || blas.multiply(arithmetic, shape, &operands))?
        };
        let unit = if arithmetic == Arithmetic::Int8 { "TOP/s" } else { "TFLOP/s" };
        Ok(describe(rate, key, unit, device, expected).with("size", shape.m))
    });
}

/// A layer of a residual network: half precision, channels last, as training uses it.
fn run_conv(options: &Options, say: &mut dyn FnMut(Report)) {
    const LAYER: Convolution = Convolution {
        layout: Layout::Nhwc,
        images: 64,
        channels: 256,
        size: [28, 28],
        filters: 256,
        filter: [3, 3],
        pad: [1, 1],
        ..Convolution::ONE
    };
    measured(options, CONV_IDS, say, |_, device, expected| {
        needs(device, (7, 0))?;
        let cudnn = cudnn(options)?;
        let described = cudnn.describe(&LAYER, Format::Fp16, Math::Tensor)?;
        let zeros = |sizes| -> Result<Buffer, GpuLibraryError> {
            let buffer = device.buffer(2 * elements(sizes))?;
            // 0x3c3c is 1.06 in half precision.
            buffer.fill(0x3c).map(|()| buffer)
        };
        let (x, w, y) = (zeros(LAYER.x())?, zeros(LAYER.w())?, zeros(LAYER.y())?);
        let algorithm = cudnn.exact_algorithm(device, &described, Pass::Forward)?.ok_or_else(|| {
            CheckFailure::skip(SkipReason::NotOffered, "cuDNN offers no plain algorithm for this layer")
        })?;
        let work = || cudnn.run(&described, Pass::Forward, &algorithm, [&x, &w, &y]);
        let rate = rate(device, LAYER.operations() / 1e12, work)?;
        Ok(describe(rate, Speed::Conv, "TFLOP/s", device, expected)
            .with("algorithm", Pass::Forward.algorithm(algorithm.number)))
    });
}

fn run_nccl(options: &Options, say: &mut dyn FnMut(Report)) {
    let answer = all_reduce(options);
    say(super::merged(CheckId::SpeedNccl, vec![("all GPUs".to_owned(), answer)]));
}

/// All-reduce over all GPUs by the wall clock of the first: `busbw` as nccl-tests defines it, 2(n-1)/n of what is reduced.
#[expect(clippy::cast_precision_loss, reason = "figures, not counts")]
fn all_reduce(options: &Options) -> Result<CheckPass, CheckFailure> {
    let (driver, facts) = machine(options)?;
    if facts.len() < 2 {
        return Err(CheckFailure::skip(SkipReason::OneGpu, "one GPU"));
    }
    let expected = options.expectation_if_given().map_err(CheckFailure::error)?;
    let path = library(options, "nccl", &[])?;
    let devices = open(&driver, &facts)?;
    let nccl = Nccl::open(&path).map_err(|problem| opened(&path, problem))?;
    let ranks = nccl.connect(&devices)?;
    let least = devices.iter().map(|device| device.memory().map_or(0, |(free, _)| free)).min().unwrap_or(0);
    let count = (1usize << 30).min(least / 8) / 4;
    let mut buffers = Vec::new();
    for device in &devices {
        device.make_current()?;
        let buffer = device.buffer(4 * count)?;
        buffer.fill(0)?;
        device.synchronize()?;
        buffers.push(buffer);
    }
    let addresses: Vec<(Address, Address)> =
        buffers.iter().map(|buffer| (buffer.address, buffer.address)).collect();
    let size = devices.len() as f64;
    let bytes = 4.0 * count as f64;
    let mut rates = Vec::new();
    for attempt in 0..WARM + TRIES {
        let started = std::time::Instant::now();
        ranks.run((Collective::AllReduce, Format::Fp32), count, &addresses)?;
        for device in &devices {
            device.make_current()?;
            device.synchronize()?;
        }
        if attempt >= WARM {
            rates.push(bytes / started.elapsed().as_secs_f64() / 1e9 * 2.0 * (size - 1.0) / size);
        }
    }
    let load =
        under_load(&devices[0], || ranks.run((Collective::AllReduce, Format::Fp32), count, &addresses))?;
    let rate = Rate { tries: Tries::of(&rates), each: rates, load };
    let ranks = c_int::try_from(devices.len()).unwrap_or(c_int::MAX);
    Ok(describe(rate, Speed::Bus, "GB/s", &devices[0], &expected).with("ranks", ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_repeated_to_fill_a_try() {
        assert_eq!([repeats(1.0), repeats(0.005), repeats(1e-9), repeats(0.0)], [1, 4, 1000, 1000]);
    }
}
