//! The arrows of CONTRIBUTING.md: strata, what `cli` may import, and no circle.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::Arrow;
use super::modules::Modules;

/// The rooms of `src`, lowest stratum first; an arrow may only lead down or stay.
const STRATA: [&[&str]; 7] = [
    &["failure"],
    &["model"],
    &["settings"],
    &[
        "agent",
        "archive",
        "assemble",
        "base",
        "cluster_file",
        "container_layers",
        "engine",
        "evidence",
        "fetch",
        "fleet",
        "host",
        "packages",
        "pages",
        "project_files",
        "registry",
        "report",
        "shell",
        "source_build",
        "store",
    ],
    &["workflow"],
    &["commands"],
    &["maintain"],
];

/// Rooms whose files and folders are rooms of their own.
const NESTED_ROOMS: [&str; 3] = ["src/model", "src/engine", "src/workflow"];

/// Crates that `cli` may use: the parser, types of arguments, and the bottom of everything.
const CRATES_OF_CLI: [&str; 8] =
    ["std", "core", "alloc", "clap", "clap_complete", "clap_mangen", "camino", "envforge_protocol"];

/// Types whose functions are called by a path, and the tool whose lints are named by one.
const PRIMITIVES: [&str; 18] = [
    "bool", "char", "str", "f32", "f64", "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32",
    "u64", "u128", "usize", "clippy",
];

/// An arrow that is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Violation {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) rule: &'static str,
    /// The first place: file and line.
    pub(super) place: (String, usize),
}

/// Every arrow that is not allowed, sorted.
pub(super) fn violations(modules: &Modules, arrows: &[Arrow]) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut allowed = Vec::new();
    for arrow in arrows {
        let Arrow { from, to, line, .. } = arrow.clone();
        match forbidden(&from, &to) {
            Some(rule) => found.push(Violation { place: (from.clone(), line), from, to, rule }),
            None => allowed.push(arrow),
        }
    }
    for (from, to) in &modules.missing {
        let (from, to, place) = (from.clone(), to.clone(), (from.clone(), 0));
        found.push(Violation { from, to, rule: "module file not found", place });
    }
    found.extend(foreign_crates_of_cli(modules));
    found.extend(file_circles(modules, &allowed));
    found.extend(room_circles(modules, &allowed));
    found.sort();
    found.dedup_by(|next, first| (&next.from, &next.to, next.rule) == (&first.from, &first.to, first.rule));
    found
}

/// The room of a file: `src/engine/build/x.rs` is in `engine`.
fn room(file: &str) -> Option<&str> {
    let inside = file.strip_prefix("src/")?;
    Some(inside.split_once('/').map_or_else(|| inside.trim_end_matches(".rs"), |(room, _)| room))
}

fn stratum(room: &str) -> Option<usize> {
    STRATA.iter().position(|rooms| rooms.contains(&room))
}

/// Why one file may not use another.
fn forbidden(from: &str, to: &str) -> Option<&'static str> {
    let (Some(from_room), Some(to_room)) = (room(from), room(to)) else {
        // The crates meet by their names; the build script has files of its own.
        let is_of_build_script = |file: &str| file == "build.rs" || file.starts_with("build/");
        let may = is_of_build_script(from) && is_of_build_script(to);
        return (!may && room(from) != room(to)).then_some("file of another crate");
    };
    let allowed = match (from_room, to_room) {
        _ if from_room == to_room => true,
        ("main", "cli" | "commands") | ("bin", "maintain") | ("cli", "model" | "failure") => true,
        ("main" | "bin" | "lib", _) => {
            return Some("main.rs starts commands and cli only, lib.rs declares modules only");
        }
        (_, "main" | "lib") => return Some("nothing imports main.rs or lib.rs"),
        ("cli", _) => return Some("cli imports only model, failure and clap"),
        (_, "cli") => from == "src/commands/mod.rs" || from_room == "maintain",
        _ => match (stratum(from_room), stratum(to_room)) {
            (Some(from), Some(to)) => to <= from,
            _ => return Some("room without a stratum"),
        },
    };
    (!allowed).then_some("arrow back up")
}

/// Crates other than those that `cli` uses, by `use` or in a path.
fn foreign_crates_of_cli(modules: &Modules) -> Vec<Violation> {
    let mut found = Vec::new();
    for module in modules.all.iter().filter(|module| !module.is_test && room(&module.file) == Some("cli")) {
        for path in module.imports.iter().map(|import| &import.path).chain(&module.paths) {
            let first = path.segments[0].as_str();
            let is_bound = ["crate", "self", "super"].contains(&first)
                || module.children.contains_key(first)
                || module.items.contains(first)
                || module
                    .imports
                    .iter()
                    .any(|import| import.name.as_deref() == Some(first) && import.path.segments.len() > 1);
            // Types begin with a capital letter; what remains is a crate or a primitive type.
            let is_crate =
                first.starts_with(|c: char| c.is_ascii_lowercase()) && !PRIMITIVES.contains(&first);
            if (path.is_absolute || (!is_bound && is_crate)) && !CRATES_OF_CLI.contains(&first) {
                let (from, to) = (module.file.clone(), first.to_owned());
                let place = (from.clone(), path.line);
                found.push(Violation { from, to, rule: "cli imports only model, failure and clap", place });
            }
        }
    }
    found
}

/// Files that only declare and pass on are no part of a circle.
fn is_only_passing_on(modules: &Modules, file: &str) -> bool {
    modules.all.iter().filter(|module| module.file == file && !module.is_test).all(|module| !module.has_code)
}

fn file_circles(modules: &Modules, arrows: &[&Arrow]) -> Vec<Violation> {
    let is_node = |file: &str| room(file).is_some() && !is_only_passing_on(modules, file);
    let edges: Vec<_> = arrows
        .iter()
        .filter(|arrow| !arrow.is_passed_on && is_node(&arrow.from) && is_node(&arrow.to))
        .map(|arrow| (arrow.from.clone(), arrow.to.clone(), *arrow))
        .collect();
    circles(&edges, "circle of files")
}

fn room_circles(modules: &Modules, arrows: &[&Arrow]) -> Vec<Violation> {
    let mut found = Vec::new();
    for outer in std::iter::once("src").chain(NESTED_ROOMS) {
        let node = |file: &str| {
            let inside = file.strip_prefix(outer)?.strip_prefix('/')?;
            let name = inside.split('/').next()?.trim_end_matches(".rs");
            let is_root = name == "mod" || (outer == "src" && ["main", "lib"].contains(&name));
            (!is_root || (name == "mod" && !is_only_passing_on(modules, file)))
                .then(|| format!("{outer}/{name}"))
        };
        let edges: Vec<_> = arrows
            .iter()
            .filter(|arrow| outer == "src" || !arrow.is_passed_on)
            .filter_map(|arrow| Some((node(&arrow.from)?, node(&arrow.to)?, *arrow)))
            .filter(|(from, to, _)| from != to)
            .collect();
        found.extend(circles(&edges, "circle of rooms"));
    }
    found
}

/// The edges that are part of a circle.
fn circles(edges: &[(String, String, &Arrow)], rule: &'static str) -> Vec<Violation> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (from, to, _) in edges {
        next.entry(from).or_default().insert(to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|start| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![*start]);
            while let Some(at) = open.pop() {
                for to in next.get(at).into_iter().flatten() {
                    if seen.insert(*to) {
                        open.push(to);
                    }
                }
            }
            (*start, seen)
        })
        .collect();
    edges
        .iter()
        .filter(|(from, to, _)| reached.get(to.as_str()).is_some_and(|back| back.contains(from.as_str())))
        .map(|(from, to, arrow)| {
            let place = (arrow.from.clone(), arrow.line);
            Violation { from: from.clone(), to: to.clone(), rule, place }
        })
        .collect()
}
