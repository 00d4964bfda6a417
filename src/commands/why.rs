//! `why`: what requires a package of a lock, and what chose its version. Offline.

use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::model::counted::counted;
use crate::model::lock::{Chain, Lock, Origin, RequestedBy, layer_name};
use crate::model::project::bare_name;
use crate::model::request;
use crate::packages::{cached_requirements, catalogue};
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::error::CommandError;
use crate::workflow::image_info::lock_at_hand;
use crate::workflow::spec_parts::restricted_name;

/// What `why --json` prints.
#[derive(Serialize)]
struct WhyReport<'a> {
    schema: u32,
    /// Hash of the lock.
    lock: String,
    #[serde(flatten)]
    origin: &'a Origin,
}

pub(super) fn why(args: &request::Why, settings: &Settings) -> Result<Exit, CommandError> {
    let name = restricted_name(args.name.as_ref(), &args.parts, &settings.matrix)?;
    let lock = lock_at_hand(settings, name.as_deref(), &args.project)?.ok_or(NoLock)?;
    let origin = origin(&lock, &args.package, settings)?;
    if settings.output.json {
        Printer.json(&WhyReport { schema: 1, lock: lock.hash(), origin: &origin });
    } else {
        Printer.text(text(&origin).trim_end());
    }
    Ok(Exit::Done)
}

/// Why a package is in a lock: one of Python first.
fn origin(lock: &Lock, typed: &str, settings: &Settings) -> Result<Origin, CommandError> {
    let catalogue = catalogue();
    let name = bare_name(typed).unwrap_or_else(|_| typed.to_owned());
    if lock.wheels.iter().any(|wheel| wheel.name == name) {
        let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
        let requirements = cached_requirements(&store, &lock.wheels);
        let developer: Vec<String> = catalogue.developer_wheels().collect();
        if let Some(origin) = lock.origin(&name, &requirements, &developer) {
            return Ok(origin);
        }
    }
    let developer: Vec<String> = catalogue.system(&lock.stack).map(str::to_owned).collect();
    let origin = lock.origin_of_deb(typed, &developer);
    let near = || lock.nearest_packages(&name);
    Ok(origin.ok_or_else(|| NotLocked {
        package: typed.to_owned(),
        spec: lock.spec.clone(),
        near: near(),
    })?)
}

/// The answer as people read it.
fn text(origin: &Origin) -> String {
    let layer = origin.layer.map_or("system", layer_name);
    let mut lines = vec![
        format!("{} {}", origin.name, origin.version),
        format!("  file     {}, index `{}`, layer {layer}", origin.file, origin.index),
        format!("  version  chosen by {}", origin.chosen),
    ];
    lines.extend(origin.source.iter().map(|source| format!("           source: {source}")));
    for (number, (bound, by)) in origin.bounds.iter().enumerate() {
        lines.push(format!("  {:<8} {bound} ({by})", if number == 0 { "bounds" } else { "" }));
    }
    for (number, chain) in origin.chains.iter().enumerate() {
        // What envforge adds to some images has its reason in its own list.
        let is_added = chain.requested_by == RequestedBy::EveryImage && origin.layer.is_none();
        let reason = catalogue().reason_of(&origin.name).filter(|_| is_added).map(str::to_owned);
        let text = reason.unwrap_or_else(|| chain_text(chain));
        lines.push(format!("  {:<8} {text}", if number == 0 { "because" } else { "" }));
    }
    if origin.more_chains > 0 {
        lines.push(format!("           and {} more", origin.more_chains));
    }
    if origin.layer.is_none() && origin.chains.is_empty() {
        let text = "not known here: a lock does not record the requirements of distribution packages";
        lines.push(format!("  {:<8} {text}", "because"));
    } else if !origin.unknown.is_empty() {
        let count = counted(origin.unknown.len(), "wheel");
        lines.push(format!(
            "  not known here: the requirements of {count} missing from the cache (`envforge build` downloads them)"
        ));
    }
    lines.join("\n")
}

/// `project: transformers>=4.40 -> transformers 4.57.1 requires tokenizers<0.23 -> …`.
fn chain_text(chain: &Chain) -> String {
    let by = match chain.requested_by {
        RequestedBy::Spec => "spec",
        RequestedBy::Project => "project",
        RequestedBy::EveryImage => "every image",
    };
    let steps = chain.through.iter().map(|one| {
        let requirement = one.requirement.split(';').next().unwrap_or_default().trim();
        format!(" -> {} {} requires {requirement}", one.name, one.version)
    });
    format!("{by}: {}{}", chain.requested, steps.collect::<String>())
}

/// The package is not in the lock.
#[derive(Debug, thiserror::Error)]
#[error("`{package}` is not in the lock of {spec}")]
struct NotLocked {
    package: String,
    spec: String,
    near: Vec<String>,
}

impl Failure for NotLocked {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        if self.near.is_empty() {
            return vec![format!("`envforge add {}` adds it to a project", self.package)];
        }
        let names: Vec<String> = self.near.iter().map(|name| format!("`{name}`")).collect();
        vec![format!("the lock has {}", names.join(", "))]
    }
}

/// The project was not locked before.
#[derive(Debug, thiserror::Error)]
#[error("lock file not found")]
struct NoLock;

impl Failure for NoLock {
    fn exit(&self) -> Exit {
        Exit::No
    }

    fn hints(&self) -> Vec<String> {
        vec!["run `envforge lock` first".to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{Requirements, sample};
    use crate::model::markdown::{documented_fields, printed_fields};

    #[test]
    fn every_field_is_documented() {
        let lock = sample::lock();
        let origin = lock.origin("torch", &Requirements::new(), &[]).expect("there");
        let report = WhyReport { schema: 1, lock: lock.hash(), origin: &origin };
        assert_eq!(printed_fields(&report), documented_fields("envforge why torch pytorch-cuda:2.8-cu128"));
    }
}
