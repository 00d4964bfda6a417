//! The lock file of a request: its path and its content.
#![expect(clippy::disallowed_methods, reason = "reads the lock")]

use camino::Utf8PathBuf;

use crate::model::lock::Lock;
use crate::model::request::LockOptions;
use crate::model::sha256::sha256_hex;
use crate::model::stack::Stack;
use crate::settings::Settings;
use crate::store::known_locks::OF_SPECS;
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
    match fs_err::read(path) {
        Ok(bytes) => Ok(Some(Lock::from_bytes(path.as_str(), &bytes)?)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
