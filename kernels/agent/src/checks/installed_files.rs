//! `distributions` without expected packages: the files that each package's RECORD lists, against those that are there.
//!
//! A missing module or a library that is cut short fails: it cannot be loaded. Other differences are reported, since images are made
//! smaller by removing tests or stripping libraries.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use envforge_protocol::{CheckId, SkipReason, elf};

use super::{NO_PYTHON, Options, display_path};
use crate::bounded;
use crate::report::Report;

const ID: CheckId = CheckId::Distributions;
/// RECORD of the largest packages has some 3 MB.
const LARGEST_RECORD: u64 = 32 << 20;
/// Folders whose files nothing imports in use.
const NOT_IMPORTED: [&str; 6] = ["test", "tests", "testing", "examples", "benchmarks", "docs"];
/// As many files that differ are named.
const NAMED: usize = 5;

/// What the RECORDs of an image say of its files.
#[derive(Default)]
struct Compared {
    packages: usize,
    /// Packages without a readable RECORD, as those of Debian and conda.
    unlisted: usize,
    problems: Vec<String>,
    differences: Vec<String>,
}

pub(super) fn run(options: &Options) -> Report {
    let folders = options.packages();
    if folders.is_empty() {
        return Report::skipped(ID, SkipReason::NotInImage, NO_PYTHON);
    }
    let mut found = Compared::default();
    for packages in &folders {
        for folder in crate::libraries::entries(packages).iter().filter(|path| is_of_a_package(path)) {
            compare(options, packages, folder, &mut found);
        }
    }
    let Compared { packages, unlisted, problems, differences } = found;
    let mut good = format!("{packages} packages: every module that RECORD lists is there");
    if unlisted > 0 {
        good.push_str(&format!("; {unlisted} more list no files"));
    }
    if !differences.is_empty() {
        let named: Vec<_> = differences.iter().take(NAMED).cloned().collect();
        let more = if differences.len() > NAMED { ", …" } else { "" };
        good.push_str(&format!("; {} files differ: {}{more}", differences.len(), named.join(", ")));
    }
    let report = Report::of_problems(ID, good, &problems).hint(
        "install the package again, alone: `pip install --force-reinstall --no-deps NAME`; uninstalling another package that shared \
         its paths removes them",
    );
    let is_fine = problems.is_empty() && !differences.is_empty();
    if is_fine { report.with_warning("files differ from RECORD") } else { report }
}

/// Whether a folder is the metadata of a package; pip keeps those that it could not remove as `~name`.
fn is_of_a_package(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.ends_with(".dist-info") && !name.starts_with('~')
}

/// Compares the files of one package.
fn compare(options: &Options, packages: &Path, folder: &Path, found: &mut Compared) {
    // conda moves files after it has written RECORD.
    let is_conda = text(&folder.join("INSTALLER")).is_some_and(|installer| installer.trim() == "conda");
    let Some(record) = text(&folder.join("RECORD")).filter(|_| !is_conda) else {
        found.unlisted += 1;
        return;
    };
    found.packages += 1;
    for (name, size) in record.lines().filter_map(row) {
        let Some(path) = place(packages, &name) else { continue };
        let shown = || display_path(&options.root, &path);
        let is_missing = std::fs::symlink_metadata(&path).is_err();
        let length = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file).map(|file| file.len());
        match (length, size) {
            _ if is_missing && is_imported(&name) => found.problems.push(format!("{} is missing", shown())),
            // Byte code is written when a module is first imported.
            _ if is_missing && is_byte_code(&path) => {}
            _ if is_missing => found.differences.push(format!("{} is missing", shown())),
            (Some(length), Some(size)) if length != size => {
                if length < size && is_cut(&path, length) {
                    found.problems.push(format!("{} is cut short: {length} of {size} bytes", shown()));
                } else {
                    found.differences.push(shown());
                }
            }
            _ => {}
        }
    }
}

/// Whether a file is compiled from a module.
pub(super) fn is_byte_code(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "pyc")
}

/// A text of a package within bounds; `None`: it is not there, is no file or is larger.
pub(super) fn text(path: &Path) -> Option<String> {
    bounded::text(path, LARGEST_RECORD)
}

/// Path and size of a row of RECORD.
pub(super) fn row(line: &str) -> Option<(String, Option<u64>)> {
    let (path, rest) = match line.strip_prefix('"') {
        Some(quoted) => {
            let end = quoted.find("\",")?;
            (quoted[..end].replace("\"\"", "\""), &quoted[end + 2..])
        }
        None => line.split_once(',').map(|(path, rest)| (path.to_owned(), rest))?,
    };
    let size = rest.rsplit(',').next().and_then(|size| size.trim().parse().ok());
    Some((path, size))
}

/// Where a file lies that RECORD lists among these packages; `None` for an absolute path.
pub(super) fn place(packages: &Path, name: &str) -> Option<PathBuf> {
    let mut path = packages.to_owned();
    for part in Path::new(name).components() {
        match part {
            Component::Normal(name) => path.push(name),
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(path)
}

/// Whether a package in use imports the file, as far as its path says.
fn is_imported(name: &str) -> bool {
    let is_code = [".py", ".so"].iter().any(|end| name.ends_with(end));
    let is_beside = name.starts_with("..") || name.split('/').any(|part| NOT_IMPORTED.contains(&part));
    is_code && !is_beside
}

/// Whether a library ends before what the loader maps of it.
fn is_cut(path: &Path, length: u64) -> bool {
    File::open(path).is_ok_and(|file| elf::extent(&file).is_some_and(|extent| extent > length))
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    const PACKAGES: &str = "opt/venv/lib/python3.11/site-packages";

    /// The report of an image with one package, whose RECORD is that.
    fn report(record: &str, files: &[&str]) -> Report {
        let root = tempfile::tempdir().expect("a folder");
        let write = |path: &str, text: &str| {
            let path = root.path().join(PACKAGES).join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        write("a-1.0.dist-info/RECORD", record);
        write("~b-1.0.dist-info/RECORD", "b/gone.py,,\n");
        write("c-1.0.dist-info/RECORD", "c/moved.py,,\n");
        write("c-1.0.dist-info/INSTALLER", "conda\n");
        for file in files {
            write(file, "12345");
        }
        run(&Options { root: root.path().into(), ..Options::default() })
    }

    fn has_warning(report: &Report) -> bool {
        report.measured.iter().any(|(name, _)| name == "warning")
    }

    #[test]
    fn missing_module_fails_and_a_removed_test_is_reported() {
        let record = "a/__init__.py,sha256=x,5\na/tests/test_a.py,sha256=x,5\n../../../bin/a,sha256=x,5\n\
                      a/__pycache__/a.cpython-311.pyc,,\na-1.0.dist-info/RECORD,,\n";
        let whole = report(record, &["a/__init__.py", "a/tests/test_a.py", "../../../bin/a"]);
        assert_eq!(whole.outcome, Outcome::Passed, "{}", whole.detail);
        assert_eq!(whole.detail, "1 packages: every module that RECORD lists is there; 1 more list no files");
        assert!(!has_warning(&whole));
        let smaller = report(record, &["a/__init__.py", "../../../bin/a"]);
        assert_eq!(smaller.outcome, Outcome::Passed);
        assert!(smaller.detail.ends_with(
            "1 files differ: /opt/venv/lib/python3.11/site-packages/a/tests/test_a.py is missing"
        ));
        assert!(has_warning(&smaller));
        let broken = report(record, &["a/tests/test_a.py", "../../../bin/a"]);
        assert_eq!(broken.outcome, Outcome::Failed);
        assert_eq!(broken.detail, format!("/{PACKAGES}/a/__init__.py is missing"));
    }

    #[test]
    fn other_size_is_reported_and_a_path_outside_is_not_read() {
        let differs = report(
            "a/data.txt,sha256=x,6\n\"a/x,y.txt\",sha256=x,5\n/etc/shadow.py,,1\n",
            &["a/data.txt", "a/x,y.txt"],
        );
        assert_eq!(differs.outcome, Outcome::Passed);
        assert!(
            differs.detail.ends_with(&format!("1 files differ: /{PACKAGES}/a/data.txt")),
            "{}",
            differs.detail
        );
        assert!(has_warning(&differs));
    }

    #[test]
    fn library_that_ends_before_its_segments_is_cut() {
        let folder = tempfile::tempdir().expect("a folder");
        let bytes = std::fs::read(std::env::current_exe().expect("a program")).expect("readable");
        let path = folder.path().join("whole");
        std::fs::write(&path, &bytes).expect("written");
        assert!(!is_cut(&path, bytes.len() as u64));
        std::fs::write(&path, &bytes[..4096]).expect("written");
        assert!(is_cut(&path, 4096));
        std::fs::write(&path, "text").expect("written");
        assert!(!is_cut(&path, 4));
    }
}
