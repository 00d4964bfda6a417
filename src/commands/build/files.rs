//! What the context is made of, made present in the cache.
#![expect(clippy::disallowed_methods, reason = "reads sizes of cached files")]

use std::sync::Arc;

use bytes::Bytes;
use camino::Utf8PathBuf;

use super::super::CommandError;
use super::super::lock::{deb_mirrors, package_settings};
use super::super::session::Session;
use super::super::source_packages::built_again;
use super::super::wanted::Wanted;
use crate::agent;
use crate::base::Base;
use crate::lock::Lock;
use crate::packages::{PackagesError, UvSource, gather_debs, gather_uv};
use crate::plan::{Bottom, CachedFile, Files};

/// Makes everything the context needs present in the cache.
pub(in crate::commands) async fn files(
    session: &Session<'_>,
    lock: &Lock,
    base: &Base,
    bottom: Bottom,
    wanted: &Wanted,
) -> Result<Files, CommandError> {
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
    Ok(Files {
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
pub(in crate::commands) fn cached_file(path: Utf8PathBuf) -> Result<CachedFile, CommandError> {
    let bytes = fs_err::read(&path)?;
    let sha256 = crate::sha256::sha256_hex(&bytes);
    Ok(CachedFile { size: bytes.len() as u64, sha256, path })
}
