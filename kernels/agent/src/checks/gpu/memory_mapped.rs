//! Proves that physical memory can be mapped at reserved addresses and keeps its words when it is mapped elsewhere.

use envforge_protocol::{CheckId, SkipReason};

use super::pattern::Pattern;
use super::{CheckFailure, CheckPass, on_every_gpu};
use crate::checks::Options;
use crate::gpu::device::Device;
use crate::gpu::mapped::Mapped;
use crate::report::Report;

/// Bytes of a part at least: the driver rounds up.
const PART: usize = 2 << 20;
const SEED: u64 = 0x3a9;

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    say(on_every_gpu(CheckId::MemoryMapped, options, |device| mapped(options, device)));
}

fn mapped(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    if !device.facts.maps_memory {
        return Err(CheckFailure::skip(SkipReason::NotOffered, "the driver maps no memory on this GPU"));
    }
    let pattern = Pattern::load(options, device)?;
    let mut memory = Mapped::reserve(device, PART)?;
    memory.map([0, 1])?;
    pattern.write(&memory.whole(), SEED)?;
    pattern.verify(&memory.whole(), SEED, "after writing both parts")?;
    let before = memory.whole().download()?;
    memory.map([1, 0])?;
    let after = memory.whole().download()?;
    let (first, second) = before.split_at(memory.part);
    if after != [second, first].concat() {
        let text = "the parts did not bring their words along when they changed places";
        return Err(
            CheckFailure::fail(text).hint("update the driver: its virtual memory management is faulty")
        );
    }
    pattern.write(&memory.whole(), SEED + 1)?;
    pattern.verify(&memory.whole(), SEED + 1, "after the parts changed places")?;
    pattern.invert(&memory.whole())?;
    pattern.detects_a_change(&memory.whole(), SEED + 1)?;
    Ok(CheckPass::new(format!("two parts of {} KiB changed places", memory.part >> 10))
        .with("target", pattern.target))
}
