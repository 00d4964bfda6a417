//! The README and the first two pages of the book, word for word, in a clean Debian container with the engine's socket.
//!
//! The container has what the README asks for: Docker's client, Rust and a C compiler. The repository is a fresh clone, home,
//! cache and state are empty. Mirrors, package index and CA certificates are those of this machine, as for any newcomer.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::blocks::{Session, blocks, matches, sessions};
use crate::engine::{docker, engine_socket};
use crate::program::Run;
use crate::scene::Scene;

const CONTAINER: &str = "envforge-newcomer";
/// What the README and the pages show and cannot be typed by a newcomer: an image of a team, which the README only names.
const OF_OTHERS: [&str; 1] = ["envforge verify team/torch:1"];

/// A container that is removed with this value.
struct Newcomer {
    folder: PathBuf,
}

impl Newcomer {
    /// Starts one of that base. `folder` has the same path inside, since the engine resolves the paths of `shell`.
    fn start(base: &str, folder: PathBuf) -> Self {
        for name in ["home", "work"] {
            std::fs::create_dir_all(folder.join(name)).expect("a folder of the test");
        }
        std::fs::write(folder.join("work/train.py"), "import time\nprint('trained')\ntime.sleep(60)\n")
            .expect("a file of the test");
        let clone = Command::new("git")
            .args(["clone", "--quiet", "--no-local", env!("CARGO_MANIFEST_DIR")])
            .arg(folder.join("envforge"))
            .status();
        assert!(clone.expect("git starts").success(), "no clone");
        let rust = PathBuf::from(tool("rustc", &["--print", "sysroot"]));
        let client = tool("sh", &["-c", "command -v docker"]);
        let mut mounts = vec![
            format!("{}:/var/run/docker.sock", engine_socket().display()),
            format!("{client}:/usr/bin/docker:ro"),
            format!("{0}:{0}:ro", rust.display()),
            format!("{0}:{0}", folder.display()),
        ];
        for settings in ["/etc/apt", "/etc/ssl/certs", "/etc/pip.conf", "/etc/hosts"] {
            if Path::new(settings).exists() {
                mounts.push(format!("{settings}:{settings}:ro"));
            }
        }
        let path = format!(
            "{}/bin:{}/home/.cargo/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            rust.display(),
            folder.display()
        );
        let mut variables = vec![format!("PATH={path}"), format!("HOME={}/home", folder.display())];
        let of_network = |name: &str| {
            let name = name.to_ascii_uppercase();
            ["SSL_", "PIP_", "CARGO_HTTP", "CARGO_REGISTR", "CURL_CA", "REQUESTS_CA"]
                .iter()
                .any(|start| name.starts_with(start))
                || name.ends_with("_PROXY")
        };
        // Local wheels of this machine are no index.
        let of_network = |name: &str| of_network(name) && !name.eq_ignore_ascii_case("PIP_FIND_LINKS");
        variables.extend(
            std::env::vars()
                .filter(|(name, _)| of_network(name))
                .map(|(name, value)| format!("{name}={value}")),
        );
        let mut args = vec!["run", "--detach", "--name", CONTAINER];
        for mount in &mounts {
            args.extend(["--volume", mount]);
        }
        for variable in &variables {
            args.extend(["--env", variable]);
        }
        args.extend([base, "sleep", "infinity"]);
        let newcomer = Self { folder };
        docker(&args);
        let setup = "apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev";
        succeed("/", setup);
        newcomer
    }

    /// Types what a page shows, and compares the output: `…` stands for any lines, times are not compared.
    fn follows(&self, session: &Session) {
        let Run { code, stdout: text, .. } = types(self.folder.join("work"), &session.command);
        let refuses = session.output.first().is_some_and(|line| line.starts_with("cannot resolve"));
        assert_eq!(code != 0, refuses, "`{}`: {text}", session.command);
        let shown: Vec<_> = session.output.iter().map(|line| timeless(line)).collect();
        if !shown.is_empty() {
            let printed: Vec<_> = text.lines().map(timeless).collect();
            assert_eq!(matches(&shown, &printed.join("\n")), Ok(()), "`{}`: {text}", session.command);
        }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        drop(Command::new("docker").args(["rm", "-f", CONTAINER, "envforge-run1"]).output());
    }
}

#[test]
#[ignore = "nightly: needs docker, Rust, an index of everything, twenty gigabytes and half an hour"]
fn newcomer_follows_the_readme_and_the_first_pages() {
    let scene = Scene::locked();
    let newcomer = Newcomer::start(&scene.base(), scene.program.path("newcomer"));
    let clone = newcomer.folder.join("envforge");
    let page = |name: &str| std::fs::read_to_string(clone.join(name)).expect("a page");

    let readme = page("README.md");
    let first = readme.lines().find(|line| line.starts_with("    cargo run ")).expect("the first command");
    succeed(&clone, first.trim());
    succeed(&clone, "cargo install --locked --path .");

    let mut typed = 0;
    for name in ["README.md", "docs/src/introduction.md", "docs/src/start.md"] {
        for block in blocks(&page(name)) {
            if block.language == "console" {
                let new = |session: &&Session| !OF_OTHERS.contains(&&*session.command);
                for session in sessions(&block).iter().filter(new) {
                    newcomer.follows(session);
                    typed += 1;
                }
            } else if block.language == "sh" {
                // The start page installs once more, which changes nothing, and asks the doctor.
                succeed(&clone, &block.text);
                typed += 1;
            }
        }
        if name == "README.md" {
            // The next page's command would join this run, and end with it.
            succeed(&clone, "envforge stop run1");
        }
    }
    assert_eq!(typed, 16, "commands of the pages");
}

/// Types a command in a folder; both streams are in `stdout`.
fn types(folder: impl AsRef<Path>, command: &str) -> Run {
    let folder = folder.as_ref().to_string_lossy();
    let command = format!("exec 2>&1; {command}");
    let args = ["exec", "--workdir", &folder, CONTAINER, "sh", "-c", &command];
    Run::of(&Command::new("docker").args(args).output().expect("docker starts"))
}

/// Types a command that must succeed.
fn succeed(folder: impl AsRef<Path>, command: &str) {
    let run = types(folder, command);
    assert_eq!(run.code, 0, "`{command}`: {}", run.stdout);
}

/// A line without times: seconds and how long something is up.
fn timeless(line: &str) -> String {
    let line = line.split("  Up ").next().unwrap_or(line);
    let is_seconds = |word: &str| word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok());
    let words = line.split(' ').map(|word| if is_seconds(word) { "0s" } else { word });
    words.collect::<Vec<_>>().join(" ").trim_end().to_owned()
}

/// What a program of this machine prints, without the line's end.
fn tool(name: &str, args: &[&str]) -> String {
    let output = Command::new(name).args(args).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
fn times_are_not_compared() {
    assert_eq!(timeless("ok check team/torch:1  8.3s"), timeless("ok check team/torch:1  12.0s"));
    assert_eq!(timeless("run1  spec  -  -    Up 3 minutes"), timeless("run1  spec  -  -    Up 2 seconds"));
    assert_ne!(timeless("26 checks"), timeless("27 checks"));
}
