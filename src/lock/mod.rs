//! The lock: every byte of an image, pinned. Types, TOML in and out, and whether a lock still fits.

mod types;

pub use types::{
    BaseProvider, IndexKind, Lock, LockedBase, LockedDeb, LockedTool, LockedWheel, Records, WheelLayer,
};
