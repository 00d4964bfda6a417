//! A published wheel read by HTTP ranges: a zip archive with its directory at the end.

use std::cell::Cell;
use std::io::{Error, Read, Seek, SeekFrom};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_RANGE, RANGE};
use zip::ZipArchive;

use super::page::IndexWheel;
use crate::fetch::{Fetcher, HttpRequest};

/// The end that is read first: of most wheels it holds the directory and the metadata.
const TAIL: u64 = 128 << 10;
/// The most that is read before it at once: the directory of the largest wheels is some 3 MB.
const PART: u64 = 2 << 20;
/// Maximum number of ranges: end, directory in two, a file's header, its content, and one spare.
const PARTS: usize = 6;
/// Timeout of one range.
const PATIENCE: Duration = Duration::from_mins(2);

/// Returns the result of `look` in the archive. Calls it again after each missing range.
pub(super) async fn in_archive<T>(
    fetcher: &Fetcher,
    wheel: &IndexWheel,
    look: impl Fn(ZipArchive<RangeReader<'_>>) -> Result<T, String>,
) -> Result<T, String> {
    let mut parts = vec![part(fetcher, wheel, &format!("-{TAIL}"), TAIL).await?];
    loop {
        let missed = Cell::new(None);
        let file = RangeReader { parts: &parts, missed: &missed, at: 0 };
        let found = ZipArchive::new(file).map_err(|error| error.to_string()).and_then(&look);
        match missed.get() {
            Some(at) if parts.len() < PARTS => {
                let (from, to) = window(&parts, at);
                parts.push(part(fetcher, wheel, &format!("{from}-{}", to - 1), PART).await?);
            }
            _ => return found,
        }
    }
}

/// Returns the range to read for a missing offset, between its known neighbours. `zip` also searches backwards in small steps, so a
/// gap that is no larger than a part is read whole.
fn window(parts: &[Part], at: u64) -> (u64, u64) {
    let next = parts.iter().map(|part| part.start).filter(|start| *start > at).min();
    let before = parts.iter().map(Part::end).filter(|end| *end <= at).max().unwrap_or(0);
    match next {
        Some(next) if next - at <= PART => (before.max(next.saturating_sub(PART)), next),
        _ => (at, at.saturating_add(PART)),
    }
}

/// A directory entry of the archive.
pub(super) struct Member {
    pub(super) name: String,
    /// Offset of its local header; the content follows it.
    pub(super) start: u64,
    /// Compressed size.
    pub(super) stored: u64,
    /// Bytes of the file.
    pub(super) size: u64,
    /// 0: stored as it is; 8: deflated.
    pub(super) method: u16,
}

/// Returns the members of the directory alone: `zip` also reads each local header, which are spread over the file.
pub(super) async fn members(fetcher: &Fetcher, wheel: &IndexWheel) -> Result<Vec<Member>, String> {
    in_archive(fetcher, wheel, |archive| {
        let (start, count) = (archive.central_directory_start(), archive.len());
        let mut file = archive.into_inner();
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
        file.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
        directory(&bytes, count).ok_or_else(|| "cannot read its directory".to_owned())
    })
    .await
}

/// Parses the entries of a directory; `None` for an invalid one, and for files of more than 4 GB.
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
    /// Returns the bytes from that offset on.
    fn from(&self, at: u64) -> Option<&[u8]> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        self.bytes.get(offset..).filter(|rest| !rest.is_empty())
    }

    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }
}

/// A part of a wheel: `100-199`, or `-200` for its last 200 bytes.
pub(super) async fn part(
    fetcher: &Fetcher,
    wheel: &IndexWheel,
    range: &str,
    limit: u64,
) -> Result<Part, String> {
    let mut ask = HttpRequest::get(wheel.address.clone(), limit, PATIENCE);
    ask.header(RANGE, &format!("bytes={range}"));
    let answer = fetcher.ask(&ask).await.map_err(|error| error.to_string())?;
    let start = match answer.status {
        // Smaller than requested.
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => answer
            .header(CONTENT_RANGE.as_str())
            .and_then(start_of)
            .ok_or("the index did not send a range")?,
        status => return Err(format!("unexpected status {status}")),
    };
    Ok(Part { start, bytes: answer.body })
}

/// Returns the start of a range: `bytes 100-199/200`.
fn start_of(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// A file of which some parts are known; a read elsewhere fails and is remembered.
pub(super) struct RangeReader<'a> {
    parts: &'a [Part],
    missed: &'a Cell<Option<u64>>,
    at: u64,
}

impl RangeReader<'_> {
    /// The first part is the file's end.
    fn length(&self) -> u64 {
        self.parts[0].end()
    }
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at >= self.length() || buffer.is_empty() {
            return Ok(0);
        }
        let Some(rest) = self.parts.iter().find_map(|part| part.from(self.at)) else {
            self.missed.set(Some(self.at));
            return Err(Error::other("unread range"));
        };
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for RangeReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length().checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = to.ok_or_else(|| Error::other("seek before the start"))?;
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
