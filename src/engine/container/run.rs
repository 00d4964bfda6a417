//! Throwaway containers: copy files in, attach, start, wait, collect.

use std::sync::Arc;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use camino::Utf8PathBuf;
use futures_util::{Stream, StreamExt as _, TryFutureExt as _, TryStreamExt as _};

use super::files::{collect_all, put_files};
use super::guard::Container;
use super::run_request::{ReachedLimit, RunOutcome, RunRequest, Runner};
use super::wait::wait_for;
use crate::engine::archive_file::write_archive;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::limits::{LARGEST_COLLECTED, LARGEST_OUTPUT};
use crate::engine::lines::Lines;
use crate::engine::transport::daemon::Daemon;
use crate::report::{Event, Reporter};

#[async_trait]
impl Runner for Docker {
    async fn run(&self, request: RunRequest, reporter: Arc<dyn Reporter>) -> Result<RunOutcome, EngineError> {
        let container = Container::create(&self.daemon, &request).await?;
        let outcome = run_in(&self.daemon, &container, &request, reporter.as_ref()).await?;
        container.remove().await?;
        Ok(outcome)
    }

    async fn run_and_export(
        &self,
        request: RunRequest,
        archive: Utf8PathBuf,
        reporter: Arc<dyn Reporter>,
    ) -> Result<RunOutcome, EngineError> {
        let container = Container::create(&self.daemon, &request).await?;
        let outcome = run_in(&self.daemon, &container, &request, reporter.as_ref()).await?;
        if outcome.code == 0 {
            let parts = self.daemon.client.export_container(&container.name);
            write_archive(&self.daemon, &archive, "exporting a container", parts).await?;
        }
        container.remove().await?;
        Ok(outcome)
    }
}

/// Runs a created container to its end and keeps it.
async fn run_in(
    daemon: &Daemon,
    container: &Container,
    request: &RunRequest,
    reporter: &dyn Reporter,
) -> Result<RunOutcome, EngineError> {
    put_files(daemon, container, request).await?;
    let options = AttachContainerOptionsBuilder::new().stream(true).stdout(true).stderr(true).build();
    // Attached before the start, so that no output is lost.
    let attached = daemon.client.attach_container(&container.name, Some(options)).await;
    let output = attached.map_err(|error| daemon.fault("attaching to a container", error))?.output;
    let during = format!("starting `{}`", request.command.join(" "));
    let started = daemon.client.start_container(&container.name, None).await;
    started.map_err(|error| daemon.fault(&during, error))?;

    let report = |line: String| {
        if let Some(id) = &request.report_as {
            reporter.report(Event::StepOutput { id: id.clone(), line });
        }
    };
    let mut outcome = RunOutcome::default();
    let most = request.limits.map_or(request.most_output.unwrap_or(LARGEST_OUTPUT), |limits| limits.output);
    let fault = |error| daemon.fault("reading a container's output", error);
    let read = read_output(output.map_err(fault), (&mut outcome, most), report);
    let wait = wait_for(daemon, &container.name, "waiting for a container");
    let end = async { tokio::try_join!(read, wait.map_err(Stop::Engine)) };
    let end = match request.limits {
        None => end.await,
        Some(limits) => match tokio::time::timeout(limits.time, end).await {
            Ok(end) => end,
            Err(_) => Err(Stop::Limit(ReachedLimit::Time(limits.time))),
        },
    };
    match end {
        Ok(((), code)) => outcome.code = code,
        Err(Stop::Engine(error)) => return Err(error),
        // The removal kills it.
        Err(Stop::Limit(_)) if request.limits.is_none() => {
            let what = format!("the output of `{}` in a container", request.command.join(" "));
            return Err(EngineError::TooLarge { what, limit: most as u64 });
        }
        Err(Stop::Limit(limit)) => {
            (outcome.code, outcome.reached) = (KILLED, Some(limit));
            return Ok(outcome);
        }
    }
    let memory = request.limits.and_then(|limits| limits.memory);
    if let (KILLED, Some(memory)) = (outcome.code, memory)
        && ran_out_of_memory(daemon, &container.name).await?
    {
        outcome.reached = Some(ReachedLimit::Memory(memory));
    }
    let most = request.most_collected.unwrap_or(LARGEST_COLLECTED);
    let paths = request.collect.iter().map(String::as_str);
    outcome.collected = collect_all(daemon, container, paths, most).await?;
    Ok(outcome)
}

/// The exit code of a killed program.
const KILLED: i64 = 137;

/// What ends the reading of a container before its own end.
enum Stop {
    Engine(EngineError),
    Limit(ReachedLimit),
}

async fn ran_out_of_memory(daemon: &Daemon, name: &str) -> Result<bool, EngineError> {
    let found = daemon.client.inspect_container(name, None).await;
    let found = found.map_err(|error| daemon.fault("inspecting a container", error))?;
    Ok(found.state.and_then(|state| state.oom_killed).unwrap_or(false))
}

/// Reads output to its end, or until it is larger than `most`.
async fn read_output(
    mut output: impl Stream<Item = Result<LogOutput, EngineError>> + Unpin,
    (outcome, most): (&mut RunOutcome, usize),
    report: impl Fn(String),
) -> Result<(), Stop> {
    let mut lines = Lines::default();
    let mut size = 0;
    while let Some(part) = output.next().await {
        let part = part.map_err(Stop::Engine)?;
        size += part.as_ref().len();
        if size > most {
            return Err(Stop::Limit(ReachedLimit::Output(most)));
        }
        match part {
            LogOutput::StdErr { message } => {
                outcome.stderr.extend_from_slice(&message);
                lines.push(&message).into_iter().for_each(&report);
            }
            other => outcome.stdout.extend_from_slice(&other.into_bytes()),
        }
    }
    lines.finish().into_iter().for_each(report);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use futures_util::stream;

    use super::*;

    async fn read(part: LogOutput, times: usize, most: usize) -> (Result<(), Stop>, RunOutcome, Vec<String>) {
        let (mut outcome, lines) = (RunOutcome::default(), RefCell::new(Vec::new()));
        let output = stream::iter(std::iter::repeat_n(part, times).map(Ok));
        let end = read_output(output, (&mut outcome, most), |line| lines.borrow_mut().push(line)).await;
        (end, outcome, lines.into_inner())
    }

    #[tokio::test]
    async fn program_that_prints_without_end_is_stopped_at_the_bound() {
        for part in [
            LogOutput::StdOut { message: "0123456789".into() },
            LogOutput::StdErr { message: "012345678\n".into() },
        ] {
            let (end, outcome, lines) = read(part.clone(), 1_000_000, 1000).await;
            assert!(matches!(end, Err(Stop::Limit(ReachedLimit::Output(1000)))), "{part}");
            assert_eq!((outcome.stdout.len() + outcome.stderr.len(), lines.len() <= 100), (1000, true));
            let (end, outcome, _) = read(part, 100, 1000).await;
            assert!(end.is_ok() && outcome.stdout.len() + outcome.stderr.len() == 1000);
        }
    }

    #[tokio::test]
    async fn line_without_end_is_reported_up_to_its_bound() {
        let (_, outcome, lines) =
            read(LogOutput::StdErr { message: "0123456789".into() }, 10_000, 1 << 20).await;
        assert_eq!((outcome.stderr.len(), lines.len()), (100_000, 1));
        assert!(lines[0].len() < 17_000 && lines[0].ends_with('…'), "{}", lines[0].len());
    }
}
