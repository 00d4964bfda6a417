//! The symbol tables of locked wheels, made once for each wheel.

use std::io::{Read as _, Write as _};
use std::sync::Arc;

use envforge_protocol::abi::{Table, tables};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::assemble::library_tables;
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
    for wheel in unknown {
        reporter.report(Event::Note { text: format!("reading the symbols of {}", wheel.file) });
        all.extend(made(&records, &store, wheel, reporter)?);
    }
    Ok(all)
}

fn recorded(records: &SealedRecords, sha256: &str) -> Option<Vec<Table>> {
    let packed = records.read(sha256, LARGEST)?;
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(LARGEST_TEXT).read_to_string(&mut text).ok()?;
    tables(&text).ok()
}

/// Reads the tables from a wheel of the cache and records them.
/// One with a library that cannot be read is not recorded, and named each time: other wheels may need that library.
fn made(
    records: &SealedRecords,
    store: &Store,
    wheel: &LockedWheel,
    reporter: &Arc<dyn Reporter>,
) -> Result<Vec<Table>, CommandError> {
    // Its bytes are hashed first: the record stands for the locked wheel.
    let none = || std::io::Error::other(format!("`{}` is damaged in the cache", wheel.file));
    open_verified(store, &wheel.sha256)?.ok_or_else(none)?;
    let found = library_tables(&store.blob_path(&wheel.sha256)?)?;
    for (library, reason) in &found.unreadable {
        reporter.report(Event::Note { text: format!("cannot read {library} of {}: {reason}", wheel.file) });
    }
    if !found.unreadable.is_empty() {
        return Ok(found.tables);
    }
    let mut text = String::new();
    for table in &found.tables {
        table.write(&mut text);
    }
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    packer.write_all(text.as_bytes())?;
    records.write(&wheel.sha256, &packer.finish()?)?;
    Ok(found.tables)
}
