//! `compat`: the matrix itself, checked and shown.
#![expect(clippy::disallowed_methods, reason = "reads compat files")]

use camino::Utf8Path;
use serde_json::json;

use crate::failure::Exit;
use crate::model::compat::{Fault, Matrix, faults, read};
use crate::model::request;
use crate::pages;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::matrix_override::{install_archive, remove_override};

pub(super) fn lint(args: &request::CompatLint, settings: &Settings) -> Result<Exit, CommandError> {
    let (edition, rows, found) = match &args.dir {
        None => {
            let matrix = Matrix::current();
            (matrix.edition.clone(), matrix.rows().len(), faults(matrix))
        }
        Some(folder) => {
            let files = files(folder)?;
            let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let matrix = read(&files)?;
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
        Printer.text(&format!("matrix {edition}: {rows} rows, {} faults", found.len()));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}

/// The `.toml` files of a folder, by name.
fn files(folder: &Utf8Path) -> Result<Vec<(String, String)>, CommandError> {
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
    let matrix = Matrix::current();
    let wanted = args.row.trim().to_lowercase();
    let rows = matrix.rows();
    let found: Vec<_> = rows.iter().filter(|row| row.label().to_lowercase().starts_with(&wanted)).collect();
    if settings.output.json {
        let row = |row: &&&dyn crate::model::compat::Row| json!({ "row": row.label(), "file": row.file(), "fields": row.fields() });
        let rows: Vec<_> = found.iter().map(row).collect();
        Printer.json(&json!({ "schema": 1, "edition": matrix.edition, "rows": rows }));
    } else {
        for row in &found {
            Printer.text(&format!("{}: {}\n{}", row.file(), row.label(), row.fields()));
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

/// `compat site`: the matrix as pages.
pub(super) fn site(args: &request::CompatSite, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = settings.paths.current_dir.join(&args.dir);
    let matrix = Matrix::current();
    let pages = pages::site(matrix);
    for page in &pages {
        write_atomically(&folder.join(&page.name), page.text.as_bytes())?;
    }
    let names: Vec<_> = pages.iter().map(|page| page.name.as_str()).collect();
    if settings.output.json {
        Printer
            .json(&json!({ "schema": 1, "edition": matrix.edition, "directory": args.dir, "files": names }));
    } else {
        let index = args.dir.join("index.html");
        Printer.text(&format!("{index}: matrix {}, {} pages", matrix.edition, names.len()));
    }
    Ok(Exit::Done)
}

/// `compat use`: takes another matrix than the program's own, checked by its hash and linted.
pub(super) fn use_archive(args: &request::CompatUse, settings: &Settings) -> Result<Exit, CommandError> {
    let (Some(file), Some(sha256)) = (&args.file, &args.sha256) else {
        remove_override(settings)?;
        Printer.text(&format!("using built-in matrix {}", Matrix::embedded().edition));
        return Ok(Exit::Done);
    };
    let matrix = install_archive(settings, file, sha256)?;
    Printer.text(&format!("using matrix {}: {} rows", matrix.edition, matrix.rows().len()));
    Ok(Exit::Done)
}
