//! Byte code of both builders: `templates/steps/byte_code.py` and `compile.py` give the same bytes, in whatever order.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Packages of the standard library; `test` has modules that do not compile.
const PACKAGES: [&str; 5] = ["json", "email", "asyncio", "unittest", "lib2to3"];

/// Sets of constants that two functions share. The words of one are known to the process of one step alone, those of the other
/// to the other's: by that the interpreter decides whether both functions have one object.
const SETS: &str = r#"
def first(word):
    return word in {"QUOTE_MINIMAL", "DictReader"} or word in {"thread_name_prefix", "communicate"}

def second(word):
    return word in {"QUOTE_MINIMAL", "DictReader"} or word in {"thread_name_prefix", "communicate"} or word in {1, True}
"#;

/// A step as it runs: after the part that both builders share.
fn step(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/steps");
    ["one_module.py", name].map(|part| std::fs::read_to_string(folder.join(part)).expect("a step")).concat()
}

fn output(command: &mut Command) -> Vec<u8> {
    let output = command.stderr(Stdio::piped()).output().expect("it starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn modules(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && entry.file_name() != "__pycache__" {
            all.extend(modules(&path));
        } else if path.extension().is_some_and(|extension| extension == "py") {
            all.push(path);
        }
    }
    all.sort();
    all
}

fn copy(from: &Path, to: &Path) {
    for module in modules(from) {
        let target = to.join(module.strip_prefix(from).expect("below it"));
        std::fs::create_dir_all(target.parent().expect("a folder")).expect("ours");
        std::fs::copy(&module, target).expect("a module");
    }
}

/// Frames as envforge sends them: each list of files is a distribution.
fn frames(distributions: &[Vec<PathBuf>]) -> Vec<u8> {
    let mut all = Vec::new();
    for files in distributions {
        all.extend(format!("D {}\n", files.len()).bytes());
        for file in files {
            let (path, text) = (file.to_str().expect("UTF-8"), std::fs::read(file).expect("a module"));
            all.extend(format!("F {} {}\n{path}", path.len(), text.len()).bytes());
            all.extend(text);
        }
    }
    all
}

/// Compiles the packages by both steps and compares every file.
fn assert_both_give_the_same(python: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    let library = output(Command::new(python).args(["-c", "import os; print(os.path.dirname(os.__file__))"]));
    let library = PathBuf::from(String::from_utf8(library).expect("a path").trim());
    let found = PACKAGES.iter().filter(|name| library.join(name).is_dir());
    let mut distributions = Vec::new();
    for name in found {
        copy(&library.join(name), &site.join(name));
        distributions.push(modules(&site.join(name)));
    }
    assert!(distributions.len() > 3, "{python}: {distributions:?}");
    std::fs::write(site.join("sets.py"), SETS).expect("ours");
    distributions.push(vec![site.join("sets.py")]);
    // In another order than compile.py goes through them.
    distributions.reverse();
    let sources = folder.path().join("sources");
    std::fs::write(&sources, frames(&distributions)).expect("ours");
    let script = step("byte_code.py").replace("/envforge/sources", sources.to_str().expect("UTF-8"));
    let step_here = folder.path().join("byte_code.py");
    std::fs::write(&step_here, script).expect("ours");
    let compile_here = folder.path().join("compile.py");
    std::fs::write(&compile_here, step("compile.py")).expect("ours");
    let answer = output(Command::new(python).args(["-I", "-S"]).arg(&step_here));
    output(
        Command::new(python)
            .args(["-S", "-s"])
            .arg(&compile_here)
            .arg(&site)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").expect("a PATH"))
            .env("PYTHONHASHSEED", "0"),
    );
    let mut rest = answer.as_slice();
    let line = |rest: &mut &[u8]| {
        let end = rest.iter().position(|byte| *byte == b'\n').expect("a line");
        let line = String::from_utf8(rest[..end].to_vec()).expect("numbers");
        *rest = &rest[end + 1..];
        line
    };
    let mut compared = 0;
    while !rest.is_empty() {
        let head = line(&mut rest);
        let Some(numbers) = head.strip_prefix("F ") else { continue };
        let (path, content) = numbers.split_once(' ').expect("two numbers");
        let (path, content): (usize, usize) = (path.parse().expect("one"), content.parse().expect("one"));
        let file = PathBuf::from(String::from_utf8(rest[..path].to_vec()).expect("a path"));
        assert!(
            std::fs::read(&file).expect("compile.py made it too") == rest[path..path + content],
            "{python}: {}",
            file.display()
        );
        rest = &rest[path + content..];
        compared += 1;
    }
    assert!(compared > 50, "{python}: {compared} files");
}

#[test]
#[ignore = "needs python3"]
fn both_builders_give_the_same_byte_code() {
    assert_both_give_the_same("python3");
}

#[test]
#[ignore = "by hand: needs Python 3.8, 3.9, 3.10, 3.12 and 3.13 on the PATH (python3.8 …)"]
fn both_builders_give_the_same_byte_code_of_other_pythons() {
    for python in ["python3.8", "python3.9", "python3.10", "python3.12", "python3.13"] {
        assert_both_give_the_same(python);
    }
}
