//! Diagnosis of GPU errors from the output of containers, daemons and libraries: event, cause, fix.
//!
//! Owns the tables; each row has its source. Pure: text or status in, diagnosis out. Unknown text gives nothing.

mod containers;
mod cuda;
mod diagnose;
mod entry;
mod libraries;
#[cfg(test)]
mod package_tests;
mod packages;
mod several_gpus;
mod start;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod wsl;
mod xid;

pub use diagnose::diagnose;
pub use entry::{Diagnosis, KnownError};
pub use status::{Library, of_status};
pub use table::entries;
