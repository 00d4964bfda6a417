//! `compat`: the matrix itself, checked and shown.
#![expect(clippy::disallowed_methods, reason = "reads compat files")]

use camino::Utf8Path;
use serde_json::json;

use crate::failure::Exit;
use crate::model::compat::{Fault, faults, read_unlinted};
use crate::model::counted::counted;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::matrix_override::{install_archive, remove_override};

pub(super) fn lint(args: &request::CompatLint, settings: &Settings) -> Result<Exit, CommandError> {
    let (edition, rows, found) = match &args.dir {
        None => {
            let matrix = &settings.matrix;
            (matrix.edition.clone(), matrix.rows().len(), faults(matrix))
        }
        Some(folder) => {
            let files = files(folder)?;
            let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let matrix = read_unlinted(&files)?;
            (matrix.edition.clone(), matrix.rows().len(), faults(&matrix))
        }
    };
    if settings.output.json {
        let fault = |fault: &Fault| json!({ "file": fault.file, "row": fault.row, "problem": fault.problem.to_string() });
        let faults: Vec<_> = found.iter().map(fault).collect();
        Printer.json(&json!({ "schema": 1, "edition": edition, "rows": rows, "faults": faults }));
    } else {
        for fault in &found {
            Printer.text(&fault.to_string());
        }
        Printer.text(&format!(
            "matrix {edition}: {}, {}",
            counted(rows, "row"),
            counted(found.len(), "fault")
        ));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}

/// The `.toml` files of a folder, by name.
pub(crate) fn files(folder: &Utf8Path) -> Result<Vec<(String, String)>, CommandError> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs_err::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn show(args: &request::CompatShow, settings: &Settings) -> Exit {
    let matrix = &settings.matrix;
    let wanted = args.row.trim().to_lowercase();
    let rows = matrix.rows();
    let found: Vec<_> = rows.iter().filter(|row| row.label().to_lowercase().starts_with(&wanted)).collect();
    if settings.output.json {
        let row = |row: &&&dyn crate::model::compat::Row| json!({ "row": row.label(), "file": matrix.file_of(**row), "fields": row.fields() });
        let rows: Vec<_> = found.iter().map(row).collect();
        Printer.json(&json!({ "schema": 1, "edition": matrix.edition, "rows": rows }));
    } else {
        for row in &found {
            Printer.text(&format!("{}: {}\n{}", matrix.file_of(**row), row.label(), row.fields()));
        }
    }
    if found.is_empty() {
        Printer.say(&format!(
            "row `{}` not found (examples: `variant pytorch 2.8.0 cu128 x86_64`, `toolkit 12.8.1`)",
            args.row
        ));
        return Exit::No;
    }
    Exit::Done
}

/// `compat use`: takes another matrix than the program's own, checked by its hash and linted.
pub(super) fn use_archive(args: &request::CompatUse, settings: &Settings) -> Result<Exit, CommandError> {
    let (Some(file), Some(sha256)) = (&args.file, &args.sha256) else {
        remove_override(settings)?;
        Printer.text(&format!("using built-in matrix {}", crate::model::compat::embedded().edition));
        return Ok(Exit::Done);
    };
    let matrix = install_archive(settings, file, sha256)?;
    Printer.text(&format!("using matrix {}: {}", matrix.edition, counted(matrix.rows().len(), "row")));
    Ok(Exit::Done)
}
