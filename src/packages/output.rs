//! The sections `resolve.sh` prints.

use std::collections::BTreeMap;

use super::error::PackagesError;

/// Everything `resolve.sh` printed, by section.
#[derive(Debug)]
pub(super) struct Sections<'a>(BTreeMap<&'a str, &'a str>);

const MARK: &str = "\n==envforge:";

impl<'a> Sections<'a> {
    /// Splits the output of a run that ended well.
    pub(super) fn parse(stdout: &'a [u8]) -> Result<Self, PackagesError> {
        let text = std::str::from_utf8(stdout)
            .map_err(|error| PackagesError::Output { what: "output", detail: error.to_string() })?;
        let parts = text.split(MARK).skip(1);
        let sections: BTreeMap<_, _> = parts.filter_map(|part| part.split_once("==\n")).collect();
        if sections.contains_key("end") {
            return Ok(Self(sections));
        }
        Err(PackagesError::Output { what: "output", detail: "the output is truncated".to_owned() })
    }
    /// A section that must be there.
    pub(super) fn named(&self, name: &'static str) -> Result<&'a str, PackagesError> {
        self.optional(name).ok_or(PackagesError::Output { what: name, detail: "it is missing".to_owned() })
    }
    /// A section that may be there.
    pub(super) fn optional(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }
}

/// Output of a run for torch 2.8.0 and httpx on Debian 12; hosts are replaced.
#[cfg(test)]
pub(super) const RECORDED: &str = include_str!("../../tests/fixtures/packages/bookworm-torch-2.8.txt");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_in_a_recorded_run() {
        let sections = Sections::parse(RECORDED.as_bytes()).expect("parses");
        assert_eq!(sections.named("python").expect("there").trim(), "3.11");
        assert!(sections.named("framework").expect("there").contains("name = \"torch\""));
        assert!(sections.optional("nothing").is_none());
        let error = sections.named("nothing").expect_err("missing");
        assert!(error.to_string().contains("nothing"), "{error}");
    }

    #[test]
    fn a_run_that_was_cut_is_an_error() {
        let cut = &RECORDED.as_bytes()[..RECORDED.len() / 2];
        assert!(Sections::parse(cut).is_err());
        assert!(Sections::parse(b"\xff").is_err());
    }
}
