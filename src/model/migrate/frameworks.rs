//! The packages that stand for a framework, and whether two requirements of one can both be met.

use pep440_rs::VersionSpecifiers;

use crate::model::compat::Matrix;
use crate::model::compat::tables::Product;
use crate::model::local_version::exact;

/// Names of frameworks that are none of a package today, and the package.
pub(super) const RENAMED: [(&str, &str); 3] =
    [("tensorflow-gpu", "tensorflow"), ("pytorch", "torch"), ("pytorch-gpu", "torch")];

/// The package that a name of a framework stands for today: `torch` for `pytorch`.
pub(super) fn package_today(name: &str) -> &str {
    RENAMED.iter().find(|(old, _)| *old == name).map_or(name, |(_, package)| *package)
}

/// The packages that stand for each product, in the order in which products are meant if a project names several.
pub(super) fn framework_packages(matrix: &Matrix) -> Vec<(&str, &Product)> {
    let mut all = Vec::new();
    for product in matrix.products_in_order() {
        let rows = matrix.variants.iter().filter(|row| row.framework == product.framework);
        let mut packages: Vec<_> = rows.filter_map(|row| row.package.as_deref()).collect();
        packages.extend(product.package.as_deref());
        packages.sort_unstable();
        packages.dedup();
        all.extend(packages.into_iter().map(|package| (package, product)));
    }
    all
}

/// Whether no version can meet both conditions, as far as exact versions tell.
pub(super) fn contradict(first: &VersionSpecifiers, second: &VersionSpecifiers) -> bool {
    match (exact(first), exact(second)) {
        (Some(one), _) => !second.contains(&one),
        (None, Some(one)) => !first.contains(&one),
        (None, None) => false,
    }
}
