//! What a cloned project cannot do before its user agrees: mounts outside it, ports beyond the loopback, secrets.

use std::os::unix::fs::symlink;

use crate::program::{Program, Run};
use crate::{assert_message, program};

const HEAD: &str = "schema = 1\nname = \"p\"\nspec = \"pytorch-cuda:2.8-cu128\"\n";
const SECRET: &str = "run = [{ command = 'cat /run/secrets/hf', secrets = ['hf'] }]\n";
const UNTRUSTED: &str = "is not trusted: it requests access to this machine";
/// What a run says that was allowed to go on: there is no engine.
const NO_ENGINE: &str = "nonexistent.sock";

/// A project in a folder of its own, with a configuration beside it, and no engine.
fn project(text: &str) -> Program {
    let program = program()
        .with("DOCKER_HOST", "unix:///nonexistent.sock")
        .with("ENVFORGE_CONFIG", "config.toml")
        .with("HF", "value");
    std::fs::create_dir_all(program.path("p/data")).expect("ours");
    write(&program, "config.toml", "[secrets]\nhf = { env = 'HF' }\n");
    write(&program, "p/envforge.toml", &format!("{HEAD}{text}"));
    program
}

fn write(program: &Program, name: &str, text: &str) {
    std::fs::write(program.path(name), text).expect("ours");
}

fn run(program: &Program, verb: &str, args: &[&str]) -> Run {
    program.run(&[&[verb, "--project", "p"], args].concat())
}

/// Asserts that it went on, and failed for the missing engine only.
#[track_caller]
fn assert_trusted(run: &Run) {
    assert!(!run.stderr.contains(UNTRUSTED), "{}", run.stderr);
    assert!(run.stderr.contains(NO_ENGINE), "{}", run.stderr);
}

fn digest(run: &Run) -> String {
    let after = run.stderr.split("projects = [\"").nth(1).expect("a digest");
    after[..64].to_owned()
}

#[test]
fn untrusted_project_is_refused_with_everything_it_requests() {
    let shell = "[shell]\nmounts = [\"/etc:/mnt:ro\", \"../..:/up\"]\nports = [\"0.0.0.0:80:8080\"]\n";
    let program = project(&format!("{SECRET}{shell}"));
    let told = [
        UNTRUSTED,
        "mount `/etc` at `/mnt` (read-only)",
        "at `/up` (writable)",
        "open port 80 on 0.0.0.0",
        "read secret `hf` in `cat /run/secrets/hf`",
        "--trust",
        "[trust]",
    ];
    assert_message(&run(&program, "shell", &[]), 125, &told);
    let build = run(&program, "build", &[]);
    assert_message(&build, 2, &[UNTRUSTED, "read secret `hf`", "--trust"]);
    assert!(!build.stderr.contains("/etc"), "a build mounts nothing: {}", build.stderr);
    assert!(!program.path("state/trusted-projects").exists(), "a refusal is no agreement");
}

#[test]
fn requests_inside_the_project_need_no_agreement() {
    let program = project(
        "run = ['true']\n[shell]\nmounts = [\"data:/data\"]\nports = [\"6006\", \"127.0.0.1:8080:80\"]\n",
    );
    assert_trusted(&run(&program, "shell", &[]));
    assert_trusted(&run(&program, "build", &[]));
}

#[test]
fn link_of_the_project_counts_as_the_path_it_leads_to() {
    let program = project("[shell]\nmounts = [\"data/link:/data\", \"data/self:/self\"]\n");
    symlink("/etc", program.path("p/data/link")).expect("ours");
    symlink("..", program.path("p/data/self")).expect("ours");
    let refused = run(&program, "shell", &[]);
    assert_message(&refused, 125, &[UNTRUSTED, "mount `/etc` at `/data` (writable)"]);
    assert!(!refused.stderr.contains("/self"), "{}", refused.stderr);
}

#[test]
fn trust_is_kept_until_a_request_changes() {
    let program = project(SECRET);
    assert_trusted(&run(&program, "build", &["--trust"]));
    assert_trusted(&run(&program, "build", &[]));
    assert_trusted(&run(&program, "shell", &[]));
    // Nothing is asked again for a change that requests nothing.
    write(&program, "p/envforge.toml", &format!("{HEAD}{SECRET}[variables]\nA = 'b'\n"));
    assert_trusted(&run(&program, "build", &[]));
    let other = SECRET.replace("cat ", "curl -d @");
    write(&program, "p/envforge.toml", &format!("{HEAD}{other}"));
    assert_message(&run(&program, "build", &[]), 2, &[UNTRUSTED, "curl -d @/run/secrets/hf"]);
    let earlier = SECRET.replace("run = [", "run = ['echo evil > ~/.bashrc', ");
    write(&program, "p/envforge.toml", &format!("{HEAD}{earlier}"));
    assert_message(&run(&program, "build", &[]), 2, &[UNTRUSTED]);
    write(&program, "p/envforge.toml", &format!("{HEAD}{SECRET}[shell]\nmounts = ['/:/host']\n"));
    assert_message(&run(&program, "shell", &[]), 125, &[UNTRUSTED, "mount `/` at `/host` (writable)"]);
}

#[test]
fn trust_of_one_project_is_not_that_of_its_copy() {
    let program = project(SECRET);
    assert_trusted(&run(&program, "build", &["--trust"]));
    std::fs::create_dir(program.path("q")).expect("ours");
    std::fs::copy(program.path("p/envforge.toml"), program.path("q/envforge.toml")).expect("ours");
    assert_message(&program.run(&["build", "--project", "q"]), 2, &[UNTRUSTED]);
}

#[test]
fn configuration_trusts_a_directory_or_exact_requests() {
    let program = project(SECRET);
    let config = |projects: &str| {
        let text = format!("[secrets]\nhf = {{ env = 'HF' }}\n[trust]\nprojects = ['{projects}']\n");
        write(&program, "config.toml", &text);
    };
    let digest = digest(&run(&program, "build", &[]));
    config(&program.path("elsewhere").display().to_string());
    assert_message(&run(&program, "build", &[]), 2, &[UNTRUSTED]);
    config(&program.path("").display().to_string());
    assert_message(&run(&program, "build", &[]), 2, &[UNTRUSTED]);
    config(&program.path("p").display().to_string());
    assert_trusted(&run(&program, "build", &[]));
    config(&digest);
    assert_trusted(&run(&program, "build", &[]));
    write(&program, "p/envforge.toml", &format!("{HEAD}{}", SECRET.replace("cat", "tac")));
    assert_message(&run(&program, "build", &[]), 2, &[UNTRUSTED]);
    config("p");
    assert_message(&run(&program, "build", &[]), 2, &["absolute path or a SHA-256"]);
}

#[test]
fn control_characters_of_a_request_are_escaped() {
    let program = project("[shell]\nmounts = [\"/etc/\\u001b[2J:/mnt\"]\n");
    let refused = run(&program, "shell", &[]);
    assert_message(&refused, 125, &[UNTRUSTED, "/etc/\\u{1b}[2J"]);
    assert!(!refused.stderr.contains('\u{1b}'), "{:?}", refused.stderr);
}

#[test]
fn variables_volumes_and_networks_of_a_stranger_are_asked_for() {
    let shell = "[shell]\nnetwork = \"host\"\nvolumes = [\"db:/db\"]\nenv = [\"HF\", \"A=1\"]\n\
                 env-file = [\"../config.toml\", \".env\"]\ndata = [\"/etc\"]\nssh = true\n";
    let program = project(shell);
    write(&program, "p/.env", "B=2\n");
    let file = program.path("config.toml").display().to_string();
    let told = [
        UNTRUSTED,
        "use the network of this machine, with all its local services",
        "copy your public SSH keys into its container",
        "mount volume `db` at `/db`",
        "read your variable `HF`",
        &format!("read the variables of `{file}`"),
        "mount `/etc` at `/data/etc` (read-only)",
    ];
    for verb in ["shell", "run"] {
        let words: &[&str] = if verb == "run" { &["true"] } else { &[] };
        let refused = run(&program, verb, words);
        assert_message(&refused, 125, &told);
        assert!(!refused.stderr.contains("`A`") && !refused.stderr.contains("p/.env"), "{}", refused.stderr);
    }
    assert!(!run(&program, "build", &[]).stderr.contains(UNTRUSTED), "a build opens nothing");
}

#[test]
fn variables_files_and_networks_of_the_project_itself_are_not() {
    let shell = "[shell]\nnetwork = \"none\"\nenv = [\"A=1\"]\nenv-file = [\".env\"]\ndata = [\"data\"]\n\
                 gpus = \"none\"\nssh = false\n";
    let program = project(shell);
    write(&program, "p/.env", "B=2\n");
    assert_trusted(&run(&program, "shell", &[]));
    // The same name is another file's behind a link.
    std::fs::remove_file(program.path("p/.env")).expect("ours");
    symlink("/etc/hostname", program.path("p/.env")).expect("ours");
    assert_message(&run(&program, "shell", &[]), 125, &[UNTRUSTED, "read the variables of `/etc/hostname`"]);
    std::fs::remove_file(program.path("p/.env")).expect("ours");
    write(&program, "p/.env", "NVIDIA_GDS=enabled\n");
    assert_message(&run(&program, "shell", &[]), 125, &["variable `NVIDIA_GDS` in", "is set by envforge"]);
    let program = project("[shell]\nenv = [\"NVIDIA_MOFED=enabled\"]\n");
    assert_message(&run(&program, "shell", &[]), 125, &["variable `NVIDIA_MOFED` is set by envforge"]);
    let program = project("[shell]\nenv = [\"HF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz0123\"]\n");
    let refused = run(&program, "shell", &[]);
    assert_message(&refused, 125, &["variable `HF_TOKEN` looks like a credential", "write `HF_TOKEN` alone"]);
    assert!(!refused.stderr.contains("hf_abc"), "{}", refused.stderr);
}

/// Whoever may write to /tmp does not decide what `run` there means.
#[test]
#[ignore = "needs root"]
fn project_file_of_another_user_in_a_folder_above_is_not_taken() {
    let program = project("");
    std::fs::create_dir(program.path("p/job")).expect("ours");
    let file = program.path("p/envforge.toml");
    let below = |args: &[&str]| {
        let mut command = program.command(args);
        command.env("ENVFORGE_CONFIG", program.path("config.toml"));
        Run::of(&command.current_dir(program.path("p/job")).output().expect("it starts"))
    };
    assert_eq!(below(&["plan", "--target", "any"]).code, 0);
    std::os::unix::fs::chown(&file, Some(4242), None).expect("root may");
    assert_message(&below(&["plan", "--target", "any"]), 2, &["belongs to another user", "--project "]);
    assert_eq!(below(&["plan", "--target", "any", "--project", file.to_str().expect("UTF-8")]).code, 0);
}
