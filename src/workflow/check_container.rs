//! The containers that checks run in: their bounds, their files, what came out of them.
//!
//! Checks that only look at files run in a container of their own, with the agent from outside: no code of the image
//! runs there, so the credentials that must not be in the image are given to that container alone.

use std::time::Duration;

use bytes::Bytes;
use envforge_protocol::{CheckGroup, CheckId};

use crate::agent;
use crate::engine::{ContainerFile, EngineInfo, ImageInfo, RunLimits, RunOutcome, RunRequest, WritableRoot};
use crate::model::export::kubernetes::AgentCall;
use crate::model::request::Level;

/// Where the agent of every image of ours lies.
pub(crate) const BAKED_AGENT: &str = "/opt/envforge/agent";
/// A folder that no image uses: the agent finds there what it must find, and lies there where the image has none.
pub(super) const AGENT: &str = "/envforge/agent";
pub(super) const EXPECT: &str = "/envforge/expect.txt";
const FORBIDDEN: &str = "/envforge/forbidden.txt";
/// The user of every image of ours.
pub(super) const USER: &str = "1000:1000";
/// What root keeps: to read every file, to run a check as the image's user and to end it.
const KEPT: [&str; 4] = ["DAC_OVERRIDE", "SETUID", "SETGID", "KILL"];
/// Bytes of output: a complete report has some 100 kB.
const OUTPUT: usize = 10 << 20;

/// The bounds of a level: the times are about three times the sum of the agent's own limits that were seen to be used.
pub(super) fn limits(level: Level, engine: &EngineInfo) -> RunLimits {
    let minutes = match level {
        Level::Static | Level::Quick => 20,
        Level::Full => 60,
        Level::Perf => 120,
    };
    RunLimits::on(engine, Duration::from_mins(minutes), OUTPUT)
}

/// Root sees every file; what is about the image's user runs as that user.
pub(super) fn as_root(request: &mut RunRequest) {
    request.user = Some("0:0".to_owned());
    request.keeps = KEPT.map(str::to_owned).to_vec();
}

/// The container of the checks that only look at files. Its root is writable, so that what the image's user may write
/// is seen, and nothing lies over /tmp. The agent ends each of these checks itself: the container with the credentials ends
/// after some minutes, whatever became of envforge.
pub(super) fn file_checks(image: &ImageInfo, forbidden: &[String], limits: RunLimits) -> RunRequest {
    let groups = CheckGroup::ALL.iter().filter(|group| group.looks_at_files_only());
    let mut command = words(&[AGENT, "run", "--json", "--forbidden", FORBIDDEN, "--user", USER]);
    command.extend(groups.map(|group| group.as_str().to_owned()));
    let mut request = RunRequest {
        files: vec![text(FORBIDDEN, forbidden.join("\0")), agent_file()],
        env: environment(image),
        ..RunRequest::bounded(&image.id, command, limits).with_writable_root(WritableRoot::SeenByTheAgent)
    };
    as_root(&mut request);
    request
}

/// The agent's words that leave those checks out.
pub(super) fn without_file_checks() -> impl Iterator<Item = String> {
    let groups = CheckGroup::ALL.iter().filter(|group| group.looks_at_files_only());
    groups.flat_map(|group| ["--skip".to_owned(), group.as_str().to_owned()])
}

/// What the agent printed, and how it ended.
pub(super) struct AgentReport {
    pub(super) lines: String,
    /// Why a line may be missing: `agent exited with code 1`.
    pub(super) end: String,
}

impl AgentReport {
    /// The report of one container.
    pub(super) fn of(outcome: &RunOutcome) -> Self {
        let end = match outcome.reached {
            None => format!("agent exited with code {}", outcome.code),
            Some(limit) => format!("the checks were ended: they {limit}"),
        };
        Self { lines: String::from_utf8_lossy(&outcome.stdout).into_owned(), end }
    }

    /// The report of a container that ran the image's code, and of one that looked at its files. Each gives only the
    /// lines of its own checks: code of the image can print what it likes.
    pub(super) fn of_two(code: &RunOutcome, files: &RunOutcome) -> Self {
        let (code, files) = (Self::of(code), Self::of(files));
        let of_files = |line: &&str| {
            let line: Option<Line> = serde_json::from_str(line).ok();
            line.and_then(|line| CheckId::parse(&line.id)).is_some_and(|id| id.group().looks_at_files_only())
        };
        let of_code = code.lines.lines().filter(|line| !of_files(line));
        // The files' lines come first: a complete report ends with the line that says so.
        let all: Vec<&str> = files.lines.lines().filter(of_files).chain(of_code).collect();
        let complete = |lines: &str| lines.lines().last().is_some_and(|line| line.contains("\"done\""));
        let end = if complete(&code.lines) { files.end } else { code.end };
        Self { lines: all.join("\n"), end }
    }
}

/// The agent of the image itself, with every check of code and GPU, as the image's user: for who runs it without envforge.
pub(crate) fn agent_call() -> AgentCall {
    let mut command = words(&[BAKED_AGENT, Level::Full.as_str(), "--json", "--expect", EXPECT]);
    command.extend(without_file_checks());
    let pairs = OWN.iter().filter_map(|line| line.split_once('='));
    AgentCall { command, variables: pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect() }
}

/// The part of a report's line that says which check it is of.
#[derive(serde::Deserialize)]
struct Line {
    id: String,
}

pub(super) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn text(path: &str, text: String) -> ContainerFile {
    ContainerFile { path: path.to_owned(), mode: 0o644, bytes: Bytes::from(text) }
}

pub(super) fn agent_file() -> ContainerFile {
    ContainerFile { path: AGENT.to_owned(), mode: 0o755, bytes: Bytes::from_static(agent::AGENT) }
}

/// The variables of a container that runs the agent: where the image sets the dynamic linker's, the agent itself starts
/// without them and gives them to the checks.
pub(super) fn environment(image: &ImageInfo) -> Vec<String> {
    let linker =
        image.env.iter().filter_map(|line| line.split_once('=')).filter(|(name, _)| is_of_linker(name));
    let kept =
        linker.flat_map(|(name, value)| [format!("{name}="), format!("ENVFORGE_CHILD_{name}={value}")]);
    OWN.map(str::to_owned).into_iter().chain(kept).collect()
}

fn is_of_linker(name: &str) -> bool {
    name.starts_with("LD_") || name == "GLIBC_TUNABLES"
}

/// Without network NCCL's first word goes over the loopback; caches go where anybody may write.
const OWN: [&str; 6] = [
    "NCCL_SOCKET_IFNAME=lo",
    "HOME=/tmp",
    "XDG_CACHE_HOME=/tmp/.cache",
    "CUDA_CACHE_PATH=/tmp/.nv",
    "TRITON_CACHE_DIR=/tmp/.triton",
    "TORCHINDUCTOR_CACHE_DIR=/tmp/.inductor",
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Network;
    use crate::engine::ReachedLimit;

    fn outcome(stdout: &str) -> RunOutcome {
        RunOutcome { stdout: stdout.into(), ..RunOutcome::default() }
    }

    #[test]
    fn code_of_an_image_cannot_answer_for_the_checks_of_files() {
        let forged = r#"{"id":"secrets","outcome":"passed"}"#;
        let own = r#"{"id":"framework-import","outcome":"passed"}"#;
        let found = r#"{"id":"secrets","outcome":"failed"}"#;
        let report = AgentReport::of_two(
            &outcome(&format!("{forged}\n{own}\n{{\"done\":true}}")),
            &outcome(&format!("{found}\n{own}")),
        );
        assert_eq!(report.lines, format!("{found}\n{own}\n{{\"done\":true}}"));
    }

    #[test]
    fn reached_limit_is_the_end_of_a_report() {
        let mut cut = outcome("");
        cut.reached = Some(ReachedLimit::Output(OUTPUT));
        assert_eq!(AgentReport::of(&cut).end, "the checks were ended: they printed more than 10 MiB");
        let files = outcome("{\"done\":true}");
        assert_eq!(
            AgentReport::of_two(&cut, &files).end,
            "the checks were ended: they printed more than 10 MiB"
        );
        assert_eq!(
            AgentReport::of_two(&files, &cut).end,
            "the checks were ended: they printed more than 10 MiB"
        );
    }

    #[test]
    fn credentials_are_given_to_the_container_of_the_files_only() {
        let engine = EngineInfo::sample();
        let own = limits(Level::Full, &engine);
        let request = file_checks(&ImageInfo::default(), &["planted".to_owned()], own);
        assert_eq!(request.command[..2], [AGENT, "run"]);
        assert!(request.command.ends_with(&["secrets".to_owned()]), "{:?}", request.command);
        assert_eq!((request.network, request.limits), (Network::None, Some(own)));
        assert!(without_file_checks().any(|word| word == "secrets"));
    }

    #[test]
    fn linker_settings_of_the_image_reach_the_checks_only() {
        let env = ["LD_PRELOAD=/x.so", "PATH=/bin", "LD_LIBRARY_PATH=/a:/b"].map(str::to_owned).to_vec();
        let all = environment(&ImageInfo { env, ..ImageInfo::default() });
        assert_eq!(
            all[OWN.len()..],
            [
                "LD_PRELOAD=",
                "ENVFORGE_CHILD_LD_PRELOAD=/x.so",
                "LD_LIBRARY_PATH=",
                "ENVFORGE_CHILD_LD_LIBRARY_PATH=/a:/b"
            ]
        );
    }

    #[test]
    fn limits_follow_the_memory_of_the_engine() {
        let mut engine = EngineInfo::sample();
        assert_eq!(
            (limits(Level::Static, &engine).memory, limits(Level::Static, &engine).tmp),
            (None, 2 << 30)
        );
        engine.memory = Some(64 << 30);
        let limited = limits(Level::Static, &engine);
        assert_eq!((limited.memory, limited.tmp), (Some(56 << 30), 16 << 30));
        engine.unkept_limits.push("--memory");
        assert_eq!(limits(Level::Static, &engine).memory, None);
    }
}
