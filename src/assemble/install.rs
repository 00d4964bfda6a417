//! The files that a wheel gives, as uv installs them: paths, modes, scripts, RECORD.
//!
//! Owns the composition of the rules in `place`, `record` and `entry_points`. Reads only the few entries whose content decides;
//! all others are checked while they are written to a layer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::entry_points::{SHEBANG, Script, scripts};
use super::entry_reader::{EntryError, EntryReader};
use super::error::AssembleError;
use super::limits::{METADATA, MODULE};
use super::place::{Place, Scheme, Target};
use super::record::{Row, heal, parse, plain_path, write};
use super::wheel::Wheel;
use crate::model::entry_name::{collisions, quoted};

/// The first bytes of a script whose interpreter is replaced.
const PLACEHOLDER: &[u8] = b"#!python";
/// Endings of scripts that belong to an entry point.
const SCRIPT_ENDINGS: [&str; 3] = [".exe", "-script.py", ".pya"];

/// The content of an installed file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InstalledContent {
    /// A directory.
    Folder,
    /// A file that the installer writes.
    Generated(Vec<u8>),
    /// A file of the wheel.
    FromWheel {
        /// Its place in the wheel's list of entries.
        entry: usize,
        /// Its SHA-256 by RECORD.
        sha256: Option<[u8; 32]>,
    },
}

/// A file or directory of an installed wheel; its owner is root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledFile {
    /// The path in the image, without `/` at either end.
    pub path: String,
    /// 0o644 or 0o755.
    pub mode: u32,
    /// The content.
    pub content: InstalledContent,
}

/// A wheel with the files it gives.
#[derive(Debug, Clone)]
pub struct Installation {
    wheel: Arc<Wheel>,
    files: Vec<InstalledFile>,
}

impl Installation {
    /// Lists the files that a wheel gives to an environment at `/opt/env` with Python 3 of that minor version.
    pub fn of(wheel: Arc<Wheel>, python_minor: u8) -> Result<Self, AssembleError> {
        let files = Installer::new(&wheel, python_minor)?.files()?;
        Ok(Self { wheel, files })
    }

    /// The wheel.
    pub fn wheel(&self) -> &Arc<Wheel> {
        &self.wheel
    }

    /// Returns the content of one of its files, verified; `None` for a directory.
    pub fn read(&self, file: &InstalledFile) -> Result<Option<Vec<u8>>, AssembleError> {
        match &file.content {
            InstalledContent::Folder => Ok(None),
            InstalledContent::Generated(bytes) => Ok(Some(bytes.clone())),
            InstalledContent::FromWheel { entry, .. } => {
                self.wheel.content(&mut EntryReader::default(), *entry, MODULE).map(Some)
            }
        }
    }

    /// The bytes of one of its files, as the wheel lists them.
    pub fn size_of(&self, file: &InstalledFile) -> u64 {
        match &file.content {
            InstalledContent::Folder => 0,
            InstalledContent::Generated(bytes) => bytes.len() as u64,
            InstalledContent::FromWheel { entry, .. } => self.wheel.entries()[*entry].size,
        }
    }

    /// Its files and directories, sorted by the bytes of their paths.
    pub fn files(&self) -> &[InstalledFile] {
        &self.files
    }
}

struct Installer<'a> {
    wheel: &'a Wheel,
    scheme: Scheme<'a>,
    reader: EntryReader,
    /// Rows of RECORD.
    rows: Vec<Row>,
    /// The row of each file of the wheel.
    row_of: BTreeMap<String, usize>,
    scripts: Vec<Script>,
    files: Vec<InstalledFile>,
    reasons: Vec<String>,
}

impl<'a> Installer<'a> {
    fn new(wheel: &'a Wheel, python_minor: u8) -> Result<Self, AssembleError> {
        let scheme = Scheme { distribution: wheel.distribution(), stem: wheel.stem(), python_minor };
        let (mut reader, mut reasons) = (EntryReader::default(), Vec::new());
        let files = wheel.files();
        let dist_info = format!("{}.dist-info", wheel.stem());
        let mut content = |name: &str| {
            let entry = files.get(format!("{dist_info}/{name}").as_str());
            entry.map(|entry| wheel.content(&mut reader, *entry, METADATA)).transpose()
        };
        let (metadata, record) =
            (content("WHEEL")?.unwrap_or_default(), content("RECORD")?.unwrap_or_default());
        let entry_points = content("entry_points.txt")?.unwrap_or_default();
        reasons.extend(wheel_version_problem(&metadata));
        let rows = parse(&record).unwrap_or_else(|reason| {
            reasons.push(reason);
            Vec::new()
        });
        let scripts = scripts(&entry_points, python_minor).unwrap_or_else(|found| {
            reasons.extend(found);
            Vec::new()
        });
        let sizes = files.iter().map(|(name, entry)| (*name, wheel.entries()[*entry].size)).collect();
        let rows = heal(rows, &dist_info, &sizes);
        let row_of = rows.iter().enumerate().map(|(at, row)| (plain_path(&row.path), at)).collect();
        Ok(Self { wheel, scheme, reader, rows, row_of, scripts, files: Vec::new(), reasons })
    }

    fn files(mut self) -> Result<Vec<InstalledFile>, AssembleError> {
        let wheel = self.wheel;
        for (at, entry) in wheel.entries().iter().enumerate() {
            match self.scheme.place(&entry.name) {
                Ok(Place::Nowhere) => {}
                Ok(Place::At(target)) if entry.is_folder() => {
                    self.add(target.path, 0o755, InstalledContent::Folder);
                }
                Ok(Place::At(target)) => self.add_file(at, target),
                Ok(Place::Script(name)) => self.add_script(at, &name)?,
                Err(reason) => self.refuse(at, reason),
            }
        }
        self.add_entry_points();
        self.replace_record();
        let mut seen = BTreeSet::new();
        self.files.retain(|file| file.content != InstalledContent::Folder || seen.insert(file.path.clone()));
        let names: Vec<String> = self.files.iter().map(name_with_kind).collect();
        self.reasons.extend(collisions(names.iter().map(String::as_str)));
        if !self.reasons.is_empty() {
            return Err(wheel.refused(self.reasons));
        }
        self.files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(self.files)
    }

    fn add(&mut self, path: String, mode: u32, content: InstalledContent) {
        self.files.push(InstalledFile { path, mode, content });
    }

    fn refuse(&mut self, entry: usize, reason: &str) {
        self.reasons.push(format!("{}: {reason}", quoted(&self.wheel.entries()[entry].name)));
    }

    /// Adds a file of the wheel as it is.
    fn add_file(&mut self, entry: usize, target: Target) {
        let mode = if self.wheel.entries()[entry].executable { 0o755 } else { 0o644 };
        let sha256 = self.recorded(entry);
        self.add(target.path, mode, InstalledContent::FromWheel { entry, sha256 });
        self.move_row(entry, target.record);
    }

    /// Adds a file of `X.data/scripts`, unless an entry point replaces it; its row then stays in RECORD, as in uv.
    fn add_script(&mut self, entry: usize, name: &str) -> Result<(), AssembleError> {
        let stem = SCRIPT_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending)).unwrap_or(name);
        if self.scripts.iter().any(|script| script.name == stem) {
            return Ok(());
        }
        let target = self.scheme.script(name);
        if !self.begins_with_placeholder(entry)? {
            self.add_file(entry, target);
            let last = self.files.last_mut().expect("the file was added");
            last.mode = 0o755;
            return Ok(());
        }
        let content = self.wheel.content(&mut self.reader, entry, MODULE)?;
        if self.recorded(entry).is_some_and(|sha256| sha256 != <[u8; 32]>::from(Sha256::digest(&content))) {
            self.refuse(entry, RECORD_MISMATCH);
        }
        let content = with_interpreter(&content);
        if let Some(row) = self.row_of(entry) {
            self.rows[row] = Row::of_content(target.record, &content);
        }
        self.add(target.path, 0o755, InstalledContent::Generated(content));
        Ok(())
    }

    fn begins_with_placeholder(&mut self, entry: usize) -> Result<bool, AssembleError> {
        let mut start = Vec::new();
        let read = self.reader.read(self.wheel.source(), &self.wheel.entries()[entry], |part| {
            start.extend_from_slice(&part.plain[..part.plain.len().min(PLACEHOLDER.len())]);
            if start.len() < PLACEHOLDER.len() { Ok(()) } else { Err(()) }
        });
        match read {
            Ok(()) | Err(EntryError::Receiver(())) => Ok(start.starts_with(PLACEHOLDER)),
            Err(EntryError::Io(cause)) => Err(self.wheel.unreadable(cause)),
            Err(EntryError::Damaged(reason)) => Err(self.wheel.refused_entry(entry, reason)),
        }
    }

    /// Adds the scripts of entry points. One that is both a console and a window script is written twice by uv: the last
    /// stays, both are in RECORD.
    fn add_entry_points(&mut self) {
        let mut texts = BTreeMap::new();
        for script in &self.scripts {
            let (target, text) = (self.scheme.script(&script.name), script.text().into_bytes());
            self.rows.push(Row::of_content(target.record, &text));
            texts.insert(target.path, text);
        }
        for (path, text) in texts {
            self.add(path, 0o755, InstalledContent::Generated(text));
        }
    }

    /// Replaces the wheel's RECORD, whose mode stays.
    fn replace_record(&mut self) {
        let files = self.wheel.files();
        let record = files.get(format!("{}.dist-info/RECORD", self.wheel.stem()).as_str()).copied();
        let content = InstalledContent::Generated(write(std::mem::take(&mut self.rows)));
        for file in &mut self.files {
            if matches!(file.content, InstalledContent::FromWheel { entry, .. } if Some(entry) == record) {
                file.content = content;
                return;
            }
        }
    }

    fn row_of(&self, entry: usize) -> Option<usize> {
        self.row_of.get(&self.wheel.entries()[entry].name).copied()
    }

    fn move_row(&mut self, entry: usize, path: String) {
        let moved = path != self.wheel.entries()[entry].name;
        if let Some(row) = self.row_of(entry).filter(|_| moved) {
            self.rows[row].path = path;
        }
    }

    /// Returns the hash that RECORD lists for a file, and compares the size.
    fn recorded(&mut self, entry: usize) -> Option<[u8; 32]> {
        let (row, found) = (self.row_of(entry)?, &self.wheel.entries()[entry]);
        // RECORD cannot list its own hash.
        if found.name.strip_prefix(self.wheel.stem()) == Some(".dist-info/RECORD") {
            return None;
        }
        if self.rows[row].size.is_some_and(|size| size != found.size) {
            self.refuse(entry, "the size differs from RECORD");
        }
        self.rows[row].sha256().unwrap_or_else(|reason| {
            self.refuse(entry, reason);
            None
        })
    }
}

/// Why a file of a wheel is refused whose content is not the one that RECORD lists.
pub(super) const RECORD_MISMATCH: &str = "the SHA-256 differs from RECORD";

fn name_with_kind(file: &InstalledFile) -> String {
    let end = if file.content == InstalledContent::Folder { "/" } else { "" };
    format!("{}{end}", file.path)
}

/// Replaces the first line of a script, whatever options it has.
fn with_interpreter(script: &[u8]) -> Vec<u8> {
    let end = script.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(script.len());
    let rest = &script[end..];
    let rest = rest.strip_prefix(b"\r\n").or_else(|| rest.get(1..)).unwrap_or_default();
    [SHEBANG.as_bytes(), b"\n", rest].concat()
}

/// Returns why a wheel of that WHEEL file cannot be installed.
fn wheel_version_problem(text: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().take_while(|line| !line.is_empty());
    let version = lines.find_map(|line| line.strip_prefix("Wheel-Version:")).unwrap_or_default().trim();
    let known = matches!(version.split_once('.'), Some(("1", _) | ("0", "1")));
    (!known).then(|| format!("unsupported wheel version `{}`", version.escape_debug()))
}

#[cfg(test)]
#[path = "install_tests.rs"]
mod tests;
