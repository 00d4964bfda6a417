//! devcontainer.json: the image for VS Code and other tools with dev container support.
//!
//! Pure: text from names.

use serde_json::{Value, json};

use crate::model::export::project_code::{CODE_FOLDER, CODE_TARGET};
use crate::model::image::paths::{HOME, WORKSPACE};
use crate::model::image_ref::ImageRef;
use crate::model::shared_memory::shm_text;

/// The directory next to devcontainer.json that contains the Dockerfile and its context.
pub(crate) const IMAGE_FOLDER: &str = "image";

/// Returns devcontainer.json for an image of that name: one in a registry, or one that is built. A GPU is used if available; the tool
/// maps the user to the caller's id. `code`: the path from the opened folder to the one that has the directory `project-code`, whose files
/// make the project's code importable.
pub(crate) fn devcontainer(name: &str, pushed: Option<&ImageRef>, code: Option<&str>) -> Value {
    let (key, image) = match pushed {
        Some(reference) => ("image", json!(reference.to_string())),
        None => {
            ("build", json!({ "dockerfile": format!("{IMAGE_FOLDER}/Dockerfile"), "context": IMAGE_FOLDER }))
        }
    };
    let mut value = json!({
        "name": name,
        key: image,
        "hostRequirements": { "gpu": "optional" },
        "remoteUser": "dev",
        "updateRemoteUserUID": true,
        "workspaceMount": format!("source=${{localWorkspaceFolder}},target={WORKSPACE},type=bind"),
        "workspaceFolder": WORKSPACE,
        "mounts": [format!("source=envforge-home-${{devcontainerId}},target={HOME},type=volume")],
        "securityOpt": ["no-new-privileges"],
        "runArgs": ["--cap-drop=ALL", format!("--shm-size={}", shm_text(None)), "--pids-limit=32768"],
        "customizations": {
            "vscode": {
                "extensions": ["ms-python.python", "ms-toolsai.jupyter"],
                "settings": { "python.defaultInterpreterPath": "/opt/env/bin/python" },
            },
            // An engine refuses a device that it does not have, and the format has no conditions.
            "envforge": {
                "runArgs for InfiniBand or RoCE": ["--device=/dev/infiniband", "--ulimit=memlock=-1"],
                "and for RoCE": ["--network=host"],
            },
        },
    });
    if let Some(path) = code {
        let source = format!("${{localWorkspaceFolder}}/{path}/{CODE_FOLDER}");
        let mount = format!("source={source},target={CODE_TARGET},type=bind,readonly");
        if let Some(mounts) = value["mounts"].as_array_mut() {
            mounts.push(json!(mount));
        }
        value["containerEnv"] = json!({ "PYTHONPATH": CODE_TARGET });
        value["remoteEnv"] = json!({ "PATH": format!("${{containerEnv:PATH}}:{CODE_TARGET}/bin") });
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devcontainer_has_the_published_shape() {
        let value = devcontainer("pytorch-cuda:2.8.0-cu128-py3.11", None, None);
        assert_eq!(value["hostRequirements"]["gpu"], "optional");
        assert_eq!(value["build"]["dockerfile"], "image/Dockerfile");
        // Those tools reject a mount without a folder and a folder without a mount.
        assert!(value["workspaceMount"].is_string() && value["workspaceFolder"] == "/workspace");
        assert!(
            value["runArgs"].as_array().is_some_and(|all| all.contains(&json!("--shm-size=9g"))),
            "{value}"
        );
        let option = &value["customizations"]["envforge"]["runArgs for InfiniBand or RoCE"];
        assert_eq!(option, &json!(["--device=/dev/infiniband", "--ulimit=memlock=-1"]));
        for list in ["mounts", "securityOpt", "runArgs"] {
            assert!(value[list].as_array().expect(list).iter().all(Value::is_string), "{list}");
        }
        let reference = format!("registry.example.com/team/vision@sha256:{}", "a".repeat(64));
        let pushed =
            devcontainer("vision", Some(&reference.parse().expect("a reference")), Some(".devcontainer"));
        assert_eq!((pushed["image"].as_str(), &pushed["build"]), (Some(reference.as_str()), &Value::Null));
        let mount = "source=${localWorkspaceFolder}/.devcontainer/project-code,target=/envforge/project,type=bind,readonly";
        assert_eq!(pushed["mounts"][1], mount);
        assert_eq!(pushed["containerEnv"]["PYTHONPATH"], "/envforge/project");
        assert_eq!(pushed["remoteEnv"]["PATH"], "${containerEnv:PATH}:/envforge/project/bin");
        assert_eq!(
            (&value["containerEnv"], value["mounts"].as_array().map(Vec::len)),
            (&Value::Null, Some(1))
        );
    }
}
