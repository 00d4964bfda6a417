//! Another ptxas for Triton, with NVIDIA's and Triton's own wheels: what the rows of jit.toml say, and the agent's check.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::real::{file, unpacked};

/// The wheels with ptxas of each CUDA: 12.8 lacks the GPUs that 12.9 has.
const OLD: &str = "nvidia-cuda-nvcc-cu12==12.8.93";
const PTXAS: [&str; 3] =
    ["nvidia-cuda-nvcc-cu12==12.9.86", "nvidia-cuda-nvcc==13.0.88", "nvidia-cuda-nvcc==13.4.92"];

/// The agent's check of a ptxas for GPUs.
fn checked(ptxas: &Path, gpus: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let (agent, expect) = (folder.path().join("agent"), folder.path().join("expect"));
    fs_err::write(&agent, envforge::agent::AGENT).expect("written");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs_err::set_permissions(&agent, executable).expect("mode");
    let lines = format!("ptxas=TRITON_PTXAS_PATH\nptxas-target={}\n", gpus.join("\nptxas-target="));
    fs_err::write(&expect, lines).expect("written");
    let mut command = Command::new(&agent);
    command
        .args(["check", "triton-ptxas", "--json", "--expect"])
        .arg(&expect)
        .env("TRITON_PTXAS_PATH", ptxas);
    text(&command.output().expect("the agent runs"))
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

fn ptxas(wheel: &str) -> PathBuf {
    file(&unpacked(wheel), "ptxas")
}

#[test]
#[ignore = "nightly: needs the package index: 250 MB of wheels"]
fn check_passes_with_the_ptxas_of_the_wheels_and_fails_with_an_older_one() {
    for (wheel, gpus) in PTXAS.into_iter().zip([["10.3", "12.1"], ["11.0", "12.1"], ["10.7", "12.1"]]) {
        let found = checked(&ptxas(wheel), &gpus);
        assert!(found.contains("\"outcome\":\"passed\""), "{wheel}: {found}");
    }
    let found = checked(&ptxas(OLD), &["12.1"]);
    assert!(found.contains("\"outcome\":\"failed\"") && found.contains("Value 'sm_121a'"), "{found}");
}

/// Every row with `other_ptxas`: Triton compiles for each GPU, and not with its own ptxas.
#[test]
#[ignore = "nightly: needs the package index: gigabytes of wheels"]
fn triton_compiles_with_the_ptxas_of_the_wheels() {
    let text = fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("compat/jit.toml"));
    let table: toml::Table = text.expect("there").parse().expect("TOML");
    let rows = table["jit"].as_array().expect("rows").iter();
    let mut compiled = 0;
    for row in rows.filter(|row| row.get("other_ptxas").is_some()) {
        let (triton, other) = (row["triton"].as_str().expect("a release"), &row["other_ptxas"]);
        let variable = other["variable"].as_str().expect("a name");
        let newest = other["newest_cuda_major"].as_integer().expect("a number");
        for gpu in other["gpus"].as_array().expect("GPUs").iter().filter_map(|gpu| gpu.as_str()) {
            let alone = compile(triton, gpu, variable, "/nowhere/ptxas");
            assert!(!alone.status.success(), "Triton {triton} alone compiles for {gpu}");
            let wheel = match gpu {
                "10.7" => PTXAS[2],
                _ if newest > 12 => PTXAS[1],
                _ => PTXAS[0],
            };
            let found = compile(triton, gpu, variable, &ptxas(wheel).display().to_string());
            assert!(found.status.success(), "Triton {triton} for {gpu}: {}", self::text(&found));
            compiled += 1;
        }
    }
    assert!(compiled > 6, "{compiled}");
}

/// Compiles kernels by Triton for a GPU, without one.
fn compile(triton: &str, gpu: &str, variable: &str, ptxas: &str) -> Output {
    let cache = tempfile::tempdir().expect("a folder");
    Command::new("python3")
        .arg("-B")
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/triton_compile.py"))
        .arg(gpu)
        .env("PYTHONPATH", unpacked(&format!("triton=={triton}")))
        .env("TRITON_CACHE_DIR", cache.path())
        .env(variable, ptxas)
        .output()
        .expect("python3 runs")
}
