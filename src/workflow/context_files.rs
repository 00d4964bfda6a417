//! What the context is made of, made present in the cache.

use std::sync::Arc;

use bytes::Bytes;

use crate::agent;
use crate::base::Base;
use crate::engine::TemporaryTag;
use crate::model::image::plan::{BaseSource, CachedFile, ContextFiles, plan};
use crate::model::lock::{Lock, LockedSource, LockedWheel};
use crate::packages::{LocalWheel, PackagesError, ResolverContext, WheelSource};
use crate::source_build::{Compilation, SourceError, built_once, compile, recipe_sha256};
use crate::store::Store;
use crate::workflow::assemble::{Assembly, FinishedLayers, PartClock, Purpose, assemble, recorded};
use crate::workflow::base::check_processor;
use crate::workflow::build_machine::build_machine;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::compiled_wheels::package_build;
use crate::workflow::error::CommandError;
use crate::workflow::gathered::gathered;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::session::Session;
use crate::workflow::shared_wheel::{SharedWheel, fetch_locked};

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
        match (store.find(&wheel.sha256)?, source) {
            (Some(_), _) => {}
            (None, Some(source)) => built_again(session, lock, source, base, wanted).await?,
            (None, None) => fetch_locked(session, lock, wheel).await?,
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
        misfits: None,
        times: &PartClock::default(),
    };
    Box::pin(assemble(image)).await?;
    let wheel = compile(tools, scratch.name(), &what, jobs).await?;
    scratch.remove().await?;
    Ok(wheel)
}

/// Returns the wheel of a source distribution, in the cache: the one that a lock file of the user records, if its inputs are
/// still the same, one of the cache or of the registry of layers, else it is built.
pub(crate) async fn built(
    session: &Session<'_>,
    tools: &ResolverContext<'_>,
    LowerLayers { lock, base, wanted }: LowerLayers<'_>,
    source: &LockedSource,
    recorded: Option<&LockedWheel>,
) -> Result<LocalWheel, CommandError> {
    let below = lock.without_user_layers();
    let build = package_build(&below, source, &session.matrix);
    if source.recipe != build.recipe.map(recipe_sha256) {
        return Err(SourceError::OtherRecipe { name: source.name.clone() }.into());
    }
    let (key, jobs) = (build.key(), build.jobs(build_machine(session)));
    let shared = SharedWheel::new(session, &key, &format!("{} {}", source.name, source.version), recorded);
    let builder_lock = build.builder_lock();
    let check = |wheel: &LocalWheel| {
        wheel.check_package(&source.name, &source.version, &below.stack, base.glibc.as_ref())
    };
    let make = async {
        let archive = archive_of(tools, &below, source).await?;
        let builder = Builder { lock: &builder_lock, base, wanted, jobs };
        let wheel = compiled(session, tools, builder, |uv| build.compilation(archive, uv)).await?;
        check(&wheel)?;
        Ok(wheel)
    };
    let find = Box::pin(shared.find());
    let wheel = built_once(tools.store, &key, recorded, find, Box::pin(make)).await?;
    check(&wheel)?;
    shared.compare(&wheel)?;
    Ok(wheel)
}

/// The archive of a source distribution, in the cache.
async fn archive_of(
    tools: &ResolverContext<'_>,
    lock: &Lock,
    source: &LockedSource,
) -> Result<CachedFile, CommandError> {
    if tools.store.find(&source.sha256)?.is_none() {
        let from = WheelSource {
            stack: &lock.stack,
            index: &tools.settings.index,
            fetcher: tools.fetcher,
            known: None,
        };
        from.gather(&[&source.as_file()], tools.store, Arc::clone(&tools.reporter)).await?;
    }
    cached_file(tools.store, &source.sha256)
}

/// Brings a wheel back that a lock names and the cache does not have: from the registry of layers, or built again. From the same
/// source with the same tools it is to have the same bytes.
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
    let locked = lock.local_wheels().find(|wheel| wheel.name == source.name);
    let wheel = built(session, &tools, LowerLayers { lock, base, wanted }, source, locked).await?;
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
