//! Work on several items at a time, on all cores.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

/// The most threads: each may hold 64 MB and more of a library.
const MOST: usize = 8;

/// Does something for each item on all cores, eight at most, and returns the results in the order of the items. The items are begun in
/// that order: large ones first keep every core busy to the end.
///
/// # Errors
/// One of the errors; the thread that met it begins no further item.
pub fn on_all_cores<I: Sync, T: Send, E: Send>(
    items: &[I],
    work: impl Fn(&I) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let cores = available_parallelism().map_or(1, NonZero::get).min(MOST);
    let next = AtomicUsize::new(0);
    let run = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return Ok(done) };
            done.push((at, work(item)?));
        }
    };
    let mut done = scope(|threads| {
        let running: Vec<_> = (1..cores.min(items.len())).map(|_| threads.spawn(run)).collect();
        let mut done: Vec<(usize, T)> = run()?;
        for thread in running {
            done.extend(thread.join().expect("no item panics")?);
        }
        Ok(done)
    })?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_and_an_error_ends_the_work() {
        let items: Vec<usize> = (0..50).rev().collect();
        let doubled: Vec<_> = items.iter().map(|item| item * 2).collect();
        assert_eq!(on_all_cores(&items, |item| Ok::<_, usize>(item * 2)), Ok(doubled));
        assert_eq!(on_all_cores(&items, |item| if *item == 7 { Err(*item) } else { Ok(()) }), Err(7));
        assert_eq!(on_all_cores(&[], |item: &usize| Ok::<_, usize>(*item)), Ok(Vec::new()));
    }
}
