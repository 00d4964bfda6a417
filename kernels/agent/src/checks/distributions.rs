//! Proves that exactly the locked Python distributions are installed, and that their requirements are met.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, errored, installed_files};
use crate::report::Report;

const ID: CheckId = CheckId::Distributions;
const PIP: CheckId = CheckId::PipCheck;
const REQUIREMENTS: &str = include_str!("../python/requirements.py");

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected.distributions,
        Err(problem) => return errored(&[ID], &problem),
    };
    if expected.is_empty() {
        return vec![installed_files::run(options)];
    }
    let found = installed(&options.environment());
    let mut problems = Vec::new();
    for (name, wanted) in &expected {
        match found.get(name) {
            None => problems.push(format!("{name} {wanted} is missing")),
            Some(version) if !same(version, wanted) => {
                problems.push(format!("{name} is {version}, not {wanted}"));
            }
            Some(_) => {}
        }
    }
    let extra = found.keys().filter(|name| !expected.contains_key(*name));
    problems.extend(extra.map(|name| format!("{name} {} is not in the lock", found[name])));
    vec![Report::of_problems(ID, format!("{} as locked", found.len()), &problems)]
}

/// A wheel of the default index may carry its variant in its metadata only.
fn same(found: &str, wanted: &str) -> bool {
    found == wanted || found.split('+').next() == Some(wanted)
}

/// Normalized names and versions of the `.dist-info` folders of an environment.
fn installed(environment: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Ok(pythons) = std::fs::read_dir(environment.join("lib")) else { return found };
    for python in pythons.flatten() {
        let Ok(entries) = std::fs::read_dir(python.path().join("site-packages")) else { continue };
        for entry in entries.flatten() {
            if entry.path().extension().is_some_and(|extension| extension == "dist-info") {
                let metadata = installed_files::text(&entry.path().join("METADATA")).unwrap_or_default();
                let header = |key: &str| {
                    let mut lines = metadata.lines().take_while(|line| !line.is_empty());
                    lines.find_map(|line| line.strip_prefix(key)).map(|value| value.trim().to_owned())
                };
                if let (Some(name), Some(version)) = (header("Name:"), header("Version:")) {
                    found.insert(normalized(&name), version);
                }
            }
        }
    }
    found
}

/// `Jupyter_Client` as `jupyter-client`.
fn normalized(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if matches!(character, '-' | '_' | '.') {
            if !out.ends_with('-') {
                out.push('-');
            }
        } else {
            out.extend(character.to_lowercase());
        }
    }
    out
}

/// pip's exit code when it stops at an error of its own.
const PIP_STOPPED: i32 = 2;

/// `pip check` in the image's own environment. Where pip itself stops, as it does at a wheel with a malformed tag, the requirements
/// are compared without it.
pub(crate) fn pip_check(options: &Options) -> Vec<Report> {
    let Some(interpreter) = options.interpreter() else {
        return vec![Report::skipped(PIP, SkipReason::NotInImage, "Python is not in the image")];
    };
    let output = python(&interpreter, &["-m", "pip", "check", "--disable-pip-version-check"]);
    let report = match output {
        Ok(output) if !options.has_own_environment() && has_no_pip(&output) => {
            Report::skipped(PIP, SkipReason::NotInImage, "pip is not in the image")
        }
        Err(error) => Report::new(PIP, Outcome::Errored, format!("cannot start pip: {error}")),
        Ok(output) if output.status.success() => Report::new(PIP, Outcome::Passed, "no broken requirements"),
        Ok(output) => {
            let found = [lines(&output.stdout), lines(&output.stderr)].concat();
            let compared = match output.status.code() {
                Some(PIP_STOPPED) => unmet_requirements(&interpreter),
                _ => None,
            };
            match compared {
                Some(unmet) if !unmet.is_empty() && !options.has_own_environment() => {
                    in_another_image(&options.root, &unmet)
                }
                Some(unmet) => {
                    let why = found.iter().rfind(|line| line.contains("Error: "));
                    let why = why.map_or("an error of its own", |line| line.trim());
                    let passed = format!("no broken requirements (pip check stopped: {why})");
                    Report::of_problems(PIP, passed, &unmet)
                }
                None if found.is_empty() => {
                    Report::of_problems(PIP, "", &["pip check failed without output".to_owned()])
                }
                None if options.has_own_environment() => Report::of_problems(PIP, "", &found),
                None => in_another_image(&options.root, &found),
            }
        }
    };
    vec![report]
}

/// Whether the interpreter has no pip.
fn has_no_pip(output: &Output) -> bool {
    !output.status.success() && String::from_utf8_lossy(&output.stderr).contains("No module named pip")
}

/// What pip found in an image that envforge did not build: a package that lacks one it imports fails, another version than a
/// requirement names is reported, and so is what packages of the distribution lack.
fn in_another_image(root: &Path, found: &[String]) -> Report {
    let of_debian = packages_of_debian(root);
    let lacks = |line: &&String| {
        let name = line.split(' ').next().unwrap_or_default();
        line.ends_with("which is not installed.") && !of_debian.contains(&normalized(name))
    };
    let (missing, others): (Vec<&String>, Vec<&String>) = found.iter().partition(lacks);
    let owned = |lines: Vec<&String>| lines.into_iter().cloned().collect::<Vec<_>>();
    if missing.is_empty() {
        // The text of a failure, bounded as that is.
        let mut report = Report::of_problems(PIP, "", &owned(others)).with_warning("broken requirements");
        report.outcome = Outcome::Passed;
        return report;
    }
    let hint = "install what is missing, or remove the package that requires it";
    Report::of_problems(PIP, "", &owned([missing, others].concat())).hint(hint)
}

/// The Python packages of Debian and Ubuntu, whose metadata names some that are optional there.
fn packages_of_debian(root: &Path) -> BTreeSet<String> {
    let entries = crate::libraries::entries(&root.join("usr/lib/python3/dist-packages"));
    let names = entries.iter().filter_map(|path| path.file_name()?.to_str());
    let stems = names.filter_map(|name| name.strip_suffix("-info"));
    let names = stems.filter_map(|stem| stem.split('-').next());
    names.map(|name| normalized(name.trim_end_matches(".egg").trim_end_matches(".dist"))).collect()
}

/// The requirements that are not met; `None`: they cannot be compared.
fn unmet_requirements(interpreter: &Path) -> Option<Vec<String>> {
    let output = python(interpreter, &["-c", REQUIREMENTS]).ok()?;
    output.status.success().then(|| lines(&output.stdout))
}

fn python(interpreter: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(interpreter).args(arguments).env("HOME", "/tmp").stdin(Stdio::null()).output()
}

fn lines(text: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(text).lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_extra_and_different_packages_are_reported() {
        let root = tempfile::tempdir().expect("folder");
        let site = root.path().join("opt/env/lib/python3.11/site-packages");
        for (name, version) in
            [("Torch", "2.8.0"), ("extra_one", "1"), ("numpy", "2.0"), ("local", "1.0+cu118")]
        {
            let folder = site.join(format!("{name}-{version}.dist-info"));
            std::fs::create_dir_all(&folder).expect("made");
            let text = format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: other\n");
            std::fs::write(folder.join("METADATA"), text).expect("written");
        }
        let expect = root.path().join("expect");
        let lines = "distribution=torch==2.8.0\ndistribution=numpy==2.1\ndistribution=gone==3\ndistribution=local==1.0\n";
        std::fs::write(&expect, lines).expect("written");
        let options = Options { expect: Some(expect), root: root.path().into(), ..Options::default() };
        let report = &run(&options)[0];
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(report.detail, "gone 3 is missing; numpy is 2.0, not 2.1; extra-one 1 is not in the lock");
    }

    /// The report of an image of others whose `pip check` prints that.
    fn of_another_image(printed: &str) -> Report {
        let root = tempfile::tempdir().expect("folder");
        let python = root.path().join("usr/local/bin/python3");
        std::fs::create_dir_all(python.parent().expect("a folder")).expect("made");
        std::fs::write(&python, format!("#!/bin/sh\n{printed}\n")).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&python, mode).expect("its mode");
        let debian = root.path().join("usr/lib/python3/dist-packages/PyGObject-3.42.1.egg-info");
        std::fs::create_dir_all(debian).expect("made");
        let options = Options { root: root.path().into(), ..Options::default() };
        pip_check(&options).remove(0)
    }

    #[test]
    fn missing_requirement_of_another_image_fails_and_another_version_is_reported() {
        let passed = of_another_image("exit 0");
        assert_eq!((passed.outcome, passed.detail.as_str()), (Outcome::Passed, "no broken requirements"));
        let no_pip = of_another_image("echo '/usr/bin/python3: No module named pip' >&2; exit 1");
        assert_eq!((no_pip.outcome, no_pip.detail.as_str()), (Outcome::Skipped, "pip is not in the image"));
        let version = "a 1.0 has requirement numpy<2, but you have numpy 2.1.";
        let other = of_another_image(&format!("echo '{version}'; exit 1"));
        assert_eq!((other.outcome, other.detail.as_str()), (Outcome::Passed, version));
        assert!(other.measured.iter().any(|(name, _)| name == "warning"));
        let debian = "echo 'pygobject 3.42.1 requires pycairo, which is not installed.'; exit 1";
        assert_eq!(of_another_image(debian).outcome, Outcome::Passed);
        let missing = of_another_image("echo 'a 1.0 requires b, which is not installed.'; exit 1");
        assert_eq!(missing.outcome, Outcome::Failed);
        assert_eq!(missing.detail, "a 1.0 requires b, which is not installed.");
    }

    /// The report of an image whose `pip check` stops, and whose comparison without pip does that.
    fn with_a_pip_that_stops(comparison: &str) -> Report {
        let root = tempfile::tempdir().expect("folder");
        let python = root.path().join("opt/env/bin/python");
        std::fs::create_dir_all(python.parent().expect("a folder")).expect("made");
        let pip = "echo 'Traceback (most recent call last):' >&2; echo '  ValueError: three' >&2; exit 2";
        let script = format!("#!/bin/sh\ncase $1 in -m) {pip};; -c) {comparison};; esac\n");
        std::fs::write(&python, script).expect("written");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&python, mode).expect("its mode");
        let options = Options { root: root.path().into(), ..Options::default() };
        pip_check(&options).remove(0)
    }

    #[test]
    fn requirements_are_compared_where_pip_itself_stops() {
        let passed = with_a_pip_that_stops("exit 0");
        assert_eq!(passed.outcome, Outcome::Passed);
        assert_eq!(passed.detail, "no broken requirements (pip check stopped: ValueError: three)");
        let failed = with_a_pip_that_stops("echo 'a 1 requires b, which is not installed.'");
        assert_eq!(failed.outcome, Outcome::Failed);
        assert_eq!(failed.detail, "a 1 requires b, which is not installed.");
        let neither = with_a_pip_that_stops("exit 1");
        assert_eq!(neither.outcome, Outcome::Failed);
        assert_eq!(neither.detail, "Traceback (most recent call last):;   ValueError: three");
    }
}
