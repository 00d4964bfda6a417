//! The perf stage: how fast products, memory, copies, convolutions and collectives are, beside what this GPU should reach.
//!
//! Speed only warns. A shared, throttled or sliced GPU is no broken image: an outcome here is passed or skipped, failed
//! only if nothing could be run at all. Results are not looked at; the stage before did that.

use std::ffi::c_int;

use super::super::super::expect::Expectation;
use super::super::super::gpu::cublas::{Arithmetic, Operands};
use super::super::super::gpu::cudnn::{Math, Pass};
use super::super::super::gpu::device::{Address, Buffer, Device};
use super::super::super::gpu::nccl::{Collective, Nccl};
use super::super::super::gpu::nvml::Nvml;
use super::super::super::gpu::status::Fault;
use super::super::super::reference::{Convolution, Format, Generator, Layout, Shape, elements};
use super::super::super::report::Report;
use super::super::{Group, Options};
use super::convolution::cudnn;
use super::product::{blas, lowest, lt, needs, opened};
use super::{Good, Trouble, all_alike, at_once, each_kind, library, machine, on_all};

/// The groups of the stage "perf". Bandwidth comes before what heats the chip.
pub(crate) const GROUPS: &[Group] = &[
    group!("speed-memory", MEMORY_IDS, 60, run_memory),
    group!("speed-nccl", NCCL_IDS, 90, run_nccl),
    group!("speed-conv", CONV_IDS, 60, run_conv),
    group!("speed-gemm", GEMM_IDS, 120, run_gemm),
];

const MEMORY_IDS: &[&str] = &["speed-memory", "speed-host-to-device", "speed-device-to-host"];
const GEMM_IDS: &[&str] = &[
    "speed-gemm-fp64",
    "speed-gemm-fp32",
    "speed-gemm-tf32",
    "speed-gemm-fp16",
    "speed-gemm-bf16",
    "speed-gemm-int8",
    "speed-gemm-fp8",
];
const CONV_IDS: &[&str] = &["speed-conv"];
const NCCL_IDS: &[&str] = &["speed-nccl"];

/// Runs before the clock, and tries on it.
const WARM: usize = 3;
const TRIES: usize = 9;
/// Seconds that one try should at least take, by repeating: a launch is not what is measured.
const TRY: f64 = 0.02;
/// Below this part of what the GPU model should reach, or of what was recorded on this host, there is a warning.
const OF_PEAK: f64 = 0.5;
const OF_RECORDED: f64 = 0.9;

/// What several tries gave, in work per second.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Rate {
    median: f64,
    best: f64,
}

/// Times a piece of work: `each` is its size, the answer in sizes per second.
fn rate<E: From<Fault>>(device: &Device, each: f64, work: impl Fn() -> Result<(), E>) -> Result<Rate, E> {
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
    Ok(summary(rates))
}

/// How often a piece of work has to run to fill one try.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 1000")]
fn repeats(once: f64) -> usize {
    if once > 0.0 { (TRY / once).ceil().clamp(1.0, 1000.0) as usize } else { 1000 }
}

fn summary(mut rates: Vec<f64>) -> Rate {
    rates.sort_by(f64::total_cmp);
    Rate { median: rates[rates.len() / 2], best: rates[rates.len() - 1] }
}

/// The line of a measurement: median and best, clocks, and how that compares.
fn told(rate: Rate, key: &str, unit: &str, device: &Device, expected: &Expectation) -> Good {
    let Rate { median, best } = rate;
    let mut good = Good::new(format!("{median:.1} {unit} (best {best:.1})"))
        .with("median", format!("{median:.3}"))
        .with("best", format!("{best:.3}"))
        .with("unit", unit);
    for (name, least, words) in
        [("peak", OF_PEAK, "this model's peak"), ("recorded", OF_RECORDED, "what was recorded here")]
    {
        let Some(due) = expected.figure(&format!("{name}.{key}")) else { continue };
        let part = median / due;
        good.detail.push_str(&format!(", {:.0} % of {words} of {due}", part * 100.0));
        good = good.with(name, due).with(&format!("part_of_{name}"), format!("{part:.3}"));
        if part < least {
            good.detail.push_str(": slow");
            good = good.with("warning", format!("below {:.0} % of {words}", least * 100.0));
        }
    }
    if let Some(state) = Nvml::open().ok().flatten().and_then(|nvml| nvml.state(&device.facts.bus)) {
        let (chip, memory) = state.clocks;
        good = good.with("clock_mhz", chip).with("memory_clock_mhz", memory).with("celsius", state.celsius);
        if !state.throttled.is_empty() {
            let reasons = state.throttled.join(", ");
            good.detail.push_str(&format!("; clocks held down by {reasons}"));
            good = good.with("throttled", reasons);
        }
    }
    good
}

/// Runs a measurement for every kind of GPU, in this stage's name.
fn measured(
    options: &Options,
    ids: &[&str],
    say: &mut dyn FnMut(Report),
    each: impl Fn(usize, &Device, &Expectation) -> Result<Good, Trouble>,
) {
    let ready = each_kind().and_then(|devices| Ok((devices, options.promises().map_err(Trouble::error)?)));
    match ready {
        Err(trouble) => all_alike(ids, &trouble, &mut |report| say(report.in_stage("perf"))),
        Ok((devices, expected)) => {
            for (at, id) in ids.iter().enumerate() {
                say(on_all(id, &devices, |device| each(at, device, &expected)).in_stage("perf"));
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
            return Ok(told(rate, "memory", "GB/s", device, expected));
        }
        let bytes = bytes.min(256 << 20);
        let part = device.buffer(bytes)?;
        let pinned = device.pinned(bytes)?;
        let size = bytes as f64 / 1e9;
        let (rate, key) = if at == 1 {
            (rate(device, size, || part.upload_pinned(&pinned))?, "host-to-device")
        } else {
            (rate(device, size, || part.download_pinned(&pinned))?, "device-to-host")
        };
        Ok(told(rate, key, "GB/s", device, expected))
    });
}

fn run_gemm(options: &Options, say: &mut dyn FnMut(Report)) {
    let kinds = [
        (Arithmetic::Fp64, 4096, "fp64"),
        (Arithmetic::Fp32, 4096, "fp32"),
        (Arithmetic::Tf32, 8192, "tf32"),
        (Arithmetic::Fp16, 8192, "fp16"),
        (Arithmetic::Bf16, 8192, "bf16"),
        (Arithmetic::Int8, 8192, "int8"),
        (Arithmetic::Fp8, 8192, "fp8"),
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
            let lt = lt(options, device)?;
            rate(device, each, || lt.multiply(arithmetic, shape, &operands))?
        } else {
            let blas = blas(options)?;
            rate(device, each, || blas.multiply(arithmetic, shape, &operands))?
        };
        let unit = if arithmetic == Arithmetic::Int8 { "TOP/s" } else { "TFLOP/s" };
        Ok(told(rate, key, unit, device, expected).with("size", shape.m))
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
        let zeros = |sizes| -> Result<Buffer, Fault> {
            let buffer = device.buffer(2 * elements(sizes))?;
            // 0x3c3c is 1.06 in half precision.
            buffer.fill(0x3c).map(|()| buffer)
        };
        let (x, w, y) = (zeros(LAYER.x())?, zeros(LAYER.w())?, zeros(LAYER.y())?);
        let (algorithm, space) = cudnn
            .exact_algorithm(device, &described, Pass::Forward)?
            .ok_or_else(|| Trouble::skip("cuDNN offers no plain algorithm for this layer"))?;
        let work = || cudnn.run(&described, Pass::Forward, algorithm, [&x, &w, &y], space.as_ref());
        let rate = rate(device, LAYER.operations() / 1e12, work)?;
        Ok(told(rate, "conv", "TFLOP/s", device, expected)
            .with("algorithm", Pass::Forward.algorithm(algorithm)))
    });
}

fn run_nccl(options: &Options, say: &mut dyn FnMut(Report)) {
    let answer = all_reduce(options);
    say(super::merged("speed-nccl", vec![("all GPUs".to_owned(), answer)]).in_stage("perf"));
}

/// All-reduce over all GPUs by the wall clock of the first: `busbw` as nccl-tests defines it, 2(n-1)/n of what is reduced.
#[expect(clippy::cast_precision_loss, reason = "figures, not counts")]
fn all_reduce(options: &Options) -> Result<Good, Trouble> {
    let (driver, facts) = machine()?;
    if facts.len() < 2 {
        return Err(Trouble::skip("one GPU"));
    }
    let expected = options.promises().map_err(Trouble::error)?;
    let path = library(options, "nccl", &[])?;
    let devices: Result<Vec<_>, _> = facts.iter().map(|facts| Device::open(&driver, facts)).collect();
    let devices = devices.map_err(Trouble::error)?;
    let nccl = Nccl::open(&path).map_err(|problem| opened(&path, &problem))?;
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
        ranks.run(Collective::AllReduce, count, &addresses)?;
        for device in &devices {
            device.make_current()?;
            device.synchronize()?;
        }
        if attempt >= WARM {
            rates.push(bytes / started.elapsed().as_secs_f64() / 1e9 * 2.0 * (size - 1.0) / size);
        }
    }
    let ranks = c_int::try_from(devices.len()).unwrap_or(c_int::MAX);
    Ok(told(summary(rates), "bus", "GB/s", &devices[0], &expected).with("ranks", ranks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_not_the_best_and_work_is_repeated_to_fill_a_try() {
        assert_eq!(summary(vec![3.0, 1.0, 10.0, 2.0, 4.0]), Rate { median: 3.0, best: 10.0 });
        assert_eq!([repeats(1.0), repeats(0.005), repeats(1e-9), repeats(0.0)], [1, 4, 1000, 1000]);
    }

    #[test]
    fn expected_figures_are_read() {
        let expected = Expectation::parse("peak.bf16=989\nrecorded.memory=4300.5\n").expect("reads");
        assert_eq!(expected.figure("peak.bf16"), Some(989.0));
        assert_eq!(expected.figure("recorded.memory"), Some(4300.5));
        assert_eq!(expected.figure("peak.fp8"), None);
        assert!(Expectation::parse("peak.bf16=fast").is_err());
        assert!(Expectation::parse("peak.colour=1").is_err());
    }
}
