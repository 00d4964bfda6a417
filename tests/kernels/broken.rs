//! A good tree of NVIDIA's wheels, broken in one place each time: the agent must name the fault and say what to do.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use envforge_protocol::CheckId;
use serde_json::Value;

use crate::real::unpacked;

const WHEELS: [&str; 5] = [
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cuda-nvrtc-cu12==12.8.93",
    "nvidia-cublas-cu12==12.8.4.1",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-nccl-cu12==2.27.3",
];
const OLD_NVRTC: &str = "nvidia-cuda-nvrtc-cu11==11.8.89";
const EXPECT: &str = "framework=torch\nversion=2.8.0+cu128\ncuda=12.8\ncudnn=9.10.2.21\nnccl=2.27.3\narch=7.0\narch=9.0\narch=12.0\ntarget=9.0\n";
/// What an interpreter with a good framework answers the agent's script.
const ANSWERS: &str =
    "python=3.11\nversion=2.8.0+cu128\ncuda=12.8\ncudnn=91002\nnccl=2.27.3\nflags=sm_70 sm_90 sm_120\nend=\n";
const PACKAGES: &str = "opt/env/lib/python3.11/site-packages";

/// A folder that stands for the root of an image.
struct Tree {
    folder: tempfile::TempDir,
    expect: String,
    environment: Vec<(&'static str, String)>,
    forbidden: &'static str,
    user: &'static str,
}

impl Tree {
    /// The wheels by hard links, an interpreter that answers for the framework, and a home.
    fn good() -> Self {
        // Beside the unpacked wheels: a hard link stays on its file system.
        let cache = unpacked(WHEELS[0]);
        let folder = tempfile::tempdir_in(cache.parent().expect("the cache")).expect("folder");
        let mut expect = EXPECT.to_owned();
        for wheel in WHEELS {
            link(&unpacked(wheel), &folder.path().join(PACKAGES));
            writeln!(expect, "distribution={wheel}").expect("a string takes all");
        }
        let tree = Self { folder, expect, environment: Vec::new(), forbidden: "", user: "1000:1000" };
        tree.python(ANSWERS);
        tree.write("home/dev/.profile", "");
        for (path, mode) in [("", 0o755), ("home/dev", 0o777)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(tree.folder.path().join(path), permissions).expect("mode");
        }
        tree
    }

    fn python(&self, answers: &str) {
        self.write("opt/env/bin/python", format!("#!/bin/sh\nprintf '%s' '{answers}'\n"));
        let path = self.path("opt/env/bin/python");
        fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("mode");
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// A file of NVIDIA's wheels.
    fn library(&self, path: &str) -> PathBuf {
        self.path(PACKAGES).join("nvidia").join(path)
    }

    fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs_err::create_dir_all(path.parent().expect("a folder")).expect("made");
        // Never through a hard link into the cache.
        let _ = fs_err::remove_file(&path);
        fs_err::write(path, bytes.as_ref()).expect("written");
    }

    fn remove(&self, path: &str) {
        fs_err::remove_file(self.library(path)).expect("removed");
    }

    /// The lines of some checks.
    fn lines(&self, ids: &[&str]) -> Vec<Value> {
        let agent = tempfile::NamedTempFile::new().expect("a file").into_temp_path();
        fs_err::write(&agent, envforge::agent::AGENT).expect("written");
        fs_err::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("mode");
        let outside = tempfile::tempdir().expect("folder");
        fs_err::set_permissions(outside.path(), std::fs::Permissions::from_mode(0o755)).expect("mode");
        let (expect, forbidden) = (outside.path().join("expect"), outside.path().join("forbidden"));
        fs_err::write(&expect, &self.expect).expect("written");
        fs_err::write(&forbidden, self.forbidden).expect("written");
        let mut command = Command::new(agent.as_os_str());
        command
            .arg("run")
            .args(ids.iter().map(|id| group(id)).collect::<std::collections::BTreeSet<_>>())
            .args(["--json", "--user", self.user])
            .arg("--root")
            .arg(self.folder.path().canonicalize().expect("there"))
            .arg("--expect")
            .arg(&expect)
            .arg("--forbidden")
            .arg(&forbidden)
            .env_remove("LD_LIBRARY_PATH")
            .envs(self.environment.iter().map(|(name, value)| (name, value)));
        let output = started(&mut command);
        let text = String::from_utf8_lossy(&output.stdout);
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        assert!(lines.last().is_some_and(|line| line["done"] == true), "{text}");
        let good = lines.iter().all(|line| !matches!(line["outcome"].as_str(), Some("failed" | "errored")));
        assert_eq!(output.status.code(), Some(i32::from(!good)), "{text}");
        lines.into_iter().filter(|line| ids.iter().any(|id| line["id"] == *id)).collect()
    }

    /// The check must fail with these words and a hint.
    #[track_caller]
    fn fails(&self, what: &str, id: &str, words: &str) {
        let lines = self.lines(&[id]);
        let [line] = lines.as_slice() else { panic!("{what}: {} lines of {id}", lines.len()) };
        assert_eq!(line["outcome"], "failed", "{what}: {line}");
        assert!(line["detail"].as_str().expect("text").contains(words), "{what}: {line}");
        assert!(line["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{what}: {line}");
    }
}

/// Returns the group of a check.
/// Runs a program that was just written: a child that another test started meanwhile may still have its file open.
fn started(command: &mut Command) -> std::process::Output {
    for _ in 0..3000 {
        match command.output() {
            Err(error) if error.kind() == std::io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(std::time::Duration::from_millis(100));
            }
            result => return result.expect("the agent starts"),
        }
    }
    panic!("the agent's file stays open for five minutes");
}

fn group(id: &str) -> &'static str {
    CheckId::parse(id).expect("known").group().as_str()
}

fn link(from: &Path, to: &Path) {
    fs_err::create_dir_all(to).expect("made");
    for entry in fs_err::read_dir(from).expect("readable") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            link(&path, &target);
        } else if !target.exists() {
            fs_err::hard_link(&path, &target).expect("linked");
        }
    }
}

/// Every check whose subject these tests break.
const CHECKS: [&str; 17] = [
    "framework-version",
    "framework-cuda",
    "cudnn-version",
    "nccl-version",
    "framework-architectures",
    "cudart-load",
    "cublaslt-load",
    "cublas-load",
    "cudnn-load",
    "nccl-load",
    "cudnn-sublibraries",
    "nvrtc",
    "code-for-target",
    "loader-path",
    "one-cuda",
    "user",
    "secrets",
];

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn the_good_tree_passes_everything_that_the_broken_ones_fail() {
    let lines = Tree::good().lines(&CHECKS);
    assert_eq!(lines.len(), CHECKS.len());
    for line in &lines {
        assert_eq!(line["outcome"], "passed", "{line}");
    }
}

/// Breaks a good tree.
type Break = fn(&mut Tree);

/// What is broken, how, and the check and words that must tell it.
const BROKEN: [(&str, Break, [&str; 2]); 19] = [
    (
        "a part of cuDNN is missing",
        |tree| tree.remove("cudnn/lib/libcudnn_cnn.so.9"),
        ["cudnn-sublibraries", "libcudnn_cnn.so.9 not found next to libcudnn.so.9"],
    ),
    (
        "a part of cuDNN is cut short",
        |tree| cut(tree, "cudnn/lib/libcudnn_ops.so.9"),
        ["cudnn-sublibraries", "libcudnn_ops.so.9: truncated"],
    ),
    (
        "NCCL is cut short",
        |tree| cut(tree, "nccl/lib/libnccl.so.2"),
        ["nccl-load", "libnccl.so.2: truncated"],
    ),
    (
        "an error page was saved as NCCL",
        |tree| {
            let text = "<html>503</html>".repeat(100);
            tree.write(&format!("{PACKAGES}/nvidia/nccl/lib/libnccl.so.2"), text);
        },
        ["nccl-load", "not a 64-bit ELF file"],
    ),
    (
        "NCCL's wheel lost its library",
        |tree| tree.remove("nccl/lib/libnccl.so.2"),
        ["nccl-load", "libnccl 2.27.3 is not in the image"],
    ),
    (
        "cuBLAS without cuBLASLt",
        |tree| tree.remove("cublas/lib/libcublasLt.so.12"),
        ["cublas-load", "libcublasLt.so.12: cannot open shared object file"],
    ),
    (
        "cuDNN of another minor version",
        |tree| tree.expect = tree.expect.replace("9.10.2.21", "9.11.0.98"),
        ["cudnn-load", "expected `9.11.0` (lock), found `9.10.2`"],
    ),
    (
        "NCCL of another version",
        |tree| tree.expect = tree.expect.replace("2.27.3", "2.26.2"),
        ["nccl-load", "expected `2.26.2` (lock), found `2.27.3`"],
    ),
    (
        "NVRTC without its built-in functions",
        |tree| tree.remove("cuda_nvrtc/lib/libnvrtc-builtins.so.12.8"),
        ["nvrtc", "the built-in functions could not be loaded"],
    ),
    (
        "NVRTC of another CUDA",
        |tree| {
            tree.remove("cuda_nvrtc/lib/libnvrtc.so.12");
            link(&unpacked(OLD_NVRTC), &tree.path(PACKAGES));
        },
        ["nvrtc", "expected `12.8` (lock), found `11.8`"],
    ),
    (
        "NVRTC is not there",
        |tree| tree.remove("cuda_nvrtc/lib/libnvrtc.so.12"),
        ["nvrtc", "libnvrtc 12.8.93 is not in the image"],
    ),
    (
        "a wheel without code for the target",
        |tree| tree.expect = tree.expect.replace("target=9.0", "target=3.7"),
        ["code-for-target", "libnccl.so.2 has no code for sm_37"],
    ),
    (
        "a second CUDA on LD_LIBRARY_PATH",
        |tree| {
            tree.write("usr/local/cuda/lib64/libcudnn.so.8", "another");
            tree.environment.push(("LD_LIBRARY_PATH", "/usr/local/cuda/lib64".to_owned()));
        },
        ["loader-path", "LD_LIBRARY_PATH puts /usr/local/cuda/lib64/libcudnn.so.8 before"],
    ),
    (
        "a folder of stubs on the loader's path",
        |tree| {
            tree.write("usr/local/cuda/lib64/stubs/libcuda.so", "a stub");
            tree.write("etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64/stubs\n");
        },
        ["loader-path", "/usr/local/cuda/lib64/stubs/libcuda.so, a stub"],
    ),
    (
        "a build left an empty driver",
        |tree| tree.write("usr/lib/x86_64-linux-gnu/libcuda.so.1", ""),
        ["loader-path", "/usr/lib/x86_64-linux-gnu/libcuda.so.1 is an empty file"],
    ),
    (
        "the distribution's cuDNN beside the wheel's",
        |tree| tree.write("usr/lib/x86_64-linux-gnu/libcudnn.so.8", "another"),
        ["one-cuda", "/usr/lib/x86_64-linux-gnu/libcudnn.so.8"],
    ),
    (
        "torch replaced by the CPU build",
        |tree| tree.python("python=3.11\nversion=2.8.0+cpu\ncuda=None\ncudnn=None\nflags=\nend=\n"),
        ["framework-cuda", "expected `12.8` (lock), found `None`"],
    ),
    (
        "torch of another CUDA",
        |tree| tree.python(&ANSWERS.replace("cu128", "cu126").replace("cuda=12.8", "cuda=12.6")),
        ["framework-version", "expected `2.8.0+cu128` (lock), found `2.8.0+cu126`"],
    ),
    (
        "no compiler for Triton",
        |tree| tree.environment.push(("PATH", "/nonexistent".to_owned())),
        ["compiler", "cc: No such file"],
    ),
];

/// The first quarter of a library, in place of it.
fn cut(tree: &Tree, path: &str) {
    let whole = fs_err::read(tree.library(path)).expect("readable");
    tree.write(&format!("{PACKAGES}/nvidia/{path}"), &whole[..whole.len() / 4]);
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn each_broken_tree_is_caught_by_name_with_a_hint() {
    for (what, break_it, [id, words]) in BROKEN {
        let mut tree = Tree::good();
        break_it(&mut tree);
        tree.fails(what, id, words);
    }
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn the_wrong_user_and_a_leaked_secret_are_caught() {
    let mut tree = Tree::good();
    tree.user = "0:0";
    let line = |tree: &Tree, id: &str| tree.lines(&[id]).remove(0);
    let user = line(&tree, "user");
    assert!(user["detail"].as_str().expect("text").contains("the image runs as root"), "{user}");
    tree.forbidden = "planted-token\n";
    assert_eq!(line(&tree, "secrets")["outcome"], "passed");
    tree.write("home/dev/.netrc", "machine x password planted-token\n");
    let secrets = line(&tree, "secrets");
    assert_eq!(secrets["outcome"], "failed");
    assert!(!secrets.to_string().contains("planted-token"), "never repeated: {secrets}");
}

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn a_library_that_ends_the_process_is_a_line_with_its_name() {
    let tree = Tree::good();
    // Long enough by its header, but nothing behind it: the loader runs into what is not there.
    let whole = fs_err::read(tree.library("nccl/lib/libnccl.so.2")).expect("readable");
    let mut hollow = whole[..4096].to_vec();
    hollow.resize(whole.len(), 0xff);
    tree.write(&format!("{PACKAGES}/nvidia/nccl/lib/libnccl.so.2"), hollow);
    let line = tree.lines(&["nccl-load"]).remove(0);
    assert!(matches!(line["outcome"].as_str(), Some("failed" | "errored")), "{line}");
    assert!(line["detail"].as_str().expect("text").contains("libnccl.so.2"), "{line}");
    assert!(line["hint"].is_string(), "{line}");
}
