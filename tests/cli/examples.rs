//! The scripts below examples/ run as they stand and say what their README says.

use std::path::Path;
use std::process::Command;

use crate::example::{Example, assert_said, examples};
use crate::program;
use crate::program::Run;

#[test]
fn fleet_with_a_v100_gets_the_newest_release_with_its_code() {
    let program = Path::new(env!("CARGO_BIN_EXE_envforge"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/plan-for-a-fleet/run.sh");
    let folder = program.parent().expect("a folder").display();
    let output = Command::new("sh")
        .arg(script)
        .env("PATH", format!("{folder}:/usr/bin:/bin"))
        .output()
        .expect("a shell");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let built = stdout.lines().next().expect("a name");
    assert!(built.starts_with("pytorch-cuda:") && built.contains("-cu126-"), "{stdout}");
    assert!(stdout.contains("Tesla V100-SXM2-32GB (sm_70)"), "{stdout}");
}

#[test]
fn every_example_can_be_planned() {
    let examples = examples();
    assert_eq!(examples.len(), 12);
    for Example { name, folder, .. } in examples {
        let program = program();
        let run =
            Run::of(&program.command(&["plan", "--json"]).current_dir(&folder).output().expect("starts"));
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let readme = std::fs::read_to_string(folder.join("README.md")).expect("a README");
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().expect("a name").to_string_lossy().into_owned();
            let of_all = ["README.md", "envforge.toml", "envforge.lock", "__pycache__"];
            assert!(of_all.contains(&&*file) || readme.contains(&file), "{name}/{file} is not in its README");
        }
    }
}

#[test]
fn every_example_lock_is_up_to_date_without_addresses() {
    for Example { name, folder, .. } in examples() {
        let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
        let mut command = program.command(&["lock", "--check"]);
        let run = Run::of(&command.current_dir(&folder).output().expect("starts"));
        assert_eq!(run.code, 0, "{name}: {}", run.stderr);
        let lock = std::fs::read_to_string(folder.join("envforge.lock")).expect("it is there");
        assert!(!lock.contains("://"), "{name}: an address");
    }
}

#[test]
fn every_example_script_compiles() {
    let read = "import ast, sys; [ast.parse(open(path).read(), path) for path in sys.argv[1:]]";
    let scripts = examples().into_iter().flat_map(|example| {
        let files =
            std::fs::read_dir(example.folder).expect("a folder").map(|entry| entry.expect("an entry").path());
        files.filter(|file| file.extension().is_some_and(|end| end == "py")).collect::<Vec<_>>()
    });
    let output = Command::new("python3").args(["-c", read]).args(scripts).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "needs torch, CuPy, Numba and ninja: PATH=VENV/bin:$PATH cargo test --test cli -- --ignored examples"]
fn examples_print_the_recorded_output_without_a_gpu() {
    for example in examples() {
        let mut command = Command::new("bash");
        command.args(["-euc", &example.command]).current_dir(&example.folder);
        // The caches of what is compiled, and no GPU.
        let temporary = tempfile::tempdir().expect("a temporary folder");
        command
            .env("TORCH_EXTENSIONS_DIR", temporary.path())
            .env("TORCHINDUCTOR_CACHE_DIR", temporary.path());
        command.env("CUDA_VISIBLE_DEVICES", "").env("PYTHONDONTWRITEBYTECODE", "1");
        let output = command.output().expect("a shell");
        let (stdout, stderr) =
            (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}: {stdout}{stderr}", example.name);
        assert_said(&example, &stdout, &stderr);
    }
}
