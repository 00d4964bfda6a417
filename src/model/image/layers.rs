//! Layers of wheels, with their requirement files.

use std::fmt::Write as _;

use crate::model::image::component::ComponentKind;
use crate::model::image::context::ContextEntry;
use crate::model::image::description::LayerPlan;
use crate::model::lock::{IndexKind, Lock, LockedWheel, WheelLayer};

/// The wheel layers that have wheels, lowest first, each with its requirement files.
pub(super) fn layers(lock: &Lock) -> Vec<(LayerPlan, Vec<ContextEntry>)> {
    let all =
        [WheelLayer::Cuda, WheelLayer::Framework, WheelLayer::Stack, WheelLayer::User, WheelLayer::Project];
    all.into_iter().filter_map(|layer| one_layer(lock, layer)).collect()
}

fn one_layer(lock: &Lock, layer: WheelLayer) -> Option<(LayerPlan, Vec<ContextEntry>)> {
    let stack = &lock.stack;
    let (kind, file, what) = match layer {
        WheelLayer::Cuda => (
            ComponentKind::Cuda,
            "cuda",
            format!("CUDA {} libraries: the only copy in this image", stack.toolkit),
        ),
        WheelLayer::Framework => (
            ComponentKind::Framework,
            "framework",
            format!("{} {} and its dependencies", stack.framework, stack.version),
        ),
        WheelLayer::Stack => (ComponentKind::Stack, "stack", "developer stack".to_owned()),
        WheelLayer::User => {
            (ComponentKind::User, "user", format!("requested packages: {}", summarize(&lock.added.python)))
        }
        WheelLayer::Project => (ComponentKind::Project, "project", "the project itself".to_owned()),
    };
    let mut entries = Vec::new();
    let mut count = 0;
    for (kind, suffix) in KINDS {
        let wheels: Vec<_> =
            lock.wheels.iter().filter(|wheel| wheel.layer == layer && wheel.index == kind).collect();
        if !wheels.is_empty() {
            count += wheels.len();
            entries.push(ContextEntry::text(&format!("wheels/{file}{suffix}.txt"), requirements(&wheels)));
        }
    }
    let files = entries.iter().map(|entry| entry.path.clone()).collect();
    let plural = if count == 1 { "wheel" } else { "wheels" };
    let title = format!("{what}, {count} {plural}.");
    let local = lock.local_wheels().any(|wheel| wheel.layer == layer);
    let user = layer >= WheelLayer::User;
    (count > 0).then_some((LayerPlan { title, files, user, local, kind }, entries))
}

/// Endings of the requirement files of each kind.
const KINDS: [(IndexKind, &str); 3] =
    [(IndexKind::Default, ""), (IndexKind::Framework, ".framework"), (IndexKind::Local, ".local")];
/// The requested packages in a line: of a long list the first ten.
pub(crate) fn summarize(names: &[String]) -> String {
    const SHOWN: usize = 10;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Requirement lines with hashes.
fn requirements(wheels: &[&LockedWheel]) -> String {
    let mut text = String::new();
    for wheel in wheels {
        let _ = writeln!(text, "{}=={} --hash=sha256:{}", wheel.name, wheel.version, wheel.sha256);
    }
    text
}
