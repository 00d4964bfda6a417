//! Compares the matrix rows of the default channel with the package indexes. Reads only: people change
//! rows, and values missing in an index stay unknown.
//!
//! Owns the reading of a project's page, of a wheel's metadata and of its libraries' architectures, and the comparison, which
//! is pure.

mod architectures;
mod compare;
mod metadata;
mod page;
mod remote_zip;

pub(crate) use architectures::targets;
pub(crate) use compare::{MatrixDifference, Published, findings, newer, package_of, target_findings};
pub(crate) use metadata::metadata;
pub(crate) use page::{IndexWheel, listed};
