//! Proves that NCCL moves and adds data between all visible GPUs: sums of whole numbers, exact on every rank, and which
//! transport was used.
//!
//! With one GPU a plain all-reduce is a copy and proves nothing; one that scales first makes a kernel run. From NCCL 2.30
//! two ranks may share a GPU if asked; else everything that needs two is skipped.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use envforge_protocol::{CheckGroup, CheckId, SkipReason};

use super::gemm::opened;
use super::{CheckFailure, CheckPass, all_alike, library, machine, merged, open};
use crate::checks::Options;
use crate::gpu::device::{Buffer, Device};
use crate::gpu::nccl::{Collective, Nccl, Ranks, environment};
use crate::reference::{Format, Generator, differences};
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::Nccl.checks();

const COLLECTIVES: [Collective; 5] = [
    Collective::AllReduce,
    Collective::AllGather,
    Collective::ReduceScatter,
    Collective::Broadcast,
    Collective::Ring,
];

/// fp32 elements of one rank's smaller side: 1 MiB.
pub(super) const COUNT: usize = 1 << 18;

/// The first version that lets ranks share a GPU.
const SHARES: i32 = 23_000;

/// How long two ranks on one GPU may take, a way that NCCL calls experimental, before it counts as not offered.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) fn run(options: &Options, say: &mut dyn FnMut(Report)) {
    let log = std::env::temp_dir().join(format!("envforge-nccl-{}.log", std::process::id()));
    match start(options, &log) {
        Err(failure) => all_alike(IDS, &failure, say),
        Ok((nccl, devices)) if devices.len() == 1 => alone(&nccl, &devices[0], &log, say),
        Ok((nccl, devices)) => together(&nccl, &devices, &log, say),
    }
    let _ = std::fs::remove_file(log);
}

fn start(options: &Options, log: &Path) -> Result<(Nccl, Vec<Device>), CheckFailure> {
    let (driver, facts) = machine(options)?;
    let path = library(options, "nccl", &[])?;
    environment("NCCL_DEBUG", "INFO");
    // Not to stdout, which holds the report.
    environment("NCCL_DEBUG_FILE", &log.display().to_string());
    if facts.len() == 1 {
        environment("NCCL_MULTI_RANK_GPU_ENABLE", "1");
        environment("NCCL_MAX_CTAS", "1");
    }
    let devices = open(&driver, &facts);
    let nccl = Nccl::open(&path).map_err(|problem| opened(&path, problem))?;
    Ok((nccl, devices?))
}

/// Several GPUs, one rank on each.
fn together(nccl: &Nccl, devices: &[Device], log: &Path, say: &mut dyn FnMut(Report)) {
    let labels = labels(devices);
    match nccl.connect(devices) {
        Err(fault) => {
            let memory = nccl.version().ok().and_then(|version| host_memory_hint(version, fault.code));
            let failure = CheckFailure::from(fault);
            all_alike(IDS, &memory.map_or(failure.clone(), |hint| failure.hint(hint)), say);
        }
        Ok(ranks) => {
            for (id, collective) in IDS.iter().zip(COLLECTIVES) {
                let answer =
                    exact(&ranks, devices, (collective, Format::Fp32)).map(|good| versioned(good, nccl));
                say(merged(*id, vec![(labels.clone(), answer)]));
            }
            let answer = transport(&std::fs::read_to_string(log).unwrap_or_default());
            say(merged(CheckId::NcclTransport, vec![(labels, answer)]));
        }
    }
}

/// One GPU.
fn alone(nccl: &Nccl, device: &Device, log: &Path, say: &mut dyn FnMut(Report)) {
    let label = device.facts.label();
    let sum = scaled(nccl, device).map(|good| versioned(good, nccl));
    say(merged(IDS[0], vec![(label.clone(), sum)]));
    if !nccl.version().is_ok_and(|version| version >= SHARES) {
        return all_alike(&IDS[1..], &CheckFailure::skip(SkipReason::OneGpu, "one GPU"), say);
    }
    let watch = Watch::start();
    let two = [device.clone(), device.clone()];
    let reports = match nccl.connect(&two) {
        // Refused, as NCCL may; what it computes once it accepts must be right.
        Err(fault) => {
            let failure = CheckFailure::skip(
                SkipReason::OneGpu,
                format!("one GPU, and NCCL refused two ranks on it: {fault}"),
            );
            IDS[1..].iter().map(|id| merged(*id, vec![(label.clone(), Err(failure.clone()))])).collect()
        }
        Ok(ranks) => {
            let mut reports: Vec<_> = (IDS[1..].iter().zip(&COLLECTIVES[1..]))
                .map(|(id, collective)| {
                    let answer = exact(&ranks, &two, (*collective, Format::Fp32)).map(|good| CheckPass {
                        detail: format!("{}, two ranks on one GPU", good.detail),
                        ..good
                    });
                    merged(*id, vec![(label.clone(), answer.map(|good| versioned(good, nccl)))])
                })
                .collect();
            let answer = transport(&std::fs::read_to_string(log).unwrap_or_default());
            reports.push(merged(IDS[5], vec![(label.clone(), answer)]));
            reports
        }
    };
    watch.end();
    reports.into_iter().for_each(say);
}

/// Returns the fix for a start that failed in an NCCL that allocates host memory by CUDA: from 2.24 to 2.26.2 it does so
/// even where the container may not bind memory to a NUMA node.
fn host_memory_hint(version: i32, code: i32) -> Option<&'static str> {
    const CUDA_OR_SYSTEM_ERROR: [i32; 2] = [1, 2];
    let affected = (22_400..=22_602).contains(&version) && CUDA_OR_SYSTEM_ERROR.contains(&code);
    affected.then_some("set NCCL_CUMEM_HOST_ENABLE=0, or start the container with `--cap-add SYS_NICE`")
}

pub(super) fn labels(devices: &[Device]) -> String {
    devices.iter().map(|device| device.facts.label()).collect::<Vec<_>>().join(", ")
}

pub(super) fn versioned(good: CheckPass, nccl: &Nccl) -> CheckPass {
    match nccl.version() {
        Ok(version) => good.with("nccl", version),
        Err(_) => good,
    }
}

/// Ends this process if two ranks on one GPU wait for each other for ever: then they were not offered, which is a skip.
struct Watch(Arc<AtomicBool>);

impl Watch {
    fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&ended);
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !seen.load(Ordering::SeqCst) {
                let seconds = PATIENCE.as_secs();
                let failure = CheckFailure::skip(
                    SkipReason::OneGpu,
                    format!("one GPU, and two ranks on it did not finish within {seconds} s"),
                );
                all_alike(&IDS[1..], &failure, &mut |report| println!("{}", report.json()));
                std::process::abort();
            }
        });
        Self(ended)
    }

    fn end(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// One collective over all ranks: every rank's target is compared.
pub(super) fn exact(
    ranks: &Ranks<'_>,
    devices: &[Device],
    (collective, format): (Collective, Format),
) -> Result<CheckPass, CheckFailure> {
    let size = devices.len();
    let (source, target) = counts(collective, size);
    let inputs: Vec<Vec<f64>> =
        (0..size).map(|rank| Generator::new(20 + rank as u64).integers(source, 8)).collect();
    let mut buffers: Vec<(Buffer, Buffer)> = Vec::with_capacity(size);
    for (device, input) in devices.iter().zip(&inputs) {
        device.make_current()?;
        buffers.push((device.holding(&format.bytes(input))?, device.buffer(format.size() * target)?));
        device.synchronize()?;
    }
    let addresses: Vec<_> = buffers.iter().map(|(source, target)| (source.address, target.address)).collect();
    ranks.run((collective, format), smaller(collective, size), &addresses)?;
    for device in devices {
        device.make_current()?;
        device.synchronize()?;
    }
    for (rank, (_, target)) in buffers.iter().enumerate() {
        let found = format.numbers(&target.download()?);
        if let Some(mismatch) = differences(&answer(collective, rank, &inputs), &found) {
            return Err(CheckFailure::fail(format!("rank {rank} of {size}: {mismatch}")).hint(
                "data between GPUs arrives changed: try NCCL_P2P_DISABLE=1; if that helps, the host's IOMMU or ACS is faulty",
            ));
        }
    }
    Ok(CheckPass::new(format!("{size} ranks exact")).with("ranks", size))
}

/// Elements of each rank's source and target.
fn counts(collective: Collective, size: usize) -> (usize, usize) {
    match collective {
        Collective::AllGather => (COUNT, COUNT * size),
        Collective::ReduceScatter => (COUNT * size, COUNT),
        Collective::AllReduce | Collective::Broadcast | Collective::Ring => (COUNT, COUNT),
        Collective::AllToAll => (smaller(collective, size) * size, smaller(collective, size) * size),
    }
}

/// Elements of a call: of the whole side that is not gathered, or of one rank's part.
fn smaller(collective: Collective, size: usize) -> usize {
    if collective == Collective::AllToAll { COUNT / size } else { COUNT }
}

/// Returns the correct result of a rank.
pub(super) fn answer(collective: Collective, rank: usize, inputs: &[Vec<f64>]) -> Vec<f64> {
    let size = inputs.len();
    let sum = |at: usize| inputs.iter().map(|input| input[at]).sum();
    match collective {
        Collective::AllReduce => (0..COUNT).map(sum).collect(),
        Collective::AllGather => inputs.concat(),
        Collective::ReduceScatter => (rank * COUNT..(rank + 1) * COUNT).map(sum).collect(),
        Collective::Broadcast => inputs[0].clone(),
        Collective::Ring => inputs[(rank + size - 1) % size].clone(),
        Collective::AllToAll => {
            let part = smaller(collective, size);
            inputs.iter().flat_map(|input| input[rank * part..(rank + 1) * part].to_vec()).collect()
        }
    }
}

/// One rank, every element times three.
fn scaled(nccl: &Nccl, device: &Device) -> Result<CheckPass, CheckFailure> {
    let ranks = nccl.connect(std::slice::from_ref(device))?;
    let input = Generator::new(30).integers(COUNT, 8);
    let source = device.holding(&Format::Fp32.bytes(&input))?;
    let target = device.buffer(4 * COUNT)?;
    device.synchronize()?;
    ranks.scaled_sum(3.0, COUNT, &[(source.address, target.address)])?;
    device.synchronize()?;
    let wanted: Vec<_> = input.iter().map(|value| value * 3.0).collect();
    match differences(&wanted, &Format::Fp32.numbers(&target.download()?)) {
        Some(mismatch) => Err(CheckFailure::fail(format!("one rank, scaled by 3: {mismatch}"))),
        None => Ok(CheckPass::new("one rank, scaled by 3: exact; nothing was sent, there is one GPU")
            .with("ranks", 1)),
    }
}

/// The transports of NCCL's log: what follows `via` in the lines of its channels.
fn transport(log: &str) -> Result<CheckPass, CheckFailure> {
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    for line in log.lines().filter(|line| line.contains(" -> ") && line.contains(" via ")) {
        let word = line.split_once(" via ").and_then(|(_, rest)| rest.split_whitespace().next());
        // `P2P/CUMEM/read`, `SHM/direct/direct`, `NET/Socket/0`: the first two words identify it.
        let word = word.map(|word| {
            let end = word.match_indices('/').nth(1).map_or(word.len(), |(at, _)| at);
            &word[..end]
        });
        *used.entry(word.unwrap_or("unknown")).or_default() += 1;
    }
    if used.is_empty() {
        return Err(CheckFailure::skip(SkipReason::NotReported, "NCCL's log does not name the transport"));
    }
    let detail: Vec<_> =
        used.iter().map(|(word, channels)| format!("{word} ({channels} channels)")).collect();
    let mut good = CheckPass::new(detail.join(", "));
    for (word, channels) in used {
        good = good.with(word, channels);
    }
    Ok(good)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_collective_has_its_answer_on_every_rank() {
        let inputs: Vec<Vec<f64>> = (0..3)
            .map(|rank| {
                (0..3 * COUNT)
                    .map(|at| f64::from(rank * 100 + u32::try_from(at / COUNT).unwrap_or(0)))
                    .collect()
            })
            .collect();
        let short: Vec<Vec<f64>> = inputs.iter().map(|input| input[..COUNT].to_vec()).collect();
        let ends = |values: Vec<f64>| (values[0], *values.last().expect("some"), values.len());
        assert_eq!(ends(answer(Collective::AllReduce, 1, &short)), (300.0, 300.0, COUNT));
        assert_eq!(ends(answer(Collective::AllGather, 1, &short)), (0.0, 200.0, 3 * COUNT));
        assert_eq!(ends(answer(Collective::ReduceScatter, 2, &inputs)), (306.0, 306.0, COUNT));
        assert_eq!(ends(answer(Collective::Broadcast, 2, &short)), (0.0, 0.0, COUNT));
        assert_eq!(ends(answer(Collective::Ring, 0, &short)), (200.0, 200.0, COUNT));
        assert_eq!(ends(answer(Collective::Ring, 2, &short)), (100.0, 100.0, COUNT));
        for collective in COLLECTIVES {
            let (source, target) = counts(collective, 3);
            assert_eq!(answer(collective, 0, &inputs).len().min(target), target, "{collective:?}");
            assert!(source >= COUNT);
        }
    }

    #[test]
    fn failed_start_of_nccl_2_24_to_2_26_names_its_host_memory() {
        for (version, code, hinted) in
            [(22_400, 1, true), (22_602, 2, true), (22_403, 5, false), (22_304, 1, false), (22_605, 2, false)]
        {
            assert_eq!(host_memory_hint(version, code).is_some(), hinted, "{version} {code}");
        }
    }

    #[test]
    fn the_transport_is_read_from_the_log() {
        let log = "\
host:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
host:1:2 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
host:1:3 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct
host:1:3 [1] NCCL INFO Connected all rings
";
        assert_eq!(transport(log).expect("two").detail, "P2P/CUMEM (2 channels), SHM/direct (1 channels)");
        assert!(transport("nothing of the kind").is_err());
    }
}
