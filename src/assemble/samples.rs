//! Made wheels for the tests of this room.
#![expect(clippy::disallowed_methods, reason = "tests write wheels")]

use std::sync::Arc;

use camino::Utf8Path;

use super::error::AssembleError;
use super::install::{Installation, InstalledContent, InstalledFile};
use super::made_wheel::MadeWheel;
use super::wheel::Wheel;
use crate::model::lock::{IndexKind, LockedWheel, WheelLayer};
use crate::model::sha256::sha256_hex;

/// The minor version of Python in the tests.
pub(super) const MINOR: u8 = 11;
/// Its site-packages.
pub(super) const SITE: &str = "opt/env/lib/python3.11/site-packages";

/// Returns a wheel as a lock has it.
pub(crate) fn locked(name: &str, layer: WheelLayer, bytes: &[u8]) -> LockedWheel {
    LockedWheel {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        file: format!("{name}-1.0-py3-none-any.whl"),
        sha256: sha256_hex(bytes),
        size: None,
        index: IndexKind::Default,
        index_name: None,
        layer,
    }
}

/// Opens bytes as the wheel of that name.
pub(super) fn open_bytes(name: &str, bytes: &[u8]) -> Result<Wheel, AssembleError> {
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    fs_err::write(file.path(), bytes).expect("written");
    Wheel::open(Utf8Path::from_path(file.path()).expect("UTF-8"), &locked(name, WheelLayer::Stack, bytes))
}

/// Opens a made wheel.
pub(super) fn open(made: &MadeWheel) -> Result<Wheel, AssembleError> {
    open_bytes(&made.name, &made.build())
}

/// Installs a made wheel.
pub(super) fn install(made: &MadeWheel) -> Result<Installation, AssembleError> {
    Installation::of(Arc::new(open(made)?), MINOR)
}

/// Returns every reason for which a made wheel is refused.
pub(super) fn reasons(made: &MadeWheel) -> Vec<String> {
    match install(made) {
        Err(AssembleError::Refused { file, reasons }) => {
            assert_eq!(file, made.file_name());
            reasons
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the installed file at a path below site-packages.
pub(super) fn at<'a>(installation: &'a Installation, path: &str) -> &'a InstalledFile {
    let path = format!("{SITE}/{path}");
    let found = installation.files().iter().find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("{path} is not installed"))
}

/// Returns the generated text at a path below site-packages.
pub(super) fn text<'a>(installation: &'a Installation, path: &str) -> &'a str {
    match &at(installation, path).content {
        InstalledContent::Generated(bytes) => std::str::from_utf8(bytes).expect("UTF-8"),
        other => panic!("{path}: {other:?}"),
    }
}
