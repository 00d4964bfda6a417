//! A server of files with an empty cache, for tests of downloads.

use camino::Utf8PathBuf;
use wiremock::matchers::path;
use wiremock::{Mock, MockServer, ResponseTemplate};

use crate::fetch::{FetchSettings, Fetcher};
use crate::store::Store;

/// The server, the cache and a client that tries once; the cache is removed with this value.
pub(super) struct TestDownloads {
    pub(super) server: MockServer,
    pub(super) store: Store,
    pub(super) fetcher: Fetcher,
    _folder: tempfile::TempDir,
}

impl TestDownloads {
    /// Starts the server.
    pub(super) async fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
        Self {
            server: MockServer::start().await,
            store: Store::open(&root.join("cache"), &root.join("state")).expect("store"),
            fetcher: Fetcher::new(&settings).expect("client"),
            _folder: folder,
        }
    }

    /// Serves a file.
    pub(super) async fn serve(&self, at: &str, body: &[u8]) {
        let body = ResponseTemplate::new(200).set_body_bytes(body);
        Mock::given(path(at)).respond_with(body).mount(&self.server).await;
    }
}
