//! The tables of `kernels/README.md` are those of the protocol; `UPDATE_README=1` rewrites them.
#![expect(clippy::disallowed_methods, reason = "a test reads and writes the documentation")]

use std::path::Path;

use envforge_protocol::{Stage, check_table};

const START: &str = "<!-- checks: ";
const END: &str = "<!-- end of checks -->\n";

/// Replaces the text between each pair of markers by the table of the stages that the first marker lists.
fn with_tables(text: &str) -> String {
    let mut parts = text.split(START);
    let mut out = parts.next().expect("a head").to_owned();
    for part in parts {
        let (stages, rest) = part.split_once(" -->\n").expect("a marker");
        let named = stages.split(' ').map(|name| Stage::parse(name).expect("a stage"));
        let (_, rest) = rest.split_once(END).expect("an end marker");
        let table = check_table(&named.collect::<Vec<_>>());
        out.extend([START, stages, " -->\n", &table, END, rest]);
    }
    out
}

#[test]
fn readme_has_the_tables_of_the_protocol() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let text = std::fs::read_to_string(&path).expect("kernels/README.md");
    assert_eq!(text.matches(START).count(), 2);
    let current = with_tables(&text);
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(&path, &current).expect("written");
    }
    assert!(
        std::fs::read_to_string(&path).expect("kernels/README.md") == current,
        "kernels/README.md is out of date: run `UPDATE_README=1 cargo test -p envforge-protocol`"
    );
}

#[test]
fn stale_table_is_detected() {
    let stale = format!("{START}static -->\n| old |\n{END}tail\n");
    let current = with_tables(&stale);
    assert!(current != stale && current.contains("`framework-version`") && current.ends_with("tail\n"));
    assert_eq!(with_tables(&current), current);
}
