//! How a new lock would differ from the one that is there. Nothing is written.

use crate::model::lock::Change;
use crate::model::request;
use crate::settings::Settings;
use crate::workflow::base::base_of;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::companions::check_companions;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::listed_names::with_listed;
use crate::workflow::local_wheels::{LocalWheels, WheelPlaces};
use crate::workflow::lock::resolve_lock;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::{LazySession, SessionOptions};
use crate::workflow::stack::stack;
use crate::workflow::tool_lock::{ToolLockReport, preferring};

/// The lock there, and how a new one would differ.
pub(crate) struct Proposed {
    pub(crate) file: String,
    /// When the lock there was made; `None`: there is none yet.
    pub(crate) created: Option<String>,
    pub(crate) because: Vec<String>,
    pub(crate) changes: Vec<Change>,
    /// What would become of the versions of `--from`.
    pub(crate) from: Option<ToolLockReport>,
}

/// The changes that a new lock would make; `args` is the request of `lock`, whose `--from` may steer versions.
pub(crate) async fn proposed(
    wanted: &BuildRequest,
    args: Option<&request::Lock>,
    settings: &Settings,
) -> Result<Proposed, CommandError> {
    let refresh = args.is_some_and(|args| args.refresh);
    let options = SessionOptions { refresh, ..SessionOptions::of(&wanted.source) };
    let lazy = LazySession::new(settings, options);
    let named = named_base(&lazy, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let wanted = &match args {
        Some(args) => preferring(wanted, args, &stack, settings)?,
        None => wanted.clone(),
    };
    let wanted = &with_listed(wanted, &stack, settings).await?;
    let session = &lazy.session().await?.on_base(named.as_ref());
    session.refreshed().await?;
    let path = lock_path(settings, &stack, &wanted.source);
    let old = read_lock(&path)?;
    if old.is_none() && wanted.preferred.is_none() {
        let (file, call) = (path.to_string(), wanted.lock_call());
        return Err(LockingError::Stale { file, differences: Vec::new(), locked: false, call }.into());
    }
    let wanted = &wanted.dated_as(old.as_ref());
    let supplied = LocalWheels::new(stack, wanted, old.as_ref(), WheelPlaces::of(session))?;
    let stack = &supplied.stack;
    check_companions(settings, wanted, stack, &session.matrix)?;
    let differences = old.iter().flat_map(|old| supplied.differences(old, wanted));
    let because = differences.map(|difference| difference.to_string()).collect();
    let kept = old.as_ref().filter(|_| !wanted.source.upgrade);
    let same_base = kept.filter(|old| old.stack.base == stack.base);
    let base = base_of(session, stack, named.as_ref(), wanted, same_base).await?;
    let new = resolve_lock(session, supplied, wanted, &base, kept.cloned()).await?;
    Ok(Proposed {
        file: path.to_string(),
        created: old.as_ref().map(|old| old.records.created.clone()),
        because,
        changes: old.map(|old| old.changes(&new)).unwrap_or_default(),
        from: wanted.preferred.as_ref().map(|tool| ToolLockReport::of(tool, &new, session)),
    })
}
