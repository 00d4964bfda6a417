//! Proves that no credential of the build host is in the image. Never prints the credentials.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use envforge_protocol::{CheckId, Outcome, SkipReason};

use super::{Options, display_path, installed_files};
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

/// Visits every file of the image, but not the code of the locked environment that its wheels list: their bytes are pinned.
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

/// Files of the Python environment that no wheel lists, settings and records.
fn environment_files(environment: &Path) -> Vec<PathBuf> {
    const SETTINGS: [&str; 4] = ["pth", "cfg", "conf", "toml"];
    let extension =
        |path: &Path| path.extension().map(|text| text.to_string_lossy().into_owned()).unwrap_or_default();
    let mut all = walk::files(environment);
    let is_record = |path: &Path| path.parent().is_some_and(|folder| extension(folder) == "dist-info");
    let records = all.iter().filter(|path| is_record(path) && path.ends_with("RECORD"));
    let listed: HashSet<PathBuf> = records.flat_map(|path| listed_files(path)).collect();
    all.retain(|path| {
        let of_wheel =
            listed.contains(path) || source_of(path).is_some_and(|source| listed.contains(&source));
        !of_wheel || is_record(path) || SETTINGS.contains(&extension(path).as_str())
    });
    all
}

/// Returns the files that a wheel's RECORD lists.
fn listed_files(record: &Path) -> Vec<PathBuf> {
    let site = record.parent().and_then(Path::parent);
    let (Some(site), Some(text)) = (site, installed_files::text(record)) else { return Vec::new() };
    let file = |line: &str| {
        let name = match line.strip_prefix('"') {
            Some(quoted) => quoted.split_once("\",")?.0.replace("\"\"", "\""),
            None => line.split(',').next()?.to_owned(),
        };
        (!name.is_empty()).then(|| without_dots(&site.join(name)))
    };
    text.lines().filter_map(file).collect()
}

/// Returns a path without `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        if part == Component::ParentDir {
            plain.pop();
        } else {
            plain.push(part);
        }
    }
    plain
}

/// Returns the source of compiled byte code: `a/b.py` of `a/__pycache__/b.cpython-311.pyc`.
fn source_of(path: &Path) -> Option<PathBuf> {
    let folder = path.parent().filter(|folder| folder.ends_with("__pycache__"))?;
    let name = path.file_name()?.to_str()?.strip_suffix(".pyc")?.split('.').next()?.to_owned();
    Some(folder.parent()?.join(name + ".py"))
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
    }

    #[test]
    fn every_file_that_no_wheel_lists_is_searched() {
        let root = tempfile::tempdir().expect("folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(&path, text).expect("written");
            path
        };
        let forbidden = Some(write("forbidden", "planted-token"));
        let options = Options { forbidden, root: root.path().into(), ..Options::default() };
        let site = "opt/env/lib/python3.11/site-packages";
        let record = format!("{site}/a-1.dist-info/RECORD");
        // The code of wheels is pinned by their hashes.
        write(&record, "a/b.py,sha256=x,1\n\"a/c,d.so\",sha256=x,1\n../../../bin/tool,sha256=x,1\n");
        for listed in ["a/b.py", "a/c,d.so", "a/__pycache__/b.cpython-311.pyc", "../../../bin/tool"] {
            write(&format!("{site}/{listed}"), "planted-token");
        }
        assert_eq!(run(&options)[0].outcome, Outcome::Passed, "{}", run(&options)[0].detail);
        for other in [
            format!("{site}/a/other.py"),
            format!("{site}/a/__pycache__/other.cpython-311.pyc"),
            "opt/env/bin/other".to_owned(),
            "opt/envforge/note".to_owned(),
            "home/dev/.cache/x".to_owned(),
        ] {
            let path = write(&other, "planted-token");
            assert_eq!(run(&options)[0].detail, format!("/{other} contains a credential"));
            std::fs::remove_file(path).expect("removed");
        }
    }
}
