//! README, book and the documents next to them: generated pages are current, links lead somewhere, commands and files work.

mod markdown;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Parser as _;
use envforge::cli::Cli;
use envforge::model::project::ProjectFile;
use envforge::settings::parse_config;
use markdown::Document;

use crate::blocks::{self, blocks, commands, sessions};
use crate::rust_tokens::{Token, tokens};
use crate::terminal::{Screen, screen_of};
use crate::{envforge, maintain, program};

/// The repository.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below a folder, by path from it.
fn files(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(path) = open.pop() {
        if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.extension().is_none_or(|extension| extension != "png") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a page")).into_owned();
            found.insert(path.strip_prefix(folder).expect("below it").to_owned(), text);
        }
    }
    found
}

/// Every document for readers, by path from the repository.
fn documents() -> Vec<Document> {
    let mut all = vec![];
    for name in ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let text = std::fs::read_to_string(root().join(name)).expect(name);
        all.push(Document { path: name.into(), text });
    }
    for (path, text) in files(&root().join("docs/src")) {
        all.push(Document { path: Path::new("docs/src").join(path), text });
    }
    all
}

/// Whether a page is written by `maintain docs`.
fn is_reference(document: &Document) -> bool {
    document.path.starts_with("docs/src/reference")
}

#[test]
fn reference_pages_are_current() {
    let program = program();
    let run = maintain(&program, &["docs", "pages"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let (new, kept) = (files(&program.path("pages")), files(&root().join("docs/src/reference")));
    let names: BTreeSet<_> = new.keys().chain(kept.keys()).collect();
    let stale: Vec<_> = names.into_iter().filter(|name| new.get(*name) != kept.get(*name)).collect();
    assert!(
        stale.is_empty(),
        "stale or foreign pages: {stale:?}; run `cargo run --features maintain --bin maintain -- docs docs/src/reference` (and delete pages it no longer writes)"
    );
}

/// Documents of other projects that rows of the matrix name with their repository.
const UPSTREAM: [&str; 2] = ["RELEASE.md", "NOTES.md"];

/// A source or row names no document that a reader of this repository cannot open.
#[test]
fn paths_of_contributing_are_in_the_repository() {
    let text = std::fs::read_to_string(root().join("CONTRIBUTING.md")).expect("the page");
    let folders = ["src/", "tests/", "kernels/", "compat/", "docs/", "templates/", ".ci/"];
    let quoted = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        folders.iter().any(|folder| word.starts_with(folder)) && !word.contains([' ', '<', '*'])
    };
    let paths: Vec<&str> = quoted.filter(is_path).collect();
    let missing: Vec<&&str> = paths.iter().filter(|path| !root().join(path).exists()).collect();
    assert!(paths.len() > 50 && missing.is_empty(), "{missing:?} of {} paths", paths.len());
}

#[test]
fn readme_names_the_rust_that_is_needed() {
    let text = std::fs::read_to_string(root().join("README.md")).expect("the page");
    let needed = concat!("Rust ", env!("CARGO_PKG_RUST_VERSION"), " or newer");
    assert!(text.contains(needed), "`{needed}` is missing");
}

#[test]
fn documents_that_sources_and_rows_name_are_in_the_repository() {
    let mut missing = Vec::new();
    for folder in ["src", "kernels", "compat", "tests/docker", "tests/support", "templates"] {
        for (path, text) in files(&root().join(folder)) {
            let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c)));
            let named = words.filter(|word| {
                let stem = word.strip_suffix(".md").unwrap_or_default();
                stem.len() > 1 && stem.chars().all(|c| c.is_ascii_uppercase() || c == '_')
            });
            let gone = named.filter(|name| !root().join(name).exists() && !UPSTREAM.contains(name));
            missing.extend(gone.map(|name| format!("{folder}/{}: {name}", path.display())));
            if text.contains("DESIGN §") {
                missing.push(format!("{folder}/{}: DESIGN", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
}

/// The identifiers in the bodies of the functions of that name.
fn named_in_bodies(text: &str, function: &str) -> BTreeSet<String> {
    let all: Vec<Token> = tokens(text).into_iter().map(|(token, _)| token).collect();
    let begin = [Token::Ident("fn".to_owned()), Token::Ident(function.to_owned())];
    let mut named = BTreeSet::new();
    for (at, _) in all.windows(2).enumerate().filter(|(_, pair)| **pair == begin) {
        let mut depth = 0;
        for token in &all[at..] {
            match token {
                Token::Punct('{') => depth += 1,
                Token::Punct('}') if depth == 1 => break,
                Token::Punct('}') => depth -= 1,
                Token::Ident(name) if depth > 0 => {
                    named.insert(name.clone());
                }
                _ => {}
            }
        }
    }
    named
}

#[test]
fn bodies_of_functions_end_where_they_end() {
    let text = "fn one(a: A) { two(\"{\"); if a { three(); } }\nfn two() {}\nfn four() { five() }";
    let of = |function: &str| named_in_bodies(text, function).into_iter().collect::<Vec<_>>().join(" ");
    assert_eq!((of("one").as_str(), of("two").as_str(), of("four").as_str()), ("a if three two", "", "five"));
}

/// A step of a walk is "- `FILE`, `FUNCTION`: …; calls `OTHER` and `ANOTHER`.".
#[test]
fn walks_of_the_architecture_name_functions_that_exist() {
    let page = std::fs::read_to_string(root().join("docs/src/architecture.md")).expect("the page");
    let (mut steps, mut calls, mut gone) = (0, 0, Vec::new());
    for line in page.lines().filter_map(|line| line.strip_prefix("- `")) {
        let mut parts = line.split('`');
        let (Some(file), Some(", "), Some(function)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        steps += 1;
        let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
        let begins = [format!("fn {function}("), format!("fn {function}<")];
        if !begins.iter().any(|begin| text.contains(begin)) {
            gone.push(format!("{file}: {function}"));
        }
        let Some((_, called)) = line.split_once("; calls ") else { continue };
        let named = named_in_bodies(&text, function);
        for name in called.split('`').skip(1).step_by(2) {
            calls += 1;
            if !named.contains(name) {
                gone.push(format!("{file}: {function} does not call {name}"));
            }
        }
    }
    assert!(steps > 40 && calls > 25, "{steps} steps, {calls} calls");
    assert!(gone.is_empty(), "not there: {gone:#?}");
}

#[test]
fn readme_says_how_many_tests_run_at_least() {
    let read = |name: &str| std::fs::read_to_string(root().join(name)).expect(name);
    let least: u32 = read(".ci/least-tests").trim().parse().expect("a number");
    let text = format!("runs {},{:03} tests", least / 1000, least % 1000);
    assert!(read("README.md").contains(&text), "README.md does not say `{text}`, as .ci/least-tests does");
}

#[test]
fn links_lead_to_files_and_headings() {
    let documents = documents();
    let mut broken = Vec::new();
    let mut count = 0;
    for document in &documents {
        for target in document.links() {
            count += 1;
            if let Some(problem) = problem_of(document, &target, &documents) {
                broken.push(format!("{}: {target}: {problem}", document.path.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{} broken links: {broken:#?}", broken.len());
    assert!(count > 100, "{count} links were read");
}

/// What is wrong with a link, if anything.
fn problem_of(from: &Document, target: &str, documents: &[Document]) -> Option<&'static str> {
    if ["https://", "http://", "mailto:"].iter().any(|scheme| target.starts_with(scheme)) {
        return None;
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() { from.path.clone() } else { markdown::joined(&from.path, path) };
    if !root().join(&file).exists() {
        return Some("not found");
    }
    if anchor.is_empty() {
        return None;
    }
    let page = documents.iter().find(|document| document.path == file);
    match page {
        Some(page) if page.anchors().contains(anchor) => None,
        Some(_) => Some("no such heading"),
        None => Some("not a page of the documentation"),
    }
}

#[test]
fn broken_links_are_found() {
    let page = |path: &str, text: &str| Document { path: path.into(), text: text.to_owned() };
    let documents = [
        page(
            "docs/src/start.md",
            "# Start\n## Two `words`, here\n[a](#two-words-here) [b](../../README.md#envforge)",
        ),
        page(
            "README.md",
            "# envforge\n```\n[x](inside-a-fence)\n```\n`[x](inside-code)` [a](docs/src/start.md)",
        ),
    ];
    let links: Vec<_> = documents.iter().map(Document::links).collect();
    assert_eq!(links, [vec!["#two-words-here", "../../README.md#envforge"], vec!["docs/src/start.md"]]);
    let start = &documents[0];
    assert_eq!(problem_of(start, "#two-words-here", &documents), None);
    assert_eq!(problem_of(start, "../../README.md#envforge", &documents), None);
    assert_eq!(problem_of(start, "../../README.md#gone", &documents), Some("no such heading"));
    assert_eq!(problem_of(start, "gone.md", &documents), Some("not found"));
}

#[test]
fn every_page_is_in_the_summary_and_has_one_title() {
    let documents = documents();
    let summary = documents.iter().find(|one| one.path.ends_with("SUMMARY.md")).expect("the summary");
    let listed: Vec<_> = summary.links().iter().map(|link| markdown::joined(&summary.path, link)).collect();
    let unique: BTreeSet<_> = listed.iter().collect();
    assert_eq!(unique.len(), listed.len(), "a page is listed twice");
    for document in &documents {
        let titles = document.headings().filter(|(level, _)| *level == 1).count();
        let is_summary = document.path.ends_with("SUMMARY.md");
        assert!(titles == 1 || is_summary, "{}: {titles} titles", document.path.display());
        let is_page = document.path.starts_with("docs") && !is_summary;
        assert_eq!(is_page, unique.contains(&document.path), "{}", document.path.display());
    }
}

#[test]
fn readme_and_guides_are_short() {
    for document in documents() {
        let is_long = is_reference(&document) || document.path.ends_with("CHANGELOG.md");
        let lines = document.text.lines().count();
        assert!(is_long || lines <= 150, "{}: {lines} lines", document.path.display());
    }
}

#[test]
fn documented_commands_parse() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents().iter().filter(|document| !document.path.ends_with("CHANGELOG.md")) {
        for command in blocks(&document.text).iter().flat_map(commands) {
            count += 1;
            if let Err(error) = Cli::try_parse_from(&command)
                && error.use_stderr()
            {
                wrong.push(format!("{}: {command:?}: {error}", document.path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 60, "{count} commands were read");
}

#[test]
fn console_blocks_run_as_shown() {
    let binary = Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let (mut ran, mut with_engine) = (0, 0);
    for document in documents() {
        let program = program().with("PATH", format!("{}:/usr/bin:/bin", binary.display()));
        let folder = program.path("work");
        std::fs::create_dir(&folder).expect("a folder of the test");
        std::os::unix::fs::symlink(root().join("compat"), folder.join("compat")).expect("a link");
        for block in blocks(&document.text).iter().filter(|block| block.language == "console") {
            match &*block.kind {
                "docker" => with_engine += sessions(block).len(),
                "" => {
                    for session in sessions(block) {
                        let mut shell = program.command_of(Path::new("/bin/sh"), &["-c", &session.command]);
                        shell.current_dir(&folder);
                        let Screen { code, text, .. } = screen_of(shell, 80, "", None);
                        let place = format!("{}: `{}`", document.path.display(), session.command);
                        if session.output.is_empty() {
                            assert_eq!(code, 0, "{place}: {text}");
                        } else if let Err(line) = blocks::matches(&session.output, &text) {
                            panic!("{place}: `{line}` is not in the output:\n{text}");
                        }
                        ran += 1;
                    }
                }
                other => panic!("{}: `console {other}` is neither run nor marked", document.path.display()),
            }
        }
    }
    // A command that moves from one kind to the other is a decision.
    assert_eq!((ran, with_engine), (14, 80), "commands that ran here, and those that need an engine");
}

#[test]
fn toml_blocks_are_projects_or_settings() {
    let (mut projects, mut settings) = (0, 0);
    for document in documents() {
        for block in blocks(&document.text).iter().filter(|block| block.language == "toml") {
            let place = document.path.display();
            match &*block.kind {
                "project" => {
                    ProjectFile::parse("envforge.toml", &block.text)
                        .unwrap_or_else(|error| panic!("{place}: {error}"));
                    projects += 1;
                }
                "settings" => {
                    parse_config("config.toml".into(), &block.text)
                        .unwrap_or_else(|error| panic!("{place}: {error}"));
                    settings += 1;
                }
                other => panic!("{place}: `toml {other}` is neither a project nor settings"),
            }
        }
    }
    assert!(projects >= 3 && settings >= 3, "{projects} projects, {settings} settings");
}

#[test]
fn every_known_error_has_an_anchor() {
    let page =
        documents().into_iter().find(|one| one.path.ends_with("reference/errors.md")).expect("the page");
    let anchors = page.anchors();
    for entry in envforge::model::diagnosis::entries() {
        assert!(anchors.contains(entry.id), "{}", entry.id);
    }
    let run = envforge(&["doctor", "--explain", "no kernel image is available for execution on the device"]);
    let id = run.stdout.split(':').next().expect("an id");
    assert!(anchors.contains(id), "{id}");
}

#[test]
fn help_lists_every_exit_code() {
    let help = envforge(&["--help"]).stdout;
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for exit in envforge::failure::Exit::ALL {
        assert!(words.contains(&format!("{} {}", exit as u8, exit.meaning())), "{exit:?}: {words}");
    }
}

/// Each rule of the page is provoked by its own example; an alternative that is printed then resolves for the same target.
#[test]
fn provoked_refusals_lead_to_the_page_of_rules_and_are_cured() {
    let page =
        documents().into_iter().find(|one| one.path.ends_with("reference/rules.md")).expect("the page");
    let anchors = page.anchors();
    let mut cured = 0;
    for example in blocks(&page.text).iter().flat_map(commands) {
        let args: Vec<&str> = example[1..].iter().map(String::as_str).collect();
        let run = envforge(&args);
        let ids = run
            .stderr
            .lines()
            .filter_map(|line| line.strip_prefix("  "))
            .filter(|line| !line.is_empty() && line.chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        for id in ids {
            assert!(anchors.contains(id), "{args:?}: no anchor for {id}");
        }
        let offers = run.stderr.lines().find_map(|line| line.strip_prefix("    envforge build "));
        let Some(offer) = offers else { continue };
        // The target of the example, and what the offer adds.
        let mut again = vec!["plan"];
        again.extend(offer.split_whitespace());
        // An offer has the base of the request.
        let options = args[2..].chunks(2).filter(|option| !again.contains(&option[0]));
        let options: Vec<&str> = options.flatten().copied().collect();
        again.extend(options);
        let run = envforge(&again);
        assert_eq!(run.code, 0, "{again:?}: {}", run.stderr);
        cured += 1;
    }
    assert!(cured >= 10, "{cured} refusals were cured");
}
