//! The lock: every byte of an image, pinned. Types, TOML in and out, and whether a lock still fits.
//!
//! Pure. Must not touch a file: `store.rs` writes what [`Lock::to_toml`] says.

mod difference;
mod fields;
#[cfg(test)]
pub(crate) mod sample;
mod toml;
mod types;

pub use difference::Difference;
pub use toml::{LockError, SCHEMA};
pub use types::{
    BaseProvider, IndexKind, Lock, LockedBase, LockedDeb, LockedTool, LockedWheel, Records, WheelLayer,
};
