//! The page of `evidence`: who proved an image, on which GPU and driver.

use serde::Serialize;

use super::document::Document;

/// Returns the page of an image's evidence, from the object that `evidence --json` prints.
pub fn evidence_page(image: &str, report: &impl Serialize) -> String {
    let title = format!("{image}: evidence");
    let document =
        Document { template: "evidence.html.j2", title: &title, source: "envforge evidence --json" };
    document.write(report)
}
