//! devcontainer.json: the image for VS Code and other tools with dev container support.
//!
//! Pure: text from names.

use serde_json::{Value, json};

use crate::model::image::paths::{HOME, WORKSPACE};
use crate::model::image_ref::ImageRef;

/// The directory next to devcontainer.json that contains the Dockerfile and its context.
pub(crate) const IMAGE_FOLDER: &str = "image";

/// Returns devcontainer.json for an image of that name: one in a registry, or one that is built. A GPU is used if available; the tool
/// maps the user to the caller's id.
pub(crate) fn devcontainer(name: &str, pushed: Option<&ImageRef>) -> Value {
    let (key, image) = match pushed {
        Some(reference) => ("image", json!(reference.to_string())),
        None => {
            ("build", json!({ "dockerfile": format!("{IMAGE_FOLDER}/Dockerfile"), "context": IMAGE_FOLDER }))
        }
    };
    json!({
        "name": name,
        key: image,
        "hostRequirements": { "gpu": "optional" },
        "remoteUser": "dev",
        "updateRemoteUserUID": true,
        "workspaceMount": format!("source=${{localWorkspaceFolder}},target={WORKSPACE},type=bind"),
        "workspaceFolder": WORKSPACE,
        "mounts": [format!("source=envforge-home-${{devcontainerId}},target={HOME},type=volume")],
        "securityOpt": ["no-new-privileges"],
        "runArgs": ["--cap-drop=ALL", "--shm-size=2g", "--pids-limit=32768"],
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python", "ms-toolsai.jupyter"],
                "settings": { "python.defaultInterpreterPath": "/opt/env/bin/python" },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devcontainer_has_the_published_shape() {
        let value = devcontainer("pytorch-cuda:2.8.0-cu128-py3.11", None);
        assert_eq!(value["hostRequirements"]["gpu"], "optional");
        assert_eq!(value["build"]["dockerfile"], "image/Dockerfile");
        // Those tools reject a mount without a folder and a folder without a mount.
        assert!(value["workspaceMount"].is_string() && value["workspaceFolder"] == "/workspace");
        for list in ["mounts", "securityOpt", "runArgs"] {
            assert!(value[list].as_array().expect(list).iter().all(Value::is_string), "{list}");
        }
        let reference = format!("registry.example.com/team/vision@sha256:{}", "a".repeat(64));
        let pushed = devcontainer("vision", Some(&reference.parse().expect("a reference")));
        assert_eq!((pushed["image"].as_str(), &pushed["build"]), (Some(reference.as_str()), &Value::Null));
    }
}
