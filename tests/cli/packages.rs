//! The wheel, the Debian package and the tarball of `.ci/package/`, made of this program, installed from local files and run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program;
use crate::program::Program;

/// Runs a program that must succeed, with nothing of the caller's but the PATH and cargo's own folders.
fn run(program: &Program, command: &mut Command) -> String {
    command
        .current_dir(program.path(""))
        .env("HOME", program.path("home"))
        .env("TMPDIR", program.path("tmp"));
    let output = command.output().expect("it starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Packs a program; gives the files by their ending.
fn packed(program: &Program, binary: &Path, folder: &str) -> BTreeMap<String, PathBuf> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/package/pack.py");
    let out = program.path(folder);
    let mut command = Command::new("python3");
    command.arg(script).arg(binary).arg(&out).env("SOURCE_DATE_EPOCH", "1700000000").env("PACK_LEVEL", "1");
    // cargo keeps its crates below the caller's home.
    let home = std::env::var("HOME").unwrap_or_default();
    command.env("CARGO_HOME", std::env::var("CARGO_HOME").unwrap_or_else(|_| format!("{home}/.cargo")));
    command.env("RUSTUP_HOME", std::env::var("RUSTUP_HOME").unwrap_or_else(|_| format!("{home}/.rustup")));
    run(program, &mut command);
    let files = std::fs::read_dir(out).expect("a folder").map(|entry| entry.expect("an entry").path());
    let ending = |path: &Path| path.to_string_lossy().rsplit('.').next().expect("a part").to_owned();
    files.map(|path| (ending(&path), path)).collect()
}

/// Runs the installed program as a newcomer does.
fn works(program: &Program, binary: &Path) {
    let version = run(program, Command::new(binary).arg("--version"));
    assert_eq!(version, format!("envforge {}\n", env!("CARGO_PKG_VERSION")));
    let plan =
        run(program, Command::new(binary).args(["plan", "pytorch-cuda:2.8-cu128"]).env("ENVFORGE_GPU", ""));
    assert!(plan.contains("2.8.0"), "{plan}");
}

#[test]
#[ignore = "needs the crate registry: packs this program three times"]
fn each_package_is_reproducible_installs_and_runs() {
    let program = program();
    let binary = program.path("envforge");
    run(&program, Command::new("strip").arg(env!("CARGO_BIN_EXE_envforge")).arg("-o").arg(&binary));
    let files = packed(&program, &binary, "one");
    let again = packed(&program, &binary, "two");
    assert_eq!(files.keys().map(String::as_str).collect::<Vec<_>>(), ["deb", "gz", "whl"]);
    for (kind, file) in &files {
        let bytes = |path: &Path| std::fs::read(path).expect("a package");
        assert!(bytes(file) == bytes(&again[kind]), "{kind}: other bytes");
        assert_eq!(file.file_name(), again[kind].file_name());
    }

    // The wheel, with no index: pip checks every hash of its record.
    let venv = program.path("venv");
    run(&program, Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let mut pip = Command::new(venv.join("bin/pip"));
    pip.args(["install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"])
        .arg(&files["whl"]);
    run(&program, &mut pip);
    works(&program, &venv.join("bin/envforge"));
    let listed = run(&program, Command::new(venv.join("bin/pip")).args(["show", "--files", "envforge"]));
    assert!(listed.contains("licenses/LICENSES.txt"), "{listed}");

    // The Debian package, unpacked into a root of its own.
    let root = program.path("root");
    run(&program, Command::new("dpkg-deb").arg("--extract").arg(&files["deb"]).arg(&root));
    works(&program, &root.join("usr/bin/envforge"));
    for path in [
        "usr/share/man/man1/envforge.1.gz",
        "usr/share/man/man1/envforge-build.1.gz",
        "usr/share/bash-completion/completions/envforge",
        "usr/share/zsh/vendor-completions/_envforge",
        "usr/share/fish/vendor_completions.d/envforge.fish",
        "usr/share/doc/envforge/copyright",
        "usr/share/doc/envforge/LICENSES.txt.gz",
    ] {
        assert!(root.join(path).is_file(), "{path}");
    }
    let control = run(&program, Command::new("dpkg-deb").arg("--field").arg(&files["deb"]));
    assert!(
        control.contains("Package: envforge\n") && control.contains("Depends: libc6 (>= 2."),
        "{control}"
    );
    let sums = program.path("sums");
    run(&program, Command::new("dpkg-deb").arg("--control").arg(&files["deb"]).arg(&sums));
    run(&program, Command::new("sh").arg("-c").arg("cd root && md5sum --check --quiet ../sums/md5sums"));

    // The tarball.
    run(&program, Command::new("tar").arg("-xzf").arg(&files["gz"]));
    let top = files["gz"].file_name().expect("a name").to_string_lossy().replace(".tar.gz", "");
    let top = program.path(top);
    works(&program, &top.join("bin/envforge"));
    let licences = std::fs::read_to_string(top.join("LICENSES.txt")).expect("the texts");
    for part in ["tokio ", "Apache License", "Permission is hereby granted, free of charge"] {
        assert!(licences.contains(part), "{part}");
    }
    assert!(!licences.contains("wiremock "), "crates of the tests are not part of it");
    for file in
        ["man/man1/envforge.1", "completions/envforge.bash", "completions/_envforge", "README.md", "LICENSE"]
    {
        assert!(top.join(file).is_file(), "{file}");
    }
}

/// A binary that is no program of Linux is refused, not packed.
#[test]
#[ignore = "needs python3"]
fn text_is_not_packed() {
    let program = program();
    std::fs::write(program.path("envforge"), "#!/bin/sh\n").expect("ours");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/.ci/package/pack.py");
    let output =
        Command::new("python3").arg(script).arg(program.path("envforge")).arg(program.path("out")).output();
    let output = output.expect("python3 starts");
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("is not a program of Linux"));
}
