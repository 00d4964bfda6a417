//! The line of one check.

use super::json;

/// Version of the report's form.
pub(crate) const SCHEMA: u32 = 1;

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is as it must be.
    Passed,
    /// It is not.
    Failed,
    /// It does not apply; the detail says why.
    Skipped,
    /// It could not be found out.
    Errored,
}

impl Outcome {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
            Self::Errored => "errored",
        }
    }
}

/// The line of one check.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) id: String,
    pub(crate) outcome: Outcome,
    pub(crate) detail: String,
    pub(crate) measured: Vec<(String, String)>,
    pub(crate) expected: Vec<(String, String)>,
    pub(crate) hint: Option<String>,
    /// `static`, `gpu` or `perf`.
    stage: &'static str,
    /// The line as a child printed it, passed on unchanged.
    raw: Option<String>,
}

impl Report {
    pub(crate) fn new(id: &str, outcome: Outcome, detail: impl Into<String>) -> Self {
        let (measured, expected) = (Vec::new(), Vec::new());
        let (hint, stage, raw) = (None, "static", None);
        Self { id: id.to_owned(), outcome, detail: detail.into(), measured, expected, hint, stage, raw }
    }

    /// The same as a line of another stage than `static`.
    pub(crate) fn in_stage(self, stage: &'static str) -> Self {
        Self { stage, ..self }
    }

    /// Passed or failed by whether there are problems; a failure lists the first of them.
    pub(crate) fn of_problems(id: &str, good: impl Into<String>, problems: &[String]) -> Self {
        const SHOWN: usize = 12;
        if problems.is_empty() {
            return Self::new(id, Outcome::Passed, good);
        }
        let mut detail = problems[..problems.len().min(SHOWN)].join("; ");
        if problems.len() > SHOWN {
            detail.push_str(&format!("; and {} more", problems.len() - SHOWN));
        }
        Self::new(id, Outcome::Failed, detail)
    }

    /// Whether a value is the one expected.
    pub(crate) fn of_value(id: &str, found: &str, wanted: &str) -> Self {
        let (outcome, detail) = if found == wanted {
            (Outcome::Passed, found.to_owned())
        } else {
            (Outcome::Failed, format!("`{found}`, and the lock says `{wanted}`"))
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

    pub(crate) fn hint(mut self, hint: &str) -> Self {
        if !self.is_good() {
            self.hint = Some(hint.to_owned());
        }
        self
    }

    /// True unless it failed or errored.
    pub(crate) fn is_good(&self) -> bool {
        matches!(self.outcome, Outcome::Passed | Outcome::Skipped)
    }

    /// The line for programs. Begins with the id.
    pub(crate) fn json(&self) -> String {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let hint = self.hint.as_deref().map_or_else(|| "null".to_owned(), json::string);
        format!(
            "{{\"id\":{},\"stage\":\"{}\",\"outcome\":\"{}\",\"detail\":{},\"measured\":{},\"expected\":{},\"hint\":{hint}}}",
            json::string(&self.id),
            self.stage,
            self.outcome.word(),
            json::string(&self.detail),
            json::object(&self.measured),
            json::object(&self.expected),
        )
    }

    /// The line for people.
    pub(crate) fn text(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("\n         hint: {hint}")).unwrap_or_default();
        format!("{:8} {}: {}{hint}", self.outcome.word(), self.id, self.detail)
    }

    /// A line that a child printed, if it is one. Ids and outcomes hold no character that JSON escapes.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("{\"id\":\"")?;
        let (id, rest) = rest.split_once('"')?;
        let (word, _) = rest.split_once("\"outcome\":\"")?.1.split_once('"')?;
        let all = [Outcome::Passed, Outcome::Failed, Outcome::Skipped, Outcome::Errored];
        let outcome = all.into_iter().find(|outcome| outcome.word() == word)?;
        let mut report = Self::new(id, outcome, json::text_of(line, "detail").unwrap_or_default());
        report.hint = json::text_of(line, "hint");
        report.raw = Some(line.to_owned());
        line.ends_with('}').then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_and_is_recognised() {
        let line = Report::of_value("a-b", "1\n2", "3").hint("do it").json();
        let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(value["outcome"], "failed");
        assert_eq!(value["measured"]["value"], "1\n2");
        assert_eq!(value["hint"], "do it");
        let read = Report::parse(&line).expect("a report");
        assert_eq!((read.id.as_str(), read.outcome), ("a-b", Outcome::Failed));
        assert_eq!(read.json(), line);
        assert_eq!(read.text(), "failed   a-b: `1\n2`, and the lock says `3`\n         hint: do it");
        assert!(Report::parse(&line[..line.len() - 1]).is_none(), "a cut line is none");
    }

    #[test]
    fn many_problems_are_counted() {
        let problems: Vec<_> = (0..20).map(|n| format!("p{n}")).collect();
        let report = Report::of_problems("x", "fine", &problems);
        assert!(report.detail.ends_with("p11; and 8 more"), "{}", report.detail);
    }
}
