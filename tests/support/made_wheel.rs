//! Wheels written byte by byte, so that each field of the zip can be wrong.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};
use sha2::{Digest as _, Sha256};

/// An entry of a zip; the fields are those of its headers.
#[derive(Debug, Clone)]
pub(crate) struct MadeEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) local_name: Vec<u8>,
    pub(crate) content: Vec<u8>,
    pub(crate) packed: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) mode: u32,
    pub(crate) extra: Vec<u8>,
    pub(crate) crc32: u32,
    pub(crate) size: u64,
    pub(crate) zip64: bool,
}

impl MadeEntry {
    /// A deflated file with mode 0644.
    pub(crate) fn new(name: &str, content: &[u8]) -> Self {
        let mut packer = DeflateEncoder::new(Vec::new(), Compression::default());
        packer.write_all(content).expect("a vector");
        let mut crc = Crc::new();
        crc.update(content);
        Self {
            name: name.as_bytes().to_vec(),
            local_name: name.as_bytes().to_vec(),
            content: content.to_vec(),
            packed: packer.finish().expect("a vector"),
            method: 8,
            flags: if name.is_ascii() { 0 } else { 1 << 11 },
            mode: 0o100_644,
            extra: Vec::new(),
            crc32: crc.sum(),
            size: content.len() as u64,
            zip64: false,
        }
    }

    /// The same with another mode.
    pub(crate) fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    /// The same without compression.
    pub(crate) fn stored(self) -> Self {
        Self { method: 0, packed: self.content.clone(), ..self }
    }

    /// The same under another name in both headers.
    pub(crate) fn named(self, name: &[u8]) -> Self {
        Self { name: name.to_vec(), local_name: name.to_vec(), ..self }
    }

    /// Its row in RECORD.
    pub(crate) fn row(&self) -> String {
        let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(&self.content));
        let mut name = String::from_utf8_lossy(&self.name).into_owned();
        if name.contains([',', '"']) {
            name = format!("\"{}\"", name.replace('"', "\"\""));
        }
        format!("{name},sha256={hash},{}\n", self.content.len())
    }

    /// The fields that both headers have, from the version to the length of the extra field.
    fn common(&self, name: &[u8], extra: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for field in [20, self.flags, self.method, 0, 0x21] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend(self.crc32.to_le_bytes());
        for size in [self.packed.len() as u64, self.size] {
            bytes.extend(short(size, self.zip64));
        }
        bytes.extend(u16::try_from(name.len()).expect("a short name").to_le_bytes());
        bytes.extend(u16::try_from(extra).expect("a short field").to_le_bytes());
        bytes
    }
}

fn short(value: u64, zip64: bool) -> [u8; 4] {
    if zip64 { [0xff; 4] } else { u32::try_from(value).expect("a small zip").to_le_bytes() }
}

/// Writes a zip of these entries with that comment; `zip64`: with 64-bit end records.
pub(crate) fn zip_of(entries: &[MadeEntry], comment: &[u8], zip64: bool) -> Vec<u8> {
    let (mut zip, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let header = zip.len() as u64;
        zip.extend(b"PK\x03\x04");
        zip.extend(entry.common(&entry.local_name, 0));
        zip.extend(&entry.local_name);
        zip.extend(&entry.packed);
        let mut extra = entry.extra.clone();
        if entry.zip64 {
            extra.extend([1, 0, 24, 0]);
            for value in [entry.size, entry.packed.len() as u64, header] {
                extra.extend(value.to_le_bytes());
            }
        }
        directory.extend(b"PK\x01\x02\x14\x03");
        directory.extend(entry.common(&entry.name, extra.len()));
        directory.extend([0; 6]);
        directory.extend((entry.mode << 16).to_le_bytes());
        directory.extend(short(header, entry.zip64));
        directory.extend(&entry.name);
        directory.extend(&extra);
    }
    let (start, length, count) = (zip.len() as u64, directory.len() as u64, entries.len() as u64);
    zip.extend(&directory);
    if zip64 {
        let record = zip.len() as u64;
        zip.extend(b"PK\x06\x06");
        zip.extend(44_u64.to_le_bytes());
        zip.extend([45, 3, 45, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        for value in [count, count, length, start] {
            zip.extend(value.to_le_bytes());
        }
        zip.extend(b"PK\x06\x07\0\0\0\0");
        zip.extend(record.to_le_bytes());
        zip.extend([1, 0, 0, 0]);
    }
    zip.extend(b"PK\x05\x06\0\0\0\0");
    let count = if zip64 { [0xff; 2] } else { u16::try_from(count).expect("a small zip").to_le_bytes() };
    zip.extend(count);
    zip.extend(count);
    zip.extend(short(length, zip64));
    zip.extend(short(start, zip64));
    zip.extend(u16::try_from(comment.len()).expect("a short comment").to_le_bytes());
    zip.extend(comment);
    zip
}

/// A wheel of version 1.0 that is being described.
#[derive(Debug, Clone)]
pub(crate) struct MadeWheel {
    /// Its distribution.
    pub(crate) name: String,
    /// Its entries, without those of `.dist-info` that `build` adds.
    pub(crate) entries: Vec<MadeEntry>,
    /// RECORD, if not the correct one.
    pub(crate) record: Option<String>,
}

impl MadeWheel {
    /// A wheel with METADATA and WHEEL.
    pub(crate) fn new(name: &str) -> Self {
        let metadata = format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n");
        let tags = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
        let empty = Self { name: name.to_owned(), entries: Vec::new(), record: None };
        empty.info("METADATA", metadata.as_bytes()).info("WHEEL", tags.as_bytes())
    }

    /// One more entry.
    pub(crate) fn entry(mut self, entry: MadeEntry) -> Self {
        self.entries.push(entry);
        self
    }

    /// One more file; a name that ends with `/` is a directory.
    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(MadeEntry::new(name, content))
    }

    /// One more file of `.dist-info`.
    pub(crate) fn info(self, name: &str, content: &[u8]) -> Self {
        let name = format!("{}-1.0.dist-info/{name}", self.name);
        self.file(&name, content)
    }

    /// One more file of `.data`.
    pub(crate) fn data(self, name: &str, content: &[u8]) -> Self {
        let name = format!("{}-1.0.data/{name}", self.name);
        self.file(&name, content)
    }

    /// With that RECORD.
    pub(crate) fn record(self, record: &str) -> Self {
        Self { record: Some(record.to_owned()), ..self }
    }

    /// Without entries of that name.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.entries.retain(|entry| entry.name != name.as_bytes());
        self
    }

    /// Its file name.
    pub(crate) fn file_name(&self) -> String {
        format!("{}-1.0-py3-none-any.whl", self.name)
    }

    /// Its entries with RECORD.
    pub(crate) fn all_entries(&self) -> Vec<MadeEntry> {
        let path = format!("{}-1.0.dist-info/RECORD", self.name);
        let rows = self.entries.iter().filter(|entry| !entry.name.ends_with(b"/")).map(MadeEntry::row);
        let record = self.record.clone().unwrap_or_else(|| rows.collect::<String>() + &path + ",,\n");
        let mut entries = self.entries.clone();
        entries.push(MadeEntry::new(&path, record.as_bytes()));
        entries
    }

    /// Its bytes.
    pub(crate) fn build(&self) -> Vec<u8> {
        zip_of(&self.all_entries(), b"", false)
    }
}
