//! The `envforge.toml` that `init` writes: detected values, and comments for the rest.
//!
//! Its first line names the JSON schema next to it, by which editors (taplo, VS Code) check and complete the file.

use std::fmt::Write as _;

use super::names::name_from;

/// The detected values of a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DetectedProject {
    /// The name of the directory.
    pub folder: String,
    /// The spec: requested, or detected in the requirements.
    pub spec: String,
    /// Requirement files.
    pub requirements: Vec<String>,
    /// Whether there is a `pyproject.toml` with dependencies.
    pub pyproject: bool,
    /// Its groups.
    pub groups: Vec<String>,
    /// Packages of an `apt.txt`.
    pub apt: Vec<String>,
}

/// Returns the text of a new project file, which is valid without edits.
pub fn starter(found: &DetectedProject) -> String {
    let text = |value: &str| toml::Value::from(value).to_string();
    let list = |values: &[String]| toml::Value::from(values.to_vec()).to_string();
    let mut out = String::from(
        "#:schema ./.envforge.schema.json\n# The image of this project. Build it with `envforge build`; commit this file and envforge.lock.\nschema = 1\n",
    );
    if let Some(name) = name_from(&found.folder) {
        let _ = writeln!(out, "name = {}", text(&name));
    }
    let _ = writeln!(out, "spec = {}    # `envforge list` shows the available variants", text(&found.spec));
    out.push_str("\n[packages]\n");
    if found.requirements.is_empty() {
        out.push_str("# python = [\"transformers>=4.40\"]    # in addition to the framework\n");
        out.push_str("# requirements = [\"requirements.txt\"]\n");
    } else {
        let _ = writeln!(out, "requirements = {}", list(&found.requirements));
    }
    if found.pyproject {
        out.push_str("pyproject = \"pyproject.toml\"\n");
        if found.groups.is_empty() {
            out.push_str("# groups = [\"dev\"]    # of its [dependency-groups]\n");
        } else {
            let _ = writeln!(out, "# groups = {}    # of its [dependency-groups]", list(&found.groups));
        }
    }
    if found.apt.is_empty() {
        out.push_str("# apt = [\"ffmpeg\"]    # distribution packages\n");
    } else {
        let _ = writeln!(out, "apt = {}", list(&found.apt));
    }
    out.push_str(
        "\n# [variables]\n# TOKENIZERS_PARALLELISM = \"false\"\n\
         \n# [verify]\n# checks = [{ name = \"imports\", command = \"python -c 'import transformers'\" }]\n\
         \n# [environments.devel]    # envforge build -e devel\n# flavour = \"devel\"         # nvcc too\n",
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::project::ProjectFile;

    #[test]
    fn starter_file_is_valid_bare_or_full() {
        let bare = DetectedProject {
            folder: "日本".to_owned(),
            spec: "pytorch-cuda".to_owned(),
            ..DetectedProject::default()
        };
        let full = DetectedProject {
            folder: "My Project".to_owned(),
            spec: "pytorch-cuda:2.8-cu128".to_owned(),
            requirements: vec!["requirements.txt".to_owned()],
            pyproject: true,
            groups: vec!["test".to_owned()],
            apt: vec!["ffmpeg".to_owned()],
        };
        for found in [bare, full] {
            let text = starter(&found);
            let file = ProjectFile::parse("envforge.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
            assert_eq!(file.default.spec_text().expect("a spec"), found.spec);
            assert_eq!(file.default.packages.apt.len(), found.apt.len());
        }
    }

    #[test]
    fn starter_file_is_valid_when_uncommented() {
        let found = DetectedProject { spec: "pytorch-cuda".to_owned(), ..DetectedProject::default() };
        let text: String = starter(&found)
            .lines()
            .filter(|line| !line.contains("The image of"))
            .map(|line| line.trim_start_matches("# ").to_owned() + "\n")
            .collect();
        ProjectFile::parse("envforge.toml", &text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    }
}
