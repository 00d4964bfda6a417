//! The base of a build: made or found by a provider, or only listed where the engine runs another processor.

use crate::agent;
use crate::base::{Base, BaseInfo, BaseRequest, Distribution, package_list, prepare};
use crate::model::address::Address;
use crate::model::lock::{BaseProvider, Lock};
use crate::model::request::BaseChoice;
use crate::model::stack::Stack;
use crate::report::Event;
use crate::workflow::base_tools::{means, request};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::check_error::CheckError;
use crate::workflow::custom_base::NamedBase;
use crate::workflow::error::CommandError;
use crate::workflow::package_sources::archives;
use crate::workflow::project_trust::require_sources;
use crate::workflow::resolver_image::{RecentBase, recent_base, remember_new_base};
use crate::workflow::session::Session;

/// The base of a stack. `named` is the image the user named, looked into; `lock` pins it.
pub(crate) async fn base_of(
    session: &Session<'_>,
    stack: &Stack,
    named: Option<&NamedBase>,
    wanted: &BuildRequest,
    lock: Option<&Lock>,
) -> Result<Base, CommandError> {
    let source = &wanted.source;
    let request = BaseRequest {
        suite: stack.suite.clone(),
        // What the user names is that image and nothing made in its place.
        provider: if named.is_some() { BaseChoice::Image } else { source.provider() },
        locked: lock.map(|lock| &lock.base),
        upgrade: source.upgrade,
        ..request(session, &stack.base, stack.machine)?
    };
    let is_other = stack.machine != session.engine.info().machine;
    let mut base =
        if is_other { listed(session, request).await? } else { prepared(session, stack, request).await? };
    base.glibc = session.matrix.base(&stack.base).map(|row| row.glibc.clone());
    if let Some(NamedBase { found, .. }) = named.filter(|_| !is_other) {
        base.cuda = !found.cuda.is_empty();
        base.mirrors = sources_of(session, stack, found, wanted).await?;
    }
    Ok(base)
}

/// The base of a request in the engine. A new lock starts from that of the last day, or its base becomes that.
async fn prepared(
    session: &Session<'_>,
    stack: &Stack,
    request: BaseRequest<'_>,
) -> Result<Base, CommandError> {
    let is_new = request.locked.is_none();
    let mirrors = request.mirror_hash();
    let recent =
        if is_new && !request.upgrade { recent_base(session, stack, mirrors.as_deref())? } else { None };
    let packages = recent.as_ref().map(|recent| recent.packages.as_slice());
    let base = prepare(&means(session), &BaseRequest { recent: packages, ..request }).await?;
    match (recent, mirrors) {
        (Some(RecentBase { packages, text }), _) if packages == base.packages => {
            session.reporter.report(Event::Note { text: format!("a new lock starts from the {text}") });
        }
        (_, Some(mirrors)) if is_new => remember_new_base(session, &base, mirrors)?,
        _ => {}
    }
    Ok(base)
}

/// The apt sources of a base. Those that its distribution does not have, in a base that a project names, are used where the user
/// allows it, and only where no mirror of the distribution is known here.
async fn sources_of(
    session: &Session<'_>,
    stack: &Stack,
    found: &BaseInfo,
    wanted: &BuildRequest,
) -> Result<Vec<Address>, CommandError> {
    let (own, strange): (Vec<_>, Vec<_>) = found.mirrors.iter().cloned().partition(is_of_distribution);
    if !wanted.base_of_project || strange.is_empty() {
        return Ok(found.mirrors.clone());
    }
    if !archives(session, &stack.suite, None).is_empty() {
        return Ok(own);
    }
    require_sources(session, wanted, &strange).await?;
    Ok(found.mirrors.clone())
}

/// Whether an address is on a server of a distribution.
fn is_of_distribution(address: &Address) -> bool {
    address.url().host_str().is_some_and(Distribution::has_server)
}

/// The base for a processor the engine does not have: its packages are chosen and nothing is installed. Its reference is
/// the same base for the engine's own processor, in which everything above it is resolved.
async fn listed(session: &Session<'_>, request: BaseRequest<'_>) -> Result<Base, CommandError> {
    let by_image = request.locked.is_some_and(|locked| locked.provider == BaseProvider::Image);
    if by_image || request.provider == BaseChoice::Image {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_of_a_distribution_are_known_by_name() {
        for (address, is_own) in [
            ("http://deb.debian.org/debian", true),
            ("https://security.ubuntu.com:443/ubuntu", true),
            ("http://de.archive.ubuntu.com/ubuntu/", true),
            ("http://ftp.de.debian.org/debian/", true),
            ("https://salsa.debian.org/anybody/debian", false),
            ("https://people.ubuntu.com/~anybody/", false),
            ("http://debian.org.evil.test/debian", false),
            ("http://evildebian.org/debian", false),
            ("http://u@deb.debian.org.test/debian", false),
            ("http://169.254.169.254/latest", false),
            ("http://[::1]:8080/debian", false),
        ] {
            let address: Address = address.parse().expect("an address");
            assert_eq!(is_of_distribution(&address), is_own, "{address}");
        }
    }
}
