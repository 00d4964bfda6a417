//! BuildKit's status messages as events, and the last output of a failed step.
//!
//! Owns the state of every step of one build. Pure except for the reporter.

use std::collections::BTreeMap;
use std::time::Duration;

use bollard_buildkit_proto::google::protobuf::Timestamp;
use bollard_buildkit_proto::moby::buildkit::v1::{StatusResponse, Vertex, VertexLog, VertexStatus};

use crate::engine::lines::{LastLines, Lines};
use crate::report::{Event, Reporter};

/// The step in which BuildKit writes and tags the image.
const EXPORT: &str = "exporting to image";

#[derive(Debug, Default)]
struct StepState {
    started: bool,
    ended: bool,
    amounts: BTreeMap<String, (u64, u64)>,
    reported: (u64, u64),
    lines: BTreeMap<i64, Lines>,
    kept: LastLines,
}

/// The steps of one build.
pub(super) struct Progress<'a> {
    reporter: &'a dyn Reporter,
    steps: BTreeMap<String, StepState>,
    /// Output of the failed step, if any.
    failed: Option<Vec<String>>,
    exporting: bool,
}

impl<'a> Progress<'a> {
    pub(super) fn new(reporter: &'a dyn Reporter) -> Self {
        Self { reporter, steps: BTreeMap::new(), failed: None, exporting: false }
    }

    /// Returns whether the image may be getting its tag.
    pub(super) fn exporting(&self) -> bool {
        self.exporting
    }

    /// Returns the last lines of the failed step.
    pub(super) fn failed_output(&mut self) -> Vec<String> {
        self.failed.take().unwrap_or_default()
    }

    /// Adds one message. Reports output before the end of its step, regardless of the order inside the message.
    pub(super) fn apply(&mut self, message: &StatusResponse) {
        for vertex in &message.vertexes {
            self.start(vertex);
        }
        for log in &message.logs {
            self.log(log);
        }
        for status in &message.statuses {
            self.amount(status);
        }
        for vertex in &message.vertexes {
            self.end(vertex);
        }
    }

    fn start(&mut self, vertex: &Vertex) {
        let step = self.steps.entry(vertex.digest.clone()).or_default();
        if vertex.started.is_some() && !step.started {
            step.started = true;
            self.exporting |= vertex.name == EXPORT;
            self.reporter.report(Event::StepStarted {
                id: step_id(&vertex.digest),
                text: without_mounts(&vertex.name),
            });
        }
    }

    fn log(&mut self, log: &VertexLog) {
        let step = self.steps.entry(log.vertex.clone()).or_default();
        for line in step.lines.entry(log.stream).or_default().push(&log.msg) {
            step.kept.push(&line);
            self.reporter.report(Event::StepOutput { id: step_id(&log.vertex), line });
        }
    }

    fn amount(&mut self, status: &VertexStatus) {
        let size = |value: i64| u64::try_from(value).unwrap_or(0);
        let step = self.steps.entry(status.vertex.clone()).or_default();
        step.amounts.insert(status.id.clone(), (size(status.current), size(status.total)));
        let sum = step.amounts.values().fold((0, 0), |sum, amount| (sum.0 + amount.0, sum.1 + amount.1));
        if sum != step.reported && sum != (0, 0) && step.started && !step.ended {
            step.reported = sum;
            let total = (sum.1 > 0).then_some(sum.1.max(sum.0));
            self.reporter.report(Event::StepProgress { id: step_id(&status.vertex), done: sum.0, total });
        }
    }

    fn end(&mut self, vertex: &Vertex) {
        let step = self.steps.entry(vertex.digest.clone()).or_default();
        let (Some(started), Some(completed), false) = (&vertex.started, &vertex.completed, step.ended) else {
            return;
        };
        step.ended = true;
        let id = step_id(&vertex.digest);
        let rest: Vec<_> = step.lines.values_mut().filter_map(Lines::finish).collect();
        for line in rest {
            step.kept.push(&line);
            self.reporter.report(Event::StepOutput { id: id.clone(), line });
        }
        if vertex.error.is_empty() {
            let seconds = seconds_between(started, completed);
            self.reporter.report(Event::StepFinished { id, cached: vertex.cached, seconds });
        } else {
            // Steps stopped by the failure of another one report `context canceled`: they are not the cause.
            if !vertex.error.contains("context canceled") && self.failed.is_none() {
                self.failed = Some(step.kept.take());
            }
            let text = plain(&vertex.error).lines().next().unwrap_or_default().to_owned();
            self.reporter.report(Event::StepFailed { id, text });
        }
    }
}

fn step_id(digest: &str) -> String {
    format!("build:{digest}")
}

fn seconds_between(from: &Timestamp, to: &Timestamp) -> f64 {
    let since = |time: &Timestamp| {
        let (seconds, nanos) = (u64::try_from(time.seconds), u32::try_from(time.nanos));
        Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
    };
    since(to).saturating_sub(since(from)).as_secs_f64()
}

/// Strips the names of BuildKit's own layers from its message.
pub(super) fn plain(text: &str) -> &str {
    const LAYERS: [&str; 6] = [
        "rpc error: code = Unknown desc = ",
        "failed to solve with frontend dockerfile.v0: ",
        "failed to solve: ",
        "failed to build LLB: ",
        "failed to create LLB definition: ",
        "failed to read dockerfile: ",
    ];
    let mut text = text.trim();
    while let Some(rest) = LAYERS.iter().find_map(|layer| text.strip_prefix(layer)) {
        text = rest;
    }
    text
}

/// Returns the readable name of a step: `[stage-0 3/8] RUN sh x`, without its mounts.
pub(super) fn without_mounts(name: &str) -> String {
    name.split_whitespace().filter(|word| !word.starts_with("--mount=")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::lines::KEPT;
    use crate::report::Recorder;

    fn at(seconds: i64) -> Timestamp {
        Timestamp { seconds, nanos: 500_000_000 }
    }

    fn vertex(started: Timestamp, completed: Option<Timestamp>, error: &str) -> Vertex {
        let started = Some(started);
        let (digest, name) = ("sha256:aa".to_owned(), "[2/2] RUN make".to_owned());
        Vertex { digest, name, started, completed, error: error.to_owned(), ..Vertex::default() }
    }

    fn log(text: &str) -> VertexLog {
        VertexLog {
            vertex: "sha256:aa".to_owned(),
            stream: 2,
            msg: text.as_bytes().to_vec(),
            ..VertexLog::default()
        }
    }

    #[test]
    fn failing_step_is_reported_in_order_with_its_last_lines() {
        let seen = Recorder::default();
        let mut progress = Progress::new(&seen);
        progress.apply(&StatusResponse { vertexes: vec![vertex(at(1), None, "")], ..Default::default() });
        let many = "a line\n".repeat(50);
        progress.apply(&StatusResponse { logs: vec![log(&many), log("the e")], ..Default::default() });
        let failed = vertex(at(1), Some(at(3)), "executor failed running [/bin/sh -c make]: exit code: 2");
        let last = StatusResponse { vertexes: vec![failed], logs: vec![log("nd")], ..Default::default() };
        progress.apply(&last);
        progress.apply(&last);
        let output = progress.failed_output();
        assert_eq!(output.len(), KEPT);
        assert_eq!(output.last().map(String::as_str), Some("the end"));
        let events = seen.take();
        let id = "build:sha256:aa".to_owned();
        assert_eq!(events[0], Event::StepStarted { id: id.clone(), text: "[2/2] RUN make".to_owned() });
        let text = "executor failed running [/bin/sh -c make]: exit code: 2".to_owned();
        assert_eq!(events.last(), Some(&Event::StepFailed { id, text }));
        assert_eq!(events.len(), 1 + 51 + 1);
    }

    #[test]
    fn stopped_step_is_not_the_cause() {
        let seen = Recorder::default();
        let mut progress = Progress::new(&seen);
        let stopped = vertex(at(1), Some(at(2)), "context canceled");
        progress.apply(&StatusResponse {
            vertexes: vec![stopped],
            logs: vec![log("innocent\n")],
            ..Default::default()
        });
        assert!(progress.failed_output().is_empty());
    }

    #[test]
    fn progress_reports_seconds_and_bytes() {
        let seen = Recorder::default();
        let mut progress = Progress::new(&seen);
        let part = |id: &str, current, total| VertexStatus {
            id: id.to_owned(),
            vertex: "sha256:aa".to_owned(),
            current,
            total,
            ..VertexStatus::default()
        };
        let statuses = vec![part("a", 5, 10), part("b", 1, 30)];
        progress.apply(&StatusResponse {
            vertexes: vec![vertex(at(1), None, "")],
            statuses,
            ..Default::default()
        });
        progress
            .apply(&StatusResponse { vertexes: vec![vertex(at(1), Some(at(3)), "")], ..Default::default() });
        let events = seen.take();
        let id = "build:sha256:aa".to_owned();
        assert!(
            events.contains(&Event::StepProgress { id: id.clone(), done: 6, total: Some(40) }),
            "{events:?}"
        );
        assert_eq!(events.last(), Some(&Event::StepFinished { id, cached: false, seconds: 2.0 }));
    }

    #[test]
    fn plain_strips_buildkit_layers() {
        let text = "failed to solve with frontend dockerfile.v0: failed to build LLB: exit code: 7";
        assert_eq!(plain(text), "exit code: 7");
    }

    #[test]
    fn without_mounts_keeps_the_command() {
        let name = "[stage-0 2/8] RUN --mount=type=bind,source=debs,target=/d     --mount=type=secret,id=ca     sh /x y";
        assert_eq!(without_mounts(name), "[stage-0 2/8] RUN sh /x y");
    }
}
