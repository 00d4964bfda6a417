//! `list`: every published variant and every source build, and whether it runs on the target.

use serde::Serialize;

use super::candidate::{Candidate, ResolveRequest, cuda_of};
use super::options::ResolveOptions;
use super::rule::Rule;
use super::rules;
use crate::matrix::Matrix;
use crate::matrix::tables::{Channel, Product, Status, Variant};
use crate::spec::Spec;
use crate::target::Target;
use crate::versions::{ComputeCapability, LibraryVersion, PythonVersion};

/// The object that `list --json` prints.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListReport {
    /// Version of this shape.
    pub schema: u32,
    /// The variants, newest first.
    pub entries: Vec<ListEntry>,
}

impl ListReport {
    /// Returns the report of these entries.
    pub fn new(entries: Vec<ListEntry>) -> Self {
        Self { schema: 1, entries }
    }
}

/// One published variant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ListEntry {
    /// Its spec: `pytorch-cuda:2.8.0-cu128`.
    pub spec: Spec,
    /// Where it is published.
    pub channel: Channel,
    /// Its status upstream.
    pub status: Status,
    /// Pythons with a wheel.
    pub python: Vec<PythonVersion>,
    /// cuDNN, if known.
    pub cudnn: Option<LibraryVersion>,
    /// NCCL, if known.
    pub nccl: Option<LibraryVersion>,
    /// GPU targets with machine code; null: not known.
    pub gpu: Option<Vec<ComputeCapability>>,
    /// GPU targets with PTX.
    pub ptx: Vec<ComputeCapability>,
    /// `>=525.60.13`.
    pub driver: Option<String>,
    /// Whether it runs on the target; null if target or binary are unknown.
    pub runs_here: Option<bool>,
    /// The violated rules.
    pub why_not: Vec<Rule>,
}

/// Returns the variants that match a filter for the target's processor, newest first. Rows with unconfirmed publication
/// are excluded unless the filter includes their CUDA.
pub fn entries(
    matrix: &Matrix,
    filter: Option<&Spec>,
    target: &Target,
    options: &ResolveOptions,
) -> Vec<ListEntry> {
    published(matrix, filter, target, options)
        .iter()
        .map(|found| found.entry(matrix, target, options))
        .collect()
}

/// A published variant of a product.
pub(super) struct Published<'a> {
    product: &'a Product,
    pub(super) variant: &'a Variant,
    /// The spec that names it.
    pub(super) spec: Spec,
}

/// Returns the variants that [`entries`] describes, in its order.
pub(super) fn published<'a>(
    matrix: &'a Matrix,
    filter: Option<&Spec>,
    target: &Target,
    options: &ResolveOptions,
) -> Vec<Published<'a>> {
    let mut products: Vec<_> = matrix.products.iter().collect();
    products.sort_by(|a, b| a.name.cmp(&b.name));
    let mut all = Vec::new();
    let named = filter.and_then(|spec| matrix.product(&spec.name));
    for product in products.into_iter().filter(|product| filter.is_none() || named == Some(*product)) {
        let fits = |row: &&Variant| {
            row.framework == product.framework
                && row.machine == target.machine
                && filter.map_or(row.verified, |spec| covers(spec, row))
        };
        let from_source = matrix.source_variants.iter().filter(|_| !options.no_source);
        let mut rows: Vec<_> = matrix.variants.iter().chain(from_source).filter(fits).collect();
        rows.sort_by(|a, b| (&b.version, b.cuda).cmp(&(&a.version, a.cuda)));
        all.extend(rows.into_iter().map(|variant| {
            let (version, cuda) = (Some(variant.version.clone()), cuda_of(product, variant));
            Published { product, variant, spec: Spec { version, cuda, ..Spec::of(&product.name) } }
        }));
    }
    all
}

fn covers(spec: &Spec, row: &Variant) -> bool {
    spec.version.as_ref().is_none_or(|version| row.version.is_meant_by(version))
        && spec.cuda.map_or(row.verified, |request| request.covers(row.cuda, &row.toolkit))
        && spec.python.is_none_or(|python| row.python.contains(&python))
}

impl<'a> Published<'a> {
    /// Returns the variant on its newest Python, as a choice for the rules about the machine.
    pub(super) fn candidate<'b>(&self, question: ResolveRequest<'b>) -> Candidate<'b>
    where
        'a: 'b,
    {
        let python =
            self.variant.python.iter().max().copied().unwrap_or(PythonVersion { major: 3, minor: 0 });
        Candidate { question, product: self.product, variant: self.variant, python, base: None }
    }

    /// Returns its row of a list.
    pub(super) fn entry(&self, matrix: &Matrix, target: &Target, options: &ResolveOptions) -> ListEntry {
        let Self { variant, spec, .. } = self;
        let candidate = self.candidate(ResolveRequest { spec, target, matrix, options });
        let why_not: Vec<_> =
            rules::judge_machine(&candidate).into_iter().map(|refused| refused.rule).collect();
        let open = (target.driver.is_none() && target.gpus.is_empty())
            || (variant.arch.is_none() && !target.gpus.is_empty());
        let runs_here = match (why_not.is_empty(), open) {
            (false, _) => Some(false),
            (true, true) => None,
            (true, false) => Some(true),
        };
        ListEntry {
            spec: spec.clone(),
            channel: variant.channel,
            status: variant.status,
            python: variant.python.clone(),
            cudnn: variant.cudnn.clone(),
            nccl: variant.nccl.clone(),
            gpu: variant.arch.clone(),
            ptx: variant.ptx.clone(),
            driver: candidate.lowest_driver().map(|lowest| format!(">={lowest}")),
            runs_here,
            why_not,
        }
    }
}
