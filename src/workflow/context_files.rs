//! What the context is made of, made present in the cache.

use std::sync::Arc;

use bytes::Bytes;

use crate::agent;
use crate::base::Base;
use crate::engine::TemporaryTag;
use crate::model::compat::Matrix;
use crate::model::image::plan::{BaseSource, CachedFile, ContextFiles, plan};
use crate::model::lock::{Lock, LockedSource};
use crate::packages::{LocalWheel, PackagesError, ResolverContext, WheelSource};
use crate::source_build::{Compilation, PackageBuild, SourceError, built_once, compile, recipe_sha256};
use crate::store::Store;
use crate::workflow::assemble::{Assembly, FinishedLayers, PartClock, Purpose, assemble, recorded};
use crate::workflow::base::check_processor;
use crate::workflow::build_machine::build_machine;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::gathered::gathered;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::session::Session;

/// Makes everything the context needs present in the cache.
pub(crate) async fn files(
    session: &Session<'_>,
    lock: &Lock,
    base: &Base,
    bottom: BaseSource,
    wanted: &BuildRequest,
) -> Result<ContextFiles, CommandError> {
    let store = &session.store;
    let uv = gathered(session, lock, base, wanted).await?;
    let debs = lock.system.iter().map(|deb| store.blob_path(&deb.sha256)).collect::<Result<_, _>>()?;
    let unpacked = lock.unpacked.iter().map(|deb| store.blob_path(&deb.sha256)).collect::<Result<_, _>>()?;
    let apt = lock.apt.iter().map(|deb| store.blob_path(&deb.sha256)).collect::<Result<_, _>>()?;
    let mut local = Vec::new();
    // A vendor folder has them like all others.
    for wheel in lock.local_wheels().filter(|_| wanted.vendored.is_empty()) {
        let source = lock.sources.iter().find(|source| source.name == wheel.name);
        if let (Some(source), None) = (source, store.find(&wheel.sha256)?) {
            built_again(session, lock, source, base, wanted).await?;
        }
        let gone = || PackagesError::LocalWheelGone { file: wheel.file.clone() };
        let path = store.find(&wheel.sha256)?.ok_or_else(gone)?;
        let size = fs_err::metadata(&path)?.len();
        local.push((wheel.file.clone(), CachedFile { path, size, sha256: wheel.sha256.clone() }));
    }
    let (copies, wheels) = (wanted.copies.clone(), wanted.vendored.clone());
    Ok(ContextFiles {
        bottom,
        debs,
        unpacked,
        apt,
        copies,
        wheels,
        local,
        uv: cached_file(store, uv.file_name().unwrap_or_default())?,
        agent: Bytes::from_static(agent::AGENT),
    })
}

/// A file of the cache by its SHA-256, with which it is compared when it is sent.
pub(crate) fn cached_file(store: &Store, sha256: &str) -> Result<CachedFile, CommandError> {
    let path = store.blob_path(sha256)?;
    Ok(CachedFile { size: fs_err::metadata(&path)?.len(), sha256: sha256.to_owned(), path })
}

/// The image that a source distribution is built in: the layers below the user's packages.
#[derive(Clone, Copy)]
pub(crate) struct LowerLayers<'a> {
    pub(crate) lock: &'a Lock,
    pub(crate) base: &'a Base,
    pub(crate) wanted: &'a BuildRequest,
}

/// A throwaway image that something is compiled in.
#[derive(Clone, Copy)]
pub(crate) struct Builder<'a> {
    /// What is in it.
    pub(crate) lock: &'a Lock,
    pub(crate) base: &'a Base,
    pub(crate) wanted: &'a BuildRequest,
    /// Number of parallel compilers.
    pub(crate) jobs: u64,
}

/// Assembles a throwaway image and compiles a wheel in it, without network or secrets. The wheel is in the cache afterwards.
pub(crate) async fn compiled<'a>(
    session: &Session<'_>,
    tools: &ResolverContext<'_>,
    Builder { lock, base, wanted, jobs }: Builder<'_>,
    what: impl FnOnce(CachedFile) -> Compilation<'a>,
) -> Result<LocalWheel, CommandError> {
    let bottom = BaseSource::Image(base.reference.clone());
    let files = Box::pin(files(session, lock, base, bottom, wanted)).await?;
    let what = what(files.uv.clone());
    let plan = plan(lock, ContextFiles { copies: Vec::new(), ..files });
    let scratch = TemporaryTag::new(&*session.engine);
    let finished = FinishedLayers::new(session, recorded(lock), Purpose::Throwaway);
    let image = Assembly {
        session,
        lock,
        base,
        plan: &plan,
        wanted,
        scratch_tag: scratch.name(),
        no_cache: false,
        finished: &finished,
        times: &PartClock::default(),
    };
    Box::pin(assemble(image)).await?;
    let wheel = compile(tools, scratch.name(), &what, jobs).await?;
    scratch.remove().await?;
    Ok(wheel)
}

/// What decides the wheel of a source distribution above that image.
pub(crate) fn package_build<'a>(below: &'a Lock, source: &'a LockedSource) -> PackageBuild<'a> {
    let matrix = Matrix::current();
    let recipe = matrix.source_recipe(&source.name, &source.sha256);
    let compiler = matrix.compiler(&below.stack.toolkit);
    let nvcc_targets = compiler.map_or(&[][..], |compiler| &compiler.targets);
    PackageBuild { below, source, recipe, nvcc_targets }
}

/// Builds the wheel of a source distribution in the cache.
pub(crate) async fn built(
    session: &Session<'_>,
    tools: &ResolverContext<'_>,
    LowerLayers { lock, base, wanted }: LowerLayers<'_>,
    source: &LockedSource,
) -> Result<LocalWheel, CommandError> {
    let below = lock.without_user_layers();
    let build = package_build(&below, source);
    if source.recipe != build.recipe.map(recipe_sha256) {
        return Err(SourceError::OtherRecipe { name: source.name.clone() }.into());
    }
    let archive = cached_file(tools.store, &source.sha256)?;
    let jobs = build.jobs(build_machine(session));
    let lock = build.builder_lock();
    let builder = Builder { lock: &lock, base, wanted, jobs };
    let make = async {
        let wheel = compiled(session, tools, builder, |uv| build.compilation(archive, uv)).await?;
        wheel.check_package(&source.name, &source.version, &below.stack)?;
        Ok::<_, CommandError>(wheel)
    };
    built_once(tools.store, &build.key(), Box::pin(make)).await
}

/// Builds a wheel again that a lock names and the cache does not have: from the same source with the same tools it is to have
/// the same bytes.
pub(crate) async fn built_again(
    session: &Session<'_>,
    lock: &Lock,
    source: &LockedSource,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    check_processor(session, &lock.stack)?;
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let from =
        WheelSource { stack: &lock.stack, index: &settings.index, fetcher: &session.fetch, known: None };
    from.gather(&[&source.as_file()], &session.store, Arc::clone(&session.reporter)).await?;
    let wheel = built(session, &tools, LowerLayers { lock, base, wanted }, source).await?;
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
