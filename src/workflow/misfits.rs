//! What of a lock does not go together, by what this machine knows: without a download when it is locked, with the wheels when it is
//! built.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::model::compat::Matrix;
use crate::model::image::plan::CachedFile;
use crate::model::lock::Lock;
use crate::model::misfit::{
    KnownPackages, ListedReleases, Misfit, MisfitKind, in_place_of_framework, misfits, shared_paths,
};
use crate::packages::{catalogue, here_files, here_requirements};
use crate::report::{Event, Reporter};
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;

/// The most that is told one by one: the rest is in `--json`.
const MOST: usize = 8;

/// Returns everything that does not go together in a lock.
pub(crate) fn misfits_of(lock: &Lock, wanted: &BuildRequest, store: &Store) -> Vec<Misfit> {
    misfits_by(lock, &wanted.listed, &wanted.vendored, store)
}

/// The same by what indexes list, and by the wheels of a vendor folder and of the cache.
fn misfits_by(
    lock: &Lock,
    listed: &BTreeMap<String, ListedReleases>,
    vendored: &[(String, CachedFile)],
    store: &Store,
) -> Vec<Misfit> {
    let requirements = here_requirements(store, vendored, &lock.wheels);
    let developer: Vec<String> = catalogue().developer_wheels().collect();
    let shared = shared_paths(&here_files(store, vendored, &lock.wheels));
    let known = KnownPackages {
        matrix: Matrix::current(),
        requirements: &requirements,
        developer: &developer,
        shared: &shared,
        listed,
    };
    misfits(lock, known)
}

/// What of a lock does not go together, as far as a build has told it: first what its lock was told of, then what the downloaded wheels
/// show.
#[derive(Debug, Default)]
pub(crate) struct BuildMisfits(Mutex<Vec<Misfit>>);

impl BuildMisfits {
    /// Starts with what was told of a lock that was made now.
    pub(crate) fn told(all: Vec<Misfit>) -> Self {
        Self(Mutex::new(all))
    }

    /// Tells what of `all` was not told before, which becomes all that is known.
    pub(crate) fn tell(&self, all: Vec<Misfit>, lock: &Lock, reporter: &dyn Reporter) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the wheels say who requires a package: the text may be another one.
        let is_told =
            |one: &Misfit| told.iter().any(|old| old.kind == one.kind && old.packages == one.packages);
        let new: Vec<Misfit> = all.iter().filter(|one| !is_told(one)).cloned().collect();
        tell_misfits(&new, lock, reporter);
        *told = all;
    }

    /// Whether it was told that two packages install one path.
    pub(crate) fn have_pair(&self, one: &str, other: &str) -> bool {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().any(|misfit| {
            let has = |name: &str| misfit.packages.iter().any(|package| package == name);
            misfit.kind == MisfitKind::SamePath && has(one) && has(other)
        })
    }

    /// Everything that is known.
    pub(crate) fn into_all(self) -> Vec<Misfit> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
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
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples::locked;
    use crate::model::lock::{WheelLayer, sample};
    use crate::report::Recorder;

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

    fn told(recorder: &Recorder) -> Vec<String> {
        let text = |event| match event {
            Event::Warning { text } => text,
            other => panic!("{other:?}"),
        };
        recorder.take().into_iter().map(text).collect()
    }

    #[test]
    fn build_tells_only_what_its_lock_was_not_told_of() {
        let (lock, reporter) = (sample::lock(), Recorder::default());
        let all = BuildMisfits::told(vec![misfit(1, &["libgl1"])]);
        // The same, with the package that requires it.
        let again = Misfit { text: "text 1 (required by `x`)".to_owned(), ..misfit(1, &["libgl1"]) };
        all.tell(vec![again.clone(), misfit(2, &[])], &lock, &reporter);
        assert_eq!(told(&reporter), ["text 2"]);
        // What was damaged is downloaded and looked at again.
        all.tell(vec![again.clone(), misfit(2, &[])], &lock, &reporter);
        assert_eq!(told(&reporter), [""; 0]);
        assert_eq!(all.into_all(), [again, misfit(2, &[])]);
        let of_kept_lock = BuildMisfits::default();
        of_kept_lock.tell(vec![misfit(1, &["libgl1"])], &lock, &reporter);
        assert_eq!(told(&reporter), ["text 1", "to add these libraries: `--apt libgl1`"]);
    }

    #[test]
    fn pair_is_known_by_its_path_alone() {
        let pair = |kind| Misfit { kind, packages: vec!["a".to_owned(), "b".to_owned()], ..misfit(0, &[]) };
        let all = BuildMisfits::told(vec![pair(MisfitKind::SamePath)]);
        assert!(all.have_pair("b", "a"));
        assert!(!all.have_pair("a", "c"));
        assert!(!BuildMisfits::told(vec![pair(MisfitKind::OtherCuda)]).have_pair("a", "b"));
    }

    /// A lock of the user's wheels `one` and `two`, which install different files at `shared/x.py`, and the bytes of each.
    fn colliding() -> (Lock, Vec<Vec<u8>>) {
        let bytes: Vec<Vec<u8>> = ["one", "two"]
            .map(|name| MadeWheel::new(name).entry(MadeEntry::new("shared/x.py", name.as_bytes())).build())
            .into();
        let wheels = ["one", "two"].into_iter().zip(&bytes);
        let wheels = wheels.map(|(name, bytes)| locked(name, WheelLayer::User, bytes)).collect();
        (Lock { wheels, ..sample::lock() }, bytes)
    }

    #[test]
    fn wheels_that_install_one_path_are_found_in_the_cache_and_in_a_vendor_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let (lock, bytes) = colliding();
        let found = |vendored: &[(String, CachedFile)]| {
            let all = misfits_by(&lock, &BTreeMap::new(), vendored, &store);
            all.into_iter().map(|misfit| misfit.text).collect::<Vec<_>>()
        };
        assert_eq!(found(&[]), [""; 0]);
        store.put(&lock.wheels[0].sha256, &bytes[0]).expect("written");
        let path = root.join("two.whl");
        crate::store::write_atomically(&path, &bytes[1]).expect("written");
        let (size, sha256) = (bytes[1].len() as u64, lock.wheels[1].sha256.clone());
        let vendored = vec![(lock.wheels[1].file.clone(), CachedFile { path, size, sha256 })];
        assert_eq!(found(&[]), [""; 0], "one of them is in the cache");
        assert_eq!(
            found(&vendored),
            ["`one` and `two` install different files at `shared/x.py`: those of `two` stay"]
        );
    }
}
