//! Why there is no stack or no lock for a request.

use std::error::Error as _;

use crate::failure::{Exit, Failure};
use crate::model::counted::listed;
use crate::model::resolve::PlanReport;
use crate::packages::PackagesError;

/// A request that no stack satisfies.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct ImpossibleStack {
    /// Every violated rule, as people read it.
    pub text: String,
    /// The same for programs, as `plan --json` prints it.
    pub plan: Box<PlanReport>,
}

impl Failure for ImpossibleStack {
    fn exit(&self) -> Exit {
        Exit::No
    }
}

/// Why a lock could not be used, made or changed.
#[derive(Debug, thiserror::Error)]
pub enum LockingError {
    /// The lock file is missing or does not match the request.
    #[error("{}", stale_text(file, differences))]
    Stale {
        /// The lock file.
        file: String,
        /// The differences; empty: there is no lock file.
        differences: Vec<String>,
        /// Whether `--locked` was given.
        locked: bool,
        /// The command that makes it, if not that of the project.
        call: Option<String>,
    },
    /// A command that only reads found no lock file.
    #[error("lock file not found: {file}")]
    Missing {
        /// The lock file.
        file: String,
    },
    /// The lock of an image that its project is installed in, as an export writes it: its packages were not resolved for a project.
    #[error("lock file `{file}` is of an image: it has the wheel of an installed project, `{package}`")]
    OfImage {
        /// The lock file.
        file: String,
        /// The project's package.
        package: String,
    },
    /// `--upgrade-package` of a package that is not locked.
    #[error("package not found in {file}: `{}`", packages.join("`, `"))]
    NotLocked {
        /// The packages.
        packages: Vec<String>,
        /// The lock file.
        file: String,
    },
    /// nvcc is configured but out of reach.
    #[error("{cause}")]
    NvccOutOfReach {
        /// The error of the package source.
        #[source]
        cause: PackagesError,
        /// Commands for the nearest devel specs with another source.
        nearest: Vec<String>,
    },
    /// Requirements that no set of versions meets.
    #[error("conflicting requirements{}", requirements_text(requirements, pinned.as_deref()))]
    Conflict {
        /// The resolver's output.
        #[source]
        cause: Box<PackagesError>,
        /// The conflicting requirements with the files that hold them.
        requirements: Vec<String>,
        /// The pin of the image that is part of the conflict.
        pinned: Option<String>,
        /// The product.
        product: String,
        /// The releases of coupled packages in the conflict that fit the stack, or why none does.
        companions: Vec<String>,
    },
    /// Only pre-releases of requested packages fit.
    #[error("no release fits, only a pre-release:\n  - {}", packages.join("\n  - "))]
    Prerelease {
        /// Each requirement with the version.
        packages: Vec<String>,
        /// What to do.
        hints: Vec<String>,
    },
    /// No index has requested packages.
    #[error("package not found:{}", unknown_text(packages))]
    UnknownPackages {
        /// The packages.
        packages: Vec<UnknownPackage>,
    },
    /// Locked packages would replace files of the framework.
    #[error("packages that would replace files of the framework:\n  - {}", packages.join("\n  - "))]
    ReplacesFramework {
        /// Each package with the reason.
        packages: Vec<String>,
    },
    /// The user declined to compile.
    #[error("source build declined")]
    Declined {
        /// Commands for published alternatives.
        nearest: Vec<String>,
    },
}

/// A requested package that no index has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPackage {
    /// Its name.
    pub package: String,
    /// Where it is requested.
    pub origin: Option<String>,
    /// The indexes that do not have it, by name.
    pub indexes: Vec<String>,
    /// Known names that are near, the nearest first.
    pub near: Vec<String>,
}

fn unknown_text(packages: &[UnknownPackage]) -> String {
    let line = |one: &UnknownPackage| {
        let origin = one.origin.as_ref().map(|origin| format!(" ({origin})")).unwrap_or_default();
        let indexes: Vec<_> = one.indexes.iter().map(|name| format!("`{name}`")).collect();
        format!("`{}`{origin} is not in index {}", one.package, indexes.join(" or "))
    };
    listed(&packages.iter().map(line).collect::<Vec<_>>())
}

/// The nearest names, and what a name that is right needs.
fn unknown_hints(packages: &[UnknownPackage]) -> Vec<String> {
    let mut hints = Vec::new();
    for UnknownPackage { package, near, .. } in packages.iter().filter(|one| !one.near.is_empty()) {
        let near: Vec<_> = near.iter().map(|name| format!("`{name}`")).collect();
        hints.push(format!("did you mean {} in place of `{package}`?", near.join(" or ")));
    }
    hints.push("packages of another index need its name: `indexes` in `[packages]`".to_owned());
    hints
}

fn requirements_text(requirements: &[String], pinned: Option<&str>) -> String {
    let pinned = pinned.map(|pin| format!("{pin} is pinned by the image"));
    let all: Vec<_> = requirements.iter().cloned().chain(pinned).collect();
    if all.is_empty() { String::new() } else { format!(":\n  - {}", all.join("\n  - ")) }
}

fn stale_text(file: &str, differences: &[String]) -> String {
    if differences.is_empty() {
        return format!("lock file `{file}` not found");
    }
    format!("lock file `{file}` is out of date:\n  - {}", differences.join("\n  - "))
}

impl Failure for LockingError {
    fn exit(&self) -> Exit {
        match self {
            Self::Stale { .. }
            | Self::Declined { .. }
            | Self::Prerelease { .. }
            | Self::UnknownPackages { .. }
            | Self::ReplacesFramework { .. } => Exit::No,
            Self::NotLocked { .. } | Self::Missing { .. } | Self::OfImage { .. } => Exit::Usage,
            Self::NvccOutOfReach { cause, .. } => cause.exit(),
            Self::Conflict { cause, .. } => cause.exit(),
        }
    }

    fn hints(&self) -> Vec<String> {
        match self {
            Self::Stale { differences, locked, call, .. } => {
                let call = call.as_deref().unwrap_or("`envforge lock`");
                let update = if differences.is_empty() { "" } else { " to update it" };
                let omit = if *locked { ", or omit `--locked`" } else { "" };
                vec![format!("run {call}{update}{omit}")]
            }
            Self::Missing { .. } => vec!["run `envforge lock SPEC`, or give one with --lockfile".to_owned()],
            Self::OfImage { .. } => vec!["use the project's own lock file, or remove this one".to_owned()],
            Self::NotLocked { .. } => {
                vec!["check the spelling; add new packages to envforge.toml or with --with".to_owned()]
            }
            Self::NvccOutOfReach { cause, nearest } => {
                let near = nearest.iter().map(|command| format!("use nvcc from another source: `{command}`"));
                cause.hints().into_iter().chain(near).collect()
            }
            Self::Conflict { cause, requirements, pinned, product, companions } => {
                let mut hints: Vec<_> = companions.clone();
                hints.extend(cause.resolver_hints());
                let output = cause.source().map(ToString::to_string).unwrap_or_default();
                if output.contains("was not found in the package registry") {
                    hints.push(
                        "check the spelling of the package name; packages of a private index need `indexes`"
                            .to_owned(),
                    );
                } else if !requirements.is_empty() {
                    hints.push("relax or remove one of them".to_owned());
                }
                if pinned.is_some() {
                    hints
                        .push(format!("or choose another version of the framework: envforge list {product}"));
                }
                hints
            }
            Self::Prerelease { hints, .. } => hints.clone(),
            Self::UnknownPackages { packages } => unknown_hints(packages),
            Self::ReplacesFramework { .. } => vec![
                "remove them, or the package that requires them (`envforge why PACKAGE`, without them)"
                    .to_owned(),
            ],
            Self::Declined { nearest } => {
                let wheel = "use a prebuilt wheel: `--wheel FILE`".to_owned();
                let nearest = nearest.iter().map(|command| format!("build a published variant: `{command}`"));
                nearest.chain([wheel]).collect()
            }
        }
    }
}
