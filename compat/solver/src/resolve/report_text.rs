//! A plan or its violations as plain text: a line for each thing, no color.

use std::fmt::Write as _;

use super::candidate::gpu_label;
use super::companion_choice::CompanionChoice;
use super::refusal::Unsatisfiable;
use super::rules::branches_of;
use crate::matrix::Matrix;
use crate::matrix::tables::Channel;
use crate::stack::Stack;
use crate::target::Target;
use crate::versions::{ComputeCapability, DriverVersion};
use crate::wrap::hanging;

/// Width of the name column.
const NAMES: usize = 15;

pub(super) fn field(name: &str, text: &str) -> String {
    // A name as wide as the column still needs a space after it.
    let name = format!("{name} ");
    hanging(&format!("  {name:<NAMES$}"), text)
}

fn listed(capabilities: &[ComputeCapability]) -> String {
    capabilities.iter().map(|cc| cc.dotted()).collect::<Vec<_>>().join(", ")
}

/// Returns the plan of a stack as text: versions, requirements, reasons, sources.
pub fn plan_text(stack: &Stack, matrix: &Matrix) -> String {
    let mut out = format!("{}\n\n", stack.name);
    let experimental = match (stack.experimental, stack.channel) {
        (true, Channel::Source) => ", experimental",
        (true, _) => ", experimental upstream",
        (false, _) => "",
    };
    let local = if stack.local { ", local" } else { "" };
    let channel = match stack.channel {
        Channel::Default => "the default package index",
        Channel::Framework => "the framework's own index",
        Channel::Source => "built from source",
    };
    if stack.is_toolkit() {
        out += &field("CUDA", &format!("{} ({channel})", stack.version));
    } else {
        // The product of that name: `numba` is another package than `numba-cuda`, with versions of its own.
        let name = if stack.package == stack.product { &stack.package } else { &stack.framework };
        out += &field(name, &format!("{} ({channel}{experimental}{local})", stack.version));
        out += &field("CUDA", &format!("{} (toolkit {})", stack.cuda, stack.toolkit));
        out += &libraries_text(stack, matrix);
    }
    if let Some(nvcc) = &stack.nvcc {
        out +=
            &field("nvcc", &format!("{} with gcc {}, from {}", stack.toolkit_minor(), nvcc.gcc, nvcc.source));
    }
    if let Some(triton) = &stack.triton {
        out += &field("Triton", triton);
    }
    for (package, version) in &stack.companions {
        out += &field(package, version);
    }
    if let Some(numpy) = &stack.numpy {
        out += &field("numpy", numpy);
    }
    if let Some(licence) = &stack.licence {
        out += &field("licence", &format!("{licence}; read it before sharing the image"));
    }
    out += &field("Python", &format!("{} on {}", stack.python, stack.base));
    out += &field("flavour", &stack.flavour.to_string());
    out += &field("platform", stack.machine.platform());
    out += &field("target", &target_text(&stack.target));
    out.push_str("\nRequires\n");
    out += &requires_text(stack, matrix);
    out.push_str("\nWhy\n");
    for reason in &stack.reasons {
        out += &field(&reason.field, &format!("{}: {}", reason.chosen, reason.because));
    }
    out.push_str("\nSources\n");
    out += &sources_text(stack);
    out
}

/// Returns cuDNN and NCCL: of the binary, else a wheel that the row pins. A product of which no row has the library is without it.
fn libraries_text(stack: &Stack, matrix: &Matrix) -> String {
    let rows = || matrix.variants.iter().filter(|row| row.framework == stack.framework);
    let cudnn = (&stack.cudnn, rows().any(|row| row.cudnn.is_some()));
    let nccl = (&stack.nccl, rows().any(|row| row.nccl.is_some()));
    let mut out = String::new();
    for (name, part, (version, has_it)) in [("cuDNN", "cudnn", cudnn), ("NCCL", "nccl", nccl)] {
        let wheel = format!("nvidia-{part}-cu{}==", stack.cuda.major);
        let mut requirements = stack.install.iter();
        let pinned = || requirements.find_map(|text| text.strip_prefix(&wheel).map(str::to_owned));
        let absent = if stack.install.is_empty() { "unknown" } else { "not added" };
        let text = version.as_ref().map(ToString::to_string).or_else(pinned);
        if let Some(text) = text.or_else(|| has_it.then(|| absent.to_owned())) {
            out += &field(name, &text);
        }
    }
    out
}

/// The driver branches of the target's GPUs where they narrow the driver that the CUDA needs; none for a target with a driver, which fits.
fn branches_text(stack: &Stack, matrix: &Matrix) -> Option<String> {
    if stack.target.driver.is_some() {
        return None;
    }
    let needed = stack.requires.driver.as_ref().map_or(0, DriverVersion::major);
    let mut texts = Vec::new();
    for gpu in stack.target.capabilities() {
        let Some((first, last)) = branches_of(matrix, gpu) else { continue };
        let first = (first > needed).then(|| format!("R{first} or newer"));
        let last = last.map(|last| format!("R{last} or older"));
        let both: Vec<_> = first.into_iter().chain(last).collect();
        if !both.is_empty() {
            texts.push(format!("{} needs {}", gpu_label(&stack.target, gpu), both.join(", ")));
        }
    }
    (!texts.is_empty()).then(|| texts.join("; "))
}

fn requires_text(stack: &Stack, matrix: &Matrix) -> String {
    let requires = &stack.requires;
    let native =
        requires.driver_native.as_ref().map(|native| format!(" ({native} supports this CUDA natively)"));
    let driver = requires.driver.as_ref().map_or_else(
        || "unknown".to_owned(),
        |driver| format!("{driver} or newer{}", native.unwrap_or_default()),
    );
    let driver = match branches_text(stack, matrix) {
        Some(text) => format!("{driver}; {text}"),
        None => driver,
    };
    let mut out = field("driver", &driver);
    let code =
        |what: &str, all: &[ComputeCapability]| (!all.is_empty()).then(|| format!("{what} {}", listed(all)));
    let all: Vec<_> =
        code("machine code for", &requires.gpu).into_iter().chain(code("PTX", &requires.ptx)).collect();
    let unread = || "unknown (GPU code of the binary not read)".to_owned();
    out += &field("GPU", &if all.is_empty() { unread() } else { all.join("; ") });
    if let Some(package) = &stack.forward_compat {
        out += &field("compat", &format!("package {} in the image", package.package));
    }
    out
}

/// Returns the machine in one line.
pub fn target_text(target: &Target) -> String {
    let driver = target.driver.as_ref().map(|driver| format!("driver {driver}"));
    let gpus = target.gpus.iter().map(|gpu| match &gpu.name {
        Some(name) => format!("{name} ({})", gpu.compute_capability),
        None => gpu.compute_capability.to_string(),
    });
    let all: Vec<_> = driver.into_iter().chain(gpus).collect();
    if all.is_empty() { "any GPU and driver".to_owned() } else { all.join(", ") }
}

/// Returns the sources of the choices, each once with its fields.
fn sources_text(stack: &Stack) -> String {
    by_source(stack.reasons.iter().map(|reason| (reason.source.as_str(), reason.field.as_str())))
}

/// Returns a line for each first source, with the names that have it.
fn by_source<'a>(named: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let mut lines: Vec<(&str, usize, Vec<&str>)> = Vec::new();
    for (sources, name) in named {
        let (first, more) = first_of(sources);
        match lines.iter_mut().find(|(other, ..)| *other == first) {
            Some((_, most, names)) => {
                *most = more.max(*most);
                names.push(name);
            }
            None => lines.push((first, more, vec![name])),
        }
    }
    let line = |(first, more, names): (&str, usize, Vec<&str>)| {
        hanging("  ", &format!("{}: {}", names.join(", "), with_more(first, more)))
    };
    lines.into_iter().map(line).collect()
}

/// Returns the first of several sources and the number of the others, which `--json` prints.
fn first_source(sources: &str) -> String {
    let (first, more) = first_of(sources);
    with_more(first, more)
}

fn first_of(sources: &str) -> (&str, usize) {
    let mut all = sources.split("; ");
    (all.next().unwrap_or_default(), all.count())
}

fn with_more(first: &str, more: usize) -> String {
    match more {
        0 => first.to_owned(),
        more => format!("{first}; {more} more with `--json`"),
    }
}

/// Returns the chosen releases of coupled packages as text; empty without any.
pub fn companions_text(choices: &[CompanionChoice]) -> String {
    if choices.is_empty() {
        return String::new();
    }
    let mut out = "\nCompanions\n".to_owned();
    for choice in choices {
        let version = choice.version.as_deref().unwrap_or("newest");
        out += &field(&choice.package, &format!("{version}: {}", choice.because));
        if let Some(wheel) = &choice.wheel {
            writeln!(out, "    file: {wheel}").expect("a String takes all");
        }
        if let Some(warning) = &choice.warning {
            out += &hanging("    warning: ", warning);
        }
        if let Some(nearest) = &choice.nearest {
            writeln!(out, "    nearest stack with a wheel: {nearest}").expect("a String takes all");
        }
    }
    out.push_str("\nSources of the companions\n");
    out + &by_source(choices.iter().map(|choice| (choice.source.as_str(), choice.package.as_str())))
}

/// Returns the line on packages about which the package index decides; empty without one. Of a framework the matrix has its CUDA and its
/// torch, which were compared.
pub fn not_checked_text(packages: &[String], matrix: &Matrix) -> String {
    if packages.is_empty() {
        return String::new();
    }
    let is_framework =
        |name: &str| matrix.products.iter().any(|product| product.package.as_deref() == Some(name));
    let named = packages.iter().map(|name| {
        if is_framework(name) { format!("{name} beyond what the matrix has of it") } else { name.clone() }
    });
    let names: Vec<_> = named.collect();
    let text = format!("{}: the package index decides at `envforge lock`", names.join(", "));
    "\n".to_owned() + &hanging("Not checked offline: ", &text)
}

/// Returns the violated rules and the alternatives as text.
pub fn refusal_text(refusal: &Unsatisfiable, target: &Target) -> String {
    let mut out = hanging(
        "",
        &format!(
            "cannot resolve {} for {}, {}",
            refusal.spec,
            target.machine.platform(),
            target_text(target)
        ),
    );
    for refused in &refusal.refusals {
        writeln!(out, "\n  {}", refused.rule).expect("a String takes all");
        out += &hanging("    ", &refused.text);
        out += &hanging("    source: ", &first_source(&refused.source));
    }
    if let Some(advice) = &refusal.driver {
        out.push_str("\nDrivers for this request:\n");
        for branch in std::iter::once(&advice.least).chain(&advice.supported) {
            out += &hanging("    ", &branch.text());
        }
        if let Some(last) = &advice.last_branch {
            out += &hanging("    ", last);
        }
    }
    if refusal.alternatives.is_empty() {
        out.push_str("\nNo alternatives for this target.\n");
    } else {
        out.push_str("\nAlternatives for this target:\n");
        for alternative in &refusal.alternatives {
            writeln!(out, "    {}", alternative.command).expect("a String takes all");
        }
    }
    out
}
