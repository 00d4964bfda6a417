//! The configuration of a site, `/etc/envforge/config.toml`: for every user of a machine, and changed by root alone.

use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::error::SettingsError;

/// The largest one that is read.
const LARGEST: u64 = 1 << 20;

/// Who alone may be able to change a file: an owner, of the file and of all folders above it below `top`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// Its number.
    pub(crate) uid: u32,
    /// The topmost folder that is looked at.
    pub(crate) top: &'a str,
}

/// Root.
pub(crate) const ROOT: Owner<'static> = Owner { uid: 0, top: "/" };

/// Returns the text of a file that its owner alone can change; `None`: there is none. Links are followed, and count by their target.
pub(super) fn read_site(file: &Utf8Path, owner: Owner<'_>) -> Result<Option<String>, SettingsError> {
    let unreadable = |cause| SettingsError::Unreadable { cause };
    let real = match file.canonicalize_utf8() {
        Ok(real) => real,
        // A link that leads nowhere, of the file or of a folder above it, is a site's rules that are not there now.
        Err(error)
            if error.kind() == std::io::ErrorKind::NotFound && !file.ancestors().any(leads_nowhere) =>
        {
            return Ok(None);
        }
        Err(error) => {
            let text = format!("{file}: {error}");
            return Err(unreadable(std::io::Error::new(error.kind(), text)));
        }
    };
    if let Some((path, why)) = changeable(&real, owner).map_err(unreadable)? {
        return Err(SettingsError::NotRoots { file: file.to_owned(), path, why });
    }
    // No other user could have put another file there since.
    let mut text = String::new();
    let opened = fs_err::File::open(&real).map_err(unreadable)?;
    opened
        .take(LARGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| unreadable(std::io::Error::new(error.kind(), format!("{file}: {error}"))))?;
    if text.len() as u64 > LARGEST {
        let detail = format!("more than {LARGEST} bytes");
        return Err(SettingsError::Malformed { file: file.to_owned(), detail });
    }
    Ok(Some(text))
}

/// Whether a path is a link whose target is not there.
fn leads_nowhere(path: &Utf8Path) -> bool {
    fs_err::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) && fs_err::metadata(path).is_err()
}

/// The part of a path without links that a user other than its owner could change, with the reason; `None`: there is none.
pub(crate) fn changeable(
    path: &Utf8Path,
    owner: Owner<'_>,
) -> Result<Option<(Utf8PathBuf, String)>, std::io::Error> {
    for part in path.ancestors().take_while(|part| part.as_str() != owner.top) {
        let found = fs_err::symlink_metadata(part)?;
        let why = if found.uid() != owner.uid {
            format!("owned by user {}", found.uid())
        } else if found.mode() & 0o022 != 0 {
            format!("others can write it (mode {:o})", found.mode() & 0o7777)
        } else if part == path && !found.is_file() && !found.is_dir() {
            "neither a file nor a folder".to_owned()
        } else {
            continue;
        };
        return Ok(Some((part.to_owned(), why)));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::failure::{Exit, Failure as _};

    fn mode(path: &Utf8Path, mode: u32) {
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("ours");
    }

    #[test]
    fn only_a_file_that_its_owner_alone_can_change_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let top = Utf8Path::from_path(folder.path()).expect("UTF-8").canonicalize_utf8().expect("there");
        let uid = fs_err::metadata(&top).expect("there").uid();
        let (below, file) = (top.join("envforge"), top.join("envforge/config.toml"));
        let owner = Owner { uid, top: top.as_str() };
        let read = |owner: Owner<'_>| read_site(&file, owner);
        assert_eq!(read(owner).expect("none"), None);
        fs_err::create_dir(&below).expect("ours");
        fs_err::write(&file, "[policy]\n").expect("ours");
        mode(&below, 0o755);
        mode(&file, 0o644);
        assert_eq!(read(owner).expect("read").as_deref(), Some("[policy]\n"));
        let refused = |owner: Owner<'_>, part: &Utf8Path, why: &str| {
            let error = read(owner).expect_err("refused");
            let text = error.to_string();
            assert!(text.contains(part.as_str()) && text.contains(why), "{text}");
            assert_eq!(error.exit(), Exit::Usage);
        };
        refused(Owner { uid: uid + 1, ..owner }, &file, &format!("owned by user {uid}"));
        mode(&file, 0o664);
        refused(owner, &file, "others can write it (mode 664)");
        mode(&file, 0o644);
        mode(&below, 0o777);
        refused(owner, &below, "others can write it (mode 777)");
        mode(&below, 0o755);
        // A link into a folder of another user, and one that leads nowhere.
        let open = top.join("open");
        fs_err::create_dir(&open).expect("ours");
        fs_err::rename(&file, open.join("real.toml")).expect("ours");
        mode(&open, 0o777);
        fs_err::os::unix::fs::symlink(open.join("real.toml"), &file).expect("ours");
        refused(owner, &open, "others can write it");
        fs_err::remove_file(open.join("real.toml")).expect("ours");
        assert!(matches!(read(owner), Err(SettingsError::Unreadable { .. })), "a link that leads nowhere");
        fs_err::remove_file(&file).expect("ours");
        let below_link = top.join("link/config.toml");
        fs_err::os::unix::fs::symlink(top.join("not mounted"), top.join("link")).expect("ours");
        let nowhere = read_site(&below_link, owner);
        assert!(matches!(nowhere, Err(SettingsError::Unreadable { .. })), "a folder's link");
        fs_err::create_dir(&file).expect("ours");
        mode(&file, 0o755);
        assert!(matches!(read(owner), Err(SettingsError::Unreadable { .. })), "a folder");
    }
}
