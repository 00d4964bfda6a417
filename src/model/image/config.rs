//! The configuration of an image that envforge puts together itself (OCI image specification, "Image Configuration").
//!
//! Pure: the same description, base and layers give the same bytes, so the image's digest is a function of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::image::description::ImageDescription;
use crate::model::image::info::ImageInfo;
use crate::model::image::labels::LAYERS_LABEL;
use crate::model::versions::Machine;

/// The time of everything in an image: no build may differ from another by its clock.
const CREATED: &str = "1980-01-02T00:00:00Z";
/// The beginning of a line of the history that envforge writes, before the id of the component.
pub(super) const LINE: &str = "envforge ";

/// A layer above the base, with the component that it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadeLayer {
    /// The component's id: `framework`.
    pub component: String,
    /// What it holds, for the history.
    pub title: String,
    /// SHA-256 of its tar: `sha256:…`.
    pub diff_id: String,
}

/// Returns the configuration of an image as JSON.
pub fn config(image: &ImageDescription, base: &ImageInfo, machine: Machine, layers: &[MadeLayer]) -> String {
    let diff_ids: Vec<&String> =
        base.layers.iter().chain(layers.iter().map(|layer| &layer.diff_id)).collect();
    json!({
        "architecture": machine.debian(),
        "os": "linux",
        "created": CREATED,
        "config": {
            "User": "1000:1000",
            "Env": environment(&base.env, &image.environment),
            "Entrypoint": ["/usr/bin/tini", "-g", "--", "/opt/envforge/entrypoint"],
            "Cmd": ["bash"],
            "WorkingDir": "/workspace",
            "Labels": all_labels(image, base),
        },
        "history": history(base, layers),
        "rootfs": { "type": "layers", "diff_ids": diff_ids },
    })
    .to_string()
}

/// The variables of the base, then ours: a variable that both have is ours and stands where the base has it.
fn environment(base: &[String], ours: &BTreeMap<String, String>) -> Vec<String> {
    let name = |text: &str| text.split('=').next().unwrap_or_default().to_owned();
    let written = |name: &str, value: &str| format!("{name}={value}");
    let mut all: Vec<String> = Vec::new();
    for text in base {
        let name = name(text);
        all.push(ours.get(&name).map_or_else(|| text.clone(), |value| written(&name, value)));
    }
    let new = ours.iter().filter(|(own, _)| !base.iter().any(|text| name(text) == **own));
    all.extend(new.map(|(name, value)| written(name, value)));
    all
}

fn all_labels<'a>(image: &'a ImageDescription, base: &'a ImageInfo) -> BTreeMap<&'a String, &'a String> {
    base.labels.iter().chain(&image.labels).collect()
}

fn history(base: &ImageInfo, layers: &[MadeLayer]) -> Vec<Value> {
    let line = |text: String| json!({ "created": CREATED, "created_by": text });
    let below = base.layers.iter().map(|_| line("base".to_owned()));
    let ours = layers.iter().map(|layer| line(format!("{LINE}{}: {}", layer.component, layer.title)));
    let label = json!({
        "created": CREATED, "created_by": format!("LABEL {LAYERS_LABEL}"), "empty_layer": true,
    });
    below.chain(ours).chain([label]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environment_replaces_variables_of_the_base_in_place() {
        let base = ["PATH=/bin".to_owned(), "BASE=1".to_owned()];
        let ours = [("LANG", "C"), ("PATH", "/opt/env/bin:/bin")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        assert_eq!(environment(&base, &ours), ["PATH=/opt/env/bin:/bin", "BASE=1", "LANG=C"]);
    }
}
