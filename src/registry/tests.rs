//! Registries that answer well and badly, over HTTP on this machine.
#![expect(clippy::disallowed_methods, reason = "measures patience and writes Docker's configuration")]

use crate::failure::{Exit, Failure as _};
use std::time::{Duration, Instant};

use base64::Engine as _;
use secrecy::SecretString;
use wiremock::matchers::{body_string_contains, header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

use super::*;
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;
use crate::settings::image_registry::{EnvironmentLogin, RegistrySettings};

const SECRET: &str = "hunter2-planted";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const IMAGE: &str = "application/vnd.docker.distribution.manifest.v2+json";

struct Fixture {
    server: MockServer,
    settings: RegistrySettings,
}

async fn fixture() -> Fixture {
    Fixture { server: MockServer::start().await, settings: RegistrySettings::default() }
}

fn index(platforms: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<String> = platforms
        .iter()
        .map(|(os, architecture)| {
            let digest = Digest::of(architecture.as_bytes());
            format!(r#"{{"digest":"{digest}","size":7,"platform":{{"os":"{os}","architecture":"{architecture}"}}}}"#)
        })
        .collect();
    format!(r#"{{"schemaVersion":2,"mediaType":"{INDEX}","manifests":[{}]}}"#, entries.join(",")).into_bytes()
}

fn document(body: Vec<u8>, kind: &str) -> ResponseTemplate {
    let digest = Digest::of(&body);
    ResponseTemplate::new(200)
        .insert_header("docker-content-digest", digest.as_str())
        .set_body_raw(body, kind)
}

fn fine() -> ResponseTemplate {
    document(index(&[("linux", "amd64"), ("linux", "arm64")]), INDEX)
}

impl Fixture {
    fn host(&self) -> String {
        self.server.address().to_string()
    }
    fn image(&self, rest: &str) -> ImageRef {
        format!("{}/{rest}", self.host()).parse().expect("a reference")
    }
    fn log_in(&mut self) {
        let login = EnvironmentLogin {
            registry: self.host(),
            user: "ann".to_owned(),
            password: SecretString::from(SECRET),
        };
        self.settings.login = Some(login);
        self.settings.insecure.push(self.host());
    }
    fn registry(&self) -> Registry {
        // Other hosts are unreachable: their proxy does not exist.
        let settings = FetchSettings {
            https_proxy: Some("http://127.0.0.1:1".parse().expect("an address")),
            attempts: 3,
            first_pause: Duration::from_millis(1),
            ..FetchSettings::default()
        };
        Registry::new(Fetcher::new(&settings).expect("a client"), self.settings.clone())
    }
    async fn resolve(&self, rest: &str) -> Result<ResolvedImage, RegistryError> {
        self.resolve_within(rest, RetryPolicy::NEEDED).await
    }
    async fn resolve_within(
        &self,
        rest: &str,
        patience: RetryPolicy,
    ) -> Result<ResolvedImage, RegistryError> {
        let result = self.registry().resolve(&self.image(rest), Machine::X86_64, patience).await;
        if let Err(error) = &result {
            let text = format!("{error} {error:?} {} {:?}", error.reason(), error.hints());
            assert!(!text.contains(SECRET), "{text}");
            assert!(!error.hints().is_empty(), "{error}");
        }
        result
    }
    async fn answers(&self, at: &str, response: ResponseTemplate) {
        Mock::given(method("GET")).and(path(at)).respond_with(response).mount(&self.server).await;
    }
    async fn requests(&self) -> usize {
        self.server.received_requests().await.expect("recorded").len()
    }
}

const TAG: &str = "/v2/team/torch/manifests/1";

#[tokio::test]
async fn tag_of_index_resolves_to_digest_of_index() {
    let f = fixture().await;
    f.answers(TAG, fine()).await;
    let resolved = f.resolve("team/torch:1").await.expect("resolved");
    assert_eq!(resolved.digest, Digest::of(&index(&[("linux", "amd64"), ("linux", "arm64")])));
    assert_eq!(resolved.source.to_string(), format!("{}/team/torch@{}", f.host(), resolved.digest));
    let asked = f.server.received_requests().await.expect("recorded");
    let accepted: Vec<_> =
        asked[0].headers.get_all("accept").iter().filter_map(|value| value.to_str().ok()).collect();
    assert_eq!(accepted.len(), 4, "{accepted:?}");
}

#[tokio::test]
async fn tag_of_one_image_is_checked_by_its_configuration() {
    let f = fixture().await;
    let config = br#"{"os":"linux","architecture":"amd64"}"#.to_vec();
    let digest = Digest::of(&config);
    let body = format!(
        r#"{{"schemaVersion":2,"mediaType":"{IMAGE}","config":{{"digest":"{digest}","size":9}},"layers":[]}}"#
    );
    f.answers(TAG, document(body.clone().into_bytes(), IMAGE)).await;
    f.answers(&format!("/v2/team/torch/blobs/{digest}"), ResponseTemplate::new(200).set_body_bytes(config))
        .await;
    assert_eq!(f.resolve("team/torch:1").await.expect("resolved").digest, Digest::of(body.as_bytes()));
    let arm = f.registry().resolve(&f.image("team/torch:1"), Machine::Aarch64, RetryPolicy::NEEDED).await;
    let error = arm.expect_err("another processor");
    assert_eq!(error.exit(), Exit::No);
    assert!(error.to_string().ends_with("expected linux/arm64, found linux/amd64"), "{error}");
}

#[tokio::test]
async fn platform_mismatch_names_the_available_platforms() {
    let f = fixture().await;
    f.answers(TAG, document(index(&[("windows", "amd64"), ("linux", "s390x")]), INDEX)).await;
    let error = f.resolve("team/torch:1").await.expect_err("no platform");
    assert_eq!(error.exit(), Exit::No);
    assert!(error.to_string().ends_with("expected linux/amd64, found windows/amd64, linux/s390x"), "{error}");
}

#[tokio::test]
async fn document_with_wrong_digest_is_rejected() {
    let f = fixture().await;
    let wanted = Digest::of(b"something else");
    f.answers(&format!("/v2/team/torch/manifests/{wanted}"), fine()).await;
    let error = f.resolve(&format!("team/torch@{wanted}")).await.expect_err("wrong digest");
    assert!(
        matches!(&error, RegistryError::WrongDigest { wanted: named, .. } if *named == wanted),
        "{error}"
    );
    assert_eq!((error.exit(), f.requests().await), (Exit::Outside, 1));

    let lying = fine().insert_header("docker-content-digest", wanted.as_str());
    f.server.reset().await;
    f.answers(TAG, lying).await;
    let error = f.resolve("team/torch:1").await.expect_err("the header lies");
    assert!(matches!(error, RegistryError::WrongDigest { .. }), "{error}");
}

#[tokio::test]
async fn token_server_returns_token_for_the_scope() {
    let mut f = fixture().await;
    f.log_in();
    let realm = format!(
        r#"Bearer realm="{}/token",service="r.test",scope="repository:team/torch:pull""#,
        f.server.uri()
    );
    let basic =
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("ann:{SECRET}")));
    Mock::given(path(TAG))
        .and(header("authorization", "Bearer the-token"))
        .respond_with(fine())
        .with_priority(1)
        .mount(&f.server)
        .await;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", realm.as_str())).await;
    Mock::given(path("/token"))
        .and(query_param("scope", "repository:team/torch:pull"))
        .and(query_param("service", "r.test"))
        .and(header("authorization", basic.as_str()))
        .respond_with(ResponseTemplate::new(200).set_body_string(r#"{"token":"the-token","expires_in":60}"#))
        .mount(&f.server)
        .await;
    f.resolve("team/torch:1").await.expect("resolved");
    assert_eq!(f.requests().await, 3);
}

#[tokio::test]
async fn token_is_requested_anonymously_without_login() {
    let f = fixture().await;
    let realm = format!(r#"Bearer realm="{}/token""#, f.server.uri());
    Mock::given(path(TAG))
        .and(header("authorization", "Bearer open"))
        .respond_with(fine())
        .with_priority(1)
        .mount(&f.server)
        .await;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", realm.as_str())).await;
    f.answers("/token", ResponseTemplate::new(200).set_body_string(r#"{"access_token":"open"}"#)).await;
    f.resolve("team/torch:1").await.expect("resolved");
    let asked = f.server.received_requests().await.expect("recorded");
    assert!(!asked[1].headers.contains_key("authorization"));
}

#[tokio::test]
async fn identity_token_is_exchanged() {
    let mut f = fixture().await;
    let config = format!(r#"{{"auths":{{"{}":{{"identitytoken":"{SECRET}"}}}}}}"#, f.host());
    f.settings.auth_config = Some(SecretString::from(config));
    f.settings.insecure.push(f.host());
    let realm = format!(r#"Bearer realm="{}/token",service="s""#, f.server.uri());
    Mock::given(path(TAG))
        .and(header("authorization", "Bearer fresh"))
        .respond_with(fine())
        .with_priority(1)
        .mount(&f.server)
        .await;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", realm.as_str())).await;
    Mock::given(method("POST"))
        .and(path("/token"))
        .and(body_string_contains("grant_type=refresh_token"))
        .and(body_string_contains(format!("refresh_token={SECRET}")))
        .respond_with(ResponseTemplate::new(200).set_body_string(r#"{"access_token":"fresh"}"#))
        .mount(&f.server)
        .await;
    f.resolve("team/torch:1").await.expect("resolved");
}

#[tokio::test]
async fn rejected_login_is_reported_with_a_hint() {
    let mut f = fixture().await;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", "Basic realm=\"r\"")).await;
    let error = f.resolve("team/torch:1").await.expect_err("refused");
    assert_eq!(
        error.to_string(),
        format!("registry `{}`: access denied to `team/torch` without a login", f.host())
    );
    assert!(error.hints()[0].contains(&format!("docker login {}", f.host())), "{:?}", error.hints());
    assert_eq!((error.exit(), f.requests().await), (Exit::Outside, 1), "nothing to try again with");
    f.log_in();
    let error = f.resolve("team/torch:1").await.expect_err("refused");
    assert!(error.to_string().ends_with("with the login of `ann`"), "{error}");
}

#[tokio::test]
async fn retries_busy_registry_after_the_requested_pause() {
    let f = fixture().await;
    let busy = ResponseTemplate::new(429).insert_header("retry-after", "1");
    Mock::given(path(TAG)).respond_with(busy).up_to_n_times(1).mount(&f.server).await;
    f.answers(TAG, fine()).await;
    let begun = Instant::now();
    f.resolve("team/torch:1").await.expect("the second time");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn long_requested_pause_is_not_awaited() {
    let f = fixture().await;
    f.answers(TAG, ResponseTemplate::new(429).insert_header("retry-after", "3600")).await;
    let error = f.resolve("team/torch:1").await.expect_err("busy");
    let wanted = format!("registry `{}`: rate limit reached (429), retry after 3600 s", f.host());
    assert_eq!((error.to_string(), error.exit(), f.requests().await), (wanted, Exit::Outside, 1));
}

#[tokio::test]
async fn retries_failing_registry_and_reports_its_message() {
    let f = fixture().await;
    Mock::given(path(TAG)).respond_with(ResponseTemplate::new(500)).up_to_n_times(2).mount(&f.server).await;
    f.answers(TAG, fine()).await;
    f.resolve("team/torch:1").await.expect("the third time");
    f.server.reset().await;
    let body = r#"{"errors":[{"code":"UNKNOWN","message":"disk \u001b[31mgone"}]}"#;
    f.answers(TAG, ResponseTemplate::new(500).set_body_string(body)).await;
    let error = f.resolve("team/torch:1").await.expect_err("fails");
    let wanted = format!("registry `{}`: 500 Internal Server Error: disk [31mgone", f.host());
    assert_eq!((error.to_string(), error.exit(), f.requests().await), (wanted, Exit::Outside, 3));
}

#[tokio::test]
async fn gives_up_on_slow_registry() {
    let f = fixture().await;
    f.answers(TAG, fine().set_delay(Duration::from_secs(30))).await;
    let patience = RetryPolicy { attempt: Duration::from_millis(300), once: true };
    let error = f.resolve_within("team/torch:1", patience).await.expect_err("slow");
    assert!(error.is_unreachable() && error.reason().contains("timed out after 0.3 s"), "{}", error.reason());
}

#[tokio::test]
async fn login_page_is_not_a_registry() {
    let f = fixture().await;
    f.answers(TAG, ResponseTemplate::new(200).set_body_raw("<html>sign in</html>", "text/html")).await;
    let error = f.resolve("team/torch:1").await.expect_err("HTML");
    assert!(error.to_string().contains("is not an image registry: `text/html`"), "{error}");
    assert_eq!(error.exit(), Exit::Outside);
}

#[tokio::test]
async fn error_names_missing_image() {
    let f = fixture().await;
    f.answers("/v2/other", fine()).await;
    let error = f.resolve("team/torch:1").await.expect_err("absent");
    assert_eq!(error.to_string(), format!("image `{0}/team/torch:1` not found in registry `{0}`", f.host()));
}

#[tokio::test]
async fn truncated_response_is_retried_and_then_reported() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("listen");
    let host = listener.local_addr().expect("address").to_string();
    let (counted, count) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut count = 0;
        while let Ok((mut stream, _)) = listener.accept().await {
            count += 1;
            let _ = counted.send(count);
            let mut request = vec![0_u8; 4096];
            drop(stream.read(&mut request).await);
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"schema").await);
        }
    });
    let f = fixture().await;
    let image: ImageRef = format!("{host}/team/torch:1").parse().expect("a reference");
    let error = f.registry().resolve(&image, Machine::X86_64, RetryPolicy::NEEDED).await.expect_err("cut");
    assert!(error.is_unreachable(), "{error}");
    assert_eq!(error.to_string(), format!("cannot reach registry `{host}`"));
    let mut count = count;
    let mut last = 0;
    while let Ok(number) = count.try_recv() {
        last = number;
    }
    assert_eq!(last, 3);
}

#[tokio::test]
async fn mirrors_are_tried_first_and_all_are_reported() {
    let mut f = fixture().await;
    f.settings.mirrors.add("registry.invalid", &format!("http://{}/empty", f.host())).expect("a mirror");
    f.settings.mirrors.add("registry.invalid", &format!("http://{}/full", f.host())).expect("a mirror");
    let image: ImageRef = "registry.invalid/team/torch:1".parse().expect("a reference");
    f.answers("/v2/full/team/torch/manifests/1", fine()).await;
    let resolved =
        f.registry().resolve(&image, Machine::X86_64, RetryPolicy::SHORT).await.expect("from a mirror");
    assert_eq!(resolved.source.name(), format!("{}/full/team/torch", f.host()));
    let other: ImageRef = "registry.invalid/team/other:1".parse().expect("a reference");
    let error = f.registry().resolve(&other, Machine::X86_64, RetryPolicy::SHORT).await.expect_err("nowhere");
    assert_eq!(error.to_string().lines().count(), 4, "{error}");
    assert!(error.to_string().contains("\n  - registry.invalid/team/other: "), "{error}");
}

#[tokio::test]
async fn login_is_sent_only_to_its_registry() {
    let mut f = fixture().await;
    let elsewhere = EnvironmentLogin {
        registry: "other.test".to_owned(),
        user: "ann".to_owned(),
        password: SecretString::from(SECRET),
    };
    f.settings.login = Some(elsewhere);
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", "Basic")).await;
    f.resolve("team/torch:1").await.expect_err("no login for this one");
    for request in f.server.received_requests().await.expect("recorded") {
        assert!(!request.headers.contains_key("authorization"));
    }
}

/// A second server and the requests it got.
async fn other_host() -> MockServer {
    let other = MockServer::start().await;
    Mock::given(path(TAG)).respond_with(fine()).mount(&other).await;
    other
}

async fn logins(server: &MockServer) -> (usize, usize) {
    let all = server.received_requests().await.expect("recorded");
    (all.len(), all.iter().filter(|request| request.headers.contains_key("authorization")).count())
}

#[tokio::test]
async fn redirect_after_login_takes_the_login_to_no_other_host() {
    let mut f = fixture().await;
    f.log_in();
    let other = other_host().await;
    for (target, with_login) in [(format!("{}{TAG}", other.uri()), 0), ("/v2/team/torch/moved".to_owned(), 1)]
    {
        f.server.reset().await;
        Mock::given(path(TAG))
            .and(wiremock::matchers::header_exists("authorization"))
            .respond_with(ResponseTemplate::new(307).insert_header("location", target.as_str()))
            .with_priority(1)
            .mount(&f.server)
            .await;
        f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", "Basic")).await;
        f.answers("/v2/team/torch/moved", fine()).await;
        f.resolve("team/torch:1").await.expect("resolved");
        assert_eq!(logins(&f.server).await, (2 + with_login, 1 + with_login), "{target}");
        assert_eq!(logins(&other).await, (1, 0), "{target}");
    }
}

#[tokio::test]
async fn challenge_of_another_host_is_not_answered() {
    let mut f = fixture().await;
    f.log_in();
    let other = MockServer::start().await;
    let challenge = format!(r#"Bearer realm="{}/token""#, f.server.uri());
    for challenge in [challenge.as_str(), "Basic"] {
        f.server.reset().await;
        other.reset().await;
        let refusal = ResponseTemplate::new(401).insert_header("www-authenticate", challenge);
        Mock::given(path(TAG)).respond_with(refusal).mount(&other).await;
        let target = format!("{}{TAG}", other.uri());
        f.answers(TAG, ResponseTemplate::new(302).insert_header("location", target.as_str())).await;
        let error = f.resolve("team/torch:1").await.expect_err("no login for it");
        assert!(matches!(error, RegistryError::Unauthorized { .. }), "{error}");
        assert_eq!((logins(&f.server).await, logins(&other).await), ((1, 0), (1, 0)), "{challenge}");
    }
}

#[tokio::test]
async fn registry_without_tls_names_no_other_host_for_a_login() {
    let mut f = fixture().await;
    let realm = r#"Bearer realm="https://auth.invalid/token""#;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", realm)).await;
    let anonymous = f.resolve("team/torch:1").await.expect_err("unreachable");
    assert!(anonymous.is_unreachable(), "a token without login is asked for anywhere: {anonymous}");
    f.log_in();
    let error = f.resolve("team/torch:1").await.expect_err("refused");
    assert!(error.to_string().contains("another host as its token server"), "{error}");
}

#[tokio::test]
async fn identity_token_is_not_redirected_to_another_host() {
    let mut f = fixture().await;
    let config = format!(r#"{{"auths":{{"{}":{{"identitytoken":"{SECRET}"}}}}}}"#, f.host());
    f.settings.auth_config = Some(SecretString::from(config));
    f.settings.insecure.push(f.host());
    let other = MockServer::start().await;
    let realm = format!(r#"Bearer realm="{}/token""#, f.server.uri());
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", realm.as_str())).await;
    let target = format!("{}/token", other.uri());
    Mock::given(method("POST"))
        .and(path("/token"))
        .respond_with(ResponseTemplate::new(307).insert_header("location", target.as_str()))
        .expect(1)
        .mount(&f.server)
        .await;
    let error = f.resolve("team/torch:1").await.expect_err("not followed");
    assert!(error.reason().contains("cannot follow the redirect"), "{}", error.reason());
    assert_eq!(logins(&other).await, (0, 0));
}

#[tokio::test]
async fn missing_helper_is_reported_only_on_denied_access() {
    let mut f = fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let folder_path = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
    fs_err::write(folder_path.join("config.json"), r#"{"credsStore":"envforge-test-absent"}"#)
        .expect("a file");
    f.settings.docker_config = Some(folder_path);
    f.answers(TAG, fine()).await;
    f.resolve("team/torch:1").await.expect("needs no login");
    f.server.reset().await;
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", "Basic")).await;
    let error = f.resolve("team/torch:1").await.expect_err("needs a login");
    assert!(error.hints()[1].contains("docker-credential-envforge-test-absent"), "{:?}", error.hints());
}

#[tokio::test]
async fn invalid_docker_configuration_is_a_usage_error() {
    let mut f = fixture().await;
    let folder = tempfile::tempdir().expect("a folder");
    let folder_path = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
    fs_err::write(folder_path.join("config.json"), format!(r#"{{"auths":{{"x":"{SECRET}"}}"#))
        .expect("a file");
    f.settings.docker_config = Some(folder_path);
    f.answers(TAG, ResponseTemplate::new(401).insert_header("www-authenticate", "Basic")).await;
    let error = f.resolve("team/torch:1").await.expect_err("broken");
    assert_eq!(error.exit(), Exit::Usage);
}

#[tokio::test]
async fn tag_is_put_on_the_identical_document() {
    let mut fixture = fixture().await;
    fixture.log_in();
    let body = index(&[("linux", "amd64")]);
    let digest = Digest::of(&body);
    Mock::given(path(format!("/v2/team/torch/manifests/{digest}")))
        .respond_with(document(body.clone(), INDEX))
        .mount(&fixture.server)
        .await;
    Mock::given(method("PUT"))
        .and(path("/v2/team/torch/manifests/2.8"))
        .and(header("content-type", INDEX))
        .and(wiremock::matchers::body_bytes(body))
        .respond_with(ResponseTemplate::new(201))
        .expect(1)
        .mount(&fixture.server)
        .await;
    let image = fixture.image("team/torch:2.8");
    fixture.registry().tag(&image, &digest).await.expect("tagged");
    let absent = fixture.registry().tag(&image, &Digest::of(b"another")).await;
    assert!(matches!(absent, Err(RegistryError::NotFound { .. })), "{absent:?}");
}
