//! What is mounted is what was judged: the engine looks a path up when the container starts, and a program of an earlier container
//! may have exchanged it by then.
//!
//! A folder of the project is therefore no mount but a link to /workspace, which leads to the project whatever lies there. Every
//! other path is given without links, and has no part that a program of the container can write.

use camino::{Utf8Path, Utf8PathBuf};

use crate::engine::{Link, Mount, MountSource};
use crate::model::image::paths::{HOME, WORKSPACE};
use crate::shell::ShellError;

/// The mounts and links of a container.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) mounts: Vec<Mount>,
    pub(super) links: Vec<Link>,
    /// Links to folders that were to be read-only, and can be written through /workspace.
    pub(super) writable: Vec<Link>,
}

/// Settles the mounts of the project at `folder`: those that were `judged`, with paths as the judgement found them, and those that
/// were typed.
pub(super) fn settle(folder: &Utf8Path, judged: &[Mount], typed: Vec<Mount>) -> Result<Settled, ShellError> {
    let mut settled = Settled::default();
    let all = judged
        .iter()
        .cloned()
        .map(|mount| (mount, true))
        .chain(typed.into_iter().map(|mount| (mount, false)));
    for (mount, was_judged) in all {
        let MountSource::Folder(path) = &mount.source else {
            settled.mounts.push(mount);
            continue;
        };
        let real = real(path)?;
        if was_judged && real != *path {
            return Err(ShellError::MovedFolder { path: path.clone(), found: real.into_string() });
        }
        let Ok(below) = real.strip_prefix(folder) else {
            settled.mounts.push(Mount { source: MountSource::Folder(real.into_string()), ..mount });
            continue;
        };
        let to =
            if below.as_str().is_empty() { WORKSPACE.to_owned() } else { format!("{WORKSPACE}/{below}") };
        let link = Link { path: mount.target.clone(), to };
        if mount.read_only {
            settled.writable.push(link.clone());
        }
        settled.links.push(link);
    }
    settled.check_links(folder)?;
    settled.check_folders()?;
    Ok(settled)
}

fn real(path: &str) -> Result<Utf8PathBuf, ShellError> {
    let missing = |_| ShellError::NoFolder { path: path.to_owned() };
    Utf8Path::new(path).canonicalize_utf8().map_err(missing)
}

impl Settled {
    /// A link is written into the container's own root: not below a mount, which is a folder of the host.
    fn check_links(&self, folder: &Utf8Path) -> Result<(), ShellError> {
        let mounts =
            self.mounts.iter().map(|mount| mount.target.as_str()).chain([WORKSPACE, HOME, "/etc", "/tmp"]);
        let targets: Vec<&Utf8Path> = mounts.map(Utf8Path::new).collect();
        for (number, link) in self.links.iter().enumerate() {
            let path = Utf8Path::new(&link.path);
            let others = self.links.iter().enumerate().filter(|(other, _)| *other != number);
            let mut around =
                targets.iter().copied().chain(others.map(|(_, other)| Utf8Path::new(&other.path)));
            if around.any(|other| path.starts_with(other) || other.starts_with(path)) {
                let below = link.to.strip_prefix(WORKSPACE).unwrap_or_default();
                let (path, target) = (format!("{folder}{below}"), link.path.clone());
                return Err(ShellError::LinkInMount { path, target });
            }
        }
        Ok(())
    }

    /// No folder lies below another one that the container can write: a program could replace it for the next start.
    fn check_folders(&self) -> Result<(), ShellError> {
        let folder = |mount: &Mount| match &mount.source {
            MountSource::Folder(path) => Some((Utf8PathBuf::from(path), mount.read_only)),
            MountSource::Volume(_) => None,
        };
        let folders: Vec<(Utf8PathBuf, bool)> = self.mounts.iter().filter_map(folder).collect();
        for (path, _) in &folders {
            let writable = folders.iter().filter(|(_, read_only)| !read_only);
            if let Some((above, _)) =
                writable.into_iter().find(|(above, _)| path != above && path.starts_with(above))
            {
                let (path, above) = (path.to_string(), above.to_string());
                return Err(ShellError::FolderBelowMount { path, above });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write files")]

    use std::os::unix::fs::symlink;

    use super::*;

    /// A project `in`, next to it the folder `out` with `below`.
    struct Scene {
        _folder: tempfile::TempDir,
        root: Utf8PathBuf,
    }

    fn scene() -> Scene {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().canonicalize().expect("there")).expect("UTF-8");
        for path in ["in/data/sub", "out/below"] {
            fs_err::create_dir_all(root.join(path)).expect("ours");
        }
        Scene { _folder: folder, root }
    }

    impl Scene {
        fn mount(&self, source: &str, target: &str) -> Mount {
            let source = MountSource::Folder(self.root.join(source).into_string());
            Mount { source, target: target.to_owned(), read_only: false }
        }

        fn settle(&self, judged: &[Mount], typed: &[Mount]) -> Result<Settled, ShellError> {
            settle(&self.root.join("in"), judged, typed.to_vec())
        }
    }

    fn link(path: &str, to: &str) -> Link {
        Link { path: path.to_owned(), to: to.to_owned() }
    }

    #[test]
    fn folder_of_the_project_is_a_link_and_never_a_mount() {
        let s = scene();
        symlink("data/sub", s.root.join("in/alias")).expect("ours");
        let judged =
            [s.mount("in/data", "/data"), Mount { read_only: true, ..s.mount("in/data/sub", "/sub") }];
        let settled =
            s.settle(&judged, &[s.mount("in/alias", "/alias"), s.mount("in", "/all")]).expect("settled");
        assert_eq!(settled.mounts, []);
        let expected = [
            link("/data", "/workspace/data"),
            link("/sub", "/workspace/data/sub"),
            link("/alias", "/workspace/data/sub"),
            link("/all", "/workspace"),
        ];
        assert_eq!(settled.links, expected);
        assert_eq!(settled.writable, expected[1..2]);
    }

    #[test]
    fn folder_that_was_exchanged_after_the_judgement_is_refused() {
        let s = scene();
        let judged = [s.mount("in/data", "/data")];
        fs_err::remove_dir_all(s.root.join("in/data")).expect("ours");
        symlink("../out", s.root.join("in/data")).expect("ours");
        let error = s.settle(&judged, &[]).expect_err("refused");
        assert!(matches!(error, ShellError::MovedFolder { .. }), "{error}");
        fs_err::remove_file(s.root.join("in/data")).expect("ours");
        let error = s.settle(&judged, &[]).expect_err("refused");
        assert!(matches!(error, ShellError::NoFolder { .. }), "{error}");
    }

    #[test]
    fn folder_outside_is_mounted_by_its_path_without_links() {
        let s = scene();
        symlink("../out", s.root.join("in/away")).expect("ours");
        let settled = s.settle(&[], &[s.mount("in/away", "/out")]).expect("settled");
        assert_eq!(settled.mounts, [s.mount("out", "/out")]);
        let volume = Mount { source: MountSource::Volume("v".to_owned()), ..s.mount("x", "/v") };
        assert_eq!(s.settle(&[], std::slice::from_ref(&volume)).expect("settled").mounts, [volume]);
    }

    #[test]
    fn folder_that_a_program_can_replace_through_another_mount_is_refused() {
        let s = scene();
        let (above, below) = (s.mount("out", "/a"), s.mount("out/below", "/b"));
        let error =
            s.settle(std::slice::from_ref(&below), std::slice::from_ref(&above)).expect_err("refused");
        assert!(matches!(error, ShellError::FolderBelowMount { .. }), "{error}");
        let above = Mount { read_only: true, ..above };
        assert_eq!(s.settle(&[], &[above, below]).expect("settled").mounts.len(), 2);
    }

    #[test]
    fn link_is_never_written_into_a_mount() {
        let s = scene();
        for target in ["/workspace/x", "/workspace", "/home/dev/x", "/out/x", "/home", "/l/x"] {
            let mounts = [s.mount("out", "/out"), s.mount("in", "/l"), s.mount("in/data", target)];
            let error = s.settle(&[], &mounts).expect_err(target);
            assert!(matches!(error, ShellError::LinkInMount { .. }), "{error}");
        }
    }
}
