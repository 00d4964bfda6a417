//! Where packages of a stack come from, and the tools that resolve them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::base::{Base, Distribution, Mirrors, discover};
use crate::model::address::Address;
use crate::model::index_address::IndexAddress;
use crate::model::stack::Stack;
use crate::packages::{Archive, IndexSettings, PackageSettings, ResolverContext, vendor_root};
use crate::workflow::session::Session;

/// The mirrors of a distribution; none for a base that has its own and names them.
fn mirrors(session: &Session<'_>, distribution: Distribution) -> Option<Mirrors> {
    session.mirror_sources().ok().and_then(|sources| discover(&sources, distribution).ok())
}

/// Where .deb files may come from: mirrors of the distribution, of the base's own archives, and of nvcc's vendor.
pub(crate) fn deb_mirrors(
    session: &Session<'_>,
    base: &Base,
    stack: &Stack,
    settings: &PackageSettings,
) -> Vec<Address> {
    let distribution = Distribution::of(&stack.suite).unwrap_or(Distribution::Debian);
    let found = mirrors(session, distribution)
        .into_iter()
        .flat_map(|found| [Some(found.main), found.security])
        .flatten();
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
        image: session,
        store: &session.store,
        fetcher: &session.fetch,
        settings,
        reporter: Arc::clone(&session.reporter),
    }
}

/// The archives of a suite on mirrors that are known here; none: a base names its own. `component` is one of Debian's beside `main`.
pub(crate) fn archives(session: &Session<'_>, suite: &str, component: Option<&str>) -> Vec<Archive> {
    let Some(distribution) = Distribution::of(suite) else { return Vec::new() };
    let Some(found) = mirrors(session, distribution) else { return Vec::new() };
    let more = match distribution {
        Distribution::Debian => component,
        // Python's headers and pip are there.
        Distribution::Ubuntu => Some("universe"),
    };
    Archive::of_release(suite, &found.main, found.security.as_ref(), more)
}

/// Where packages of a stack come from.
pub(crate) fn package_settings(
    session: &Session<'_>,
    stack: &Stack,
    further: &BTreeMap<String, IndexAddress>,
) -> PackageSettings {
    let component = stack.nvcc.as_ref().and_then(|nvcc| nvcc.component.as_deref());
    let of_project = further.keys().any(|name| !session.settings.index.named.contains_key(name));
    PackageSettings {
        index: IndexSettings { further: further.clone(), of_project, ..session.index.clone() },
        archives: archives(session, &stack.suite, component),
        accept_expired: session.settings.mirrors.accept_expired,
        accept_older: session.accept_older,
        network: session.network,
        vendor: session.vendor.clone(),
    }
}
