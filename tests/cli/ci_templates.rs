//! The templates of continuous integration: their shell runs here, their files keep the rules of a closed pipeline.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;
use crate::program::{Program, Run};

const TEMPLATES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/ci");

fn template(name: &str) -> String {
    std::fs::read_to_string(Path::new(TEMPLATES).join(name)).expect(name)
}

/// The script, with a folder on the PATH whose `envforge` and `docker` write down their arguments, or with the real program.
struct Scene {
    program: Program,
    bin: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let program = program();
        let bin = program.path("bin");
        std::fs::create_dir(&bin).expect("ours");
        Self { program, bin }
    }

    fn recording() -> Self {
        let scene = Self::new();
        let script = "#!/bin/sh\necho \"envforge $*\" >> \"$CALLS\"\n[ \"$1\" = verify ] || printf 'built-here\\nanother-tag\\n'\n";
        scene.put("envforge", script);
        scene
    }

    fn real() -> Self {
        let scene = Self::new();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_envforge"), scene.bin.join("envforge")).expect("ours");
        scene
    }

    fn put(&self, name: &str, text: &str) {
        let file = self.bin.join(name);
        std::fs::write(&file, text).expect("ours");
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("ours");
    }

    fn run(&self, script: &str, args: &[&str], variables: &[(&str, &str)]) -> Run {
        let mut command = Command::new("bash");
        command
            .arg(Path::new(TEMPLATES).join(script))
            .args(args)
            .current_dir(self.program.path(""))
            .env_clear();
        let path = format!("{}:/usr/bin:/bin", self.bin.display());
        command
            .env("PATH", path)
            .env("HOME", self.program.path("home"))
            .env("CALLS", self.program.path("calls"));
        for (name, folder) in
            [("ENVFORGE_CACHE_DIR", "cache"), ("ENVFORGE_STATE_DIR", "state"), ("TMPDIR", "tmp")]
        {
            command.env(name, self.program.path(folder));
        }
        command.env("ENVFORGE_GPU", "").env("ENVFORGE_DRIVER", "").envs(variables.iter().copied());
        Run::of(&command.output().expect("bash starts"))
    }

    fn calls(&self) -> String {
        std::fs::read_to_string(self.program.path("calls")).unwrap_or_default()
    }
}

const TAG: (&str, &str) = ("ENVFORGE_TAG", "registry.example.com/team/torch:2.8");
const PUSH: (&str, &str) = ("ENVFORGE_PUSH", "true");

#[test]
fn check_runs_the_real_lock_check() {
    let scene = Scene::real();
    let project = scene.program.path("project");
    std::fs::create_dir(&project).expect("ours");
    let project_dir = ("ENVFORGE_PROJECT", "project");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/numba-saxpy");
    for file in std::fs::read_dir(example).expect("an example") {
        let file = file.expect("an entry").path();
        std::fs::copy(&file, project.join(file.file_name().expect("a name"))).expect("ours");
    }
    let run = scene.run("envforge-ci.sh", &["check"], &[project_dir]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let mut text = std::fs::read_to_string(project.join("envforge.toml")).expect("ours");
    text.push_str("\n[packages]\npython = ['rich']\n");
    std::fs::write(project.join("envforge.toml"), text).expect("ours");
    let run = scene.run("envforge-ci.sh", &["check"], &[project_dir]);
    assert_eq!(run.code, 1, "a lock that is out of date fails the job: {}", run.stderr);
    assert!(run.stderr.contains("requested `rich`"), "{}", run.stderr);
    assert_ne!(scene.run("envforge-ci.sh", &["check"], &[("ENVFORGE_PROJECT", "nowhere")]).code, 0);
}

#[test]
fn only_a_push_pushes_and_no_pull_request_verifies() {
    let requests = [
        ("GITHUB_EVENT_NAME", "pull_request"),
        ("GITHUB_EVENT_NAME", "pull_request_target"),
        ("CI_PIPELINE_SOURCE", "merge_request_event"),
        ("CI_PIPELINE_SOURCE", "external_pull_request_event"),
    ];
    for request in requests {
        let scene = Scene::recording();
        let run = scene.run("envforge-ci.sh", &["build"], &[TAG, PUSH, request]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(scene.calls(), format!("envforge build --locked --tag {}\n", TAG.1), "{request:?}");
        assert!(run.stderr.contains("a pull request does not push"), "{}", run.stderr);
        let scene = Scene::recording();
        let run = scene.run("envforge-ci.sh", &["verify"], &[TAG, PUSH, request]);
        assert_eq!((run.code, scene.calls().as_str()), (2, ""), "{request:?}: {}", run.stderr);
    }
    for event in [("GITHUB_EVENT_NAME", "push"), ("CI_PIPELINE_SOURCE", "push")] {
        let scene = Scene::recording();
        assert_eq!(scene.run("envforge-ci.sh", &["build"], &[TAG, PUSH, event]).code, 0);
        assert_eq!(scene.calls(), format!("envforge build --locked --tag {} --push\n", TAG.1));
        let scene = Scene::recording();
        assert_eq!(scene.run("envforge-ci.sh", &["verify"], &[TAG, PUSH, event]).code, 0);
        let tag = TAG.1;
        let verify = "envforge verify built-here --html report.html --junit report.xml --push\n";
        assert_eq!(scene.calls(), format!("envforge build --locked --tag {tag}\n{verify}"));
    }
    let scene = Scene::recording();
    assert_eq!(scene.run("envforge-ci.sh", &["build"], &[TAG]).code, 0);
    assert!(!scene.calls().contains("--push"), "nothing is pushed without ENVFORGE_PUSH=true");
}

#[test]
fn inputs_are_words_and_never_code() {
    for tag in ["x; touch hacked", "$(touch hacked)", "`touch hacked`", "a b", "x\ntouch hacked"] {
        let scene = Scene::recording();
        assert_eq!(scene.run("envforge-ci.sh", &["build"], &[("ENVFORGE_TAG", tag)]).code, 0);
        assert_eq!(scene.calls(), format!("envforge build --locked --tag {tag}\n"));
        assert!(!scene.program.path("hacked").exists(), "{tag}");
    }
    let scene = Scene::recording();
    assert_eq!(scene.run("envforge-ci.sh", &["build"], &[("ENVFORGE_TAG", "--push")]).code, 2);
    assert_eq!(scene.run("envforge-ci.sh", &["build"], &[]).code, 2);
    assert_eq!(scene.run("envforge-ci.sh", &["publish"], &[]).code, 2);
    assert_eq!(scene.calls(), "");
}

#[test]
fn program_is_installed_by_its_hash_alone() {
    let scene = Scene::new();
    let top = scene.program.path("envforge-0-x86_64-linux");
    std::fs::create_dir_all(top.join("bin")).expect("ours");
    std::fs::create_dir_all(top.join("man/man1")).expect("ours");
    std::fs::write(top.join("man/man1/envforge.1"), ".TH envforge 1\n").expect("ours");
    let program = top.join("bin/envforge");
    std::fs::write(&program, "#!/bin/sh\necho envforge 0\n").expect("ours");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
    let archive = scene.program.path("envforge.tar.gz");
    let mut tar = Command::new("tar");
    tar.arg("-czf").arg(&archive).arg("-C").arg(scene.program.path("")).arg("envforge-0-x86_64-linux");
    assert!(tar.status().expect("tar starts").success());
    let sum = Command::new("sha256sum").arg(&archive).output().expect("sha256sum starts");
    let sum = String::from_utf8_lossy(&sum.stdout)[..64].to_owned();
    let package = archive.to_string_lossy().into_owned();
    let prefix = scene.program.path("prefix").to_string_lossy().into_owned();
    let install = |sha256: &str, package: &str| {
        let variables =
            [("ENVFORGE_PACKAGE", package), ("ENVFORGE_SHA256", sha256), ("ENVFORGE_PREFIX", &prefix)];
        scene.run("envforge-ci.sh", &["install"], &variables)
    };
    let run = install(&"0".repeat(64), &package);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(!Path::new(&prefix).exists(), "nothing of another file is installed");
    assert_eq!(install(&sum, "http://example.com/envforge.tar.gz").code, 2, "only https");
    let run = install(&sum, &package);
    assert_eq!((run.code, run.stdout.as_str()), (0, "envforge 0\n"), "{}", run.stderr);
    assert!(Path::new(&prefix).join("share/man/man1/envforge.1").exists());

    // The dev container's feature is the same script under its options.
    let feature = scene.program.path("feature");
    std::fs::create_dir(&feature).expect("ours");
    for (from, to) in
        [("devcontainer-feature/install.sh", "install.sh"), ("envforge-ci.sh", "envforge-ci.sh")]
    {
        std::fs::copy(Path::new(TEMPLATES).join(from), feature.join(to)).expect("ours");
    }
    let other = scene.program.path("other").to_string_lossy().into_owned();
    let options = [("PACKAGE", package.as_str()), ("SHA256", &sum), ("PREFIX", &other)];
    let script = feature.join("install.sh");
    let run = scene.run(script.to_str().expect("UTF-8"), &[], &options);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(Path::new(&other).join("bin/envforge").exists());
    let json: serde_json::Value =
        serde_json::from_str(&template("devcontainer-feature/devcontainer-feature.json")).expect("JSON");
    assert!(json["options"]["package"].is_object() && json["options"]["sha256"].is_object());
}

/// The lines of all `run:` and `script:` parts of a pipeline.
fn scripts(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut inside: Option<usize> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        if inside.is_some_and(|start| !line.trim().is_empty() && indent <= start) {
            inside = None;
        }
        if inside.is_some() {
            found.push(line.trim());
        }
        let key = line.trim().trim_start_matches("- ");
        if let Some(rest) = key.strip_prefix("run:") {
            found.extend((!rest.trim().is_empty() && rest.trim() != "|").then_some(rest.trim()));
            inside = Some(indent);
        } else if key == "script:" || key == "before_script:" {
            inside = Some(indent);
        }
    }
    found
}

#[test]
fn pipelines_are_closed() {
    let workflows = ["github/image.yml", "github/verify.yml"];
    for name in workflows {
        let text = template(name);
        assert!(text.contains("\npermissions:\n  contents: read\n"), "{name}");
        assert_eq!(text.matches("permissions:").count(), 1, "{name}: no job asks for more");
        assert!(!text.contains("pull_request_target"), "{name}");
        assert_eq!(
            text.matches("actions/checkout@").count(),
            text.matches("persist-credentials: false").count()
        );
        for line in text.lines().map(str::trim).filter(|line| line.contains("uses:")) {
            let action = line.trim_start_matches("- ").trim_start_matches("uses:").trim();
            let pin = action.split_once('@').map(|(_, rest)| rest.split(' ').next().unwrap_or_default());
            let pinned = pin.is_some_and(|pin| pin.len() == 40 && pin.bytes().all(|c| c.is_ascii_hexdigit()));
            assert!(action.starts_with("./") || (pinned && action.contains(" # v")), "{name}: {line}");
        }
        let is_for_requests = text.contains("\n  pull_request:\n");
        assert!(!(is_for_requests && text.contains("self-hosted")), "{name}");
    }
    for name in [&workflows[..], &["github/action.yml", "gitlab/envforge.gitlab-ci.yml"]].concat() {
        let text = template(name);
        let scripts = scripts(&text);
        assert!(!scripts.is_empty() || name == "github/image.yml", "{name}");
        assert!(
            !scripts.iter().any(|line| line.contains("${{")),
            "{name}: inputs come through the environment"
        );
    }
    let gitlab = template("gitlab/envforge.gitlab-ci.yml");
    let verify = &gitlab[gitlab.find("\nverify:").expect("a job")..];
    assert!(verify.contains("merge_request_event\"\n      when: never"), "{verify}");
    assert_eq!(gitlab.matches("gpu]").count(), 1, "one job uses the runner with a GPU");
}

#[test]
fn reader_of_pipelines_sees_every_script() {
    let text = "jobs:\n  a:\n    steps:\n      - run: one ${{ x }}\n      - name: b\n        run: |\n          two\n          three\n        env:\n          A: four\nb:\n  script:\n    - five\n  tags: [six]\n";
    assert_eq!(scripts(text), ["one ${{ x }}", "two", "three", "- five"]);
}

#[test]
fn hook_runs_lock_check() {
    let hook = template("pre-commit-config.yaml");
    let entry = hook.lines().find_map(|line| line.trim().strip_prefix("entry: ")).expect("a command");
    assert_eq!(entry, "envforge lock --check");
    let pattern = hook.lines().find_map(|line| line.trim().strip_prefix("files: ")).expect("a pattern");
    let pattern = pattern.trim_matches('\'');
    for (file, matches) in [
        ("envforge.toml", true),
        ("project/envforge.lock", true),
        ("pyproject.toml", true),
        ("requirements-dev.txt", true),
        ("train.py", false),
        ("my-envforge.toml", false),
    ] {
        let mut grep = Command::new("grep");
        let mut child =
            grep.args(["-qE", pattern]).stdin(std::process::Stdio::piped()).spawn().expect("grep starts");
        std::io::Write::write_all(child.stdin.as_mut().expect("a pipe"), file.as_bytes()).expect("written");
        drop(child.stdin.take());
        assert_eq!(child.wait().expect("it ends").success(), matches, "{file}");
    }
}
