//! Request and context of the package resolver.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::local_wheel::LocalWheel;
use super::resolver_image::ResolverImage;
use super::settings::PackageSettings;
use crate::engine::Engine;
use crate::fetch::Fetcher;
use crate::model::compat::Matrix;
use crate::model::lock::{AllowedSource, Lock, LockedBase, UserAdditions};
use crate::model::stack::Stack;
use crate::report::Reporter;
use crate::store::Store;

/// Input of the package resolver.
#[derive(Debug, Clone, Copy)]
pub struct PackageRequest<'a> {
    /// The base in the engine, by tag or id. Its files are read; nothing of it runs.
    pub base_reference: &'a str,
    /// The base as the lock will have it.
    pub base: &'a LockedBase,
    /// The stack.
    pub stack: &'a Stack,
    /// The matrix that it was chosen by.
    pub matrix: &'a Matrix,
    /// The user's additions.
    pub added: &'a UserAdditions,
    /// A lock file whose pins are kept while compatible; `None` (`--upgrade`): resolve everything again.
    pub previous: Option<&'a Lock>,
    /// Versions of another tool's lock file, kept before the old pins where the stack allows.
    pub preferred: Option<&'a BTreeMap<String, String>>,
    /// Packages whose old pins are dropped.
    pub fresh: &'a [String],
    /// Whether apt's lists of the last day do not count (`--upgrade`, `--refresh`).
    pub renew: bool,
    /// Wheels of the stack, or of requested packages, that no index lists.
    pub local: &'a [LocalWheel],
    /// Wheels built from source distributions, required by the user's packages.
    pub built: &'a [LocalWheel],
}

impl PackageRequest<'_> {
    /// Returns the packages whose source distribution may be selected: allowed by the user, without a wheel yet.
    pub(super) fn buildable_packages(&self) -> Vec<AllowedSource> {
        let has = |name: &str| self.local.iter().chain(self.built).any(|wheel| wheel.name == name);
        self.added.allow_source.iter().filter(|source| !has(&source.name)).cloned().collect()
    }

    /// Returns every wheel that no index lists.
    pub(super) fn unindexed_wheels(&self) -> Vec<&LocalWheel> {
        self.local.iter().chain(self.built).collect()
    }
}

/// Dependencies of the package resolver.
#[derive(Clone)]
pub struct ResolverContext<'a> {
    /// The engine that has the base.
    pub engine: &'a dyn Engine,
    /// The image that resolves.
    pub image: &'a dyn ResolverImage,
    /// The cache.
    pub store: &'a Store,
    /// Downloads.
    pub fetcher: &'a Fetcher,
    /// Sources of packages.
    pub settings: &'a PackageSettings,
    /// Receiver of events.
    pub reporter: Arc<dyn Reporter>,
}

#[cfg(test)]
impl<'a> PackageRequest<'a> {
    /// Returns a request for a stack and the user's additions, without an older lock.
    pub(super) fn sample(lock: &'a Lock, stack: &'a Stack, added: &'a UserAdditions) -> Self {
        Self {
            base_reference: "base",
            base: &lock.base,
            stack,
            matrix: crate::model::compat::embedded(),
            added,
            previous: None,
            preferred: None,
            fresh: &[],
            renew: false,
            local: &[],
            built: &[],
        }
    }
}
