//! Events for people: moving bars on a terminal, one plain line per step otherwise.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{HumanBytes, MultiProgress, ProgressBar, ProgressStyle};

use super::bounds::bounded;
use super::screen::{bars, terminals};
use super::{Event, Mark, Painted, Printer, Reporter};
use crate::model::counted::counted;

/// `1.2s`, `2m 05s`: seconds as people read them.
pub(crate) fn duration_text(value: f64) -> String {
    if value < 60.0 {
        return format!("{value:.1}s");
    }
    let whole = Duration::from_secs_f64(value).as_secs();
    format!("{}m {:02}s", whole / 60, whole % 60)
}

/// `about 40 s left`, `about 3 min left`; empty where it is not known or nearly over.
fn left_text(left_s: Option<f64>) -> String {
    match left_s {
        Some(left) if left >= 90.0 => format!(", about {:.0} min left", left / 60.0),
        Some(left) if left >= 1.0 => format!(", about {left:.0} s left"),
        _ => String::new(),
    }
}

/// `3.10 of 7.90 GiB`: the unit once, so that the line fits 80 columns.
fn sizes_text(done: u64, total: u64) -> String {
    let (done, total) = (HumanBytes(done).to_string(), HumanBytes(total).to_string());
    match (done.split_once(' '), total.split_once(' ')) {
        (Some((number, unit)), Some((_, of))) if unit == of => format!("{number} of {total}"),
        _ => format!("{done} of {total}"),
    }
}

/// `12 of 25 layers, 3.10 of 7.90 GiB, about 40 s left`.
fn parts_text((done, total): (usize, usize), bytes: (u64, u64), left_s: Option<f64>) -> String {
    let sizes = match bytes {
        (_, 0) => String::new(),
        (done, total) => format!(", {}", sizes_text(done, total)),
    };
    format!("{done} of {}{sizes}{}", counted(total, "layer"), left_text(left_s))
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
    tables: usize,
    summary: String,
}

impl Step {
    fn new(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

/// Of the tables of a step, a log has the summary of one in so many: they come each second.
const LOGGED: usize = 5;

/// Columns of a line in a log.
const LOG_COLUMNS: usize = 120;

/// The line of a step that ended, for so many columns.
fn finished_line(step: &Step, cached: bool, elapsed: f64, columns: usize) -> String {
    let bytes = if step.bytes > 0 { format!("  {}", HumanBytes(step.bytes)) } else { String::new() };
    let time = if cached { "cached".to_owned() } else { duration_text(elapsed) };
    let rest = format!("{bytes}  {time}");
    // The mark before it and its space.
    let room = columns.saturating_sub(rest.chars().count() + 2).max(LEAST_TEXT);
    format!("{}{rest}", shortened(&step.text, room))
}

/// The least that is shown of a step's text: a narrower terminal breaks the line.
const LEAST_TEXT: usize = 16;

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
                steps.insert(id, Step::new(text));
            }
            Event::StepProgress { id, done, .. } => {
                if let Some(step) = steps.get_mut(&id) {
                    step.bytes = step.bytes.max(done);
                }
            }
            Event::StepParts { id, done_bytes, .. } => {
                if let Some(step) = steps.get_mut(&id) {
                    step.bytes = done_bytes;
                }
            }
            Event::StepOutput { line, .. } if self.output => Printer.say(&format!("   {line}")),
            Event::StepOutput { .. } => {}
            Event::StepTable { id, summary, .. } => {
                if let Some(step) = steps.get_mut(&id) {
                    step.tables += 1;
                    if step.tables % LOGGED == 0 && step.summary != summary {
                        Printer.say(&summary);
                        step.summary = summary;
                    }
                }
            }
            Event::StepFinished { id, cached, seconds } => {
                if let Some(step) = steps.remove(&id) {
                    Printer.say(&format!("ok {}", finished_line(&step, cached, seconds, LOG_COLUMNS)));
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
    all: &'static MultiProgress,
    steps: Mutex<HashMap<String, Running>>,
}

/// A step on the screen.
#[derive(Debug)]
struct Running {
    step: Step,
    bar: ProgressBar,
    /// The lines below it.
    table: Option<ProgressBar>,
}

impl Bars {
    /// `color`: colour is allowed.
    pub fn new(color: bool) -> Self {
        Self { color, all: bars(), steps: Mutex::default() }
    }

    fn line(&self, mark: Mark, text: &str) {
        Printer.say_painted(&Painted::new(self.color).mark(mark).text(" ").text(text));
    }

    /// Takes a step off the screen; a bar that is only cleared leaves an empty line.
    fn end(&self, running: Running) -> Step {
        for bar in running.table.iter().chain([&running.bar]) {
            bar.finish_and_clear();
            self.all.remove(bar);
        }
        running.step
    }

    /// Puts lines below a step, in place of those before.
    fn show_table(&self, running: &mut Running, lines: &[String]) {
        let table = running.table.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{msg}").expect("the template is fixed and valid");
            let bar = self.all.insert_after(&running.bar, ProgressBar::new_spinner());
            bar.with_style(style)
        });
        let room = columns().saturating_sub(3);
        let lines: Vec<String> = lines.iter().map(|line| format!("  {}", shortened(line, room))).collect();
        table.set_message(lines.join("\n"));
        table.tick();
    }
}

/// What was interrupted leaves no step on the screen.
impl Drop for Bars {
    fn drop(&mut self) {
        let steps =
            std::mem::take(&mut *self.steps.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        for running in steps.into_values() {
            self.end(running);
        }
    }
}

/// The columns of the terminal now: it may have been resized.
fn columns() -> usize {
    terminals().stderr.map_or(LOG_COLUMNS, usize::from)
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
                steps.insert(id, Running { step: Step::new(text), bar, table: None });
            }
            Event::StepProgress { id, done, total } => {
                if let Some(Running { step, bar, .. }) = steps.get_mut(&id) {
                    step.bytes = step.bytes.max(done);
                    let of = total.map_or_else(String::new, |total| format!(" of {}", HumanBytes(total)));
                    bar.set_message(format!("{}  {}{of}", step.text, HumanBytes(done)));
                }
            }
            Event::StepParts { id, done, total, done_bytes, total_bytes, left_s } => {
                if let Some(Running { step, bar, .. }) = steps.get_mut(&id) {
                    step.bytes = done_bytes;
                    let parts = parts_text((done, total), (done_bytes, total_bytes), left_s);
                    bar.set_message(format!("{}  {parts}", step.text));
                }
            }
            Event::StepOutput { id, line } => {
                if let Some(Running { step, bar, table: None }) = steps.get(&id) {
                    bar.set_message(format!("{}  {}", step.text, line.trim()));
                }
            }
            Event::StepTable { id, summary, lines } => {
                if let Some(running) = steps.get_mut(&id) {
                    // What is outstanding stays in sight, whatever the step is called.
                    running.bar.set_message(summary);
                    self.show_table(running, &lines);
                }
            }
            Event::StepFinished { id, cached, seconds } => {
                if let Some(running) = steps.remove(&id) {
                    let step = self.end(running);
                    self.line(Mark::Done, &finished_line(&step, cached, seconds, columns()));
                }
            }
            Event::StepFailed { id, text } => {
                let step = steps.remove(&id).map(|running| self.end(running));
                self.line(Mark::Failed, &format!("{}: {text}", step.unwrap_or_default().text));
            }
            Event::Note { text } => Printer.say(&text),
            Event::Warning { text } => self.line(Mark::Warning, &text),
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
        let step = Step { bytes: 3 << 20, ..Step::new("fetch".into()) };
        assert_eq!(finished_line(&step, false, 2.0, 80), "fetch  3.00 MiB  2.0s");
        assert_eq!(finished_line(&Step::new("fetch".into()), true, 2.0, 1), "fetch  cached");
    }

    #[test]
    fn parts_are_shown_with_what_is_left() {
        let bytes = (3 << 30, 8 << 30);
        assert_eq!(parts_text((12, 25), bytes, None), "12 of 25 layers, 3.00 of 8.00 GiB");
        assert!(parts_text((12, 25), bytes, Some(40.4)).ends_with(", about 40 s left"));
        assert!(parts_text((12, 25), bytes, Some(170.0)).ends_with(", about 3 min left"));
        assert_eq!(parts_text((1, 1), (0, 0), Some(0.2)), "1 of 1 layer");
        assert_eq!(sizes_text(3 << 20, 8 << 30), "3.00 MiB of 8.00 GiB");
    }

    #[test]
    fn line_of_a_step_fits_the_terminal() {
        let step = Step { bytes: 3 << 20, ..Step::new("x".repeat(300)) };
        for columns in [40, 80, 200] {
            let line = finished_line(&step, false, 2.0, columns);
            assert_eq!(line.chars().count() + 2, columns, "{line}");
            assert!(line.ends_with("…  3.00 MiB  2.0s"), "{line}");
        }
    }

    #[test]
    fn long_lines_are_cut_on_characters() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äö…");
    }
}
