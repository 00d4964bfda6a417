//! The guard of the program's English: phrases that no help, message or document uses.

use std::collections::BTreeMap;
use std::path::Path;

use clap::CommandFactory as _;

use crate::rust_tokens::{Token, tokens};
use crate::{AMBIENT, Program};

/// The phrases a text contains that it should not. Texts begin where a sentence begins.
fn hits(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let bare =
        |word: &str| -> String { word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_').to_owned() };
    let mut found = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        let third = words.get(at + 2).copied().unwrap_or_default();
        let is_word = third.starts_with(|c: char| c.is_ascii_lowercase()) && third != "longer";
        if bare(word) == "is" && next == "no" && is_word {
            found.push(format!("is no {third}"));
        }
        if ["be", "is"].contains(&bare(word).as_str()) && bare(next) == "had" {
            found.push(format!("{} had", bare(word)));
        }
        for part in word.split(|c: char| !c.is_alphanumeric() && c != '_') {
            if ["beside", "told", "anew", "nobody", "somebody"].contains(&part) || part.starts_with("wish") {
                found.push(part.to_owned());
            }
        }
    }
    if let Some(first @ (&"what" | &"whether")) = words.first()
        && words.len() > 1
    {
        found.push(format!("{first} … (at the beginning)"));
    }
    found
}

/// Hits per source of text.
type Hits = BTreeMap<String, Vec<String>>;

/// Reads `--help` of a command and those below it; each paragraph begins a text, lines are not wrapped.
fn of_help(command: &clap::Command, path: &[&str], all: &mut Hits) {
    let run = Program::new(&AMBIENT).with("COLUMNS", "9999").run(&[path, &["--help"]].concat());
    assert_eq!(run.code, 0, "{path:?}: {}", run.stderr);
    // `-o, --option <VALUE>  text`: what follows the gap begins a text too.
    let texts = run.stdout.lines().flat_map(|line| line.trim().split("  "));
    all.insert([&["envforge"], path, &["--help"]].concat().join(" "), texts.flat_map(hits).collect());
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        of_help(below, &[path, &[below.get_name()]].concat(), all);
    }
}

/// Reads the literals of a source file, up to its tests.
fn of_source(text: &str) -> Vec<String> {
    let text = text.split("mod tests {").next().unwrap_or_default();
    let literals = tokens(text).into_iter().filter_map(|(token, _)| match token {
        Token::Text(text) => Some(text),
        _ => None,
    });
    literals.flat_map(|text| hits(&text)).collect()
}

/// Reads the paragraphs, list entries and headings of a document, without what is code in them.
fn of_document(text: &str) -> Vec<String> {
    let mut texts = vec![String::new()];
    for line in text.lines() {
        let line = line.trim();
        let is_new = line.is_empty() || line.starts_with(['#', '-', '*', '|', '`']);
        if is_new {
            texts.push(String::new());
        }
        let last = texts.last_mut().expect("one at least");
        *last = format!("{last} {}", line.trim_start_matches(['#', '-', '*', '|', ' ']));
    }
    let prose = |text: &String| text.split('`').step_by(2).collect::<Vec<_>>().join("`");
    texts.iter().flat_map(|text| hits(&prose(text))).collect()
}

/// Reads the files below a folder that end so, except tests.
fn of_files(root: &Path, folder: &str, extension: &str, read: fn(&str) -> Vec<String>, all: &mut Hits) {
    let mut open = vec![root.join(folder)];
    while let Some(path) = open.pop() {
        if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.exists() && path.extension().is_some_and(|found| found == extension) {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            if name.contains("test") {
                continue;
            }
            all.insert(name, read(&std::fs::read_to_string(&path).expect("UTF-8")));
        }
    }
}

#[test]
fn texts_contain_no_inverted_phrases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Hits::new();
    of_help(&envforge::cli::Cli::command(), &[], &mut all);
    for folder in ["src", "kernels"] {
        of_files(root, folder, "rs", of_source, &mut all);
    }
    for document in ["docs", "README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        of_files(root, document, "md", of_document, &mut all);
    }
    all.retain(|_, hits| !hits.is_empty());
    assert!(all.is_empty(), "inverted phrases: {all:#?}");
}

#[test]
fn guard_finds_each_phrase() {
    for (text, count) in [
        ("`{name}` is no framework", 1),
        ("there is no `{name}`; is no longer there; is not a framework; is nothing", 0),
        ("beside it, besides, told-off, untold; (anew)", 3),
        ("a Wish, wishes, wishful", 3),
        ("it can be had, is had, had been", 2),
        ("nobody and somebody", 2),
        ("What is wanted", 1),
        ("whether it works", 1),
        ("what", 0),
        ("say what is wanted or whether; whatever", 0),
    ] {
        assert_eq!(hits(text).len(), count, "{text}: {:?}", hits(text));
    }
}

#[test]
fn guard_reads_literals_and_paragraphs() {
    let source = "/// nobody\n#[error(\"told {0}\")] struct A; // told\nfn other() { say(\"beside\"); }\n\
                  #[cfg(test)]\nmod tests { const B: &str = \"nobody\"; }";
    assert_eq!(of_source(source), ["told", "beside"]);
    let document = "# What is it\n\nSome text that says\nwhat it is.\n\n- whether this\n  is no list\n";
    assert_eq!(
        of_document(document),
        ["what … (at the beginning)", "is no list", "whether … (at the beginning)"]
    );
}

/// The logs of a source file that print values as Rust's `Debug` does: people read them with `-v`.
fn debug_logs(text: &str) -> Vec<String> {
    let text = text.split("mod tests {").next().unwrap_or_default();
    let calls = text.split("tracing::").skip(1).filter(|call| {
        ["trace!(", "debug!(", "info!(", "warn!(", "error!("].iter().any(|name| call.starts_with(name))
    });
    let calls = calls.map(|call| call.split(");").next().unwrap_or_default());
    let shows = |call: &&str| {
        let field = call.match_indices('?').any(|(at, _)| {
            let before = call[..at].trim_end();
            before.ends_with(['(', ',', '='])
                && call[at + 1..].starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        });
        field || call.contains(":?}") || call.contains(":#?}")
    };
    calls.filter(shows).map(str::to_owned).collect()
}

#[test]
fn logs_are_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Hits::new();
    of_files(root, "src", "rs", debug_logs, &mut all);
    all.retain(|_, hits| !hits.is_empty());
    assert!(all.is_empty(), "logs with Debug output: {all:#?}");
}

#[test]
fn guard_finds_debug_output_of_logs() {
    for (source, count) in [
        ("tracing::debug!(address = %a, ?info, \"connected\");", 1),
        ("tracing::warn!(pause = ?pause, \"retrying\");", 1),
        ("tracing::debug!(?info, \"x\"); tracing::trace!(\n    %status,\n    ?body,\n    \"x\"\n);", 2),
        ("tracing::info!(\"found {found:?}\");", 1),
        ("tracing::debug!(%error, said = %text, \"why? nothing\");", 0),
        ("tracing::debug!(port = read()?, \"x\"); other(?info);", 0),
        ("format!(\"{x:?}\")", 0),
    ] {
        assert_eq!(debug_logs(source).len(), count, "{source}");
    }
}
