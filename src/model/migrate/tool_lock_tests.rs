//! Versions of real lock files, compared with what their tools install; and what is refused.

use super::*;
use crate::failure::{Exit, Failure as _};
use crate::model::versions::Machine;

macro_rules! fixture {
    ($name:literal) => {
        include_str!(concat!("../../../tests/fixtures/tool_locks/", $name))
    };
}

/// Python 3.11 on an Intel processor, with these extras and groups.
struct Asked {
    extras: Vec<String>,
    groups: Vec<String>,
    python: &'static str,
    machine: Machine,
    pyproject: Option<toml::Table>,
}

fn asked(extras: &[&str], groups: &[&str]) -> Asked {
    let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (extras, groups) = (list(extras), list(groups));
    Asked { extras, groups, python: "3.11", machine: Machine::X86_64, pyproject: None }
}

impl Asked {
    fn with_pyproject(self, text: &str) -> Self {
        Self { pyproject: Some(text.parse().expect("TOML")), ..self }
    }

    fn of(&self, file: &str, text: &str) -> Result<ToolVersions, ToolLockError> {
        let selection = LockSelection {
            python: self.python.parse().expect("a version"),
            machine: self.machine,
            extras: &self.extras,
            groups: &self.groups,
            pyproject: self.pyproject.as_ref(),
        };
        tool_versions(file, text, &selection, crate::model::compat::embedded())
    }

    #[track_caller]
    fn refused(&self, file: &str, text: &str) -> String {
        let error = self.of(file, text).expect_err("refused");
        assert_eq!(error.exit(), Exit::Usage);
        error.to_string()
    }
}

fn pins(found: &ToolVersions) -> Vec<String> {
    found.versions.iter().map(|(name, version)| format!("{name}=={version}")).collect()
}

fn lines(list: &str) -> Vec<&str> {
    list.lines().filter(|line| !line.is_empty()).collect()
}

#[test]
fn uv_lock_selects_what_uv_installs() {
    let text = fixture!("uv/uv.lock");
    let found = asked(&[], &[]).of("uv.lock", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("uv/default.txt")));
    let found = asked(&["old", "Plots"], &["docs"]).of("sub/uv.lock", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("uv/old-plots-docs.txt")));
    // The project may have other default groups, or none.
    let none = asked(&[], &[]).with_pyproject("[tool.uv]\ndefault-groups = []\n").of("uv.lock", text);
    assert!(!none.expect("read").versions.contains_key("pytest"));
    let all = asked(&[], &[]).with_pyproject("[tool.uv]\ndefault-groups = 'all'\n").of("uv.lock", text);
    assert_eq!(all.expect("read").versions["click"], "8.1.7");
}

#[test]
fn forks_are_decided_by_the_markers_of_the_target() {
    let text = fixture!("uv/uv.lock");
    assert_eq!(asked(&[], &[]).of("uv.lock", text).expect("read").versions["networkx"], "3.5");
    let old = Asked { python: "3.10", ..asked(&[], &[]) }.of("uv.lock", text).expect("read");
    assert_eq!(old.versions["networkx"], "3.4.2");
    let arm = Asked { machine: Machine::Aarch64, ..asked(&[], &[]) }.of("uv.lock", text).expect("read");
    assert!(!arm.versions.contains_key("triton") && !arm.versions.contains_key("pywin32"), "{arm:?}");
}

#[test]
fn poetry_lock_selects_what_poetry_installs() {
    let (text, pyproject) = (fixture!("poetry/poetry.lock"), fixture!("poetry/pyproject.toml"));
    let found = asked(&[], &[]).with_pyproject(pyproject).of("poetry.lock", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("poetry/default.txt")));
    let found = asked(&["plots"], &["docs"]).with_pyproject(pyproject).of("poetry.lock", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("poetry/plots-docs.txt")));
    // Without the project no group is known to be optional.
    let found = asked(&[], &[]).of("poetry.lock", text).expect("read");
    assert!(found.versions.contains_key("click") && !found.versions.contains_key("tqdm"));
}

#[test]
fn pylock_selects_what_pip_installs() {
    let text = fixture!("pylock/pylock.toml");
    let found = asked(&[], &[]).of("pylock.toml", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("pylock/default.txt")));
    let found = asked(&["old", "plots"], &["docs"]).of("pylock.gpu.toml", text).expect("read");
    assert_eq!(pins(&found), lines(fixture!("pylock/old-plots-docs.txt")));
}

#[test]
fn pixi_lock_selects_an_environment() {
    let text = fixture!("pixi/pixi.lock");
    let found = asked(&[], &[]).of("pixi.lock", text).expect("read");
    assert_eq!(pins(&found), ["einops==0.8.0", "numpy==2.2.6"]);
    assert_eq!(found.left["vision"], "it comes from a repository or a path");
    let found = asked(&[], &["old"]).of("pixi.lock", text).expect("read");
    assert_eq!(pins(&found), ["numpy==2.1.3"]);
    let error = asked(&[], &["new"]).refused("pixi.lock", text);
    assert!(error.contains("environment `new` not found: it has `default`, `old`"), "{error}");
    let error = asked(&[], &["old", "default"]).refused("pixi.lock", text);
    assert!(error.contains("second environment `default` not found"), "{error}");
    let arm = Asked { machine: Machine::Aarch64, ..asked(&[], &[]) };
    let error = arm.refused("pixi.lock", text);
    assert!(
        error.contains("it is for `linux-64`, `osx-arm64`, and the image is for Linux on aarch64"),
        "{error}"
    );
}

#[test]
fn packages_without_a_release_are_left_out_by_name() {
    let uv = r#"
version = 1
[[package]]
name = "vision"
version = "0.1.0"
source = { editable = "." }
dependencies = [{ name = "clip" }, { name = "own" }, { name = "member" }, { name = "kept" }, { name = "sdist" }]
[[package]]
name = "clip"
version = "1.0"
source = { git = "https://git.example.com/clip?rev=1#2" }
[[package]]
name = "own"
version = "1.0"
source = { path = "../own-1.0.tar.gz" }
[[package]]
name = "member"
version = "1.0"
source = { editable = "packages/member" }
dependencies = [{ name = "deep" }]
[[package]]
name = "deep"
version = "2.0"
source = { registry = "https://index.example.com/simple" }
[[package]]
name = "kept"
version = "1.0+cu128"
source = { url = "https://files.example.com/kept-1.0%2Bcu128-py3-none-any.whl" }
[[package]]
name = "sdist"
version = "1.0"
source = { url = "https://files.example.com/sdist-1.0.tar.gz" }
[manifest]
members = ["member", "vision"]
"#;
    let found = asked(&[], &[]).of("uv.lock", uv).expect("read");
    assert_eq!(pins(&found), ["deep==2.0", "kept==1.0+cu128"]);
    let path = "it comes from a path or an address";
    let left: Vec<_> = found.left.into_iter().collect();
    let left: Vec<_> = left.iter().map(|(name, why)| (name.as_str(), *why)).collect();
    assert_eq!(left, [("clip", "it comes from a repository"), ("own", path), ("sdist", path)]);
    let poetry = "[[package]]\nname = \"clip\"\nversion = \"1\"\n[package.source]\ntype = \"git\"\nurl = \"https://git.example.com/clip\"\n[metadata]\nlock-version = \"2.0\"\n";
    assert_eq!(asked(&[], &[]).of("poetry.lock", poetry).expect("read").left.len(), 1);
    let pylock = "lock-version = \"1.0\"\n[[packages]]\nname = \"clip\"\nversion = \"1\"\nvcs = { type = \"git\", url = \"https://git.example.com/clip\", commit-id = \"1\" }\n[[packages]]\nname = \"own\"\ndirectory = { path = \"/etc\" }\n";
    let found = asked(&[], &[]).of("pylock.toml", pylock).expect("read");
    assert_eq!((found.versions.len(), found.left.len()), (0, 2));
}

#[test]
fn workspace_without_a_root_selects_every_member() {
    let text = r#"
version = 1
[manifest]
members = ["one", "two"]
[manifest.dependency-groups]
dev = [{ name = "pytest", specifier = ">=8" }]
[[package]]
name = "one"
version = "0.1.0"
source = { editable = "packages/one" }
dependencies = [{ name = "two" }, { name = "rich" }]
[[package]]
name = "two"
version = "0.1.0"
source = { virtual = "packages/two" }
dependencies = [{ name = "tqdm" }]
[[package]]
name = "pytest"
version = "8.0"
source = { registry = "https://index.example.com/simple" }
[[package]]
name = "rich"
version = "13.0"
source = { registry = "https://index.example.com/simple" }
[[package]]
name = "tqdm"
version = "4.0"
source = { registry = "https://index.example.com/simple" }
"#;
    let found = asked(&[], &[]).of("uv.lock", text).expect("read");
    assert_eq!(pins(&found), ["pytest==8.0", "rich==13.0", "tqdm==4.0"]);
}

#[test]
fn everything_that_does_not_match_is_reported_at_once() {
    let text = fixture!("uv/uv.lock").replacen(
        "requires-python = \">=3.10\"",
        "requires-python = \">=3.12\"\nsupported-markers = [\"sys_platform == 'win32'\"]",
        1,
    );
    let error = asked(&["train"], &["lint"]).refused("uv.lock", &text);
    assert_eq!(
        error,
        "cannot use `uv.lock`:\n  - it requires Python `>=3.12`, and the image has Python 3.11\n  \
         - it is for `sys_platform == 'win32'`, and the image is for Linux on x86_64\n  \
         - extra `train` not found: it has `new`, `old`, `plots`\n  - group `lint` not found: it has `dev`, `docs`"
    );
    let pylock =
        fixture!("pylock/pylock.toml").replacen("sys_platform == 'linux'", "sys_platform == 'darwin'", 1);
    let error = asked(&["x"], &[]).refused("pylock.toml", &pylock);
    assert!(error.contains("it is for `sys_platform == 'darwin'`, `sys_platform == 'win32'`"), "{error}");
    assert!(error.contains("extra `x` not found: it has `old`, `plots`"), "{error}");
    let poetry = fixture!("poetry/poetry.lock");
    let old = Asked { python: "3.10", ..asked(&["x"], &["y"]) };
    let error = old.refused("poetry.lock", poetry);
    for part in ["Python `>=3.11,<3.14`", "extra `x`", "group `y` not found: it has `dev`, `docs`, `main`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn two_versions_that_remain_are_refused_by_name() {
    // Both extras exclude each other: uv refuses them, too.
    let error = asked(&["old", "new"], &[]).refused("uv.lock", fixture!("uv/uv.lock"));
    assert_eq!(error, "`uv.lock` has several versions for Python 3.11 on x86_64:\n  - numpy: 2.1.3, 2.2.6");
    let pylock = "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n[[packages]]\nname = \"A\"\nversion = \"2\"\n[[packages]]\nname = \"b\"\nversion = \"1.0\"\n[[packages]]\nname = \"b\"\nversion = \"1.0\"\n";
    let error = asked(&[], &[]).refused("pylock.toml", pylock);
    assert!(error.ends_with("\n  - a: 1, 2"), "{error}");
}

#[test]
fn other_files_and_formats_are_refused() {
    for (file, text, words) in [
        ("uv.lock", "version = 2\nnew = 1\n", "format 2 of uv's lock: this envforge reads format 1"),
        ("uv.lock", "<<<<<<< HEAD\n", "not a lock of uv"),
        ("uv.lock", "version = 1\n[[package]]\nname = 1\n", "not a lock of uv"),
        ("uv.lock", "version = 1\n[[package]]\nname = \"a\"\nversion = \"1\"\n", "it names no project"),
        ("pylock.toml", "lock-version = \"2.0\"\n", "format 2.0 of pylock.toml: this envforge reads 1"),
        ("pylock.toml", "lock-version = \"1.0\"\n", "missing field `packages`"),
        (
            "pylock.toml",
            "lock-version = \"1.0\"\n[[packages]]\nname = \"a b\"\nversion = \"1\"\n",
            "invalid Python package name `a b`",
        ),
        (
            "pylock.toml",
            "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\\n--index-url x\"\n",
            "`a` has the version",
        ),
        ("poetry.lock", "[metadata]\nlock-version = \"3.0\"\n", "format `3.0` of Poetry's lock"),
        ("poetry.lock", "= 1", "not a lock of Poetry"),
        ("pixi.lock", "version: 99\n", "format 99 of pixi's lock: this envforge reads 4 to 6"),
        ("pixi.lock", "{", "not a lock of pixi"),
        ("Pipfile.lock", "{}", "unsupported lock file `Pipfile.lock`"),
        ("pylock.a.b.toml", "", "unsupported lock file"),
    ] {
        let error = asked(&[], &[]).refused(file, text);
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn hashes_of_files_are_read_from_every_tool() {
    let (one, two) = ("1".repeat(64), "2".repeat(64));
    for (file, text) in [
        (
            "uv.lock",
            format!(
                "version = 1\n[[package]]\nname = \"p\"\nsource = {{ virtual = \".\" }}\ndependencies = [{{ name = \"a\" }}]\n\
                 [[package]]\nname = \"a\"\nversion = \"1\"\nsdist = {{ url = \"https://h.test/a.tar.gz\", hash = \"sha256:{one}\" }}\n\
                 wheels = [{{ url = \"https://h.test/a.whl\", hash = \"sha256:{two}\" }}, {{ url = \"x\", hash = \"md5:3\" }}]\n"
            ),
        ),
        (
            "poetry.lock",
            format!(
                "[[package]]\nname = \"a\"\nversion = \"1\"\nfiles = [{{ file = \"a.whl\", hash = \"sha256:{one}\" }}, \
                 {{ file = \"a.tar.gz\", hash = \"sha256:{two}\" }}]\n[metadata]\nlock-version = \"2.0\"\n"
            ),
        ),
        (
            "pylock.toml",
            format!(
                "lock-version = \"1.0\"\n[[packages]]\nname = \"a\"\nversion = \"1\"\n\
                 wheels = [{{ url = \"https://h.test/a.whl\", hashes = {{ sha256 = \"{one}\" }} }}]\n\
                 sdist = {{ url = \"https://h.test/a.tar.gz\", hashes = {{ sha256 = \"{two}\" }} }}\n"
            ),
        ),
    ] {
        let found = asked(&[], &[]).of(file, &text).unwrap_or_else(|error| panic!("{file}: {error}"));
        assert_eq!(found.hashes["a"].iter().collect::<Vec<_>>(), [&one, &two], "{file}");
    }
    let pixi = format!(
        "version: 6\nenvironments:\n  default:\n    packages:\n      linux-64:\n      - pypi: https://h.test/a-1-py3-none-any.whl\n\
         packages:\n- pypi: https://h.test/a-1-py3-none-any.whl\n  name: a\n  version: '1'\n  sha256: {one}\n"
    );
    let found = asked(&[], &[]).of("pixi.lock", &pixi).expect("it is one");
    assert_eq!(found.hashes["a"].iter().collect::<Vec<_>>(), [&one]);
}

#[test]
fn lock_with_endless_entries_of_one_package_is_refused() {
    let root = "[[package]]\nname = \"p\"\nsource = { virtual = \".\" }\n";
    let entry = |number: usize| format!("[[package]]\nname = \"a\"\nversion = \"{number}\"\n");
    let text: String = std::iter::once(format!("version = 1\n{root}")).chain((0..65).map(entry)).collect();
    let error = asked(&[], &[]).refused("uv.lock", &text);
    assert!(error.contains("it has `a` 65 times: at most 64 are read"), "{error}");
}

#[test]
fn names_of_pylock_files_are_those_of_the_standard() {
    for name in ["pylock.toml", "pylock.gpu.toml"] {
        assert!(is_pylock_name(name), "{name}");
    }
    for name in [
        "pylock",
        "pylock.",
        "pylock..toml",
        "pylock.a.b.toml",
        "mypylock.toml",
        "pylock.toml.bak",
        "pylocktoml",
    ] {
        assert!(!is_pylock_name(name), "{name}");
    }
}
