//! What a daemon can do wrong, played by a fake one: no Docker is needed.

use std::sync::Arc;

use envforge::engine::{
    BuildRequest, Docker, Engine, EngineError, EngineSettings, Network, PullRequest, RunRequest,
};
use envforge::report::{Event, Silent};
use envforge::versions::Machine;

use crate::Seen;
use crate::daemon::{FakeDaemon, stream};
use crate::http::json;

const LAYER: &str = r#"{"status":"Downloading","progressDetail":{"current":1,"total":9},"id":"aa"}"#;

async fn connected(daemon: &FakeDaemon) -> Docker {
    Docker::connect(&daemon.settings()).await.expect("a greeting")
}

fn build() -> BuildRequest {
    BuildRequest {
        context: Vec::new(),
        secrets: Vec::new(),
        build_args: std::collections::BTreeMap::new(),
        labels: std::collections::BTreeMap::new(),
        network: Network::Bridge,
        no_cache: false,
        scratch_tag: "envforge-scratch:1".to_owned(),
    }
}

#[tokio::test]
async fn a_socket_nobody_listens_on_is_unreachable_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("dead.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let docker_host = Some(format!("unix://{}", socket.display()));
    let error =
        Docker::connect(&EngineSettings { docker_host: docker_host.clone(), ..EngineSettings::default() })
            .await
            .unwrap_err();
    let EngineError::Unreachable { address, cause } = &error else { panic!("{error:?}") };
    assert_eq!(Some(address), docker_host.as_ref());
    assert!(cause.contains("refused"), "{cause}");
    assert_eq!((error.exit_code(), error.hints().len()), (3, 1));
}

#[tokio::test]
async fn a_greeting_that_makes_no_sense_is_refused() {
    let daemon = FakeDaemon::start("/version", json(500, r#"{"message":"database is locked"}"#));
    let error = Docker::connect(&daemon.settings()).await.unwrap_err();
    assert_eq!(error.to_string(), "the engine refused its greeting: database is locked");
    let daemon = FakeDaemon::start("/info", json(200, r#"{"Architecture":"mips"}"#));
    let error = Docker::connect(&daemon.settings()).await.unwrap_err();
    assert!(matches!(&error, EngineError::Machine { machine, .. } if machine == "mips"), "{error}");
}

fn debian_12() -> PullRequest {
    PullRequest { reference: "debian:12".to_owned(), machine: Machine::X86_64, credential: None }
}

#[tokio::test]
async fn an_error_in_the_middle_of_a_good_answer_is_an_error() {
    let message = r#"{"errorDetail":{"message":"write /x: no space left on device"},"error":"x"}"#;
    let daemon = FakeDaemon::start("/images/create", stream(&[LAYER, message], true));
    let seen = Arc::new(Seen::default());
    let error = connected(&daemon).await.pull(debian_12(), seen.clone()).await.unwrap_err();
    assert!(matches!(error, EngineError::DiskFull { .. }), "{error}");
    let last = seen.0.lock().unwrap().pop();
    assert!(matches!(&last, Some(Event::StepFailed { id, .. }) if id == "pull:debian:12"), "{last:?}");

    let message = r#"{"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"}"#;
    let daemon = FakeDaemon::start("/images/create", stream(&[message], true));
    let error = connected(&daemon).await.pull(debian_12(), Arc::new(Silent)).await.unwrap_err();
    assert_eq!(error.to_string(), "the pull of `debian:12` failed: manifest unknown");
}

#[tokio::test]
async fn a_cut_connection_is_a_loss() {
    let daemon = FakeDaemon::start("/images/create", stream(&[LAYER], false));
    let error = connected(&daemon).await.pull(debian_12(), Arc::new(Silent)).await.unwrap_err();
    assert!(matches!(&error, EngineError::Lost { during, .. } if during.contains("debian:12")), "{error}");
    assert_eq!(error.exit_code(), 3);

    let daemon = FakeDaemon::start("/containers", "HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{");
    let request = RunRequest { image: "debian:12".to_owned(), ..RunRequest::default() };
    let error = connected(&daemon).await.run(request, Arc::new(Silent)).await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn an_import_that_names_no_image_is_a_loss() {
    let folder = tempfile::tempdir().unwrap();
    let archive = camino::Utf8PathBuf::from_path_buf(folder.path().join("a.tar")).unwrap();
    fs_err::write(&archive, b"").unwrap();
    let daemon = FakeDaemon::start("/images/create", stream(&[], true));
    let docker = connected(&daemon).await;
    let error = docker.import(archive.clone(), "envforge-x:1", Arc::new(Silent)).await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error}");
    fs_err::remove_file(&archive).unwrap();
    let error = docker.import(archive.clone(), "envforge-x:1", Arc::new(Silent)).await.unwrap_err();
    assert!(error.to_string().contains(archive.as_str()), "{error}");
}

#[tokio::test]
async fn an_engine_without_buildkit_and_mounts_says_so() {
    let words = "the --mount option requires BuildKit";
    let message = format!(r#"{{"errorDetail":{{"message":"{words}"}},"error":"{words}"}}"#);
    let daemon = FakeDaemon::start("/build", stream(&[&message], true));
    let docker = connected(&daemon).await;
    assert!(!docker.info().supports_buildkit() && !docker.info().supports_mounts());
    let error = docker.build(build(), Arc::new(Silent)).await.unwrap_err();
    assert!(matches!(&error, EngineError::Refused { text, .. } if text.contains("BuildKit")), "{error}");
}

#[tokio::test]
async fn a_plain_build_whose_answer_is_cut_or_names_no_image_is_a_loss() {
    let step = r#"{"stream":"STEP 1/1: FROM x\n"}"#;
    for whole in [true, false] {
        let daemon = FakeDaemon::start("/build", stream(&[step], whole));
        let error = Docker::connect(&daemon.settings()).await.unwrap_err();
        assert!(matches!(&error, EngineError::Lost { .. }), "{error}");
        assert_eq!(error.exit_code(), 3);
    }
}

#[tokio::test]
async fn a_build_whose_connection_is_cut_is_a_loss() {
    // Both connections are upgraded and then hung up: the channel breaks under the build.
    let upgraded = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let daemon = FakeDaemon::start("/session|/grpc", upgraded);
    let error = connected(&daemon).await.build(build(), Arc::new(Silent)).await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error:?}");
}
