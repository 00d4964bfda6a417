//! Changes between two locks: versions, packages, everything that decides content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::types::{IndexKind, Lock, LockedDeb, LockedWheel, WheelLayer};

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The part of the image: `base`, `system`, `framework`.
    pub part: &'static str,
    /// The name of a package or variable, or `digest`.
    pub name: String,
    /// The value in the first lock, if any.
    pub from: Option<String>,
    /// The value in the second lock, if any.
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, name, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "{part}: {name} {from} -> {to}"),
            (Some(from), None) => write!(f, "{part}: removed {name} {from}"),
            (None, Some(to)) => write!(f, "{part}: added {name} {to}"),
            (None, None) => write!(f, "{part}: {name}"),
        }
    }
}

/// A package's version, and what distinguishes two files of one version.
type Pins = BTreeMap<(&'static str, String), (String, String)>;

impl Lock {
    /// Returns everything that decides content and differs in `newer`, sorted by part, then name. Records never count.
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let (old, new) = (self.pins(), newer.pins());
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let mut all = Vec::new();
        for key in keys {
            let (from, to) = (old.get(key), new.get(key));
            if from == to {
                continue;
            }
            // The hash distinguishes two files of one version.
            let same = matches!((from, to), (Some(from), Some(to)) if from.0 == to.0);
            let text = |pin: &(String, String)| match (same, pin.1.get(..12)) {
                (true, Some(hash)) => format!("{} ({hash})", pin.0),
                _ => pin.0.clone(),
            };
            let (part, name) = key.clone();
            all.push(Change { part, name, from: from.map(text), to: to.map(text) });
        }
        all
    }

    /// Returns the packages that come from another index in `newer`, by the names of the indexes.
    pub fn index_changes(&self, newer: &Self) -> Vec<Change> {
        let old: BTreeMap<_, _> = self.wheels.iter().map(|wheel| (&wheel.name, wheel)).collect();
        let pairs = newer.wheels.iter().filter_map(|wheel| Some((*old.get(&wheel.name)?, wheel)));
        let published =
            pairs.filter(|(old, new)| old.index != IndexKind::Local && new.index != IndexKind::Local);
        let moved = published.filter(|(old, new)| old.index_label() != new.index_label());
        let version = |wheel: &LockedWheel| format!("{} {}", wheel.index_label(), wheel.version);
        let change = |(old, new): (&LockedWheel, &LockedWheel)| Change {
            part: "index",
            name: new.name.clone(),
            from: Some(version(old)),
            to: Some(version(new)),
        };
        moved.map(change).collect()
    }

    fn pins(&self) -> Pins {
        // The spec and the stack are the request; the pins are the result.
        let Self {
            schema: _,
            spec: _,
            added,
            stack: _,
            base,
            tools,
            system,
            unpacked,
            apt,
            wheels,
            sources,
            environment,
            records: _,
        } = self;
        let mut all = Pins::new();
        let debs = [("base", &base.packages), ("system", system), ("toolkit", unpacked), ("apt", apt)];
        for (part, list) in debs {
            let pin = |deb: &LockedDeb| ((part, deb.name.clone()), (deb.version.clone(), deb.sha256.clone()));
            all.extend(list.iter().map(pin));
        }
        let one = |name: &str, value: String| (("base", name.to_owned()), (value, String::new()));
        all.extend([one("name", base.name.clone())]);
        all.extend(base.digest.iter().map(|digest| one("digest", digest.clone())));
        for wheel in wheels {
            let part = layer_name(wheel.layer);
            all.insert((part, wheel.name.clone()), (wheel.version.clone(), wheel.sha256.clone()));
        }
        for source in sources {
            all.insert(("sources", source.name.clone()), (source.version.clone(), source.sha256.clone()));
        }
        for tool in tools {
            all.insert(("tools", tool.name.clone()), (tool.version.clone(), tool.sha256.clone()));
        }
        for (name, value) in environment {
            all.insert(("variables", name.clone()), (value.clone(), String::new()));
        }
        for copy in &added.copy {
            all.insert(("copy", copy.to.clone()), (copy.sha256[..12].to_owned(), copy.from.clone()));
        }
        for (place, run) in added.run.iter().enumerate() {
            all.insert(("run", format!("step {}", place + 1)), (run.command.clone(), run.secrets.join(" ")));
        }
        for check in &added.checks {
            all.insert(("checks", check.name.clone()), (check.command.clone(), String::new()));
        }
        for library in &added.may_lack {
            all.insert(("may-lack", library.clone()), (String::new(), String::new()));
        }
        all
    }
}

/// The part of an image that a layer of wheels makes.
pub fn layer_name(layer: WheelLayer) -> &'static str {
    match layer {
        WheelLayer::Cuda => "cuda",
        WheelLayer::Framework => "framework",
        WheelLayer::Stack => "stack",
        WheelLayer::User => "user",
        WheelLayer::Project => "project",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn said(change: impl FnOnce(&mut Lock)) -> Vec<String> {
        let old = sample::lock();
        let mut new = old.clone();
        change(&mut new);
        old.changes(&new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn distinguishes_versions_packages_and_bytes() {
        assert_eq!(said(|lock| lock.wheels[0].version = "2.8.1".into()), ["framework: torch 2.8.0 -> 2.8.1"]);
        let bytes = said(|lock| lock.wheels[0].sha256 = "9".repeat(64));
        assert_eq!(bytes, ["framework: torch 2.8.0 (333333333333) -> 2.8.0 (999999999999)"]);
        assert_eq!(said(|lock| lock.system.clear()), ["system: removed python3 3.11.2-1+b1"]);
        assert_eq!(said(|lock| lock.apt.push(sample::deb("tree", "2.1"))), ["apt: added tree 2.1"]);
        assert_eq!(
            said(|lock| lock.base.packages[0].version = "3".into()),
            ["base: libc6 2.36-9+deb12u14 -> 3"]
        );
    }

    #[test]
    fn packages_of_another_index_are_listed_with_both() {
        let old = sample::lock();
        let mut new = old.clone();
        assert_eq!(old.index_changes(&new), []);
        new.wheels[0].index_name = Some("internal".into());
        new.wheels[0].version = "1.0".into();
        let said: Vec<_> = old.index_changes(&new).iter().map(ToString::to_string).collect();
        assert_eq!(said, ["index: torch default 2.8.0 -> internal 1.0"]);
        new.wheels[0].index = IndexKind::Local;
        assert_eq!(old.index_changes(&new), [], "a wheel that was built here has no index");
    }

    #[test]
    fn records_are_not_changes() {
        let none = said(|lock| {
            lock.records.created = "2031-01-01T00:00:00Z".into();
            lock.records.content = Some("0".repeat(64));
            lock.stack.matrix = "another".into();
        });
        assert_eq!(none, Vec::<String>::new());
    }
}
