//! Locks and project files of the hostile set: a project in a folder of its own, beside a home with a private key and an
//! engine that must not be asked for anything.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use envforge::model::lock::{IndexKind, Lock, LockedTool, LockedWheel, WheelLayer};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::Deserialize;

use super::case::{Case, Expect, Outcome};
use crate::gpu_daemon::{GpuDaemon, Requests};
use crate::program;
use crate::program::{Program, Run};

/// The project, if the case has no `files/envforge.toml`.
const TOML: &str = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";
/// A file of the user that no project may read.
const PRIVATE: &str = "-----BEGIN OPENSSH PRIVATE KEY-----\nof-the-user-alone\n";
/// Bytes beyond every bound of a file of a project.
const HUGE: u64 = 100_000_000;
/// A run that takes longer hangs, and is ended.
const LONGEST: Duration = Duration::from_mins(5);
/// What the engine is asked for to build, load, run, tag or push.
const HARM: [&str; 6] = ["/build?t=", "/images/load", "/containers/create", "/session", "/tag?", "/push"];

/// What is done to the harmless project before the commands run.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Attack {
    edit: Vec<Edit>,
    link: Vec<Link>,
    /// Named pipes, whose other end nobody opens.
    pipe: Vec<String>,
    /// Files of 100 MB, which take no room on the disk.
    huge: Vec<String>,
}

/// A text in a file that becomes another one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    #[serde(default = "lock_file")]
    file: String,
    find: String,
    put: String,
}

/// A symbolic link, in the place of whatever is there.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Link {
    at: String,
    to: String,
}

impl Edit {
    fn apply(&self, text: &str) -> String {
        assert!(text.contains(&self.find), "`{}` is not in: {text}", self.find);
        text.replacen(&self.find, &self.put, 1)
    }

    /// Applies all edits to a text.
    pub(super) fn all(edits: &[Self], text: String) -> String {
        edits.iter().fold(text, |text, edit| edit.apply(&text))
    }
}

fn lock_file() -> String {
    "envforge.lock".to_owned()
}

/// A program with a project in its folder `project`.
pub(super) struct Scene {
    pub(super) program: Program,
    pub(super) requests: Requests,
}

/// A lock that fits the project: an image as the base, one tool, one wheel.
pub(super) fn lock() -> Lock {
    let mut lock = crate::verify::lock();
    lock.added.project = Some("small".to_owned());
    lock.base.digest = Some(format!("sha256:{}", "a".repeat(64)));
    let (version, sha256) = ("1.0".to_owned(), "2".repeat(64));
    lock.tools = vec![LockedTool {
        name: "uv".to_owned(),
        version: version.clone(),
        file: "uv-1.0-py3-none-any.whl".to_owned(),
        sha256: sha256.clone(),
    }];
    lock.wheels = vec![LockedWheel {
        name: "demo-one".to_owned(),
        version,
        file: "demo_one-1.0-py3-none-any.whl".to_owned(),
        sha256,
        size: None,
        index: IndexKind::Default,
        index_name: None,
        layer: WheelLayer::User,
    }];
    lock
}

impl Scene {
    /// With an engine that has the base of the lock.
    pub(super) fn of(case: &Case) -> Self {
        Self::with_tags(case, vec![format!("envforge-base:{}", "a".repeat(16))])
    }

    /// With an engine whose one image has those tags.
    pub(super) fn with_tags(case: &Case, tags: Vec<String>) -> Self {
        let program = program();
        let socket = program.path("docker.sock");
        let requests = GpuDaemon { tags, ..GpuDaemon::default() }.listen(&socket);
        let mut program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
        for (name, value) in &case.expect.variables {
            program.set(name, value);
        }
        let scene = Self { program, requests };
        scene.write("home/.ssh/id_ed25519", PRIVATE);
        scene.write("project/envforge.toml", TOML);
        scene.write("project/envforge.lock", &lock().to_toml());
        copy(&case.folder.join("files"), &scene.program.path("project"));
        let attack: Attack = case.toml("attack.toml");
        for edit in attack.edit {
            let path = scene.program.path("project").join(&edit.file);
            let text = std::fs::read_to_string(&path).expect("a file of the project");
            std::fs::write(path, edit.apply(&text)).expect("ours");
        }
        for name in attack.pipe {
            let path = scene.program.path("project").join(name);
            drop(std::fs::remove_file(&path));
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("ours");
        }
        for name in attack.huge {
            let file = std::fs::File::create(scene.program.path("project").join(name)).expect("ours");
            file.set_len(HUGE).expect("ours");
        }
        for Link { at, to } in attack.link {
            drop(std::fs::remove_file(scene.program.path("project").join(&at)));
            symlink(to, scene.program.path("project").join(at)).expect("ours");
        }
        scene
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let path = self.program.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }

    fn run(&self, args: &[String]) -> Run {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut command = self.program.command(&args);
        let mut child =
            command.current_dir(self.program.path("project")).spawn().expect("the program starts");
        let end = Instant::now() + LONGEST;
        while child.try_wait().expect("a child of ours").is_none() {
            if Instant::now() > end {
                child.kill().expect("a child of ours");
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Run::of(&child.wait_with_output().expect("a child of ours"))
    }
}

/// Copies a folder, if it is there.
pub(super) fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir_all(&to).expect("ours");
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).expect("ours");
        }
    }
}

/// Runs the commands of a case, each with a new project.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    attempt_commands(case, &case.expect.commands)
}

/// The same for a lock: `lock --check` and a build, unless the case has other commands.
pub(super) fn attempt_lock(case: &Case) -> Vec<Outcome> {
    let usual = [&["lock", "--check"] as &[&str], &["build", "--locked", "--dry-run"]];
    let usual: Vec<Vec<String>> =
        usual.iter().map(|args| args.iter().map(|arg| (*arg).to_owned()).collect()).collect();
    attempt_commands(case, if case.expect.commands.is_empty() { &usual } else { &case.expect.commands })
}

fn attempt_commands(case: &Case, commands: &[Vec<String>]) -> Vec<Outcome> {
    commands.iter().map(|args| outcome(case, &Scene::of(case), args)).collect()
}

/// Runs one command in a scene.
pub(super) fn outcome(case: &Case, scene: &Scene, args: &[String]) -> Outcome {
    let lock = scene.program.path("project/envforge.lock");
    // In the place of the lock may be a pipe, or a link to a device.
    let is_plain = || lock.symlink_metadata().is_ok_and(|found| found.is_file());
    let read = || is_plain().then(|| std::fs::read(&lock).ok()).flatten();
    let before = read();
    let Run { code, stdout, stderr } = scene.run(args);
    let Expect { exit, asks, .. } = &case.expect;
    let is_harm = |path: &&str| *exit != 0 && !asks.iter().any(|asked| asked == path);
    let asked = HARM.into_iter().filter(is_harm).filter(|path| scene.requests.contain(path));
    let mut harm: Vec<String> = asked.map(|path| format!("the engine was asked for {path}")).collect();
    let missing = asks.iter().filter(|path| !scene.requests.contain(path));
    harm.extend(missing.map(|path| format!("the engine was not asked for {path}")));
    if read() != before {
        harm.push("the lock was changed".to_owned());
    }
    let output = format!("{stdout}{stderr}");
    if output.contains("of-the-user-alone") {
        harm.push("a private file was read".to_owned());
    }
    Outcome { code, output, harm, root: scene.program.path("") }
}
