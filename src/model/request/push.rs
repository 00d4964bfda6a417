//! `push`.

/// A request for `push`.
#[derive(Debug, Clone)]
pub struct Push {
    /// The image or spec.
    pub image: String,
    /// Where it goes: with tags, or without for the digest alone.
    pub targets: Vec<String>,
}
