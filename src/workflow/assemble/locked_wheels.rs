//! The wheels of a lock as files: downloaded where they are missing, opened and hashed when their bytes are needed.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;

use crate::assemble::{
    AssembleError, Conflicts, Installation, LayerPlan, Listing, ListingCache, Wheel, write_plain,
};
use crate::engine::LayerContent;
use crate::model::lock::{IndexKind, LockedWheel};
use crate::packages::{WheelSource, wheel_addresses};
use crate::workflow::assemble::layer::{blocking, io_error};
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::system::System;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::package_sources::{package_settings, package_tools};

/// The wheels of a lock, in its order.
#[derive(Clone)]
pub(super) struct LockedWheels(Arc<Vec<OneWheel>>);

/// A wheel; its installation once it was opened.
struct OneWheel {
    path: Utf8PathBuf,
    /// Whether it lies in a vendor folder.
    vendored: bool,
    locked: LockedWheel,
    size: u64,
    minor: u8,
    opened: Mutex<Option<Installation>>,
}

impl LockedWheels {
    /// Downloads the wheels that neither the cache nor a vendor folder has. Reads none.
    pub(super) async fn gather(image: Assembly<'_>, system: &System<'_>) -> Result<Self, CommandError> {
        let Assembly { session, lock, wanted, .. } = image;
        let vendored: BTreeMap<&str, &Utf8PathBuf> =
            wanted.vendored.iter().map(|(_, file)| (file.sha256.as_str(), &file.path)).collect();
        let mut missing = Vec::new();
        for wheel in &lock.wheels {
            let is_here =
                vendored.contains_key(wheel.sha256.as_str()) || session.store.find(&wheel.sha256)?.is_some();
            if !is_here {
                missing.push(wheel);
            }
        }
        disk_space::check_downloads(session, &missing)?;
        download(image, system, &missing).await?;
        let mut wheels = Vec::new();
        for locked in &lock.wheels {
            let of_folder = vendored.get(locked.sha256.as_str());
            let path = match of_folder {
                Some(path) => (*path).clone(),
                None => session.store.blob_path(&locked.sha256)?,
            };
            let read = |cause| AssembleError::Read { file: locked.file.clone(), cause };
            let size = fs_err::metadata(&path).map_err(read)?.len();
            let (locked, minor) = (locked.clone(), lock.stack.python.minor);
            wheels.push(OneWheel {
                path,
                vendored: of_folder.is_some(),
                locked,
                size,
                minor,
                opened: Mutex::default(),
            });
        }
        Ok(Self(Arc::new(wheels)))
    }

    /// Where a wheel lies, unless that is the cache.
    pub(super) fn vendored(&self, at: usize) -> Option<Utf8PathBuf> {
        self.0[at].vendored.then(|| self.0[at].path.clone())
    }

    /// The size of each in bytes.
    pub(super) fn sizes(&self) -> Vec<u64> {
        self.0.iter().map(|wheel| wheel.size).collect()
    }

    /// Opens a wheel and hashes it, unless that was done.
    pub(super) fn open(&self, at: usize) -> Result<Installation, AssembleError> {
        let wheel = &self.0[at];
        let mut opened = wheel.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(installation) = &*opened {
            return Ok(installation.clone());
        }
        let open = Arc::new(Wheel::open(&wheel.path, &wheel.locked)?);
        let installation = Installation::of(open, wheel.minor)?;
        *opened = Some(installation.clone());
        Ok(installation)
    }

    /// The lists of all wheels, from the cache or read on all cores.
    pub(super) async fn listings(
        &self,
        cache: &ListingCache,
        read: bool,
    ) -> Result<Vec<Listing>, CommandError> {
        let mut found = Vec::new();
        for wheel in self.0.iter() {
            found.push(if read { None } else { cache.find(&wheel.locked)? });
        }
        let unknown: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        let wheels = self.clone();
        let made = blocking(move || on_all_cores(&unknown, |at| Listing::of(&wheels.open(at)?))).await??;
        for (at, listing) in made {
            cache.put(&self.0[at].locked, &listing)?;
            found[at] = Some(listing);
        }
        Ok(found.into_iter().flatten().collect())
    }
}

/// A layer of wheels, which are opened when it is written: an engine that has it needs none of them.
#[derive(Clone)]
pub(super) struct LayerOfWheels {
    pub(super) wheels: LockedWheels,
    /// Their places in the lock.
    pub(super) members: Vec<usize>,
    pub(super) conflicts: Arc<Conflicts>,
}

impl LayerOfWheels {
    /// Its entries.
    pub(super) fn plan(&self) -> Result<LayerPlan, AssembleError> {
        let opened = on_all_cores(&self.members, |at| self.wheels.open(at))?;
        let wheels: Vec<&Installation> = opened.iter().map(|(_, wheel)| wheel).collect();
        LayerPlan::new(&wheels, &self.conflicts, BTreeMap::new())
    }
}

impl LayerContent for LayerOfWheels {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let plan = self.plan().map_err(std::io::Error::other)?;
        write_plain(&plan, out, &mut |_| {}).map(drop).map_err(io_error)
    }
}

/// Downloads wheels into the cache. Without an index in the settings, uv in the image says where they are.
async fn download(
    image: Assembly<'_>,
    system: &System<'_>,
    missing: &[&LockedWheel],
) -> Result<(), CommandError> {
    if missing.is_empty() {
        return Ok(());
    }
    let Assembly { session, lock, wanted, .. } = image;
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let of_default: Vec<&LockedWheel> = missing
        .iter()
        .copied()
        .filter(|wheel| wheel.index == IndexKind::Default && wheel.index_name.is_none())
        .collect();
    let known = if settings.index.default.is_none() && !of_default.is_empty() {
        let tools = package_tools(session, &settings);
        Some(wheel_addresses(&tools, system.tag.name(), &system.uv, &of_default).await?)
    } else {
        None
    };
    let source = WheelSource {
        stack: &lock.stack,
        index: &settings.index,
        fetcher: &session.fetch,
        known: known.as_ref(),
    };
    Ok(source.gather(missing, &session.store, Arc::clone(&session.reporter)).await?)
}

/// Does something for each of these on all cores; the results are in their order.
fn on_all_cores<T: Send>(
    all: &[usize],
    work: impl Fn(usize) -> Result<T, AssembleError> + Sync,
) -> Result<Vec<(usize, T)>, AssembleError> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        while let Some(at) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
            done.push((*at, work(*at)?));
        }
        Ok::<_, AssembleError>(done)
    };
    let mut done = std::thread::scope(|scope| {
        let running: Vec<_> = (1..cores.min(all.len())).map(|_| scope.spawn(run)).collect();
        let mut done = run()?;
        for thread in running {
            done.extend(thread.join().expect("reading a wheel does not panic")?);
        }
        Ok::<_, AssembleError>(done)
    })?;
    let place: BTreeMap<usize, usize> = all.iter().enumerate().map(|(place, at)| (*at, place)).collect();
    done.sort_by_key(|(at, _)| place[at]);
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_the_first_error_ends_the_work() {
        let wanted: Vec<usize> = (0..50).rev().collect();
        let done = on_all_cores(&wanted, |at| Ok(at * 2)).expect("no error");
        assert_eq!(done, wanted.iter().map(|at| (*at, at * 2)).collect::<Vec<_>>());
        let error = on_all_cores(&wanted, |at| {
            let cause = std::io::Error::other("gone");
            if at == 7 { Err(AssembleError::Read { file: "x".to_owned(), cause }) } else { Ok(at) }
        });
        assert!(matches!(error, Err(AssembleError::Read { .. })), "{error:?}");
        assert_eq!(on_all_cores(&[], Ok).expect("nothing"), []);
    }
}
