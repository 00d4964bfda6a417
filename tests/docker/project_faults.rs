//! What goes wrong with a project's packages, its lock and the disk: the index, what it publishes, what was edited by hand,
//! what many lines and two runs at once do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::disk::SmallDisk;
use crate::index::Fault;
use crate::program::Run;
use crate::scene::{SPEC, Scene, assert_message, files_below};
use crate::wheels::{Wheel, WheelSpec};

struct Project {
    scene: Scene,
}

fn own(version: &str) -> Wheel {
    own_saying(version, "mine")
}

fn own_saying(version: &str, word: &str) -> Wheel {
    WheelSpec::new("own-package", version)
        .file("own_package/__init__.py", &format!("WORD = '{word}'\n"))
        .build()
}

/// For a wheel that no cache of the engine has seen, nor a layer made of it.
fn salt() -> String {
    let folder = tempfile::Builder::new().rand_bytes(12).tempdir().expect("a temporary folder");
    folder.path().to_string_lossy().into_owned()
}

impl Project {
    /// A project that wants those Python packages; its further index has two versions of `own-package`.
    fn new(python: &[&str]) -> Self {
        let scene = Scene::new();
        scene.index.publish(vec![own("1.0"), own("1.1")]);
        let address = format!("{}/own", scene.index.url());
        let project = Self { scene: scene.set("ENVFORGE_INDEX_OWN", address) };
        project.wants(python);
        project
    }

    /// The same with its lock; the first one that wants those makes it for all.
    fn locked(python: &[&str]) -> Self {
        static LOCKS: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());
        let project = Self::new(python);
        let mut locks = LOCKS.lock().expect("a lock that fails makes no entry");
        let text = locks.entry(python.join(" ")).or_insert_with(|| {
            project.scene.succeed(&["lock"]);
            project.lock()
        });
        project.write("envforge.lock", text);
        project
    }

    fn wants(&self, python: &[&str]) {
        self.write(
            "envforge.toml",
            &format!(
                "schema = 1\nname = 'small'\nspec = '{SPEC}'\n[packages]\nindexes = ['own']\npython = {python:?}\n"
            ),
        );
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.scene.program.path(name), text).expect("ours");
    }

    fn lock(&self) -> String {
        std::fs::read_to_string(self.scene.program.path("envforge.lock")).expect("beside the project file")
    }

    /// Asserts that the build ends so and leaves no tag of the project.
    #[track_caller]
    fn assert_not_built(&self, code: i32, says: &[&str]) {
        self.scene.fail(&["build"], code, says);
        self.scene.assert_nothing_left();
    }

    /// Asserts that no lock can be made, and that the one that was there is.
    #[track_caller]
    fn assert_not_locked(&self, args: &[&str], code: i32, says: &[&str]) {
        let path = self.scene.program.path("envforge.lock");
        let before = std::fs::read(&path).ok();
        self.scene.fail(args, code, says);
        assert_eq!(std::fs::read(&path).ok(), before, "the lock changed");
        self.scene.assert_nothing_left();
    }
}

#[test]
#[ignore = "needs docker"]
fn conflicting_requirements_are_reported_with_file_and_chain() {
    let project = Project::new(&["own-package<1.1", "wants-newer"]);
    project.scene.index.publish(vec![
        WheelSpec::new("wants-newer", "1.0").requires("in-between").build(),
        WheelSpec::new("in-between", "1.0").requires("own-package>=1.1").build(),
    ]);
    let says = [
        "conflicting requirements",
        "`own-package<1.1` is required by envforge.toml",
        "`wants-newer` is required by envforge.toml",
        "in-between",
        "own-package>=1.1",
        "relax or remove one of them",
    ];
    project.assert_not_locked(&["lock"], 1, &says);
    project.write("requirements.txt", "# ours\n\nown-package==1.0\n");
    let toml = std::fs::read_to_string(project.scene.program.path("envforge.toml")).expect("ours");
    let toml = toml.replace("<1.1\", \"wants-newer\"]", "==1.1\"]\nrequirements = ['requirements.txt']");
    project.write("envforge.toml", &toml);
    let says = [
        "`own-package==1.0` is required by requirements.txt, line 3",
        "`own-package==1.1` is required by envforge.toml",
    ];
    project.assert_not_locked(&["lock"], 1, &says);
    project.wants(&["a-package-that-nobody-has-here"]);
    project.assert_not_locked(
        &["lock"],
        1,
        &["`a-package-that-nobody-has-here` (envforge.toml) is not in index"],
    );
}

#[test]
#[ignore = "needs docker"]
fn package_that_needs_another_torch_changes_no_lock() {
    let project = Project::locked(&["own-package==1.0"]);
    let other = WheelSpec::new("needs-another", "1.0").requires("torch==2.5.0");
    project.scene.index.publish(vec![other.build()]);
    project.wants(&["needs-another"]);
    let says = [
        "`needs-another` is required by envforge.toml",
        "torch==2.5.0",
        "torch 2.7.1 is pinned by the image",
        "envforge list pytorch-cuda",
    ];
    project.assert_not_locked(&["lock"], 1, &says);
}

#[test]
#[ignore = "needs docker"]
fn yanked_release_is_kept_by_its_lock_and_not_chosen_again() {
    let project = Project::locked(&["own-package"]);
    project.scene.index.yank(&own("1.1").file);
    let said = project.scene.succeed(&["build"]);
    let tag = said.stdout.lines().next().expect("a tag");
    let version = "import importlib.metadata as m; print(m.version('own-package'))";
    assert_eq!(crate::scene::python_in(tag, version), "1.1");
    let outdated = project.scene.succeed(&["outdated"]).stdout;
    assert!(outdated.contains("own-package") && outdated.contains("1.0"), "{outdated}");
    project.scene.succeed(&["lock", "--upgrade"]);
    assert!(project.lock().contains(&own("1.0").file), "{}", project.lock());
}

#[test]
#[ignore = "nightly: needs docker and builds four times; `faults` builds with a tampered wheel"]
fn build_fails_when_a_release_was_deleted_or_replaced() {
    let project = Project::new(&["own-package==1.1"]);
    project.scene.index.publish(vec![own_saying("1.1", &salt())]);
    project.scene.succeed(&["lock"]);
    project.scene.index.delete(&own("1.1").file);
    project.assert_not_built(3, &["own_package", "1.1"]);
    // The page of the index announces the new content, too: the lock alone knows better.
    project.scene.index.publish(vec![own_saying("1.1", &salt())]);
    project.assert_not_built(3, &["own_package", "1.1"]);
    project.scene.succeed(&["lock", "--upgrade"]);
    project.scene.succeed(&["build"]);
}

#[test]
#[ignore = "needs docker"]
fn index_error_500_is_reported_and_a_slow_index_is_awaited() {
    let project = Project::new(&["own-package"]);
    project.scene.index.fail("/own/own-package/", Fault::Status(500));
    let says = ["cannot reach the package index", "`own-package`", "500", "ENVFORGE_INDEX"];
    project.assert_not_locked(&["lock"], 3, &says);
    project.scene.index.heal();
    project.scene.index.fail("own", Fault::Slow(1000));
    project.scene.succeed(&["lock"]);
    project.scene.succeed(&["build"]);
}

#[test]
#[ignore = "nightly: needs docker, two minutes; `faults` builds with a tampered wheel"]
fn build_rejects_a_truncated_wheel() {
    let project = Project::locked(&["own-package==1.0"]);
    let text = format!("SALT = '{}'\n", salt());
    let whole = WheelSpec::new("cut-short", "1.0").file("cut_short.py", &text).build();
    // A file that a broken upload left: the index is of one mind with itself.
    let half = Wheel { bytes: whole.bytes[..whole.bytes.len() / 2].to_vec(), ..whole.clone() };
    project.scene.index.publish(vec![half.clone()]);
    project.wants(&["own-package==1.0", "cut-short"]);
    project.scene.succeed(&["lock"]);
    project.assert_not_built(1, &["cut_short", "it is not a zip file", "report it to its author"]);
    project.scene.index.publish(vec![whole.clone()]);
    project.scene.index.tamper(vec![half]);
    project.scene.succeed(&["lock", "--upgrade"]);
    project.assert_not_built(3, &["cut_short", "SHA-256 mismatch"]);
    project.scene.index.heal();
    project.scene.succeed(&["build"]);
}

#[test]
#[ignore = "needs docker"]
fn edited_lock_is_rejected_and_upgrade_rewrites_it() {
    let project = Project::new(&["own-package==1.0"]);
    let date = project.scene.lock_frozen();
    let lock = project.lock();
    let hash = crate::wheels::sha256(&own("1.0").bytes);
    assert!(lock.contains(&hash), "{lock}");
    project.write("envforge.lock", &lock.replace(&hash, &"0".repeat(64)));
    project.assert_not_built(3, &["own_package", "SHA-256 mismatch"]);
    project.assert_not_locked(&["lock", "-P", "own-pakage"], 2, &["`own-pakage`", "check the spelling"]);
    let broken = lock.replacen("schema = 3\n", "<<<<<<< HEAD\nschema = 3\n", 1);
    project.write("envforge.lock", &broken);
    project.assert_not_locked(&["lock"], 2, &["envforge.lock", "line ", "`envforge lock --upgrade`"]);
    // As the hint says, with the date that the broken file cannot tell.
    project.scene.lock_with_only(&["lock", "--upgrade", "--as-of", &date], &lock, &[]);
    let without_time =
        |lock: &str| lock.lines().filter(|l| !l.starts_with("created")).collect::<Vec<_>>().join("\n");
    assert_eq!(without_time(&project.lock()), without_time(&lock));
    let newer = lock.replacen("schema = 3\n", "schema = 9\n", 1);
    project.write("envforge.lock", &newer);
    project.assert_not_locked(&["lock", "--upgrade"], 2, &["schema 9", "update envforge"]);
}

#[test]
#[ignore = "needs docker"]
fn second_of_two_concurrent_locks_uses_the_first() {
    let project = Project::new(&["own-package"]);
    let both = [(); 2].map(|()| project.scene.program.command(&["lock"]).spawn().expect("it starts"));
    let both = both.map(|one| Run::of(&one.wait_with_output().expect("a child of ours")));
    for run in &both {
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    let used = both.iter().filter(|run| run.stderr.contains("using the lock file of")).count();
    assert_eq!(used, 1, "{both:#?}");
    assert_eq!(both[0].stdout, both[1].stdout);
    project.scene.succeed(&["lock", "--check"]);
    project.scene.assert_nothing_left();
}

#[test]
#[ignore = "nightly: needs docker and resolves ten thousand lines three times"]
fn lock_resolves_ten_thousand_requirements() {
    let project = Project::new(&[]);
    let lines = (0..10_000).fold(String::new(), |all, n| all + &format!("own-package >= 0.{n}  # {n}\n"));
    project.write("requirements.txt", &lines);
    let toml = std::fs::read_to_string(project.scene.program.path("envforge.toml")).expect("ours");
    project.write("envforge.toml", &toml.replace("python = []", "requirements = ['requirements.txt']"));
    project.scene.succeed(&["lock"]);
    assert!(project.lock().contains(&own("1.1").file), "the newest that meets them all");
    project.scene.succeed(&["lock", "--check"]);
    let says = ["`own-package < 1.0` is required by requirements.txt, line 10001"];
    project.write("requirements.txt", &format!("{lines}own-package < 1.0\n"));
    project.assert_not_locked(&["lock"], 1, &says);
    project.write("requirements.txt", &lines);
    project.scene.succeed(&["build", "--locked"]);
}

#[test]
#[ignore = "needs docker"]
fn copied_file_with_a_long_name_is_in_the_image() {
    let project = Project::new(&["own-package==1.0"]);
    let toml = std::fs::read_to_string(project.scene.program.path("envforge.toml")).expect("ours");
    let copy =
        "copy = [{ from = 'in', to = '/opt/x' }, { from = 'one file.txt', to = '/opt/x' }]\n[packages]";
    // A folder at the target takes a file by its name, as everywhere.
    project.write("one file.txt", "one");
    project.write("envforge.toml", &toml.replace("[packages]", copy));
    // Beyond what the plain header of a tar holds; fuse-overlayfs takes no name of the 255 bytes that file systems take.
    let deep = format!("{}/{}/{} \u{e9}", "d".repeat(120), "e".repeat(120), "f".repeat(240));
    let file = project.scene.program.path(format!("in/{deep}"));
    std::fs::create_dir_all(file.parent().expect("a folder")).expect("ours");
    std::fs::write(file, "deep").expect("ours");
    let said = project.scene.succeed(&["build"]);
    let tag = said.stdout.lines().next().expect("a tag");
    let read = format!("print(open('/opt/x/{deep}').read())");
    assert_eq!(crate::scene::python_in(tag, &read), "deep");
    assert_eq!(crate::scene::python_in(tag, "print(open('/opt/x/one file.txt').read())"), "one");
}

#[test]
#[ignore = "nightly: needs docker and a disk of its own; `engine_faults` fills the state directory"]
fn vendor_reports_a_full_disk_and_the_next_run_continues() {
    let scene = Scene::locked();
    // Only what the scene's own index serves: the others need an index of everything.
    let lock = scene.lock();
    let is_other = |line: &&str| line.contains(", index = \"") && !line.contains("index = \"framework\"");
    assert!(lock.lines().any(|line| is_other(&line)), "other wheels: {lock}");
    let kept: Vec<_> = lock.lines().filter(|line| !is_other(line)).collect();
    std::fs::write(scene.lock_path(), kept.join("\n")).expect("ours");

    let disk = SmallDisk::on(scene.program.path("small-disk"), "8m");
    let args = ["vendor", SPEC, "small-disk/vendor"];
    let said = scene.fail(&args, 3, &["No space left on device", "small-disk/vendor"]);
    assert!(said.contains("run the command again"), "{said}");
    assert!(!said.contains(".tmp") && !said.contains("/.envforge-"), "a name that is no user's: {said}");
    scene.assert_nothing_left();
    let left = files_below(disk.path());
    assert!(!left.is_empty(), "it ended before the middle");
    let whole = |path: &PathBuf| {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        crate::wheels::sha256(&std::fs::read(path).expect("readable")) == name
    };
    assert!(left.iter().all(whole), "half a file is left: {left:?}");

    disk.grow("2g");
    let said = scene.succeed(&args).stderr;
    assert!(
        !said.contains(&format!("{} of them new", files_below(disk.path()).len() - 1)),
        "from the start: {said}"
    );
    assert_eq!(scene.succeed(&["vendor", "small-disk/vendor", "--check"]).stdout, "");
}

#[test]
#[ignore = "nightly: needs docker and a disk of its own; `engine_faults` fills the state directory"]
fn full_project_disk_leaves_the_lock_unchanged() {
    let project = Project::locked(&["own-package==1.0"]);
    let disk = SmallDisk::on(project.scene.program.path("p"), "512k");
    for name in ["envforge.toml", "envforge.lock"] {
        std::fs::copy(project.scene.program.path(name), disk.path().join(name)).expect("room");
    }
    let before = project.lock();
    let toml = std::fs::read_to_string(disk.path().join("envforge.toml")).expect("ours");
    std::fs::write(disk.path().join("envforge.toml"), toml.replace("==1.0", "==1.1")).expect("ours");
    let mut filler = std::fs::File::create(disk.path().join("filler")).expect("room for a name");
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
    drop(filler);
    let args = ["lock", "--project", "p"];
    let run = project.scene.program.run(&args);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_message(&run.stderr, &["No space left on device", "envforge.lock", "free some disk space"]);
    assert_eq!(std::fs::read_to_string(disk.path().join("envforge.lock")).expect("still there"), before);
    assert_eq!(files_below(disk.path()).len(), 3, "something is left");
    std::fs::remove_file(disk.path().join("filler")).expect("ours");
    project.scene.succeed(&args);
    let after = std::fs::read_to_string(disk.path().join("envforge.lock")).expect("there");
    assert!(after.contains(&own("1.1").file), "{after}");
}
