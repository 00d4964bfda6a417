//! The rules in words, each with an example that is resolved when it is shown. Printed by `generate rules`.

use std::fmt::Write as _;

use super::choose::resolve;
use super::options::ResolveOptions;
use super::refusal::Refusal;
use super::rule::Rule;
use crate::compat::Matrix;
use crate::target::{Target, TargetGpu, TargetSource};
use crate::versions::Machine;

/// A rule, what it means, and a question it refuses.
struct Guide {
    rule: Rule,
    meaning: &'static str,
    spec: &'static str,
    gpu: Option<&'static str>,
    driver: Option<&'static str>,
    base: Option<&'static str>,
    /// False: the vendor's apt repository is switched off.
    vendor: bool,
}

const fn guide(rule: Rule, meaning: &'static str, spec: &'static str) -> Guide {
    Guide { rule, meaning, spec, gpu: None, driver: None, base: None, vendor: true }
}

const GUIDES: [Guide; 14] = [
    guide(Rule::UnknownName, "No product has this name.", "pytroch-cuda:2.8"),
    guide(
        Rule::UnknownVersion,
        "The product never had this version, or none of which the matrix has a row.",
        "pytorch-cuda:2.88",
    ),
    guide(
        Rule::VariantUnpublished,
        "Nobody published this version for this CUDA or processor.",
        "pytorch-cuda:2.9-cu118",
    ),
    guide(Rule::PythonUnsupported, "The framework has no wheel for this Python.", "pytorch-cuda:2.8-py3.8"),
    guide(Rule::NoBaseForPython, "No base system brings this Python.", "pytorch-cuda:2.15-py3.15"),
    Guide {
        driver: Some("515.65.01"),
        ..guide(
            Rule::DriverTooOld,
            "The driver is older than the lowest on which this CUDA's major runs.",
            "pytorch-cuda:2.8-cu128",
        )
    },
    Guide {
        gpu: Some("sm_61"),
        driver: Some("590.48.01"),
        ..guide(
            Rule::DriverDropsGpu,
            "The driver's branch no longer drives this GPU, or does not know it yet.",
            "pytorch-cuda:2.8-cu126",
        )
    },
    Guide {
        gpu: Some("sm_120"),
        driver: Some("580.65.06"),
        ..guide(
            Rule::GpuNotInBinary,
            "The binary holds neither machine code nor PTX that this GPU and driver can run. Machine code runs on its own \
             major from its minor on; PTX runs on newer GPUs, under a driver that knows that PTX.",
            "pytorch-cuda:2.6-cu124",
        )
    },
    Guide {
        gpu: Some("sm_70"),
        driver: Some("580.65.06"),
        ..guide(
            Rule::ToolkitDropsGpu,
            "The CUDA toolkit of the variant no longer compiles for this GPU.",
            "pytorch-cuda:2.14-cu130",
        )
    },
    Guide {
        gpu: Some("sm_37"),
        driver: Some("470.256.02"),
        ..guide(
            Rule::CudnnDropsGpu,
            "The cuDNN that the binary uses holds no code that this GPU can run.",
            "pytorch-cuda:2.6-cu118",
        )
    },
    Guide {
        base: Some("ubuntu:20.04"),
        ..guide(Rule::GlibcTooOld, "The base's C library is older than the binary needs.", "vllm-cuda:0.20.0")
    },
    Guide {
        base: Some("debian:13"),
        ..guide(
            Rule::HostCompilerTooNew,
            "nvcc of this CUDA accepts none of the base's compilers.",
            "cuda:11.8.0-devel",
        )
    },
    Guide {
        vendor: false,
        ..guide(
            Rule::ToolkitUnavailable,
            "No configured source has the nvcc of this CUDA for the base (here with the vendor's repository off).",
            "cuda:12.8.1-devel",
        )
    },
    guide(
        Rule::NumpyAbi,
        "The binary needs a numpy line of which this Python has no wheel.",
        "pytorch-cuda:2.2-py3.13",
    ),
];

impl Guide {
    fn refusal(&self, matrix: &Matrix) -> Option<Refusal> {
        let gpu =
            |text: &str| TargetGpu { name: None, compute_capability: text.parse().expect("a capability") };
        let target = Target {
            source: TargetSource::Named,
            driver: self.driver.map(|text| text.parse().expect("a driver")),
            gpus: self.gpu.into_iter().map(gpu).collect(),
            machine: Machine::X86_64,
        };
        let mut options = ResolveOptions { base: self.base.map(str::to_owned), ..ResolveOptions::default() };
        options.toolkit.vendor = self.vendor;
        resolve(&self.spec.parse().expect("a spec"), &target, matrix, &options).err()
    }

    fn command(&self) -> String {
        let words = [("--gpu", self.gpu), ("--driver", self.driver), ("--base", self.base)];
        let mut line = format!("envforge plan {}", self.spec);
        for (option, value) in words {
            if let Some(value) = value {
                write!(line, " {option} {value}").expect("a String takes all");
            }
        }
        line
    }
}

/// Every rule with its meaning and an example, as Markdown.
pub fn rules_text(matrix: &Matrix) -> String {
    let mut out = "# Why a combination is refused\n\nEach rule has a stable id, used in `plan --json` and `list --json`.\n".to_owned();
    for guide in &GUIDES {
        let refusal = guide.refusal(matrix);
        let said = refusal.iter().flat_map(|refusal| &refusal.refusals).find(|one| one.rule == guide.rule);
        write!(out, "\n## {}\n\n{}\n\n    {}\n", guide.rule, guide.meaning, guide.command())
            .expect("a String takes all");
        if let Some(said) = said {
            write!(out, "\n> {}\n", said.text).expect("a String takes all");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_is_explained_once_and_its_example_is_refused_by_it() {
        let rules: BTreeSet<_> = GUIDES.iter().map(|guide| guide.rule).collect();
        assert_eq!(rules.len(), GUIDES.len());
        for guide in &GUIDES {
            let refusal =
                guide.refusal(Matrix::current()).unwrap_or_else(|| panic!("{} resolves", guide.spec));
            let said: Vec<_> = refusal.refusals.iter().map(|refused| refused.rule).collect();
            assert!(said.contains(&guide.rule), "{}: {said:?}", guide.rule);
        }
        let text = rules_text(Matrix::current());
        assert_eq!(text.matches("\n## ").count(), GUIDES.len());
        assert_eq!(text.matches("\n> ").count(), GUIDES.len());
    }
}
