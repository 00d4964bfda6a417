//! Work on wheels that have arrived while others are still downloaded: their files are listed, and the digests of those with a
//! layer of their own are computed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use camino::Utf8Path;
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::assemble::{
    AssembleError, Conflicts, DigestCache, Installation, LayerKey, LayerPlan, Listing, ListingCache, Wheel,
    digest_layers, has_own_layer,
};
use crate::model::lock::LockedWheel;
use crate::report::{Reporter, in_step};
use crate::store::Store;
use crate::workflow::assemble::layer::blocking;
use crate::workflow::assemble::part_timings::{Part, PartClock};
use crate::workflow::error::CommandError;

/// What is known of the wheels of one Python, in the cache.
#[derive(Clone)]
pub(super) struct WheelCaches {
    /// The files of each wheel.
    pub(super) lists: ListingCache,
    /// The digests of layers.
    pub(super) digests: DigestCache,
    /// The minor version of the Python.
    pub(super) minor: u8,
}

impl WheelCaches {
    /// Returns the caches in a store.
    pub(super) fn of(store: &Store, minor: u8) -> Self {
        Self { lists: ListingCache::of(store, minor), digests: DigestCache::of(store), minor }
    }

    /// Prepares each wheel whose SHA-256 is received, on all cores, until the sender is dropped, and returns the opened ones.
    ///
    /// A wheel that cannot be prepared is left to the build, which opens it again and reports the error. Of builds that share a
    /// large wheel one prepares it, as a step.
    pub(super) async fn prepare(
        &self,
        (store, reporter): (&Store, &dyn Reporter),
        wheels: &[&LockedWheel],
        mut arrived: UnboundedReceiver<String>,
        times: &PartClock,
    ) -> BTreeMap<String, Installation> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let wheel = |sha256: &String| wheels.iter().find(|wheel| wheel.sha256 == *sha256).copied().cloned();
        poll_fn(|context| arrived.poll_recv(context))
            .filter_map(|sha256| std::future::ready(wheel(&sha256)))
            .map(|locked| async move {
                let path = store.blob_path(&locked.sha256).ok()?;
                let (caches, sha256) = (self.clone(), locked.sha256.clone());
                let is_large = has_own_layer(fs_err::metadata(&path).ok()?.len());
                let mut _alone = None;
                if is_large {
                    let lock = format!("digests-{}", &sha256[..16]);
                    _alone = Some(store.lock_with_reason(&lock, "which hashes the same wheel").await.ok()?);
                }
                let _running = times.start(Part::Wheels);
                let is_step = is_large && !self.is_hashed(&locked);
                let id = format!("layer:{}", &sha256[..16]);
                let text = format!("compute the layer of {} {}", locked.name, locked.version);
                let work = async {
                    let prepared = blocking(move || caches.prepare_one((&path, is_large), &locked)).await?;
                    Ok::<_, CommandError>(prepared?)
                };
                let prepared = if is_step { in_step(reporter, &id, text, work).await } else { work.await };
                match prepared {
                    Ok(opened) => Some((sha256, opened?)),
                    Err(error) => {
                        tracing::debug!(%sha256, %error, "cannot prepare a downloaded wheel");
                        None
                    }
                }
            })
            .buffer_unordered(cores)
            .filter_map(std::future::ready)
            .collect()
            .await
    }

    /// Opens a wheel, lists it and computes the digests of its layer. `None`: another build has done this.
    fn prepare_one(
        &self,
        (path, is_large): (&Utf8Path, bool),
        locked: &LockedWheel,
    ) -> Result<Option<Installation>, AssembleError> {
        let is_listed = self.lists.find(locked).is_some();
        let is_hashed = !is_large || self.is_hashed(locked);
        if is_listed && is_hashed {
            return Ok(None);
        }
        let opened = Installation::of(Arc::new(Wheel::open(path, locked)?), self.minor)?;
        if !is_listed {
            self.lists.put(locked, &Listing::of(&opened)?)?;
        }
        if !is_hashed {
            let plan = LayerPlan::new(&[&opened], &Conflicts::default(), BTreeMap::new())?;
            for digests in digest_layers(&[plan], &|_, _| {})? {
                self.digests.put(&self.key(locked), &digests)?;
            }
        }
        Ok(Some(opened))
    }

    /// Whether the digests of the wheel's own layer are known.
    fn is_hashed(&self, locked: &LockedWheel) -> bool {
        self.digests.find(&self.key(locked)).is_some()
    }

    /// The key of the wheel's own layer. Nearly always no path gives way to another distribution's: else the layer has another key,
    /// and its digests are computed later.
    fn key<'a>(&self, locked: &'a LockedWheel) -> LayerKey<'a> {
        LayerKey::new(self.minor).wheel(&locked.sha256, BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples::locked;
    use crate::model::lock::WheelLayer;
    use crate::report::{Event, NullReporter, Recorder};

    /// Puts a wheel into the cache that holds one file of that size.
    fn wheel(store: &Store, name: &str, entry: MadeEntry) -> LockedWheel {
        let bytes = MadeWheel::new(name).entry(entry).build();
        let locked = locked(name, WheelLayer::Framework, &bytes);
        store.put(&locked.sha256, &bytes).expect("written");
        locked
    }

    #[tokio::test]
    async fn arrived_wheels_are_listed_and_large_ones_have_digests() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let large = wheel(&store, "large", MadeEntry::new("a.bin", &vec![0; 33 << 20]).stored());
        let small = wheel(&store, "small", MadeEntry::new("b.bin", b"b"));
        let broken = wheel(&store, "broken", MadeEntry { crc32: 1, ..MadeEntry::new("../c", b"c") });
        let later = wheel(&store, "later", MadeEntry::new("d.bin", b"d"));
        let all = [&large, &small, &broken, &later];
        let (sender, receiver) = unbounded_channel();
        for one in [&large, &small, &broken] {
            sender.send(one.sha256.clone()).expect("it listens");
        }
        sender.send("0".repeat(64)).expect("it listens");
        drop(sender);

        let (caches, times) = (WheelCaches::of(&store, 11), PartClock::default());
        let seen = Recorder::default();
        let opened = caches.prepare((&store, &seen), &all, receiver, &times).await;
        let steps: Vec<Event> = seen.take();
        let started =
            |event: &Event| matches!(event, Event::StepStarted { text, .. } if text.contains(" large "));
        assert!(matches!(&steps[..], [one, Event::StepFinished { .. }] if started(one)), "{steps:?}");
        assert_eq!(opened.keys().collect::<BTreeSet<_>>(), BTreeSet::from([&large.sha256, &small.sha256]));
        assert!(times.timings().wheels > 0.0);
        let listed = |wheel: &LockedWheel| caches.lists.find(wheel).is_some();
        assert_eq!(all.map(listed), [true, true, false, false]);
        let digests = |wheel: &LockedWheel| {
            let key = LayerKey::new(11).wheel(&wheel.sha256, BTreeSet::new());
            caches.digests.find(&key)
        };
        let plan = LayerPlan::new(&[&opened[&large.sha256]], &Conflicts::default(), BTreeMap::new());
        let expected = digest_layers(&[plan.expect("a layer")], &|_, _| {}).expect("digests");
        assert_eq!(digests(&large).as_ref(), expected.first());
        assert_eq!(digests(&small), None, "it shares a layer with others");
    }

    #[tokio::test]
    async fn wheel_of_two_builds_is_read_by_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let large = wheel(&store, "large", MadeEntry::new("a.bin", &vec![0; 33 << 20]).stored());
        let (caches, times) = (WheelCaches::of(&store, 11), PartClock::default());
        let build = async || {
            let (sender, receiver) = unbounded_channel();
            sender.send(large.sha256.clone()).expect("it listens");
            drop(sender);
            caches.prepare((&store, &NullReporter), &[&large], receiver, &times).await.len()
        };
        let (one, other) = tokio::join!(build(), build());
        assert_eq!(one + other, 1);
    }
}
