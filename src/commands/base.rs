//! The base of a build: made or found by a provider, or only listed where the engine runs another processor.
#![expect(clippy::disallowed_methods, reason = "the validity of an index is judged by the time now")]

use std::sync::Arc;

use jiff::Timestamp;

use super::CommandError;
use super::named_base::NamedBase;
use super::session::Session;
use crate::base::{Base, BaseRequest, Means, ProviderChoice, package_list, prepare};
use crate::cli::LockSource;
use crate::compat::Matrix;
use crate::lock::{BaseProvider, Lock};
use crate::stack::Stack;
use crate::versions::Machine;

/// The base of a stack. `named` is the image the user named, looked into; `lock` pins it.
pub(super) async fn base_of(
    session: &Session<'_>,
    stack: &Stack,
    named: Option<&NamedBase>,
    source: &LockSource,
    lock: Option<&Lock>,
) -> Result<Base, CommandError> {
    let request = BaseRequest {
        suite: stack.suite.clone(),
        provider: match source.provider() {
            // What the user names is that image and nothing made in its place.
            _ if named.is_some() => ProviderChoice::Image,
            "image" => ProviderChoice::Image,
            "bootstrap" => ProviderChoice::Bootstrap,
            _ => ProviderChoice::Auto,
        },
        locked: lock.map(|lock| &lock.base),
        upgrade: source.upgrade,
        ..request(session, &stack.base, stack.machine)?
    };
    if stack.machine != session.engine.info().machine {
        return listed(session, request).await;
    }
    let mut base = prepare(&means(session), &request).await?;
    base.glibc = Matrix::current().base(&stack.base).map(|row| row.glibc.clone());
    if let Some(NamedBase { found, .. }) = named {
        base.glibc = Some(found.glibc.clone());
        base.cuda = !found.cuda.is_empty();
        base.mirrors.clone_from(&found.mirrors);
    }
    Ok(base)
}

/// A request for an image of that name, with everything the session knows.
pub(super) fn request<'a>(
    session: &Session<'_>,
    name: &str,
    machine: Machine,
) -> Result<BaseRequest<'a>, CommandError> {
    Ok(BaseRequest {
        name: name.to_owned(),
        suite: String::new(),
        provider: ProviderChoice::Image,
        machine,
        mirrors: session.mirror_sources()?,
        locked: None,
        upgrade: false,
        accept_expired: session.settings.mirrors.accept_expired,
        now: Timestamp::now(),
    })
}

/// What a base is made with.
pub(super) fn means<'a>(session: &'a Session<'_>) -> Means<'a> {
    Means {
        engine: &*session.engine,
        registry: &session.registry,
        store: &session.store,
        fetch: &session.fetch,
        reporter: Arc::clone(&session.reporter),
    }
}

/// The base for a processor the engine does not have: its packages are chosen and nothing is installed. Its reference is
/// the same base for the engine's own processor, in which everything above it is resolved.
async fn listed(session: &Session<'_>, request: BaseRequest<'_>) -> Result<Base, CommandError> {
    let by_image = request.locked.is_some_and(|locked| locked.provider == BaseProvider::Image);
    if by_image || request.provider == ProviderChoice::Image {
        return Err(other_processor(session, request.machine.platform()));
    }
    let means = means(session);
    let packages = package_list(&means, &request).await?;
    let own = BaseRequest { machine: means.engine.info().machine, locked: None, ..request };
    let base = prepare(&means, &own).await?;
    let provider = BaseProvider::Bootstrap;
    Ok(Base { provider, packages, digest: None, published: None, content: None, archive: None, ..base })
}

/// Refuses what would have to run on another processor than the engine's.
pub(super) fn check_processor(session: &Session<'_>, stack: &Stack) -> Result<(), CommandError> {
    if stack.machine == session.engine.info().machine {
        return Ok(());
    }
    Err(other_processor(session, stack.machine.platform()))
}

fn other_processor(session: &Session<'_>, wanted: &'static str) -> CommandError {
    CommandError::OtherProcessor { wanted, engine: session.engine.info().machine.platform() }
}
