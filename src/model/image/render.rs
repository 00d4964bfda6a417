//! Image description to Dockerfile, by minijinja over `templates/Dockerfile.j2`. Pure; undefined variables are errors.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};

use crate::model::image::description::ImageDescription;

const TEMPLATE: &str = include_str!("../../../templates/Dockerfile.j2");
const PACKAGES_STEP: &str = include_str!("../../../templates/packages_step.txt");

/// The Dockerfile of an image.
pub(crate) fn render(image: &ImageDescription) -> String {
    rendered(TEMPLATE, &values(image))
}

/// Returns an embedded template with its values filled in.
pub(crate) fn rendered(template: &str, values: &serde_json::Value) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("quoted", |text: &str| quoted(text));
    environment.add_filter("shell", |text: &str| shell_word(text));
    environment.add_function("packages_step", |folder: &str, argument: &str| packages_step(folder, argument));
    let mut text = environment
        .render_str(template, Value::from(Serde(values)))
        .expect("the template is part of the program and tested");
    text.push('\n');
    text
}

/// The step that installs distribution packages: those of a folder of the context. `argument` follows the name of the script.
pub(crate) fn packages_step(folder: &str, argument: &str) -> String {
    let step = PACKAGES_STEP.trim_end().replacen("FOLDER", folder, 1);
    if argument.is_empty() { step } else { format!("{step} {argument}") }
}

/// The variables of the templates: templates/README.md lists them.
pub(crate) fn values(image: &ImageDescription) -> serde_json::Value {
    serde_json::to_value(image).expect("every value of a description has a JSON form")
}

/// A double-quoted Dockerfile word: `$` stays itself.
fn quoted(text: &str) -> String {
    let mut word = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' | '$' => word.extend(['\\', character]),
            '\n' | '\r' => word.push(' '),
            other => word.push(other),
        }
    }
    word.push('"');
    word
}

/// A word of a shell, in which nothing expands.
pub(crate) fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_words_do_not_expand() {
        assert_eq!(quoted("driver>=525.60.13"), "\"driver>=525.60.13\"");
        assert_eq!(quoted("a\"$HOME\\"), "\"a\\\"\\$HOME\\\\\"");
    }
}
