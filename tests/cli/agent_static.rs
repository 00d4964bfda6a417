//! Every static check of the agent can fail, and only for its own reason: a small tree that passes them all, broken in one place
//! each time. The real wheels are broken in tests/kernels/broken.rs; here nothing is downloaded.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use envforge_protocol::{CheckId, Stage};
use serde_json::Value;
use tempfile::TempDir;

use crate::shared_library::shared_library;

const PACKAGES: &str = "opt/env/lib/python3.11/site-packages";
const SECRET: &str = "hunter2-of-the-build-host";
/// What an interpreter with a good framework answers the agent's script.
const ANSWERS: &str = "python=3.11\nversion=2.8.0+cu128\ncuda=12.8\ncudnn=91002\nnccl=2.27.3\ntriton=3.4.0\nflags=sm_70 sm_90 sm_120\nend=\n";
const EXPECT: &str = "framework=torch\nversion=2.8.0+cu128\ncuda=12.8\ncudnn=9.10.2.21\nnccl=2.27.3\ntriton=3.4.0\narch=7.0\narch=9.0\n\
     arch=12.0\ntarget=9.0\nnvcc=12.8\nnvcc-target=9.0\nlogin-path=yes\nrdma=yes\n\
     ptxas=TRITON_PTXAS_PATH\nptxas-target=12.1\n";
const DISTRIBUTIONS: [&str; 7] = [
    "nvidia-cuda-runtime-cu12==12.8.90",
    "nvidia-cuda-nvrtc-cu12==12.8.93",
    "nvidia-cublas-cu12==12.8.4.1",
    "nvidia-cudnn-cu12==9.10.2.21",
    "nvidia-nccl-cu12==2.27.3",
    "first==1.0",
    "second==1.0",
];
/// Library, source, and what it is compiled with. The parts of cuDNN are it again.
const LIBRARIES: [(&str, &str, &str); 8] = [
    ("nvidia/cuda_runtime/lib/libcudart.so.12", "fake_image.c", "-DVERSION_OF_CUDART=12080"),
    ("nvidia/cublas/lib/libcublas.so.12", "fake_image.c", "-DVERSION_OF_CUBLAS=120804"),
    ("nvidia/cublas/lib/libcublasLt.so.12", "fake_image.c", "-DVERSION_OF_CUBLAS=120804"),
    ("nvidia/cudnn/lib/libcudnn.so.9", "fake_image.c", "-DVERSION_OF_CUDNN=91002"),
    ("nvidia/nccl/lib/libnccl.so.2", "fake_image.c", "-DVERSION_OF_NCCL=22703 -DARCH=90"),
    ("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "fake_libnvrtc.c", ""),
    ("torch/lib/libtorch_cuda.so", "fake_image.c", "-DARCH=90"),
    ("torch/lib/libc10.so", "fake_image.c", "-Wl,-soname,libc10.so"),
];
/// The ptxas that the image brings for Triton.
const PTXAS: &str = "opt/env/lib/python3.11/site-packages/nvidia/cuda_nvcc/bin/ptxas";
const VERBS: &str = "usr/lib/libibverbs.so.1";
const PROFILE: &str = "etc/profile.d/zz-envforge.sh";
const PARTS: [&str; 6] = ["graph", "ops", "cnn", "adv", "heuristic", "engines_runtime_compiled"];

/// Compiles a library.
fn compile(source: &str, flags: &str, out: &Path) {
    fs_err::create_dir_all(out.parent().expect("a folder")).expect("made");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-nostdlib", "-o"])
        .arg(out)
        .arg(folder.join(source))
        .arg(format!("-L{}", BUILT.gone.path().display()))
        .args(flags.split_whitespace())
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{source}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What every tree needs and is compiled once: a library that no image has.
struct Built {
    gone: TempDir,
}

static BUILT: LazyLock<Built> = LazyLock::new(|| {
    let gone = tempfile::tempdir().expect("a folder");
    let status = Command::new("cc")
        .args(["-shared", "-nostdlib", "-Wl,-soname,libgone.so.1", "-x", "c", "/dev/null", "-o"])
        .arg(gone.path().join("libgone.so"))
        .status();
    assert!(status.is_ok_and(|status| status.success()));
    Built { gone }
});

/// What stands for `/`, and what lies outside it: the agent, its input files and what the programs of the tree answer.
struct Tree {
    folder: TempDir,
    variables: Vec<(&'static str, String)>,
}

impl Tree {
    fn good() -> Self {
        let variables = vec![("TRITON_PTXAS_PATH", format!("/{PTXAS}"))];
        let tree = Self { folder: tempfile::tempdir().expect("a folder"), variables };
        let outside = tree.outside();
        let mut expect = EXPECT.to_owned();
        for distribution in DISTRIBUTIONS {
            writeln!(expect, "distribution={distribution}").expect("a string takes all");
            let (name, version) = distribution.split_once("==").expect("a version");
            tree.distribution(name, version);
        }
        tree.write("../expect", &expect);
        tree.write("../forbidden", SECRET);
        tree.write("../answers", ANSWERS);
        tree.write("../release", "Cuda compilation tools, release 12.8, V12.8.93\n");
        tree.write("../runtime", "12080\n");
        tree.write("../include/Python.h", "#define PY_MAJOR_VERSION 3\n");
        fs_err::write(outside.join("agent"), envforge::agent::AGENT).expect("written");
        let python = format!(
            "#!/bin/sh\ncase \"$2 $3\" in 'import sysconfig;'*) echo {0}/include;; 'pip check') cat {0}/pip 2>/dev/null && exit 1; exit 0;; \
             *) cat {0}/answers;; esac\n",
            outside.display()
        );
        tree.write("opt/env/bin/python", &python);
        let nvcc = format!(
            "#!/bin/sh\ncase \"$*\" in --version) cat {0}/release;; *-cubin*) printf '\\177ELF' >\"$4\";; \
             *) printf '#!/bin/sh\\ncat {0}/runtime\\n' >\"$2\"; chmod +x \"$2\";; esac\n",
            outside.display()
        );
        tree.write("usr/local/cuda/bin/nvcc", &nvcc);
        tree.write(
            PTXAS,
            "#!/bin/sh\n[ \"$1\" = --version ] && echo release 12.9, || printf '\\177ELF' >\"$4\"\n",
        );
        for (library, source, flags) in LIBRARIES {
            compile(source, flags, &tree.package(library));
        }
        for part in PARTS {
            let library = tree.package("nvidia/cudnn/lib/libcudnn.so.9");
            let part = tree.package(&format!("nvidia/cudnn/lib/libcudnn_{part}.so.9"));
            fs_err::copy(library, part).expect("copied");
        }
        extension(&tree, "int start(void) { return 0; }");
        compile("fake_image.c", "", &tree.root().join(VERBS));
        tree.write("usr/lib/libibverbs/libmlx5-rdmav34.so", "");
        tree.write("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
        tree.write("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
        let root = tree.root();
        let profile = format!(
            "export PATH=/usr/bin:/bin\nfor file in {}/etc/profile.d/*.sh; do . \"$file\"; done\n",
            root.display()
        );
        tree.write("etc/profile", &profile);
        tree.write(PROFILE, &format!("export PATH={}/opt/env/bin:/usr/bin:/bin\n", root.display()));
        tree.shared("of b");
        tree.write("home/dev/.profile", "");
        tree.modes();
        tree
    }

    /// A path that two packages list, with the bytes that it has: those of `second` are right.
    fn shared(&self, bytes: &str) {
        let record = |name: &str, hash: &str| {
            let row = format!("shared.txt,sha256={hash},4\n");
            self.write(&format!("{PACKAGES}/{name}-1.0.dist-info/RECORD"), &row);
        };
        record("first", "RGJRCLdly6YI3lnoGXfeQt63Avd2pzCfZJCFy_Vwrxs");
        record("second", "XA_SI7RosvZpPSC73AUMkCYUKGCv6Ykbyfa3MH8TSVc");
        self.write(&format!("{PACKAGES}/shared.txt"), bytes);
    }

    fn distribution(&self, name: &str, version: &str) {
        let folder = format!("{PACKAGES}/{}-{version}.dist-info", name.replace('-', "_"));
        self.write(
            &format!("{folder}/METADATA"),
            &format!("Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\n"),
        );
    }

    /// The image's user may write to its home and to nothing else.
    fn modes(&self) {
        let modes = [("..", 0o755), ("", 0o755), ("home/dev", 0o777), ("opt/env", 0o755)];
        let programs = [
            ("../agent", 0o755),
            ("opt/env/bin/python", 0o755),
            ("usr/local/cuda/bin/nvcc", 0o755),
            (PTXAS, 0o755),
        ];
        for (path, mode) in modes.into_iter().chain(programs) {
            let permissions = std::fs::Permissions::from_mode(mode);
            fs_err::set_permissions(self.root().join(path), permissions).expect("mode");
        }
    }

    fn outside(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("there")
    }

    fn root(&self) -> PathBuf {
        let root = self.outside().join("root");
        fs_err::create_dir_all(&root).expect("made");
        root
    }

    /// A file below `site-packages`.
    fn package(&self, path: &str) -> PathBuf {
        self.root().join(PACKAGES).join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path);
        fs_err::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs_err::write(path, text).expect("written");
    }

    /// The static checks: each outcome and detail.
    fn checked(&self) -> BTreeMap<String, (String, String)> {
        let word = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
        let checks = self.lines().into_iter();
        checks.map(|line| (word(&line, "id"), (word(&line, "outcome"), word(&line, "detail")))).collect()
    }

    /// The lines of the static checks.
    fn lines(&self) -> Vec<Value> {
        let outside = self.outside();
        let output = Command::new(outside.join("agent"))
            .args(["static", "--json", "--user", "1000:1000", "--root"])
            .arg(self.root())
            .arg("--expect")
            .arg(outside.join("expect"))
            .arg("--forbidden")
            .arg(outside.join("forbidden"))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .output()
            .expect("the agent runs");
        let text = String::from_utf8_lossy(&output.stdout);
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.filter(|line| line["id"].is_string()).collect()
    }
}

/// Breaks a good tree.
type Break = fn(&mut Tree);

fn answers(tree: &mut Tree, old: &str, new: &str) {
    assert!(ANSWERS.contains(old));
    tree.write("../answers", &ANSWERS.replace(old, new));
}

/// The check, and what makes it fail.
const BREAKS: [(&str, Break); 30] = [
    ("framework-version", |tree| answers(tree, "version=2.8.0", "version=2.7.1")),
    ("framework-cuda", |tree| answers(tree, "cuda=12.8", "cuda=12.6")),
    ("cudnn-version", |tree| answers(tree, "cudnn=91002", "cudnn=91001")),
    ("nccl-version", |tree| answers(tree, "nccl=2.27.3", "nccl=2.27.2")),
    ("triton-version", |tree| answers(tree, "triton=3.4.0", "triton=3.3.1")),
    ("framework-architectures", |tree| answers(tree, " sm_120", "")),
    ("distributions", |tree| tree.distribution("stray", "1.0")),
    ("pip-check", |tree| tree.write("../pip", "first 1.0 requires third, which is not installed.\n")),
    ("shared-paths", |tree| tree.shared("of a")),
    ("linker-closure", |tree| {
        let other = tree.package("torch/lib/libother.so");
        compile("fake_image.c", "-Wl,--no-as-needed -lgone", &other);
    }),
    ("extension-abi", |tree| {
        let asks = |name: &str| format!("extern int {name}(void); int start(void) {{ return {name}(); }}");
        extension(tree, &asks("_ZN3c104cuda9SetDeviceEa"));
    }),
    ("one-cuda", |tree| {
        tree.write("opt/env/lib/libcufft.so.11", "");
        tree.write("usr/lib/libcufft.so.10", "");
    }),
    ("cudart-load", |tree| recompiled(tree, 0, "-DVERSION_OF_CUDART=12060")),
    ("cublas-load", |tree| recompiled(tree, 1, "-DVERSION_OF_CUBLAS=120803")),
    ("cublaslt-load", |tree| {
        fs_err::write(tree.package(LIBRARIES[2].0), "<html>503</html>").expect("written");
    }),
    ("cudnn-load", |tree| recompiled(tree, 3, "-DVERSION_OF_CUDNN=91001")),
    ("nccl-load", |tree| recompiled(tree, 4, "-DVERSION_OF_NCCL=22702 -DARCH=90")),
    ("cudnn-sublibraries", |tree| {
        fs_err::remove_file(tree.package("nvidia/cudnn/lib/libcudnn_cnn.so.9")).expect("removed");
    }),
    ("nvrtc", |tree| recompiled(tree, 5, "-DOLD")),
    ("code-for-target", |tree| recompiled(tree, 6, "-DARCH=80")),
    ("loader-path", |tree| {
        tree.write("usr/local/cuda/lib64/stubs/libcuda.so", "a stub");
        tree.variables.push(("LD_LIBRARY_PATH", "/usr/local/cuda/lib64/stubs".to_owned()));
    }),
    ("login-shell", |tree| tree.write(PROFILE, "")),
    ("nccl-network", |tree| fs_err::remove_file(tree.root().join(VERBS)).expect("removed")),
    ("user", |tree| {
        let open = std::fs::Permissions::from_mode(0o777);
        fs_err::set_permissions(tree.root().join("opt/env"), open).expect("mode");
    }),
    ("compiler", |tree| tree.write("../include/Python.h", "#error no headers\n")),
    ("nvcc-version", |tree| tree.write("../release", "Cuda compilation tools, release 12.6, V12.6.85\n")),
    ("nvcc", |tree| tree.write("../runtime", "12060\n")),
    ("triton-ptxas", |tree| tree.write(PTXAS, "#!/bin/sh\necho release 12.8,\n[ \"$1\" = --version ]\n")),
    ("leftovers", |tree| tree.write("etc/machine-id", "0123456789abcdef\n")),
    ("secrets", |tree| tree.write("etc/netrc", SECRET)),
];

/// Compiles an extension of torch from that text.
fn extension(tree: &Tree, source: &str) {
    extension_with(tree, source, &[]);
}

/// The same, linked with further libraries.
fn extension_with(tree: &Tree, source: &str, more: &[&str]) {
    let folder = format!("-L{}", tree.package("torch/lib").display());
    let needs = ["-Wl,--no-as-needed", "-l:libc10.so", "-Wl,-rpath,$ORIGIN/../torch/lib", &folder];
    let needs = [&needs, more].concat();
    let built = shared_library(&tree.outside(), "_C.so", source, &needs);
    let out = tree.package("vision/_C.so");
    fs_err::create_dir_all(out.parent().expect("a folder")).expect("made");
    fs_err::copy(built, out).expect("copied");
}

/// Compiles one of the libraries with other flags.
fn recompiled(tree: &mut Tree, at: usize, flags: &str) {
    compile(LIBRARIES[at].1, flags, &tree.package(LIBRARIES[at].0));
}

/// Torch loads the run-time compiler of CUDA wheels itself, so an extension meets it that names no path to it.
#[test]
fn extension_meets_the_libraries_that_torch_loads_itself() {
    let outcome = |symbol: &str| {
        let tree = Tree::good();
        tree.distribution("torch", "2.8.0+cu128");
        let library = tree.package("nvidia/cuda_nvrtc/lib/libnvrtc.so.12");
        fs_err::copy(library, tree.outside().join("libnvrtc.so.12")).expect("copied");
        let source = format!("extern int {symbol}(void); int start(void) {{ return {symbol}(); }}");
        extension_with(&tree, &source, &["-l:libnvrtc.so.12"]);
        tree.checked().remove("extension-abi").expect("a check")
    };
    assert_eq!(outcome("nvrtcVersion").0, "passed");
    let (failed, why) = outcome("nvrtcGone");
    assert_eq!(failed, "failed", "{why}");
    assert!(why.contains("nvrtcGone"), "{why}");
}

#[test]
fn libraries_that_are_never_loaded_or_only_tried_do_not_fail() {
    let outcome = |path: &str| {
        let tree = Tree::good();
        let gone = "_ZN3c104cuda9SetDeviceEa";
        extension(&tree, &format!("extern int {gone}(void); int start(void) {{ return {gone}(); }}"));
        let out = tree.package(path);
        fs_err::create_dir_all(out.parent().expect("a folder")).expect("made");
        fs_err::rename(tree.package("vision/_C.so"), out).expect("moved");
        tree.checked().remove("extension-abi").expect("a check")
    };
    let (passed, text) = outcome("torchao/_C.abi3.so");
    assert_eq!(passed, "passed", "{text}");
    assert!(text.contains("may fail to load: _C.abi3.so"), "{text}");
    let (passed, text) = outcome("vision/_C.cpython-27-x86_64-linux-gnu.so");
    assert_eq!(passed, "passed", "{text}");
    assert!(text.starts_with("0 extensions"), "{text}");
    assert_eq!(outcome("vision/_C.abi3.so").0, "failed");
}

/// bitsandbytes has a library for each CUDA, others for AMD and Intel, and loads one of them.
#[test]
fn of_a_family_of_libraries_only_the_one_for_this_cuda_must_find_what_it_needs() {
    let outcome = |kinds: &[&str]| {
        let tree = Tree::good();
        let path = |kind: &str| tree.package(&format!("bitsandbytes/libbitsandbytes_{kind}.so"));
        for kind in ["cpu", "cuda118", "cuda128", "cuda130", "rocm72", "xpu2026"] {
            let flags = if kinds.contains(&kind) { "-Wl,--no-as-needed -lgone" } else { "" };
            compile("fake_image.c", flags, &path(kind));
        }
        tree.checked().remove("linker-closure").expect("a check")
    };
    let (passed, text) = outcome(&["cuda118", "cuda130", "rocm72", "xpu2026"]);
    assert_eq!(passed, "passed", "{text}");
    assert!(text.contains("never loaded with this CUDA: libbitsandbytes_cuda118.so"), "{text}");
    for own in ["cuda128", "cpu"] {
        let (failed, text) = outcome(&[own]);
        assert_eq!(failed, "failed", "{own}: {text}");
        assert!(text.contains(&format!("libbitsandbytes_{own}.so needs libgone.so.1")), "{text}");
    }
}

#[test]
fn report_has_every_missing_library_and_the_line_to_paste() {
    let tree = Tree::good();
    for number in 0..20 {
        let path = tree.package(&format!("many/lib{number:02}.so"));
        compile("fake_image.c", "-Wl,--no-as-needed -lgone", &path);
    }
    let lines = tree.lines();
    let line = lines.iter().find(|line| line["id"] == "linker-closure").expect("a check");
    let detail = line["detail"].as_str().expect("a text");
    assert!(detail.ends_with("lib11.so needs libgone.so.1; and 8 more"), "{detail}");
    let measured = line["measured"].as_object().expect("values");
    assert_eq!((measured.len(), &measured["problems"]), (21, &Value::from("20")));
    let last = measured["problem.020"].as_str().expect("a text");
    assert!(last.ends_with("/many/lib19.so needs libgone.so.1"), "{last}");
    let hint = line["hint"].as_str().expect("a hint");
    assert!(hint.ends_with("`may-lack = [\"libgone.so.1\"]` in `[verify]` of envforge.toml"), "{hint}");
}

/// Where an image of others has its packages.
const OF_OTHERS: &str = "usr/local/lib/python3.11/site-packages";

/// An image that envforge did not build: a Python in `/usr/local` with torch and an extension of it, compiled from that text.
fn of_others(source: &str) -> Tree {
    let tree = bare();
    let (outside, packages) = (tree.outside(), tree.root().join(OF_OTHERS));
    let python = format!(
        "#!/bin/sh\ncase \"$2 $3\" in 'pip check') exit 0;; *) cat {}/answers;; esac\n",
        outside.display()
    );
    tree.write("usr/local/bin/python3", &python);
    let mode = std::fs::Permissions::from_mode(0o755);
    fs_err::set_permissions(tree.root().join("usr/local/bin/python3"), mode).expect("mode");
    for (library, source, flags) in &LIBRARIES[6..] {
        compile(source, flags, &packages.join(library));
    }
    let folder = format!("-L{}", packages.join("torch/lib").display());
    let needs = ["-Wl,--no-as-needed", "-l:libc10.so", "-Wl,-rpath,$ORIGIN/../torch/lib", &folder];
    let built = shared_library(&outside, "_C.so", source, &needs);
    tree.write(&format!("{OF_OTHERS}/vision/__init__.py"), "");
    fs_err::copy(built, packages.join("vision/_C.so")).expect("copied");
    let record = "vision/__init__.py,sha256=x,0\nvision/_C.so,,\nvision-1.0.dist-info/RECORD,,\n";
    tree.write(&format!("{OF_OTHERS}/vision-1.0.dist-info/RECORD"), record);
    tree
}

/// An image that has nothing.
fn bare() -> Tree {
    let tree = Tree { folder: tempfile::tempdir().expect("a folder"), variables: Vec::new() };
    tree.write("../expect", "");
    tree.write("../forbidden", "");
    tree.write("../answers", ANSWERS);
    fs_err::write(tree.outside().join("agent"), envforge::agent::AGENT).expect("written");
    for path in ["..", "", "../agent"] {
        let mode = std::fs::Permissions::from_mode(0o755);
        fs_err::set_permissions(tree.root().join(path), mode).expect("mode");
    }
    tree
}

/// The checks of Python packages.
const OF_PACKAGES: [&str; 5] =
    ["distributions", "pip-check", "shared-paths", "linker-closure", "extension-abi"];

#[test]
fn packages_of_another_image_are_found_and_checked() {
    let good = of_others("int start(void) { return 0; }").checked();
    for id in OF_PACKAGES {
        assert_eq!(good[id].0, "passed", "{id}: {}", good[id].1);
    }
    assert_eq!(good["extension-abi"].1, "1 extensions find every symbol");
    assert!(good["distributions"].1.starts_with("1 packages: "), "{}", good["distributions"].1);
}

#[test]
fn extension_of_another_image_that_cannot_load_fails() {
    let source =
        "extern int _ZN3c104cuda9SetDeviceEa(void); int start(void) { return _ZN3c104cuda9SetDeviceEa(); }";
    let found = of_others(source).checked();
    let (outcome, why) = &found["extension-abi"];
    assert_eq!(outcome, "failed", "{why}");
    assert!(why.contains("vision/_C.so") && why.contains("SetDevice"), "{why}");
}

#[test]
fn library_of_another_image_fails_only_where_a_module_loads_it() {
    let outcome = |file: &str| {
        let tree = of_others("int start(void) { return 0; }");
        compile("fake_image.c", "-Wl,--no-as-needed -lgone", &tree.root().join(OF_OTHERS).join(file));
        tree.checked().remove("linker-closure").expect("a check")
    };
    let (failed, why) = outcome("other/_D.abi3.so");
    assert_eq!(failed, "failed", "{why}");
    assert_eq!(why, format!("/{OF_OTHERS}/other/_D.abi3.so needs libgone.so.1"));
    let (passed, why) = outcome("other/libplugin.so");
    assert_eq!(passed, "passed", "{why}");
    assert!(why.contains("other/libplugin.so needs libgone.so.1"), "{why}");
}

#[test]
fn image_without_python_says_so() {
    let mut tree = bare();
    // The machine's own Python is none of the image.
    tree.variables.push(("PATH", "/nowhere".to_owned()));
    let found = tree.checked();
    for id in OF_PACKAGES.into_iter().chain(["framework-version"]) {
        let (outcome, why) = &found[id];
        assert_eq!(outcome, "skipped", "{id}: {why}");
        assert!(why.contains("Python"), "{id}: {why}");
    }
}

/// Checks that the CLI makes itself: `model::verdict`'s own tests break them.
const OF_THE_CLI: [&str; 3] = ["image-user", "image-addresses", "agent"];

#[test]
fn every_static_check_has_a_break() {
    let of_the_agent = CheckId::ALL.iter().filter(|check| check.stage() == Stage::Static);
    let ids = of_the_agent.map(|check| check.as_str()).filter(|id| !OF_THE_CLI.contains(id));
    assert_eq!(ids.collect::<BTreeSet<_>>(), BREAKS.iter().map(|(id, _)| *id).collect());
}

#[test]
#[ignore = "needs minutes"]
fn each_break_of_an_image_is_caught_by_its_own_check_alone() {
    let good = Tree::good().checked();
    for (id, _) in BREAKS {
        assert_eq!(good[id].0, "passed", "{id}: {}", good[id].1);
    }
    for (id, cause) in BREAKS {
        let mut tree = Tree::good();
        cause(&mut tree);
        let found = tree.checked();
        let changed: Vec<_> = good.keys().filter(|id| good[*id].0 != found[*id].0).collect();
        assert_eq!(changed, [id], "{found:#?}");
        assert_eq!(found[id].0, "failed", "{id}: {}", found[id].1);
    }
}
