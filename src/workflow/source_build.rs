//! What is built from source: the machine that compiles, what is said and asked first, and the wheel.
#![expect(clippy::disallowed_methods, reason = "edge: looks at this machine")]

use std::io::IsTerminal as _;

use crate::base::Base;
use crate::model::compat::Matrix;
use crate::model::compat::tables::SourceBuild;
use crate::model::resolve::{BuildMachine, nearest_published, source_jobs, source_text};
use crate::model::stack::Stack;
use crate::packages::LocalWheel;
use crate::report::{Event, Printer};
use crate::source_build::{Recipe, SourceRequest, build_wheel, cached_wheel};
use crate::workflow::base::check_processor;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::confirm::confirm;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;
use crate::workflow::package_sources::{deb_mirrors, package_settings, package_tools};
use crate::workflow::session::{Session, archive_addresses};
use crate::workflow::target::options;

/// Says what compiling a stack that nobody publishes takes and, on a terminal, asks; unless the wheel was compiled before.
pub(crate) async fn agree_to_compile(
    session: &Session<'_>,
    stack: &Stack,
    wanted: &BuildRequest,
) -> Result<(), CommandError> {
    let recipe = Recipe { stack, row: row_of(stack) };
    check_processor(session, stack)?;
    if let Some(wheel) = cached_wheel(&session.store, &recipe.key())? {
        let text = format!("using cached wheel: {}", wheel.file);
        session.reporter.report(Event::Note { text });
        return Ok(());
    }
    agreed(session, stack, wanted).await
}

/// The machine that compiles: what another machine's engine has is not known.
fn machine_of(session: &Session<'_>) -> BuildMachine {
    if session.engine.info().local { this_machine() } else { BuildMachine::default() }
}

/// The wheel of a stack that nobody publishes: one that was compiled of the same before, else it is compiled now.
pub(crate) async fn wheel_from_source(
    session: &Session<'_>,
    stack: &Stack,
    base: &Base,
    wanted: &BuildRequest,
) -> Result<LocalWheel, CommandError> {
    let row = row_of(stack);
    let recipe = Recipe { stack, row };
    let builder = recipe.builder();
    let settings = package_settings(session, &builder, &wanted.indexes);
    let tools = package_tools(session, &settings);
    let jobs = stack.source_build.as_deref().and_then(|choice| source_jobs(choice, machine_of(session)));
    base.check_unchanged(&*session.engine).await?;
    let request = SourceRequest {
        recipe,
        base_reference: &base.reference,
        base: &base.locked(),
        mirrors: &deb_mirrors(session, base, &builder, &settings),
        archives: &archive_addresses(session.settings, row)?,
        jobs: jobs.unwrap_or(1),
    };
    let wheel = build_wheel(&tools, &request).await?;
    base.check_unchanged(&*session.engine).await?;
    Ok(wheel)
}

/// The row a stack of channel `source` was resolved from.
fn row_of(stack: &Stack) -> &'static SourceBuild {
    let same = |row: &&SourceBuild| {
        row.framework == stack.framework
            && row.version == stack.version
            && row.cuda == stack.cuda
            && row.machine == stack.machine
    };
    Matrix::current().source_builds.iter().find(same).expect("a stack of channel `source` comes from a row")
}

/// Says what compiling takes and, on a terminal, asks once.
async fn agreed(session: &Session<'_>, stack: &Stack, wanted: &BuildRequest) -> Result<(), CommandError> {
    let output = session.settings.output;
    let options = options(&wanted.target, &wanted.source, session.settings);
    let spec = wanted.spec.parse()?;
    let nearest = nearest_published(&spec, &stack.target, Matrix::current(), &options);
    if !output.quiet {
        Printer.say(&source_text(stack, &nearest, machine_of(session)));
    }
    let terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if wanted.source.yes || !terminal || confirm("build it from source?").await {
        return Ok(());
    }
    Err(LockingError::Declined { nearest: nearest.into_iter().map(|offer| offer.command).collect() }.into())
}

/// This machine's processors and memory, as far as it says.
pub(crate) fn this_machine() -> BuildMachine {
    let cores = std::thread::available_parallelism().ok().and_then(|count| u64::try_from(count.get()).ok());
    let memory = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_gb(&text));
    BuildMachine { cores, memory_gb: memory }
}

/// `MemTotal` of /proc/meminfo in GB, rounded.
fn total_gb(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some((kib * 1024 + 500_000_000) / 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::total_gb;

    #[test]
    fn memory_is_read_in_gb() {
        assert_eq!(total_gb("MemTotal:       65536000 kB\nMemFree: 1 kB\n"), Some(67));
        assert_eq!(total_gb("MemFree: 1 kB\n"), None);
    }
}
