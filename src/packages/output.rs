//! The answers that the scripts of the resolver print: one JSON object a line.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::PackagesError;

/// Everything a script printed, by the answer's name.
#[derive(Debug, Default)]
pub(super) struct Answers(BTreeMap<String, String>);

/// One line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    answer: String,
    text: String,
}

impl Answers {
    /// Reads the output of a run that ended well.
    pub(super) fn parse(stdout: &[u8]) -> Result<Self, PackagesError> {
        let bad = |detail: String| PackagesError::Output { what: "output", detail };
        let text = std::str::from_utf8(stdout).map_err(|error| bad(error.to_string()))?;
        let mut answers = BTreeMap::new();
        for line in text.lines() {
            let Answer { answer, text } =
                serde_json::from_str(line).map_err(|error| bad(error.to_string()))?;
            if answers.insert(answer.clone(), text).is_some() {
                return Err(bad(format!("`{answer}` is there twice")));
            }
        }
        if answers.contains_key("end") {
            return Ok(Self(answers));
        }
        Err(bad("the output is truncated".to_owned()))
    }

    /// An answer that must be there.
    pub(super) fn named(&self, name: &'static str) -> Result<&str, PackagesError> {
        self.optional(name).ok_or(PackagesError::Output { what: name, detail: "it is missing".to_owned() })
    }

    /// An answer that may be there.
    pub(super) fn optional(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Outputs of the two runs for torch 2.8.0 and httpx on Debian 12; hosts are replaced.
#[cfg(test)]
pub(super) const RECORDED_DEBS: &str = include_str!("../../tests/fixtures/packages/bookworm-debs.jsonl");
#[cfg(test)]
pub(super) const RECORDED_WHEELS: &str =
    include_str!("../../tests/fixtures/packages/bookworm-torch-2.8.jsonl");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_found_in_a_recorded_run() {
        let answers = Answers::parse(RECORDED_WHEELS.as_bytes()).expect("parses");
        assert!(answers.named("framework").expect("there").contains("name = \"torch\""));
        assert!(answers.optional("nothing").is_none());
        let error = answers.named("nothing").expect_err("missing");
        assert!(error.to_string().contains("nothing"), "{error}");
    }

    #[test]
    fn a_run_that_was_cut_or_says_anything_twice_is_an_error() {
        let cut = &RECORDED_DEBS.as_bytes()[..RECORDED_DEBS.len() / 2];
        assert!(Answers::parse(cut).is_err());
        assert!(Answers::parse(b"\xff").is_err());
        let end = "{\"answer\":\"end\",\"text\":\"\"}\n";
        assert!(Answers::parse(end.as_bytes()).is_ok());
        for text in [
            String::new(),
            format!("{end}{end}"),
            format!("{end}x\n"),
            "{\"answer\":\"uris\",\"text\":\"\"}\n".to_owned(),
        ] {
            assert!(Answers::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
