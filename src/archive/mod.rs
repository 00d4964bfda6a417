//! File-system archives: canonical form, content digest, normalized images.

pub(crate) mod canonical_tar;
pub mod content_digest;
pub mod normalize_image;
pub(crate) mod scope;
