//! A folder with fake libraries of a GPU, compiled from the C sources beside this file, and the agent run on it.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

/// Source, what it becomes, and what it is linked with.
const LIBRARIES: [(&str, &str, &[&str]); 12] = [
    (
        "fake_libcuda.c",
        "driver/libcuda.so.1",
        &["fake_kernels.cpp", "-Wno-unknown-pragmas", "-lstdc++", "-lm"],
    ),
    ("fake_libnvml.c", "nvml/libnvidia-ml.so.1", &[]),
    ("fake_libnvrtc.c", "root/usr/local/cuda/lib64/libnvrtc.so.12", &[]),
    ("fake_libcublas.c", "root/usr/local/cuda/lib64/libcublas.so.12", &["-lm", "-ldl"]),
    ("fake_libcudnn.c", "root/usr/local/cuda/lib64/libcudnn.so.9", &["-lm"]),
    ("fake_libnccl.c", "root/usr/local/cuda/lib64/libnccl.so.2", &["-lm"]),
    ("fake_libmath.c", "root/usr/local/cuda/lib64/libcufft.so.11", &["-lm"]),
    ("fake_libmath.c", "root/usr/local/cuda/lib64/libcusolver.so.11", &["-lm"]),
    ("fake_libmath.c", "root/usr/local/cuda/lib64/libcusparse.so.12", &["-lm"]),
    ("fake_libmath.c", "root/usr/local/cuda/lib64/libcurand.so.10", &["-lm"]),
    ("fake_libnvrtc.c", "old/usr/local/cuda/lib64/libnvrtc.so.10.2", &["-DOLD"]),
    ("fake_libcublas.c", "old/usr/local/cuda/lib64/libcublas.so.10", &["-lm", "-DVERSION=10202"]),
];

static FOLDER: LazyLock<TempDir> = LazyLock::new(|| {
    // Below the target folder: a static is never dropped, so nobody removes this.
    let made = tempfile::Builder::new().prefix("fake-gpu-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let folder = made.expect("a folder");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    for (source, library, with) in LIBRARIES {
        let library = folder.path().join(library);
        std::fs::create_dir_all(library.parent().expect("a folder")).expect("made");
        let output = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off", "-o"])
            .arg(&library)
            .arg(sources.join(source))
            .args(with)
            .current_dir(&sources)
            .output()
            .expect("a C compiler");
        assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
    }
    // cuBLASLt is the same source: the agent loads it by its own name.
    let folder_of = folder.path().join("root/usr/local/cuda/lib64");
    std::fs::copy(folder_of.join("libcublas.so.12"), folder_of.join("libcublasLt.so.12")).expect("copied");
    let agent = folder.path().join("agent");
    std::fs::write(&agent, envforge::agent::AGENT).expect("written");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&agent, mode).expect("mode");
    folder
});

/// What the agent said, and its exit code.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) lines: Vec<Value>,
}

impl Answer {
    /// The line of a check.
    pub(crate) fn check(&self, id: &str) -> &Value {
        let line = self.lines.iter().find(|line| line["id"] == id);
        line.unwrap_or_else(|| panic!("no line of {id} in {:#?}", self.lines))
    }

    /// How a check ended, and what it said.
    pub(crate) fn told(&self, id: &str) -> (&str, &str) {
        let line = self.check(id);
        (line["outcome"].as_str().unwrap_or_default(), line["detail"].as_str().unwrap_or_default())
    }
}

/// The folder with the agent, the fakes of the driver (`driver`, `nvml`) and what stands for `/` (`root`).
pub(crate) fn folder() -> &'static Path {
    FOLDER.path()
}

/// Runs the agent with these words and variables; `FAKE_…` steer the fakes. Without NVML unless `FAKE_NVML` is set; with
/// `FAKE_OLD` the image has the libraries of CUDA 10.2.
pub(crate) fn agent(words: &[&str], variables: &[(&str, &str)]) -> Answer {
    agent_at(&FOLDER.path().join("agent"), words, variables)
}

/// The same with another agent than the embedded one.
pub(crate) fn agent_at(program: &Path, words: &[&str], variables: &[(&str, &str)]) -> Answer {
    let folder = FOLDER.path();
    let mut path = folder.join("driver").display().to_string();
    if variables.iter().any(|(name, _)| *name == "FAKE_NVML") {
        path = format!("{path}:{}", folder.join("nvml").display());
    }
    let old = variables.iter().any(|(name, _)| *name == "FAKE_OLD");
    let output = Command::new(program)
        .args(words)
        .args(["--json", "--root"])
        .arg(folder.join(if old { "old" } else { "root" }))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("LD_LIBRARY_PATH", path)
        .envs(variables.iter().copied())
        .output()
        .expect("the agent runs");
    let lines = String::from_utf8_lossy(&output.stdout);
    let lines = lines.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect();
    Answer { code: output.status.code().unwrap_or(-1), lines }
}
