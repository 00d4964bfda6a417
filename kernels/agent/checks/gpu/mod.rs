//! The checks that compute on a GPU. Each says which GPUs it ran on; a result is always compared, so that a driver that
//! answers "done" without computing fails.

/// A group of these stages: name, ids, limit in seconds, what it runs, and whether as the image's user.
macro_rules! group {
    ($name:literal, $ids:expr, $seconds:literal, $run:path) => {
        group!($name, $ids, $seconds, $run, false)
    };
    ($name:literal, $ids:expr, $seconds:literal, $run:path, $as_user:literal) => {
        Group {
            name: $name,
            ids: $ids,
            limit: std::time::Duration::from_secs($seconds),
            as_user: $as_user,
            run: |options| at_once(|say| $run(options, say)),
        }
    };
}

mod collective;
mod convolution;
mod driver;
mod large;
mod memory;
mod own;
mod product;
mod python;
pub(crate) mod speed;
mod trouble;

use super::super::gpu::device::Device;
use super::super::gpu::driver::{Driver, Facts};
use super::super::libraries::{self, Places};
use super::super::report::{Outcome, Report};
use super::{Group, Options};
pub(crate) use trouble::{Good, Trouble};

/// The groups of the stage "gpu", in the order of the report. The first must pass before the others are tried.
pub(crate) const GROUPS: &[Group] = &[
    group!("driver", driver::IDS, 30, driver::run),
    group!("memory", memory::IDS, 60, memory::run),
    group!("gemm-own", product::OWN_IDS, 60, product::run_own),
    group!("gemm-cublas", product::CUBLAS_IDS, 90, product::run_cublas),
    group!("gemm-large", large::IDS, 90, large::run),
    group!("conv-own", convolution::OWN_IDS, 60, convolution::run_own),
    group!("conv-cudnn", convolution::CUDNN_IDS, 120, convolution::run_cudnn),
    group!("nccl", collective::IDS, 120, collective::run),
    group!("framework-gpu", python::QUICK_IDS, 120, python::run_quick, true),
];

/// The groups of level full besides.
pub(crate) const FULL_GROUPS: &[Group] =
    &[group!("framework-full", python::FULL_IDS, 300, python::run_full, true)];

/// Prints each report as soon as it is known: a library may end this process before the next.
fn at_once(run: impl FnOnce(&mut dyn FnMut(Report))) -> Vec<Report> {
    run(&mut |report| println!("{}", report.json()));
    Vec::new()
}

/// The driver, initialised, and the GPUs it shows: at least one.
pub(crate) fn machine() -> Result<(Driver, Vec<Facts>), Trouble> {
    let driver = Driver::load().map_err(|problem| driver::missing(&problem))?;
    driver.init()?;
    let devices = driver.devices()?;
    if devices.is_empty() {
        return Err(driver::no_device());
    }
    Ok((driver, devices))
}

/// One GPU of each kind: GPUs alike run the same code, and one look at each of eight takes eight times as long. The
/// memory check and the collectives look at all of them.
pub(crate) fn kinds(devices: &[Facts]) -> Vec<&Facts> {
    let mut kinds: Vec<&Facts> = Vec::new();
    for device in devices {
        if !kinds.iter().any(|known| known.label() == device.label()) {
            kinds.push(device);
        }
    }
    kinds
}

/// Opens one GPU of each kind.
pub(crate) fn each_kind() -> Result<Vec<Device>, Trouble> {
    let (driver, devices) = machine()?;
    kinds(&devices).into_iter().map(|facts| Device::open(&driver, facts).map_err(Trouble::error)).collect()
}

/// The report of a check that ran on several GPUs: the worst outcome counts, what was skipped on one of them is told.
pub(crate) fn on_all(
    id: &str,
    devices: &[Device],
    check: impl Fn(&Device) -> Result<Good, Trouble>,
) -> Report {
    let mut answers = Vec::new();
    for device in devices {
        let answer = device.make_current().map_err(Trouble::from).and_then(|()| check(device));
        answers.push((device.facts.label(), answer));
    }
    merged(id, answers)
}

/// As [`on_all`] says.
pub(crate) fn merged(id: &str, answers: Vec<(String, Result<Good, Trouble>)>) -> Report {
    let several = answers.len() > 1;
    let worst = |answer: &Result<Good, Trouble>| match answer {
        Err(trouble) if trouble.outcome == Outcome::Failed => 3,
        Err(trouble) if trouble.outcome == Outcome::Errored => 2,
        Ok(_) => 1,
        Err(_) => 0,
    };
    let rank = answers.iter().map(|(_, answer)| worst(answer)).max().unwrap_or(0);
    let outcome = [Outcome::Skipped, Outcome::Passed, Outcome::Errored, Outcome::Failed][rank];
    let mut details = Vec::new();
    let mut report = Report::new(id, outcome, "");
    for (at, (label, answer)) in answers.into_iter().enumerate() {
        let detail = match answer {
            Ok(good) => {
                report.measured.push((format!("gpu.{at}"), label.clone()));
                let key = |key: String| if several { format!("{key}.{at}") } else { key };
                report.measured.extend(good.measured.into_iter().map(|(name, value)| (key(name), value)));
                good.detail
            }
            Err(trouble) => {
                report.hint = report.hint.or(trouble.hint);
                trouble.detail
            }
        };
        details.push(if several { format!("{label}: {detail}") } else { detail });
    }
    details.dedup();
    report.detail = details.join("; ");
    report.in_stage("gpu")
}

/// One line for each id when nothing could even be started.
pub(crate) fn all_alike(ids: &[&str], trouble: &Trouble, say: &mut dyn FnMut(Report)) {
    for id in ids {
        say(merged(id, vec![(String::new(), Err(trouble.clone()))]));
    }
}

/// A library of the image, with those that it looks for by name loaded before. Missing is a reason to skip.
pub(crate) fn library(options: &Options, name: &str, before: &[&str]) -> Result<std::path::PathBuf, Trouble> {
    let found = Places::of(&options.root).search();
    let path = libraries::first(&found, name).map(|library| library.path.clone());
    let path = path.ok_or_else(|| Trouble::skip(format!("lib{name} is not in the image")))?;
    for other in before {
        // The one of the same folder, else of the same place: never a second CUDA's.
        let beside =
            found.iter().find(|library| library.name == *other && library.path.parent() == path.parent());
        if let Some(other) = beside.or_else(|| libraries::first(&found, other)) {
            let loaded = super::super::dl::Library::open(&other.path);
            loaded.map_err(|problem| Trouble::fail(format!("{}: {problem}", other.path.display())))?;
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(label: &str, answer: Result<Good, Trouble>) -> (String, Result<Good, Trouble>) {
        (label.to_owned(), answer)
    }

    #[test]
    fn the_worst_gpu_decides_and_only_those_that_computed_are_named() {
        let good = || Ok(Good::new("exact"));
        let skip = || Err(Trouble::skip("needs 8.0"));
        let fail = || Err(Trouble::fail("wrong"));
        let report = merged("x", vec![answer("A", good()), answer("B", skip())]);
        assert_eq!((report.outcome, report.detail.as_str()), (Outcome::Passed, "A: exact; B: needs 8.0"));
        assert_eq!(report.measured, [("gpu.0".to_owned(), "A".to_owned())]);
        let report = merged("x", vec![answer("A", good()), answer("B", fail())]);
        assert_eq!(report.outcome, Outcome::Failed);
        let report = merged("x", vec![answer("A", skip()), answer("B", skip())]);
        assert_eq!(report.outcome, Outcome::Skipped);
        let report = merged("x", vec![answer("A", Err(Trouble::error("x"))), answer("B", good())]);
        assert_eq!(report.outcome, Outcome::Errored);
        assert_eq!(merged("x", vec![]).outcome, Outcome::Skipped);
    }
}
