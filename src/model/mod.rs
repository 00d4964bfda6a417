//! The pure core: no clock, disk, network or environment. Imports nothing from the edges.

pub(crate) mod abi;
pub mod address;
pub(crate) mod bounded;
pub(crate) mod bounded_tar;
pub(crate) mod byte_size;
pub mod cluster;
pub mod compat;
pub mod diagnosis;
pub mod editable;
pub(crate) mod entry_name;
pub mod export;
pub mod file_compression;
pub(crate) mod given;
pub mod image;
pub mod image_digest;
pub mod image_mirrors;
pub mod image_ref;
pub mod index_address;
pub mod layer_compression;
pub mod lock;
#[cfg(feature = "maintain")]
pub(crate) mod markdown;
pub mod migrate;
pub mod misfit;
pub(crate) mod os_release;
pub mod program_version;
pub mod project;
pub mod request;
pub(crate) mod requirement_text;
pub mod sha256;
pub(crate) mod shared_memory;
pub(crate) mod typed_path;
pub mod verdict;
pub(crate) mod visible;
pub(crate) mod whiteout;

pub(crate) use envforge_compat::{counted, local_version, marker, wrap};
pub use envforge_compat::{required_version, resolve, spec, stack, target, versions};
