//! What a container, a daemon or a library said when something with a GPU failed, as a finding: what happened, why,
//! what to do.
//!
//! Owns the tables; each row names where it was met. Pure: text or status in, finding out. What it does not know gives
//! nothing.

mod containers;
mod cuda;
mod entry;
mod libraries;
mod several_gpus;
mod start;
mod status;
#[cfg(test)]
mod tests;
mod wsl;

pub use entry::{Entry, Finding, diagnose, entries};
pub use status::{Library, of_status};
