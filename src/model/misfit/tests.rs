use std::collections::BTreeMap;

use super::*;
use crate::model::lock::{Requirements, WheelLayer, sample};

/// A lock of torch 2.8 for CUDA 12.8 with these packages of the user, `name==version` or `name==version<-requirer`.
struct Scene {
    lock: Lock,
    requirements: Requirements,
    shared: Vec<SharedPath>,
    listed: BTreeMap<String, ListedReleases>,
}

impl Scene {
    fn of(packages: &[&str]) -> Self {
        let mut lock = sample::lock();
        let mut requirements = Requirements::new();
        for package in packages {
            let (release, by) = package.split_once("<-").unwrap_or((package, ""));
            let (name, version) = release.split_once("==").expect("a release");
            let mut wheel = lock.wheels[0].clone();
            (wheel.name, wheel.version) = (name.to_owned(), version.to_owned());
            wheel.layer = WheelLayer::User;
            lock.wheels.push(wheel);
            if by.is_empty() {
                lock.added.python.push(name.to_owned());
            } else {
                requirements.entry(by.to_owned()).or_default().push(name.to_owned());
            }
        }
        Self { lock, requirements, shared: Vec::new(), listed: BTreeMap::new() }
    }

    fn found(&self) -> Vec<Misfit> {
        let known = KnownPackages {
            matrix: crate::model::compat::embedded(),
            requirements: &self.requirements,
            developer: &[],
            shared: &self.shared,
            listed: &self.listed,
        };
        misfits(&self.lock, known)
    }

    /// The texts of a kind.
    fn texts(&self, kind: MisfitKind) -> Vec<String> {
        self.found().into_iter().filter(|found| found.kind == kind).map(|found| found.text).collect()
    }
}

#[test]
fn distributions_of_one_module_are_named_with_who_requires_them() {
    let scene = Scene::of(&[
        "albumentations==2.0",
        "opencv-python==5.0.0.93",
        "opencv-python-headless==5.0.0.93<-albumentations",
        "einops==0.8",
    ]);
    assert_eq!(
        scene.texts(MisfitKind::SamePath),
        [
            "`opencv-python` and `opencv-python-headless` (required by `albumentations`) install the same module `cv2`, and the files of \
          the last replace the others: request one of them"
        ]
    );
    assert!(
        Scene::of(&["opencv-python==5.0.0.93", "onnxruntime==1.32.0"]).texts(MisfitKind::SamePath).is_empty()
    );
}

#[test]
fn wheels_of_the_cache_that_share_paths_are_named_once() {
    let files = |all: &[(&str, u32)]| -> WheelFiles {
        all.iter().map(|(path, crc)| ((*path).to_owned(), (*crc, 1))).collect()
    };
    let wheels = BTreeMap::from([
        ("one".to_owned(), files(&[("same.py", 1), ("x/a.py", 1), ("x/b.py", 1)])),
        ("three".to_owned(), files(&[("y.py", 1)])),
        ("two".to_owned(), files(&[("same.py", 1), ("x/a.py", 2), ("x/b.py", 2)])),
    ]);
    let shared = shared_paths(&wheels);
    let pair = |replaced: &str, stays: &str| SharedPath {
        replaced: replaced.to_owned(),
        stays: stays.to_owned(),
        path: "x/a.py".to_owned(),
        count: 2,
    };
    assert_eq!(shared, [pair("one", "two")], "files of equal content are not counted");
    let mut scene = Scene::of(&["one==1", "two==1", "opencv-python==5", "opencv-python-headless==5"]);
    scene.shared = vec![
        pair("one", "two"),
        pair("opencv-python", "opencv-python-headless"),
        pair("torch", "torchvision"),
    ];
    let texts = scene.texts(MisfitKind::SamePath);
    assert_eq!(texts.len(), 2, "the known pair is told by its module, the stack's own not at all: {texts:?}");
    assert_eq!(
        texts[1],
        "`one` and `two` install different files at `x/a.py` and 1 more: those of `two` stay"
    );
}

#[test]
fn packages_of_another_cuda_are_named() {
    let scene = Scene::of(&[
        "cupy-cuda12x==13.6.0",
        "cupy-cuda11x==13.6.0",
        "x==1",
        "nvidia-cublas-cu11==11.10.3.66<-x",
        "nvidia-cuda-nvrtc-cu11==11.7.99<-x",
        "nvidia-cuda-runtime==13.0.96<-x",
        "nvidia-cudnn-cu12==9.10.2.21<-x",
    ]);
    let texts = scene.texts(MisfitKind::OtherCuda);
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[0].starts_with("cupy-cuda11x==13.6.0 is for CUDA 11, the stack has CUDA 12"), "{texts:?}");
    assert_eq!(
        texts[1],
        "libraries of CUDA 11 are locked next to those of the stack, which has CUDA 12: `nvidia-cublas-cu11`, `nvidia-cuda-nvrtc-cu11` \
         (required by `x`)"
    );
    assert!(texts[2].contains("CUDA 13") && texts[2].contains("`nvidia-cuda-runtime`"), "{texts:?}");
}

#[test]
fn tensorflow_of_cuda_11_that_the_resolver_chose_is_named() {
    let texts = Scene::of(&["tensorflow==2.13.0"]).texts(MisfitKind::OtherCuda);
    assert!(texts.len() == 1 && texts[0].contains("is for CUDA 11"), "{texts:?}");
    assert!(Scene::of(&["tensorflow==2.18.0"]).texts(MisfitKind::OtherCuda).is_empty());
}

#[test]
fn libraries_that_the_image_lacks_are_offered_by_package() {
    let mut scene = Scene::of(&["opencv-python==4.12.0.88", "pyodbc==5.5.0"]);
    let all = scene.found();
    let of = |name: &str| all.iter().find(|found| found.packages == [name.to_owned()]).expect(name);
    assert_eq!(
        of("opencv-python").text,
        "`opencv-python 4.12.0.88` loads libraries that the image lacks, as 5.0.0.93 does: libGL.so.1, libICE.so.6, libSM.so.6, \
         libX11.so.6, libXext.so.6, libglib-2.0.so.0 and 2 more (apt: libgl1, libice6, libsm6, libx11-6, libxext6, libglib2.0-0 and 1 more)"
    );
    let debs = ["libgl1", "libice6", "libsm6", "libx11-6", "libxext6", "libglib2.0-0", "libxcb1"];
    assert_eq!(of("opencv-python").apt, debs);
    assert_eq!(
        of("pyodbc").text,
        "`pyodbc 5.5.0` loads libraries that the image lacks: libodbc.so.2 (apt: libodbc2)"
    );
    // What the lock has, under its later name too, and what may be missing are not told.
    let deb = scene.lock.debs().next().expect("one").clone();
    for name in ["libgl1", "libice6", "libsm6", "libx11-6", "libxext6", "libglib2.0-0t64"] {
        scene.lock.apt.push(crate::model::lock::LockedDeb { name: name.to_owned(), ..deb.clone() });
    }
    scene.lock.added.may_lack = vec!["libodbc.so.2".to_owned()];
    let all = scene.found();
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all[0].apt, ["libxcb1"]);
}

#[test]
fn prereleases_that_no_requirement_names_are_told() {
    let mut scene = Scene::of(&["x==1", "pre==2.0rc1<-x", "asked==3.0b1<-x", "done==1.0<-x"]);
    scene.requirements.get_mut("x").expect("it requires").push("asked>=3.0b1".to_owned());
    assert_eq!(
        scene.texts(MisfitKind::PreRelease),
        ["`pre 2.0rc1` (required by `x`) is a pre-release that no known requirement names"]
    );
}

#[test]
fn requested_package_that_is_years_behind_is_told_unless_its_version_was_named() {
    let days = |all: &[(&str, &str)]| {
        ListedReleases(all.iter().map(|(version, day)| ((*version).to_owned(), (*day).to_owned())).collect())
    };
    let listed = days(&[("0.3.0", "2020-09-01"), ("0.18.2", "2026-01-05"), ("1.0rc1", "2026-03-01")]);
    let mut scene = Scene::of(&["deepspeed==0.3.0"]);
    scene.listed.insert("deepspeed".to_owned(), listed);
    assert_eq!(
        scene.texts(MisfitKind::Old),
        [
            "`deepspeed 0.3.0` is of 2020-09-01, its newest release 0.18.2 of 2026-01-05: nothing newer fits, or has a wheel"
        ]
    );
    scene.lock.added.as_of = Some("2021-01-01T00:00:00Z".to_owned());
    assert!(scene.texts(MisfitKind::Old).is_empty(), "there was no later one");
    scene.lock.added.as_of = None;
    scene.lock.added.python = vec!["deepspeed==0.3.0".to_owned()];
    assert!(scene.texts(MisfitKind::Old).is_empty(), "it was asked for");
    scene.lock.added.python = vec!["deepspeed<1".to_owned()];
    assert_eq!(scene.texts(MisfitKind::Old).len(), 1);
    scene.listed.insert("deepspeed".to_owned(), days(&[("0.3.0", "2020-09-01"), ("0.18.2", "2022-08-01")]));
    assert!(scene.texts(MisfitKind::Old).is_empty(), "less than two years");
    // Each release of vLLM is for one torch.
    let mut scene = Scene::of(&["vllm==0.2.2"]);
    scene.listed.insert("vllm".to_owned(), days(&[("0.2.2", "2023-11-19"), ("0.33.0", "2026-11-02")]));
    let texts = scene.texts(MisfitKind::Old);
    assert!(
        texts.len() == 1 && texts[0].ends_with("stacks of their own: `envforge plan vllm-cuda`"),
        "{texts:?}"
    );
}

#[test]
fn package_in_the_place_of_the_framework_is_found() {
    let mut scene = Scene::of(&["tensorflow-cpu==2.20.0"]);
    assert!(in_place_of_framework(&scene.lock, crate::model::compat::embedded()).is_empty());
    scene.lock.stack.package = "tensorflow".to_owned();
    let found = in_place_of_framework(&scene.lock, crate::model::compat::embedded());
    assert!(
        found.len() == 1 && found[0].contains("`tensorflow-cpu 2.20.0` installs the module `tensorflow`"),
        "{found:?}"
    );
}
