//! Packages of the user that come as source distributions: their wheels, built while locking, or again where the cache has
//! lost them.
#![expect(clippy::disallowed_methods, reason = "edge: reads archives of the cache")]

use crate::model::bounded::read_bounded;
use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedSource, UserAdditions};
use crate::packages::{LocalWheel, PackageRequest, ResolverContext, SourceDist, resolve_packages};
use crate::report::Event;
use crate::source_build::{PackageBuild, SourceError, build_requires, extra_requirements, source_archive};
use crate::workflow::base::check_processor;
use crate::workflow::context_files::{LowerLayers, built};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The most of a source archive, bytes: it is read into memory.
const LARGEST_ARCHIVE: u64 = 1 << 30;

/// Says of each that code of it will run.
pub(crate) fn tell_of_sources(session: &Session<'_>, found: &[SourceDist]) {
    for SourceDist { locked, .. } in found {
        let text = format!(
            "no compatible wheel of {} {}: building from source (runs the package's build code)",
            locked.name, locked.version
        );
        session.reporter.report(Event::Note { text });
    }
}

/// Checks, before anything is downloaded or compiled, that the image below can build all of them.
fn check_recipes(below: &Lock, found: &[SourceDist]) -> Result<(), SourceError> {
    let obstacles = |SourceDist { locked, .. }: &SourceDist| {
        let recipe = Matrix::current().source_recipe(&locked.name, &locked.version);
        PackageBuild { below, source: locked, recipe }.obstacles()
    };
    let reasons: Vec<_> = found.iter().flat_map(obstacles).collect();
    if reasons.is_empty() {
        return Ok(());
    }
    Err(SourceError::Unfit { reasons, devel: below.stack.nvcc.is_none() })
}

/// Builds the wheels of the chosen source distributions and returns them with their records for the lock. `lower.lock` is
/// the lock without them.
pub(crate) async fn wheels_of_sources(
    session: &Session<'_>,
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
    lower: LowerLayers<'_>,
    found: &[SourceDist],
) -> Result<Vec<(LockedSource, LocalWheel)>, CommandError> {
    check_processor(session, request.stack)?;
    check_recipes(lower.lock, found)?;
    let mut all = Vec::new();
    for source in found {
        let SourceDist { locked, .. } = source;
        let archive = source_archive(tools, source).await?;
        let mut requires =
            build_requires(&read_bounded(fs_err::File::open(&archive)?, LARGEST_ARCHIVE)?, &locked.file)?;
        let allowed = request.added.allow_source.iter().find(|allowed| allowed.name == locked.name);
        requires.extend(allowed.into_iter().flat_map(|allowed| allowed.build.clone()));
        let recipe = Matrix::current().source_recipe(&locked.name, &locked.version);
        requires.extend(recipe.into_iter().flat_map(|recipe| recipe.build_wheels.clone()));
        let added = UserAdditions { python: requires, allow_source: Vec::new(), ..request.added.clone() };
        let asked =
            PackageRequest { added: &added, previous: Some(lower.lock), fresh: &[], built: &[], ..*request };
        let resolved = resolve_packages(tools, &asked).await.map_err(|cause| SourceError::BuildRequires {
            archive: locked.file.clone(),
            cause: Box::new(cause),
        })?;
        let build = extra_requirements(&lower.lock.without_user_layers(), &resolved.wheels);
        let locked = LockedSource { build, ..locked.clone() };
        let wheel = built(session, tools, lower, &locked).await?;
        all.push((locked, wheel));
    }
    Ok(all)
}
