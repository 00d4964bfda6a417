//! The lock: every byte of an image, pinned. Types, TOML in and out, hashes, and differences from a request.
//!
//! Pure. Must not touch a file: `store` writes the text of [`Lock::to_toml`].

mod added;
mod canonical;
mod changes;
mod choice;
mod difference;
mod fields;
mod identity;
mod kept_versions;
mod licences;
mod origin;
#[cfg(test)]
pub(crate) mod sample;
mod sbom;
mod strings;
#[cfg(test)]
mod tests;
mod toml;
mod types;
pub mod vendor_files;

pub use added::{
    AllowedSource, DEFAULT_INDEX, FRAMEWORK_INDEX, LockedCheck, LockedCopy, LockedRun, PackageIndex,
    UserAdditions, context_name,
};
pub use changes::{Change, layer_name};
pub use difference::Difference;
pub use kept_versions::{KeptVersions, KnownReasons, MovedVersion, OtherFile};
pub use origin::{Chain, Origin, RequestedBy, Requirements, required_by_metadata};
pub use toml::{LockError, SCHEMA};
pub use types::{
    BaseProvider, IndexKind, LayerRecord, Lock, LockMetadata, LockedBase, LockedDeb, LockedSource,
    LockedTool, LockedWheel, WheelLayer,
};
