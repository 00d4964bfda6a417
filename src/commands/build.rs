//! `build`: one spec, or several at once.

use crate::failure::Exit;
use crate::model::request::{self, SpecArgument, SpecParts};
use crate::model::verdict::{Detail, Proof, verdict_text};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::batch;
use crate::workflow::build::{Done, build_one};
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::built::Built;
use crate::workflow::confirm::can_ask;
use crate::workflow::custom_base::named_base;
use crate::workflow::error::CommandError;
use crate::workflow::evidence::signing_key;
use crate::workflow::installed_project::check_online;
use crate::workflow::listed_names::with_listed;
use crate::workflow::lock::check_locked;
use crate::workflow::offer::chosen_product;
use crate::workflow::own_images::is_outside_project;
use crate::workflow::project_trust::{Use, require_trust};
use crate::workflow::push::{Pushed, check_push_access, pushable};
use crate::workflow::session::{LazySession, Origin, SessionOptions};
use crate::workflow::spec_parts::restricted;
use crate::workflow::stack::stack;
use crate::workflow::supported::supported;
use crate::workflow::vendor::vendored;

pub(super) async fn build(args: &request::Build, settings: &Settings) -> Result<Exit, CommandError> {
    // An unusable key fails before the build, not after it.
    args.attest.then(|| signing_key(args.key.as_deref(), settings)).transpose()?;
    let is_named = args.project.environment.is_some() || args.project.project.is_some();
    let specs = match &args.all_supported {
        Some(filter) => {
            let filter = restricted(filter.checked()?, &args.parts)?;
            supported(&filter, &args.target, settings)?.into_iter().map(SpecArgument::from).collect()
        }
        None if args.specs.is_empty() && !is_named && is_outside_project(settings) && can_ask() => {
            let Some(spec) = chosen_product(&args.target, settings).await? else { return Ok(Exit::Done) };
            vec![SpecArgument::from(spec)]
        }
        None => all_restricted(&args.specs, &args.parts)?,
    };
    let wanted = match specs.as_slice() {
        [] => {
            let wanted =
                wanted(None, &args.project, &args.source, &args.target, settings)?.with_parts(&args.parts)?;
            require_trust(&wanted, Use::Build, args.trust, settings).await?;
            BuildRequest { trust: args.trust, ..wanted }
        }
        [spec] => wanted(Some(spec), &args.project, &args.source, &args.target, settings)?,
        _ => return batch::build(&specs, args, settings).await,
    };
    let origin = Origin::of_offline(args.offline.as_ref(), settings);
    if origin.folder().is_some() {
        check_online(&wanted)?;
    }
    let lazy = LazySession::new(settings, SessionOptions { origin, ..SessionOptions::of(&args.source) });
    let named = named_base(&lazy, &wanted.source, &wanted.target).await?;
    let named = named.as_ref();
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named)?;
    let targets = if args.push { pushable(&args.tags)? } else { Vec::new() };
    let (session, wanted) = match lazy.origin() {
        Origin::Network => {
            check_locked(settings, &stack, named, &wanted)?;
            let wanted = with_listed(&wanted, &stack, settings).await?;
            (lazy.session().await?.on_base(named), wanted)
        }
        Origin::Vendor(folder) => {
            let session = lazy.session().await?.on_base(named);
            let wanted = vendored(&session, wanted, (folder, &stack))?;
            (session, wanted)
        }
    };
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

/// The specs with these parts. Without parts one that is invalid stops nothing yet: the others are built.
fn all_restricted(specs: &[SpecArgument], parts: &SpecParts) -> Result<Vec<SpecArgument>, CommandError> {
    if parts.option().is_none() {
        return Ok(specs.to_vec());
    }
    specs.iter().map(|spec| Ok(restricted(spec.checked()?, parts)?.into())).collect()
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
