//! The device code of an image: the agent reads its libraries in a container of its own.

use std::sync::Arc;
use std::time::Duration;

use crate::engine::{ImageInfo, RunLimits, RunOutcome, RunRequest};
use crate::model::image::device_code::DeviceCode;
use crate::report::Event;
use crate::workflow::check_container::{AGENT, agent_file, environment, words};
use crate::workflow::check_error::CheckError;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// Bytes of output: a line has some 300, a large image some 300 lines.
const OUTPUT: usize = 8 << 20;
/// Reading the headers of 30 GB of libraries from a slow disk takes minutes.
const TIME: Duration = Duration::from_mins(10);

/// Reads the libraries of an image in a container without network, writable files and GPU; no code of the image runs.
pub(crate) async fn device_code_of(
    session: &Session<'_>,
    image: &ImageInfo,
) -> Result<DeviceCode, CommandError> {
    session.reporter.report(Event::Note { text: "reading the device code of the libraries".to_owned() });
    let limits = RunLimits { processes: 16, memory: None, tmp: 1 << 20, time: TIME, output: OUTPUT };
    let request = RunRequest {
        user: Some("0:0".to_owned()),
        files: vec![agent_file()],
        env: environment(image),
        keeps: vec!["DAC_OVERRIDE".to_owned()],
        ..RunRequest::bounded(&image.id, words(&[AGENT, "code"]), limits)
    };
    let outcome = session.engine.run(request, Arc::clone(&session.reporter)).await?;
    listed(&outcome).map_err(|detail| CheckError::NoDeviceCode { image: image.id.clone(), detail }.into())
}

fn listed(outcome: &RunOutcome) -> Result<DeviceCode, String> {
    if let Some(limit) = outcome.reached {
        return Err(format!("the agent was ended: it {limit}"));
    }
    if outcome.code != 0 {
        let said = String::from_utf8_lossy(&outcome.stderr);
        let last = said.lines().last().unwrap_or("no output");
        return Err(format!("agent exited with code {}: {last}", outcome.code));
    }
    DeviceCode::parse(&String::from_utf8_lossy(&outcome.stdout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ReachedLimit;

    #[test]
    fn ended_failed_or_cut_list_is_not_a_list() {
        let line = r#"{"path":"/a.so","size":90,"code":{"sm_80":10}}"#;
        let whole = format!("{line}\n{{\"done\":true,\"seconds\":1}}\n");
        let outcome = RunOutcome { stdout: whole.into(), ..RunOutcome::default() };
        assert_eq!(listed(&outcome).map(|code| code.bytes()), Ok(10));
        let failed = RunOutcome { code: 1, stderr: "cannot read".into(), ..outcome.clone() };
        assert_eq!(listed(&failed), Err("agent exited with code 1: cannot read".to_owned()));
        let ended = RunOutcome { reached: Some(ReachedLimit::Output(OUTPUT)), ..outcome.clone() };
        assert!(listed(&ended).is_err_and(|error| error.contains("printed more than 8 MiB")));
        let cut = RunOutcome { stdout: line.into(), ..outcome };
        assert!(listed(&cut).is_err());
    }
}
