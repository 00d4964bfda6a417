//! Why a package is in a lock: what asks for it, and what chose its version.
//!
//! Pure. A lock names no dependencies: those come from the METADATA of the wheels, as far as they are given. Where they are not, the
//! answer says so.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::str::FromStr as _;

use pep508_rs::{Requirement, VerbatimUrl};
use serde::Serialize;

use super::types::{Lock, LockedWheel, WheelLayer};
use crate::model::marker::environment_of;
use crate::model::requirement_text::beyond_bounds;

/// The most chains of one package.
const MOST: usize = 20;

/// What asks for a package without another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestedBy {
    /// The spec: the framework, its companions and the libraries that its row pins.
    Spec,
    /// The project, or `--with`.
    Project,
    /// Every image has it.
    EveryImage,
}

/// A package that asks for the next one of a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Requirer {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it asks for, as its METADATA says: `numpy>=1.26`.
    pub requirement: String,
}

/// A way from what was asked for to a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// What asks first.
    pub requested_by: RequestedBy,
    /// What was asked for: the spec, or the requirement.
    pub requested: String,
    /// The packages between, the first one asked for first; empty: the package itself is asked for.
    pub through: Vec<Requirer>,
}

/// Why a package is in a lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub struct Origin {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its file.
    pub file: String,
    /// The name of the index it comes from.
    pub index: String,
    /// The layer of the image; `None`: that of the distribution's packages.
    pub layer: Option<WheelLayer>,
    /// What chose the version, as a clause.
    pub chosen: String,
    /// The fact behind it, where the matrix chose it.
    pub source: Option<String>,
    /// Everything that bounds its version: the requirement, and whose it is.
    pub bounds: Vec<(String, String)>,
    /// The ways that lead to it, the shortest first.
    pub chains: Vec<Chain>,
    /// How many more ways there are.
    pub more_chains: usize,
    /// Packages of the lock whose own requirements are not known here.
    pub unknown: Vec<String>,
}

/// The requirements of wheels, by the name of the package; absent: not known.
pub type Requirements = BTreeMap<String, Vec<String>>;

/// Who asks for what.
struct Edges {
    /// By the package that is asked for: who asks, with which words.
    by_package: BTreeMap<String, Vec<(String, String)>>,
}

impl Lock {
    /// Returns why a wheel is in the lock; `None`: it is not. `developer`: requirements of every image.
    pub fn origin(&self, name: &str, requirements: &Requirements, developer: &[String]) -> Option<Origin> {
        let wheel = self.wheels.iter().find(|wheel| wheel.name == name)?;
        let requested = self.requested(developer);
        let edges = self.edges(requirements, &requested);
        let (chains, more_chains) = self.chains(name, &edges, &requested);
        let mut bounds: Vec<(String, String)> = Vec::new();
        for (of, by, text) in &requested {
            if of == name && text.trim() != name {
                let whose = match by {
                    RequestedBy::Spec => "the matrix",
                    RequestedBy::Project => "the project",
                    RequestedBy::EveryImage => "every image",
                };
                bounds.push((text.clone(), whose.to_owned()));
            }
        }
        if name == "numpy" {
            bounds.extend(
                self.stack.numpy.iter().map(|limit| (format!("numpy{limit}"), "the matrix".to_owned())),
            );
        }
        for (by, text) in edges.by_package.get(name).into_iter().flatten() {
            let has_bound =
                text.split(';').next().is_some_and(|text| text.contains(['<', '>', '=', '~', '!']));
            if has_bound {
                bounds.push((text.clone(), by.clone()));
            }
        }
        bounds.dedup();
        let (chosen, source) = self.chosen(wheel, &bounds);
        let known = |wheel: &&LockedWheel| !requirements.contains_key(&wheel.name);
        Some(Origin {
            name: wheel.name.clone(),
            version: wheel.version.clone(),
            file: wheel.file.clone(),
            index: wheel.index_label().to_owned(),
            layer: Some(wheel.layer),
            chosen,
            source,
            bounds,
            chains,
            more_chains,
            unknown: self.wheels.iter().filter(known).map(|wheel| wheel.name.clone()).collect(),
        })
    }

    /// Returns why a package of the distribution is in the lock; `None`: it is not. `developer`: names that every image has.
    pub fn origin_of_deb(&self, name: &str, developer: &[String]) -> Option<Origin> {
        let in_base = self.base.packages.iter().find(|deb| deb.name == name);
        let deb = self.debs().find(|deb| deb.name == name).or(in_base)?;
        let asked = |list: &[String]| list.iter().any(|one| one == name);
        let mut chains = Vec::new();
        for (list, requested_by) in
            [(&*self.added.apt, RequestedBy::Project), (developer, RequestedBy::EveryImage)]
        {
            if asked(list) {
                chains.push(Chain { requested_by, requested: name.to_owned(), through: Vec::new() });
            }
        }
        let chosen = if in_base.is_some() {
            format!("the base {}, of which it is a part", self.base.name)
        } else {
            let day = self.records.created.split('T').next().unwrap_or_default();
            format!("apt, from what {} had on {day}", self.base.suite)
        };
        Some(Origin {
            name: deb.name.clone(),
            version: deb.version.clone(),
            file: deb.path.rsplit('/').next().unwrap_or_default().to_owned(),
            index: self.base.suite.clone(),
            layer: None,
            chosen,
            source: None,
            bounds: Vec::new(),
            unknown: if chains.is_empty() { vec![deb.name.clone()] } else { Vec::new() },
            chains,
            more_chains: 0,
        })
    }

    /// Returns the names of the lock that are nearest to one, at most three.
    pub fn nearest_packages(&self, name: &str) -> Vec<String> {
        let wheels = self.wheels.iter().map(|wheel| wheel.name.as_str());
        let debs = self.debs().map(|deb| deb.name.as_str());
        let far = |other: &str| strsim::osa_distance(other, name);
        let is_near = |other: &&str| {
            let begins =
                name.len() >= 3 && (other.starts_with(name) || name.starts_with(*other) && other.len() >= 4);
            begins || far(other) <= (name.len() / 3).clamp(1, 3)
        };
        let mut near: Vec<&str> = wheels.chain(debs).filter(is_near).collect();
        near.sort_by_key(|other| (far(other), *other));
        near.dedup();
        near.into_iter().take(3).map(str::to_owned).collect()
    }

    /// Everything that is asked for without another package: name, who, words.
    fn requested(&self, developer: &[String]) -> Vec<(String, RequestedBy, String)> {
        let stack = &self.stack;
        let mut all: Vec<(String, RequestedBy, String)> = Vec::new();
        let mut of_spec = |name: &str, text: String| all.push((name.to_owned(), RequestedBy::Spec, text));
        if !stack.is_toolkit() {
            of_spec(&stack.package, format!("{}=={}", stack.package, stack.version));
        }
        let companions = stack.companions.iter().map(|(name, version)| (name.as_str(), version.as_str()));
        for (name, version) in companions.chain(stack.toolkit_wheels()) {
            of_spec(name, format!("{name}=={version}"));
        }
        for text in &stack.install {
            if let Some(requirement) = parsed(text) {
                of_spec(requirement.name.as_ref(), text.clone());
            }
        }
        for text in &self.added.python {
            if let Some(requirement) = parsed(text) {
                all.push((requirement.name.to_string(), RequestedBy::Project, text.clone()));
            }
        }
        for text in developer {
            if let Some(requirement) = parsed(text) {
                all.push((requirement.name.to_string(), RequestedBy::EveryImage, text.clone()));
            }
        }
        all
    }

    /// Follows the requirements from what is asked for, with the extras that are asked for.
    fn edges(&self, requirements: &Requirements, requested: &[(String, RequestedBy, String)]) -> Edges {
        let machine = self.stack.machine;
        let environment = environment_of(machine, self.stack.python);
        let locked: BTreeSet<&str> = self.wheels.iter().map(|wheel| wheel.name.as_str()).collect();
        let mut by_package: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        let mut seen: BTreeSet<(String, String)> = BTreeSet::new();
        let mut open: VecDeque<(String, String)> = VecDeque::new();
        let ask = |requirement: &Requirement<VerbatimUrl>, open: &mut VecDeque<(String, String)>| {
            let name = requirement.name.to_string();
            open.push_back((name.clone(), String::new()));
            open.extend(requirement.extras.iter().map(|extra| (name.clone(), extra.to_string())));
        };
        for (_, _, text) in requested {
            if let Some(requirement) = parsed(text) {
                ask(&requirement, &mut open);
            }
        }
        // Wheels that nothing known leads to ask, too.
        open.extend(locked.iter().map(|name| ((*name).to_owned(), String::new())));
        while let Some((name, extra)) = open.pop_front() {
            if !locked.contains(name.as_str()) || !seen.insert((name.clone(), extra.clone())) {
                continue;
            }
            let extras: Vec<pep508_rs::ExtraName> =
                pep508_rs::ExtraName::from_str(&extra).into_iter().collect();
            for text in requirements.get(&name).into_iter().flatten() {
                let Some(requirement) = parsed(text) else { continue };
                let holds =
                    environment.as_ref().is_some_and(|found| requirement.marker.evaluate(found, &extras));
                let target = requirement.name.to_string();
                if !holds || !locked.contains(target.as_str()) {
                    continue;
                }
                let all = by_package.entry(target).or_default();
                let edge = (name.clone(), text.clone());
                if !all.contains(&edge) {
                    all.push(edge);
                }
                ask(&requirement, &mut open);
            }
        }
        Edges { by_package }
    }

    /// The ways to a package: from each thing that is asked for the shortest one.
    fn chains(
        &self,
        name: &str,
        edges: &Edges,
        requested: &[(String, RequestedBy, String)],
    ) -> (Vec<Chain>, usize) {
        let version = |name: &str| {
            let found = self.wheels.iter().find(|wheel| wheel.name == name);
            found.map(|wheel| wheel.version.clone()).unwrap_or_default()
        };
        // Backwards from the package: each package with the step that leads from it.
        let mut steps: BTreeMap<String, (String, String)> = BTreeMap::new();
        let mut order = vec![name.to_owned()];
        let mut at = 0;
        while let Some(current) = order.get(at).cloned() {
            at += 1;
            for (by, text) in edges.by_package.get(&current).into_iter().flatten() {
                if by != name && !steps.contains_key(by) {
                    steps.insert(by.clone(), (current.clone(), text.clone()));
                    order.push(by.clone());
                }
            }
        }
        let mut all: Vec<Chain> = Vec::new();
        for (of, by, text) in requested {
            if of != name && !steps.contains_key(of) {
                continue;
            }
            let mut through = Vec::new();
            let mut current = of.clone();
            while current != name {
                let Some((next, text)) = steps.get(&current) else { break };
                let version = version(&current);
                let name = std::mem::replace(&mut current, next.clone());
                through.push(Requirer { name, version, requirement: text.clone() });
            }
            let requested = if *by == RequestedBy::Spec { self.spec.clone() } else { text.clone() };
            let chain = Chain { requested_by: *by, requested, through };
            if !all.contains(&chain) {
                all.push(chain);
            }
        }
        all.sort_by_key(|chain| chain.through.len());
        let more = all.len().saturating_sub(MOST);
        all.truncate(MOST);
        (all, more)
    }

    /// What chose the version of a wheel, and the fact behind it.
    fn chosen(&self, wheel: &LockedWheel, bounds: &[(String, String)]) -> (String, Option<String>) {
        let stack = &self.stack;
        let part = |name: &str| format!("nvidia-{name}-cu{}", stack.cuda.major);
        let field = if wheel.name == stack.package {
            Some("framework")
        } else if wheel.name == part("cudnn") && stack.cudnn.is_some() {
            Some("cudnn")
        } else if wheel.name == part("nccl") && stack.nccl.is_some() {
            Some("nccl")
        } else if wheel.name == "triton" && stack.triton.is_some() {
            Some("triton")
        } else if stack.companions.contains_key(&wheel.name) {
            Some(wheel.name.as_str())
        } else if stack.parts.contains_key(&wheel.name) {
            Some("toolkit")
        } else if stack.ptxas.as_ref().is_some_and(|ptxas| ptxas.parts.contains_key(&wheel.name)) {
            Some("ptxas")
        } else {
            None
        };
        let reason = field.and_then(|field| stack.reasons.iter().find(|reason| reason.field == field));
        if let Some(reason) = reason {
            let row = format!("{} {} for {}", stack.framework, stack.version, stack.cuda);
            return (format!("the row {row} of the matrix: {}", reason.because), Some(reason.source.clone()));
        }
        let is_exact = |(text, _): &&(String, String)| {
            let plain = text.split(';').next().unwrap_or_default();
            plain.contains("==") && !plain.contains("==*") && !plain.contains(".*")
        };
        if let Some((text, by)) = bounds.iter().find(is_exact) {
            return (format!("`{}` of {by}", text.split(';').next().unwrap_or_default().trim()), None);
        }
        if self.sources.iter().any(|source| source.name == wheel.name) {
            return ("the resolver, and it was built here from its source".to_owned(), None);
        }
        let index = wheel.index_label();
        let when = match &self.added.as_of {
            Some(moment) => format!(" as of {moment}"),
            None => format!(" on {}", self.records.created.split('T').next().unwrap_or_default()),
        };
        (format!("the resolver, from what index `{index}` had{when}, within the bounds"), None)
    }
}

/// Reads a requirement; `None`: it is none.
fn parsed(text: &str) -> Option<Requirement<VerbatimUrl>> {
    if beyond_bounds(text).is_some() { None } else { Requirement::from_str(text).ok() }
}

/// Returns the requirements of a METADATA.
pub fn required_by_metadata(metadata: &str) -> Vec<String> {
    let head = metadata.lines().take_while(|line| !line.is_empty());
    head.filter_map(|line| line.strip_prefix("Requires-Dist:")).map(|text| text.trim().to_owned()).collect()
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
