//! Files of envforge itself: the cache by SHA-256, the state directory, locks between processes.
//!
//! Owns atomic writes: a reader sees a complete file or none. Must not know what the files mean.
//!
//! ```text
//! CACHE/sha256/ab/abcdef…   a blob, complete and once verified
//! CACHE/partial/abcdef…     an unfinished download; flock'ed by the process that writes it
//! CACHE/temp/…              temporary files; old ones are removed when the store is opened
//! STATE/locks/NAME          flock'ed while held; contains the process id of the holder
//! STATE/…                   records, written atomically
//! ```

mod error;
mod files;
mod folders;
mod lock;

pub use error::StoreError;
pub(crate) use files::copy_atomically;
pub use files::write_atomically;
pub use folders::Store;
pub use lock::StoreLock;
pub(crate) use lock::wait_for_lock;
