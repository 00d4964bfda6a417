//! Requested packages against the indexes, before an engine or a base is needed: a misspelt name ends here, in seconds.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep508_rs::{Requirement, VersionOrUrl};

use crate::model::compat::Matrix;
use crate::model::local_version::without_local;
use crate::model::lock::Lock;
use crate::model::marker::holds;
use crate::model::stack::Stack;
use crate::packages::{IndexSettings, RequestedNames, UnlistedName};
use crate::settings::Settings;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::check_requested;
use crate::workflow::lock_error::{LockingError, UnknownPackage};
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::downloads;

/// The most names that are proposed for one.
const MOST: usize = 3;

/// Returns the request with what the indexes list of the packages that no lock has yet, or refuses names that none of them has. With
/// `--locked` nothing is asked.
pub(crate) async fn with_listed(
    wanted: &BuildRequest,
    stack: &Stack,
    settings: &Settings,
) -> Result<BuildRequest, CommandError> {
    check_requested(stack, wanted)?;
    let mut wanted = wanted.clone();
    if wanted.source.locked {
        return Ok(wanted);
    }
    // A lock that cannot be read is reported where it is used.
    let old = read_lock(&lock_path(settings, stack, &wanted.source)).ok().flatten();
    let names = new_names(&wanted, stack, old.as_ref());
    if names.is_empty() {
        return Ok(wanted);
    }
    let (fetcher, index) = downloads(settings)?;
    let index = IndexSettings { further: wanted.indexes.clone(), ..index };
    let requested = RequestedNames { stack, added: &wanted.added, settings: &index, fetcher: &fetcher };
    let found = requested.listed(&names).await?;
    if !found.unlisted.is_empty() {
        let unknown = |name| unknown(name, &wanted, old.as_ref(), &settings.matrix);
        let packages = found.unlisted.into_iter().map(unknown).collect();
        return Err(LockingError::UnknownPackages { packages }.into());
    }
    wanted.listed = found.releases;
    Ok(wanted)
}

/// The names of requirements that hold for the image, that are not the stack's own and that the lock does not have.
fn new_names(wanted: &BuildRequest, stack: &Stack, old: Option<&Lock>) -> Vec<String> {
    let kept = old.filter(|_| !wanted.source.upgrade);
    let is_new = |name: &String| {
        let of_stack = *name == stack.package || stack.companions.contains_key(name);
        let locked = kept.is_some_and(|lock| lock.wheels.iter().any(|wheel| wheel.name == *name));
        !of_stack && (!locked || wanted.source.upgrade_package.contains(name))
    };
    let name = |text: &String| {
        let parsed: Requirement = Requirement::from_str(&without_local(text).0).ok()?;
        let is_address = matches!(parsed.version_or_url, Some(VersionOrUrl::Url(_)));
        let is_wanted = !is_address && holds(&parsed.marker, stack.machine, stack.python);
        is_wanted.then(|| parsed.name.to_string())
    };
    let names: BTreeSet<String> = wanted.added.python.iter().filter_map(name).filter(is_new).collect();
    names.into_iter().collect()
}

/// An unlisted name with the place that requests it, and the known names that are near.
fn unknown(name: UnlistedName, wanted: &BuildRequest, old: Option<&Lock>, matrix: &Matrix) -> UnknownPackage {
    let UnlistedName { package, indexes } = name;
    let origin = wanted.origins.iter().find(|requirement| requirement.name == package);
    let mut known = matrix.package_names();
    known.extend(old.into_iter().flat_map(|lock| &lock.wheels).map(|wheel| wheel.name.as_str()));
    let near = near_names(&package, known);
    UnknownPackage { origin: origin.map(|requirement| requirement.origin.clone()), near, package, indexes }
}

/// The known names that differ from one in a letter or two, the nearest first.
fn near_names<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let most = (name.len() / 4).clamp(1, 2);
    let plain = |text: &str| text.replace('-', "");
    let far = |other: &str| strsim::osa_distance(&plain(other), &plain(name));
    let known: BTreeSet<&str> = known.into_iter().filter(|other| *other != name).collect();
    let mut near: Vec<(usize, &str)> = known.into_iter().map(|other| (far(other), other)).collect();
    near.retain(|(distance, _)| *distance <= most);
    near.sort_unstable();
    near.into_iter().take(MOST).map(|(_, other)| other.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::near_names;

    #[test]
    fn names_that_differ_in_a_letter_or_two_are_near() {
        let known = ["transformers", "bitsandbytes", "tqdm", "timm", "flash-attn", "trl", "peft"];
        for (typed, near) in [
            ("transfomers", vec!["transformers"]),
            ("bitsandbyts", vec!["bitsandbytes"]),
            ("flashattn", vec!["flash-attn"]),
            ("tim", vec!["timm"]),
            ("our-private-tool", vec![]),
            ("transformers", vec![]),
        ] {
            assert_eq!(near_names(typed, known), near, "{typed}");
        }
    }
}
