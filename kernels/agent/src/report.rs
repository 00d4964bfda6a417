//! The line of one check.

use envforge_protocol::{CheckId, Outcome, ReportLine, SkipReason, json};

/// The most problems that are listed as values: envforge reads 200 values of a check.
const LISTED: usize = 190;
/// The most bytes of them: envforge reads lines of at most 64 KiB.
const LISTED_BYTES: usize = 40 << 10;

/// The line of one check.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    line: ReportLine,
    /// The line as a child printed it, forwarded unchanged.
    raw: Option<String>,
}

impl Report {
    pub(crate) fn new(id: CheckId, outcome: Outcome, detail: impl Into<String>) -> Self {
        let (measured, expected) = (Vec::new(), Vec::new());
        let (stage, detail, hint, skip) = (id.stage(), detail.into(), None, None);
        let line = ReportLine { id, stage, outcome, detail, measured, expected, hint, skip };
        Self { line, raw: None }
    }

    /// Creates the line of a check that does not apply.
    pub(crate) fn skipped(id: CheckId, reason: SkipReason, detail: impl Into<String>) -> Self {
        let mut report = Self::new(id, Outcome::Skipped, detail);
        report.skip = Some(reason);
        report
    }

    /// Creates a line that passed, or one that failed and names the first problems. If there are more, programs find all of them
    /// among the values, as `problem.001` and so on.
    pub(crate) fn of_problems(id: CheckId, good: impl Into<String>, problems: &[String]) -> Self {
        const SHOWN: usize = 12;
        if problems.is_empty() {
            return Self::new(id, Outcome::Passed, good);
        }
        let mut detail = problems[..problems.len().min(SHOWN)].join("; ");
        if problems.len() <= SHOWN {
            return Self::new(id, Outcome::Failed, detail);
        }
        detail.push_str(&format!("; and {} more", problems.len() - SHOWN));
        let mut report =
            Self::new(id, Outcome::Failed, detail).measure("problems", &problems.len().to_string());
        let mut room = LISTED_BYTES;
        for (number, problem) in (1..=LISTED).zip(problems) {
            let Some(left) = room.checked_sub(json::string(problem).len()) else { break };
            room = left;
            report = report.measure(&format!("problem.{number:03}"), problem);
        }
        report
    }

    /// Creates the line that compares a value with the expected one.
    pub(crate) fn of_value(id: CheckId, found: &str, wanted: &str) -> Self {
        let (outcome, detail) = if found == wanted {
            (Outcome::Passed, found.to_owned())
        } else {
            (Outcome::Failed, format!("expected `{wanted}` (lock), found `{found}`"))
        };
        let mut report = Self::new(id, outcome, detail);
        report = report.measure("value", found);
        report.expected.push(("value".to_owned(), wanted.to_owned()));
        report
    }

    /// Adds a value that was found.
    pub(crate) fn measure(mut self, name: &str, value: &str) -> Self {
        self.measured.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces every warning by one.
    pub(crate) fn with_warning(mut self, text: &str) -> Self {
        self.measured.retain(|(name, _)| !name.starts_with("warning"));
        self.measure("warning", text)
    }

    /// Adds a fix, unless the check passed or was skipped.
    pub(crate) fn hint(mut self, hint: &str) -> Self {
        if !self.is_good() {
            self.hint = Some(hint.to_owned());
        }
        self
    }

    /// Whether the check neither failed nor errored.
    pub(crate) fn is_good(&self) -> bool {
        self.outcome.is_good()
    }

    /// Returns the line for programs.
    pub(crate) fn json(&self) -> String {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        self.line.to_json()
    }

    /// Returns the line for people.
    pub(crate) fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n         hint: {hint}")).unwrap_or_default();
        format!("{:8} {}: {}{hint}", self.outcome, self.id, self.detail)
    }

    /// Parses a line that a child printed; `None` for any other text.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        Some(Self { line: ReportLine::parse(line)?, raw: Some(line.to_owned()) })
    }
}

impl std::ops::Deref for Report {
    type Target = ReportLine;

    fn deref(&self) -> &ReportLine {
        &self.line
    }
}

impl std::ops::DerefMut for Report {
    fn deref_mut(&mut self) -> &mut ReportLine {
        &mut self.line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_is_forwarded_unchanged() {
        let line = Report::of_value(CheckId::FrameworkCuda, "1\n2", "3").hint("do it").json();
        let read = Report::parse(&line).expect("a report");
        assert_eq!((read.id, read.outcome), (CheckId::FrameworkCuda, Outcome::Failed));
        assert_eq!(read.json(), line);
        assert_eq!(
            read.text(),
            "failed   framework-cuda: expected `3` (lock), found `1\n2`\n         hint: do it"
        );
        assert!(Report::parse(&line[..line.len() - 1]).is_none(), "a cut line is rejected");
    }

    #[test]
    fn further_problems_are_counted() {
        let problems: Vec<_> = (0..20).map(|n| format!("p{n}")).collect();
        let report = Report::of_problems(CheckId::User, "fine", &problems);
        assert!(report.detail.ends_with("p11; and 8 more"), "{}", report.detail);
        let measured =
            |name: &str| report.measured.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        assert_eq!((measured("problems"), measured("problem.001")), (Some("20"), Some("p0")));
        assert_eq!((measured("problem.020"), report.measured.len()), (Some("p19"), 21));
        let few = Report::of_problems(CheckId::User, "fine", &problems[..12]);
        assert!(few.measured.is_empty(), "its text has all");
    }

    #[test]
    fn list_of_problems_is_bounded() {
        let many: Vec<_> = (0..5_000).map(|n| format!("p{n}")).collect();
        assert_eq!(Report::of_problems(CheckId::User, "fine", &many).measured.len(), LISTED + 1);
        let long: Vec<_> = (0..100).map(|_| "\u{1}".repeat(1_000)).collect();
        let report = Report::of_problems(CheckId::User, "fine", &long);
        let bytes: usize = report.measured.iter().map(|(_, value)| json::string(value).len()).sum();
        assert!(report.measured.len() > 2 && bytes < LISTED_BYTES + 100, "{bytes}");
    }
}
