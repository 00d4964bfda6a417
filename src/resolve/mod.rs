//! From what is asked and the machine that will run it to a [`Stack`](crate::stack::Stack), or to every reason why not.
//!
//! Owns the choice of what was left out, the rules that refuse, and the nearest specs that would work.
//! Must not hold a fact: versions, drivers and GPUs are rows of the [`Matrix`](crate::compat::Matrix). Does no I/O.

mod alternatives;
mod candidate;
mod choose;
mod distance;
mod listing;
mod listing_text;
mod options;
mod reasons;
mod refusal;
mod report;
mod report_text;
mod rule;
mod rule_guide;
mod rules;
mod source_report;
mod support;

#[cfg(test)]
mod tests;

pub use alternatives::nearest_published;
pub use choose::resolve;
pub use listing::{ListEntry, ListReport, entries};
pub use listing_text::list_text;
pub use options::{ResolveOptions, ToolkitSources};
pub use refusal::{Alternative, Refusal, Refused};
pub use report::{PlanReport, plan_report};
pub use report_text::{plan_text, refusal_text};
pub use rule::Rule;
pub use rule_guide::rules_text;
pub use source_report::{BuildMachine, SourceReport, source_jobs, source_report, source_text};
pub use support::support_text;
