//! The output of a classic build as events: `STEP 2/5: RUN …` of Podman, `Step 2/5 : RUN …` of Docker.
//!
//! Owns the state of the current step. Pure except for the reporter.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde::Deserialize;

use super::progress::without_mounts;
use crate::engine::lines::{LastLines, Lines};
use crate::report::{Event, Reporter};

/// One message of the response.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub(super) stream: String,
    #[serde(default)]
    pub(super) error: String,
    #[serde(default)]
    aux: Option<Aux>,
}

#[derive(Debug, Deserialize)]
struct Aux {
    #[serde(rename = "ID")]
    id: Option<String>,
}

#[derive(Debug)]
struct Step {
    id: String,
    started: Instant,
    cached: bool,
}

/// The steps of one build.
pub(super) struct PlainOutput<'a> {
    reporter: &'a dyn Reporter,
    lines: Lines,
    step: Option<Step>,
    kept: LastLines,
    /// Set once the image may be getting its tag.
    exporting: &'a AtomicBool,
    /// Whether the engine has reported the built image.
    pub(super) made: bool,
}

impl<'a> PlainOutput<'a> {
    pub(super) fn new(reporter: &'a dyn Reporter, exporting: &'a AtomicBool) -> Self {
        let (lines, kept) = (Lines::default(), LastLines::default());
        Self { reporter, lines, step: None, kept, exporting, made: false }
    }

    /// Adds one message.
    pub(super) fn apply(&mut self, message: &Message) {
        self.made |= message.aux.as_ref().is_some_and(|aux| aux.id.is_some());
        // The engine's own lines come in separate messages, also after output without a newline.
        if is_note(&message.stream)
            && let Some(line) = self.lines.finish()
        {
            self.line(line);
        }
        for line in self.lines.push(message.stream.as_bytes()) {
            self.line(line);
        }
    }

    /// Ends the last step and returns its last lines.
    pub(super) fn finish(mut self, failure: Option<&str>) -> Vec<String> {
        if let Some(line) = self.lines.finish() {
            self.line(line);
        }
        match (failure, self.step.take()) {
            (Some(text), Some(step)) => {
                let text = text.lines().next().unwrap_or_default().to_owned();
                self.reporter.report(Event::StepFailed { id: step.id, text });
            }
            (_, step) => self.end(step),
        }
        self.kept.take()
    }

    #[expect(clippy::disallowed_methods, reason = "measures how long the engine takes")]
    fn line(&mut self, line: String) {
        if let Some((number, text)) = step_of(&line) {
            let last = self.step.take();
            self.end(last);
            self.kept = LastLines::default();
            let id = format!("build:{number}");
            let last = number.split_once('/').is_some_and(|(step, all)| step == all);
            self.exporting.fetch_or(last, Ordering::Relaxed);
            let text = format!("[{number}] {}", without_mounts(text));
            self.reporter.report(Event::StepStarted { id: id.clone(), text });
            self.step = Some(Step { id, started: Instant::now(), cached: false });
        } else if line.starts_with("COMMIT ") || line.starts_with("Successfully built ") {
            // Names and ids follow.
            self.exporting.store(true, Ordering::Relaxed);
            let last = self.step.take();
            self.end(last);
        } else if let Some(step) = &mut self.step {
            if is_note(&line) {
                step.cached |= line.contains("> Using cache");
            } else {
                self.kept.push(&line);
                self.reporter.report(Event::StepOutput { id: step.id.clone(), line });
            }
        }
    }

    fn end(&self, step: Option<Step>) {
        if let Some(Step { id, started, cached }) = step {
            let seconds = started.elapsed().as_secs_f64();
            self.reporter.report(Event::StepFinished { id, cached, seconds });
        }
    }
}

/// Returns whether a line is the engine's own: `--> 1234` of Podman, ` ---> 1234` of Docker, or the start of a step.
fn is_note(text: &str) -> bool {
    ["--> ", " ---> ", "COMMIT "].iter().any(|start| text.starts_with(start)) || step_of(text).is_some()
}

/// Returns number and text of a line that starts a step.
fn step_of(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix("STEP ").or_else(|| line.strip_prefix("Step "))?;
    let (number, text) = rest.split_once(':')?;
    let number = number.trim();
    let (step, all) = number.split_once('/')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (digits(step) && digits(all)).then_some((number, text.trim()))
}

/// Shortens the step in an error message: `building at STEP "RUN --mount=… sh x": exit status 1`.
pub(super) fn plain_error(text: &str) -> String {
    let text = text.trim();
    match text.strip_prefix("building at STEP \"").and_then(|rest| rest.rsplit_once("\": ")) {
        Some((step, cause)) => format!("{}: {cause}", without_mounts(step)),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Recorder;

    fn events_of(lines: &[&str], failure: Option<&str>) -> (Vec<String>, Vec<String>) {
        let seen = Recorder::default();
        let exporting = AtomicBool::new(false);
        let mut output = PlainOutput::new(&seen, &exporting);
        for line in lines {
            output.apply(&serde_json::from_str(line).expect("a recorded message"));
        }
        let kept = output.finish(failure);
        let events = seen.take();
        let shown = events.iter().map(|event| match event {
            Event::StepStarted { id, text } => format!("{id} {text}"),
            Event::StepOutput { id, line } => format!("{id} | {line}"),
            Event::StepFinished { id, cached, .. } => {
                format!("{id} done{}", if *cached { ", cached" } else { "" })
            }
            Event::StepFailed { id, text } => format!("{id} failed: {text}"),
            other => format!("{other:?}"),
        });
        (shown.collect(), kept)
    }

    #[test]
    fn podman_output_becomes_steps() {
        // Podman 5.4.2.
        let (shown, kept) = events_of(
            &[
                r#"{"stream":"STEP 1/3: FROM envforge-base:abc\n"}"#,
                r#"{"stream":"STEP 2/3: RUN --mount=type=secret,id=ca sh x\n"}"#,
                r#"{"stream":"--\u003e Using cache b061362916e9\n"}"#,
                r#"{"stream":"STEP 3/3: RUN sh y\n"}"#,
                r#"{"stream":"one\ntw"}"#,
                r#"{"stream":"o\n"}"#,
                r#"{"stream":"no newline"}"#,
                r#"{"stream":"--\u003e 16c8674b119c\n"}"#,
                r#"{"stream":"COMMIT docker.io/library/res:1\n"}"#,
                r#"{"stream":"16c8674b119c6f3cc99ad254fcf1cf6c\n"}"#,
            ],
            None,
        );
        assert_eq!(
            shown,
            [
                "build:1/3 [1/3] FROM envforge-base:abc",
                "build:1/3 done",
                "build:2/3 [2/3] RUN sh x",
                "build:2/3 done, cached",
                "build:3/3 [3/3] RUN sh y",
                "build:3/3 | one",
                "build:3/3 | two",
                "build:3/3 | no newline",
                "build:3/3 done",
            ]
        );
        assert_eq!(kept, ["one", "two", "no newline"]);
    }

    #[test]
    fn failing_step_reports_its_cause() {
        let text = "building at STEP \"RUN --mount=type=bind,source=a,target=/a sh /a\": while running runtime: exit status 7\n";
        assert_eq!(plain_error(text), "RUN sh /a: while running runtime: exit status 7");
        let lines = [r#"{"stream":"Step 1/2 : RUN x"}"#, r#"{"stream":"\n"}"#, r#"{"stream":"bad luck"}"#];
        let (shown, kept) = events_of(&lines, Some("exit status 7"));
        assert_eq!(
            shown,
            ["build:1/2 [1/2] RUN x", "build:1/2 | bad luck", "build:1/2 failed: exit status 7"]
        );
        assert_eq!(kept, ["bad luck"]);
    }
}
