//! A folder's requirements, read for `init`: which product and which releases they mean.

use std::cmp::Ordering;

use camino::Utf8Path;

use crate::model::compat::Matrix;
use crate::model::compat::tables::{Product, Variant};
use crate::model::project::{DetectedProject, FILE, from_pyproject, from_requirements, is_apt_name};
use crate::model::versions::FrameworkVersion;
use crate::store::read_regular_text;
use crate::workflow::error::CommandError;
use crate::workflow::project::{FilesOf, LARGEST_FILE};

/// Returns the requirement files, groups and apt packages of the folder.
pub(crate) fn detect(folder: &Utf8Path) -> Result<DetectedProject, CommandError> {
    let has = |name: &str| folder.join(name).is_file();
    let read = |name: &str| read_regular_text(&folder.join(name), LARGEST_FILE);
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
/// product alone. Requirements without a known framework, or without a release that fits, mean PyTorch.
pub(crate) fn specs(found: &DetectedProject, folder: &Utf8Path) -> Vec<String> {
    let files_of = FilesOf { folder, named_by: FILE };
    let files = found.requirements.iter();
    let mut all: Vec<_> =
        files.filter_map(|file| from_requirements(Utf8Path::new(file), &files_of).ok()).flatten().collect();
    if found.pyproject
        && let Ok(text) = files_of.text(Utf8Path::new("pyproject.toml"))
    {
        all.extend(from_pyproject("pyproject.toml", &text, &[]).unwrap_or_default());
    }
    let mut named = packages().into_iter().filter_map(|(package, product)| {
        let wish = all.iter().find(|requirement| requirement.name == package)?;
        specs_of(package, product, &clauses(&wish.text))
    });
    named.next().unwrap_or_else(|| vec!["pytorch-cuda".to_owned()])
}

/// Returns the specs that a requirement on one package allows, the newest first; `None` if no release of the matrix fits. The CUDA is
/// part of them if the framework's packages differ by it: `cudf-cu13`.
fn specs_of(package: &str, product: &Product, clauses: &[String]) -> Option<Vec<String>> {
    let rows = || Matrix::current().variants.iter().filter(|row| row.framework == product.framework);
    let of_package = |row: &&Variant| row.package.as_deref().or(product.package.as_deref()) == Some(package);
    let is_by_cuda = rows().any(|row| row.package.is_some());
    let cuda_of = |fits: &dyn Fn(&Variant) -> bool| {
        let row = rows().filter(of_package).find(|row| fits(row)).filter(|_| is_by_cuda);
        row.map(|row| format!("-{}", row.cuda)).unwrap_or_default()
    };
    if let Some(pinned) =
        clauses.iter().find_map(|clause| clause.strip_prefix("==")).filter(|v| !v.ends_with(".*"))
    {
        let (version, local) = pinned.trim_start_matches('=').split_once('+').unwrap_or((pinned, ""));
        let version = version.trim();
        let of_row = cuda_of(&|row| version.parse().is_ok_and(|pinned| row.version == pinned));
        let cuda = if local.starts_with("cu") { format!("-{local}") } else { of_row };
        return Some(vec![format!("{}:{version}{cuda}", product.name)]);
    }
    if clauses.is_empty() {
        return Some(vec![format!("{}{}", product.name, cuda_of(&|_| true))]);
    }
    let mut versions: Vec<_> = rows().filter(of_package).map(|row| &row.version).collect();
    versions.sort();
    versions.dedup();
    versions.retain(|version| clauses.iter().all(|clause| allows(clause, version.parts())));
    let spec = |version: &&FrameworkVersion| {
        format!("{}:{version}{}", product.name, cuda_of(&|row| row.version == **version))
    };
    (!versions.is_empty()).then(|| versions.iter().rev().map(spec).collect())
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
    #![expect(clippy::disallowed_methods, reason = "tests write files")]

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
    fn requirements_give_whole_specs() {
        for (requirement, expected) in [
            ("torch==2.5.1", "pytorch-cuda:2.5.1"),
            ("torch==2.8.0+cu126", "pytorch-cuda:2.8.0-cu126"),
            ("torch", "pytorch-cuda"),
            ("torch==1.2.0", "pytorch-cuda:1.2.0"),
            ("cudf-cu13==26.10.2", "cudf-cuda:26.10.2-cu13"),
            ("cudf-cu12==26.10.2", "cudf-cuda:26.10.2-cu12"),
            ("cudf-cu13<26", "cudf-cuda:25.12.0-cu13"),
            ("cudf-cu13", "cudf-cuda-cu13"),
            ("cuml-cu12>=26,<26.4", "cuml-cuda:26.2.0-cu12"),
            ("faiss-gpu-cu11==1.10.0", "faiss-cuda:1.10.0-cu11"),
            ("cupy-cuda12x==13.3.0", "cupy-cuda:13.3.0-cu12"),
            ("tensorrt<8.6", "tensorrt-cuda:8.5.3.1"),
            ("tensorrt>=10", "pytorch-cuda"),
            ("numpy", "pytorch-cuda"),
        ] {
            assert_eq!(specs_of_text(requirement)[0], expected, "{requirement}");
        }
        // A product without a release that fits is skipped: the next one is meant.
        assert_eq!(specs_of_text("tensorrt>=10\nvllm>=99\nwarp-lang==1.18.0")[0], "warp-cuda:1.18.0");
    }

    fn specs_of_text(requirements: &str) -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = Utf8Path::from_path(folder.path()).expect("UTF-8");
        fs_err::write(path.join("requirements.txt"), requirements).expect("written");
        specs(&detect(path).expect("readable"), path)
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
