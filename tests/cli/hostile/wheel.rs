//! Wheels of the hostile set: `wheel.toml` describes the zip, which is written here byte by byte, opened as a locked wheel
//! and put into a layer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use camino::Utf8Path;
use envforge::assemble::{
    AssembleError, Conflicts, Installation, LayerContent, LayerPlan, Listing, Wheel, digest_layers,
};
use envforge::failure::Failure as _;
use envforge::model::lock::{IndexKind, LockedWheel, WheelLayer};
use serde::Deserialize;

use super::case::{Case, Outcome};
use crate::made_wheel::{MadeEntry, MadeWheel, zip_of};
use crate::wheels::sha256;

/// A wheel `demo` 1.0 and what is wrong with it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Described {
    entry: Vec<Entry>,
    /// The distribution that the wheel says it is, if not `demo`.
    distribution: Option<String>,
    /// RECORD, if not the correct one.
    record: Option<String>,
    /// Names of the usual entries that are left out.
    without: Vec<String>,
    /// Whether the end records have 64 bits.
    zip64: bool,
    /// Changes of the finished bytes.
    patch: Vec<Patch>,
    /// Bytes that are missing at the end.
    cut: usize,
    /// Bytes before the zip.
    before: String,
    /// The hash in the lock, if not that of the bytes.
    locked: Option<String>,
}

/// An entry; the optional fields replace the correct ones of its headers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    name: String,
    #[serde(default)]
    content: String,
    /// How often the content is repeated.
    #[serde(default = "once")]
    times: usize,
    /// The name in both headers, where it is no text.
    name_bytes: Option<Vec<u8>>,
    /// The name in the header beside the content.
    local_name: Option<String>,
    mode: Option<u32>,
    method: Option<u16>,
    flags: Option<u16>,
    crc32: Option<u32>,
    size: Option<u64>,
    extra: Option<Vec<u8>>,
    #[serde(default)]
    zip64: bool,
}

fn once() -> usize {
    1
}

/// Bytes that replace others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    /// The record: `local`, `central`, `end`, `end64` or `locator`; the last one of its kind.
    record: String,
    /// The first byte, from the beginning of the record.
    at: usize,
    bytes: Vec<u8>,
}

impl Entry {
    fn made(&self) -> MadeEntry {
        let mut made = MadeEntry::new(&self.name, self.content.repeat(self.times).as_bytes());
        if let Some(bytes) = &self.name_bytes {
            made = made.named(bytes);
        }
        if let Some(name) = &self.local_name {
            made.local_name = name.clone().into_bytes();
        }
        made.mode = self.mode.unwrap_or(made.mode);
        made.method = self.method.unwrap_or(made.method);
        made.flags = self.flags.unwrap_or(made.flags);
        made.crc32 = self.crc32.unwrap_or(made.crc32);
        made.size = self.size.unwrap_or(made.size);
        made.extra = self.extra.clone().unwrap_or(made.extra);
        made.zip64 = self.zip64;
        made
    }
}

impl Described {
    fn bytes(&self) -> Vec<u8> {
        let mut made = MadeWheel::new(self.distribution.as_deref().unwrap_or("demo"));
        made = made.file("demo/__init__.py", b"x = 1\n");
        made = self.without.iter().fold(made, |made, name| made.without(name));
        made = self.entry.iter().fold(made, |made, entry| made.entry(entry.made()));
        if let Some(record) = &self.record {
            made = made.record(record);
        }
        let mut bytes = zip_of(&made.all_entries(), b"", self.zip64);
        for Patch { record, at, bytes: new } in &self.patch {
            let mark: &[u8] = match record.as_str() {
                "local" => b"PK\x03\x04",
                "central" => b"PK\x01\x02",
                "end" => b"PK\x05\x06",
                "end64" => b"PK\x06\x06",
                "locator" => b"PK\x06\x07",
                other => panic!("unknown record `{other}`"),
            };
            let found = bytes.windows(mark.len()).rposition(|bytes| bytes == mark).expect("the zip has it");
            bytes[found + at..found + at + new.len()].copy_from_slice(new);
        }
        bytes.truncate(bytes.len() - self.cut);
        [self.before.as_bytes(), &bytes].concat()
    }
}

/// Makes a layer of the wheel and lists it: kind, mode, path.
fn layer(path: &Utf8Path, locked: &LockedWheel) -> Result<String, AssembleError> {
    let wheel = Installation::of(Arc::new(Wheel::open(path, locked)?), 11)?;
    let conflicts = Conflicts::find(&[Listing::of(&wheel)?])?;
    let plan = LayerPlan::new(&[&wheel], &conflicts, BTreeMap::new())?;
    let mut text = String::new();
    for (path, file) in plan.files() {
        let kind = match &file.content {
            LayerContent::Folder => "folder",
            LayerContent::Symlink(_) => "link",
            LayerContent::File(_) | LayerContent::FromWheel { .. } => "file",
        };
        let _ = writeln!(text, "{kind} {:o} {}:{} {path}", file.mode, file.uid, file.gid);
    }
    digest_layers(&[plan], &|_, _| {})?;
    Ok(text)
}

/// Opens the wheel of a case and makes its layer.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    let described: Described = case.toml("wheel.toml");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = Utf8Path::from_path(folder.path()).expect("UTF-8").join("demo-1.0-py3-none-any.whl");
    let bytes = described.bytes();
    std::fs::write(&path, &bytes).expect("ours");
    let locked = LockedWheel {
        name: "demo".to_owned(),
        version: "1.0".to_owned(),
        file: "demo-1.0-py3-none-any.whl".to_owned(),
        sha256: described.locked.clone().unwrap_or_else(|| sha256(&bytes)),
        size: None,
        index: IndexKind::Default,
        index_name: None,
        layer: WheelLayer::User,
    };
    let (code, output) = match layer(&path, &locked) {
        Ok(listing) => (0, listing),
        Err(error) => (error.exit() as i32, format!("{error}\n{}", error.hints().join("\n"))),
    };
    let left: Vec<_> = std::fs::read_dir(&folder).expect("ours").collect();
    let harm =
        if left.len() == 1 { Vec::new() } else { vec!["a file was written beside the wheel".to_owned()] };
    vec![Outcome { code, output, harm, root: folder.path().to_owned() }]
}
