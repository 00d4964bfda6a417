//! Caches of the hostile set, as CI restores one: filled here, changed as `cache.toml` says, and used again. What must happen is that
//! the change is not believed: what can be made or fetched again is, the rest is an error.

use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use camino::Utf8Path;
use envforge::archive::content_digest::content_digest_of_tar;
use envforge::assemble::{
    AssembleError, DigestCache, Installation, LayerDigests, LayerKey, Listing, ListingCache, TarDigest, Wheel,
};
use envforge::container_layers::byte_code::{SourceFile, keep, kept};
use envforge::container_layers::{KeptLayer, remember_taken, taken_before};
use envforge::engine::LayerContent as _;
use envforge::failure::Failure as _;
use envforge::fetch::{Download, FetchSettings, Fetcher, Transfer};
use envforge::model::lock::{IndexKind, LockedWheel, WheelLayer};
use envforge::report::NullReporter;
use envforge::store::Store;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::Deserialize;

use super::answers::{ask_index, correct, one_hash};
use super::case::{Case, Outcome};
use super::project::Scene;
use super::server::{Answer, Server};
use crate::made_wheel::MadeWheel;
use crate::wheels::sha256;

/// A file of the user beside the cache.
const PRECIOUS: &str = "of the user";
/// What is downloaded.
const CONTENT: &str = "the content of a package";
/// What the cache has for another project.
const FOREIGN: &str = "the content of a stranger";

/// How the cache is used, and what is changed in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Attack {
    /// What the cache is used for.
    r#use: Use,
    /// Whether it is restored beside another state directory.
    #[serde(default)]
    another_state: bool,
    #[serde(default)]
    change: Vec<Change>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Use {
    /// The digests of two layers of wheels.
    Digests,
    /// The list of a wheel's files.
    Listing,
    /// A layer that is given to an engine.
    Layer,
    /// The layers of two steps, taken from another machine.
    Taken,
    /// The byte code of a wheel.
    ByteCode,
    /// The same, where another image has compiled it.
    ForeignByteCode,
    /// A file that is downloaded unless it is there.
    Download,
    /// An archive whose content is compared.
    Archive,
    /// The cache is opened.
    Open,
    /// Wheels for a vendor folder, by the program.
    Vendor,
}

/// A file of the cache, `*` for the only file or folder of its folder, and what becomes of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Change {
    at: String,
    /// The file becomes this text.
    put: Option<String>,
    /// This text becomes another one.
    find: Option<String>,
    #[serde(default)]
    becomes: String,
    /// The first line goes.
    #[serde(default)]
    without_first_line: bool,
    /// So many bytes at the end go.
    cut: Option<usize>,
    /// The file becomes a copy of this one.
    copy: Option<String>,
    /// It becomes a link to the user's file, or to the user's folder.
    #[serde(default)]
    link: Option<String>,
    /// It becomes another name of the user's file.
    #[serde(default)]
    second_name: bool,
    /// It becomes a pipe.
    #[serde(default)]
    pipe: bool,
}

/// A cache with its state directory and a file of the user.
struct Cache {
    root: PathBuf,
    _folder: tempfile::TempDir,
}

impl Cache {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Self { root: folder.path().to_owned(), _folder: folder };
        cache.write("user/precious", PRECIOUS.as_bytes());
        cache
    }

    /// Makes the file of the user older than any file that is swept.
    fn age(&self) {
        let file = std::fs::File::options().write(true).open(self.root.join("user/precious")).expect("ours");
        file.set_modified(SystemTime::now() - Duration::from_hours(100)).expect("ours");
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.root.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, bytes).expect("ours");
    }

    fn store(&self, state: &str) -> Store {
        let path = |name: &str| Utf8Path::from_path(&self.root).expect("UTF-8").join(name);
        Store::open(&path("cache"), &path(state)).expect("a store")
    }

    /// The path of a file of the cache.
    fn at(&self, name: &str) -> PathBuf {
        let mut path = self.root.join("cache");
        for part in placed(name).split('/') {
            if part == "*" {
                let mut entries = std::fs::read_dir(&path).expect("a folder of the cache");
                path = entries.next().expect("one file").expect("readable").path();
            } else {
                path.push(part);
            }
        }
        path
    }

    fn change(&self, change: &Change) {
        let path = self.at(&change.at);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        let before = std::fs::read(&path).unwrap_or_default();
        let after = if let Some(text) = &change.put {
            text.clone().into_bytes()
        } else if let Some(find) = &change.find {
            let text = String::from_utf8(before).expect("a text");
            let find = placed(find);
            assert!(text.contains(&find), "`{find}` is not in: {text}");
            text.replacen(&find, &placed(&change.becomes), 1).into_bytes()
        } else if change.without_first_line {
            let end = before.iter().position(|byte| *byte == b'\n').expect("two lines");
            before[end + 1..].to_vec()
        } else if let Some(cut) = change.cut {
            before[..before.len() - cut].to_vec()
        } else if let Some(other) = &change.copy {
            std::fs::read(self.at(other)).expect("a file of the cache")
        } else {
            Vec::new()
        };
        let is_folder = path.symlink_metadata().is_ok_and(|found| found.is_dir());
        let _ = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
        if let Some(target) = &change.link {
            symlink(self.root.join(target), &path).expect("ours");
        } else if change.second_name {
            std::fs::hard_link(self.root.join("user/precious"), &path).expect("ours");
        } else if change.pipe {
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("ours");
        } else {
            std::fs::write(&path, after).expect("ours");
        }
    }
}

/// Replaces the names of hashes by the hashes.
fn placed(text: &str) -> String {
    let (hash, wheel) = (sha256(CONTENT.as_bytes()), one_hash());
    let text = text.replace("{start}", &hash[..2]).replace("{hash}", &hash);
    let text = text.replace("{foreign}", &sha256(FOREIGN.as_bytes()));
    let text = text.replace("{one}", &key("one").hash()).replace("{other}", &key("other").hash());
    text.replace("{wheel-start}", &wheel[..2]).replace("{wheel}", &wheel)
}

fn key(name: &str) -> LayerKey<'_> {
    LayerKey::new(11).wheel(name, std::collections::BTreeSet::new())
}

fn digests(name: &str) -> LayerDigests {
    let digest = |of: &str| format!("sha256:{}", sha256(format!("{name} {of}").as_bytes()));
    LayerDigests {
        plain: TarDigest { diff_id: digest("plain"), size: 10_240 },
        gzip: digest("gzip"),
        gzip_size: 99,
    }
}

/// The layers of a step with that content.
fn step(content: &str) -> Vec<KeptLayer> {
    vec![KeptLayer { sha256: sha256(content.as_bytes()), size: content.len() as u64 }]
}

/// A module that was compiled.
fn code() -> Vec<SourceFile> {
    let path = "/opt/env/lib/python3.11/site-packages/demo/__pycache__/__init__.cpython-311.pyc".to_owned();
    vec![SourceFile { path, content: "compiled here".into() }]
}

/// What one use said: its exit code and text.
type Said = (i32, String);

/// What a record that was read is compared with.
fn found<T: PartialEq>(found: Option<T>, right: &T) -> Said {
    let text = match found {
        None => "it is made again",
        Some(found) if found == *right => "it is found",
        Some(_) => "another record is believed",
    };
    (0, text.to_owned())
}

fn wheel(cache: &Cache) -> (LockedWheel, Listing) {
    let bytes = MadeWheel::new("demo").file("demo/__init__.py", b"x = 1\n").build();
    let name = "demo-1.0-py3-none-any.whl";
    cache.write(name, &bytes);
    let locked = LockedWheel {
        name: "demo".to_owned(),
        version: "1.0".to_owned(),
        file: name.to_owned(),
        sha256: sha256(&bytes),
        size: None,
        index: IndexKind::Default,
        index_name: None,
        layer: WheelLayer::User,
    };
    let path = cache.root.join(name);
    let opened = Wheel::open(Utf8Path::from_path(&path).expect("UTF-8"), &locked).expect("a wheel");
    let listing = Listing::of(&Installation::of(Arc::new(opened), 11).expect("installed")).expect("listed");
    (locked, listing)
}

/// Two files of a tar.
fn archive() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for name in ["etc/one", "etc/two"] {
        let mut header = tar::Header::new_gnu();
        header.set_size(3);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        tar.append_data(&mut header, name, &b"yes"[..]).expect("in memory");
    }
    tar.into_inner().expect("in memory")
}

/// Downloads the content unless it is there, and uses it as every user does: with its hash.
fn download(store: &Store) -> Said {
    let listener = Server::bind();
    let address = listener.1;
    let answer = Answer::plain("/a.deb", CONTENT.as_bytes().to_vec());
    let _server = Server::start(listener, vec![answer]);
    let settings = FetchSettings { attempts: 1, ..FetchSettings::default() };
    let fetcher = Fetcher::new(&settings).expect("a client");
    let hash = sha256(CONTENT.as_bytes());
    let download = Download {
        name: "a.deb".to_owned(),
        addresses: vec![format!("http://{address}/a.deb").parse().expect("an address")],
        sha256: hash.clone(),
        size: Some(CONTENT.len() as u64),
        login: None,
    };
    let transfer = Transfer::new(Arc::new(NullReporter), "test", None);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    match runtime.block_on(fetcher.into_store(store, &download, &transfer)) {
        Err(error) => (error.exit() as i32, error.to_string()),
        Ok(path) => match store.read(&hash) {
            Ok(Some(bytes)) if bytes == CONTENT && !path.is_symlink() => (0, "it is right".to_owned()),
            other => (0, format!("the cache has something else: {other:?}")),
        },
    }
}

fn layer(cache: &Cache, store: &Store) -> Said {
    let (sha256, size) = (sha256(CONTENT.as_bytes()), CONTENT.len() as u64);
    let mut sent = Vec::new();
    let content = KeptLayer { sha256, size }.content(store).expect("a path");
    match content.write_to(&mut sent) {
        Ok(()) if sent == CONTENT.as_bytes() => (0, "it is right".to_owned()),
        Ok(()) => (0, format!("another layer of {} bytes is sent, in {}", sent.len(), cache.root.display())),
        Err(error) => match error.downcast::<AssembleError>() {
            Ok(error) => (error.exit() as i32, error.to_string()),
            Err(error) => (3, error.to_string()),
        },
    }
}

fn archive_of(cache: &Cache) -> Said {
    let file = std::fs::File::open(cache.root.join("cache/archive.tar")).expect("ours");
    match content_digest_of_tar(file) {
        Ok(digest) => {
            let right = content_digest_of_tar(&archive()[..]).expect("whole");
            (0, if digest == right { "it is right".to_owned() } else { format!("it is {digest}") })
        }
        Err(error) => (3, error.to_string()),
    }
}

/// Fills the cache of a case, changes it, and uses it again.
fn attempt_here(case: &Case, attack: &Attack) -> Outcome {
    let cache = Cache::new();
    let store = cache.store("state");
    let (locked, listing) = wheel(&cache);
    let fill = || match attack.r#use {
        Use::Digests => {
            let known = DigestCache::of(&store);
            for name in ["one", "other"] {
                known.put(&key(name), &digests(name)).expect("written");
            }
        }
        Use::Listing => ListingCache::of(&store, 11).put(&locked, &listing).expect("written"),
        Use::Layer => {
            store.put(&sha256(CONTENT.as_bytes()), CONTENT.as_bytes()).expect("written");
        }
        Use::Taken => {
            for (step_of, content) in [("one", CONTENT), ("other", FOREIGN)] {
                store.put(&sha256(content.as_bytes()), content.as_bytes()).expect("written");
                remember_taken(&store, &key(step_of).hash(), &step(content)).expect("written");
            }
        }
        Use::ByteCode => keep(&store, &locked.sha256, "this image", &code()).expect("written"),
        Use::ForeignByteCode => keep(&store, &locked.sha256, "another image", &code()).expect("written"),
        Use::Archive => cache.write("cache/archive.tar", &archive()),
        Use::Open => cache.age(),
        Use::Download | Use::Vendor => {}
    };
    fill();
    attack.change.iter().for_each(|change| cache.change(change));
    let store = cache.store(if attack.another_state { "another-state" } else { "state" });
    let (code, output) = match attack.r#use {
        Use::Digests => found(DigestCache::of(&store).find(&key("one")), &digests("one")),
        Use::Listing => found(ListingCache::of(&store, 11).find(&locked), &listing),
        Use::Layer => layer(&cache, &store),
        Use::Taken => found(taken_before(&store, &key("one").hash()).expect("readable"), &step(CONTENT)),
        Use::ByteCode => found(kept(&store, &locked.sha256, "this image"), &code()),
        // It is never compared: the record of another image is not looked at.
        Use::ForeignByteCode => found(kept(&store, &locked.sha256, "this image"), &Vec::new()),
        Use::Download => download(&store),
        Use::Archive => archive_of(&cache),
        Use::Open => (0, "it is open".to_owned()),
        Use::Vendor => panic!("{} is run by the program", case.folder.display()),
    };
    let mut harm = Vec::new();
    let precious = cache.root.join("user/precious");
    let kind = precious.symlink_metadata().map(|found| found.file_type());
    if !kind.is_ok_and(|kind| kind.is_file() && !kind.is_fifo())
        || std::fs::read_to_string(&precious).ok().as_deref() != Some(PRECIOUS)
    {
        harm.push("the user's file was changed or removed".to_owned());
    }
    if std::fs::read_dir(cache.root.join("user")).expect("ours").count() != 1 {
        harm.push("a file was written into the user's folder".to_owned());
    }
    Outcome { code, output, harm, root: cache.root.clone() }
}

/// The same with the program: the index has the right wheels, and the vendor folder must have them too.
fn attempt_program(case: &Case, attack: &Attack) -> Outcome {
    let listener = Server::bind();
    let at = listener.1;
    let _server = Server::start(listener, correct());
    let scene = Scene::of(case);
    let fill = ask_index(&scene, at);
    assert_eq!(fill.0, 0, "the cache is filled: {}", fill.1);
    std::fs::remove_dir_all(scene.program.path("project/vendor")).expect("the folder that was filled");
    let cache = Cache { root: scene.program.path(""), _folder: tempfile::tempdir().expect("a folder") };
    cache.write("user/precious", PRECIOUS.as_bytes());
    attack.change.iter().for_each(|change| cache.change(change));
    let (code, output) = ask_index(&scene, at);
    let mut harm = Vec::new();
    let wheel = one_hash();
    let path = scene.program.path("project/vendor/files").join(&wheel[..2]).join(&wheel);
    let is_right = |path: &Path| std::fs::read(path).is_ok_and(|bytes| sha256(&bytes) == wheel);
    if code == 0 && !is_right(&path) {
        harm.push("the vendor folder has another wheel".to_owned());
    }
    if std::fs::read_to_string(cache.root.join("user/precious")).ok().as_deref() != Some(PRECIOUS) {
        harm.push("the user's file was changed".to_owned());
    }
    Outcome { code, output, harm, root: cache.root.clone() }
}

/// Uses the cache of a case.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    let text = std::fs::read_to_string(case.folder.join("cache.toml")).expect("cache.toml");
    let attack: Attack = toml::from_str(&text).expect("cache.toml");
    vec![match attack.r#use {
        Use::Vendor => attempt_program(case, &attack),
        _ => attempt_here(case, &attack),
    }]
}
