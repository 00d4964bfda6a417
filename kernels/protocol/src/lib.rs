//! The contract between envforge and its in-image agent, written once: both depend on this crate.
//!
//! It owns the check ids ([`CheckId`]), stages, levels, outcomes and reasons to skip, the report's lines, the expectation
//! file, the lines of `agent code`, the content digest's format and the status codes of NVIDIA's libraries. Pure and without dependencies.
#![forbid(unsafe_code)]

pub mod abi;
mod capability;
mod check;
pub mod content;
pub mod elf;
mod expectation;
pub mod json;
mod library_code;
mod named;
mod outcome;
mod report;
pub mod status;
mod table;

pub use capability::{cubin_runs_on, is_integrated};
pub use check::{CheckGroup, CheckId, Requirement, Scope, project_check, project_check_name};
pub use expectation::{Capability, Expectation, ExpectationError, ExpectationText, Key, Speed, SpeedSource};
pub use library_code::LibraryCode;
pub use outcome::{Level, Outcome, SkipReason, Stage};
pub use report::{AGENT, ReportLine, SCHEMA, done_line, field, header_line};
pub use table::check_table;
