//! Reports as HTML pages: one self-contained file each, readable without script, in light and dark.
//!
//! Pure: report data in, text out. A page holds what `--json` prints, loads nothing, and makes no link of a report's text;
//! its content security policy allows our style and our script alone, by their hashes.

mod bounds;
mod diff;
mod document;
mod escape;
mod evidence;
mod fleet;
mod size;
mod treemap;
mod verify;

pub use diff::diff_page;
#[cfg(feature = "maintain")]
pub(crate) use document::Document;
pub use evidence::evidence_page;
pub use fleet::fleet_page;
pub use size::{SizedComponent, SizedImage, size_page};
pub use verify::{ReportedImage, Unchecked, verify_page};
