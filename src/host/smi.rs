//! The facts of `nvml` from `nvidia-smi`, for a program that cannot load NVML.

use std::io::ErrorKind;
use std::time::Duration;

use super::child_process::{Bounds, child, run_within};
use super::facts::{GpuError, HostFacts, HostGpu};

const QUERY: [&str; 2] =
    ["--query-gpu=driver_version,name,compute_cap,memory.total", "--format=csv,noheader,nounits"];
/// Bytes of an answer: a line for each GPU.
const MOST: u64 = 1 << 20;

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
    let bounds = Bounds { time: limit, output: MOST };
    match run_within(child(program).args(arguments), bounds) {
        Ok(output) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            Err(GpuError::Silent { seconds: limit.as_secs() })
        }
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            Err(GpuError::Driver { cause: format!("`{program}`: {error}") })
        }
        Err(_) => Err(GpuError::NoDriver),
    }
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
    fn program_that_hangs_or_floods_is_ended() {
        let answer = run_with_timeout("sleep", &["30"], Duration::from_millis(200));
        assert!(matches!(answer, Err(GpuError::Silent { .. })), "{answer:?}");
        let minute = Duration::from_mins(1);
        let answer = run_with_timeout("cat", &["/dev/zero"], minute);
        assert!(matches!(&answer, Err(GpuError::Driver { cause }) if cause.contains("`cat`")), "{answer:?}");
        let answer = run_with_timeout("head", &["-c", "200000", "/dev/zero"], minute);
        assert_eq!(answer.map(|text| text.len()), Ok(200_000), "more than a pipe holds");
        assert_eq!(run_with_timeout("no-such-program-envforge", &[], minute), Err(GpuError::NoDriver));
    }
}
