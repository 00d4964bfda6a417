//! Proves that the image's own compiler makes code for the GPUs it is meant for: NVRTC compiles every kernel of
//! `kernels/cuda/`. It needs no GPU.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use envforge_protocol::{CheckId, Expectation, Key, Outcome, SkipReason};

use super::{Options, display_path, errored};
use crate::kernels::{Capability, KERNELS, Kernel};
use crate::libraries::{self, Found, SearchPaths};
use crate::nvrtc::{Nvrtc, Target, load_builtins};
use crate::report::Report;

const ID: CheckId = CheckId::Nvrtc;
/// Frameworks that load NVRTC's built-in functions before they need them. Others must have an NVRTC that finds its own.
const LOADS_BUILTINS: [&str; 3] = ["torch", "vllm", "sglang"];
const AGAIN: &str = "reinstall NVRTC of the stack's CUDA, with libstdc++.so.6 for its built-in functions";

/// For the target's GPUs; without a target for the lowest and highest that the toolkit and the stack share.
pub(crate) fn run(options: &Options) -> Vec<Report> {
    compile(options, false)
}

/// Compiles for every GPU of the stack: level full.
pub(crate) fn run_all(options: &Options) -> Vec<Report> {
    compile(options, true)
}

fn compile(options: &Options, full: bool) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let found = SearchPaths::of(&options.root).search();
    vec![match libraries::first(&found, "nvrtc") {
        Some(library) => compiles(options, &expected, library, full),
        None => absent(&expected),
    }]
}

/// Without NVRTC the driver compiles PTX made ahead; a stack that has NVRTC must have it.
fn absent(expected: &Expectation) -> Report {
    if let Some(version) = expected.nvidia("cuda-nvrtc") {
        let report = Report::new(ID, Outcome::Failed, format!("libnvrtc {version} is not in the image"));
        return report.hint("reinstall the wheel: its library is missing or is outside the search paths");
    }
    let text = "libnvrtc is not in the stack; the agent uses its own PTX on a GPU";
    Report::skipped(ID, SkipReason::NotInStack, text)
}

fn compiles(options: &Options, expected: &Expectation, library: &Found, full: bool) -> Report {
    let path = display_path(&options.root, &library.path);
    let fault = |what: String| Report::new(ID, Outcome::Failed, format!("{path}: {what}")).hint(AGAIN);
    // The last line of stderr is reported if the process dies here.
    eprintln!("loading {path}");
    if expected.value(Key::Framework).is_none_or(|framework| LOADS_BUILTINS.contains(&framework)) {
        load_builtins(&library.path);
    }
    let opened =
        Nvrtc::open(&library.path).and_then(|nvrtc| Ok((nvrtc.version()?, nvrtc.architectures()?, nvrtc)));
    let ((major, minor), known, nvrtc) = match opened {
        Ok(opened) => opened,
        Err(problem) => return fault(problem),
    };
    let version = format!("{major}.{minor}");
    if let Some(wanted) = expected.value(Key::Cuda).filter(|wanted| *wanted != version) {
        let report = Report::of_value(ID, &version, wanted);
        return report.hint("check `loader-path` and `one-cuda`: NVRTC of another CUDA is found first");
    }
    if known.is_empty() {
        let text =
            format!("NVRTC {version} does not report its architectures; the agent uses its own PTX on a GPU");
        return Report::skipped(ID, SkipReason::NotOffered, text);
    }
    let plan = plan(expected, &known, full);
    let started = Instant::now();
    let mut problems: Vec<_> = plan
        .too_old
        .iter()
        .map(|chip| format!("NVRTC {version} no longer compiles for {}", Target::Cubin(*chip).name()))
        .collect();
    let mut hint = "use a stack with an older CUDA, which supports the GPU";
    if let Err((text, advice)) = all(&nvrtc, &plan.targets) {
        problems.push(text);
        hint = advice;
    }
    let names: Vec<_> = plan.targets.iter().map(|target| target.name()).collect();
    let mut good = format!("{version} compiles {} kernels for {}", KERNELS.len(), names.join(" "));
    for chip in &plan.too_new {
        good.push_str(&format!("; the toolkit has no native code for {}", Target::Cubin(*chip).name()));
    }
    let report = Report::of_problems(ID, good, &problems).hint(hint);
    let milliseconds = started.elapsed().as_millis().to_string();
    let report = report.measure("version", &version).measure("path", &path);
    report.measure("architectures", &names.join(" ")).measure("milliseconds", &milliseconds)
}

/// The compilation targets, and the chips without native code.
#[derive(Debug, Default, PartialEq, Eq)]
struct Plan {
    targets: BTreeSet<Target>,
    /// Chips that the toolkit has no native code for yet: PTX.
    too_new: Vec<Capability>,
    /// Chips that it no longer compiles for.
    too_old: Vec<Capability>,
}

/// The target's chips; for `any` the lowest and highest that toolkit and stack share, all of them at level full. A chip
/// that only the stack lists counts at level full.
fn plan(expected: &Expectation, known: &[Capability], full: bool) -> Plan {
    let promised = expected.chips(Key::Arch);
    let targets = expected.chips(Key::Target);
    let shared: Vec<_> = if promised.is_empty() {
        known.to_vec()
    } else {
        promised.iter().filter(|chip| known.contains(chip)).copied().collect()
    };
    let chips: BTreeSet<Capability> = match (full, targets.is_empty()) {
        (true, _) if promised.is_empty() => known.iter().chain(&targets).copied().collect(),
        (true, _) => promised.union(&targets).copied().collect(),
        (false, false) => targets,
        (false, true) => shared.first().into_iter().chain(shared.last()).copied().collect(),
    };
    let mut plan = Plan::default();
    for chip in chips {
        match Target::for_chip(chip, known) {
            Some(target) => {
                plan.targets.insert(target);
                if matches!(target, Target::Ptx(_)) {
                    plan.too_new.push(chip);
                }
            }
            None => plan.too_old.push(chip),
        }
    }
    plan
}

/// Compiles every kernel for every target, on all processors. The error is text and hint of the first failure.
fn all(nvrtc: &Nvrtc, targets: &BTreeSet<Target>) -> Result<(), (String, &'static str)> {
    let jobs: Vec<_> =
        KERNELS.iter().flat_map(|kernel| targets.iter().map(move |target| (kernel, *target))).collect();
    let next = AtomicUsize::new(0);
    let worker = || {
        while let Some((kernel, target)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(nvrtc, kernel, *target)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(worker)).collect();
        let crashed = || Err(("a thread of the check panicked".to_owned(), AGAIN));
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| crashed()))
    })
}

fn one(nvrtc: &Nvrtc, kernel: &Kernel, target: Target) -> Result<(), (String, &'static str)> {
    let name = format!("{} for {}", kernel.name, target.name());
    let image = nvrtc
        .compile(&format!("{}.cu", kernel.name), kernel.source, target)
        .map_err(|failure| (format!("{name}: {}", failure.text()), failure.hint()))?;
    let (Target::Cubin(chip) | Target::Ptx(chip)) = target;
    for entry in kernel.entries_for(chip) {
        let symbol = entry.name.as_bytes();
        if !image.windows(symbol.len()).any(|window| window == symbol) {
            return Err((format!("{name}: the result lacks `{}`", entry.name), AGAIN));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [Capability; 5] = [(7, 5), (8, 0), (8, 6), (9, 0), (12, 0)];

    fn planned(lines: &str, full: bool) -> Plan {
        plan(&Expectation::parse(lines).expect("reads"), &KNOWN, full)
    }

    fn names(plan: &Plan) -> Vec<String> {
        plan.targets.iter().map(|target| target.name()).collect()
    }

    #[test]
    fn the_targets_chips_are_compiled_for_else_the_lowest_and_highest_that_are_shared() {
        let stack = "arch=7.0\narch=8.0\narch=9.0\n";
        assert_eq!(names(&planned(stack, false)), ["sm_80", "sm_90"]);
        assert_eq!(names(&planned(&format!("{stack}target=8.6\n"), false)), ["sm_86"]);
        assert_eq!(names(&planned("", false)), ["sm_75", "sm_120"]);
        let full = planned(stack, true);
        assert_eq!(names(&full), ["sm_80", "sm_90"]);
        assert_eq!(full.too_old, [(7, 0)], "listed, and this toolkit does not support it");
    }

    #[test]
    fn a_chip_newer_than_the_toolkit_gets_ptx_and_is_named() {
        let plan = planned("target=12.1\narch=8.0\n", false);
        assert_eq!((names(&plan), plan.too_new), (vec!["compute_120".to_owned()], vec![(12, 1)]));
    }

    #[test]
    fn a_stack_without_nvrtc_skips_and_one_that_has_it_must_have_it() {
        let outcome = |lines| absent(&Expectation::parse(lines).expect("reads")).outcome;
        assert_eq!(outcome(""), Outcome::Skipped);
        assert_eq!(outcome("distribution=nvidia-cuda-nvrtc-cu12==12.8.93\n"), Outcome::Failed);
        assert_eq!(outcome("distribution=nvidia-cuda-nvrtc==13.0.48\n"), Outcome::Failed);
    }
}
