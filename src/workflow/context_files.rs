//! What the context is made of, made present in the cache.
#![expect(clippy::disallowed_methods, reason = "reads sizes of cached files")]

use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8PathBuf;

use crate::agent;
use crate::base::Base;
use crate::model::image::plan::{BaseSource, CachedFile, ContextFiles};
use crate::model::lock::{Lock, LockedSource};
use crate::packages::{
    LocalWheel, PackagesError, ResolverContext, UvSource, WheelSource, gather_debs, gather_uv,
};
use crate::source_build::{PackageBuild, SourceError, build_package};
use crate::workflow::base::check_processor;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::package_sources::{deb_mirrors, package_settings, package_tools};
use crate::workflow::session::Session;
use crate::workflow::source_build::this_machine;

/// Makes everything the context needs present in the cache.
pub(crate) async fn files(
    session: &Session<'_>,
    lock: &Lock,
    base: &Base,
    bottom: BaseSource,
    wanted: &BuildRequest,
) -> Result<ContextFiles, CommandError> {
    let (store, fetch) = (&session.store, &session.fetch);
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let mirrors = deb_mirrors(session, base, &lock.stack, &settings);
    gather_debs(lock, store, fetch, &mirrors, Arc::clone(&session.reporter)).await?;
    let source = UvSource { engine: &*session.engine, base_reference: &base.reference, settings: &settings };
    let uv = gather_uv(lock, &source, store, fetch, Arc::clone(&session.reporter)).await?;
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
        uv: cached_file(uv)?,
        agent: Bytes::from_static(agent::AGENT),
    })
}

/// A file of the cache, which is named by its SHA-256.
pub(crate) fn cached_file(path: Utf8PathBuf) -> Result<CachedFile, CommandError> {
    let bytes = fs_err::read(&path)?;
    let sha256 = crate::model::sha256::sha256_hex(&bytes);
    Ok(CachedFile { size: bytes.len() as u64, sha256, path })
}

/// The image that a source distribution is built in: the layers below the user's packages.
#[derive(Clone, Copy)]
pub(crate) struct LowerLayers<'a> {
    pub(crate) lock: &'a Lock,
    pub(crate) base: &'a Base,
    pub(crate) wanted: &'a BuildRequest,
}

/// Builds the wheel of a source distribution in the cache.
pub(crate) async fn built(
    session: &Session<'_>,
    tools: &ResolverContext<'_>,
    LowerLayers { lock, base, wanted }: LowerLayers<'_>,
    source: &LockedSource,
) -> Result<LocalWheel, CommandError> {
    let below = lock.without_user_layers();
    let bottom = BaseSource::Image(base.reference.clone());
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
