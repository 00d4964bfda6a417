//! The closest specs that resolve for the same target: at most three, closest match first.
//!
//! Every alternative has been resolved. Unverified rows and rows with unknown GPU code are excluded. Each release line
//! appears once (each line and CUDA, if a CUDA was requested), and at most one alternative drops the requested Python.

use super::candidate::{ResolveRequest, cuda_of};
use super::choose::solve;
use super::distance::{self, DistanceMetric};
use super::options::ResolveOptions;
use super::refusal::Alternative;
use super::rules::nearest_products;
use crate::matrix::tables::{Product, Variant};
use crate::spec::{Flavour, Spec};

/// The number of alternatives.
const MOST: usize = 3;

/// Returns the closest specs that resolve.
pub(super) fn nearest(question: &ResolveRequest<'_>) -> Vec<Alternative> {
    match question.matrix.product(&question.spec.name) {
        Some(product) => nearest_variants(question, product),
        None => nearest_names(question),
    }
}

/// Returns the same spec with similar product names.
fn nearest_names(question: &ResolveRequest<'_>) -> Vec<Alternative> {
    let typed = &question.spec.name;
    let renamed = nearest_products(question).into_iter().map(|product| {
        let spec = Spec { name: product.name.clone(), ..question.spec.clone() };
        let far = strsim::osa_distance(typed, &product.name);
        (spec, u32::try_from(far).unwrap_or(u32::MAX))
    });
    renamed
        .filter(|(spec, _)| resolves(question, spec))
        .map(|(spec, far)| alternative(question, spec, far))
        .take(MOST)
        .collect()
}

struct Offer<'a> {
    row: &'a Variant,
    spec: Spec,
    distance: u32,
    version_distance: u32,
}

fn nearest_variants(question: &ResolveRequest<'_>, product: &Product) -> Vec<Alternative> {
    let scale = DistanceMetric::new(question, product);
    let mut offers: Vec<Offer<'_>> = question
        .matrix
        .variants
        .iter()
        .filter(|row| row.framework == product.framework && row.machine == question.target.machine)
        .filter(|row| row.verified && row.arch.is_some())
        .flat_map(|row| offers_of(question, product, &scale, row))
        .collect();
    offers.sort_by(|a, b| {
        let key = |offer: &Offer<'_>| (offer.distance, offer.version_distance);
        let newer = (&b.row.version, b.row.cuda).cmp(&(&a.row.version, a.row.cuda));
        key(a).cmp(&key(b)).then(newer)
    });
    let mut chosen: Vec<(Offer<'_>, Alternative)> = Vec::new();
    for offer in offers {
        if chosen.len() == MOST {
            break;
        }
        let another = chosen.iter().any(|(taken, _)| taken.is_redundant_with(&offer, question.spec));
        if !another && resolves(question, &offer.spec) {
            let alternative = alternative(question, offer.spec.clone(), offer.distance);
            chosen.push((offer, alternative));
        }
    }
    chosen.into_iter().map(|(_, alternative)| alternative).collect()
}

impl Offer<'_> {
    /// Whether a second offer is redundant: the same release line (and CUDA, if one was requested), or a second one
    /// without the requested Python or flavour.
    fn is_redundant_with(&self, other: &Self, asked: &Spec) -> bool {
        let line = |offer: &Self| (offer.row.version.major(), offer.row.version.minor());
        let same_cuda = asked.cuda.is_none() || self.row.cuda == other.row.cuda;
        let drops = |offer: &Self| (offer.spec.python != asked.python, offer.spec.flavour != asked.flavour);
        (line(self) == line(other) && same_cuda)
            || (drops(self) == drops(other) && drops(self) != (false, false))
    }
}

/// Returns a row as a spec with all other parts of the request, and again without the parts that may be dropped.
fn offers_of<'a>(
    question: &ResolveRequest<'_>,
    product: &Product,
    scale: &DistanceMetric<'_>,
    row: &'a Variant,
) -> Vec<Offer<'a>> {
    let base = scale.between(row);
    let version_distance = scale.version(&row.version);
    let whole =
        Spec { version: Some(row.version.clone()), cuda: cuda_of(product, row), ..question.spec.clone() };
    let mut specs = vec![(whole.clone(), base)];
    if whole.python.is_some() {
        specs.push((Spec { python: None, ..whole.clone() }, base + distance::PYTHON));
    }
    if whole.flavour == Flavour::Devel {
        specs.extend(
            specs
                .clone()
                .into_iter()
                .map(|(spec, far)| (Spec { flavour: Flavour::Runtime, ..spec }, far + distance::FLAVOUR)),
        );
    }
    specs.into_iter().map(|(spec, distance)| Offer { row, spec, distance, version_distance }).collect()
}

fn resolves(question: &ResolveRequest<'_>, spec: &Spec) -> bool {
    solve(&ResolveRequest { spec, ..*question }).is_ok()
}

fn alternative(question: &ResolveRequest<'_>, spec: Spec, distance: u32) -> Alternative {
    Alternative { command: build_command(&spec, question.options), spec, distance }
}

/// The command that builds a spec on the base that was asked for, on which it was resolved.
pub(super) fn build_command(spec: &Spec, options: &ResolveOptions) -> String {
    let base = options.base.as_ref().map(|base| format!(" --base {base}")).unwrap_or_default();
    format!("envforge build {spec}{base}")
}
