//! The cost of a build from source, as text and as JSON.

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
    /// Its SHA-256, if known.
    pub sha256: Option<String>,
    /// The patches of envforge.
    pub patches: Vec<String>,
    /// GPU targets it is compiled for.
    pub gpu: Vec<ComputeCapability>,
    /// The newest gcc of the base that nvcc supports.
    pub gcc: u32,
    /// Memory of one compiler process in GB, if known.
    pub job_memory_gb: Option<u32>,
    /// Parallel compiler processes on this machine, if known.
    pub jobs: Option<u64>,
    /// Seconds on this machine: null, since it is not measured.
    pub seconds: Option<u64>,
    /// The known facts about the time.
    pub time: Option<String>,
    /// The reason why it is experimental.
    pub experimental: String,
}

/// Returns the number of parallel compiler processes: one for each processor, limited by memory. `None` if unknown.
pub fn source_jobs(choice: &SourceChoice, machine: BuildMachine) -> Option<u64> {
    machine.jobs(choice.job_memory_gb)
}

impl BuildMachine {
    /// Returns the number of parallel processes that take that many GB each: one for each processor, limited by memory. `None`
    /// if unknown.
    pub fn jobs(&self, job_memory_gb: Option<u32>) -> Option<u64> {
        let fit = self.memory_gb? / u64::from(job_memory_gb?).max(1);
        Some(fit.min(self.cores?).max(1))
    }
}

/// Returns the report of a stack, if it is built from source.
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

/// Returns the cost of a source build as text; empty without a source build.
pub fn source_text(stack: &Stack, nearest: &[Alternative], machine: BuildMachine) -> String {
    let Some(choice) = &stack.source_build else { return String::new() };
    let mut out = hanging(
        "",
        &format!(
            "{} {} is not published for CUDA {} and is built from source.",
            stack.package,
            stack.version,
            stack.cuda.dotted()
        ),
    );
    out.push('\n');
    let near: Vec<_> = nearest.iter().map(|offer| offer.spec.to_string()).collect();
    let near = if near.is_empty() { "no alternatives for this target".to_owned() } else { near.join(", ") };
    out += &field("published", &near);
    out += &field("experimental", &choice.experimental);
    out += &field("memory", &memory(choice, machine));
    out += &field(
        "time",
        &format!("unknown for this machine; {}", choice.time.as_deref().unwrap_or("no estimate")),
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
        names => format!("; without {}, unless given by --wheel", names.join(" and ")),
    };
    let reuse = "once; the wheel is cached and reused";
    out += &field("build", &format!("{reuse}{companions}"));
    out.push('\n');
    out
}

fn memory(choice: &SourceChoice, machine: BuildMachine) -> String {
    let Some(each) = choice.job_memory_gb else { return "unknown".to_owned() };
    let has = match (machine.cores, machine.memory_gb) {
        (Some(cores), Some(memory)) => format!("{cores} processors, {memory} GB"),
        _ => return format!("{each} GB for each compiler process; memory of this machine unknown"),
    };
    let count = source_jobs(choice, machine).unwrap_or(1);
    let short = machine.memory_gb.is_some_and(|memory| memory < u64::from(each));
    let warn = if short { ", which may not be enough" } else { "" };
    format!("{each} GB for each compiler process, {count} in parallel on this machine ({has}){warn}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::Matrix;
    use crate::resolve::{ResolveOptions, nearest_published, resolve};
    use crate::target::Target;
    use crate::versions::Machine;
    use crate::wrap::{Width, wrapped};

    fn planned(machine: BuildMachine) -> (String, SourceReport) {
        let spec = "pytorch-cuda:2.8-cu118".parse().unwrap();
        let (target, options) = (Target::any(Machine::X86_64), ResolveOptions::default());
        let matrix = Matrix::embedded();
        let stack = resolve(&spec, &target, matrix, &options).unwrap();
        let nearest = nearest_published(&spec, &target, matrix, &options);
        (source_text(&stack, &nearest, machine), source_report(&stack, machine).unwrap())
    }

    #[test]
    fn source_build_cost_reads_well() {
        let (text, _) = planned(BuildMachine { cores: Some(16), memory_gb: Some(64) });
        let text = wrapped(&text, Width::of_terminal(80));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn memory_limits_compilers_and_unknown_facts_stay_unknown() {
        let jobs = |cores, memory_gb| planned(BuildMachine { cores, memory_gb }).1.jobs;
        assert_eq!(jobs(Some(16), Some(64)), Some(10));
        assert_eq!(jobs(Some(2), Some(64)), Some(2));
        assert_eq!(jobs(Some(16), Some(4)), Some(1));
        assert_eq!(jobs(None, Some(64)), None);
        let (text, report) = planned(BuildMachine::default());
        assert!(text.contains("memory of this machine unknown") && report.seconds.is_none(), "{text}");
        let (text, _) = planned(BuildMachine { cores: Some(4), memory_gb: Some(4) });
        assert!(text.contains("may not be enough"), "{text}");
    }
}
