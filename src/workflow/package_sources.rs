//! Where packages of a stack come from, and the tools that resolve them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Base, Mirrors, discover};
use crate::model::address::Address;
use crate::model::compat::Matrix;
use crate::model::stack::Stack;
use crate::packages::{Archive, IndexSettings, PackageSettings, ResolverContext, vendor_root};
use crate::workflow::session::Session;

/// The mirrors of the distribution; none for one that has its own (its base names them).
pub(crate) fn mirrors(session: &Session<'_>) -> Option<Mirrors> {
    session.mirror_sources().ok().and_then(|sources| discover(&sources).ok())
}

/// Where .deb files may come from: mirrors of the distribution, of the base's own archives, and of nvcc's vendor.
pub(crate) fn deb_mirrors(
    session: &Session<'_>,
    base: &Base,
    stack: &Stack,
    settings: &PackageSettings,
) -> Vec<Address> {
    let found = mirrors(session).into_iter().flat_map(|found| [Some(found.main), found.security]).flatten();
    let vendor = stack.nvcc.as_ref().and_then(|nvcc| nvcc.repository.as_ref());
    let vendor = vendor.map(|repository| vendor_root(repository, &settings.vendor));
    found.chain(base.mirrors.iter().cloned()).chain(vendor).collect()
}

/// What packages are resolved with.
pub(crate) fn package_tools<'a>(
    session: &'a Session<'_>,
    settings: &'a PackageSettings,
) -> ResolverContext<'a> {
    ResolverContext {
        engine: &*session.engine,
        store: &session.store,
        fetcher: &session.fetch,
        settings,
        reporter: Arc::clone(&session.reporter),
    }
}

/// Where packages of a stack come from.
pub(crate) fn package_settings(
    session: &Session<'_>,
    stack: &Stack,
    further: &BTreeMap<String, Address>,
) -> PackageSettings {
    let debian =
        |row: &crate::model::compat::tables::Base| row.distribution == "debian" && row.suite == stack.suite;
    let archives = match mirrors(session) {
        Some(found) if Matrix::current().bases.iter().any(debian) => {
            let component = stack.nvcc.as_ref().and_then(|nvcc| nvcc.component.as_deref());
            Archive::debian(&stack.suite, &found.main, found.security.as_ref(), component)
        }
        _ => Vec::new(),
    };
    PackageSettings {
        index: IndexSettings { further: further.clone(), ..session.index.clone() },
        archives,
        accept_expired: session.settings.mirrors.accept_expired,
        accept_older: session.accept_older,
        network: session.network,
        vendor: session.vendor.clone(),
    }
}
