#![doc = include_str!("../README.md")]

pub mod matrix;
pub mod required_version;
#[cfg(feature = "resolve")]
pub mod resolve;
#[cfg(feature = "resolve")]
pub mod spec;
#[cfg(feature = "resolve")]
pub mod stack;
#[cfg(feature = "resolve")]
pub mod target;
pub mod versions;

// Shared with envforge: no part of the interface.
#[doc(hidden)]
pub mod counted;
#[cfg(feature = "resolve")]
#[doc(hidden)]
pub mod local_version;
#[cfg(feature = "resolve")]
#[doc(hidden)]
pub mod marker;
#[cfg(feature = "resolve")]
#[doc(hidden)]
pub mod wrap;

pub use matrix::Matrix;
