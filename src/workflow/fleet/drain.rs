//! Drains a node by the scheduler's own command.

use std::process::Stdio;
use std::time::Duration;

use crate::fleet::Drain;
use crate::host::async_child;
use crate::model::visible::visible_line_within;

/// How long the scheduler may take.
const ANSWER: Duration = Duration::from_mins(1);

/// Runs the command; the error is the scheduler's.
pub(crate) async fn drain_node(drain: &Drain) -> Result<(), String> {
    let [program, words @ ..] = drain.command();
    let mut command = async_child(&program);
    command.args(words).stdin(Stdio::null()).kill_on_drop(true);
    let output = match tokio::time::timeout(ANSWER, command.output()).await {
        Err(_) => return Err(format!("{program} gave no answer within {} s", ANSWER.as_secs())),
        Ok(Err(error)) => return Err(format!("cannot run {program}: {error}")),
        Ok(Ok(output)) => output,
    };
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let line = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing").trim();
    Err(visible_line_within(line, 300))
}
