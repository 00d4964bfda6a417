//! The built-in patches of source distributions, run as a build runs them.
#![expect(clippy::disallowed_methods, reason = "runs a program in a folder of its own")]

use std::path::Path;
use std::process::{Command, Output};

/// What the set-up scripts of causal-conv1d 1.7.0 and mamba-ssm 2.3.2 do with their GPU targets, in few lines.
const SETUP: &str = r#"cc_flag = []
if cuda >= 11:
    cc_flag.append("-gencode")
    cc_flag.append("arch=compute_80,code=sm_80")
    if cuda >= 12:
        cc_flag.append("-gencode")
        cc_flag.append("arch=compute_90,code=sm_90")
cc_flag.append("-O3")
print(cc_flag)
"#;

fn patched(name: &str, folder: &Path) -> Output {
    let patch = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/patches").join(name);
    Command::new("python3").arg("-B").arg(patch).arg(folder).output().expect("python3 runs")
}

/// Patches a set-up script of that text twice, and gives what it prints then.
fn printed(name: &str, text: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = folder.path().join("setup.py");
    std::fs::write(&setup, text).expect("written");
    let mut texts = Vec::new();
    for _ in 0..2 {
        let output = patched(name, folder.path());
        assert!(output.status.success(), "{output:?}");
        texts.push(std::fs::read_to_string(&setup).expect("there"));
    }
    assert_eq!(texts[0], texts[1], "a patched script stays as it is");
    let run = Command::new("python3").arg(&setup).output().expect("python3 runs");
    assert!(run.status.success(), "{run:?}");
    String::from_utf8_lossy(&run.stdout).into_owned()
}

/// Runs a patch on a script that it is not for: an error, and no change.
fn refuses(name: &str, texts: &[&str], why: &str) {
    for text in texts {
        let folder = tempfile::tempdir().expect("a folder");
        let setup = folder.path().join("setup.py");
        std::fs::write(&setup, text).expect("written");
        let output = patched(name, folder.path());
        assert!(!output.status.success(), "{text}");
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
        assert_eq!(std::fs::read_to_string(&setup).expect("there"), *text);
    }
}

#[test]
#[ignore = "needs python3"]
fn extension_names_no_gpu_target_after_its_patch() {
    assert_eq!(printed("extension-gpu-targets.py", &format!("cuda = 13\n{SETUP}")), "['-O3']\n");
}

#[test]
#[ignore = "needs python3"]
fn torch_chooses_the_cpp_standard_after_the_patch() {
    let text = "cxx = [\"-O3\", \"-std=c++17\"]\nnvcc = [\n    \"-O3\",\n    \"-std=c++17\",\n    \"-g\",\n]\nprint(cxx, nvcc)\n";
    assert_eq!(printed("extension-cpp-standard.py", text), "['-O3'] ['-O3', '-g']\n");
}

#[test]
#[ignore = "needs python3"]
fn script_of_another_shape_is_left_as_it_is() {
    let targets =
        ["setup()\n", "    cc_flag.append(\"-gencode\")\n", "cc_flag = ['arch=compute_80,code=sm_80']\n"];
    refuses("extension-gpu-targets.py", &targets, "names its GPU targets");
    let standards = ["setup()\n", "flags = [\"-std=c++17\", \"-std=c++14\"]\n"];
    refuses("extension-cpp-standard.py", &standards, "names its C++ standard");
}
