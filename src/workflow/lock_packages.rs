//! Resolves everything above the base into a lock, in throwaway containers.
#![expect(clippy::disallowed_methods, reason = "stamps the lock with the time")]

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::base::Base;
use crate::model::compat::Matrix;
use crate::model::image::plan::environment_of;
use crate::model::lock::{Lock, LockMetadata, LockedSource, LockedWheel, SCHEMA};
use crate::model::resolve::{ResolveOptions, ToolkitSources, companion_advice, resolve};
use crate::model::stack::{NvccSource, Stack};
use crate::packages::{
    LocalWheel, PackageRequest, PackagesError, ResolvedPackages, SourceDist, resolve_packages,
};
use crate::report::Event;
use crate::source_build::SourceError;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::context_files::LowerLayers;
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::LocalWheels;
use crate::workflow::lock_error::LockingError;
use crate::workflow::misfits::check_framework;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::prereleases::check_prereleases;
use crate::workflow::session::Session;
use crate::workflow::source_packages::{tell_of_sources, wheels_of_sources};

/// More rounds of building source distributions than any that end.
pub(crate) const ROUNDS: u32 = 5;

/// Everything above the base, resolved in a throwaway container, as a lock.
pub(crate) async fn locked_packages(
    session: &Session<'_>,
    supplied: LocalWheels,
    wanted: &BuildRequest,
    base: &Base,
    previous: Option<&Lock>,
) -> Result<Lock, CommandError> {
    let local = supplied.wheels(&session.store, base.glibc.as_ref())?;
    let stack = supplied.stack;
    let settings = package_settings(session, &stack, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let locked_base = base.locked();
    let request = PackageRequest {
        base_reference: &base.reference,
        base: &locked_base,
        stack: &stack,
        matrix: &session.matrix,
        added: &wanted.added,
        previous,
        preferred: wanted.preferred.as_ref().map(|tool| &tool.versions),
        fresh: &wanted.source.upgrade_package,
        renew: wanted.source.upgrade || session.refresh,
        local: &local,
        built: &[],
    };
    let failed = |cause| not_resolved(cause, session, wanted, &stack);
    let mut found = resolve_packages(&tools, &request).await.map_err(failed)?;
    let (mut chosen, mut sources, mut beside) = (Vec::new(), Vec::new(), None);
    for round in 0.. {
        // What was built tells what it needs: that may be another source distribution, or another stack to build beside.
        let without = lock_of(found.clone(), &request, wanted);
        let below = without.without_user_layers().without_records();
        let settled = found.sources.is_empty() && (chosen.is_empty() || beside.as_ref() == Some(&below));
        if settled {
            break;
        }
        if round == ROUNDS {
            return Err(SourceError::Unsettled.into());
        }
        check_archives(&found.sources, &wanted.hashes)?;
        tell_of_sources(session, &found.sources);
        chosen.append(&mut found.sources);
        let lower = LowerLayers { lock: &without, base, wanted };
        let made = Box::pin(wheels_of_sources(session, &tools, &request, lower, &chosen)).await?;
        let built: Vec<LocalWheel>;
        (sources, built) = made.into_iter().unzip();
        let request = PackageRequest { built: &built, ..request };
        found = resolve_packages(&tools, &request).await.map_err(failed)?;
        beside = Some(below);
    }
    for shared in &found.shared_names {
        session.reporter.report(Event::Warning { text: shared.to_string() });
    }
    sources.retain(|source: &LockedSource| found.wheels.iter().any(|wheel| wheel.name == source.name));
    sources.sort_by(|one, other| one.name.cmp(&other.name));
    let published =
        found.wheels.iter().filter(|wheel| sources.iter().all(|source| source.name != wheel.name));
    check_hashes(published, &wanted.hashes)?;
    check_prereleases(&found.wheels, &wanted.added.python, &stack, &session.matrix)?;
    let lock = Lock { sources, ..lock_of(found, &request, wanted) };
    check_framework(&lock, &session.matrix)?;
    Ok(lock)
}

/// What was resolved, as a lock.
pub(crate) fn lock_of(found: ResolvedPackages, request: &PackageRequest<'_>, wanted: &BuildRequest) -> Lock {
    let records = LockMetadata {
        created: Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        envforge: env!("CARGO_PKG_VERSION").to_owned(),
        matrix: request.stack.matrix.clone(),
        agent: Some(crate::agent::sha256()),
        ..LockMetadata::default()
    };
    Lock {
        schema: SCHEMA,
        spec: wanted.spec.written().to_owned(),
        added: wanted.added.clone(),
        environment: environment_of(request.stack, &wanted.added),
        stack: request.stack.clone(),
        base: request.base.clone(),
        tools: found.tools,
        system: found.system,
        unpacked: found.unpacked,
        apt: found.apt,
        wheels: found.wheels,
        sources: Vec::new(),
        records,
    }
}

/// Why nothing could be resolved, in the user's words where it lies with his wishes.
pub(crate) fn not_resolved(
    cause: PackagesError,
    session: &Session<'_>,
    wanted: &BuildRequest,
    stack: &Stack,
) -> CommandError {
    if cause.is_nvcc_error() {
        let nearest = without_that_source(wanted, stack, session.settings.source.toolkit, &session.matrix);
        return LockingError::NvccOutOfReach { cause, nearest }.into();
    }
    if cause.is_conflict() { conflict(cause, wanted, stack, &session.matrix) } else { cause.into() }
}

/// Refuses a wheel whose hash a requirement file does not allow.
pub(crate) fn check_hashes<'a>(
    mut wheels: impl Iterator<Item = &'a LockedWheel>,
    allowed: &BTreeMap<String, Vec<String>>,
) -> Result<(), PackagesError> {
    let refused =
        wheels.find(|wheel| allowed.get(&wheel.name).is_some_and(|hashes| !hashes.contains(&wheel.sha256)));
    match refused {
        None => Ok(()),
        Some(wheel) => Err(PackagesError::OtherHash {
            package: wheel.name.clone(),
            file: wheel.file.clone(),
            found: wheel.sha256.clone(),
        }),
    }
}

/// The same for source distributions, before anything of them runs.
pub(crate) fn check_archives(
    sources: &[SourceDist],
    allowed: &BTreeMap<String, Vec<String>>,
) -> Result<(), PackagesError> {
    let archives: Vec<_> = sources.iter().map(|source| source.locked.as_file()).collect();
    check_hashes(archives.iter(), allowed)
}

/// A conflict in the user's words: which of his wishes are in it, and where they stand.
pub(crate) fn conflict(
    cause: PackagesError,
    wanted: &BuildRequest,
    stack: &Stack,
    matrix: &Matrix,
) -> CommandError {
    let words = std::error::Error::source(&cause).map(ToString::to_string).unwrap_or_default();
    let named = |name: &str| {
        words.split(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c))).any(|word| word == name)
    };
    let requirements = wanted.origins.iter().filter(|requirement| named(&requirement.name));
    let requirements =
        ends_of(requirements.map(|one| format!("`{}` is required by {}", one.text, one.origin)).collect());
    let pin = format!("{} {}", stack.package, stack.version);
    let pinned = named(&stack.package).then_some(pin);
    let packages = matrix.coupled_packages.iter().map(|row| row.package.as_str());
    let companions = packages
        .filter(|package| named(package))
        .filter_map(|package| companion_advice(package, stack, matrix))
        .collect();
    let (cause, product) = (Box::new(cause), stack.product.clone());
    LockingError::Conflict { cause, requirements, pinned, product, companions }.into()
}

/// A long list without its middle.
fn ends_of(mut lines: Vec<String>) -> Vec<String> {
    const END: usize = 10;
    if lines.len() > 2 * END + 1 {
        let middle = END..lines.len() - END;
        let more = format!("{} more", middle.len());
        lines.splice(middle, [more]);
    }
    lines
}

/// The nearest devel specs on the same base whose nvcc comes from another source than this stack's, as commands.
fn without_that_source(
    wanted: &BuildRequest,
    stack: &Stack,
    sources: ToolkitSources,
    matrix: &Matrix,
) -> Vec<String> {
    let Some(nvcc) = &stack.nvcc else { return Vec::new() };
    let named = wanted.source.base.clone();
    let mut options = ResolveOptions { base: named, toolkit: sources, ..ResolveOptions::default() };
    match nvcc.source {
        NvccSource::Distribution => options.toolkit.distribution = false,
        NvccSource::Wheels => options.toolkit.wheels = false,
        NvccSource::Vendor => options.toolkit.vendor = false,
    }
    match resolve(wanted.spec.parsed(), &stack.target, matrix, &options) {
        Ok(other) => vec![format!("envforge build {}", other.name)],
        Err(refusal) => refusal.alternatives.into_iter().map(|offer| offer.command).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::ends_of;

    #[test]
    fn long_list_of_requirements_keeps_its_ends() {
        let lines = |count: u32| (0..count).map(|at| at.to_string()).collect::<Vec<_>>();
        assert_eq!(ends_of(lines(21)), lines(21));
        let short = ends_of(lines(10_001));
        assert_eq!(short.len(), 21);
        assert_eq!((short[9].as_str(), short[10].as_str(), short[11].as_str()), ("9", "9981 more", "9991"));
        assert_eq!(short[20], "10000");
    }
}
