//! What the wheels of the cache require, by their METADATA.

use std::collections::BTreeMap;

use super::local_wheel::metadata;
use crate::model::lock::{LockedWheel, Requirements, required_by_metadata};
use crate::store::{Store, open_regular};

/// Returns the requirements of those wheels that are in the cache, by package. To be told to a person: nothing is hashed, and a wheel
/// that cannot be read is like one that is not there.
pub(crate) fn cached_requirements(store: &Store, wheels: &[LockedWheel]) -> Requirements {
    let read = |wheel: &LockedWheel| {
        let file = open_regular(&store.find(&wheel.sha256).ok()??).ok()?;
        Some((wheel.name.clone(), required_by_metadata(&metadata(file).ok()?)))
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let part = wheels.len().div_ceil(workers).max(1);
    std::thread::scope(|scope| {
        let threads: Vec<_> = wheels
            .chunks(part)
            .map(|part| scope.spawn(move || part.iter().filter_map(read).collect::<BTreeMap<_, _>>()))
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap_or_default()).collect()
    })
}
