//! The HTTP client: requests, retries, resumes downloads, verifies hashes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};
use bytes::Bytes;
use camino::Utf8PathBuf;
use futures_util::{StreamExt as _, TryStreamExt as _};
use http::{HeaderMap, Method};
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, CONTENT_RANGE, HeaderValue, RANGE};
use secrecy::ExposeSecret;

use super::download::Download;
use super::error::{FetchError, chain};
use super::pace::Pace;
use super::partial::Partial;
use super::reach::{Reach, Within, literal};
use super::redirect::{Hop, send};
use super::settings::FetchSettings;
use super::temporary::TemporaryDownload;
use super::transfer::Transfer;
use crate::model::address::Address;
use crate::store::{Store, StoreError};

/// The most bytes of a file whose size nothing lists.
const UNKNOWN_SIZE_LIMIT: u64 = 32 << 30;
/// Bytes beyond the listed size that are read, so that a slightly different file is reported by its hash.
const EXCESS: u64 = 1 << 20;

/// The one HTTP client for files.
#[derive(Clone)]
pub struct Fetcher {
    pub(super) client: reqwest::Client,
    pub(super) retries: ExponentialBuilder,
    parallel: usize,
    pub(super) settings: Arc<FetchSettings>,
}

impl Fetcher {
    /// Creates a client.
    pub fn new(settings: &FetchSettings) -> Result<Self, FetchError> {
        Self::build(settings, None)
    }

    /// Returns the same client for requests to one server that another one named. It connects to no address that is nearer than
    /// allowed; where a proxy connects, that decides.
    pub fn within(&self, address: &Address, most: Reach) -> Result<Self, FetchError> {
        let url = address.url();
        if literal(&url).is_some_and(|named| Reach::of(named) > most) {
            return Err(FetchError::Nearer { address: address.clone() });
        }
        let host = url.host_str().unwrap_or_default().to_owned();
        Self::build(&self.settings, Some(Within { host, most }))
    }

    /// The reach of a server that answered from that address; that of a proxy says nothing about the servers behind it.
    pub fn reach_of(&self, connected: Option<SocketAddr>) -> Reach {
        let proxies = [&self.settings.http_proxy, &self.settings.https_proxy];
        let ports: Vec<_> =
            proxies.into_iter().flatten().filter_map(|proxy| proxy.url().port_or_known_default()).collect();
        match connected {
            Some(address) if !ports.contains(&address.port()) => Reach::of(address.ip()),
            _ => Reach::Public,
        }
    }

    fn build(settings: &FetchSettings, within: Option<Within>) -> Result<Self, FetchError> {
        let failed = |error: reqwest::Error| FetchError::Client { cause: chain(&error.without_url()) };
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("envforge/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(15))
            .read_timeout(settings.silence)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy();
        if let Some(within) = within {
            builder = builder.dns_resolver(Arc::new(within));
        }
        let exempt = settings.no_proxy.as_deref().and_then(reqwest::NoProxy::from_string);
        for (proxy, secure) in [(&settings.http_proxy, false), (&settings.https_proxy, true)] {
            let Some(address) = proxy else { continue };
            let proxy = if secure {
                reqwest::Proxy::https(address.url())
            } else {
                reqwest::Proxy::http(address.url())
            };
            builder = builder.proxy(proxy.map_err(failed)?.no_proxy(exempt.clone()));
        }
        if let Some(pem) = &settings.extra_ca {
            let certificates = reqwest::Certificate::from_pem_bundle(pem).map_err(failed)?;
            builder = builder.tls_certs_merge(certificates);
        }
        // Fails only if one is installed already.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        let retries = ExponentialBuilder::default()
            .with_min_delay(settings.first_pause)
            .with_max_delay(Duration::from_secs(20))
            .with_max_times(settings.attempts.saturating_sub(1));
        let client = builder.build().map_err(failed)?;
        let settings = Arc::new(settings.clone());
        Ok(Self { client, retries, parallel: settings.parallel.max(1), settings })
    }

    /// Returns the same client with additional trusted certificate authorities (PEM).
    pub fn trusting(&self, pem: &[u8]) -> Result<Self, FetchError> {
        let mut all = self.settings.extra_ca.as_deref().unwrap_or_default().to_vec();
        all.push(b'\n');
        all.extend(pem);
        Self::new(&FetchSettings { extra_ca: Some(all.into()), ..(*self.settings).clone() })
    }

    /// The pauses before the second attempt, the third and so on.
    pub(crate) fn pauses(&self) -> impl Iterator<Item = Duration> + Send + use<> {
        self.retries.build()
    }

    /// Downloads a small document (an index, a signature) of at most `limit` bytes.
    pub async fn document(&self, address: &Address, limit: u64) -> Result<Bytes, FetchError> {
        let mut pauses = self.retries.build();
        loop {
            match self.try_document(address, limit).await {
                Err(error) if error.is_worth_retrying() => match pauses.next() {
                    Some(pause) => {
                        tracing::debug!(%error, "failed");
                        pause_before_retry(address, pause).await;
                    }
                    None => return Err(error),
                },
                done => return done,
            }
        }
    }

    async fn try_document(&self, address: &Address, limit: u64) -> Result<Bytes, FetchError> {
        let response = self.request(address, 0).await?;
        let mut body = Vec::new();
        let mut chunks = response.bytes_stream();
        let mut pace = Pace::new(self.settings.silence);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| FetchError::transfer(address, error))?;
            pace.count(chunk.len(), address)?;
            body.extend_from_slice(&chunk);
            if body.len() as u64 > limit {
                return Err(FetchError::TooLarge { address: address.clone(), limit });
            }
        }
        Ok(body.into())
    }

    /// Downloads all files into the cache in parallel and returns their paths in the same order.
    pub async fn fetch_all(
        &self,
        store: &Store,
        downloads: &[Download],
        transfer: &Transfer,
    ) -> Result<Vec<Utf8PathBuf>, FetchError> {
        self.fetch_each(store, downloads, transfer, &|_| {}).await
    }

    /// The same; `arrived` is called with each file as soon as the cache has it.
    pub async fn fetch_each(
        &self,
        store: &Store,
        downloads: &[Download],
        transfer: &Transfer,
        arrived: &(dyn Fn(&Download) + Sync),
    ) -> Result<Vec<Utf8PathBuf>, FetchError> {
        futures_util::stream::iter(downloads)
            .map(|download| async move {
                let path = self.into_store(store, download, transfer).await?;
                arrived(download);
                Ok(path)
            })
            .buffered(self.parallel)
            .try_collect()
            .await
    }

    /// Returns the path of a file in the cache; downloads it from the first address that has it, verified.
    /// Resumes an interrupted download.
    pub async fn into_store(
        &self,
        store: &Store,
        download: &Download,
        transfer: &Transfer,
    ) -> Result<Utf8PathBuf, FetchError> {
        let Some(mut partial) = Partial::open(store, download).await? else {
            let path = store.blob_path(&download.sha256)?;
            transfer.add(download.size.unwrap_or(0));
            return Ok(path);
        };
        transfer.add(partial.length);
        self.fill(&mut partial, download, transfer).await?;
        adopted(store, &partial, download).await
    }

    /// Downloads a file that the cache is not to keep, verified. Resumes an interrupted download.
    pub async fn into_temporary(
        &self,
        store: &Store,
        download: &Download,
        transfer: &Transfer,
    ) -> Result<TemporaryDownload, FetchError> {
        let mut partial = Partial::open_temporary(store, download).await?;
        transfer.add(partial.length);
        match self.fill(&mut partial, download, transfer).await {
            Ok(()) => Ok(TemporaryDownload::of(partial)),
            Err(error) => {
                transfer.take_back(partial.length);
                Err(error)
            }
        }
    }

    /// Completes a partial file from the first address that has it.
    async fn fill(
        &self,
        partial: &mut Partial,
        download: &Download,
        transfer: &Transfer,
    ) -> Result<(), FetchError> {
        let mut last = FetchError::Client { cause: format!("no download URL known for `{}`", download.name) };
        for address in &download.addresses {
            match self.with_retries(partial, download, address, transfer).await {
                Ok(()) => return Ok(()),
                // The next mirror may have it, or may be up.
                Err(
                    error @ (FetchError::NotFound { .. }
                    | FetchError::Transfer { .. }
                    | FetchError::Redirect { .. }
                    | FetchError::Status { .. }),
                ) => {
                    last = error;
                }
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    async fn with_retries(
        &self,
        partial: &mut Partial,
        download: &Download,
        address: &Address,
        transfer: &Transfer,
    ) -> Result<(), FetchError> {
        let mut pauses = self.retries.build();
        loop {
            let resumed = partial.length > 0;
            match self.attempt(partial, download, address, transfer).await {
                // An older half may have belonged to another file: once more from the start.
                Err(FetchError::WrongHash { .. }) if resumed => {}
                Err(error) if error.is_worth_retrying() => match pauses.next() {
                    Some(pause) => {
                        tracing::debug!(%error, "failed");
                        pause_before_retry(address, pause).await;
                    }
                    None => return Err(error),
                },
                done => return done,
            }
        }
    }

    async fn attempt(
        &self,
        partial: &mut Partial,
        download: &Download,
        address: &Address,
        transfer: &Transfer,
    ) -> Result<(), FetchError> {
        let already_whole = partial.length > 0 && Some(partial.length) == download.size;
        if !already_whole {
            let response = match self.request_named(address, partial.length, download).await {
                // The partial file does not belong to the file on the server.
                Err(FetchError::Status { status, .. }) if status.starts_with("416") => {
                    partial.restart(transfer)?;
                    self.request_named(address, 0, download).await?
                }
                other => other?,
            };
            if !continues_at(&response, partial.length) {
                partial.restart(transfer)?;
            }
            let mut chunks = response.bytes_stream();
            let limit = download.size.map_or(UNKNOWN_SIZE_LIMIT, |size| size.saturating_add(EXCESS));
            let mut pace = Pace::new(self.settings.silence);
            while let Some(chunk) = chunks.next().await {
                let chunk = chunk.map_err(|error| FetchError::transfer(address, error))?;
                pace.count(chunk.len(), address)?;
                if partial.length + chunk.len() as u64 > limit {
                    partial.restart(transfer)?;
                    return Err(FetchError::TooLarge { address: address.clone(), limit });
                }
                partial.append(&chunk)?;
                transfer.add(chunk.len() as u64);
            }
        }
        let found = partial.hash.clone().finish();
        if found == download.sha256 {
            return Ok(());
        }
        let length = partial.length;
        partial.restart(transfer)?;
        if download.size.is_some_and(|size| length < size) {
            let cause = format!("connection closed after {length} bytes");
            return Err(FetchError::Transfer { address: address.clone(), cause });
        }
        let (name, wanted) = (download.name.clone(), download.sha256.clone());
        Err(FetchError::WrongHash { name, address: address.clone(), wanted, found })
    }

    async fn request(&self, address: &Address, from: u64) -> Result<reqwest::Response, FetchError> {
        let name = address.url().path().rsplit('/').next().unwrap_or_default().to_owned();
        let addresses = vec![address.clone()];
        let document = Download { name, addresses, sha256: String::new(), size: None, login: None };
        self.request_named(address, from, &document).await
    }

    async fn request_named(
        &self,
        address: &Address,
        from: u64,
        download: &Download,
    ) -> Result<reqwest::Response, FetchError> {
        let mut headers = HeaderMap::new();
        if let Some(login) = &download.login {
            let unusable = |_| FetchError::UnusableLogin { address: address.clone() };
            let mut login = HeaderValue::from_str(login.expose_secret()).map_err(unusable)?;
            login.set_sensitive(true);
            headers.insert(AUTHORIZATION, login);
        }
        if from > 0 {
            let range = format!("bytes={from}-").parse().expect("digits are a valid header");
            headers.insert(RANGE, range);
        }
        let hop = Hop { method: Method::GET, url: address.url(), headers, body: None, stays: false };
        let (response, _) = send(&self.client, address, hop).await?;
        let status = response.status();
        tracing::trace!(%address, %status, from, "GET");
        match status {
            status if status.is_success() => Ok(response),
            StatusCode::NOT_FOUND | StatusCode::GONE => {
                Err(FetchError::NotFound { name: download.name.clone(), address: address.clone() })
            }
            status => Err(FetchError::Status { address: address.clone(), status: status.to_string() }),
        }
    }
}

/// Moves a complete download into the cache. Waiting for the disk must not hold up other downloads.
async fn adopted(store: &Store, partial: &Partial, download: &Download) -> Result<Utf8PathBuf, FetchError> {
    let (store, path, sha256) = (store.clone(), partial.path.clone(), download.sha256.clone());
    let moved = tokio::task::spawn_blocking(move || store.adopt(&path, &sha256)).await;
    let failed =
        |error| StoreError::File { purpose: "cannot write the cache", cause: io::Error::other(error) };
    Ok(moved.map_err(failed)??)
}

pub(super) async fn pause_before_retry(address: &Address, pause: Duration) {
    tracing::debug!(%address, "retrying in {:.1} s", pause.as_secs_f64());
    tokio::time::sleep(pause).await;
}

/// Whether the response continues at the end of the partial file.
fn continues_at(response: &reqwest::Response, length: u64) -> bool {
    let range = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    match range {
        Some(range) if response.status() == StatusCode::PARTIAL_CONTENT => {
            range.starts_with(&format!("bytes {length}-"))
        }
        _ => length == 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use wiremock::matchers::{header, method, path};
    use wiremock::{Mock, MockServer, ResponseTemplate};

    use super::*;
    use crate::model::sha256::sha256_hex;
    use crate::report::NullReporter;

    const CONTENT: &[u8] = b"the content of a package, long enough to be cut";

    struct Fixture {
        server: MockServer,
        store: Store,
        fetcher: Fetcher,
        _folder: tempfile::TempDir,
    }

    async fn fixture() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("store");
        let settings =
            FetchSettings { attempts: 3, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
        let fetcher = Fetcher::new(&settings).expect("client");
        Fixture { server: MockServer::start().await, store, fetcher, _folder: folder }
    }

    impl Fixture {
        fn address(&self) -> Address {
            self.server.uri().parse().expect("address")
        }
        fn download(&self) -> Download {
            Download {
                name: "a.deb".to_owned(),
                addresses: vec![self.address().join("pool/a.deb")],
                sha256: sha256_hex(CONTENT),
                size: Some(CONTENT.len() as u64),
                login: None,
            }
        }
        async fn answers(&self, response: ResponseTemplate, times: u64) {
            Mock::given(method("GET")).respond_with(response).up_to_n_times(times).mount(&self.server).await;
        }
        async fn fetch(&self) -> Result<Utf8PathBuf, FetchError> {
            let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
            self.fetcher.into_store(&self.store, &self.download(), &transfer).await
        }
        fn leave_half(&self, bytes: &[u8]) {
            let half = self.store.partial_path(&sha256_hex(CONTENT)).expect("path");
            let mut options = std::fs::OpenOptions::new();
            let mut file = options.write(true).create(true).truncate(true).open(half).expect("file");
            std::io::Write::write_all(&mut file, bytes).expect("write");
        }
        async fn requests(&self) -> usize {
            self.server.received_requests().await.expect("recorded").len()
        }
    }

    #[tokio::test]
    async fn server_in_a_nearer_network_than_the_one_that_names_it_is_not_asked() {
        let server = MockServer::start().await;
        Mock::given(wiremock::matchers::any()).respond_with(ResponseTemplate::new(200)).mount(&server).await;
        let fetcher =
            Fetcher::new(&FetchSettings { attempts: 1, ..FetchSettings::default() }).expect("a client");
        let at = server.address();
        let [literal, named]: [Address; 2] =
            [format!("http://{at}/token"), format!("http://localhost:{}/token", at.port())]
                .map(|text| text.parse().expect("an address"));
        let ask = async |most, address: &Address| {
            let fetcher = fetcher.within(address, most)?;
            fetcher.ask(&crate::fetch::HttpRequest::get(address.clone(), 10, Duration::from_mins(1))).await
        };
        for most in [Reach::Public, Reach::Private] {
            let error = ask(most, &literal).await.expect_err("refused");
            assert!(matches!(error, FetchError::Nearer { .. }), "{error}");
            let error = ask(most, &named).await.expect_err("refused").to_string();
            assert!(error.contains("nearer network"), "{error}");
        }
        assert!(server.received_requests().await.expect("recorded").is_empty());
        let answer = ask(Reach::Local, &named).await.expect("as near");
        assert_eq!(fetcher.reach_of(answer.connected), Reach::Local);
        let proxied = FetchSettings { https_proxy: Some(literal), ..FetchSettings::default() };
        let proxied = Fetcher::new(&proxied).expect("a client");
        assert_eq!(proxied.reach_of(answer.connected), Reach::Public, "a proxy is no registry");
    }

    #[tokio::test]
    async fn file_is_downloaded_once_and_then_cached() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        let path = f.fetch().await.expect("downloaded");
        assert_eq!(f.store.read(&sha256_hex(CONTENT)).expect("read").expect("there"), CONTENT);
        assert_eq!(f.fetch().await.expect("cached"), path);
        assert_eq!(f.requests().await, 1);
    }

    #[tokio::test]
    async fn parallel_requests_download_a_file_once() {
        let f = fixture().await;
        let slow = ResponseTemplate::new(200).set_body_bytes(CONTENT).set_delay(Duration::from_millis(100));
        f.answers(slow, 9).await;
        let (one, two) = tokio::join!(f.fetch(), f.fetch());
        assert_eq!(one.expect("first"), two.expect("second"));
        assert_eq!(f.requests().await, 1);
    }

    #[tokio::test]
    async fn tampered_file_is_rejected_and_removed() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(vec![b'x'; CONTENT.len()]), 9).await;
        let error = f.fetch().await.expect_err("refused");
        assert!(matches!(error, FetchError::WrongHash { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(!error.hints().is_empty());
        assert_eq!(f.store.find(&sha256_hex(CONTENT)).expect("find"), None);
        assert_eq!(f.requests().await, 1, "the same bytes would come again");
        f.server.reset().await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        f.fetch().await.expect("the next run works");
    }

    #[tokio::test]
    async fn retries_busy_server() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(503), 2).await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        f.fetch().await.expect("third time");
        assert_eq!(f.requests().await, 3);
    }

    /// Every byte comes in time, and all of them would take for ever.
    #[tokio::test]
    async fn body_that_drips_is_given_up() {
        let f = fixture().await;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}/x", listener.local_addr().expect("bound"));
        let server = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
                    let mut request = [0; 4096];
                    assert!(stream.read(&mut request).await.expect("a request") > 0);
                    let mut sent = stream.write_all(head).await;
                    while sent.is_ok() {
                        tokio::time::sleep(Duration::from_millis(20)).await;
                        sent = stream.write_all(b"x").await;
                    }
                });
            }
        });
        // A hundred times as long as the pause between two bytes: a busy machine is late for some of them.
        let settings =
            FetchSettings { attempts: 1, silence: Duration::from_secs(2), ..FetchSettings::default() };
        let fetcher = Fetcher::new(&settings).expect("client");
        let address: Address = address.parse().expect("an address");
        let document = tokio::time::timeout(Duration::from_mins(5), fetcher.document(&address, 1 << 20));
        let error = document.await.expect("it ends").expect_err("a drip");
        assert!(chain(&error).contains("too slow: "), "{error:?}");
        let mut download = f.download();
        download.addresses = vec![address];
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        let whole = fetcher.into_store(&f.store, &download, &transfer);
        let error = tokio::time::timeout(Duration::from_mins(5), whole).await.expect("it ends");
        assert!(chain(&error.expect_err("a drip")).contains("too slow: "));
        server.abort();
    }

    #[tokio::test]
    async fn gives_up_on_server_that_stays_busy() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(503), 99).await;
        let error = f.fetch().await.expect_err("busy");
        assert!(matches!(&error, FetchError::Status { status, .. } if status.starts_with("503")), "{error}");
        assert_eq!(f.requests().await, 3);
    }

    #[tokio::test]
    async fn missing_file_is_reported_without_retry() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(404), 99).await;
        let error = f.fetch().await.expect_err("absent");
        assert!(matches!(&error, FetchError::NotFound { name, .. } if name == "a.deb"), "{error}");
        assert_eq!(f.requests().await, 1);
    }

    #[tokio::test]
    async fn second_address_is_tried_if_first_lacks_the_file() {
        let f = fixture().await;
        Mock::given(path("/new/a.deb"))
            .respond_with(ResponseTemplate::new(200).set_body_bytes(CONTENT))
            .mount(&f.server)
            .await;
        let mut download = f.download();
        download.addresses.push(f.address().join("new/a.deb"));
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        f.fetcher.into_store(&f.store, &download, &transfer).await.expect("second address");
    }

    #[tokio::test]
    async fn interrupted_download_resumes() {
        let f = fixture().await;
        f.leave_half(&CONTENT[..10]);
        let range = format!("bytes 10-{}/{}", CONTENT.len() - 1, CONTENT.len());
        Mock::given(header("range", "bytes=10-"))
            .respond_with(
                ResponseTemplate::new(206)
                    .set_body_bytes(&CONTENT[10..])
                    .insert_header("content-range", range.as_str()),
            )
            .mount(&f.server)
            .await;
        f.fetch().await.expect("continued");
        assert_eq!(f.requests().await, 1);
    }

    #[tokio::test]
    async fn download_restarts_on_server_without_ranges() {
        let f = fixture().await;
        f.leave_half(&CONTENT[..10]);
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        f.fetch().await.expect("from the start");
    }

    #[tokio::test]
    #[expect(clippy::disallowed_methods, reason = "a test plants files")]
    async fn link_pipe_or_second_name_in_place_of_a_partial_file_is_replaced() {
        for kind in ["link", "dangling", "name", "pipe"] {
            let f = fixture().await;
            f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
            let partial = f.store.partial_path(&sha256_hex(CONTENT)).expect("a path");
            let precious = f.store.state_dir().join("precious");
            fs_err::write(&precious, "kept").expect("ours");
            match kind {
                "link" => std::os::unix::fs::symlink(&precious, &partial).expect("ours"),
                "dangling" => {
                    std::os::unix::fs::symlink(f.store.state_dir().join("new"), &partial).expect("ours");
                }
                "name" => fs_err::hard_link(&precious, &partial).expect("ours"),
                _ => {
                    let mode = rustix::fs::Mode::from_raw_mode(0o644);
                    let fifo = rustix::fs::FileType::Fifo;
                    rustix::fs::mknodat(rustix::fs::CWD, partial.as_std_path(), fifo, mode, 0).expect("ours");
                }
            }
            let path = f.fetch().await.expect(kind);
            assert!(!path.is_symlink() && fs_err::read(&path).expect("read") == CONTENT, "{kind}");
            assert_eq!(fs_err::read_to_string(&precious).expect("ours"), "kept", "{kind}");
            assert!(!f.store.state_dir().join("new").exists());
        }
    }

    #[tokio::test]
    async fn partial_file_of_another_download_is_discarded() {
        let f = fixture().await;
        f.leave_half(&[b'?'; 10]);
        Mock::given(header("range", "bytes=10-"))
            .respond_with(
                ResponseTemplate::new(206)
                    .set_body_bytes(&CONTENT[10..])
                    .insert_header("content-range", "bytes 10-46/47"),
            )
            .mount(&f.server)
            .await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        f.fetch().await.expect("from the start");
        assert_eq!(f.requests().await, 2);
    }

    /// Announces all bytes on every connection and delivers half of the requested ones.
    async fn cutting_server(cuts: usize) -> Address {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listen");
        let port = listener.local_addr().expect("address").port();
        tokio::spawn(async move {
            for connection in 0.. {
                let (mut stream, _) = listener.accept().await.expect("accept");
                let mut request = vec![0_u8; 4096];
                let count = stream.read(&mut request).await.expect("request");
                let text = String::from_utf8_lossy(&request[..count]).to_lowercase();
                let from = text.split("bytes=").nth(1).and_then(|rest| rest.split('-').next()?.parse().ok());
                let from: usize = from.unwrap_or(0);
                let rest = &CONTENT[from..];
                let sent = if connection < cuts { &rest[..rest.len() / 2] } else { rest };
                let last = CONTENT.len() - 1;
                let head = format!(
                    "HTTP/1.1 206 Partial Content\r\ncontent-length: {}\r\ncontent-range: bytes {from}-{last}/{}\r\n\r\n",
                    rest.len(),
                    CONTENT.len()
                );
                stream.write_all(head.as_bytes()).await.expect("head");
                stream.write_all(sent).await.expect("body");
                stream.shutdown().await.expect("close");
            }
        });
        format!("http://127.0.0.1:{port}").parse().expect("address")
    }

    #[tokio::test]
    async fn retries_finish_an_interrupted_download() {
        let f = fixture().await;
        let download = Download { addresses: vec![cutting_server(2).await.join("a.deb")], ..f.download() };
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        f.fetcher.into_store(&f.store, &download, &transfer).await.expect("finished");
    }

    #[tokio::test]
    async fn temporary_download_resumes_and_touches_no_file_of_the_cache() {
        let f = fixture().await;
        let download = Download { addresses: vec![cutting_server(2).await.join("a.deb")], ..f.download() };
        f.store.put(&download.sha256, CONTENT).expect("stored");
        let cached = f.store.blob_path(&download.sha256).expect("a path");
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        let done = f.fetcher.into_temporary(&f.store, &download, &transfer).await.expect("finished");
        let path = done.path().to_owned();
        assert_ne!(path, cached);
        assert_ne!(path, f.store.partial_path(&download.sha256).expect("a path"));
        assert_eq!(std::fs::metadata(&path).expect("it is there").len(), CONTENT.len() as u64);
        drop(done);
        assert!(!path.exists());
        assert_eq!(f.store.read(&download.sha256).expect("readable").as_deref(), Some(CONTENT));
    }

    #[tokio::test]
    async fn login_that_cannot_be_a_header_is_an_error_and_nothing_is_sent() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        let download = Download { login: Some("Bearer hunter2\n".into()), ..f.download() };
        let error = f.fetcher.into_store(&f.store, &download, &transfer).await.expect_err("refused");
        assert!(matches!(error, FetchError::UnusableLogin { .. }), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        assert_eq!(f.requests().await, 0);
        let download = Download { login: Some("Bearer hunter2".into()), ..download };
        f.fetcher.into_store(&f.store, &download, &transfer).await.expect("a good one");
    }

    #[tokio::test]
    async fn failed_download_keeps_its_partial_file() {
        let f = fixture().await;
        let download = Download { addresses: vec![cutting_server(99).await.join("a.deb")], ..f.download() };
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        let error = f.fetcher.into_store(&f.store, &download, &transfer).await.expect_err("cut");
        assert!(matches!(error, FetchError::Transfer { .. }), "{error}");
        assert_eq!(f.store.find(&download.sha256).expect("find"), None);
        let kept =
            std::fs::metadata(f.store.partial_path(&download.sha256).expect("path")).expect("kept").len();
        assert!(kept > 0 && kept < CONTENT.len() as u64);
    }

    #[tokio::test]
    async fn oversized_document_is_rejected() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(200).set_body_bytes(CONTENT), 9).await;
        let error = f.fetcher.document(&f.address().join("InRelease"), 5).await.expect_err("too large");
        assert!(matches!(error, FetchError::TooLarge { limit: 5, .. }), "{error}");
    }

    /// The hash is that of the whole answer: only its length is wrong.
    #[tokio::test]
    async fn download_ends_beyond_its_listed_size_whatever_its_hash() {
        let f = fixture().await;
        let most = usize::try_from(EXCESS).expect("small") + 5;
        let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
        for (length, is_kept) in [(most, true), (most + 1, false)] {
            let content = vec![b'x'; length];
            Mock::given(path(format!("/{length}.whl")))
                .respond_with(ResponseTemplate::new(200).set_body_bytes(content.clone()))
                .mount(&f.server)
                .await;
            let download = Download {
                name: format!("{length}.whl"),
                addresses: vec![f.address().join(&format!("{length}.whl"))],
                sha256: sha256_hex(&content),
                size: Some(5),
                login: None,
            };
            let done = f.fetcher.into_store(&f.store, &download, &transfer).await;
            assert_eq!(
                f.store.find(&download.sha256).expect("find").is_some(),
                is_kept,
                "{length}: {done:?}"
            );
            assert_eq!(matches!(done, Err(FetchError::TooLarge { .. })), !is_kept, "{length}");
        }
    }

    #[tokio::test]
    async fn password_of_an_address_follows_redirects_within_its_server_only() {
        let (f, other) = (fixture().await, MockServer::start().await);
        let found = ResponseTemplate::new(200).set_body_bytes(CONTENT);
        Mock::given(path("/other")).respond_with(found.clone()).mount(&other).await;
        Mock::given(path("/own")).respond_with(found).mount(&f.server).await;
        for (from, to) in [("/a", "/own".to_owned()), ("/b", format!("{}/other", other.uri()))] {
            let moved = ResponseTemplate::new(302).insert_header("location", to.as_str());
            Mock::given(path(from)).respond_with(moved).mount(&f.server).await;
            let text = format!("http://user:hunter2@{}{from}", f.server.address());
            f.fetcher.document(&text.parse().expect("an address"), 99).await.expect("followed");
        }
        let here = f.server.received_requests().await.expect("recorded");
        let away = other.received_requests().await.expect("recorded");
        assert!(here.len() == 3 && here.iter().all(|request| request.headers.contains_key("authorization")));
        assert!(away.len() == 1 && !away[0].headers.contains_key("authorization"));
    }

    #[tokio::test]
    async fn endless_redirects_end() {
        let f = fixture().await;
        f.answers(ResponseTemplate::new(302).insert_header("location", "/again"), 99).await;
        let error = f.fetch().await.expect_err("a loop");
        assert!(matches!(&error, FetchError::Redirect { why, .. } if why == "too many redirects"), "{error}");
        assert_eq!(f.requests().await, 11);
    }

    #[tokio::test]
    async fn errors_omit_the_password_of_an_address() {
        let f = fixture().await;
        let address: Address = "http://user:hunter2@127.0.0.1:1/x?key=hunter2".parse().expect("address");
        let error = f.fetcher.document(&address, 5).await.expect_err("connection refused");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
