//! The `.dist-info` of a project that was not built.

use std::fmt::Write as _;

use super::reader::Declared;
use crate::model::image::paths::WORKSPACE;

/// Returns the name as indexes compare it: lower case, with single `-`.
pub(super) fn normalized(name: &str) -> String {
    let lower = name.to_lowercase();
    let parts: Vec<&str> = lower.split(['-', '_', '.']).filter(|part| !part.is_empty()).collect();
    parts.join("-")
}

/// Returns the name of the directory: `vision_ft-0.3.dist-info`.
pub(super) fn folder(name: &str, version: &str) -> String {
    format!("{}-{version}.dist-info", normalized(name).replace('-', "_"))
}

/// Returns the text of METADATA.
pub(super) fn metadata(declared: &Declared, name: &str, has_dependencies: bool) -> String {
    let mut text = format!("Metadata-Version: 2.2\nName: {name}\nVersion: {}\n", declared.version);
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "{key}: {value}");
    };
    if let Some(summary) = &declared.summary {
        line("Summary", summary);
    }
    if let Some(python) = &declared.requires_python {
        line("Requires-Python", python);
    }
    if has_dependencies {
        for requirement in &declared.dependencies {
            line("Requires-Dist", requirement);
        }
    } else {
        line("Dynamic", "Requires-Dist");
    }
    text
}

/// Returns the text of `direct_url.json`.
pub(super) fn direct_url() -> String {
    format!("{{\"dir_info\": {{\"editable\": true}}, \"url\": \"file://{WORKSPACE}\"}}\n")
}
