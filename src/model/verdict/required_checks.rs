//! The checks that an image of a stack must pass to get its tags, by the stage that runs them.
//!
//! Pure. Each check's condition is in `envforge_protocol`; this module applies it to a lock.

use envforge_protocol::{CheckId, Level, Requirement, Stage};

use crate::model::lock::Lock;
use crate::model::stack::Stack;
use crate::model::versions::PythonVersion;

/// Releases of PyTorch whose `torch.compile` refuses that Python and later: it raises "Python 3.11+ not yet supported",
/// "Dynamo is not supported on Python 3.12+", "torch.compile is not supported on Python 3.14+" (`torch/__init__.py` and
/// `torch/_dynamo/eval_frame.py` of these releases).
const COMPILES_BEFORE: [(&str, PythonVersion); 4] = [
    ("2.0.", PythonVersion { major: 3, minor: 11 }),
    ("2.2.", PythonVersion { major: 3, minor: 12 }),
    ("2.3.", PythonVersion { major: 3, minor: 12 }),
    ("2.9.", PythonVersion { major: 3, minor: 14 }),
];

/// Returns the required checks that need no GPU.
pub fn static_checks(lock: &Lock) -> Vec<String> {
    required(lock, Stage::Static, Level::Static)
}

/// Returns the required checks that run on a GPU; `full`: with those that level quick leaves out.
pub fn gpu_checks(lock: &Lock, full: bool) -> Vec<String> {
    required(lock, Stage::Gpu, if full { Level::Full } else { Level::Quick })
}

fn required(lock: &Lock, stage: Stage, level: Level) -> Vec<String> {
    let checks = CheckId::ALL.iter().filter(|check| check.stage() == stage && check.level() <= level);
    checks.filter(|check| is_required(**check, lock)).map(|check| check.as_str().to_owned()).collect()
}

/// Whether a check must pass for a tag of the lock's image.
fn is_required(check: CheckId, lock: &Lock) -> bool {
    let stack = &lock.stack;
    let is_one_of = |names: &[&str]| names.contains(&stack.framework.as_str());
    match check.requirement() {
        Requirement::Optional | Requirement::Unproven => false,
        Requirement::EveryImage => true,
        Requirement::LoginPath => lock.keeps_login_path(),
        Requirement::Wheel(name) => {
            lock.wheels.iter().any(|wheel| is_part(name, &wheel.name)) || is_shared(name, stack)
        }
        Requirement::Nvcc => stack.nvcc.is_some(),
        Requirement::Ptxas => stack.ptxas.is_some(),
        Requirement::Framework => !stack.is_toolkit(),
        Requirement::TorchOr(names) => torch(stack).is_some() || is_one_of(names),
        Requirement::ListedGpus(names) => !stack.requires.gpu.is_empty() && is_one_of(names),
        Requirement::Cudnn => !stack.is_toolkit() && stack.cudnn.is_some(),
        Requirement::Nccl => !stack.is_toolkit() && stack.nccl.is_some(),
        Requirement::Triton => !stack.is_toolkit() && stack.triton.is_some(),
        Requirement::TorchCompile => stack.triton.is_some() && torch_compiles(stack),
    }
}

/// Whether a wheel carries that part; its name may end in `-cu` and the CUDA major version.
fn is_part(part: &str, wheel: &str) -> bool {
    wheel == part || wheel.rsplit_once("-cu").is_some_and(|(name, _)| name == part)
}

/// Whether the framework's own wheel has the library of NVIDIA's wheel as a file.
fn is_shared(part: &str, stack: &Stack) -> bool {
    part.strip_prefix("nvidia-").is_some_and(|library| stack.shared.iter().any(|name| name == library))
}

/// The release of PyTorch in the stack: the framework itself, or what it is built on.
fn torch(stack: &Stack) -> Option<String> {
    let own = (stack.package == "torch").then(|| stack.version.to_string());
    own.or_else(|| stack.companions.get("torch").cloned())
}

/// Whether the stack contains a PyTorch that compiles with the stack's Python.
fn torch_compiles(stack: &Stack) -> bool {
    let refuses = |version: &str| {
        COMPILES_BEFORE.iter().any(|(line, first)| version.starts_with(line) && stack.python >= *first)
    };
    torch(stack).is_some_and(|version| !refuses(&version))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::model::lock::{LockedWheel, sample};

    fn has(lock: &Lock, id: &str) -> bool {
        static_checks(lock).iter().chain(&gpu_checks(lock, true)).any(|known| known == id)
    }

    /// A lock with these wheels.
    fn lock_of(names: &[&str]) -> Lock {
        let mut lock = sample::lock();
        let wheel = lock.wheels.remove(0);
        lock.wheels
            .extend(names.iter().map(|name| LockedWheel { name: (*name).to_owned(), ..wheel.clone() }));
        lock
    }

    #[test]
    fn ptxas_of_the_image_is_required_to_compile() {
        let mut lock = sample::lock();
        assert!(!has(&lock, "triton-ptxas"));
        lock.stack.ptxas = Some(sample::ptxas());
        assert!(has(&lock, "triton-ptxas"));
    }

    #[test]
    fn missing_component_is_not_required() {
        let mut lock = sample::lock();
        assert!(has(&lock, "cudnn-version") && has(&lock, "nccl-version") && has(&lock, "framework-compile"));
        lock.stack.cudnn = None;
        lock.stack.nccl = None;
        lock.stack.triton = None;
        for id in ["cudnn-version", "nccl-version", "triton-version", "framework-compile"] {
            assert!(!has(&lock, id), "{id}");
        }
        assert!(has(&lock, "conv-own"));
    }

    /// numba-cuda has no cuBLAS; wheels of PyTorch before 2.1 link libraries statically and name them in no wheel.
    #[test]
    fn library_is_called_only_if_its_wheel_is_locked() {
        let rows = [
            ("nvidia-cublas", ["gemm-fp32-cublas", "gemm-large"]),
            ("nvidia-cudnn", ["conv-cudnn-forward", "conv-cudnn-backward-filter"]),
            ("nvidia-nccl", ["nccl-all-reduce", "nccl-send-recv"]),
        ];
        for (part, ids) in rows {
            for id in ids {
                assert!(!has(&lock_of(&["torch"]), id), "{id}");
                assert!(has(&lock_of(&["torch", part]), id), "{id}");
                assert!(has(&lock_of(&["torch", &format!("{part}-cu12")]), id), "{id}");
            }
        }
    }

    /// PyTorch for CUDA 11.3 to 11.8 without NVIDIA's wheels has cuBLAS and cuDNN in `torch/lib`, and links NCCL statically.
    #[test]
    fn library_inside_the_frameworks_wheel_is_called() {
        let mut lock = lock_of(&["torch"]);
        assert!(!has(&lock, "gemm-large") && !has(&lock, "cudnn-sublibraries"));
        lock.stack.shared = ["cublas", "cudnn"].map(str::to_owned).to_vec();
        for id in ["cublas-load", "cublaslt-load", "gemm-fp32-cublas", "gemm-large", "conv-cudnn-forward"] {
            assert!(has(&lock, id), "{id}");
        }
        assert!(!has(&lock, "nccl-all-reduce") && !has(&lock, "nccl-load"));
    }

    #[test]
    fn torch_compile_is_required_only_on_a_python_that_it_supports() {
        for (torch, python, expected) in [
            ("2.0.1", "3.10", true),
            ("2.0.1", "3.11", false),
            ("2.1.2", "3.11", true),
            ("2.2.0", "3.12", false),
            ("2.4.1", "3.12", true),
            ("2.9.1", "3.13", true),
            ("2.9.1", "3.14", false),
            ("2.10.0", "3.14", true),
        ] {
            let mut lock = sample::lock();
            lock.stack.python = python.parse().unwrap();
            lock.stack.version = torch.parse().unwrap();
            assert_eq!(has(&lock, "framework-compile"), expected, "torch {torch} on {python}");
            assert!(has(&lock, "triton-version"), "the wheel still requires Triton");
            // vLLM names its PyTorch as a companion.
            "vllm".clone_into(&mut lock.stack.package);
            lock.stack.companions = BTreeMap::from([("torch".to_owned(), torch.to_owned())]);
            assert_eq!(has(&lock, "framework-compile"), expected, "vLLM with torch {torch} on {python}");
        }
    }

    #[test]
    fn locked_library_must_load_regardless_of_its_wheel_name() {
        let mut lock = sample::lock();
        lock.wheels.truncate(1);
        for name in ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-cudnn"] {
            name.clone_into(&mut lock.wheels[0].name);
            assert!(has(&lock, "cudnn-load") && has(&lock, "cudnn-sublibraries"), "{name}");
            assert!(!has(&lock, "nccl-load") && !has(&lock, "nvrtc"), "{name}");
        }
        "nvidia-cudnn-frontend".clone_into(&mut lock.wheels[0].name);
        assert!(!has(&lock, "cudnn-load"));
    }

    #[test]
    fn framework_is_not_required_to_do_unsupported_operations() {
        let mut lock = sample::lock();
        for framework in ["cupy", "numba", "jax", "tensorflow", "onnxruntime"] {
            framework.clone_into(&mut lock.stack.framework);
            framework.clone_into(&mut lock.stack.package);
            let all = gpu_checks(&lock, true);
            assert!(all.iter().any(|id| id == "framework-matmul"), "{framework}");
            assert!(!all.iter().any(|id| id == "framework-ddp" || id == "framework-autocast"), "{framework}");
            let listed = static_checks(&lock).iter().any(|id| id == "framework-architectures");
            assert_eq!(listed, framework == "tensorflow");
        }
    }

    #[test]
    fn product_is_required_to_multiply_only_with_pytorch() {
        let mut lock = sample::lock();
        lock.stack.companions.clear();
        "tensorrt".clone_into(&mut lock.stack.framework);
        "tensorrt".clone_into(&mut lock.stack.package);
        let of_framework = |lock: &Lock| -> Vec<_> {
            gpu_checks(lock, true).into_iter().filter(|id| id.starts_with("framework-")).collect()
        };
        assert!(!of_framework(&lock).iter().any(|id| id == "framework-matmul"), "{:?}", of_framework(&lock));
        assert!(static_checks(&lock).iter().any(|id| id == "framework-cuda"));
        "sglang".clone_into(&mut lock.stack.framework);
        "sglang".clone_into(&mut lock.stack.package);
        lock.stack.companions = BTreeMap::from([("torch".to_owned(), "2.8.0".to_owned())]);
        for check in ["framework-matmul", "framework-conv", "framework-autocast", "framework-ddp"] {
            assert!(of_framework(&lock).iter().any(|id| id == check), "{check}");
        }
        assert!(!gpu_checks(&lock, true).iter().any(|id| id == "product-kernel"), "it has not run on a GPU");
    }

    #[test]
    fn level_quick_leaves_out_slow_checks() {
        let lock = sample::lock();
        let (quick, full) = (gpu_checks(&lock, false), gpu_checks(&lock, true));
        assert!(full.len() > quick.len() && full.starts_with(&quick));
    }

    #[test]
    fn every_check_is_listed_once() {
        let lock = sample::lock();
        let all: Vec<_> = static_checks(&lock).into_iter().chain(gpu_checks(&lock, true)).collect();
        let once: std::collections::BTreeSet<_> = all.iter().collect();
        assert_eq!(once.len(), all.len());
    }

    #[test]
    fn login_shell_is_required_of_images_that_keep_their_path() {
        let mut lock = sample::lock();
        assert!(has(&lock, "login-shell"));
        lock.schema = 2;
        assert!(!has(&lock, "login-shell"), "the image of an older lock stays as it is");
    }

    #[test]
    fn order_of_the_lists_is_stable() {
        let mut lock = sample::lock();
        lock.wheels.truncate(1);
        "nvidia-cublas-cu12".clone_into(&mut lock.wheels[0].name);
        assert_eq!(
            static_checks(&lock).join(" "),
            "framework-version framework-cuda cudnn-version nccl-version triton-version framework-architectures \
             distributions pip-check shared-paths linker-closure extension-abi one-cuda cublas-load cublaslt-load loader-path login-shell user \
             compiler leftovers secrets image-user image-addresses"
        );
        assert_eq!(
            gpu_checks(&lock, true).join(" "),
            "driver device memory-copies memory-pattern memory-peers arithmetic-own gemm-fp32-own gemm-tf32-own \
             gemm-fp16-own gemm-bf16-own gemm-fp64-cublas gemm-fp32-cublas gemm-tf32-cublas gemm-fp16-cublas \
             gemm-bf16-cublas gemm-large conv-own framework-matmul framework-conv framework-autocast framework-compile \
             framework-ddp"
        );
    }

    /// The libraries that checks call, by the wheel that has them and one check of each.
    const LIBRARIES: [(&str, [&str; 2]); 5] = [
        ("cuda-runtime", ["cudart-load", "cudart-load"]),
        ("cublas", ["gemm-large", "cublas-load"]),
        ("cudnn", ["conv-cudnn-forward", "cudnn-sublibraries"]),
        ("nccl", ["nccl-all-reduce", "nccl-load"]),
        ("cuda-nvrtc", ["nvrtc", "nvrtc"]),
    ];

    /// The committed locks: the examples', and one of each product.
    #[expect(clippy::disallowed_methods, reason = "reads committed files")]
    fn committed() -> Vec<(String, Lock)> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in ["examples", "tests/fixtures/lock/products"] {
            for entry in fs_err::read_dir(root.join(folder)).expect("readable") {
                let path = entry.expect("an entry").path();
                files.push(if path.is_dir() { path.join("envforge.lock") } else { path });
            }
        }
        files.retain(|path| path.extension().is_some_and(|extension| extension == "lock") && path.is_file());
        let read = |path: &std::path::PathBuf| {
            let text = fs_err::read_to_string(path).expect("readable");
            (path.display().to_string(), Lock::from_toml("envforge.lock", &text).expect("a lock"))
        };
        files.iter().map(read).collect()
    }

    /// A library is called exactly where the lock has it: read from the file names of the wheels, not from their projects. What the
    /// wheels of whole rows hold is compared in `src/packages/locked_rows_tests.rs`.
    #[test]
    fn committed_locks_require_the_libraries_that_their_wheels_have() {
        let locks = committed();
        let products: std::collections::BTreeSet<_> =
            locks.iter().map(|(_, lock)| lock.stack.framework.clone()).collect();
        assert!(products.len() >= 5, "{products:?}");
        for (name, lock) in &locks {
            for (library, checks) in LIBRARIES {
                let begins = format!("nvidia_{}", library.replace('-', "_"));
                let locked = lock.wheels.iter().any(|wheel| {
                    let file = wheel.file.rsplit('/').next().unwrap_or_default();
                    let rest = file.replace('-', "_");
                    let rest = rest.strip_prefix(&begins);
                    // `nvidia_cublas_cu12-12.8…` or `nvidia_cublas-13.1…`, not `nvidia_cudnn_frontend-1…`.
                    rest.is_some_and(|rest| {
                        rest.trim_start_matches("_cu")
                            .trim_start_matches('_')
                            .starts_with(|c: char| c.is_ascii_digit())
                    })
                });
                for check in checks {
                    assert_eq!(has(lock, check), locked, "{name}: {library}, {check}");
                }
            }
        }
    }

    /// The oldest and the newest row of each product: what its stack has inside the framework's own wheel.
    #[test]
    fn rows_with_bundled_libraries_are_those_without_wheels_of_them() {
        let matrix = crate::model::compat::embedded();
        let shared = matrix.variants.iter().filter(|row| !row.shared.is_empty());
        for row in shared {
            assert_eq!(
                (row.framework.as_str(), row.cuda.major),
                ("pytorch", 11),
                "{} {}",
                row.version,
                row.cuda
            );
            assert!(
                row.parts.is_empty() && row.shared == ["cublas", "cudnn"],
                "{} {}",
                row.version,
                row.cuda
            );
        }
        for framework in ["pytorch", "tensorflow", "jax", "cupy", "numba", "onnxruntime", "vllm"] {
            let rows = matrix.variants.iter().filter(|row| row.framework == framework);
            let oldest = rows.clone().min_by(|a, b| a.version.cmp(&b.version)).expect("rows");
            let newest = rows.max_by(|a, b| a.version.cmp(&b.version)).expect("rows");
            // PyTorch 1.8 links what it calls statically, the newest and every other product names wheels.
            assert!(oldest.shared.is_empty() && newest.shared.is_empty(), "{framework}");
        }
    }
}
