//! The digests of several layers at a time, on all cores.

use std::cmp::Reverse;
use std::io::sink;
use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

use super::error::AssembleError;
use super::layer::LayerPlan;
use super::write::{LayerDigests, write_layer};

/// Returns the digests of every layer, in their order. `progress` receives a layer's index and the bytes of its plain tar so
/// far, from several threads. After an error no further layer is begun.
pub fn digest_layers(
    plans: &[LayerPlan],
    progress: &(dyn Fn(usize, u64) + Sync),
) -> Result<Vec<LayerDigests>, AssembleError> {
    // The largest first: otherwise one core may be left with it at the end.
    let mut order: Vec<usize> = (0..plans.len()).collect();
    order.sort_by_key(|layer| Reverse(plans[*layer].packed_size()));
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results = Mutex::new(Vec::new());
    let work = || {
        while let Some(layer) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
            if failed.load(Ordering::Relaxed) {
                return;
            }
            let result = write_layer(&plans[*layer], sink(), sink(), &mut |bytes| progress(*layer, bytes));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.lock().expect("no thread panics while it holds the results").push((*layer, result));
        }
    };
    scope(|threads| {
        let cores = available_parallelism().map_or(1, NonZero::get);
        for _ in 1..cores.min(plans.len()) {
            threads.spawn(work);
        }
        work();
    });
    let mut results = results.into_inner().expect("no thread panics while it holds the results");
    results.sort_by_key(|(layer, _)| *layer);
    results.into_iter().map(|(_, result)| result).collect()
}
