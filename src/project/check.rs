//! What the types of `envforge.toml` alone do not say: names, requirements, paths, credentials. Every mistake is told.

use std::collections::BTreeSet;
use std::ops::Range;

use camino::Utf8Path;

use super::at::At;
use super::error::{Place, Problem};
use super::file::{CopyWish, Environment, IndexWish, ProjectFile, RunWish, SourceWish};
use super::merge::merged;
use super::names::{is_apt_name, is_name, is_variable};
use super::requirement::{bare_name, requirement_name};
use super::secret::{is_secret_variable, secret_in};

/// Variables envforge sets itself.
const OURS: [&str; 6] =
    ["CUDA_HOME", "NVIDIA_REQUIRE_CUDA", "PATH", "PIP_CONSTRAINT", "UV_CONSTRAINT", "UV_EXCLUDE"];
/// Folders of the image that nothing may be copied over.
const KEPT: [&str; 10] =
    ["/opt/env", "/opt/envforge", "/usr", "/etc", "/bin", "/lib", "/sbin", "/proc", "/sys", "/dev"];
const LEVELS: [&str; 4] = ["static", "quick", "full", "perf"];
const PLATFORMS: [&str; 2] = ["linux/amd64", "linux/arm64"];

/// Everything that is wrong with a file that has the right form.
pub(super) fn problems(file: &ProjectFile, text: &str) -> Vec<Problem> {
    let mut found = Found { text, problems: Vec::new() };
    if let Some(name) = &file.name {
        found.name("the project's name", name, name.span());
    }
    found.environment(&file.default);
    if file.default.has_spec() || file.environments.is_empty() {
        found.merged(&file.default);
    }
    for (name, environment) in &file.environments {
        if !is_name(name) {
            found.say(None, format!("`{name}` is not a name of an environment"), NAME_HINT);
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
    Some("names are lower-case letters and digits, with single `-`, `_` or `.` between them");

struct Found<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Found<'_> {
    fn say(&mut self, span: Option<Range<usize>>, text: String, hint: Option<&str>) {
        let place = span.map(|span| Place::of(self.text, span.start));
        self.problems.push(Problem { place, text, hint: hint.map(str::to_owned) });
    }

    fn at<T>(&mut self, value: &At<T>, text: String, hint: Option<&str>) {
        self.say(Some(value.span()), text, hint);
    }

    fn name(&mut self, what: &str, name: &str, span: Range<usize>) {
        if !is_name(name) {
            self.say(Some(span), format!("`{name}` cannot be {what}"), NAME_HINT);
        }
    }

    fn one_of(&mut self, value: &At<String>, allowed: &[&str]) {
        if !allowed.contains(&value.as_str()) {
            self.at(value, format!("`{}` is none of {}", **value, allowed.join(", ")), None);
        }
    }

    /// What only a merged environment shows.
    fn merged(&mut self, environment: &Environment) {
        let packages = &environment.packages;
        if let (Some(group), None) = (packages.groups.first(), &packages.pyproject) {
            let hint = Some("add `pyproject = \"pyproject.toml\"`");
            self.at(group, format!("`{}` is a group of no `pyproject`", **group), hint);
        }
        if let Err((span, text)) = environment.composed() {
            self.say(span, text, None);
        }
    }

    fn environment(&mut self, environment: &Environment) {
        let parts = [&environment.framework, &environment.version, &environment.cuda, &environment.python];
        if let Some(spec) = &environment.spec {
            let flavour = environment.flavour.as_ref().map(At::span);
            for span in parts.into_iter().flatten().map(At::span).chain(flavour) {
                let text = format!("`spec = \"{}\"` says it all already", **spec);
                self.say(Some(span), text, Some("write `spec` alone, or its parts without `spec`"));
            }
        }
        environment.target.platform.iter().for_each(|platform| self.one_of(platform, &PLATFORMS));
        environment.verify.level.iter().for_each(|level| self.one_of(level, &LEVELS));
        self.packages(environment);
        for (name, value) in &environment.variables {
            self.variable(name, value);
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
                let hint = Some("write it as the check `linker-closure` names it: `libtbb.so.12`");
                self.at(library, format!("`{}` is not the name of a library", **library), hint);
            }
        }
        for check in &environment.verify.checks {
            self.name("the name of a check", &check.name, check.span());
            if let Some(what) = secret_in(&check.command) {
                self.at(check, format!("the command of check `{}` holds {what}", check.name), None);
            }
        }
    }

    fn packages(&mut self, environment: &Environment) {
        let packages = &environment.packages;
        for text in &packages.python {
            if let Err(why) = requirement_name(text) {
                self.at(text, why, None);
            }
        }
        for wish in &packages.allow_source {
            let (name, build) = match &**wish {
                SourceWish::Named(name) => (name, [].as_slice()),
                SourceWish::WithBuild(wish) => (&wish.name, wish.build.as_slice()),
            };
            let mistakes = bare_name(name).err().into_iter();
            let mistakes: Vec<_> =
                mistakes.chain(build.iter().filter_map(|text| requirement_name(text).err())).collect();
            for why in mistakes {
                self.at(wish, why, None);
            }
        }
        for path in packages.requirements.iter().chain(&packages.pyproject) {
            if !is_inside(path) {
                self.at(path, format!("`{}` is not a path inside the project", **path), None);
            }
        }
        for name in &packages.apt {
            if !is_apt_name(name) {
                self.at(
                    name,
                    format!("`{}` is not the name of a distribution package", **name),
                    Some("versions are chosen while locking and pinned in the lock"),
                );
            }
        }
        for index in &packages.indexes {
            let name = match &**index {
                IndexWish::Named(name) => name,
                IndexWish::Known(known) => {
                    if secret_in(&known.url).is_some() {
                        let hint = "write the name alone, and the address in `[indexes]` of your configuration (or ~/.netrc)";
                        self.at(
                            index,
                            format!("the address of index `{}` holds a password", known.name),
                            Some(hint),
                        );
                    } else if known.url.parse::<crate::address::Address>().is_err() {
                        self.at(index, format!("the address of index `{}` is none", known.name), None);
                    }
                    &known.name
                }
            };
            self.name("the name of an index", name, index.span());
        }
    }

    fn variable(&mut self, name: &str, value: &At<String>) {
        if !is_variable(name) {
            self.at(value, format!("`{name}` is not the name of a variable"), None);
        } else if OURS.contains(&name) || name.starts_with("NVIDIA_") {
            self.at(value, format!("`{name}` is set by envforge"), None);
        } else if is_secret_variable(name, value) {
            let hint = "a variable stays in the image: give it when a container is started, or read it in a run step from `secrets`";
            self.at(value, format!("`{name}` looks like a credential"), Some(hint));
        } else if value.contains(['\n', '\r', '\0']) {
            self.at(value, format!("`{name}` holds more than one line"), None);
        }
    }

    fn copy(&mut self, copy: &At<CopyWish>) {
        if !is_inside(&copy.from) {
            self.at(copy, format!("`{}` is not a path inside the project", copy.from), None);
        }
        let to = Utf8Path::new(&copy.to);
        let plain = to.is_absolute()
            && copy.to.len() <= 1024
            && !to.components().any(|part| part.as_str() == "..")
            && !copy.to.contains(['\n', '\r', '\0', '"', '\\', '$', '[']);
        if !plain || copy.to == "/" {
            self.at(copy, format!("`{}` is not a path of the image such as /opt/data", copy.to), None);
        } else if let Some(kept) = KEPT.iter().find(|kept| to.starts_with(kept)) {
            self.at(copy, format!("`{}` lies in {kept}, which the lock alone decides", copy.to), None);
        }
    }

    fn run(&mut self, run: &At<RunWish>) {
        let (command, secrets) = match &**run {
            RunWish::Command(command) => (command, &[][..]),
            RunWish::WithSecrets(run) => (&run.command, run.secrets.as_slice()),
        };
        if command.trim().is_empty() || command.contains('\0') {
            self.at(run, "the command is empty".to_owned(), None);
        }
        if let Some(what) = secret_in(command) {
            let hint = "name it instead: `run = [{ command = \"... $(cat /run/secrets/NAME)\", secrets = [\"NAME\"] }]`, \
                        with `[secrets] NAME = { env = \"VARIABLE\" }` in your configuration";
            self.at(
                run,
                format!("the command holds {what}, which would stay in the image's history"),
                Some(hint),
            );
        }
        for name in secrets {
            self.name("the name of a secret", name, run.span());
        }
    }
}

/// True for a relative path that does not climb.
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
    use crate::project::ProjectError;

    fn said(text: &str) -> String {
        let text = format!("schema = 1\n{text}");
        match ProjectFile::parse("envforge.toml", &text) {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_whole_file_is_read() {
        let text = include_str!("../../tests/fixtures/project/whole.toml");
        let file = ProjectFile::parse("whole.toml", text).expect("reads");
        assert_eq!(file.environments.keys().collect::<Vec<_>>(), ["cpu", "train"]);
        assert_eq!(file.default.run.len(), 2);
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        insta::assert_snapshot!(said(include_str!("../../tests/fixtures/project/wrong.toml")));
    }

    #[test]
    fn an_unknown_key_and_a_wrong_type_are_told_with_line_and_column() {
        assert!(
            said("spce = 'pytorch-cuda'").contains("line 2, column 1: unknown field `spce`"),
            "{}",
            said("spce = 'x'")
        );
        assert!(said("spec = 3").contains("line 2, column 8: invalid type"), "{}", said("spec = 3"));
        let both = said("spec = 'pytorch-cuda'\n[environments.a]\nx = 1\n[environments.b]\npackages = 2");
        assert!(both.contains("line 4, column 1"), "{both}");
        let broken = said("spec = \n[packages\n");
        assert!(broken.contains("line 2") && broken.contains("line 3"), "{broken}");
        assert!(said("").contains("`spec` or `framework` is missing"));
    }

    #[test]
    fn another_schema_is_told_apart_from_a_broken_file() {
        let error = ProjectFile::parse("f", "schema = 2\nnews = true\n").expect_err("refused");
        assert!(matches!(error, ProjectError::OtherSchema { found: 2, .. }), "{error}");
        assert!(error.hints()[0].contains("newer envforge"));
        assert!(
            ProjectFile::parse("f", "spec = 'pytorch-cuda'")
                .expect_err("refused")
                .to_string()
                .contains("schema = 1")
        );
    }
}
