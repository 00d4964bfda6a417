//! The book's reference, made from the lists that the program uses. The pages of commands come from the argument parser.

pub(super) mod commands;
mod json_output;
mod lists;
mod schema;
mod trust;

use serde_json::Value;

use self::schema::schema_page;
use crate::maintain::rule_guide::rules_text;
use crate::maintain::support::support_text;
use crate::model::compat::Matrix;
use crate::model::markdown::{MarkdownPage, code, sentence};
use crate::model::project;
use crate::settings::{VARIABLES, config_schema};

/// What the last run of `tests/live/draws.py` recorded.
const LIVE_CHECK: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/live-check.json"));

/// Returns the pages by file name.
pub(crate) fn pages(matrix: &Matrix) -> Vec<(String, String)> {
    let all = [
        ("project-file.md", project_file()),
        ("settings.md", settings()),
        ("environment.md", environment()),
        ("rules.md", rules_text(matrix)),
        ("checks.md", lists::checks()),
        ("errors.md", lists::errors()),
        ("exit-codes.md", lists::exit_codes()),
        ("json-output.md", json_output::page()),
        ("image-contents.md", lists::image_contents()),
        ("caches.md", lists::caches()),
        ("trust.md", trust::page()),
        ("matrix.md", matrix_page(matrix)),
    ];
    all.map(|(name, text)| (name.to_owned(), text)).into()
}

/// Returns the page of what runs where.
pub(crate) fn matrix_page(matrix: &Matrix) -> String {
    with_last_run(&support_text(matrix), LIVE_CHECK)
}

fn project_file() -> String {
    let mut page = MarkdownPage::new("Project file");
    page.paragraph(
        "`envforge.toml` describes the images of a project. [A project](../how-to/project.md) explains its use. \
         `envforge generate schema` prints this page as a JSON schema for editors.",
    );
    schema_page(&mut page, project::json_schema().as_value());
    page.finish()
}

fn settings() -> String {
    let mut page = MarkdownPage::new("Settings");
    page.paragraph(
        "An argument wins over the [environment](environment.md), the environment over this file, this file over the \
         settings of apt, pip and docker on this machine. [Configuration](../how-to/configuration.md) has an example.",
    );
    schema_page(&mut page, config_schema().as_value());
    page.finish()
}

fn environment() -> String {
    let mut page = MarkdownPage::new("Environment variables");
    page.paragraph(
        "An argument wins over a variable, a variable over the [configuration file](settings.md). An empty variable \
         counts as unset, except where noted. Of several names in an entry the first that is set wins.",
    );
    page.list(VARIABLES.iter().map(|variable| {
        let names: Vec<_> = variable.names.iter().map(|name| code(name)).collect();
        let key = match variable.key {
            "" => String::new(),
            key => format!(" Overrides `{key}`."),
        };
        format!("{}: {}{key}", names.join(", "), sentence(variable.meaning))
    }));
    page.finish()
}

/// The table of the matrix, with the day and the numbers of its last comparison with the package index below the title.
fn with_last_run(table: &str, recorded: &str) -> String {
    let run: Value = serde_json::from_str(recorded).expect("tests/live/draws.py writes JSON");
    let says = |field: &str| run[field].as_str().map_or_else(|| run[field].to_string(), str::to_owned);
    let line = format!(
        "Last compared with the package index on {} (seed {}): of {} random questions (product, release, Python, processor), which\n\
         uv answers too, {} false yes, {} false no, {} not known; of {} random rows, {} differ from their wheels.",
        says("date"),
        says("seed"),
        says("draws"),
        says("false_yes"),
        says("false_no"),
        says("not_known"),
        says("rows"),
        says("rows_that_differ")
    );
    table.replacen("\n\n", &format!("\n\n{line}\n\n"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_of_the_matrix_shows_its_last_comparison() {
        let recorded = r#"{ "date": "2026-11-29", "seed": 7, "draws": 200, "false_yes": 0, "false_no": 1, "not_known": 2, "rows": 40, "rows_that_differ": 3 }"#;
        let page = with_last_run("# Title\n\nText.\n\nMore.\n", recorded);
        let text =
            "# Title\n\nLast compared with the package index on 2026-11-29 (seed 7): of 200 random questions";
        assert!(page.starts_with(text) && page.ends_with("\n\nText.\n\nMore.\n"), "{page}");
        assert!(page.contains("0 false yes, 1 false no, 2 not known; of 40 random rows, 3 differ"), "{page}");
    }
}
