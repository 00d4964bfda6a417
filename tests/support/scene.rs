//! One test with the real engine: alone on it, with an index and a program of its own, and everything it made removed
//! at the end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{LazyLock, OnceLock};
use std::time::{Duration, Instant};

use crate::engine::{
    Inventory, bridge_address, build_cache, docker, engine_socket, free_build_cache, keep_layers,
};
use crate::framework::TORCH_2_7_CU118;
use crate::index::Index;
use crate::program::{Program, Run};

/// What the small builds build: a framework of a few kilobytes, everything else real.
pub(crate) const SPEC: &str = "pytorch-cuda:2.7-cu118";
/// Its canonical name, as long as nothing was checked on a GPU.
pub(crate) const TAG: &str = "pytorch-cuda:2.7.1-cu118-py3.11-unverified";

/// Variables of the caller that would lead the program to other folders or another target.
const AMBIENT: [&str; 18] = [
    "ENVFORGE_CACHE_DIR",
    "ENVFORGE_STATE_DIR",
    "ENVFORGE_CONFIG",
    "ENVFORGE_FRAMEWORK_INDEX",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "PIP_FIND_LINKS",
    "ENVFORGE_IMAGE_MIRROR",
    "ENVFORGE_LAYERS",
    "ENVFORGE_LAYERS_WRITE",
    "ENVFORGE_LAYER_COMPRESSION",
    "ENVFORGE_REGISTRY",
    "ENVFORGE_REGISTRY_USER",
    "ENVFORGE_REGISTRY_PASSWORD",
    "ENVFORGE_SIGNING_KEY",
    "COSIGN_PASSWORD",
    "DOCKER_AUTH_CONFIG",
];

/// Where all small builds on one engine keep downloads and what they make, so that only the first pays for them.
static SHARED_CACHE: LazyLock<PathBuf> = LazyLock::new(|| {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = all.join(format!("docker-cache{}", engine_name()));
    std::fs::create_dir_all(&path).expect("the target folder is writable");
    if !path.join(RECORDS_OF_STATES).exists() {
        take_from_another_engine(all, &path);
    }
    path
});

/// What the state of a scene recorded, in the shared cache.
const RECORDS_OF_STATES: &str = "records-of-states";
/// The lock of the small build, there.
const KEPT_LOCK: &str = "lock-of-the-small-build";

/// Gives a new shared cache what that of another engine has by now; nothing if there is none.
fn take_from_another_engine(all: &Path, path: &Path) {
    let entries = std::fs::read_dir(all).expect("the target folder").flatten().map(|entry| entry.path());
    let mut caches = entries.filter(|other| other.to_string_lossy().contains("/docker-cache"));
    let Some(other) = caches.find(|other| other.join(RECORDS_OF_STATES).exists()) else { return };
    for file in ["sha256", "base", "records"].iter().flat_map(|folder| files_below(&other.join(folder))) {
        let to = path.join(file.strip_prefix(&other).expect("below it"));
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder of ours");
        // A test may have removed it meanwhile: then it is made again.
        drop(std::fs::hard_link(file, to));
    }
    for folder in [KEPT_LOCK, RECORDS_OF_STATES] {
        copy_folder(&other.join(folder), &path.join(folder));
    }
}

/// That folder.
pub(crate) fn shared_cache() -> &'static Path {
    &SHARED_CACHE
}

/// The engine of the tests as a part of a file name.
fn engine_name() -> String {
    engine_socket().to_string_lossy().replace('/', "-")
}

/// What a state says of the shared cache: which bases it has, and which uv.
const RECORDS: [&str; 2] = ["base", "uv"];

/// Gives a state folder the records of the shared cache: those bases are not made again, that uv is not unpacked again.
pub(crate) fn give_records(state: &Path) {
    for kind in RECORDS {
        copy_folder(&SHARED_CACHE.join(RECORDS_OF_STATES).join(kind), &state.join(kind));
    }
    // One key for all states: else each scene would make every layer of the shared cache anew.
    let key = state.join("cache-key");
    std::fs::write(&key, [7; 32]).expect("a file of ours");
    std::fs::set_permissions(key, std::fs::Permissions::from_mode(0o600)).expect("a file of ours");
}

/// Keeps those records of a state that used the shared cache.
pub(crate) fn keep_records(state: &Path) {
    for kind in RECORDS {
        copy_folder(&state.join(kind), &SHARED_CACHE.join(RECORDS_OF_STATES).join(kind));
    }
}

/// A test with the engine to itself.
pub(crate) struct Scene {
    /// The framework's own index.
    pub(crate) index: Index,
    /// The program, which knows that index.
    pub(crate) program: Program,
    keeps_bases: bool,
    before: Inventory,
    /// The records of the engine's build cache before the first build on a base of its own.
    cache_before: Option<BTreeSet<String>>,
    _alone: File,
}

impl Scene {
    /// A scene with the same framework as every other: after the first build the engine's cache has its layers.
    pub(crate) fn new() -> Self {
        Self::with_salt("")
    }

    /// As [`Scene::new`], with the lock of the small build in the state folder; the first one makes it for all that begin within
    /// an hour.
    pub(crate) fn locked() -> Self {
        let scene = Self::new();
        let locks = scene.program.path("state/locks-of-specs");
        let kept = SHARED_CACHE.join(KEPT_LOCK);
        // A new engine whose cache was taken from another has no base yet: locking puts it there.
        let is_usable = |lock: &PathBuf| is_of_this_run(lock) && has_base_of(lock);
        if files_below(&kept).first().is_some_and(is_usable) {
            copy_folder(&kept, &locks);
        } else {
            scene.succeed(&["lock", SPEC]);
            let path = scene.lock_path();
            let to = kept.join(path.strip_prefix(&locks).expect("it lies there"));
            drop(std::fs::remove_dir_all(&kept));
            std::fs::create_dir_all(to.parent().expect("a file in a folder")).expect("a folder of ours");
            std::fs::copy(path, to).expect("a file of ours");
        }
        scene
    }

    /// A scene whose framework wheels no cache has seen, for tests that watch downloads or the steps of a build.
    pub(crate) fn fresh() -> Self {
        let salt = tempfile::Builder::new().rand_bytes(12).tempdir().expect("a temporary folder");
        Self::with_salt(&salt.path().to_string_lossy())
    }

    fn with_salt(salt: &str) -> Self {
        let alone = Self::wait_for_the_engine();
        let before = Inventory::now();
        assert!(
            !before.tags.contains(TAG),
            "`{TAG}` exists: these tests would overwrite it; docker rmi {TAG}"
        );
        let index = Index::on(bridge_address(), TORCH_2_7_CU118.wheels("cp311", salt));
        let program = Program::new(&AMBIENT)
            .with("ENVFORGE_CACHE_DIR", SHARED_CACHE.to_string_lossy())
            .with("ENVFORGE_FRAMEWORK_INDEX", format!("{}/{{cuda}}", index.url()));
        give_records(&program.path("state"));
        Self { index, program, keeps_bases: true, before, cache_before: None, _alone: alone }
    }

    /// One test at a time, whichever runner started it, for as long as the result lives.
    pub(crate) fn wait_for_the_engine() -> File {
        // Beside no target folder: checkouts of one machine share its engines.
        let path = std::env::temp_dir().join(format!("envforge-docker-tests{}.lock", engine_name()));
        let file = File::create(path).expect("the temporary folder is writable");
        file.lock().expect("the file system has locks");
        file
    }

    /// Sets a variable of the program, or sets it anew.
    pub(crate) fn set(mut self, name: &str, value: impl AsRef<str>) -> Self {
        self.program.set(name, value);
        self
    }

    /// Gives the program a cache of its own instead of the shared one, for tests that build with it.
    pub(crate) fn with_empty_cache(self) -> Self {
        let mut scene = self.with_empty_cache_for_locks();
        // Half a minute on an engine with many images: no other scene asks for it.
        scene.cache_before = Some(build_cache());
        scene
    }

    /// The same for tests that make a base at most: the engine's build cache gets nothing of that.
    pub(crate) fn with_empty_cache_for_locks(mut self) -> Self {
        self.keeps_bases = false;
        let path = self.program.path("cache");
        // Without its record a base is made again.
        drop(std::fs::remove_dir_all(self.program.path("state/base")));
        self.set("ENVFORGE_CACHE_DIR", path.to_string_lossy())
    }

    /// The same with the downloads of the shared cache: what is made of them is made again.
    pub(crate) fn with_downloads_only(self) -> Self {
        let scene = self.with_empty_cache_for_locks();
        give_downloads(&scene.program.path("cache"), |_| true);
        scene
    }

    /// What was added to the engine since the scene began.
    pub(crate) fn added(&self) -> Inventory {
        self.before.added()
    }

    /// Asserts that the engine has new tags of the small build and nothing else.
    #[track_caller]
    pub(crate) fn assert_only_tags_added(&self) {
        self.assert_on_the_engine(|added| {
            let tags = added.tags.iter().all(|tag| tag.ends_with("-unverified"));
            tags && added.containers.is_empty() && added.untagged.is_empty()
        });
        self.assert_no_temporary_files();
    }

    /// Looks again for a while: on a shared engine others make things that pass, what we leave behind stays.
    #[track_caller]
    fn assert_on_the_engine(&self, fine: impl Fn(&Inventory) -> bool) {
        let end = Instant::now() + Duration::from_mins(3);
        let mut added = self.added();
        while !fine(&added) && Instant::now() < end {
            std::thread::sleep(Duration::from_secs(1));
            added = self.added();
        }
        assert!(fine(&added), "left on the engine: {added:#?}");
    }

    /// Asserts that nothing is left: no tag, container or untagged image, no temporary file, no half-written state.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self) {
        self.assert_on_the_engine(Inventory::is_empty);
        self.assert_no_temporary_files();
    }

    /// Asserts that no temporary file is left.
    #[track_caller]
    pub(crate) fn assert_no_temporary_files(&self) {
        let mut left = files_below(&self.program.path("tmp"));
        left.extend(files_below(&self.program.path("cache/temp")));
        left.extend(files_below(&SHARED_CACHE.join("temp")));
        let state = files_below(&self.program.path("state"));
        left.extend(state.into_iter().filter(|path| path.to_string_lossy().contains("/.envforge-")));
        assert!(left.is_empty(), "left on disk: {left:?}");
    }

    /// Runs the program and asserts that it ends with 0.
    #[track_caller]
    pub(crate) fn succeed(&self, args: &[&str]) -> Run {
        let run = self.program.run(args);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run
    }

    /// Locks the project with the public index as it was two days ago, and gives that date: a release between two locks would
    /// be in the second alone. The wheels of this scene's index count as older.
    #[track_caller]
    pub(crate) fn lock_frozen(&self) -> String {
        self.index.date("2025-06-04T00:00:00Z");
        let before = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(48);
        let date = before.strftime("%F").to_string();
        self.succeed(&["lock", "--as-of", &date]);
        date
    }

    /// Runs a command that locks a project of [`Scene::lock_frozen`] again and asserts which files its lock then has more than
    /// `before`, by the beginnings of their names, and that none is missing.
    #[track_caller]
    pub(crate) fn lock_with_only(&self, args: &[&str], before: &str, added: &[&str]) {
        self.succeed(args);
        let after = std::fs::read_to_string(self.program.path("envforge.lock")).expect("a lock");
        let (old, new) = (locked_files(before), locked_files(&after));
        let gone: Vec<_> = old.difference(&new).collect();
        let more: Vec<_> = new.difference(&old).collect();
        let expected = more.len() == added.len()
            && added.iter().all(|name| more.iter().any(|file| file.starts_with(name)));
        let what = args.join(" ");
        assert!(gone.is_empty() && expected, "`{what}` took {gone:?} out of the lock and put {more:?} in");
    }

    /// Runs the program and asserts exit code and a part of what it says; returns stderr.
    #[track_caller]
    pub(crate) fn fail(&self, args: &[&str], code: i32, says: &[&str]) -> String {
        let run = self.program.run(args);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert_message(&run.stderr, says);
        run.stderr
    }

    /// The small build's base as the engine has it, made from packages whatever registries can be reached.
    pub(crate) fn bootstrapped_base(&self) -> String {
        static BASE: OnceLock<String> = OnceLock::new();
        let made = || {
            self.succeed(&["lock", SPEC, "--base-provider", "bootstrap", "--lockfile", "bootstrap.lock"]);
            base_of_lock(&std::fs::read_to_string(self.program.path("bootstrap.lock")).expect("the lock"))
        };
        BASE.get_or_init(made).clone()
    }

    /// The base of that lock as the engine has it.
    pub(crate) fn base(&self) -> String {
        base_of_lock(&self.lock())
    }

    /// The one lock in the state folder, as text.
    pub(crate) fn lock(&self) -> String {
        std::fs::read_to_string(self.lock_path()).expect("a file of ours")
    }

    /// Where that lock lies.
    pub(crate) fn lock_path(&self) -> PathBuf {
        let state = files_below(&self.program.path("state/locks-of-specs"));
        let is_lock = |path: &&PathBuf| {
            let text = || std::fs::read_to_string(path).unwrap_or_default();
            path.to_string_lossy().ends_with(".lock") && text().contains("schema")
        };
        let locks: Vec<_> = state.iter().filter(is_lock).collect();
        assert_eq!(locks.len(), 1, "one lock in {state:?}");
        locks[0].clone()
    }
}

/// True if a file is younger than the program and than an hour: the public index has new releases every day.
fn is_of_this_run(file: &Path) -> bool {
    let changed = |path: &Path| path.metadata().and_then(|data| data.modified()).expect("a time");
    let age = changed(file).elapsed().unwrap_or_default();
    changed(file) > changed(Path::new(env!("CARGO_BIN_EXE_envforge"))) && age < Duration::from_hours(1)
}

/// True if the engine has the bootstrapped base of a lock.
fn has_base_of(lock: &Path) -> bool {
    let text = std::fs::read_to_string(lock).expect("a file of ours");
    text.contains("content = ") && !docker(&["images", "-q", &base_of_lock(&text)]).is_empty()
}

/// The names of all packages' files in a lock.
fn locked_files(lock: &str) -> BTreeSet<String> {
    let lock: toml::Table = lock.parse().expect("TOML");
    let packages = lock.values().filter_map(toml::Value::as_array).flatten();
    let file = |package: &toml::Value| package.get("file").or_else(|| package.get("path")).cloned();
    packages.filter_map(file).map(|name| name.as_str().expect("a name").to_owned()).collect()
}

/// The tag that the engine has for the bootstrapped base of a lock.
pub(crate) fn base_of_lock(lock: &str) -> String {
    let lock: toml::Table = lock.parse().expect("TOML");
    format!("envforge-base:{}", &lock["base"]["content"].as_str().expect("a content digest")[..16])
}

impl Drop for Scene {
    fn drop(&mut self) {
        if self.keeps_bases {
            keep_records(&self.program.path("state"));
        }
        let added = self.before.added();
        if self.keeps_bases && added.tags.contains(TAG) && !std::thread::panicking() {
            keep_layers(TAG);
        }
        let ours = |id: &&String| {
            let label = "{{index .Config.Labels \"io.envforge.name\"}}";
            let label = std::process::Command::new("docker").args(["inspect", "-f", label, id]).output();
            let name =
                label.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
            name.starts_with("envforge/") || name.starts_with("pytorch-cuda:2.7")
        };
        for image in added.tags.iter().chain(added.untagged.iter().filter(ours)) {
            drop(std::process::Command::new("docker").args(["rmi", "-f", image]).output());
        }
        // Nothing that comes later is built on a base of its own.
        if let Some(before) = &self.cache_before {
            free_build_cache(before);
        }
    }
}

/// Asserts one clear message: it names all of that, it is not a panic and not a dump.
#[track_caller]
pub(crate) fn assert_message(stderr: &str, says: &[&str]) {
    assert!(stderr.matches("error:").count() >= 1, "no error line: {stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for part in says {
        assert!(stderr.contains(part), "`{part}` is missing in: {stderr}");
    }
}

/// Copies the files of one folder into another, which is made; no file if there is no such folder.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder of ours");
    for file in files_below(from) {
        let to = to.join(file.strip_prefix(from).expect("below it"));
        std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder of ours");
        std::fs::copy(&file, to).expect("a file of ours");
    }
}

/// Gives a cache the files of the shared one that are wanted, by their SHA-256, as hard links: downloads take minutes. Returns
/// how many files it has and how many it has not.
pub(crate) fn give_downloads(cache: &Path, is_wanted: impl Fn(&str) -> bool) -> (usize, usize) {
    let shared = SHARED_CACHE.join("sha256");
    let (mut given, mut left_out) = (0, 0);
    for file in files_below(&shared) {
        let name = file.file_name().expect("a name").to_string_lossy();
        if !is_wanted(&name) {
            left_out += 1;
            continue;
        }
        link(&file, &cache.join("sha256").join(file.strip_prefix(&shared).expect("it lies there")));
        given += 1;
    }
    (given, left_out)
}

/// Gives a cache all downloads of the shared one, and of what was made there those folders alone.
pub(crate) fn give_downloads_and(cache: &Path, made: &[&str]) {
    give_downloads(cache, |_| true);
    for folder in made {
        let from = SHARED_CACHE.join(folder);
        for file in files_below(&from) {
            link(&file, &cache.join(folder).join(file.strip_prefix(&from).expect("below it")));
        }
    }
}

/// Gives the shared cache what another has downloaded: files that a lock names.
pub(crate) fn keep_downloads(cache: &Path, lock: &str) {
    for file in files_below(&cache.join("sha256")) {
        let name = file.file_name().expect("a name").to_string_lossy();
        if lock.contains(&*name) && !lock.contains(&format!("sha256:{name}")) {
            link(&file, &SHARED_CACHE.join(file.strip_prefix(cache).expect("below it")));
        }
    }
}

/// Another name for a file, where there is none.
fn link(file: &Path, to: &Path) {
    std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder of ours");
    if !to.exists() {
        std::fs::hard_link(file, to).expect("the same file system");
    }
}

/// All files below a folder, sorted; none if the folder is not there.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => folders.push(entry.path()),
                _ => found.push(entry.path()),
            }
        }
    }
    found.sort();
    found
}

/// Sends Ctrl-C and waits for the end.
pub(crate) fn interrupt(child: Child) -> Run {
    send_interrupt(&child);
    let output = child.wait_with_output().expect("a child of ours");
    Run::of(&output)
}

/// Reads what the program says until a line contains that text, then sends Ctrl-C and waits for the end.
pub(crate) fn interrupt_when(mut child: Child, text: &str) -> Run {
    let mut lines = BufReader::new(child.stderr.take().expect("standard error is caught")).lines();
    let mut said = String::new();
    let mut seen = false;
    for line in lines.by_ref().map_while(Result::ok) {
        said = said + &line + "\n";
        if line.contains(text) {
            seen = true;
            break;
        }
    }
    assert!(seen, "`{text}` was never said: {said}");
    send_interrupt(&child);
    said.extend(lines.map_while(Result::ok).map(|line| line + "\n"));
    let mut run = Run::of(&child.wait_with_output().expect("a child of ours"));
    run.stderr = said;
    run
}

/// Reads what the program says until a line is the moment, then kills it as `kill -9` does; false if the moment never came.
pub(crate) fn kill_when(mut child: Child, mut is_moment: impl FnMut(&str) -> bool) -> bool {
    let lines = BufReader::new(child.stderr.take().expect("standard error is caught")).lines();
    let came = lines.map_while(Result::ok).any(|line| is_moment(&line));
    child.kill().expect("a child of ours");
    child.wait().expect("a child of ours");
    came
}

/// Looks again and again until something is so; fails if it is not within five minutes.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_mins(5);
    while !is_so() {
        assert!(Instant::now() < end, "not within five minutes: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn send_interrupt(child: &Child) {
    let id = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &id]).status().expect("kill starts");
    assert!(sent.success(), "the program ended before it was interrupted");
}

/// Runs Python in an image and gives what it prints.
pub(crate) fn python_in(image: &str, code: &str) -> String {
    docker(&["run", "--rm", "--network", "none", image, "python", "-c", code])
}
