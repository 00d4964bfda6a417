//! The metadata of a published wheel, without downloading it: from the file next to it, else from ranges of the wheel.

use super::page::IndexWheel;
use super::remote_zip::in_archive;
use crate::fetch::Fetcher;
use crate::model::bounded::read_text_bounded;

/// More than any metadata.
const LIMIT: u64 = 4 << 20;

/// Returns `METADATA` of a wheel; an error says why it cannot be read.
pub(crate) async fn metadata(fetcher: &Fetcher, wheel: &IndexWheel) -> Result<String, String> {
    if wheel.metadata_apart {
        let address = format!("{}.metadata", wheel.address.expose());
        let address = address.parse().map_err(|_| "invalid address".to_owned())?;
        let bytes = fetcher.document(&address, LIMIT).await.map_err(|error| error.to_string())?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    in_archive(fetcher, wheel, |mut archive| {
        let name = archive.file_names().find(|name| name.ends_with(".dist-info/METADATA")).map(str::to_owned);
        let entry = archive.by_name(&name.ok_or("it has no METADATA")?).map_err(|error| error.to_string())?;
        read_text_bounded(entry, LIMIT).map_err(|error| error.to_string())
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Write as _};

    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::super::remote_zip::tests::parts;
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
    async fn metadata_is_read_from_one_or_two_ranges() {
        assert_eq!(asked(parts(wheel(false))).await, (Ok(TEXT.to_owned()), 1));
        assert_eq!(asked(parts(wheel(true))).await, (Ok(TEXT.to_owned()), 2));
        let small = ResponseTemplate::new(200).set_body_bytes(&wheel(false)[500_000..]);
        assert!(asked(small).await.0.is_err(), "half a file");
    }

    #[tokio::test]
    async fn metadata_is_read_although_the_directory_needs_several_ranges() {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let stored =
            zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
        writer.start_file("a/large.bin", stored).expect("entry");
        writer.write_all(&vec![7; 3 << 20]).expect("written");
        writer.start_file("a-1.0.dist-info/METADATA", stored).expect("entry");
        writer.write_all(TEXT.as_bytes()).expect("written");
        writer.start_file("a/second.bin", stored).expect("entry");
        writer.write_all(&vec![7; 3 << 20]).expect("written");
        let long = "n".repeat(200);
        for number in 0..11_000 {
            writer.start_file(format!("a/{long}{number}"), stored).expect("entry");
        }
        let wheel = writer.finish().expect("zip").into_inner();
        assert_eq!(asked(parts(wheel)).await.0, Ok(TEXT.to_owned()));
    }

    #[tokio::test]
    async fn unreadable_metadata_is_reported() {
        assert_eq!(asked(ResponseTemplate::new(403)).await.0.unwrap_err(), "unexpected status 403 Forbidden");
        assert!(asked(ResponseTemplate::new(200).set_body_string("no zip")).await.0.is_err());
        let endless = ResponseTemplate::new(200).set_body_bytes(vec![0; 1 << 20]);
        assert!(
            asked(endless).await.0.unwrap_err().contains("is larger than"),
            "an index that ignores the range"
        );
    }
}
