//! Chooses what was left out, in a fixed order, and stops at the first choice that no rule refuses.
//!
//! Order: version, newest first; CUDA: the default index's variant, then the stable and legacy ones, newest first
//! (or what was named); Python and base together, in the order of [`bases_in_order`]. What nobody publishes is built from
//! source only if its CUDA is named to the minor.

use std::fmt::Write as _;

use std::cmp::Reverse;

use super::alternatives::nearest;
use super::candidate::{Candidate, Question};
use super::options::ResolveOptions;
use super::reasons::{Trail, build_stack};
use super::refusal::{Refusal, Refused};
use super::rule::Rule;
use super::rules;
use crate::compat::Matrix;
use crate::compat::tables::{Base, Channel, Product, Status, Variant};
use crate::spec::Spec;
use crate::stack::{Flavour, NvccSource, Stack};
use crate::target::Target;
use crate::versions::{FrameworkVersion, PythonVersion};

/// The stack for a spec on a target, or every reason why there is none and what is nearest.
pub fn resolve(
    spec: &Spec,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> Result<Stack, Refusal> {
    let question = Question { spec, target, matrix, options };
    solve(&question).map_err(|refusals| Refusal {
        spec: Box::new(spec.clone()),
        refusals,
        alternatives: nearest(&question),
    })
}

/// The answer without alternatives.
pub(crate) fn solve(question: &Question<'_>) -> Result<Stack, Vec<Refused>> {
    let product = rules::known_product(question)?;
    let versions = rules::known_versions(question, product)?;
    let mut newest = None;
    let mut trail = Trail::default();
    for version in versions.iter().copied() {
        match solve_version(question, product, version, &mut trail) {
            Ok(stack) => return Ok(stack),
            Err(refusals) => {
                trail.versions.push((version.clone(), rule_ids(&refusals)));
                newest.get_or_insert(refusals);
            }
        }
    }
    from_source(question, product, &versions, newest.unwrap_or_default())
}

/// What nobody published, built from source, if the matrix knows how; else the refusals of what is published.
fn from_source(
    question: &Question<'_>,
    product: &Product,
    versions: &[&FrameworkVersion],
    mut refusals: Vec<Refused>,
) -> Result<Stack, Vec<Refused>> {
    let Some(wish) = question.spec.cuda.filter(|wish| wish.minor.is_some()) else { return Err(refusals) };
    let asked = |row: &&Variant| {
        row.framework == product.framework
            && row.machine == question.target.machine
            && versions.contains(&&row.version)
            && wish.covers(row.cuda, &row.toolkit)
    };
    if question.matrix.variants.iter().any(|row| asked(&row)) {
        return Err(refusals);
    }
    let newest = question.matrix.source_variants.iter().filter(asked).max_by_key(|row| &row.version);
    let Some(variant) = newest else { return Err(refusals) };
    if question.options.no_source {
        if let Some(refused) = refusals.iter_mut().find(|refused| refused.rule == Rule::VariantUnpublished) {
            refused.text.push_str(
                "; it can be built from source, but only if it is named alone and without `--no-source`",
            );
        }
        return Err(refusals);
    }
    solve_variant(question, product, variant, &mut Trail::default()).map_err(|of_build| {
        let new: Vec<_> = of_build
            .into_iter()
            .filter(|refused| refusals.iter().all(|said| said.rule != refused.rule))
            .collect();
        refusals.extend(new);
        refusals
    })
}

fn rule_ids(refusals: &[Refused]) -> Vec<Rule> {
    let mut ids: Vec<_> = refusals.iter().map(|refused| refused.rule).collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

fn solve_version(
    question: &Question<'_>,
    product: &Product,
    version: &FrameworkVersion,
    trail: &mut Trail,
) -> Result<Stack, Vec<Refused>> {
    let rows = rows_of(question, product, version);
    let wish = question.spec.cuda;
    let asked: Vec<_> = rows
        .iter()
        .copied()
        .filter(|row| wish.is_none_or(|wish| wish.covers(row.cuda, &row.toolkit)))
        .collect();
    if asked.is_empty() {
        let mut refusals = vec![rules::unpublished(question, product, version, &rows)];
        refusals.extend(python_refusals(question, product, &rows));
        return Err(refusals);
    }
    let named = |row: &Variant| wish.is_some_and(|wish| wish.minor.is_some() || row.cuda.minor.is_none());
    let choosable: Vec<_> = asked.iter().copied().filter(|row| named(row) || may_be_chosen(row)).collect();
    if choosable.is_empty() {
        return Err(vec![rules::nothing_to_choose(product, version, &asked)]);
    }
    trail.variants.clear();
    let mut refused = Vec::new();
    for variant in choosable {
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

/// The rows of a version for the target's processor, in the order in which they are tried.
fn rows_of<'a>(question: &Question<'a>, product: &Product, version: &FrameworkVersion) -> Vec<&'a Variant> {
    let fits = |row: &&Variant| {
        row.framework == product.framework
            && row.version == *version
            && row.machine == question.target.machine
    };
    let mut rows: Vec<_> = question.matrix.variants.iter().filter(fits).collect();
    rows.sort_by_key(|row| (row.channel != Channel::Default, row.status, Reverse(row.cuda)));
    rows
}

/// True if a variant may be chosen although nobody named it.
pub(crate) fn may_be_chosen(row: &Variant) -> bool {
    let listed = matches!(row.status, Status::Stable | Status::Legacy);
    row.verified && row.arch.is_some() && (row.channel == Channel::Default || listed)
}

/// What Python alone refuses where there is no binary to judge.
fn python_refusals(question: &Question<'_>, product: &Product, rows: &[&Variant]) -> Vec<Refused> {
    let Some(variant) = rows.first() else { return Vec::new() };
    let Some((python, base)) = bases_in_order(question, product, variant).into_iter().next() else {
        return Vec::new();
    };
    rules::judge_python(&Candidate { question: *question, product, variant, python, base })
}

fn solve_variant(
    question: &Question<'_>,
    product: &Product,
    variant: &Variant,
    trail: &mut Trail,
) -> Result<Stack, Vec<Refused>> {
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

/// Pythons with the base that brings each, in the order in which they are tried.
///
/// The default base comes first, then those envforge can build itself, then checked ones, then the newest C library.
/// Where Python is open, bases whose Python the companions have too go before those that only the framework serves.
pub(crate) fn bases_in_order<'a>(
    question: &Question<'a>,
    product: &'a Product,
    variant: &'a Variant,
) -> Vec<(PythonVersion, Option<&'a Base>)> {
    let named = question.options.base.as_deref();
    let mut bases: Vec<_> =
        question.matrix.bases.iter().filter(|base| named.is_none_or(|name| base.name == name)).collect();
    bases.sort_by(|a, b| {
        let key = |base: &&'a Base| (!base.default, !base.bootstrap, !base.checked);
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
        // No framework asks for a Python: a base with that nvcc of its own goes before one that needs the vendor.
        bases.sort_by_key(|base| {
            let python = base.python;
            let candidate = Candidate { question: *question, product, variant, python, base: Some(base) };
            rules::toolkit::nvcc(&candidate).map_or(NvccSource::Vendor, |choice| choice.nvcc.source)
                == NvccSource::Vendor
        });
    }
    let own = |base: &&&Base| variant.python.contains(&base.python);
    let whole = |base: &&&Base| missing_companions(question.matrix, variant, base.python).is_empty();
    let pair = |base: &&'a Base| (base.python, Some(*base));
    let mut order: Vec<_> = bases.iter().filter(own).filter(whole).map(pair).collect();
    order.extend(bases.iter().filter(own).filter(|base| !whole(base)).map(pair));
    if order.is_empty() {
        let newest = variant.python.iter().max().copied();
        order.extend(bases.first().map(pair).or(newest.map(|python| (python, None))));
    }
    order
}

/// Companions of a variant that have no wheel for a Python.
pub(crate) fn missing_companions<'a>(
    matrix: &Matrix,
    variant: &'a Variant,
    python: PythonVersion,
) -> Vec<(&'a str, &'a str)> {
    let lacks = |package: &str, version: &str| {
        matrix
            .companion(package, version)
            .is_some_and(|row| !row.python.is_empty() && !row.python.contains(&python))
    };
    let all = variant.companions.iter().map(|(package, version)| (package.as_str(), version.as_str()));
    all.filter(|(package, version)| lacks(package, version)).collect()
}

/// The refusals of several variants as one list: each rule once, in the words of the variant tried first.
fn merged(refused: Vec<(&Variant, Vec<Refused>)>) -> Vec<Refused> {
    let mut all: Vec<(Refused, Vec<String>)> = Vec::new();
    for (variant, refusals) in refused {
        for refusal in refusals {
            match all.iter_mut().find(|(first, _)| first.rule == refusal.rule) {
                Some((first, also)) if first.text != refusal.text => also.push(variant.cuda.to_string()),
                Some(_) => {}
                None => all.push((refusal, Vec::new())),
            }
        }
    }
    let say = |(mut refusal, also): (Refused, Vec<String>)| {
        if !also.is_empty() {
            write!(refusal.text, "; this rule refuses {} too", also.join(", ")).expect("a String takes all");
        }
        refusal
    };
    all.into_iter().map(say).collect()
}
