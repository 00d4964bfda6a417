//! An exported Dockerfile builds with nothing but the engine's own client.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::{docker, engine_socket};
use crate::scene::{SPEC, Scene, files_below, python_in};

const EXPORTED: &str = "envforge-test-exported:1";

struct Untag;

impl Drop for Untag {
    fn drop(&mut self) {
        drop(Command::new("docker").args(["rmi", "-f", EXPORTED]).output());
    }
}

#[test]
#[ignore = "needs docker"]
fn exported_dockerfile_builds_without_envforge() {
    let scene = Scene::locked();
    let folder = scene.program.path("exported");
    let folder_text = folder.to_string_lossy();
    scene.succeed(&["export", "dockerfile", SPEC, &folder_text]);
    for file in files_below(&folder) {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("a readable file")).into_owned();
        let address = scene.index.url();
        assert!(!text.contains(&address) && !text.contains("172.17."), "an address in {}", file.display());
    }
    let dockerfile = std::fs::read_to_string(folder.join("Dockerfile")).expect("a Dockerfile");
    assert!(!dockerfile.contains("<<") && !dockerfile.contains("# syntax="), "{dockerfile}");
    scene.assert_nothing_left();

    let _untag = Untag;
    build_exported(&scene, &folder, &format!("unix://{}", engine_socket().display()), EXPORTED);
    assert_eq!(python_in(EXPORTED, "import torch; print(torch.version.cuda)"), "11.8");
    assert_eq!(docker(&["inspect", "-f", "{{.Config.User}}", EXPORTED]), "1000:1000");
}

/// Builds an exported folder on the engine of that address, as somebody without envforge does.
pub(crate) fn build_exported(scene: &Scene, folder: &Path, engine: &str, tag: &str) {
    let index = scene.program.path("index-secret");
    let export = format!("export ENVFORGE_FRAMEWORK_INDEX='{}/cu118'\n", scene.index.url());
    std::fs::write(&index, export).expect("a file of ours");
    let mut build = Command::new(buildkit_client());
    build.env("DOCKER_BUILDKIT", "1").args(["-H", engine, "build", "-q", "-t", tag]);
    build.arg("--secret").arg(format!("id=index,src={}", index.display()));
    let bundle = Path::new("/etc/ssl/certs/ca-certificates.crt");
    if bundle.is_file() {
        build.arg("--secret").arg(format!("id=ca,src={}", bundle.display()));
    }
    let output = build.arg(folder).output().expect("the docker client starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs docker"]
fn export_rejects_a_directory_with_other_files() {
    let scene = Scene::new();
    let folder = scene.program.path("mine");
    std::fs::create_dir(&folder).expect("a folder of ours");
    std::fs::write(folder.join("Dockerfile"), "FROM scratch\n").expect("a file of ours");
    let path = folder.to_string_lossy();
    scene.fail(&["export", "dockerfile", SPEC, &path], 2, &[&path, "--force"]);
    assert_eq!(std::fs::read_to_string(folder.join("Dockerfile")).expect("still there"), "FROM scratch\n");
}

/// A docker client that builds with BuildKit: one with the buildx component, or one from before that was split off.
pub(crate) fn buildkit_client() -> PathBuf {
    let says = |client: &Path, args: &[&str]| {
        let output = Command::new(client).args(args).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let builds = |client: &PathBuf| {
        let version = says(client, &["version", "--format", "{{.Client.Version}}"]).unwrap_or_default();
        let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
        major.is_some_and(|major| major < 23) || says(client, &["buildx", "version"]).is_some()
    };
    let path = std::env::var_os("PATH").expect("a PATH");
    let mut clients =
        std::env::split_paths(&path).map(|folder| folder.join("docker")).filter(|file| file.is_file());
    clients.find(builds).expect("a docker client with the buildx component, or one older than 23")
}
