//! The project's own code in its containers: imported from the mounted source, behind the image's packages, without a build.

use std::path::Path;
use std::sync::OnceLock;

use crate::scene::SPEC;
use crate::shell::Shells;

const PYPROJECT: &str = "[project]\nname = 'seen-code'\ndynamic = ['version']\n[project.scripts]\nseen-train = 'seen_code.cli:main'\n\
                         python = 'seen_code.cli:main'\n[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n";
/// A build backend that must never run, and a module that must not take the place of the image's.
const TRAPS: [(&str, &str); 2] = [
    ("setup.py", "open('/workspace/ran', 'w')\nraise SystemExit('the project was executed')\n"),
    ("src/torch.py", "raise SystemExit('the image is hidden')\n"),
];

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder of ours");
        std::fs::write(path, text).expect("a file of ours");
    }
}

/// The project file that all of them begin with.
fn plain() -> String {
    format!("schema = 1\nname = \"seen\"\nspec = \"{SPEC}\"\n")
}

/// A project with a src layout, tests and traps; `more` goes into its project file.
fn project(shells: &Shells, more: &str) {
    let file = plain() + more;
    write(&shells.project(), &TRAPS);
    write(
        &shells.project(),
        &[
            ("envforge.toml", &file),
            ("pyproject.toml", PYPROJECT),
            ("src/seen_code/__init__.py", "VALUE = 41\n"),
            (
                "src/seen_code/cli.py",
                "import sys\nimport seen_code\n\ndef main():\n    print('trained', seen_code.VALUE, *sys.argv[1:])\n    return 3\n",
            ),
            (
                "tests/test_value.py",
                "import unittest\nimport seen_code\n\nclass Value(unittest.TestCase):\n    def test_value(self):\n        self.assertEqual(seen_code.VALUE, 41)\n",
            ),
        ],
    );
}

/// Gives a project the lock of these projects, which have the same packages: the first one makes it for all.
fn give_lock(shells: &Shells) {
    static LOCK: OnceLock<String> = OnceLock::new();
    let [file, lock] = ["envforge.toml", "envforge.lock"].map(|name| shells.project().join(name));
    if LOCK.get().is_none() {
        let own = std::fs::read_to_string(&file).expect("a file of ours");
        std::fs::write(&file, plain()).expect("a file of ours");
        shells.succeed(&["lock"]);
        std::fs::write(&file, own).expect("a file of ours");
        // Another test may have been faster.
        drop(LOCK.set(std::fs::read_to_string(&lock).expect("a lock")));
    }
    std::fs::write(lock, LOCK.get().expect("made")).expect("a file of ours");
}

#[test]
#[ignore = "needs docker"]
fn code_of_a_project_is_imported_from_its_source_without_running_anything() {
    let shells = Shells::without_image();
    project(&shells, "");
    give_lock(&shells);
    let run = |words: &[&str]| shells.run(&[&["run"], words].concat());
    let tests = run(&["python", "-m", "unittest", "discover", "tests"]);
    assert_eq!(tests.code, 0, "{}", tests.stderr);
    for note in [
        "`src/torch`: `import torch` is the image's package",
        "invalid script \"python\"",
        "version `0+editable`",
    ] {
        assert!(tests.stderr.contains(note), "{note}: {}", tests.stderr);
    }
    // Programs of the image have another Python in their first line than a shell finds.
    let pip = run(&[
        "/opt/env/bin/python",
        "-c",
        "import seen_code, torch; print(seen_code.__file__, torch.__file__)",
    ]);
    assert!(
        pip.stdout.starts_with("/workspace/src/seen_code/__init__.py /opt/env/lib/"),
        "{}{}",
        pip.stdout,
        pip.stderr
    );
    let path = run(&[
        "python",
        "-c",
        "import sys; p = sys.path; print(p.index('/workspace/src') > max(i for i, x in enumerate(p) if 'site-packages' in x))",
    ]);
    assert_eq!(path.stdout, "True\n", "{}", path.stderr);
    let script = run(&["seen-train", "a b"]);
    assert_eq!((script.code, script.stdout.as_str()), (3, "trained 41 a b\n"), "{}", script.stderr);
    let metadata = "from importlib.metadata import version, entry_points, distribution as d; \
                    print(version('seen-code'), d('seen_code').read_text('direct_url.json').strip(), \
                    entry_points(group='console_scripts')['seen-train'].load().__name__)";
    let metadata = run(&["python", "-c", metadata]);
    let expected = "0+editable {\"dir_info\": {\"editable\": true}, \"url\": \"file:///workspace\"} main\n";
    assert_eq!(metadata.stdout, expected, "{}", metadata.stderr);
    let listed = run(&["pip", "list", "--editable", "--format=freeze"]);
    assert!(listed.stdout.contains("seen-code==0+editable"), "{}{}", listed.stdout, listed.stderr);
    assert!(!shells.project().join("ran").exists(), "setup.py ran");
    // A change counts at once, that of the source without anything, that of pyproject.toml with the next call.
    write(&shells.project(), &[("src/seen_code/__init__.py", "VALUE = 42\n")]);
    let changed =
        PYPROJECT.replace("dynamic = ['version']", "version = '2'").replace("seen-train", "seen-fit");
    write(&shells.project(), &[("pyproject.toml", &changed)]);
    let (fit, gone) = (run(&["seen-fit"]), run(&["seen-train"]));
    assert_eq!(
        (fit.code, fit.stdout.as_str(), gone.code),
        (3, "trained 42\n", 127),
        "{}{}",
        fit.stderr,
        gone.stderr
    );
    // In a container that runs, too.
    shells.succeed(&["shell", "--name", "run1", "--detach"]);
    write(&shells.project(), &[("pyproject.toml", PYPROJECT)]);
    assert_eq!(run(&["seen-train"]).stdout, "trained 42\n");
    shells.succeed(&["stop", "run1"]);
}

#[test]
#[ignore = "needs docker"]
fn code_of_a_project_changes_neither_lock_nor_image() {
    let shells = Shells::without_image();
    project(&shells, "project = \"none\"\n");
    give_lock(&shells);
    let image = |word: &str| {
        write(&shells.project(), &[("envforge.toml", &format!("{}project = \"{word}\"\n", plain()))]);
        shells.succeed(&["build"]);
        let lock = std::fs::read_to_string(shells.project().join("envforge.lock")).expect("a lock");
        let config = lock.lines().find(|line| line.starts_with("config = ")).expect("a record").to_owned();
        let made = lock.lines().find(|line| line.starts_with("# hash")).map(str::to_owned);
        (config, made, lock)
    };
    let without = image("none");
    let run = shells.run(&["run", "python", "-c", "import seen_code"]);
    assert_eq!(run.code, 1, "{}", run.stdout);
    assert!(run.stderr.contains("ModuleNotFoundError"), "{}", run.stderr);
    let with = image("editable");
    assert_eq!(without, with, "lock and image are those without it");
    assert_eq!(shells.run(&["run", "python", "-c", "import seen_code"]).code, 0);
}

#[test]
#[ignore = "needs docker"]
fn checks_of_a_project_see_its_source_read_only_and_are_no_fact_of_the_image() {
    let shells = Shells::without_image();
    let checks = "[verify]\nchecks = [\n{ name = \"imports\", command = \"python -c 'import seen_code; print(seen_code.VALUE)'\" },\n\
                  { name = \"closed\", command = \"! touch /workspace/written 2>/dev/null && ! test -e ~/.ssh\" },\n]\n";
    project(&shells, checks);
    give_lock(&shells);
    let build = shells.run(&["build", "--json"]);
    assert_eq!(build.code, 0, "{}", build.stderr);
    assert!(!shells.project().join("written").exists());
    let verify = || shells.run(&["verify", "--json"]);
    let report = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("JSON");
    let found = report(&verify().stdout);
    let check = |report: &serde_json::Value| {
        let checks =
            report["images"][0]["checks"].as_array().or_else(|| report["checks"].as_array()).cloned();
        checks.expect("checks").into_iter().find(|check| check["id"] == "project-imports")
    };
    let passed = check(&found).expect("its check");
    assert_eq!((&passed["outcome"], &passed["detail"]), (&"passed".into(), &"41".into()), "{passed}");
    assert_eq!(passed["measured"]["mounted"], "project, read-only");
    // A mistake in the source is this call's failure, and the image keeps what was proven of it.
    write(&shells.project(), &[("src/seen_code/__init__.py", "raise ValueError('mine')\n")]);
    let failed = verify();
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(failed.stdout.contains("ValueError: mine"), "{}", failed.stdout);
    assert!(!failed.stderr.contains("withdraws"), "{}", failed.stderr);
    let last = shells.run(&["verify", "--last", "--json"]);
    assert_eq!(last.code, 0, "{}{}", last.stdout, last.stderr);
    assert!(check(&report(&last.stdout)).is_none(), "{}", last.stdout);
}

/// A pyproject.toml that a build needs nothing else for.
fn fixed() -> String {
    PYPROJECT
        .replace("dynamic = ['version']", "version = '1.5'")
        .replace("python = 'seen_code.cli:main'\n", "")
}

/// The same project without traps, installed in its image.
fn installed(shells: &Shells) {
    project(
        shells,
        "project = \"install\"\n[verify]\nchecks = [{ name = \"own\", command = \"cd / && python -c 'import seen_code'\" }]\n",
    );
    for (name, _) in TRAPS {
        std::fs::remove_file(shells.project().join(name)).expect("ours");
    }
    write(&shells.project(), &[("pyproject.toml", &fixed()), (".gitignore", "/data\n"), ("data/large", "x")]);
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").arg("-C").arg(shells.project()).args(words).output();
        assert!(done.expect("git runs").status.success(), "git {words:?}");
    };
    git(&["init", "--quiet"]);
    git(&["add", "--all"]);
}

#[test]
#[ignore = "needs docker"]
fn installed_project_is_a_layer_of_its_image_and_not_of_its_lock() {
    let shells = Shells::without_image();
    installed(&shells);
    give_lock(&shells);
    let build = |more: &[&str]| -> serde_json::Value {
        let run = shells.run(&[&["build", "--json"], more].concat());
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let lock = || std::fs::read_to_string(shells.project().join("envforge.lock")).expect("a lock");
    let first = build(&[]);
    let locked = lock();
    assert!(!locked.contains("seen_code-1.5"), "the lock file has the project's wheel");
    let layers = crate::engine::docker(&[
        "inspect",
        "-f",
        "{{index .Config.Labels \"io.envforge.layers\"}}",
        first["image"].as_str().expect("an id"),
    ]);
    assert!(layers.ends_with("project,files") || layers.ends_with("project,project,files"), "{layers}");
    // The mounted source is not what is imported.
    let run = |words: &[&str]| shells.run(&[&["run"], words].concat());
    let shown = run(&["python", "-c", "import seen_code; print(seen_code.__file__, seen_code.VALUE)"]);
    assert!(
        shown.stdout.starts_with("/opt/env/lib/") && shown.stdout.ends_with(" 41\n"),
        "{}{}",
        shown.stdout,
        shown.stderr
    );
    let script = run(&["seen-train", "x"]);
    assert_eq!((script.code, script.stdout.as_str()), (3, "trained 41 x\n"), "{}", script.stderr);

    // Other sources have another name and the same other layers; the same ones are the same image, by either builder.
    write(&shells.project(), &[("src/seen_code/__init__.py", "VALUE = 42\n"), ("data/large", "y")]);
    let other = build(&["--locked"]);
    assert_ne!(other["name"], first["name"]);
    assert!(run(&["python", "-c", "import seen_code; print(seen_code.VALUE)"]).stdout.ends_with("42\n"));
    let same = build(&["--locked", "--builder", "dockerfile"]);
    assert!(other["content"].is_string(), "{other}");
    assert_eq!((&same["name"], &same["content"]), (&other["name"], &other["content"]));
    assert_eq!(lock(), locked, "--locked writes nothing");

    // A module that would hide one of the image.
    let both = fixed()
        + "[tool.setuptools]\npy-modules = ['torch']\npackages = ['seen_code']\npackage-dir = { '' = 'src' }\n";
    write(&shells.project(), &[("src/torch.py", "x = 1\n"), ("pyproject.toml", &both)]);
    drop(std::process::Command::new("git").arg("-C").arg(shells.project()).args(["add", "--all"]).output());
    let refused = shells.run(&["build"]);
    assert_eq!(refused.code, 1, "{}{}", refused.stdout, refused.stderr);
    assert!(refused.stderr.contains("`torch.py`: `import torch` is `torch 2.7"), "{}", refused.stderr);
    for built in [&first, &other, &same] {
        let id = built["image"].as_str().expect("an id");
        drop(std::process::Command::new("docker").args(["rmi", "-f", id]).output());
    }
}
