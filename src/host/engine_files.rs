//! The files that decide what an engine of this machine puts into containers, each by its state: whoever changes one changes that.

use std::io::{Error, ErrorKind};
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};

/// Settings of engines and of the NVIDIA container toolkit, and CDI specifications; of a directory every file.
const OF_MACHINE: [&str; 6] =
    ["etc/cdi", "etc/containers", "etc/docker", "etc/nvidia-container-runtime", "run/cdi", "var/run/cdi"];
/// The same of a user's own engine, below the home directory.
const OF_USER: [&str; 4] =
    [".config/cdi", ".config/containers", ".config/docker", ".config/nvidia-container-runtime"];
/// There are some ten.
const MOST: usize = 1000;

/// Returns the state of each of these files of a machine with that root: a line with path, inode, size and times of its last changes.
/// `None`: one cannot be looked at, or there are too many.
pub(crate) fn engine_files(root: &Utf8Path, home: Option<&Utf8Path>) -> Option<Vec<String>> {
    let of_machine = OF_MACHINE.iter().map(|path| root.join(path));
    let of_user = home.into_iter().flat_map(|home| OF_USER.map(|path| home.join(path)));
    let mut found = Vec::new();
    for folder in of_machine.chain(of_user) {
        let known = below(folder, &mut found);
        known.inspect_err(|error| tracing::debug!(%error, "a setting of an engine is not known")).ok()?;
    }
    Some(found)
}

/// Returns the state of the program that runs, as its file is now; `None`: the kernel does not say.
pub(crate) fn program_file() -> Option<String> {
    state("/proc/self/exe".into()).ok()
}

fn below(top: Utf8PathBuf, found: &mut Vec<String>) -> Result<(), Error> {
    let mut folders = vec![top];
    while let Some(folder) = folders.pop() {
        let entries = match folder.read_dir_utf8() {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            paths.push(entry?.into_path());
        }
        paths.sort();
        for path in paths {
            if found.len() == MOST {
                return Err(Error::other(format!("more than {MOST} files in `{folder}`")));
            }
            found.push(state(&path)?);
            // Not through a link, which may lead in a circle: the times of its target are in its line.
            if path.symlink_metadata()?.is_dir() {
                folders.push(path);
            }
        }
    }
    Ok(())
}

/// A link stands for what it leads to; one to nothing for nothing.
fn state(path: &Utf8Path) -> Result<String, Error> {
    match fs_err::metadata(path) {
        Ok(file) => Ok(format!(
            "{path} {}:{} {} {}.{} {}.{}",
            file.dev(),
            file.ino(),
            file.size(),
            file.mtime(),
            file.mtime_nsec(),
            file.ctime(),
            file.ctime_nsec()
        )),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(format!("{path} leads to nothing")),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test writes files")]
mod tests {
    use super::*;

    #[test]
    fn every_change_of_a_setting_is_another_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let home = root.join("home/me");
        let now = || engine_files(root, Some(&home)).expect("known");
        assert_eq!(now(), Vec::<String>::new(), "a machine without any of them");
        let mut seen = vec![now()];
        for path in [
            "etc/docker/daemon.json",
            "etc/docker/certs.d/box/ca.crt",
            "etc/nvidia-container-runtime/config.toml",
            "etc/cdi/nvidia.yaml",
            "var/run/cdi/nvidia.yaml",
            "home/me/.config/docker/daemon.json",
        ] {
            let file = root.join(path);
            fs_err::create_dir_all(file.parent().expect("a folder")).expect("made");
            // The same size each time, and another file, as an editor writes it.
            for content in ["{}", "[]"] {
                let new = root.join("new");
                fs_err::write(&new, content).expect("written");
                fs_err::rename(&new, &file).expect("ours");
                let state = now();
                assert_eq!(state, now(), "nothing changed");
                assert!(!seen.contains(&state), "{path}: {state:?}");
                seen.push(state);
            }
        }
        let state = now();
        fs_err::remove_file(root.join("etc/cdi/nvidia.yaml")).expect("ours");
        assert_ne!(now(), state);
        std::os::unix::fs::symlink("/nonexistent", root.join("etc/cdi/nvidia.yaml")).expect("ours");
        assert!(now().iter().any(|line| line.ends_with("leads to nothing")));
        assert!(program_file().expect("a program").starts_with("/proc/self/exe "));
    }

    #[test]
    fn more_files_than_anybody_has_are_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        fs_err::create_dir_all(root.join("etc/cdi")).expect("made");
        for number in 0..MOST {
            fs_err::write(root.join(format!("etc/cdi/{number}")), "").expect("written");
        }
        assert_eq!(engine_files(root, None).map(|found| found.len()), Some(MOST));
        fs_err::write(root.join("etc/cdi/more"), "").expect("written");
        assert_eq!(engine_files(root, None), None);
    }
}
