//! An image of the engine under the name to call it by.

use crate::engine::ImageInfo;
use crate::model::verdict::tag_policy::main_tag;

/// An image of the engine.
pub(crate) struct Named {
    /// The reference it was found under.
    pub(crate) reference: String,
    pub(crate) image: ImageInfo,
}

/// An image under the tag to call it by: one that does not end in `-unverified` if there is one, or its short id. The tag says
/// nothing of the image.
pub(crate) fn named(image: ImageInfo) -> Named {
    Named { reference: main_tag(&image.tags).cloned().unwrap_or_else(|| short_id(&image.id)), image }
}

/// The first 12 digits of an id, which engines take for it.
pub(crate) fn short_id(id: &str) -> String {
    id.trim_start_matches("sha256:").chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_without_a_tag_is_called_by_its_short_id() {
        let called = |tags: &[&str]| {
            let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
            let id = "sha256:0123456789abcdef".to_owned();
            named(ImageInfo { id, tags, ..ImageInfo::default() }).reference
        };
        assert_eq!(called(&[]), "0123456789ab");
        assert_eq!(called(&["x:1-unverified", "team:1"]), "team:1");
        assert_eq!(called(&["x:1-unverified"]), "x:1-unverified");
        let moving = ["envforge/p:current", "envforge/p:current-unverified", "envforge/p:d0"];
        assert_eq!(
            (called(&moving), called(&moving[..2])),
            ("envforge/p:d0".to_owned(), "envforge/p:current".to_owned())
        );
        assert_eq!(
            called(&["envforge/p:current-unverified", "envforge/p:d0-unverified"]),
            "envforge/p:d0-unverified"
        );
    }
}
