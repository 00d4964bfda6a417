//! Packages of the user that come as source distributions: their wheels, built while locking, or again where the cache has
//! lost them.
#![expect(clippy::disallowed_methods, reason = "edge: reads archives of the cache")]

use std::sync::Arc;

use super::CommandError;
use super::base::check_processor;
use super::build::{cached_file, files};
use super::from_source::this_machine;
use super::lock::{package_settings, package_tools};
use super::session::Session;
use super::wanted::Wanted;
use crate::base::Base;
use crate::lock::{Added, Lock, LockedSource};
use crate::packages::{FoundSource, LocalWheel, PackageRequest, PackageTools, WheelSource, resolve_packages};
use crate::plan::Bottom;
use crate::report::Event;
use crate::source_build::{PackageBuild, SourceError, beyond, build_package, build_requires, source_archive};

/// Says of each that code of it will run.
pub(super) fn tell_of_sources(session: &Session<'_>, found: &[FoundSource]) {
    for FoundSource { locked, .. } in found {
        let text = format!(
            "no wheel of {} {} fits: its source distribution is built, which runs what it brings",
            locked.name, locked.version
        );
        session.reporter.report(Event::Note { text });
    }
}

/// The wheels of the source distributions that were chosen, with what the lock keeps of each. `lock` is what was resolved
/// beside them.
pub(super) async fn wheels_of_sources(
    session: &Session<'_>,
    tools: &PackageTools<'_>,
    request: &PackageRequest<'_>,
    (lock, found): (&Lock, &[FoundSource]),
    base: &Base,
    wanted: &Wanted,
) -> Result<Vec<(LockedSource, LocalWheel)>, CommandError> {
    check_processor(session, request.stack)?;
    let mut all = Vec::new();
    for source in found {
        let FoundSource { locked, .. } = source;
        let archive = source_archive(tools, source).await?;
        let mut requires = build_requires(&fs_err::read(&archive)?, &locked.file)?;
        let allowed = request.added.allow_source.iter().find(|allowed| allowed.name == locked.name);
        requires.extend(allowed.into_iter().flat_map(|allowed| allowed.build.clone()));
        let added = Added { python: requires, allow_source: Vec::new(), ..request.added.clone() };
        let asked =
            PackageRequest { added: &added, previous: Some(lock), fresh: &[], built: &[], ..*request };
        let resolved = resolve_packages(tools, &asked).await.map_err(|cause| SourceError::BuildRequires {
            archive: locked.file.clone(),
            cause: Box::new(cause),
        })?;
        let build = beyond(&lock.below_the_user(), &resolved.wheels);
        let locked = LockedSource { build, ..locked.clone() };
        let wheel = built(session, tools, lock, &locked, base, wanted).await?;
        all.push((locked, wheel));
    }
    Ok(all)
}

/// The wheel of a source distribution in the cache, built in what lies below the user's packages of a lock.
async fn built(
    session: &Session<'_>,
    tools: &PackageTools<'_>,
    lock: &Lock,
    source: &LockedSource,
    base: &Base,
    wanted: &Wanted,
) -> Result<LocalWheel, CommandError> {
    let below = lock.below_the_user();
    let bottom = Bottom::Image(base.reference.clone());
    let files = Box::pin(files(session, &below, base, bottom, wanted)).await?;
    let archive = cached_file(tools.store.blob_path(&source.sha256)?)?;
    let jobs = this_machine().cores.filter(|_| session.engine.info().local).unwrap_or(1);
    let request = PackageBuild { below: &below, files: &files, source, archive, jobs };
    base.check_unchanged(&*session.engine).await?;
    let wheel = build_package(tools, &request).await?;
    base.check_unchanged(&*session.engine).await?;
    Ok(wheel)
}

/// Builds a wheel again that a lock names and the cache does not have: from the same source with the same tools it is to have
/// the same bytes.
pub(super) async fn built_again(
    session: &Session<'_>,
    lock: &Lock,
    source: &LockedSource,
    base: &Base,
    wanted: &Wanted,
) -> Result<(), CommandError> {
    check_processor(session, &lock.stack)?;
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let from = WheelSource { stack: &lock.stack, index: &settings.index, fetcher: &session.fetch };
    from.gather(&[&source.as_file()], &session.store, Arc::clone(&session.reporter)).await?;
    let wheel = built(session, &tools, lock, source, base, wanted).await?;
    let locked = lock.local_wheels().find(|wheel| wheel.name == source.name);
    match locked.filter(|locked| locked.sha256 != wheel.sha256) {
        None => Ok(()),
        Some(locked) => Err(SourceError::OtherWheel {
            file: locked.file.clone(),
            found: wheel.sha256,
            locked: locked.sha256.clone(),
        }
        .into()),
    }
}
