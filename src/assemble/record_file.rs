//! Small files that remember what was made of wheels.
#![expect(clippy::disallowed_methods, reason = "edge: reads records of the cache")]

use std::io::ErrorKind;

use camino::Utf8Path;
use serde::de::DeserializeOwned;

use crate::model::bounded::read_bounded;
use crate::store::StoreError;

/// Version of the form of layers: raised whenever the same wheels give other bytes.
pub const LAYOUT_VERSION: u32 = 1;

/// The most of a record, bytes: it lists the files of a layer.
const LARGEST_RECORD: u64 = 256 << 20;

/// Reads a record; one that is damaged counts as absent.
pub(super) fn read_record<T: DeserializeOwned>(path: &Utf8Path) -> Result<Option<T>, StoreError> {
    let read = fs_err::File::open(path).and_then(|file| read_bounded(file, LARGEST_RECORD));
    let bytes = match read {
        Ok(bytes) => bytes,
        // Nothing written here is as large.
        Err(error) if error.kind() == ErrorKind::FileTooLarge => Vec::new(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(StoreError::File { purpose: "cannot read the cache of layers", cause }),
    };
    let record = serde_json::from_slice(&bytes).ok();
    if record.is_none() {
        tracing::warn!(%path, "ignoring a damaged record");
    }
    Ok(record)
}
