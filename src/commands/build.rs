//! `build`: one spec, or several at once.

use camino::Utf8Path;

use crate::engine::Network;
use crate::failure::Exit;
use crate::model::request;
use crate::model::stack::Stack;
use crate::model::verdict::{Detail, Proof, verdict_text};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::build::{Done, build_one};
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::built::Built;
use crate::workflow::carried_evidence::take_vendored;
use crate::workflow::confirm::can_ask;
use crate::workflow::custom_base::{custom_base, named_base};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::signing_key;
use crate::workflow::installed_project::check_online;
use crate::workflow::layer_sources::LayerSources;
use crate::workflow::listed_names::with_listed;
use crate::workflow::lock::check_locked;
use crate::workflow::lock_file::{lock_path, read_lock};
use crate::workflow::offer::chosen_product;
use crate::workflow::own_images::is_outside_project;
use crate::workflow::project_trust::{Use, require_trust};
use crate::workflow::push::{Pushed, check_push_access, pushable};
use crate::workflow::session::Session;
use crate::workflow::spec_parts::restricted;
use crate::workflow::stack::stack;
use crate::workflow::supported::supported;
use crate::workflow::target::machine;
use crate::workflow::vendor::{lock_in, take, tell};
use crate::workflow::{batch, vendor_base};

pub(super) async fn build(args: &request::Build, settings: &Settings) -> Result<Exit, CommandError> {
    // An unusable key fails before the build, not after it.
    args.attest.then(|| signing_key(args.key.as_deref(), settings)).transpose()?;
    let is_named = args.project.environment.is_some() || args.project.project.is_some();
    let specs = match &args.all_supported {
        Some(filter) => supported(&restricted(filter, &args.parts)?, &args.target, settings)?,
        None if args.specs.is_empty() && !is_named && is_outside_project(settings) && can_ask() => {
            let Some(spec) = chosen_product(&args.target, settings).await? else { return Ok(Exit::Done) };
            vec![spec]
        }
        None => args.specs.iter().map(|spec| restricted(spec, &args.parts)).collect::<Result<Vec<_>, _>>()?,
    };
    let mut wanted = match specs.as_slice() {
        [] => {
            let wanted =
                wanted(None, &args.project, &args.source, &args.target, settings)?.with_parts(&args.parts)?;
            require_trust(&wanted, Use::Build, args.trust, settings).await?;
            BuildRequest { trust: args.trust, ..wanted }
        }
        [spec] => wanted(Some(spec), &args.project, &args.source, &args.target, settings)?,
        _ => {
            let named = named_base(settings, &args.source, &args.target).await?;
            return batch::build(&specs, named.as_ref(), args, settings).await;
        }
    };
    let offline = args.offline.as_ref().map(|dir| settings.paths.current_dir.join(dir));
    if offline.is_some() {
        check_online(&wanted)?;
    }
    let named = match &offline {
        None => named_base(settings, &wanted.source, &wanted.target).await?,
        Some(folder) => {
            // Before the base is looked into: there is no registry to have it from.
            let session = Session::open(settings, Some(&wanted.source)).await?;
            let (machine, own) = (machine(&wanted.target), custom_base(&wanted.source));
            let lent = vendor_base::load(&session, folder, machine, own).await?;
            let named = named_base(settings, &wanted.source, &wanted.target).await;
            vendor_base::forget(&session, lent).await?;
            named?
        }
    };
    let named = named.as_ref();
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named)?;
    let targets = if args.push { pushable(&args.tags)? } else { Vec::new() };
    if offline.is_none() {
        check_locked(settings, &stack, &wanted)?;
        wanted = with_listed(&wanted, &stack, settings).await?;
    }
    let mut session = Session::open(settings, Some(&wanted.source)).await?;
    if let Some(folder) = offline {
        without_network(&mut session, &mut wanted, &folder, &stack)?;
    }
    check_push_access(&session, &targets).await?;
    match Box::pin(build_one(&session, &wanted, stack, named, args)).await? {
        Done::Planned(text) => Printer.text(&text),
        Done::Built(mut built) => {
            if settings.output.json {
                Printer.json(&built);
            }
            let failure = built.failure();
            if !built.tags.is_empty() && !settings.output.json {
                let image =
                    if specs.is_empty() { args.project.arguments() } else { format!(" {}", built.tags[0]) };
                let next = failure.is_none().then(|| format!("next: envforge shell{image}"));
                print(&built, next, settings);
            } else if failure.is_some() {
                Printer.say(&verdict_text(&built.verdict, Detail::of(settings.output.verbose)));
            }
            if let Some(error) = failure.or(built.undone.take()) {
                return Err(error);
            }
        }
    }
    Ok(Exit::Done)
}

/// Makes a build take everything from a vendor folder: its lock must fit, nothing is asked of any network.
fn without_network(
    session: &mut Session<'_>,
    wanted: &mut BuildRequest,
    folder: &Utf8Path,
    stack: &Stack,
) -> Result<(), CommandError> {
    tell(session, folder);
    session.network = Network::None;
    session.layer_sources = LayerSources::of_folder(folder.to_owned());
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
    take_vendored(session, folder)
}

fn print(built: &Built, next: Option<String>, settings: &Settings) {
    if !settings.output.quiet {
        if built.stands {
            let proof = Proof::of(&built.verdict);
            Printer
                .say(&format!("checked before under the same conditions: {proof} (--recheck runs it again)"));
        } else {
            Printer.say(&verdict_text(&built.verdict, Detail::of(settings.output.verbose)));
        }
        if let Some(because) = &built.unverified_because {
            Printer.say(&format!("tagged as -unverified: {because}"));
            Printer.say(&format!(
                "run `envforge verify {}` on a target GPU to add the verified tag",
                built.tags[0]
            ));
        }
        if let Some(next) = next {
            Printer.say(&next);
        }
    }
    for attested in built.attested.iter().filter(|_| !settings.output.quiet) {
        Printer.say(&format!("attested: {attested}"));
    }
    let pushed = built.pushed.iter().map(Pushed::pinned);
    Printer.text(&built.tags.iter().cloned().chain(pushed).collect::<Vec<_>>().join("\n"));
}
