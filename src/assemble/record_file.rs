//! Small files that remember what was made of wheels: sealed records of the cache.

use serde::de::DeserializeOwned;

use crate::store::SealedRecords;

/// Version of the form of layers: raised whenever the same wheels give other bytes.
pub const LAYOUT_VERSION: u32 = 1;

/// The most of a record, bytes: it lists the files of a layer.
const LARGEST_RECORD: u64 = 256 << 20;

/// Reads a record; one that is damaged or was not written here counts as absent.
pub(super) fn read_record<T: DeserializeOwned>(records: &SealedRecords, name: &str) -> Option<T> {
    let record = serde_json::from_slice(&records.read(name, LARGEST_RECORD)?).ok();
    if record.is_none() {
        tracing::warn!(name, "ignoring a damaged record");
    }
    record
}
