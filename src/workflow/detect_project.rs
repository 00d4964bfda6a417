//! A folder's requirements, read for `init`: which product and which releases they mean.
#![expect(clippy::disallowed_methods, reason = "looks into the folder")]

use std::cmp::Ordering;

use camino::Utf8Path;

use crate::model::compat::Matrix;
use crate::model::compat::tables::Product;
use crate::model::project::{DetectedProject, FILE, from_pyproject, from_requirements, is_apt_name};
use crate::workflow::error::CommandError;

/// Returns the requirement files, groups and apt packages of the folder.
pub(crate) fn detect(folder: &Utf8Path) -> Result<DetectedProject, CommandError> {
    let has = |name: &str| folder.join(name).is_file();
    let read = |name: &str| fs_err::read_to_string(folder.join(name));
    let mut found = DetectedProject {
        folder: folder.file_name().unwrap_or_default().to_owned(),
        ..DetectedProject::default()
    };
    found.requirements =
        ["requirements.txt"].into_iter().filter(|name| has(name)).map(str::to_owned).collect();
    if has("pyproject.toml") {
        // One that cannot be read is told when it is used.
        let pyproject: toml::Table = read("pyproject.toml")?.parse().unwrap_or_default();
        found.pyproject = pyproject.get("project").and_then(|p| p.get("dependencies")).is_some();
        let groups = pyproject.get("dependency-groups").and_then(toml::Value::as_table);
        found.groups = groups.into_iter().flat_map(toml::Table::keys).cloned().collect();
    }
    if has("apt.txt") {
        let text = read("apt.txt")?;
        found.apt = text.split_whitespace().filter(|name| is_apt_name(name)).map(str::to_owned).collect();
    }
    Ok(found)
}

/// Returns the specs that the requirements allow, the newest first: one for a pinned release, one for each allowed release, or the
/// product alone. Requirements without a known framework mean PyTorch.
pub(crate) fn specs(found: &DetectedProject, folder: &Utf8Path) -> Vec<String> {
    let read = |path: &Utf8Path| {
        fs_err::read_to_string(folder.join(path)).map_err(|error| {
            crate::model::project::ProjectError::Unreadable {
                file: path.to_string(),
                named_by: FILE.to_owned(),
                why: error.to_string(),
            }
        })
    };
    let files = found.requirements.iter();
    let mut all: Vec<_> =
        files.filter_map(|file| from_requirements(Utf8Path::new(file), &read).ok()).flatten().collect();
    if found.pyproject
        && let Ok(text) = read(Utf8Path::new("pyproject.toml"))
    {
        all.extend(from_pyproject("pyproject.toml", &text, &[]).unwrap_or_default());
    }
    let wanted = |package: &str| all.iter().find(|requirement| requirement.name == package);
    let Some((product, wish)) =
        packages().into_iter().find_map(|(package, product)| Some((product, wanted(package)?)))
    else {
        return vec!["pytorch-cuda".to_owned()];
    };
    let clauses = clauses(&wish.text);
    if let Some(pinned) =
        clauses.iter().find_map(|clause| clause.strip_prefix("==")).filter(|v| !v.ends_with(".*"))
    {
        let (version, cuda) = pinned.trim_start_matches('=').split_once('+').unwrap_or((pinned, ""));
        let cuda = if cuda.starts_with("cu") { format!("-{cuda}") } else { String::new() };
        return vec![format!("{}:{}{cuda}", product.name, version.trim())];
    }
    let variants = Matrix::current().variants.iter().filter(|variant| variant.framework == product.framework);
    let mut versions: Vec<_> = variants.map(|variant| &variant.version).collect();
    versions.sort();
    versions.dedup();
    versions.retain(|version| clauses.iter().all(|clause| allows(clause, version.parts())));
    if clauses.is_empty() || versions.is_empty() {
        return vec![product.name.clone()];
    }
    versions.iter().rev().map(|version| format!("{}:{version}", product.name)).collect()
}

/// The packages that stand for each product, in the order in which products are meant if a project names several.
fn packages() -> Vec<(&'static str, &'static Product)> {
    let matrix = Matrix::current();
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

/// The conditions on the version in a requirement: `>=2.6` and `<2.8` of `torch[x]>=2.6,<2.8; python_version > '3'`.
fn clauses(requirement: &str) -> Vec<String> {
    let plain = requirement.split(';').next().unwrap_or_default();
    let start = plain.find(['=', '<', '>', '~', '!']).unwrap_or(plain.len());
    let clauses = plain[start..].trim_end_matches(')').split(',');
    clauses
        .map(|clause| clause.split_whitespace().collect::<String>())
        .filter(|clause| !clause.is_empty())
        .collect()
}

/// True if a release meets a condition; what is not understood excludes nothing, since the resolver decides in the end.
fn allows(clause: &str, release: &[u32]) -> bool {
    let operators = ["==", "!=", "~=", ">=", "<=", ">", "<"];
    let Some((operator, version)) = operators.iter().find_map(|o| Some((*o, clause.strip_prefix(o)?))) else {
        return true;
    };
    let numbers = version.trim_end_matches(".*").split('.').map(|part| part.parse::<u32>().ok());
    let Some(numbers) = numbers.collect::<Option<Vec<_>>>() else { return true };
    let part = |parts: &[u32], at: usize| parts.get(at).copied().unwrap_or(0);
    let longer = numbers.len().max(release.len());
    let order = (0..longer).map(|at| part(release, at).cmp(&part(&numbers, at))).find(|o| o.is_ne());
    let order = order.unwrap_or(Ordering::Equal);
    let begins_with = |length: usize| (0..length).all(|at| part(release, at) == part(&numbers, at));
    match operator {
        "==" | "!=" if version.ends_with(".*") => begins_with(numbers.len()) == (operator == "=="),
        "==" => order.is_eq(),
        "!=" => order.is_ne(),
        "~=" => order.is_ge() && begins_with(numbers.len().saturating_sub(1)),
        ">=" => order.is_ge(),
        "<=" => order.is_le(),
        ">" => order.is_gt(),
        _ => order.is_lt(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_the_matrix_stand_for_their_products() {
        let product = |package: &str| {
            let row = packages().into_iter().find(|(name, _)| *name == package);
            row.map(|(_, product)| product.name.as_str())
        };
        for (package, name) in [
            ("torch", "pytorch-cuda"),
            ("cupy-cuda12x", "cupy-cuda"),
            ("onnxruntime-gpu", "onnxruntime-cuda"),
            ("numba-cuda", "numba-cuda"),
            ("warp-lang", "warp-cuda"),
            ("cudf-cu13", "cudf-cuda"),
            ("cuml-cu12", "cuml-cuda"),
            ("faiss-gpu-cu12", "faiss-cuda"),
            ("sglang", "sglang-cuda"),
            ("tensorrt", "tensorrt-cuda"),
        ] {
            assert_eq!(product(package), Some(name), "{package}");
        }
        assert_eq!(product("numpy"), None);
        let first: Vec<_> = packages().into_iter().map(|(_, product)| product.framework.as_str()).collect();
        assert_eq!(
            first.first(),
            Some(&"pytorch"),
            "a project of PyTorch that also has Faiss is one of PyTorch"
        );
    }

    #[test]
    fn conditions_on_a_release_are_those_of_requirements() {
        assert_eq!(clauses("torch[x] >= 2.6, <2.8 ; python_version > '3'"), [">=2.6", "<2.8"]);
        assert_eq!(clauses("torch (>=2)"), [">=2"]);
        assert!(clauses("torch").is_empty());
        let all = |clause: &str| [[2, 6, 0], [2, 7, 1], [2, 8, 0]].map(|release| allows(clause, &release));
        assert_eq!(all(">=2.7"), [false, true, true]);
        assert_eq!(all(">2.7.1"), [false, false, true]);
        assert_eq!(all("<2.7.1"), [true, false, false]);
        assert_eq!(all("<=2.7.1"), [true, true, false]);
        assert_eq!(all("~=2.7.0"), [false, true, false]);
        assert_eq!(all("~=2.7"), [false, true, true]);
        assert_eq!(all("==2.7.*"), [false, true, false]);
        assert_eq!(all("!=2.7.1"), [true, false, true]);
        assert_eq!(all("==2.8"), [false, false, true]);
        assert_eq!(all("<3.0rc1"), [true; 3], "what is not understood excludes nothing");
    }
}
