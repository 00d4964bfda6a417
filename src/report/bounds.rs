//! The most that is shown of an event's texts: steps print what others wrote.

use super::Event;
use crate::model::visible::{Bounds, visible_line_within, visible_within};

/// A line of output, and the name or failure of a step, characters.
const LONGEST_LINE: usize = 2_000;
/// A note or warning.
const MOST: Bounds = Bounds { lines: 100, characters: 16_000 };

/// The event with its texts bounded and their control characters escaped.
pub(super) fn bounded(event: Event) -> Event {
    let line = |text: String| visible_line_within(&text, LONGEST_LINE);
    match event {
        Event::StepStarted { id, text } => Event::StepStarted { id, text: line(text) },
        Event::StepOutput { id, line: text } => Event::StepOutput { id, line: line(text) },
        Event::StepTable { id, summary, lines } => Event::StepTable {
            id,
            summary: line(summary),
            lines: lines.into_iter().take(MOST.lines).map(line).collect(),
        },
        Event::StepFailed { id, text } => Event::StepFailed { id, text: line(text) },
        Event::Note { text } => Event::Note { text: visible_within(&text, MOST) },
        Event::Warning { text } => Event::Warning { text: visible_within(&text, MOST) },
        event @ (Event::StepProgress { .. } | Event::StepParts { .. } | Event::StepFinished { .. }) => event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_steps_are_one_line_without_control_characters() {
        let hostile = "\u{1b}]0;owned\u{7}\rok checks\n".to_owned();
        let shown = "\\u{1b}]0;owned\\u{7}\\rok checks\\n".to_owned();
        let id = || "a".to_owned();
        let cases = [
            (
                Event::StepOutput { id: id(), line: hostile.clone() },
                Event::StepOutput { id: id(), line: shown.clone() },
            ),
            (
                Event::StepStarted { id: id(), text: hostile.clone() },
                Event::StepStarted { id: id(), text: shown.clone() },
            ),
            (
                Event::StepFailed { id: id(), text: hostile.clone() },
                Event::StepFailed { id: id(), text: shown.clone() },
            ),
        ];
        for (event, expected) in cases {
            assert_eq!(bounded(event), expected);
        }
        for event in [Event::Note { text: hostile.clone() }, Event::Warning { text: hostile }] {
            let (Event::Note { text } | Event::Warning { text }) = bounded(event) else { panic!("a text") };
            assert_eq!(text, shown.replace("\\n", "\n"));
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let Event::StepOutput { line, .. } =
            bounded(Event::StepOutput { id: "a".to_owned(), line: "x".repeat(1 << 20) })
        else {
            panic!("output")
        };
        assert_eq!(line.chars().count(), LONGEST_LINE + 1);
    }
}
