//! The lines of a report: a header, one line for each check, and a last line that marks the report as complete.
//!
//! Each line is a JSON object. The agent writes them; envforge parses them by the same field names.

use crate::check::CheckId;
use crate::json;
use crate::outcome::{Outcome, SkipReason, Stage};

/// Version of the report's format.
pub const SCHEMA: u32 = 1;

/// The agent's name, in the header and as a crate.
pub const AGENT: &str = "envforge-agent";

/// Names of fields.
pub mod field {
    /// Version of the format, in the header.
    pub const SCHEMA: &str = "schema";
    /// Name of the agent, in the header.
    pub const AGENT: &str = "agent";
    /// Id of the check.
    pub const ID: &str = "id";
    /// Stage of the check.
    pub const STAGE: &str = "stage";
    /// Outcome of the check.
    pub const OUTCOME: &str = "outcome";
    /// Text for people.
    pub const DETAIL: &str = "detail";
    /// Values found, by name.
    pub const MEASURED: &str = "measured";
    /// Values expected, by name.
    pub const EXPECTED: &str = "expected";
    /// Fix, or `null`.
    pub const HINT: &str = "hint";
    /// Reason to skip, only in lines that have one.
    pub const SKIP: &str = "skip";
    /// `true`, in the last line.
    pub const DONE: &str = "done";
    /// Wall-clock seconds, in the last line.
    pub const SECONDS: &str = "seconds";

    /// The fields of a check's line, in order.
    pub const LINE: [&str; 8] = [ID, STAGE, OUTCOME, DETAIL, MEASURED, EXPECTED, HINT, SKIP];
}

/// The line of one check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportLine {
    /// The check.
    pub id: CheckId,
    /// Its stage.
    pub stage: Stage,
    /// Its outcome.
    pub outcome: Outcome,
    /// Text for people.
    pub detail: String,
    /// Values found, by name.
    pub measured: Vec<(String, String)>,
    /// Values expected, by name.
    pub expected: Vec<(String, String)>,
    /// Fix.
    pub hint: Option<String>,
    /// Reason to skip.
    pub skip: Option<SkipReason>,
}

impl ReportLine {
    /// Returns the line as JSON, without a line end.
    pub fn to_json(&self) -> String {
        let mut line = String::from("{");
        let mut add = |name: &str, value: &str| {
            line.push_str(if line.len() == 1 { "\"" } else { ",\"" });
            line.push_str(name);
            line.push_str("\":");
            line.push_str(value);
        };
        add(field::ID, &json::string(self.id.as_str()));
        add(field::STAGE, &json::string(self.stage.as_str()));
        add(field::OUTCOME, &json::string(self.outcome.as_str()));
        add(field::DETAIL, &json::string(&self.detail));
        add(field::MEASURED, &json::object(&self.measured));
        add(field::EXPECTED, &json::object(&self.expected));
        match &self.hint {
            Some(hint) => add(field::HINT, &json::string(hint)),
            None => add(field::HINT, "null"),
        }
        if let Some(reason) = self.skip {
            add(field::SKIP, &json::string(reason.as_str()));
        }
        line.push('}');
        line
    }

    /// Parses a line that [`Self::to_json`] wrote, without the values; `None` for any other text.
    pub fn parse(line: &str) -> Option<Self> {
        let named = |name: &str| json::text_of(line, name);
        // A line that was cut has no complete hint.
        let hint = named(field::HINT);
        if !line.starts_with("{\"id\":\"") || (hint.is_none() && !line.contains("\"hint\":null")) {
            return None;
        }
        let id = CheckId::parse(&named(field::ID)?)?;
        let outcome = Outcome::parse(&named(field::OUTCOME)?)?;
        let (measured, expected) = (Vec::new(), Vec::new());
        let parsed = Self {
            id,
            stage: Stage::parse(&named(field::STAGE)?)?,
            outcome,
            detail: named(field::DETAIL).unwrap_or_default(),
            measured,
            expected,
            hint,
            skip: named(field::SKIP).and_then(|name| SkipReason::parse(&name)),
        };
        line.ends_with('}').then_some(parsed)
    }
}

/// Returns the first line of a report.
pub fn header_line() -> String {
    format!("{{\"{}\":{SCHEMA},\"{}\":\"{AGENT}\"}}", field::SCHEMA, field::AGENT)
}

/// Returns the last line of a complete report.
pub fn done_line(seconds: f64) -> String {
    format!("{{\"{}\":true,\"{}\":{seconds:.2}}}", field::DONE, field::SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> ReportLine {
        ReportLine {
            id: CheckId::NcclBroadcast,
            stage: Stage::Gpu,
            outcome: Outcome::Skipped,
            detail: "one GPU\n\"here\"".to_owned(),
            measured: vec![("a".to_owned(), "1".to_owned())],
            expected: Vec::new(),
            hint: None,
            skip: Some(SkipReason::OneGpu),
        }
    }

    #[test]
    fn lines_are_written_field_by_field() {
        let text = line().to_json();
        assert_eq!(
            text,
            r#"{"id":"nccl-broadcast","stage":"gpu","outcome":"skipped","detail":"one GPU\n\"here\"","measured":{"a":"1"},"expected":{},"hint":null,"skip":"one-gpu"}"#
        );
        let passed = ReportLine { outcome: Outcome::Passed, hint: Some("x".into()), skip: None, ..line() };
        assert!(passed.to_json().ends_with(r#""expected":{},"hint":"x"}"#), "no skip field");
        assert_eq!(header_line(), r#"{"schema":1,"agent":"envforge-agent"}"#);
        assert_eq!(done_line(1.254), r#"{"done":true,"seconds":1.25}"#);
    }

    #[test]
    fn lines_parse_back_but_for_their_values() {
        let parsed = ReportLine::parse(&line().to_json()).expect("a line");
        assert_eq!(parsed, ReportLine { measured: Vec::new(), ..line() });
        let without = line().to_json().replace(",\"skip\":\"one-gpu\"", "");
        assert_eq!(ReportLine::parse(&without).expect("a line").skip, None);
        for cut in 1..without.len() {
            assert_eq!(ReportLine::parse(&without[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn every_field_is_written() {
        let text = line().to_json();
        let at: Vec<_> = field::LINE.iter().map(|name| text.find(&format!("\"{name}\":"))).collect();
        assert!(at.iter().all(Option::is_some) && at.is_sorted(), "{at:?}");
    }
}
