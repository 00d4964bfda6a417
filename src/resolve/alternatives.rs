//! The nearest specs that do resolve on the same target: at most three, nearest first.
//!
//! Every offer is resolved before it is made. Rows that are unverified, or whose GPU code is not established, are
//! never offered. Of one release line only the nearest is (of one line and CUDA, if a CUDA was asked for), and at most
//! one offer leaves out the Python that was asked for.

use super::candidate::{Question, cuda_of};
use super::choose::solve;
use super::distance::{self, Scale};
use super::options::ResolveOptions;
use super::refusal::Alternative;
use super::rules::nearest_products;
use crate::compat::Matrix;
use crate::compat::tables::{Product, Variant};
use crate::spec::Spec;
use crate::stack::Flavour;
use crate::target::Target;

/// How many are offered.
const MOST: usize = 3;

/// The nearest specs that resolve.
pub(super) fn nearest(question: &Question<'_>) -> Vec<Alternative> {
    match question.matrix.product(&question.spec.name) {
        Some(product) => nearest_variants(question, product),
        None => nearest_names(question),
    }
}

/// The nearest published specs for a stack that is built from source.
pub fn nearest_published(
    spec: &Spec,
    target: &Target,
    matrix: &Matrix,
    options: &ResolveOptions,
) -> Vec<Alternative> {
    nearest(&Question { spec, target, matrix, options })
}

/// The same spec under the names that were probably meant.
fn nearest_names(question: &Question<'_>) -> Vec<Alternative> {
    let typed = &question.spec.name;
    let renamed = nearest_products(question).into_iter().map(|product| {
        let spec = Spec { name: product.name.clone(), ..question.spec.clone() };
        let far = strsim::osa_distance(typed, &product.name);
        (spec, u32::try_from(far).unwrap_or(u32::MAX))
    });
    renamed
        .filter(|(spec, _)| resolves(question, spec))
        .map(|(spec, far)| alternative(spec, far))
        .take(MOST)
        .collect()
}

struct Offer<'a> {
    row: &'a Variant,
    spec: Spec,
    distance: u32,
    version_distance: u32,
}

fn nearest_variants(question: &Question<'_>, product: &Product) -> Vec<Alternative> {
    let scale = Scale::new(question, product);
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
        let another = chosen.iter().any(|(taken, _)| taken.says_the_same(&offer, question.spec));
        if !another && resolves(question, &offer.spec) {
            let alternative = alternative(offer.spec.clone(), offer.distance);
            chosen.push((offer, alternative));
        }
    }
    chosen.into_iter().map(|(_, alternative)| alternative).collect()
}

impl Offer<'_> {
    /// True if a second offer would teach nothing: the same release line (and CUDA, if one was asked for), or a second
    /// one without the Python or the flavour that was asked for.
    fn says_the_same(&self, other: &Self, asked: &Spec) -> bool {
        let line = |offer: &Self| (offer.row.version.major(), offer.row.version.minor());
        let same_cuda = asked.cuda.is_none() || self.row.cuda == other.row.cuda;
        let drops = |offer: &Self| (offer.spec.python != asked.python, offer.spec.flavour != asked.flavour);
        (line(self) == line(other) && same_cuda)
            || (drops(self) == drops(other) && drops(self) != (false, false))
    }
}

/// A row as a spec that keeps all of the rest, and again with what may have to go.
fn offers_of<'a>(
    question: &Question<'_>,
    product: &Product,
    scale: &Scale<'_>,
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

fn resolves(question: &Question<'_>, spec: &Spec) -> bool {
    solve(&Question { spec, ..*question }).is_ok()
}

fn alternative(spec: Spec, distance: u32) -> Alternative {
    Alternative { command: format!("envforge build {spec}"), spec, distance }
}
