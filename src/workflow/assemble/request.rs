//! How an image is put together.

/// How an image is put together.
pub(crate) struct Assembly<'a> {
    /// The private tag of the result, removed by the caller.
    pub(crate) scratch_tag: &'a str,
    /// Whether layers of earlier builds count as absent.
    pub(crate) no_cache: bool,
}
