//! What the package indexes say today of the matrix's rows of the default channel. Reads only: a row is a person's to
//! change, and what an index does not say stays unknown.
//!
//! Owns the reading of a project's page and of a wheel's metadata, and the comparison, which is pure.

mod compare;
mod metadata;
mod page;

pub(crate) use compare::{Finding, Published, findings, newer, package_of};
pub(crate) use metadata::metadata;
pub(crate) use page::{Listed, listed};
