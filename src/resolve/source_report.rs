//! What a build from source takes, said before anything else: for people and as JSON.

use serde::Serialize;

use super::refusal::Alternative;
use super::report_text::field;
use crate::stack::{SourceChoice, Stack};
use crate::versions::ComputeCapability;
use crate::wrap::hanging;

/// The machine that compiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BuildMachine {
    /// Its processors, if known.
    pub cores: Option<u64>,
    /// Its memory in GB, if known.
    pub memory_gb: Option<u64>,
}

/// `source_build` of a plan as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceReport {
    /// The release archive.
    pub archive: String,
    /// Its SHA-256, if a fact says it.
    pub sha256: Option<String>,
    /// Our patches.
    pub patches: Vec<String>,
    /// GPU targets it is compiled for.
    pub gpu: Vec<ComputeCapability>,
    /// The newest gcc that nvcc accepts on the base.
    pub gcc: u32,
    /// Memory of one compiler process in GB, if known.
    pub job_memory_gb: Option<u32>,
    /// Compiler processes at a time on this machine, if that can be said.
    pub jobs: Option<u64>,
    /// Seconds on this machine: null, since nobody has measured it.
    pub seconds: Option<u64>,
    /// What is known of the time.
    pub time: Option<String>,
    /// Why it is experimental.
    pub experimental: String,
}

/// Compiler processes that fit: one for each processor, and not more than the memory holds. `None` if a fact is missing.
pub fn source_jobs(choice: &SourceChoice, machine: BuildMachine) -> Option<u64> {
    let fit = machine.memory_gb? / u64::from(choice.job_memory_gb?).max(1);
    Some(fit.min(machine.cores?).max(1))
}

/// The object for a stack, if it is built from source.
pub fn source_report(stack: &Stack, machine: BuildMachine) -> Option<SourceReport> {
    let choice = stack.source_build.as_deref()?;
    Some(SourceReport {
        archive: choice.archive.clone(),
        sha256: choice.sha256.clone(),
        patches: choice.patches.clone(),
        gpu: choice.arch.clone(),
        gcc: choice.nvcc.gcc,
        job_memory_gb: choice.job_memory_gb,
        jobs: source_jobs(choice, machine),
        seconds: None,
        time: choice.time.clone(),
        experimental: choice.experimental.clone(),
    })
}

/// What has to be known before hours of compiling; empty if nothing is built from source.
pub fn source_text(stack: &Stack, nearest: &[Alternative], machine: BuildMachine) -> String {
    let Some(choice) = &stack.source_build else { return String::new() };
    let mut out = hanging(
        "",
        &format!(
            "{} {} was never published for CUDA {}: it is built from source.",
            stack.package,
            stack.version,
            stack.cuda.dotted()
        ),
    );
    out.push('\n');
    let near: Vec<_> = nearest.iter().map(|offer| offer.spec.to_string()).collect();
    let near =
        if near.is_empty() { "nothing near it runs on this target".to_owned() } else { near.join(", ") };
    out += &field("published", &near);
    out += &field("experimental", &choice.experimental);
    out += &field("memory", &memory(choice, machine));
    out += &field(
        "time",
        &format!("not known for this machine; {}", choice.time.as_deref().unwrap_or("nobody has said")),
    );
    let patches = if choice.patches.is_empty() {
        String::new()
    } else {
        format!(", patched by {}", choice.patches.join(", "))
    };
    out += &field("archive", &format!("{}{patches}", choice.archive));
    out += &field(
        "compiler",
        &format!("nvcc {} with gcc {}, from {}", stack.toolkit_minor(), choice.nvcc.gcc, choice.nvcc.source),
    );
    let names: Vec<_> = stack.companions.keys().map(String::as_str).collect();
    let companions = match names.as_slice() {
        [] => String::new(),
        names => format!("; without {}, unless --wheel names one of each", names.join(" and ")),
    };
    let kept = "once: the wheel is kept, and used again for the same";
    out += &field("build", &format!("{kept}{companions}"));
    out.push('\n');
    out
}

fn memory(choice: &SourceChoice, machine: BuildMachine) -> String {
    let Some(each) = choice.job_memory_gb else { return "not known".to_owned() };
    let has = match (machine.cores, machine.memory_gb) {
        (Some(cores), Some(memory)) => format!("{cores} processors, {memory} GB"),
        _ => return format!("{each} GB for each compiler process; this machine's is not known"),
    };
    let count = source_jobs(choice, machine).unwrap_or(1);
    let short = machine.memory_gb.is_some_and(|memory| memory < u64::from(each));
    let warn = if short { ", which may not be enough" } else { "" };
    format!("{each} GB for each compiler process: {count} at a time on this machine ({has}){warn}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::Matrix;
    use crate::resolve::{ResolveOptions, nearest_published, resolve};
    use crate::target::Target;
    use crate::versions::Machine;

    fn planned(machine: BuildMachine) -> (String, SourceReport) {
        let spec = "pytorch-cuda:2.8-cu118".parse().unwrap();
        let (target, options) = (Target::any(Machine::X86_64), ResolveOptions::default());
        let matrix = Matrix::current();
        let stack = resolve(&spec, &target, matrix, &options).unwrap();
        let nearest = nearest_published(&spec, &target, matrix, &options);
        (source_text(&stack, &nearest, machine), source_report(&stack, machine).unwrap())
    }

    #[test]
    fn a_plan_says_first_what_a_build_from_source_takes() {
        let (text, _) = planned(BuildMachine { cores: Some(16), memory_gb: Some(64) });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn memory_lowers_the_number_of_compilers_and_what_is_unknown_stays_so() {
        let jobs = |cores, memory_gb| planned(BuildMachine { cores, memory_gb }).1.jobs;
        assert_eq!(jobs(Some(16), Some(64)), Some(10));
        assert_eq!(jobs(Some(2), Some(64)), Some(2));
        assert_eq!(jobs(Some(16), Some(4)), Some(1));
        assert_eq!(jobs(None, Some(64)), None);
        let (text, report) = planned(BuildMachine::default());
        assert!(text.contains("this machine's is not") && report.seconds.is_none(), "{text}");
        let (text, _) = planned(BuildMachine { cores: Some(4), memory_gb: Some(4) });
        assert!(text.contains("may not be enough"), "{text}");
    }
}
