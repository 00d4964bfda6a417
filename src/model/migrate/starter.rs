//! The `envforge.toml` that `init` writes: detected values, and comments for the rest.
//!
//! Its first line names the JSON schema next to it, by which editors (taplo, VS Code) check and complete the file.

use std::fmt::Write as _;

use super::outcome::Migration;
use super::reading::IndexSeen;
use crate::model::project::name_from;

/// Returns the text of a new project file, which is valid without edits.
pub fn starter(folder: &str, found: &Migration) -> String {
    let text = |value: &str| toml::Value::from(value).to_string();
    let list = |values: &[String]| toml::Value::from(values.to_vec()).to_string();
    let mut out = String::from(
        "#:schema ./.envforge.schema.json\n# The image of this project. Build it with `envforge build`; commit this file and envforge.lock.\nschema = 1\n",
    );
    if let Some(name) = name_from(folder) {
        let _ = writeln!(out, "name = {}", text(&name));
    }
    let _ = writeln!(out, "spec = {}    # `envforge list` shows the available variants", text(&found.spec));
    out.push_str("\n[packages]\n");
    if !found.requirements.is_empty() {
        let _ = writeln!(out, "requirements = {}", list(&found.requirements));
    }
    if !found.python.is_empty() {
        let _ = writeln!(out, "# from {}", found.files.join(", "));
        out.push_str("python = [\n");
        for package in &found.python {
            let requirement = text(&package.requirement);
            let _ = match &package.index {
                Some(index) => writeln!(out, "    {{ name = {requirement}, index = {} }},", text(index)),
                None => writeln!(out, "    {requirement},"),
            };
        }
        out.push_str("]\n");
    } else if found.requirements.is_empty() {
        out.push_str("# python = [\"transformers>=4.40\"]    # in addition to the framework\n");
        out.push_str("# requirements = [\"requirements.txt\"]\n");
    }
    if found.pyproject {
        out.push_str("pyproject = \"pyproject.toml\"\n");
        if !found.taken_groups.is_empty() {
            let plain = found.groups.iter().filter(|name| !name.contains(char::is_control));
            let others: Vec<&str> = plain.map(String::as_str).collect();
            let others =
                if others.is_empty() { String::new() } else { format!("    # also: {}", others.join(", ")) };
            let _ = writeln!(out, "groups = {}{others}", list(&found.taken_groups));
        } else if found.groups.is_empty() {
            out.push_str("# groups = [\"dev\"]    # of its [dependency-groups]\n");
        } else {
            let _ = writeln!(out, "# groups = {}    # its groups and extras", list(&found.groups));
        }
    }
    if !found.indexes.is_empty() {
        let entry = |index: &IndexSeen| match index.url.as_str() {
            "" => text(&index.name),
            url => {
                let format = if index.flat { ", format = \"flat\"" } else { "" };
                format!("{{ name = {}, url = {}{format} }}", text(&index.name), text(url))
            }
        };
        let entries: Vec<_> = found.indexes.iter().map(entry).collect();
        let _ = writeln!(out, "indexes = [{}]", entries.join(", "));
    }
    if found.apt.is_empty() {
        out.push_str("# apt = [\"ffmpeg\"]    # distribution packages\n");
    } else {
        let _ = writeln!(out, "apt = {}", list(&found.apt));
    }
    out.push_str(
        "\n# [variables]\n# TOKENIZERS_PARALLELISM = \"false\"\n\
         \n# [verify]\n# checks = [{ name = \"imports\", command = \"python -c 'import transformers'\" }]\n\
         \n# [environments.devel]    # envforge build -E devel\n# flavour = \"devel\"         # nvcc too\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::ProjectPackage;
    use crate::model::project::ProjectFile;

    #[test]
    fn starter_file_is_valid_bare_or_full() {
        let bare = Migration { spec: "pytorch-cuda".to_owned(), ..Migration::default() };
        let package = |requirement: &str, index: Option<&str>| ProjectPackage {
            requirement: requirement.to_owned(),
            index: index.map(str::to_owned),
        };
        let full = Migration {
            spec: "pytorch-cuda:2.8-cu128".to_owned(),
            requirements: vec!["requirements.txt".to_owned()],
            pyproject: true,
            groups: vec!["test".to_owned()],
            python: vec![
                package("x>=1 ; python_version < '3.12'", None),
                package("y==1+cu128", Some("vendor")),
            ],
            indexes: vec![IndexSeen {
                name: "vendor".to_owned(),
                url: "https://h.test/simple".to_owned(),
                flat: false,
            }],
            apt: vec!["ffmpeg".to_owned()],
            ..Migration::default()
        };
        for (folder, found) in [("日本", bare), ("My Project", full)] {
            let text = starter(folder, &found);
            let file = ProjectFile::parse("envforge.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(file.default.spec_text().expect("a spec"), found.spec);
            assert_eq!(file.default.packages.apt.len(), found.apt.len());
            assert_eq!(file.default.packages.python.len(), found.python.len());
        }
    }

    #[test]
    fn starter_file_is_valid_when_uncommented() {
        let found = Migration { spec: "pytorch-cuda".to_owned(), ..Migration::default() };
        let text: String = starter("x", &found)
            .lines()
            .filter(|line| !line.contains("The image of"))
            .map(|line| line.trim_start_matches("# ").to_owned() + "\n")
            .collect();
        ProjectFile::parse("envforge.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}
