//! File-system archives: canonical form, content digest, layers of saved images.

pub(crate) mod canonical_tar;
pub mod content_digest;
pub mod saved_layers;
pub(crate) mod scope;
