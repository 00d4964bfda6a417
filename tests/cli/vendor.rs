//! A vendor folder, filled by the program from an index of the test's own, with an engine that has the base: what is wrong
//! with it, what has happened upstream since, and what cannot be gathered.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use envforge::model::lock::{IndexKind, Lock, LockedTool, LockedWheel, WheelLayer};
use serde_json::Value;

use crate::gpu_daemon::{GpuDaemon, Requests};
use crate::index::{Fault, Index};
use crate::program::{Program, Run};
use crate::wheels::{Wheel, WheelSpec, sha256};
use crate::{assert_message, program};

const TOML: &str = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";

struct Scene {
    program: Program,
    index: Index,
    lock: Lock,
    requests: Requests,
}

fn one() -> Wheel {
    WheelSpec::new("demo-one", "1.0").file("demo_one.py", "ONE = 1\n").build()
}

fn two() -> Wheel {
    WheelSpec::new("demo-two", "2.0").file("demo_two.py", "TWO = 2\n").build()
}

/// A file of that wheel's name with another content.
fn another(wheel: &Wheel) -> Wheel {
    Wheel { bytes: [&wheel.bytes, b"x".as_slice()].concat(), ..wheel.clone() }
}

impl Scene {
    /// A project whose lock names two wheels of the default index, uv and an image as the base.
    fn new() -> Self {
        let (mut lock, index) = lock_and_index();
        lock.added.project = Some("small".to_owned());
        let program = program();
        let socket = program.path("docker.sock");
        let requests = GpuDaemon { tags: vec![base_tag()], ..GpuDaemon::default() }.listen(&socket);
        let program = program
            .with("DOCKER_HOST", format!("unix://{}", socket.display()))
            .with("ENVFORGE_INDEX", format!("{}/simple", index.url()));
        std::fs::write(program.path("envforge.toml"), TOML).expect("ours");
        let scene = Self { program, index, lock, requests };
        scene.write_lock();
        scene
    }

    /// The same with the folder `vendor` filled.
    fn filled() -> Self {
        let scene = Self::new();
        scene.vendor();
        scene
    }

    fn write_lock(&self) {
        std::fs::write(self.program.path("envforge.lock"), self.lock.to_toml()).expect("ours");
    }

    fn run(&self, args: &[&str]) -> Run {
        self.program.run(args)
    }

    /// Fills the folder and gives what was said.
    #[track_caller]
    fn vendor(&self) -> String {
        let run = self.run(&["vendor", "vendor"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    }

    fn check(&self, more: &[&str]) -> Run {
        self.run(&[&["vendor", "vendor", "--check"], more].concat())
    }

    /// Asserts that `--check` finds exactly that and ends with that code.
    #[track_caller]
    fn assert_found(&self, more: &[&str], code: i32, lines: &[String]) {
        let run = self.check(more);
        assert_eq!(run.code, code, "{}", run.stderr);
        assert_eq!(run.stdout.lines().collect::<Vec<_>>(), lines, "{}", run.stderr);
        let s = if lines.len() == 1 { "" } else { "s" };
        let findings = format!("read, {} finding{s}", lines.len());
        assert!(run.stderr.contains(&findings), "{}", run.stderr);
    }

    /// Asserts that `build --offline` refuses the folder, says all of that, and has built and loaded nothing.
    #[track_caller]
    fn assert_refused(&self, says: &[&str]) {
        assert_message(&self.run(&["build", "--offline", "vendor"]), 2, says);
        for asked in ["/build?t=", "/images/load", "/containers/create", "/session"] {
            assert!(!self.requests.contain(asked), "the engine was asked for {asked}");
        }
    }

    /// Where a file of that content lies in the folder.
    fn file(&self, bytes: &[u8]) -> PathBuf {
        self.program.path("vendor").join(place(bytes))
    }

    fn only(&self, folder: &str) -> PathBuf {
        let mut entries = std::fs::read_dir(self.program.path("vendor").join(folder)).expect("it is there");
        entries.next().expect("one").expect("readable").path()
    }
}

/// The tag of the base of that lock.
pub(crate) fn base_tag() -> String {
    format!("envforge-base:{}", "a".repeat(16))
}

/// A lock with two wheels of the default index, uv and an image as the base, and that index.
pub(crate) fn lock_and_index() -> (Lock, Index) {
    let uv = WheelSpec::new("uv", "0.0.1").file("uv-0.0.1.data/scripts/uv", "a program\n").build();
    let mut lock = crate::verify::lock();
    // The id of the daemon's image.
    lock.base.digest = Some(format!("sha256:{}", "a".repeat(64)));
    lock.tools = vec![LockedTool {
        name: uv.project.clone(),
        version: "0.0.1".to_owned(),
        file: uv.file.clone(),
        sha256: sha256(&uv.bytes),
    }];
    lock.wheels = [one(), two()].iter().map(locked).collect();
    (lock, Index::local(vec![one(), two(), uv]))
}

/// uv as a lock of this version names it.
pub(crate) fn current_tools() -> Vec<LockedTool> {
    vec![envforge::packages::catalogue().uv(envforge::model::versions::Machine::X86_64).expect("a uv")]
}

/// A wheel of the default index, as a lock names it.
pub(crate) fn locked(wheel: &Wheel) -> LockedWheel {
    LockedWheel {
        name: wheel.project.clone(),
        version: wheel.file.split('-').nth(1).expect("a version").to_owned(),
        file: wheel.file.clone(),
        sha256: sha256(&wheel.bytes),
        size: Some(wheel.bytes.len() as u64),
        index: IndexKind::Default,
        index_name: None,
        layer: WheelLayer::User,
    }
}

fn place(bytes: &[u8]) -> String {
    let hash = sha256(bytes);
    format!("files/{}/{hash}", &hash[..2])
}

fn flip_a_byte(path: &PathBuf) {
    let mut bytes = std::fs::read(path).expect("it is there");
    bytes[0] ^= 1;
    std::fs::write(path, bytes).expect("ours");
}

#[test]
fn complete_directory_has_no_findings() {
    let scene = Scene::filled();
    scene.assert_found(&[], 0, &[]);
    scene.assert_found(&["--upstream"], 0, &[]);
    scene.index.take_downloads();
    assert!(scene.vendor().contains(" 0 of them new"));
    assert_eq!(scene.index.take_downloads(), Vec::<String>::new());
}

#[test]
fn project_that_is_installed_is_not_built_from_a_directory() {
    let scene = Scene::new();
    let says = "`build --offline` cannot build this project's image";
    assert!(!scene.vendor().contains(says));
    std::fs::write(scene.program.path("envforge.toml"), format!("{TOML}project = 'install'\n"))
        .expect("ours");
    assert!(scene.vendor().contains(says));
    scene.assert_refused(&["`project = \"install\"` needs the package index", "without --offline"]);
}

#[test]
fn changed_byte_is_reported_and_blocks_the_build() {
    let scene = Scene::filled();
    let path = scene.file(&one().bytes);
    flip_a_byte(&path);
    let (file, place) = (one().file, place(&one().bytes));
    scene.assert_found(&[], 1, &[format!("damaged  {file} ({place})")]);
    let report: Value = serde_json::from_str(&scene.check(&["--json"]).stdout).expect("JSON");
    let finding = serde_json::json!({ "what": "damaged", "file": file, "path": place });
    assert_eq!(report["findings"], serde_json::json!([finding]));
    scene.assert_refused(&[
        "is incomplete or damaged",
        &format!("{file} is damaged ({place})"),
        "envforge vendor",
    ]);

    // As the hint says.
    std::fs::remove_file(path).expect("it is there");
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn missing_and_truncated_files_are_reported_and_restored() {
    let scene = Scene::filled();
    std::fs::remove_file(scene.file(&one().bytes)).expect("it is there");
    std::fs::write(scene.file(&two().bytes), &two().bytes[..40]).expect("ours");
    let mut lines = vec![
        (sha256(&one().bytes), format!("missing  {}", one().file)),
        (sha256(&two().bytes), format!("damaged  {} ({})", two().file, place(&two().bytes))),
    ];
    lines.sort();
    scene.assert_found(&[], 1, &lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>());
    scene.assert_refused(&[&format!("{} is missing", one().file), &format!("{} is damaged", two().file)]);
    assert!(scene.vendor().contains(" 2 of them new"));
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn changed_lock_is_damaged_and_hides_nothing() {
    let scene = Scene::filled();
    let path = scene.only("locks");
    let name = format!("locks/{}", path.file_name().expect("a name").to_string_lossy());
    let text = std::fs::read_to_string(&path).expect("it is there");
    let told = format!("damaged  a lock ({name})");
    let other = text.replace(&sha256(&one().bytes), &sha256(&two().bytes));
    assert_ne!(other, text);
    for bytes in [other.as_bytes(), b"no lock\n", b"caf\xe9", b"", &text.as_bytes()[..text.len() / 2]] {
        std::fs::write(&path, bytes).expect("ours");
        scene.assert_found(&[], 1, std::slice::from_ref(&told));
        // With no lock beside the project it is the folder's that counts.
        std::fs::remove_file(scene.program.path("envforge.lock")).expect("ours");
        scene.assert_refused(&["is incomplete or damaged", &format!("a lock is damaged ({name})")]);
        scene.write_lock();
    }
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn lock_of_a_vendor_directory_has_the_name_of_its_hash() {
    let scene = Scene::new();
    scene.write_lock();
    scene.vendor();
    let path = scene.only("locks");
    assert_eq!(path.file_stem().expect("a name").to_string_lossy(), scene.lock.hash());
    scene.assert_found(&[], 0, &[]);
    let other = format!("{}.lock", "0".repeat(64));
    std::fs::rename(&path, path.with_file_name(&other)).expect("ours");
    scene.assert_found(&[], 1, &[format!("damaged  a lock (locks/{other})")]);
}

#[test]
fn lock_of_schema_1_is_refused_with_the_line_to_change() {
    let scene = Scene::new();
    scene.write_lock();
    let file = scene.program.path("envforge.lock");
    let old = std::fs::read_to_string(&file).expect("ours").replacen("schema = 3\n", "schema = 1\n", 1);
    std::fs::write(&file, &old).expect("ours");
    for args in [["lock", "--check"], ["lock", "--locked"]] {
        let run = scene.run(&args);
        assert_message(&run, 2, &["unsupported lock schema 1", "line 4", "write `schema = 2` in that line"]);
        assert_eq!(std::fs::read_to_string(&file).expect("ours"), old, "{args:?} writes nothing");
    }
}

/// `lock` replaces uv of an older release and nothing else; a build takes the lock as it is.
#[test]
fn lower_uv_of_a_lock_is_named_and_replaced() {
    let mut scene = Scene::new();
    scene.write_lock();
    let file = scene.program.path("envforge.lock");
    let before = std::fs::read_to_string(&file).expect("ours");
    let current = current_tools().remove(0);
    let difference = format!("uv: locked `0.0.1`, requested `{}`", current.version);
    let check = scene.run(&["lock", "--check"]);
    assert!(check.code == 1 && check.stderr.contains(&difference), "{} {}", check.code, check.stderr);
    let locked = scene.run(&["lock", "--locked"]);
    assert_eq!(locked.code, 0, "{}", locked.stderr);
    assert_eq!(std::fs::read_to_string(&file).expect("ours"), before, "nothing is written");
    let run = scene.run(&["lock"]);
    assert!(run.code == 0 && run.stderr.contains(&difference), "{} {}", run.code, run.stderr);
    scene.lock.tools = vec![current.clone()];
    let after = std::fs::read_to_string(&file).expect("ours");
    let tools =
        |text: &str| -> String { text.lines().filter(|line| !line.contains("name = \"uv\"")).collect() };
    assert_eq!(tools(&after), tools(&before), "every other pin is kept");
    assert!(after.contains(&current.sha256), "{after}");
    assert_eq!(scene.run(&["lock", "--check"]).code, 0);
    // Another file under the version of this release is nobody's.
    let forged = after.replace(&current.sha256, &"0".repeat(64));
    std::fs::write(&file, forged).expect("ours");
    for args in [["lock", "--check"], ["lock", "--locked"]] {
        let run = scene.run(&args);
        assert!(run.code == 1 && run.stderr.contains("SHA-256 000000000000"), "{} {}", run.code, run.stderr);
    }
}

#[test]
fn other_files_next_to_locks_are_ignored() {
    let scene = Scene::filled();
    let locks = scene.program.path("vendor/locks");
    for name in ["README", ".envforge-1-2-3", "notes.lock"] {
        std::fs::write(locks.join(name), "half a l").expect("ours");
    }
    std::fs::write(locks.join(std::ffi::OsStr::from_bytes(b"caf\xe9.lock")), "x").expect("ours");
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn damaged_base_image_or_missing_record_is_reported() {
    let scene = Scene::filled();
    let base = format!("debian:12@sha256:{}", "a".repeat(64));
    let archive = scene.file(b"an image as an archive");
    let whole = std::fs::read(&archive).expect("it is there");
    flip_a_byte(&archive);
    let place = place(&whole);
    scene.assert_found(&[], 1, &[format!("damaged  {base} ({place})")]);
    scene.assert_refused(&[&format!("{base} is damaged ({place})")]);
    std::fs::write(&archive, whole).expect("ours");
    for bytes in [b"no record\n".as_slice(), b"caf\xe9"] {
        std::fs::write(scene.only("bases"), bytes).expect("ours");
        scene.assert_found(&[], 1, &[format!("missing  {base}")]);
        scene.assert_refused(&[&format!("{base} is missing")]);
    }
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
}

/// Writes a file of the folder.
fn write(path: &PathBuf, bytes: &[u8]) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
    std::fs::write(path, bytes).expect("ours");
}

#[test]
fn missing_or_damaged_finished_layer_is_reported() {
    let scene = Scene::filled();
    let (layer, key) = (b"a layer".as_slice(), "ab".repeat(32));
    let (hash, record) = (sha256(layer), scene.program.path(format!("vendor/layers/{key}")));
    let count = || -> Value { serde_json::from_str(&scene.check(&["--json"]).stdout).expect("JSON") };
    let files = count()["files"].as_u64().expect("a number");
    write(&record, format!("{hash}\n").as_bytes());
    scene.assert_found(&[], 1, &[format!("missing  the layer {hash}")]);
    write(&scene.file(layer), b"another");
    scene.assert_found(&[], 1, &[format!("damaged  the layer {hash} ({})", place(layer))]);
    write(&scene.file(layer), layer);
    scene.assert_found(&[], 0, &[]);
    assert_eq!(count()["files"], files + 1);
    for bytes in [b"../../home/key\n".as_slice(), b"caf\xe9", b"0123\n"] {
        write(&record, bytes);
        scene.assert_found(&[], 1, &[format!("damaged  a record of layers (layers/{key})")]);
    }
    // Other files are not records.
    std::fs::rename(&record, scene.program.path("vendor/layers/README")).expect("ours");
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn directory_gets_no_lock_if_its_layers_cannot_be_made() {
    let scene = Scene::new();
    // This engine builds nothing.
    let run = scene.run(&["vendor", "vendor", "--layers"]);
    assert_message(&run, 3, &["error:"]);
    assert!(scene.file(&one().bytes).exists(), "the wheels came before");
    for folder in ["locks", "layers"] {
        assert!(!scene.program.path("vendor").join(folder).exists(), "{folder} is there");
    }
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
    let says = ["--layers", "cannot be used with", "--check"];
    assert_message(&scene.run(&["vendor", "vendor", "--layers", "--check"]), 2, &says);
}

/// What resolves packages is an image of its own: an offline machine can neither make nor pull it.
#[test]
fn build_from_a_directory_asks_for_no_resolver() {
    let says = "in which packages are resolved";
    assert!(include_str!("../../src/workflow/resolver_image.rs").contains(says), "it is said as here");
    let scene = Scene::filled();
    let run = scene.run(&["build", "--offline", "vendor"]);
    // This engine builds nothing: everything before that was there.
    assert_message(&run, 3, &["error:"]);
    assert!(!run.stderr.contains(says), "{}", run.stderr);
    assert!(!scene.requests.contain("/images/create"), "nothing is pulled or imported");
    let volumes = |body: &Value| body["HostConfig"]["Binds"].to_string();
    for container in scene.requests.created(|_| true) {
        assert!(!volumes(&container).contains("envforge-"), "{container}");
    }
    let records = std::fs::read_dir(scene.program.path("state/base")).into_iter().flatten().flatten();
    let names: Vec<_> = records.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    assert!(!names.iter().any(|name| name.starts_with("resolver-")), "{names:?}");
}

/// The engine has it by the tag of its digest: a name that it was given for a moment would stay after a kill.
#[test]
fn own_base_of_a_directory_is_looked_into_without_a_name_in_the_engine() {
    let scene = Scene::filled();
    let digest = format!("{}{}", "a".repeat(16), "b".repeat(48));
    let archive = "c".repeat(64);
    let record =
        format!("digest = 'sha256:{digest}'\nname = 'mine:1'\nmachine = 'x86_64'\narchive = '{archive}'\n");
    let folder = scene.program.path("vendor/bases");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join(format!("{digest}-x86_64.toml")), record).expect("ours");
    std::fs::write(scene.program.path("envforge.toml"), format!("{TOML}base = 'mine:1'\n")).expect("ours");
    let run = scene.run(&["build", "--offline", "vendor"]);
    // The engine's image has no files; no registry was asked for another one.
    assert_message(&run, 1, &["mine:1", "it has no /etc/os-release"]);
    let tags = scene.requests.tags();
    assert!(!tags.is_empty() && tags.iter().all(|tag| tag.starts_with("envforge-base:")), "{tags:?}");
}

#[test]
fn directory_without_a_lock_is_rejected() {
    let scene = Scene::new();
    std::fs::create_dir(scene.program.path("empty")).expect("ours");
    let long = "n".repeat(5000);
    for folder in ["empty", "absent", &long] {
        let says = ["is not a vendor directory", "envforge vendor DIR"];
        assert_message(&scene.run(&["vendor", folder, "--check"]), 2, &says);
        assert_message(&scene.run(&["build", "--offline", folder]), 2, &says);
        std::fs::remove_file(scene.program.path("envforge.lock")).expect("ours");
        assert_message(&scene.run(&["build", "--offline", folder]), 2, &says);
        scene.write_lock();
    }
}

#[test]
fn directory_with_a_newer_lock_is_reported() {
    let scene = Scene::filled();
    let path = scene.only("locks");
    std::fs::write(&path, "schema = 999\n").expect("ours");
    assert_message(&scene.check(&[]), 2, &["999", "update envforge"]);
}

#[test]
fn wheel_of_a_release_page_is_gathered_from_the_page() {
    let mut scene = Scene::new();
    let page = Index::local(vec![two()]);
    page.serve_page("/v2.8.0/files.html");
    scene.index.delete(&two().file);
    scene.lock.wheels[1].index = IndexKind::Framework;
    scene.write_lock();
    scene.program.set("ENVFORGE_FRAMEWORK_INDEX", format!("flat+{}/v{{version}}/files.html", page.url()));
    scene.vendor();
    scene.assert_found(&["--upstream"], 0, &[]);
    assert!(
        page.seen().iter().all(|seen| !seen.path.contains("/demo-two/")),
        "it has no page for each package"
    );
    page.serve("/v2.8.0/files.html", b"<html></html>".to_vec());
    scene.assert_found(&["--upstream"], 0, &[format!("gone     {}", two().file)]);
}

#[test]
fn upstream_changes_are_reported_but_are_not_damage() {
    let scene = Scene::filled();
    scene.index.yank(&one().file);
    scene.index.delete(&two().file);
    let lines = [format!("yanked   {}", one().file), format!("gone     {}", two().file)];
    scene.assert_found(&["--upstream"], 0, &lines);
    scene.index.publish(vec![another(&one())]);
    let lines = [format!("changed  {}", one().file), format!("gone     {}", two().file)];
    scene.assert_found(&["--upstream"], 0, &lines);
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn package_of_a_named_index_is_looked_up_there() {
    let mut scene = Scene::new();
    let own = Index::local(vec![two()]);
    scene.index.delete(&two().file);
    scene.lock.added.indexes = vec!["own".to_owned()];
    scene.write_lock();
    let toml = format!("{TOML}[packages]\nindexes = ['own']\n");
    std::fs::write(scene.program.path("envforge.toml"), toml).expect("ours");
    scene.program.set("ENVFORGE_INDEX_OWN", format!("{}/simple", own.url()));
    scene.vendor();
    scene.assert_found(&["--upstream"], 0, &[]);
    // An index that this machine does not know may have it: that is no deletion.
    scene.program.set("ENVFORGE_INDEX_OWN", "");
    let run = scene.check(&["--upstream"]);
    assert_message(&run, 2, &["`own`", "[indexes]", "ENVFORGE_INDEX_OWN"]);
    scene.program.set("ENVFORGE_INDEX_OWN", format!("{}/simple", own.url()));
    own.delete(&two().file);
    scene.assert_found(&["--upstream"], 0, &[format!("gone     {}", two().file)]);
}

#[test]
fn index_error_500_is_not_a_deletion() {
    let scene = Scene::filled();
    scene.index.fail("/simple/demo-one/", Fault::Status(500));
    let run = scene.check(&["--upstream"]);
    assert_message(&run, 3, &["cannot reach the package index", "`demo-one`", "500", "ENVFORGE_INDEX"]);
    assert_eq!(run.stdout, "");
    scene.assert_found(&[], 0, &[]);
}

/// Nothing is gathered, the folder holds no lock that would speak of it, and once the index is well again it goes on.
#[track_caller]
fn assert_not_gathered(scene: &Scene, code: i32, says: &[&str]) {
    assert_message(&scene.run(&["vendor", "vendor"]), code, says);
    let locks = scene.program.path("vendor/locks");
    let blob = scene.program.path("cache/sha256").join(place(&one().bytes).replace("files/", ""));
    assert!(!locks.exists(), "a lock is there");
    let left = |folder: &str| std::fs::read_dir(scene.program.path(folder)).expect("ours").count();
    assert_eq!((left("cache/temp"), left("tmp")), (0, 0));
    assert!(!blob.exists());
    scene.index.heal();
    scene.vendor();
    assert!(locks.exists() && blob.exists(), "{}", blob.display());
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn vendor_resumes_after_a_server_error() {
    let scene = Scene::new();
    scene.index.fail(&one().file, Fault::Status(500));
    assert_not_gathered(&scene, 3, &[&one().file, "500", "run it again"]);
}

#[test]
fn vendor_resumes_after_repeated_disconnects() {
    let scene = Scene::new();
    scene.index.fail(&one().file, Fault::CutAlways);
    assert_not_gathered(&scene, 3, &[&one().file, "run it again"]);
}

#[test]
fn interrupted_download_is_resumed() {
    let scene = Scene::new();
    scene.index.fail(&one().file, Fault::CutOnce);
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn truncated_or_changed_wheel_is_rejected() {
    let long = another(&one()).bytes;
    let long_says = sha256(&long);
    for (bytes, says) in
        [(one().bytes[..100].to_vec(), "connection closed after 100 bytes"), (long, &long_says)]
    {
        let scene = Scene::new();
        scene.index.tamper(vec![Wheel { bytes, ..one() }]);
        assert_not_gathered(&scene, 3, &[&one().file, says]);
    }
}

#[test]
fn slow_index_is_awaited() {
    let scene = Scene::new();
    scene.index.fail("/", Fault::Slow(400));
    scene.vendor();
    scene.assert_found(&[], 0, &[]);
}

#[test]
fn withdrawn_wheel_is_downloaded_and_deleted_one_reported() {
    let scene = Scene::new();
    scene.index.yank(&one().file);
    scene.index.delete(&two().file);
    let says = [&two().file, "not found in the cache or on any index", "envforge lock --upgrade"];
    assert_message(&scene.run(&["vendor", "vendor"]), 3, &says);
    scene.index.publish(vec![two()]);
    scene.vendor();
    scene.assert_found(&["--upstream"], 0, &[format!("yanked   {}", one().file)]);
}
