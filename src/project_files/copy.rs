//! The files of the project that become part of an image, as entries of the build context.

use std::os::unix::fs::PermissionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::{LEFT_OUT, is_lock};
use crate::failure::{Exit, Failure};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::lock::{LockedCopy, context_name};
use crate::model::project::file::CopyEntry;
use crate::model::project::managed_folder;
use crate::model::project::secret::credential_in_file;
use crate::model::sha256::{Sha256Hex, sha256_hex};
use crate::model::whiteout::{DELETES, deletes};
use crate::store::read_regular_at;

/// More than a project's configuration: larger things are mounted.
const LIMIT: u64 = 1 << 30;

/// Why files cannot be copied.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// The file cannot be read.
    #[error("cannot read `{from}` (listed in `copy`)")]
    Unreadable {
        /// The path as written.
        from: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A symbolic link points outside the project.
    #[error("`{path}` points outside the project: `{to}`")]
    Outside {
        /// The link.
        path: Utf8PathBuf,
        /// Its target.
        to: Utf8PathBuf,
    },
    /// A name that is not UTF-8.
    #[error("invalid file name `{path}`: not UTF-8")]
    Name {
        /// The name, with the strange bytes replaced.
        path: String,
    },
    /// Neither a file nor a directory.
    #[error("unsupported file type of `{path}`: neither a file nor a directory")]
    Special {
        /// The path.
        path: Utf8PathBuf,
    },
    /// The files exceed the size limit.
    #[error("`{from}` is too large: limit {} MB", LIMIT >> 20)]
    TooLarge {
        /// The path as written.
        from: String,
    },
    /// The file contains a secret.
    #[error("`{path}` (listed in `copy`) contains {what}")]
    Secret {
        /// The file.
        path: Utf8PathBuf,
        /// The kind of secret.
        what: &'static str,
    },
    /// A name that deletes files of the image.
    #[error("invalid file name `{path}`: {DELETES}")]
    Deletes {
        /// The path.
        path: Utf8PathBuf,
    },
    /// A file below the target that would replace one of envforge's.
    #[error("`{path}` (copied from `{from}`) is inside {kept}, which envforge manages")]
    Managed {
        /// The file in the image.
        path: String,
        /// The value of `from`.
        from: String,
        /// The directory.
        kept: &'static str,
    },
    /// A symlink loop.
    #[error("symlink loop at `{path}`")]
    Circle {
        /// The link.
        path: Utf8PathBuf,
    },
}

impl Failure for CopyError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Outside { .. } => "copy it into the project, or mount it: `[shell] mounts`",
            Self::TooLarge { .. } => "mount it instead: `[shell] mounts = [\"/data:/data:ro\"]`",
            Self::Secret { .. } => {
                return vec![
                    "remove it from `copy` (list single directories and files): everyone with the image can read its files"
                        .to_owned(),
                    "pass a secret to a `run` step by its name, `{ command = \"...\", secrets = [\"hf\"] }`, and to a container with `envforge shell -e NAME` or a mount".to_owned(),
                ];
            }
            Self::Managed { .. } => "copy it to a directory of its own, such as /opt/data",
            Self::Name { .. } | Self::Deletes { .. } => "rename it, or remove it from `copy`",
            _ => return Vec::new(),
        };
        vec![hint.to_owned()]
    }
}

/// Collects the files of a `copy` entry: its lock entry and the sorted files below `copy/NUMBER/`.
pub fn collect_copy(
    project: &Utf8Path,
    number: usize,
    wish: &CopyEntry,
) -> Result<(LockedCopy, Vec<ContextEntry>), CopyError> {
    let unreadable = |cause| CopyError::Unreadable { from: wish.from.clone(), cause };
    let root = project.canonicalize_utf8().map_err(unreadable)?;
    let mut walk = Walk { root: &root, wish, size: 0, open: Vec::new(), entries: Vec::new() };
    let from = project.join(&wish.from);
    let folder = fs_err::metadata(&from).map_err(unreadable)?.is_dir();
    let prefix = format!("copy/{number}");
    if !folder && from.file_name().is_some_and(|name| deletes(name.as_bytes())) {
        return Err(CopyError::Deletes { path: from });
    }
    if folder {
        walk.folder(&from, &prefix)?;
    } else {
        walk.file(&from, format!("{prefix}/{}", context_name(&wish.from)))?;
    }
    let mut entries = walk.entries;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    for entry in &entries {
        // What is checked elsewhere is the target alone, and `/opt` has the environment in it.
        let path = format!("{}{}", wish.to.trim_end_matches('/'), &entry.path[prefix.len()..]);
        if let Some(kept) = managed_folder(Utf8Path::new(&path)) {
            return Err(CopyError::Managed { path, from: wish.from.clone(), kept });
        }
    }
    let mut hash = Sha256Hex::default();
    for entry in &entries {
        let ContextContent::File { sha256, .. } = &entry.content else { continue };
        hash.update(format!("{:o} {sha256} {}\n", entry.mode, &entry.path[prefix.len()..]).as_bytes());
    }
    let locked = LockedCopy { from: wish.from.clone(), to: wish.to.clone(), folder, sha256: hash.finish() };
    Ok((locked, entries))
}

struct Walk<'a> {
    root: &'a Utf8Path,
    wish: &'a CopyEntry,
    size: u64,
    /// Real paths of the open directories: a link to one of them is a loop.
    open: Vec<Utf8PathBuf>,
    entries: Vec<ContextEntry>,
}

impl Walk<'_> {
    fn unreadable(&self, cause: std::io::Error) -> CopyError {
        CopyError::Unreadable { from: self.wish.from.clone(), cause }
    }

    /// Resolves links and checks that the path is inside the project.
    fn inside(&self, path: &Utf8Path) -> Result<Utf8PathBuf, CopyError> {
        let real = path.canonicalize_utf8().map_err(|cause| self.unreadable(cause))?;
        if real.starts_with(self.root) {
            return Ok(real);
        }
        Err(CopyError::Outside { path: path.to_owned(), to: real })
    }

    fn folder(&mut self, path: &Utf8Path, to: &str) -> Result<(), CopyError> {
        let real = self.inside(path)?;
        if self.open.contains(&real) {
            return Err(CopyError::Circle { path: path.to_owned() });
        }
        self.open.push(real);
        for entry in fs_err::read_dir(path).map_err(|cause| self.unreadable(cause))? {
            let entry = entry.map_err(|cause| self.unreadable(cause))?;
            let name = entry.file_name();
            let name =
                name.to_str().ok_or_else(|| CopyError::Name { path: entry.path().display().to_string() })?;
            if LEFT_OUT.contains(&name) || is_lock(name) {
                continue;
            }
            let (from, to) = (path.join(name), format!("{to}/{name}"));
            if deletes(name.as_bytes()) {
                return Err(CopyError::Deletes { path: from });
            }
            let found = fs_err::metadata(&from).map_err(|cause| self.unreadable(cause))?;
            if found.is_dir() {
                self.folder(&from, &to)?;
            } else if found.is_file() {
                self.file(&from, to)?;
            } else {
                return Err(CopyError::Special { path: from });
            }
        }
        self.open.pop();
        Ok(())
    }

    fn file(&mut self, path: &Utf8Path, to: String) -> Result<(), CopyError> {
        let real = self.inside(path)?;
        let found = fs_err::metadata(&real).map_err(|cause| self.unreadable(cause))?;
        if !found.is_file() {
            return Err(CopyError::Special { path: path.to_owned() });
        }
        self.size += found.len();
        if self.size > LIMIT {
            return Err(CopyError::TooLarge { from: self.wish.from.clone() });
        }
        // It may have become another file since.
        let bytes = read_regular_at(&real, found.len()).map_err(|cause| self.unreadable(cause))?;
        if let Some(what) =
            std::str::from_utf8(&bytes).ok().and_then(|text| credential_in_file(path.file_name(), text))
        {
            return Err(CopyError::Secret { path: path.to_owned(), what });
        }
        let mode = if found.permissions().mode() & 0o111 == 0 { 0o644 } else { 0o755 };
        let (size, sha256) = (bytes.len() as u64, sha256_hex(&bytes));
        let content = ContextContent::File { path: real, size, sha256 };
        self.entries.push(ContextEntry { path: to, mode, content });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write files")]

    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Project {
        folder: tempfile::TempDir,
    }

    fn project() -> Project {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir_all(folder.path().join("in/a/.git")).expect("folders");
        std::fs::write(folder.path().join("in/a/one.txt"), "1").expect("a file");
        std::fs::write(folder.path().join("in/a/.git/HEAD"), "x").expect("a file");
        Project { folder }
    }

    impl Project {
        fn path(&self, name: &str) -> Utf8PathBuf {
            Utf8PathBuf::from_path_buf(self.folder.path().join("in").join(name)).expect("UTF-8")
        }
        fn copy(&self, from: &str) -> Result<(LockedCopy, Vec<ContextEntry>), CopyError> {
            collect_copy(&self.path(""), 0, &CopyEntry { from: from.to_owned(), to: "/opt/x".to_owned() })
        }
    }

    #[test]
    fn lock_file_is_excluded_from_copied_files() {
        let project = project();
        let (before, _) = project.copy("a").expect("copies");
        std::fs::write(project.path("a/envforge.lock"), "1").expect("a file");
        std::fs::write(project.path("a/envforge.train.lock"), "1").expect("a file");
        assert_eq!(project.copy("a").expect("copies").0, before);
        let (one, entries) = project.copy("a/one.txt").expect("copies");
        assert_eq!((one.file_name(), entries[0].path.as_str()), ("one.txt", "copy/0/one.txt"));
        std::fs::write(project.path("a/o*.txt"), "1").expect("a file");
        assert_eq!(project.copy("a/o*.txt").expect("copies").1[0].path, "copy/0/file");
    }

    #[test]
    fn file_with_credential_is_rejected() {
        let project = project();
        std::fs::write(project.path("a/one.txt"), "def f(token, hf_tokenizer_of_the_pretrained_model_2B): g(api_key=token)\n-----BEGIN CERTIFICATE-----\n")
            .expect("a file");
        project.copy("a").expect("code");
        for (file, text) in [
            ("settings.py", format!("TOKEN = 'hf_{}'", "aB3dE".repeat(7))),
            ("key", "-----BEGIN OPENSSH PRIVATE KEY-----\n".to_owned()),
            (".env", "DB_PASSWORD=hunter2\n".to_owned()),
            (".netrc", "machine a login b password c\n".to_owned()),
        ] {
            std::fs::write(project.path(&format!("a/{file}")), &text).expect("a file");
            let error = project.copy("a").expect_err(file).to_string();
            assert!(error.contains(file) && !error.contains(text.trim()), "{error}");
            std::fs::remove_file(project.path(&format!("a/{file}"))).expect("there");
        }
    }

    #[test]
    fn directory_is_collected_with_a_content_hash() {
        let project = project();
        let (first, entries) = project.copy("a").expect("copies");
        assert!(first.folder);
        assert_eq!(entries.iter().map(|entry| entry.path.as_str()).collect::<Vec<_>>(), ["copy/0/one.txt"]);
        std::fs::write(project.path("a/one.txt"), "2").expect("a file");
        let (second, _) = project.copy("a").expect("copies");
        assert_ne!(first.sha256, second.sha256);
        let (file, entries) = project.copy("a/one.txt").expect("copies");
        assert!(!file.folder && entries.len() == 1);
    }

    #[test]
    fn follows_links_inside_the_project_only() {
        let project = project();
        symlink("one.txt", project.path("a/two.txt")).expect("a link");
        assert_eq!(project.copy("a").expect("copies").1.len(), 2);
        std::fs::write(project.folder.path().join("secret"), "x").expect("a file");
        for (link, to) in [("a/three.txt", "../../secret"), ("a/four", "/etc")] {
            symlink(to, project.path(link)).expect("a link");
            let error = project.copy("a").expect_err("refused");
            assert!(matches!(error, CopyError::Outside { .. }), "{error}");
            assert!(error.to_string().contains(link), "{error}");
            std::fs::remove_file(project.path(link)).expect("removed");
        }
        symlink(project.folder.path(), project.path("b")).expect("a link");
        assert!(matches!(project.copy("b/secret"), Err(CopyError::Outside { .. })));
    }

    #[test]
    fn name_that_deletes_files_of_the_image_is_refused() {
        let project = project();
        for name in ["a/.wh.one.txt", "a/.wh..wh..opq"] {
            std::fs::write(project.path(name), "").expect("a file");
            for from in ["a", name] {
                let error = project.copy(from).expect_err(name);
                assert!(matches!(error, CopyError::Deletes { .. }), "{error}");
            }
            std::fs::remove_file(project.path(name)).expect("there");
        }
        std::fs::create_dir(project.path("a/.wh.d")).expect("a folder");
        std::fs::write(project.path("a/.wh.d/x"), "").expect("a file");
        assert!(matches!(project.copy("a"), Err(CopyError::Deletes { .. })));
    }

    #[test]
    fn file_below_the_target_replaces_nothing_of_envforge() {
        let project = project();
        let copy = |from: &str, to: &str| {
            collect_copy(&project.path(""), 0, &CopyEntry { from: from.to_owned(), to: to.to_owned() })
        };
        for name in ["d/env/bin/python", "d/envforge/agent", "d/other/x", "env"] {
            let path = project.path(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(path, "x").expect("a file");
        }
        copy("d/other", "/opt").expect("a directory of its own");
        copy("d", "/opt/d").expect("a directory of its own");
        for (from, to) in
            [("d", "/opt"), ("d", "/opt/"), ("d/env", "/opt/env/"), ("env", "/opt"), ("d", "/opt/./")]
        {
            let error = copy(from, to).expect_err("refused");
            assert!(matches!(error, CopyError::Managed { .. }), "{from} {to}: {error}");
            assert!(error.to_string().contains("is inside /opt/env"), "{error}");
        }
    }

    #[test]
    fn unsupported_files_are_reported() {
        let project = project();
        assert!(matches!(project.copy("nothing"), Err(CopyError::Unreadable { .. })));
        symlink(".", project.path("a/self")).expect("a link");
        assert!(matches!(project.copy("a"), Err(CopyError::Circle { .. })));
        std::fs::remove_file(project.path("a/self")).expect("removed");
        let strange = project.path("a").as_std_path().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        std::fs::write(&strange, "x").expect("a file");
        assert!(project.copy("a").expect_err("refused").to_string().contains("not UTF-8"));
        std::fs::remove_file(&strange).expect("removed");
        // 255 bytes, but for some file systems of containers.
        let longest =
            |length: &usize| std::fs::write(project.path("a").join("n".repeat(*length)), "x").is_ok();
        assert!((200..=255).rev().find(longest).is_some());
        assert_eq!(project.copy("a").expect("copies").1.len(), 2, "the longest name is one");
    }
}
