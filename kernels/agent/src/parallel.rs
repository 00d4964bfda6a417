//! Runs groups side by side, and gives their reports in the order of the groups.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use envforge_protocol::{CheckGroup, Level, Stage};

use super::checks::{Group, Options};
use super::report::Report;
use super::supervisor;

/// How many children at most: each with a GPU holds a context and a library's kernels.
const MOST: usize = 4;

/// The reports of all groups. Speeds are measured one after the other, since they would share what they measure; so is
/// everything on a GPU that serves one process at a time, and what takes the memory it can get, as every framework does.
pub(crate) fn run(groups: &[&Group], stage: Stage, options: &Options, exclusive: bool) -> Vec<Report> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let lanes = if stage == Stage::Perf || (stage == Stage::Gpu && exclusive) { 1 } else { cores.min(MOST) };
    let first_alone = groups.iter().position(|group| runs_alone(group.id)).unwrap_or(groups.len());
    let (shared, alone) = groups.split_at(first_alone);
    let run = |group: &&Group| supervisor::run(group, options);
    let mut reports = in_order(shared, lanes, run);
    reports.extend(in_order(alone, 1, run));
    reports
}

/// Whether the group shares its GPUs with no other: those that run a framework, take all of the memory or start processes of
/// their own. They are the last groups of their stage.
fn runs_alone(group: CheckGroup) -> bool {
    matches!(group, CheckGroup::FrameworkGpu | CheckGroup::Product)
        || (group.stage() == Stage::Gpu && group.level() == Level::Full)
}

fn in_order<T: Sync, R: Send>(items: &[T], lanes: usize, each: impl Fn(&T) -> Vec<R> + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..lanes.min(items.len()) {
            scope.spawn(|| {
                while let Some((at, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| items.get(at).map(|item| (at, item)))
                {
                    let reports = each(item);
                    done.lock().expect("no lane panics with the lock").push((at, reports));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no lane panics with the lock");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().flat_map(|(_, reports)| reports).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;
    use std::time::Duration;

    use super::*;
    use crate::checks;

    #[test]
    fn groups_that_run_alone_are_the_last_on_a_gpu() {
        for (stage, groups) in checks::all_stages() {
            let kinds: Vec<_> = groups.iter().map(|group| runs_alone(group.id)).collect();
            assert!(kinds.is_sorted(), "{stage}");
            assert_eq!(kinds.contains(&true), stage == Stage::Gpu, "{stage}");
        }
    }

    #[test]
    fn items_run_side_by_side_and_answers_keep_their_order() {
        let items = [3, 2, 1, 0];
        // How many have begun, and how many are done: none is done before all have begun, and the last is the first that is.
        let (state, changed) = (Mutex::new((0, 0)), Condvar::new());
        let answers = in_order(&items, items.len(), |turn| {
            let mut begun = state.lock().expect("nobody panics with it");
            begun.0 += 1;
            changed.notify_all();
            let waits = |now: &mut (usize, usize)| now.0 < items.len() || now.1 < *turn;
            let waited = changed.wait_timeout_while(begun, Duration::from_mins(5), waits);
            let (mut now, waited) = waited.expect("nobody panics with it");
            now.1 += 1;
            changed.notify_all();
            vec![(*turn, waited.timed_out())]
        });
        assert_eq!(answers, items.map(|turn| (turn, false)), "whether one waited in vain");
        assert_eq!(in_order(&items, 1, |item| vec![*item]), items);
        assert!(in_order(&[0u64; 0], 4, |item| vec![*item]).is_empty());
    }
}
