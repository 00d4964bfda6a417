//! Uploads to a registry that does well, and to one that does everything wrong that registries do.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;

use super::test_registry::{TestRegistry, Wrong};
use super::*;
use crate::failure::{Exit, Failure as _};
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::image::manifest::BlobDescriptor;
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::report::{NullReporter, Reporter};
use crate::settings::image_registry::{EnvironmentLogin, RegistrySettings};

type Pushed = Result<(BlobDescriptor, BlobOrigin), RegistryError>;

/// Three megabytes that repeat nowhere near.
fn content() -> Bytes {
    (0..750_000_u32).flat_map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

fn blob(content: &Bytes) -> Blob {
    Blob {
        title: "torch 2.8.0".to_owned(),
        known: Some(BlobDescriptor::of(content)),
        content: Arc::new(content.clone()),
        mount_from: Vec::new(),
    }
}

fn registry(settings: RegistrySettings) -> Registry {
    let fetch =
        FetchSettings { attempts: 4, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
    Registry::new(Fetcher::new(&fetch).expect("a client"), settings)
}

async fn push_with(server: &TestRegistry, settings: RegistrySettings, blob: Blob) -> Pushed {
    let image: ImageRef = format!("{}/team/torch:1", server.host).parse().expect("a reference");
    let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
    let mut pushed = registry(settings).push_blobs(&image, &[blob], &reporter).await?;
    Ok(pushed.remove(0))
}

async fn push(server: &TestRegistry, blob: Blob) -> Pushed {
    push_with(server, RegistrySettings::default(), blob).await
}

/// The registry has exactly this, and nothing half-done.
#[track_caller]
fn assert_has(server: &TestRegistry, content: &Bytes) {
    let state = server.state();
    let digest = Digest::of(content).to_string();
    assert!(state.blobs.get(&digest).is_some_and(|blob| blob == content), "{:?}", state.requests);
    assert!(state.uploads.is_empty(), "{:?}", state.uploads.keys());
}

#[tokio::test]
async fn blob_is_sent_once_and_then_present() {
    let (server, content) = (TestRegistry::start().await, content());
    let sent = push(&server, blob(&content)).await.expect("sent");
    assert_eq!(sent, (BlobDescriptor::of(&content), BlobOrigin::Sent));
    assert_has(&server, &content);
    let again = push(&server, blob(&content)).await.expect("present");
    assert_eq!((again.1, server.count("PATCH")), (BlobOrigin::Present, 1));
}

#[tokio::test]
async fn digest_of_an_unknown_blob_is_found_on_the_way() {
    let (server, content) = (TestRegistry::start().await, content());
    let sent = push(&server, Blob { known: None, ..blob(&content) }).await.expect("sent");
    assert_eq!((sent.0, server.count("HEAD")), (BlobDescriptor::of(&content), 0));
    assert_has(&server, &content);
}

#[tokio::test]
async fn cut_upload_goes_on_where_the_registry_is() {
    let (server, content) = (TestRegistry::start().await, content());
    // More cuts than attempts: each brings the upload further.
    server.wrong("PATCH", 6, Wrong::Cut(400_000));
    push(&server, blob(&content)).await.expect("sent");
    assert_has(&server, &content);
    let state = server.state();
    let patches: Vec<&str> = state
        .requests
        .iter()
        .filter(|(method, _, _)| method == "PATCH")
        .map(|(_, path, _)| path.as_str())
        .collect();
    assert_eq!(patches.len(), 7);
    assert!(patches[6].ends_with("at=2400000"), "{patches:?}");
}

#[tokio::test]
async fn upload_that_never_gets_on_ends_with_its_cause() {
    let (server, content) = (TestRegistry::start().await, content());
    server.wrong("PATCH", 99, Wrong::Cut(0));
    let error = push(&server, blob(&content)).await.expect_err("cut");
    assert_eq!(error.to_string(), format!("cannot upload `torch 2.8.0` to registry `{}`", server.host));
    assert_eq!((error.exit(), server.count("PATCH")), (Exit::Outside, 4));
    assert!(error.hints()[0].contains("run the same command again"), "{:?}", error.hints());
    assert!(server.state().uploads.is_empty(), "given up");
}

#[tokio::test]
async fn forgotten_upload_begins_anew() {
    for method in ["PATCH", "PUT"] {
        let (server, content) = (TestRegistry::start().await, content());
        server.wrong(method, 1, Wrong::Forget);
        push(&server, blob(&content)).await.expect("sent");
        assert_has(&server, &content);
        assert_eq!(server.count("POST"), 2, "{method}");
    }
}

#[tokio::test]
async fn lost_answer_to_the_end_of_an_upload_is_looked_up() {
    let (server, content) = (TestRegistry::start().await, content());
    server.wrong("PUT", 1, Wrong::NoAnswer);
    push(&server, blob(&content)).await.expect("sent");
    assert_has(&server, &content);
    assert_eq!((server.count("PATCH"), server.count("PUT")), (1, 1));
}

#[tokio::test]
async fn busy_and_failing_registries_are_tried_again() {
    for status in ["429 Too Many Requests", "500 Internal Server Error", "503 Service Unavailable"] {
        for method in ["HEAD", "POST", "PATCH", "PUT"] {
            let (server, content) = (TestRegistry::start().await, content());
            server.answers(method, 1, status);
            push(&server, blob(&content)).await.unwrap_or_else(|error| panic!("{status} {method}: {error}"));
            assert_has(&server, &content);
        }
    }
}

#[tokio::test]
async fn denied_absent_and_full_registries_are_reported() {
    let full = r#"{"errors":[{"code":"DENIED","message":"quota of team exceeded"}]}"#;
    let full = format!("HTTP/1.1 507 Insufficient Storage\r\ncontent-length: {}\r\n\r\n{full}", full.len());
    let empty = |status: &str| format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
    for (method, answer, wanted) in [
        ("POST", empty("403 Forbidden"), "access denied to `team/torch` without a login"),
        ("PATCH", empty("403 Forbidden"), "access denied to `team/torch` without a login"),
        ("POST", empty("404 Not Found"), "repository `team/torch` not found in registry"),
        ("PATCH", full.clone(), "507 Insufficient Storage: quota of team exceeded"),
        ("PUT", full.clone(), "507 Insufficient Storage: quota of team exceeded"),
        ("PUT", empty("400 Bad Request"), "400 Bad Request"),
        ("POST", empty("500 Internal Server Error"), "500 Internal Server Error"),
        ("PATCH", empty("307 Temporary Redirect"), "redirects the body of an upload"),
    ] {
        let (server, content) = (TestRegistry::start().await, content());
        server.wrong(method, 99, Wrong::Answer(answer));
        let error = push(&server, blob(&content)).await.expect_err(wanted);
        assert!(error.to_string().contains(wanted), "{method}: {error}");
        assert_eq!(error.exit(), Exit::Outside, "{method}");
        assert!(server.state().blobs.is_empty() && server.state().uploads.is_empty(), "{method} {wanted}");
    }
}

#[tokio::test]
async fn lie_about_a_digest_is_reported() {
    let lie = Digest::of(b"something else");
    for (method, status) in [("HEAD", "200 OK"), ("PUT", "201 Created")] {
        let (server, content) = (TestRegistry::start().await, content());
        let answer =
            format!("HTTP/1.1 {status}\r\ndocker-content-digest: {lie}\r\ncontent-length: 0\r\n\r\n");
        server.wrong(method, 9, Wrong::Answer(answer));
        let error = push(&server, blob(&content)).await.expect_err("a lie");
        assert!(error.to_string().ends_with(&format!("got `{lie}`")), "{method}: {error}");
    }
}

#[tokio::test]
async fn upload_is_not_taken_to_another_server_without_tls() {
    let (server, other, content) = (TestRegistry::start().await, TestRegistry::start().await, content());
    let location = format!(
        "HTTP/1.1 202 Accepted\r\nlocation: http://{}/v2/team/torch/blobs/uploads/x\r\ncontent-length: 0\r\n\r\n",
        other.host
    );
    for method in ["POST", "PATCH"] {
        server.wrong(method, 1, Wrong::Answer(location.clone()));
        let error = push(&server, blob(&content)).await.expect_err("elsewhere");
        assert!(error.to_string().ends_with("it leads to another server without TLS"), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }
    assert!(other.state().requests.is_empty(), "it was asked for nothing");
}

#[tokio::test]
async fn login_goes_to_no_other_server_than_the_registry() {
    let server = TestRegistry::start().await;
    let image: ImageRef = format!("{}/team/torch:1", server.host).parse().expect("a reference");
    server.state().token = Some("unknown".to_owned());
    let settings = logged_in(&server);
    let registry = registry(settings);
    let session = registry.session(&image, super::client_session::TokenScope::Push, RetryPolicy::SHORT);
    let mut session = session.expect("a session");
    session.has_blob(&BlobDescriptor::of(b"x")).await.expect("answered");
    let address = |text: String| text.parse().expect("an address");
    assert!(session.login_for(&address(format!("http://{}/v2/other", server.host))).is_some());
    for other in ["https://store.test/u".to_owned(), format!("https://{}/u", server.host)] {
        assert!(session.login_for(&address(other.clone())).is_none(), "{other}");
    }
}

fn logged_in(server: &TestRegistry) -> RegistrySettings {
    let login = EnvironmentLogin {
        registry: server.host.clone(),
        user: "ann".to_owned(),
        password: SecretString::from("hunter2-planted"),
    };
    RegistrySettings {
        login: Some(login),
        insecure: vec![server.host.clone()],
        ..RegistrySettings::default()
    }
}

#[tokio::test]
async fn expired_token_is_renewed_in_the_middle() {
    for expiring in ["POST", "PATCH", "PUT"] {
        let (server, content) = (TestRegistry::start().await, content());
        server.state().token = Some("unknown".to_owned());
        // The token that was given stops to count at the first such request.
        let challenge = format!(
            "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=\"http://{}/token\"\r\ncontent-length: 0\r\n\r\n",
            server.host
        );
        server.wrong(expiring, 1, Wrong::Answer(challenge));
        let settings = logged_in(&server);
        push_with(&server, settings, blob(&content))
            .await
            .unwrap_or_else(|error| panic!("{expiring}: {error}"));
        assert_has(&server, &content);
        let state = server.state();
        let tokens = state.requests.iter().filter(|(_, path, _)| path.starts_with("/token")).count();
        assert_eq!(tokens, 2, "{expiring}: {:?}", state.requests);
    }
}

#[tokio::test]
async fn token_that_is_refused_again_is_an_error() {
    let (server, content) = (TestRegistry::start().await, content());
    server.state().token = Some("unknown".to_owned());
    let challenge = format!(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=\"http://{}/token\"\r\ncontent-length: 0\r\n\r\n",
        server.host
    );
    server.wrong("PATCH", 99, Wrong::Answer(challenge));
    let settings = logged_in(&server);
    let error = push_with(&server, settings, blob(&content)).await.expect_err("refused");
    assert!(error.to_string().contains("access denied"), "{error}");
    assert_eq!(server.count("PATCH"), 2);
    assert!(!format!("{error:?} {}", error.reason()).contains("hunter2"), "{error:?}");
}

#[tokio::test]
async fn blob_of_another_repository_is_mounted() {
    let (server, content) = (TestRegistry::start().await, content());
    server.answers("POST", 1, "201 Created");
    let wanted = Blob { mount_from: vec!["team/other".to_owned()], ..blob(&content) };
    let mounted = push(&server, wanted).await.expect("mounted");
    assert_eq!((mounted.1, server.count("PATCH")), (BlobOrigin::Mounted, 0));
    let state = server.state();
    let (_, path, _) = state.requests.iter().find(|(method, _, _)| method == "POST").expect("it was asked");
    let digest = Digest::of(&content).to_string().replace(':', "%3A");
    assert!(path.contains(&format!("mount={digest}&from=team%2Fother")), "{path}");
}

#[tokio::test]
async fn registry_without_mounts_gets_the_blob() {
    for status in [None, Some("404 Not Found"), Some("405 Method Not Allowed"), Some("403 Forbidden")] {
        let (server, content) = (TestRegistry::start().await, content());
        if let Some(status) = status {
            server.answers("POST", 1, status);
        }
        let wanted = Blob { mount_from: vec!["team/other".to_owned()], ..blob(&content) };
        let sent = push(&server, wanted).await.expect("sent");
        assert_eq!(sent.1, BlobOrigin::Sent, "{status:?}");
        assert_has(&server, &content);
        assert_eq!(server.count("POST"), if status.is_some() { 2 } else { 1 });
    }
}

/// A blob that cannot be made, or has other bytes than before.
struct Broken(Bytes);

impl BlobContent for Broken {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(&self.0)?;
        Err(std::io::Error::other("CRC-32 mismatch"))
    }
}

#[tokio::test]
async fn blob_that_cannot_be_made_is_not_finished() {
    let (server, content) = (TestRegistry::start().await, content());
    let broken = Blob { content: Arc::new(Broken(content.clone())), ..blob(&content) };
    let error = push(&server, broken).await.expect_err("broken");
    assert_eq!(error.to_string(), "cannot read `torch 2.8.0`: CRC-32 mismatch");
    let other = Blob { content: Arc::new(content.slice(1..)), ..blob(&content) };
    let error = push(&server, other).await.expect_err("other bytes");
    assert!(matches!(error, RegistryError::OtherBlob { .. }), "{error}");
    let state = server.state();
    assert!(state.blobs.is_empty() && state.uploads.is_empty(), "{:?}", state.requests);
    assert!(!state.requests.iter().any(|(method, _, _)| method == "PUT"));
}

#[tokio::test]
async fn several_blobs_and_a_manifest_under_its_tags() {
    let server = TestRegistry::start().await;
    let image: ImageRef = format!("{}/team/torch:1", server.host).parse().expect("a reference");
    let registry = registry(RegistrySettings::default());
    let contents: Vec<Bytes> = (1..12_u8).map(|byte| Bytes::from(vec![byte; 700_000])).collect();
    let blobs: Vec<Blob> = contents.iter().map(blob).collect();
    let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
    let pushed = registry.push_blobs(&image, &blobs, &reporter).await.expect("pushed");
    assert!(
        pushed.iter().map(|(blob, _)| blob.clone()).eq(contents.iter().map(|one| BlobDescriptor::of(one)))
    );
    for content in &contents {
        assert_has(&server, content);
    }
    let document = ManifestDocument { media_type: "application/x", bytes: Bytes::from_static(b"{}") };
    server.answers("PUT", 1, "503 Service Unavailable");
    let digest = registry.put_manifest(&image, &document, &["1", "2"]).await.expect("put");
    assert_eq!(digest, Digest::of(b"{}"));
    let state = server.state();
    assert_eq!(state.manifests.keys().cloned().collect::<Vec<_>>(), ["1", "2", digest.as_str()]);
}
