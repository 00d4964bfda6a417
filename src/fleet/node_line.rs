//! The lines that the launcher prints on a node: one when a stage begins, one for its report.
//!
//! Whatever else a node prints is ignored. Values are words; texts are in base64, and the report's body is compressed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;

use super::hosts::is_host;
use crate::model::bounded::read_bounded;
use crate::model::sha256::sha256_hex;
use crate::model::visible::visible_line_within;

/// How lines begin: that of a stage and that of a report, with the version of the format.
const STAGE: &str = "envforge-node 1 ";
const REPORT: &str = "envforge-report 1 ";
/// How lines end, so that one that was cut is known.
const END: &str = " .";
/// The most bytes of a report's text: as many as a single image may print.
const LARGEST_BODY: u64 = 10 << 20;
/// The most GPUs of a node, and the longest value.
const MOST_GPUS: usize = 64;
const LONGEST_VALUE: usize = 200;

/// Where a node says that it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The call that asked it.
    pub nonce: String,
    /// Its name in the scheduler; empty: none started it.
    pub node: String,
    /// Its host name.
    pub host: String,
    /// The scheduler's job; empty: none.
    pub job: String,
    /// Id of its boot.
    pub boot: String,
}

/// How far a node came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The launcher runs.
    Start,
    /// It looks for a container runtime.
    Runtime,
    /// It fetches the image.
    Pull,
    /// It compares the image's file, which it has, with the one that is meant.
    File,
    /// The checks run.
    Check,
    /// The agent printed a report.
    End,
}

impl Stage {
    const ALL: [(&'static str, Self); 6] = [
        ("start", Self::Start),
        ("runtime", Self::Runtime),
        ("pull", Self::Pull),
        ("file", Self::File),
        ("check", Self::Check),
        ("end", Self::End),
    ];

    fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == text).map(|(_, stage)| *stage)
    }

    /// What the node did there.
    pub fn text(self) -> &'static str {
        match self {
            Self::Start => "starting",
            Self::Runtime => "looking for a container runtime",
            Self::Pull => "fetching the image",
            Self::File => "reading the image's file",
            Self::Check => "running the checks",
            Self::End => "sending its report",
        }
    }
}

/// A GPU as the node's driver lists it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct NodeGpu {
    /// Its id, which no other GPU has.
    pub uuid: String,
    /// Its model.
    pub name: String,
    /// Version of its VBIOS.
    pub vbios: String,
}

/// The report of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeReport {
    /// Where it is.
    pub place: Place,
    /// How far it came.
    pub stage: Stage,
    /// Exit code of what it did last: of the agent, the runtime or `timeout`.
    pub code: u32,
    /// The kernel's release.
    pub kernel: String,
    /// The level of the checks.
    pub level: String,
    /// The container runtime.
    pub runtime: String,
    /// SHA-256 of the agent.
    pub agent: String,
    /// When it began, seconds of the node's clock.
    pub began: i64,
    /// How long it took.
    pub seconds: u32,
    /// Version of the driver; empty: it has none.
    pub driver: String,
    /// Its GPUs.
    pub gpus: Vec<NodeGpu>,
    /// The last that agent or runtime printed on standard error.
    pub why: String,
    /// What the agent printed.
    pub lines: String,
}

/// A line of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeLine {
    /// A stage begins.
    Stage(Place, Stage),
    /// The report.
    Report(Box<NodeReport>),
    /// The beginning of a line and not the rest: it was cut, or bytes of it are lost.
    Damaged {
        /// Where it says that it is, as far as that is there.
        place: Place,
        /// What is wrong.
        why: &'static str,
    },
}

impl NodeLine {
    /// Whether a line is one of a node, or the beginning of one.
    pub fn begins(line: &str) -> bool {
        line.starts_with(STAGE) || line.starts_with(REPORT)
    }

    /// Whether a line that began is whole.
    pub fn ends(line: &str) -> bool {
        line.ends_with(END)
    }

    /// Reads a line; `None`: it is not one of a node.
    pub fn parse(line: &str) -> Option<Self> {
        let (words, is_report) = match (line.strip_prefix(STAGE), line.strip_prefix(REPORT)) {
            (Some(words), _) => (words, false),
            (None, Some(words)) => (words, true),
            (None, None) => return None,
        };
        let words = Words(words);
        let place = words.place();
        let damaged = |why| Some(Self::Damaged { place: place.clone(), why });
        if !Self::ends(line) {
            return damaged("the line is cut");
        }
        let Some(stage) = words.value("stage").and_then(Stage::parse) else {
            return damaged("the stage is missing");
        };
        if !is_report {
            return Some(Self::Stage(place, stage));
        }
        match words.report(&place, stage) {
            Ok(report) => Some(Self::Report(Box::new(report))),
            Err(why) => damaged(why),
        }
    }
}

/// The words `key=value` of a line.
struct Words<'a>(&'a str);

impl<'a> Words<'a> {
    fn value(&self, key: &str) -> Option<&'a str> {
        self.0.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
    }

    /// A value that is shown; empty: it is missing or not a word.
    fn word(&self, key: &str) -> String {
        let value = self.value(key).unwrap_or_default();
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:,/+@-".contains(&byte);
        if value.len() <= LONGEST_VALUE && value.bytes().all(is_plain) {
            value.to_owned()
        } else {
            String::new()
        }
    }

    fn host(&self, key: &str) -> String {
        Some(self.word(key)).filter(|name| is_host(name)).unwrap_or_default()
    }

    fn place(&self) -> Place {
        let [nonce, job, boot] = ["nonce", "job", "boot"].map(|key| self.word(key));
        let [node, host] = ["node", "host"].map(|key| self.host(key));
        Place { nonce, node, host, job, boot }
    }

    /// A text in base64; `None`: it is not one.
    fn bytes(&self, key: &str) -> Option<Vec<u8>> {
        STANDARD.decode(self.value(key)?).ok()
    }

    fn report(&self, place: &Place, stage: Stage) -> Result<NodeReport, &'static str> {
        let number = |key: &str| self.value(key).and_then(|value| value.parse::<u32>().ok());
        let code = number("code").ok_or("the exit code is missing")?;
        let body = self.value("body").ok_or("the body is missing")?;
        if self.value("sum") != sha256_hex(body.as_bytes()).get(..16) {
            return Err("the checksum differs: bytes are missing");
        }
        let packed = STANDARD.decode(body).map_err(|_| "the body is not base64")?;
        let lines = if packed.is_empty() {
            Vec::new()
        } else {
            read_bounded(GzDecoder::new(packed.as_slice()), LARGEST_BODY)
                .map_err(|_| "the body cannot be unpacked, or is too large")?
        };
        let list = String::from_utf8_lossy(&self.bytes("gpus").unwrap_or_default()).into_owned();
        let (driver, gpus) = gpus(&list);
        let why = String::from_utf8_lossy(&self.bytes("why").unwrap_or_default()).into_owned();
        Ok(NodeReport {
            place: place.clone(),
            stage,
            code,
            kernel: self.word("kernel"),
            level: self.word("level"),
            runtime: self.word("runtime"),
            agent: self.word("agent"),
            began: self.value("began").and_then(|value| value.parse().ok()).unwrap_or_default(),
            seconds: number("seconds").unwrap_or_default(),
            driver,
            gpus,
            why,
            lines: String::from_utf8_lossy(&lines).into_owned(),
        })
    }
}

/// The driver and the GPUs of the lines `UUID, DRIVER, VBIOS, NAME`.
fn gpus(list: &str) -> (String, Vec<NodeGpu>) {
    let shown = |text: &str| visible_line_within(text.trim(), 100);
    let (mut driver, mut gpus) = (String::new(), Vec::new());
    for line in list.lines().take(MOST_GPUS) {
        let mut fields = line.splitn(4, ',');
        let (Some(uuid), Some(version), Some(vbios), Some(name)) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        driver = shown(version);
        gpus.push(NodeGpu { uuid: shown(uuid), name: shown(name), vbios: shown(vbios) });
    }
    (driver, gpus)
}
