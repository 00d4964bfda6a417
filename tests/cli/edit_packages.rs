//! `add` and `remove` without containers: what is written, what is refused, and what is put back.

use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::program::{Program, Run};
use crate::{assert_message, program};

const HEAD: &str = "# ours\nschema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.11-cu126'  # fixed\n";
const FILE: &str = "# ours\nschema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.11-cu126'  # fixed\n\
                    [target]\nany = true\n[packages]\npython = [\n    \"rich\", # prints\n]\napt = ['tree']\n\
                    [environments.train]\nflavour = 'devel'\n";

/// A project with these files, and no engine.
fn project(files: &[(&str, &str)]) -> Program {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    for (name, text) in files {
        let path = program.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }
    program
}

fn text(program: &Program) -> String {
    std::fs::read_to_string(program.path("envforge.toml")).expect("the project file")
}

/// Asserts the message, and that neither the file nor a lock was changed.
#[track_caller]
fn assert_refused(program: &Program, args: &[&str], code: i32, words: &[&str]) {
    let before = text(program);
    assert_message(&program.run(args), code, words);
    assert_eq!(text(program), before, "{args:?}");
    assert!(!program.path("envforge.lock").exists(), "{args:?}");
}

#[test]
fn dry_run_shows_the_changes_and_writes_nothing() {
    let program = project(&[("envforge.toml", FILE), ("deep/er/x", "")]);
    let run = program.run(&["add", "--dry-run", "einops>=0.8", "Rich>13"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(
        run.stdout,
        "envforge.toml: added `einops>=0.8`\nenvforge.toml: replaced `rich` with `Rich>13`\n"
    );
    assert_eq!(run.stderr, "dry run: envforge.toml is unchanged\n");
    let run = program.run(&["add", "--dry-run", "--apt", "ffmpeg", "tree"]);
    assert_eq!(run.stdout, "envforge.toml: added `ffmpeg`\nenvforge.toml: `tree` is there already\n");
    let run = program.run(&["add", "--dry-run", "-E", "train", "wandb"]);
    assert_eq!(run.stdout, "envforge.toml [environments.train]: added `wandb`\n", "{}", run.stderr);
    let run = program.run(&["remove", "--dry-run", "rich", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(report["changes"][0], serde_json::json!({"name": "rich", "from": "rich", "to": null}));
    assert_eq!((&report["lock"], run.stderr.as_str()), (&Value::Null, ""));
    let mut below = program.command(&["remove", "--dry-run", "rich"]);
    let run = Run::of(&below.current_dir(program.path("deep/er")).output().expect("it starts"));
    assert!(run.stdout.ends_with("envforge.toml: removed `rich`\n"), "{}{}", run.stdout, run.stderr);
    assert_eq!(text(&program), FILE);
}

#[test]
fn file_is_put_back_when_its_packages_cannot_be_locked() {
    let program = project(&[("envforge.toml", FILE)]);
    let unchanged = "envforge.toml is unchanged: its packages could not be locked";
    assert_refused(
        &program,
        &["add", "einops", "torchao==0.17.0"],
        1,
        &["torchao 0.17.0 links CUDA 13", unchanged],
    );
    assert_refused(&program, &["add", "einops"], 3, &["nonexistent.sock", unchanged]);
    assert_refused(&program, &["remove", "rich"], 3, &["nonexistent.sock", unchanged]);
    // It was written in between.
    let copies = FILE.replace("[target]", "copy = [{ from = 'gone', to = '/opt/x' }]\n[target]");
    let missing = project(&[("envforge.toml", &copies)]);
    assert_refused(&missing, &["add", "einops"], 2, &["gone"]);
}

/// A project decides where its links lead: nothing is written through one.
#[test]
fn link_in_place_of_the_project_file_is_refused() {
    let program = project(&[("shared/envforge.toml", FILE)]);
    std::os::unix::fs::symlink("shared/envforge.toml", program.path("envforge.toml")).expect("ours");
    for verb in ["add", "remove"] {
        let words = ["is a link to `shared/envforge.toml`", "--project shared/envforge.toml"];
        assert_refused(&program, &[verb, "rich"], 2, &words);
    }
    let run = program.run(&["add", "--dry-run", "rich", "--project", "shared/envforge.toml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
}

/// While the engine does not answer the file has the new package; Ctrl-C puts the old one back.
#[test]
fn interrupted_lock_puts_the_file_back() {
    let program = project(&[("envforge.toml", FILE)]);
    let socket = program.path("docker.sock");
    let listener = UnixListener::bind(&socket).expect("a socket of ours");
    let (sender, accepted) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(listener.accept())));
    let program = program.with("DOCKER_HOST", format!("unix://{}", socket.display()));
    let child = program.command(&["add", "einops>=0.8"]).spawn().expect("the program starts");
    let connection = accepted.recv_timeout(Duration::from_mins(5)).expect("it asks the engine");
    assert_eq!(text(&program), FILE.replace("# prints\n", "# prints\n    \"einops>=0.8\",\n"));
    kill_process(Pid::from_child(&child), Signal::INT).expect("it has not ended by itself");
    let run = Run::of(&child.wait_with_output().expect("its output"));
    drop(connection);
    assert_eq!((run.code, text(&program).as_str()), (130, FILE), "{}", run.stderr);
}

#[test]
fn package_of_another_file_is_edited_there() {
    let with = |packages: &str| format!("{HEAD}[packages]\n{packages}\n");
    let files = [
        ("requirements.txt", "rich\nclick>=8\n"),
        ("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['tqdm']\n"),
    ];
    let only = with("requirements = ['requirements.txt']\npyproject = 'pyproject.toml'");
    let program = project(&[&[("envforge.toml", only.as_str())][..], &files].concat());
    assert_refused(
        &program,
        &["add", "einops>=0.8", "wandb"],
        2,
        &[
            "the Python packages of `envforge.toml` come from `requirements.txt`, `pyproject.toml`",
            "add `einops>=0.8`, `wandb` to requirements.txt, then run `envforge lock`",
        ],
    );
    assert_refused(
        &program,
        &["remove", "Click"],
        2,
        &["`click` comes from requirements.txt, line 2, not from `envforge.toml`"],
    );
    assert_refused(&program, &["remove", "tqdm"], 2, &["`tqdm` comes from pyproject.toml"]);
    // Packages of both: what is new goes into the project file.
    let both = with("python = ['wandb']\nrequirements = ['requirements.txt']");
    let program = project(&[&[("envforge.toml", both.as_str())][..], &files].concat());
    assert_eq!(program.run(&["add", "--dry-run", "einops"]).code, 0);
    assert_refused(&program, &["add", "click>=9"], 2, &["`click` comes from requirements.txt, line 2"]);
    assert_eq!(program.run(&["add", "--dry-run", "--apt", "ffmpeg"]).code, 0);
}

#[test]
fn package_that_is_not_there_names_the_nearest() {
    let program = project(&[("envforge.toml", FILE)]);
    let missing = "`rihc` is not a package of `envforge.toml`";
    assert_refused(&program, &["remove", "rihc"], 2, &[missing, "did you mean `rich`?"]);
    assert_refused(&program, &["remove", "transformers"], 2, &["packages there: rich"]);
    assert_refused(&program, &["remove", "--apt", "ffmpeg"], 2, &["packages there: tree"]);
    assert_refused(
        &program,
        &["remove", "-E", "train", "rich"],
        2,
        &[
            "`rich` is not a package of `envforge.toml [environments.train]`",
            "default environment: omit `-E`",
        ],
    );
}

#[test]
fn package_in_the_words_of_another_tool_is_corrected() {
    let program = project(&[("envforge.toml", FILE)]);
    for typed in ["einops=0.8", "einops@0.8"] {
        assert_refused(&program, &["add", typed], 2, &["did you mean `einops==0.8`?"]);
    }
    assert_refused(&program, &["add", "--apt", "FFmpeg"], 2, &["not the name of a distribution package"]);
    assert_refused(&program, &["add", "-E", "trian", "x"], 2, &["use one of: train"]);
    assert_refused(&program, &["add"], 2, &["<PACKAGE>"]);
    let outside = crate::program();
    assert_message(&outside.run(&["add", "einops"]), 2, &["could not find envforge.toml", "`envforge init`"]);
}
