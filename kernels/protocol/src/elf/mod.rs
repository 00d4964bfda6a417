//! What an ELF file needs to be loaded, and the symbols it asks for and exports, read with every access checked.
//!
//! A file that is cut, or no ELF file, gives `None` or an [`ElfError`]: nothing here panics on what an image holds. Only the
//! tables are read, never a whole file.

mod dynamic;
mod source;
mod symbols;

pub use dynamic::{Dynamic, dynamic, extent, section};
pub use source::{Source, u16_at, u32_at, u64_at};
pub use symbols::{ElfError, Object, Symbol, VersionNeed, object};
