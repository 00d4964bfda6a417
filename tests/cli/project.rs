//! The project file without engine and network: found, read, refused, planned, begun.

use serde_json::Value;

use crate::program::{Program, Run};
use crate::wheels::WheelSpec;
use crate::{assert_message, program, transcript};

/// A program in a folder with these files.
fn project(files: &[(&str, &str)]) -> Program {
    let program = program();
    for (name, text) in files {
        let path = program.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }
    program
}

fn plan(program: &Program, args: &[&str]) -> Value {
    let run = program.run(&[&["plan", "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    serde_json::from_str(&run.stdout).expect("JSON")
}

const TWO: &str =
    "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n[environments.old]\nspec = 'pytorch-cuda:2.7-cu118'\n";

#[test]
fn plan_without_spec_uses_the_project_here_or_above() {
    let program = project(&[("envforge.toml", TWO), ("deep/er/x", "")]);
    assert_eq!(plan(&program, &[])["name"], "pytorch-cuda:2.8.0-cu128-py3.11");
    assert_eq!(plan(&program, &["-E", "old"])["name"], "pytorch-cuda:2.7.1-cu118-py3.11");
    assert_eq!(plan(&program, &["pytorch-cuda:2.6-cu124"])["name"], "pytorch-cuda:2.6.0-cu124-py3.11");
    let mut below = program.command(&["plan", "--json"]);
    let run = Run::of(&below.current_dir(program.path("deep/er")).output().expect("it starts"));
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert_eq!(plan(&program, &["--project", "deep/../envforge.toml"])["verdict"], "ok");
}

#[test]
fn options_and_environment_override_the_project_target() {
    let text =
        "schema = 1\nspec = 'pytorch-cuda:2.6-cu124'\n[target]\ngpu = ['sm_80']\ndriver = '550.54.15'\n";
    let mut program = project(&[("envforge.toml", text)]);
    assert_eq!(plan(&program, &[])["target"]["driver"], "550.54.15");
    assert_eq!(plan(&program, &["--target", "any"])["target"]["source"], "any");
    program.set("ENVFORGE_GPU", "sm_90");
    assert_eq!(plan(&program, &[])["target"]["gpus"][0]["compute_capability"], "9.0");
}

#[test]
fn missing_spec_and_project_hint_at_both() {
    let program = program();
    for command in ["plan", "lock", "build"] {
        assert_message(&program.run(&[command]), 2, &["could not find envforge.toml", "envforge init"]);
    }
}

#[test]
fn project_file_mistakes_are_reported_together_offline() {
    let program =
        project(&[("envforge.toml", "schema = 1\nspec = 'x:y:z'\n[packages]\napt = ['-y']\npyhton = []\n")])
            .with("DOCKER_HOST", "unix:///nonexistent.sock");
    let run = program.run(&["build"]);
    assert_message(&run, 2, &["invalid `envforge.toml`", "line 5, column 1: unknown field `pyhton`"]);
    let text =
        "schema = 1\nspec = 'x:y:z'\nrun = ['curl https://me:hunter2@host/x']\n[packages]\napt = ['-y']\n";
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let run = program.run(&["build"]);
    assert_message(&run, 2, &["line 2", "line 3, column 8", "line 5, column 8", "secrets = [\"NAME\"]"]);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
}

#[test]
fn project_file_of_a_newer_schema_is_reported() {
    let program = project(&[("envforge.toml", "schema = 7\nnews = true\n")]);
    for command in [&["plan"] as &[&str], &["lock"], &["lock", "--check"], &["build"], &["vendor", "x"]] {
        assert_message(&program.run(command), 2, &["schema 7", "supported: 1", "update envforge"]);
    }
    assert!(!program.path("x").exists());
}

#[test]
fn unknown_environment_lists_the_existing_ones() {
    let program = project(&[("envforge.toml", TWO)]);
    assert_message(
        &program.run(&["plan", "-E", "odl"]),
        2,
        &["environment `odl` not found", "use one of: old"],
    );
    assert_message(
        &program.run(&["plan", "pytorch-cuda", "-E", "old"]),
        2,
        &["`--environment` cannot be combined with a spec"],
    );
    assert_message(&program.run(&["lock", "--with", "rich"]), 2, &["[packages]"]);
}

#[test]
fn referenced_files_are_read_first() {
    let with =
        |packages: &str| format!("schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n[packages]\n{packages}\n");
    let program = project(&[
        ("envforge.toml", &with("requirements = ['requirements.txt']")),
        ("requirements.txt", "rich\n-r more/other.txt\n"),
        ("more/other.txt", "fine\n--extra-index-url https://me:hunter2@host/simple\n"),
    ]);
    let run = program.run(&["plan"]);
    assert_message(&run, 2, &["`more/other.txt`", "line 2", "--extra-index-url", "[indexes]"]);
    assert!(!run.stderr.contains("hunter2"), "{}", run.stderr);
    std::fs::write(program.path("requirements.txt"), b"rich\ncaf\xe9\n").expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["`requirements.txt`", "line 2"]);
    let wide: Vec<u8> = "\u{feff}rich\r\nno way\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(program.path("requirements.txt"), wide).expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["`requirements.txt`", "line 2"]);
    let write = |text: String| std::fs::write(program.path("envforge.toml"), text).expect("ours");
    write(with("requirements = ['gone.txt']"));
    assert_message(&program.run(&["plan"]), 2, &["`gone.txt`", "`envforge.toml`"]);
    write(with("indexes = ['internal']"));
    assert_message(&program.run(&["plan"]), 2, &["`internal`", "[indexes]", "ENVFORGE_INDEX_INTERNAL"]);
    write(with("pyproject = 'pyproject.toml'\ngroups = ['train']"));
    std::fs::write(
        program.path("pyproject.toml"),
        "[project]\nname='x'\n[dependency-groups]\ntest=['pytest']\n",
    )
    .expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["group `train` not found", "test"]);
}

/// How long it takes is measured by `tests/bench/measure.py`.
#[test]
fn ten_thousand_requirements_are_planned() {
    let lines = (0..10_000).fold(String::new(), |all, n| all + &format!("package-{n} >= 1.{n}\n"));
    let text = "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\npackages = { requirements = ['r.txt'] }\n";
    let program = project(&[("envforge.toml", text), ("r.txt", &lines)]);
    assert_eq!(plan(&program, &[])["verdict"], "ok");
}

#[test]
fn copies_stay_inside_the_project() {
    let with = |from: &str| {
        format!(
            "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\ncopy = [{{ from = '{from}', to = '/opt/x' }}]\n"
        )
    };
    let program = project(&[("p/envforge.toml", &with("in")), ("p/in/a", "1"), ("secret", "2")]);
    let run = |from: &str| {
        std::fs::write(program.path("p/envforge.toml"), with(from)).expect("ours");
        program.run(&["plan", "--project", "p"])
    };
    assert_eq!(run("in").code, 0);
    for out in ["../secret", "in/../../secret", "/etc/passwd", ""] {
        assert_message(&run(out), 2, &["line 3", "outside the project"]);
    }
    assert_message(&run("nothing"), 2, &["`nothing`"]);
    std::os::unix::fs::symlink("../../secret", program.path("p/in/b")).expect("a link");
    assert_message(&run("in"), 2, &["in/b", "points outside the project", "mount it"]);
    // And where the link is what was named: to a file, to a folder, on the way to one.
    std::os::unix::fs::symlink("../secret", program.path("p/file")).expect("a link");
    std::os::unix::fs::symlink("..", program.path("p/up")).expect("a link");
    for (from, named) in [("file", "file"), ("up", "up"), ("up/secret", "up/secret")] {
        assert_message(&run(from), 2, &[named, "points outside the project", "mount it"]);
    }
}

#[test]
fn copies_cannot_target_managed_paths() {
    for (to, says) in [
        ("/etc/x", "which envforge manages"),
        ("/opt/env/lib", "which envforge manages"),
        ("/opt/../etc/x", "invalid image path"),
        ("opt/x", "invalid image path"),
        ("/", "invalid image path"),
    ] {
        let copy = format!("copy = [{{ from = 'envforge.toml', to = '{to}' }}]");
        let text = format!("schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n{copy}\n");
        assert_message(&project(&[("envforge.toml", &text)]).run(&["plan"]), 2, &["line 3", says]);
    }
}

#[test]
fn secret_in_a_run_step_is_rejected_without_repeating_it() {
    for (command, secret) in [
        ("HF_TOKEN=hunter2hunter2 python get.py", "hunter2hunter2"),
        ("curl -H 'Authorization: Bearer hunter2hunter2' https://host/x", "hunter2hunter2"),
        ("pip install --index-url https://me:hunter2@host/simple x", "hunter2"),
        ("echo ghp_abcdefghijklmnopqrstuvwxyz0123456789 > ~/t", "ghp_abcdef"),
    ] {
        let run = format!("run = [\"{command}\"]");
        let text = format!("schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n{run}\n");
        let said = project(&[("envforge.toml", &text)]).run(&["plan"]);
        assert_message(
            &said,
            2,
            &["line 3, column 8", "/run/secrets/NAME", "secrets = [\"NAME\"]", "[secrets]"],
        );
        assert!(!said.stderr.contains(secret), "{}", said.stderr);
    }
    let right = "run = [{ command = 'HF_TOKEN=$(cat /run/secrets/hf) python get.py', secrets = ['hf'] }]";
    let text = format!("schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n{right}\n");
    assert_eq!(plan(&project(&[("envforge.toml", &text)]), &[])["verdict"], "ok");
}

#[test]
fn init_writes_a_plannable_file_and_overwrites_none() {
    let program = project(&[
        ("My Project/requirements.txt", "torch\ntransformers>=4\n"),
        ("My Project/apt.txt", "ffmpeg\n"),
        (
            "My Project/pyproject.toml",
            "[project]\nname = 'x'\ndependencies = ['rich']\n[dependency-groups]\ntest = []\n",
        ),
    ]);
    let folder = program.path("My Project");
    let run = |args: &[&str]| {
        let mut command = program.command(args);
        Run::of(&command.current_dir(&folder).output().expect("it starts"))
    };
    let first = run(&["init", "pytorch-cuda:2.8-cu128"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    insta::assert_snapshot!(std::fs::read_to_string(folder.join("envforge.toml")).expect("written"));
    let schema =
        std::fs::read_to_string(folder.join(".envforge.schema.json")).expect("the schema for editors");
    assert_eq!(schema, run(&["generate", "schema"]).stdout);
    assert_eq!(run(&["plan"]).code, 0, "{}", run(&["plan"]).stderr);
    assert_message(&run(&["init"]), 2, &["already exists", "--force"]);
    assert_eq!(run(&["init", "--force"]).code, 0);
    assert_message(&run(&["init", "pytorch-cuda:9.9", "--force"]), 1, &["9.9"]);
    let text = std::fs::read_to_string(folder.join("envforge.toml")).expect("still there");
    assert!(text.contains("spec = \"pytorch-cuda:"), "the refused one changed nothing: {text}");
}

#[test]
fn init_uses_the_release_in_the_requirements() {
    for (file, text, spec) in [
        ("requirements.txt", "torch==2.5.1\n", "pytorch-cuda:2.5.1-"),
        ("requirements.txt", "torch==2.8.0+cu126\n", "pytorch-cuda:2.8.0-cu126"),
        ("requirements.txt", "numpy\ntorch>=2.6,<2.8\n", "pytorch-cuda:2.7.1-"),
        ("pyproject.toml", "[project]\nname = 'x'\ndependencies = ['torch~=2.6.0']\n", "pytorch-cuda:2.6.0-"),
        ("requirements.txt", "cupy-cuda12x<14.2\n", "cupy-cuda:14.1"),
        ("requirements.txt", "cudf-cu13==26.10.2\n", "cudf-cuda:26.10.2-cu13\""),
        ("requirements.txt", "faiss-gpu-cu11==1.10.0\n", "faiss-cuda:1.10.0-cu11\""),
    ] {
        let program = project(&[(file, text)]);
        let run = program.run(&["init"]);
        assert_eq!(run.code, 0, "{text}: {}", run.stderr);
        let written = std::fs::read_to_string(program.path("envforge.toml")).expect("written");
        assert!(written.contains(&format!("spec = \"{spec}")), "{text}: {written}");
    }
    let program = project(&[("requirements.txt", "torch==1.2.0\n")]);
    assert_message(&program.run(&["init"]), 1, &["1.2.0"]);
}

#[test]
fn schema_accepts_every_key_and_rejects_others() {
    let run = program().run(&["generate", "schema"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let schema: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let known = schema["properties"].as_object().expect("an object");
    for key in [
        "schema",
        "name",
        "spec",
        "flavour",
        "packages",
        "variables",
        "copy",
        "run",
        "environments",
        "verify",
    ] {
        assert!(known.contains_key(key), "`{key}` is missing: {known:?}");
    }
    assert!(
        schema["additionalProperties"] == false || schema["unevaluatedProperties"] == false,
        "other keys are refused: {schema}"
    );
    assert_eq!(schema["required"], serde_json::json!(["schema"]));
}

#[test]
fn unsatisfiable_project_is_explained_without_an_engine() {
    let program = project(&[("envforge.toml", "schema = 1\nspec = 'pytorch-cuda:2.9-cu118'\n")])
        .with("DOCKER_HOST", "unix:///nonexistent.sock");
    let run = program.run(&["build"]);
    assert_eq!(run.code, 1, "{}", transcript(&program, &run));
    assert!(run.stderr.contains("cu118"), "{}", run.stderr);
}

/// The lock of a project that holds nothing but what is wanted, as `lock` would write its head.
fn write_lock(program: &Program, change: impl FnOnce(&mut envforge::model::lock::Lock)) {
    let mut lock = crate::verify::lock();
    lock.added.project = Some("small".to_owned());
    change(&mut lock);
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
}

#[test]
fn lock_check_needs_no_engine_or_network() {
    let text = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";
    let program = project(&[("envforge.toml", text)]).with("DOCKER_HOST", "unix:///nonexistent.sock");
    assert_message(&program.run(&["lock", "--check"]), 1, &["envforge.lock` not found"]);
    write_lock(&program, |_| {});
    let run = program.run(&["lock", "--check"]);
    assert_eq!((run.code, run.stdout.trim_end().ends_with("envforge.lock")), (0, true), "{}", run.stderr);
    assert!(run.stderr.contains("lock file is up to date"), "{}", run.stderr);
    let more = format!("{text}[packages]\npython = ['rich']\napt = ['tree']\n[variables]\nA = 'b'\n");
    std::fs::write(program.path("envforge.toml"), more).expect("ours");
    let says = ["requested `rich`", "requested `tree`", "variable: requested `A=b`"];
    assert_message(&program.run(&["lock", "--check"]), 1, &says);
    let run = program.run(&["lock", "--check", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.code, &report["fits"]), (1, &Value::Bool(false)));
    assert_eq!(report["differences"].as_array().expect("a list").len(), 3);
}

#[test]
fn locked_refuses_a_lock_file_that_does_not_fit_without_an_engine() {
    let text = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";
    let program = project(&[("envforge.toml", text)]).with("DOCKER_HOST", "unix:///nonexistent.sock");
    let calls = [["build", "--locked"], ["lock", "--locked"]];
    for call in calls {
        assert_message(&program.run(&call), 1, &["envforge.lock` not found", "or omit `--locked`"]);
    }
    write_lock(&program, |lock| lock.added.project = Some("before".to_owned()));
    for call in calls {
        assert_message(&program.run(&call), 1, &["project: locked `before`, requested `small`"]);
    }
    write_lock(&program, |_| {});
    for call in calls {
        assert_message(&program.run(&call), 3, &["container engine"]);
    }
}

#[test]
fn missing_lock_of_a_spec_names_the_command_with_the_spec() {
    let text = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";
    let program = project(&[("envforge.toml", text)]);
    let run = program.run(&["lock", "--check", "pytorch-cuda:2.7-cu128"]);
    assert_message(&run, 1, &["not found", "run `envforge lock pytorch-cuda:2.7-cu128`"]);
    assert!(!run.stderr.contains("same options"), "{}", run.stderr);
    let run = program.run(&["lock", "--check", "pytorch-cuda:2.7-cu128", "--with", "rich"]);
    assert_message(&run, 1, &["run `envforge lock pytorch-cuda:2.7-cu128` with the same options"]);
}

#[test]
fn program_without_project_and_image_is_refused_without_an_engine() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    for call in [&["run", "python", "x.py"][..], &["shell"]] {
        assert_message(&program.run(call), 125, &["no envforge.toml in", "envforge init"]);
    }
}

#[test]
fn base_that_no_image_can_be_is_refused_by_its_name() {
    let program = program();
    let planned = |base: &str| program.run(&["plan", "pytorch-cuda:2.8", "--target", "any", "--base", base]);
    for base in ["", "My Image", "Ubuntu:22.04"] {
        assert_message(&planned(base), 2, &["invalid image reference"]);
    }
    assert_message(&planned("alpine:3.20"), 1, &["cannot use `alpine:3.20` as a base", "debian:12"]);
    assert_message(&planned("debain:12"), 0, &["did you mean `debian:12`?"]);
    let run = planned("my/image:1");
    assert!(run.stdout.contains("assumed; `envforge lock` reads it"), "{}", run.stdout);
    std::fs::write(program.path("envforge.toml"), "schema = 1\nspec = 'pytorch-cuda:2.8'\nbase = ''\n")
        .expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["invalid image reference"]);
}

const OWN_BASE: &str =
    "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\nbase = 'myteam/base:1'\n";

/// The lock of a project with a base of its own, as it was found in an image of that suite.
fn write_lock_of_own_base(program: &Program, suite: &str) {
    write_lock(program, |lock| {
        "myteam/base:1".clone_into(&mut lock.base.name);
        suite.clone_into(&mut lock.base.suite);
        (lock.stack.base, lock.stack.suite) = (lock.base.name.clone(), lock.base.suite.clone());
    });
}

#[test]
fn lock_of_an_own_base_is_checked_without_an_engine() {
    let program = project(&[("envforge.toml", OWN_BASE)]).with("DOCKER_HOST", "unix:///nonexistent.sock");
    assert_message(&program.run(&["lock", "--check"]), 1, &["envforge.lock` not found"]);
    // A suite that the matrix does not know is a base like another.
    for suite in ["bookworm", "trixie", "sid"] {
        write_lock_of_own_base(&program, suite);
        let run = program.run(&["lock", "--check"]);
        assert_eq!(run.code, 0, "{suite}: {}", run.stderr);
        let run = program.run(&[]);
        assert!(run.stdout.contains("lock file  up to date"), "{suite}: {}", run.stdout);
    }
    let older = OWN_BASE.replace("2.8-cu128", "2.7-cu128");
    std::fs::write(program.path("envforge.toml"), older).expect("ours");
    assert_message(&program.run(&["lock", "--check"]), 1, &["locked `2.8.0`, requested `2.7.1`"]);
    // Of another base nothing but its name is known.
    std::fs::write(program.path("envforge.toml"), OWN_BASE).expect("ours");
    write_lock(&program, |_| {});
    let run = program.run(&["lock", "--check", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let only = serde_json::json!([{"what": "base", "locked": "debian:12", "wanted": "myteam/base:1"}]);
    assert_eq!((run.code, &report["differences"]), (1, &only));
    assert!(program.run(&[]).stdout.contains("lock file  out of date"));
}

#[test]
fn plan_on_an_own_base_is_unknown_before_lock() {
    const WARNING: &str = "base `myteam/base:1` is not known before `envforge lock` reads it";
    let program = project(&[("envforge.toml", OWN_BASE)]).with("DOCKER_HOST", "unix:///nonexistent.sock");
    let run = program.run(&["plan", "--json"]);
    assert_message(&run, 0, &[WARNING]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&report["verdict"], &report["base"]["name"]), (&"unknown".into(), &"myteam/base:1".into()));
    assert!(report["warnings"][0].as_str().is_some_and(|text| text.starts_with(WARNING)), "{report}");
    // It may have a Python of no suite, and what no base can help is refused.
    let run =
        program.run(&["plan", "pytorch-cuda:2.15-py3.15", "--base", "myteam/base:1", "--target", "any"]);
    assert_message(&run, 0, &[WARNING]);
    let run = program.run(&["plan", "pytorch-cuda:2.9-cu118", "--base", "myteam/base:1", "--target", "any"]);
    assert_message(&run, 1, &["variant-unpublished"]);
    assert!(!run.stderr.contains("unknown base"), "{}", run.stderr);
    // The lock file knows it.
    write_lock_of_own_base(&program, "bookworm");
    let run = program.run(&["plan", "--json"]);
    let report: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((run.code, &report["verdict"]), (0, &"ok".into()));
    assert!(!run.stderr.contains("is not known"), "{}", run.stderr);
    // Another base is not that one.
    let run = program.run(&["plan", "--base", "myteam/base:2"]);
    assert_message(&run, 0, &["base `myteam/base:2` is not known"]);
}

#[test]
fn companion_and_wheel_need_the_glibc_of_an_own_base() {
    let text = OWN_BASE.replace("2.8-cu128", "2.7.1-cu128");
    let text = format!("{text}[packages]\npython = ['flash-attn==2.8.3']\n");
    let program = project(&[("envforge.toml", &text)]).with("DOCKER_HOST", "unix:///nonexistent.sock");
    let planned = |suite: &str| {
        write_lock_of_own_base(&program, suite);
        let run = program.run(&["plan"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stdout.contains("needs glibc 2.32, the base has 2.31")
    };
    assert!(planned("bullseye") && !planned("bookworm"));
    let checked = |tag: &str| {
        let wheel = WheelSpec::new("torch", "2.8.0+cu118").tag(tag).build();
        std::fs::write(program.path(&wheel.file), &wheel.bytes).expect("ours");
        let base = ["--base", "myteam/base:1", "--lockfile", "envforge.lock"];
        let args = ["lock", "--check", "pytorch-cuda:2.8-cu118", "--wheel", &wheel.file];
        let run = program.run(&[&args[..], &base].concat());
        assert_eq!(run.code, 1, "{}", run.stderr);
        run.stderr
    };
    assert!(
        checked("cp311-cp311-manylinux_2_39_x86_64").contains("needs glibc 2.39; myteam/base:1 has 2.36")
    );
    let fits = checked("cp311-cp311-manylinux_2_36_x86_64");
    assert!(fits.contains("CUDA variant: locked `cu128`") && !fits.contains("glibc"), "{fits}");
}

#[test]
fn may_lack_requires_a_plain_library_name() {
    let head = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n[verify]\n";
    for wrong in ["/usr/lib/libtbb.so.12", "libtbb", "a=libtbb.so", "libtbb.so 12"] {
        let program = project(&[("envforge.toml", &format!("{head}may-lack = ['{wrong}']\n"))]);
        assert_message(&program.run(&["plan"]), 2, &["line 5, column 13", wrong, "linker-closure"]);
    }
    let program = project(&[("envforge.toml", &format!("{head}may-lack = ['libtbb.so.12']\n"))]);
    assert_eq!(program.run(&["plan"]).code, 0);
    write_lock(&program, |_| {});
    let says = ["library that may be missing: requested `libtbb.so.12`"];
    assert_message(&program.run(&["lock", "--check"]), 1, &says);
}

#[test]
fn edited_lock_is_rejected_with_its_wrong_field() {
    let text = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n";
    let program = project(&[("envforge.toml", text)]);
    write_lock(&program, |lock| lock.stack.cuda = "cu126".parse().expect("a variant"));
    assert_message(&program.run(&["lock", "--check"]), 1, &["CUDA variant", "cu126", "cu128"]);
    // What a stranger's pull request might try: nothing but the pins is believed.
    write_lock(&program, |lock| {
        lock.stack.framework = "cuda".to_owned();
        lock.environment.insert("LD_PRELOAD".to_owned(), "/workspace/x.so".to_owned());
    });
    let says = ["framework", "image variable LD_PRELOAD: locked `/workspace/x.so`, no longer requested"];
    assert_message(&program.run(&["lock", "--check"]), 1, &says);
    write_lock(&program, |lock| lock.stack.suite = "bookworm\nRUN id".to_owned());
    assert_message(&program.run(&["lock", "--check"]), 2, &["stack.suite", "U+000A"]);
    write_lock(&program, |_| {});
    let lock = std::fs::read_to_string(program.path("envforge.lock")).expect("ours");
    std::fs::write(program.path("envforge.lock"), lock.replace("[records]", "[records]\nextra = 1"))
        .expect("ours");
    assert_message(&program.run(&["lock", "--check"]), 2, &["envforge.lock", "line ", "extra"]);
    std::fs::write(program.path("envforge.lock"), lock.replace("schema = 3", "schema = 9")).expect("ours");
    assert_message(&program.run(&["lock", "--check"]), 2, &["schema 9", "update envforge"]);
    // As version control leaves two locks that it could not join, and as a broken editor leaves one.
    let conflict = lock.replacen("schema = 3\n", "<<<<<<< HEAD\nschema = 3\n=======\n", 1);
    for (bytes, place) in
        [(conflict.as_bytes(), "line "), (b"schema = 1\nspec = 'caf\xe9'", "line 2, column 12")]
    {
        std::fs::write(program.path("envforge.lock"), bytes).expect("ours");
        let says = ["envforge.lock", "invalid lock file", place, "version control"];
        assert_message(&program.run(&["lock", "--check"]), 2, &says);
        assert_eq!(std::fs::read(program.path("envforge.lock")).expect("still there"), bytes);
    }
}

#[test]
fn missing_or_binary_project_file_is_reported() {
    let program = project(&[]);
    std::fs::write(program.path("envforge.toml"), b"schema = 1\nspec = 'caf\xe9'\n").expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["`envforge.toml`", "line 2, column 12", "UTF-8"]);
    let long = "n".repeat(5000);
    for absent in ["absent.toml", "absent/folder", &long] {
        assert_message(&program.run(&["plan", "--project", absent]), 2, &["`--project`", absent]);
    }
}

#[test]
fn project_directory_name_that_is_not_utf8_is_reported() {
    use std::os::unix::ffi::OsStrExt;
    let program = project(&[("p/envforge.toml", "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\n")]);
    let folder = program.path(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    std::fs::rename(program.path("p"), &folder).expect("ours");
    let run = |command: &mut std::process::Command| Run::of(&command.output().expect("it starts"));
    let says = ["caf", "UTF-8", "rename the directory"];
    assert_message(&run(program.command(&["plan"]).current_dir(&folder)), 2, &says);
    // The argument is refused where it is read.
    let typed = run(program.command(&["plan", "--project"]).arg(&folder));
    assert_eq!(typed.code, 2, "{}", typed.stderr);
    assert!(typed.stderr.contains("UTF-8"), "{}", typed.stderr);
}

#[test]
fn long_names_are_copied_and_names_not_utf8_reported() {
    use std::os::unix::ffi::OsStrExt;
    let text = "schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\ncopy = [{ from = 'in', to = '/opt/x' }]\n";
    // Beyond the 100 bytes of a plain tar header, and the longest name a file system takes.
    let deep = format!("in/{}/{}", "d".repeat(120), "e".repeat(120));
    let program = project(&[("envforge.toml", text), (&format!("{deep}/x"), "1")]);
    // 255 bytes, but for some file systems of containers.
    let longest = |length: &usize| std::fs::write(program.path(&deep).join("f".repeat(*length)), "1").is_ok();
    assert!((200..=255).rev().find(longest).is_some());
    assert_eq!(plan(&program, &[])["verdict"], "ok");
    let odd = std::ffi::OsStr::from_bytes(b"in/caf\xe9");
    std::fs::write(program.path(odd), "2").expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["in/caf", "UTF-8"]);
    std::fs::remove_file(program.path(odd)).expect("ours");
    let long = "n".repeat(5000);
    // A name that cannot be one, and a spec that nobody publishes.
    for (key, code) in [("name", 2), ("spec", 1)] {
        std::fs::write(program.path("envforge.toml"), format!("schema = 1\n{key} = '{long}'\n"))
            .expect("ours");
        assert_eq!(program.run(&["plan"]).code, code, "{key}");
    }
    let text = format!("schema = 1\nspec = 'pytorch-cuda:2.8-cu128'\npackages = {{ apt = ['{long}'] }}\n");
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["line 3"]);
}
