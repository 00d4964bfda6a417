//! File-system archives: canonical form, content digest, layers of saved images.

pub(crate) mod canonical_tar;
pub mod content_digest;
mod difference;
#[cfg(test)]
mod difference_tests;
#[cfg(test)]
pub(crate) mod fuzzed;
pub(crate) mod image_layout;
pub(crate) mod image_names;
pub(crate) mod layout_reader;
mod limits;
pub mod saved_layers;
pub(crate) mod scope;
pub(crate) mod section;
pub(crate) mod tree;
