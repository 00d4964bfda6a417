//! Secrets of a build: served during its steps, kept nowhere.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use secrecy::ExposeSecret as _;

use crate::engine::Secret;
use crate::model::index_address::IndexAddress;
use crate::model::lock::Lock;
use crate::packages::index_secrets;
use crate::settings::NamedSecret;
use crate::store::read_regular;
use crate::workflow::error::CommandError;
use crate::workflow::request_error::RequestError;
use crate::workflow::session::Session;

/// Certificates and index addresses, served during RUN steps and kept nowhere.
pub(crate) fn secrets(
    session: &Session<'_>,
    lock: &Lock,
    further: &BTreeMap<String, IndexAddress>,
) -> Result<Vec<Secret>, CommandError> {
    let mut secrets = index_secrets(&session.index, lock, further);
    secrets.extend(user_secrets(session, lock)?);
    Ok(secrets)
}

/// The secrets that the project's commands name.
pub(crate) fn user_secrets(session: &Session<'_>, lock: &Lock) -> Result<Vec<Secret>, CommandError> {
    let names: BTreeSet<_> = lock.added.run.iter().flat_map(|run| &run.secrets).collect();
    let secret = |name: &String| {
        let bytes = secret_value(session, name)?;
        Ok(Secret { id: format!("user-{name}"), bytes })
    };
    names.into_iter().map(secret).collect()
}

/// The most of a file that holds a secret, bytes: BuildKit takes no larger one.
const LARGEST_SECRET: u64 = 500 << 10;

/// The value of a secret that a run step reads.
fn secret_value(session: &Session<'_>, name: &str) -> Result<Bytes, RequestError> {
    let none = |why: String| RequestError::NoSecret { name: name.to_owned(), why };
    match session.settings.secrets.get(name) {
        Some(NamedSecret::Value(value)) => Ok(Bytes::from(value.expose_secret().to_owned())),
        Some(NamedSecret::File(file)) => {
            read_regular(file, LARGEST_SECRET).map(Bytes::from).map_err(|error| none(error.to_string()))
        }
        Some(NamedSecret::Unset(variable)) => Err(none(format!("{variable} is not set"))),
        None => Err(none("no configuration names it".to_owned())),
    }
}
