//! The packages above a base: distribution packages resolved by apt, wheels resolved by uv, each in a temporary container of
//! this program's own image.
//!
//! Owns the resolution of a stack to locked packages, and their download into the cache. Must not know how an image is
//! laid out, nor where settings come from.

mod apt;
mod cached_requirements;
mod catalogue;
#[cfg(test)]
mod channel_tests;
mod download;
mod download_wheels;
mod error;
mod failure;
mod hints;
mod index_order;
mod index_page;
mod inputs;
mod json_page;
mod limits;
mod listed;
mod local_wheel;
#[cfg(test)]
mod locked_rows_tests;
mod output;
mod percent;
mod published_wheel;
mod pylock;
mod python_target;
mod redact;
mod request;
mod resolve;
mod resolve_debs;
mod resolver_image;
mod script_file;
mod secrets;
mod settings;
#[cfg(test)]
mod test_downloads;
#[cfg(test)]
mod test_engine;
mod uv;
mod uv_by_pip;
mod uv_hints;
mod uv_run;
mod uv_source;
mod vendor;
mod wheel_addresses;
mod wheel_name;
mod wheels;

pub(crate) use cached_requirements::{cached_requirements, here_files, here_requirements};
pub use catalogue::{Catalogue, catalogue};
pub use download::{gather_debs, gather_uv};
pub use download_wheels::{UpstreamStatus, WheelSource};
pub use error::{PackagesError, ToolOutput};
pub use index_order::SharedName;
#[cfg(feature = "maintain")]
pub(crate) use index_page::{Link, links};
#[cfg(feature = "maintain")]
pub(crate) use json_page::{JSON_PAGE, listed_files};
pub use listed::{Listed, RequestedNames, UnlistedName};
pub use local_wheel::LocalWheel;
#[cfg(test)]
pub(crate) use local_wheel::tests::wheel as test_wheel;
pub(crate) use local_wheel::wheel_name;
pub use published_wheel::Release;
pub use pylock::SourceDist;
pub use request::{PackageRequest, ResolverContext};
pub use resolve::{ResolvedPackages, resolve_packages};
pub use resolver_image::{Resolver, ResolverImage};
pub use secrets::index_secrets;
pub use settings::{Archive, FrameworkIndex, IndexSettings, PackageSettings, Proxies, VendorSettings};
pub use uv::uv_binary;
pub use uv_source::UvSource;
pub use vendor::vendor_root;
pub use wheel_addresses::{WheelAddresses, remembered_addresses, wheel_addresses};
pub(crate) use wheel_name::WheelName;
