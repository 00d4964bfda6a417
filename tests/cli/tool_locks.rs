//! `lock --from` and `export pylock` without an engine: what is refused before one is asked, and what is written.

use std::path::Path;

use envforge::model::lock::{IndexKind, Lock, LockedSource, LockedWheel, UserAdditions};

use crate::index::Index;
use crate::program::Program;
use crate::vendor::locked;
use crate::verify::{SPEC, lock};
use crate::wheels::{Wheel, WheelSpec, sha256};
use crate::{assert_message, program};

const NO_ENGINE: &str = "nothing/here.sock";

/// A project, and the fixtures of a tool in it.
fn project(tool: &str) -> Program {
    let program = program().with("DOCKER_HOST", format!("unix:///{NO_ENGINE}"));
    let text = format!(
        "schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n[packages]\npython = [\"einops\"]\n"
    );
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool_locks").join(tool);
    for entry in std::fs::read_dir(folder).expect("fixtures") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        std::fs::copy(&path, program.path(&name)).expect("copied");
    }
    program
}

fn one() -> Wheel {
    WheelSpec::new("demo-one", "1.0").file("demo_one.py", "ONE = 1\n").build()
}

/// A project with a lock of these wheels, on a machine whose index has them.
fn locked_project(wheels: Vec<LockedWheel>, index: &Index) -> Program {
    let address = format!("{}/simple", index.url_with("someone", "planted-token"));
    let program = project("pylock").with("ENVFORGE_INDEX", address);
    std::fs::remove_file(program.path("pylock.toml")).expect("ours");
    let added = UserAdditions {
        project: Some("p".to_owned()),
        python: vec!["einops".to_owned()],
        ..UserAdditions::default()
    };
    std::fs::write(program.path("envforge.lock"), Lock { added, wheels, ..lock() }.to_toml()).expect("ours");
    program
}

#[test]
fn locks_that_can_be_used_lead_to_the_engine() {
    for (tool, args) in [
        ("uv", &["--from", "uv.lock", "--extra", "old", "--group", "docs"][..]),
        ("poetry", &["--from", "./poetry.lock", "--extra", "plots"]),
        ("pylock", &["--from", "pylock.toml", "--diff"]),
        ("pixi", &["--from", "pixi.lock", "--group", "old"]),
    ] {
        let program = project(tool);
        let run = program.run(&[&["lock"], args].concat());
        assert_message(&run, 3, &[NO_ENGINE]);
        assert!(!program.path("envforge.lock").exists(), "{tool}");
    }
}

#[test]
fn locks_that_cannot_be_used_are_refused_before_the_engine_is_asked() {
    let program = project("uv");
    std::fs::write(program.path("pylock.toml"), "lock-version = \"3.0\"\n").expect("ours");
    std::fs::write(program.path("poetry.lock"), "<<<<<<< HEAD\n").expect("ours");
    std::fs::create_dir(program.path("pixi.lock")).expect("ours");
    for (args, says) in [
        (&["--from", "gone/uv.lock"][..], &["cannot open `gone/uv.lock`: no such file"][..]),
        (&["--from", "pixi.lock"], &["cannot open `pixi.lock`"]),
        (&["--from", "envforge.toml"], &["unsupported lock file `envforge.toml`", "hint: give a uv.lock"]),
        (&["--from", "pylock.toml"], &["format 3.0 of pylock.toml: this envforge reads 1"]),
        (
            &["--from", "poetry.lock"],
            &["cannot read `poetry.lock`: not a lock of Poetry", "hint: write it again"],
        ),
        (
            &["--from", "uv.lock", "--extra", "train", "--group", "lint"],
            &[
                "extra `train` not found: it has `new`, `old`, `plots`",
                "group `lint` not found: it has `dev`, `docs`",
            ],
        ),
        (
            &["--from", "uv.lock", "--extra", "new", "--extra", "old"],
            &[
                "several versions for Python 3.11 on x86_64",
                "- numpy: 2.1.3, 2.2.6",
                "`--extra` or `--group`",
            ],
        ),
        (&["--extra", "old"], &["--from <FILE>"]),
        (&["--from", "uv.lock", "--locked"], &["cannot be used with"]),
        (&["--from", "uv.lock", "--check"], &["cannot be used with"]),
        (&["--refresh", "--check"], &["cannot be used with"]),
    ] {
        let run = program.run(&[&["lock"], args].concat());
        assert_message(&run, 2, says);
        assert!(!run.stderr.contains(NO_ENGINE), "{args:?}: {}", run.stderr);
    }
    let text = std::fs::read_to_string(program.path("uv.lock")).expect("a lock");
    let text = text.replacen("requires-python = \">=3.10\"", "requires-python = \">=3.12\"", 1);
    std::fs::write(program.path("uv.lock"), text).expect("ours");
    let says = [
        "it requires Python `>=3.12`, and the image has Python 3.11",
        "hint: choose another Python with `--python`",
    ];
    assert_message(&program.run(&["lock", "--from", "uv.lock"]), 2, &says);
    assert_message(&program.run(&["lock", "--from", "uv.lock", "--python", "3.12"]), 3, &[NO_ENGINE]);
}

#[test]
fn pylock_has_each_file_with_hash_and_address_and_no_login() {
    let index = Index::local(vec![one(), WheelSpec::new("einops", "0.8.0").build()]);
    let program = locked_project(vec![locked(&one())], &index);
    let run = program.run(&["export", "pylock", "pylock.toml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("/pylock.toml\n"), "{}", run.stdout);
    let text = std::fs::read_to_string(program.path("pylock.toml")).expect("written");
    assert!(!text.contains("planted-token") && !text.contains("someone"), "{text}");
    let pylock: toml::Table = text.parse().expect("TOML");
    let package = &pylock["packages"][0];
    assert_eq!((package["name"].as_str(), package["version"].as_str()), (Some("demo-one"), Some("1.0")));
    let wheel = &package["wheels"][0];
    assert_eq!(wheel["hashes"]["sha256"].as_str(), Some(sha256(&one().bytes).as_str()));
    let address = wheel["url"].as_str().expect("an address");
    assert!(
        address.starts_with(&index.url()) && address.ends_with("/demo_one-1.0-py3-none-any.whl"),
        "{address}"
    );
    // It is read back, and replaced only if that is asked for.
    assert_message(&program.run(&["lock", "--from", "pylock.toml"]), 3, &[NO_ENGINE]);
    assert_message(&program.run(&["export", "pylock", "pylock.toml"]), 2, &["pylock.toml"]);
    assert_eq!(program.run(&["export", "pylock", "pylock.toml", "--force"]).code, 0);
    assert_message(
        &program.run(&["export", "pylock", "locked.toml"]),
        2,
        &["invalid file name `locked.toml`", "`pylock.NAME.toml`"],
    );
}

#[test]
fn pylock_is_not_written_without_the_address_of_each_file() {
    let two = WheelSpec::new("demo-two", "2.0").build();
    let index = Index::local(vec![one(), two.clone()]);
    let program = locked_project(vec![locked(&one()), locked(&two)], &index);
    index.delete(&one().file);
    index.publish(vec![Wheel { bytes: [&two.bytes, b"x".as_slice()].concat(), ..two.clone() }]);
    let says = [
        "not in the package index:\n  - demo_one-1.0-py3-none-any.whl\n  - demo_two-2.0-py3-none-any.whl (another file of that name)",
    ];
    assert_message(&program.run(&["export", "pylock", "pylock.toml"]), 3, &says);
    assert!(!program.path("pylock.toml").exists());
    let local = LockedWheel { index: IndexKind::Local, ..locked(&one()) };
    let program = locked_project(vec![local.clone()], &index);
    let says = ["cannot export wheels of no index: `demo_one-1.0-py3-none-any.whl`"];
    assert_message(&program.run(&["export", "pylock", "pylock.toml"]), 1, &says);
    std::fs::remove_file(program.path("envforge.lock")).expect("ours");
    assert_message(&program.run(&["export", "pylock", "pylock.toml"]), 2, &["lock file not found"]);
}

#[test]
fn package_that_was_built_here_is_listed_with_its_source() {
    let archive = Wheel { file: "demo-one-1.0.tar.gz".to_owned(), ..one() };
    let index = Index::local(vec![archive.clone()]);
    let local = LockedWheel { index: IndexKind::Local, ..locked(&one()) };
    let program = locked_project(vec![local], &index);
    let text = std::fs::read_to_string(program.path("envforge.lock")).expect("a lock");
    let lock = Lock::from_bytes("envforge.lock", text.as_bytes()).expect("a lock");
    let source = LockedSource {
        name: "demo-one".to_owned(),
        version: "1.0".to_owned(),
        file: archive.file.clone(),
        sha256: sha256(&archive.bytes),
        size: None,
        build: Vec::new(),
        recipe: None,
    };
    std::fs::write(program.path("envforge.lock"), Lock { sources: vec![source], ..lock }.to_toml())
        .expect("ours");
    let run = program.run(&["export", "pylock", "pylock.toml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(program.path("pylock.toml")).expect("written");
    let pylock: toml::Table = text.parse().expect("TOML");
    let package = &pylock["packages"][0];
    assert!(package.get("wheels").is_none(), "{text}");
    assert_eq!(package["sdist"]["name"].as_str(), Some("demo-one-1.0.tar.gz"));
}
