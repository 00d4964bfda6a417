//! Requested packages that belong to another CUDA, another release of the framework or another NumPy than the stack's, by names and rows
//! alone: they would install and fail at import.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{Requirement, VersionOrUrl};

use super::companion_fit::satisfies;
use super::refusal::RuleViolation;
use super::required::{Required, requires_another};
use super::rule::Rule;
use crate::local_version::{cuda_major, exact, without_local};
use crate::matrix::Matrix;
use crate::matrix::tables::Variant;
use crate::stack::Stack;
use crate::versions::FrameworkVersion;

/// What is asked of every requirement next to one stack, with the rows by package: thousands of requirements look them up.
pub(super) struct ForeignRules<'a> {
    stack: &'a Stack,
    edition: &'a str,
    matrix: &'a Matrix,
    required: Required<'a>,
    /// The framework rows of each package.
    rows: BTreeMap<&'a str, Vec<&'a Variant>>,
}

impl<'a> ForeignRules<'a> {
    /// Sorts the matrix by package.
    pub(super) fn of(stack: &'a Stack, matrix: &'a Matrix) -> Self {
        let products: BTreeMap<_, _> = matrix
            .products
            .iter()
            .rev()
            .map(|product| (product.framework.as_str(), product.package.as_deref()))
            .collect();
        let mut rows: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for row in &matrix.variants {
            let own = row.package.as_deref();
            let package = own.or_else(|| products.get(row.framework.as_str()).copied().flatten());
            if let Some(package) = package {
                rows.entry(package).or_default().push(row);
            }
        }
        Self { stack, edition: &matrix.edition, matrix, required: Required::of(stack, matrix), rows }
    }

    /// Returns the versions of a package that the framework of the stack requires; `None`: nothing is known of it.
    pub(super) fn required(&self, package: &str) -> Option<&'a str> {
        self.required.versions_of(package)
    }

    /// Returns why a requirement cannot be met next to the stack; `None`: nothing speaks against it. `typed`: as the user wrote it.
    pub(super) fn violation(&self, typed: &str, parsed: &Requirement) -> Option<RuleViolation> {
        let stack = self.stack;
        let versions = match &parsed.version_or_url {
            Some(VersionOrUrl::VersionSpecifier(versions)) => versions.clone(),
            Some(VersionOrUrl::Url(_)) => return None,
            None => VersionSpecifiers::empty(),
        };
        let name = parsed.name.to_string();
        let edition = format!("matrix {}", self.edition);
        let no = |text: String, source: &str| Some(RuleViolation::new(Rule::CompanionMismatch, text, source));
        if name == stack.package {
            // A release that was repaired (`2.15.0.post1`) stands for the one that was asked for.
            let repaired = || {
                let own = Version::from_str(&stack.version.to_string());
                own.is_ok_and(|own| versions.contains(&own.only_release()))
            };
            let fits = versions.is_empty() || satisfies(&stack.version, &versions.to_string()) || repaired();
            return if fits {
                None
            } else {
                no(format!("{typed}: the stack is {name} {}", stack.version), &edition)
            };
        }
        if let Some(row) = self.matrix.same_module(&stack.package, &name) {
            let text = format!(
                "{typed} installs the module `{}`, as {} {} of the stack does",
                row.module, stack.package, stack.version
            );
            return no(text, &row.source);
        }
        // Another framework that belongs to the stack: the torch of vLLM.
        if self.rows.contains_key(name.as_str())
            && let Some(own) = stack.companions.get(&name)
            && let Ok(own) = Version::from_str(own)
            && !versions.contains(&own)
        {
            return no(format!("{typed}: the stack pins {name} {own}"), &edition);
        }
        if let Some(violation) = self.required.violation(typed, &name, &versions) {
            return Some(violation);
        }
        let extras = parsed.extras.iter().map(ToString::to_string);
        let major =
            extras.chain(name.rsplit('-').next().map(str::to_owned)).find_map(|part| cuda_major(&part));
        if let Some(major) = major.filter(|major| *major != stack.cuda.major && !name.starts_with("nvidia-"))
        {
            let own = stack.cuda.major;
            let other = typed.replace(&major.to_string(), &own.to_string());
            let instead = if name.contains(&major.to_string())
                && self.rows.contains_key(name.replace(&major.to_string(), &own.to_string()).as_str())
            {
                format!(
                    "; `{}` is the package for CUDA {own}",
                    name.replace(&major.to_string(), &own.to_string())
                )
            } else if !name.contains(&major.to_string()) {
                format!("; write `{other}`")
            } else {
                String::new()
            };
            return no(format!("{typed} is for CUDA {major}, the stack has CUDA {own}{instead}"), &edition);
        }
        let rows: Vec<_> =
            self.rows.get(name.as_str())?.iter().filter(|row| row.machine == stack.machine).collect();
        let asked: Vec<&Variant> = rows
            .iter()
            .copied()
            .copied()
            .filter(|row| versions.is_empty() || satisfies(&row.version, &versions.to_string()))
            .collect();
        let newest = rows.iter().map(|row| &row.version).max();
        // Of a release that is not named the matrix may not know the newest, unless the request ends below one it knows.
        let is_past = |newest: &FrameworkVersion| !satisfies(newest, &versions.to_string());
        let is_named = exact(&versions).is_some();
        if (is_named || (ends(&versions) && newest.is_some_and(is_past)))
            && let Some(text) = self.other_pin(&asked, is_named)
        {
            return no(format!("{typed} requires {text}"), &asked[0].source);
        }
        if let Some(version) =
            exact(&versions).and_then(|exact| exact.to_string().parse::<FrameworkVersion>().ok())
            && let Some(row) = rows.first()
            && let Some(violation) =
                requires_another((typed, row.framework.as_str()), &version, stack, self.matrix)
        {
            return Some(violation);
        }
        let majors: BTreeSet<u8> = asked.iter().map(|row| row.cuda.major).collect();
        if asked.is_empty() || majors.contains(&stack.cuda.major) {
            return None;
        }
        let list: Vec<_> = majors.iter().map(ToString::to_string).collect();
        let mut fitting: Vec<_> =
            rows.iter().filter(|row| row.cuda.major == stack.cuda.major).map(|row| &row.version).collect();
        fitting.sort();
        let known = match (fitting.first(), fitting.last()) {
            (Some(first), Some(last)) if first != last => {
                format!("; for CUDA {} it is {name} {first} to {last}", stack.cuda.major)
            }
            (Some(only), _) => format!("; for CUDA {} it is {name} {only}", stack.cuda.major),
            _ => String::new(),
        };
        let text = format!(
            "{typed} is for CUDA {}, the {} of the stack has CUDA {}{known}",
            list.join(" or "),
            stack.package,
            stack.cuda.major
        );
        no(text, &asked[0].source)
    }
}

impl ForeignRules<'_> {
    /// What all rows of a framework pin of the stack's own package, if the stack has none of these releases: the torch of a vLLM. Of a
    /// range, releases between the rows may pin what is between theirs.
    fn other_pin(&self, asked: &[&Variant], is_named: bool) -> Option<String> {
        let stack = self.stack;
        let own = Version::from_str(&stack.version.to_string()).ok()?;
        let pins: BTreeSet<Version> = asked
            .iter()
            .map(|row| row.companions.get(&stack.package).and_then(|pin| Version::from_str(pin).ok()))
            .collect::<Option<_>>()?;
        let releases: BTreeSet<Version> = pins.into_iter().map(Version::without_local).collect();
        let own = own.without_local();
        let is_between = *releases.first()? <= own && own <= *releases.last()?;
        if releases.contains(&own) || (!is_named && is_between) {
            return None;
        }
        let list: Vec<_> = releases.iter().map(ToString::to_string).collect();
        let list = match list.as_slice() {
            [first, .., last] if list.len() > 3 => format!("{first} to {last}"),
            list => list.join(" or "),
        };
        Some(format!("{} {list}, the stack has {}", stack.package, stack.version))
    }
}

/// Whether a condition has an upper end.
fn ends(versions: &VersionSpecifiers) -> bool {
    !versions.is_empty() && Version::from_str("999999").is_ok_and(|late| !versions.contains(&late))
}

/// Returns what is known by name and row against locked releases (`cupy-cuda11x==13.6.0`) beside a stack, with the place of each.
pub fn mismatches_by_name(
    releases: &[String],
    stack: &Stack,
    matrix: &Matrix,
) -> Vec<(usize, RuleViolation)> {
    let rules = ForeignRules::of(stack, matrix);
    let mut all = Vec::new();
    for (at, release) in releases.iter().enumerate() {
        let parsed = Requirement::from_str(&without_local(release).0).ok();
        all.extend(parsed.and_then(|parsed| rules.violation(release, &parsed)).map(|found| (at, found)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{ResolveOptions, resolve};
    use crate::target::Target;
    use crate::versions::Machine;

    fn why(spec: &str, requirement: &str) -> Option<String> {
        let (matrix, target) = (Matrix::embedded(), Target::any(Machine::X86_64));
        let spec = spec.parse().expect("a spec");
        let stack = resolve(&spec, &target, matrix, &ResolveOptions::default()).expect("a stack");
        let parsed = Requirement::from_str(&without_local(requirement).0).expect("a requirement");
        ForeignRules::of(&stack, matrix).violation(requirement, &parsed).map(|violation| violation.text)
    }

    #[test]
    fn packages_of_another_cuda_are_refused_with_the_fitting_name() {
        for (spec, requirement, says) in [
            (
                "pytorch-cuda:2.7.1-cu128",
                "cupy-cuda11x",
                "is for CUDA 11, the stack has CUDA 12; `cupy-cuda12x` is the package",
            ),
            (
                "pytorch-cuda:2.11.0-cu130",
                "cupy-cuda12x==13.6.0",
                "`cupy-cuda13x` is the package for CUDA 13",
            ),
            ("pytorch-cuda:2.11.0-cu130", "jax[cuda12]==0.6.0", "write `jax[cuda13]==0.6.0`"),
            (
                "jax-cuda:0.4.34",
                "tensorflow[and-cuda]==2.13.0",
                "tensorflow[and-cuda]==2.13.0 is for CUDA 11, the jax of the stack has CUDA 12; for CUDA 12 it is tensorflow 2.1",
            ),
            ("pytorch-cuda:2.7.1-cu128", "torch==2.6.0", "the stack is torch 2.7.1"),
            ("vllm-cuda:0.8.5", "torch==2.5.1", "the stack pins torch 2.6.0"),
            ("pytorch-cuda:2.8.0-cu128", "vllm==0.6.0", "requires torch==2.4.0, the stack has 2.8.0"),
            ("jax-cuda:0.6.0", "jaxlib==0.4.30", "jax 0.6.0 requires jaxlib>=0.6.0,<=0.6.0"),
            ("jax-cuda:0.4.14-cu12", "jaxlib==0.4.16", "the stack pins jaxlib 0.4.14"),
            (
                "tensorflow-cuda:2.20",
                "nvidia-cublas-cu12==12.1.3.1",
                "the stack pins nvidia-cublas-cu12 12.5.3.2",
            ),
            ("tensorflow-cuda:2.16", "numpy==2.1", "tensorflow 2.16.2 requires numpy>=1.23.5,<2.0.0"),
            ("tensorflow-cuda:2.12", "numpy==1.26.4", "requires numpy>=1.22,<=1.24.3"),
            ("cupy-cuda:12.3", "numpy==2.3", "requires numpy>=1.20,<1.29"),
            ("cudf-cuda:25.6", "numpy==2.3.1", "requires numpy<2.3 (numba below 0.62, which it takes)"),
            ("pytorch-cuda:2.8.0-cu128", "vllm<0.5", "vllm<0.5 requires torch 2."),
            ("numba-cuda:0.30.4", "numpy==2.5.0", "works with numpy<2.5 (calls np.row_stack"),
            ("vllm-cuda:0.10.2", "xformers==0.0.32.post2", "vllm 0.10.2 requires xformers==0.0.32.post1"),
            ("pytorch-cuda:2.5.1-cu124", "vllm==0.8.5", "requires torch 2.6.0, the stack has 2.5.1"),
            (
                "tensorflow-cuda:2.20",
                "tensorflow-cpu",
                "tensorflow-cpu installs the module `tensorflow`, as tensorflow 2.20.0 of the stack does",
            ),
            ("pytorch-cuda:2.11.0-cu130", "cudf-cu12", "`cudf-cu13` is the package for CUDA 13"),
        ] {
            let text = why(spec, requirement).unwrap_or_else(|| panic!("{spec} {requirement}"));
            assert!(text.contains(says), "{text}");
        }
    }

    #[test]
    fn what_fits_or_is_not_known_is_not_refused() {
        for requirement in [
            "cupy-cuda12x",
            "jax[cuda12]",
            "tensorflow",
            "torch==2.7.1+cu128",
            "torch>=2",
            "numpy==2.1.0",
            "vllm==0.10.0",
            "vllm>=0.12",
            "vllm<0.11",
            "onnxruntime-gpu",
            "nvidia-cublas-cu11",
            "some-thing",
            "x @ https://h/x.whl",
        ] {
            assert_eq!(why("pytorch-cuda:2.7.1-cu128", requirement), None, "{requirement}");
        }
        assert!(
            why("pytorch-cuda:2.1.2-cu121", "numpy==2.1.0")
                .is_some_and(|text| text.contains("works with numpy"))
        );
    }
}
