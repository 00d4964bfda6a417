//! The table that `list` prints: 80 columns, no color.

use std::fmt::Write as _;

use super::listing::ListEntry;
use crate::model::compat::tables::{Channel, Status};
use crate::model::versions::PythonVersion;

const HEAD: [&str; 7] = ["SPEC", "FROM", "PYTHON", "CUDNN", "GPU", "DRIVER>=", "RUN"];

/// The legend of the table.
const LEGEND: &str = "
FROM: - default index, own framework's own index, src built from source,
* experimental upstream, ? not in the official release list
GPU: + with PTX for newer ones, ? unknown  RUN: on the target, - unknown
";

/// Returns the entries as a table, one line each.
pub fn list_text(entries: &[ListEntry]) -> String {
    if entries.is_empty() {
        return "no matching variants in the matrix\n".to_owned();
    }
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(entries.iter().map(cells));
    let mut widths = [0; HEAD.len()];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(widths) {
            write!(line, "{cell:<width$} ").expect("writing to a String");
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push_str(LEGEND);
    out
}

fn cells(entry: &ListEntry) -> [String; HEAD.len()] {
    let channel = match (entry.status, entry.channel) {
        (Status::Experimental, Channel::Default) => "-*",
        (Status::Unlisted, Channel::Default) => "-?",
        (_, Channel::Source) => "src",
        (Status::Experimental, _) => "own*",
        (Status::Unlisted, _) => "own?",
        (_, Channel::Default) => "-",
        (_, Channel::Framework) => "own",
    };
    let runs = match entry.runs_here {
        Some(true) => "yes",
        Some(false) => "no",
        None => "-",
    };
    let library = |version: &Option<crate::model::versions::LibraryVersion>| {
        let parts = |version: &crate::model::versions::LibraryVersion| {
            version.parts().iter().take(3).map(ToString::to_string).collect::<Vec<_>>().join(".")
        };
        version.as_ref().map_or_else(|| "-".to_owned(), parts)
    };
    let code = entry.gpu.as_deref().unwrap_or_default();
    let gpu = match (code.first(), code.last()) {
        (Some(first), Some(last)) => {
            let ptx = if entry.ptx.is_empty() { "" } else { "+" };
            format!("{}-{}{ptx}", first.dotted(), last.dotted())
        }
        _ if !entry.ptx.is_empty() => "PTX".to_owned(),
        _ => "?".to_owned(),
    };
    let driver = entry.driver.as_deref().map_or("-", |floor| floor.trim_start_matches(">="));
    [
        entry.spec.clone(),
        channel.to_owned(),
        python_span(&entry.python),
        library(&entry.cudnn),
        gpu,
        driver.to_owned(),
        runs.to_owned(),
    ]
}

/// `3.9-3.13`.
fn python_span(pythons: &[PythonVersion]) -> String {
    match (pythons.iter().min(), pythons.iter().max()) {
        (Some(first), Some(last)) if first == last => first.to_string(),
        (Some(first), Some(last)) => format!("{first}-{last}"),
        _ => "-".to_owned(),
    }
}
