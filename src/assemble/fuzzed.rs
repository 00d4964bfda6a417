//! Fuzzed parsers: the zip of a wheel, RECORD and entry points.

use super::entry_name::problem;
use super::entry_points::scripts;
use super::entry_reader::EntryReader;
use super::place::{Place, Scheme};
use super::record::{parse, write};
use super::zip_directory::read_entries;

/// A wheel: entries have safe names and places below the environment, and their content can be read or is refused.
pub(crate) fn wheel(bytes: &[u8]) {
    let Ok(entries) = read_entries(bytes, bytes.len() as u64) else { return };
    let scheme = Scheme { distribution: "demo", stem: "demo-1.0", python_minor: 11 };
    let mut reader = EntryReader::default();
    for entry in entries {
        assert_eq!(problem(&entry.name), None);
        if let Ok(Place::At(target)) = scheme.place(&entry.name) {
            assert_eq!(problem(&target.path), None);
            assert!(target.path.starts_with("opt/env/"), "{}", target.path);
        }
        let mut size = 0;
        let read = reader.read(bytes, &entry, |part| {
            size += part.plain.len() as u64;
            Ok::<_, std::convert::Infallible>(())
        });
        assert!(read.is_err() || size == entry.size);
    }
}

/// RECORD: rows are written as they were read.
pub(crate) fn record(text: &str) {
    if let Ok(mut rows) = parse(text.as_bytes()) {
        rows.sort();
        assert_eq!(parse(&write(rows.clone())), Ok(rows));
    }
}

/// Entry points: names are plain, and the text of a script has the lines of the template only.
pub(crate) fn entry_points(text: &str) {
    for script in scripts(text.as_bytes(), 11).into_iter().flatten() {
        assert!(!script.name.contains('/') && problem(&script.name).is_none());
        assert_eq!(script.text().lines().count(), 9, "{:?}", script.text());
    }
}
