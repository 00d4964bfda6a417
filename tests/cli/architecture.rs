//! The house keeps its arrows: protocol, failure <- model <- settings <- edges <- workflow <- commands; `cli` knows only
//! `model`; no circle between rooms or files. Reads every `use`, inline path, macro, `#[path]` and path in an attribute.

mod arrows;
mod modules;
mod reader_tests;
mod rules;
mod scanner;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use modules::{Files, Modules};
use rules::Violation;

/// Where modules of the crates are; those below `tests` are test modules of the library.
const ROOTS: [&str; 8] = [
    "src",
    "build.rs",
    "build",
    "kernels",
    "tests/fuzz",
    "tests/support/made_wheel.rs",
    "tests/support/memory_registry.rs",
    "tests/support/registry_process.rs",
];

/// The Rust sources below some folders and files of a repository.
fn sources(root: &Path, starts: &[&str]) -> Files {
    let mut files = Files::new();
    let mut open: Vec<PathBuf> = starts.iter().map(|start| root.join(start)).collect();
    while let Some(path) = open.pop() {
        if let Ok(folder) = std::fs::read_dir(&path) {
            open.extend(folder.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") && path.exists() {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            files.insert(name, std::fs::read_to_string(&path).expect("UTF-8"));
        }
    }
    files
}

/// Reads library, program and build script.
fn read(files: &Files) -> Modules {
    let mut modules = Modules::default();
    let library = modules.read_crate(files, "src/lib.rs");
    modules.library = Some(("envforge".to_owned(), library));
    for root in ["src/main.rs", "src/bin/maintain.rs", "build.rs"] {
        if files.contains_key(root) {
            modules.read_crate(files, root);
        }
    }
    modules
}

/// Every violation of a tree.
fn violations_of(files: &Files) -> Vec<Violation> {
    let modules = read(files);
    rules::violations(&modules, &arrows::arrows(&modules))
}

/// `src/a.rs -> src/b.rs (line N: text): rule`; an arrow between rooms names the file too.
fn line_of(files: &Files, violation: &Violation) -> String {
    let Violation { from, to, rule, place: (file, line) } = violation;
    let Some(text) = files.get(file).and_then(|text| text.lines().nth(line.checked_sub(1)?)) else {
        return format!("{from} -> {to}: {rule}");
    };
    let file = if file == from { String::new() } else { format!("{file} ") };
    format!("{from} -> {to} ({file}line {line}: {}): {rule}", text.trim())
}

#[test]
fn sources_contain_no_arrow_back_up_and_no_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(root, &ROOTS);
    let violations = violations_of(&files);
    let found: Vec<_> = violations.iter().map(|violation| line_of(&files, violation)).collect();
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_source_file_is_read() {
    let files = sources(Path::new(env!("CARGO_MANIFEST_DIR")), &ROOTS);
    let modules = read(&files);
    let read: BTreeSet<&str> = modules.all.iter().map(|module| module.file.as_str()).collect();
    let unread: Vec<_> =
        files.keys().filter(|file| file.starts_with("src/") && !read.contains(file.as_str())).collect();
    assert!(unread.is_empty(), "no module declares {unread:?}");
    assert_eq!(modules.missing, []);
}

#[test]
fn crates_below_depend_on_the_protocol_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = |folder: &str| -> toml::Table {
        let path = root.join(folder).join("Cargo.toml");
        std::fs::read_to_string(path).expect("a manifest").parse().expect("TOML")
    };
    // Before the workspace the agent is a folder of sources and has no dependency to check.
    let is_split = manifest("").contains_key("workspace");
    let crates: &[(&str, &[&str])] =
        if is_split { &[("kernels/protocol", &[]), ("kernels/agent", &["envforge-protocol"])] } else { &[] };
    for (folder, allowed) in crates {
        let manifest = manifest(folder);
        for section in ["dependencies", "build-dependencies"] {
            let dependencies = manifest.get(section).and_then(toml::Value::as_table);
            for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
                assert!(allowed.contains(&dependency.as_str()), "{folder} depends on {dependency}");
            }
        }
    }
}
