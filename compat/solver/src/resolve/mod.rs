//! Resolves a spec and a target to a [`Stack`](crate::stack::Stack), or to every violated rule.
//!
//! Owns the choice of omitted parts, the rules, and the alternatives.
//! Must not contain a fact: versions, drivers and GPUs are rows of the [`Matrix`](crate::matrix::Matrix). Does no I/O.

mod alternatives;
mod as_of;
mod branch_advice;
mod candidate;
mod choose;
mod companion_choice;
mod companion_fit;
mod companion_pins;
mod device_code;
mod distance;
mod driver_advice;
mod driver_range;
mod foreign_cuda;
mod listing;
mod listing_text;
mod options;
mod outcome;
mod reasons;
mod refusal;
mod rejected;
mod report;
mod report_text;
mod required;
mod rule;
mod rules;
mod selected_stack;
mod source_report;

#[cfg(test)]
mod tests;

pub use branch_advice::{BranchAdvice, DriverAdvice, EndOfLife};
pub use companion_choice::{
    CompanionChoice, CompanionRequest, CompanionSource, companion_advice, companions, excluded_releases,
    not_checked, unfit,
};
pub use device_code::{DeviceCodeShare, GpuShare, device_code_share, device_code_text};
pub use driver_advice::newest_of_branch;
pub use driver_range::{DriverRange, SupportEntry, support_entries};
pub use foreign_cuda::mismatches_by_name;
pub use listing::{ListEntry, ListReport, entries};
pub use listing_text::{list_text, nothing_text, products_text};
pub use options::{ResolveOptions, ToolkitSources};
pub use outcome::{image_runs, nearest_published, resolve};
pub use refusal::{Alternative, RuleViolation, Unsatisfiable};
pub use report::{
    AlternativeReport, BaseReport, CudaReport, FrameworkReport, PlanReport, RequiresReport, StackReport,
    TargetReport, Verdict, plan_report, unknown_code,
};
pub use report_text::{companions_text, not_checked_text, plan_text, refusal_text, target_text};
pub use rule::Rule;
pub use source_report::{BuildMachine, SourceReport, source_jobs, source_report, source_text};
