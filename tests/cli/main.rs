//! The whole program without a container engine and without network: exit code, stdout and stderr.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files")]

#[path = "../support/blocks.rs"]
mod blocks;
#[expect(dead_code, reason = "tests of services use more of it")]
#[path = "../support/browser.rs"]
mod browser;
#[path = "../support/examples.rs"]
mod example;
#[path = "../support/fake_gpu.rs"]
mod fake_gpu;
#[path = "../support/fake_nodes.rs"]
mod fake_nodes;
#[path = "../support/gpu_daemon.rs"]
mod gpu_daemon;
#[path = "../support/http.rs"]
mod http;
#[path = "../support/index.rs"]
mod index;
#[expect(dead_code, reason = "tests of the library use more of it")]
#[path = "../support/made_wheel.rs"]
mod made_wheel;
#[path = "../support/manifest.rs"]
mod manifest;
#[path = "../support/matrix.rs"]
mod matrix;
#[path = "../support/memory_registry.rs"]
mod memory_registry;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/shared_library.rs"]
mod shared_library;
#[path = "../support/slurm_nodes.rs"]
mod slurm_nodes;
#[path = "../support/terminal.rs"]
mod terminal;
#[path = "../support/wheels.rs"]
mod wheels;

mod abi;
mod agent_gpu;
mod agent_mutations;
mod agent_own_mutations;
mod agent_static;
mod architecture;
mod bare;
mod book;
mod byte_code;
mod caches;
mod calls;
mod ci_templates;
mod claims;
mod companions;
mod compat;
mod dependencies;
mod doctor;
mod edit_packages;
mod engine;
mod evidence;
mod evidence_forgeries;
mod evidence_policy;
mod examples;
mod exports;
mod files;
mod fleet;
mod fleet_files;
mod fleet_live;
mod fleet_real;
mod gpu_day;
mod habits;
mod help;
mod help_examples;
mod hostile;
mod json_output;
mod list;
mod listed_names;
mod migrate;
mod notebook;
mod output;
mod packages;
mod pages;
mod plan;
mod project;
mod project_code;
mod project_trust;
mod provenance;
mod push;
mod refresh;
mod refusals;
mod resolver_scripts;
mod rust_tokens;
mod screens;
mod several;
mod signals;
mod site;
mod source_patches;
mod spec_parts;
mod specs;
mod strangers;
mod tool_locks;
mod vendor;
mod verify;
mod voice;
mod why;

use program::{Program, Run};

/// Variables of the caller that must not reach the program under test.
const AMBIENT: [&str; 41] = [
    "ENVFORGE_SIGNING_KEY",
    "COSIGN_PASSWORD",
    "ENVFORGE_LAYERS",
    "ENVFORGE_LAYERS_WRITE",
    "ENVFORGE_LAYER_COMPRESSION",
    "ENVFORGE_CACHE_DIR",
    "ENVFORGE_STATE_DIR",
    "ENVFORGE_CONFIG",
    "ENVFORGE_GPU",
    "ENVFORGE_DRIVER",
    "ENVFORGE_INDEX",
    "ENVFORGE_FRAMEWORK_INDEX",
    "ENVFORGE_DEBIAN_MIRROR",
    "ENVFORGE_DEBIAN_SECURITY_MIRROR",
    "ENVFORGE_UBUNTU_MIRROR",
    "ENVFORGE_UBUNTU_SECURITY_MIRROR",
    "ENVFORGE_NETWORK",
    "ENVFORGE_CA_BUNDLE",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "UV_DEFAULT_INDEX",
    "UV_INDEX_URL",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_FIND_LINKS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "NO_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "RUST_LOG",
    "TERM",
    "COLUMNS",
];

/// The program with nothing of the caller's.
fn program() -> Program {
    Program::new(&AMBIENT)
}

/// Runs it once in folders of its own.
fn envforge(args: &[&str]) -> Run {
    program().run(args)
}

/// Runs the maintainers' program in the folders of a program.
fn maintain(program: &Program, args: &[&str]) -> Run {
    let binary = std::path::Path::new(env!("CARGO_BIN_EXE_maintain"));
    Run::of(&program.command_of(binary, args).output().expect("the program starts"))
}

/// Everything a run said, for a snapshot; the program's own folder is written `[FOLDER]`, the matrix' edition `[EDITION]`.
fn transcript(program: &Program, run: &Run) -> String {
    let folder = program.path("").to_string_lossy().trim_end_matches('/').to_owned();
    let text = format!("exit {}\n--- stdout\n{}--- stderr\n{}", run.code, run.stdout, run.stderr);
    let text = text.replace(&folder, "[FOLDER]");
    let mut parts = text.split("matrix 20");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "matrix [EDITION]" + &part[part.find('\n').unwrap_or(part.len())..])
}

/// The transcript of one run.
fn said(args: &[&str]) -> String {
    let program = program();
    let run = program.run(args);
    transcript(&program, &run)
}

/// Asserts that nothing is wider than a terminal of 80 columns.
#[track_caller]
fn assert_80_columns(run: &Run) {
    for line in run.stdout.lines().chain(run.stderr.lines()) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
}

/// Asserts one clear message: it says all of that, and is not a panic.
#[track_caller]
fn assert_message(run: &Run, code: i32, says: &[&str]) {
    assert_eq!(run.code, code, "{}", run.stderr);
    let errors = run.stderr.lines().filter(|line| line.starts_with("error:")).count();
    assert!(errors <= 1, "more than one error: {}", run.stderr);
    assert!(!run.stderr.contains("panicked") && !run.stderr.contains("RUST_BACKTRACE"), "{}", run.stderr);
    for part in says {
        assert!(run.stderr.contains(part), "`{part}` is missing in: {}", run.stderr);
    }
}
