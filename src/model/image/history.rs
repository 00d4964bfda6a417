//! Layers of an image by the lines of its history: the sizes of all, and the components of images without the layers label.
//!
//! The components are a guess from the commands, kept for images that were built before the label.

use crate::model::image::component::ComponentKind;
use crate::model::image::config::LINE;
use crate::model::image::info::ImageInfo;

/// A layer of the history.
pub(super) struct HistoryLayer {
    /// Its place among the lines of the history.
    pub(super) line: usize,
    /// The component its command shows.
    pub(super) kind: ComponentKind,
    /// Its size in bytes.
    pub(super) size: u64,
}

/// The component of a line of the history; `None`: it makes no layer.
fn component(line: &str) -> Option<ComponentKind> {
    if let Some(own) = line.strip_prefix(LINE) {
        return ComponentKind::from_id(own.split(':').next()?);
    }
    let holds = |part: &str| line.contains(part);
    let makes = ["RUN ", "COPY ", "ADD ", "WORKDIR "].iter().any(|word| line.starts_with(word));
    makes.then(|| match line {
        _ if holds("wheels.sh wheels/cuda") => ComponentKind::Cuda,
        _ if holds("wheels.sh wheels/framework") => ComponentKind::Framework,
        _ if holds("wheels.sh wheels/stack") => ComponentKind::Stack,
        _ if holds("wheels.sh wheels/user") => ComponentKind::User,
        _ if holds("wheels.sh wheels/project") => ComponentKind::Project,
        _ if holds("system.sh more") => ComponentKind::Apt,
        _ if holds("system.sh") => ComponentKind::System,
        _ if holds("toolkit.py") => ComponentKind::Toolkit,
        _ if line.starts_with("COPY files/ ") => ComponentKind::Files,
        _ if line.starts_with("COPY ") || line.starts_with("ADD ") => ComponentKind::Copy,
        _ if line.starts_with("WORKDIR ") => ComponentKind::WorkDir,
        _ => ComponentKind::Run,
    })
}

/// The lines of an image's history that make a layer, lowest first.
pub(super) fn history_layers(image: &ImageInfo) -> Vec<HistoryLayer> {
    let lines = image.history.iter().zip(&image.sizes).enumerate();
    let layer = |(number, (line, size)): (usize, (&String, &u64))| {
        component(line).map(|kind| HistoryLayer { line: number, kind, size: *size })
    };
    lines.filter_map(layer).collect()
}

/// The layers above the base, lowest first: everything from the system layer up, since the base may be anything.
pub(super) fn layers_above_base(image: &ImageInfo) -> Vec<HistoryLayer> {
    let mut layers = history_layers(image);
    let system = layers.iter().rposition(|layer| layer.kind == ComponentKind::System).unwrap_or(0);
    layers.split_off(system)
}

/// The names of the components that these lines make.
#[cfg(test)]
pub(super) fn made_layers(lines: &[String]) -> impl Iterator<Item = &'static str> {
    lines.iter().filter_map(|line| component(line)).map(ComponentKind::name)
}
