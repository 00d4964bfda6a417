//! Layers of an image, assembled from the locked wheels without a container.
//!
//! Owns how a wheel becomes part of a layer: its verification, the files it gives (as uv installs them), the bytes of the tar
//! and of its compressed form. Does not know images, engines or registries.
//!
//! ```text
//! Wheel::open ─► Installation::of ─► Listing::of ─► Conflicts::find ─►
//! LayerPlan::new ─► write_plain, write_layer, write_known, write_known_gzip, digest_layers
//! ```

mod all_cores;
mod cache;
mod conflicts;
mod digest;
mod dist_info;
mod entry_points;
mod entry_reader;
mod error;
mod grouping;
mod hidden_modules;
mod install;
mod layer;
mod library_tables;
mod limits;
mod listing;
mod place;
mod read_at;
mod record;
mod record_file;
mod splice;
mod tar_header;
mod wheel;
mod write;
mod zip_directory;
mod zip_entry;

#[cfg(test)]
pub(crate) mod fuzzed;
#[cfg(test)]
#[path = "../../tests/support/made_wheel.rs"]
pub(crate) mod made_wheel;
#[cfg(test)]
pub(crate) mod samples;

pub use all_cores::on_all_cores;
pub use cache::{DigestCache, LayerKey};
pub use conflicts::{Conflict, Conflicts};
pub use digest::digest_layers;
pub use error::AssembleError;
pub use grouping::{WheelGroup, group_wheels, has_own_layer};
pub use hidden_modules::hidden_modules;
pub use install::{Installation, InstalledContent, InstalledFile};
pub use layer::{LayerContent, LayerFile, LayerPlan};
pub use library_tables::{LibraryTables, library_tables, tables_of_wheels};
pub use listing::{Listing, ListingCache};
pub use record_file::LAYOUT_VERSION;
pub use wheel::Wheel;
pub use write::{
    FileReader, LayerDigests, TarDigest, pack_tar, write_known, write_known_gzip, write_layer, write_plain,
};
