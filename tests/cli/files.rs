//! Files that cannot be used: configuration, lock, folders.

use crate::{assert_message, program, transcript};

#[test]
fn malformed_configuration_is_reported_by_line_and_column() {
    let program = program();
    std::fs::write(program.path("config.toml"), "[mirrors]\ndebian = 'http://mirror'\nno equals sign\n")
        .expect("ours");
    let run = program.run(&["plan", "pytorch-cuda:2.8-cu128", "--config", "config.toml"]);
    assert_message(&run, 2, &["config.toml", "line 3, column 4"]);
    insta::assert_snapshot!(transcript(&program, &run));
}

#[test]
fn unknown_configuration_key_is_reported() {
    let program = program().with("ENVFORGE_CONFIG", "config.toml");
    std::fs::write(program.path("config.toml"), "[mirrors]\ndebain = 'http://mirror'\n").expect("ours");
    let run = program.run(&["list"]);
    assert_message(&run, 2, &["config.toml", "line 2, column 1", "debain"]);
    insta::assert_snapshot!(transcript(&program, &run));
}

#[test]
fn missing_configuration_file_is_reported() {
    let program = program();
    let run = program.run(&["plan", "pytorch-cuda:2.8-cu128", "--config", "absent.toml"]);
    assert_message(&run, 2, &["absent.toml"]);
    insta::assert_snapshot!(transcript(&program, &run));
}

#[test]
fn invalid_setting_lists_the_allowed_values() {
    let program = program().with("ENVFORGE_NETWORK", "carrier-pigeon");
    let run = program.run(&["plan", "pytorch-cuda:2.8-cu128"]);
    assert_message(&run, 2, &["carrier-pigeon", "bridge", "host"]);
    insta::assert_snapshot!(transcript(&program, &run));
}

#[test]
#[ignore = "needs docker"]
fn malformed_lock_is_reported_by_line_and_kept() {
    let program = program();
    let text = "schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n[stack\n";
    std::fs::write(program.path("envforge.lock"), text).expect("ours");
    for command in ["lock", "build"] {
        let run = program.run(&[command, "pytorch-cuda:2.8-cu128", "--lockfile", "envforge.lock"]);
        assert_message(&run, 2, &["envforge.lock", "line 3, column 7"]);
    }
    assert_eq!(std::fs::read_to_string(program.path("envforge.lock")).expect("still there"), text);
}

#[test]
#[ignore = "needs docker"]
fn lock_of_a_newer_schema_is_reported() {
    let program = program();
    std::fs::write(program.path("envforge.lock"), "schema = 999\n").expect("ours");
    let run = program.run(&["build", "pytorch-cuda:2.8-cu128", "--lockfile", "envforge.lock"]);
    assert_message(&run, 2, &["envforge.lock", "999"]);
}

/// What stands in each byte code file of a folder at the place that says how it is held to its source.
fn kinds(folder: &std::path::Path) -> Vec<u8> {
    let entries = std::fs::read_dir(folder.join("__pycache__")).expect("byte code");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a file of ours")[4]).collect()
}

fn python(folder: &std::path::Path, args: &[&str]) {
    let run = std::process::Command::new("python3").args(args).current_dir(folder).output();
    let run = run.expect("python3 starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
}

/// Compiles below `folder` with the step of the Dockerfile builder.
fn compile(folder: &std::path::Path, args: &[&str]) {
    let step = concat!(
        include_str!("../../templates/steps/one_module.py"),
        include_str!("../../templates/steps/compile.py")
    );
    let args: Vec<_> = ["-c", step].iter().chain(args).copied().collect();
    python(folder, &args);
}

/// One small package more must not cost a look at every file of the image.
#[test]
#[ignore = "needs python3"]
fn byte_code_is_compiled_for_newly_installed_modules() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = folder.path().join("site").join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    };
    let install = |name: &str, module: &str| {
        write(&format!("{name}/{module}.py"), "x = 1\n");
        write(&format!("{name}/data.txt"), "");
        let record =
            format!("\"{name}/{module}.py\",,\n{name}/data.txt,,\n../bin/{name}.py,,\n{name}/gone.py,,\n");
        write(&format!("{name}-1.dist-info/RECORD"), &record);
    };
    install("old", "a");
    write("../bin/new.py", "x = 1\n");
    // Longer than the tick of a file system's clock.
    std::thread::sleep(std::time::Duration::from_millis(50));
    std::fs::write(folder.path().join("since"), "").expect("ours");
    install("new", "comma, b");
    compile(folder.path(), &["--since", "since", "site"]);
    assert_eq!(kinds(&folder.path().join("site/new")), [1]);
    assert!(!folder.path().join("site/old/__pycache__").exists());
    assert!(!folder.path().join("bin/__pycache__").exists(), "a script is no module");
}

#[test]
#[ignore = "needs python3"]
fn timestamp_byte_code_of_a_wheel_is_recompiled() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("brought.py"), "x = 1\n").expect("ours");
    let stale =
        "import py_compile as c; c.compile('brought.py', invalidation_mode=c.PycInvalidationMode.TIMESTAMP)";
    python(folder.path(), &["-c", stale]);
    std::fs::write(folder.path().join("without.py"), "x = 2\n").expect("ours");
    assert_eq!(kinds(folder.path()), [0]);
    compile(folder.path(), &["."]);
    // 1: by the source's hash, and never checked.
    assert_eq!(kinds(folder.path()), [1, 1]);
}
