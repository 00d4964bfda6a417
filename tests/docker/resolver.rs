//! The resolver beside what it stands for: uv with the real Python of a base, and the own apt of each suite.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use envforge::engine::{ContainerFile, RunRequest, Runner as _};
use envforge::model::lock::UserAdditions;
use envforge::model::stack::Stack;
use envforge::packages::catalogue;
use envforge::report::NullReporter;

use crate::engine::docker;
use crate::packages::{Fixture, torch_2_8};
use crate::scene::{SPEC, Scene, base_of_lock};

/// Packages that differ between 3.9 and 3.9.2, 3.10 and 3.10.12, 3.11 and 3.11.9.
const OF_FULL_VERSIONS: [&str; 3] = ["cryptography", "build", "redis"];

fn torch_on(base: &str, suite: &str, python: &str) -> Stack {
    let python = python.parse().expect("a Python");
    Stack { base: base.to_owned(), suite: suite.to_owned(), python, ..torch_2_8() }
}

/// The packages that the lock names and those that uv chooses with the Python that the base's own apt installs.
async fn wheels_by_both(f: &Fixture, stack: &Stack) -> [BTreeMap<String, String>; 2] {
    let requested = OF_FULL_VERSIONS.map(str::to_owned);
    let resolved = f.resolve(stack, &requested, None).await.expect("resolved");
    let stated = resolved.wheels.iter().map(|wheel| (wheel.name.clone(), wheel.version.clone())).collect();
    let mut wanted = format!("torch=={}\n", stack.version);
    for (name, version) in &stack.companions {
        wanted.extend([name, "==", version, "\n"]);
    }
    wanted.extend(catalogue().developer_wheels().chain(requested).map(|text| text + "\n"));
    let script = "set -e\nexport SSL_CERT_FILE=/own/ca.crt\napt-get update -qq\n\
        apt-get install -qq -y --no-install-recommends python3 python3-distutils >&2 || apt-get install -qq -y --no-install-recommends python3 >&2\n\
        /own/uv pip compile /own/all.in --quiet --no-header --no-annotate --only-binary :all: --python /usr/bin/python3\n";
    let program = std::fs::read(&resolved.uv_binary).expect("uv");
    let stdout = f.in_base(script, &[("/own/uv", program), ("/own/all.in", wanted.into_bytes())]).await;
    let line = |line: &str| {
        let (name, version) = line.split_once("==")?;
        let version = version.split([' ', ';']).next()?;
        Some((name.to_owned(), version.to_owned()))
    };
    [stated, stdout.lines().filter_map(line).collect()]
}

async fn compare_wheels(base: &str, suite: &str, python: &str) {
    let f = Fixture::on(base, suite).await;
    let [stated, real] = wheels_by_both(&f, &torch_on(base, suite, python)).await;
    assert!(real.len() > 80, "{real:?}");
    assert_eq!(stated, real, "{base}");
}

#[tokio::test]
#[ignore = "nightly: needs docker and a real Python of each base; `resolver_scripts` runs the scripts with a stated one"]
async fn stated_python_resolves_as_the_real_one() {
    compare_wheels("debian:12", "bookworm", "3.11").await;
}

#[tokio::test]
#[ignore = "nightly: needs docker and bootstraps two bases more"]
async fn stated_python_resolves_as_the_real_one_of_other_suites() {
    compare_wheels("debian:11", "bullseye", "3.9").await;
    compare_wheels("debian:13", "trixie", "3.13").await;
}

/// What people ask apt for beside a framework.
const LISTS: [&[&str]; 20] = [
    &["ffmpeg"],
    &["libgl1"],
    &["libgl1", "libglib2.0-0"],
    &["openmpi-bin", "libopenmpi-dev"],
    &["libsndfile1", "sox"],
    &["tesseract-ocr"],
    &["graphviz"],
    &["libopencv-dev"],
    &["cmake", "ninja-build"],
    &["openssh-server"],
    &["libaio-dev"],
    &["nodejs"],
    &["default-jre-headless"],
    &["postgresql-client"],
    &["libhdf5-dev"],
    &["libboost-all-dev"],
    &["zsh", "fish"],
    &["tmux", "htop", "nvtop"],
    &["gdb", "strace", "valgrind"],
    &["texlive-latex-base"],
];

/// Files of `--print-uris` with the base's own apt, for each list together with the packages of every image.
async fn own_apt(f: &Fixture, stack: &Stack) -> Vec<BTreeSet<String>> {
    let system: Vec<_> = catalogue().system(stack).collect();
    let system = system.join(" ");
    let mut script = "set -e\napt-get update -qq\n".to_owned();
    for list in LISTS {
        let list = list.join(" ");
        let install = "apt-get install --no-install-recommends --print-uris -qq ";
        script.extend([install, &system, " ", &list, " || true\necho end\n"]);
    }
    let stdout = f.in_base(&script, &[]).await;
    let mut all = vec![BTreeSet::new()];
    for line in stdout.lines() {
        if let Some(file) = line.split(' ').nth(1) {
            let file = file.replace("%3a", ":").replace("%7e", "~");
            all.last_mut().expect("one").insert(file);
        } else {
            all.push(BTreeSet::new());
        }
    }
    all.truncate(LISTS.len());
    all
}

#[tokio::test]
#[ignore = "nightly: needs docker and bootstraps two bases more"]
async fn one_apt_chooses_what_the_own_apt_of_each_suite_does() {
    let mut chosen = 0;
    for (base, suite, python) in
        [("debian:11", "bullseye", "3.9"), ("debian:12", "bookworm", "3.11"), ("debian:13", "trixie", "3.13")]
    {
        let f = Fixture::on(base, suite).await;
        let stack = torch_on(base, suite, python);
        let own = own_apt(&f, &stack).await;
        assert_eq!(own.len(), LISTS.len());
        for (list, own) in LISTS.iter().zip(own) {
            let apt = list.iter().map(|&name| name.to_owned()).collect();
            let added = UserAdditions { apt, ..UserAdditions::default() };
            let found = match f.resolve_with(&stack, &added, None).await {
                Ok(found) => found,
                Err(error) => {
                    assert!(own.is_empty(), "{base} {list:?}: {error}");
                    continue;
                }
            };
            let debs = found.system.iter().chain(&found.apt);
            let ours: BTreeSet<_> =
                debs.map(|deb| format!("{}_{}_{}.deb", deb.name, deb.version, deb.architecture)).collect();
            assert_eq!(ours, own, "{base} {list:?}");
            chosen += 1;
        }
    }
    assert!(chosen >= 50, "{chosen} of 60 lists exist in their suite");
}

/// A project's code could write into the volume of earlier releases.
#[test]
#[ignore = "needs docker"]
fn volume_of_earlier_releases_goes_unless_it_is_in_use() {
    const OLD: &str = "envforge-resolve";
    let has = || docker(&["volume", "ls", "-q"]).lines().any(|name| name == OLD);
    let scene = Scene::new();
    let lock = |file: &str| scene.succeed(&["lock", SPEC, "--lockfile", file]).stderr;
    lock("first.lock");
    let text = std::fs::read_to_string(scene.program.path("first.lock")).expect("the lock");
    docker(&["volume", "create", OLD]);
    let user = docker(&["create", "-v", "envforge-resolve:/cache", &base_of_lock(&text), "true"]);
    assert!(!lock("second.lock").contains(OLD), "nothing is said of what stays");
    assert!(has(), "a container has it");
    docker(&["rm", &user]);
    assert!(lock("third.lock").contains("removed volume `envforge-resolve`"));
    assert!(!has());
}

/// The signed index takes a new lock seconds: it is read once a day.
#[test]
#[ignore = "needs docker"]
fn new_lock_starts_from_the_base_of_today_and_refresh_changes_no_lock() {
    const READS: &str = "read the signed package index";
    let scene = Scene::new();
    let lock = |file: &str, more: &str| {
        let args = ["lock", SPEC, "--base-provider", "bootstrap", "--lockfile", file, more];
        scene.succeed(&args).stderr
    };
    let text = |file: &str| std::fs::read_to_string(scene.program.path(file)).expect("the lock");
    assert!(lock("first.lock", "--upgrade").contains(READS));
    let second = lock("second.lock", "--yes");
    assert!(second.contains("base of 20") && !second.contains(READS), "{second}");
    assert_eq!(base_of_lock(&text("first.lock")), base_of_lock(&text("second.lock")));
    let before = text("first.lock");
    assert!(lock("first.lock", "--refresh").contains("in which packages are resolved"));
    assert_eq!(text("first.lock"), before);
}

impl Fixture {
    /// What a shell script prints in a container of the base, with the sources of the settings.
    async fn in_base(&self, script: &str, files: &[(&str, Vec<u8>)]) -> String {
        let sources: String = (self.settings.archives.iter())
            .flat_map(|one| ["deb ", one.root.expose(), " ", &one.suite, " ", &one.components, "\n"])
            .collect();
        let file = |path: &str, bytes: Vec<u8>| ContainerFile {
            path: path.to_owned(),
            mode: 0o755,
            bytes: bytes.into(),
        };
        let mut all = vec![file("/etc/apt/sources.list", sources.into_bytes())];
        all.extend(files.iter().map(|(path, bytes)| file(path, bytes.clone())));
        all.push(file(
            "/own/ca.crt",
            self.settings.index.ca_bundle.as_deref().map(<[u8]>::to_vec).unwrap_or_default(),
        ));
        let request = RunRequest {
            image: self.base_reference.clone(),
            command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
            user: Some("0:0".to_owned()),
            files: all,
            ..RunRequest::default()
        };
        let outcome = self.engine.run(request, Arc::new(NullReporter)).await.expect("a container");
        assert_eq!(outcome.code, 0, "{}", String::from_utf8_lossy(&outcome.stderr));
        String::from_utf8(outcome.stdout).expect("text")
    }
}
