//! Proves that no credential of the build host is in the image. Never prints the credentials.

use std::path::Path;

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, display_path};
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::Secrets;
/// Directories of configuration and records.
const FOLDERS: [&str; 6] = ["etc", "root", "home", "workspace", "opt/envforge", "var/lib/dpkg"];
/// Larger files hold data, not configuration.
const LARGEST: u64 = 8 << 20;

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let Some(file) = &options.forbidden else {
        return vec![Report::skipped(
            ID,
            SkipReason::NoExpectation,
            "no credentials to search for were given",
        )];
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return vec![Report::new(ID, Outcome::Errored, format!("{}: {error}", file.display()))],
    };
    let forbidden: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    let mut problems: Vec<_> = std::env::vars()
        .filter(|(_, value)| forbidden.iter().any(|secret| value.contains(secret)))
        .map(|(name, _)| format!("the variable {name} contains a credential"))
        .collect();
    let mut look = |path: &Path| {
        if path != file && holds(path, &forbidden) {
            problems.push(format!("{} contains a credential", display_path(&options.root, path)));
        }
    };
    for folder in FOLDERS {
        walk::visit(&options.root.join(folder), &mut look);
    }
    for path in environment_files(&options.environment()) {
        look(&path);
    }
    let looked = format!("no build-host credentials found ({} searched)", forbidden.len());
    vec![Report::of_problems(ID, looked, &problems)]
}

/// Settings and records of the Python environment: not its code.
fn environment_files(environment: &Path) -> Vec<std::path::PathBuf> {
    const SETTINGS: [&str; 4] = ["pth", "cfg", "conf", "toml"];
    let extension =
        |path: &Path| path.extension().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    let mut all = walk::files(environment);
    all.retain(|path| {
        let record = path.parent().is_some_and(|folder| extension(folder) == "dist-info");
        record || SETTINGS.contains(&extension(path).as_str())
    });
    all
}

fn holds(path: &Path, forbidden: &[&str]) -> bool {
    if forbidden.is_empty() || !std::fs::metadata(path).is_ok_and(|file| file.len() <= LARGEST) {
        return false;
    }
    let Ok(bytes) = std::fs::read(path) else { return false };
    forbidden.iter().any(|secret| bytes.windows(secret.len()).any(|window| window == secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planted_credential_is_located_and_never_printed() {
        let root = tempfile::tempdir().expect("folder");
        let conf = root.path().join("etc/pip.conf");
        std::fs::create_dir_all(conf.parent().expect("a folder")).expect("made");
        std::fs::write(&conf, "index-url = http://u:planted-token@host/").expect("written");
        let forbidden = root.path().join("forbidden");
        std::fs::write(&forbidden, "planted-token\n").expect("written");
        let options = Options { forbidden: Some(forbidden), root: root.path().into(), ..Options::default() };
        let report = &run(&options)[0];
        assert_eq!(report.detail, "/etc/pip.conf contains a credential");
        assert_eq!(report.outcome, Outcome::Failed);
        std::fs::remove_file(&conf).expect("removed");
        assert_eq!(run(&options)[0].outcome, Outcome::Passed);
    }
}
