//! Files of envforge itself: the cache by SHA-256, the state directory, vendor directories, locks between processes.
//!
//! Owns atomic writes: a reader sees a complete file or none.
//!
//! ```text
//! CACHE/sha256/ab/abcdef…   a blob, complete; hashed when it is used
//! CACHE/records/ID/…        what was made of blobs, as records sealed with the key of that id
//! CACHE/partial/abcdef…     an unfinished download; flock'ed by the process that writes it
//! CACHE/temp/…              temporary files; old ones are removed when the store is opened
//! STATE/cache-key           the key of the seals, of this directory alone
//! STATE/locks/NAME          flock'ed while held; contains the process id of the holder
//! STATE/locks-of-specs/…    lock files of specs; also locks-of-images, built-images, installed-projects, pushed-images,
//!                           last-pushes, evidence-of-images, evidence-of-registries, newest-indexes, projects, reports and
//!                           trusted-projects
//! STATE/…                   records, written atomically
//! ```

pub(crate) mod built_images;
pub mod caches;
mod error;
mod files;
mod folders;
pub(crate) mod installed_images;
pub(crate) mod kept_evidence;
pub(crate) mod known_locks;
pub(crate) mod last_push;
mod limits;
mod lock;
mod newest_indexes;
pub(crate) mod old_byte_code;
pub(crate) mod packed_layers;
mod regular_file;
pub(crate) mod reports;
mod seal_key;
mod sealed;
mod trusted_projects;
pub(crate) mod unused;
pub(crate) mod vendor_base;
pub mod vendor_dir;
pub(crate) mod vendor_layers;

pub use error::StoreError;
pub use files::write_atomically;
pub(crate) use files::{copy_verified, replace_file, write_in_place_of};
pub use folders::Store;
pub use lock::StoreLock;
pub(crate) use lock::wait_for_lock;
pub(crate) use newest_indexes::{newest_index, remember_index};
pub(crate) use regular_file::{
    open_regular, read_regular, read_regular_at, read_regular_text, read_text_at, read_typed_text,
    read_typed_text_early,
};
pub(crate) use sealed::SealedRecords;
pub(crate) use trusted_projects::{is_trusted, remember_trusted};
