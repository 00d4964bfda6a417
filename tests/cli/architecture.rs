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

/// The crates below the program, with all that each may depend on.
const CRATES: [(&str, &[&str]); 3] = [
    ("kernels/protocol", &[]),
    ("kernels/agent", &["envforge-protocol"]),
    (
        "compat/solver",
        &[
            "envforge-protocol",
            "pep440_rs",
            "pep508_rs",
            "postcard",
            "schemars",
            "semver",
            "serde",
            "sha2",
            "strsim",
            "thiserror",
            "toml",
        ],
    ),
];

#[test]
fn crates_below_depend_on_nothing_of_the_outside() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (folder, allowed) in CRATES {
        let text = std::fs::read_to_string(root.join(folder).join("Cargo.toml")).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("TOML");
        for section in ["dependencies", "build-dependencies"] {
            let dependencies = manifest.get(section).and_then(toml::Value::as_table);
            for dependency in dependencies.into_iter().flat_map(toml::Table::keys) {
                assert!(allowed.contains(&dependency.as_str()), "{folder} depends on {dependency}");
            }
        }
    }
}

/// `required-version` compares with the crate's version: it stands for the program's.
#[test]
fn solver_has_the_version_of_the_program() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/solver/Cargo.toml");
    let manifest: toml::Table = std::fs::read_to_string(path).expect("a manifest").parse().expect("TOML");
    assert_eq!(manifest["package"]["version"].as_str(), Some(env!("CARGO_PKG_VERSION")));
}

/// Equal files, request and target give an equal answer: no clock, network, environment, process or global, and one file that reads.
#[test]
fn solver_asks_nothing_outside() {
    const OUTSIDE: [&str; 8] = [
        "std::env",
        "std::net",
        "std::process",
        "std::time",
        "std::thread",
        "std::fs",
        "OnceLock",
        "thread_local",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = sources(root, &["compat/solver/src"]);
    assert!(files.len() > 60, "{}", files.len());
    let mut found = Vec::new();
    for (file, text) in files {
        let product = text.split("#[cfg(test)]").next().unwrap_or_default();
        let is_test = file.contains("/tests/") || file.ends_with("tests.rs");
        for word in OUTSIDE.iter().filter(|word| !is_test && product.contains(**word)) {
            if !(file.ends_with("/matrix/files.rs") && *word == "std::fs") {
                found.push(format!("{file}: {word}"));
            }
        }
    }
    assert_eq!(found, [""; 0]);
}
