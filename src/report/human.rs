//! Events for people: moving bars on a terminal, one plain line per step otherwise.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};
use owo_colors::OwoColorize;

use super::bounds::bounded;
use super::{Event, Printer, Reporter};

/// `1.2s`, `2m 05s`: seconds as people read them.
pub(crate) fn duration_text(value: f64) -> String {
    if value < 60.0 {
        return format!("{value:.1}s");
    }
    let whole = Duration::from_secs_f64(value).as_secs();
    format!("{}m {:02}s", whole / 60, whole % 60)
}

/// Cuts a line to a width, on a character boundary, with an ellipsis.
fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// What is remembered of a running step.
#[derive(Debug, Default)]
struct Step {
    text: String,
    bytes: u64,
}

fn finished_line(step: &Step, cached: bool, elapsed: f64) -> String {
    let bytes = if step.bytes > 0 { format!("  {}", HumanBytes(step.bytes)) } else { String::new() };
    let time = if cached { "cached".to_owned() } else { duration_text(elapsed) };
    format!("{}{bytes}  {time}", shortened(&step.text, 96))
}

/// One plain line when a step ends, for logs and pipes.
#[derive(Debug)]
pub struct Plain {
    output: bool,
    steps: Mutex<HashMap<String, Step>>,
}

impl Plain {
    /// `output`: show what steps print, too.
    pub fn new(output: bool) -> Self {
        Self { output, steps: Mutex::default() }
    }
}

impl Reporter for Plain {
    fn report(&self, event: Event) {
        let mut steps = self.steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match bounded(event) {
            Event::StepStarted { id, text } => {
                if self.output {
                    Printer.say(&format!("-> {text}"));
                }
                steps.insert(id, Step { text, bytes: 0 });
            }
            Event::StepProgress { id, done, .. } => {
                if let Some(step) = steps.get_mut(&id) {
                    step.bytes = step.bytes.max(done);
                }
            }
            Event::StepOutput { line, .. } if self.output => Printer.say(&format!("   {line}")),
            Event::StepOutput { .. } => {}
            Event::StepFinished { id, cached, seconds } => {
                if let Some(step) = steps.remove(&id) {
                    Printer.say(&format!("ok {}", finished_line(&step, cached, seconds)));
                }
            }
            Event::StepFailed { id, text } => {
                let step = steps.remove(&id).unwrap_or_default();
                Printer.say(&format!("failed {}: {text}", step.text));
            }
            Event::Note { text } => Printer.say(&text),
            Event::Warning { text } => Printer.say(&format!("warning: {text}")),
        }
    }
}

/// Moving bars on a terminal.
#[derive(Debug)]
pub struct Bars {
    color: bool,
    all: MultiProgress,
    steps: Mutex<HashMap<String, (Step, ProgressBar)>>,
}

impl Bars {
    /// `color`: colour is allowed.
    pub fn new(color: bool) -> Self {
        Self { color, all: MultiProgress::new(), steps: Mutex::default() }
    }

    fn line(&self, line: &str) {
        // Not `println` of the bars: it drops the line on a terminal without a known size.
        self.all.suspend(|| Printer.say(line));
    }

    fn mark(&self, good: bool, text: &str) -> String {
        match (self.color, good) {
            (true, true) => format!("{} {text}", "✓".green()),
            (true, false) => format!("{} {text}", "✗".red()),
            (false, true) => format!("ok {text}"),
            (false, false) => format!("failed {text}"),
        }
    }
}

impl Reporter for Bars {
    fn report(&self, event: Event) {
        let mut steps = self.steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match bounded(event) {
            Event::StepStarted { id, text } => {
                let bar = self.all.add(ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}");
                bar.set_style(style.expect("the template is fixed and valid"));
                bar.set_message(text.clone());
                bar.enable_steady_tick(Duration::from_millis(120));
                steps.insert(id, (Step { text, bytes: 0 }, bar));
            }
            Event::StepProgress { id, done, total } => {
                if let Some((step, bar)) = steps.get_mut(&id) {
                    step.bytes = step.bytes.max(done);
                    let of = total.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
                    bar.set_message(format!("{}  {}{of}", step.text, HumanBytes(done)));
                }
            }
            Event::StepOutput { id, line } => {
                if let Some((step, bar)) = steps.get(&id) {
                    bar.set_message(format!("{}  {}", step.text, line.trim()));
                }
            }
            Event::StepFinished { id, cached, seconds } => {
                if let Some((step, bar)) = steps.remove(&id) {
                    bar.finish_and_clear();
                    self.line(&self.mark(true, &finished_line(&step, cached, seconds)));
                }
            }
            Event::StepFailed { id, text } => {
                let step = steps.remove(&id).map(|(step, bar)| {
                    bar.finish_and_clear();
                    step
                });
                self.line(&self.mark(false, &format!("{}: {text}", step.unwrap_or_default().text)));
            }
            Event::Note { text } => self.line(&text),
            Event::Warning { text } if self.color => self.line(&format!("{} {text}", "warning:".yellow())),
            Event::Warning { text } => self.line(&format!("warning: {text}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_bytes_read_well() {
        assert_eq!(duration_text(1.24), "1.2s");
        assert_eq!(duration_text(125.0), "2m 05s");
        let step = Step { text: "fetch".into(), bytes: 3 << 20 };
        assert_eq!(finished_line(&step, false, 2.0), "fetch  3.00 MiB  2.0s");
        assert_eq!(finished_line(&Step { text: "fetch".into(), bytes: 0 }, true, 2.0), "fetch  cached");
    }

    #[test]
    fn long_lines_are_cut_on_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
