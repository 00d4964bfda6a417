//! Proves that the memory of every GPU keeps what is written to it: copies in, within, between and out, a pattern by a
//! kernel; and that plain arithmetic is IEEE's, bit for bit.

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::pattern::Pattern;
use super::{CheckFailure, CheckPass, all_alike, builtin_kernels, each_kind, machine, merged, on_all, open};
use crate::checks::Options;
use crate::gpu::device::{Argument, Device};
use crate::reference::{Format, Generator, differences};
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::Memory.checks();

/// What is copied, and what the pattern covers: at most a quarter of what is free.
const COPIED: usize = 64 << 20;
const COVERED: usize = 1 << 30;
const SEED: u64 = 0x5eed;
const BLOCK: u32 = 256;
const GRID: [usize; 3] = [1024, 1, 1];

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let all = machine(options).and_then(|(driver, devices)| open(&driver, &devices));
    match all {
        Err(failure) => all_alike(IDS, &failure, say),
        Ok(all) => {
            say(on_all(CheckId::MemoryCopies, &all, copies));
            say(on_all(CheckId::MemoryPattern, &all, |device| pattern(options, device)));
            say(merged(CheckId::MemoryPeers, vec![("all GPUs".to_owned(), peers(&all))]));
            match each_kind(options) {
                Ok(kinds) => {
                    say(on_all(CheckId::ArithmeticOwn, &kinds, |device| arithmetic(options, device)));
                }
                Err(failure) => all_alike(&IDS[3..], &failure, say),
            }
        }
    }
}

fn random_bytes(seed: u64, count: usize) -> Vec<u8> {
    let mut generator = Generator::new(seed);
    (0..count / 8).flat_map(|_| generator.next().to_le_bytes()).collect()
}

fn first_difference(wanted: &[u8], found: &[u8]) -> Option<usize> {
    if wanted == found {
        return None;
    }
    Some(wanted.iter().zip(found).position(|(a, b)| a != b).unwrap_or(found.len()))
}

/// In, within, out.
fn copies(device: &Device) -> Result<CheckPass, CheckFailure> {
    let (free, _) = device.memory()?;
    let bytes = random_bytes(11, COPIED.min(free / 8));
    let first = device.holding(&bytes)?;
    let second = device.buffer(bytes.len())?;
    second.copy_from(&first)?;
    for (name, buffer) in [("written to the GPU", &first), ("copied within the GPU", &second)] {
        if let Some(at) = first_difference(&bytes, &buffer.download()?) {
            return Err(CheckFailure::fail(format!("bytes {name} came back changed, first at byte {at}")));
        }
    }
    Ok(CheckPass::new(format!("{} MiB in, within and out", bytes.len() >> 20)))
}

/// A kernel writes a word that differs at every address, inverts it, and counts what is wrong; a word changed on purpose
/// must be counted.
fn pattern(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    let pattern = Pattern::load(options, device)?;
    let (free, _) = device.memory()?;
    let words = COVERED.min(free / 4) / 8;
    let buffer = device.buffer(words * 8)?;
    pattern.write(&buffer, SEED)?;
    pattern.verify(&buffer, SEED, "after writing")?;
    pattern.invert(&buffer)?;
    pattern.verify_inverse(&buffer, SEED, "after inverting")?;
    pattern.detects_a_change(&buffer, SEED)?;
    Ok(CheckPass::new(format!("{} MiB hold a pattern and its inverse", (words * 8) >> 20))
        .with("target", pattern.target))
}

/// From every GPU to every other: through the host, then directly where both reach each other's memory. All pairs are
/// copied through the host first, since access cannot be limited to one copy.
fn peers(all: &[Device]) -> Result<CheckPass, CheckFailure> {
    if all.len() < 2 {
        return Err(CheckFailure::skip(SkipReason::OneGpu, "one GPU"));
    }
    let ordinals =
        || (0..all.len()).flat_map(|a| (0..all.len()).map(move |b| (a, b))).filter(|(a, b)| a != b);
    let mut reachable = Vec::new();
    for (a, b) in ordinals() {
        peer_copy(all, (a, b), "through the host")?;
        if all[a].reaches(&all[b])? && all[b].reaches(&all[a])? {
            reachable.push((a, b));
        }
    }
    for (a, b) in &reachable {
        all[*a].enable_access(&all[*b])?;
    }
    for pair in &reachable {
        peer_copy(all, *pair, "directly")?;
    }
    let (pairs, direct) = (ordinals().count(), reachable.len());
    Ok(CheckPass::new(format!("{pairs} pairs of GPUs through the host, {direct} directly"))
        .with("direct", direct))
}

/// Copies from one GPU to another and compares every byte.
fn peer_copy(all: &[Device], (a, b): (usize, usize), way: &str) -> Result<(), CheckFailure> {
    let bytes = random_bytes((100 * a + b) as u64, 1 << 20);
    all[a].make_current()?;
    let source = all[a].holding(&bytes)?;
    all[b].make_current()?;
    let target = all[b].buffer(bytes.len())?;
    Device::copy_between(&target, &source)?;
    match first_difference(&bytes, &target.download()?) {
        None => Ok(()),
        Some(at) => Err(CheckFailure::fail(format!("GPU {a} to GPU {b} {way}: first wrong byte at {at}"))
            .hint("check the host's virtualization settings: the IOMMU or ACS changes peer copies")),
    }
}

/// Element-wise kernels and sums against the processor, bit for bit.
fn arithmetic(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    const COUNT: usize = 1 << 18;
    let mut generator = Generator::new(12);
    let (x, y) =
        (Format::Fp32.rounded(&generator.uniform(COUNT)), Format::Fp32.rounded(&generator.uniform(COUNT)));
    let x: Vec<f64> = x.iter().map(|value| value.abs()).collect();
    #[expect(clippy::cast_possible_truncation, reason = "rounded to fp32 before")]
    let single = |values: &[f64]| -> Vec<f32> { values.iter().map(|value| *value as f32).collect() };
    let (x32, y32) = (single(&x), single(&y));
    let code = builtin_kernels::code(options, device, "elementwise")?;
    let (source, target) =
        (device.holding(&Format::Fp32.bytes(&x))?, device.holding(&Format::Fp32.bytes(&y))?);
    let count = Argument::Long(COUNT as u64);
    let pointers = [Argument::Pointer(source.address), Argument::Pointer(target.address)];
    let compared = |name: &str, wanted: Vec<f64>, found: Vec<f64>| match differences(&wanted, &found) {
        Some(mismatch) => Err(CheckFailure::fail(format!("{name}: {mismatch}"))),
        None => Ok(()),
    };

    let arguments = [Argument::Float(1.7), pointers[0], pointers[1], count];
    device.kernel(&code.bytes, "axpy_f32")?.launch(GRID, [BLOCK, 1, 1], &arguments)?;
    device.synchronize()?;
    let wanted = x32.iter().zip(&y32).map(|(x, y)| f64::from(1.7f32.mul_add(*x, *y)));
    compared("axpy_f32", wanted.collect(), Format::Fp32.numbers(&target.download()?))?;

    let arguments = [pointers[0], pointers[1], count];
    device.kernel(&code.bytes, "divide_sqrt_f32")?.launch(GRID, [BLOCK, 1, 1], &arguments)?;
    device.synchronize()?;
    let wanted = x32.iter().map(|x| f64::from(x.sqrt() / (1.0 + x)));
    compared("divide_sqrt_f32", wanted.collect(), Format::Fp32.numbers(&target.download()?))?;

    let code = builtin_kernels::code(options, device, "reduce")?;
    let integers = generator.integers(COUNT, 8);
    let floats = device.holding(&Format::Fp32.bytes(&integers))?;
    let sum = device.holding(&[0; 8])?;
    let arguments = [Argument::Pointer(floats.address), Argument::Pointer(sum.address), count];
    device.kernel(&code.bytes, "sum_f32")?.launch(GRID, [BLOCK, 1, 1], &arguments)?;
    device.synchronize()?;
    compared("sum_f32", vec![integers.iter().sum()], Format::Fp32.numbers(&sum.download()?[..4]))?;

    let words: Vec<u32> = (0..COUNT).map(|_| (generator.next() >> 32) as u32).collect();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let whole = device.holding(&bytes)?;
    sum.fill(0)?;
    let arguments = [Argument::Pointer(whole.address), Argument::Pointer(sum.address), count];
    device.kernel(&code.bytes, "sum_u32")?.launch(GRID, [BLOCK, 1, 1], &arguments)?;
    device.synchronize()?;
    let wanted: u64 = words.iter().map(|word| u64::from(*word)).sum();
    let found = u64::from_le_bytes(sum.download()?.try_into().unwrap_or_default());
    if found != wanted {
        return Err(CheckFailure::fail(format!("sum_u32: {found} instead of {wanted}")));
    }
    Ok(CheckPass::new(format!("fma, division, root and two sums of {COUNT} values, exact"))
        .with("target", code.target))
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    #[test]
    fn changed_copy_is_detected_at_every_byte() {
        let bytes = random_bytes(1, 64);
        assert_eq!(first_difference(&bytes, &bytes), None);
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x10;
            assert_eq!(first_difference(&bytes, &wrong), Some(at));
        }
        assert_eq!(first_difference(&bytes, &bytes[..60]), Some(60));
    }

    #[test]
    fn one_gpu_has_no_peers() {
        assert_eq!(peers(&[]).expect_err("skipped").outcome, Outcome::Skipped);
    }
}
