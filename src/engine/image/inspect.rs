//! The daemon's description of an image as [`ImageInfo`]. Pure.

use bollard::models::{ImageHistoryResponseItem, ImageInspect};

use super::names::familiar;
use crate::model::image::info::ImageInfo;

/// Converts the daemon's description and history.
pub(super) fn image_info(image: ImageInspect, history: Vec<ImageHistoryResponseItem>) -> ImageInfo {
    let config = image.config.unwrap_or_default();
    let lines = history.into_iter().rev();
    let (history, sizes) = lines.map(|item| (item.created_by, u64::try_from(item.size).unwrap_or(0))).unzip();
    ImageInfo {
        id: image.id.unwrap_or_default(),
        tags: image.repo_tags.unwrap_or_default().iter().map(|name| familiar(name)).collect(),
        digests: image.repo_digests.unwrap_or_default().iter().map(|name| familiar(name)).collect(),
        size: image.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
        labels: config.labels.unwrap_or_default().into_iter().collect(),
        env: config.env.unwrap_or_default(),
        user: config.user.unwrap_or_default(),
        layers: image.root_fs.and_then(|fs| fs.layers).unwrap_or_default(),
        history,
        triggers: config.on_build.unwrap_or_default(),
        sizes,
        architecture: image.architecture.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_info_lists_history_oldest_first() {
        let item =
            |text: &str| ImageHistoryResponseItem { created_by: text.to_owned(), ..Default::default() };
        let info = image_info(ImageInspect::default(), vec![item("RUN last"), item("ADD first")]);
        assert_eq!(info.history, ["ADD first", "RUN last"]);
    }
}
