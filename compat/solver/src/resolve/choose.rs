//! Chooses the omitted parts in a fixed order and stops at the first choice that violates no rule.
//!
//! Order: version, newest first; CUDA: the default index's variant, then the stable ones, the legacy ones and the
//! experimental ones, each newest first (or the requested ones); Python and base together, in the order of
//! [`bases_in_order`]. A variant whose GPU code was not read is chosen only if the request names its version and CUDA, after
//! all others; else it is named in the refusal. An unpublished variant is built from source only if the request includes the
//! CUDA minor.

use std::fmt::Write as _;

use std::cmp::Reverse;

use super::candidate::{Candidate, ResolveRequest};
use super::refusal::RuleViolation;
use super::rejected::RejectedCandidates;
use super::rule::Rule;
use super::rules;
use super::selected_stack::build_stack;
use crate::matrix::tables::{Base, Channel, Product, Status, Variant};
use crate::stack::{Flavour, NvccSource, Stack};
use crate::versions::{FrameworkVersion, PythonVersion};

/// Returns the stack or every violated rule, without alternatives.
pub(crate) fn solve(question: &ResolveRequest<'_>) -> Result<Stack, Vec<RuleViolation>> {
    let product = rules::known_product(question)?;
    let versions = rules::known_versions(question, product)?;
    let mut newest: Option<(usize, Vec<RuleViolation>)> = None;
    let mut unread = None;
    let mut trail = RejectedCandidates::default();
    for code in [GpuCode::Known, GpuCode::Unknown] {
        for (age, version) in versions.iter().copied().enumerate() {
            match solve_version(question, product, version, code, &mut trail) {
                Ok(stack) if code == GpuCode::Known || is_wanted(question, &stack) => return Ok(stack),
                Ok(stack) => {
                    unread.get_or_insert_with(|| rules::unread_code(question, product, &stack));
                }
                Err(refusals) if refusals.is_empty() => {}
                Err(refusals) => {
                    trail.versions.push((version.clone(), rule_ids(&refusals)));
                    if newest.as_ref().is_none_or(|(known, _)| age < *known) {
                        newest = Some((age, refusals));
                    }
                }
            }
        }
    }
    let refusals = newest.map(|(_, refusals)| refusals).unwrap_or_default();
    from_source(question, product, &versions, unread.into_iter().chain(refusals).collect())
}

/// Whether the GPU code of the variants under trial is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GpuCode {
    Known,
    Unknown,
}

/// Whether a choice whose GPU code is unknown is taken: it is named, and no policy refuses it.
fn is_wanted(question: &ResolveRequest<'_>, stack: &Stack) -> bool {
    !question.options.refuse_unknown && names_it(question, stack)
}

/// Whether the request names version and CUDA of a choice.
fn names_it(question: &ResolveRequest<'_>, stack: &Stack) -> bool {
    let spec = question.spec;
    let cuda = spec.cuda.is_some_and(|request| request.minor.is_some() || stack.cuda.minor.is_none());
    spec.version.is_some() && cuda
}

/// Returns an unpublished variant as a source build, if the matrix has one; else the violations of the published variants.
fn from_source(
    question: &ResolveRequest<'_>,
    product: &Product,
    versions: &[&FrameworkVersion],
    mut refusals: Vec<RuleViolation>,
) -> Result<Stack, Vec<RuleViolation>> {
    let Some(request) = question.spec.cuda.filter(|request| request.minor.is_some()) else {
        return Err(refusals);
    };
    let asked = |row: &&Variant| {
        row.framework == product.framework
            && row.machine == question.target.machine
            && versions.contains(&&row.version)
            && request.covers(row.cuda, &row.toolkit)
    };
    if question.matrix.variants.iter().any(|row| asked(&row)) {
        return Err(refusals);
    }
    let newest = question.matrix.source_variants.iter().filter(asked).max_by_key(|row| &row.version);
    let Some(variant) = newest else { return Err(refusals) };
    if question.options.no_source {
        if let Some(refused) = refusals.iter_mut().find(|refused| refused.rule == Rule::VariantUnpublished) {
            refused.text.push_str("; to build it from source, request it alone and without `--no-source`");
        }
        return Err(refusals);
    }
    solve_variant(question, product, variant, &mut RejectedCandidates::default()).map_err(|of_build| {
        let new: Vec<_> = of_build
            .into_iter()
            .filter(|refused| refusals.iter().all(|known| known.rule != refused.rule))
            .collect();
        refusals.extend(new);
        refusals
    })
}

fn rule_ids(refusals: &[RuleViolation]) -> Vec<Rule> {
    let mut ids: Vec<_> = refusals.iter().map(|refused| refused.rule).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Tries the variants of one version; no violations if none of them belongs to this trial.
fn solve_version(
    question: &ResolveRequest<'_>,
    product: &Product,
    version: &FrameworkVersion,
    code: GpuCode,
    trail: &mut RejectedCandidates,
) -> Result<Stack, Vec<RuleViolation>> {
    let rows = rows_of(question, product, version);
    let request = question.spec.cuda;
    let first = code == GpuCode::Known;
    let mut asked: Vec<_> = rows
        .iter()
        .copied()
        .filter(|row| request.is_none_or(|request| request.covers(row.cuda, &row.toolkit)))
        .collect();
    let exact = |row: &&Variant| request.is_some_and(|request| request.minor == row.cuda.minor);
    if asked.iter().any(exact) {
        asked.retain(exact);
    }
    if asked.is_empty() {
        if !first {
            return Err(Vec::new());
        }
        let mut refusals = vec![rules::unpublished(question, product, version, &rows)];
        refusals.extend(python_refusals(question, product, &rows));
        return Err(refusals);
    }
    let named =
        |row: &Variant| request.is_some_and(|request| request.minor.is_some() || row.cuda.minor.is_none());
    let choosable: Vec<_> = asked.iter().copied().filter(|row| named(row) || is_selectable(row)).collect();
    if choosable.is_empty() {
        let refused = || vec![rules::nothing_to_choose(product, version, &asked)];
        return Err(if first { refused() } else { Vec::new() });
    }
    if choosable.iter().all(|row| row.arch.is_some() != first) {
        return Err(Vec::new());
    }
    trail.variants.clear();
    let mut refused = Vec::new();
    // Those with known code are tried again in the second trial: the reason for the choice names them.
    for variant in choosable.into_iter().filter(|row| !first || row.arch.is_some()) {
        match solve_variant(question, product, variant, trail) {
            Ok(stack) => return Ok(stack),
            Err(refusals) => {
                trail.variants.push((variant.cuda, rule_ids(&refusals)));
                refused.push((variant, refusals));
            }
        }
    }
    Err(merged(refused))
}

/// Returns the rows of a version for the target's processor, in the order of trial.
fn rows_of<'a>(
    question: &ResolveRequest<'a>,
    product: &Product,
    version: &FrameworkVersion,
) -> Vec<&'a Variant> {
    let fits = |row: &&Variant| {
        row.framework == product.framework
            && row.version == *version
            && row.machine == question.target.machine
    };
    let mut rows: Vec<_> = question.matrix.variants.iter().filter(fits).collect();
    rows.sort_by_key(|row| (row.channel != Channel::Default, standing(row.status), Reverse(row.cuda)));
    rows
}

/// Returns the order in which variants of a status are tried.
fn standing(status: Status) -> u8 {
    match status {
        Status::Stable => 0,
        Status::Legacy => 1,
        Status::Experimental => 2,
        Status::Unlisted => 3,
    }
}

/// Whether a variant may be chosen without an explicit request: its publication is confirmed, and it is listed upstream
/// or on the default index.
pub(crate) fn is_selectable(row: &Variant) -> bool {
    row.verified && (row.channel == Channel::Default || row.status != Status::Unlisted)
}

/// Returns the violations by Python alone, for requests without a binary.
fn python_refusals(
    question: &ResolveRequest<'_>,
    product: &Product,
    rows: &[&Variant],
) -> Vec<RuleViolation> {
    let Some(variant) = rows.first() else { return Vec::new() };
    let Some((python, base)) = bases_in_order(question, product, variant).into_iter().next() else {
        return Vec::new();
    };
    rules::judge_python(&Candidate { question: *question, product, variant, python, base })
}

fn solve_variant(
    question: &ResolveRequest<'_>,
    product: &Product,
    variant: &Variant,
    trail: &mut RejectedCandidates,
) -> Result<Stack, Vec<RuleViolation>> {
    let mut first = None;
    trail.bases.clear();
    for (python, base) in bases_in_order(question, product, variant) {
        let candidate = Candidate { question: *question, product, variant, python, base };
        let refusals = rules::judge(&candidate);
        match base {
            Some(base) if refusals.is_empty() => return Ok(build_stack(&candidate, base, trail)),
            Some(base) => trail.bases.push((base.name.clone(), rule_ids(&refusals))),
            None => {}
        }
        first.get_or_insert(refusals);
    }
    Err(first.unwrap_or_default())
}

/// Returns the Pythons with their bases, in the order of trial.
///
/// The default base comes first, then those envforge can build itself, then checked ones, then the newest C library.
/// Without a requested Python, bases whose Python all companions support precede those that only the framework supports.
pub(crate) fn bases_in_order<'a>(
    question: &ResolveRequest<'a>,
    product: &'a Product,
    variant: &'a Variant,
) -> Vec<(PythonVersion, Option<&'a Base>)> {
    let named = question.options.base.as_deref();
    let mut bases: Vec<_> =
        question.matrix.bases.iter().filter(|base| named.is_none_or(|name| base.name == name)).collect();
    bases.sort_by(|a, b| {
        let is_built = |base: &&'a Base| base.bootstrap && base.experimental.is_none();
        let key = |base: &&'a Base| (!base.default, !is_built(base), !base.checked);
        key(a).cmp(&key(b)).then_with(|| b.glibc.cmp(&a.glibc)).then_with(|| a.name.cmp(&b.name))
    });
    if let Some(python) = question.spec.python {
        let mut fitting: Vec<_> =
            bases.iter().filter(|base| base.python == python).map(|base| (python, Some(*base))).collect();
        if fitting.is_empty() {
            fitting.push((python, None));
        }
        return fitting;
    }
    if product.package.is_none() && question.spec.flavour == Flavour::Devel {
        // No framework requires a Python: a base with its own nvcc goes before one that needs the vendor.
        bases.sort_by_key(|base| {
            let python = base.python;
            let candidate = Candidate { question: *question, product, variant, python, base: Some(base) };
            rules::toolkit::nvcc(&candidate).map_or(NvccSource::Vendor, |choice| choice.nvcc.source)
                == NvccSource::Vendor
        });
    }
    let own = |base: &&&Base| variant.python.contains(&base.python);
    let whole = |base: &&&Base| question.matrix.missing_companions(variant, base.python).is_empty();
    let pair = |base: &&'a Base| (base.python, Some(*base));
    let mut order: Vec<_> = bases.iter().filter(own).filter(whole).map(pair).collect();
    order.extend(bases.iter().filter(own).filter(|base| !whole(base)).map(pair));
    if order.is_empty() {
        let newest = variant.python.iter().max().copied();
        order.extend(bases.first().map(pair).or(newest.map(|python| (python, None))));
    }
    order
}

/// Merges the violations of several variants: each rule once, with the text of the first variant.
fn merged(refused: Vec<(&Variant, Vec<RuleViolation>)>) -> Vec<RuleViolation> {
    let mut all: Vec<(RuleViolation, Vec<String>)> = Vec::new();
    for (variant, refusals) in refused {
        for refusal in refusals {
            match all.iter_mut().find(|(first, _)| first.rule == refusal.rule) {
                Some((first, also)) if first.text != refusal.text => also.push(variant.cuda.to_string()),
                Some(_) => {}
                None => all.push((refusal, Vec::new())),
            }
        }
    }
    let merge = |(mut refusal, also): (RuleViolation, Vec<String>)| {
        if !also.is_empty() {
            write!(refusal.text, "; also violated by {}", also.join(", ")).expect("a String takes all");
        }
        refusal
    };
    all.into_iter().map(merge).collect()
}
