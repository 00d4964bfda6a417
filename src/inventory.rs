//! What an image is made of, by what envforge put in each layer, and which layers images share.
//!
//! Pure: looks at what the engine said of the images.

use serde::Serialize;

use crate::engine::ImageInfo;

/// A layer of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Component {
    /// What it holds, in a word: `framework`.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// The layer and all below it, as one name: two images share a layer only with everything under it.
    #[serde(skip)]
    pub chain: String,
}

/// What a line of an image's history put into it; `None`: nothing, it makes no layer.
fn component(line: &str) -> Option<&'static str> {
    let holds = |part: &str| line.contains(part);
    let makes = ["RUN ", "COPY ", "ADD ", "WORKDIR "].iter().any(|word| line.starts_with(word));
    if !makes {
        return None;
    }
    Some(match line {
        _ if holds("wheels.sh wheels/cuda") => "CUDA libraries",
        _ if holds("wheels.sh wheels/framework") => "framework",
        _ if holds("wheels.sh wheels/stack") => "developer stack",
        _ if holds("wheels.sh wheels/user") => "added Python packages",
        _ if holds("system.sh more") => "added distribution packages",
        _ if holds("system.sh") => "system",
        _ if holds("toolkit.py") => "toolkit",
        _ if line.starts_with("COPY files/ ") => "envforge's own",
        _ if line.starts_with("COPY ") || line.starts_with("ADD ") => "copied files",
        _ if line.starts_with("WORKDIR ") => "working folder",
        _ => "run step",
    })
}

/// The components of an image of ours, lowest first; the layers of the base are one.
pub fn components(image: &ImageInfo) -> Vec<Component> {
    let mut found = Vec::new();
    // From the top down to the system layer: below it lies the base, whatever that is made of.
    let lines = image.history.iter().zip(&image.sizes).rev();
    for (line, size) in lines {
        let Some(name) = component(line) else { continue };
        found.push((name, *size));
        if name == "system" {
            break;
        }
    }
    found.reverse();
    let base_layers = image.layers.len().saturating_sub(found.len());
    let ours: u64 = found.iter().map(|(_, size)| size).sum();
    let mut all = vec![Component {
        name: "base".to_owned(),
        size: image.size.saturating_sub(ours),
        chain: image.layers[..base_layers].concat(),
    }];
    for (number, (name, size)) in found.into_iter().enumerate() {
        let upto = (base_layers + number + 1).min(image.layers.len());
        all.push(Component { name: name.to_owned(), size, chain: image.layers[..upto].concat() });
    }
    all
}

/// How many bytes of an image others of these share, each component once.
pub fn shared(image: &ImageInfo, others: &[ImageInfo]) -> u64 {
    components(image).iter().filter(|part| sharers(part, image, others) > 0).map(|part| part.size).sum()
}

/// How many of these images, not counting the image itself, have a component with all that lies below it.
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
    fn each_layer_has_its_name_and_the_base_is_what_lies_below() {
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
    fn a_layer_is_shared_only_with_all_that_lies_below_it() {
        let (one, other) = (image("1", "u"), image("2", "v"));
        let all = [one.clone(), other];
        assert_eq!(shared(&one, &all), 1100);
        assert_eq!(shared(&one, &all[..1]), 0, "an image shares nothing with itself");
        let parts = components(&one);
        assert_eq!(sharers(&parts[4], &one, &all), 0);
        assert_eq!(sharers(&parts[5], &one, &all), 0, "equal bytes above another layer are another layer");
    }
}
