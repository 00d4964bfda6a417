//! What is put on top of a base: distribution packages resolved by apt, wheels resolved by uv, both in one throwaway
//! container of that base.
//!
//! Owns the way from a stack to locked packages, and having the locked ones in the cache. Must not know how an image is
//! laid out, nor where settings come from.

mod apt;
mod catalogue;
mod error;
mod failure;
mod gather;
mod gather_wheels;
mod index_page;
mod inputs;
mod local_wheel;
mod output;
mod pylock;
mod redact;
mod resolve;
mod secrets;
mod settings;
#[cfg(test)]
mod test_engine;
mod uv;
mod uv_by_pip;
mod vendor;
mod wheel_name;
mod wheels;

pub use catalogue::{Catalogue, catalogue};
pub use error::{PackagesError, Words};
pub use gather::{gather_debs, gather_uv};
pub use gather_wheels::{Upstream, WheelSource};
pub(crate) use index_page::{Link, links};
pub use local_wheel::LocalWheel;
#[cfg(test)]
pub(crate) use local_wheel::tests::wheel as test_wheel;
pub use pylock::FoundSource;
pub use resolve::{PackageRequest, PackageTools, Resolved, resolve_packages};
pub use secrets::{index_secrets, index_secrets_with};
pub use settings::{Archive, FrameworkIndex, IndexSettings, PackageSettings, Proxies, VendorSettings};
pub use uv::{UvSource, uv_binary};
pub use vendor::vendor_root;
pub(crate) use wheel_name::WheelName;
