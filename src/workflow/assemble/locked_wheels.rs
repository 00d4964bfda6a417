//! The wheels of a lock as files: downloaded where they are missing, opened and hashed when their bytes are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use tokio::sync::mpsc;

use crate::assemble::{
    AssembleError, Conflicts, Installation, LayerPlan, Listing, ListingCache, Wheel, on_all_cores,
    write_known, write_known_gzip,
};
use crate::engine::LayerContent;
use crate::model::lock::{IndexKind, LockedWheel};
use crate::packages::{PackageSettings, WheelAddresses, WheelSource, remembered_addresses, wheel_addresses};
use crate::workflow::assemble::arrivals::WheelCaches;
use crate::workflow::assemble::layer::{blocking, io_error};
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::system::System;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::misfits::misfits_of;
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
    /// As [`LockedWheels::gather`], while the image still has no Python: `None` if uv in the image has to locate wheels.
    pub(super) async fn gather_early(
        image: Assembly<'_>,
        caches: &WheelCaches,
    ) -> Result<Option<Self>, CommandError> {
        match Self::download(image, None, caches).await? {
            Some(opened) => Self::all_here(image, opened).await.map(Some),
            None => Ok(None),
        }
    }

    /// Downloads the wheels that neither the cache nor a vendor folder has, and prepares each while the others are downloaded.
    pub(super) async fn gather(
        image: Assembly<'_>,
        system: &System<'_>,
        caches: &WheelCaches,
    ) -> Result<Self, CommandError> {
        let opened = Self::download(image, Some(system), caches).await?;
        Self::all_here(image, opened.unwrap_or_default()).await
    }

    /// Downloads the missing wheels and returns those that were opened meanwhile. `None`: nothing was downloaded, since uv in the
    /// image has to locate wheels and there is no image yet.
    async fn download(
        image: Assembly<'_>,
        system: Option<&System<'_>>,
        caches: &WheelCaches,
    ) -> Result<Option<BTreeMap<String, Installation>>, CommandError> {
        let Assembly { session, lock, wanted, times, .. } = image;
        let vendored: BTreeSet<&str> = wanted.vendored.iter().map(|(_, file)| file.sha256.as_str()).collect();
        let mut missing = Vec::new();
        for wheel in &lock.wheels {
            if !vendored.contains(wheel.sha256.as_str()) && session.store.find(&wheel.sha256)?.is_none() {
                missing.push(wheel);
            }
        }
        if missing.is_empty() {
            return Ok(Some(BTreeMap::new()));
        }
        disk_space::check_downloads(session, &missing)?;
        let settings = package_settings(session, &lock.stack, &wanted.indexes);
        let Some(known) = addresses(image, &settings, system, &missing).await? else { return Ok(None) };
        let source = WheelSource {
            stack: &lock.stack,
            index: &settings.index,
            fetcher: &session.fetch,
            known: Some(&known),
        };
        let missing = missing.as_slice();
        let (sender, receiver) = mpsc::unbounded_channel();
        let download = async move {
            let _running = times.start(Part::Downloads);
            let arrived = |sha256: &str| {
                // A receiver that is gone prepares nothing: the build does.
                let _ = sender.send(sha256.to_owned());
            };
            source.gather_each(missing, &session.store, Arc::clone(&session.reporter), &arrived).await
        };
        let prepared = caches.prepare(&session.store, missing, receiver, times);
        let (done, opened) = tokio::join!(download, prepared);
        done?;
        Ok(Some(opened))
    }

    /// The wheels of the lock, all of which are here. Which of them do not go together is reported now, before a layer is made of them.
    async fn all_here(
        image: Assembly<'_>,
        opened: BTreeMap<String, Installation>,
    ) -> Result<Self, CommandError> {
        let Assembly { session, lock, wanted, .. } = image;
        if let Some(misfits) = image.misfits {
            let parts = (lock.clone(), wanted.clone(), session.store.clone());
            let found = blocking(move || misfits_of(&parts.0, &parts.1, &parts.2)).await?;
            misfits.tell(found, lock, &*session.reporter);
        }
        Self::of(image, opened)
    }

    /// The wheels of the lock, all of which are here. Reads none.
    fn of(image: Assembly<'_>, mut opened: BTreeMap<String, Installation>) -> Result<Self, CommandError> {
        let Assembly { session, lock, wanted, .. } = image;
        let vendored: BTreeMap<&str, &Utf8PathBuf> =
            wanted.vendored.iter().map(|(_, file)| (file.sha256.as_str(), &file.path)).collect();
        let mut wheels = Vec::new();
        for locked in &lock.wheels {
            let of_folder = vendored.get(locked.sha256.as_str());
            let path = match of_folder {
                Some(path) => (*path).clone(),
                None => session.store.blob_path(&locked.sha256)?,
            };
            let read = |cause| {
                let error = AssembleError::Read { file: locked.file.clone(), cause };
                if of_folder.is_some() { error } else { error.of_cache() }
            };
            let size = fs_err::metadata(&path).map_err(read)?.len();
            let (locked, minor) = (locked.clone(), lock.stack.python.minor);
            let opened = opened.remove(&locked.sha256);
            wheels.push(OneWheel {
                path,
                vendored: of_folder.is_some(),
                locked,
                size,
                minor,
                opened: Mutex::new(opened),
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
        let open = Wheel::open(&wheel.path, &wheel.locked);
        let open = Arc::new(if wheel.vendored { open? } else { open.map_err(AssembleError::of_cache)? });
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
            found.push(if read { None } else { cache.find(&wheel.locked) });
        }
        let unknown: Vec<usize> = (0..found.len()).filter(|at| found[*at].is_none()).collect();
        let wheels = self.clone();
        let list = move |at: &usize| Ok::<_, AssembleError>((*at, Listing::of(&wheels.open(*at)?)?));
        let made = blocking(move || on_all_cores(&unknown, list)).await??;
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
        let opened = on_all_cores(&self.members, |at| self.wheels.open(*at))?;
        let wheels: Vec<&Installation> = opened.iter().collect();
        LayerPlan::new(&wheels, &self.conflicts, BTreeMap::new())
    }
}

impl LayerContent for LayerOfWheels {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let plan = self.plan().map_err(std::io::Error::other)?;
        write_known(&plan, out).map_err(io_error)
    }
}

/// The compressed form of such a layer, whose digest is known.
pub(super) struct PackedWheels(pub(super) LayerOfWheels);

impl LayerContent for PackedWheels {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let plan = self.0.plan().map_err(std::io::Error::other)?;
        write_known_gzip(&plan, out).map_err(io_error)
    }
}

/// The addresses of wheels that no setting gives: without an index in the settings, those that uv wrote when it made the lock, else
/// uv locates them. `None`: the image is still to be made.
async fn addresses(
    image: Assembly<'_>,
    settings: &PackageSettings,
    system: Option<&System<'_>>,
    missing: &[&LockedWheel],
) -> Result<Option<WheelAddresses>, CommandError> {
    let session = image.session;
    let is_of_default =
        |wheel: &&&LockedWheel| wheel.index == IndexKind::Default && wheel.index_name.is_none();
    let of_default: Vec<&LockedWheel> = missing.iter().filter(is_of_default).copied().collect();
    if settings.index.default.is_some() || of_default.is_empty() {
        return Ok(Some(WheelAddresses::new()));
    }
    let Some(system) = system else { return Ok(remembered_addresses(&session.store, &of_default)?) };
    let tools = package_tools(session, settings);
    Ok(Some(wheel_addresses(&tools, image.lock, &image.base.reference, &system.uv, &of_default).await?))
}
