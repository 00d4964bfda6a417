//! How a new lock would differ from the one that is there. Nothing is written.

use crate::model::lock::Change;
use crate::model::request;
use crate::settings::Settings;
use crate::workflow::base::base_of;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::companions::check_companions;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::local_wheels::LocalWheels;
use crate::workflow::lock::resolve_lock;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::session::Session;
use crate::workflow::stack::stack;
use crate::workflow::tool_lock::preferring;

/// The lock there, and how a new one would differ.
pub(crate) struct Proposed {
    pub(crate) file: String,
    pub(crate) created: String,
    pub(crate) because: Vec<String>,
    pub(crate) changes: Vec<Change>,
}

/// The changes that a new lock would make; `args` is the request of `lock`, whose `--from` may steer versions.
pub(crate) async fn proposed(
    wanted: &BuildRequest,
    args: Option<&request::Lock>,
    settings: &Settings,
) -> Result<Proposed, CommandError> {
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let wanted = &match args {
        Some(args) => preferring(wanted, args, &stack, settings)?,
        None => wanted.clone(),
    };
    let session = Session::open(settings, Some(&wanted.source)).await?;
    let path = lock_path(settings, &stack, &wanted.source);
    let Some(old) = read_lock(&path)? else {
        return Err(
            LockingError::Stale { file: path.to_string(), differences: Vec::new(), locked: false }.into()
        );
    };
    let wanted = &wanted.dated_as(Some(&old));
    let supplied = LocalWheels::new(stack, wanted, Some(&old), settings, &session.store)?;
    let stack = &supplied.stack;
    check_companions(settings, wanted, stack)?;
    let because = supplied.differences(&old, wanted).iter().map(ToString::to_string).collect();
    let kept = (!wanted.source.upgrade).then_some(&old);
    let same_base = kept.filter(|old| old.stack.base == stack.base);
    let base = base_of(&session, stack, named.as_ref(), wanted, same_base).await?;
    let new = resolve_lock(&session, supplied, wanted, &base, kept.cloned()).await?;
    Ok(Proposed {
        file: path.to_string(),
        created: old.records.created.clone(),
        because,
        changes: old.changes(&new),
    })
}
