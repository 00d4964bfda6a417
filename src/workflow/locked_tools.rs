//! uv of a lock, compared with the one of this release.

use pep440_rs::Version;

use crate::model::lock::{Difference, Lock, LockedTool};
use crate::packages::catalogue;

/// How uv of a lock differs: another file of the same version. With `renews` a lower version differs, too; one that is higher was
/// locked by a newer envforge.
pub(crate) fn tool_differences(lock: &Lock, renews: bool) -> Vec<Difference> {
    let Some(current) = catalogue().uv(lock.stack.machine) else { return Vec::new() };
    lock.tools.iter().filter_map(|tool| difference(tool, &current, renews)).collect()
}

/// The tools of a lock that is written again.
pub(crate) fn current_tools(lock: &Lock, renews: bool) -> Vec<LockedTool> {
    match catalogue().uv(lock.stack.machine) {
        Some(current) if !tool_differences(lock, renews).is_empty() => vec![current],
        _ => lock.tools.clone(),
    }
}

fn difference(locked: &LockedTool, current: &LockedTool, renews: bool) -> Option<Difference> {
    if locked.name != current.name {
        return None;
    }
    let version = |tool: &LockedTool| tool.version.parse::<Version>().ok();
    let is_lower = version(locked) < version(current);
    let is_other = locked.version == current.version
        && (&locked.file, &locked.sha256) != (&current.file, &current.sha256);
    let value = |tool: &LockedTool| {
        let hash = tool.sha256.get(..12).unwrap_or(&tool.sha256);
        Some(if is_other { format!("{} (SHA-256 {hash})", tool.file) } else { tool.version.clone() })
    };
    (is_other || is_lower && renews).then(|| Difference {
        what: locked.name.clone(),
        locked: value(locked),
        wanted: value(current),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn lock(change: impl FnOnce(&mut LockedTool)) -> Lock {
        let mut lock = sample::lock();
        let mut tool = catalogue().uv(lock.stack.machine).expect("a uv");
        change(&mut tool);
        lock.tools = vec![tool];
        lock
    }

    #[test]
    fn lower_version_differs_where_locks_are_renewed() {
        let old = lock(|tool| (tool.version, tool.file) = ("0.2.9".to_owned(), "uv-0.2.9.whl".to_owned()));
        assert_eq!(tool_differences(&old, false), [], "a build takes locks of older releases");
        assert_eq!(current_tools(&old, false), old.tools);
        let found = tool_differences(&old, true);
        let current = catalogue().uv(old.stack.machine).expect("a uv");
        assert_eq!(found[0].to_string(), format!("uv: locked `0.2.9`, requested `{}`", current.version));
        assert_eq!(current_tools(&old, true), [current]);
    }

    #[test]
    fn other_file_of_the_same_version_always_differs() {
        for (file, sha256) in [(false, true), (true, false)] {
            let other = lock(|tool| {
                tool.file = if file { "uv-x.whl".to_owned() } else { tool.file.clone() };
                tool.sha256 = if sha256 { "0".repeat(64) } else { tool.sha256.clone() };
            });
            let found = tool_differences(&other, false);
            assert!(found.len() == 1 && found[0].to_string().contains("SHA-256"), "{found:?}");
            assert_ne!(current_tools(&other, false), other.tools);
        }
        let (same, newer) = (lock(|_| ()), lock(|tool| tool.version = "999.0".to_owned()));
        for lock in [same, newer] {
            assert_eq!(tool_differences(&lock, true), []);
        }
    }
}
