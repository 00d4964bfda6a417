//! The one real image of the run: seven gigabytes, from empty cache and state to an answer of torch in a browser. Its name
//! makes it the first: it takes the most disk, and gives all but the downloads back before the others begin.

use crate::engine::docker;
use crate::scene::{Scene, python_in};
use crate::shell::Shells;
use crate::shell_browser::assert_a_notebook_answers;

const TAG: &str = "pytorch-cuda:2.8.0-cu128-py3.11-unverified";

#[test]
#[ignore = "nightly: needs docker and builds 8 GB, seven minutes; `small_build` and `shell_browser` take a small framework"]
fn real_pytorch_builds_from_nothing_and_runs_in_a_browser() {
    let shells = Shells::of(Scene::new().with_empty_cache());
    let scene = &shells.scene;
    scene.succeed(&["build", "pytorch-cuda:2.8-cu128"]);
    let said = python_in(TAG, "import torch; print(torch.__version__, torch.version.cuda)");
    assert_eq!(said, "2.8.0+cu128 12.8");
    assert_eq!(docker(&["inspect", "-f", "{{.Config.User}}", TAG]), "1000:1000");
    let cell = ("import torch; torch.ones(2).sum()", "tensor(2.)");
    assert_a_notebook_answers(&shells, TAG, cell, "jupyter.png");
    scene.assert_only_tags_added();
}

/// Another image of the same lock: a lock that records the content refuses one with another.
#[test]
#[ignore = "nightly: needs docker and builds 8 GB twice; `project` compares the builders with small wheels"]
fn dockerfile_of_a_real_pytorch_gives_the_same_content() {
    let scene = Scene::new().with_empty_cache();
    scene.succeed(&["build", "pytorch-cuda:2.8-cu128"]);
    let digest = scene.succeed(&["lock", "pytorch-cuda:2.8-cu128", "--digest"]).stdout;
    // The disk has room for one of them.
    docker(&["rmi", TAG, "pytorch-cuda:2.8-cu128-unverified"]);
    let run =
        scene.succeed(&["build", "pytorch-cuda:2.8-cu128", "--locked", "--builder", "dockerfile", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["content"], digest.trim());
}
