//! Where the Python packages of a lock are, for files that other tools download from.

use std::collections::BTreeMap;

use futures_util::{StreamExt as _, stream};

use crate::failure::{Exit, Failure};
use crate::model::lock::{Lock, LockedSource, LockedWheel};
use crate::packages::{
    IndexSettings, PackagesError, UpstreamStatus, WheelAddresses, WheelSource, remembered_addresses,
};
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::session::downloads;

/// Pages of an index requested in parallel.
const PARALLEL: usize = 8;

/// Returns the address of each wheel by its SHA-256, without login and query; of one that was built here that of its source. Addresses
/// come from the state directory, as after a lock that was made here, else from the indexes.
pub(crate) async fn package_addresses(
    lock: &Lock,
    wanted: &BuildRequest,
    settings: &Settings,
) -> Result<BTreeMap<String, String>, CommandError> {
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let (fetcher, index) = downloads(settings)?;
    let index = IndexSettings { further: wanted.indexes.clone(), ..index };
    let is_built = |wheel: &&LockedWheel| lock.sources.iter().any(|source| source.name == wheel.name);
    let published = lock.wheels.iter().filter(|wheel| !is_built(wheel)).cloned();
    let files: Vec<LockedWheel> = published.chain(lock.sources.iter().map(LockedSource::as_file)).collect();
    let mut known = WheelAddresses::new();
    for file in &files {
        known.extend(remembered_addresses(&store, &[file])?.unwrap_or_default());
    }
    let source = WheelSource { stack: &lock.stack, index: &index, fetcher: &fetcher, known: Some(&known) };
    let answers: Vec<(&LockedWheel, Result<UpstreamStatus, PackagesError>)> = stream::iter(&files)
        .map(|file| async move { (file, source.upstream(file).await) })
        .buffer_unordered(PARALLEL)
        .collect()
        .await;
    let (mut found, mut missing) = (BTreeMap::new(), Vec::new());
    for (file, answer) in answers {
        match answer? {
            UpstreamStatus::There(address) | UpstreamStatus::Yanked(address) => {
                drop(found.insert(file.sha256.clone(), address.without_secrets()));
            }
            UpstreamStatus::Changed(_) => missing.push(format!("{} (another file of that name)", file.file)),
            UpstreamStatus::Gone => missing.push(file.file.clone()),
        }
    }
    missing.sort();
    if missing.is_empty() { Ok(found) } else { Err(NotInIndex { files: missing }.into()) }
}

/// Files of a lock that the indexes do not have.
#[derive(Debug, thiserror::Error)]
#[error("not in the package index:\n  - {}", files.join("\n  - "))]
struct NotInIndex {
    files: Vec<String>,
}

impl Failure for NotInIndex {
    fn exit(&self) -> Exit {
        Exit::Outside
    }

    fn hints(&self) -> Vec<String> {
        vec!["lock files that are in it: `envforge lock --upgrade`".to_owned()]
    }
}
