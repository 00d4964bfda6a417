//! One entry of a wheel's central directory, and the checks of its local header.

use crate::model::entry_name::quoted;

/// The compression of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Method 0: the bytes as they are.
    Stored,
    /// Method 8: a raw DEFLATE stream.
    Deflated,
}

/// One entry of a wheel; the central directory and the local header agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ZipEntry {
    /// The name; directories end with `/`.
    pub(crate) name: String,
    /// Whether any execute bit of the file's mode is set.
    pub(crate) executable: bool,
    /// The compression.
    pub(crate) method: Method,
    /// CRC-32 of the content.
    pub(crate) crc32: u32,
    /// Bytes in the wheel.
    pub(crate) packed: u64,
    /// Bytes of the content.
    pub(crate) size: u64,
    /// Where the entry's bytes begin in the wheel.
    pub(crate) start: u64,
}

impl ZipEntry {
    /// Whether it is a directory.
    pub(crate) fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}

/// An entry as its central directory record has it.
#[derive(Debug, Clone)]
pub(super) struct Central {
    pub(super) name: Vec<u8>,
    pub(super) extra: Vec<u8>,
    pub(super) flags: u16,
    pub(super) method: u16,
    pub(super) crc32: u32,
    pub(super) packed: u64,
    pub(super) size: u64,
    pub(super) attributes: u32,
    /// Where its local header begins.
    pub(super) header: u64,
}

/// Flag bits: encryption, and those of strong and of central directory encryption.
const ENCRYPTED: u16 = 1 | 1 << 6 | 1 << 13;
/// Flag bit: compressed patched data.
const PATCHED: u16 = 1 << 5;
/// Flag bit: CRC and sizes follow the data.
const DESCRIPTOR: u16 = 1 << 3;
/// Flag bit: the name is UTF-8.
const UTF8: u16 = 1 << 11;
/// The extra field with another name in UTF-8.
const UNICODE_PATH: u16 = 0x7075;
/// The extra field with 64-bit sizes.
const ZIP64: u16 = 1;
/// A 32-bit field whose value is in the zip64 field.
const IN_ZIP64: u64 = 0xffff_ffff;

/// Size of a local header without name and extra field.
pub(super) const LOCAL_SIZE: usize = 30;

impl Central {
    /// Replaces sizes and position by those of the zip64 field; `None` if it is too short.
    pub(super) fn with_zip64(mut self) -> Option<Self> {
        let wanted = [&mut self.size, &mut self.packed, &mut self.header];
        let wanted: Vec<_> = wanted.into_iter().filter(|field| **field == IN_ZIP64).collect();
        if let Some((_, field)) = extras(&self.extra).find(|(id, _)| *id == ZIP64) {
            for (target, bytes) in wanted.into_iter().zip(0..) {
                let bytes: [u8; 8] = field.get(bytes * 8..bytes * 8 + 8)?.try_into().ok()?;
                *target = u64::from_le_bytes(bytes);
            }
        }
        Some(self)
    }

    /// Returns the name in UTF-8, or why it has none.
    pub(super) fn utf8_name(&self) -> Result<&str, String> {
        let lossy = || quoted(&String::from_utf8_lossy(&self.name));
        let name =
            std::str::from_utf8(&self.name).map_err(|_| format!("{}: the name is not UTF-8", lossy()))?;
        if self.flags & UTF8 == 0 && !name.is_ascii() {
            return Err(format!("{}: the name is not marked as UTF-8", lossy()));
        }
        // Version, CRC-32, then the name.
        let other = |(id, field): (u16, &[u8])| id == UNICODE_PATH && field.get(5..) != Some(&self.name);
        if extras(&self.extra).any(other) {
            return Err(format!("{}: the entry has a second name", lossy()));
        }
        Ok(name)
    }

    /// Returns the compression, or why the content cannot be read.
    pub(super) fn supported_method(&self) -> Result<Method, String> {
        if self.flags & ENCRYPTED != 0 {
            return Err("it is encrypted".to_owned());
        }
        if self.flags & PATCHED != 0 {
            return Err("it contains patch data".to_owned());
        }
        match self.method {
            0 if self.packed == self.size => Ok(Method::Stored),
            0 => Err(format!("stored with {} bytes for {}", self.packed, self.size)),
            8 => Ok(Method::Deflated),
            other => Err(format!("unsupported compression method {other}")),
        }
    }

    /// Whether the mode has an execute bit, whatever system wrote the zip: this is uv's rule.
    pub(super) fn is_executable(&self) -> bool {
        (self.attributes >> 16) & 0o111 != 0
    }

    /// Returns the length of the extra field of a matching local header: `local` is the header without its variable part.
    pub(super) fn matching_local(&self, local: &[u8; LOCAL_SIZE]) -> Result<usize, String> {
        let u16_at = |at: usize| u16::from_le_bytes([local[at], local[at + 1]]);
        let u32_at = |at: usize| u64::from(u16_at(at)) | u64::from(u16_at(at + 2)) << 16;
        let same = |found: u64, wanted: u64| found == wanted || found == IN_ZIP64;
        let (flags, described) = (u16_at(6), u16_at(6) & DESCRIPTOR != 0);
        let agree = local[..4] == *b"PK\x03\x04"
            && u16_at(8) == self.method
            && flags & (ENCRYPTED | PATCHED | UTF8) == self.flags & (ENCRYPTED | PATCHED | UTF8)
            && usize::from(u16_at(26)) == self.name.len()
            && (described
                || (u32_at(14) == u64::from(self.crc32)
                    && same(u32_at(18), self.packed)
                    && same(u32_at(22), self.size)));
        if agree { Ok(usize::from(u16_at(28))) } else { Err("its two headers differ".to_owned()) }
    }
}

/// Returns the extra fields; a truncated one ends the list.
fn extras(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [a, b, c, d, ..] = *bytes else { return None };
        let end = 4 + usize::from(u16::from_le_bytes([c, d]));
        let field = bytes.get(4..end)?;
        bytes = &bytes[end..];
        Some((u16::from_le_bytes([a, b]), field))
    })
}
