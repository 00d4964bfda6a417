//! `compat refresh`: the matrix's rows compared with the package index.

use serde_json::json;

use crate::failure::Exit;
use crate::model::compat::Matrix;
use crate::model::request;
use crate::refresh::MatrixDifference;
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::refresh::{Comparison, compare};

pub(super) async fn refresh(
    args: &request::CompatRefresh,
    settings: &Settings,
) -> Result<Exit, CommandError> {
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
            "matrix {edition}: {rows} rows of {packages} packages compared, {differ} differences, {new} new releases"
        ));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}
