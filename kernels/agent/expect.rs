//! What the lock promises, as `key=value` lines.

use std::collections::{BTreeMap, BTreeSet};

/// What must be true of the image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Expectation {
    values: BTreeMap<String, String>,
    pub(crate) arch: BTreeSet<String>,
    pub(crate) ptx: BTreeSet<String>,
    pub(crate) distributions: BTreeMap<String, String>,
}

impl Expectation {
    /// Reads the lines; an unknown key is an error, since a promise must not go unchecked.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut all = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let fault = |what: &str| format!("line {}: {what}: `{line}`", number + 1);
            let (key, value) = line.split_once('=').ok_or_else(|| fault("not `key=value`"))?;
            match key {
                "framework" | "version" | "cuda" | "cudnn" | "nccl" | "triton" | "python" => {
                    all.values.insert(key.to_owned(), value.to_owned());
                }
                "arch" => drop(all.arch.insert(value.to_owned())),
                "ptx" => drop(all.ptx.insert(value.to_owned())),
                "distribution" => {
                    let (name, version) =
                        value.split_once("==").ok_or_else(|| fault("not `name==version`"))?;
                    all.distributions.insert(name.to_owned(), version.to_owned());
                }
                _ => return Err(fault("unknown key")),
            }
        }
        Ok(all)
    }

    /// A single value, if the stack has it.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_unknown_keys_refused() {
        let text = "framework=torch\nversion=2.8.0+cu128\narch=7.0\narch=9.0\ndistribution=torch==2.8.0\n";
        let all = Expectation::parse(text).expect("reads");
        assert_eq!(all.value("version"), Some("2.8.0+cu128"));
        assert_eq!(all.value("nccl"), None);
        assert_eq!(all.arch.len(), 2);
        assert_eq!(all.distributions["torch"], "2.8.0");
        assert!(Expectation::parse("colour=red").unwrap_err().contains("line 1: unknown key"));
        assert!(Expectation::parse("distribution=torch").is_err());
    }
}
