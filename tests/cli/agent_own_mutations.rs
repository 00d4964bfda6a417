//! The agent itself with one mistake at a time: each check depends on what it says it does, and on nothing of its neighbours.
//!
//! The mistakes are compiled into one agent, each behind its name, so that one compilation serves all; the shipped agent
//! has none of it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use envforge_protocol::{CheckId, Stage};

use super::fake_gpu::{Answer, agent_at};

#[expect(clippy::disallowed_methods, reason = "shared with the build script")]
#[path = "../../build/product_scripts.rs"]
mod product_scripts;

const LIST: &str = include_str!("../fixtures/gpu/agent-mutations.txt");

/// What the mutated agent has in addition.
const SWITCH: &str = "\n/// Whether that mistake is to be made.\npub(crate) fn mutated(name: &str) -> bool {\n    \
     std::env::var(\"AGENT_MUTATION\").is_ok_and(|on| on == name)\n}\n";

/// One mistake.
struct Mutation {
    check: &'static str,
    name: &'static str,
    file: &'static str,
    /// The text before, at and after the change.
    text: [&'static str; 3],
    instead: &'static str,
}

fn mutations() -> Vec<Mutation> {
    let parse = |line: &'static str| {
        let [check, name, file, text, instead] = line.splitn(5, " | ").collect::<Vec<_>>()[..] else {
            return None;
        };
        let (before, rest) = text.split_once('«')?;
        let (at, after) = rest.split_once('»')?;
        Some(Mutation { check: check.trim(), name, file, text: [before, at, after], instead })
    };
    let lines = LIST.lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| parse(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

/// The agent with every mistake behind its name.
static AGENT: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mutated-agent");
    let _ = fs_err::remove_dir_all(&folder);
    let kernels = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
    for part in ["agent/src", "protocol/src", "cuda", "ptx"] {
        copy(&kernels.join(part), &folder.join(part));
    }
    for Mutation { name, file, text: [before, at, after], instead, .. } in mutations() {
        let path = folder.join("agent/src").join(file);
        let source = fs_err::read_to_string(&path).expect("readable");
        let old = format!("{before}{at}{after}");
        assert_eq!(source.matches(&old).count(), 1, "{file} has this once: {old}");
        let new = format!("{before}(if crate::mutated(\"{name}\") {{ {instead} }} else {{ {at} }}){after}");
        fs_err::write(&path, source.replace(&old, &new)).expect("written");
    }
    let main = folder.join("agent/src/main.rs");
    let source = fs_err::read_to_string(&main).expect("readable") + SWITCH;
    fs_err::write(&main, source).expect("written");
    let (protocol, agent) = (folder.join("libenvforge_protocol.rlib"), folder.join("agent-mutated"));
    compile(&["envforge_protocol", "rlib"], &folder.join("protocol/src/lib.rs"), &protocol, &[]);
    let uses = format!("envforge_protocol={}", protocol.display());
    product_scripts::write(&folder.join("agent/src/python/products"), &folder).expect("written");
    compile(&["envforge_agent", "bin"], &main, &agent, &["--extern", &uses]);
    agent
});

fn copy(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).expect("made");
    for entry in fs_err::read_dir(from).expect("readable") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs_err::copy(&path, &target).map(drop).expect("copied");
        }
    }
}

/// Compiles quickly rather than well: references are computed in a second either way.
fn compile(kind: &[&str; 2], source: &Path, out: &Path, more: &[&str]) {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
        .args(["--edition", "2024", "--crate-name", kind[0], "--crate-type", kind[1], "-o"])
        .arg(out)
        .args(["-C", "opt-level=1", "-C", "panic=abort", "--cap-lints", "allow"])
        // The agent finds the list of its products' scripts there.
        .env("OUT_DIR", out.parent().expect("a folder"))
        .args(more)
        .arg(source)
        .output()
        .expect("rustc runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// What a report says of each check, without what differs from run to run: outcome, whether it warns, and the median of a
/// speed that the fakes count.
fn said(answer: &Answer) -> BTreeMap<String, String> {
    let lines = answer.lines.iter().filter(|line| line["id"].is_string());
    let word = |line: &serde_json::Value| {
        let id = line["id"].as_str().unwrap_or_default();
        let measured = &line["measured"];
        // By the wall clock.
        let (warns, speed) = match id {
            "speed-nccl" => (false, ""),
            "speed-peers" => (false, measured["0-1"].as_str().unwrap_or_default()),
            _ => (measured["warning"].is_string(), measured["median"].as_str().unwrap_or_default()),
        };
        format!("{} {warns} {speed}", line["outcome"])
    };
    lines.map(|line| (line["id"].as_str().unwrap_or_default().to_owned(), word(line))).collect()
}

/// What is run of the agent.
const GPU: &[&str] = &["full", "--stage", "gpu"];
const PERF: &[&str] = &["perf", "--stage", "perf", "--skip", "speed-sustained"];
/// A minute of products, cut short.
const SUSTAINED: &[&str] = &["run", "speed-sustained", "--limit", "20"];

/// The report of a run on two GPUs, with a mistake or without one.
fn report(words: &[&str], mutation: &str) -> BTreeMap<String, String> {
    let mut variables = vec![("FAKE_COUNT", "2"), ("FAKE_NVML", "1"), ("AGENT_MUTATION", mutation)];
    // Speeds repeat their work: the fakes do not compute then.
    variables.push(if words == GPU { ("FAKE_COMPUTE", "1") } else { ("FAKE_FREE", "96") });
    said(&agent_at(&AGENT, words, &variables))
}

/// Every mistake in what is run changes the line of its own check alone.
fn each_is_caught_alone(words: &[&str], belongs: impl Fn(&Mutation) -> bool) {
    let healthy = report(words, "");
    let own = |mutation: &Mutation| healthy.contains_key(mutation.check);
    let all: Vec<_> = mutations().into_iter().filter(|mutation| own(mutation) && belongs(mutation)).collect();
    assert!(!all.is_empty());
    for Mutation { check, name, .. } in all {
        let found = report(words, name);
        let changed: Vec<_> = healthy.keys().filter(|id| healthy[*id] != found[*id]).collect();
        if check == "driver" {
            // Without a driver nothing else is tried.
            assert!(found["driver"].starts_with("\"failed\"") && found["device"].starts_with("\"errored\""));
            continue;
        }
        assert_eq!(changed, [check], "{name}: {found:#?}");
        let passed = found[check].starts_with("\"passed\" false");
        assert!(words != GPU || !passed, "{name}: {found:#?}");
    }
}

#[test]
fn every_check_that_the_agent_makes_itself_has_a_mistake() {
    let listed: Vec<_> = mutations().into_iter().map(|mutation| mutation.check).collect();
    let once: BTreeSet<_> = listed.iter().copied().collect();
    let on_a_gpu = CheckId::ALL.iter().filter(|check| matches!(check.stage(), Stage::Gpu | Stage::Perf));
    // Those of frameworks and products are Python: tests/fixtures/gpu/script-mutations.txt, tests/kernels/product_scripts.rs.
    let is_python = |check: &&str| check.starts_with("framework-") || *check == "product-kernel";
    let own: BTreeSet<_> = on_a_gpu.map(|check| check.as_str()).filter(|check| !is_python(check)).collect();
    assert_eq!(once, own);
    let names: BTreeSet<_> = mutations().into_iter().map(|mutation| mutation.name).collect();
    assert_eq!(names.len(), listed.len(), "a mutation is listed twice");
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mistake_in_kernels_and_driver_is_caught_by_its_own_check_alone() {
    each_is_caught_alone(GPU, |mutation| !is_library(mutation));
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mistake_with_a_library_is_caught_by_its_own_check_alone() {
    each_is_caught_alone(GPU, is_library);
}

#[test]
#[ignore = "nightly: needs g++ and compiles each mutation, minutes"]
fn mistake_in_a_speed_changes_that_speed_alone() {
    each_is_caught_alone(PERF, |_| true);
    each_is_caught_alone(SUSTAINED, |_| true);
}

fn is_library(mutation: &Mutation) -> bool {
    ["-cublas", "conv-cudnn", "nccl"].iter().any(|part| mutation.check.contains(part))
}
