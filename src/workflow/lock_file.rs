//! The lock file of a request: its path and its content.

use camino::{Utf8Path, Utf8PathBuf};

use crate::model::lock::Lock;
use crate::model::request::LockOptions;
use crate::model::sha256::sha256_hex;
use crate::model::stack::Stack;
use crate::settings::Settings;
use crate::store::known_locks::OF_SPECS;
use crate::store::read_regular;
use crate::workflow::error::CommandError;

pub(crate) fn file_name(name: &str) -> String {
    name.replace(['/', ':'], "_")
}

/// Where the lock lies.
pub(crate) fn lock_path(settings: &Settings, stack: &Stack, source: &LockOptions) -> Utf8PathBuf {
    if let Some(file) = &source.lockfile {
        return settings.paths.current_dir.join(file);
    }
    // The wishes may be long and hold anything.
    let mut wishes = [source.with.join("\n"), source.apt.join("\n")].join("\n\n");
    if !source.allow_source.is_empty() {
        wishes = [wishes, source.allow_source.join("\n")].join("\n\n");
    }
    let added = if wishes.trim().is_empty() {
        String::new()
    } else {
        format!("+{}", &sha256_hex(wishes.as_bytes())[..12])
    };
    let name = format!("{}{added}-{}.lock", file_name(&stack.name), stack.machine);
    settings.paths.state.join(OF_SPECS).join(name)
}

/// The lock at that path, if there is one.
pub(crate) fn read_lock(path: &Utf8PathBuf) -> Result<Option<Lock>, CommandError> {
    match lock_bytes(path) {
        Ok(bytes) => Ok(Some(Lock::from_bytes(path.as_str(), &bytes)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The most of a lock file, bytes: one of 500 wheels has some 200 kilobytes.
const LARGEST_LOCK: u64 = 64 << 20;

/// The bytes of a lock file.
pub(crate) fn lock_bytes(path: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let named = |error: std::io::Error| std::io::Error::new(error.kind(), format!("lock file {error}"));
    read_regular(path, LARGEST_LOCK).map_err(|error| match error.kind() {
        std::io::ErrorKind::FileTooLarge | std::io::ErrorKind::InvalidInput => named(error),
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests write files")]

    use super::*;

    #[test]
    fn file_that_is_larger_than_any_lock_is_an_error_with_its_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("envforge.lock");
        // Without content on the disk.
        let file = fs_err::File::create(&path).expect("created");
        file.set_len(LARGEST_LOCK + 1).expect("grown");
        let error = lock_bytes(&path).expect_err("too large").to_string();
        assert!(error.contains(path.as_str()) && error.contains("larger than"), "{error}");
        file.set_len(3).expect("cut");
        assert_eq!(lock_bytes(&path).expect("read").len(), 3);
    }
}
