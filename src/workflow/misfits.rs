//! What of a new lock does not go together, by what this machine knows without a download.

use crate::model::compat::Matrix;
use crate::model::lock::Lock;
use crate::model::misfit::{KnownPackages, Misfit, in_place_of_framework, misfits, shared_paths};
use crate::packages::{cached_files, cached_requirements, catalogue};
use crate::report::{Event, Reporter};
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;

/// The most that is told one by one: the rest is in `lock --json`.
const MOST: usize = 8;

/// Returns everything that does not go together in a lock.
pub(crate) fn misfits_of(lock: &Lock, wanted: &BuildRequest, store: &Store) -> Vec<Misfit> {
    let requirements = cached_requirements(store, &lock.wheels);
    let developer: Vec<String> = catalogue().developer_wheels().collect();
    let shared = shared_paths(&cached_files(store, &lock.wheels));
    let known = KnownPackages {
        matrix: Matrix::current(),
        requirements: &requirements,
        developer: &developer,
        shared: &shared,
        listed: &wanted.listed,
    };
    misfits(lock, known)
}

/// Refuses packages that would replace files of the framework.
pub(crate) fn check_framework(lock: &Lock) -> Result<(), CommandError> {
    let packages = in_place_of_framework(lock, Matrix::current());
    if packages.is_empty() { Ok(()) } else { Err(LockingError::ReplacesFramework { packages }.into()) }
}

/// Says it, in ten lines at most, the last of them what to add to the project.
pub(crate) fn tell_misfits(all: &[Misfit], lock: &Lock, reporter: &dyn Reporter) {
    for line in lines(all, lock) {
        reporter.report(Event::Warning { text: line });
    }
}

fn lines(all: &[Misfit], lock: &Lock) -> Vec<String> {
    let mut lines: Vec<String> = all.iter().take(MOST).map(|misfit| misfit.text.clone()).collect();
    if let Some(more @ 1..) = all.len().checked_sub(MOST) {
        lines.push(format!("{more} more do not go together: `envforge lock --json` lists all"));
    }
    let mut missing: Vec<&str> = all.iter().flat_map(|misfit| &misfit.apt).map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return lines;
    }
    lines.push(if lock.added.project.is_some() {
        let mut apt: Vec<&str> = lock.added.apt.iter().map(String::as_str).chain(missing).collect();
        apt.sort_unstable();
        let list: Vec<_> = apt.iter().map(|name| format!("\"{name}\"")).collect();
        format!("to add these libraries: `apt = [{}]` in `[packages]` of envforge.toml", list.join(", "))
    } else {
        let options: Vec<_> = missing.iter().map(|name| format!("--apt {name}")).collect();
        format!("to add these libraries: `{}`", options.join(" "))
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;
    use crate::model::misfit::MisfitKind;

    fn misfit(number: usize, apt: &[&str]) -> Misfit {
        Misfit {
            kind: MisfitKind::SystemLibrary,
            packages: vec![format!("p{number}")],
            text: format!("text {number}"),
            apt: apt.iter().map(|name| (*name).to_owned()).collect(),
            source: None,
        }
    }

    #[test]
    fn ten_lines_say_it_and_the_last_is_the_one_to_paste() {
        let mut lock = sample::lock();
        lock.added.project = Some("p".to_owned());
        lock.added.apt = vec!["ffmpeg".to_owned()];
        let all: Vec<_> = (0..20).map(|number| misfit(number, &["libgl1", "libegl1"])).collect();
        let said = lines(&all, &lock);
        assert_eq!(said.len(), 10, "{said:?}");
        assert!(said[8].starts_with("12 more"), "{said:?}");
        let paste = "`apt = [\"ffmpeg\", \"libegl1\", \"libgl1\"]` in `[packages]` of envforge.toml";
        assert!(said[9].ends_with(paste), "{said:?}");
        lock.added.project = None;
        assert_eq!(
            lines(&all[..1], &lock),
            ["text 0", "to add these libraries: `--apt libegl1 --apt libgl1`"]
        );
        assert!(lines(&[], &lock).is_empty());
    }
}
