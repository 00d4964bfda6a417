//! The image that resolves: the default base of the matrix, made from the distribution's signed packages where a mirror of them is
//! known, else pulled. Neither a project nor a lock has a say in it.
#![expect(clippy::disallowed_methods, reason = "reads the clock")]

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::{Base, BaseError, BaseRequest, Distribution, ProviderChoice, discover, prepare};
use crate::model::compat::Matrix;
use crate::model::compat::tables::Base as BaseRow;
use crate::model::lock::{BaseProvider, LockedBase};
use crate::model::versions::Machine;
use crate::packages::{PackagesError, Resolver, ResolverImage};
use crate::report::Event;
use crate::workflow::base_tools::{means, request};
use crate::workflow::package_sources::archives;
use crate::workflow::session::Session;

/// How long an image is used before one with newer packages is made, seconds.
const LASTS: i64 = 30 * 24 * 60 * 60;
/// What a project's code could once write to: the volume of older releases.
const OLD_VOLUME: &str = "envforge-resolve";

/// The image that was made last, a record of the state directory.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Seconds since 1970.
    made: i64,
    base: LockedBase,
}

#[async_trait(?Send)]
impl ResolverImage for Session<'_> {
    async fn resolver(&self) -> Result<Resolver, PackagesError> {
        self.resolver.get_or_try_init(|| prepared(self)).await.cloned()
    }
}

async fn prepared(session: &Session<'_>) -> Result<Resolver, PackagesError> {
    remove_old_volume(session).await;
    let store = &session.store;
    let machine = session.engine.info().machine;
    let row = Matrix::current().default_base().expect("a test reads the matrix");
    // Beside the records of bases, with which it is of use.
    let place = place(machine);
    let record: Option<Record> =
        store.read_state(&place)?.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let now = Timestamp::now().as_second();
    let mut image = None;
    if let Some(Record { made, base }) = &record
        && (0..LASTS).contains(&(now - made))
        && base.name == row.name
    {
        let wanted = of_row(session, row, ProviderChoice::Auto, Some(base))?;
        match prepare(&means(session), &wanted).await {
            Ok(base) => image = Some(base.reference),
            Err(error) => tracing::debug!(%error, "the image that resolves is made again"),
        }
    }
    if image.is_none() {
        let text = format!("preparing {}, in which packages are resolved; it is kept for 30 days", row.name);
        session.reporter.report(Event::Note { text });
        let wanted = of_row(session, row, provider(session, row)?, None)?;
        // An image that only has the name on this engine may be anybody's.
        let upgrade = wanted.provider == ProviderChoice::Image;
        let base = prepare(&means(session), &BaseRequest { upgrade, ..wanted }).await?;
        if upgrade && base.published.is_none() {
            let why = "no registry has the image of that name on the engine, and packages are resolved in it"
                .to_owned();
            return Err(BaseError::NoBase { reference: row.name.clone(), why }.into());
        }
        remember(session, &base)?;
        image = Some(base.reference);
    }
    Ok(Resolver {
        image: image.expect("it was made"),
        archives: archives(session, &row.suite, None),
        lists: store.engine_name("lists")?,
        index_cache: store.engine_name("index")?,
    })
}

/// Where the record of the image is.
fn place(machine: Machine) -> String {
    format!("base/resolver-{machine}.json")
}

/// Takes a base that was made just now, of the packages that its suite has today, as the image that resolves, if it can be that.
pub(crate) fn remember_new_base(session: &Session<'_>, base: &Base) -> Result<(), PackagesError> {
    let is_default = Matrix::current().default_base().is_some_and(|row| row.name == base.name);
    if is_default && base.provider == BaseProvider::Bootstrap { remember(session, base) } else { Ok(()) }
}

fn remember(session: &Session<'_>, base: &Base) -> Result<(), PackagesError> {
    let record = Record { made: Timestamp::now().as_second(), base: base.locked() };
    let text = serde_json::to_string(&record).expect("a record is plain text");
    Ok(session.store.write_state(&place(session.engine.info().machine), text.as_bytes())?)
}

/// The request for that row on the engine's own processor.
fn of_row<'a>(
    session: &Session<'_>,
    row: &BaseRow,
    provider: ProviderChoice,
    locked: Option<&'a LockedBase>,
) -> Result<BaseRequest<'a>, BaseError> {
    let machine = session.engine.info().machine;
    Ok(BaseRequest { suite: row.suite.clone(), provider, locked, ..request(session, &row.name, machine)? })
}

/// From packages, whose signatures are checked, where a mirror is known.
fn provider(session: &Session<'_>, row: &BaseRow) -> Result<ProviderChoice, BaseError> {
    let distribution = Distribution::of(&row.suite).unwrap_or(Distribution::Debian);
    let has_mirror = discover(&session.mirror_sources()?, distribution).is_ok();
    Ok(if has_mirror { ProviderChoice::Bootstrap } else { ProviderChoice::Image })
}

/// Removes the volume of older releases. One that a container uses stays, for the next time.
async fn remove_old_volume(session: &Session<'_>) {
    if !session.containers.has_volume(OLD_VOLUME).await.unwrap_or_default() {
        return;
    }
    match session.containers.remove_volume(OLD_VOLUME).await {
        Ok(()) => {
            let text = format!("removed volume `{OLD_VOLUME}`, which this version does not use");
            session.reporter.report(Event::Note { text });
        }
        Err(error) => tracing::debug!(%error, "keeping volume `{OLD_VOLUME}`"),
    }
}
