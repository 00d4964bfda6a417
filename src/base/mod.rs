//! The base system of an image: from a registry, or bootstrapped from the distribution's own packages.
//!
//! Owns both providers. Every download is verified: packages against the signed index, the index against the keys
//! in `keys/`. Must not know the layers above the base.

mod apt;
mod apt_files;
mod apt_source;
mod bootstrap;
mod bootstrap_cache;
mod closure;
mod compressed;
mod deb;
mod deb822;
mod distribution;
pub(crate) mod dpkg_status;
mod error;
mod first_stage;
#[cfg(test)]
pub(crate) mod fuzzed;
mod image;
mod inspect;
mod limits;
mod mirrors;
mod packages;
mod provider;
mod release;
mod request;
mod seen_index;
mod signature;
mod signature_error;
mod signing_key;
mod suite;
#[cfg(test)]
mod suite_tests;
mod tools;
mod version;

pub use apt::AptSources;
pub use apt_files::{BaseApt, KEYS, base_apt, base_status};
pub use deb::DebError;
pub use distribution::Distribution;
pub use error::BaseError;
pub use image::private_tag;
pub use inspect::{BaseInfo, inspect_base};
pub use mirrors::{MirrorError, MirrorSources, Mirrors, discover};
pub use provider::{package_list, prepare};
pub use release::{ReleaseError, index_date};
pub use request::{Base, BaseArchive, BaseRequest};
pub use seen_index::{OlderIndex, SeenIndex};
pub use signature::{Keyring, fingerprint_of};
pub use signature_error::SignatureError;
pub use tools::BaseTools;
