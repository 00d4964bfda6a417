//! `lock`: makes or updates a lock; `--check` says whether it fits, `--diff` what would change.

use serde::Serialize;

use super::outdated::print;
use crate::failure::Exit;
use crate::model::image::plan::{LOCK_LABEL, UNVERIFIED};
use crate::model::lock::Difference;
use crate::model::misfit::Misfit;
use crate::model::request;
use crate::report::Printer;
use crate::settings::Settings;
use crate::store::Store;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::companions::check_companions;
use crate::workflow::content_digest::digest_of;
use crate::workflow::custom_base::{BaseAtHand, matrix_on, named_base};
use crate::workflow::dated_indexes::check_dated_indexes;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::image_records::forget_other_layout;
use crate::workflow::listed_names::with_listed;
use crate::workflow::local_wheels::{LocalWheels, WheelPlaces};
use crate::workflow::lock::{LockedBuild, check_locked, lock_for};
use crate::workflow::lock_changes::proposed;
use crate::workflow::lock_error::LockingError;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::misfits::misfits_of;
use crate::workflow::named::Named;
use crate::workflow::own_images::image_of_lock;
use crate::workflow::session::{LazySession, Session, SessionOptions};
use crate::workflow::stack::{stack, stack_at_hand};
use crate::workflow::tool_lock::{ToolLockReport, preferring};

/// What `lock --json` prints.
#[derive(Serialize)]
pub(super) struct LockReport<'a> {
    schema: u32,
    name: &'a str,
    lock: &'a str,
    file: &'a str,
    new: bool,
    packages: usize,
    wheels: usize,
    content: Option<&'a str>,
    /// What became of the versions of `--from`.
    from: Option<&'a ToolLockReport>,
    /// What does not go together.
    misfits: &'a [Misfit],
}

/// What `lock --check --json` prints.
#[derive(Serialize)]
struct CheckReport<'a> {
    schema: u32,
    file: &'a str,
    fits: bool,
    differences: &'a [Difference],
}

pub(super) async fn lock(args: &request::Lock, settings: &Settings) -> Result<Exit, CommandError> {
    let wanted = wanted(args.spec.as_ref(), &args.project, &args.source, &args.target, settings)?
        .with_parts(&args.parts)?;
    let wanted = BuildRequest { trust: args.trust, renews: !args.source.locked, ..wanted };
    if args.check {
        return check(&wanted, settings);
    }
    if args.diff {
        return Box::pin(diff(args, &wanted, settings)).await;
    }
    let made = made(args, &wanted, settings).await?;
    if settings.output.json {
        Printer.json(&made.report());
    } else if let (true, Some(digest)) = (args.digest, &made.content) {
        Printer.text(digest);
    } else {
        made.print(args, settings);
    }
    Ok(Exit::Done)
}

/// A lock that is written, with the content digest of its image if one is known.
pub(super) struct Made {
    locked: LockedBuild,
    name: String,
    hash: String,
    content: Option<String>,
    from: Option<ToolLockReport>,
    misfits: Vec<Misfit>,
}

impl Made {
    pub(super) fn report(&self) -> LockReport<'_> {
        let Self { locked, name, hash, content, from, misfits } = self;
        LockReport {
            schema: 1,
            name,
            lock: hash,
            file: locked.path.as_str(),
            new: locked.new,
            packages: locked.lock.debs().count() + locked.lock.base.packages.len(),
            wheels: locked.lock.wheels.len(),
            content: content.as_deref(),
            from: from.as_ref(),
            misfits,
        }
    }

    /// Prints the path of the lock file, and the next command.
    pub(super) fn print(&self, args: &request::Lock, settings: &Settings) {
        Printer.text(self.locked.path.as_str());
        if !settings.output.quiet {
            for line in self.from.as_ref().map(ToolLockReport::lines).unwrap_or_default() {
                Printer.say(&line);
            }
            match &args.spec {
                None => Printer.say(&format!("next: envforge build{}", args.project.arguments())),
                // The other options of the call belong to the next one, too.
                Some(spec) => {
                    let spec = spec.written();
                    let but = if args.from.is_some() { " but those of --from" } else { "" };
                    Printer.say(&format!("next: envforge build {spec}, with the same options{but}"));
                }
            }
        }
    }
}

/// Makes or updates a lock and writes it.
pub(super) async fn made(
    args: &request::Lock,
    wanted: &BuildRequest,
    settings: &Settings,
) -> Result<Made, CommandError> {
    let options = SessionOptions { refresh: args.refresh, ..SessionOptions::of(&wanted.source) };
    let lazy = LazySession::new(settings, options);
    let named = named_base(&lazy, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let wanted = &preferring(wanted, args, &stack, settings)?;
    check_companions(settings, wanted, &stack, matrix_on(named.as_ref(), settings))?;
    check_dated_indexes(settings, wanted, &stack)?;
    check_locked(settings, &stack, named.as_ref(), wanted)?;
    let wanted = &with_listed(wanted, &stack, settings).await?;
    let session = &lazy.session().await?.on_base(named.as_ref());
    session.refreshed().await?;
    let mut locked = Box::pin(lock_for(session, stack, named.as_ref(), wanted)).await?;
    let content = if args.digest {
        forget_other_layout(session, &mut locked);
        Some(content(session, &locked, wanted.spec.written()).await?)
    } else {
        locked.lock.records.content.clone()
    };
    let (name, hash) = (crate::model::image::plan::name(&locked.lock), locked.lock.hash());
    let report = |tool| ToolLockReport::of(tool, &locked.lock, session);
    let from = wanted.preferred.as_ref().map(report);
    let misfits = if locked.new || !settings.output.json {
        std::mem::take(&mut locked.misfits)
    } else {
        misfits_of(&locked.lock, wanted, &session.store, &session.matrix)
    };
    Ok(Made { locked, name, hash, content, from, misfits })
}

/// The content digest of a lock: of its image that was built here, whatever its tags are called, else of the image with its name
/// and its label; it must be the recorded one. Without an image the record alone.
async fn content(session: &Session<'_>, locked: &LockedBuild, spec: &str) -> Result<String, CommandError> {
    if let Some(Named { image, .. }) = image_of_lock(session, &locked.lock.hash()).await? {
        return digest_of(session, locked, &image.id).await;
    }
    let name = crate::model::image::plan::name(&locked.lock);
    let unverified = format!("{name}{UNVERIFIED}");
    for tag in [&name, &unverified] {
        if let Some(image) = session.engine.image(tag).await?
            && image.labels.get(LOCK_LABEL).is_some_and(|hash| *hash == locked.lock.hash())
        {
            return digest_of(session, locked, &image.id).await;
        }
    }
    let not_built = || ImageError::NotBuilt { tag: unverified, spec: spec.to_owned() };
    locked.lock.records.content.clone().ok_or_else(|| not_built().into())
}

/// `lock --check`: whether the lock there is what is wanted. Asks neither engine nor network.
fn check(wanted: &BuildRequest, settings: &Settings) -> Result<Exit, CommandError> {
    let base = BaseAtHand::read(wanted, settings)?;
    let stack = stack_at_hand(settings, wanted, &base)?;
    let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
    let path = lock_path(settings, &stack, &wanted.source);
    let old = read_lock(&path)?;
    let wanted = &wanted.dated_as(old.as_ref());
    let places = WheelPlaces { settings, store: &store, matrix: &base.matrix };
    let supplied = LocalWheels::new(stack, wanted, old.as_ref(), places)?;
    let differences = match &old {
        // Only the name of a base is known that no lock has.
        Some(lock) if base.unread.is_some() => {
            let what = "base".to_owned();
            vec![Difference {
                what,
                locked: Some(lock.base.name.clone()),
                wanted: base.unread.map(|unread| unread.image),
            }]
        }
        Some(lock) => supplied.differences(lock, wanted),
        None => {
            let (file, call) = (path.to_string(), wanted.lock_call());
            return Err(LockingError::Stale { file, differences: Vec::new(), locked: false, call }.into());
        }
    };
    if settings.output.json {
        let fits = differences.is_empty();
        Printer.json(&CheckReport { schema: 1, file: path.as_str(), fits, differences: &differences });
    }
    if differences.is_empty() {
        if !settings.output.json {
            Printer.text(path.as_str());
            if !settings.output.quiet {
                Printer.say("lock file is up to date");
            }
        }
        return Ok(Exit::Done);
    }
    let differences = differences.iter().map(ToString::to_string).collect();
    let (file, call) = (path.to_string(), wanted.lock_call());
    Err(LockingError::Stale { file, differences, locked: false, call }.into())
}

/// `lock --diff`: what `lock` with the same options would change, and why.
async fn diff(
    args: &request::Lock,
    wanted: &BuildRequest,
    settings: &Settings,
) -> Result<Exit, CommandError> {
    let found = Box::pin(proposed(wanted, Some(args), settings)).await?;
    print(&found, settings, args.source.upgrade);
    Ok(Exit::Done)
}
