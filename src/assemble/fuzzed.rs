//! Fuzzed parsers: the zip of a wheel, RECORD and entry points; and the writer of layers.

use std::collections::BTreeMap;
use std::io::Read as _;

use super::conflicts::Conflicts;
use super::entry_points::scripts;
use super::entry_reader::EntryReader;
use super::layer::{LayerContent, LayerFile, LayerPlan};
use super::place::{Place, Scheme};
use super::record::{parse, write};
use super::write::write_layer;
use super::zip_directory::read_entries;
use crate::model::entry_name::problem;

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
        assert_eq!(script.text().lines().count(), 10, "{:?}", script.text());
    }
}

/// A layer of files with these paths, each its own content: other programs read back what was planned, in both forms.
pub(crate) fn layer(text: &str) {
    let file = |(at, line): (usize, &str)| {
        let (kind, path) = line.split_once(' ')?;
        let content = match kind {
            "folder" => LayerContent::Folder,
            "link" => LayerContent::Symlink(path.to_owned()),
            _ => LayerContent::File(bytes::Bytes::copy_from_slice(line.as_bytes())),
        };
        let mode = [0o644, 0o755, 0o4755, 0o777][at % 4];
        Some((
            path.to_owned(),
            LayerFile { content, mode, uid: u32::try_from(at).unwrap_or_default(), ..LayerFile::folder() },
        ))
    };
    let files: BTreeMap<_, _> = text.lines().enumerate().filter_map(file).collect();
    let Ok(plan) = LayerPlan::new(&[], &Conflicts::default(), files) else { return };
    let (mut plain, mut packed) = (Vec::new(), Vec::new());
    if write_layer(&plan, &mut plain, &mut packed, &mut |_| ()).is_err() {
        return;
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(packed.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert!(unpacked == plain, "both forms hold the same tar");
    let mut found = 0;
    for (entry, (path, file)) in
        tar::Archive::new(plain.as_slice()).entries().expect("a tar").zip(plan.files())
    {
        let mut entry = entry.expect("an entry");
        assert_eq!(String::from_utf8_lossy(&entry.path_bytes()).trim_end_matches('/'), path);
        assert_eq!(
            (entry.header().mode().ok(), entry.header().uid().ok()),
            (Some(file.mode), Some(file.uid.into()))
        );
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("content");
        match &file.content {
            LayerContent::File(bytes) => assert_eq!(&content[..], &bytes[..]),
            LayerContent::Symlink(target) => {
                let link = entry.link_name_bytes().expect("a link").into_owned();
                assert_eq!(String::from_utf8_lossy(&link), *target);
            }
            _ => assert!(content.is_empty()),
        }
        found += 1;
    }
    assert_eq!(found, plan.files().len());
}
