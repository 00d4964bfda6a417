//! `refresh`: the matrix's rows compared with the package index.

use serde_json::json;

use super::cli::RefreshArgs;
use super::comparison::{Comparison, compare};
use crate::failure::Exit;
use crate::maintain::refresh::MatrixDifference;
use crate::model::compat::Matrix;
use crate::model::counted::counted;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;

pub(super) async fn refresh(args: &RefreshArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let Comparison { packages, rows, found } = compare(args, settings).await?;
    let edition = &Matrix::current().edition;
    if settings.output.json {
        Printer.json(&json!({ "schema": 1, "edition": edition, "rows": rows, "findings": found }));
    } else {
        for one in &found {
            Printer.text(&one.to_string());
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
