//! What the lock promises, as `key=value` lines.

use std::collections::{BTreeMap, BTreeSet};

use super::kernels::Capability;

/// What must be true of the image.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Expectation {
    values: BTreeMap<String, String>,
    pub(crate) arch: BTreeSet<String>,
    /// The GPUs it is meant for; empty: any of `arch`.
    pub(crate) target: BTreeSet<String>,
    pub(crate) ptx: BTreeSet<String>,
    /// What nvcc must be able to compile for.
    pub(crate) nvcc_targets: BTreeSet<String>,
    pub(crate) distributions: BTreeMap<String, String>,
    /// Libraries that the project says its packages work without.
    pub(crate) may_lack: BTreeSet<String>,
    /// What speeds are due, by `peak.KEY` and `recorded.KEY`.
    figures: BTreeMap<String, f64>,
}

/// What `peak.` and `recorded.` may be of: TFLOP/s (int8: TOP/s) of the precisions and of a convolution, GB/s of the rest.
const FIGURES: [&str; 12] = [
    "fp64",
    "fp32",
    "tf32",
    "fp16",
    "bf16",
    "fp8",
    "int8",
    "conv",
    "memory",
    "host-to-device",
    "device-to-host",
    "bus",
];

impl Expectation {
    /// Reads the lines; an unknown key is an error, since a promise must not go unchecked.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let fault = |what: &str| format!("line {}: {what}: `{line}`", number + 1);
            let (key, value) = line.split_once('=').ok_or_else(|| fault("not `key=value`"))?;
            match key {
                "framework" | "version" | "cuda" | "cudnn" | "nccl" | "triton" | "python" | "base-cuda"
                | "nvcc" => {
                    all.values.insert(key.to_owned(), value.to_owned());
                }
                "arch" => drop(all.arch.insert(value.to_owned())),
                "target" => drop(all.target.insert(value.to_owned())),
                "nvcc-target" => drop(all.nvcc_targets.insert(value.to_owned())),
                "may-lack" => drop(all.may_lack.insert(value.to_owned())),
                "ptx" => drop(all.ptx.insert(value.to_owned())),
                "distribution" => {
                    let (name, version) =
                        value.split_once("==").ok_or_else(|| fault("not `name==version`"))?;
                    all.distributions.insert(name.to_owned(), version.to_owned());
                }
                _ if is_figure(key) => {
                    let figure =
                        value.parse().ok().filter(|figure: &f64| figure.is_finite() && *figure > 0.0);
                    all.figures.insert(key.to_owned(), figure.ok_or_else(|| fault("not a figure above 0"))?);
                }
                _ => return Err(fault("unknown key")),
            }
        }
        Ok(all)
    }

    /// A speed that is due: `peak.bf16`, `recorded.memory`.
    pub(crate) fn figure(&self, key: &str) -> Option<f64> {
        self.figures.get(key).copied()
    }

    /// A single value, if the stack has it.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }

    /// The version of NVIDIA's wheel of that name, which has a suffix up to CUDA 12: `cublas` is `nvidia-cublas-cu12`.
    pub(crate) fn nvidia(&self, name: &str) -> Option<&str> {
        let names = ["", "-cu13", "-cu12", "-cu11"].map(|suffix| format!("nvidia-{name}{suffix}"));
        names.iter().find_map(|name| self.distributions.get(name)).map(String::as_str)
    }

    /// The compute capabilities of a repeated key: `arch`, `ptx` or `target`.
    pub(crate) fn chips(&self, key: &str) -> BTreeSet<Capability> {
        let lines = match key {
            "target" => &self.target,
            "ptx" => &self.ptx,
            _ => &self.arch,
        };
        let chip = |text: &String| {
            let (major, minor) = text.split_once('.')?;
            Some((major.parse().ok()?, minor.parse().ok()?))
        };
        lines.iter().filter_map(chip).collect()
    }
}

fn is_figure(key: &str) -> bool {
    key.split_once('.').is_some_and(|(kind, of)| matches!(kind, "peak" | "recorded") && FIGURES.contains(&of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_unknown_keys_refused() {
        let text = "framework=torch\nversion=2.8.0+cu128\narch=7.0\narch=9.0\ntarget=9.0\ndistribution=torch==2.8.0\ndistribution=nvidia-cublas-cu12==12.8.4.1\n";
        let all = Expectation::parse(text).expect("reads");
        assert_eq!(all.value("version"), Some("2.8.0+cu128"));
        assert_eq!(all.value("nccl"), None);
        assert_eq!(all.arch.len(), 2);
        assert_eq!(all.chips("arch"), BTreeSet::from([(7, 0), (9, 0)]));
        assert_eq!(all.chips("target"), BTreeSet::from([(9, 0)]));
        assert_eq!(all.distributions["torch"], "2.8.0");
        assert_eq!((all.nvidia("cublas"), all.nvidia("cudnn")), (Some("12.8.4.1"), None));
        assert!(
            Expectation::parse("may-lack=libtbb.so.12").expect("reads").may_lack.contains("libtbb.so.12")
        );
        assert!(Expectation::parse("colour=red").unwrap_err().contains("line 1: unknown key"));
        assert!(Expectation::parse("distribution=torch").is_err());
    }
}
