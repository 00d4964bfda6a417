//! Fixes that a text shows were tried already.

use super::log::Log;
use super::pattern::Pattern;

/// Words of a fix, and what a text contains when that was done: parts in order on one line.
const MEASURES: &[(&str, &[&[&str]])] = &[
    (
        "--shm-size",
        &[
            &["~docker run", "--shm-size"],
            &["~docker run", "--ipc=host"],
            &["~docker run", "--ipc host"],
            &["~podman run", "--shm-size"],
            &["~podman run", "--ipc=host"],
            &["^shm_size:"],
            &["^ipc: host"],
            &["~docker compose", "--shm-size"],
            &["'IpcMode': 'host'"],
            &["^medium: Memory"],
        ],
    ),
    ("--ipc=host", &[&["~docker run", "--ipc=host"], &["~podman run", "--ipc=host"], &["^ipc: host"]]),
    (
        "install --force-reinstall",
        &[&["pip* install", "--force-reinstall"], &["pip* install", "--no-cache-dir"], &["pip uninstall"]],
    ),
    (
        "unset LD_LIBRARY_PATH",
        &[&["unset LD_LIBRARY_PATH"], &["^+ LD_LIBRARY_PATH= "], &["env -u LD_LIBRARY_PATH"]],
    ),
    (
        "on LD_LIBRARY_PATH",
        &[
            &["export LD_LIBRARY_PATH="],
            &["-e LD_LIBRARY_PATH="],
            &["^LD_LIBRARY_PATH=/"],
            &["ENV LD_LIBRARY_PATH"],
        ],
    ),
    (
        "--gpus all",
        &[
            &["~docker run", "--gpus"],
            &["~podman run", "--gpus"],
            &["--device nvidia.com/gpu"],
            &["^gpus: all"],
        ],
    ),
    ("`docker login`", &[&["docker login"], &["Login Succeeded"]]),
    (
        "PYTORCH_CUDA_ALLOC_CONF",
        &[
            &["export PYTORCH_CUDA_ALLOC_CONF="],
            &["^PYTORCH_CUDA_ALLOC_CONF="],
            &["-e PYTORCH_CUDA_ALLOC_CONF="],
        ],
    ),
    ("ulimit -l", &[&["--ulimit memlock"], &["^ulimit -l unlimited"], &["$ ulimit -l unlimited"]]),
    ("--ulimit memlock", &[&["--ulimit memlock"], &["^memlock: -1"]]),
    (
        "--device /dev/infiniband",
        &[&["--device /dev/infiniband"], &["--device=/dev/infiniband"], &["/dev/infiniband:/dev/infiniband"]],
    ),
    ("NCCL_SOCKET_IFNAME", &[&["NCCL_SOCKET_IFNAME=*"], &["NCCL_SOCKET_IFNAME set"]]),
    ("NCCL_IB_DISABLE", &[&["NCCL_IB_DISABLE=1"], &["NCCL_IB_DISABLE set by environment to 1"]]),
    ("NCCL_P2P_DISABLE", &[&["NCCL_P2P_DISABLE=1"], &["NCCL_P2P_DISABLE set by environment to 1"]]),
    ("CUDA_LAUNCH_BLOCKING=1", &[&["export CUDA_LAUNCH_BLOCKING=1"], &["^CUDA_LAUNCH_BLOCKING=1"]]),
    (
        "TORCH_CUDA_ARCH_LIST",
        &[&["export TORCH_CUDA_ARCH_LIST="], &["^TORCH_CUDA_ARCH_LIST="], &["ENV TORCH_CUDA_ARCH_LIST"]],
    ),
    ("TRITON_PTXAS_PATH", &[&["unset TRITON_PTXAS_PATH"], &["export TRITON_PTXAS_PATH="]]),
    (
        "SSL_CERT_FILE",
        &[&["export SSL_CERT_FILE="], &["^SSL_CERT_FILE="], &["export REQUESTS_CA_BUNDLE="], &["--cert /"]],
    ),
    ("--trusted-host", &[&["pip* install", "--trusted-host"]]),
    (
        "HTTPS_PROXY",
        &[
            &["export HTTPS_PROXY="],
            &["export https_proxy="],
            &["ENV HTTPS_PROXY"],
            &["--build-arg HTTPS_PROXY"],
        ],
    ),
    ("systemctl restart docker", &[&["systemctl restart docker"], &["service docker restart"]]),
    ("nvidia-ctk runtime configure", &[&["nvidia-ctk runtime configure"]]),
    ("nvidia-ctk cdi generate", &[&["nvidia-ctk cdi generate"]]),
    (
        "apt-get update",
        &[&["apt-get update"], &["apt update"], &["^Get:*", "InRelease"], &["^Hit:*", "InRelease"]],
    ),
    ("--break-system-packages", &[&["pip* install", "--break-system-packages"]]),
    ("gpu_memory_utilization", &[&["--gpu-memory-utilization *"], &["gpu_memory_utilization=0"]]),
    ("--enforce-eager", &[&["--enforce-eager"], &["enforce_eager=True"]]),
    (
        "batch size",
        &[
            &["--batch-size 1 "],
            &["batch_size=1 "],
            &["batch_size: 1 "],
            &["--per_device_train_batch_size 1 "],
        ],
    ),
    ("docker system prune", &[&["docker system prune"], &["Total reclaimed space"]]),
    ("`envforge prune", &[&["$ envforge prune"]]),
    ("--platform linux/", &[&["~docker *", "--platform linux/"], &["--platform=linux/"]]),
    ("usermod -aG docker", &[&["usermod -aG docker"]]),
    ("--nv`", &[]),
    ("nvidia-modprobe", &[&["nvidia-modprobe -u"]]),
    ("wsl --update", &[&["wsl --update"], &["wsl.exe --update"]]),
    ("numpy<2", &[&["install", "numpy<2"], &["install", "numpy==1."]]),
    ("attn_implementation", &[&["attn_implementation='sdpa'"], &["attn_implementation='eager'"]]),
    ("python3-dev", &[&["install", "python3-dev"], &["install", "python3*-dev"]]),
    ("build-essential", &[&["install", "build-essential"], &["install -y gcc"]]),
    ("--no-build-isolation", &[&["install", "--no-build-isolation"]]),
    ("reboot", &[&["$ sudo reboot"], &["systemd-shutdown["], &["$ reboot"]]),
];

/// Whether a text shows that a fix was tried.
pub(super) fn is_tried(cure: &str, log: &Log) -> bool {
    let mut measures = MEASURES.iter().filter(|(words, _)| cure.contains(words));
    measures.any(|(_, marks)| marks.iter().any(|parts| is_on_a_line(parts, log)))
}

/// Whether a line contains the parts, and what it says was done rather than suggested.
fn is_on_a_line(parts: &[&'static str], log: &Log) -> bool {
    let pattern = Pattern::new(parts);
    let head = pattern.head().to_owned();
    let mut places = log.lower().match_indices(head.as_str());
    places.any(|(at, _)| pattern.line_at(log, at) && is_done(log, at))
}

/// Words of a program that suggests something.
const SUGGESTS: &[&str] = &[
    "maybe",
    "may",
    "might",
    "try",
    "should",
    "please",
    "consider",
    "recommend",
    "recommends",
    "recommended",
    "suggest",
    "suggested",
    "hint",
    "need",
    "must",
    "you",
    "following",
];

/// The bytes of a line that are looked at on each side of a command.
const NEAR: usize = 512;

/// Words before a command that is suggested.
const BEFORE_A_COMMAND: &[&str] = &["run", "Run", "use", "Use", "using", "via", "or"];

/// Whether the text at a place is a command that ran or a setting, not the hint of a program.
fn is_done(log: &Log, place: usize) -> bool {
    let number = log.line_of(place);
    let (start, end) = log.line(number);
    let text = log.text();
    // A line may be as long as the text, and have the place a million times.
    let start = text.ceil_char_boundary(start.max(place.saturating_sub(NEAR)));
    let end = text.floor_char_boundary(end.min(place + NEAR));
    let (before, line) = (&text[start..place], &text[start..end]);
    if is_after_a_prompt(before) {
        return true;
    }
    let is_command = text[place..].starts_with(|c: char| c.is_ascii_alphabetic());
    let word = before.split_whitespace().next_back().unwrap_or_default();
    let is_named = before.ends_with('\'') || is_command && BEFORE_A_COMMAND.contains(&word);
    let introduction = number.checked_sub(1).map_or("", |number| {
        let (start, end) = log.line(number);
        text[text.ceil_char_boundary(start.max(end.saturating_sub(NEAR)))..end].trim_end()
    });
    let is_introduced = introduction.ends_with(':') && suggests(introduction);
    !is_named && !is_introduced && !suggests(line)
}

/// Whether a text before a command ends in a prompt of a shell, or is a step of a Dockerfile.
fn is_after_a_prompt(before: &str) -> bool {
    let mut words = before.split_whitespace();
    let is_prompt = |word: &str| word.ends_with('$') || word.len() > 1 && word.ends_with('#');
    before.starts_with("+ ")
        || before.starts_with("++ ")
        || words.any(|word| word == "RUN" || is_prompt(word))
}

fn suggests(line: &str) -> bool {
    let lower = line.to_ascii_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| SUGGESTS.contains(&word))
}
