//! The rules with their meaning and an example, resolved when printed. Printed by `maintain rules`.

use std::fmt::Write as _;

use crate::model::compat::Matrix;
use crate::model::markdown::MarkdownPage;
use crate::model::resolve::{CompanionRequest, ResolveOptions, Rule, Unsatisfiable, companions, resolve};
use crate::model::target::{Target, TargetGpu, TargetSource};
use crate::model::versions::Machine;

/// A rule, its meaning, and a request that violates it.
struct Guide {
    rule: Rule,
    meaning: &'static str,
    spec: &'static str,
    gpu: Option<&'static str>,
    driver: Option<&'static str>,
    base: Option<&'static str>,
    /// A requested package.
    with: Option<&'static str>,
    /// Whether the vendor's apt repository is enabled.
    vendor: bool,
}

const fn guide(rule: Rule, meaning: &'static str, spec: &'static str) -> Guide {
    Guide { rule, meaning, spec, gpu: None, driver: None, base: None, with: None, vendor: true }
}

const GUIDES: [Guide; 17] = [
    guide(Rule::UnknownName, "The product name is unknown.", "pytroch-cuda:2.8"),
    guide(Rule::UnknownVersion, "The version of the product is not in the matrix.", "pytorch-cuda:2.88"),
    guide(
        Rule::VariantUnpublished,
        "No build of the version for this CUDA or processor is in the matrix.",
        "pytorch-cuda:2.9-cu118",
    ),
    guide(
        Rule::PythonUnsupported,
        "No wheel of the framework for this Python is in the matrix.",
        "pytorch-cuda:2.8-py3.8",
    ),
    guide(Rule::NoBaseForPython, "No base has this Python.", "pytorch-cuda:2.15-py3.15"),
    Guide {
        driver: Some("515.65.01"),
        ..guide(
            Rule::DriverTooOld,
            "The driver is older than the CUDA major requires, or than the CUDA of a binary that has PTX alone.",
            "pytorch-cuda:2.8-cu128",
        )
    },
    Guide {
        gpu: Some("sm_61"),
        driver: Some("590.48.01"),
        ..guide(
            Rule::DriverDropsGpu,
            "The driver's branch no longer supports this GPU, or does not support it yet.",
            "pytorch-cuda:2.8-cu126",
        )
    },
    Guide {
        gpu: Some("sm_120"),
        driver: Some("580.65.06"),
        ..guide(
            Rule::GpuNotInBinary,
            "The binary has neither machine code nor PTX for this GPU and driver. Machine code runs on its own major from \
             its minor on; PTX runs on newer GPUs, with a driver that supports that PTX.",
            "pytorch-cuda:2.6-cu124",
        )
    },
    Guide {
        gpu: Some("sm_80"),
        ..guide(
            Rule::GpuCodeUnknown,
            "The GPU code of the only variants that fit was not read, so whether they run is not known. Such a variant is \
             never chosen by default; with its version and CUDA in the spec it is, with a warning.",
            "pytorch-cuda:1.8",
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
            "The cuDNN of the binary has no code for this GPU.",
            "pytorch-cuda:2.6-cu118",
        )
    },
    Guide {
        gpu: Some("sm_121"),
        driver: Some("580.95.05"),
        ..guide(
            Rule::JitLacksGpu,
            "The framework compiles kernels at run time with a compiler that has no target for this GPU, whatever code \
             its files contain. Where Triton takes a newer ptxas and the nvcc wheels of the variant's CUDA major have \
             one, the image brings it instead.",
            "pytorch-cuda:2.7-cu128",
        )
    },
    Guide {
        with: Some("xformers==0.0.35"),
        ..guide(
            Rule::CompanionMismatch,
            "A requested package is coupled to another torch or CUDA than the stack's.",
            "pytorch-cuda:2.11-cu130",
        )
    },
    Guide {
        base: Some("ubuntu:20.04"),
        ..guide(
            Rule::GlibcTooOld,
            "The base's C library is older than the binary requires.",
            "vllm-cuda:0.20.0",
        )
    },
    Guide {
        base: Some("debian:13"),
        ..guide(
            Rule::HostCompilerTooNew,
            "nvcc of this CUDA supports none of the base's compilers.",
            "cuda:11.8.0-devel",
        )
    },
    Guide {
        vendor: false,
        ..guide(
            Rule::ToolkitUnavailable,
            "No configured source has the nvcc of this CUDA for the base (example: vendor repository disabled).",
            "cuda:12.8.1-devel",
        )
    },
    guide(
        Rule::NumpyAbi,
        "The binary requires a numpy line without a wheel for this Python.",
        "pytorch-cuda:2.2-py3.13",
    ),
];

impl Guide {
    fn refusal(&self, matrix: &Matrix) -> Option<Unsatisfiable> {
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
        let spec = self.spec.parse().expect("a spec");
        let stack = match resolve(&spec, &target, matrix, &options) {
            Ok(stack) => stack,
            Err(refusal) => return Some(refusal),
        };
        let requirements: Vec<_> = self.with.into_iter().map(str::to_owned).collect();
        let request = CompanionRequest {
            spec: &spec,
            matrix,
            options: &options,
            requirements: &requirements,
            allow_source: &[],
        };
        companions(request, &stack).err().map(|refusal| *refusal)
    }

    fn command(&self) -> String {
        let words =
            [("--gpu", self.gpu), ("--driver", self.driver), ("--base", self.base), ("--with", self.with)];
        let mut line = format!("envforge plan {}", self.spec);
        for (option, value) in words {
            if let Some(value) = value {
                write!(line, " {option} {value}").expect("a String takes all");
            }
        }
        line
    }
}

/// Returns every rule with its meaning and an example, as Markdown.
pub(crate) fn rules_text(matrix: &Matrix) -> String {
    let mut page = MarkdownPage::new("Compatibility rules");
    page.paragraph("Each rule has a stable id, used in `plan --json` and `list --json`.");
    for guide in &GUIDES {
        let refusal = guide.refusal(matrix);
        let shown = refusal.iter().flat_map(|refusal| &refusal.refusals).find(|one| one.rule == guide.rule);
        page.heading(2, guide.rule.id());
        page.paragraph(guide.meaning);
        page.block(&guide.command());
        if let Some(shown) = shown {
            page.quote(&shown.text);
        }
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_is_explained_once_and_rejects_its_example() {
        let rules: BTreeSet<_> = GUIDES.iter().map(|guide| guide.rule).collect();
        assert_eq!(rules, Rule::ALL.iter().copied().collect());
        assert_eq!(rules.len(), GUIDES.len());
        for guide in &GUIDES {
            let refusal = guide
                .refusal(crate::model::compat::embedded())
                .unwrap_or_else(|| panic!("{} resolves", guide.spec));
            let shown: Vec<_> = refusal.refusals.iter().map(|refused| refused.rule).collect();
            assert!(shown.contains(&guide.rule), "{}: {shown:?}", guide.rule);
        }
        let text = rules_text(crate::model::compat::embedded());
        assert_eq!(text.matches("\n## ").count(), GUIDES.len());
        assert_eq!(text.matches("\n\n> ").count(), GUIDES.len());
    }
}
