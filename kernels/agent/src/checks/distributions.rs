//! Proves that exactly the locked Python distributions are installed, and that their requirements are met.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, errored};
use crate::report::Report;

const ID: CheckId = CheckId::Distributions;
const PIP: CheckId = CheckId::PipCheck;

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

/// `pip check` in the image's own environment.
pub(crate) fn pip_check(options: &Options) -> Vec<Report> {
    let output = Command::new(options.python())
        .args(["-m", "pip", "check", "--disable-pip-version-check"])
        .env("HOME", "/tmp")
        .stdin(Stdio::null())
        .output();
    let report = match output {
        Err(error) => Report::new(PIP, Outcome::Errored, format!("cannot start pip: {error}")),
        Ok(output) if output.status.success() => Report::new(PIP, Outcome::Passed, "no broken requirements"),
        Ok(output) => {
            let lines: Vec<_> = String::from_utf8_lossy(&output.stdout)
                .lines()
                .chain(String::from_utf8_lossy(&output.stderr).lines())
                .map(str::to_owned)
                .filter(|line| !line.is_empty())
                .collect();
            let lines =
                if lines.is_empty() { vec!["pip check failed without output".to_owned()] } else { lines };
            Report::of_problems(PIP, "", &lines)
        }
    };
    vec![report]
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
}
