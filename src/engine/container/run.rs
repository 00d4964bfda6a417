//! Throwaway containers: copy files in, attach, start, wait, collect.

use std::sync::Arc;

use async_trait::async_trait;
use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::query_parameters::AttachContainerOptionsBuilder;
use camino::Utf8PathBuf;
use futures_util::{Stream, StreamExt as _, TryFutureExt as _};

use super::files::{collect_all, put_files};
use super::guard::Container;
use super::run_request::{ReachedLimit, RunOutcome, RunRequest, Runner};
use super::wait::wait_for;
use crate::engine::archive_file::write_archive;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
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
    let most = request.limits.map(|limits| limits.output);
    let read = read_output(daemon, output, (&mut outcome, most), report);
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
    outcome.collected = collect_all(daemon, container, request.collect.iter().map(String::as_str)).await?;
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

async fn read_output(
    daemon: &Daemon,
    mut output: impl Stream<Item = Result<LogOutput, Error>> + Unpin,
    (outcome, most): (&mut RunOutcome, Option<usize>),
    report: impl Fn(String),
) -> Result<(), Stop> {
    let mut lines = Lines::default();
    let mut size = 0;
    while let Some(part) = output.next().await {
        let part = part.map_err(|error| daemon.fault("reading a container's output", error));
        let part = part.map_err(Stop::Engine)?;
        size += part.as_ref().len();
        if let Some(most) = most.filter(|most| size > *most) {
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
