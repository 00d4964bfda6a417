//! What a base is made with, and requests for one.
#![expect(clippy::disallowed_methods, reason = "reads the clock")]

use std::sync::Arc;

use jiff::Timestamp;

use crate::base::{BaseError, BaseRequest, BaseTools};
use crate::model::request::BaseChoice;
use crate::model::versions::Machine;
use crate::workflow::session::Session;

/// A request for an image of that name, with everything the session knows.
pub(crate) fn request<'a>(
    session: &Session<'_>,
    name: &str,
    machine: Machine,
) -> Result<BaseRequest<'a>, BaseError> {
    Ok(BaseRequest {
        name: name.to_owned(),
        suite: String::new(),
        experimental: session.matrix.base(name).and_then(|row| row.experimental.clone()),
        provider: BaseChoice::Image,
        machine,
        mirrors: session.mirror_sources()?,
        locked: None,
        recent: None,
        upgrade: false,
        accept_expired: session.settings.mirrors.accept_expired,
        accept_older: session.accept_older,
        now: Timestamp::now(),
    })
}

/// What a base is made with.
pub(crate) fn means<'a>(session: &'a Session<'_>) -> BaseTools<'a> {
    BaseTools {
        engine: &*session.engine,
        registry: &session.registry,
        store: &session.store,
        fetch: &session.fetch,
        reporter: Arc::clone(&session.reporter),
    }
}
