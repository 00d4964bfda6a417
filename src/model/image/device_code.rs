//! The device code of an image: the bytes that each GPU architecture takes in each library, as the agent lists them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize, Serializer};

use crate::model::versions::ComputeCapability;

/// The most libraries of a list: an image with every framework has some 300.
const MOST_LIBRARIES: usize = 20_000;

/// What code was compiled for. Machine code sorts before PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeTarget {
    /// Machine code of an architecture; prints `sm_90`.
    Machine(ComputeCapability),
    /// PTX, which the driver compiles on a later architecture; prints `compute_90`.
    Ptx(ComputeCapability),
}

impl CodeTarget {
    fn parse(text: &str) -> Option<Self> {
        let of = |digits: &str| format!("sm_{digits}").parse().ok();
        match text.split_once('_')? {
            ("sm", digits) => of(digits).map(Self::Machine),
            ("compute", digits) => of(digits).map(Self::Ptx),
            _ => None,
        }
    }
}

impl fmt::Display for CodeTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Machine(capability) => capability.fmt(f),
            Self::Ptx(ComputeCapability { major, minor }) => f.pad(&format!("compute_{major}{minor}")),
        }
    }
}

impl Serialize for CodeTarget {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The device code of one library.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LibraryCode {
    /// Its path in the image.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
    /// Bytes of code for each architecture.
    pub code: BTreeMap<CodeTarget, u64>,
    /// Why its code is unknown; absent: it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<String>,
}

impl LibraryCode {
    /// Returns the bytes of all its code.
    pub fn bytes(&self) -> u64 {
        self.code.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

/// The device code of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DeviceCode {
    /// Bytes of code for each architecture, in all libraries.
    pub targets: BTreeMap<CodeTarget, u64>,
    /// The libraries with code or with unknown code, most code first.
    pub libraries: Vec<LibraryCode>,
}

/// A line of the agent.
#[derive(Deserialize)]
struct Line {
    path: String,
    size: u64,
    #[serde(default)]
    code: BTreeMap<String, u64>,
    unknown: Option<String>,
}

impl DeviceCode {
    /// Parses the lines of `agent code`; the error says which part is not as the agent writes it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<&str> = text.lines().collect();
        let (end, lines) = lines.split_last().ok_or("no output")?;
        if !end.contains("\"done\":true") {
            return Err("the list is incomplete".to_owned());
        }
        if lines.len() > MOST_LIBRARIES {
            return Err(format!("more than {MOST_LIBRARIES} libraries"));
        }
        let mut libraries = lines
            .iter()
            .enumerate()
            .map(|(number, line)| library(line).ok_or(format!("line {} is not of a library", number + 1)))
            .collect::<Result<Vec<_>, _>>()?;
        libraries.sort_by(|a, b| (b.bytes(), &a.path).cmp(&(a.bytes(), &b.path)));
        let mut targets: BTreeMap<_, u64> = BTreeMap::new();
        for (target, bytes) in libraries.iter().flat_map(|library| &library.code) {
            let sum = targets.entry(*target).or_default();
            *sum = sum.saturating_add(*bytes);
        }
        Ok(Self { targets, libraries })
    }

    /// Returns the bytes of all code.
    pub fn bytes(&self) -> u64 {
        self.targets.values().fold(0, |sum, bytes| sum.saturating_add(*bytes))
    }
}

fn library(line: &str) -> Option<LibraryCode> {
    let Line { path, size, code, unknown } = serde_json::from_str(line).ok()?;
    let code = code.iter().map(|(name, bytes)| Some((CodeTarget::parse(name)?, *bytes)));
    let library = LibraryCode { path, size, code: code.collect::<Option<_>>()?, unknown };
    // Code is a part of its file.
    (library.bytes() <= library.size).then_some(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: &str = "{\"done\":true,\"seconds\":0.5}\n";

    #[test]
    fn code_is_summed_by_architecture_and_sorted_by_bytes() {
        let text = [
            r#"{"path":"/a.so","size":90,"code":{"sm_80":10,"compute_90":1}}"#,
            r#"{"path":"/b.so","size":900,"code":{"sm_100":500,"sm_80":20}}"#,
            r#"{"path":"/c.so","size":9,"unknown":"unknown bytes at 0x10"}"#,
        ];
        let code = DeviceCode::parse(&format!("{}\n{DONE}", text.join("\n"))).expect("the agent's lines");
        let targets: Vec<_> =
            code.targets.iter().map(|(target, bytes)| format!("{target} {bytes}")).collect();
        assert_eq!(targets, ["sm_80 30", "sm_100 500", "compute_90 1"]);
        let paths: Vec<_> = code.libraries.iter().map(|library| library.path.as_str()).collect();
        assert_eq!((paths.as_slice(), code.bytes()), (&["/b.so", "/a.so", "/c.so"][..], 531));
        let json = serde_json::to_value(&code).expect("JSON");
        assert_eq!(json["targets"], serde_json::json!({"sm_80": 30, "sm_100": 500, "compute_90": 1}));
        assert_eq!(json["libraries"][2]["unknown"], "unknown bytes at 0x10");
    }

    #[test]
    fn lines_of_another_shape_are_rejected() {
        assert_eq!(DeviceCode::parse(DONE), Ok(DeviceCode::default()), "an image without device code");
        for (line, problem) in [
            ("", "line 1"),
            ("no JSON", "line 1"),
            (r#"{"path":"/a.so","size":90,"code":{"sm_8":10}}"#, "line 1"),
            (r#"{"path":"/a.so","size":90,"code":{"gfx_90":10}}"#, "line 1"),
            (r#"{"path":"/a.so","size":9,"code":{"sm_80":10}}"#, "line 1"),
            (r#"{"path":"/a.so","size":90,"code":{"sm_80":-1}}"#, "line 1"),
        ] {
            let error = DeviceCode::parse(&format!("{line}\n{DONE}")).expect_err(line);
            assert!(error.contains(problem), "{line}: {error}");
        }
        assert!(DeviceCode::parse("").is_err() && DeviceCode::parse("{\"path\":\"/a\",\"size\":1}").is_err());
    }
}
