//! What the package indexes say today of the matrix's rows of the default channel. Reads only: a row is a person's to
//! change, and what an index does not say stays unknown.
//!
//! Owns the reading of a project's page, of a wheel's metadata and of its libraries' architectures, and the comparison, which
//! is pure.

mod architectures;
mod compare;
mod metadata;
mod page;
mod remote_zip;

pub(crate) use architectures::targets;
pub(crate) use compare::{Finding, Published, findings, newer, package_of, target_findings};
pub(crate) use metadata::metadata;
pub(crate) use page::{Listed, listed};
