//! The checks that compute on a GPU. Each reports the GPUs it ran on; a result is always compared, so that a driver that
//! answers "done" without computing fails.

/// A group of these stages: id, limit in seconds, function, and whether it runs as the image's user.
macro_rules! group {
    ($id:ident, $seconds:literal, $run:path) => {
        group!($id, $seconds, $run, false)
    };
    ($id:ident, $seconds:literal, $run:path, $as_user:literal) => {
        Group {
            id: CheckGroup::$id,
            limit: std::time::Duration::from_secs($seconds),
            as_user: $as_user,
            run: |options| at_once(|say| $run(options, say)),
        }
    };
}

mod builtin_kernels;
mod collective;
mod collective_more;
mod convolution;
mod driver;
mod gemm;
mod gemm_large;
mod health;
mod math_libraries;
mod memory;
mod memory_all;
mod memory_ipc;
mod memory_mapped;
mod outcome;
mod pattern;
mod process;
mod product;
mod python;
pub(crate) mod speed;
mod speed_more;
mod speed_verdict;

use envforge_protocol::{CheckGroup, CheckId, Outcome, SkipReason};

use super::{Group, Options};
use crate::gpu::device::Device;
use crate::gpu::driver::{Driver, Facts};
use crate::libraries::{self, SearchPaths};
use crate::report::Report;
pub(crate) use collective_more::rank;
pub(crate) use memory_ipc::borrow;
pub(crate) use outcome::{CheckFailure, CheckPass};

/// The groups of the stage "gpu", in the order of the report. The first must pass before the others are tried. Each may
/// take two minutes: `cuInit` of eight GPUs without the persistence daemon alone is estimated at 30 s.
pub(crate) const GROUPS: &[Group] = &[
    group!(Driver, 120, driver::run),
    group!(Health, 120, health::run),
    group!(Memory, 120, memory::run),
    group!(GemmOwn, 120, gemm::run_own),
    group!(GemmCublas, 120, gemm::run_cublas),
    group!(GemmLarge, 120, gemm_large::run),
    group!(ConvOwn, 120, convolution::run_own),
    group!(ConvCudnn, 120, convolution::run_cudnn),
    group!(Nccl, 120, collective::run),
    group!(FrameworkGpu, 120, python::run_quick, true),
    group!(Product, 120, product::run, true),
];

/// The further groups of level full.
pub(crate) const FULL_GROUPS: &[Group] = &[
    group!(MathLibraries, 120, math_libraries::run),
    group!(NcclMore, 120, collective_more::run_more),
    group!(NcclProcesses, 120, collective_more::run_processes),
    group!(MemoryAll, 300, memory_all::run),
    group!(MemoryMapped, 120, memory_mapped::run),
    group!(MemoryIpc, 120, memory_ipc::run),
    group!(FrameworkFull, 300, python::run_full, true),
    group!(FrameworkTrain, 300, python::run_train, true),
    group!(FrameworkDdp, 300, python::run_ddp, true),
    group!(FrameworkGenerate, 300, python::run_generate, true),
];

/// Prints each report as soon as it is known: a library may end this process before the next.
fn at_once(run: impl FnOnce(&mut dyn FnMut(Report))) -> Vec<Report> {
    run(&mut |report| println!("{}", report.json()));
    Vec::new()
}

/// The driver, initialized, and the GPUs that the image has code for: at least one.
pub(crate) fn machine(options: &Options) -> Result<(Driver, Vec<Facts>), CheckFailure> {
    let expected = options.expectation_if_given().map_err(CheckFailure::error)?;
    let driver = Driver::load().map_err(|problem| driver::missing(&problem))?;
    driver.init()?;
    let devices = driver.devices()?;
    if devices.is_empty() {
        return Err(driver::no_device());
    }
    let (supported, others) = driver::by_code(devices, &expected);
    if supported.is_empty() { Err(driver::no_code(&others)) } else { Ok((driver, supported)) }
}

/// Opens GPUs. A GPU that another program holds says nothing about the image.
pub(crate) fn open<'a>(
    driver: &Driver,
    devices: impl IntoIterator<Item = &'a Facts>,
) -> Result<Vec<Device>, CheckFailure> {
    const OUT_OF_MEMORY: i32 = 2;
    const DEVICE_UNAVAILABLE: i32 = 46;
    let open = |facts: &Facts| {
        Device::open(driver, facts).map_err(|fault| match fault.code {
            OUT_OF_MEMORY | DEVICE_UNAVAILABLE => CheckFailure {
                hint: fault.hint().map(str::to_owned),
                ..CheckFailure::skip(SkipReason::HostBusy, format!("{} is busy: {fault}", facts.label()))
            },
            _ => fault.into(),
        })
    };
    devices.into_iter().map(open).collect()
}

/// One GPU of each kind: GPUs alike run the same code, and one look at each of eight takes eight times as long. The
/// memory check and the collectives look at all of them.
pub(crate) fn distinct_gpus(devices: &[Facts]) -> Vec<&Facts> {
    let mut kinds: Vec<&Facts> = Vec::new();
    for device in devices {
        if !kinds.iter().any(|known| known.label() == device.label()) {
            kinds.push(device);
        }
    }
    kinds
}

/// Opens one GPU of each kind.
pub(crate) fn each_kind(options: &Options) -> Result<Vec<Device>, CheckFailure> {
    let (driver, devices) = machine(options)?;
    open(&driver, distinct_gpus(&devices))
}

/// Reports a check that ran on several GPUs: the worst outcome counts, a skip on one of them is reported.
pub(crate) fn on_all(
    id: CheckId,
    devices: &[Device],
    check: impl Fn(&Device) -> Result<CheckPass, CheckFailure>,
) -> Report {
    let mut answers = Vec::new();
    for device in devices {
        let answer = device.make_current().map_err(CheckFailure::from).and_then(|()| check(device));
        answers.push((device.facts.label(), answer));
    }
    merged(id, answers)
}

/// Reports a check that opens every GPU for itself, as [`on_all`] does.
pub(crate) fn on_every_gpu(
    id: CheckId,
    options: &Options,
    check: impl Fn(&Device) -> Result<CheckPass, CheckFailure>,
) -> Report {
    let all = machine(options).and_then(|(driver, devices)| open(&driver, &devices));
    match all {
        Ok(all) => on_all(id, &all, check),
        Err(failure) => merged(id, vec![(String::new(), Err(failure))]),
    }
}

/// Merges the results of several GPUs, as [`on_all`] does.
pub(crate) fn merged(id: CheckId, answers: Vec<(String, Result<CheckPass, CheckFailure>)>) -> Report {
    let several = answers.len() > 1;
    let worst = |answer: &Result<CheckPass, CheckFailure>| match answer {
        Err(failure) if failure.outcome == Outcome::Failed => 3,
        Err(failure) if failure.outcome == Outcome::Errored => 2,
        Ok(_) => 1,
        Err(_) => 0,
    };
    let rank = answers.iter().map(|(_, answer)| worst(answer)).max().unwrap_or(0);
    let outcome = [Outcome::Skipped, Outcome::Passed, Outcome::Errored, Outcome::Failed][rank];
    let (mut details, mut skips) = (Vec::new(), Vec::new());
    let mut report = Report::new(id, outcome, "");
    for (at, (label, answer)) in answers.into_iter().enumerate() {
        // A GPU whose check did not pass is named in a check that failed only: it proves nothing, and the failure is its own.
        let is_named = match &answer {
            Ok(_) => true,
            Err(failure) => failure.outcome != Outcome::Skipped && !label.is_empty(),
        };
        if is_named {
            report.measured.push((format!("gpu.{at}"), label.clone()));
        }
        let detail = match answer {
            Ok(good) => {
                let key = |key: String| if several { format!("{key}.{at}") } else { key };
                report.measured.extend(good.measured.into_iter().map(|(name, value)| (key(name), value)));
                good.detail
            }
            Err(failure) => {
                report.hint = report.hint.take().or(failure.hint);
                skips.extend(failure.skip);
                failure.detail
            }
        };
        details.push(if several { format!("{label}: {detail}") } else { detail });
    }
    details.dedup();
    report.detail = details.join("; ");
    if outcome == Outcome::Skipped {
        // A reason that bars a tag outweighs one that does not.
        let barring = skips.iter().find(|reason| !reason.is_allowed_for_tag());
        report.skip = barring.or(skips.first()).copied().or(Some(SkipReason::NoGpu));
    }
    report
}

/// One line for each id when nothing could even be started.
pub(crate) fn all_alike(ids: &[CheckId], failure: &CheckFailure, say: &mut dyn FnMut(Report)) {
    for id in ids {
        say(merged(*id, vec![(String::new(), Err(failure.clone()))]));
    }
}

/// A library of the image, with those that it looks for by name loaded before. Missing is a reason to skip.
pub(crate) fn library(
    options: &Options,
    name: &str,
    before: &[&str],
) -> Result<std::path::PathBuf, CheckFailure> {
    let found = SearchPaths::of(&options.root).search();
    let path = libraries::first(&found, name).map(|library| library.path.clone());
    let path = path.ok_or_else(|| {
        CheckFailure::skip(SkipReason::NotInImage, format!("lib{name} is not in the image"))
    })?;
    for other in before {
        // The one of the same folder, else of the same place: never a second CUDA's.
        let same_folder =
            found.iter().find(|library| library.name == *other && library.path.parent() == path.parent());
        if let Some(other) = same_folder.or_else(|| libraries::first(&found, other)) {
            let loaded = crate::dlopen::Library::open(&other.path);
            loaded.map_err(|problem| CheckFailure::fail(format!("{}: {problem}", other.path.display())))?;
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(
        label: &str,
        answer: Result<CheckPass, CheckFailure>,
    ) -> (String, Result<CheckPass, CheckFailure>) {
        (label.to_owned(), answer)
    }

    #[test]
    fn worst_gpu_decides_and_passed_ones_are_listed() {
        let good = || Ok(CheckPass::new("exact"));
        let skip = || Err(CheckFailure::skip(SkipReason::ComputeCapability, "needs 8.0"));
        let fail = || Err(CheckFailure::fail("wrong"));
        let report = merged(CheckId::GemmLarge, vec![answer("A", good()), answer("B", skip())]);
        assert_eq!((report.outcome, report.detail.as_str()), (Outcome::Passed, "A: exact; B: needs 8.0"));
        assert_eq!(report.measured, [("gpu.0".to_owned(), "A".to_owned())]);
        let report = merged(CheckId::GemmLarge, vec![answer("A", good()), answer("B", fail())]);
        assert_eq!(report.outcome, Outcome::Failed);
        let report = merged(CheckId::GemmLarge, vec![answer("A", skip()), answer("B", skip())]);
        assert_eq!((report.outcome, report.skip), (Outcome::Skipped, Some(SkipReason::ComputeCapability)));
        let absent = Err(CheckFailure::skip(SkipReason::NotInImage, "absent"));
        let report = merged(CheckId::GemmLarge, vec![answer("A", skip()), answer("B", absent)]);
        assert_eq!(report.skip, Some(SkipReason::NotInImage), "a reason that bars a tag outweighs the other");
        let report =
            merged(CheckId::GemmLarge, vec![answer("A", Err(CheckFailure::error("x"))), answer("B", good())]);
        assert_eq!(report.outcome, Outcome::Errored);
        assert_eq!(merged(CheckId::GemmLarge, vec![]).outcome, Outcome::Skipped);
    }

    /// A report says on which GPU a check failed: its failure is none of another GPU's.
    #[test]
    fn gpu_whose_check_failed_is_named_and_one_that_was_skipped_is_not() {
        let answers = || {
            vec![
                answer("A", Ok(CheckPass::new("exact"))),
                answer("B", Err(CheckFailure::skip(SkipReason::ComputeCapability, "needs 8.0"))),
            ]
        };
        let named = |more: CheckFailure| {
            let answers = answers().into_iter().chain([answer("C", Err(more))]).collect();
            let measured = merged(CheckId::GemmLarge, answers).measured.clone();
            measured.into_iter().map(|(key, gpu)| format!("{key} {gpu}")).collect::<Vec<_>>()
        };
        for failure in [CheckFailure::fail("wrong"), CheckFailure::error("x")] {
            assert_eq!(named(failure), ["gpu.0 A", "gpu.2 C"]);
        }
        assert_eq!(named(CheckFailure::skip(SkipReason::ComputeCapability, "needs 8.0")), ["gpu.0 A"]);
        let nothing = vec![answer("", Err(CheckFailure::fail("no driver")))];
        assert!(merged(CheckId::GemmLarge, nothing).measured.is_empty(), "no GPU was seen");
    }
}
