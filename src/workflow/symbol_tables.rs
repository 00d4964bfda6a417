//! The symbol tables of locked wheels, made once for each wheel.

use std::cmp::Reverse;
use std::io::{Read as _, Write as _};
use std::sync::Arc;

use envforge_protocol::abi::{Table, tables};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::assemble::{on_all_cores, tables_of_wheels};
use crate::fetch::open_verified;
use crate::model::lock::{Lock, LockedWheel};
use crate::packages::WheelSource;
use crate::report::{Event, Reporter};
use crate::settings::Settings;
use crate::store::{SealedRecords, Store};
use crate::workflow::error::CommandError;
use crate::workflow::session::downloads;

/// The most of the tables of one wheel, compressed: those of PyTorch have some 10 MB.
const LARGEST: u64 = 256 << 20;
/// The most of them as text.
const LARGEST_TEXT: u64 = 2 << 30;
/// Raised when tables say something else of the same wheel.
const FOLDER: &str = "layers/symbols-1";

/// Returns the tables of all libraries of the locked wheels but those of one package. Downloads wheels that are neither
/// in the cache nor known by their tables.
pub(crate) async fn tables_of_lock(
    lock: &Lock,
    without: &str,
    settings: &Settings,
    reporter: &Arc<dyn Reporter>,
) -> Result<Vec<Table>, CommandError> {
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let records = SealedRecords::new(&store, FOLDER);
    // A wheel for any machine has no library.
    let has_libraries = |wheel: &&LockedWheel| !wheel.file.ends_with("-any.whl") && wheel.name != without;
    let wheels: Vec<_> = lock.wheels.iter().filter(has_libraries).collect();
    let mut all = Vec::new();
    let mut unknown = Vec::new();
    for wheel in &wheels {
        match recorded(&records, &wheel.sha256) {
            Some(tables) => all.extend(tables),
            None => unknown.push(*wheel),
        }
    }
    if unknown.is_empty() {
        return Ok(all);
    }
    let (fetcher, index) = downloads(settings)?;
    let source = WheelSource { stack: &lock.stack, index: &index, fetcher: &fetcher, known: None };
    source.gather(&unknown, &store, Arc::clone(reporter)).await?;
    let text = match unknown.as_slice() {
        [wheel] => format!("reading the symbols of {}", wheel.file),
        wheels => format!("reading the symbols of {} wheels", wheels.len()),
    };
    reporter.report(Event::Note { text });
    all.extend(made(&records, &store, unknown, reporter)?);
    Ok(all)
}

/// Returns the recorded tables of the wheel with that SHA-256.
pub(crate) fn recorded_tables(store: &Store, sha256: &str) -> Option<Vec<Table>> {
    recorded(&SealedRecords::new(store, FOLDER), sha256)
}

/// Records the tables of a wheel whose bytes were hashed.
pub(crate) fn record_tables(
    store: &Store,
    wheel: &LockedWheel,
    tables: &[Table],
) -> Result<(), CommandError> {
    record(&SealedRecords::new(store, FOLDER), wheel, tables)
}

fn recorded(records: &SealedRecords, sha256: &str) -> Option<Vec<Table>> {
    let packed = records.read(sha256, LARGEST)?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(LARGEST_TEXT).read_to_string(&mut text).ok()?;
    tables(&text).ok()
}

/// Reads the tables of wheels of the cache and records them.
/// Those of a wheel with a library that cannot be read are not recorded, and named each time: other wheels may need that library.
fn made(
    records: &SealedRecords,
    store: &Store,
    mut wheels: Vec<&LockedWheel>,
    reporter: &Arc<dyn Reporter>,
) -> Result<Vec<Table>, CommandError> {
    wheels.sort_by_key(|wheel| Reverse(wheel.size));
    // Their bytes are hashed first: a record stands for the locked wheel.
    let paths = on_all_cores(&wheels, |wheel| {
        let none = || std::io::Error::other(format!("`{}` is damaged in the cache", wheel.file));
        open_verified(store, &wheel.sha256)?.ok_or_else(none)?;
        Ok::<_, CommandError>(store.blob_path(&wheel.sha256)?)
    })?;
    let found: Vec<_> = wheels.into_iter().zip(tables_of_wheels(&paths)?).collect();
    for (wheel, one) in &found {
        for (library, reason) in &one.unreadable {
            let text = format!("cannot read {library} of {}: {reason}", wheel.file);
            reporter.report(Event::Note { text });
        }
    }
    on_all_cores(&found, |(wheel, one)| {
        if one.unreadable.is_empty() { record(records, wheel, &one.tables) } else { Ok(()) }
    })?;
    Ok(found.into_iter().flat_map(|(_, one)| one.tables).collect())
}

fn record(records: &SealedRecords, wheel: &LockedWheel, tables: &[Table]) -> Result<(), CommandError> {
    let mut text = String::new();
    for table in tables {
        table.write(&mut text);
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes())?;
    Ok(records.write(&wheel.sha256, &packer.finish()?)?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test reads a record")]
mod tests {
    use super::*;
    use crate::assemble::samples::locked;
    use crate::model::lock::WheelLayer;
    use crate::store::write_atomically;

    #[test]
    fn tables_of_another_wheel_or_without_a_seal_are_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let records = SealedRecords::new(&store, FOLDER);
        let (one, other) = (locked("one", WheelLayer::User, b"1"), locked("other", WheelLayer::User, b"2"));
        let own = vec![Table { path: "demo/lib.so".to_owned(), ..Table::default() }];
        record(&records, &one, &own).expect("written");
        assert_eq!(recorded(&records, &one.sha256), Some(own));
        let place = records.path(&one.sha256).expect("a key");
        let sealed = fs_err::read(&place).expect("a record");
        write_atomically(&records.path(&other.sha256).expect("a key"), &sealed).expect("written");
        assert_eq!(recorded(&records, &other.sha256), None);
        let seal = sealed.iter().position(|byte| *byte == b'\n').expect("a line of its own");
        write_atomically(&place, &sealed[seal + 1..]).expect("written");
        assert_eq!(recorded(&records, &one.sha256), None);
    }
}
