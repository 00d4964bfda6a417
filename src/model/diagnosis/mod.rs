//! Diagnosis of GPU errors from the output of containers, daemons and libraries: event, cause, fix.
//!
//! Owns the tables; each row has its source. Pure: text or status in, diagnosis out. Unknown text gives nothing.

mod branches;
mod collectives;
mod containers;
mod cuda;
mod diagnose;
mod downloads;
mod entry;
mod extensions;
mod frameworks;
mod general;
mod gpu_access;
mod hosts;
mod index;
mod installing;
mod libraries;
mod log;
#[cfg(test)]
mod message_tests;
mod names;
#[cfg(test)]
mod package_tests;
mod packages;
mod pattern;
mod range;
mod remote;
mod several_gpus;
mod start;
mod starting;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod tried;
mod values;
mod wsl;
mod xid;

pub use diagnose::{Finding, Findings, diagnose, findings};
pub use entry::{Diagnosis, KnownError};
pub use status::{Library, of_status};
pub use table::entries;
