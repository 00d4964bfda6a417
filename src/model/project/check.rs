//! Checks of `envforge.toml` beyond its types: names, requirements, paths, credentials. Reports every problem.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use camino::Utf8Path;

use super::error::{Place, Problem};
use super::file::{
    AllowSourceEntry, CopyEntry, Environment, IndexEntry, ProjectFile, ProjectMode, PythonEntry, RunStep,
};
use super::merge::merged;
use super::names::{is_apt_name, is_name, is_variable};
use super::requirement::{bare_name, requirement_name};
use super::secret::{is_secret_variable, secret_in};
use crate::model::project::spanned::SpannedValue;
use crate::model::whiteout::{DELETES, deletes};

/// Variables set by envforge.
const RESERVED: [&str; 6] =
    ["CUDA_HOME", "NVIDIA_REQUIRE_CUDA", "PATH", "PIP_CONSTRAINT", "UV_CONSTRAINT", "UV_EXCLUDE"];
/// Directories of the image that `copy` must not write to.
const KEPT: [&str; 13] = [
    "/opt/env",
    "/opt/envforge",
    "/usr",
    "/etc",
    "/bin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/sbin",
    "/proc",
    "/sys",
    "/dev",
];
/// Names of indexes that every installation has.
const BUILT_IN_INDEXES: [&str; 2] = [crate::model::lock::DEFAULT_INDEX, crate::model::lock::FRAMEWORK_INDEX];
const LEVELS: [&str; 4] = envforge_protocol::Level::NAMES;
const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];

/// Returns every problem of a file with the correct types.
pub(super) fn problems(file: &ProjectFile, text: &str) -> Vec<Problem> {
    let mut found = Found { text, problems: Vec::new() };
    if let Some(name) = &file.name {
        found.name("project name", name, name.span());
    }
    found.environment(&file.default);
    if file.default.has_spec() || file.environments.is_empty() {
        found.merged(&file.default);
    }
    for (name, environment) in &file.environments {
        if !is_name(name) {
            found.report(None, format!("invalid environment name `{name}`"), NAME_HINT);
        }
        found.environment(environment);
        found.merged(&merged(&file.default, environment));
    }
    let mut seen = BTreeSet::new();
    found.problems.retain(|problem| seen.insert((problem.place, problem.text.clone())));
    found.problems.sort_by_key(|problem| problem.place);
    found.problems
}

const NAME_HINT: Option<&str> =
    Some("use lower-case letters and digits, with single `-`, `_` or `.` between them");

struct Found<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn report(&mut self, span: Option<Range<usize>>, text: String, hint: Option<&str>) {
        let place = span.map(|span| Place::of(self.text, span.start));
        self.problems.push(Problem { place, text, hint: hint.map(str::to_owned) });
    }

    fn at<T>(&mut self, value: &SpannedValue<T>, text: String, hint: Option<&str>) {
        self.report(Some(value.span()), text, hint);
    }

    fn name(&mut self, what: &str, name: &str, span: Range<usize>) {
        if !is_name(name) {
            self.report(Some(span), format!("invalid {what} `{name}`"), NAME_HINT);
        }
    }

    fn one_of(&mut self, value: &SpannedValue<String>, allowed: &[&str]) {
        if !allowed.contains(&value.as_str()) {
            self.at(
                value,
                format!("invalid value `{}` (expected one of {})", **value, allowed.join(", ")),
                None,
            );
        }
    }

    /// Checks a merged environment.
    fn merged(&mut self, environment: &Environment) {
        let packages = &environment.packages;
        if let (Some(group), None) = (packages.groups.first(), &packages.pyproject) {
            let hint = Some("add `pyproject = \"pyproject.toml\"`");
            self.at(group, format!("group `{}` requires `pyproject`", **group), hint);
        }
        if let Err((span, text)) = environment.composed() {
            self.report(span, text, None);
        }
    }

    fn environment(&mut self, environment: &Environment) {
        let parts = [&environment.framework, &environment.version, &environment.cuda, &environment.python];
        if let Some(spec) = &environment.spec {
            let flavour = environment.flavour.as_ref().map(SpannedValue::span);
            for span in parts.into_iter().flatten().map(SpannedValue::span).chain(flavour) {
                let text = format!("`spec = \"{}\"` cannot be combined with its parts", **spec);
                self.report(Some(span), text, Some("use either `spec` or its parts"));
            }
        }
        if let Some(mode) = &environment.project {
            self.project_mode(mode);
        }
        environment.target.platform.iter().for_each(|platform| self.one_of(platform, &PLATFORMS));
        environment.verify.level.iter().for_each(|level| self.one_of(level, &LEVELS));
        self.packages(environment);
        for (name, value) in &environment.variables {
            self.variable(name, value);
        }
        for variable in &environment.shell.env {
            self.shell_variable(variable);
        }
        for copy in &environment.copy {
            self.copy(copy);
        }
        for run in &environment.run {
            self.run(run);
        }
        for library in &environment.verify.may_lack {
            if library.contains(['/', '='])
                || !library.contains(".so")
                || library.contains(char::is_whitespace)
            {
                let hint = Some("use the name that check `linker-closure` reports, such as `libtbb.so.12`");
                self.at(library, format!("invalid library name `{}`", **library), hint);
            }
        }
        for check in &environment.verify.checks {
            self.name("check name", &check.name, check.span());
            if let Some(what) = secret_in(&check.command) {
                self.at(check, format!("command of check `{}` contains {what}", check.name), None);
            }
        }
    }

    fn project_mode(&mut self, mode: &SpannedValue<String>) {
        if ProjectMode::parse(mode).is_none() {
            self.at(
                mode,
                format!("invalid value `{}` (expected one of editable, install, none)", **mode),
                None,
            );
        }
    }

    fn packages(&mut self, environment: &Environment) {
        let packages = &environment.packages;
        self.python(&packages.python);
        for entry in &packages.allow_source {
            let (name, build) = match &**entry {
                AllowSourceEntry::Named(name) => (name, [].as_slice()),
                AllowSourceEntry::WithBuild(entry) => (&entry.name, entry.build.as_slice()),
            };
            let mistakes = bare_name(name).err().into_iter();
            let mistakes: Vec<_> =
                mistakes.chain(build.iter().filter_map(|text| requirement_name(text).err())).collect();
            for why in mistakes {
                self.at(entry, why, None);
            }
        }
        for path in packages.requirements.iter().chain(&packages.pyproject) {
            if !is_inside(path) {
                self.at(path, format!("path `{}` is outside the project", **path), None);
            }
        }
        for name in &packages.apt {
            if !is_apt_name(name) {
                self.at(
                    name,
                    format!("invalid distribution package name `{}`", **name),
                    Some("omit the version: `envforge lock` chooses and pins it"),
                );
            }
        }
        for index in &packages.indexes {
            let name = match &**index {
                IndexEntry::Named(name) => name,
                IndexEntry::Known(known) => {
                    if secret_in(&known.url).is_some() {
                        let hint = "use only the name here, and set the URL in `[indexes]` of your configuration (or ~/.netrc)";
                        self.at(
                            index,
                            format!("URL of index `{}` contains a password", known.name),
                            Some(hint),
                        );
                    } else if known.url.parse::<crate::model::address::Address>().is_err() {
                        self.at(index, format!("invalid URL for index `{}`", known.name), None);
                    }
                    &known.name
                }
            };
            self.name("index name", name, index.span());
            if BUILT_IN_INDEXES.contains(&name.as_str()) {
                let hint = Some("choose another name");
                self.at(index, format!("`{name}` is the name of a built-in index"), hint);
            }
        }
    }

    fn python(&mut self, requirements: &[SpannedValue<PythonEntry>]) {
        let mut pinned: BTreeMap<String, &str> = BTreeMap::new();
        for entry in requirements {
            let name = match requirement_name(entry.text()) {
                Ok(name) => name,
                Err(why) => {
                    self.at(entry, why, None);
                    continue;
                }
            };
            let Some(index) = entry.index() else { continue };
            // An address may hold a password and is not repeated.
            if index.contains("://") {
                let hint = Some("name an index: `[indexes]` of your configuration has its URL");
                self.at(entry, format!("index of `{name}` is not the name of an index"), hint);
                continue;
            }
            self.name("index name", index, entry.span());
            if let Some(other) = pinned.insert(name.clone(), index).filter(|other| *other != index) {
                let text = format!("`{name}` has two indexes: `{other}` and `{index}`");
                self.at(entry, text, Some("choose one of them"));
            }
        }
    }

    fn variable(&mut self, name: &str, value: &SpannedValue<String>) {
        if !is_variable(name) {
            self.at(value, format!("invalid variable name `{name}`"), None);
        } else if RESERVED.contains(&name) || name.starts_with("NVIDIA_") {
            self.at(value, format!("variable `{name}` is set by envforge"), None);
        } else if is_secret_variable(name, value) {
            let hint = "set it when starting a container, or read it from `secrets` in a run step: variables are stored in the image";
            self.at(value, format!("variable `{name}` looks like a credential"), Some(hint));
        } else if value.contains(['\n', '\r', '\0']) {
            self.at(value, format!("variable `{name}` has more than one line"), None);
        }
    }

    /// A variable of the container, which is stored in this file but in no image.
    fn shell_variable(&mut self, variable: &SpannedValue<String>) {
        let (name, value) = variable.split_once('=').unwrap_or((variable, ""));
        if !is_variable(name) {
            self.at(variable, format!("invalid variable name `{name}`"), None);
        } else if name.starts_with("NVIDIA_") {
            self.at(variable, format!("variable `{name}` is set by envforge"), None);
        } else if is_secret_variable(name, value) && !value.is_empty() {
            let hint = format!("write `{name}` alone: the value is then taken from your environment");
            self.at(variable, format!("variable `{name}` looks like a credential"), Some(&hint));
        } else if value.contains(['\n', '\r', '\0']) {
            self.at(variable, format!("variable `{name}` has more than one line"), None);
        }
    }

    fn copy(&mut self, copy: &SpannedValue<CopyEntry>) {
        if !is_inside(&copy.from) {
            self.at(copy, format!("path `{}` is outside the project", copy.from), None);
        }
        let to = Utf8Path::new(&copy.to);
        let plain = to.is_absolute()
            && copy.to.len() <= 1024
            && !to.components().any(|part| part.as_str() == "..")
            && !copy.to.contains(['\n', '\r', '\0', '"', '\\', '$', '[']);
        if !plain || copy.to == "/" {
            self.at(
                copy,
                format!("invalid image path `{}` (expected a path such as /opt/data)", copy.to),
                None,
            );
        } else if deletes(copy.to.as_bytes()) {
            self.at(copy, format!("invalid image path `{}`: {DELETES}", copy.to), None);
        } else if let Some(kept) = managed_folder(to) {
            self.at(copy, format!("`{}` is inside {kept}, which envforge manages", copy.to), None);
        }
    }

    fn run(&mut self, run: &SpannedValue<RunStep>) {
        let (command, secrets) = match &**run {
            RunStep::Command(command) => (command, &[][..]),
            RunStep::WithSecrets(run) => (&run.command, run.secrets.as_slice()),
        };
        if command.trim().is_empty() || command.contains('\0') {
            self.at(run, "empty command".to_owned(), None);
        }
        if let Some(what) = secret_in(command) {
            let hint = "use a secret: `run = [{ command = \"... $(cat /run/secrets/NAME)\", secrets = [\"NAME\"] }]`, \
                        with `[secrets] NAME = { env = \"VARIABLE\" }` in your configuration";
            self.at(
                run,
                format!("command contains {what}, which would be stored in the image history"),
                Some(hint),
            );
        }
        for name in secrets {
            self.name("secret name", name, run.span());
        }
    }
}

/// Returns the directory that envforge manages in which a path of the image lies, or which it is.
pub(crate) fn managed_folder(path: &Utf8Path) -> Option<&'static str> {
    KEPT.into_iter().find(|kept| path.starts_with(kept))
}

/// Whether a path is relative and has no `..`.
fn is_inside(path: &str) -> bool {
    let path = Utf8Path::new(path);
    path.is_relative()
        && !path.as_str().is_empty()
        && !path.as_str().contains(['\n', '\r', '\0'])
        && !path.components().any(|part| part.as_str() == "..")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;
    use crate::model::project::ProjectError;

    fn checked(text: &str) -> String {
        let text = format!("schema = 1\n{text}");
        match ProjectFile::parse("envforge.toml", &text) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn complete_file_is_parsed() {
        let text = include_str!("../../../tests/fixtures/project/whole.toml");
        let file = ProjectFile::parse("whole.toml", text).expect("reads");
        assert_eq!(file.environments.keys().collect::<Vec<_>>(), ["cpu", "train"]);
        assert_eq!(file.default.run.len(), 2);
        let python = &file.default.packages.python;
        assert_eq!((python[2].text(), python[2].index()), ("ourtool>=2", Some("internal")));
        assert_eq!((python[0].text(), python[0].index()), ("transformers>=4.40", None));
    }

    #[test]
    fn way_of_the_projects_code_is_one_that_exists() {
        let of = |word: &str| format!("schema = 1\nspec = 'pytorch-cuda'\nproject = '{word}'\n");
        for word in ["editable", "install", "none"] {
            let file = ProjectFile::parse("envforge.toml", &of(word)).expect(word);
            assert_eq!(file.default.project.as_ref().map(|mode| mode.as_str()), Some(word));
        }
        let other = ProjectFile::parse("envforge.toml", &of("wheel")).expect_err("unknown");
        let shown = other.to_string();
        assert!(
            shown.contains(
                "line 3, column 11: invalid value `wheel` (expected one of editable, install, none)"
            ),
            "{shown}"
        );
        let text = "schema = 1\nspec = 'pytorch-cuda'\nproject = 'editable'\n[environments.prod]\nproject = 'none'\n";
        let file = ProjectFile::parse("envforge.toml", text).expect("reads");
        let prod = file.environment("envforge.toml", Some("prod")).expect("there");
        assert_eq!(prod.project.as_ref().map(|mode| mode.as_str()), Some("none"));
    }

    #[test]
    fn every_mistake_is_reported_with_its_place() {
        insta::assert_snapshot!(checked(include_str!("../../../tests/fixtures/project/wrong.toml")));
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_reported_with_line_and_column() {
        assert!(
            checked("spce = 'pytorch-cuda'").contains("line 2, column 1: unknown field `spce`"),
            "{}",
            checked("spce = 'x'")
        );
        assert!(checked("spec = 3").contains("line 2, column 8: invalid type"), "{}", checked("spec = 3"));
        let both = checked("spec = 'pytorch-cuda'\n[environments.a]\nx = 1\n[environments.b]\npackages = 2");
        assert!(both.contains("line 4, column 1"), "{both}");
        let broken = checked("spec = \n[packages\n");
        assert!(broken.contains("line 2") && broken.contains("line 3"), "{broken}");
        assert!(checked("").contains("missing `spec` or `framework`"));
    }

    #[test]
    fn other_schema_is_distinguished_from_a_broken_file() {
        let error = ProjectFile::parse("f", "schema = 2\nnews = true\n").expect_err("refused");
        assert!(matches!(error, ProjectError::OtherSchema { found: 2, .. }), "{error}");
        assert!(error.hints()[0].contains("newer version"));
        assert!(
            ProjectFile::parse("f", "spec = 'pytorch-cuda'")
                .expect_err("refused")
                .to_string()
                .contains("schema = 1")
        );
    }
}
