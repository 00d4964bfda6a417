//! The reasons for the values of a stack.

use super::candidate::{Candidate, gpu_label};
use super::rejected::RejectedCandidates;
use super::rule::Rule;
use super::rules::other_ptxas;
use super::rules::toolkit::nvcc;
use crate::matrix::tables::{Base, Channel, Status};
use crate::spec::Flavour;
use crate::stack::Reason;

fn reason(field: &str, chosen: &impl ToString, because: impl Into<String>, source: &str) -> Reason {
    let (because, source) = (because.into(), source.to_owned());
    Reason { field: field.to_owned(), chosen: chosen.to_string(), because, source }
}

pub(super) fn reasons(candidate: &Candidate<'_>, base: &Base, trail: &RejectedCandidates) -> Vec<Reason> {
    let mut all = Vec::new();
    all.extend(source_reason(candidate));
    all.extend([
        framework_reason(candidate, trail),
        cuda_reason(candidate, trail),
        python_reason(candidate, base),
        base_reason(candidate, base, trail),
    ]);
    all.extend(library_reasons(candidate));
    all.extend(gpu_reason(candidate));
    all.extend(companion_reasons(candidate));
    all.extend(driver_reason(candidate));
    all.extend(numpy_reason(candidate));
    all.extend(nvcc_reason(candidate));
    all.extend(ptxas_reason(candidate));
    all
}

/// Returns `; cu128 violates gpu-not-in-binary` for the first rejected candidate.
fn passed_over(first: Option<(String, &[Rule])>) -> String {
    first.map_or_else(String::new, |(what, rules)| {
        let ids: Vec<_> = rules.iter().map(|rule| rule.id()).collect();
        format!("; {what} violates {}", ids.join(", "))
    })
}

fn source_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let row = candidate.source_build()?;
    let because = format!(
        "{} is not published, and its build system accepts CUDA {}; experimental: {}",
        candidate.label(),
        candidate.toolkit_minor(),
        row.experimental
    );
    Some(reason("channel", &"source", because, &row.source))
}

fn framework_reason(candidate: &Candidate<'_>, trail: &RejectedCandidates) -> Reason {
    let variant = candidate.variant;
    let passed =
        passed_over(trail.versions.first().map(|(version, rules)| (version.to_string(), rules.as_slice())));
    let because = match &candidate.question.spec.version {
        Some(asked) if asked.parts().len() >= variant.version.parts().len() => "requested".to_owned(),
        Some(asked) => format!("newest {asked} release that runs on the target{passed}"),
        None => format!("newest release that runs on the target{passed}"),
    };
    reason("framework", &variant.version, because, &variant.source)
}

fn cuda_reason(candidate: &Candidate<'_>, trail: &RejectedCandidates) -> Reason {
    let variant = candidate.variant;
    let passed =
        passed_over(trail.variants.first().map(|(cuda, rules)| (cuda.to_string(), rules.as_slice())));
    let mut because = match (candidate.question.spec.cuda, variant.channel) {
        _ if candidate.product.package.is_none() => "same as the toolkit".to_owned(),
        (Some(request), _) if request.minor.is_some() && variant.cuda.minor.is_none() => format!(
            "{request} is read as CUDA {}: {} publishes one build for a whole CUDA major",
            request.major, variant.framework
        ),
        (Some(request), _) if request.minor.is_some() => "requested".to_owned(),
        (_, Channel::Default) => "variant of the default index, runs on the target".to_owned(),
        (request, _) => {
            let what = match (variant.status, request) {
                (Status::Experimental, _) => "experimental upstream, and no other variant".to_owned(),
                (_, Some(request)) => format!("newest listed CUDA {} that", request.dotted()),
                (_, None) => "newest listed variant that".to_owned(),
            };
            format!("{what} runs on the target; from the framework's own index{passed}")
        }
    };
    let said = because.starts_with("experimental");
    if variant.status == Status::Experimental && variant.channel != Channel::Source && !said {
        because.push_str("; experimental upstream");
    }
    if variant.status == Status::Unlisted {
        because.push_str("; not in the official release list");
    }
    if !variant.verified {
        because.push_str("; announced, publication not confirmed");
    }
    reason("cuda", &variant.cuda, because, &variant.source)
}

fn python_reason(candidate: &Candidate<'_>, base: &Base) -> Reason {
    let matrix = candidate.question.matrix;
    let because = if candidate.question.spec.python.is_some() {
        "requested".to_owned()
    } else if base.default {
        format!("Python of the default base {}", base.name)
    } else {
        let default = matrix.default_base().filter(|_| candidate.question.options.base.is_none());
        let why = default.map_or_else(String::new, |default| {
            let own = candidate.variant.python.contains(&default.python);
            let who = if own { "a companion" } else { "the framework" };
            if own && matrix.missing_companions(candidate.variant, default.python).is_empty() {
                return String::new();
            }
            format!("; {who} has no wheel for Python {} of the default base", default.python)
        });
        format!("Python of {}{why}", base.name)
    };
    reason("python", &candidate.python, because, &candidate.variant.source)
}

fn base_reason(candidate: &Candidate<'_>, base: &Base, trail: &RejectedCandidates) -> Reason {
    let because = if candidate.question.options.base.is_some() {
        "requested".to_owned()
    } else if base.default {
        "default base".to_owned()
    } else {
        let passed = passed_over(trail.bases.first().map(|(name, rules)| (name.clone(), rules.as_slice())));
        match candidate.product.package {
            Some(_) => format!("first base with Python {}{passed}", candidate.python),
            None => format!("first base whose packages or wheels provide this nvcc{passed}"),
        }
    };
    reason("base", &base.name, because, &base.source)
}

/// Returns the reasons for the bundled libraries and those that the row pins.
fn library_reasons(candidate: &Candidate<'_>) -> Vec<Reason> {
    let variant = candidate.variant;
    let pinned = !variant.install.is_empty() || !variant.parts.is_empty();
    let (own, toolkit) = match (pinned, candidate.product.package.is_some()) {
        (_, false) => return Vec::new(),
        _ if variant.channel == Channel::Source => {
            ("version used for the build", "release used for the build")
        }
        (true, _) => {
            ("within the range required by METADATA and documentation", "release of the pinned CUDA wheels")
        }
        (false, _) => ("version the binary is built with", "release the binary is built with"),
    };
    let mut all = vec![reason("toolkit", &variant.toolkit, toolkit, &variant.source)];
    for (field, library) in [("cudnn", &variant.cudnn), ("nccl", &variant.nccl)] {
        all.extend(library.iter().map(|version| reason(field, version, own, &variant.source)));
    }
    all.extend(
        variant
            .triton_for(candidate.python)
            .into_iter()
            .map(|version| reason("triton", version, own, &variant.source)),
    );
    let missing = candidate.question.matrix.missing_companions(variant, candidate.python);
    for (package, version) in &variant.companions {
        if !missing.iter().any(|(name, _)| name == package) {
            let row = candidate.question.matrix.companion(package, version);
            let source = row.map_or(&variant.source, |row| &row.source);
            let because = match variant.channel {
                Channel::Source => "released together, also built from source",
                Channel::Default | Channel::Framework => "released together",
            };
            all.push(reason(package, version, because, source));
        }
    }
    all
}

fn gpu_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let target = candidate.question.target;
    let gpus = target.capabilities();
    let names = gpus.iter().map(|gpu| gpu_label(target, *gpu)).collect::<Vec<_>>().join(", ");
    let variant = candidate.variant;
    if variant.arch.is_none() {
        let because = "GPU code of the binary is unknown; chosen only because you requested this variant";
        return Some(reason("gpu", &"unknown", because, &variant.source));
    }
    if gpus.is_empty() {
        return None;
    }
    let because = if candidate.needs_ptx() {
        let cuda = candidate.ptx_cuda().map(|cuda| cuda.to_string()).unwrap_or_default();
        format!("runs through PTX, compiled at first use by a driver with CUDA {cuda} or newer")
    } else if variant.channel == Channel::Source {
        let codes: Vec<_> = candidate.compiled_for().iter().map(ToString::to_string).collect();
        format!("compiled for {}", codes.join(", "))
    } else {
        "the binary contains machine code for it".to_owned()
    };
    Some(reason("gpu", &names, because, &variant.source))
}

fn companion_reasons(candidate: &Candidate<'_>) -> Vec<Reason> {
    let matrix = candidate.question.matrix;
    let missing = matrix.missing_companions(candidate.variant, candidate.python);
    let say = |(package, version): (&str, &str)| {
        let because = format!("{package} {version} has no wheel for Python {}", candidate.python);
        let source = matrix.companion(package, version).map_or("", |row| &row.source);
        reason(package, &"none", because, source)
    };
    missing.into_iter().map(say).collect()
}

fn driver_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let driver = candidate.question.target.driver.as_ref()?;
    if let Some(row) = candidate.forward_compat_in_use() {
        let because = format!(
            "allowed by `--forward-compat`: driver {driver} is too old for CUDA {}, and the package is supported on \
             its branch and these GPUs",
            candidate.toolkit_minor()
        );
        return Some(reason("forward-compat", &row.package, because, &row.source));
    }
    if let Some(cuda) = candidate.ptx_cuda().filter(|_| candidate.has_only_ptx()) {
        let because = format!("has CUDA {cuda} or newer, so it compiles the PTX of the binary");
        return Some(reason("driver", driver, because, &candidate.variant.source));
    }
    let (floor, source) = candidate.driver_floor()?;
    Some(reason(
        "driver",
        driver,
        format!("CUDA {} requires {floor} or newer", candidate.variant.cuda.major),
        source,
    ))
}

fn numpy_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let variant = candidate.variant;
    let limit = candidate.question.matrix.numpy_limit_of(variant)?;
    Some(reason("numpy", limit.numpy.as_ref()?, limit.why.clone(), &limit.source))
}

fn nvcc_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    if candidate.question.spec.flavour != Flavour::Devel {
        return None;
    }
    let choice = nvcc(candidate)?;
    let because = format!("from {}; packages are resolved by `lock`", choice.nvcc.source);
    Some(reason("nvcc", &candidate.toolkit_minor(), because, choice.source))
}

/// Returns why the image brings a ptxas for Triton, if it does.
fn ptxas_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let found = other_ptxas(candidate)?;
    let target = candidate.question.target;
    let names: Vec<_> = found.choice.gpus.iter().map(|gpu| gpu_label(target, *gpu)).collect();
    let because = format!(
        "{} has no target for {}; the image has the ptxas of the nvcc wheel of CUDA {} and sets {}",
        found.triton.component,
        names.join(", "),
        found.choice.cuda,
        found.choice.variable.as_str()
    );
    let source = format!("{}; {}", found.triton.source, found.wheels.source);
    Some(reason("ptxas", &found.choice.cuda, because, &source))
}
