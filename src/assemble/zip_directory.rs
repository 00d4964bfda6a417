//! The central directory of a wheel, read by hand: the `zip` crate merges entries of one name and does not report them.
//!
//! Owns which zip files are accepted. Every problem is reported, not the first only.

use std::io;

use super::read_at::ReadAt;
use super::zip_entry::{Central, LOCAL_SIZE, ZipEntry};
use crate::model::entry_name::{collisions, problem, quoted};

/// Largest central directory that is read; PyTorch's has 2 MB.
const LIMIT: u64 = 256 << 20;
/// Bytes of all entries, unpacked, that need no ratio: a small wheel may have a large file of zeros.
const UNPACKED: u64 = 1 << 30;
/// Bytes unpacked for each byte of a larger wheel. DEFLATE reaches 1032, with content that only repeats.
const RATIO: u64 = 200;
const END_SIZE: usize = 22;
const END64_SIZE: usize = 56;
const LOCATOR_SIZE: usize = 20;
const CENTRAL_SIZE: usize = 46;

/// Why the entries of a wheel cannot be listed.
#[derive(Debug)]
pub(super) enum ZipError {
    /// The wheel could not be read.
    Io(io::Error),
    /// The wheel is refused, for all these reasons.
    Refused(Vec<String>),
}

impl From<io::Error> for ZipError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn refused<T>(reason: &str) -> Result<T, ZipError> {
    Err(ZipError::Refused(vec![reason.to_owned()]))
}

/// Returns every entry in the order of the central directory. `size` is the wheel's.
pub(super) fn read_entries(source: &(impl ReadAt + ?Sized), size: u64) -> Result<Vec<ZipEntry>, ZipError> {
    let end = find_end(source, size)?;
    if end.length > LIMIT {
        return refused("its list of entries is too large");
    }
    let bytes = source.bytes_at(end.start, usize::try_from(end.length).unwrap_or(usize::MAX))?;
    let Some(records) = parse(&bytes, end.count) else {
        return refused("its list of entries is damaged");
    };
    let mut reasons = Vec::new();
    let mut entries = Vec::with_capacity(records.len());
    let mut ranges = Vec::with_capacity(records.len());
    for record in records {
        match checked(source, &record, end.start) {
            Ok(entry) => {
                ranges.push((record.header, entry.start + entry.packed, entries.len()));
                entries.push(entry);
            }
            Err(ZipError::Refused(mut found)) => reasons.append(&mut found),
            Err(error) => return Err(error),
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if pair[0].1 > pair[1].0 {
            let name = &entries[pair[1].2].name;
            reasons.push(format!("{}: its bytes belong to another entry as well", quoted(name)));
        }
    }
    reasons.extend(collisions(entries.iter().map(|entry| entry.name.as_str())));
    reasons.extend(too_large(&entries, size));
    if reasons.is_empty() { Ok(entries) } else { Err(ZipError::Refused(reasons)) }
}

/// Why nothing is unpacked of a wheel of that size with these entries; `None` if their sizes are sane.
fn too_large(entries: &[ZipEntry], size: u64) -> Option<String> {
    let unpacked = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.size));
    let is_sane = unpacked <= UNPACKED || unpacked / RATIO <= size;
    (!is_sane).then(|| format!("it unpacks to {unpacked} bytes, more than {RATIO} times its own {size}"))
}

/// The place of the central directory.
struct End {
    start: u64,
    length: u64,
    count: u64,
}

/// Returns the place of the central directory, which ends where the end record begins.
fn find_end(source: &(impl ReadAt + ?Sized), size: u64) -> Result<End, ZipError> {
    // The comment of the archive has at most 65535 bytes.
    let length = size.min((END_SIZE + usize::from(u16::MAX)) as u64);
    let tail = source.bytes_at(size - length, usize::try_from(length).unwrap_or(usize::MAX))?;
    let fits = |at: &usize| {
        tail[*at..].starts_with(b"PK\x05\x06")
            && u16_at(&tail, at + 20) == (tail.len() - at - END_SIZE) as u64
    };
    let last = tail.len().checked_sub(END_SIZE);
    let Some(at) = last.and_then(|last| (0..=last).rev().find(fits)) else {
        return refused("it is not a zip file");
    };
    let (record, position) = (&tail[at..], size - length + at as u64);
    let (disk, counts) = (u16_at(record, 4) | u16_at(record, 6), [u16_at(record, 8), u16_at(record, 10)]);
    let short = End { start: u32_at(record, 16), length: u32_at(record, 12), count: counts[1] };
    let (end, position) = match long_end(source, position)? {
        Some((long, long_position)) => {
            let same = |short: u64, long: u64, limit: u64| short == limit || short == long;
            let agree = same(short.start, long.start, 0xffff_ffff)
                && same(short.length, long.length, 0xffff_ffff)
                && same(short.count, long.count, 0xffff);
            if !agree {
                return refused("its two end records differ");
            }
            (long, long_position)
        }
        None if disk != 0 || counts[0] != counts[1] => return refused("it is split over several files"),
        None => (short, position),
    };
    if end.start.checked_add(end.length) != Some(position) {
        return refused("its list of entries is not at the end of the file");
    }
    Ok(end)
}

/// Returns the zip64 end record and its position, if a locator stands before the end record.
fn long_end(source: &(impl ReadAt + ?Sized), position: u64) -> Result<Option<(End, u64)>, ZipError> {
    let Some(at) = position.checked_sub(LOCATOR_SIZE as u64) else { return Ok(None) };
    let locator = source.bytes_at(at, LOCATOR_SIZE)?;
    if !locator.starts_with(b"PK\x06\x07") {
        return Ok(None);
    }
    let start = u64_at(&locator, 8);
    if start.checked_add(END64_SIZE as u64).is_none_or(|end| end > at) {
        return refused("its end record is damaged");
    }
    let record = source.bytes_at(start, END64_SIZE)?;
    if !record.starts_with(b"PK\x06\x06") || u64_at(&record, 24) != u64_at(&record, 32) {
        return refused("its end record is damaged");
    }
    let end = End { start: u64_at(&record, 48), length: u64_at(&record, 40), count: u64_at(&record, 32) };
    Ok(Some((end, start)))
}

/// Returns the records of a central directory; `None` if they are not exactly its bytes and its count.
fn parse(mut bytes: &[u8], count: u64) -> Option<Vec<Central>> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let fixed = bytes.get(..CENTRAL_SIZE).filter(|fixed| fixed.starts_with(b"PK\x01\x02"))?;
        let length = |at: usize| usize::try_from(u16_at(fixed, at)).unwrap_or(usize::MAX);
        let name_end = CENTRAL_SIZE + length(28);
        let extra_end = name_end + length(30);
        let end = extra_end + length(32);
        let record = Central {
            name: bytes.get(CENTRAL_SIZE..name_end)?.to_vec(),
            extra: bytes.get(name_end..extra_end)?.to_vec(),
            flags: narrow(u16_at(fixed, 8)),
            method: narrow(u16_at(fixed, 10)),
            crc32: u32::try_from(u32_at(fixed, 16)).unwrap_or(0),
            packed: u32_at(fixed, 20),
            size: u32_at(fixed, 24),
            attributes: u32::try_from(u32_at(fixed, 38)).unwrap_or(0),
            header: u32_at(fixed, 42),
        };
        records.push(record.with_zip64()?);
        bytes = bytes.get(end..)?;
    }
    (records.len() as u64 == count).then_some(records)
}

/// Returns the entry of a record after all checks; `limit` is where entries end.
fn checked(source: &(impl ReadAt + ?Sized), record: &Central, limit: u64) -> Result<ZipEntry, ZipError> {
    let name = record.utf8_name().map_err(|reason| ZipError::Refused(vec![reason]))?;
    let mut reasons: Vec<String> = problem(name).map(str::to_owned).into_iter().collect();
    let method = record.supported_method().map_err(|reason| reasons.push(reason)).ok();
    if name.ends_with('/') && record.size != 0 {
        reasons.push("it is a directory with content".to_owned());
    }
    let fixed = record.header.checked_add(LOCAL_SIZE as u64).filter(|end| *end <= limit);
    let mut start = None;
    if let Some(fixed) = fixed {
        let mut local = [0; LOCAL_SIZE];
        source.read_at(&mut local, record.header)?;
        match record.matching_local(&local) {
            Ok(extra) => {
                let begin = fixed + record.name.len() as u64 + extra as u64;
                start = begin.checked_add(record.packed).filter(|end| *end <= limit).map(|_| begin);
                if start.is_some() && source.bytes_at(fixed, record.name.len())? != record.name {
                    reasons.push("its two headers differ".to_owned());
                }
            }
            Err(reason) => reasons.push(reason),
        }
    }
    match (method, start) {
        (Some(method), Some(start)) if reasons.is_empty() => Ok(ZipEntry {
            name: name.to_owned(),
            executable: record.is_executable(),
            method,
            crc32: record.crc32,
            packed: record.packed,
            size: record.size,
            start,
        }),
        _ => {
            if reasons.is_empty() {
                reasons.push("its bytes are outside the file".to_owned());
            }
            Err(ZipError::Refused(
                reasons.iter().map(|reason| format!("{}: {reason}", quoted(name))).collect(),
            ))
        }
    }
}

fn narrow(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

fn u16_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

fn u32_at(bytes: &[u8], at: usize) -> u64 {
    u16_at(bytes, at) | u16_at(bytes, at + 2) << 16
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u32_at(bytes, at) | u32_at(bytes, at + 4) << 32
}
