//! The base of a build: made or found by a provider, or only listed where the engine runs another processor.

use crate::agent;
use crate::base::{Base, BaseRequest, ProviderChoice, package_list, prepare};
use crate::model::compat::Matrix;
use crate::model::lock::{BaseProvider, Lock};
use crate::model::request::LockOptions;
use crate::model::stack::Stack;
use crate::workflow::base_tools::{means, request};
use crate::workflow::check_error::CheckError;
use crate::workflow::custom_base::NamedBase;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The base of a stack. `named` is the image the user named, looked into; `lock` pins it.
pub(crate) async fn base_of(
    session: &Session<'_>,
    stack: &Stack,
    named: Option<&NamedBase>,
    source: &LockOptions,
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

/// The base for a processor the engine does not have: its packages are chosen and nothing is installed. Its reference is
/// the same base for the engine's own processor, in which everything above it is resolved.
async fn listed(session: &Session<'_>, request: BaseRequest<'_>) -> Result<Base, CommandError> {
    let by_image = request.locked.is_some_and(|locked| locked.provider == BaseProvider::Image);
    if by_image || request.provider == ProviderChoice::Image {
        return Err(other_processor(session, request.machine.platform()).into());
    }
    let means = means(session);
    let packages = package_list(&means, &request).await?;
    let own = BaseRequest { machine: means.engine.info().machine, locked: None, ..request };
    let base = prepare(&means, &own).await?;
    let provider = BaseProvider::Bootstrap;
    Ok(Base { provider, packages, digest: None, published: None, content: None, archive: None, ..base })
}

/// Refuses what would have to run on another processor than the engine's.
pub(crate) fn check_processor(session: &Session<'_>, stack: &Stack) -> Result<(), CommandError> {
    if stack.machine == session.engine.info().machine {
        return Ok(());
    }
    Err(other_processor(session, stack.machine.platform()).into())
}

fn other_processor(session: &Session<'_>, wanted: &'static str) -> CheckError {
    CheckError::OtherProcessor { wanted, engine: session.engine.info().machine.platform() }
}

/// Rejects a base in which the agent cannot start: its image could not be verified.
pub(crate) fn check_agent_starts(base: &Base) -> Result<(), CommandError> {
    match (agent::needed_glibc(), &base.glibc) {
        (Some(needs), Some(glibc)) if needs > *glibc => Err(CheckError::AgentTooNew {
            base: base.name.clone(),
            glibc: glibc.to_string(),
            needs: needs.to_string(),
        }
        .into()),
        _ => Ok(()),
    }
}
