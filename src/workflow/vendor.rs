//! `vendor`: everything a lock names in one folder, verified; and what a build takes from there.
#![expect(clippy::disallowed_methods, reason = "edge: copies and hashes files")]

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use secrecy::SecretString;

use crate::model::bounded::read_bounded;
use crate::model::image::plan::CachedFile;
use crate::model::index_address::IndexAddress;
use crate::model::lock::vendor_files::{VendorFile, items, place};
use crate::model::lock::{IndexKind, Lock};
use crate::model::request::LockOptions;
use crate::model::stack::Stack;
use crate::packages::{UpstreamStatus, UvSource, WheelSource, gather_debs, gather_uv};
use crate::report::Event;
use crate::settings::Settings;
use crate::store::vendor_base::fault;
use crate::store::vendor_dir::{LOCKS, VendorError, VendorProblem, locks_of, verified};
use crate::store::{Store, copy_verified};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::carried_evidence::take_vendored;
use crate::workflow::error::CommandError;
use crate::workflow::lock::LockedBuild;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::package_sources::{deb_mirrors, package_settings};
use crate::workflow::project::{index_address, unknown_index};
use crate::workflow::session::Session;

/// The most of the wheel of uv, bytes: it has some 20 MB.
const LARGEST_UV: u64 = 256 << 20;

/// Makes everything a lock names present in the cache.
pub(crate) async fn gather(
    session: &Session<'_>,
    wanted: &BuildRequest,
    locked: &LockedBuild,
) -> Result<(), CommandError> {
    let LockedBuild { lock, base, .. } = locked;
    let (store, fetch) = (&session.store, &session.fetch);
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let from = deb_mirrors(session, base, &lock.stack, &settings);
    gather_debs(lock, store, fetch, &from, Arc::clone(&session.reporter)).await?;
    let of_base =
        Lock { system: lock.base.packages.clone(), unpacked: Vec::new(), apt: Vec::new(), ..lock.clone() };
    gather_debs(&of_base, store, fetch, &from, Arc::clone(&session.reporter)).await?;
    let uv = UvSource { engine: &*session.engine, image: session, settings: &settings };
    gather_uv(lock, &uv, store, fetch, Arc::clone(&session.reporter)).await?;
    let source = WheelSource { stack: &lock.stack, index: &settings.index, fetcher: fetch, known: None };
    let tools: Vec<_> = lock.tools.iter().map(crate::model::lock::LockedTool::as_wheel).collect();
    let sources: Vec<_> = lock.sources.iter().map(crate::model::lock::LockedSource::as_file).collect();
    let wheels: Vec<_> = lock.wheels.iter().chain(&tools).chain(&sources).collect();
    source.gather(&wheels, store, Arc::clone(&session.reporter)).await?;
    Ok(())
}

/// Copies a file of the cache into a vendor directory; false: it was there. One that lies there is believed by its size here:
/// `--check` reads it.
pub(crate) fn copied(from: &Utf8Path, folder: &Utf8Path, sha256: &str) -> Result<bool, CommandError> {
    let target = folder.join(place(sha256));
    let own = fs_err::metadata(from)?.len();
    if fs_err::metadata(&target).is_ok_and(|found| found.len() == own) {
        return Ok(false);
    }
    Ok(copy_verified(from, &target, sha256).map(|()| true)?)
}

/// What the indexes have deleted, withdrawn or changed since.
pub(crate) async fn gone_upstream(
    locks: &[Lock],
    session: &Session<'_>,
) -> Result<Vec<VendorProblem>, CommandError> {
    let settings = session.settings;
    let mut findings = Vec::new();
    for lock in locks {
        let mut index = session.index.clone();
        index.further = further(lock, settings)?;
        let source = WheelSource { stack: &lock.stack, index: &index, fetcher: &session.fetch, known: None };
        let sources: Vec<_> = lock.sources.iter().map(crate::model::lock::LockedSource::as_file).collect();
        let published = lock.wheels.iter().filter(|wheel| wheel.index != IndexKind::Local);
        for wheel in published.chain(&sources) {
            let what = match source.upstream(wheel).await? {
                UpstreamStatus::There(_) => continue,
                UpstreamStatus::Yanked(_) => "yanked",
                UpstreamStatus::Changed(_) => "changed",
                UpstreamStatus::Gone => {
                    match lock.further_indexes().find(|name| !index.further.contains_key(*name)) {
                        // It may be there.
                        Some(name) => return Err(unknown_index(name, settings).into()),
                        None => "gone",
                    }
                }
            };
            findings.push(VendorProblem { what, file: wheel.file.clone(), path: None });
        }
    }
    findings.sort_by(|one, other| one.file.cmp(&other.file));
    findings.dedup();
    Ok(findings)
}

/// The further indexes of a lock that are configured here.
fn further(lock: &Lock, settings: &Settings) -> Result<BTreeMap<String, IndexAddress>, CommandError> {
    let configured = |name: &String| Some((name.clone(), settings.index.named.get(name)?));
    let parsed = |(name, text): (String, &SecretString)| Ok((name, index_address(text, settings)?));
    lock.further_indexes().filter_map(configured).map(parsed).collect()
}

/// A build that takes everything from a vendor folder: the lock there must fit, and what it names lies in the folder.
pub(crate) fn vendored(
    session: &Session<'_>,
    wanted: BuildRequest,
    (folder, stack): (&Utf8Path, &Stack),
) -> Result<BuildRequest, CommandError> {
    let text = format!("offline: using the files in {folder}");
    session.reporter.report(Event::Note { text });
    let mut wanted = BuildRequest { source: LockOptions { locked: true, ..wanted.source }, ..wanted };
    let mut lock = read_lock(&lock_path(session.settings, stack, &wanted.source))?;
    if lock.is_none()
        && let Some(found) = lock_in(folder, stack, &wanted)?
    {
        wanted.source.lockfile = Some(folder.join(LOCKS).join(format!("{}.lock", found.hash())));
        lock = Some(found);
    }
    if let Some(lock) = lock {
        wanted.vendored = take(folder, &lock, &session.store)?;
    }
    take_vendored(session, folder)?;
    Ok(wanted)
}

/// The lock of a vendor folder that is what is wanted; `None`: it has none.
fn lock_in(folder: &Utf8Path, stack: &Stack, wanted: &BuildRequest) -> Result<Option<Lock>, CommandError> {
    let (mut locks, damaged) = locks_of(folder)?;
    if let Some(at) = locks.iter().position(|lock| lock.differences_from(stack, &wanted.added).is_empty()) {
        return Ok(Some(locks.swap_remove(at)));
    }
    if locks.is_empty() && damaged.is_empty() {
        return Err(VendorError::NotVendored { folder: folder.to_string() }.into());
    }
    // The one that is wanted may be among them.
    not_whole(folder, damaged.iter().map(VendorProblem::text).collect()).map(|()| None)
}

/// An error if something of the folder is wrong.
fn not_whole(folder: &Utf8Path, wrong: Vec<String>) -> Result<(), CommandError> {
    let folder = folder.to_string();
    if wrong.is_empty() { Ok(()) } else { Err(VendorError::Damaged { folder, wrong }.into()) }
}

/// Takes what a lock names out of a vendor folder: all but the wheels into the cache, the wheels as files of the context.
fn take(folder: &Utf8Path, lock: &Lock, store: &Store) -> Result<Vec<(String, CachedFile)>, CommandError> {
    let mut wheels = Vec::new();
    let mut wrong: Vec<_> = fault(folder, lock).iter().map(VendorProblem::text).collect();
    for item in items(lock) {
        match (verified(folder, item), item) {
            (Err(finding), _) => wrong.push(finding.text()),
            (Ok(path), VendorFile::Wheel(wheel)) => {
                let (size, sha256) = (fs_err::metadata(&path)?.len(), wheel.sha256.clone());
                // uv is both: it lies in the image and installs the others.
                if lock.tools.iter().any(|tool| tool.sha256 == wheel.sha256) {
                    store.put(&wheel.sha256, &read_bounded(fs_err::File::open(&path)?, LARGEST_UV)?)?;
                }
                wheels.push((wheel.file.clone(), CachedFile { path, size, sha256 }));
            }
            (Ok(path), item) if store.find(item.sha256())?.is_none() => {
                store.take(&path, item.sha256())?;
            }
            (Ok(_), _) => {}
        }
    }
    if !wrong.is_empty() && !folder.join(LOCKS).is_dir() {
        return Err(VendorError::NotVendored { folder: folder.to_string() }.into());
    }
    not_whole(folder, wrong).map(|()| wheels)
}
