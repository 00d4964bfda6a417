//! The facts of `nvml` from `nvidia-smi`, for a program that cannot load NVML.
#![expect(clippy::disallowed_methods, reason = "runs nvidia-smi and waits for it")]

use std::io::Read as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::child_process::child;
use super::facts::{GpuError, HostFacts, HostGpu};

const QUERY: [&str; 2] =
    ["--query-gpu=driver_version,name,compute_cap,memory.total", "--format=csv,noheader,nounits"];

/// Runs nvidia-smi; without it there is no driver.
pub(super) fn ask(limit: Duration) -> Result<HostFacts, GpuError> {
    let text = run_with_timeout("nvidia-smi", &QUERY, limit)?;
    read(&text).ok_or(GpuError::NoDriver)
}

/// Runs a program and returns its output, if it exists and ends in time.
pub(super) fn run_with_timeout(
    program: &str,
    arguments: &[&str],
    limit: Duration,
) -> Result<String, GpuError> {
    let started = child(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = started.map_err(|_| GpuError::NoDriver)?;
    let end = Instant::now() + limit;
    loop {
        match child.try_wait() {
            Ok(Some(_)) => break,
            Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(GpuError::Silent { seconds: limit.as_secs() });
            }
        }
    }
    let mut text = String::new();
    if let Some(mut pipe) = child.stdout.take() {
        let _ = pipe.read_to_string(&mut text);
    }
    Ok(text)
}

/// Parses one line per GPU: `570.86.15, NVIDIA H200, 9.0, 143771`. Skips other lines.
fn read(text: &str) -> Option<HostFacts> {
    let mut facts: Option<HostFacts> = None;
    for line in text.lines() {
        let parts: Vec<_> = line.split(',').map(str::trim).collect();
        let [driver, name, capability, memory] = parts[..] else { continue };
        let (Ok(driver), Ok(compute_capability)) = (driver.parse(), capability.parse()) else { continue };
        let memory = memory.parse::<u64>().ok().map(|mebibytes| mebibytes << 20);
        let gpu = HostGpu::plain(name.to_owned(), compute_capability, memory);
        let facts = facts.get_or_insert_with(|| HostFacts {
            driver,
            cuda: None,
            gpus: Vec::new(),
            troubled: Vec::new(),
            pairs: Vec::new(),
        });
        facts.gpus.push(gpu);
    }
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_parses_one_gpu_per_line() {
        let text = "570.86.15, NVIDIA H200, 9.0, 143771\n570.86.15, Tesla T4, 7.5, [N/A]\n";
        let facts = read(text).expect("GPUs");
        assert_eq!(facts.driver.to_string(), "570.86.15");
        let names: Vec<_> = facts.gpus.iter().map(|gpu| gpu.name.as_str()).collect();
        assert_eq!(names, ["NVIDIA H200", "Tesla T4"]);
        assert_eq!(facts.gpus[0].memory, Some(143_771 << 20));
        assert_eq!(facts.gpus[1].memory, None);
        for other in
            ["", "No devices were found\n", "NVIDIA-SMI has failed because it couldn't communicate\n"]
        {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn a_program_that_hangs_is_ended() {
        let began = Instant::now();
        let answer = run_with_timeout("sleep", &["30"], Duration::from_millis(200));
        assert!(matches!(answer, Err(GpuError::Silent { .. })), "{answer:?}");
        assert!(began.elapsed() < Duration::from_secs(10));
        assert_eq!(
            run_with_timeout("no-such-program-envforge", &[], Duration::from_secs(1)),
            Err(GpuError::NoDriver)
        );
    }
}
