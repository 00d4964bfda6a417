//! The pages of `list`, `diff` and `doctor`: the values of their JSON as tables.

use serde::Serialize;

use super::document::Document;
use crate::host::HostFinding;
use crate::model::resolve::ListReport;

#[derive(Serialize)]
struct ListPage<'a> {
    edition: &'a str,
    target: Option<&'a str>,
    has_target: bool,
    #[serde(flatten)]
    report: &'a ListReport,
}

/// Returns the page of a list; `target` describes the machine in a sentence, if one was named.
pub fn list_page(report: &ListReport, edition: &str, target: Option<&str>) -> String {
    let document =
        Document { template: "list.html.j2", title: "Published variants", source: "envforge list --json" };
    document.write(&ListPage { edition, target, has_target: target.is_some(), report })
}

/// Returns the page of two locks, from the object that `diff --json` prints.
pub fn diff_page(report: &impl Serialize) -> String {
    let document = Document {
        template: "diff.html.j2",
        title: "Two locks side by side",
        source: "envforge diff --json",
    };
    document.write(report)
}

#[derive(Serialize)]
struct DoctorPage<'a> {
    findings: &'a [HostFinding],
}

/// Returns the page of a machine's findings.
pub fn doctor_page(findings: &[HostFinding]) -> String {
    let document = Document { template: "doctor.html.j2", title: "Doctor", source: "envforge doctor --json" };
    document.write(&DoctorPage { findings })
}
