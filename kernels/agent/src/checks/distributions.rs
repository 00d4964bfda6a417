//! Proves that exactly the locked Python distributions are installed, and that their requirements are met.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, errored};
use crate::report::Report;

const ID: CheckId = CheckId::Distributions;
const PIP: CheckId = CheckId::PipCheck;
const REQUIREMENTS: &str = include_str!("../python/requirements.py");

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected.distributions,
        Err(problem) => return errored(&[ID], &problem),
    };
    let found = installed(&options.environment());
    if expected.is_empty() {
        return vec![Report::skipped(
            ID,
            SkipReason::NoExpectation,
            format!("{} packages (not compared: no expected versions)", found.len()),
        )];
    }
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
                let metadata = std::fs::read_to_string(entry.path().join("METADATA")).unwrap_or_default();
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
    let output = python(options, &["-m", "pip", "check", "--disable-pip-version-check"]);
    let report = match output {
        Err(error) => Report::new(PIP, Outcome::Errored, format!("cannot start pip: {error}")),
        Ok(output) if output.status.success() => Report::new(PIP, Outcome::Passed, "no broken requirements"),
        Ok(output) => {
            let found = [lines(&output.stdout), lines(&output.stderr)].concat();
            let compared = match output.status.code() {
                Some(PIP_STOPPED) => unmet_requirements(options),
                _ => None,
            };
            match compared {
                Some(unmet) => {
                    let why = found.iter().rfind(|line| line.contains("Error: "));
                    let why = why.map_or("an error of its own", |line| line.trim());
                    let passed = format!("no broken requirements (pip check stopped: {why})");
                    Report::of_problems(PIP, passed, &unmet)
                }
                None if found.is_empty() => {
                    Report::of_problems(PIP, "", &["pip check failed without output".to_owned()])
                }
                None => Report::of_problems(PIP, "", &found),
            }
        }
    };
    vec![report]
}

/// The requirements that are not met; `None`: they cannot be compared.
fn unmet_requirements(options: &Options) -> Option<Vec<String>> {
    let output = python(options, &["-c", REQUIREMENTS]).ok()?;
    output.status.success().then(|| lines(&output.stdout))
}

fn python(options: &Options, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(options.python()).args(arguments).env("HOME", "/tmp").stdin(Stdio::null()).output()
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
