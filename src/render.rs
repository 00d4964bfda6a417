//! Build plan to Dockerfile, by minijinja over `templates/Dockerfile.j2`. Pure; undefined variables are errors.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde_json::json;

use crate::lock::Lock;
use crate::plan::{BASE_ARCHIVE, Bottom, BuildPlan, asked_for, toolkit};

const TEMPLATE: &str = include_str!("../templates/Dockerfile.j2");

/// The Dockerfile of a plan.
pub(crate) fn render(lock: &Lock, plan: &BuildPlan, bottom: &Bottom) -> String {
    rendered(TEMPLATE, &values(lock, plan, bottom))
}

/// A template of ours with its values.
pub(crate) fn rendered(template: &str, values: &serde_json::Value) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_filter("quoted", |text: &str| quoted(text));
    environment.add_filter("shell", |text: &str| shell_word(text));
    let mut text = environment
        .render_str(template, Value::from(Serde(values)))
        .expect("the template is part of the program and tested");
    text.push('\n');
    text
}

/// What the templates may use: templates/README.md lists it.
pub(crate) fn values(lock: &Lock, plan: &BuildPlan, bottom: &Bottom) -> serde_json::Value {
    let (reference, archive) = match bottom {
        Bottom::Image(reference) => (reference.as_str(), ""),
        Bottom::Archive(_) => ("scratch", BASE_ARCHIVE),
    };
    let layers: Vec<_> = plan
        .layers
        .iter()
        .map(|layer| json!({ "title": layer.title, "files": layer.files, "user": layer.user, "local": layer.is_local() && !plan.vendored }))
        .collect();
    json!({
        "name": plan.name,
        "envforge": env!("CARGO_PKG_VERSION"),
        "matrix": lock.stack.matrix,
        "lock": plan.lock,
        "cuda": lock.stack.cuda,
        "python": lock.stack.python,
        "framework_index": lock.uses_framework_index(),
        "base": {
            "name": lock.base.name,
            "suite": lock.base.suite,
            "packages": lock.base.packages.len(),
            "reference": reference,
            "archive": archive,
        },
        "system": { "packages": lock.system.len() },
        "layers": layers,
        "toolkit": toolkit(&lock.stack).map(|step| json!({
            "title": step.title,
            "argument": step.argument,
            "debs": !lock.unpacked.is_empty(),
        })),
        "apt": (!lock.apt.is_empty()).then(|| json!({
            "packages": lock.apt.len(),
            "names": asked_for(&lock.added.apt),
        })),
        "vendored": plan.vendored,
        "indexes": !lock.added.indexes.is_empty(),
        "copies": lock.added.copy.iter().enumerate().map(|(number, copy)| {
            let (tail, end) = if copy.folder { ("", "/") } else { (copy.file_name(), "") };
            let to = format!("{}{end}", copy.to.trim_end_matches('/'));
            json!({ "from": copy.from, "to": copy.to, "folder": copy.folder, "name": copy.file_name(), "words": json!([format!("copy/{number}/{tail}"), to]).to_string() })
        }).collect::<Vec<_>>(),
        "runs": lock.added.run.iter().map(|run| json!({
            "words": json!(["/bin/bash", "-euc", run.command]).to_string(),
            "command": run.command,
            "secrets": run.secrets,
        })).collect::<Vec<_>>(),
        "environment": plan.environment.iter().collect::<Vec<_>>(),
        "labels": plan.labels.iter().collect::<Vec<_>>(),
    })
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
    fn words_are_quoted_so_that_nothing_expands() {
        assert_eq!(quoted("driver>=525.60.13"), "\"driver>=525.60.13\"");
        assert_eq!(quoted("a\"$HOME\\"), "\"a\\\"\\$HOME\\\\\"");
    }
}
