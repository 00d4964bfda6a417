//! Packages of the user that come as source distributions: their wheels, built while locking, or again where the cache has
//! lost them.
#![expect(clippy::disallowed_methods, reason = "edge: reads archives of the cache")]

use crate::model::bounded::read_bounded;
use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedSource, LockedWheel, UserAdditions};
use crate::packages::{LocalWheel, PackageRequest, ResolverContext, SourceDist, resolve_packages};
use crate::report::Event;
use crate::source_build::{
    Obstacle, SourceError, build_requires, extra_requirements, recipe_sha256, source_archive,
};
use crate::workflow::base::check_processor;
use crate::workflow::compiled_wheels::{compiled_wheels, package_build};
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
fn check_recipes(below: &Lock, found: &[SourceDist], matrix: &Matrix) -> Result<(), SourceError> {
    let obstacles = |SourceDist { locked, .. }: &SourceDist| package_build(below, locked, matrix).obstacles();
    let all: Vec<_> = found.iter().flat_map(obstacles).collect();
    if all.is_empty() {
        return Ok(());
    }
    let lacks_nvcc = all.iter().any(|one| matches!(one, Obstacle::NoNvcc(_)));
    let devel = lacks_nvcc.then(|| format!("{}-devel", below.spec));
    let gpus = all.iter().any(|one| matches!(one, Obstacle::Gpu(_)));
    let reasons = all.iter().map(|one| one.text().to_owned()).collect();
    Err(SourceError::Unfit { reasons, devel, gpus })
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
    check_recipes(lower.lock, found, &session.matrix)?;
    let mut all = Vec::new();
    for source in found {
        let SourceDist { locked, .. } = source;
        let archive = source_archive(tools, source).await?;
        let mut requires =
            build_requires(&read_bounded(fs_err::File::open(&archive)?, LARGEST_ARCHIVE)?, &locked.file)?;
        let allowed = request.added.allow_source.iter().find(|allowed| allowed.name == locked.name);
        requires.extend(allowed.into_iter().flat_map(|allowed| allowed.build.clone()));
        let recipe = package_build(lower.lock, locked, &session.matrix).recipe;
        requires.extend(recipe.into_iter().flat_map(|recipe| recipe.build_wheels.clone()));
        let added = UserAdditions { python: requires, allow_source: Vec::new(), ..request.added.clone() };
        let asked = PackageRequest {
            added: &added,
            previous: Some(lower.lock),
            preferred: None,
            fresh: &[],
            built: &[],
            ..*request
        };
        let resolved = resolve_packages(tools, &asked).await.map_err(|cause| SourceError::BuildRequires {
            archive: locked.file.clone(),
            cause: Box::new(cause),
        })?;
        let below = lower.lock.without_user_layers();
        let build = extra_requirements(&below, &resolved.wheels);
        let locked = LockedSource { build, recipe: recipe.map(recipe_sha256), ..locked.clone() };
        let recorded =
            recorded(request, &package_build(&below, &locked, &session.matrix).key(), &locked.name);
        let wheel = built(session, tools, lower, &locked, recorded).await?;
        all.push((locked, wheel));
    }
    Ok(all)
}

/// The wheel of a package that an older lock file records for a build of the same key, unless it is to be chosen again.
fn recorded<'a>(request: &PackageRequest<'a>, key: &str, package: &str) -> Option<&'a LockedWheel> {
    let old = request.previous.filter(|_| request.fresh.iter().all(|name| name != package))?;
    let mut compiled = compiled_wheels(old, request.matrix).into_iter();
    compiled.find(|(old, wheel)| old == key && wheel.name == package).map(|(_, wheel)| wheel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::compat::coupled::SourceRecipe;
    use crate::model::lock::sample;

    fn source(row: &SourceRecipe) -> SourceDist {
        let version = row.versions[0].to_string();
        let locked = LockedSource {
            name: row.package.clone(),
            file: format!("{}-{version}.tar.gz", row.package),
            version,
            sha256: row.sha256[0].clone(),
            size: None,
            build: Vec::new(),
            recipe: None,
        };
        SourceDist { locked, address: "http://index.test/a.tar.gz".parse().expect("an address") }
    }

    #[test]
    fn flavour_without_nvcc_and_old_gpus_are_refused_before_a_download() {
        let mut below = sample::lock().without_user_layers();
        assert!(below.stack.nvcc.is_none());
        let recipes = &crate::model::compat::embedded().source_recipes;
        let all: Vec<_> = recipes.iter().map(source).collect();
        let error = check_recipes(&below, &all, crate::model::compat::embedded()).expect_err("no nvcc");
        assert_eq!(error.exit(), Exit::No);
        for row in recipes {
            let reason = format!("{} {} compiles CUDA code", row.package, row.versions[0]);
            assert!(error.to_string().contains(&reason), "{error}");
        }
        let hints = error.hints().join("\n");
        assert!(hints.contains(&format!("{}-devel", below.spec)), "{hints}");
        // An archive of another hash has no recipe, so nothing is known of it.
        let mut other = source(&recipes[0]);
        other.locked.sha256 = "0".repeat(64);
        assert!(check_recipes(&below, &[other.clone()], crate::model::compat::embedded()).is_ok());
        // Nor does it hide what helps another.
        below.stack.requires.gpu = vec!["7.0".parse().expect("a code")];
        let old = recipes.iter().find(|row| row.oldest_gpu.is_some()).expect("a row");
        let hints = check_recipes(&below, &[other, source(old)], crate::model::compat::embedded())
            .expect_err("too old")
            .hints();
        assert!(hints.len() == 2 && hints[1].contains("--gpu"), "{hints:?}");
    }
}
