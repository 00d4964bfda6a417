//! The nearest specs that do resolve on the same target: at most three, nearest first.
//!
//! Every offer is resolved before it is made. Rows that are unverified, or whose GPU code is not established, are
//! never offered; of one release line and CUDA only the nearest is.

use std::cmp::Reverse;

use super::candidate::Question;
use super::choose::solve;
use super::distance;
use super::refusal::Alternative;
use super::rules::nearest_products;
use crate::compat::tables::{Product, Variant};
use crate::spec::Spec;
use crate::stack::Flavour;

/// How many are offered.
const MOST: usize = 3;

/// The nearest specs that resolve.
pub(super) fn nearest(question: &Question<'_>) -> Vec<Alternative> {
    match question.matrix.product(&question.spec.name) {
        Some(product) => nearest_variants(question, product),
        None => nearest_names(question),
    }
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
        .map(|(spec, far)| offer(spec, far))
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
    let mut offers: Vec<Offer<'_>> = question
        .matrix
        .variants
        .iter()
        .filter(|row| row.framework == product.framework && row.machine == question.target.machine)
        .filter(|row| row.verified && row.arch.is_some())
        .flat_map(|row| offers_of(question, product, row))
        .collect();
    offers.sort_by_key(|offer| {
        let newer = (Reverse(offer.row.version.clone()), Reverse(offer.row.cuda));
        (offer.distance, offer.version_distance, newer, offer.spec.to_string())
    });
    let mut taken = Vec::new();
    let mut chosen = Vec::new();
    for offer_ in offers {
        let line = (offer_.row.version.major(), offer_.row.version.minor(), offer_.row.cuda);
        if chosen.len() < MOST && !taken.contains(&line) && resolves(question, &offer_.spec) {
            taken.push(line);
            chosen.push(offer(offer_.spec, offer_.distance));
        }
    }
    chosen
}

/// A row as a spec that keeps all of the rest, and again with what may have to go.
fn offers_of<'a>(question: &Question<'_>, product: &Product, row: &'a Variant) -> Vec<Offer<'a>> {
    let base = distance::between(question, product, row);
    let version_distance = distance::version(question, product, &row.version);
    let whole =
        Spec { version: Some(row.version.clone()), cuda: Some(row.cuda.into()), ..question.spec.clone() };
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

fn offer(spec: Spec, distance: u32) -> Alternative {
    Alternative { command: format!("envforge build {spec}"), spec, distance }
}
