//! Every container with code that is not ours is started by one constructor, which has all its bounds. Reads the sources: a place
//! that starts one in another way is refused, unless it is named here with its reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Places that describe a container without the bounds: how many in each file, and why.
const EXCEPTIONS: [(&str, usize, &str); 6] = [
    (
        "src/base/bootstrap.rs",
        1,
        "dpkg of signed packages of the distribution, whose scripts need root's capabilities",
    ),
    (
        "src/container_layers/toolkit.rs",
        1,
        "our script changes the root, and what it changed becomes the layer",
    ),
    ("src/engine/container/files.rs", 1, "reads files of a container that is never started"),
    (
        "src/packages/resolve_debs.rs",
        1,
        "our apt in an image of ours, which has files of a base and the network",
    ),
    ("src/packages/uv_by_pip.rs", 1, "pip of the distribution in an image of ours downloads uv by its hash"),
    ("src/packages/uv_run.rs", 1, "our uv in an image of ours, which has the network"),
];
/// Where the engine is asked to create a container: for runs and their volumes, and for shells.
const CREATING: [&str; 2] = ["src/engine/container/guard.rs", "src/engine/container/shell_container.rs"];
/// Where the engine is given an archive of images: one that was written here.
const LOADING: [&str; 1] = ["src/engine/image/load_part.rs"];

/// The sources without their tests, by path.
pub(crate) fn sources() -> BTreeMap<String, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut folders, mut all) = (vec![root.join("src")], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of sources") {
            let path: PathBuf = entry.expect("readable").path();
            let name = path.strip_prefix(root).expect("below it").display().to_string();
            if path.is_dir() {
                folders.push(path);
            } else if Path::new(&name).extension().is_some_and(|kind| kind == "rs") && !name.contains("test")
            {
                let text = std::fs::read_to_string(&path).expect("text");
                let code = text.split("mod tests {").next().unwrap_or_default();
                let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
                all.insert(name, lines.flat_map(|line| [line, "\n"]).collect());
            }
        }
    }
    all
}

/// The files that contain a text.
fn with(text: &str) -> Vec<String> {
    sources().into_iter().filter(|(_, code)| code.contains(text)).map(|(name, _)| name).collect()
}

#[test]
fn container_of_strangers_has_every_bound_or_a_reason() {
    let mut wrong = Vec::new();
    let (mut open, mut bounded) = (BTreeMap::new(), 0);
    for (name, code) in sources() {
        let described = code.matches("RunRequest {").count() - code.matches("struct RunRequest {").count();
        let described =
            described - code.matches("impl RunRequest {").count() - code.matches("-> RunRequest {").count();
        // `..RunRequest::bounded(…)` at the end of a description gives it the bounds.
        let of_strangers = code.matches("..RunRequest::bounded(").count();
        bounded += of_strangers;
        if described > of_strangers {
            open.insert(name, described - of_strangers);
        }
    }
    for (name, count) in &open {
        if !EXCEPTIONS.iter().any(|(file, known, _)| file == name && known == count) {
            wrong.push(format!("{name} describes {count} containers without the bounds"));
        }
    }
    wrong.extend(
        EXCEPTIONS
            .iter()
            .filter(|(file, ..)| !open.contains_key(*file))
            .map(|(file, ..)| format!("{file} has none")),
    );
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(bounded >= 7, "{bounded} are seen: the search finds them");
}

#[test]
fn bounds_are_loosened_by_name_only() {
    for (name, code) in sources() {
        let is_own = name == "src/engine/container/run_request.rs" || name == "src/engine/container/guard.rs";
        assert!(is_own || !code.contains("sandbox: true"), "{name} opens or closes a sandbox itself");
        assert!(is_own || !code.contains("limits: None"), "{name} takes limits away");
    }
    assert_eq!(with(".with_writable_root("), ["src/workflow/check_container.rs"]);
}

#[test]
fn engine_is_asked_for_containers_and_given_archives_at_known_places() {
    assert_eq!(with("client.create_container("), CREATING);
    assert_eq!(with("daemon.load("), LOADING);
    assert_eq!(with("\"/images/load\""), ["src/engine/transport/messages.rs"]);
}

/// A program that is started elsewhere inherits the key that signs and the login of the registry.
#[test]
fn programs_are_started_at_one_place() {
    assert_eq!(with("Command::new("), ["src/host/child_process.rs"]);
    for text in ["process::Command as", "CommandExt", "posix_spawn", "libc::exec"] {
        assert_eq!(with(text), Vec::<String>::new(), "{text}");
    }
    let programs: usize = sources().values().map(|code| code.matches("child(").count()).sum();
    assert!(programs >= 12, "{programs} are seen: the search finds them");
}
