//! Help, completions and manual pages.

use crate::{envforge, program, said};

const COMMANDS: [&[&str]; 26] = [
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
fn the_short_help_names_every_command() {
    let run = envforge(&["--help"]);
    for command in [
        "init", "build", "plan", "verify", "list", "lock", "shell", "ps", "stop", "logs", "export",
        "generate",
    ] {
        assert!(run.stdout.contains(&format!("\n  {command} ")), "{}", run.stdout);
    }
}

#[test]
fn every_help_has_worked_examples() {
    for command in COMMANDS {
        let run = envforge(&[command, &["--help"]].concat());
        assert_eq!(run.code, 0, "{command:?}");
        assert!(run.stdout.contains("Examples:\n  envforge "), "{command:?}: {}", run.stdout);
        assert_eq!(run.stderr, "");
    }
}

#[test]
fn an_unknown_command_gets_the_nearest_one() {
    insta::assert_snapshot!(said(&["biuld", "pytorch-cuda"]));
}

#[test]
fn no_command_is_a_wrong_call() {
    assert_eq!(envforge(&[]).code, 2);
    assert_eq!(envforge(&["plan"]).code, 2, "there is no project here");
    assert_eq!(envforge(&["build", "pytorch-cuda", "--locked", "--upgrade"]).code, 2);
}

#[test]
fn completions_are_made_for_each_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let run = envforge(&["generate", "completions", shell]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains("envforge") && run.stdout.contains("for-this-machine"), "{shell}");
    }
    assert_eq!(envforge(&["generate", "completions", "cobol"]).code, 2);
}

#[test]
fn the_bash_completion_is_read_by_bash() {
    let program = program();
    let script = envforge(&["generate", "completions", "bash"]).stdout;
    std::fs::write(program.path("envforge.bash"), script).expect("ours");
    let status = std::process::Command::new("bash").arg("-n").arg(program.path("envforge.bash")).status();
    assert!(status.expect("bash starts").success());
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
fn manual_pages_for_a_folder_that_cannot_be_written_say_so() {
    let program = program();
    std::fs::write(program.path("pages"), "a file").expect("ours");
    let run = program.run(&["generate", "man", "pages"]);
    crate::assert_message(&run, 3, &["pages"]);
}
