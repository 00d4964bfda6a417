//! A published wheel read where it lies: a zip archive whose directory stands last, asked for in parts.

use std::cell::Cell;
use std::io::{Error, Read, Seek, SeekFrom};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_RANGE, RANGE};
use zip::ZipArchive;

use super::page::Listed;
use crate::fetch::{Ask, Fetcher};

/// The end that is read first: of most wheels it holds the directory and the metadata.
const TAIL: u64 = 128 << 10;
/// The most that is read before it at once: the directory of the largest wheels is some 1.5 MB.
const PART: u64 = 2 << 20;
/// How many parts are read: end, directory, what is looked for, and one to spare.
const PARTS: usize = 4;
/// How long one part may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// What `look` finds in the archive. It is called again after each part that it lacked.
pub(super) async fn in_archive<T>(
    fetcher: &Fetcher,
    wheel: &Listed,
    look: impl Fn(ZipArchive<Sparse<'_>>) -> Result<T, String>,
) -> Result<T, String> {
    let mut parts = vec![part(fetcher, wheel, &format!("-{TAIL}"), TAIL).await?];
    loop {
        let missed = Cell::new(None);
        let file = Sparse { parts: &parts, missed: &missed, at: 0 };
        let found = ZipArchive::new(file).map_err(|error| error.to_string()).and_then(&look);
        match missed.get() {
            Some(at) if parts.len() < PARTS => {
                let next = parts.iter().map(|part| part.start).filter(|start| *start > at).min();
                let end = next.unwrap_or(u64::MAX).min(at.saturating_add(PART));
                parts.push(part(fetcher, wheel, &format!("{at}-{}", end - 1), PART).await?);
            }
            _ => return found,
        }
    }
}

/// What the archive's directory says of a member.
pub(super) struct Member {
    pub(super) name: String,
    /// Where its own head stands; the content follows it.
    pub(super) start: u64,
    /// Bytes as they lie there.
    pub(super) stored: u64,
    /// Bytes of the file.
    pub(super) size: u64,
    /// 0: stored as it is; 8: deflated.
    pub(super) method: u16,
}

/// The members, by the directory alone: `zip` reads each member's own head too, which lie all over the file.
pub(super) async fn members(fetcher: &Fetcher, wheel: &Listed) -> Result<Vec<Member>, String> {
    in_archive(fetcher, wheel, |archive| {
        let (start, count) = (archive.central_directory_start(), archive.len());
        let mut file = archive.into_inner();
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
        file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        directory(&bytes, count).ok_or_else(|| "its directory cannot be read".to_owned())
    })
    .await
}

/// Reads so many entries; `None` for what is no directory, and for files of more than 4 GB.
fn directory(mut bytes: &[u8], count: usize) -> Option<Vec<Member>> {
    const HEAD: usize = 46;
    let mut members = Vec::new();
    for _ in 0..count {
        let two = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let four = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (name, more) = (usize::from(two(28)?), usize::from(two(30)?) + usize::from(two(32)?));
        let (stored, size, start) = (four(20)?, four(24)?, four(42)?);
        if bytes.get(..4)? != b"PK\x01\x02" || [stored, size, start].contains(&u32::MAX) {
            return None;
        }
        let text = String::from_utf8_lossy(bytes.get(HEAD..HEAD + name)?).into_owned();
        let (start, stored, size) = (u64::from(start), u64::from(stored), u64::from(size));
        members.push(Member { name: text, start, stored, size, method: two(10)? });
        bytes = bytes.get(HEAD + name + more..)?;
    }
    Some(members)
}

/// A part of a file, at its place.
pub(super) struct Part {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
}

impl Part {
    /// What of it lies at that place and after.
    fn from(&self, at: u64) -> Option<&[u8]> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// A part of a wheel: `100-199`, or `-200` for its last 200 bytes.
pub(super) async fn part(fetcher: &Fetcher, wheel: &Listed, range: &str, limit: u64) -> Result<Part, String> {
    let mut ask = Ask::get(wheel.address.clone(), limit, PATIENCE);
    ask.header(RANGE, &format!("bytes={range}"));
    let answer = fetcher.ask(&ask).await.map_err(|error| error.to_string())?;
    let start = match answer.status {
        // Smaller than what was asked for.
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => answer
            .header(CONTENT_RANGE.as_str())
            .and_then(start_of)
            .ok_or("the index does not say which part it sent")?,
        status => return Err(format!("the index answered {status}")),
    };
    Ok(Part { start, bytes: answer.body })
}

/// Where a part begins: `bytes 100-199/200`.
fn start_of(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// A file of which some parts are known; a read elsewhere fails and is remembered.
pub(super) struct Sparse<'a> {
    parts: &'a [Part],
    missed: &'a Cell<Option<u64>>,
    at: u64,
}

impl Sparse<'_> {
    /// The first part is the file's end.
    fn length(&self) -> u64 {
        self.parts[0].end()
    }
}

impl Read for Sparse<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at >= self.length() || buffer.is_empty() {
            return Ok(0);
        }
        let Some(rest) = self.parts.iter().find_map(|part| part.from(self.at)) else {
            self.missed.set(Some(self.at));
            return Err(Error::other("a part that was not read"));
        };
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Sparse<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or_else(|| Error::other("a place before the file"))?;
        Ok(self.at)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use wiremock::{Request, ResponseTemplate};

    /// Serves parts of that file.
    pub(crate) fn parts(whole: Vec<u8>) -> impl Fn(&Request) -> ResponseTemplate {
        move |asked: &Request| {
            let range =
                asked.headers["range"].to_str().expect("text").trim_start_matches("bytes=").to_owned();
            let (from, to) = range.split_once('-').expect("a range");
            let (last, size) = (whole.len() - 1, whole.len());
            let (from, to) = match from.parse::<usize>() {
                Ok(from) => (from, to.parse::<usize>().map_or(last, |to| to.min(last))),
                Err(_) => (size - to.parse::<usize>().expect("a length").min(size), last),
            };
            let says = format!("bytes {from}-{to}/{size}");
            ResponseTemplate::new(206).insert_header("content-range", says).set_body_bytes(&whole[from..=to])
        }
    }
}
