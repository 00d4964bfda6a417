//! Stack in, locked packages out: apt and then uv, each in a temporary container of this program's own image. Of the base there are
//! files only.
#![expect(clippy::disallowed_methods, reason = "edge: times its step")]

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;

use super::apt::standing;
use super::catalogue::catalogue;
use super::error::PackagesError;
use super::failure::explain_with;
use super::index_order::{IndexOrder, SharedName, shared_names};
use super::inputs::files;
use super::output::Answers;
use super::pylock::{SourceDist, names, resolutions};
use super::python_target::PythonTarget;
use super::request::{PackageRequest, ResolverContext};
use super::resolve_debs::{ResolvedDebs, resolve_debs};
use super::resolver_image::Resolver;
use super::settings::PackageSettings;
use super::uv::uv_binary;
use super::uv_run::{UvRun, run_uv};
use super::uv_source::UvSource;
use super::wheel_addresses::remember_addresses;
use super::wheels::{Layers, Origins, check_versions, locked_wheels};
use crate::model::lock::{LockedDeb, LockedTool, LockedWheel};
use crate::model::versions::Machine;
use crate::report::Event;

const STEP: &str = "packages";

const SCRIPT: &str = "/envforge/resolve_wheels.sh";

/// All packages above the base, pinned.
#[derive(Debug, Clone)]
pub struct ResolvedPackages {
    /// Distribution packages, sorted by name.
    pub system: Vec<LockedDeb>,
    /// Packages to unpack, sorted by name.
    pub unpacked: Vec<LockedDeb>,
    /// Packages of the distribution that the user added, with their dependencies, sorted by name.
    pub apt: Vec<LockedDeb>,
    /// Wheels, sorted by layer, then name.
    pub wheels: Vec<LockedWheel>,
    /// Source distributions without a compatible wheel: they have to be built, and everything resolved again with the built
    /// wheels.
    pub sources: Vec<SourceDist>,
    /// Packages whose name another index has too.
    pub shared_names: Vec<SharedName>,
    /// uv.
    pub tools: Vec<LockedTool>,
    /// The program uv that resolved, a file of the cache.
    pub uv_binary: Utf8PathBuf,
}

/// Resolves everything above the base of a stack.
pub async fn resolve_packages(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
) -> Result<ResolvedPackages, PackagesError> {
    let machine = request.stack.machine;
    let uv = |machine: Machine| {
        catalogue().uv(machine).ok_or_else(|| PackagesError::NoUv { machine: machine.to_string() })
    };
    let ResolverContext { engine, store, fetcher, settings, reporter, .. } = tools;
    // The lock names the image's uv, the container runs its own.
    let (tool, own) = (uv(machine)?, uv(engine.info().machine)?);
    let source = UvSource { engine: *engine, image: tools.image, settings };
    let uv_binary = uv_binary(&own, &source, store, fetcher, Arc::clone(reporter)).await?;
    let resolver = tools.image.resolver().await?;

    let started = Instant::now();
    let id = STEP.to_owned();
    let what = if standing(request).is_some() { "wheels" } else { "distribution packages and wheels" };
    reporter.report(Event::StepStarted { id: id.clone(), text: format!("resolve {what}") });
    let done = async {
        let debs = match standing(request) {
            Some(old) => ResolvedDebs {
                system: old.system.clone(),
                unpacked: old.unpacked.clone(),
                apt: old.apt.clone(),
            },
            None => resolve_debs(tools, request, &resolver).await?,
        };
        let python =
            PythonTarget::of(*engine, request.base_reference, request.base, &debs.system, request.stack)
                .await?;
        let answers = run(tools, request, &resolver, &python, &uv_binary).await?;
        // What a project's index or a built wheel says of a hash would be asked by every project.
        if settings.index.default.is_none()
            && !settings.index.of_project
            && request.unindexed_wheels().is_empty()
        {
            remember_addresses(store, answers.named("all")?)?;
        }
        Ok((debs, read(&answers, request, settings)?))
    }
    .await;
    reporter.report(match &done {
        Ok(_) => Event::StepFinished { id, cached: false, seconds: started.elapsed().as_secs_f64() },
        Err(error) => Event::StepFailed { id, text: PackagesError::to_string(error) },
    });
    let (ResolvedDebs { system, unpacked, apt }, Chosen { wheels, sources, shared_names }) = done?;
    let tools = vec![tool];
    Ok(ResolvedPackages { system, unpacked, apt, wheels, sources, shared_names, tools, uv_binary })
}

/// Runs uv.
async fn run(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
    resolver: &Resolver,
    python: &PythonTarget,
    uv: &Utf8PathBuf,
) -> Result<Answers, PackagesError> {
    // A file of the cache is named by its hash.
    let files = files(request, tools.settings, python, uv.file_name().unwrap_or_default())?;
    let shares = !tools.settings.index.of_project && request.unindexed_wheels().is_empty();
    let outcome = run_uv(tools, resolver, UvRun { script: SCRIPT, files, shares_cache: shares }, uv).await?;
    if outcome.code == 0 {
        return Answers::parse(&outcome.stdout);
    }
    let order = IndexOrder::of(request, &tools.settings.index)?;
    let with_additions = !request.added.python.is_empty();
    let error =
        explain_with(outcome.code, &outcome.stderr, with_additions, |package| order.indexes_of(package));
    Err(error.with_trap(request.matrix))
}

/// Wheels as uv chose them.
struct Chosen {
    wheels: Vec<LockedWheel>,
    sources: Vec<SourceDist>,
    shared_names: Vec<SharedName>,
}

fn read(
    answers: &Answers,
    request: &PackageRequest<'_>,
    settings: &PackageSettings,
) -> Result<Chosen, PackagesError> {
    let layers = Layers {
        framework: names(answers.named("framework")?)?.into_iter().collect(),
        stack: answers.optional("stack").map(names).transpose()?.map(|names| names.into_iter().collect()),
    };
    let order = IndexOrder::of(request, &settings.index)?;
    let origins: Origins = order.origins(answers.optional("origins").unwrap_or_default());
    let shared_names = shared_names(answers.optional("doubles").unwrap_or_default(), &origins);
    let (wheels, sources) = resolutions(
        answers.named("all")?,
        request.stack,
        &request.unindexed_wheels(),
        &request.buildable_packages(),
    )?;
    let sources = sources.into_iter().map(|source| source.with_login_of(&settings.index)).collect();
    let wheels = locked_wheels(wheels, &layers, &origins);
    check_versions(&wheels, request.stack)?;
    Ok(Chosen { wheels, sources, shared_names })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{Lock, UserAdditions, WheelLayer, sample};
    use crate::packages::output::RECORDED_WHEELS;

    #[test]
    fn recorded_run_becomes_locked_packages() {
        let (lock, stack) = (sample::lock(), sample::stack());
        let none = UserAdditions::default();
        let answers = Answers::parse(RECORDED_WHEELS.as_bytes()).expect("answers");
        let request = PackageRequest::sample(&lock, &stack, &none);
        let Chosen { wheels, .. } = read(&answers, &request, &PackageSettings::default()).expect("reads");
        assert_eq!(wheels.iter().filter(|wheel| wheel.layer == WheelLayer::Cuda).count(), 14);
        let whole = Lock { wheels, ..sample::lock() };
        let text = whole.to_toml();
        assert_eq!(Lock::from_toml("envforge.lock", &text).expect("reads"), whole);
        assert!(!text.contains("://"), "no address is in a lock");
    }
}
