//! The configuration of an image that envforge puts together itself (OCI image specification, "Image Configuration").
//!
//! Pure: the same description, base and layers give the same bytes, so the image's digest is a function of them.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::image::description::ImageDescription;
use crate::model::image::info::ImageInfo;
use crate::model::image::labels::LAYERS_LABEL;
use crate::model::image_digest::Digest;
use crate::model::versions::Machine;

/// The time of everything in an image: no build may differ from another by its clock.
const CREATED: &str = "1980-01-02T00:00:00Z";
/// The beginning of a line of the history that envforge writes, before the id of the component.
pub(super) const LINE: &str = "envforge ";

/// What the configuration of an image says of its layers.
#[derive(Debug, Clone, Deserialize)]
pub struct ConfiguredLayers {
    /// The architecture of their files: `amd64`.
    pub architecture: String,
    /// The layers.
    pub rootfs: RootFs,
    /// A line for each step that made them; engines leave it out, or write `null`.
    #[serde(default)]
    pub history: Option<Vec<HistoryLine>>,
}

/// A line of the history.
#[derive(Debug, Clone, Deserialize)]
pub struct HistoryLine {
    /// What made the layer.
    #[serde(default)]
    pub created_by: String,
}

/// The layers in a configuration.
#[derive(Debug, Clone, Deserialize)]
pub struct RootFs {
    /// The digest of the tar of each, lowest first.
    pub diff_ids: Vec<Digest>,
}

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
            "Labels": all_labels(image, base, layers),
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

/// The labels of the base, then ours; that of the components lists the layers as they are.
fn all_labels(image: &ImageDescription, base: &ImageInfo, layers: &[MadeLayer]) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> =
        base.labels.clone().into_iter().chain(image.labels.clone()).collect();
    let components: Vec<&str> = layers.iter().map(|layer| layer.component.as_str()).collect();
    all.insert(LAYERS_LABEL.to_owned(), components.join(","));
    all
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
    use crate::model::image::inventory::components;
    use crate::model::image::plan::{BaseSource, CachedFile, ContextFiles, plan};
    use crate::model::lock::{LockedDeb, sample};

    fn made(component: &str) -> MadeLayer {
        let diff_id = format!("sha256:{component}");
        MadeLayer { component: component.to_owned(), title: "a title".to_owned(), diff_id }
    }

    /// An image as an engine describes it after loading this configuration.
    fn loaded(config: &str) -> ImageInfo {
        let config: Value = serde_json::from_str(config).expect("JSON");
        let texts = |list: &Value| -> Vec<String> {
            list.as_array()
                .expect("a list")
                .iter()
                .map(|one| one.as_str().expect("text").to_owned())
                .collect()
        };
        let history = config["history"].as_array().expect("a list");
        let labels = config["config"]["Labels"].as_object().expect("an object");
        ImageInfo {
            layers: texts(&config["rootfs"]["diff_ids"]),
            history: history
                .iter()
                .map(|line| line["created_by"].as_str().expect("text").to_owned())
                .collect(),
            sizes: history.iter().map(|line| u64::from(line["empty_layer"] != Value::Bool(true))).collect(),
            labels: labels
                .iter()
                .map(|(name, value)| (name.clone(), value.as_str().expect("text").to_owned()))
                .collect(),
            size: 10,
            ..ImageInfo::default()
        }
    }

    #[test]
    fn components_of_the_image_are_its_layers() {
        let lock = sample::lock();
        let paths = |debs: &[LockedDeb]| debs.iter().map(|deb| deb.path.clone().into()).collect();
        let uv = CachedFile { path: "uv".into(), size: 1, sha256: "c".repeat(64) };
        let files = ContextFiles {
            bottom: BaseSource::Image("base".to_owned()),
            debs: paths(&lock.system),
            unpacked: paths(&lock.unpacked),
            apt: paths(&lock.apt),
            copies: Vec::new(),
            wheels: Vec::new(),
            local: Vec::new(),
            uv,
            agent: bytes::Bytes::new(),
        };
        let image = plan(&lock, files).image;
        let base = ImageInfo { layers: vec!["sha256:base".to_owned()], ..ImageInfo::default() };
        let layers = ["system", "environment", "cuda", "cuda", "framework", "files"].map(made);
        let text = config(&image, &base, Machine::X86_64, &layers);
        assert_eq!(text, config(&image, &base, Machine::X86_64, &layers));
        let found = components(&loaded(&text));
        let names: Vec<_> = found.iter().map(|part| part.name.as_str()).collect();
        let cuda = "CUDA libraries";
        assert_eq!(names, ["base", "system", "environment", cuda, cuda, "framework", "envforge's own"]);
        assert_eq!(found[0].chain, "sha256:base");
    }

    #[test]
    fn environment_replaces_variables_of_the_base_in_place() {
        let base = ["PATH=/bin".to_owned(), "BASE=1".to_owned()];
        let ours = [("LANG", "C"), ("PATH", "/opt/env/bin:/bin")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        assert_eq!(environment(&base, &ours), ["PATH=/opt/env/bin:/bin", "BASE=1", "LANG=C"]);
    }
}
