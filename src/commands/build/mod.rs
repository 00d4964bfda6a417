//! `build`: one spec, or several at once.

mod files;
mod identical;
mod one;
mod several;
mod tags;

pub(super) use files::{cached_file, files};
pub(super) use one::{Done, build_one};

use super::lock::{lock_path, read_lock, stack};
use super::named_base::{named_base, own_base};
use super::push::{Pushed, may_push, pushable};
use super::session::Session;
use super::supported::supported;
use super::target::machine;
use super::vendor::{lock_in, take, tell};
use super::wanted::{Wanted, wanted};
use super::{CommandError, Exit, vendor_base};
use camino::Utf8Path;

use crate::cli::BuildArgs;
use crate::engine::Network;
use crate::report::Printer;
use crate::settings::Settings;
use crate::stack::Stack;
use crate::verdict::verdict_text;
use one::Built;

pub(super) async fn build(args: &BuildArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let specs = match &args.all_supported {
        Some(filter) => supported(filter, &args.target, settings)?,
        None => args.specs.clone(),
    };
    let mut wanted = match specs.as_slice() {
        [] => wanted(None, &args.project, &args.source, &args.target, settings)?,
        [spec] => wanted(Some(spec), &args.project, &args.source, &args.target, settings)?,
        _ => {
            let named = named_base(settings, &args.source, &args.target).await?;
            return several::build(&specs, named.as_ref(), args, settings).await;
        }
    };
    let offline = args.offline.as_ref().map(|dir| settings.current_dir.join(dir));
    let named = match &offline {
        None => named_base(settings, &wanted.source, &wanted.target).await?,
        Some(folder) => {
            // Before the base is looked into: there is no registry to have it from.
            let session = Session::open(settings, wanted.source.network.as_deref()).await?;
            let (machine, own) = (machine(&wanted.target), own_base(&wanted.source));
            let lent = vendor_base::load(&session, folder, machine, own).await?;
            let named = named_base(settings, &wanted.source, &wanted.target).await;
            vendor_base::forget(&session, lent).await?;
            named?
        }
    };
    let named = named.as_ref();
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named)?;
    let targets = if args.push { pushable(&args.tags)? } else { Vec::new() };
    let mut session = Session::open(settings, wanted.source.network.as_deref()).await?;
    if let Some(folder) = offline {
        without_network(&mut session, &mut wanted, &folder, &stack)?;
    }
    may_push(&session, &targets).await?;
    match Box::pin(build_one(&session, &wanted, stack, named, args)).await? {
        Done::Planned(text) => Printer.text(&text),
        Done::Built(built) => {
            if settings.output.json {
                Printer.json(&built);
            }
            if let Some(error) = built.failure() {
                Printer.say(&verdict_text(&built.verdict));
                return Err(error);
            }
            if !settings.output.json {
                print(&built, settings);
            }
        }
    }
    Ok(Exit::Done)
}

/// Makes a build take everything from a vendor folder: its lock must fit, nothing is asked of any network.
fn without_network(
    session: &mut Session<'_>,
    wanted: &mut Wanted,
    folder: &Utf8Path,
    stack: &Stack,
) -> Result<(), CommandError> {
    tell(session, folder);
    session.network = Network::None;
    wanted.source.locked = true;
    let path = lock_path(session.settings, stack, &wanted.source);
    if read_lock(&path)?.is_none()
        && let Some(path) = lock_in(folder, stack, wanted)?
    {
        wanted.source.lockfile = Some(path);
    }
    let path = lock_path(session.settings, stack, &wanted.source);
    if let Some(lock) = read_lock(&path)? {
        wanted.vendored = take(folder, &lock, &session.store)?;
    }
    Ok(())
}

fn print(built: &Built, settings: &Settings) {
    if !settings.output.quiet {
        Printer.say(&verdict_text(&built.verdict));
        if let Some(because) = &built.unverified_because {
            Printer.say(&format!("{because}: the tag ends in -unverified"));
            Printer.say(&format!(
                "on a machine with a GPU it is for, `envforge verify {}` puts on the tag without it",
                built.tags[0]
            ));
        }
    }
    let pushed = built.pushed.iter().map(Pushed::pinned);
    Printer.text(&built.tags.iter().cloned().chain(pushed).collect::<Vec<_>>().join("\n"));
}
