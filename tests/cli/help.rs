//! Help, completions and manual pages.

use crate::{envforge, program, said};

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
    assert_eq!(complete("envforge build pytorch-cuda --with bitsand", 4), "bitsandbytes\n");
    let options = complete("envforge plan --forw", 2);
    assert!(options.contains("--forward-compat"), "{options}");
}

/// What a shell prints for a line of its own, with the generated script next to it.
fn answers(shell: &str, options: &[&str], line: &str) -> String {
    let program = program();
    let script = envforge(&["generate", "completions", shell]).stdout;
    std::fs::write(program.path("script"), script).expect("ours");
    let folder = std::path::Path::new(env!("CARGO_BIN_EXE_envforge")).parent().expect("a folder");
    let mut command = program.command_of(std::path::Path::new(shell), &[options, &["-c", line]].concat());
    let path = format!("{}:/usr/bin:/bin", folder.display());
    let run = crate::Run::of(&command.env("PATH", path).output().expect("the shell starts"));
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{shell}: {line}: {}", run.stdout);
    run.stdout
}

#[test]
#[ignore = "needs zsh"]
fn zsh_completes_values_of_the_matrix() {
    // Without an editor there is no completion: what the function adds is printed.
    let complete = |words: &str, at: usize| {
        let line = format!(
            "compdef() {{ : }}; compadd() {{ shift; print -l -- \"$@\" }}; _arguments() {{ print parser }}; \
             source ./script; words=({words}); CURRENT={at}; _envforge"
        );
        answers("zsh", &["-f"], &line)
    };
    let specs = complete("envforge plan pytorch-cuda:2.8", 3);
    assert!(
        specs.lines().count() > 1 && specs.lines().all(|line| line.starts_with("pytorch-cuda:2.8")),
        "{specs}"
    );
    let gpus = complete("envforge plan --gpu NVIDIA", 4);
    assert!(gpus.contains("NVIDIA A100-SXM4-80GB\n"), "{gpus}");
    assert_eq!(complete("envforge build pytorch-cuda --with bitsand", 5), "bitsandbytes\n");
    assert!(complete("envforge plan --forw", 3).starts_with("parser\n"), "options are the parser's");
}

#[test]
#[ignore = "needs fish"]
fn fish_completes_values_of_the_matrix() {
    let complete =
        |words: &str| answers("fish", &["--no-config"], &format!("source ./script; complete -C '{words}'"));
    let specs = complete("envforge plan pytorch-cuda:2.8");
    assert!(
        specs.lines().count() > 1 && specs.lines().all(|line| line.starts_with("pytorch-cuda:2.8")),
        "{specs}"
    );
    let gpus = complete("envforge plan --gpu NVIDIA");
    assert!(gpus.contains("NVIDIA A100-SXM4-80GB\n"), "{gpus}");
    assert_eq!(complete("envforge build pytorch-cuda --with bitsand").trim_end(), "bitsandbytes");
    assert!(complete("envforge plan --forw").starts_with("--forward-compat"));
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
