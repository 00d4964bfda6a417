//! uv's own wheel: found on the package index, checked against its known hash, its program taken out.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::io::{Read, Seek, Write};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use super::error::{PackagesError, ToolOutput};
use super::index_page::links;
use super::limits::{LARGEST_PAGE, LARGEST_PROGRAM};
use super::redact::without_addresses;
use super::uv_by_pip::wheel_by_pip;
use super::uv_source::{UvSource, unusable};
use crate::fetch::{Download, FetchError, Fetcher, Transfer, open_verified};
use crate::model::address::Address;
use crate::model::bounded::{Bounded, read_bounded};
use crate::model::lock::LockedTool;
use crate::model::sha256::HashingWriter;
use crate::report::{Event, Reporter};
use crate::store::{Store, StoreError};

const STEP: &str = "uv";

/// The program uv of a locked tool, as a file of the cache.
pub async fn uv_binary(
    tool: &LockedTool,
    source: &UvSource<'_>,
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<Utf8PathBuf, PackagesError> {
    let record = format!("uv/{}", tool.sha256);
    if let Some(program) = store.read_state(&record)?.and_then(|hash| String::from_utf8(hash).ok())
        && let Ok(Some(_)) = open_verified(store, &program)
    {
        return Ok(store.blob_path(&program)?);
    }
    let mut wheel = open_verified(store, &tool.sha256)?;
    if wheel.is_none() {
        download(tool, source, store, fetcher, reporter).await?;
        wheel = open_verified(store, &tool.sha256)?;
    }
    let wheel = wheel.ok_or_else(|| unusable(tool, "it is not in the cache any more"))?;
    let mut program = store.temp_file()?;
    let hash = extract_program(wheel, &mut program).map_err(|detail| unusable(tool, &detail))?;
    let failed = |cause| StoreError::File { purpose: "cannot write the cache", cause };
    let readable = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    program.as_file().set_permissions(readable).map_err(failed)?;
    let file = Utf8Path::from_path(program.path()).expect("the cache's path is UTF-8");
    let path = store.adopt(file, &hash)?;
    store.write_state(&record, hash.as_bytes())?;
    Ok(path)
}

async fn download(
    tool: &LockedTool,
    source: &UvSource<'_>,
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<(), PackagesError> {
    let started = Instant::now();
    let id = STEP.to_owned();
    let how = if source.settings.index.default.is_some() { "" } else { " with pip" };
    let text = format!("download uv {}{how}", tool.version);
    reporter.report(Event::StepStarted { id: id.clone(), text });
    let done = match &source.settings.index.default {
        Some(index) => fetch_wheel(tool, index, store, fetcher, Arc::clone(&reporter)).await,
        None => wheel_by_pip(tool, source, Arc::clone(&reporter))
            .await
            .and_then(|wheel| Ok(store.put(&tool.sha256, &wheel).map(drop)?)),
    };
    reporter.report(match &done {
        Ok(()) => Event::StepFinished { id, cached: false, seconds: started.elapsed().as_secs_f64() },
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    done
}

async fn fetch_wheel(
    tool: &LockedTool,
    index: &Address,
    store: &Store,
    fetcher: &Fetcher,
    reporter: Arc<dyn Reporter>,
) -> Result<(), PackagesError> {
    let page = index.join("uv/");
    let absent = || PackagesError::NoUvWheel { file: tool.file.clone() };
    let listed =
        fetcher.document(&page, LARGEST_PAGE).await.map_err(|error| index_fault(error, &tool.file))?;
    let listed = String::from_utf8_lossy(&listed);
    let link = links(&listed, &page).find(|link| link.file == tool.file).ok_or_else(absent)?;
    let (name, sha256) = (tool.file.clone(), tool.sha256.clone());
    let download = Download { name, addresses: vec![link.address], sha256, size: None, login: None };
    let transfer = Transfer::new(reporter, STEP, None);
    fetcher.into_store(store, &download, &transfer).await.map_err(|error| index_fault(error, &tool.file))?;
    Ok(())
}

/// Returns the error of a failed index request, which refers to the setting.
fn index_fault(error: FetchError, file: &str) -> PackagesError {
    let cause = ToolOutput(without_addresses(&error.to_string()));
    match error {
        FetchError::NotFound { .. } => PackagesError::NoUvWheel { file: file.to_owned() },
        FetchError::Status { status, .. } if status.starts_with("401") || status.starts_with("403") => {
            PackagesError::IndexAccess { cause }
        }
        FetchError::Transfer { .. } | FetchError::Status { .. } => {
            PackagesError::Index { package: Some("uv".to_owned()), cause }
        }
        other => other.into(),
    }
}

/// Reads the program uv from the cache, to be sent to a container.
pub(super) fn uv_program(path: &Utf8Path) -> Result<Bytes, PackagesError> {
    let read = fs_err::File::open(path).and_then(|file| read_bounded(file, LARGEST_PROGRAM));
    Ok(read.map_err(StoreError::file("cannot read the cache"))?.into())
}

/// Writes the program inside a wheel of uv to `out` and returns its SHA-256.
fn extract_program(wheel: impl Read + Seek, out: &mut impl Write) -> Result<String, String> {
    let mut archive = zip::ZipArchive::new(wheel).map_err(|error| error.to_string())?;
    let inside = archive.file_names().find(|name| name.ends_with(".data/scripts/uv")).map(str::to_owned);
    let inside = inside.ok_or("it has no member `.data/scripts/uv`")?;
    let entry = archive.by_name(&inside).map_err(|error| error.to_string())?;
    let mut program = HashingWriter::new(out);
    std::io::copy(&mut Bounded::new(entry, LARGEST_PROGRAM), &mut program)
        .map_err(|error| error.to_string())?;
    Ok(program.finish())
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use wiremock::matchers::path;
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::engine::RunOutcome;
    use crate::model::sha256::sha256_hex;
    use crate::packages::resolver_image::Resolver;
    use crate::packages::settings::{IndexSettings, PackageSettings};
    use crate::packages::test_downloads::TestDownloads;
    use crate::packages::test_engine::FakeEngine;
    use crate::report::NullReporter;

    #[tokio::test]
    async fn damaged_program_is_extracted_and_damaged_wheel_downloaded_again() {
        let f = fixture(&wheel("uv-0.0.1.data/scripts/uv"), Some(PAGE)).await;
        let program = f.get().await.expect("program");
        std::fs::write(&program, b"hostile").expect("ours");
        assert_eq!(std::fs::read(f.get().await.expect("again")).expect("read"), b"program");
        assert_eq!(f.downloads.server.received_requests().await.expect("recorded").len(), 2);
        let wheel = f.downloads.store.blob_path(&f.tool.sha256).expect("a path");
        for path in [&program, &wheel] {
            std::fs::write(path, b"hostile").expect("ours");
        }
        assert_eq!(std::fs::read(f.get().await.expect("again")).expect("read"), b"program");
        assert_eq!(f.downloads.server.received_requests().await.expect("recorded").len(), 4);
    }

    fn wheel(inside: &str) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        writer.start_file(inside, zip::write::SimpleFileOptions::default()).expect("entry");
        writer.write_all(b"program").expect("written");
        writer.finish().expect("zip").into_inner()
    }

    struct Fixture {
        downloads: TestDownloads,
        tool: LockedTool,
    }

    async fn fixture(served: &[u8], page: Option<&str>) -> Fixture {
        let downloads = TestDownloads::start().await;
        let file = "uv-0.0.1-py3-none-any.whl";
        if let Some(page) = page {
            downloads.serve("/simple/uv/", page.as_bytes()).await;
        }
        downloads.serve(&format!("/files/{file}"), served).await;
        let sha256 = sha256_hex(&wheel("uv-0.0.1.data/scripts/uv"));
        let (name, version) = ("uv".to_owned(), "0.0.1".to_owned());
        Fixture { downloads, tool: LockedTool { name, version, file: file.to_owned(), sha256 } }
    }

    impl Fixture {
        async fn get(&self) -> Result<Utf8PathBuf, PackagesError> {
            let default = Some(format!("{}/simple", self.downloads.server.uri()).parse().expect("address"));
            self.get_from(&FakeEngine::default(), default).await
        }
        async fn get_from(
            &self,
            engine: &FakeEngine,
            default: Option<Address>,
        ) -> Result<Utf8PathBuf, PackagesError> {
            let index = IndexSettings { default, ..IndexSettings::default() };
            let settings = PackageSettings { index, ..PackageSettings::default() };
            let source = UvSource { engine, image: &Resolver::sample(), settings: &settings };
            let TestDownloads { store, fetcher, .. } = &self.downloads;
            uv_binary(&self.tool, &source, store, fetcher, Arc::new(NullReporter)).await
        }
    }

    const PAGE: &str = "<a href=\"../../files/other.whl\">x</a>\n<a href='../../files/uv-0.0.1-py3-none-any.whl#sha256=00'>uv</a>";

    #[tokio::test]
    async fn program_is_extracted_from_the_wheel_once() {
        let f = fixture(&wheel("uv-0.0.1.data/scripts/uv"), Some(PAGE)).await;
        let program = f.get().await.expect("program");
        assert_eq!(std::fs::read(&program).expect("read"), b"program");
        assert_eq!(f.get().await.expect("again"), program);
        assert_eq!(f.downloads.server.received_requests().await.expect("recorded").len(), 2);
    }

    /// A container whose `/tmp/wheel` holds that wheel.
    fn container_with(f: &Fixture, wheel: &[u8]) -> FakeEngine {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(wheel.len() as u64);
        tar.append_data(&mut header, format!("wheel/{}", f.tool.file), wheel).expect("appended");
        let collected = [("/tmp/wheel".to_owned(), tar.into_inner().expect("tar"))].into();
        FakeEngine { outcome: RunOutcome { collected, ..RunOutcome::default() }, ..FakeEngine::default() }
    }

    #[tokio::test]
    async fn pip_downloads_the_wheel_once_without_index() {
        let f = fixture(b"", None).await;
        let engine = container_with(&f, &wheel("uv-0.0.1.data/scripts/uv"));
        let program = f.get_from(&engine, None).await.expect("program");
        assert_eq!(std::fs::read(&program).expect("read"), b"program");
        assert_eq!(f.get_from(&engine, None).await.expect("again"), program);
        assert!(f.downloads.server.received_requests().await.expect("recorded").is_empty());
        let asked = engine.asked.lock().expect("asked");
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].image, "resolver");
        let requirement = asked[0].files.iter().find(|file| file.path == "/envforge/uv.in").expect("there");
        assert!(String::from_utf8_lossy(&requirement.bytes).contains(&f.tool.sha256));
    }

    #[tokio::test]
    async fn rejects_wrong_or_missing_wheel_of_pip() {
        let f = fixture(b"", None).await;
        let error = f.get_from(&container_with(&f, b"other"), None).await.expect_err("another");
        assert!(matches!(error, PackagesError::Store(StoreError::WrongContent { .. })), "{error:?}");
        let error = f.get_from(&FakeEngine::default(), None).await.expect_err("missing");
        assert!(matches!(error, PackagesError::NoUvWheel { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn tampered_wheel_is_rejected() {
        let f = fixture(&wheel("uv-0.0.1.data/scripts/uvx"), Some(PAGE)).await;
        let error = f.get().await.expect_err("refused");
        assert!(matches!(error, PackagesError::Fetch(FetchError::WrongHash { .. })), "{error:?}");
        assert_eq!(error.exit(), Exit::Outside);
    }

    #[tokio::test]
    async fn error_names_file_missing_in_index() {
        for page in [None, Some("<a href=\"other.whl\">")] {
            let f = fixture(b"", page).await;
            let error = f.get().await.expect_err("absent");
            assert_eq!(error.to_string(), "`uv-0.0.1-py3-none-any.whl` not found in the package index");
            assert!(error.hints()[0].contains("ENVFORGE_INDEX"));
        }
    }

    #[tokio::test]
    async fn index_error_names_setting_without_address() {
        let mut f = fixture(b"", None).await;
        f.downloads.server.reset().await;
        Mock::given(path("/simple/uv/"))
            .respond_with(ResponseTemplate::new(403))
            .mount(&f.downloads.server)
            .await;
        assert!(matches!(f.get().await.expect_err("refused"), PackagesError::IndexAccess { .. }));
        f.downloads.server = MockServer::start().await;
        f.downloads.server.reset().await;
        Mock::given(path("/simple/uv/"))
            .respond_with(ResponseTemplate::new(503))
            .mount(&f.downloads.server)
            .await;
        let error = f.get().await.expect_err("down");
        assert!(matches!(error, PackagesError::Index { .. }), "{error:?}");
        let cause = std::error::Error::source(&error).expect("cause").to_string();
        assert!(cause.contains("503") && !cause.contains("127.0.0.1"), "{cause}");
    }

    #[test]
    fn a_wheel_without_program_is_unusable() {
        let program = |wheel: &[u8]| extract_program(std::io::Cursor::new(wheel), &mut Vec::new());
        assert!(program(&wheel("uv/__init__.py")).expect_err("none").contains("scripts/uv"));
        assert!(program(b"no zip").is_err());
    }
}
