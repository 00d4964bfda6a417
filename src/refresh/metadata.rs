//! The metadata of a published wheel, without its gigabytes: the file beside it, else the end of the wheel itself, which is
//! a zip archive whose directory stands last.

use std::io::{Cursor, Error, Read, Seek, SeekFrom};
use std::time::Duration;

use http::StatusCode;
use http::header::{CONTENT_RANGE, RANGE};

use super::page::Listed;
use crate::fetch::{Ask, FetchError, Fetcher};

/// More than any metadata.
const LIMIT: u64 = 4 << 20;
/// The directory of the largest wheels is some 1.5 MB, and their metadata stands right before it.
const TAIL: u64 = 3 << 20;
/// How long one part may take.
const PATIENCE: Duration = Duration::from_mins(2);

/// `METADATA` of a wheel; an error says why it cannot be read.
pub(crate) async fn metadata(fetcher: &Fetcher, wheel: &Listed) -> Result<String, String> {
    let said = |error: FetchError| error.to_string();
    if wheel.metadata_apart {
        let address = format!("{}.metadata", wheel.address.expose());
        let address = address.parse().map_err(|_| "its address cannot be read".to_owned())?;
        let bytes = fetcher.document(&address, LIMIT).await.map_err(said)?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    let mut ask = Ask::get(wheel.address.clone(), TAIL, PATIENCE);
    ask.header(RANGE, &format!("bytes=-{TAIL}"));
    let answer = fetcher.ask(&ask).await.map_err(said)?;
    let start = match answer.status {
        // Smaller than what was asked for.
        StatusCode::OK => 0,
        StatusCode::PARTIAL_CONTENT => {
            answer.header(CONTENT_RANGE.as_str()).and_then(start_of).ok_or("no range")?
        }
        status => return Err(format!("the index answered {status}")),
    };
    in_zip(Tail { start, bytes: Cursor::new(&answer.body) })
}

/// Where a part begins: `bytes 100-199/200`.
fn start_of(range: &str) -> Option<u64> {
    range.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

fn in_zip(tail: Tail<'_>) -> Result<String, String> {
    let mut archive = zip::ZipArchive::new(tail).map_err(|error| error.to_string())?;
    let name = archive.file_names().find(|name| name.ends_with(".dist-info/METADATA")).map(str::to_owned);
    let entry = archive.by_name(&name.ok_or("it has no METADATA")?).map_err(|error| error.to_string())?;
    let mut text = String::new();
    entry.take(LIMIT).read_to_string(&mut text).map_err(|error| error.to_string())?;
    Ok(text)
}

/// The end of a file, at its place: what lies before it cannot be read.
struct Tail<'a> {
    start: u64,
    bytes: Cursor<&'a [u8]>,
}

impl Read for Tail<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.bytes.read(buffer)
    }
}

impl Seek for Tail<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        let to = match to {
            SeekFrom::Start(at) => SeekFrom::Start(
                at.checked_sub(self.start)
                    .ok_or_else(|| Error::other("it stands before the part that was read"))?,
            ),
            other => other,
        };
        Ok(self.bytes.seek(to)? + self.start)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use wiremock::matchers::{header, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::fetch::FetchSettings;

    fn wheel() -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored = zip::write::SimpleFileOptions::default();
        writer
            .start_file("a/large.bin", stored.compression_method(zip::CompressionMethod::Stored))
            .expect("entry");
        writer.write_all(&vec![7; 100_000]).expect("written");
        writer.start_file("a-1.0.dist-info/METADATA", stored).expect("entry");
        writer.write_all(b"Name: a\nRequires-Dist: b==1\n").expect("written");
        writer.finish().expect("zip").into_inner()
    }

    async fn asked(answer: ResponseTemplate) -> Result<String, String> {
        let server = MockServer::start().await;
        let asked =
            Mock::given(path("/a-1.0-py3-none-any.whl")).and(header("range", format!("bytes=-{TAIL}")));
        asked.respond_with(answer).mount(&server).await;
        let page = "<a href='a-1.0-py3-none-any.whl'>";
        let base = format!("{}/", server.uri()).parse().expect("an address");
        let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
        let fetcher = Fetcher::new(&settings).expect("a client");
        metadata(&fetcher, &super::super::listed(page, &base)[0]).await
    }

    #[tokio::test]
    async fn the_end_of_a_wheel_is_enough() {
        let whole = wheel();
        let (from, to) = (whole.len() - 600, whole.len() - 1);
        let range = format!("bytes {from}-{to}/{}", whole.len());
        let part =
            ResponseTemplate::new(206).insert_header("content-range", range).set_body_bytes(&whole[from..]);
        assert_eq!(asked(part).await.as_deref(), Ok("Name: a\nRequires-Dist: b==1\n"));
        let all = ResponseTemplate::new(200).set_body_bytes(whole.clone());
        assert_eq!(asked(all).await.as_deref(), Ok("Name: a\nRequires-Dist: b==1\n"));
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_told() {
        let whole = wheel();
        let from = whole.len() - 100;
        let range = format!("bytes {from}-{}/{}", whole.len() - 1, whole.len());
        let part =
            ResponseTemplate::new(206).insert_header("content-range", range).set_body_bytes(&whole[from..]);
        assert!(asked(part).await.is_err());
        assert_eq!(asked(ResponseTemplate::new(403)).await.unwrap_err(), "the index answered 403 Forbidden");
        assert!(asked(ResponseTemplate::new(200).set_body_string("no zip")).await.is_err());
    }
}
