//! The kernels' arithmetic without a GPU: g++ compiles their sources with a shim that runs each CUDA thread as a thread of
//! the processor, and `emulated.cpp` compares them with plain loops. The tensor-core kernel is PTX: `ptx_execution.rs` runs it.

use std::path::Path;
use std::process::Command;

#[test]
#[ignore = "needs g++"]
fn every_kernel_but_the_tensor_cores_gives_the_exact_answer_on_the_processor() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("folder");
    let program = folder.path().join("emulated");
    let build = Command::new("g++")
        .args(["-std=c++20", "-O1", "-pthread", "-Wno-unknown-pragmas", "-ffp-contract=off", "-I"])
        .arg(root.join("kernels/cuda"))
        .arg(root.join("tests/kernels/emulated.cpp"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("g++: install it");
    assert!(build.status.success(), "{}", String::from_utf8_lossy(&build.stderr));
    let run = Command::new(&program).output().expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    let said = String::from_utf8_lossy(&run.stdout);
    assert_eq!(said.lines().filter(|line| line.starts_with("ok ")).count(), 9, "{said}");
}
