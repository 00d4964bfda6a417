//! One environment of a project file: the default environment, overridden by its own values.

use std::ops::Range;

use super::error::{Problem, ProjectError};
use super::file::{Environment, ProjectFile};
use crate::model::spec::Spec;

/// A mistake in a spec or its parts, with its position.
pub(super) type SpecMistake = (Option<Range<usize>>, String);

impl ProjectFile {
    /// Returns the merged environment of that name; `None`: the default one. `file` is the name errors use.
    pub fn environment(&self, file: &str, name: Option<&str>) -> Result<Environment, ProjectError> {
        let Some(name) = name else {
            if self.default.has_spec() || self.environments.is_empty() {
                return Ok(self.default.clone());
            }
            let known: Vec<_> = self.environments.keys().map(|name| format!("-E {name}")).collect();
            let text = "the default environment has no `spec` or `framework`".to_owned();
            let hint = Some(format!("use one of: {}", known.join(", ")));
            let problems = vec![Problem { place: None, text, hint }];
            return Err(ProjectError::Invalid { file: file.to_owned(), problems });
        };
        match self.environments.get(name) {
            Some(own) => Ok(merged(&self.default, own)),
            None => Err(ProjectError::NoEnvironment {
                file: file.to_owned(),
                name: name.to_owned(),
                known: self.environments.keys().cloned().collect(),
            }),
        }
    }
}

/// Merges `own` over `below`.
pub(super) fn merged(below: &Environment, own: &Environment) -> Environment {
    let mut all = below.clone();
    if own.framework.is_some() {
        all.spec = None;
    }
    if own.spec.is_some() || own.framework.is_some() {
        (all.framework, all.version, all.cuda, all.python, all.flavour) = (None, None, None, None, None);
    }
    replace(&mut all.spec, own.spec.as_ref());
    replace(&mut all.framework, own.framework.as_ref());
    replace(&mut all.version, own.version.as_ref());
    replace(&mut all.cuda, own.cuda.as_ref());
    replace(&mut all.python, own.python.as_ref());
    replace(&mut all.flavour, own.flavour.as_ref());
    replace(&mut all.base, own.base.as_ref());
    replace(&mut all.project, own.project.as_ref());
    if !own.target.gpu.is_empty() {
        all.target.gpu.clone_from(&own.target.gpu);
    }
    replace(&mut all.target.driver, own.target.driver.as_ref());
    replace(&mut all.target.any, own.target.any.as_ref());
    replace(&mut all.target.platform, own.target.platform.as_ref());
    replace(&mut all.target.forward_compat, own.target.forward_compat.as_ref());
    let (packages, added) = (&mut all.packages, &own.packages);
    packages.python.extend(added.python.iter().cloned());
    packages.requirements.extend(added.requirements.iter().cloned());
    replace(&mut packages.pyproject, added.pyproject.as_ref());
    packages.groups.extend(added.groups.iter().cloned());
    packages.apt.extend(added.apt.iter().cloned());
    packages.allow_source.extend(added.allow_source.iter().cloned());
    packages.indexes.extend(added.indexes.iter().cloned());
    all.variables.extend(own.variables.clone());
    all.copy.extend(own.copy.iter().cloned());
    all.run.extend(own.run.iter().cloned());
    all.shell.mounts.extend(own.shell.mounts.iter().cloned());
    all.shell.ports.extend(own.shell.ports.iter().cloned());
    all.shell.data.extend(own.shell.data.iter().cloned());
    all.shell.volumes.extend(own.shell.volumes.iter().cloned());
    all.shell.env.extend(own.shell.env.iter().cloned());
    all.shell.env_file.extend(own.shell.env_file.iter().cloned());
    replace(&mut all.shell.network, own.shell.network.as_ref());
    replace(&mut all.shell.gpus, own.shell.gpus.as_ref());
    replace(&mut all.shell.ssh, own.shell.ssh.as_ref());
    replace(&mut all.shell.memory, own.shell.memory.as_ref());
    replace(&mut all.shell.cpus, own.shell.cpus.as_ref());
    replace(&mut all.shell.shm_size, own.shell.shm_size.as_ref());
    replace(&mut all.shell.jupyter, own.shell.jupyter.as_ref());
    replace(&mut all.verify.level, own.verify.level.as_ref());
    all.verify.checks.extend(own.verify.checks.iter().cloned());
    all.verify.may_lack.extend(own.verify.may_lack.iter().cloned());
    replace(&mut all.cluster.runtime, own.cluster.runtime.as_ref());
    replace(&mut all.cluster.folder, own.cluster.folder.as_ref());
    all
}

fn replace<T: Clone>(below: &mut Option<T>, own: Option<&T>) {
    if let Some(own) = own {
        *below = Some(own.clone());
    }
}

impl Environment {
    /// Whether it has a spec or a framework.
    pub(super) fn has_spec(&self) -> bool {
        self.spec.is_some() || self.framework.is_some()
    }

    /// Returns the spec of the environment.
    pub fn spec_text(&self) -> Result<String, String> {
        self.composed().map_err(|(_, text)| text)
    }

    /// Returns the spec, or a mistake with its position.
    pub(super) fn composed(&self) -> Result<String, SpecMistake> {
        let mut spec = match (&self.spec, &self.framework) {
            (Some(spec), _) => parsed(spec).map_err(|text| (Some(spec.span()), text))?,
            (None, Some(name)) => Spec::of(name),
            (None, None) => return Err((None, "missing `spec` or `framework`".to_owned())),
        };
        if let Some(name) = &self.framework {
            spec.name = if name.ends_with("-cuda") || name.as_str() == crate::model::compat::TOOLKIT {
                name.to_string()
            } else {
                format!("{}-cuda", **name)
            };
        }
        // Each part is parsed by the spec grammar, so that it has the same meaning in both places.
        let part =
            |value: &crate::model::project::spanned::SpannedValue<String>, text: String, like: &str| {
                let wrong = |_| (Some(value.span()), format!("invalid {like}: `{}`", **value));
                parsed(&text).map_err(wrong)
            };
        if let Some(value) = &self.version {
            spec.version = part(value, format!("x:{}", **value), "version")?.version;
        }
        if let Some(value) = &self.cuda {
            let text = if value.starts_with("cu") { value.to_string() } else { format!("cu{}", **value) };
            spec.cuda = part(value, format!("x:1-{text}"), "CUDA")?.cuda;
        }
        if let Some(value) = &self.python {
            spec.python = part(value, format!("x:1-py{}", value.trim_start_matches("py")), "Python")?.python;
        }
        if let Some(flavour) = &self.flavour {
            spec.flavour = **flavour;
        }
        Ok(spec.to_string())
    }
}

fn parsed(text: &str) -> Result<Spec, String> {
    text.parse().map_err(|error: crate::model::spec::SpecError| {
        error.to_string().lines().next().unwrap_or("invalid spec").to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure as _;

    const TEXT: &str = r#"
schema = 1
spec = "pytorch-cuda:2.8-cu128"
[packages]
python = ["a"]
[variables]
A = "1"
B = "1"
[verify]
may-lack = ["liba.so"]
[environments.train]
verify = { may-lack = ["libb.so"] }
flavour = "devel"
cuda = "12.6"
[environments.train.packages]
python = ["b"]
[environments.train.variables]
B = "2"
[environments.other]
framework = "tensorflow"
version = "2.19"
python = "3.12"
"#;

    fn file() -> ProjectFile {
        ProjectFile::parse("envforge.toml", TEXT).expect("reads")
    }

    #[test]
    fn environment_replaces_values_and_appends_lists() {
        let train = file().environment("f", Some("train")).expect("there");
        assert_eq!(train.spec_text().as_deref(), Ok("pytorch-cuda:2.8-cu126-devel"));
        let python: Vec<_> = train.packages.python.iter().map(|entry| entry.text()).collect();
        assert_eq!(python, ["a", "b"]);
        let may_lack: Vec<_> = train.verify.may_lack.iter().map(|text| text.as_str()).collect();
        assert_eq!(may_lack, ["liba.so", "libb.so"]);
        let variables: Vec<_> = train.variables.iter().map(|(k, v)| format!("{k}={}", **v)).collect();
        assert_eq!(variables, ["A=1", "B=2"]);
        assert_eq!(file().environment("f", None).expect("default").packages.python.len(), 1);
    }

    #[test]
    fn spec_in_parts_replaces_the_default_spec() {
        let other = file().environment("f", Some("other")).expect("there");
        assert_eq!(other.spec_text().as_deref(), Ok("tensorflow-cuda:2.19-py3.12"));
    }

    #[test]
    fn unknown_environment_lists_the_existing_ones() {
        let error = file().environment("f", Some("tarin")).expect_err("refused");
        assert_eq!(error.to_string(), "environment `tarin` not found in `f`");
        assert_eq!(error.hints(), ["use one of: other, train"]);
    }

    #[test]
    fn environment_is_required_without_a_default_spec() {
        let text = "schema = 1\n[environments.a]\nspec = \"pytorch-cuda\"\n";
        let file = ProjectFile::parse("f", text).expect("reads");
        let error = file.environment("f", None).expect_err("refused");
        assert_eq!(error.hints(), ["use one of: -E a"]);
        assert!(file.environment("f", Some("a")).is_ok());
    }
}
