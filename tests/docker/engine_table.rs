//! One lock on every engine of a list, each with a cache that has nothing but downloads: built, one package added, verified, opened, pushed to a registry and pulled back,
//! with the same image each time. `tests/engines.sh` starts the engines and runs this.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{BufReader, Read as _};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use envforge::archive::content_digest::content_digest_of_tar;
use sha2::{Digest as _, Sha256};

use crate::registry::Registry;
use crate::scene::{SPEC, Scene, TAG, give_downloads_and, keep_downloads};

/// `NAME=ADDRESS` words; the first one is this machine's own engine. `#FOLDER` behind an address: TLS with its certificates.
const LIST: &str = "ENVFORGE_TEST_ENGINES";
/// Another spec than the tests' small one: `pytorch-cuda:2.8-cu128`.
const OTHER_SPEC: &str = "ENVFORGE_TEST_SPEC";
/// Where the table goes.
const TABLE: &str = "ENVFORGE_TEST_TABLE";
/// The port of the registry on the loopback addresses of all engines.
const REGISTRY_PORT: &str = "ENVFORGE_TEST_REGISTRY_PORT";

const HEADER: &str = "| engine | version | image store | `build --locked` | one package more | `verify` | `shell` | `push` | \
                      config digest | content digest |\n|---|---|---|---|---|---|---|---|---|---|\n";

/// Address, and the folder of certificates if it uses TLS.
fn parts(address: &str) -> (&str, &str) {
    address.split_once('#').unwrap_or((address, ""))
}

/// The folder of the engine's socket, or the one in which that of its certificates lies.
fn folder(address: &str) -> &Path {
    let (address, certificates) = parts(address);
    let (_, rest) = address.split_once("://").expect("SCHEME://");
    let path = if certificates.is_empty() { &rest[rest.find('/').expect("a path")..] } else { certificates };
    Path::new(path).parent().expect("a file in a folder")
}

/// Docker's own client of that engine.
fn client(address: &str) -> Command {
    let (address, certificates) = parts(address);
    let mut client = Command::new("docker");
    if !certificates.is_empty() {
        client.arg("--tlsverify").env("DOCKER_CERT_PATH", certificates);
    }
    client.args(["-H", address]);
    client
}

pub(crate) fn docker(address: &str, args: &[&str]) -> String {
    let output = client(address).args(args).output().expect("docker starts");
    assert!(output.status.success(), "docker {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// The content digest of an image on that engine.
pub(crate) fn content_on(address: &str, tag: &str) -> String {
    let container = docker(address, &["create", tag]);
    let mut export = client(address);
    export.args(["export", &container]).stdout(Stdio::piped());
    let mut export = export.spawn().expect("docker starts");
    let digest = content_digest_of_tar(BufReader::new(export.stdout.take().expect("it is piped")));
    export.wait().expect("a child of ours");
    docker(address, &["rm", &container]);
    digest.expect("a digest")
}

/// The digest of an image's configuration, from `docker save`: every layer that it names must be in the archive, with the
/// bytes of its digest where the archive names layers by digest.
fn saved_config(address: &str, tag: &str) -> String {
    let mut save = client(address).args(["save", tag]).stdout(Stdio::piped()).spawn().expect("docker starts");
    let mut archive =
        tar::Archive::new(BufReader::with_capacity(1 << 20, save.stdout.take().expect("it is piped")));
    let (mut files, mut manifest) = (BTreeMap::new(), serde_json::Value::Null);
    for entry in archive.entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").to_string_lossy().into_owned();
        if path == "manifest.json" {
            manifest = serde_json::from_reader(&mut entry).expect("JSON");
        } else if entry.header().entry_type().is_file() {
            let (mut hash, mut part) = (Sha256::new(), vec![0; 1 << 20]);
            loop {
                match entry.read(&mut part).expect("readable") {
                    0 => break,
                    count => hash.update(&part[..count]),
                }
            }
            let hex = hash.finalize().iter().fold(String::new(), |mut hex, byte| {
                write!(hex, "{byte:02x}").expect("a string");
                hex
            });
            files.insert(path, hex);
        } else {
            // An older engine links equal layers.
            files.insert(path, String::new());
        }
    }
    assert!(save.wait().expect("a child of ours").success(), "docker save of {tag}");
    let image = &manifest[0];
    for layer in image["Layers"].as_array().expect("layers") {
        let path = layer.as_str().expect("a path");
        let hash = files.get(path).unwrap_or_else(|| panic!("{tag}: no layer {path}"));
        if let Some(digest) = path.strip_prefix("blobs/sha256/") {
            assert_eq!(hash, digest, "{tag}");
        }
    }
    let config = image["Config"].as_str().expect("a path");
    files.remove(config).unwrap_or_else(|| panic!("{tag}: no configuration {config}"))
}

/// Leads an engine that runs in a container of `tests/engines.sh` to the registry, through a socket next to the engine's.
/// The threads end with the test program.
fn lead_to_the_registry(address: &str, port: u16) {
    let folder = folder(address);
    // Those of `tests/engines.sh` have a folder of their own, eng-NAME.
    if !folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("eng-")) {
        return;
    }
    let listener = UnixListener::bind(folder.join("registry.sock")).expect("a socket of ours");
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || carry(client, port));
        }
    });
}

fn carry(mut client: UnixStream, port: u16) {
    let Ok(mut server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
    let (Ok(mut from_client), Ok(mut to_server)) = (client.try_clone(), server.try_clone()) else { return };
    std::thread::spawn(move || {
        drop(std::io::copy(&mut from_client, &mut to_server));
        drop(to_server.shutdown(std::net::Shutdown::Write));
    });
    drop(std::io::copy(&mut server, &mut client));
    drop(client.shutdown(std::net::Shutdown::Write));
}

/// Whether the engine's image store is containerd's.
fn keeps_blobs(address: &str) -> bool {
    docker(address, &["info", "-f", "{{.DriverStatus}}"]).contains("io.containerd.snapshotter")
}

/// One engine of the list, with its own cells of the table.
struct Stop<'a> {
    scene: &'a Scene,
    name: &'a str,
    address: &'a str,
    spec: &'a str,
    tag: &'a str,
}

/// The digests that must be equal on all engines.
#[derive(Debug, PartialEq, Eq)]
struct Digests {
    config: String,
    content: String,
    manifest: String,
}

impl Stop<'_> {
    fn json(&self, args: &[&str]) -> serde_json::Value {
        let run = self.scene.program.run(args);
        assert_eq!(run.code, 0, "{} {args:?}: {}", self.name, run.stderr);
        serde_json::from_str(&run.stdout).expect("JSON")
    }

    /// Builds with one package more, under a lock of its own, and returns the seconds.
    fn add_a_package(&self) -> u64 {
        let (started, lock) = (Instant::now(), format!("more-on-{}.lock", self.name));
        let args = ["build", self.spec, "--with", "humanize==4.15.0", "--lockfile", &lock, "--json"];
        let report = self.json(&args);
        let seconds = started.elapsed().as_secs();
        let added = report["tags"][0].as_str().expect("a tag");
        // All of it is there, not only the layers that were sent.
        saved_config(self.address, added);
        docker(self.address, &["rmi", added]);
        seconds
    }

    /// Verifies the image and returns how many checks passed.
    fn verify(&self) -> usize {
        let report = self.json(&["verify", self.tag, "--json"]);
        assert_eq!(report["verdict"], "static-only", "{}", self.name);
        let checks = report["checks"].as_array().expect("checks");
        checks.iter().filter(|check| check["outcome"] == "passed").count()
    }

    fn shell(&self) {
        let code = "import torch; print(torch.__name__, 6 * 7)";
        let run = self.scene.program.run(&["shell", self.tag, "--", "python", "-c", code]);
        assert_eq!((run.code, run.stdout.as_str()), (0, "torch 42\n"), "{}: {}", self.name, run.stderr);
    }

    /// Pushes the image without the engine and has the engine pull it back: the same image, file by file. Returns the
    /// seconds of the push and the digest of the manifest.
    fn push_and_pull(&self, registry: &Registry, digests: (&str, &str)) -> (u64, String) {
        let repository = format!("{}/engines/torch", registry.host());
        let started = Instant::now();
        let run = self.scene.program.run(&["push", self.tag, &repository]);
        assert_eq!(run.code, 0, "{}: {}", self.name, run.stderr);
        let seconds = started.elapsed().as_secs();
        let manifest = run.stdout.lines().find_map(|line| line.strip_prefix(&format!("{repository}@")));
        let manifest = manifest.unwrap_or_else(|| panic!("no digest: {}", run.stdout)).to_owned();

        docker(self.address, &["rmi", self.tag]);
        let pinned = format!("{repository}@{manifest}");
        docker(self.address, &["pull", "-q", &pinned]);
        let config = if keeps_blobs(self.address) {
            // It fetches no blob of a layer that BuildKit's cache has, in whatever compression, and then cannot save the image;
            // its id is the digest of the manifest, which names the configuration.
            assert_eq!(docker(self.address, &["inspect", "-f", "{{.Id}}", &pinned]), manifest);
            digests.0.to_owned()
        } else {
            saved_config(self.address, &pinned)
        };
        let pulled = (config, content_on(self.address, &pinned));
        docker(self.address, &["rmi", &pinned]);
        assert_eq!((pulled.0.as_str(), pulled.1.as_str()), digests, "{}", self.name);
        (seconds, manifest)
    }

    /// The journey's cells behind the engine's name, version and store, and its digests; or the message of a failed build.
    fn run(&self, registry: &Registry) -> Result<(String, Digests), String> {
        let started = Instant::now();
        let run = self.scene.program.run(&["build", self.spec, "--locked"]);
        if run.code != 0 {
            return Err(run.stderr);
        }
        let build = started.elapsed().as_secs();
        let (config, content) = (saved_config(self.address, self.tag), content_on(self.address, self.tag));
        let more = self.add_a_package();
        let passed = self.verify();
        self.shell();
        let (push, manifest) = self.push_and_pull(registry, (&config, &content));
        let cells = format!(
            "{build} s | {more} s | {passed} passed | ok | {push} s | `{}` | `{}`",
            &config[..16],
            &content[..16]
        );
        Ok((cells, Digests { config, content, manifest }))
    }
}

#[test]
#[ignore = "by hand: needs several engines: run tests/engines.sh"]
fn one_lock_gives_the_same_image_on_every_engine() {
    let list = std::env::var(LIST).expect("tests/engines.sh names the engines");
    let port =
        std::env::var(REGISTRY_PORT).expect("tests/engines.sh names the port").parse().expect("a port");
    let registry = Registry::at((Ipv4Addr::LOCALHOST.into(), port), "");
    let other = std::env::var(OTHER_SPEC).ok();
    let (mut scene, spec, tag) = match &other {
        Some(spec) => {
            let scene = Scene::new();
            scene.succeed(&["lock", spec]);
            (scene, spec.as_str(), format!("{spec}-unverified"))
        }
        None => (Scene::locked(), SPEC, TAG.to_owned()),
    };
    let (mut lock, mut table, mut outcomes) = (None, HEADER.to_owned(), Vec::new());
    for word in list.split_whitespace() {
        let (name, address) = word.split_once('=').expect("NAME=ADDRESS");
        lead_to_the_registry(address, port);
        let version = docker(address, &["version", "--format", "{{.Server.Version}}"]);
        let store = docker(address, &["info", "--format", "{{.Driver}}"]);
        let (host, certificates) = parts(address);
        let verify = if certificates.is_empty() { "" } else { "1" };
        scene = scene.set("DOCKER_HOST", host).set("DOCKER_TLS_VERIFY", verify);
        scene = scene.set("DOCKER_CERT_PATH", certificates);
        // Base and layers are made on this engine.
        let cache = scene.program.path(format!("cache-of-{name}"));
        give_downloads_and(&cache, &[]);
        scene = scene.set("ENVFORGE_CACHE_DIR", cache.to_string_lossy());
        let outcome = Stop { scene: &scene, name, address, spec, tag: &tag }.run(&registry);
        let cells = match &outcome {
            Ok((cells, _)) => cells.clone(),
            Err(message) => format!(
                "failed: {} | | | | | |",
                message.lines().find(|line| line.contains("error:")).unwrap_or_default()
            ),
        };
        writeln!(table, "| {} | {version} | {store} | {cells} |", name.replace('_', " ")).expect("a string");
        keep_downloads(&cache, &scene.lock());
        std::fs::remove_dir_all(&cache).expect("ours");
        outcomes.push((name, outcome.map(|(_, digests)| digests)));
        // The first build records the content; the others are held to it.
        let now = scene.lock();
        assert_eq!(&now, lock.get_or_insert_with(|| now.clone()), "the lock changed on {name}");
    }
    std::fs::write(std::env::var(TABLE).expect("tests/engines.sh names the file"), &table).expect("writable");
    let first = outcomes[0].1.as_ref().expect("this machine's own engine");
    assert!(outcomes.iter().all(|(_, outcome)| outcome.as_ref() == Ok(first)), "{table}\n{outcomes:#?}");
}
