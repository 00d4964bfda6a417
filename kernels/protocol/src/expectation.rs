//! The expectation file: the facts of a lock as `key=value` lines, written by envforge and parsed by the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::named::named;

/// A compute capability: major and minor.
pub type Capability = (u32, u32);

named! {
    /// A key of the file.
    Key {
        /// The framework's Python module.
        Framework = "framework",
        /// The version that the framework reports.
        Version = "version",
        /// The CUDA version: major and minor.
        Cuda = "cuda",
        /// The Python version.
        Python = "python",
        /// The cuDNN version.
        Cudnn = "cudnn",
        /// The NCCL version.
        Nccl = "nccl",
        /// The Triton version.
        Triton = "triton",
        /// `yes`: the base image has a CUDA of its own.
        BaseCuda = "base-cuda",
        /// `yes`: login shells keep the image's PATH.
        LoginPath = "login-path",
        /// `yes`: the image has the libraries for InfiniBand and RoCE.
        Rdma = "rdma",
        /// Repeated: a GPU that the framework's binary has machine code for.
        Arch = "arch",
        /// Repeated: a GPU that the framework's binary has PTX for.
        Ptx = "ptx",
        /// Repeated: a GPU that the image is meant for; none: any of `arch`.
        Target = "target",
        /// The CUDA version of nvcc.
        Nvcc = "nvcc",
        /// Repeated: a GPU that nvcc must compile for.
        NvccTarget = "nvcc-target",
        /// The variable from which Triton reads the path of another ptxas.
        Ptxas = "ptxas",
        /// Repeated: a GPU that this ptxas must compile for.
        PtxasTarget = "ptxas-target",
        /// Repeated: `name==version` of a Python package.
        Distribution = "distribution",
        /// Repeated: a library that may be missing.
        MayLack = "may-lack",
    }
}

named! {
    /// The origin of an expected speed.
    SpeedSource {
        /// The GPU model's peak.
        Peak = "peak",
        /// An earlier measurement on the same host.
        Recorded = "recorded",
    }
}

named! {
    /// A speed: TFLOP/s of a precision (int8: TOP/s) or of a convolution, GB/s of the others.
    Speed {
        /// Double precision.
        Fp64 = "fp64",
        /// Single precision.
        Fp32 = "fp32",
        /// `TensorFloat-32`.
        Tf32 = "tf32",
        /// Half precision.
        Fp16 = "fp16",
        /// bfloat16.
        Bf16 = "bf16",
        /// 8-bit floating point.
        Fp8 = "fp8",
        /// 8-bit integers.
        Int8 = "int8",
        /// A convolution.
        Conv = "conv",
        /// Bytes read and written in GPU memory.
        Memory = "memory",
        /// Copies to the GPU.
        HostToDevice = "host-to-device",
        /// Copies from the GPU.
        DeviceToHost = "device-to-host",
        /// Bus bandwidth of an all-reduce, as nccl-tests counts it.
        Bus = "bus",
    }
}

/// The lines of an expectation file, as envforge writes them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpectationText(String);

impl ExpectationText {
    /// Adds a line.
    pub fn add(&mut self, key: Key, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "{key}={value}");
    }

    /// Adds a Python package.
    pub fn add_distribution(&mut self, name: &str, version: impl std::fmt::Display) {
        self.add(Key::Distribution, format_args!("{name}=={version}"));
    }

    /// Adds an expected speed.
    pub fn add_speed(&mut self, source: SpeedSource, speed: Speed, value: f64) {
        let _ = writeln!(self.0, "{source}.{speed}={value}");
    }

    /// Returns the text.
    pub fn into_string(self) -> String {
        self.0
    }
}

/// Facts that must be true of the image, as the agent parses them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Expectation {
    // Lists, not maps: each kind of map adds kilobytes to the agent.
    values: Vec<(Key, String)>,
    /// GPUs that the framework's binary has machine code for.
    pub arch: BTreeSet<String>,
    /// GPUs that the image is meant for; empty: any of `arch`.
    pub target: BTreeSet<String>,
    /// GPUs that the framework's binary has PTX for.
    pub ptx: BTreeSet<String>,
    /// GPUs that nvcc must compile for.
    pub nvcc_targets: BTreeSet<String>,
    /// GPUs that Triton's other ptxas must compile for.
    pub ptxas_targets: BTreeSet<String>,
    /// Versions of Python packages.
    pub distributions: BTreeMap<String, String>,
    /// Libraries that may be missing.
    pub may_lack: BTreeSet<String>,
    speeds: Vec<((SpeedSource, Speed), f64)>,
}

/// A line that is not valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpectationError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The problem.
    pub problem: &'static str,
    /// The line.
    pub text: String,
}

impl std::error::Error for ExpectationError {}

impl std::fmt::Display for ExpectationError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}: `{}`", self.line, self.problem, self.text)
    }
}

impl Expectation {
    /// Parses the lines. An unknown key is an error, because a skipped line would be a skipped check.
    pub fn parse(text: &str) -> Result<Self, ExpectationError> {
        let mut all = Self::default();
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            all.add(line).map_err(|problem| ExpectationError {
                line: at + 1,
                problem,
                text: line.to_owned(),
            })?;
        }
        Ok(all)
    }

    fn add(&mut self, line: &str) -> Result<(), &'static str> {
        let (name, value) = line.split_once('=').ok_or("not `key=value`")?;
        let Some(key) = Key::parse(name) else {
            let key = speed_key(name).ok_or("unknown key")?;
            let speed = value.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
            self.speeds.push((key, speed.ok_or("not a number above 0")?));
            return Ok(());
        };
        match key {
            Key::Distribution => {
                let (name, version) = value.split_once("==").ok_or("not `name==version`")?;
                self.distributions.insert(name.to_owned(), version.to_owned());
            }
            Key::Arch => drop(self.arch.insert(value.to_owned())),
            Key::Ptx => drop(self.ptx.insert(value.to_owned())),
            Key::Target => drop(self.target.insert(value.to_owned())),
            Key::NvccTarget => drop(self.nvcc_targets.insert(value.to_owned())),
            Key::PtxasTarget => drop(self.ptxas_targets.insert(value.to_owned())),
            Key::MayLack => drop(self.may_lack.insert(value.to_owned())),
            Key::Framework
            | Key::Version
            | Key::Cuda
            | Key::Python
            | Key::Cudnn
            | Key::Nccl
            | Key::Triton
            | Key::BaseCuda
            | Key::LoginPath
            | Key::Rdma
            | Key::Nvcc
            | Key::Ptxas => self.values.push((key, value.to_owned())),
        }
        Ok(())
    }

    /// Returns an expected speed.
    pub fn expected_speed(&self, source: SpeedSource, speed: Speed) -> Option<f64> {
        // The last line of a key counts.
        self.speeds.iter().rfind(|(key, _)| *key == (source, speed)).map(|(_, value)| *value)
    }

    /// Returns the value of a key that is not repeated.
    pub fn value(&self, key: Key) -> Option<&str> {
        self.values.iter().rfind(|(known, _)| *known == key).map(|(_, value)| value.as_str())
    }

    /// Returns the version of NVIDIA's wheel of that name, which has a suffix up to CUDA 12: `cublas` is
    /// `nvidia-cublas-cu12`.
    pub fn nvidia(&self, name: &str) -> Option<&str> {
        let names = ["", "-cu13", "-cu12", "-cu11"].map(|suffix| format!("nvidia-{name}{suffix}"));
        names.iter().find_map(|name| self.distributions.get(name)).map(String::as_str)
    }

    /// Returns the compute capabilities of `arch`, `ptx` or `target`.
    pub fn chips(&self, key: Key) -> BTreeSet<Capability> {
        let values = match key {
            Key::Arch => &self.arch,
            Key::Ptx => &self.ptx,
            Key::Target => &self.target,
            Key::NvccTarget => &self.nvcc_targets,
            Key::PtxasTarget => &self.ptxas_targets,
            _ => return BTreeSet::new(),
        };
        let chip = |text: &String| {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        values.iter().filter_map(chip).collect()
    }
}

/// Parses `peak.bf16`.
fn speed_key(key: &str) -> Option<(SpeedSource, Speed)> {
    let (source, speed) = key.split_once('.')?;
    Some((SpeedSource::parse(source)?, Speed::parse(speed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_reads_lines_and_rejects_unknown_keys() {
        let text = "framework=torch\nversion=2.8.0+cu128\narch=7.0\narch=9.0\ntarget=9.0\ndistribution=torch==2.8.0\ndistribution=nvidia-cublas-cu12==12.8.4.1\n";
        let all = Expectation::parse(text).expect("reads");
        assert_eq!(all.value(Key::Version), Some("2.8.0+cu128"));
        assert_eq!(all.value(Key::Nccl), None);
        assert_eq!(all.arch.len(), 2);
        assert_eq!(all.chips(Key::Arch), BTreeSet::from([(7, 0), (9, 0)]));
        assert_eq!(all.chips(Key::Target), BTreeSet::from([(9, 0)]));
        assert_eq!(all.distributions["torch"], "2.8.0");
        assert_eq!((all.nvidia("cublas"), all.nvidia("cudnn")), (Some("12.8.4.1"), None));
        assert!(
            Expectation::parse("may-lack=libtbb.so.12").expect("reads").may_lack.contains("libtbb.so.12")
        );
        let error = Expectation::parse("\ncolour=red").expect_err("unknown");
        assert_eq!(error.to_string(), "line 2: unknown key: `colour=red`");
        for wrong in ["distribution=torch", "framework", "peak.bf16=fast", "peak.bf16=-1", "peak.colour=1"] {
            assert!(Expectation::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_key_is_written_and_parsed() {
        let mut text = ExpectationText::default();
        for key in Key::ALL {
            match key {
                Key::Distribution => text.add_distribution("torch", "2.8.0"),
                Key::Arch | Key::Ptx | Key::Target | Key::NvccTarget | Key::PtxasTarget => {
                    text.add(*key, "9.0");
                }
                _ => text.add(*key, key.as_str()),
            }
        }
        for source in SpeedSource::ALL {
            for speed in Speed::ALL {
                text.add_speed(*source, *speed, 4300.5);
            }
        }
        let text = text.into_string();
        assert_eq!(text.lines().count(), Key::ALL.len() + SpeedSource::ALL.len() * Speed::ALL.len());
        let all = Expectation::parse(&text).expect("reads");
        for key in Key::ALL {
            let found = match key {
                Key::Distribution => all.distributions["torch"] == "2.8.0",
                Key::Arch | Key::Ptx | Key::Target | Key::NvccTarget | Key::PtxasTarget => {
                    all.chips(*key) == [(9, 0)].into()
                }
                Key::MayLack => all.may_lack.contains("may-lack"),
                _ => all.value(*key) == Some(key.as_str()),
            };
            assert!(found, "{key}");
        }
        assert_eq!(all.expected_speed(SpeedSource::Peak, Speed::Bus), Some(4300.5));
        assert_eq!(Expectation::default().expected_speed(SpeedSource::Peak, Speed::Bus), None);
    }
}
