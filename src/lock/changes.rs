//! What is another in one lock than in another: versions, packages, everything that decides content.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::types::{Lock, LockedDeb, WheelLayer};

/// One thing that is another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Change {
    /// The part of the image: `base`, `system`, `framework`.
    pub part: &'static str,
    /// What: the name of a package, `digest`, the name of a variable.
    pub name: String,
    /// In the first lock; `None`: not there.
    pub from: Option<String>,
    /// In the second; `None`: not there.
    pub to: Option<String>,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, name, from, to } = self;
        match (from, to) {
            (Some(from), Some(to)) => write!(f, "{part}: {name} {from} -> {to}"),
            (Some(from), None) => write!(f, "{part}: {name} {from} goes"),
            (None, Some(to)) => write!(f, "{part}: {name} {to} comes"),
            (None, None) => write!(f, "{part}: {name}"),
        }
    }
}

/// A package's version, and what tells two files of one version apart.
type Pins = BTreeMap<(&'static str, String), (String, String)>;

impl Lock {
    /// Everything that decides content and is another in `newer`, sorted by part, then name. Records never count.
    pub fn changes(&self, newer: &Self) -> Vec<Change> {
        let (old, new) = (self.pins(), newer.pins());
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        let mut all = Vec::new();
        for key in keys {
            let (from, to) = (old.get(key), new.get(key));
            if from == to {
                continue;
            }
            // Of one version with other bytes the bytes are named.
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

    fn pins(&self) -> Pins {
        let mut all = Pins::new();
        let debs = [
            ("base", &self.base.packages),
            ("system", &self.system),
            ("toolkit", &self.unpacked),
            ("apt", &self.apt),
        ];
        for (part, list) in debs {
            let pin = |deb: &LockedDeb| ((part, deb.name.clone()), (deb.version.clone(), deb.sha256.clone()));
            all.extend(list.iter().map(pin));
        }
        let one = |name: &str, value: String| (("base", name.to_owned()), (value, String::new()));
        all.extend([one("name", self.base.name.clone())]);
        all.extend(self.base.digest.iter().map(|digest| one("digest", digest.clone())));
        for wheel in &self.wheels {
            let part = layer_name(wheel.layer);
            all.insert((part, wheel.name.clone()), (wheel.version.clone(), wheel.sha256.clone()));
        }
        for source in &self.sources {
            all.insert(("sources", source.name.clone()), (source.version.clone(), source.sha256.clone()));
        }
        for tool in &self.tools {
            all.insert(("tools", tool.name.clone()), (tool.version.clone(), tool.sha256.clone()));
        }
        for (name, value) in &self.environment {
            all.insert(("variables", name.clone()), (value.clone(), String::new()));
        }
        for copy in &self.added.copy {
            all.insert(("copy", copy.to.clone()), (copy.sha256[..12].to_owned(), copy.from.clone()));
        }
        for (place, run) in self.added.run.iter().enumerate() {
            all.insert(("run", format!("step {}", place + 1)), (run.command.clone(), run.secrets.join(" ")));
        }
        for check in &self.added.checks {
            all.insert(("checks", check.name.clone()), (check.command.clone(), String::new()));
        }
        for library in &self.added.may_lack {
            all.insert(("may-lack", library.clone()), (String::new(), String::new()));
        }
        all
    }
}

/// The part of an image that a layer of wheels is.
pub fn layer_name(layer: WheelLayer) -> &'static str {
    match layer {
        WheelLayer::Cuda => "cuda",
        WheelLayer::Framework => "framework",
        WheelLayer::Stack => "stack",
        WheelLayer::User => "user",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::sample;

    fn said(change: impl FnOnce(&mut Lock)) -> Vec<String> {
        let old = sample::lock();
        let mut new = old.clone();
        change(&mut new);
        old.changes(&new).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn versions_packages_and_bytes_are_told_apart() {
        assert_eq!(said(|lock| lock.wheels[0].version = "2.8.1".into()), ["framework: torch 2.8.0 -> 2.8.1"]);
        let bytes = said(|lock| lock.wheels[0].sha256 = "9".repeat(64));
        assert_eq!(bytes, ["framework: torch 2.8.0 (333333333333) -> 2.8.0 (999999999999)"]);
        assert_eq!(said(|lock| lock.system.clear()), ["system: python3 3.11.2-1+b1 goes"]);
        assert_eq!(said(|lock| lock.apt.push(sample::deb("tree", "2.1"))), ["apt: tree 2.1 comes"]);
        assert_eq!(
            said(|lock| lock.base.packages[0].version = "3".into()),
            ["base: libc6 2.36-9+deb12u14 -> 3"]
        );
    }

    #[test]
    fn records_are_no_change() {
        let none = said(|lock| {
            lock.records.created = "2031-01-01T00:00:00Z".into();
            lock.records.content = Some("0".repeat(64));
            lock.stack.matrix = "another".into();
        });
        assert_eq!(none, Vec::<String>::new());
    }
}
