//! Distribution packages and uv of a lock, made present in the cache.

use std::sync::Arc;

use camino::Utf8PathBuf;

use crate::base::Base;
use crate::model::lock::Lock;
use crate::packages::{UvSource, gather_debs, gather_uv};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::package_sources::{deb_mirrors, package_settings};
use crate::workflow::session::Session;

/// Makes distribution packages and uv present in the cache, and returns the program uv.
pub(crate) async fn gathered(
    session: &Session<'_>,
    lock: &Lock,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<Utf8PathBuf, CommandError> {
    let (store, fetch) = (&session.store, &session.fetch);
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let mirrors = deb_mirrors(session, base, &lock.stack, &settings);
    gather_debs(lock, store, fetch, &mirrors, Arc::clone(&session.reporter)).await?;
    let source = UvSource { engine: &*session.engine, image: session, settings: &settings };
    Ok(gather_uv(lock, &source, store, fetch, Arc::clone(&session.reporter)).await?)
}
