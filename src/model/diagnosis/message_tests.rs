//! Messages as programs print them, each with its id and the words that its fix contains, and logs without an error.

use super::{Findings, findings};

const MESSAGES: &[&str] = &[
    include_str!("../../../tests/fixtures/messages/collectives.txt"),
    include_str!("../../../tests/fixtures/messages/downloads.txt"),
    include_str!("../../../tests/fixtures/messages/earlier.txt"),
    include_str!("../../../tests/fixtures/messages/extensions.txt"),
    include_str!("../../../tests/fixtures/messages/frameworks.txt"),
    include_str!("../../../tests/fixtures/messages/gpu_access.txt"),
    include_str!("../../../tests/fixtures/messages/installing.txt"),
    include_str!("../../../tests/fixtures/messages/reports.txt"),
    include_str!("../../../tests/fixtures/messages/starting.txt"),
];

/// A message of the corpus.
struct Message {
    id: &'static str,
    source: &'static str,
    cures: Vec<&'static str>,
    text: &'static str,
}

fn messages() -> Vec<Message> {
    let records =
        MESSAGES.iter().flat_map(|file| file.split("\n---\n")).filter(|record| !record.trim().is_empty());
    records.map(message).collect()
}

fn message(record: &'static str) -> Message {
    let (head, text) = record.split_once("\n\n").expect("a blank line between head and text");
    let lines = |key: &str| -> Vec<&'static str> {
        head.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(": ")).collect()
    };
    Message { id: lines("id")[0], source: lines("source")[0], cures: lines("cure"), text }
}

/// Returns the ids that messages lead to.
pub(super) fn ids_of_messages() -> impl Iterator<Item = &'static str> {
    messages().into_iter().map(|message| message.id)
}

/// Whether a text still has a place for a value.
fn has_place(words: &str) -> bool {
    words.split('{').skip(1).any(|after| {
        let name = after.trim_start_matches(|c: char| c.is_ascii_lowercase());
        name.len() < after.len() && name.starts_with(['}', '|'])
    })
}

fn ids(found: &Findings) -> Vec<&'static str> {
    found.errors.iter().map(|finding| finding.diagnosis.id).collect()
}

#[test]
fn every_message_has_its_id_and_its_values() {
    let all = messages();
    assert!(all.len() > 350, "{} messages", all.len());
    let mut wrong = Vec::new();
    for Message { id, source, cures, text } in all {
        assert!(source.starts_with("https://"), "{source}");
        let found = findings(text);
        if ids(&found).first() != Some(&id) {
            wrong.push(format!("{id} is {:?}: {text}", ids(&found)));
            continue;
        }
        let diagnosis = &found.errors[0].diagnosis;
        let all = [&diagnosis.what, &diagnosis.why, &diagnosis.cure];
        assert!(all.iter().all(|words| !has_place(words)), "`{id}` has an empty place: {diagnosis:?}");
        for cure in cures.iter().filter(|cure| !diagnosis.cure.contains(*cure)) {
            wrong.push(format!("{id} lacks `{cure}`: {}\n  of {text}", diagnosis.cure));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// The same message behind the prefixes of log drivers, launchers and loggers, in colour, wrapped and within other lines.
#[test]
fn every_message_is_known_behind_prefixes_and_wrapped() {
    let mut wrong = Vec::new();
    for Message { id, text, .. } in messages() {
        let prefixes = [
            "2026-11-27T10:00:00.123456789Z ",
            "app_container  | ",
            "[rank3]: ",
            "(EngineCore_DP0 pid=60) ERROR 11-27 10:00:00 [core.py:708] ",
            "#12 34.56 ",
            "\u{1b}[31m",
        ];
        for prefix in prefixes {
            let log = text.lines().map(|line| format!("{prefix}{line}")).collect::<Vec<_>>().join("\n");
            let log = format!("step 1 loss 2.31\n{log}\nstep 2 loss 2.29\n");
            if !ids(&findings(&log)).contains(&id) {
                wrong.push(format!("{id} behind `{prefix}` is {:?}: {text}", ids(&findings(&log))));
            }
        }
        let wrapped =
            text.split(' ').collect::<Vec<_>>().chunks(9).map(|words| words.join(" ")).collect::<Vec<_>>();
        if !ids(&findings(&wrapped.join("\n"))).contains(&id) {
            wrong.push(format!("{id} wrapped is {:?}: {text}", ids(&findings(&wrapped.join("\n")))));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn healthy_logs_have_no_error() {
    let log = include_str!("../../../tests/fixtures/messages/healthy.log");
    assert!(log.lines().count() >= 500, "{} lines", log.lines().count());
    let found = findings(log);
    let lines: Vec<_> = found.lines.iter().map(|(line, id)| (id, log.lines().nth(line - 1))).collect();
    assert!(lines.is_empty(), "{lines:#?}");
    for (at, line) in log.lines().enumerate() {
        let found = ids(&findings(&[line, "a", "b", "c", "d"].join("\n")));
        assert!(found.is_empty(), "line {}: {found:?}: {line}", at + 1);
    }
}

#[test]
fn specific_error_stands_for_a_general_one_nearby() {
    let general =
        "RuntimeError: CUDA Setup failed despite GPU being available. Please run the following command";
    let specific = "OSError: libcusparseLt.so.0: cannot open shared object file: No such file or directory";
    let far = |lines: usize| format!("{general}\n{}{specific}\n", "step 1 loss 2.1\n".repeat(lines));
    assert_eq!(ids(&findings(&far(0))), ["cuda-library-missing"]);
    assert_eq!(ids(&findings(&far(150))), ["cuda-library-missing"]);
    assert_eq!(ids(&findings(&far(300))), ["bitsandbytes-setup", "cuda-library-missing"]);
    assert_eq!(ids(&findings(general)), ["bitsandbytes-setup"]);
    let failed = "FATAL:   container creation failed: while mounting image: squashfuse_ll exited:";
    let reader = "Squashfs image uses (null) compression, this version supports only xz, zlib.";
    assert_eq!(ids(&findings(&format!("{failed}\n{reader}\n"))), ["squashfs-compression"]);
    assert_eq!(ids(&findings(failed)), ["apptainer-failed"]);
    assert_eq!(findings(&far(150)).lines.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 152]);
}

#[test]
fn specific_line_of_the_network_stands_for_what_follows_from_it() {
    let system =
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.";
    let no_device = "node0:15:15 [0] NCCL INFO NET/IB : No device found.";
    for (line, id) in [
        ("NCCL WARN Call to ibv_reg_mr failed", "nccl-memlock"),
        ("ibv_create_qp failed: check the memlock limit", "nccl-memlock"),
        ("NCCL WARN Call to ibv_reg_mr_iova2 failed with error Bad address", "nccl-gpudirect"),
        ("NCCL WARN Call to ibv_open_device failed", "nccl-infiniband-devices"),
    ] {
        for text in [format!("{line}\n{system}\n"), format!("{line}\n{no_device}\n{system}\n")] {
            let found = findings(&text);
            assert_eq!(ids(&found), [id], "{text}");
            assert!(!found.errors[0].diagnosis.cure.contains("shm"), "{found:?}");
        }
    }
    assert_eq!(ids(&findings(no_device)), ["nccl-no-infiniband"]);
}

/// A log of NCCL on a node without InfiniBand, and of other programs: what a line of the level INFO says is not why they failed.
#[test]
fn info_line_is_not_the_cause_of_an_error_after_it() {
    let no_device = "node0:15:15 [0] NCCL INFO NET/IB : No device found.";
    let no_library = "node0:15:15 [0] NCCL INFO Failed to open libibverbs.so[.1]";
    let shm = "node0:15:15 [0] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-Ab12 to 9637892 bytes";
    let system = "RuntimeError: NCCL error: unhandled system error (run with NCCL_DEBUG=INFO for details)";
    for (lines, id) in [
        (vec![no_device, shm, system], "shm-too-small"),
        (vec![no_device, system], "nccl-system-error"),
        (vec![no_library, system], "nccl-system-error"),
        (vec![no_library, no_device, system], "nccl-system-error"),
    ] {
        assert_eq!(ids(&findings(&lines.join("\n"))), [id], "{lines:?}");
    }
    let disk = "OSError: [Errno 28] No space left on device: '/data/out'";
    for info in
        ["INFO:absl:flash_attn is not installed", "INFO 11-27 10:00:00 [x.py:1] flash_attn is not installed"]
    {
        assert_eq!(ids(&findings(info)), ["flash-attention-missing"]);
        assert_eq!(ids(&findings(&format!("{info}\n{disk}\n"))), ["disk-full"]);
    }
    let apptainer =
        "INFO:    Could not find any nv files on this host!\nRuntimeError: No CUDA GPUs are available";
    assert_eq!(ids(&findings(apptainer)), ["apptainer-no-driver"]);
}

#[test]
fn first_error_comes_first() {
    let memory = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    let disk = "OSError: [Errno 28] No space left on device: '/data/out/checkpoint-500'";
    assert_eq!(ids(&findings(&format!("{memory}\n{disk}\n"))), ["gpu-memory-full", "disk-full"]);
    assert_eq!(ids(&findings(&format!("{disk}\n{memory}\n"))), ["disk-full", "gpu-memory-full"]);
}

/// An error, a line that shows a fix, and words of the fix before and after.
const TRIED: &[[&str; 4]] = &[
    [
        "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.",
        "$ docker run --rm --gpus all --ipc=host trainer python train.py",
        "--shm-size=1g",
        "num_workers=0",
    ],
    [
        "AssertionError: Torch not compiled with CUDA enabled",
        "$ envforge plan pytorch-cuda",
        "envforge plan pytorch-cuda",
        "envforge plan pytorch-cuda",
    ],
    [
        "RuntimeError: Unable to load cuSPARSE. Is it installed?",
        "+ unset LD_LIBRARY_PATH",
        "unset LD_LIBRARY_PATH",
        "jax-cuda",
    ],
    [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.",
        "$ python train.py --per_device_train_batch_size 1 --bf16",
        "batch size",
        "expandable_segments",
    ],
    [
        "NCCL WARN Call to ibv_reg_mr failed",
        "docker run --ulimit memlock=-1 --gpus all image",
        "--ulimit memlock",
        "limits.conf",
    ],
    [
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "$ sudo usermod -aG docker alice",
        "usermod -aG docker",
        "newgrp",
    ],
];

#[test]
fn fix_that_was_tried_is_not_given_again() {
    for [error, shown, first, next] in TRIED {
        let fix = |text: &str| findings(text).errors[0].clone();
        let (plain, after) = (fix(error), fix(&format!("{shown}\n{error}\n")));
        assert!(plain.diagnosis.cure.contains(first) && !plain.has_tried, "{plain:?}");
        assert!(after.diagnosis.cure.contains(next), "{after:?}");
        assert_eq!(after.has_tried, first != next, "{after:?}");
    }
    let all = "export LD_LIBRARY_PATH=/x\nbatch_size=1 \n$ export PYTORCH_CUDA_ALLOC_CONF=x\nCUDA out of memory. Tried to allocate 1 GiB";
    assert!(findings(all).errors[0].diagnosis.cure.contains("lower precision"), "{:?}", findings(all));
}

#[test]
fn values_of_a_text_are_in_its_commands() {
    for (text, command) in [
        (
            "ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'\ntriton.PTXASError",
            "--gpu sm_121`",
        ),
        (
            "ERROR: No matching distribution found for torch==2.7.0+cu128",
            "envforge plan pytorch-cuda:2.7.0-cu128`",
        ),
        ("libcudart.so.12: cannot open shared object file", "`nvidia-cuda-runtime-cu12`"),
        ("libcudart.so.13: cannot open shared object file", "`nvidia-cuda-runtime`"),
        (
            "Installed CUDA version 12.2 does not match the version torch was compiled with 11.7, unable",
            "envforge list pytorch-cuda --cuda cu117`",
        ),
        (
            "NVIDIA GeForce RTX 5080 with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
            "envforge plan pytorch-cuda --gpu sm_120`",
        ),
        (
            "PyTorch 2.6.0+cu124 (you have 2.7.0+cu128)\nImportError: /x/site-packages/spam_ext/_C.so: undefined symbol: _ZN3c105ErrorC2E",
            "envforge plan pytorch-cuda:2.7.0-cu128 --with spam-ext`",
        ),
    ] {
        let found = findings(text);
        assert!(
            found.errors.iter().any(|finding| finding.diagnosis.cure.contains(command)),
            "`{command}`: {found:?}"
        );
    }
}

/// A hint of a program, an error, and words of its first fix; and the same measure as a command, after which the fix is another.
const SUGGESTED: &[[&str; 4]] = &[
    [
        "E: Unable to fetch some archives, maybe run apt-get update or try with --fix-missing?",
        "E: Unable to locate package libgl1-mesa-glx",
        "run `apt-get update`",
        "#7 [2/5] RUN apt-get update && apt-get install -y libgl1-mesa-glx",
    ],
    [
        "repository does not exist or may require 'docker login'",
        "Error response from daemon: pull access denied for team/trainer, repository does not exist",
        "log in with",
        "alice@gpu-1:~$ docker login",
    ],
    [
        "NVIDIA recommends the use of the following flags:\n   docker run --gpus all --ipc=host --ulimit memlock=-1 ...",
        "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.",
        "--shm-size=1g",
        "+ docker run --gpus all --ipc=host --ulimit memlock=-1 trainer",
    ],
    [
        "Please run `sudo usermod -aG docker $USER` and log in again",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "usermod -aG docker",
        "Step 4/9 : RUN usermod -aG docker alice",
    ],
];

#[test]
fn hint_of_a_program_is_not_an_attempt() {
    for [hint, error, first, command] in SUGGESTED {
        let fix = |shown: &str| findings(&format!("{shown}\n{error}\n")).errors.pop().expect("known");
        let (hinted, done) = (fix(hint), fix(command));
        assert!(hinted.diagnosis.cure.contains(first) && !hinted.has_tried, "{hint}: {hinted:?}");
        assert!(done.has_tried, "{command}: {done:?}");
    }
}

/// PyTorch's warning of a GPU outside its range, in a log that goes on.
fn range_warning(own: &str, range: &str) -> String {
    [
        "/x/site-packages/torch/cuda/__init__.py:283: UserWarning:",
        &format!("    Found GPU0 NVIDIA GB10 which is of cuda capability {own}."),
        "    Minimum and Maximum cuda capability supported by this version of PyTorch is",
        &format!("    {range}"),
        "  warnings.warn(",
        "step 1 loss 2.31",
        "step 2 loss 2.29",
        "",
    ]
    .join("\n")
}

#[test]
fn gpu_beyond_the_range_is_an_error_only_where_its_code_cannot_run() {
    let minor = range_warning("12.1", "(8.0) - (12.0)");
    assert!(findings(&minor).errors.is_empty(), "{:?}", findings(&minor));
    for (own, range) in [("12.0", "(5.0) - (9.0)"), ("6.1", "(7.5) - (12.0)"), ("10.3", "(11.0) - (12.0)")] {
        assert_eq!(ids(&findings(&range_warning(own, range))), ["no-code-for-gpu"], "{own} {range}");
    }
    let failed = "RuntimeError: CUDA error: no kernel image is available for execution on the device";
    let found = findings(&format!("{minor}{failed}\n"));
    assert_eq!(ids(&found), ["no-code-for-gpu"]);
    assert!(found.errors[0].diagnosis.cure.contains("--gpu sm_121`"), "{found:?}");
}

#[test]
fn warning_of_tensorflow_is_not_the_cause_of_a_failure_far_below() {
    let warning = "W0000 00:00:1753232013.685876 24341 gpu_device.cc:2431] TensorFlow was not built with CUDA kernel binaries \
                   compatible with compute capability 12.0. CUDA kernels will be jit-compiled from PTX";
    let steps = "step 1 loss 2.1\n".repeat(300);
    assert!(findings(&format!("{warning}\n{steps}")).errors.is_empty());
    let failed = "tensorflow.python.framework.errors_impl.InternalError: 'cuLaunchKernel(function, params, nullptr)' \
                  failed with 'CUDA_ERROR_INVALID_HANDLE'";
    let found = findings(&format!("{warning}\n{steps}{failed}\n"));
    assert_eq!(ids(&found), ["no-code-for-gpu"]);
    assert!(
        found.errors[0].diagnosis.cure.contains("envforge plan tensorflow-cuda --gpu sm_120`"),
        "{found:?}"
    );
    let disk = "OSError: [Errno 28] No space left on device: '/data/out'";
    assert_eq!(ids(&findings(&format!("{warning}\n{steps}{disk}\n"))), ["disk-full"]);
}

#[test]
fn names_of_a_text_are_libraries_and_addresses() {
    for (text, name) in [
        (
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9.1, libcudnn_ops.so.9, libcudnn_ops.so}",
            "not found: libcudnn_ops.so.9.1.0:",
        ),
        (
            "Could not load library libcudnn_ops_infer.so.8. Error: libcudnn_ops_infer.so.8: cannot open shared object file",
            "not found: libcudnn_ops_infer.so.8:",
        ),
        ("Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor", "cuDNN 9 library not found:"),
        ("RuntimeError: Unable to load CUDA. Is it installed?", "(libcudart, the CUDA runtime)"),
        ("RuntimeError: Unable to load cuSPARSE. Is it installed?", "(cuSPARSE)"),
        (
            "NCCL WARN socketStartConnect: Connect to 172.17.0.2<43210> failed : Connection refused",
            "(172.17.0.2:43210)",
        ),
        (
            "The NVIDIA driver on your system is too old (found version 12020).",
            "the CUDA 12.2 of this driver",
        ),
        ("ssh: connect to host localhost port 2222: Connection refused", "answers at localhost:"),
    ] {
        let known = findings(text).errors[0].diagnosis.clone();
        let words = format!("{}: {}", known.what, known.why);
        assert!(words.contains(name), "`{name}`: {words}");
    }
}

#[test]
fn driver_that_a_text_names_is_there() {
    let known = |text: &str| findings(text).errors[0].diagnosis.clone();
    let named = known("The NVIDIA driver on your system is too old (found version 12020).");
    assert!(!named.why.contains("without a GPU") && !named.cure.contains("with a GPU first"), "{named:?}");
    let newest = known("The NVIDIA driver on your system is too old (found version 19070).");
    assert!(newest.cure.contains("--driver VERSION`"), "{newest:?}");
    let other = known("CUDA driver version is insufficient for CUDA runtime version");
    assert!(other.why.contains("without a GPU") && other.cure.contains("with a GPU first"), "{other:?}");
}

#[test]
fn extension_without_a_known_package_is_not_one() {
    let cure = |name: &str| {
        findings(&format!("RuntimeError: Error building extension '{name}'")).errors[0].diagnosis.cure.clone()
    };
    for (name, package) in [
        ("cpu_adam", "deepspeed"),
        ("utils", "deepspeed"),
        ("gsplat_cuda", "gsplat"),
        ("flash_attn_2_cuda", "flash-attn"),
    ] {
        assert!(cure(name).contains(&format!("--with {package}`")), "{name}: {}", cure(name));
    }
    for name in ["my_kernels", "upfirdn2d_plugin"] {
        assert!(!cure(name).contains("--with"), "{name}: {}", cure(name));
    }
}
