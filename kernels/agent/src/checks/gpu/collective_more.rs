//! Proves the further uses of NCCL: half precision, from each GPU to each, and one process for each GPU.

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::collective::{COUNT, answer, exact, labels, versioned};
use super::gemm::{needs, opened};
use super::{CheckFailure, CheckPass, all_alike, library, machine, merged, open, process};
use crate::checks::Options;
use crate::gpu::device::Device;
use crate::gpu::nccl::{Collective, Nccl, UniqueId};
use crate::reference::{Format, Generator, differences};
use crate::report::Report;

/// Other formats, and from each GPU to each.
pub(crate) fn run_more(options: &Options, say: &mut dyn FnMut(Report)) {
    const KINDS: [(Collective, Format); 3] = [
        (Collective::AllReduce, Format::Fp16),
        (Collective::AllReduce, Format::Bf16),
        (Collective::AllToAll, Format::Fp32),
    ];
    let ids = CheckGroup::NcclMore.checks();
    let several = start_several(options);
    let connected = several.as_ref().map_err(CheckFailure::clone).and_then(|(nccl, devices)| {
        let ranks = nccl.connect(devices)?;
        Ok((nccl, devices, ranks))
    });
    match connected {
        Err(failure) => all_alike(ids, &failure, say),
        Ok((nccl, devices, ranks)) => {
            for (id, kind) in ids.iter().zip(KINDS) {
                let needed = if kind.1 == Format::Bf16 { (8, 0) } else { (5, 3) };
                let able = devices.iter().try_for_each(|device| needs(device, needed));
                let answer = able.and_then(|()| exact(&ranks, devices, kind));
                let answer = answer.map(|good| versioned(good, nccl));
                say(merged(*id, vec![(labels(devices), answer)]));
            }
        }
    }
}

/// NCCL and at least two GPUs.
fn start_several(options: &Options) -> Result<(Nccl, Vec<Device>), CheckFailure> {
    let (driver, facts) = machine(options)?;
    if facts.len() < 2 {
        return Err(CheckFailure::skip(SkipReason::OneGpu, "one GPU"));
    }
    let path = library(options, "nccl", &[])?;
    let devices = open(&driver, &facts)?;
    Ok((Nccl::open(&path).map_err(|problem| opened(&path, problem))?, devices))
}

/// One process for each GPU, as `torchrun` starts them: an all-reduce, exact on every rank.
pub(crate) fn run_processes(options: &Options, say: &mut dyn FnMut(Report)) {
    let (labels, answer) = match processes(options) {
        Ok((labels, good)) => (labels, Ok(good)),
        Err(failure) => (String::new(), Err(failure)),
    };
    say(merged(CheckId::NcclProcesses, vec![(labels, answer)]));
}

/// This process opens no GPU: in exclusive mode its ranks could not.
fn processes(options: &Options) -> Result<(String, CheckPass), CheckFailure> {
    let (_, facts) = machine(options)?;
    if facts.len() < 2 {
        return Err(CheckFailure::skip(SkipReason::OneGpu, "one GPU"));
    }
    let path = library(options, "nccl", &[])?;
    let nccl = Nccl::open(&path).map_err(|problem| opened(&path, problem))?;
    let id = process::hex(&nccl.unique_id()?.0);
    let mut ranks = Vec::new();
    for (rank, gpu) in facts.iter().enumerate() {
        let words = [gpu.ordinal.to_string(), rank.to_string(), facts.len().to_string(), id.clone()];
        ranks.push(process::start("rank", &words, options)?);
    }
    // All are waited for: one that fails leaves the others waiting until the group's limit ends them.
    let problems: Vec<String> = ranks
        .into_iter()
        .enumerate()
        .filter_map(|(rank, child)| Some(format!("rank {rank}: {}", process::problem(child)?.detail)))
        .collect();
    if !problems.is_empty() {
        return Err(CheckFailure::fail(problems.join("; ")).hint(
            "check that the container has its own /dev/shm of some GB (`--shm-size`) or the host's (`--ipc=host`), and see the log of NCCL_DEBUG=INFO",
        ));
    }
    let labels = facts.iter().map(crate::gpu::driver::Facts::label).collect::<Vec<_>>().join(", ");
    let good = CheckPass::new(format!("{} processes exact", facts.len())).with("ranks", facts.len());
    Ok((labels, versioned(good, &nccl)))
}

/// One rank, in a process of its own: `ORDINAL RANK SIZE ID`. Prints one line.
pub(crate) fn rank(words: &[String], options: &Options) {
    process::print(one_rank(words, options));
}

fn one_rank(words: &[String], options: &Options) -> Result<String, CheckFailure> {
    let bad = || CheckFailure::error("expected ORDINAL RANK SIZE ID");
    let [ordinal, rank, size, id] = words else { return Err(bad()) };
    let number = |text: &String| text.parse::<i32>().map_err(|_| bad());
    let (ordinal, rank, size) = (number(ordinal)?, number(rank)?, number(size)?);
    let unique = process::bytes(id).ok_or_else(bad)?;
    let path = library(options, "nccl", &[])?;
    let (driver, facts) = machine(options)?;
    let own = facts.iter().find(|gpu| gpu.ordinal == ordinal).ok_or_else(bad)?;
    let device: [Device; 1] = open(&driver, [own])?.try_into().map_err(|_| bad())?;
    let nccl = Nccl::open(&path).map_err(|problem| opened(&path, problem))?;
    let ranks = nccl.join(&device, UniqueId(unique), (rank, size))?;
    let inputs: Vec<Vec<f64>> = (0..size.unsigned_abs())
        .map(|rank| Generator::new(50 + u64::from(rank)).integers(COUNT, 8))
        .collect();
    let own = usize::try_from(rank).ok().and_then(|rank| inputs.get(rank)).ok_or_else(bad)?;
    let (source, target) = (device[0].holding(&Format::Fp32.bytes(own))?, device[0].buffer(4 * COUNT)?);
    device[0].synchronize()?;
    ranks.run((Collective::AllReduce, Format::Fp32), COUNT, &[(source.address, target.address)])?;
    device[0].synchronize()?;
    let found = Format::Fp32.numbers(&target.download()?);
    Ok(match differences(&answer(Collective::AllReduce, 0, &inputs), &found) {
        None => process::EXACT.to_owned(),
        Some(mismatch) => mismatch.to_string(),
    })
}
