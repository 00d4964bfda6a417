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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::assemble::conflicts::Conflicts;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples::install;

    fn plan(name: &str, entry: MadeEntry) -> LayerPlan {
        let installed = install(&MadeWheel::new(name).entry(entry).record("")).expect(name);
        LayerPlan::new(&[&installed], &Conflicts::default(), BTreeMap::new()).expect("a layer")
    }

    #[test]
    fn digests_are_in_the_order_of_layers() {
        let plans: Vec<LayerPlan> =
            (1..9).map(|size| plan("demo", MadeEntry::new("a", &vec![1; size * 5000]).stored())).collect();
        let seen = Mutex::new(BTreeSet::new());
        let found = digest_layers(&plans, &|layer, _| {
            seen.lock().expect("a lock").insert(layer);
        })
        .expect("digests");
        let alone = |plan| write_layer(plan, sink(), sink(), &mut |_| ()).expect("written");
        assert_eq!(found, plans.iter().map(alone).collect::<Vec<_>>());
        assert_eq!(seen.into_inner().expect("a lock"), (0..8).collect());
        assert_eq!(digest_layers(&[], &|_, _| ()).expect("none"), []);
    }

    #[test]
    fn damaged_wheel_ends_the_work_with_its_error() {
        let broken = MadeEntry { crc32: 1, ..MadeEntry::new("a", b"x") };
        let plans = [plan("demo", MadeEntry::new("a", b"x")), plan("demo", broken)];
        let error = digest_layers(&plans, &|_, _| ()).expect_err("refused");
        assert!(error.to_string().contains("`a`: CRC-32 mismatch"), "{error}");
    }
}
