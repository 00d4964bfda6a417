//! The policy of `deny.toml` for the crates of `Cargo.lock`, kept where `cargo deny` is not installed: sources, forbidden crates
//! and licenses.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

fn read(name: &str) -> String {
    std::fs::read_to_string(format!("{}/{name}", env!("CARGO_MANIFEST_DIR"))).expect(name)
}

fn policy() -> toml::Table {
    read("deny.toml").parse().expect("valid TOML")
}

fn texts(value: &toml::Value) -> BTreeSet<String> {
    let texts =
        value.as_array().expect("a list").iter().map(|text| text.as_str().expect("a text").to_owned());
    texts.collect()
}

/// Name, version and source of each crate of a `Cargo.lock`.
fn crates(lock: &str) -> Vec<(String, String, Option<String>)> {
    let lock: toml::Table = lock.parse().expect("valid TOML");
    let field =
        |one: &toml::Value, name: &str| one.get(name).and_then(|text| Some(text.as_str()?.to_owned()));
    let one = |one: &toml::Value| {
        (field(one, "name").expect("a name"), field(one, "version").expect("a version"), field(one, "source"))
    };
    lock["package"].as_array().expect("a list").iter().map(one).collect()
}

/// Crates that come from elsewhere than the allowed registries and this repository.
fn of_other_sources(lock: &str, registries: &BTreeSet<String>) -> Vec<String> {
    let allowed = |source: &Option<String>| {
        source.as_ref().is_none_or(|source| {
            source.strip_prefix("registry+").is_some_and(|registry| registries.contains(registry))
        })
    };
    crates(lock).into_iter().filter(|(_, _, source)| !allowed(source)).map(|(name, ..)| name).collect()
}

#[test]
fn crates_come_from_the_allowed_registry() {
    let registries = texts(&policy()["sources"]["allow-registry"]);
    assert_eq!(of_other_sources(&read("Cargo.lock"), &registries), Vec::<String>::new());
    for source in ["git+https://example.test/x#1", "registry+https://example.test/index"] {
        let planted =
            format!("[[package]]\nname = \"planted\"\nversion = \"1.0.0\"\nsource = \"{source}\"\n");
        assert_eq!(of_other_sources(&planted, &registries), ["planted"], "{source}");
    }
}

/// The workspace has two programs: without this, cargo asks which one the README's `cargo run` means.
#[test]
fn cargo_run_means_envforge() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut asked = Command::new(cargo);
    asked.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let said = asked.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("cargo starts");
    let metadata: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list").iter();
    let programs: Vec<_> = packages.filter_map(|package| package["default_run"].as_str()).collect();
    assert_eq!(programs, ["envforge"]);
}

/// Crates that are forbidden, and those with two versions where one is allowed.
fn forbidden(lock: &str, policy: &toml::Table) -> Vec<String> {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in crates(lock) {
        versions.entry(name).or_default().insert(version);
    }
    let mut found = Vec::new();
    for rule in policy["bans"]["deny"].as_array().expect("a list") {
        let name = rule["crate"].as_str().expect("a name");
        let Some(known) = versions.get(name) else { continue };
        let one_is_allowed = rule.get("deny-multiple-versions").and_then(toml::Value::as_bool) == Some(true);
        if !one_is_allowed || known.len() > 1 {
            found.push(format!("{name} {}", known.iter().cloned().collect::<Vec<_>>().join(", ")));
        }
    }
    found
}

#[test]
fn forbidden_crates_are_not_linked() {
    let (lock, policy) = (read("Cargo.lock"), policy());
    assert_eq!(forbidden(&lock, &policy), Vec::<String>::new());
    let with = |name: &str| format!("{lock}\n[[package]]\nname = \"{name}\"\nversion = \"0.0.1\"\n");
    assert_eq!(forbidden(&with("openssl-sys"), &policy), ["openssl-sys 0.0.1"]);
    assert_eq!(forbidden(&with("tokio"), &policy).len(), 1, "a second version");
}

/// Whether a license expression can be met with the allowed licenses: `(MIT OR Apache-2.0) AND Unicode-3.0`.
fn is_met(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let (met, rest) = any(&words, allowed);
    met && rest.is_empty()
}

fn any<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = every(words, allowed);
    while let Some(("OR", after)) = rest.split_first().map(|(word, after)| (*word, after)) {
        let (other, after) = every(after, allowed);
        (met, rest) = (met || other, after);
    }
    (met, rest)
}

fn every<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    let (mut met, mut rest) = one(words, allowed);
    while let Some(("AND", after)) = rest.split_first().map(|(word, after)| (*word, after)) {
        let (other, after) = one(after, allowed);
        (met, rest) = (met && other, after);
    }
    (met, rest)
}

fn one<'a>(words: &'a [&'a str], allowed: &BTreeSet<String>) -> (bool, &'a [&'a str]) {
    match words {
        ["(", inside @ ..] => {
            let (met, rest) = any(inside, allowed);
            (met, rest.strip_prefix(&[")"]).unwrap_or(rest))
        }
        // An exception gives more rights, and is a license of its own all the same.
        [_, "WITH", _, rest @ ..] => (false, rest),
        [license, rest @ ..] => (allowed.contains(*license), rest),
        [] => (false, &[]),
    }
}

#[test]
fn licenses_are_those_of_the_policy() {
    let allowed = texts(&policy()["licenses"]["allow"]);
    let mut command = Command::new(env!("CARGO"));
    command.args(["metadata", "--offline", "--locked", "--all-features", "--format-version", "1"]);
    command.args(["--filter-platform", "x86_64-unknown-linux-gnu"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("a list");
    assert!(packages.len() > 100, "{}", packages.len());
    for package in packages {
        let license = package["license"].as_str().unwrap_or("none");
        assert!(is_met(license, &allowed), "{}: {license}", package["name"]);
    }
    for good in ["MIT", "MIT/GPL-3.0", "(GPL-3.0 OR ISC) AND Zlib", "Apache-2.0 WITH LLVM-exception OR MIT"] {
        assert!(is_met(good, &allowed), "{good}");
    }
    for bad in ["", "none", "GPL-3.0-only", "MIT AND GPL-3.0", "(MIT OR ISC) AND AGPL-3.0", "MIT ISC"] {
        assert!(!is_met(bad, &allowed), "{bad}");
    }
}

#[test]
fn copied_crates_of_the_release_agent_compile() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/release-agent.sh");
    let mut command = Command::new("sh");
    // .ci/run lints what cargo compiles; the copies are without the lints' configuration.
    command.args([script, "--check"]).env_remove("RUSTC_WORKSPACE_WRAPPER");
    let run = command.output().expect("sh starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}
