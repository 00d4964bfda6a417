//! Reports as HTML pages: one self-contained file each, readable without script, in light and dark.
//!
//! Pure: report data in, text out. A page holds what `--json` prints, loads nothing, and makes no link of a report's text;
//! its content security policy allows our style and our script alone, by their hashes.

mod bounds;
mod document;
mod escape;
mod reports;
mod site;
mod size;
mod treemap;
mod verify;

pub use reports::{diff_page, doctor_page, list_page};
pub use site::{SiteFile, site};
pub use size::{SizedComponent, SizedImage, size_page};
pub use verify::{ReportedImage, Unchecked, verify_page};
