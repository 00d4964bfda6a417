//! The metadata of a published wheel, without its gigabytes: the file beside it, else the end of the wheel itself, which is
//! a zip archive whose directory stands last.

use std::cell::Cell;
use std::io::{Error, Read, Seek, SeekFrom};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_RANGE, RANGE};

use super::page::Listed;
use crate::fetch::{Ask, Fetcher};

/// More than any metadata.
const LIMIT: u64 = 4 << 20;
/// The end that is read first: of most wheels it holds the directory and the metadata.
const TAIL: u64 = 128 << 10;
/// The most that is read before it at once: the directory of the largest wheels is some 1.5 MB.
const PART: u64 = 2 << 20;
/// How many parts are read: end, directory, metadata, and one to spare.
const PARTS: usize = 4;
/// How long one part may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// `METADATA` of a wheel; an error says why it cannot be read.
pub(crate) async fn metadata(fetcher: &Fetcher, wheel: &Listed) -> Result<String, String> {
    if wheel.metadata_apart {
        let address = format!("{}.metadata", wheel.address.expose());
        let address = address.parse().map_err(|_| "its address cannot be read".to_owned())?;
        let bytes = fetcher.document(&address, LIMIT).await.map_err(|error| error.to_string())?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let mut parts = vec![part(fetcher, wheel, &format!("-{TAIL}"), TAIL).await?];
    loop {
        let (text, missed) = in_zip(&parts);
        match missed {
            Some(at) if parts.len() < PARTS => {
                let next = parts.iter().map(|part| part.start).filter(|start| *start > at).min();
                let end = next.unwrap_or(u64::MAX).min(at.saturating_add(PART));
                parts.push(part(fetcher, wheel, &format!("{at}-{}", end - 1), PART).await?);
            }
            _ => return text,
        }
    }
}

/// A part of a file, at its place.
struct Part {
    start: u64,
    bytes: Bytes,
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

async fn part(fetcher: &Fetcher, wheel: &Listed, range: &str, limit: u64) -> Result<Part, String> {
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

/// The metadata, and the place that had to be read and is in no part.
fn in_zip(parts: &[Part]) -> (Result<String, String>, Option<u64>) {
    let missed = Cell::new(None);
    let read = || {
        let file = Sparse { parts, missed: &missed, at: 0 };
        let mut archive = zip::ZipArchive::new(file).map_err(|error| error.to_string())?;
        let name = archive.file_names().find(|name| name.ends_with(".dist-info/METADATA")).map(str::to_owned);
        let entry = archive.by_name(&name.ok_or("it has no METADATA")?).map_err(|error| error.to_string())?;
        let mut text = String::new();
        entry.take(LIMIT).read_to_string(&mut text).map_err(|error| error.to_string())?;
        Ok(text)
    };
    (read(), missed.get())
}

/// A file of which some parts are known; a read elsewhere fails and is remembered.
struct Sparse<'a> {
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
mod tests {
    use std::io::{Cursor, Write as _};

    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, Request, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;

    const TEXT: &str = "Name: a\nRequires-Dist: b==1\n";

    /// The metadata before or after half a megabyte of something else.
    fn wheel(first: bool) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        let mut add = |name: &str, content: &[u8]| {
            writer.start_file(name, stored).expect("entry");
            writer.write_all(content).expect("written");
        };
        if first {
            add("a-1.0.dist-info/METADATA", TEXT.as_bytes());
        }
        add("a/large.bin", &vec![7; 500_000]);
        if !first {
            add("a-1.0.dist-info/METADATA", TEXT.as_bytes());
        }
        writer.finish().expect("zip").into_inner()
    }

    /// Serves parts of that file.
    fn parts(whole: Vec<u8>) -> impl Fn(&Request) -> ResponseTemplate {
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

    async fn asked(answer: impl wiremock::Respond + 'static) -> (Result<String, String>, usize) {
        let server = MockServer::start().await;
        Mock::given(path("/a-1.0-py3-none-any.whl")).respond_with(answer).mount(&server).await;
        let page = "<a href='a-1.0-py3-none-any.whl'>";
        let base = format!("{}/", server.uri()).parse().expect("an address");
        let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
        let fetcher = Fetcher::new(&settings).expect("a client");
        let read = metadata(&fetcher, &super::super::listed(page, &base)[0]).await;
        (read, server.received_requests().await.map_or(0, |all| all.len()))
    }

    #[tokio::test]
    async fn the_end_of_a_wheel_is_enough_or_one_part_more() {
        assert_eq!(asked(parts(wheel(false))).await, (Ok(TEXT.to_owned()), 1));
        assert_eq!(asked(parts(wheel(true))).await, (Ok(TEXT.to_owned()), 2));
        let small = ResponseTemplate::new(200).set_body_bytes(&wheel(false)[500_000..]);
        assert!(asked(small).await.0.is_err(), "half a file");
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_told() {
        assert_eq!(
            asked(ResponseTemplate::new(403)).await.0.unwrap_err(),
            "the index answered 403 Forbidden"
        );
        assert!(asked(ResponseTemplate::new(200).set_body_string("no zip")).await.0.is_err());
        let endless = ResponseTemplate::new(200).set_body_bytes(vec![0; 1 << 20]);
        assert!(
            asked(endless).await.0.unwrap_err().contains("is larger than"),
            "an index that ignores the range"
        );
    }
}
