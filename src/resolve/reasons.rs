//! Puts the stack together and says why each field has its value.

use std::collections::{BTreeMap, BTreeSet};

use super::candidate::{Candidate, gpu_label};
use super::choose::missing_companions;
use super::rule::Rule;
use super::rules::toolkit::{NvccChoice, nvcc};
use crate::compat::tables::{Base, Channel, ComponentWheel, Status};
use crate::stack::{Flavour, ForwardCompatChoice, Reason, Requires, SourceChoice, Stack};
use crate::versions::{ComputeCapability, CudaVariant, DriverVersion, FrameworkVersion};

/// What was tried before the choice was found, and the rules that refused it.
#[derive(Debug, Default)]
pub(super) struct Trail {
    pub(super) versions: Vec<(FrameworkVersion, Vec<Rule>)>,
    pub(super) variants: Vec<(CudaVariant, Vec<Rule>)>,
    pub(super) bases: Vec<(String, Vec<Rule>)>,
}

/// The stack of a choice that no rule refuses.
pub(super) fn build_stack(candidate: &Candidate<'_>, base: &Base, trail: &Trail) -> Stack {
    let Candidate { question, product, variant, python, .. } = *candidate;
    let missing = missing_companions(question.matrix, variant, python);
    let mut companions = variant.companions.clone();
    companions.retain(|package, _| !missing.iter().any(|(name, _)| name == package));
    let flavour = question.spec.flavour;
    let suffix = if flavour == Flavour::Devel { "-devel" } else { "" };
    let numpy = question.matrix.numpy_limit(&variant.framework, &variant.version);
    let choice = candidate.needs_nvcc().then(|| nvcc(candidate)).flatten();
    let devel = choice.as_ref().filter(|_| flavour == Flavour::Devel);
    // The version of the toolkit alone says its CUDA already.
    let cuda = product.package.as_ref().map_or_else(String::new, |_| format!("-{}", variant.cuda));
    Stack {
        name: format!("{}:{}{cuda}-py{python}{suffix}", product.name, variant.version),
        product: product.name.clone(),
        framework: variant.framework.clone(),
        package: variant.package.clone().unwrap_or_else(|| super::candidate::package(product).to_owned()),
        version: variant.version.clone(),
        cuda: variant.cuda,
        toolkit: variant.toolkit.clone(),
        cudnn: variant.cudnn.clone(),
        nccl: variant.nccl.clone(),
        triton: variant.triton.clone(),
        companions,
        python,
        // What is compiled on the base needs the base's.
        glibc: if variant.channel == Channel::Source {
            base.glibc.clone()
        } else {
            variant.min_glibc.clone()
        },
        flavour,
        machine: variant.machine,
        channel: variant.channel,
        status: variant.status,
        experimental: variant.status == Status::Experimental,
        base: base.name.clone(),
        suite: base.suite.clone(),
        requires: requires(candidate),
        forward_compat: candidate
            .forward_compat_in_use()
            .map(|row| ForwardCompatChoice { package: row.package.clone(), source: row.source.clone() }),
        install: variant.install.clone(),
        parts: parts(candidate, devel.map_or(&[], |choice| choice.parts)),
        nvcc: devel.map(|choice| choice.nvcc.clone()),
        source_build: choice.and_then(|choice| source_build(candidate, choice)),
        numpy: numpy.and_then(|limit| limit.numpy.clone()),
        target: question.target.clone(),
        matrix: question.matrix.edition.clone(),
        reasons: reasons(candidate, base, trail),
    }
}

/// How the stack is built from source, if nobody publishes it.
fn source_build(candidate: &Candidate<'_>, choice: NvccChoice<'_>) -> Option<Box<SourceChoice>> {
    let row = candidate.source_build()?;
    Some(Box::new(SourceChoice {
        archive: row.archive.clone(),
        sha256: row.sha256.clone(),
        patches: row.patches.clone(),
        arch: compiled_for(candidate),
        nvcc: choice.nvcc,
        parts: candidate
            .question
            .matrix
            .wheels_of(&row.toolkit, |wheel| choice.parts.contains(&wheel.part))
            .unwrap_or_default(),
        job_memory_gb: row.job_memory_gb,
        time: row.time.clone(),
        experimental: row.experimental.clone(),
    }))
}

/// The GPU targets of a source build: of those its row names the newest that runs on each GPU of the target; all of them if
/// the target names none.
fn compiled_for(candidate: &Candidate<'_>) -> Vec<ComputeCapability> {
    let all = candidate.variant.arch.clone().unwrap_or_default();
    let named = candidate.question.target.capabilities();
    if named.is_empty() {
        return all;
    }
    let newest = |gpu: ComputeCapability| all.iter().filter(|code| code.cubin_runs_on(gpu)).max().copied();
    let chosen: BTreeSet<_> = named.into_iter().filter_map(newest).collect();
    chosen.into_iter().collect()
}

/// Wheels of the toolkit that are pinned: the row's parts, those nvcc needs, and for the toolkit alone every library.
fn parts(candidate: &Candidate<'_>, nvcc: &[String]) -> BTreeMap<String, String> {
    let alone = candidate.product.package.is_none();
    let wanted = |wheel: &ComponentWheel| {
        let named = candidate.variant.parts.contains(&wheel.part);
        named || if wheel.library { alone } else { nvcc.contains(&wheel.part) }
    };
    candidate.question.matrix.wheels_of(&candidate.variant.toolkit, wanted).unwrap_or_default()
}

/// True if some GPU of the target runs the binary by PTX alone.
fn needs_ptx(candidate: &Candidate<'_>) -> bool {
    candidate.variant.arch.is_some()
        && candidate
            .question
            .target
            .capabilities()
            .into_iter()
            .any(|gpu| !candidate.has_machine_code_for(gpu))
}

fn requires(candidate: &Candidate<'_>) -> Requires {
    let toolkit = candidate.question.matrix.toolkit(&candidate.variant.toolkit);
    let native = toolkit.and_then(|row| row.native_driver.clone());
    let floor = candidate.driver_floor().map(|(floor, _)| floor.clone());
    let lowest = match candidate.forward_compat_in_use() {
        Some(row) => {
            let branch = row.base_branches.iter().min();
            branch.and_then(|branch| branch.to_string().parse::<DriverVersion>().ok()).or(floor)
        }
        None if needs_ptx(candidate) => native.clone().or(floor),
        None => floor,
    };
    Requires {
        driver: lowest,
        driver_native: native,
        gpu: match candidate.variant.channel {
            Channel::Source => compiled_for(candidate),
            Channel::Default | Channel::Framework => candidate.variant.arch.clone().unwrap_or_default(),
        },
        ptx: candidate.variant.ptx.clone(),
    }
}

fn reason(field: &str, chosen: &impl ToString, because: impl Into<String>, source: &str) -> Reason {
    let (because, source) = (because.into(), source.to_owned());
    Reason { field: field.to_owned(), chosen: chosen.to_string(), because, source }
}

fn reasons(candidate: &Candidate<'_>, base: &Base, trail: &Trail) -> Vec<Reason> {
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
    all
}

/// `; cu128 is refused by gpu-not-in-binary`, for the first that was passed over.
fn passed_over(first: Option<(String, &[Rule])>) -> String {
    first.map_or_else(String::new, |(what, rules)| {
        let ids: Vec<_> = rules.iter().map(|rule| rule.id()).collect();
        format!("; {what} is refused by {}", ids.join(", "))
    })
}

fn source_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let row = candidate.source_build()?;
    let because = format!(
        "nobody published {}, and its build accepts CUDA {}; experimental: {}",
        candidate.label(),
        candidate.toolkit_minor(),
        row.experimental
    );
    Some(reason("channel", &"source", because, &row.source))
}

fn framework_reason(candidate: &Candidate<'_>, trail: &Trail) -> Reason {
    let variant = candidate.variant;
    let passed =
        passed_over(trail.versions.first().map(|(version, rules)| (version.to_string(), rules.as_slice())));
    let because = match &candidate.question.spec.version {
        Some(asked) if asked.parts().len() >= variant.version.parts().len() => "asked for".to_owned(),
        Some(asked) => format!("the newest {asked} release that runs on the target{passed}"),
        None => format!("the newest release that runs on the target{passed}"),
    };
    reason("framework", &variant.version, because, &variant.source)
}

fn cuda_reason(candidate: &Candidate<'_>, trail: &Trail) -> Reason {
    let variant = candidate.variant;
    let passed =
        passed_over(trail.variants.first().map(|(cuda, rules)| (cuda.to_string(), rules.as_slice())));
    let mut because = match (candidate.question.spec.cuda, variant.channel) {
        _ if candidate.product.package.is_none() => "the toolkit's own".to_owned(),
        (Some(wish), _) if wish.minor.is_some() => "asked for".to_owned(),
        (_, Channel::Default) => "the default index's variant, and the target can run it".to_owned(),
        (Some(wish), _) => {
            format!("the newest listed CUDA {} that the target can run{passed}", wish.dotted())
        }
        (None, _) => format!("the newest listed variant that the target can run{passed}"),
    };
    if variant.status == Status::Experimental && variant.channel != Channel::Source {
        because.push_str("; upstream calls it experimental");
    }
    if variant.status == Status::Unlisted {
        because.push_str("; it is in no official list");
    }
    if !variant.verified {
        because.push_str("; its publication was announced, not seen");
    }
    reason("cuda", &variant.cuda, because, &variant.source)
}

fn python_reason(candidate: &Candidate<'_>, base: &Base) -> Reason {
    let matrix = candidate.question.matrix;
    let because = if candidate.question.spec.python.is_some() {
        "asked for".to_owned()
    } else if base.default {
        format!("the Python of the default base {}", base.name)
    } else {
        let default = matrix.default_base().filter(|_| candidate.question.options.base.is_none());
        let why = default.map_or_else(String::new, |default| {
            let own = candidate.variant.python.contains(&default.python);
            let who = if own { "a companion" } else { "the framework" };
            if own && missing_companions(matrix, candidate.variant, default.python).is_empty() {
                return String::new();
            }
            format!("; {who} has no wheel for the default base's {}", default.python)
        });
        format!("the Python of {}{why}", base.name)
    };
    reason("python", &candidate.python, because, &candidate.variant.source)
}

fn base_reason(candidate: &Candidate<'_>, base: &Base, trail: &Trail) -> Reason {
    let because = if candidate.question.options.base.is_some() {
        "asked for".to_owned()
    } else if base.default {
        "the default base".to_owned()
    } else {
        let passed = passed_over(trail.bases.first().map(|(name, rules)| (name.clone(), rules.as_slice())));
        match candidate.product.package {
            Some(_) => format!("the first base that brings Python {}{passed}", candidate.python),
            None => format!("the first base whose own packages or wheels have that nvcc{passed}"),
        }
    };
    reason("base", &base.name, because, &base.source)
}

/// The libraries that come with the binary, and those the row pins beside it.
fn library_reasons(candidate: &Candidate<'_>) -> Vec<Reason> {
    let variant = candidate.variant;
    let pinned = !variant.install.is_empty();
    let (own, toolkit) = match (pinned, candidate.product.package.is_some()) {
        (_, false) => return Vec::new(),
        _ if variant.channel == Channel::Source => ("what it is built with", "the release it is built with"),
        (true, _) => {
            ("within what its METADATA and documentation ask", "the release its CUDA wheels are pinned to")
        }
        (false, _) => ("what the binary is built with", "the release the binary is built with"),
    };
    let mut all = vec![reason("toolkit", &variant.toolkit, toolkit, &variant.source)];
    for (field, library) in [("cudnn", &variant.cudnn), ("nccl", &variant.nccl)] {
        all.extend(library.iter().map(|version| reason(field, version, own, &variant.source)));
    }
    all.extend(variant.triton.iter().map(|version| reason("triton", version, own, &variant.source)));
    let missing = missing_companions(candidate.question.matrix, variant, candidate.python);
    for (package, version) in &variant.companions {
        if !missing.iter().any(|(name, _)| name == package) {
            let row = candidate.question.matrix.companion(package, version);
            let source = row.map_or(&variant.source, |row| &row.source);
            let because = match variant.channel {
                Channel::Source => "released together, built likewise",
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
        let because =
            "which GPUs the binary has code for is not established; the choice rests on your naming it";
        return Some(reason("gpu", &"unknown", because, &variant.source));
    }
    if gpus.is_empty() {
        return None;
    }
    let because = if needs_ptx(candidate) {
        format!(
            "runs by PTX, which a driver with CUDA {} or newer translates at first use",
            candidate.toolkit_minor()
        )
    } else if variant.channel == Channel::Source {
        let codes: Vec<_> = compiled_for(candidate).iter().map(ToString::to_string).collect();
        format!("it is compiled for {}", codes.join(", "))
    } else {
        "the binary holds machine code for it".to_owned()
    };
    Some(reason("gpu", &names, because, &variant.source))
}

fn companion_reasons(candidate: &Candidate<'_>) -> Vec<Reason> {
    let matrix = candidate.question.matrix;
    let missing = missing_companions(matrix, candidate.variant, candidate.python);
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
            "admitted by `--forward-compat`: driver {driver} is below the floor of CUDA {}, and the package is legal \
             on its branch and these GPUs",
            candidate.toolkit_minor()
        );
        return Some(reason("forward-compat", &row.package, because, &row.source));
    }
    let (floor, source) = candidate.driver_floor()?;
    Some(reason("driver", driver, format!("at least {floor}, the floor of this CUDA"), source))
}

fn numpy_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    let variant = candidate.variant;
    let limit = candidate.question.matrix.numpy_limit(&variant.framework, &variant.version)?;
    Some(reason("numpy", limit.numpy.as_ref()?, limit.why.clone(), &limit.source))
}

fn nvcc_reason(candidate: &Candidate<'_>) -> Option<Reason> {
    if candidate.question.spec.flavour != Flavour::Devel {
        return None;
    }
    let choice = nvcc(candidate)?;
    let because = format!("from {}; looked up when the lock is made", choice.nvcc.source);
    Some(reason("nvcc", &candidate.toolkit_minor(), because, choice.source))
}
