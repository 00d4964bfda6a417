//! Proves that another process can open a GPU's memory by its handle, read it and write to it.

use envforge_protocol::{CheckId, SkipReason};

use super::pattern::Pattern;
use super::{CheckFailure, CheckPass, machine, on_every_gpu, open, process};
use crate::checks::Options;
use crate::gpu::device::Device;
use crate::gpu::ipc::{self, IpcHandle, Opened};
use crate::gpu::status::GpuLibraryError;
use crate::report::Report;

const BYTES: usize = 4 << 20;
const SEED: u64 = 0x19c;

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    say(on_every_gpu(CheckId::MemoryIpc, options, |device| shared(options, device)));
}

fn shared(options: &Options, device: &Device) -> Result<CheckPass, CheckFailure> {
    if device.facts.exclusive {
        return Err(CheckFailure::skip(SkipReason::HostBusy, "the GPU serves one process at a time"));
    }
    let pattern = Pattern::load(options, device)?;
    let memory = device.buffer(BYTES)?;
    pattern.write(&memory, SEED)?;
    device.synchronize()?;
    let handle = ipc::handle(device, &memory).map_err(unsupported)?;
    let words = [device.facts.ordinal.to_string(), process::hex(&handle.0)];
    if let Some(problem) = process::problem(process::start("borrow", &words, options)?) {
        return Err(CheckFailure { detail: format!("the other process: {}", problem.detail), ..problem });
    }
    pattern.verify_inverse(&memory, SEED, "after the other process inverted them")?;
    pattern.detects_a_change(&memory, SEED)?;
    Ok(CheckPass::new(format!("{} MiB read and inverted by another process", BYTES >> 20))
        .with("target", pattern.target))
}

/// A platform without CUDA IPC, as WSL 2, says so.
fn unsupported(fault: GpuLibraryError) -> CheckFailure {
    const NOT_SUPPORTED: i32 = 801;
    match fault.code {
        NOT_SUPPORTED => CheckFailure::skip(SkipReason::NotOffered, format!("no CUDA IPC here: {fault}")),
        _ => fault.into(),
    }
}

/// The other process: `ORDINAL HANDLE`. Prints one line.
pub(crate) fn borrow(words: &[String], options: &Options) {
    process::print(borrowed(words, options));
}

fn borrowed(words: &[String], options: &Options) -> Result<String, CheckFailure> {
    let bad = || CheckFailure::error("expected ORDINAL HANDLE");
    let [ordinal, handle] = words else { return Err(bad()) };
    let ordinal: i32 = ordinal.parse().map_err(|_| bad())?;
    let handle = IpcHandle(process::bytes(handle).ok_or_else(bad)?);
    let (driver, facts) = machine(options)?;
    let own = facts.iter().find(|gpu| gpu.ordinal == ordinal).ok_or_else(bad)?;
    let [device]: [Device; 1] = open(&driver, [own])?.try_into().map_err(|_| bad())?;
    let pattern = Pattern::load(options, &device)?;
    let opened = Opened::open(&device, handle, BYTES).map_err(unsupported)?;
    pattern.verify(&opened.memory(), SEED, "when another process opened them")?;
    pattern.invert(&opened.memory())?;
    device.synchronize()?;
    Ok(process::EXACT.to_owned())
}
