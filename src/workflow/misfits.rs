//! What of a lock does not go together, by what this machine knows: without a download when it is locked, with the wheels when it is
//! built.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::model::compat::Matrix;
use crate::model::image::plan::CachedFile;
use crate::model::lock::Lock;
use crate::model::misfit::{
    ImageLibraries, KnownPackages, ListedReleases, Misfit, MisfitKind, in_place_of_framework, misfits,
    missing_libraries, shared_paths,
};
use crate::packages::{catalogue, here_files, here_requirements};
use crate::report::{Event, Reporter};
use crate::store::Store;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;

/// The most lines: the rest is in `--json`.
const MOST: usize = 10;
/// The most libraries of a line to paste.
const MOST_LIBRARIES: usize = 20;

/// Returns everything that does not go together in a lock.
pub(crate) fn misfits_of(lock: &Lock, wanted: &BuildRequest, store: &Store, matrix: &Matrix) -> Vec<Misfit> {
    misfits_by(lock, &wanted.listed, &wanted.vendored, store, matrix)
}

/// The same by what indexes list, and by the wheels of a vendor folder and of the cache.
fn misfits_by(
    lock: &Lock,
    listed: &BTreeMap<String, ListedReleases>,
    vendored: &[(String, CachedFile)],
    store: &Store,
    matrix: &Matrix,
) -> Vec<Misfit> {
    let requirements = here_requirements(store, vendored, &lock.wheels);
    let developer: Vec<String> = catalogue().developer_wheels().collect();
    let shared = shared_paths(&here_files(store, vendored, &lock.wheels));
    let known =
        KnownPackages { matrix, requirements: &requirements, developer: &developer, shared: &shared, listed };
    misfits(lock, known)
}

/// What of a lock does not go together, as far as a build has told it: first what its lock was told of, then what the downloaded wheels
/// show, then what their libraries need of the system.
#[derive(Debug)]
pub(crate) struct BuildMisfits {
    matrix: Arc<Matrix>,
    known: Mutex<Vec<Misfit>>,
    /// Missing libraries that nothing in `known` names.
    of_libraries: Mutex<Vec<Misfit>>,
}

impl BuildMisfits {
    /// Starts with what was told of a lock that was made now.
    pub(crate) fn told(all: Vec<Misfit>, matrix: &Arc<Matrix>) -> Self {
        Self { matrix: Arc::clone(matrix), known: Mutex::new(all), of_libraries: Mutex::default() }
    }

    /// Tells what of `all` was not told before, which becomes all that is known.
    pub(crate) fn tell(&self, all: Vec<Misfit>, lock: &Lock, reporter: &dyn Reporter) {
        let mut told = locked(&self.known);
        // Only the wheels say who requires a package: the text may be another one.
        let is_told =
            |one: &Misfit| told.iter().any(|old| old.kind == one.kind && old.packages == one.packages);
        let new: Vec<Misfit> = all.iter().filter(|one| !is_told(one)).cloned().collect();
        tell_misfits(&new, lock, &self.matrix, reporter);
        *told = all;
    }

    /// Tells the libraries that wheels need, the image would lack and nothing named before.
    pub(crate) fn tell_libraries(&self, libraries: ImageLibraries<'_>, lock: &Lock, reporter: &dyn Reporter) {
        let all = missing_libraries(lock, &self.matrix, libraries, &locked(&self.known));
        let mut told = locked(&self.of_libraries);
        let new: Vec<Misfit> = all.iter().filter(|one| !told.contains(one)).cloned().collect();
        tell_misfits(&new, lock, &self.matrix, reporter);
        *told = all;
    }

    /// Whether it was told that two packages install one path.
    pub(crate) fn have_pair(&self, one: &str, other: &str) -> bool {
        locked(&self.known).iter().any(|misfit| {
            let has = |name: &str| misfit.packages.iter().any(|package| package == name);
            misfit.kind == MisfitKind::SamePath && has(one) && has(other)
        })
    }

    /// Everything that is known.
    pub(crate) fn into_all(self) -> Vec<Misfit> {
        let mut all = self.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        all.extend(self.of_libraries.into_inner().unwrap_or_else(PoisonError::into_inner));
        all
    }
}

fn locked(list: &Mutex<Vec<Misfit>>) -> MutexGuard<'_, Vec<Misfit>> {
    list.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses packages that would replace files of the framework.
pub(crate) fn check_framework(lock: &Lock, matrix: &Matrix) -> Result<(), CommandError> {
    let packages = in_place_of_framework(lock, matrix);
    if packages.is_empty() { Ok(()) } else { Err(LockingError::ReplacesFramework { packages }.into()) }
}

/// Says it, in ten lines at most, the last of them what to add to the project.
pub(crate) fn tell_misfits(all: &[Misfit], lock: &Lock, matrix: &Matrix, reporter: &dyn Reporter) {
    for line in lines(all, lock, matrix) {
        reporter.report(Event::Warning { text: line });
    }
}

fn lines(all: &[Misfit], lock: &Lock, matrix: &Matrix) -> Vec<String> {
    let further = [apt_line(all, lock), wheel_line(all, lock, matrix), unknown_line(all, lock, matrix)];
    let last: Vec<String> = further.into_iter().flatten().collect();
    let mut room = MOST - last.len();
    if all.len() > room {
        room -= 1;
    }
    let mut lines: Vec<String> = all.iter().take(room).map(|misfit| misfit.text.clone()).collect();
    if let Some(more @ 1..) = all.len().checked_sub(room) {
        lines.push(format!(
            "{more} more do not go together: `envforge build --json` or `envforge lock --json` lists all"
        ));
    }
    lines.extend(last);
    lines
}

/// How to add the distribution's packages that have missing libraries.
fn apt_line(all: &[Misfit], lock: &Lock) -> Option<String> {
    let mut missing: Vec<&str> = all.iter().flat_map(|misfit| &misfit.apt).map(String::as_str).collect();
    missing.sort_unstable();
    missing.dedup();
    if missing.is_empty() {
        return None;
    }
    Some(if lock.added.project.is_some() {
        let mut apt: Vec<&str> = lock.added.apt.iter().map(String::as_str).chain(missing).collect();
        apt.sort_unstable();
        format!("to add these libraries: `apt = [{}]` in `[packages]` of envforge.toml", quoted(apt))
    } else {
        let options: Vec<_> = missing.iter().map(|name| format!("--apt {name}")).collect();
        format!("to add these libraries: `{}`", options.join(" "))
    })
}

/// How to add the wheels that have missing libraries of CUDA.
fn wheel_line(all: &[Misfit], lock: &Lock, matrix: &Matrix) -> Option<String> {
    let missing = all.iter().flat_map(|misfit| &misfit.libraries);
    let wheels: BTreeSet<String> = missing.filter_map(|soname| wheel_of(soname, lock, matrix)).collect();
    if wheels.is_empty() {
        return None;
    }
    let names: Vec<&str> = wheels.iter().map(String::as_str).collect();
    let command = if lock.added.project.is_some() {
        format!("envforge add {}", names.join(" "))
    } else {
        format!("--with {}", names.join(" --with "))
    };
    Some(format!("to add these libraries of CUDA: `{command}`"))
}

/// Parts of CUDA whose libraries have another name.
const OTHERWISE_NAMED: [(&str, &str); 3] =
    [("cudart", "runtime"), ("cublasLt", "cublas"), ("nvJitLink", "nvjitlink")];

/// The wheel that has a library of the stack's own CUDA: `nvidia-curand` for `libcurand.so.10`.
fn wheel_of(soname: &str, lock: &Lock, matrix: &Matrix) -> Option<String> {
    let (name, release) = soname.strip_prefix("lib")?.split_once(".so.")?;
    let part = OTHERWISE_NAMED.iter().find(|(other, _)| *other == name).map_or(name, |(_, part)| *part);
    let wheels = matrix.wheels_of(&lock.stack.toolkit, |wheel| wheel.library && wheel.part == part)?;
    let (package, version) = wheels.into_iter().next()?;
    // That of another CUDA has another number: `libcudart.so.12` next to CUDA 13.
    (version.split('.').next() == Some(release)).then_some(package)
}

/// How to find the package of missing libraries that the matrix does not know, or to do without them.
fn unknown_line(all: &[Misfit], lock: &Lock, matrix: &Matrix) -> Option<String> {
    let missing = all.iter().flat_map(|misfit| &misfit.libraries).map(String::as_str);
    let is_known = |soname: &str| {
        matrix.package_of_library(soname).is_some() || wheel_of(soname, lock, matrix).is_some()
    };
    let is_unknown = |soname: &&str| is_plain(soname) && !is_known(soname);
    let unknown: BTreeSet<&str> = missing.filter(is_unknown).collect();
    let first = unknown.first()?;
    let find = format!("`apt-file search {first}` on {} finds the package", lock.stack.base);
    if unknown.len() > MOST_LIBRARIES {
        return Some(format!(
            "of {} libraries no package is known here: {find}, or list them in `[verify] may-lack` of envforge.toml",
            unknown.len()
        ));
    }
    let may_lack: BTreeSet<&str> =
        lock.added.may_lack.iter().map(String::as_str).chain(unknown.clone()).collect();
    Some(format!(
        "no package is known here that has {}: {find}; if your code never loads them: `may-lack = [{}]` in `[verify]` of \
         envforge.toml",
        unknown.into_iter().collect::<Vec<_>>().join(", "),
        quoted(may_lack)
    ))
}

/// Whether a name that a wheel chose may stand in a command to paste.
fn is_plain(soname: &str) -> bool {
    soname.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
}

/// `"a", "b"`.
fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use envforge_protocol::elf::Dynamic;

    use super::*;
    use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
    use crate::assemble::samples;
    use crate::model::lock::{WheelLayer, sample};
    use crate::report::Recorder;

    fn misfit(number: usize, apt: &[&str]) -> Misfit {
        Misfit {
            kind: MisfitKind::SystemLibrary,
            packages: vec![format!("p{number}")],
            text: format!("text {number}"),
            apt: apt.iter().map(|name| (*name).to_owned()).collect(),
            libraries: Vec::new(),
            source: None,
        }
    }

    #[test]
    fn ten_lines_say_it_and_the_last_is_the_one_to_paste() {
        let mut lock = sample::lock();
        lock.added.project = Some("p".to_owned());
        lock.added.apt = vec!["ffmpeg".to_owned()];
        let all: Vec<_> = (0..20).map(|number| misfit(number, &["libgl1", "libegl1"])).collect();
        let said = lines(&all, &lock, crate::model::compat::embedded());
        assert_eq!(said.len(), 10, "{said:?}");
        assert!(said[8].starts_with("12 more"), "{said:?}");
        let paste = "`apt = [\"ffmpeg\", \"libegl1\", \"libgl1\"]` in `[packages]` of envforge.toml";
        assert!(said[9].ends_with(paste), "{said:?}");
        lock.added.project = None;
        assert_eq!(
            lines(&all[..1], &lock, crate::model::compat::embedded()),
            ["text 0", "to add these libraries: `--apt libegl1 --apt libgl1`"]
        );
        assert!(lines(&[], &lock, crate::model::compat::embedded()).is_empty());
    }

    #[test]
    fn library_without_a_known_package_gets_the_lines_to_find_it_and_to_do_without_it() {
        let mut lock = sample::lock();
        lock.added.may_lack = vec!["libtbb.so.12".to_owned()];
        let of = |libraries: Vec<String>| Misfit { libraries, ..misfit(0, &["libgl1"]) };
        let some = of(["libGL.so.1", "libodd.so.2", "libodder.so.3"].map(str::to_owned).into());
        let said = lines(&[some], &lock, crate::model::compat::embedded());
        assert_eq!(said[1..2], ["to add these libraries: `--apt libgl1`"]);
        assert_eq!(
            said[2],
            "no package is known here that has libodd.so.2, libodder.so.3: `apt-file search libodd.so.2` on debian:12 finds the \
             package; if your code never loads them: `may-lack = [\"libodd.so.2\", \"libodder.so.3\", \"libtbb.so.12\"]` in \
             `[verify]` of envforge.toml"
        );
        let hostile = of(vec!["$(touch pwned).so".to_owned(), "a\"; b.so".to_owned()]);
        assert_eq!(
            lines(&[hostile], &lock, crate::model::compat::embedded()).len(),
            2,
            "no line to paste has its name"
        );
        let many: Vec<_> = (0..20).map(|number| of(vec![format!("libodd.so.{number}")])).collect();
        assert_eq!(lines(&many, &lock, crate::model::compat::embedded()).len(), 10);
        let many = of((0..5_000).map(|number| format!("libodd.so.{number}")).collect());
        let said = lines(&[many], &lock, crate::model::compat::embedded());
        assert!(said[2].starts_with("of 5000 libraries no package") && said[2].len() < 200, "{said:?}");
    }

    /// As onnxruntime-gpu needs them next to torch 2.15, which has no cuRAND.
    #[test]
    fn library_of_the_stacks_own_cuda_gets_the_wheel_that_has_it() {
        let mut lock = sample::lock();
        let libraries = ["libcurand.so.10", "libcudart.so.12", "libcudart.so.11.0", "libcufft.so.12"];
        let some = Misfit { libraries: libraries.map(str::to_owned).into(), ..misfit(0, &[]) };
        let said = |lock: &Lock| lines(std::slice::from_ref(&some), lock, crate::model::compat::embedded());
        let wheels = "`--with nvidia-cuda-runtime-cu12 --with nvidia-curand-cu12`";
        assert_eq!(said(&lock)[1], format!("to add these libraries of CUDA: {wheels}"));
        // cuFFT of CUDA 13, and the runtime of CUDA 11.
        let other = "no package is known here that has libcudart.so.11.0, libcufft.so.12:";
        assert!(said(&lock)[2].starts_with(other), "{:?}", said(&lock));
        lock.added.project = Some("p".to_owned());
        assert!(said(&lock)[1].ends_with("`envforge add nvidia-cuda-runtime-cu12 nvidia-curand-cu12`"));
    }

    #[test]
    fn missing_libraries_are_reported_once_and_kept() {
        let mut lock = sample::lock();
        lock.wheels.push(samples::locked("odd", WheelLayer::User, b""));
        let needs = Dynamic { needed: vec!["libodd.so.2".to_owned()], ..Dynamic::default() };
        let judged = BTreeMap::from([("odd".to_owned(), vec![("opt/env/odd/_C.so".to_owned(), needs)])]);
        let (none, reporter) = (BTreeSet::new(), Recorder::default());
        let libraries = ImageLibraries { judged: &judged, of_wheels: &none, of_system: &none };
        let all = BuildMisfits::told(vec![misfit(1, &[])], &crate::model::compat::built_in());
        all.tell_libraries(libraries, &lock, &reporter);
        assert!(
            told(&reporter)[0].starts_with("`odd 1.0` needs libraries that the image lacks: libodd.so.2")
        );
        // A layer was damaged, and the image is put together once more.
        all.tell(vec![misfit(1, &[])], &lock, &reporter);
        all.tell_libraries(libraries, &lock, &reporter);
        assert_eq!(told(&reporter), [""; 0]);
        let kept = all.into_all();
        assert_eq!((kept.len(), &kept[1].libraries[..]), (2, &["libodd.so.2".to_owned()][..]));
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
        let all = BuildMisfits::told(vec![misfit(1, &["libgl1"])], &crate::model::compat::built_in());
        // The same, with the package that requires it.
        let again = Misfit { text: "text 1 (required by `x`)".to_owned(), ..misfit(1, &["libgl1"]) };
        all.tell(vec![again.clone(), misfit(2, &[])], &lock, &reporter);
        assert_eq!(told(&reporter), ["text 2"]);
        // What was damaged is downloaded and looked at again.
        all.tell(vec![again.clone(), misfit(2, &[])], &lock, &reporter);
        assert_eq!(told(&reporter), [""; 0]);
        assert_eq!(all.into_all(), [again, misfit(2, &[])]);
        let of_kept_lock = BuildMisfits::told(Vec::new(), &crate::model::compat::built_in());
        of_kept_lock.tell(vec![misfit(1, &["libgl1"])], &lock, &reporter);
        assert_eq!(told(&reporter), ["text 1", "to add these libraries: `--apt libgl1`"]);
    }

    #[test]
    fn pair_is_known_by_its_path_alone() {
        let pair = |kind| Misfit { kind, packages: vec!["a".to_owned(), "b".to_owned()], ..misfit(0, &[]) };
        let all = BuildMisfits::told(vec![pair(MisfitKind::SamePath)], &crate::model::compat::built_in());
        assert!(all.have_pair("b", "a"));
        assert!(!all.have_pair("a", "c"));
        assert!(
            !BuildMisfits::told(vec![pair(MisfitKind::OtherCuda)], &crate::model::compat::built_in())
                .have_pair("a", "b")
        );
    }

    /// A lock of the user's wheels `one` and `two`, which install different files at `shared/x.py`, and the bytes of each.
    fn colliding() -> (Lock, Vec<Vec<u8>>) {
        let bytes: Vec<Vec<u8>> = ["one", "two"]
            .map(|name| MadeWheel::new(name).entry(MadeEntry::new("shared/x.py", name.as_bytes())).build())
            .into();
        let wheels = ["one", "two"].into_iter().zip(&bytes);
        let wheels = wheels.map(|(name, bytes)| samples::locked(name, WheelLayer::User, bytes)).collect();
        (Lock { wheels, ..sample::lock() }, bytes)
    }

    #[test]
    fn wheels_that_install_one_path_are_found_in_the_cache_and_in_a_vendor_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let (lock, bytes) = colliding();
        let found = |vendored: &[(String, CachedFile)]| {
            let all = misfits_by(&lock, &BTreeMap::new(), vendored, &store, crate::model::compat::embedded());
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
