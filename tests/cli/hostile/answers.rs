//! Answers of package indexes and registries: an index is asked by `vendor`, a registry for the digest of an image. The user
//! has a login for both, which no other host may see.

use std::net::SocketAddr;
use std::time::Duration;

use envforge::failure::Failure as _;
use envforge::fetch::{FetchSettings, Fetcher};
use envforge::model::image_digest::Digest;
use envforge::model::lock::Lock;
use envforge::model::versions::Machine;
use envforge::registry::{Registry, RetryPolicy};
use envforge::settings::image_registry::{EnvironmentLogin, RegistrySettings};
use secrecy::SecretString;
use serde::Deserialize;

use super::case::{Case, Outcome};
use super::project::Scene;
use super::server::{Answer, Server};
use crate::program::Run;
use crate::wheels::{Wheel, WheelSpec, sha256};

/// The password of the user.
const SECRET: &str = "hunter2-planted";
/// The most that is read of an answer without end.
const MOST: u64 = 100 << 20;

/// Answers instead of the correct ones.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Script {
    /// Whether an image registry is asked instead of an index.
    registry: bool,
    /// Whether the user wrote nowhere that the registry, which is on this machine, is reached without TLS.
    unlisted: bool,
    /// Whether the user has no login for the registry, and no other host may be asked for anything.
    anonymous: bool,
    /// The index of the package as the project names it, as an entry of `indexes`; the login of this machine is in the user's
    /// netrc file.
    project_index: Option<String>,
    answer: Vec<Answer>,
    /// Answers of another host, `{other}`.
    other: Vec<Answer>,
}

fn one() -> Wheel {
    WheelSpec::new("demo-one", "1.0").file("demo_one.py", "ONE = 1\n").build()
}

/// The SHA-256 of the wheel that the lock names.
pub(super) fn one_hash() -> String {
    sha256(&one().bytes)
}

fn uv() -> Wheel {
    WheelSpec::new("uv", "1.0").file("uv-1.0.data/scripts/uv", "a program\n").build()
}

fn answer(path: &str, kind: &str, bytes: Vec<u8>) -> Answer {
    let head = vec![format!("Content-Type: {kind}")];
    let (path, bytes, body) = (path.to_owned(), Some(bytes), String::new());
    Answer { path, status: 200, head, body, length: None, endless: false, bytes }
}

/// What a good index and a good registry answer.
pub(super) fn correct() -> Vec<Answer> {
    let mut all = Vec::new();
    for wheel in [one(), uv()] {
        let page = format!("<a href=\"/files/{0}#sha256={1}\">{0}</a>", wheel.file, sha256(&wheel.bytes));
        all.push(answer(&format!("/simple/{}/", wheel.project), "text/html", page.into_bytes()));
        all.push(answer(&wheel.file, "application/octet-stream", wheel.bytes));
    }
    let digest = Digest::of(b"image");
    let index = format!(
        r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[{{"digest":"{digest}","size":7,"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#
    );
    let kind = "application/vnd.oci.image.index.v1+json";
    let mut manifest = answer("/manifests/1", kind, index.into_bytes());
    let digest = Digest::of(manifest.bytes.as_deref().unwrap_or_default());
    manifest.head.push(format!("Docker-Content-Digest: {digest}"));
    all.push(manifest);
    all
}

fn place(text: &str, here: SocketAddr, other: SocketAddr) -> String {
    text.replace("{here}", &here.to_string()).replace("{other}", &other.to_string())
}

/// Replaces `{here}` and `{other}` by the addresses of the two hosts.
fn placed(answers: Vec<Answer>, here: SocketAddr, other: SocketAddr) -> Vec<Answer> {
    let place = |text: &str| place(text, here, other);
    let one = |answer: Answer| {
        let head = answer.head.iter().map(|line| place(line)).collect();
        Answer { head, body: place(&answer.body), ..answer }
    };
    answers.into_iter().map(one).collect()
}

/// Asks the index or registry of a case.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    let script: Script = case.toml("answers.toml");
    let (here, other) = (Server::bind(), Server::bind());
    let (at, away) = (here.1, other.1);
    let server = Server::start(here, placed([script.answer.clone(), correct()].concat(), at, away));
    let other = Server::start(other, placed([script.other.clone(), correct()].concat(), at, away));
    let scene = Scene::of(case);
    let index = script.project_index.as_ref().map(|text| place(text, at, away));
    let (code, output) = match &index {
        _ if script.registry => ask_registry(server.address, &script),
        Some(index) => ask_index_of_project(&scene, at, index),
        None => ask_index(&scene, at),
    };
    let mut harm = Vec::new();
    if output.contains(SECRET) {
        harm.push("the password was shown".to_owned());
    }
    let authorized = |head: &&String| head.to_ascii_lowercase().contains("\r\nauthorization:");
    let (here, away) = (server.traffic.lock().expect("no panic"), other.traffic.lock().expect("no panic"));
    harm.extend(away.heads.iter().find(authorized).map(|head| format!("the other host got a login: {head}")));
    if script.unlisted {
        harm.extend(here.heads.iter().find(authorized).map(|head| format!("a login without TLS: {head}")));
    }
    if script.anonymous {
        harm.extend(away.heads.first().map(|head| format!("the other host was asked: {head}")));
    }
    for sent in [here.sent, away.sent].into_iter().filter(|sent| *sent > MOST) {
        harm.push(format!("{sent} bytes were read"));
    }
    // Else the other host would not get it either.
    let has_login = here.heads.iter().any(|head| authorized(&head));
    if here.heads.is_empty() || (index.is_some() && away.heads.is_empty()) || (!script.registry && !has_login)
    {
        harm.push("the server was not asked with the login".to_owned());
    }
    vec![Outcome { code, output, harm, root: scene.program.path("") }]
}

/// The lock of a project whose files the servers have.
fn lock() -> Lock {
    let mut lock = super::project::lock();
    (lock.tools[0].file, lock.tools[0].sha256) = (uv().file, sha256(&uv().bytes));
    lock.wheels[0].sha256 = sha256(&one().bytes);
    lock.wheels[0].size = Some(one().bytes.len() as u64);
    lock
}

/// Gathers a vendor folder from the index.
pub(super) fn ask_index(scene: &Scene, at: SocketAddr) -> (i32, String) {
    scene.write("project/envforge.lock", &lock().to_toml());
    vendor(scene, &format!("http://me:{SECRET}@{at}/simple"))
}

/// The same where the package comes from an index that the project names, and the login of the host is in the netrc file.
fn ask_index_of_project(scene: &Scene, at: SocketAddr, index: &str) -> (i32, String) {
    let mut lock = lock();
    lock.added.indexes = vec!["internal".to_owned()];
    lock.wheels[0].index_name = Some("internal".to_owned());
    scene.write("project/envforge.lock", &lock.to_toml());
    scene.write(
        "project/envforge.toml",
        &format!(
            "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n[packages]\nindexes = [{index}]\n"
        ),
    );
    scene.write("home/.netrc", &format!("machine {} login me password {SECRET}\n", at.ip()));
    vendor(scene, &format!("http://{at}/simple"))
}

fn vendor(scene: &Scene, index: &str) -> (i32, String) {
    let mut command = scene.program.command(&["vendor", "vendor"]);
    command.current_dir(scene.program.path("project"));
    command.env("ENVFORGE_INDEX", index);
    let Run { code, stdout, stderr } = Run::of(&command.output().expect("the program starts"));
    (code, format!("{stdout}{stderr}"))
}

/// Asks the registry for the digest of `team/torch:1`.
fn ask_registry(at: SocketAddr, script: &Script) -> (i32, String) {
    let fetch =
        FetchSettings { attempts: 2, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
    let login = EnvironmentLogin {
        registry: at.to_string(),
        user: "me".to_owned(),
        password: SecretString::from(SECRET),
    };
    let insecure = if script.unlisted { Vec::new() } else { vec![at.to_string()] };
    let settings = RegistrySettings {
        login: (!script.anonymous).then_some(login),
        insecure,
        ..RegistrySettings::default()
    };
    let registry = Registry::new(Fetcher::new(&fetch).expect("a client"), settings);
    let image = format!("{at}/team/torch:1").parse().expect("a reference");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(registry.resolve(&image, Machine::X86_64, RetryPolicy::NEEDED)) {
        Ok(found) => (0, format!("{}", found.digest)),
        Err(error) => {
            let source = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            (error.exit() as i32, format!("{error}\n{source}\n{}", error.hints().join("\n")))
        }
    }
}
