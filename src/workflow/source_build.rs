//! What is built from source: the machine that compiles, what is said and asked first, and the wheel.
use std::io::IsTerminal as _;
use std::sync::Arc;

use crate::base::Base;
use crate::model::resolve::{nearest_published, source_jobs, source_text};
use crate::model::stack::Stack;
use crate::model::wrap::wrapped;
use crate::packages::LocalWheel;
use crate::report::{Event, Printer};
use crate::source_build::{Recipe, built_once, cached_wheel, release_archive};
use crate::workflow::build_machine::build_machine;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::confirm::confirm;
use crate::workflow::context_files::{Builder, cached_file, compiled};
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;
use crate::workflow::package_sources::{package_settings, package_tools};
use crate::workflow::session::{Session, archive_addresses};
use crate::workflow::shared_wheel::SharedWheel;
use crate::workflow::target::options;

/// Says what compiling a stack that is not published takes and, on a terminal, asks; unless the wheel was
/// compiled before, here or on another machine of the team.
pub(crate) async fn agree_to_compile(
    session: &Session<'_>,
    stack: &Stack,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    let recipe = recipe_of(session, stack);
    let key = recipe.key(base.digest.as_deref());
    if let Some(wheel) = cached_wheel(&session.store, &key)? {
        let text = format!("using cached wheel: {}", wheel.file);
        session.reporter.report(Event::Note { text });
        return Ok(());
    }
    if SharedWheel::new(session, &key, &recipe.title(), None).find().await?.is_some() {
        return Ok(());
    }
    agreed(session, stack, wanted).await
}

/// The wheel of a stack that is not published: one that was compiled of the same before, here or on another machine of the team,
/// else it is compiled now.
pub(crate) async fn wheel_from_source(
    session: &Session<'_>,
    stack: &Stack,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<LocalWheel, CommandError> {
    let recipe = recipe_of(session, stack);
    let key = recipe.key(base.digest.as_deref());
    let shared = SharedWheel::new(session, &key, &recipe.title(), None);
    let make = Box::pin(release_wheel(session, recipe, base, wanted));
    let wheel = built_once(&session.store, &key, None, Box::pin(shared.find()), make).await?;
    wheel.check(stack, base.glibc.as_ref())?;
    shared.compare(&wheel)?;
    Ok(wheel)
}

async fn release_wheel(
    session: &Session<'_>,
    recipe: Recipe<'_>,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<LocalWheel, CommandError> {
    let Recipe { stack, row } = recipe;
    let addresses = archive_addresses(session.settings, row)?;
    let reporter = Arc::clone(&session.reporter);
    let archive = release_archive(row, &addresses, &session.store, &session.fetch, reporter).await?;
    let archive = cached_file(&session.store, archive.file_name().unwrap_or_default())?;
    let settings = package_settings(session, &recipe.builder(), &wanted.indexes);
    let tools = package_tools(session, &settings);
    base.check_unchanged(&*session.engine).await?;
    let lock = recipe.builder_lock(&tools, &base.reference, &base.locked(), &session.matrix).await?;
    let jobs = stack.source_build.as_deref().and_then(|choice| source_jobs(choice, build_machine(session)));
    let builder = Builder { lock: &lock, base, wanted, jobs: jobs.unwrap_or(1) };
    let wheel = compiled(session, &tools, builder, |uv| recipe.compilation(archive, uv)).await?;
    wheel.check(stack, base.glibc.as_ref())?;
    Ok(wheel)
}

/// The build of a stack of channel `source`.
fn recipe_of<'a>(session: &'a Session<'_>, stack: &'a Stack) -> Recipe<'a> {
    Recipe::of(stack, &session.matrix).expect("a stack of channel `source` comes from a row")
}

/// Says what compiling takes and, on a terminal, asks once.
async fn agreed(session: &Session<'_>, stack: &Stack, wanted: &BuildRequest) -> Result<(), CommandError> {
    let output = session.settings.output;
    let options = options(&wanted.target, &wanted.source, session.settings);
    let nearest = nearest_published(wanted.spec.parsed(), &stack.target, &session.matrix, &options);
    if !output.quiet {
        let text = source_text(stack, &nearest, build_machine(session));
        Printer.say(&wrapped(&text, session.settings.output.talk_width));
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if wanted.source.yes || !terminal || confirm("build it from source?").await {
        return Ok(());
    }
    Err(LockingError::Declined { nearest: nearest.into_iter().map(|offer| offer.command).collect() }.into())
}
