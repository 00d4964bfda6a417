//! The groups of checks. A group shares one child process because its checks share one costly step.

mod compiler;
mod cuda_copies;
mod distributions;
mod framework;
mod leftovers;
mod linkage;
mod secrets;
mod user;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::expect::Expectation;
use super::report::{Outcome, Report};

/// What the checks are told.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) expect: Option<PathBuf>,
    pub(crate) forbidden: Option<PathBuf>,
    pub(crate) root: PathBuf,
    /// `uid:gid` of the image's user.
    pub(crate) user: Option<(u32, u32)>,
}

impl Default for Options {
    fn default() -> Self {
        Self { expect: None, forbidden: None, root: "/".into(), user: None }
    }
}

impl Options {
    /// The words that give a child the same options.
    pub(crate) fn words(&self) -> Vec<String> {
        let mut words = vec!["--root".to_owned(), self.root.display().to_string()];
        for (name, path) in [("--expect", &self.expect), ("--forbidden", &self.forbidden)] {
            words.extend(path.iter().flat_map(|path| [name.to_owned(), path.display().to_string()]));
        }
        words
    }

    /// The promises of the lock.
    pub(crate) fn expectation(&self) -> Result<Expectation, String> {
        let path = self.expect.as_ref().ok_or("no --expect was given")?;
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Expectation::parse(&text)
    }

    /// The locked environment.
    pub(crate) fn environment(&self) -> PathBuf {
        self.root.join("opt/env")
    }

    /// Its interpreter.
    pub(crate) fn python(&self) -> PathBuf {
        self.environment().join("bin/python")
    }
}

/// Checks that run in one child process.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    pub(crate) ids: &'static [&'static str],
    pub(crate) limit: Duration,
    /// Whether it looks at what the image's user may do: then it runs as that user, else as whoever started the agent
    /// (root sees every file).
    pub(crate) as_user: bool,
    pub(crate) run: fn(&Options) -> Vec<Report>,
}

/// All groups, in the order of the report.
pub(crate) const GROUPS: &[Group] = &[
    Group {
        name: "framework",
        ids: framework::IDS,
        limit: Duration::from_mins(3),
        as_user: true,
        run: framework::run,
    },
    Group {
        name: "distributions",
        ids: &["distributions"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: distributions::run,
    },
    Group {
        name: "pip-check",
        ids: &["pip-check"],
        limit: Duration::from_mins(2),
        as_user: true,
        run: distributions::pip_check,
    },
    Group {
        name: "linker-closure",
        ids: &["linker-closure"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: linkage::run,
    },
    Group {
        name: "one-cuda",
        ids: &["one-cuda"],
        limit: Duration::from_mins(1),
        as_user: false,
        run: cuda_copies::run,
    },
    Group { name: "user", ids: &["user"], limit: Duration::from_secs(10), as_user: true, run: user::run },
    Group {
        name: "compiler",
        ids: &["compiler"],
        limit: Duration::from_mins(1),
        as_user: true,
        run: compiler::run,
    },
    Group {
        name: "leftovers",
        ids: &["leftovers"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: leftovers::run,
    },
    Group {
        name: "secrets",
        ids: &["secrets"],
        limit: Duration::from_mins(2),
        as_user: false,
        run: secrets::run,
    },
];

/// The ids of all checks.
pub(crate) fn all_ids() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|group| group.ids.iter().copied())
}

/// One errored line for each id.
pub(crate) fn errored(ids: &[&str], why: &str) -> Vec<Report> {
    ids.iter().map(|id| Report::new(id, Outcome::Errored, why)).collect()
}

/// A path as the image has it, whatever folder stands for its root.
pub(crate) fn shown(root: &Path, path: &Path) -> String {
    format!("/{}", path.strip_prefix(root).unwrap_or(path).display())
}
