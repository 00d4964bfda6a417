//! The book's reference, made from the lists that the program uses. The pages of commands come from the argument parser.

pub(super) mod commands;
mod json_output;
mod lists;
mod schema;
mod trust;

use self::schema::schema_page;
use crate::model::compat::Matrix;
use crate::model::markdown::{MarkdownPage, code, sentence};
use crate::model::project;
use crate::model::resolve::{rules_text, support_text};
use crate::settings::{VARIABLES, config_schema};

/// Returns the pages by file name.
pub(crate) fn pages() -> Vec<(String, String)> {
    let all = [
        ("project-file.md", project_file()),
        ("settings.md", settings()),
        ("environment.md", environment()),
        ("rules.md", rules_text(Matrix::current())),
        ("checks.md", lists::checks()),
        ("errors.md", lists::errors()),
        ("exit-codes.md", lists::exit_codes()),
        ("json-output.md", json_output::page()),
        ("image-contents.md", lists::image_contents()),
        ("caches.md", lists::caches()),
        ("trust.md", trust::page()),
        ("matrix.md", support_text(Matrix::current())),
    ];
    all.map(|(name, text)| (name.to_owned(), text)).into()
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
