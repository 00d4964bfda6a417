//! The examples' part without a GPU, in the real image they are written for.

use std::process::Command;

use crate::example::{assert_said, examples};
use crate::scene::Scene;

const SPEC: &str = "pytorch-cuda:2.8-cu128";

#[test]
#[cfg_attr(
    not(feature = "docker-more"),
    ignore = "needs docker and NVIDIA's wheels: cargo test --features docker-more"
)]
fn the_examples_of_pytorch_say_in_its_image_what_is_recorded() {
    let scene = Scene::new();
    let built = scene.succeed(&["build", SPEC, "--with", "ninja"]);
    let image = built.stdout.lines().next().expect("a tag");
    let of_pytorch = |text: &str| text.contains("spec = \"pytorch-cuda:");
    for example in examples() {
        let toml = std::fs::read_to_string(example.folder.join("envforge.toml")).expect("it is there");
        if !of_pytorch(&toml) {
            continue;
        }
        let folder = format!("{}:/example:ro", example.folder.display());
        let command = format!("cp -r /example/. /tmp && cd /tmp && {}", example.command);
        let output = Command::new("docker")
            .args(["run", "--rm", "--network", "none", "-v", &folder, image, "bash", "-euc", &command])
            .output()
            .expect("the docker client starts");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {stdout}{stderr}", example.name);
        assert_said(&example, &stdout, &stderr);
    }
}
