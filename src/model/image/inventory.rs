//! The components of an image, by its label, and the layers that images share.
//!
//! Pure: reads the engine's description of the images.

use serde::Serialize;

use crate::model::image::component::ComponentKind;
use crate::model::image::history::{history_layers, layers_above_base};
use crate::model::image::info::ImageInfo;
use crate::model::image::labels::LAYERS_LABEL;

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// Its content, in a word: `framework`.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The layer and all below it, as one name: two images share a layer only with everything under it.
    #[serde(skip)]
    pub chain: String,
}

/// The components of an image of envforge, lowest first; the layers of the base are one.
pub fn components(image: &ImageInfo) -> Vec<Component> {
    let found = labelled(image).unwrap_or_else(|| {
        layers_above_base(image).iter().map(|layer| (layer.kind.name().to_owned(), layer.size)).collect()
    });
    let base_layers = image.layers.len().saturating_sub(found.len());
    let ours: u64 = found.iter().map(|(_, size)| size).sum();
    let mut all = vec![Component {
        name: "base".to_owned(),
        size: image.size.saturating_sub(ours),
        chain: image.layers[..base_layers].concat(),
    }];
    for (number, (name, size)) in found.into_iter().enumerate() {
        let upto = (base_layers + number + 1).min(image.layers.len());
        all.push(Component { name, size, chain: image.layers[..upto].concat() });
    }
    all
}

/// The layers above the base by the label of the image, with their sizes, lowest first; `None`: it has no such label, or
/// fewer layers than that.
fn labelled(image: &ImageInfo) -> Option<Vec<(String, u64)>> {
    let ids: Vec<_> = image.labels.get(LAYERS_LABEL)?.split(',').collect();
    let mut layers = history_layers(image);
    // An image that was built from this one has its own layers above, and the label too.
    let is_own_label = |line: &String| line.starts_with("LABEL ") && line.contains(LAYERS_LABEL);
    let end = image.history.iter().rposition(is_own_label).unwrap_or(image.history.len());
    let above = layers.split_off(layers.partition_point(|layer| layer.line < end));
    let own = layers.split_off(layers.len().checked_sub(ids.len())?);
    let name = |id: &str| match ComponentKind::from_id(id) {
        Some(kind) => kind.name().to_owned(),
        None => id.to_owned(),
    };
    let own = ids.into_iter().map(name).zip(own.into_iter().map(|layer| layer.size));
    Some(own.chain(above.into_iter().map(|layer| (layer.kind.name().to_owned(), layer.size))).collect())
}

/// Returns the bytes of an image that others of these share, each component once.
pub fn shared(image: &ImageInfo, others: &[ImageInfo]) -> u64 {
    components(image).iter().filter(|part| sharers(part, image, others) > 0).map(|part| part.size).sum()
}

/// Returns the number of these images, without the image itself, that have a component and everything below it.
pub fn sharers(part: &Component, image: &ImageInfo, others: &[ImageInfo]) -> usize {
    let has = |other: &&ImageInfo| {
        other.id != image.id && !part.chain.is_empty() && other.layers.concat().starts_with(&part.chain)
    };
    others.iter().filter(has).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(id: &str, user: &str) -> ImageInfo {
        let history = [
            "Imported from -",
            "RUN /bin/sh -c sh /run/envforge/system.sh # buildkit",
            "RUN /bin/sh -c sh /run/envforge/wheels.sh wheels/cuda.txt # buildkit",
            "WORKDIR /workspace",
            "RUN /bin/sh -c sh /run/envforge/wheels.sh wheels/user.txt # buildkit",
            "COPY files/ / # buildkit",
            "ENV A=1",
            "USER 1000:1000",
        ];
        ImageInfo {
            id: id.to_owned(),
            size: 1115,
            layers: ["b", "s", "c", "w", user, "f"].map(str::to_owned).to_vec(),
            sizes: vec![100, 400, 600, 0, 10, 5, 0, 0],
            history: history.map(str::to_owned).to_vec(),
            ..ImageInfo::default()
        }
    }

    #[test]
    fn layers_without_label_are_named_by_history() {
        let parts = components(&image("1", "u"));
        let said: Vec<_> = parts.iter().map(|part| format!("{} {}", part.name, part.size)).collect();
        assert_eq!(
            said,
            [
                "base 100",
                "system 400",
                "CUDA libraries 600",
                "working folder 0",
                "added Python packages 10",
                "envforge's own 5"
            ]
        );
        assert_eq!(parts[2].chain, "bsc");
    }

    #[test]
    fn layer_is_shared_only_with_everything_below_it() {
        let (one, other) = (image("1", "u"), image("2", "v"));
        let all = [one.clone(), other];
        assert_eq!(shared(&one, &all), 1100);
        assert_eq!(shared(&one, &all[..1]), 0, "an image shares nothing with itself");
        let parts = components(&one);
        assert_eq!(sharers(&parts[4], &one, &all), 0);
        assert_eq!(sharers(&parts[5], &one, &all), 0, "equal bytes above another layer are another layer");
    }

    fn named(image: &ImageInfo) -> Vec<String> {
        components(image).iter().map(|part| format!("{} {}", part.name, part.size)).collect()
    }

    #[test]
    fn layers_are_named_by_the_label() {
        let mut image = image("1", "u");
        image.labels = [(LAYERS_LABEL.to_owned(), "system,cuda,workdir,news,files".to_owned())].into();
        let said = [
            "base 100",
            "system 400",
            "CUDA libraries 600",
            "working folder 0",
            "news 10",
            "envforge's own 5",
        ];
        assert_eq!(named(&image), said);
        // Commands that say nothing of their content.
        image
            .history
            .iter_mut()
            .filter(|line| line.starts_with("RUN"))
            .for_each(|line| *line = "RUN x".to_owned());
        assert_eq!(named(&image), said);
        image.labels.clear();
        assert_ne!(named(&image), said, "the twin: without the label the history decides");
    }

    #[test]
    fn layers_of_a_child_image_are_above_the_labelled_ones() {
        let mut image = image("1", "u");
        image.labels = [(LAYERS_LABEL.to_owned(), "system,cuda,workdir,user,files".to_owned())].into();
        let lines = [format!("LABEL {LAYERS_LABEL}=system,cuda # buildkit"), "RUN make".to_owned()];
        image.history.extend(lines);
        image.sizes.extend([0, 7]);
        image.layers.push("r".to_owned());
        image.size += 7;
        let said = named(&image);
        assert_eq!(said[..2], ["base 100", "system 400"]);
        assert_eq!(said[5..], ["envforge's own 5", "run step 7"]);
    }

    #[test]
    fn label_with_more_layers_than_the_image_is_ignored() {
        let mut image = image("1", "u");
        let before = named(&image);
        image.labels = [(LAYERS_LABEL.to_owned(), ["run"; 9].join(","))].into();
        assert_eq!(named(&image), before);
    }
}
