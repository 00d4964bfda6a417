//! The lock: every byte of an image, pinned. Types, TOML in and out, and whether a lock still fits.
//!
//! Pure. Must not touch a file: `store.rs` writes what [`Lock::to_toml`] says.

mod added;
mod changes;
mod difference;
mod fields;
#[cfg(test)]
pub(crate) mod sample;
mod sbom;
mod toml;
mod types;

pub use added::{Added, AllowedSource, LockedCheck, LockedCopy, LockedRun, context_name};
pub use changes::{Change, layer_name};
pub use difference::Difference;
pub use toml::{LockError, SCHEMA};
pub use types::{
    BaseProvider, IndexKind, Lock, LockedBase, LockedDeb, LockedSource, LockedTool, LockedWheel, Records,
    WheelLayer,
};
