//! What a file says of a framework whose release a more believed file decides otherwise: it goes with its release.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::built_for::torch_of_package;
use super::frameworks::{contradict, framework_packages, package_today};
use super::outcome::Change;
use super::place::Origin;
use super::pythons::allows;
use super::reading::{Asked, CudaFact, Kind, Note, PythonFact, Reading, Strength};
use crate::model::compat::Matrix;
use crate::model::compat::coupled::AbiClass;
use crate::model::marker::{holds, pythons};
use crate::model::versions::Machine;

/// A requirement of a framework, and the one of a more believed file that it contradicts.
struct Overruled {
    asked: Asked,
    by: Asked,
}

/// What is looked up once for all files.
struct Known<'a> {
    matrix: &'a Matrix,
    machine: Machine,
    /// The framework of each package.
    frameworks: BTreeMap<&'a str, &'a str>,
}

/// Takes out of each reading what goes with a release of a framework that a more believed one contradicts: its companions, its CUDA, its
/// Python. Returns what became of them. The readings are sorted, the most believed first; the contradiction itself stays for the merge.
pub(super) fn take_out(readings: &mut [Reading], matrix: &Matrix, machine: Machine) -> Vec<(Change, Note)> {
    let all = framework_packages(matrix).into_iter();
    let frameworks = all.map(|(package, product)| (package, product.framework.as_str())).collect();
    let known = Known { matrix, machine, frameworks };
    let mut rows = Vec::new();
    // A line that is overruled itself overrules nothing.
    let mut gone: Vec<Origin> = Vec::new();
    for at in 0..readings.len() {
        let (before, rest) = readings.split_at_mut(at);
        let Some(reading) = rest.first_mut() else { break };
        let found = known.overruled(before, reading, &gone);
        gone.extend(found.iter().map(|one| one.asked.origin.clone()));
        for one in found {
            known.take_out(reading, &one, &mut rows);
        }
    }
    rows
}

impl Known<'_> {
    fn is_here(&self, asked: &Asked) -> bool {
        asked.marker.is_true() || pythons().any(|python| holds(&asked.marker, self.machine, python))
    }

    /// The requirements of a reading on frameworks that a more believed one contradicts.
    fn overruled(&self, before: &[Reading], reading: &Reading, gone: &[Origin]) -> Vec<Overruled> {
        let own = reading.packages.iter().filter(|one| self.is_here(one));
        let own = own.filter(|one| self.frameworks.contains_key(package_today(&one.name)));
        let believed: Vec<_> = before.iter().filter(|one| one.kind < reading.kind).collect();
        let contradicted = |asked: &Asked| {
            believed.iter().find_map(|other| {
                let same = |one: &&Asked| {
                    package_today(&one.name) == package_today(&asked.name)
                        && !one.versions.is_empty()
                        && !gone.contains(&one.origin)
                        && self.is_here(one)
                };
                let all: Vec<_> = other.packages.iter().chain(&other.pins).filter(same).collect();
                let by = *all.first()?;
                all.iter().all(|one| contradict(&one.versions, &asked.versions)).then(|| by.clone())
            })
        };
        own.filter_map(|asked| Some(Overruled { asked: asked.clone(), by: contradicted(asked)? })).collect()
    }

    fn take_out(&self, reading: &mut Reading, one: &Overruled, rows: &mut Vec<(Change, Note)>) {
        let Overruled { asked, by } = one;
        let why = format!(
            "goes with {}, which {} in {} overrules",
            asked.requirement(),
            by.requirement(),
            by.origin
        );
        let is_image = reading.kind == Kind::Image
            && !asked.written.contains(['=', '<', '>', '~'])
            && !asked.written.contains(".whl");
        let mut told = |change: Change, origin: &Origin, written: &str, why: String| {
            // What the name of an image says has the row of the image.
            if !(is_image && *origin == asked.origin) {
                rows.push((change, Note { origin: origin.clone(), written: written.to_owned(), why }));
            }
        };
        let in_line = |origin: &Origin| *origin == asked.origin;
        reading.packages.retain(|package| {
            let goes = package.name != asked.name && self.is_companion(&asked.name, package);
            if goes {
                told(Change::NotTakenOver, &package.origin, &package.written, why.clone());
            }
            !goes
        });
        for package in reading.packages.iter_mut().filter(|package| self.is_coupled(&asked.name, package)) {
            let why = format!("{why}: its newest release that fits is taken");
            told(Change::Changed, &package.origin, &package.written, why);
            package.written = format!("{}{}", package.name, package.extras);
            package.versions = VersionSpecifiers::empty();
            package.local = None;
        }
        let says_cuda = |fact: &CudaFact| {
            let of_framework = [Strength::Framework, Strength::Index, Strength::Toolkit];
            let of_file = of_framework.contains(&fact.strength) && !fact.by.starts_with("image ");
            in_line(&fact.origin) || (!is_image && of_file)
        };
        reading.cuda.retain(|fact| {
            let goes = says_cuda(fact);
            if goes {
                told(Change::NotTakenOver, &fact.origin, &fact.by, why.clone());
            }
            !goes
        });
        let says_python = |fact: &PythonFact| {
            if is_image { in_line(&fact.origin) } else { !self.has_python(by, fact) }
        };
        reading.python.retain(|fact| {
            let goes = says_python(fact);
            if goes {
                told(Change::NotTakenOver, &fact.origin, &fact.by, why.clone());
            }
            !goes
        });
        if is_image {
            reading.changed.retain(|note| !in_line(&note.origin));
        }
    }

    /// Whether a package is one of those that each release of a framework pins.
    fn is_companion(&self, framework: &str, package: &Asked) -> bool {
        let name = package.name.as_str();
        let Some(framework) = self.frameworks.get(package_today(framework)) else { return false };
        let rows = self.matrix.variants.iter().filter(|row| row.framework == *framework);
        let is_part = || self.matrix.component_wheels.iter().any(|wheel| wheel.package == name);
        let is_of_major = ["-cu11", "-cu12", "-cu13"].iter().any(|end| name.ends_with(end));
        let of_library = name == "triton" || (name.starts_with("nvidia-") && (is_of_major || is_part()));
        let of_jax = *framework == "jax" && (name == "jaxlib" || name.starts_with("jax-cuda"));
        of_library || of_jax || rows.flat_map(|row| row.companions.keys()).any(|companion| companion == name)
    }

    /// Whether a package that is asked for in a release is built for one torch.
    fn is_coupled(&self, framework: &str, package: &Asked) -> bool {
        let is_pinned = !package.versions.is_empty() || package.local.is_some();
        let is_linked = || {
            let mut rows = self.matrix.coupled_releases.iter();
            rows.any(|row| row.package == package.name && row.abi != AbiClass::None)
        };
        let is_other = package.name != framework && !self.frameworks.contains_key(package.name.as_str());
        package_today(framework) == "torch"
            && is_other
            && is_pinned
            && (is_linked() || !torch_of_package(package).is_empty())
    }

    /// Whether the release that is taken has a wheel for a Python.
    fn has_python(&self, by: &Asked, fact: &PythonFact) -> bool {
        let Some(framework) = self.frameworks.get(package_today(&by.name)) else { return true };
        let is_taken =
            |version: &str| Version::from_str(version).is_ok_and(|version| by.versions.contains(&version));
        let rows = self.matrix.variants.iter().filter(|row| row.framework == *framework);
        let taken = rows.filter(|row| is_taken(&row.version.to_string()));
        let has: BTreeSet<_> = taken.flat_map(|row| row.python.iter().copied()).collect();
        has.is_empty() || has.into_iter().any(|python| allows(&fact.versions, python))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::reading::Given;
    use crate::model::migrate::{from_dockerfile, from_environment, from_requirement_lines};

    /// What is left of a less believed file beside `torch==2.7.1`, and the number of its rows.
    fn rest(below: Reading) -> (Reading, usize) {
        let matrix = crate::model::compat::embedded();
        let own = from_requirement_lines("requirements.txt", "torch==2.7.1\n");
        let mut readings = [own, below];
        let rows = take_out(&mut readings, matrix, Machine::X86_64).len();
        let [_, below] = readings;
        (below, rows)
    }

    fn names(reading: &Reading) -> Vec<String> {
        reading.packages.iter().map(Asked::requirement).collect()
    }

    fn conda(text: &str) -> Reading {
        from_environment("environment.yml", text, crate::model::compat::embedded())
    }

    fn docker(text: &str) -> Reading {
        from_dockerfile("Dockerfile", text, &Given::default(), crate::model::compat::embedded())
    }

    #[test]
    fn companions_cuda_and_python_go_with_their_framework() {
        let (reading, rows) = rest(conda(
            "dependencies:\n  - python=3.8\n  - pytorch=1.12.1\n  - torchaudio=0.12.1\n  - cudatoolkit=11.3\n  - einops=0.6.0\n",
        ));
        assert_eq!(names(&reading).len(), 2, "{reading:?}");
        assert!(names(&reading)[0].starts_with("torch==1.12") && names(&reading)[1].starts_with("einops"));
        assert_eq!((reading.cuda.len(), reading.python.len(), rows), (0, 0, 3));
    }

    #[test]
    fn python_that_the_release_runs_with_stays() {
        let (reading, rows) = rest(conda("dependencies:\n  - python=3.10\n  - pytorch=2.3.1\n"));
        assert_eq!((reading.python.len(), rows), (1, 0));
    }

    #[test]
    fn file_that_does_not_contradict_keeps_everything() {
        let text = "dependencies:\n  - pytorch=2.7.1\n  - torchaudio=2.7.1\n  - pytorch-cuda=12.6\n";
        let (reading, rows) = rest(conda(text));
        assert_eq!((names(&reading).len(), reading.cuda.len(), rows), (2, 1, 0));
        let (reading, rows) = rest(docker("FROM pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime\n"));
        assert_eq!((names(&reading).len(), reading.cuda.len(), rows), (1, 1, 0));
    }

    #[test]
    fn image_takes_its_own_cuda_and_no_other_line_with_it() {
        let text = "FROM pytorch/pytorch:2.3.0-cuda12.1-cudnn8-runtime\nENV PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cu128\n";
        let (reading, rows) = rest(docker(text));
        let cuda: Vec<_> = reading.cuda.iter().map(|fact| fact.cuda.to_string()).collect();
        assert_eq!((cuda, rows), (vec!["cu128".to_owned()], 0));
    }

    #[test]
    fn extension_for_the_old_torch_loses_its_release() {
        let text = "FROM python:3.11\nRUN pip install torch==2.0.1+cu118 xformers==0.0.21 einops==0.6.0\n";
        let (reading, rows) = rest(docker(text));
        assert_eq!(names(&reading), ["torch==2.0.1", "xformers", "einops==0.6.0"]);
        assert_eq!((rows, reading.python.len()), (1, 1));
    }
}
