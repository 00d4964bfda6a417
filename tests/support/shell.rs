//! A project folder in which shells of the small image are opened, and everything they leave removed at the end.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::engine::{docker, engine_socket};
use crate::program::Run;
use crate::scene::{SPEC, Scene, TAG};

/// What takes longer hangs.
const PATIENCE: Duration = Duration::from_mins(5);

/// A scene with the small image built, and a project.
pub(crate) struct Shells {
    pub(crate) scene: Scene,
    volumes: BTreeSet<String>,
    containers: BTreeSet<String>,
}

fn lines(args: &[&str]) -> BTreeSet<String> {
    docker(args).lines().map(str::to_owned).collect()
}

/// Volumes that shells may make; other programs on this engine have theirs.
fn volumes() -> BTreeSet<String> {
    let kinds = ["etc", "home", "models", "workspace", "test"].map(|kind| format!("envforge-{kind}-"));
    let mut volumes = lines(&["volume", "ls", "-q"]);
    volumes.retain(|name| kinds.iter().any(|kind| name.starts_with(kind)));
    volumes
}

fn containers() -> BTreeSet<String> {
    lines(&["ps", "-aq", "--filter", "label=io.envforge.shell"])
}

impl Shells {
    /// The small image built, an empty project folder.
    pub(crate) fn new() -> Self {
        let shells = Self::without_image();
        shells.scene.succeed(&["build", SPEC]);
        shells
    }

    /// An empty project folder.
    pub(crate) fn without_image() -> Self {
        Self::of(Scene::locked())
    }

    /// An empty project folder in that scene.
    pub(crate) fn of(scene: Scene) -> Self {
        let shells = Self { scene, volumes: volumes(), containers: containers() };
        std::fs::create_dir(shells.project()).expect("a folder of ours");
        shells
    }

    /// The project folder.
    pub(crate) fn project(&self) -> PathBuf {
        self.scene.program.path("project")
    }

    /// The program with those arguments in the project folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.scene.program.command(args);
        command.current_dir(self.project());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, args: &[&str]) -> Run {
        Run::of(&self.command(args).output().expect("the program starts"))
    }

    /// Runs it and asserts that it ends with 0; gives stdout.
    #[track_caller]
    pub(crate) fn succeed(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "{args:?}: {}{}", run.stdout, run.stderr);
        run.stdout.trim_end().to_owned()
    }

    /// Runs a script in a new container of the small image and gives what it prints.
    #[track_caller]
    pub(crate) fn script(&self, script: &str) -> String {
        self.succeed(&["shell", TAG, "--new", "--", "sh", "-c", script])
    }

    /// Runs it to its end as a user of that id.
    pub(crate) fn run_as(&self, uid: u32, args: &[&str]) -> Run {
        Run::of(&self.command_as(uid, args).output().expect("setpriv starts"))
    }

    /// The program as a user of that id. The tests must run as root for that.
    pub(crate) fn command_as(&self, uid: u32, args: &[&str]) -> Command {
        let id = uid.to_string();
        let open = |path: PathBuf| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).expect("a folder of ours");
        };
        for name in ["", "home", "cache", "state", "tmp", "project"] {
            open(self.scene.program.path(name));
        }
        let folder = self.scene.program.path(format!("user-{uid}"));
        std::fs::create_dir_all(&folder).expect("a folder of ours");
        open(folder.clone());
        // Folders of the checkout may be closed to others.
        let binary = folder.join("envforge");
        std::fs::copy(env!("CARGO_BIN_EXE_envforge"), &binary).expect("a file of ours");
        let socket = std::fs::metadata(engine_socket()).expect("the engine's socket");
        let group = std::os::unix::fs::MetadataExt::gid(&socket).to_string();
        let mut command =
            self.scene.program.command_of(Path::new("setpriv"), &["--reuid", &id, "--regid", &id]);
        command.args(["--groups", &group, "--"]).arg(binary).args(args);
        command
            .env("ENVFORGE_STATE_DIR", folder.join("state"))
            .env("ENVFORGE_CACHE_DIR", folder.join("cache"));
        command.current_dir(self.project());
        command
    }

    /// What `ps --json` lists.
    pub(crate) fn listed(&self) -> Vec<serde_json::Value> {
        let listing: serde_json::Value =
            serde_json::from_str(&self.succeed(&["ps", "--json"])).expect("JSON");
        assert_eq!(listing["schema"], 1);
        listing["containers"].as_array().expect("a list").clone()
    }

    /// Opens a terminal of that size and runs the program in it.
    pub(crate) fn terminal(&self, args: &[&str], size: (u16, u16)) -> Terminal {
        Terminal::open(self.command(args).env("TERM", "xterm-256color"), size)
    }

    /// As [`Shells::terminal`], as a user of that id.
    pub(crate) fn terminal_as(&self, uid: u32, args: &[&str]) -> Terminal {
        Terminal::open(self.command_as(uid, args).env("TERM", "xterm-256color"), (200, 40))
    }
}

impl Drop for Shells {
    fn drop(&mut self) {
        for id in containers().difference(&self.containers) {
            drop(Command::new("docker").args(["rm", "-fv", id]).output());
        }
        for volume in volumes().difference(&self.volumes) {
            drop(Command::new("docker").args(["volume", "rm", "-f", volume]).output());
        }
    }
}

/// A program in a pseudo-terminal.
pub(crate) struct Terminal {
    master: File,
    child: Child,
    parts: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// A program in a terminal of that size.
    pub(crate) fn open(command: &Command, size: (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&master).expect("it is ours");
        unlockpt(&master).expect("it is ours");
        let name = ptsname(&master, Vec::new()).expect("it has a name");
        let slave = || {
            let path = Path::new(name.to_str().expect("a path"));
            Stdio::from(open(path, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("the other end"))
        };
        let mut inside = Command::new("setsid");
        inside.args(["--ctty", "--wait"]).arg(command.get_program()).args(command.get_args());
        inside.stdin(slave()).stdout(slave()).stderr(slave());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(key, value),
                None => inside.env_remove(key),
            };
        }
        inside.current_dir(command.get_current_dir().expect("a folder"));
        let master = File::from(master);
        set_size(&master, size);
        let child = inside.spawn().expect("setsid starts");
        let mut reader = master.try_clone().expect("a descriptor");
        let (sender, parts) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = reader.read(&mut buffer) {
                if sender.send(buffer[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { master, child, parts, seen: String::new() }
    }

    /// Types that.
    pub(crate) fn type_in(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("the terminal is open");
    }

    /// Makes the window that large.
    pub(crate) fn resize(&self, size: (u16, u16)) {
        set_size(&self.master, size);
    }

    /// Reads on until that is shown; what was shown up to its end is used up.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = self.seen.find(text) {
                let rest = self.seen.split_off(at + text.len());
                return std::mem::replace(&mut self.seen, rest);
            }
            let left = end.saturating_duration_since(Instant::now());
            let Ok(part) = self.parts.recv_timeout(left) else {
                panic!("`{text}` was never shown: {}", self.seen);
            };
            self.seen.push_str(&String::from_utf8_lossy(&part));
        }
    }

    /// Waits for the end and gives the exit code.
    #[track_caller]
    pub(crate) fn code(mut self) -> i32 {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().expect("a child of ours") {
                return status.code().unwrap_or(-1);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let shown: Vec<u8> = self.parts.try_iter().flatten().collect();
        panic!("it does not end: {}{}", self.seen, String::from_utf8_lossy(&shown));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn set_size(terminal: &File, (columns, rows): (u16, u16)) {
    let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(terminal, size).expect("a terminal");
}
