//! The perf stage's longer measurements: a table of the copies between GPUs, and a minute of products.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::gemm::{blas, needs};
use super::speed::{Load, rate, repeats, under_load};
use super::speed_verdict::Tries;
use super::{CheckFailure, CheckPass, all_alike, each_kind, machine, merged, on_all, open};
use crate::checks::Options;
use crate::gpu::cublas::{Arithmetic, Operands};
use crate::gpu::device::Device;
use crate::gpu::status::GpuLibraryError;
use crate::reference::{Generator, Shape};
use crate::report::Report;

/// What is copied between two GPUs at most.
const COPIED: usize = 256 << 20;
/// A pair that is slower than this part of the middle pair is reported.
const SLOW_PAIR: f64 = 0.5;
/// How long products run.
const MINUTE: Duration = Duration::from_mins(1);
/// How long one batch of them runs.
const BATCH: f64 = 0.5;
/// Speed at the end that is below this part of the speed at the beginning is reported.
const KEPT: f64 = 0.8;

pub(super) fn run_peers(options: &Options, say: &mut dyn FnMut(Report)) {
    let answer =
        machine(options).and_then(|(driver, facts)| open(&driver, &facts)).and_then(|all| peers(&all));
    say(merged(CheckId::SpeedPeers, vec![("all GPUs".to_owned(), answer)]));
}

/// The bandwidth from every GPU to every other: directly where both reach each other's memory.
fn peers(all: &[Device]) -> Result<CheckPass, CheckFailure> {
    if all.len() < 2 {
        return Err(CheckFailure::skip(SkipReason::OneGpu, "one GPU"));
    }
    let pairs: Vec<_> =
        (0..all.len()).flat_map(|a| (0..all.len()).map(move |b| (a, b))).filter(|(a, b)| a != b).collect();
    let mut rows = Vec::with_capacity(pairs.len());
    for (a, b) in pairs {
        let (from, to) = (&all[a], &all[b]);
        let direct = from.reaches(to)? && to.reaches(from)?;
        if direct {
            to.enable_access(from)?;
            from.enable_access(to)?;
        }
        to.make_current()?;
        let bytes = COPIED.min(to.memory()?.0 / 8);
        let target = to.buffer(bytes)?;
        from.make_current()?;
        let source = from.buffer(bytes.min(from.memory()?.0 / 8))?;
        #[expect(clippy::cast_precision_loss, reason = "a figure, not a count")]
        let each = source.bytes.min(bytes) as f64 / 1e9;
        let measured = rate(from, each, || Device::queue_copy_between(&target, &source))?;
        rows.push(((a, b), direct, measured.tries.median));
    }
    Ok(table(&rows))
}

/// The table: `0-1` is the bandwidth from GPU 0 to GPU 1 in GB/s.
fn table(rows: &[((usize, usize), bool, f64)]) -> CheckPass {
    let direct = rows.iter().filter(|(_, direct, _)| *direct).count();
    let speeds: Vec<_> = rows.iter().map(|(_, _, speed)| *speed).collect();
    let tries = Tries::of(&speeds);
    let mut good = CheckPass::new(format!(
        "{} pairs, {direct} of them directly: {:.1} to {:.1} GB/s",
        rows.len(),
        speeds.iter().copied().fold(f64::INFINITY, f64::min),
        tries.best
    ))
    .with("unit", "GB/s")
    .with("direct", direct);
    let mut slow = Vec::new();
    for ((a, b), is_direct, speed) in rows {
        let way = if *is_direct { "" } else { " through the host" };
        good = good.with(&format!("{a}-{b}"), format!("{speed:.1}{way}"));
        if *speed < SLOW_PAIR * tries.median {
            slow.push(format!("GPU {a} to GPU {b}{way}: {speed:.1} GB/s"));
        }
    }
    if slow.is_empty() {
        return good;
    }
    let text = format!("{}: below half of the middle pair's {:.1} GB/s", slow.join(", "), tries.median);
    good.with("warning", text)
}

pub(super) fn run_sustained(options: &Options, say: &mut dyn FnMut(Report)) {
    // With a limit of its own the group needs the rest for its start.
    let time = options.limit.map_or(MINUTE, |limit| MINUTE.min(limit / 4));
    match each_kind(options) {
        Ok(devices) => {
            // The group's own limit is three minutes, for all models of a machine.
            let time = time.min(2 * MINUTE / u32::try_from(devices.len()).unwrap_or(u32::MAX).max(1));
            say(on_all(CheckId::SpeedSustained, &devices, |device| sustained(options, device, time)));
        }
        Err(failure) => all_alike(CheckGroup::SpeedSustained.checks(), &failure, say),
    }
}

/// Products of half precision one after the other: their speed, the GPU's clocks and temperature, and the last result, which
/// must be the first one bit for bit.
fn sustained(options: &Options, device: &Device, time: Duration) -> Result<CheckPass, CheckFailure> {
    needs(device, (5, 3))?;
    let arithmetic = if device.facts.capability >= (8, 0) { Arithmetic::Bf16 } else { Arithmetic::Fp16 };
    let (input, output) = arithmetic.formats();
    let blas = blas(options)?;
    let (free, _) = device.memory()?;
    let fits = |size: &usize| size * size * (2 * input.size() + output.size()) <= free / 2;
    let shape = Shape::cube([8192, 4096, 2048].into_iter().find(fits).unwrap_or(1024));
    let stored = input.bytes(&Generator::new(41).uniform(shape.k * 64)).repeat(shape.m / 64);
    let (a, b) = (device.holding(&stored)?, device.holding(&stored)?);
    let c = device.buffer(shape.m * shape.n * output.size())?;
    let operands = Operands { a: &a, b: &b, c: &c };
    let work = || blas.multiply(arithmetic, shape, &operands);
    let once = device.seconds(work)?;
    let first = c.download()?;
    let batch = repeats(once / (BATCH / 0.02));
    let started = Instant::now();
    let (mut rates, mut loads) = (Vec::new(), Vec::new());
    while rates.len() < 3 || started.elapsed() < time {
        let seconds = device.seconds(|| (0..batch).try_for_each(|_| work()))?;
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        rates.push(shape.operations() / 1e12 * batch as f64 / seconds.max(f64::MIN_POSITIVE));
        loads.push(under_load::<GpuLibraryError>(device, || (0..batch.min(10)).try_for_each(|_| work()))?);
    }
    if c.download()? != first {
        return Err(CheckFailure::fail(format!(
            "the same product gave another result within {} s",
            started.elapsed().as_secs()
        ))
        .hint("run a memory test on the host, and check its power and cooling: the GPU computes wrong results under load"));
    }
    Ok(described(&rates, &loads, started.elapsed()).with("size", shape.m))
}

fn described(rates: &[f64], loads: &[Load], time: Duration) -> CheckPass {
    let third = rates.len() / 3;
    let median = |part: &[f64]| Tries::of(part).median;
    let (all, begin, end) = (median(rates), median(&rates[..third]), median(&rates[rates.len() - third..]));
    let seconds = time.as_secs_f64();
    let mut good = CheckPass::new(format!(
        "{all:.1} TFLOP/s over {seconds:.0} s, {begin:.1} at first, {end:.1} at last"
    ))
    .with("median", format!("{all:.3}"))
    .with("first", format!("{begin:.3}"))
    .with("last", format!("{end:.3}"))
    .with("unit", "TFLOP/s")
    .with("seconds", format!("{seconds:.0}"));
    let states: Vec<_> = loads.iter().filter_map(|load| load.state.as_ref()).collect();
    let reasons: BTreeSet<&str> = states.iter().flat_map(|state| state.throttled.iter().copied()).collect();
    let reasons = reasons.into_iter().collect::<Vec<_>>().join(", ");
    if let (Some(slowest), Some(fastest)) =
        (states.iter().map(|state| state.clocks.0).min(), states.iter().map(|state| state.clocks.0).max())
    {
        let celsius = states.iter().map(|state| state.celsius).max().unwrap_or(0);
        good.detail.push_str(&format!("; {slowest} to {fastest} MHz, {celsius} degrees Celsius at most"));
        good = good
            .with("clock_mhz_least", slowest)
            .with("clock_mhz_most", fastest)
            .with("celsius_most", celsius);
    }
    if !reasons.is_empty() {
        good.detail.push_str(&format!("; clocks reduced by {reasons}"));
        good = good.with("throttled", &reasons);
    }
    if end >= KEPT * begin {
        return good.with("verdict", "normal");
    }
    let lost = format!("the speed fell to {:.0} % within {seconds:.0} s", 100.0 * end / begin);
    if reasons.is_empty() {
        return good.with("verdict", "slow").with("warning", lost);
    }
    good.with("verdict", "throttled").with("warning", format!("{lost}; clocks reduced by {reasons}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::nvml::State;

    fn of<'a>(good: &'a CheckPass, name: &str) -> Option<&'a str> {
        good.measured.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    #[test]
    fn slow_pair_is_named_and_the_table_has_every_pair() {
        let row = |a, b, speed| ((a, b), true, speed);
        let good = table(&[row(0, 1, 40.0), row(1, 0, 41.0), ((0, 2), false, 11.0)]);
        assert_eq!(of(&good, "0-1"), Some("40.0"));
        assert_eq!(of(&good, "0-2"), Some("11.0 through the host"));
        let warning = of(&good, "warning").unwrap_or_default();
        assert!(warning.starts_with("GPU 0 to GPU 2 through the host: 11.0 GB/s"), "{warning}");
        assert_eq!(of(&table(&[row(0, 1, 40.0), row(1, 0, 39.0)]), "warning"), None);
    }

    #[test]
    fn speed_that_falls_is_reported_with_what_the_gpu_tells() {
        let time = Duration::from_mins(1);
        let load = |throttled| Load {
            state: Some(State { clocks: (1980, 2619), celsius: 70, throttled }),
            ..Load::default()
        };
        let even = described(&[700.0; 9], &[load(vec![])], time);
        assert_eq!((of(&even, "verdict"), of(&even, "warning")), (Some("normal"), None));
        let falling = [700.0, 700.0, 700.0, 600.0, 600.0, 600.0, 400.0, 400.0, 400.0];
        let slow = described(&falling, &[load(vec![])], time);
        assert_eq!(
            (of(&slow, "verdict"), of(&slow, "first"), of(&slow, "last")),
            (Some("slow"), Some("700.000"), Some("400.000"))
        );
        let hot = described(&falling, &[load(vec!["hardware thermal limit"])], time);
        assert_eq!(of(&hot, "verdict"), Some("throttled"));
        assert_eq!(of(&hot, "celsius_most"), Some("70"));
    }
}
