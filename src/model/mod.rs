//! The pure core: no clock, disk, network or environment. Imports nothing from the edges.

pub mod address;
pub(crate) mod bounded;
pub(crate) mod bounded_tar;
pub(crate) mod byte_size;
pub mod compat;
pub mod diagnosis;
pub mod export;
pub mod image;
pub mod image_digest;
pub mod image_mirrors;
pub mod image_ref;
pub mod lock;
pub(crate) mod markdown;
pub mod program_version;
pub mod project;
pub mod request;
pub mod required_version;
pub mod resolve;
pub mod sha256;
pub mod spec;
pub mod stack;
pub mod target;
pub mod verdict;
pub mod versions;
pub(crate) mod visible;
pub(crate) mod wrap;
