//! `refresh`: the matrix's rows compared with the package index.

use std::fmt::Write as _;

use serde_json::json;

use super::cli::RefreshArgs;
use super::comparison::{Comparison, compare};
use super::row_drafts::WrittenRow;
use crate::commands::compat::files;
use crate::failure::Exit;
use crate::maintain::refresh::MatrixDifference;
use crate::model::compat::read_unlinted;
use crate::model::counted::counted;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;

pub(super) async fn refresh(args: &RefreshArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = match &args.rows {
        None => None,
        Some(folder) => {
            let files = files(&settings.paths.current_dir.join(folder))?;
            let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            Some(read_unlinted(&files)?)
        }
    };
    let matrix = folder.as_ref().unwrap_or(&settings.matrix);
    let Comparison { packages, rows, found, written } = compare(matrix, args, settings).await?;
    let edition = &matrix.edition;
    if settings.output.json {
        Printer.json(&json!({ "schema": 1, "edition": edition, "rows": rows, "findings": found }));
    } else {
        for one in &found {
            Printer.text(&one.to_string());
        }
        if !written.is_empty() {
            Printer.text(&table(&written));
        }
        let new = found.iter().filter(|one| matches!(one, MatrixDifference::New { .. })).count();
        let differ = found.len() - new;
        Printer.text(&format!(
            "matrix {edition}: {} of {} compared, {}, {}",
            counted(rows, "row"),
            counted(packages, "package"),
            counted(differ, "difference"),
            counted(new, "new release")
        ));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}

/// The rows that were written as a table of Markdown.
fn table(written: &[WrittenRow]) -> String {
    let mut text = "| row | file | written as |\n|---|---|---|".to_owned();
    for WrittenRow { title, file, lacks } in written {
        let form = if lacks.is_empty() {
            "a row".to_owned()
        } else {
            format!("a comment: nothing says {}", lacks.join(", "))
        };
        let name = file.rsplit('/').next().unwrap_or(file);
        let _ = write!(text, "\n| {title} | {name} | {form} |");
    }
    text
}
