//! The image that resolves: the default base of the matrix, made from the distribution's signed packages where a mirror of them is
//! known, else pulled. Neither a project nor a lock has a say in it.
#![expect(clippy::disallowed_methods, reason = "reads the clock")]

use async_trait::async_trait;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::base::{Base, BaseError, BaseRequest, Distribution, discover, prepare};
use crate::model::compat::tables::Base as BaseRow;
use crate::model::lock::{BaseProvider, LockedBase, LockedDeb};
use crate::model::request::BaseChoice;
use crate::model::stack::Stack;
use crate::model::versions::Machine;
use crate::packages::{PackagesError, Resolver, ResolverImage};
use crate::report::Event;
use crate::workflow::base_tools::{means, request};
use crate::workflow::package_sources::archives;
use crate::workflow::session::Session;

/// How long an image is used before one with newer packages is made, seconds.
const DAY: i64 = 24 * 60 * 60;
/// How long it is used where no newer one can be made, seconds.
const LASTS: i64 = 30 * DAY;
/// What a project's code could once write to: the volume of older releases.
const OLD_VOLUME: &str = "envforge-resolve";

/// The image that was made last, a record of the state directory.
#[derive(Serialize, Deserialize)]
struct Record {
    /// Seconds since 1970.
    made: i64,
    base: LockedBase,
    /// The mirrors that it was read from, as [`BaseRequest::mirror_hash`]; `None`: no new lock starts from it.
    #[serde(default)]
    mirrors: Option<String>,
}

/// A base that was made in the last day, from which a new lock may start.
pub(crate) struct RecentBase {
    pub(crate) packages: Vec<LockedDeb>,
    /// `base of 2026-11-26 06:12 UTC`.
    pub(crate) text: String,
}

impl Record {
    /// Whether it is of a base with that name, and made in so many seconds before `now`.
    fn is_of(&self, name: &str, (within, now): (i64, i64)) -> bool {
        self.base.name == name && (0..within).contains(&now.saturating_sub(self.made))
    }

    /// `base of 2026-11-26 06:12 UTC`.
    fn text(&self) -> String {
        let made = Timestamp::from_second(self.made).unwrap_or_default();
        format!("base of {}", made.strftime("%Y-%m-%d %H:%M UTC"))
    }
}

#[async_trait(?Send)]
impl ResolverImage for Session<'_> {
    async fn resolver(&self) -> Result<Resolver, PackagesError> {
        self.resolver.get_or_try_init(|| prepared(self)).await.cloned()
    }
}

impl Session<'_> {
    /// Makes the image that resolves again, if that was asked for, also where nothing is to be resolved.
    pub(crate) async fn refreshed(&self) -> Result<(), PackagesError> {
        if self.refresh {
            self.resolver().await?;
        }
        Ok(())
    }
}

async fn prepared(session: &Session<'_>) -> Result<Resolver, PackagesError> {
    remove_old_volume(session).await;
    let row = session.matrix.default_base().expect("a test reads the matrix");
    let record = record(session)?;
    let is_recent = |record: &&Record| !session.refresh && record.is_of(&row.name, (DAY, now()));
    let recent = match record.as_ref().filter(is_recent) {
        Some(recent) => kept(session, row, recent).await?,
        None => None,
    };
    let image = match recent {
        Some(image) => image,
        None => newer(session, row, record.as_ref()).await?,
    };
    Ok(Resolver {
        image,
        archives: archives(session, &row.suite, None),
        lists: session.store.engine_name("lists")?,
        index_cache: session.store.engine_name("index")?,
    })
}

fn now() -> i64 {
    Timestamp::now().as_second()
}

/// The image of a record, and says from when it is; `None`: it has to be made again.
async fn kept(
    session: &Session<'_>,
    row: &BaseRow,
    record: &Record,
) -> Result<Option<String>, PackagesError> {
    let wanted = of_row(session, row, BaseChoice::Auto, Some(&record.base))?;
    match prepare(&means(session), &wanted).await {
        Ok(base) => {
            session.reporter.report(Event::Note { text: record.text() });
            Ok(Some(base.reference))
        }
        Err(error) => {
            tracing::debug!(%error, "the image that resolves is made again");
            Ok(None)
        }
    }
}

/// A new image. Where none can be made, and none was asked for, that of a record is used for a while.
async fn newer(session: &Session<'_>, row: &BaseRow, old: Option<&Record>) -> Result<String, PackagesError> {
    let error = match made(session, row).await {
        Ok(image) => return Ok(image),
        Err(error) => error,
    };
    let old = old.filter(|old| !session.refresh && old.is_of(&row.name, (LASTS, now())));
    let Some(old) = old else { return Err(error) };
    let Some(image) = kept(session, row, old).await? else { return Err(error) };
    let text = format!("no newer base can be made, so packages are resolved in the {}: {error}", old.text());
    session.reporter.report(Event::Warning { text });
    Ok(image)
}

/// Makes an image of the packages that there are now.
async fn made(session: &Session<'_>, row: &BaseRow) -> Result<String, PackagesError> {
    let text = format!("preparing {}, in which packages are resolved; it is kept for a day", row.name);
    session.reporter.report(Event::Note { text });
    let wanted = of_row(session, row, provider(session, row)?, None)?;
    let mirrors = wanted.mirror_hash();
    // An image that only has the name on this engine may be anybody's.
    let upgrade = wanted.provider == BaseChoice::Image;
    let base = prepare(&means(session), &BaseRequest { upgrade, ..wanted }).await?;
    if upgrade && base.published.is_none() {
        let why = "no registry has the image of that name on the engine, and packages are resolved in it"
            .to_owned();
        return Err(BaseError::NoBase { reference: row.name.clone(), why }.into());
    }
    remember(session, &base, mirrors)?;
    Ok(base.reference)
}

/// What is known of the image that was made last. A damaged record is none.
fn record(session: &Session<'_>) -> Result<Option<Record>, PackagesError> {
    let bytes = session.store.read_state(&place(session.engine.info().machine))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The base that was made here of the same suite in the last day, if a new lock may start from it. `mirrors`: the hash of those that
/// the base would be read from now.
pub(crate) fn recent_base(
    session: &Session<'_>,
    stack: &Stack,
    mirrors: Option<&str>,
) -> Result<Option<RecentBase>, PackagesError> {
    if stack.machine != session.engine.info().machine {
        return Ok(None);
    }
    let is_it = |record: &Record| is_of_stack(record, stack, now()) && is_from(record, mirrors);
    let recent = record(session)?.filter(is_it);
    Ok(recent.map(|record| RecentBase { text: record.text(), packages: record.base.packages }))
}

fn is_of_stack(record: &Record, stack: &Stack, now: i64) -> bool {
    record.is_of(&stack.base, (DAY, now))
        && record.base.suite == stack.suite
        && record.base.provider == BaseProvider::Bootstrap
        && !record.base.packages.is_empty()
}

/// Whether it was read from these mirrors, and checked in full.
fn is_from(record: &Record, mirrors: Option<&str>) -> bool {
    mirrors.is_some() && record.mirrors.as_deref() == mirrors
}

/// Where the record of the image is.
fn place(machine: Machine) -> String {
    format!("base/resolver-{machine}.json")
}

/// Takes a base that was made just now, of the packages that its suite has today, as the image that resolves, if it can be that.
/// `mirrors`: the hash of those it was read from.
pub(crate) fn remember_new_base(
    session: &Session<'_>,
    base: &Base,
    mirrors: String,
) -> Result<(), PackagesError> {
    let is_default = session.matrix.default_base().is_some_and(|row| row.name == base.name);
    if is_default && base.provider == BaseProvider::Bootstrap {
        remember(session, base, Some(mirrors))
    } else {
        Ok(())
    }
}

fn remember(session: &Session<'_>, base: &Base, mirrors: Option<String>) -> Result<(), PackagesError> {
    let record = Record { made: now(), base: base.locked(), mirrors };
    let text = serde_json::to_string(&record).expect("a record is plain text");
    Ok(session.store.write_state(&place(session.engine.info().machine), text.as_bytes())?)
}

/// The request for that row on the engine's own processor.
fn of_row<'a>(
    session: &Session<'_>,
    row: &BaseRow,
    provider: BaseChoice,
    locked: Option<&'a LockedBase>,
) -> Result<BaseRequest<'a>, BaseError> {
    let machine = session.engine.info().machine;
    Ok(BaseRequest { suite: row.suite.clone(), provider, locked, ..request(session, &row.name, machine)? })
}

/// From packages, whose signatures are checked, where a mirror is known.
fn provider(session: &Session<'_>, row: &BaseRow) -> Result<BaseChoice, BaseError> {
    let distribution = Distribution::of(&row.suite).unwrap_or(Distribution::Debian);
    let has_mirror = discover(&session.mirror_sources()?, distribution).is_ok();
    Ok(if has_mirror { BaseChoice::Bootstrap } else { BaseChoice::Image })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    /// 2026-11-26 06:12 UTC.
    const MADE: i64 = 1_795_673_520;

    fn record() -> Record {
        let deb = LockedDeb {
            name: "libc6".to_owned(),
            version: "2.36-9".to_owned(),
            architecture: "amd64".to_owned(),
            sha256: "0".repeat(64),
            size: 1,
            path: "pool/libc6.deb".to_owned(),
        };
        let base = sample::lock().base;
        let base = LockedBase { provider: BaseProvider::Bootstrap, packages: vec![deb], ..base };
        Record { made: MADE, base, mirrors: Some("a".to_owned()) }
    }

    fn stack() -> Stack {
        let LockedBase { name, suite, .. } = record().base;
        Stack { base: name, suite, ..sample::lock().stack }
    }

    #[test]
    fn record_says_from_when_it_is() {
        assert_eq!(record().text(), "base of 2026-11-26 06:12 UTC");
    }

    #[test]
    fn new_lock_starts_from_a_base_of_the_last_day() {
        let is_used = |record: &Record, now| is_of_stack(record, &stack(), now);
        assert!(is_used(&record(), MADE) && is_used(&record(), MADE + DAY - 1));
        assert!(!is_used(&record(), MADE + DAY), "it is a day old");
        assert!(!is_used(&record(), MADE - 1), "the clock was wrong");
    }

    #[test]
    fn new_lock_starts_from_a_base_of_the_same_mirrors_that_was_checked_in_full() {
        assert!(is_from(&record(), Some("a")));
        assert!(!is_from(&record(), Some("b")), "another mirror");
        let unchecked = Record { mirrors: None, ..record() };
        assert!(!is_from(&unchecked, Some("a")) && !is_from(&unchecked, None));
        assert!(!is_from(&record(), None), "an index that this request would accept is read");
        let mut older = serde_json::to_value(record()).expect("plain");
        older.as_object_mut().expect("a record").remove("mirrors");
        let older: Record = serde_json::from_value(older).expect("that of an older release");
        assert!(!is_from(&older, Some("a")));
    }

    #[test]
    fn base_of_another_name_suite_or_provider_is_not_used() {
        let changes: [fn(&mut LockedBase); 4] = [
            |base| base.name = "debian:0".to_owned(),
            |base| base.suite = "other".to_owned(),
            |base| base.provider = BaseProvider::Image,
            |base| base.packages.clear(),
        ];
        for change in changes {
            let mut other = record();
            change(&mut other.base);
            assert!(!is_of_stack(&other, &stack(), MADE), "{:?}", other.base.name);
        }
    }
}
