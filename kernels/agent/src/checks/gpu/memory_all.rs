//! Proves that all of a GPU's free memory holds what is written to it: every part is written before the first is read, so
//! that two addresses which are one are found too.

use envforge_protocol::{CheckId, SkipReason};

use super::pattern::Pattern;
use super::{CheckFailure, CheckPass, on_every_gpu};
use crate::checks::Options;
use crate::gpu::device::{Buffer, Device};
use crate::report::Report;

/// What one allocation holds at most: more need not lie in one piece.
const PART: usize = 1 << 30;
/// What is left for the driver and for whoever shares the GPU, at most.
const LEFT: usize = 1 << 29;
const SEED: u64 = 0xa11;

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    say(on_every_gpu(CheckId::MemoryAll, options, |device| everything(options, device)));
}

fn everything(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    if device.facts.integrated {
        return Err(CheckFailure::skip(
            SkipReason::NotOffered,
            "the GPU's memory is the host's: to take all of it would end other programs",
        ));
    }
    let pattern = Pattern::load(options, device)?;
    let (free, total) = device.memory()?;
    let parts = allocate(device, free)?;
    let covered: usize = parts.iter().map(|part| part.bytes).sum();
    let seeds = || (0..).map(|at| SEED + at);
    for (part, seed) in parts.iter().zip(seeds()) {
        pattern.write(part, seed)?;
    }
    for (part, seed) in parts.iter().zip(seeds()) {
        pattern.verify(part, seed, "after writing all")?;
        pattern.invert(part)?;
    }
    for (part, seed) in parts.iter().zip(seeds()) {
        pattern.verify_inverse(part, seed, "after inverting all")?;
    }
    if let Some((part, seed)) = parts.iter().zip(seeds()).last() {
        pattern.detects_a_change(part, seed)?;
    }
    let text = format!("{} of {} MiB in {} parts", covered >> 20, total >> 20, parts.len());
    Ok(CheckPass::new(text).with("covered_mib", covered >> 20).with("target", pattern.target))
}

/// Takes all of what is free but a rest, in parts.
fn allocate(device: &Device, free: usize) -> Result<Vec<Buffer>, CheckFailure> {
    let wanted = free - LEFT.min(free / 8);
    let part = PART.min(wanted / 4) / 4096 * 4096;
    let mut parts: Vec<Buffer> = Vec::new();
    while part > 0 && parts.len() < wanted / part {
        match device.buffer(part) {
            Ok(buffer) => parts.push(buffer),
            // Memory that is free in pieces, or was taken meanwhile: the rest is enough.
            Err(fault) if fault.is_out_of_memory() && parts.len() >= wanted / part / 2 => break,
            Err(fault) => return Err(fault.into()),
        }
    }
    Ok(parts)
}
