//! The guard of the program's English: phrases that no help, error, hint or document uses.

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
        if bare(word) == "is" && next == "no" && third.starts_with(|c: char| c.is_ascii_lowercase()) {
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

/// Reads the literals of `#[error("…")]` and of functions called `hint`, `hints` or `…_hint`.
fn of_source(text: &str) -> Vec<String> {
    let tokens: Vec<Token> = tokens(text).into_iter().map(|(token, _)| token).collect();
    let is = |at: usize, word: &str| matches!(tokens.get(at), Some(Token::Ident(found)) if found == word);
    let punct = |at: usize, c: char| tokens.get(at) == Some(&Token::Punct(c));
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if punct(at, '#') && punct(at + 1, '[') && is(at + 2, "error") {
            if let Some(Token::Text(text)) = tokens.get(at + 4) {
                found.extend(hits(text));
            }
        } else if let (true, Some(Token::Ident(name))) = (is(at, "fn"), tokens.get(at + 1))
            && (name.trim_end_matches('s') == "hint" || name.trim_end_matches('s').ends_with("_hint"))
        {
            let mut depth = 0;
            while at < tokens.len() {
                match &tokens[at] {
                    Token::Punct('{') => depth += 1,
                    Token::Punct('}') if depth == 1 => break,
                    // A declaration without a body.
                    Token::Punct(';') if depth == 0 => break,
                    Token::Punct('}') => depth -= 1,
                    Token::Text(text) => found.extend(hits(text)),
                    _ => {}
                }
                at += 1;
            }
        }
        at += 1;
    }
    found
}

/// Reads the paragraphs, list entries and headings of a document.
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
    texts.iter().flat_map(|text| hits(text)).collect()
}

/// Reads the files below a folder that end so.
fn of_files(root: &Path, folder: &str, extension: &str, read: fn(&str) -> Vec<String>, all: &mut Hits) {
    let mut open = vec![root.join(folder)];
    while let Some(path) = open.pop() {
        if let Ok(entries) = std::fs::read_dir(&path) {
            open.extend(entries.map(|entry| entry.expect("an entry").path()));
        } else if path.exists() && path.extension().is_some_and(|found| found == extension) {
            let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
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
    assert!(all.is_empty(), "phrases that ENGLISH.md replaces: {all:#?}");
}

#[test]
fn guard_finds_each_phrase() {
    for (text, count) in [
        ("`{name}` is no framework", 1),
        ("there is no `{name}`; is not a framework; is nothing", 0),
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
fn guard_reads_errors_hints_and_paragraphs() {
    let source = "/// nobody\n#[error(\"told {0}\")] struct A; // told\n\
                  impl A { fn hints(&self) -> Vec<String> { if x { vec![\"beside\".into()] } else { vec![format!(\"{} anew\", 1)] } }\n\
                  fn other() { let a = \"nobody\"; } fn source_hint() -> &str { \"wish\" } fn last() { \"nobody\" } }\n\
                  trait B { fn hint(&self) -> String; } const C: &str = \"nobody\";";
    assert_eq!(of_source(source), ["told", "beside", "anew", "wish"]);
    let document = "# What is it\n\nSome text that says\nwhat it is.\n\n- whether this\n  is no list\n";
    assert_eq!(
        of_document(document),
        ["what … (at the beginning)", "is no list", "whether … (at the beginning)"]
    );
}
