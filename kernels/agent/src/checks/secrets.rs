//! Proves that no credential of the build host is in the image. Never prints the credentials.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, display_path};
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::Secrets;
/// Directories that the engine mounts over.
const MOUNTED: [&str; 3] = ["proc", "sys", "dev"];
/// Bytes read at once.
const PART: usize = 1 << 20;

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
    let forbidden: Vec<&str> = text.split('\0').filter(|text| !text.is_empty()).collect();
    let mut problems: Vec<_> = std::env::vars()
        .filter(|(_, value)| forbidden.iter().any(|secret| value.contains(secret)))
        .map(|(name, _)| format!("the variable {name} contains a credential"))
        .collect();
    let mut look = |path: &Path| {
        if path != file && holds(path, &forbidden) {
            problems.push(format!("{} contains a credential", display_path(&options.root, path)));
        }
    };
    if !forbidden.is_empty() {
        every_file(options, &mut look);
    }
    let looked = format!("no build-host credentials found ({} searched)", forbidden.len());
    vec![Report::of_problems(ID, looked, &problems)]
}

/// Visits every file of the image, but of the locked environment only settings and records: its code is that of its
/// wheels.
fn every_file(options: &Options, look: &mut dyn FnMut(&Path)) {
    let environment = options.environment();
    for entry in std::fs::read_dir(&options.root).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_file() {
            look(&entry.path());
        } else if kind.is_dir() && MOUNTED.iter().all(|name| entry.file_name() != *name) {
            walk::visit(&entry.path(), &mut |path| {
                if !path.starts_with(&environment) {
                    look(path);
                }
            });
        }
    }
    for path in environment_files(&environment) {
        look(&path);
    }
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
    let Ok(mut file) = File::open(path) else { return false };
    let longest = forbidden.iter().map(|secret| secret.len()).max().unwrap_or_default();
    let mut bytes = Vec::with_capacity(PART + longest);
    loop {
        // What ends in the next part is found with the end of this one before it.
        bytes.drain(..bytes.len().saturating_sub(longest));
        match file.by_ref().take(PART as u64).read_to_end(&mut bytes) {
            Ok(0) | Err(_) => return false,
            Ok(_) if forbidden.iter().any(|secret| contains(&bytes, secret.as_bytes())) => return true,
            Ok(_) => {}
        }
    }
}

/// Whether the bytes hold the text. Looks for its first byte, a whole register at a time.
fn contains(mut bytes: &[u8], text: &[u8]) -> bool {
    let Some((first, _)) = text.split_first() else { return false };
    loop {
        let mut skipped = 0;
        for block in bytes.chunks(64) {
            if block.contains(first) {
                break;
            }
            skipped += block.len();
        }
        let Some(at) = bytes[skipped..].iter().position(|byte| byte == first) else { return false };
        bytes = &bytes[skipped + at..];
        if bytes.starts_with(text) {
            return true;
        }
        bytes = &bytes[1..];
    }
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
        std::fs::write(&forbidden, "planted-token\0another\nof two lines").expect("written");
        let options = Options { forbidden: Some(forbidden), root: root.path().into(), ..Options::default() };
        let report = &run(&options)[0];
        assert_eq!(report.detail, "/etc/pip.conf contains a credential");
        assert_eq!(report.outcome, Outcome::Failed);
        std::fs::remove_file(&conf).expect("removed");
        assert_eq!(run(&options)[0].outcome, Outcome::Passed);

        // Anywhere, across the parts that are read at once, and as one value of two lines.
        for (path, text) in [
            ("usr/lib/a/settings", "x".repeat(PART - 5) + "planted-token"),
            ("srv/b", "another\nof two lines".to_owned()),
        ] {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, text).expect("written");
            assert_eq!(run(&options)[0].outcome, Outcome::Failed, "{}", path.display());
            std::fs::write(&path, "another\nplanted token\nof two").expect("written");
            assert_eq!(run(&options)[0].outcome, Outcome::Passed, "{}", path.display());
        }
        // The code of wheels is not searched: it is nobody's secret.
        let code = root.path().join("opt/env/lib/a.py");
        std::fs::create_dir_all(code.parent().expect("a folder")).expect("made");
        std::fs::write(&code, "planted-token").expect("written");
        assert_eq!(run(&options)[0].outcome, Outcome::Passed);
    }
}
