//! Wheels as envforge installs them, compared with the uv that locks name: every path, mode and byte. It needs that uv, from
//! the package index, and no container.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;

use camino::Utf8Path;
use envforge::assemble::{AssembleError, Conflicts, Installation, LayerPlan, Listing, Wheel, write_plain};
use envforge::model::lock::{IndexKind, LockedWheel, WheelLayer};
use envforge::model::sha256::sha256_hex;
use envforge::model::versions::Machine;
use envforge::packages::catalogue;

use crate::made_wheel::{MadeEntry, MadeWheel};

/// The kind and mode of a path, and its content.
type Tree = BTreeMap<String, (String, Vec<u8>)>;

/// A directory with uv and an environment.
struct Scene {
    folder: tempfile::TempDir,
    uv: PathBuf,
    minor: u8,
}

fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the program starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tool = catalogue().uv(Machine::X86_64).expect("known");
        let requirement = format!("uv=={}", tool.version);
        succeed(
            Command::new("python3")
                .args(["-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", &requirement, "-d"])
                .arg(folder.path()),
        );
        let wheel = folder.path().join(&tool.file);
        assert_eq!(sha256_hex(&std::fs::read(&wheel).expect("uv's wheel")), tool.sha256);
        succeed(
            Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder.path().join("uv")),
        );
        let uv = folder.path().join(format!("uv/uv-{}.data/scripts/uv", tool.version));
        std::fs::set_permissions(&uv, std::fs::Permissions::from_mode(0o755)).expect("a program");
        let minor =
            succeed(Command::new("python3").args(["-c", "import sys; print(sys.version_info.minor)"]));
        Self { folder, uv, minor: minor.trim().parse().expect("a number") }
    }

    fn environment(&self) -> PathBuf {
        self.folder.path().join("env")
    }

    fn uv(&self, arguments: &[&str]) -> Output {
        // Modes depend on the mask of the caller.
        Command::new("sh")
            .args(["-c", "umask 022; exec \"$@\"", "sh"])
            .arg(&self.uv)
            .args(arguments)
            .env("UV_NO_INSTALLER_METADATA", "1")
            .env("UV_CACHE_DIR", self.folder.path().join("cache"))
            .env("VIRTUAL_ENV", self.environment())
            .output()
            .expect("uv starts")
    }

    /// A new environment, and the paths in it.
    fn new_environment(&self) -> BTreeSet<String> {
        let path = self.environment();
        let _ = std::fs::remove_dir_all(&path);
        let made = self.uv(&["venv", "-q", "--no-config", "--python", "python3", &path.to_string_lossy()]);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        self.tree().into_keys().collect()
    }

    fn install(&self, wheels: &[&MadeWheel]) -> Output {
        let mut arguments =
            vec!["pip", "install", "-q", "--no-config", "--no-deps", "--no-index", "--link-mode", "copy"];
        let files: Vec<String> = wheels
            .iter()
            .map(|made| {
                let path = self.folder.path().join(made.file_name());
                std::fs::write(&path, made.build()).expect("written");
                path.to_string_lossy().into_owned()
            })
            .collect();
        arguments.extend(files.iter().map(String::as_str));
        self.uv(&arguments)
    }

    /// Everything in the environment.
    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut open = vec![self.environment()];
        while let Some(folder) = open.pop() {
            for entry in std::fs::read_dir(&folder).expect("a folder") {
                let path = entry.expect("an entry").path();
                let found = std::fs::symlink_metadata(&path).expect("a path");
                let mode = found.permissions().mode() & 0o7777;
                let (kind, content) = match found.file_type() {
                    kind if kind.is_dir() => ("directory", Vec::new()),
                    kind if kind.is_file() => ("file", std::fs::read(&path).expect("a file")),
                    _ => ("link", Vec::new()),
                };
                if kind == "directory" {
                    open.push(path.clone());
                }
                let name = path.strip_prefix(self.environment()).expect("below the environment");
                tree.insert(name.to_str().expect("UTF-8").to_owned(), (format!("{kind} {mode:o}"), content));
            }
        }
        tree
    }

    /// What uv added to an environment, as if it were at `/opt/env`.
    fn added(&self, before: &BTreeSet<String>) -> Tree {
        let mut tree = self.tree();
        tree.retain(|path, _| !before.contains(path) && path != ".lock");
        let shebang = format!("#!{}/bin/python", self.environment().display());
        let mut rows = Vec::new();
        for (path, (_, content)) in tree.iter_mut().filter(|(path, _)| path.starts_with("bin/")) {
            if let Some(rest) = content.strip_prefix(shebang.as_bytes()) {
                let moved = [b"#!/opt/env/bin/python", rest].concat();
                rows.push((row(path, content), row(path, &moved)));
                *content = moved;
            }
        }
        for (_, (_, content)) in tree.iter_mut().filter(|(path, _)| path.ends_with("/RECORD")) {
            let mut text = String::from_utf8(content.clone()).expect("UTF-8");
            for (from, to) in &rows {
                text = text.replace(from.as_str(), to);
            }
            *content = text.into_bytes();
        }
        tree
    }

    /// What envforge gives.
    fn assembled(&self, wheels: &[&MadeWheel]) -> Result<Tree, AssembleError> {
        let installed: Vec<Installation> =
            wheels.iter().map(|made| self.installation(made)).collect::<Result<_, _>>()?;
        let installed: Vec<&Installation> = installed.iter().collect();
        let listings: Vec<Listing> =
            installed.iter().map(|wheel| Listing::of(wheel)).collect::<Result<_, _>>()?;
        let plan = LayerPlan::new(&installed, &Conflicts::find(&listings)?, BTreeMap::new())?;
        let mut tar = Vec::new();
        write_plain(&plan, &mut tar, &mut |_| ())?;
        let mut tree = Tree::new();
        for entry in tar::Archive::new(tar.as_slice()).entries().expect("a tar") {
            let mut entry = entry.expect("an entry");
            let kind = if entry.header().entry_type().is_dir() { "directory" } else { "file" };
            let mode = entry.header().mode().expect("a mode");
            let path = entry.path().expect("a path").into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("its content");
            if let Ok(path) = path.strip_prefix("opt/env") {
                tree.insert(path.to_str().expect("UTF-8").to_owned(), (format!("{kind} {mode:o}"), content));
            }
        }
        Ok(tree)
    }

    fn installation(&self, made: &MadeWheel) -> Result<Installation, AssembleError> {
        let bytes = made.build();
        let path = self.folder.path().join(made.file_name());
        std::fs::write(&path, &bytes).expect("written");
        let locked = LockedWheel {
            name: made.name.replace('_', "-"),
            version: "1.0".to_owned(),
            file: made.file_name(),
            sha256: sha256_hex(&bytes),
            size: None,
            index: IndexKind::Default,
            index_name: None,
            layer: WheelLayer::Stack,
        };
        let wheel = Wheel::open(Utf8Path::from_path(Path::new(&path)).expect("UTF-8"), &locked)?;
        Installation::of(Arc::new(wheel), self.minor)
    }
}

/// The row of a script in RECORD.
fn row(path: &str, content: &[u8]) -> String {
    let record = MadeEntry::new(&format!("../../../{path}"), content).row();
    record.trim_end().to_owned()
}

fn wheels_with_every_rule() -> Vec<MadeWheel> {
    let file = |name: &str| MadeEntry::new(name, b"x = 1\n");
    vec![
        MadeWheel::new("modes")
            .entry(file("modes/a.py").mode(0o100_666))
            .entry(file("modes/b.py").mode(0o100_601))
            .entry(file("modes/c.py").mode(0o120_777))
            .entry(file("modes/d.py").mode(0).stored())
            .entry(file("modes/é, \"f\".py"))
            .file("modes/__pycache__/a.pyc", b"code")
            .file("modes.pth", b"import os\n"),
        MadeWheel::new("folders")
            .file("empty/in/", b"")
            .data("data/share/x", b"1")
            .data("data/share/empty/", b"")
            .data("headers/s/h.h", b"2")
            .data("headers/none/", b"")
            .data("purelib/pl/x.py", b"3")
            .data("platlib/pl/y.py", b"4")
            .data("purelib/folders-1.0.dist-info/extra", b"5")
            .data("data/lib64/z", b"6")
            .data("data/lib/z2", b"7")
            .data("data/top", b"8")
            .file("other-1.0.data/scripts/x", b"9"),
        MadeWheel::new("scripts")
            .info("entry_points.txt", b"[console_scripts]\nep = a.b : c.d [x,y]\n# c\nEP=m:f\n[gui_scripts]\n  ep2= m :f\n")
            .data("scripts/one", b"#!python\nx\n")
            .data("scripts/two", b"#!python3.8 -u\nx\n")
            .data("scripts/three", b"#!pythonw -x\r\nx\r\n")
            .data("scripts/four", b"#!python -x\rx\ny\n")
            .data("scripts/five", b"#!python")
            .data("scripts/short", b"#!")
            .data("scripts/nothing", b"")
            .data("scripts/sh", b"#!/bin/sh\n")
            .data("scripts/ep", b"#!python\n")
            .data("scripts/ep-script.py", b"#!python\n")
            .data("scripts/ep2.exe", b"MZ"),
        MadeWheel::new("pip_like").info(
            "entry_points.txt",
            b"[console_scripts]\npip=m:f\npip3=m:g\npip3.9=m:h\npip3.256=m:i\nzs-3.9=m:j\n",
        ),
        MadeWheel::new("healed")
            .file("healed/a.py", b"a")
            .file("healed/b.py", b"b")
            .info("RECORD.jws", b"signature")
            .record("/healed/a.py,,1\r\ngone.py,sha256=x,4\r\nhealed/,,\r\n"),
        MadeWheel::new("signed").info("RECORD.jws", b"1").info("RECORD.p7s", b"2"),
        MadeWheel::new("rows").file("rows/a.py", b"a").file("rows/b.py", b"b").record(
            "./rows/b.py,,\n\n\"rows/a.py\",sha512=x,01\nrows/a.py,,9\nrows-1.0.dist-info/RECORD,sha256=abc,5\n",
        ),
        MadeWheel::new("shared1").file("shared/__init__.py", b""),
        MadeWheel::new("shared2").file("shared/__init__.py", b""),
    ]
}

#[test]
#[ignore = "needs the package index"]
fn made_wheels_are_installed_as_uv_installs_them() {
    let scene = Scene::new();
    let wheels = wheels_with_every_rule();
    let wheels: Vec<&MadeWheel> = wheels.iter().collect();
    let before = scene.new_environment();
    let run = scene.install(&wheels);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let (expected, mut found) = (scene.added(&before), scene.assembled(&wheels).expect("assembled"));
    // Parents of the environment and its own directories are entries of every layer.
    found.retain(|path, _| !path.is_empty() && !before.contains(path));
    assert!(expected.len() > 80, "uv installed {} paths only", expected.len());
    for path in expected.keys().chain(found.keys()) {
        let text = |tree: &Tree| {
            tree.get(path).map(|(kind, bytes)| (kind.clone(), String::from_utf8_lossy(bytes).into_owned()))
        };
        assert_eq!(text(&found), text(&expected), "{path}: left is envforge, right uv");
    }
}

#[test]
#[ignore = "needs the package index"]
fn wheels_that_uv_refuses_are_refused() {
    let scene = Scene::new();
    let demo = || MadeWheel::new("demo").file("demo/a.py", b"a");
    let points =
        |text: &str| demo().info("entry_points.txt", format!("[console_scripts]\n{text}\n").as_bytes());
    let mut refused = vec![
        demo().data("other/x", b""),
        demo().data("x", b""),
        demo().data("scripts/d/x", b""),
        demo().data("scripts/python", b""),
        demo().data("data/bin/python3", b""),
        demo().record("demo/a.py\n"),
        demo().record("demo/a.py,,x\n"),
        demo().without("demo-1.0.dist-info/METADATA"),
        demo().without("demo-1.0.dist-info/WHEEL"),
        demo().without("demo-1.0.dist-info/WHEEL").info("WHEEL", b"Wheel-Version: 2.0\n"),
        demo().file("demo/a.py/b", b""),
        demo().entry(MadeEntry { flags: 0, ..MadeEntry::new("é", b"") }),
        demo().entry(MadeEntry { flags: 1, ..MadeEntry::new("x", b"x") }),
        demo().entry(MadeEntry { crc32: 1, ..MadeEntry::new("x", b"x") }),
        demo().entry(MadeEntry::new("x", b"").named(b"a\x01b")),
        demo().info("entry_points.txt", b"x = m:f\n"),
    ];
    let lines = [
        "x: m:f",
        "x",
        "=m:f",
        "[a",
        "x=m:f\nx=m:g",
        "x=m",
        "x=m:f # c",
        "x=m:f=g",
        "x=m:f[]",
        "x=m:f[a,,b]",
    ];
    refused.extend(lines.map(points));
    refused.extend(
        ["python=m:f", "Python3=m:f", "python3.11t=m:f", "pypy3=m:f", "graalpy=m:f", "../x=m:f"].map(points),
    );
    scene.new_environment();
    for made in refused {
        let run = scene.install(&[&made]);
        assert!(!run.status.success(), "uv installs {:?}", made.entries.last());
        let error = scene.assembled(&[&made]).expect_err("refused");
        assert!(matches!(error, AssembleError::Refused { .. }), "{error}");
    }
    let good = scene.install(&[&demo()]);
    assert!(good.status.success(), "{}", String::from_utf8_lossy(&good.stderr));
    scene.assembled(&[&demo()]).expect("assembled");
}
