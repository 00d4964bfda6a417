//! The files that lead a Python to a project's code, in a real Python.

use std::path::Path;
use std::process::Command;

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
    std::fs::write(path, text).expect("ours");
}

#[test]
#[ignore = "needs python3"]
fn sitecustomize_adds_the_project_behind_everything_and_runs_the_one_it_replaces() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/project/sitecustomize.py");
    write(&at("files/sitecustomize.py"), &std::fs::read_to_string(source).expect("a template"));
    write(&at("files/site/x.pth"), &format!("{}\n", at("src").display()));
    write(
        &at("other/sitecustomize.py"),
        "import sys\nprint('other', any('src' in path for path in sys.path))\n",
    );
    write(&at("src/sitecustomize.py"), "raise SystemExit('code of the project ran')\n");
    write(&at("src/json.py"), "raise SystemExit('the standard library is hidden')\n");
    let run = |paths: &[&str]| {
        let paths: Vec<_> = paths.iter().map(|name| at(name).display().to_string()).collect();
        let code = "import json, sys; print(sys.path[-1].rsplit('/', 1)[1], sys.path.count(sys.path[-1]))";
        let mut python = Command::new("python3");
        let output = python.args(["-c", code]).env("PYTHONPATH", paths.join(":")).output().expect("python3");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert_eq!(run(&["files"]), "src 1\n");
    assert_eq!(run(&["files", "other"]), "other False\nsrc 1\n");
}
