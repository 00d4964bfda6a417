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

fn patched(folder: &Path) -> Output {
    let patch = Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/patches/extension-gpu-targets.py");
    Command::new("python3").arg("-B").arg(patch).arg(folder).output().expect("python3 runs")
}

#[test]
fn extension_names_no_gpu_target_after_its_patch() {
    let folder = tempfile::tempdir().expect("a folder");
    let setup = folder.path().join("setup.py");
    std::fs::write(&setup, format!("cuda = 13\n{SETUP}")).expect("written");
    for _ in 0..2 {
        let output = patched(folder.path());
        assert!(output.status.success(), "{output:?}");
        let run = Command::new("python3").arg(&setup).output().expect("python3 runs");
        assert_eq!(String::from_utf8_lossy(&run.stdout), "['-O3']\n", "{run:?}");
    }
}

#[test]
fn script_that_names_its_targets_otherwise_is_left_as_it_is() {
    for text in
        ["setup()\n", "    cc_flag.append(\"-gencode\")\n", "cc_flag = ['arch=compute_80,code=sm_80']\n"]
    {
        let folder = tempfile::tempdir().expect("a folder");
        let setup = folder.path().join("setup.py");
        std::fs::write(&setup, text).expect("written");
        let output = patched(folder.path());
        assert!(!output.status.success(), "{text}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("names its GPU targets"), "{output:?}");
        assert_eq!(std::fs::read_to_string(&setup).expect("there"), text);
    }
}
