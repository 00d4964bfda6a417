//! A text as the patterns see it: colours and the prefixes of log drivers removed, one kind of quote, single blanks, lines joined by
//! a blank, so that a wrapped message is one text.

/// Lines after its first that a message may extend over.
const REACH: usize = 5;

/// A text, ready for patterns.
#[derive(Debug, Default)]
pub(super) struct Log {
    /// The lines, joined.
    text: String,
    /// The same in lower case.
    lower: String,
    /// Where each line begins.
    starts: Vec<usize>,
    /// Whether each line has the level INFO.
    infos: Vec<bool>,
}

impl Log {
    pub(super) fn new(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            log.starts.push(log.text.len());
            let line = plain(line);
            log.infos.push(is_info(&line));
            log.text.push_str(without_prefix(&line));
            log.text.push(' ');
        }
        log.lower = log.text.to_ascii_lowercase();
        log
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn lower(&self) -> &str {
        &self.lower
    }

    /// Returns the number of the line at a place, from 0.
    pub(super) fn line_of(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place).saturating_sub(1)
    }

    /// Returns where a message that begins at a place must end.
    pub(super) fn reach(&self, place: usize) -> usize {
        self.starts.get(self.line_of(place) + REACH + 1).copied().unwrap_or(self.text.len())
    }

    /// Whether a line, from 0, has the level INFO: what a program did, not why it failed.
    pub(super) fn is_info(&self, line: usize) -> bool {
        self.infos.get(line).copied().unwrap_or_default()
    }

    /// Whether a line begins at a place.
    pub(super) fn is_start(&self, place: usize) -> bool {
        self.starts.binary_search(&place).is_ok()
    }

    /// Whether a line ends at a place.
    pub(super) fn is_end(&self, place: usize) -> bool {
        place + 1 >= self.text.len() || self.is_start(place + 1)
    }

    /// Returns the bounds of a line.
    pub(super) fn line(&self, line: usize) -> (usize, usize) {
        let start = self.starts.get(line).copied().unwrap_or(self.text.len());
        (start, self.starts.get(line + 1).copied().unwrap_or(self.text.len()))
    }

    pub(super) fn lines(&self) -> usize {
        self.starts.len()
    }
}

/// Returns a text with plain quotes and single blanks, without colours, at least as the patterns are written.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' => {
                if rest.next() == Some('[') {
                    rest.by_ref().find(char::is_ascii_alphabetic);
                }
            }
            '\\' if matches!(rest.peek(), Some('"' | '\'')) => {}
            '`' | '"' | '‘' | '’' | '“' | '”' => out.push('\''),
            c if c.is_whitespace() => {
                if !out.is_empty() && !out.ends_with(' ') {
                    out.push(' ');
                }
            }
            c => out.push(c),
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Removes what log drivers, launchers and loggers put before each line.
fn without_prefix(line: &str) -> &str {
    let mut rest = line;
    while let Some(after) = one_prefix(rest) {
        rest = after.trim_start();
    }
    rest
}

fn one_prefix(line: &str) -> Option<&str> {
    if let Some((name, after)) = line.split_once(" | ")
        && !name.is_empty()
        && name.len() < 60
        && name.split(' ').count() <= 3
        && !name.contains(['\'', '('])
    {
        return Some(after);
    }
    let lower = line.to_ascii_lowercase();
    for (head, end) in [
        ("[rank", ']'),
        ("[default", ']'),
        ("(enginecore", ')'),
        ("(worker", ')'),
        ("(apiserver", ')'),
        ("(vllm", ')'),
    ] {
        if lower.starts_with(head) {
            return line.split_once(end).map(|(_, rest)| rest.trim_start_matches(':'));
        }
    }
    let (first, rest) = line.split_once(' ')?;
    let next = rest.split(' ').next().unwrap_or_default();
    let is_level =
        ["INFO", "ERROR", "WARNING", "WARN", "DEBUG", "CRITICAL"].contains(&first) && is_stamp(next);
    let is_step = first.len() > 1 && first.starts_with('#') && first[1..].bytes().all(|b| b.is_ascii_digit());
    if is_step && next.parse::<f64>().is_ok() {
        return rest.split_once(' ').map(|(_, rest)| rest);
    }
    let is_place = first.starts_with('[') && first.ends_with(']') && first.contains(".py:");
    (is_level || is_step || is_place || is_stamp(first)).then_some(rest)
}

/// Whether NCCL or a logger gives a line the level INFO. Apptainer's `INFO: ` is left out: there it names what is missing.
fn is_info(line: &str) -> bool {
    let before_stamp = |(_, rest): (&str, &str)| is_stamp(rest.split(' ').next().unwrap_or_default());
    line.contains("NCCL INFO ")
        || line.starts_with("INFO:") && !line.starts_with("INFO: ")
        || line.split_once("INFO ").is_some_and(before_stamp)
}

/// Whether a word is a date or a time.
fn is_stamp(word: &str) -> bool {
    let stamp = word.trim_matches(['[', ']', ',']);
    stamp.len() >= 5
        && stamp.contains([':', '-'])
        && stamp.starts_with(|c: char| c.is_ascii_digit())
        && stamp.chars().all(|c| c.is_ascii_digit() || ":-.,TZ+/".contains(c))
}
