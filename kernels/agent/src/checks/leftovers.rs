//! Proves that nothing is left that differs from build to build or must not be shared: logs, lists, ids, host keys,
//! byte code that is checked against file times, stubs that a GPU runtime left behind.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use envforge_protocol::CheckId;

use super::{Options, display_path};
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::Leftovers;
/// Folders that must hold no file.
const EMPTY: [&str; 8] = [
    "var/lib/apt/lists",
    "var/cache/apt",
    "var/log",
    "root/.cache",
    "home/dev/.cache",
    "var/tmp",
    "opt/env/.cache",
    "mnt",
];
/// Files that must not be there.
const ABSENT: [&str; 7] = [
    "var/cache/ldconfig/aux-cache",
    "etc/passwd-",
    "etc/shadow-",
    "var/lib/dpkg/status-old",
    "etc/.pwd.lock",
    "opt/env/.lock",
    "var/lib/dbus/machine-id",
];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let root = &options.root;
    let mut problems = Vec::new();
    for folder in EMPTY {
        problems.extend(walk::files(&root.join(folder)).iter().map(|path| display_path(root, path)));
    }
    problems.extend(ABSENT.iter().filter(|path| root.join(path).exists()).map(|path| format!("/{path}")));
    if std::fs::metadata(root.join("etc/machine-id")).is_ok_and(|file| file.len() > 0) {
        problems.push("/etc/machine-id is not empty".to_owned());
    }
    walk::visit(&root.join("etc/ssh"), &mut |path| {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("ssh_host_")) {
            problems.push(format!("{} is a host key", display_path(root, path)));
        }
    });
    problems.extend(byte_code(root));
    problems.extend(stubs(root));
    vec![Report::of_problems(ID, "nothing", &problems)]
}

/// Byte code of the locked environment and of the system's Python that is checked against file times.
fn byte_code(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for folder in ["opt/env", "usr/lib/python3", "usr/lib/python3.11", "usr/lib/python3.13"] {
        walk::visit(&root.join(folder), &mut |path| {
            if path.extension().is_some_and(|extension| extension == "pyc") && has_times(path) {
                found.push(format!("{} depends on a file time", display_path(root, path)));
            }
        });
    }
    found
}

/// PEP 552: bit 0 of the second word means that a hash, not a time, follows.
fn has_times(path: &Path) -> bool {
    let mut head = [0; 8];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head[4] & 1 == 0
}

/// Empty driver libraries, which a GPU runtime leaves in a layer when it is the engine's default.
fn stubs(root: &Path) -> Vec<String> {
    let mut found = Vec::new();
    walk::visit(&root.join("usr/lib"), &mut |path| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let driver = name.starts_with("libcuda.so") || name.starts_with("libnvidia-ml.so");
        if driver && std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
            found.push(format!("{} is an empty driver library", display_path(root, path)));
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    #[test]
    fn each_kind_of_leftover_is_found() {
        let root = tempfile::tempdir().expect("folder");
        let options = Options { root: root.path().into(), ..Options::default() };
        let write = |path: &str, bytes: &[u8]| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, bytes).expect("written");
        };
        write("etc/machine-id", b"");
        write("opt/env/lib/a.pyc", &[0, 0, 0, 0, 1, 0, 0, 0, 9]);
        assert_eq!(run(&options)[0].outcome, Outcome::Passed);
        for (path, bytes) in [
            ("var/log/dpkg.log", &b"x"[..]),
            ("etc/machine-id", b"4f2a"),
            ("etc/ssh/ssh_host_rsa_key", b"key"),
            ("opt/env/lib/b.pyc", &[0, 0, 0, 0, 0, 0, 0, 0, 9]),
            ("usr/lib/x/libcuda.so.1", b""),
            ("etc/passwd-", b"x"),
        ] {
            write(path, bytes);
            let report = &run(&options)[0];
            let name = path.rsplit('/').next().expect("a name");
            assert!(
                report.outcome == Outcome::Failed && report.detail.contains(name),
                "{path}: {}",
                report.detail
            );
            std::fs::remove_file(root.path().join(path)).expect("removed");
        }
    }
}
