//! Failures of a daemon, simulated by a fake one: requires no Docker.

use envforge::failure::{Exit, Failure as _};
use std::sync::Arc;

use envforge::engine::{
    Builder as _, Docker, Engine as _, EngineError, EngineSettings, ImageBuildRequest, ImageLayer,
    Images as _, LayerContent, LayeredImage, Network, PullRequest, RunRequest, Runner as _, TemporaryTag,
    plain_config,
};
use envforge::model::sha256::sha256_hex;
use envforge::model::versions::Machine;
use envforge::report::{Event, NullReporter};

use crate::Seen;
use crate::daemon::{FakeDaemon, stream};
use crate::http::json;

const LAYER: &str = r#"{"status":"Downloading","progressDetail":{"current":1,"total":9},"id":"aa"}"#;

async fn connected(daemon: &FakeDaemon) -> Docker {
    Docker::connect(&daemon.settings()).await.expect("a greeting")
}

fn build() -> ImageBuildRequest {
    ImageBuildRequest {
        context: Vec::new(),
        context_secret: Vec::new(),
        secrets: Vec::new(),
        build_args: std::collections::BTreeMap::new(),
        labels: std::collections::BTreeMap::new(),
        network: Network::Bridge,
        no_cache: false,
        scratch_tag: "envforge-scratch:1".to_owned(),
    }
}

#[tokio::test]
async fn closed_socket_is_unreachable_with_its_address() {
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
    assert_eq!((error.exit(), error.hints().len()), (Exit::Outside, 1));
}

#[tokio::test]
async fn failing_first_request_is_refused() {
    let daemon = FakeDaemon::start("/version", json(500, r#"{"message":"database is locked"}"#));
    let error = Docker::connect(&daemon.settings()).await.unwrap_err();
    assert_eq!(error.to_string(), "the engine refused the first request: database is locked");
    let daemon = FakeDaemon::start("/info", json(200, r#"{"Architecture":"mips"}"#));
    let error = Docker::connect(&daemon.settings()).await.unwrap_err();
    assert!(matches!(&error, EngineError::Machine { machine, .. } if machine == "mips"), "{error}");
}

fn debian_12() -> PullRequest {
    PullRequest { reference: "debian:12".to_owned(), machine: Machine::X86_64, credential: None }
}

#[tokio::test]
async fn full_disk_of_the_engine_ends_a_load_of_layers() {
    let message = r#"{"errorDetail":{"message":"write /x: no space left on device"},"error":"x"}"#;
    let daemon = FakeDaemon::start("/images/load", stream(&[message], true));
    let docker = connected(&daemon).await;
    let (sender, layers) = tokio::sync::mpsc::channel(1);
    sender.send(empty_layer()).await.unwrap();
    drop(sender);
    let image = LayeredImage {
        layers,
        config: Box::new(|ids| plain_config(Machine::X86_64, ids)),
        scratch_tag: "envforge-scratch:1".to_owned(),
        title: "layers".to_owned(),
        expected: None,
    };
    let seen = Arc::new(Seen::default());
    let error = docker.load_layers(image, seen.clone()).await.unwrap_err();
    assert!(matches!(error, EngineError::DiskFull { .. }), "{error}");
    let last = seen.0.lock().unwrap().pop();
    assert!(matches!(&last, Some(Event::StepFailed { .. })), "{last:?}");
}

/// An empty tar.
struct Empty;

impl LayerContent for Empty {
    fn write_to(&self, out: &mut dyn std::io::Write) -> std::io::Result<()> {
        out.write_all(&[0; 1024])
    }
}

fn empty_layer() -> ImageLayer {
    let diff_id = format!("sha256:{}", sha256_hex(&[0; 1024]));
    ImageLayer {
        title: "empty".to_owned(),
        diff_id,
        size: 1024,
        content: Some(Arc::new(Empty)),
        packed: None,
    }
}

#[tokio::test]
async fn error_inside_a_successful_response_is_reported() {
    let message = r#"{"errorDetail":{"message":"write /x: no space left on device"},"error":"x"}"#;
    let daemon = FakeDaemon::start("/images/create", stream(&[LAYER, message], true));
    let seen = Arc::new(Seen::default());
    let error = connected(&daemon).await.pull(debian_12(), seen.clone()).await.unwrap_err();
    assert!(matches!(error, EngineError::DiskFull { .. }), "{error}");
    let last = seen.0.lock().unwrap().pop();
    assert!(matches!(&last, Some(Event::StepFailed { id, .. }) if id == "pull:debian:12"), "{last:?}");

    let message = r#"{"errorDetail":{"message":"manifest unknown"},"error":"manifest unknown"}"#;
    let daemon = FakeDaemon::start("/images/create", stream(&[message], true));
    let error = connected(&daemon).await.pull(debian_12(), Arc::new(NullReporter)).await.unwrap_err();
    assert_eq!(error.to_string(), "the pull of `debian:12` failed: manifest unknown");
}

/// The engine is asked on a socket; what it says is bounded all the same.
#[tokio::test]
async fn endless_line_of_a_transfer_is_refused() {
    let long = format!(r#"{{"status":"{}","id":"aa"}}"#, "x".repeat(3 << 20));
    let folder = tempfile::tempdir().unwrap();
    let archive = camino::Utf8PathBuf::from_path_buf(folder.path().join("a.tar")).unwrap();
    fs_err::write(&archive, b"").unwrap();
    let daemon = FakeDaemon::start("/images/", stream(&[&long], true));
    let docker = connected(&daemon).await;
    let quiet = || Arc::new(NullReporter);
    let errors = [
        docker.pull(debian_12(), quiet()).await.map(|_| ()).unwrap_err(),
        docker.push("box:5000/a:1", None, quiet()).await.map(|_| ()).unwrap_err(),
        docker.import(archive, &sha256_hex(b""), "envforge-x:1", quiet()).await.map(|_| ()).unwrap_err(),
    ];
    for error in errors {
        assert!(error.to_string().ends_with("a line of its answer is longer than 1 MiB"), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }
}

#[tokio::test]
async fn cut_connection_is_reported_as_lost() {
    let daemon = FakeDaemon::start("/images/create", stream(&[LAYER], false));
    let error = connected(&daemon).await.pull(debian_12(), Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(&error, EngineError::Lost { during, .. } if during.contains("debian:12")), "{error}");
    assert_eq!(error.exit(), Exit::Outside);

    let daemon = FakeDaemon::start("/containers", "HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{");
    let request = RunRequest { image: "debian:12".to_owned(), ..RunRequest::default() };
    let error = connected(&daemon).await.run(request, Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error}");
}

#[tokio::test]
async fn archive_of_other_content_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    let archive = camino::Utf8PathBuf::from_path_buf(folder.path().join("a.tar")).unwrap();
    fs_err::write(&archive, b"damaged").unwrap();
    // One that answers before it has read the archive, and one that says nothing.
    for answer in [stream(&[r#"{"status":"sha256:aa"}"#], true), stream(&[], false)] {
        let daemon = FakeDaemon::start("/images/create", answer);
        let docker = connected(&daemon).await;
        let wanted = sha256_hex(b"whole");
        let error = docker.import(archive.clone(), &wanted, "envforge-x:1", Arc::new(NullReporter)).await;
        let Err(EngineError::OtherContent { path, found, .. }) = error else { panic!("{error:?}") };
        assert_eq!((path, found), (archive.clone(), sha256_hex(b"damaged")));
    }
}

#[tokio::test]
async fn import_without_an_image_is_reported_as_lost() {
    let folder = tempfile::tempdir().unwrap();
    let archive = camino::Utf8PathBuf::from_path_buf(folder.path().join("a.tar")).unwrap();
    fs_err::write(&archive, b"").unwrap();
    let daemon = FakeDaemon::start("/images/create", stream(&[], true));
    let docker = connected(&daemon).await;
    let error = docker
        .import(archive.clone(), &sha256_hex(b""), "envforge-x:1", Arc::new(NullReporter))
        .await
        .unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error}");
    fs_err::remove_file(&archive).unwrap();
    let error = docker
        .import(archive.clone(), &sha256_hex(b""), "envforge-x:1", Arc::new(NullReporter))
        .await
        .unwrap_err();
    assert!(error.to_string().contains(archive.as_str()), "{error}");
}

#[tokio::test]
async fn build_without_buildkit_and_mounts_is_refused() {
    let words = "the --mount option requires BuildKit";
    let message = format!(r#"{{"errorDetail":{{"message":"{words}"}},"error":"{words}"}}"#);
    let daemon = FakeDaemon::start("/build", stream(&[&message], true));
    let docker = connected(&daemon).await;
    assert!(!docker.info().supports_buildkit() && !docker.info().supports_mounts());
    let error = docker.build(build(), Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(&error, EngineError::Refused { text, .. } if text.contains("BuildKit")), "{error}");
}

#[tokio::test]
async fn incomplete_classic_build_is_reported_as_lost() {
    let step = r#"{"stream":"STEP 1/1: FROM x\n"}"#;
    for whole in [true, false] {
        let daemon = FakeDaemon::start("/build", stream(&[step], whole));
        let error = Docker::connect(&daemon.settings()).await.unwrap_err();
        assert!(matches!(&error, EngineError::Lost { .. }), "{error}");
        assert_eq!(error.exit(), Exit::Outside);
    }
}

#[tokio::test]
async fn cut_build_is_reported_as_lost() {
    // Both connections are upgraded and then hung up: the channel breaks under the build.
    let upgraded = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n";
    let daemon = FakeDaemon::start("/session|/grpc", upgraded);
    let error = connected(&daemon).await.build(build(), Arc::new(NullReporter)).await.unwrap_err();
    assert!(matches!(error, EngineError::Lost { .. }), "{error:?}");
}

#[tokio::test]
async fn connect_requests_version_and_info_once() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let requests = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&requests);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some((path, _)) = crate::http::request(&mut stream) else { continue };
            let answer = if path.ends_with("/version") {
                json(200, r#"{"Version":"20.10.24","ApiVersion":"1.41"}"#)
            } else if path.ends_with("/info") {
                json(200, r#"{"Architecture":"x86_64"}"#)
            } else if path.contains("/grpc") {
                "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n".to_owned()
            } else {
                json(200, "[]")
            };
            seen.lock().unwrap().push(path);
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    let docker_host = Some(format!("unix://{}", socket.display()));
    let docker = Docker::connect(&EngineSettings { docker_host, ..EngineSettings::default() }).await.unwrap();
    assert_eq!(docker.info().api, "1.41");
    let requests = requests.lock().unwrap();
    for path in ["/version", "/info"] {
        let count = requests.iter().filter(|request| request.ends_with(path)).count();
        assert_eq!(count, 1, "{path}: {requests:?}");
    }
}

/// A load that is given up when the engine has it whole is tagged all the same, at its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tag_of_a_load_that_is_given_up_is_removed_after_the_load() {
    let (whole, mut is_whole) = tokio::sync::mpsc::unbounded_channel();
    let (ended, requests) = std::sync::mpsc::channel();
    let daemon = FakeDaemon::watched("/images/load", stream(&[], true), move |asked| {
        if asked.contains("/images/load") {
            whole.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(300));
        }
        if asked.contains("/images/load") || asked.contains("/images/envforge-scratch") {
            ended.send(asked.split(' ').next().unwrap().to_owned()).unwrap();
        }
    });
    let docker = connected(&daemon).await;
    // A part of an image that is not complete, and the image itself.
    for is_complete in [false, true] {
        let (sender, layers) = tokio::sync::mpsc::channel(1);
        if !is_complete {
            sender.send(empty_layer()).await.unwrap();
        }
        // A channel that is closed is a complete image.
        let sender = Some(sender).filter(|_| !is_complete);
        let scratch = is_complete.then(|| TemporaryTag::new(&docker));
        let image = LayeredImage {
            layers,
            config: Box::new(|ids| plain_config(Machine::X86_64, ids)),
            scratch_tag: scratch.as_ref().map_or("envforge-scratch:1", |tag| tag.name()).to_owned(),
            title: "layers".to_owned(),
            expected: None,
        };
        tokio::select! {
            ended = docker.load_layers(image, Arc::new(NullReporter)) => panic!("{ended:?}"),
            () = async { is_whole.recv().await.unwrap() } => {}
        }
        drop((scratch, sender));
        assert_eq!(requests.try_iter().collect::<Vec<_>>(), ["POST", "DELETE"], "{is_complete}");
    }
}
