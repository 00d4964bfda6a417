//! Whether a lock still fits what is wanted, and in which words it does not.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use super::added::Added;
use super::types::Lock;
use crate::stack::Stack;
use crate::target::{Target, TargetSource};

/// One thing in which a lock differs from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What differs: `CUDA variant`.
    pub what: String,
    /// What the lock has; `None`: nothing.
    pub locked: Option<String>,
    /// What is wanted; `None`: nothing.
    pub wanted: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match (&self.locked, &self.wanted) {
            (Some(locked), Some(wanted)) => {
                write!(f, "{what}: the lock has `{locked}`, wanted is `{wanted}`")
            }
            (Some(locked), None) => write!(f, "{what}: the lock has `{locked}`, which is no longer wanted"),
            (None, Some(wanted)) => write!(f, "{what}: `{wanted}` is wanted, the lock has none"),
            (None, None) => write!(f, "{what}"),
        }
    }
}

impl Lock {
    /// Every way in which this lock does not fit a stack and the user's additions; empty: it fits.
    ///
    /// Records, reasons and the edition of the matrix never count. Nor does a target that was merely detected on
    /// this host (or not given at all): a lock is made to be used elsewhere. A target the user names does.
    pub fn satisfied_by(&self, wanted: &Stack, added: &Added) -> Vec<Difference> {
        let mut all = self.differs_from(wanted);
        all.extend(self.added.differences(added));
        all
    }

    /// Every way in which this lock's stack is another one.
    pub fn differs_from(&self, wanted: &Stack) -> Vec<Difference> {
        let locked = &self.stack;
        let mut found = Vec::new();
        let mut compare = |what: &str, locked: Option<String>, wanted: Option<String>| {
            if locked != wanted {
                found.push(Difference { what: what.to_owned(), locked, wanted });
            }
        };
        let text = |value: &dyn fmt::Display| Some(value.to_string());
        compare("product", text(&locked.product), text(&wanted.product));
        compare(&wanted.package, text(&locked.version), text(&wanted.version));
        compare("CUDA variant", text(&locked.cuda), text(&wanted.cuda));
        compare("CUDA toolkit", text(&locked.toolkit), text(&wanted.toolkit));
        compare("cuDNN", option(locked.cudnn.as_ref()), option(wanted.cudnn.as_ref()));
        compare("NCCL", option(locked.nccl.as_ref()), option(wanted.nccl.as_ref()));
        compare("triton", locked.triton.clone(), wanted.triton.clone());
        let companions: BTreeSet<_> = locked.companions.keys().chain(wanted.companions.keys()).collect();
        for name in companions {
            compare(name, locked.companions.get(name).cloned(), wanted.companions.get(name).cloned());
        }
        compare("Python", text(&locked.python), text(&wanted.python));
        compare("numpy requirement", locked.numpy.clone(), wanted.numpy.clone());
        compare("flavour", text(&locked.flavour), text(&wanted.flavour));
        compare("processor", text(&locked.machine), text(&wanted.machine));
        compare("channel", channel(locked), channel(wanted));
        let archive = |stack: &Stack| stack.source_build.as_ref().map(|build| build.archive.clone());
        compare("source archive", archive(locked), archive(wanted));
        let patches = |stack: &Stack| stack.source_build.as_ref().map(|build| build.patches.join(", "));
        compare("patches", patches(locked), patches(wanted));
        compare("base", text(&locked.base), text(&wanted.base));
        compare("suite of the base", text(&locked.suite), text(&wanted.suite));
        compare("source of nvcc", nvcc(locked), nvcc(wanted));
        for name in locked.parts.keys().chain(wanted.parts.keys()).collect::<BTreeSet<_>>() {
            compare(name, locked.parts.get(name).cloned(), wanted.parts.get(name).cloned());
        }
        compare("forward-compatibility package", forward_compat(locked), forward_compat(wanted));
        if wanted.target.source == TargetSource::Named {
            compare("target", text(&target(&locked.target)), text(&target(&wanted.target)));
        }
        found
    }
}

impl Added {
    /// Every way in which something else is wanted beside the stack.
    fn differences(&self, wanted: &Self) -> Vec<Difference> {
        let mut found = Vec::new();
        let project = |added: &Self| added.project.iter().cloned().collect::<Vec<_>>();
        let copies = |added: &Self| -> Vec<String> {
            let word = |copy: &super::added::LockedCopy| {
                format!("{} at {}, content {}", copy.from, copy.to, &copy.sha256[..12])
            };
            added.copy.iter().map(word).collect()
        };
        let sources = |added: &Self| -> Vec<String> {
            let all = added.allow_source.iter();
            all.map(|source| match source.build.as_slice() {
                [] => source.name.clone(),
                build => format!("{} (built with {})", source.name, build.join(", ")),
            })
            .collect()
        };
        let runs = |added: &Self| -> Vec<String> {
            let all = added.run.iter().enumerate();
            all.map(|(place, run)| match run.secrets.as_slice() {
                [] => format!("{}. {}", place + 1, run.command),
                secrets => format!("{}. {} (reads {})", place + 1, run.command, secrets.join(", ")),
            })
            .collect()
        };
        let checks = |added: &Self| -> Vec<String> {
            added.checks.iter().map(|check| format!("{}: {}", check.name, check.command)).collect()
        };
        let variables = |added: &Self| -> Vec<String> {
            added.variables.iter().map(|(name, value)| format!("{name}={value}")).collect()
        };
        let mut compare = |what: &str, had: &[String], wants: &[String]| {
            let (had, wants): (BTreeSet<_>, BTreeSet<_>) = (had.iter().collect(), wants.iter().collect());
            let one = |locked, wanted| Difference { what: what.to_owned(), locked, wanted };
            found.extend(had.difference(&wants).map(|gone| one(Some((*gone).clone()), None)));
            found.extend(wants.difference(&had).map(|new| one(None, Some((*new).clone()))));
        };
        compare("project", &project(self), &project(wanted));
        compare("added package", &self.python, &wanted.python);
        compare("added distribution package", &self.apt, &wanted.apt);
        compare("source distribution allowed", &sources(self), &sources(wanted));
        compare("package index", &self.indexes, &wanted.indexes);
        compare("variable", &variables(self), &variables(wanted));
        compare("copied files", &copies(self), &copies(wanted));
        compare("run step", &runs(self), &runs(wanted));
        compare("check", &checks(self), &checks(wanted));
        compare("library that may be missing", &self.may_lack, &wanted.may_lack);
        found
    }
}

fn option(value: Option<&impl ToString>) -> Option<String> {
    value.map(ToString::to_string)
}

fn channel(stack: &Stack) -> Option<String> {
    let text = serde_json::to_value(stack.channel).ok()?;
    text.as_str().map(str::to_owned)
}

fn nvcc(stack: &Stack) -> Option<String> {
    let nvcc = stack.nvcc.as_ref()?;
    let packages = nvcc.packages.join(", ");
    Some(if packages.is_empty() { nvcc.source.to_string() } else { format!("{}: {packages}", nvcc.source) })
}

fn forward_compat(stack: &Stack) -> Option<String> {
    stack.forward_compat.as_ref().map(|choice| choice.package.clone())
}

fn target(target: &Target) -> String {
    let driver = target.driver.as_ref().map(|driver| format!("driver {driver}"));
    let gpus = target.gpus.iter().map(|gpu| match &gpu.name {
        Some(name) => format!("{name} ({})", gpu.compute_capability),
        None => gpu.compute_capability.to_string(),
    });
    let parts: Vec<_> = driver.into_iter().chain(gpus).collect();
    if parts.is_empty() { "any".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::sample;
    use crate::target::TargetGpu;

    fn differences(change: impl FnOnce(&mut Stack)) -> Vec<String> {
        let lock = sample::lock();
        let mut wanted = lock.stack.clone();
        change(&mut wanted);
        lock.satisfied_by(&wanted, &lock.added).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_lock_fits_the_stack_it_was_made_from() {
        assert_eq!(differences(|_| {}), Vec::<String>::new());
    }

    #[test]
    fn matrix_reasons_and_records_never_count() {
        let found = differences(|stack| {
            stack.matrix = "2031-01-01.000000000000".to_owned();
            stack.reasons.clear();
            stack.name = "another spelling".to_owned();
        });
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn every_choice_that_changes_the_image_counts() {
        let said = |change: fn(&mut Stack), words: &str| {
            let found = differences(change);
            assert_eq!(found.len(), 1, "{words}: {found:?}");
            assert!(found[0].contains(words), "{found:?}");
        };
        said(|s| s.version = "2.8.1".parse().unwrap(), "torch: the lock has `2.8.0`, wanted is `2.8.1`");
        said(|s| s.cuda = "cu126".parse().unwrap(), "CUDA variant: the lock has `cu128`, wanted is `cu126`");
        said(|s| s.python = "3.12".parse().unwrap(), "Python: the lock has `3.11`");
        said(
            |s| s.flavour = crate::stack::Flavour::Devel,
            "flavour: the lock has `runtime`, wanted is `devel`",
        );
        said(|s| s.base = "debian:13".to_owned(), "base: the lock has `debian:12`");
        said(|s| s.cudnn = None, "cuDNN: the lock has `9.10.2.21`, which is no longer wanted");
        said(|s| drop(s.companions.remove("torchaudio")), "torchaudio: the lock has `2.8.0`");
        said(|s| drop(s.companions.insert("torchtext".into(), "1".into())), "torchtext: `1` is wanted");
        said(|s| s.numpy = Some("<2".to_owned()), "numpy requirement: `<2` is wanted, the lock has none");
        said(|s| s.channel = crate::compat::tables::Channel::Framework, "wanted is `framework`");
    }

    #[test]
    fn another_detected_host_does_not_make_a_lock_stale_but_a_named_target_does() {
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
        assert_eq!(found, ["target: the lock has `any`, wanted is `driver 580.65.06, sm_90`"]);
    }

    #[test]
    fn what_the_user_adds_or_takes_away_counts() {
        let lock = sample::lock();
        let python = ["requests>=2".to_owned(), "rich".to_owned()].to_vec();
        let wanted = Added { python, ..Added::default() };
        let found = lock.satisfied_by(&lock.stack, &wanted);
        let found: Vec<_> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            [
                "added package: the lock has `httpx`, which is no longer wanted",
                "added package: `requests>=2` is wanted, the lock has none",
                "added package: `rich` is wanted, the lock has none"
            ]
        );
    }

    #[test]
    fn each_part_of_a_project_counts_and_is_told() {
        use crate::lock::{LockedCheck, LockedCopy, LockedRun};
        let mut lock = sample::lock();
        lock.added = Added::default();
        let said = |change: fn(&mut Added)| {
            let mut wanted = Added::default();
            change(&mut wanted);
            let found = lock.satisfied_by(&lock.stack, &wanted);
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
            "added distribution package: `ffmpeg` is wanted, the lock has none"
        );
        assert!(said(|a| drop(a.variables.insert("A".into(), "1".into()))).starts_with("variable: `A=1`"));
        assert!(
            said(|a| a.run.push(LockedRun { command: "ls".into(), secrets: vec![] })).contains("`1. ls`")
        );
        assert!(
            said(|a| a.checks.push(LockedCheck { name: "n".into(), command: "c".into() })).contains("`n: c`")
        );
        assert!(
            said(|a| a.may_lack.push("libx.so".into())).starts_with("library that may be missing: `libx.so`")
        );
        assert!(said(|a| a.project = Some("p".into())).starts_with("project: `p`"));
        assert!(said(|a| a.indexes.push("i".into())).starts_with("package index: `i`"));
        lock.added.copy.push(copy("a"));
        let wanted =
            Added { copy: vec![LockedCopy { sha256: "b".repeat(64), ..copy("a") }], ..Added::default() };
        assert_eq!(lock.satisfied_by(&lock.stack, &wanted).len(), 2, "another content is another file");
    }
}
