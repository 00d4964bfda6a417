//! Rules about names, versions and published variants.

use std::fmt::Write as _;

use crate::matrix::tables::{KnownVersion, Product, RowlessWheels, SourceFloor, Status, Variant};
use crate::resolve::candidate::{ResolveRequest, cuda_of, gpu_label, package};
use crate::resolve::refusal::RuleViolation;
use crate::resolve::rule::Rule;
use crate::spec::{CudaRequest, Spec};
use crate::stack::Stack;
use crate::versions::FrameworkVersion;

/// The number of names or versions that a message suggests.
const NEAREST: usize = 3;

/// Returns the product of the spec, if the matrix has rows of it.
pub(crate) fn known_product<'a>(question: &ResolveRequest<'a>) -> Result<&'a Product, Vec<RuleViolation>> {
    let name = question.spec.name.as_str();
    let matrix = question.matrix;
    let text = match matrix.product(name) {
        Some(product) if matrix.variants.iter().any(|row| row.framework == product.framework) => {
            return Ok(product);
        }
        Some(_) => format!("product `{name}` has no rows in this matrix"),
        None if matrix.coupled_packages.iter().any(|row| row.package == name) => format!(
            "`{name}` is a package, not a product: request it next to one, as in `envforge plan pytorch-cuda --with {name}`"
        ),
        None => {
            let near = nearest_products(question);
            let meant = near.first().map(|near| format!("; did you mean `{}`?", near.name));
            format!("unknown product `{name}`{}", meant.unwrap_or_default())
        }
    };
    let mut with_rows: Vec<_> = matrix
        .products
        .iter()
        .filter(|product| matrix.variants.iter().any(|row| row.framework == product.framework))
        .map(|product| product.name.as_str())
        .collect();
    with_rows.sort_unstable();
    let text = format!("{text}; known: {}", with_rows.join(", "));
    Err(vec![RuleViolation::new(Rule::UnknownName, text, &format!("matrix {}", matrix.edition))])
}

/// Returns products whose name or alias is similar to the given one, closest match first.
pub(crate) fn nearest_products<'a>(question: &ResolveRequest<'a>) -> Vec<&'a Product> {
    let typed = question.spec.name.as_str();
    let far = |product: &Product| {
        let names = std::iter::once(&product.name).chain(&product.aliases).chain(&product.similar);
        names.map(|name| strsim::osa_distance(name, typed)).min().unwrap_or(usize::MAX)
    };
    let mut near: Vec<_> = question.matrix.products.iter().map(|product| (far(product), product)).collect();
    // A short word is near to every other.
    near.retain(|(distance, product)| *distance <= (product.name.len().min(typed.len()) / 3).min(4));
    near.sort_by(|a, b| (a.0, &a.1.name).cmp(&(b.0, &b.1.name)));
    near.into_iter().map(|(_, product)| product).take(NEAREST).collect()
}

/// Returns the versions of the product that the spec covers, newest first. A release that it names in full is meant alone: `0.12.0` is
/// 0.12.0 and not 0.12.0.1.
pub(crate) fn known_versions<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
) -> Result<Vec<&'a FrameworkVersion>, Vec<RuleViolation>> {
    let all = all_versions(question, product);
    let Some(asked) = &question.spec.version else {
        // A team's own build is chosen by its label alone.
        return Ok(all.into_iter().filter(|version| version.label().is_empty()).collect());
    };
    let covered: Vec<_> = all.iter().copied().filter(|version| covers(asked, version)).collect();
    if let Some(named) = covered.iter().copied().find(|version| version.is_named_by(asked)) {
        return Ok(vec![named]);
    }
    if !covered.is_empty() {
        return Ok(covered);
    }
    let name = package(product);
    let matrix = question.matrix;
    let near = nearest_versions(question, product, asked);
    let near = near.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let (text, source) = match known_version(question, product, asked) {
        Some(row) => (absent(name, row), row.source.clone()),
        None => (
            match all.last() {
                Some(oldest) if asked < *oldest => {
                    format!("unknown version {name} {asked}: the matrix starts at {oldest}")
                }
                _ => format!("unknown version {name} {asked}"),
            },
            format!("matrix {}", matrix.edition),
        ),
    };
    Err(vec![RuleViolation::new(Rule::UnknownVersion, format!("{text}; closest: {near}"), &source)])
}

/// Returns the text about a version, or a range of them, without rows.
fn absent(name: &str, row: &KnownVersion) -> String {
    match &row.last {
        None => format!("{name} {} exists, but is not in the matrix: {}", row.version, row.what),
        Some(last) => format!("{name} {} to {last} are not in the matrix: {}", row.version, row.what),
    }
}

/// Returns the known facts about a version without rows.
pub(crate) fn known_version<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
    asked: &FrameworkVersion,
) -> Option<&'a KnownVersion> {
    question
        .matrix
        .known_versions
        .iter()
        .filter(|row| row.framework == product.framework)
        .filter(|row| {
            let near = covers(asked, &row.version) || covers(&row.version, asked);
            near || row.covers(asked) || covers(asked, row.last())
        })
        .max_by(|a, b| a.version.cmp(&b.version))
}

/// Whether the version is unknown, so that the user probably meant another one. A version older than every row may exist
/// and does not count.
pub(crate) fn is_misspelt(
    question: &ResolveRequest<'_>,
    product: &Product,
    asked: &FrameworkVersion,
) -> bool {
    let all = all_versions(question, product);
    let known = all.iter().any(|version| covers(asked, version));
    let older = all.last().is_some_and(|oldest| asked < *oldest);
    !known && !older && known_version(question, product, asked).is_none()
}

/// Whether `version` equals `asked` or starts with it.
fn covers(asked: &FrameworkVersion, version: &FrameworkVersion) -> bool {
    version.is_meant_by(asked)
}

/// Returns every version of the product, newest first.
pub(crate) fn all_versions<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
) -> Vec<&'a FrameworkVersion> {
    let rows = question.matrix.variants.iter().filter(|row| row.framework == product.framework);
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.dedup();
    versions
}

/// Returns the known versions closest to an unknown one: by spelling first, then by number.
pub(crate) fn nearest_versions<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
    asked: &FrameworkVersion,
) -> Vec<&'a FrameworkVersion> {
    let mut all: Vec<_> = all_versions(question, product);
    let order = all.clone();
    let misspelt = is_misspelt(question, product, asked);
    all.sort_by_key(|version| {
        let between = order.iter().filter(|other| (asked.min(version)..=asked.max(version)).contains(other));
        (if misspelt { version_near(asked, version) } else { 0 }, between.count())
    });
    let mut lines = Vec::new();
    all.retain(|version| {
        let line = (version.major(), version.minor());
        let new = !lines.contains(&line);
        lines.push(line);
        new
    });
    all.truncate(NEAREST);
    all
}

/// Returns the edit distance between the given text and a version of the same length.
pub(crate) fn version_near(asked: &FrameworkVersion, version: &FrameworkVersion) -> usize {
    let typed = asked.to_string();
    let parts = version.parts();
    (1..=parts.len())
        .map(|count| {
            let text = parts[..count].iter().map(ToString::to_string).collect::<Vec<_>>().join(".");
            strsim::osa_distance(&typed, &text)
        })
        .min()
        .unwrap_or(usize::MAX)
}

/// Returns why wheels of a release for the target's processor have no row.
fn rowless<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
    version: &FrameworkVersion,
) -> Option<&'a RowlessWheels> {
    let requested = question.spec.cuda.map(|request| request.major);
    let is_of = |row: &&RowlessWheels| {
        row.framework == product.framework && row.cuda.is_none_or(|cuda| Some(cuda.major) == requested)
    };
    let mut rows = question.matrix.rowless_wheels.iter().filter(is_of);
    rows.find(|row| row.covers(&row.package, version, question.target.machine))
}

/// Returns the violation for a CUDA that is not published for this version and processor.
pub(crate) fn unpublished(
    question: &ResolveRequest<'_>,
    product: &Product,
    version: &FrameworkVersion,
    rows: &[&Variant],
) -> RuleViolation {
    let machine = question.target.machine;
    let name = package(product);
    let Some(row) = rows.first() else {
        if let Some(row) = rowless(question, product, version) {
            let text =
                format!("no CUDA build of {name} {version} for {machine} is in the matrix: {}", row.what);
            return RuleViolation::new(Rule::VariantUnpublished, text, &row.source);
        }
        let text = match releases(question, product, None, |row| row.verified) {
            Some(span) => format!(
                "no CUDA build of {name} {version} for {machine} is in the matrix; releases with one: {span}"
            ),
            None => format!("no CUDA build of {name} for {machine} is in the matrix"),
        };
        let source = format!("matrix {}", question.matrix.edition);
        return RuleViolation::new(Rule::VariantUnpublished, text, &source);
    };
    let request = question.spec.cuda.expect("asked only where a CUDA is named");
    let whole = CudaRequest { patch: None, ..request };
    if let Some(row) = rows.iter().find(|row| whole.covers(row.cuda, &row.toolkit)) {
        let text = format!(
            "{name} {version}+{} is built with CUDA {}, not {}",
            row.cuda,
            row.toolkit,
            request.dotted()
        );
        return RuleViolation::new(Rule::VariantUnpublished, text, &row.source);
    }
    let mut has: Vec<_> = rows.iter().map(|row| row.cuda).collect();
    has.sort_unstable();
    let has: Vec<_> = has.iter().map(ToString::to_string).collect();
    let mut text = format!(
        "no build of {name} {version} for CUDA {} is in the matrix; published: {}",
        request.dotted(),
        has.join(", ")
    );
    if let Some(row) = rowless(question, product, version) {
        write!(text, "; {}: {}", row.package, row.what).expect("a String takes all");
    }
    let confirmed = releases(question, product, Some(whole), |row| row.verified);
    match (confirmed, releases(question, product, Some(whole), |row| !row.verified)) {
        (Some(span), _) => write!(text, "; {name} with {whole}: {span}"),
        (None, Some(span)) => write!(text, "; {name} with {whole}, not confirmed: {span}"),
        (None, None) => write!(text, "; no {name} release in the matrix is for it"),
    }
    .expect("a String takes all");
    let mut source = row.source.clone();
    if let Some(floor) = floor_above(question, product, version, whole) {
        write!(text, "; its build system requires CUDA {} or newer", floor.cuda).expect("a String takes all");
        source = format!("{source}; {}", floor.source);
    }
    RuleViolation::new(Rule::VariantUnpublished, text, &source)
}

/// Returns the oldest CUDA that the build system of a version accepts, if the request is older.
fn floor_above<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
    version: &FrameworkVersion,
    request: CudaRequest,
) -> Option<&'a SourceFloor> {
    let minor = u32::from(request.minor?);
    let line = |row: &&SourceFloor| row.framework == product.framework && version.starts_with(&row.line);
    let floor = question.matrix.source_floors.iter().find(line)?;
    ((u32::from(request.major), minor) < (floor.cuda.major(), floor.cuda.minor())).then_some(floor)
}

/// Returns the first and last release with such a build for this processor (and this CUDA).
fn releases(
    question: &ResolveRequest<'_>,
    product: &Product,
    request: Option<CudaRequest>,
    is_counted: impl Fn(&Variant) -> bool,
) -> Option<String> {
    let rows = question.matrix.variants.iter().filter(|row| {
        row.framework == product.framework
            && row.machine == question.target.machine
            && is_counted(row)
            && request.is_none_or(|request| request.covers(row.cuda, &row.toolkit))
    });
    let mut versions: Vec<_> = rows.map(|row| &row.version).collect();
    versions.sort_unstable();
    let (first, last) = (versions.first()?, versions.last()?);
    Some(if first == last { first.to_string() } else { format!("{first} to {last}") })
}

/// Returns the violation for a version whose variants must all be requested explicitly.
pub(crate) fn nothing_to_choose(
    product: &Product,
    version: &FrameworkVersion,
    rows: &[&Variant],
) -> RuleViolation {
    let why = |row: &&Variant| {
        let mut words = vec![match row.status {
            Status::Experimental => "experimental",
            Status::Unlisted => "not in the official release list",
            Status::Stable | Status::Legacy => "listed",
        }];
        if !row.verified {
            words.push("publication not confirmed");
        }
        if row.arch.is_none() {
            words.push("GPU code unknown");
        }
        format!("{} ({})", row.cuda, words.join(", "))
    };
    let text = format!(
        "{} {version} has only variants that must be requested explicitly: {}",
        package(product),
        rows.iter().map(why).collect::<Vec<_>>().join(", ")
    );
    RuleViolation::new(Rule::VariantUnpublished, text, rows.first().map_or("", |row| &row.source))
}

/// Returns the violation for a choice whose GPU code was not read and which the request does not name.
pub(crate) fn unread_code(question: &ResolveRequest<'_>, product: &Product, stack: &Stack) -> RuleViolation {
    let target = question.target;
    let row = question.matrix.variants.iter().find(|row| {
        let same = row.framework == product.framework && row.version == stack.version;
        same && row.cuda == stack.cuda && row.machine == stack.machine
    });
    let gpus: Vec<_> = target.capabilities().into_iter().map(|gpu| gpu_label(target, gpu)).collect();
    let gpus = if gpus.is_empty() { "a GPU".to_owned() } else { gpus.join(", ") };
    let named = Spec {
        version: Some(stack.version.clone()),
        cuda: row.and_then(|row| cuda_of(product, row)),
        ..question.spec.clone()
    };
    let choose = if question.options.refuse_unknown {
        "`unknown = \"refuse\"` in `[policy]` refuses it".to_owned()
    } else {
        format!("to choose it all the same, request `{named}`")
    };
    let text = format!(
        "{} {}+{} fits, but its GPU code was not read, so whether it runs on {gpus} is not known; {choose}",
        stack.package, stack.version, stack.cuda
    );
    RuleViolation::new(Rule::GpuCodeUnknown, text, row.map_or("", |row| &row.source))
}
