//! The examples: without a GPU in one real image, on a GPU each in its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::engine::docker;
use crate::example::{Example, assert_said, examples};
use crate::program::Run;
use crate::scene::{Scene, copy_folder};

/// Runs every example without a GPU in one image, and builds the child of one. CuPy and Numba have specs of their own, which
/// need a GPU for what they have more.
#[test]
#[ignore = "nightly: needs docker and eight gigabytes of its own"]
fn examples_say_what_is_recorded() {
    let scene = Scene::new();
    let words = [
        "build",
        "pytorch-cuda:2.8-cu128",
        "--with",
        "ninja",
        "--with",
        "numba-cuda",
        "--with",
        "cupy-cuda12x",
    ];
    let built = scene.succeed(&words);
    let image = built.stdout.lines().next().expect("a tag");
    for example in examples() {
        let run = Run::of(&run_in(image, &example));
        assert_eq!(run.code, 0, "{}: {}{}", example.name, run.stdout, run.stderr);
        assert_said(&example, &run.stdout, &run.stderr);
    }
    let child = named("pytorch/child-image");
    let run = build_script(&scene, &child);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_said(&child, &run.stdout, &run.stderr);
    docker(&["rmi", "example-child:1"]);
}

fn named(name: &str) -> Example {
    examples().into_iter().find(|example| example.name == name).expect("an example")
}

/// The example's command in a container without a GPU, beside a copy of its files.
fn run_in(image: &str, example: &Example) -> Output {
    let folder = format!("{}:/example:ro", example.project.display());
    let command = format!("cp -r /example/. /tmp && cd /tmp && {}", example.command);
    Command::new("docker")
        .args(["run", "--rm", "--network", "none", "-v", &folder, image, "bash", "-euc", &command])
        .output()
        .expect("the docker client starts")
}

/// The example in a folder of the scene, without its lock: what that names may be gone from the mirrors by now.
fn copy_of(scene: &Scene, example: &Example) -> PathBuf {
    let folder = scene.program.path(example.project.file_name().expect("a name"));
    copy_folder(&example.project, &folder);
    std::fs::remove_file(folder.join("envforge.lock")).expect("every example has one");
    folder
}

/// `build.sh` of the child image, with envforge on the PATH.
fn build_script(scene: &Scene, example: &Example) -> Run {
    let folder = copy_of(scene, example);
    let program = Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a PATH"));
    let mut shell = scene.program.command_of(Path::new("sh"), &["child-image/build.sh"]);
    Run::of(&shell.current_dir(folder).env("PATH", path).output().expect("a shell"))
}

#[test]
#[ignore = "nightly: needs docker and downloads gigabytes of NVIDIA's packages"]
fn image_compiles_an_extension_with_its_nvcc() {
    let scene = Scene::new();
    let example = named("cuda-extension");
    let folder = copy_of(&scene, &example);
    let run = Run::of(&scene.program.command(&["build"]).current_dir(folder).output().expect("it starts"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    let image = run.stdout.lines().next().expect("a tag");
    let run = Run::of(&run_in(image, &example));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    let expected = std::fs::read_to_string(example.folder.join("expected-nvcc.txt")).expect("it is there");
    let expected = expected.lines().map(str::to_owned).collect();
    assert_said(&Example { expected, ..example }, &run.stdout, &run.stderr);
}

#[test]
#[ignore = "by hand: needs docker and an NVIDIA GPU"]
fn every_example_uses_the_gpu_on_a_gpu() {
    for example in examples() {
        let scene = Scene::new();
        let folder = copy_of(&scene, &example);
        let command = example.command.replace("env NUMBA_ENABLE_CUDASIM=1 ", "");
        let envforge = |args: &[&str]| {
            let mut program = scene.program.command(args);
            program.current_dir(&folder).env_remove("ENVFORGE_GPU").env_remove("ENVFORGE_DRIVER");
            let run = Run::of(&program.output().expect("it starts"));
            assert_eq!(run.code, 0, "{}: {}{}", example.name, run.stdout, run.stderr);
            run.stdout
        };
        let built = envforge(&["build", "--require-gpu"]);
        let image = built.lines().next().expect("a tag");
        let said = envforge(&["shell", image, "--", "bash", "-euc", &command]);
        assert!(!said.is_empty() && !said.contains("no GPU"), "{}: {said}", example.name);
    }
}
