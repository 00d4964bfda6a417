//! The base system of an image: taken from a registry, or built from the distribution's own packages.
//!
//! Owns both providers. Everything it fetches is checked: packages against the signed index, the index against the keys
//! in `keys/`. Must not know what is put on top of the base.

mod apt;
mod bootstrap;
mod closure;
mod deb;
mod deb822;
mod error;
mod first_stage;
#[cfg(test)]
pub(crate) mod fuzzed;
mod image;
mod look;
mod mirrors;
mod packages;
mod prepare;
mod record;
mod release;
mod request;
mod signature;
mod suite;
mod version;

pub use apt::read_apt_sources;
pub use deb::DebError;
pub use error::BaseError;
pub use image::private_tag;
pub use look::{FoundBase, look_into};
pub use mirrors::{MirrorError, MirrorSources, Mirrors, discover};
pub use prepare::{Means, package_list, prepare};
pub use release::ReleaseError;
pub use request::{Base, BaseRequest, ProviderChoice};
pub use signature::{Keyring, SignatureError, fingerprint_of};
