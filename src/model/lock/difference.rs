//! Differences between a lock and a request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use super::added::{AllowedSource, LockedCheck, LockedCopy, LockedRun, PackageIndex, UserAdditions};
use super::choice::StackChoice;
use super::types::Lock;
use crate::model::stack::Stack;

/// One difference between a lock and a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the field: `CUDA variant`.
    pub what: String,
    /// The locked value, if any.
    pub locked: Option<String>,
    /// The requested value, if any.
    pub wanted: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match (&self.locked, &self.wanted) {
            (Some(locked), Some(wanted)) => {
                write!(f, "{what}: locked `{locked}`, requested `{wanted}`")
            }
            (Some(locked), None) => write!(f, "{what}: locked `{locked}`, no longer requested"),
            (None, Some(wanted)) => write!(f, "{what}: requested `{wanted}`, not locked"),
            (None, None) => write!(f, "{what}"),
        }
    }
}

impl Lock {
    /// Returns every way in which this lock does not match a stack and the user's additions; empty: it matches.
    ///
    /// Records, reasons and the matrix version never count. Nor does a target that was merely detected on this host (or
    /// not given at all): a lock is made to be used elsewhere. A target that the user names does.
    pub fn differences_from(&self, wanted: &Stack, added: &UserAdditions) -> Vec<Difference> {
        let mut all = self.differs_from(wanted);
        all.extend(addition_differences(&self.added, added));
        all
    }

    /// Returns what this lock claims though nothing pinned decides it: variables of the image other than the `environment` of
    /// its stack and additions, source distributions that were not allowed, and a base other than its stack's.
    pub fn claims(&self, environment: &BTreeMap<String, String>) -> Vec<Difference> {
        let names: BTreeSet<_> = self.environment.keys().chain(environment.keys()).collect();
        let variable = |name: &String| Difference {
            what: format!("image variable {name}"),
            locked: self.environment.get(name).cloned(),
            wanted: environment.get(name).cloned(),
        };
        let other = names.into_iter().filter(|name| self.environment.get(*name) != environment.get(*name));
        let is_allowed = |name: &str| self.added.allow_source.iter().any(|allowed| allowed.name == name);
        let sources =
            self.sources.iter().filter(|source| !is_allowed(&source.name)).map(|source| Difference {
                what: "source distribution".to_owned(),
                locked: Some(source.name.clone()),
                wanted: None,
            });
        let bases = [
            ("name of the base image", &self.base.name, &self.stack.base),
            ("suite of the base image", &self.base.suite, &self.stack.suite),
        ];
        let bases = bases.into_iter().filter(|(_, locked, wanted)| locked != wanted);
        let base = bases.map(|(what, locked, wanted)| Difference {
            what: what.to_owned(),
            locked: Some(locked.clone()),
            wanted: Some(wanted.clone()),
        });
        other.map(variable).chain(sources).chain(base).collect()
    }

    /// Returns every way in which this lock's stack is another one.
    pub fn differs_from(&self, wanted: &Stack) -> Vec<Difference> {
        let (locked, wanted) = (StackChoice::of(&self.stack), StackChoice::of(wanted));
        let with_target = wanted.has_named_target();
        let (locked, wanted) = (locked.facts(with_target), wanted.facts(with_target));
        let keys: BTreeSet<_> = locked.keys().chain(wanted.keys()).collect();
        let one = |key: &(usize, &str)| Difference {
            what: key.1.to_owned(),
            locked: locked.get(key).cloned(),
            wanted: wanted.get(key).cloned(),
        };
        keys.into_iter().filter(|key| locked.get(*key) != wanted.get(*key)).map(one).collect()
    }
}

/// Returns every way in which the user's additions differ.
fn addition_differences(locked: &UserAdditions, wanted: &UserAdditions) -> Vec<Difference> {
    let mut found = Vec::new();
    // One value: another one is a change, not two.
    if locked.project != wanted.project {
        let (locked, wanted) = (locked.project.clone(), wanted.project.clone());
        found.push(Difference { what: "project".to_owned(), locked, wanted });
    }
    if locked.as_of != wanted.as_of {
        let (locked, wanted) = (locked.as_of.clone(), wanted.as_of.clone());
        found.push(Difference { what: "resolve date".to_owned(), locked, wanted });
    }
    for ((what, had), (_, wants)) in texts(locked).into_iter().zip(texts(wanted)) {
        let one = |locked, wanted| Difference { what: what.to_owned(), locked, wanted };
        found.extend(had.difference(&wants).map(|gone| one(Some(gone.clone()), None)));
        found.extend(wants.difference(&had).map(|new| one(None, Some(new.clone()))));
    }
    found
}

/// The additions as texts, by their name in messages.
fn texts(added: &UserAdditions) -> Vec<(&'static str, BTreeSet<String>)> {
    let UserAdditions {
        project: _,
        as_of: _,
        python,
        apt,
        allow_source,
        indexes,
        python_index,
        variables,
        copy,
        run,
        checks,
        may_lack,
    } = added;
    let with = |text: &str, word: &str, list: &[String]| match list {
        [] => text.to_owned(),
        list => format!("{text} ({word} {})", list.join(", ")),
    };
    let copied = |copy: &LockedCopy| {
        let LockedCopy { from, to, folder, sha256 } = copy;
        let kind = if *folder { "directory, " } else { "" };
        format!("{from} at {to}, {kind}content {}", &sha256[..12])
    };
    let allowed = |source: &AllowedSource| {
        let AllowedSource { name, build } = source;
        with(name, "built with", build)
    };
    let pinned = |PackageIndex { name, index }: &PackageIndex| format!("{name} from {index}");
    let step = |(place, run): (usize, &LockedRun)| {
        let LockedRun { command, secrets } = run;
        with(&format!("{}. {command}", place + 1), "reads", secrets)
    };
    let check = |check: &LockedCheck| {
        let LockedCheck { name, command } = check;
        format!("{name}: {command}")
    };
    vec![
        ("added package", python.iter().cloned().collect()),
        ("added distribution package", apt.iter().cloned().collect()),
        ("source distribution allowed", allow_source.iter().map(allowed).collect()),
        ("package index", indexes.iter().cloned().collect()),
        ("index of a package", python_index.iter().map(pinned).collect()),
        ("variable", variables.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        ("copied files", copy.iter().map(copied).collect()),
        ("run step", run.iter().enumerate().map(step).collect()),
        ("check", checks.iter().map(check).collect()),
        ("library that may be missing", may_lack.iter().cloned().collect()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::{LockedSource, LockedTool, sample};
    use crate::model::target::{TargetGpu, TargetSource};

    fn differences(change: impl FnOnce(&mut Stack)) -> Vec<String> {
        let lock = sample::lock();
        let mut wanted = lock.stack.clone();
        change(&mut wanted);
        lock.differences_from(&wanted, &lock.added).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn lock_matches_its_own_stack() {
        assert_eq!(differences(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn claims_are_variables_and_sources_that_nothing_decides() {
        let lock = sample::lock();
        let environment = lock.environment.clone();
        let said = |change: &dyn Fn(&mut Lock)| -> Vec<String> {
            let mut lock = lock.clone();
            change(&mut lock);
            lock.claims(&environment).iter().map(ToString::to_string).collect()
        };
        assert_eq!(said(&|_| ()), Vec::<String>::new());
        let more = |lock: &mut Lock| drop(lock.environment.insert("LD_PRELOAD".into(), "/x.so".into()));
        assert_eq!(said(&more), ["image variable LD_PRELOAD: locked `/x.so`, no longer requested"]);
        assert_eq!(said(&|lock| lock.environment.clear()).len(), environment.len());
        let source = |lock: &mut Lock| {
            let LockedTool { name: _, version, file, sha256 } = lock.tools[0].clone();
            let (name, build) = ("docopt".to_owned(), Vec::new());
            lock.sources.push(LockedSource { name, version, file, sha256, size: None, build, recipe: None });
        };
        assert_eq!(said(&source), ["source distribution: locked `docopt`, no longer requested"]);
        let base = said(&|lock| lock.base.name = "debian:13".to_owned());
        assert_eq!(base, ["name of the base image: locked `debian:13`, requested `debian:12`"]);
        let suite = said(&|lock| lock.base.suite = "trixie".to_owned());
        assert_eq!(suite, ["suite of the base image: locked `trixie`, requested `bookworm`"]);
    }

    #[test]
    fn facts_are_those_of_now_and_the_target_stays() {
        let lock = sample::lock();
        let mut fresh = lock.stack.clone();
        let mut tampered = lock.clone();
        tampered.stack.name = "debian:12".to_owned();
        tampered.stack.requires.gpu.clear();
        tampered.stack.requires.ptx.clear();
        fresh.target.source = TargetSource::Detected;
        let found = tampered.with_facts_of(&fresh);
        assert_eq!(found, lock, "name and architectures are those of the matrix");
    }

    #[test]
    fn matrix_facts_and_reasons_never_count() {
        let found = differences(|stack| {
            stack.matrix = "2031-01-01.000000000000".to_owned();
            stack.reasons.clear();
            stack.name = "another spelling".to_owned();
            stack.requires.gpu.clear();
            stack.experimental = true;
            stack.local = true;
            stack.licence = Some("none".to_owned());
            stack.glibc = "2.31".parse().unwrap();
        });
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn every_choice_that_decides_the_image_counts() {
        let said = |change: fn(&mut Stack), words: &str| {
            let found = differences(change);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert!(found[0].contains(words), "{found:?}");
        };
        said(|s| s.version = "2.8.1".parse().unwrap(), "torch: locked `2.8.0`, requested `2.8.1`");
        said(|s| s.cuda = "cu126".parse().unwrap(), "CUDA variant: locked `cu128`, requested `cu126`");
        said(|s| s.python = "3.12".parse().unwrap(), "Python: locked `3.11`");
        said(
            |s| s.flavour = crate::model::stack::Flavour::Devel,
            "flavour: locked `runtime`, requested `devel`",
        );
        said(|s| s.base = "debian:13".to_owned(), "base: locked `debian:12`");
        said(|s| s.cudnn = None, "cuDNN: locked `9.10.2.21`, no longer requested");
        said(|s| drop(s.companions.remove("torchaudio")), "torchaudio: locked `2.8.0`");
        said(|s| drop(s.companions.insert("torchtext".into(), "1".into())), "torchtext: requested `1`");
        said(|s| s.numpy = Some("<2".to_owned()), "numpy requirement: requested `<2`, not locked");
        said(|s| s.channel = crate::model::compat::tables::Channel::Framework, "requested `framework`");
        said(|s| s.install.push("torch[x]".to_owned()), "install request: requested `torch[x]`, not locked");
        said(|s| s.framework = "jax".to_owned(), "framework: locked `pytorch`, requested `jax`");
        said(|s| drop(s.parts.insert("nvidia-cuda-nvcc".into(), "13.2".into())), "requested `13.2`");
    }

    /// It follows from the target, so it counts where the user named one.
    #[test]
    fn ptxas_for_triton_counts_with_a_named_target_and_stays_without() {
        let with = |source| {
            differences(move |stack| {
                stack.target.source = source;
                stack.ptxas = Some(sample::ptxas());
            })
        };
        assert_eq!(with(TargetSource::Detected), Vec::<String>::new());
        let named = with(TargetSource::Named);
        assert!(
            named[0].starts_with("ptxas for Triton: requested `CUDA 12.9.1 (nvidia-cuda-nvcc-cu12 12.9.86)")
        );
        let mut lock = sample::lock();
        lock.stack.ptxas = Some(sample::ptxas());
        assert_eq!(lock.clone().with_facts_of(&sample::stack()), lock, "another host builds the same image");
        assert_eq!(lock.differs_from(&sample::stack()), []);
        let plain = Lock { stack: sample::stack(), ..lock.clone() };
        assert_ne!(lock.hash(), plain.hash());
        assert_eq!(plain.hash(), sample::lock().hash());
    }

    fn source_build() -> crate::model::stack::SourceChoice {
        use crate::model::stack::{Nvcc, NvccSource, SourceChoice};
        SourceChoice {
            archive: "pytorch-v2.8.0.tar.gz".to_owned(),
            sha256: None,
            patches: Vec::new(),
            arch: vec!["8.0".parse().unwrap(), "9.0".parse().unwrap()],
            job_memory_gb: Some(4),
            time: None,
            experimental: "unpublished".to_owned(),
            nvcc: Nvcc {
                source: NvccSource::Distribution,
                packages: vec!["nvidia-cuda-toolkit".to_owned()],
                component: Some("non-free".to_owned()),
                gcc: 11,
                repository: None,
            },
            parts: std::collections::BTreeMap::new(),
        }
    }

    #[test]
    fn every_input_of_a_source_build_counts() {
        use crate::model::stack::{NvccSource, SourceChoice, VendorRepository};
        let mut lock = sample::lock();
        lock.stack.source_build = Some(Box::new(source_build()));
        let named = |change: fn(&mut SourceChoice), source| {
            let mut wanted = lock.stack.clone();
            wanted.target.source = source;
            change(wanted.source_build.as_mut().expect("set above"));
            let found = lock.differs_from(&wanted);
            assert!(found.len() < 2, "{found:?}");
            found.first().map(ToString::to_string).unwrap_or_default()
        };
        let said = |change| named(change, TargetSource::Any);
        let archive = "source archive: locked `pytorch-v2.8.0.tar.gz`, requested `b`";
        assert_eq!(said(|s| s.archive = "b".into()), archive);
        let sha256 = "SHA-256 of the source archive: requested `0`, not locked";
        assert_eq!(said(|s| s.sha256 = Some("0".into())), sha256);
        assert_eq!(said(|s| s.patches.push("a.patch".into())), "patches: locked ``, requested `a.patch`");
        assert_eq!(said(|s| s.nvcc.gcc = 12), "gcc for the building nvcc: locked `11`, requested `12`");
        assert!(said(|s| s.nvcc.source = NvccSource::Wheels).starts_with("source of the building nvcc"));
        assert!(said(|s| s.nvcc.component = None).starts_with("archive component of the building nvcc"));
        let repository = said(|s| {
            let [path, key, fingerprint] = ["p", "k", "f"].map(str::to_owned);
            s.nvcc.repository = Some(VendorRepository { path, key, fingerprint });
        });
        assert_eq!(repository, "repository of the building nvcc: requested `p (k, f)`, not locked");
        assert_eq!(
            said(|s| drop(s.parts.insert("crt".into(), "1".into()))),
            "crt: requested `1`, not locked"
        );
        assert_eq!(said(|s| (s.job_memory_gb, s.time) = (None, Some("1 h".into()))), "");
        assert_eq!(said(|s| s.experimental = "another reason".into()), "");
        let fewer = |s: &mut SourceChoice| s.arch.truncate(1);
        assert_eq!(said(fewer), "", "the GPUs of another machine");
        let targets = named(fewer, TargetSource::Named);
        assert!(targets.starts_with("GPU targets of the source build: locked"), "{targets}");
    }

    #[test]
    fn matching_request_has_the_hash_of_the_lock() {
        let lock = sample::lock();
        let mut stack = lock.stack.clone();
        stack.requires.driver = None;
        stack.matrix = "2031-01-01.000000000000".to_owned();
        assert_eq!(lock.differs_from(&stack), []);
        assert_eq!(Lock { stack, ..lock.clone() }.hash(), lock.hash());
    }

    #[test]
    fn detected_target_never_counts_and_named_target_does() {
        let gpu = TargetGpu { name: None, compute_capability: "sm_90".parse().unwrap() };
        let elsewhere = |source| {
            let gpu = gpu.clone();
            move |stack: &mut Stack| {
                stack.target.source = source;
                stack.target.driver = Some("580.65.06".parse().unwrap());
                stack.target.gpus = vec![gpu];
            }
        };
        assert_eq!(differences(elsewhere(TargetSource::Detected)), Vec::<String>::new());
        let found = differences(elsewhere(TargetSource::Named));
        assert_eq!(found, ["target: locked `any`, requested `driver 580.65.06, sm_90`"]);
    }

    #[test]
    fn added_and_removed_packages_count() {
        let lock = sample::lock();
        let python = ["requests>=2".to_owned(), "rich".to_owned()].to_vec();
        let wanted = UserAdditions { python, ..UserAdditions::default() };
        let found = lock.differences_from(&lock.stack, &wanted);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "added package: locked `httpx`, no longer requested",
                "added package: requested `requests>=2`, not locked",
                "added package: requested `rich`, not locked"
            ]
        );
    }

    #[test]
    fn renamed_project_and_another_date_are_one_difference_each() {
        let mut lock = sample::lock();
        let added = |project: &str, as_of: &str| UserAdditions {
            project: Some(project.to_owned()),
            as_of: Some(as_of.to_owned()),
            ..UserAdditions::default()
        };
        lock.added = added("q", "2026-01-01");
        let found = lock.differences_from(&lock.stack, &added("p", "2026-02-01"));
        let said: Vec<_> = found.iter().map(ToString::to_string).collect();
        let dates = "resolve date: locked `2026-01-01`, requested `2026-02-01`";
        assert_eq!(said, ["project: locked `q`, requested `p`", dates]);
    }

    #[test]
    fn each_part_of_a_project_counts() {
        use crate::model::lock::{LockedCheck, LockedCopy, LockedRun};
        let mut lock = sample::lock();
        lock.added = UserAdditions::default();
        let said = |change: fn(&mut UserAdditions)| {
            let mut wanted = UserAdditions::default();
            change(&mut wanted);
            let found = lock.differences_from(&lock.stack, &wanted);
            assert_eq!(found.len(), 1, "{found:?}");
            found[0].to_string()
        };
        let copy = |from: &str| LockedCopy {
            from: from.into(),
            to: "/x".into(),
            folder: true,
            sha256: "a".repeat(64),
        };
        assert_eq!(
            said(|a| a.apt.push("ffmpeg".into())),
            "added distribution package: requested `ffmpeg`, not locked"
        );
        assert!(
            said(|a| drop(a.variables.insert("A".into(), "1".into())))
                .starts_with("variable: requested `A=1`")
        );
        assert!(
            said(|a| a.run.push(LockedRun { command: "ls".into(), secrets: vec![] })).contains("`1. ls`")
        );
        assert!(
            said(|a| a.checks.push(LockedCheck { name: "n".into(), command: "c".into() })).contains("`n: c`")
        );
        assert!(
            said(|a| a.may_lack.push("libx.so".into()))
                .starts_with("library that may be missing: requested `libx.so`")
        );
        assert!(said(|a| a.project = Some("p".into())).starts_with("project: requested `p`"));
        assert!(said(|a| a.indexes.push("i".into())).starts_with("package index: requested `i`"));
        lock.added.copy.push(copy("a"));
        let wanted = UserAdditions {
            copy: vec![LockedCopy { sha256: "b".repeat(64), ..copy("a") }],
            ..UserAdditions::default()
        };
        assert_eq!(lock.differences_from(&lock.stack, &wanted).len(), 2, "another content is another file");
    }
}
