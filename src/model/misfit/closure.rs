//! Libraries that the wheels of a lock need and neither a wheel nor the system has, by the rule of the check `linker-closure`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use envforge_protocol::abi::{LoaderView, SYSTEM_FOLDERS, of_another_cuda};
use envforge_protocol::elf::Dynamic;

use super::library::in_short;
use super::question::{Misfit, MisfitKind};
use crate::model::compat::Matrix;
use crate::model::lock::{Lock, LockedWheel};

/// The libraries of an image below its own files.
#[derive(Debug, Clone, Copy)]
pub struct ImageLibraries<'a> {
    /// The libraries of the wheels that are judged: by package those that it installs, by their path, with what each needs.
    pub judged: &'a BTreeMap<String, Vec<(String, Dynamic)>>,
    /// The paths of the libraries of all wheels.
    pub of_wheels: &'a BTreeSet<String>,
    /// The paths of the libraries of base, system and the user's packages, relative to the root.
    pub of_system: &'a BTreeSet<String>,
}

/// Returns for each judged package the libraries that the image would lack, but for those that `told` names for it.
///
/// A library that was not read may be called otherwise than its file, and a folder may be a link: where the check could still find a
/// library, nothing is said.
pub fn missing_libraries(
    lock: &Lock,
    matrix: &Matrix,
    libraries: ImageLibraries<'_>,
    told: &[Misfit],
) -> Vec<Misfit> {
    let missing = missing_by_package(lock, libraries);
    let is_told = |package: &str, soname: &String| {
        told.iter().any(|one| {
            let is_of_package = one.packages.iter().any(|name| name == package);
            one.kind == MisfitKind::SystemLibrary && is_of_package && one.libraries.contains(soname)
        })
    };
    let new = |wheel: &LockedWheel| {
        let sonames = missing.get(&wheel.name)?.iter();
        let sonames: Vec<String> = sonames.filter(|soname| !is_told(&wheel.name, soname)).cloned().collect();
        (!sonames.is_empty()).then(|| misfit(lock, matrix, wheel, sonames))
    };
    lock.wheels.iter().filter_map(new).collect()
}

/// The sonames that the libraries of each package need and nothing has.
fn missing_by_package(lock: &Lock, libraries: ImageLibraries<'_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut all = BTreeMap::new();
    let mut owners = BTreeMap::new();
    for (package, own) in libraries.judged {
        for (path, needs) in own {
            all.insert(PathBuf::from(path), needs.clone());
            owners.insert(PathBuf::from(path), package);
        }
    }
    for other in of_another_cuda(&all, &lock.stack.toolkit_minor()) {
        all.remove(&other);
    }
    let is_searched =
        |path: &&String| path.rsplit_once('/').is_some_and(|(folder, _)| SYSTEM_FOLDERS.contains(&folder));
    let searched = libraries.of_system.iter().filter(is_searched);
    let names: BTreeSet<String> =
        searched.chain(libraries.of_wheels).map(|path| file(path).to_owned()).collect();
    let anywhere: BTreeSet<&str> = libraries.of_system.iter().map(|path| file(path)).collect();
    let exists = |path: &Path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| anywhere.contains(name))
    };
    let view = LoaderView { root: Path::new(""), system: &names, exists: &exists };
    let mut missing: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for unmet in view.unmet(&all) {
        let Some(package) = owners.get(&unmet.path) else { continue };
        if !lock.added.may_lack.contains(&unmet.soname) {
            missing.entry((*package).clone()).or_default().insert(unmet.soname);
        }
    }
    missing
}

fn misfit(lock: &Lock, matrix: &Matrix, wheel: &LockedWheel, libraries: Vec<String>) -> Misfit {
    let known = libraries.iter().filter_map(|soname| matrix.package_of_library(soname));
    let apt: BTreeSet<&str> = known.collect();
    let apt: Vec<String> = apt.into_iter().map(str::to_owned).collect();
    let of = if apt.is_empty() { String::new() } else { format!(" (apt: {})", apt.join(", ")) };
    // Both are applied above the wheels.
    let unless = match (lock.added.run.is_empty(), lock.added.copy.is_empty()) {
        (true, true) => "",
        (false, true) => ", unless `run` adds them",
        (true, false) => ", unless `copy` adds them",
        (false, false) => ", unless `run` or `copy` adds them",
    };
    let text = format!(
        "`{} {}` needs libraries that the image lacks{unless}: {}{of}",
        wheel.name,
        wheel.version,
        in_short(&libraries)
    );
    let packages = vec![wheel.name.clone()];
    Misfit { apt, libraries, ..Misfit::new(MisfitKind::SystemLibrary, packages, text, None) }
}

/// The file name of a path.
fn file(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{LockedRun, WheelLayer, sample};

    const SITE: &str = "opt/env/lib/python3.11/site-packages";

    /// A lock with packages of the user, and their libraries with what each needs.
    struct Scene {
        lock: Lock,
        judged: BTreeMap<String, Vec<(String, Dynamic)>>,
        of_wheels: BTreeSet<String>,
        of_system: BTreeSet<String>,
    }

    impl Scene {
        fn of(libraries: &[(&str, &[&str])]) -> Self {
            let mut scene = Self {
                lock: sample::lock(),
                judged: BTreeMap::new(),
                of_wheels: BTreeSet::from([format!("{SITE}/torch/lib/libtorch.so")]),
                of_system: BTreeSet::from([
                    "usr/lib/x86_64-linux-gnu/libc.so.6".to_owned(),
                    "usr/lib/x86_64-linux-gnu/private/libhidden.so.1".to_owned(),
                ]),
            };
            for (path, needed) in libraries {
                let package = path.split('/').next().expect("a package");
                if !scene.judged.contains_key(package) {
                    let wheel = LockedWheel {
                        name: package.to_owned(),
                        version: "1.0".to_owned(),
                        layer: WheelLayer::User,
                        ..scene.lock.wheels[0].clone()
                    };
                    scene.lock.wheels.push(wheel);
                }
                let needed = needed.iter().map(|soname| (*soname).to_owned()).collect();
                let needs = Dynamic { needed, ..Dynamic::default() };
                let path = format!("{SITE}/{path}");
                scene.of_wheels.insert(path.clone());
                scene.judged.entry(package.to_owned()).or_default().push((path, needs));
            }
            scene
        }

        fn found(&self, told: &[Misfit]) -> Vec<Misfit> {
            let Self { lock, judged, of_wheels, of_system } = self;
            missing_libraries(
                lock,
                crate::model::compat::embedded(),
                ImageLibraries { judged, of_wheels, of_system },
                told,
            )
        }

        fn texts(&self) -> Vec<String> {
            self.found(&[]).into_iter().map(|misfit| misfit.text).collect()
        }
    }

    #[test]
    fn library_that_neither_wheels_nor_the_system_have_is_named_with_its_package() {
        let scene = Scene::of(&[
            ("cv/cv.abi3.so", &["libGL.so.1", "libc.so.6", "libtorch.so", "libunknown.so.3"]),
            ("cv/again.so", &["libGL.so.1"]),
            ("fine/_C.so", &["libtorch.so", "libcuda.so.1"]),
        ]);
        let found = scene.found(&[]);
        let [misfit] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            misfit.text,
            "`cv 1.0` needs libraries that the image lacks: libGL.so.1, libunknown.so.3 (apt: libgl1)"
        );
        assert_eq!((&misfit.apt[..], misfit.kind), (&["libgl1".to_owned()][..], MisfitKind::SystemLibrary));
        assert_eq!(misfit.libraries, ["libGL.so.1", "libunknown.so.3"]);
        let mut with = Scene::of(&[("cv/cv.abi3.so", &["libGL.so.1"])]);
        with.of_system.insert("usr/lib/x86_64-linux-gnu/libGL.so.1".to_owned());
        assert_eq!(with.texts(), [""; 0], "the system has it");
    }

    #[test]
    fn library_in_a_private_folder_counts_for_those_that_name_a_folder_alone() {
        let mut scene = Scene::of(&[("cv/cv.so", &["libhidden.so.1"])]);
        assert_eq!(scene.texts().len(), 1);
        let cv = scene.judged.get_mut("cv").expect("judged");
        cv[0].1.runpath = vec!["/usr/lib/x86_64-linux-gnu/private".to_owned()];
        assert_eq!(scene.texts(), [""; 0]);
    }

    #[test]
    fn what_the_check_tolerates_is_tolerated() {
        let mut scene = Scene::of(&[
            ("torchaudio/lib/libtorchaudio_sox.so", &["libsox.so"]),
            ("bitsandbytes/libbitsandbytes_cuda128.so", &["libtorch.so"]),
            ("bitsandbytes/libbitsandbytes_cuda118.so", &["libcublas.so.11"]),
            ("numba/tbbpool.so", &["libtbb.so.12"]),
            ("own/_C.so", &["libown.so.1"]),
        ]);
        scene.lock.added.may_lack = vec!["libown.so.1".to_owned()];
        assert_eq!(scene.texts(), [""; 0]);
    }

    #[test]
    fn reported_libraries_are_not_reported_again() {
        let scene = Scene::of(&[("cv/cv.so", &["libGL.so.1", "libxcb.so.1"])]);
        let told = |package: &str| Misfit {
            libraries: vec!["libGL.so.1".to_owned()],
            ..Misfit::new(MisfitKind::SystemLibrary, vec![package.to_owned()], String::new(), None)
        };
        assert_eq!(scene.found(&[told("cv")])[0].libraries, ["libxcb.so.1"]);
        assert_eq!(scene.found(&[told("other")])[0].libraries.len(), 2);
    }

    /// The loader looks for each of them, whether a symbol of it is used or not.
    #[test]
    fn libraries_that_a_wheel_claims_to_need_are_named_in_one_bounded_line() {
        let claimed: Vec<String> = (0..5_000).map(|number| format!("libclaimed{number}.so")).collect();
        let claimed: Vec<&str> = claimed.iter().map(String::as_str).collect();
        let mut scene = Scene::of(&[("odd/_C.so", &claimed)]);
        let found = scene.found(&[]);
        assert_eq!((found.len(), found[0].libraries.len()), (1, 5_000));
        assert!(found[0].text.ends_with(" and 4994 more") && found[0].text.len() < 250, "{}", found[0].text);
        scene.lock.added.may_lack.clone_from(&found[0].libraries);
        assert_eq!(scene.texts(), [""; 0]);
    }

    #[test]
    fn commands_of_the_build_may_still_add_a_library() {
        let mut scene = Scene::of(&[("cv/cv.so", &["libGL.so.1"])]);
        scene.lock.added.run =
            vec![LockedRun { command: "apt-get install libgl1".to_owned(), secrets: Vec::new() }];
        assert!(scene.texts()[0].contains("lacks, unless `run` adds them: libGL.so.1"));
    }
}
