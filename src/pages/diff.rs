//! The page of `diff`: the values of its JSON as tables.

use serde::Serialize;

use super::document::Document;

/// Returns the page of two locks, from the object that `diff --json` prints.
pub fn diff_page(report: &impl Serialize) -> String {
    let document = Document {
        template: "diff.html.j2",
        title: "Two locks side by side",
        source: "envforge diff --json",
    };
    document.write(report)
}
