//! Help, completions and manual pages.

use crate::{envforge, program, said};

const COMMANDS: [&[&str]; 27] = [
    &["init"],
    &["vendor"],
    &["images"],
    &["inspect"],
    &["diff"],
    &["size"],
    &["prune"],
    &["outdated"],
    &["generate", "schema"],
    &["build"],
    &["verify"],
    &["push"],
    &["shell"],
    &["ps"],
    &["stop"],
    &["logs"],
    &["plan"],
    &["list"],
    &["lock"],
    &["export", "dockerfile"],
    &["export", "devcontainer"],
    &["export", "compose"],
    &["export", "apptainer"],
    &["export", "slurm"],
    &["generate", "completions"],
    &["generate", "man"],
    &[],
];

#[test]
fn short_help_lists_every_command() {
    let run = envforge(&["--help"]);
    for command in [
        "init", "build", "plan", "verify", "list", "lock", "shell", "ps", "stop", "logs", "export",
        "generate",
    ] {
        assert!(run.stdout.contains(&format!("\n  {command} ")), "{}", run.stdout);
    }
}

#[test]
fn every_help_has_examples() {
    for command in COMMANDS {
        let run = envforge(&[command, &["--help"]].concat());
        assert_eq!(run.code, 0, "{command:?}");
        assert!(run.stdout.contains("Examples:\n  envforge "), "{command:?}: {}", run.stdout);
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn unknown_command_suggests_the_closest_match() {
    insta::assert_snapshot!(said(&["biuld", "pytorch-cuda"]));
}

#[test]
fn missing_command_is_a_usage_error() {
    assert_eq!(envforge(&["plan"]).code, 2, "there is no project here");
    assert_eq!(envforge(&["build", "pytorch-cuda", "--locked", "--upgrade"]).code, 2);
}

#[test]
fn completions_are_generated_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let run = envforge(&["generate", "completions", shell]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains("envforge") && run.stdout.contains("for-this-machine"), "{shell}");
    }
    assert_eq!(envforge(&["generate", "completions", "cobol"]).code, 2);
}

#[test]
fn bash_parses_the_bash_completion() {
    let program = program();
    let script = envforge(&["generate", "completions", "bash"]).stdout;
    std::fs::write(program.path("envforge.bash"), script).expect("ours");
    let status = std::process::Command::new("bash").arg("-n").arg(program.path("envforge.bash")).status();
    assert!(status.expect("bash starts").success());
}

#[test]
fn bash_completes_specs_and_gpus_from_the_matrix() {
    let program = program();
    let script = envforge(&["generate", "completions", "bash"]).stdout;
    std::fs::write(program.path("envforge.bash"), script).expect("ours");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let complete = |words: &str, at: usize| {
        let line = format!(
            "source ./envforge.bash; COMP_WORDS=({words}); COMP_CWORD={at}; \
             _envforge_values envforge \"${{COMP_WORDS[{at}]}}\" x; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        );
        let mut bash = program.command_of(std::path::Path::new("bash"), &["-c", &line]);
        let path = format!("{}:/usr/bin:/bin", folder.display());
        let run = crate::Run::of(&bash.env("PATH", path).output().expect("bash starts"));
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{words}");
        run.stdout
    };
    let specs = complete("envforge plan pytorch-cuda:2.8", 2);
    assert!(specs.lines().count() > 1, "{specs}");
    assert!(specs.lines().all(|line| line.starts_with("pytorch-cuda:2.8")), "{specs}");
    let gpus = complete("envforge plan --gpu NVIDIA", 3);
    assert!(gpus.contains("NVIDIA\\ A100-SXM4-80GB\n"), "{gpus}");
    let options = complete("envforge plan --forw", 2);
    assert!(options.contains("--forward-compat"), "{options}");
}

#[test]
fn manual_pages_are_written_one_per_command() {
    let program = program();
    let run = program.run(&["generate", "man", "pages"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for page in ["envforge.1", "envforge-build.1", "envforge-plan.1", "envforge-list.1", "envforge-lock.1"] {
        let text = std::fs::read_to_string(program.path("pages").join(page)).expect(page);
        assert!(text.contains(".TH"), "{page}");
    }
}

#[test]
fn unwritable_manual_page_directory_is_reported() {
    let program = program();
    std::fs::write(program.path("pages"), "a file").expect("ours");
    let run = program.run(&["generate", "man", "pages"]);
    crate::assert_message(&run, 3, &["pages"]);
}
