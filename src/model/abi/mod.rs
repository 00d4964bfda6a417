//! Whether the extensions of a wheel fit the libraries of a lock: the libraries of the base, which no wheel has, and the
//! verdict on each library. The loader's own rules are `envforge_protocol::abi`'s.

mod audit;
mod base_libraries;

pub(crate) use audit::{AuditedLibrary, audit};
