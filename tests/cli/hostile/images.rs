//! Images of the hostile set: an engine whose one image has the labels and variables of `image.toml`, and whose containers print
//! what it says. What only code in a real container shows is in `tests/docker/hostile_images.rs`; archives with two manifests are
//! cases of the vendor folders.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

use envforge::model::lock::Lock;
use serde::Deserialize;

use super::case::{Case, Outcome};
use crate::gpu_daemon::{GpuDaemon, Requests};
use crate::program;
use crate::program::{Program, Run};
use crate::verify::{H200, lock, report};

/// A login of the user, which no image gets.
const LOGIN: &str = "hunter-of-the-user";
/// A run that takes longer is ended. Without the program's own bound an endless image runs for ever; with it, for a second on a
/// machine at rest: the limit is long, so that a busy machine is not taken for the first.
const LONGEST: Duration = Duration::from_mins(5);
/// The most memory that envforge may need for what an image does, in KiB.
const MEMORY: u64 = 200 << 10;

/// What the image is.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Image {
    /// Whether this machine built the image.
    built_here: bool,
    /// The image's label of its lock, if it is not copied from an image that was built here.
    lock_label: Option<String>,
    labels: BTreeMap<String, String>,
    env: Vec<String>,
    /// Whether the tag is of another image as soon as a container was made.
    moves: bool,
    /// Replaces lines of a report that says that all checks passed on a GPU: a line with the text `find` becomes `put`.
    edit: Vec<Edit>,
    /// What is printed instead of that report.
    prints: Option<String>,
    /// What is printed after it.
    more: String,
    /// What is printed after all that, without end.
    endless: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    find: String,
    put: String,
}

impl Image {
    fn prints(&self, lock: &Lock) -> String {
        let whole = self.prints.clone().unwrap_or_else(|| report(lock, H200, true));
        let edited = |text: String, edit: &Edit| {
            assert!(text.contains(&edit.find), "`{}` is not in: {text}", edit.find);
            let line =
                |line: &str| if line.contains(&edit.find) { edit.put.clone() } else { line.to_owned() };
            text.lines().map(|text| line(text) + "\n").collect()
        };
        self.edit.iter().fold(whole, edited) + &self.more
    }

    fn scene(&self, case: &Case) -> (Program, Requests) {
        let (program, lock) = (program(), lock());
        let write = |path: &str, text: &str| {
            let path = program.path(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
            std::fs::write(path, text).expect("ours");
        };
        write("state/locks-of-specs/one.lock", &lock.to_toml());
        if self.built_here {
            write(&format!("state/built-images/{}", "a".repeat(64)), &lock.hash());
        }
        let socket = program.path("docker.sock");
        let requests = GpuDaemon {
            cdi: &["nvidia.com/gpu=0", "nvidia.com/gpu=all"],
            tags: vec!["team/torch:1-unverified".to_owned(), format!("{}-unverified", lock.stack.name)],
            lock: self.lock_label.clone().unwrap_or_else(|| lock.hash()),
            labels: self.labels.clone(),
            env: self.env.clone(),
            moves: self.moves,
            prints: self.prints(&lock),
            endless: self.endless.clone(),
            ..GpuDaemon::default()
        }
        .listen(&socket);
        let mut program = program
            .with("DOCKER_HOST", format!("unix://{}", socket.display()))
            .with("ENVFORGE_GPU", "sm_90")
            .with("ENVFORGE_INDEX", format!("https://user:{LOGIN}@index.example.test/simple"));
        for (name, value) in &case.expect.variables {
            program.set(name, value);
        }
        (program, requests)
    }
}

/// The most memory that a process has needed so far, in KiB; 0: it is gone.
fn peak(child: &Child) -> u64 {
    let status = std::fs::read_to_string(Path::new("/proc").join(child.id().to_string()).join("status"));
    let status = status.unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn run(program: &Program, args: &[&str]) -> (Run, u64, Duration) {
    let began = Instant::now();
    let mut child = program.command(args).spawn().expect("the program starts");
    let mut memory = 0;
    while child.try_wait().expect("a child of ours").is_none() {
        memory = memory.max(peak(&child));
        if began.elapsed() > LONGEST {
            child.kill().expect("a child of ours");
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    (Run::of(&child.wait_with_output().expect("a child of ours")), memory, began.elapsed())
}

/// What is wrong with the containers that were made: each runs the agent from outside the image, closed and bounded.
fn open_containers(image: &Image, requests: &Requests) -> Vec<String> {
    let mut wrong = Vec::new();
    // Some are made only to put files into them, or to take some out.
    for body in requests.created(|command| !command.contains("/never-started")) {
        let host = &body["HostConfig"];
        let limits = [
            ("agent", body["Entrypoint"][0] == "/envforge/agent"),
            ("network", host["NetworkMode"] == "none"),
            ("privileges", host["SecurityOpt"].to_string().contains("no-new-privileges")),
            ("processes", host["PidsLimit"].as_i64().is_some_and(|limit| (1..=16_384).contains(&limit))),
            ("log", host["LogConfig"]["Type"] == "none"),
            ("capabilities", host["CapDrop"].to_string().contains("ALL")),
            ("binds", host["Binds"].as_array().is_none_or(Vec::is_empty)),
        ];
        wrong.extend(
            limits
                .iter()
                .filter(|(_, kept)| !kept)
                .map(|(name, _)| format!("container without {name}: {body}")),
        );
        // What a container does not set, it has from its image.
        let lines = body["Env"].as_array().into_iter().flatten().filter_map(|line| line.as_str());
        let own: BTreeMap<&str, &str> = lines.filter_map(|line| line.split_once('=')).collect();
        let mut all: BTreeMap<&str, &str> =
            image.env.iter().filter_map(|line| line.split_once('=')).collect();
        all.extend(own);
        let of_linker = |name: &str| name.starts_with("LD_") || name == "GLIBC_TUNABLES";
        wrong.extend(
            all.into_iter()
                .filter(|(name, value)| of_linker(name) && !value.is_empty())
                .map(|(name, value)| format!("the agent starts with {name}={value}")),
        );
        let text = body.to_string();
        if text.contains(LOGIN) {
            wrong.push(format!("a container has the user's login: {text}"));
        }
    }
    wrong
}

/// Runs the commands of a case, each with a new engine.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    let image: Image = case.toml("image.toml");
    let attempt = |args: &Vec<String>| {
        let (program, requests) = image.scene(case);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let (run, memory, time) = run(&program, &args);
        let mut harm = open_containers(&image, &requests);
        let asks = &case.expect.asks;
        let never = ["/tag?", "/push", "/build?t=", "/images/load", "/commit"];
        let never = never.into_iter().filter(|path| !asks.iter().any(|asked| asked == path));
        harm.extend(
            never
                .filter(|path| requests.contain(path))
                .map(|path| format!("the engine was asked for {path}")),
        );
        harm.extend(
            asks.iter()
                .filter(|path| !requests.contain(path))
                .map(|path| format!("the engine was not asked for {path}")),
        );
        // A container that runs the image's code never gets the list of credentials.
        if !image.built_here && requests.files().contains(LOGIN) {
            harm.push("the user's login was put into a container".to_owned());
        }
        if memory > MEMORY {
            harm.push(format!("envforge needed {memory} KiB"));
        }
        if time > LONGEST {
            harm.push("the image was not ended".to_owned());
        }
        let output = format!("{}{}", run.stdout, run.stderr);
        let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t') || "\u{202e}\u{2066}".contains(c);
        if let Some(found) = output.chars().find(|c| hidden(*c)) {
            harm.push(format!("the output contains U+{:04X}", u32::from(found)));
        }
        Outcome { code: run.code, output, harm, root: program.path("") }
    };
    case.expect.commands.iter().map(attempt).collect()
}
