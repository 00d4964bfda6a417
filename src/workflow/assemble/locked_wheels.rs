//! The wheels of a lock as files: downloaded where they are missing, opened and hashed when their bytes are needed.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use envforge_protocol::abi::Table;
use envforge_protocol::elf::Dynamic;
use tokio::sync::mpsc;

use crate::assemble::{
    AssembleError, Conflicts, Installation, LayerPlan, Listing, ListingCache, Wheel, library_tables,
    on_all_cores, write_known, write_known_gzip,
};
use crate::engine::LayerContent;
use crate::model::lock::{IndexKind, LockedWheel, WheelLayer};
use crate::packages::{PackageSettings, WheelAddresses, WheelSource, remembered_addresses, wheel_addresses};
use crate::store::Store;
use crate::workflow::assemble::arrivals::WheelCaches;
use crate::workflow::assemble::layer::{blocking, io_error};
use crate::workflow::assemble::part_timings::Part;
use crate::workflow::assemble::request::Assembly;
use crate::workflow::assemble::system::System;
use crate::workflow::disk_space;
use crate::workflow::error::CommandError;
use crate::workflow::misfits::misfits_of;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::symbol_tables::{record_tables, recorded_tables};

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
        let prepared = caches.prepare((&session.store, &*session.reporter), missing, receiver, times);
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
            let (lock, wanted) = (lock.clone(), wanted.clone());
            let (store, matrix) = (session.store.clone(), Arc::clone(&session.matrix));
            let found = blocking(move || misfits_of(&lock, &wanted, &store, &matrix)).await?;
            misfits.tell(found, image.lock, &*session.reporter);
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

    /// What the libraries of the user's wheels need, by package, each with its path in the image: recorded, or read on all cores.
    /// One that cannot be read is left to the check of the image.
    pub(super) async fn needs(
        &self,
        store: &Store,
    ) -> Result<BTreeMap<String, Vec<(String, Dynamic)>>, CommandError> {
        let is_judged = |wheel: &LockedWheel| {
            matches!(wheel.layer, WheelLayer::User | WheelLayer::Project) && !wheel.file.ends_with("-any.whl")
        };
        let judged: Vec<usize> = (0..self.0.len()).filter(|at| is_judged(&self.0[*at].locked)).collect();
        let (wheels, store) = (self.clone(), store.clone());
        let read = move |at: &usize| {
            let OneWheel { locked, minor, .. } = &wheels.0[*at];
            let needs = wheels.tables(*at, &store)?.into_iter().map(|table| needs_of(table, *minor));
            Ok::<_, CommandError>((locked.name.clone(), needs.collect::<Vec<_>>()))
        };
        Ok(blocking(move || on_all_cores(&judged, read)).await??.into_iter().collect())
    }

    /// The tables of a wheel's libraries.
    fn tables(&self, at: usize, store: &Store) -> Result<Vec<Table>, CommandError> {
        let OneWheel { path, locked, .. } = &self.0[at];
        if let Some(tables) = recorded_tables(store, &locked.sha256) {
            return Ok(tables);
        }
        // A record stands for the locked wheel: its bytes are hashed first.
        let found = match self.open(at).and_then(|_| library_tables(path)) {
            Ok(found) => found,
            // Its layer fails, and says why, or the image is checked.
            Err(error) => {
                tracing::debug!(file = %locked.file, %error, "cannot read the libraries of a wheel");
                return Ok(Vec::new());
            }
        };
        if found.unreadable.is_empty() {
            record_tables(store, locked, &found.tables)?;
        }
        Ok(found.tables)
    }
}

/// The path of a library in the image, for Python 3 with that minor version, and what it needs.
fn needs_of(table: Table, minor: u8) -> (String, Dynamic) {
    let path = format!("opt/env/lib/python3.{minor}/site-packages/{}", table.path);
    let Table { needed, rpath, runpath, soname, .. } = table;
    (path, Dynamic { needed, rpath, runpath, soname })
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

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test compiles a library")]
mod tests {
    use std::process::Command;

    use camino::Utf8Path;

    use super::*;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples;

    /// The bytes of a library that names another one and uses nothing of it.
    fn library(folder: &Utf8Path) -> Vec<u8> {
        let compile = |args: &[&str]| {
            let shared = ["-shared", "-fPIC", "-nostdlib"];
            let done = Command::new("cc").current_dir(folder).args(shared).args(args).output();
            let done = done.expect("a C compiler");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        };
        fs_err::write(folder.join("a.c"), "int given(void) { return 1; }").expect("written");
        compile(&["-Wl,-soname,libGL.so.1", "-o", "libGL.so", "a.c"]);
        compile(&["-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN/../odd.libs", "-o", "_C.so", "a.c", "libGL.so"]);
        fs_err::read(folder.join("_C.so")).expect("read")
    }

    /// Puts a wheel with one file into the cache.
    fn wheel(store: &Store, name: &str, entry: MadeEntry, layer: WheelLayer) -> OneWheel {
        let bytes = MadeWheel::new(name).entry(entry).build();
        let file = format!("{name}-1.0-cp311-cp311-linux_x86_64.whl");
        let locked = LockedWheel { file, ..samples::locked(name, layer, &bytes) };
        let path = store.put(&locked.sha256, &bytes).expect("written");
        let (size, opened) = (bytes.len() as u64, Mutex::new(None));
        OneWheel { path, vendored: false, locked, size, minor: 11, opened }
    }

    #[tokio::test]
    async fn needs_are_read_of_the_users_wheels_and_recorded() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let bytes = library(root);
        let odd = wheel(&store, "odd", MadeEntry::new("odd/_C.so", &bytes), WheelLayer::User);
        let stack = wheel(&store, "stack", MadeEntry::new("stack/_C.so", &bytes), WheelLayer::Stack);
        let cut = wheel(&store, "cut", MadeEntry::new("cut/_C.so", &bytes[..2000]), WheelLayer::User);
        let sha256 = odd.locked.sha256.clone();
        let cut_sha256 = cut.locked.sha256.clone();
        let blob = odd.path.clone();
        let wheels = LockedWheels(Arc::new(vec![odd, stack, cut]));
        let needs = wheels.needs(&store).await.expect("read");
        let [(path, needed)] = &needs["odd"][..] else { panic!("{needs:?}") };
        assert_eq!(path, "opt/env/lib/python3.11/site-packages/odd/_C.so");
        assert_eq!(needed.needed, ["libGL.so.1"]);
        let folders = [&needed.rpath[..], &needed.runpath].concat();
        assert_eq!(folders, ["$ORIGIN/../odd.libs"]);
        assert_eq!((needs.get("stack"), needs["cut"].len()), (None, 0));
        assert!(recorded_tables(&store, &cut_sha256).is_none(), "it is read again");
        // The record is enough.
        assert_eq!(recorded_tables(&store, &sha256).expect("recorded").len(), 1);
        fs_err::remove_file(&blob).expect("ours");
        assert_eq!(wheels.needs(&store).await.expect("recorded")["odd"], needs["odd"]);
    }

    #[tokio::test]
    async fn wheel_of_another_content_is_left_to_its_layer() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let mut odd = wheel(&store, "odd", MadeEntry::new("odd/_C.so", &library(root)), WheelLayer::User);
        odd.locked.sha256 = "0".repeat(64);
        let wheels = LockedWheels(Arc::new(vec![odd]));
        assert!(wheels.needs(&store).await.expect("nothing fails")["odd"].is_empty());
        assert!(recorded_tables(&store, &"0".repeat(64)).is_none());
    }
}
