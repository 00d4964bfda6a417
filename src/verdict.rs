//! The agent's lines and the image's configuration against what the plan requires: passed, failed, with findings.
//!
//! Pure. A required check without a line is an error, never a pass.

#[cfg(test)]
mod fuzz;
mod junit;
mod ran;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};

pub use junit::junit;
pub use ran::{RanOn, allowed_skip, is_kernel_check, ran_on};

use crate::diagnosis::diagnose;
use crate::engine::ImageInfo;
use crate::lock::Lock;
use crate::versions::{ComputeCapability, FrameworkVersion};

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It is not as it must be.
    Failed,
    /// It could not be found out.
    Errored,
    /// It does not apply.
    Skipped,
    /// It is as it must be.
    Passed,
}

/// One check of a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Its id: `framework-cuda`.
    pub id: String,
    /// `static`, `gpu` or `perf`.
    pub stage: String,
    /// True if an image gets no tag without it.
    #[serde(default)]
    pub required: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// What was found, or what went wrong.
    pub detail: String,
    /// Values found.
    #[serde(default)]
    pub measured: BTreeMap<String, String>,
    /// Values promised.
    #[serde(default)]
    pub expected: BTreeMap<String, String>,
    /// What to do.
    #[serde(default)]
    pub hint: Option<String>,
}

/// What the report says in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Word {
    /// Everything required ran on a GPU and passed.
    Passed,
    /// Something failed or errored.
    Failed,
    /// Nothing failed, and nothing ran on a GPU.
    StaticOnly,
}

/// The report of one image, as `verify --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Version of this form.
    pub schema: u32,
    /// The image's id.
    pub image: String,
    /// True if anything was executed on a GPU.
    pub executed: bool,
    /// The verdict in a word.
    pub verdict: Word,
    /// The checks, in the order they ran.
    pub checks: Vec<Check>,
    /// GPUs the checks ran on.
    pub gpus: Vec<String>,
    /// Versions found inside.
    pub versions: BTreeMap<String, String>,
    /// Wall-clock seconds inside the container.
    pub seconds: f64,
    /// What was asked to be checked, as typed.
    #[serde(default)]
    pub name: String,
    /// Registry digests of the image (`name@sha256:...`).
    #[serde(default)]
    pub digests: Vec<String>,
    /// The level that was run: `static`, `quick`, `full`, `perf`.
    #[serde(default)]
    pub level: String,
    /// Compute capabilities that the image is for and on which nothing ran.
    #[serde(default)]
    pub not_proven: Vec<ComputeCapability>,
    /// When it was checked, RFC 3339, UTC.
    #[serde(default)]
    pub checked: String,
}

impl Verdict {
    /// How many checks stand in the way of a tag: failed, errored, or required and skipped.
    pub fn failures(&self) -> usize {
        self.checks.iter().filter(|check| check.is_bad()).count()
    }
}

impl Check {
    fn is_bad(&self) -> bool {
        match self.outcome {
            Outcome::Failed | Outcome::Errored => true,
            Outcome::Skipped => self.required && !allowed_skip(self),
            Outcome::Passed => false,
        }
    }

    /// The check, with what its words mean as its hint if it has none.
    fn diagnosed(mut self) -> Self {
        if self.hint.is_none() && matches!(self.outcome, Outcome::Failed | Outcome::Errored) {
            self.hint = diagnose(&self.detail).map(|finding| finding.hint());
        }
        self
    }

    /// A check of the project itself: its command ended with that code, and this is the last it said.
    pub fn of_project(name: &str, code: i64, last: &str) -> Self {
        const SHOWN: usize = 200;
        let said: String = last.chars().take(SHOWN).collect();
        let problems = match (code, said.as_str()) {
            (0, _) => Vec::new(),
            (code, "") => vec![format!("its command ended with code {code}")],
            (code, said) => vec![format!("its command ended with code {code}: {said}")],
        };
        let good = if said.is_empty() { "its command succeeded" } else { &said };
        Self {
            stage: "project".into(),
            required: true,
            ..Self::made_here(&format!("project-{name}"), &problems, good)
        }
    }

    fn made_here(id: &str, problems: &[String], good: &str) -> Self {
        let outcome = if problems.is_empty() { Outcome::Passed } else { Outcome::Failed };
        let detail = if problems.is_empty() { good.to_owned() } else { problems.join("; ") };
        let (measured, expected) = (BTreeMap::new(), BTreeMap::new());
        Self {
            id: id.into(),
            stage: "static".into(),
            required: false,
            outcome,
            detail,
            measured,
            expected,
            hint: None,
        }
    }
}

/// What an image must be.
#[derive(Clone, Default)]
pub struct Expected {
    /// Ids of the required checks.
    pub required: Vec<String>,
    /// Texts that must be nowhere in its configuration.
    pub forbidden: Vec<String>,
    /// True for an image that envforge did not build: it follows no rule of ours.
    pub foreign: bool,
    /// What came of the project's own checks.
    pub extra: Vec<Check>,
}

/// Checks of the rules that only our images follow, and of the places where only ours have things.
const OWN_RULES: [&str; 10] = [
    "distributions",
    "pip-check",
    "linker-closure",
    "one-cuda",
    "user",
    "leftovers",
    "secrets",
    "compiler",
    "nvcc-version",
    "nvcc",
];

impl std::fmt::Debug for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expected({} required, {} forbidden texts)", self.required.len(), self.forbidden.len())
    }
}

/// The last line of a whole report.
#[derive(Deserialize)]
struct Done {
    #[expect(dead_code, reason = "its presence says that the report is whole")]
    done: bool,
    seconds: f64,
}

/// The verdict on an image: `lines` is what the agent printed, `code` how it ended.
pub fn judge(lines: &str, code: i64, image: &ImageInfo, expected: &Expected) -> Verdict {
    let checks = lines.lines().filter_map(|line| serde_json::from_str(line).ok());
    let mut checks: Vec<Check> = checks.map(|check: Check| Check { required: false, ..check }).collect();
    let done: Option<Done> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).next_back();
    if expected.foreign {
        checks.retain(|check| !OWN_RULES.contains(&check.id.as_str()));
    } else {
        checks.extend(image_checks(image, &expected.forbidden));
    }
    checks.extend(expected.extra.iter().cloned());
    for id in &expected.required {
        match checks.iter_mut().find(|check| check.id == *id) {
            Some(check) => check.required = true,
            None => checks.push(Check {
                required: true,
                outcome: Outcome::Errored,
                ..Check::made_here(
                    id,
                    &[],
                    &format!("the agent said nothing of it and ended with code {code}"),
                )
            }),
        }
    }
    if done.is_none() {
        let detail = format!("the report breaks off; the agent ended with code {code}");
        checks.push(Check { outcome: Outcome::Errored, ..Check::made_here("agent", &[], &detail) });
    }
    let checks: Vec<_> = checks.into_iter().map(Check::diagnosed).collect();
    let bad = checks.iter().any(Check::is_bad);
    let gpus = ran_on(&checks);
    let executed = !gpus.is_empty();
    let versions = checks
        .iter()
        .filter_map(|check| {
            Some((check.id.strip_suffix("-version")?.to_owned(), check.measured.get("value")?.clone()))
        })
        .collect();
    Verdict {
        schema: 1,
        image: image.id.clone(),
        executed,
        verdict: match (bad, executed) {
            (true, _) => Word::Failed,
            (false, true) => Word::Passed,
            (false, false) => Word::StaticOnly,
        },
        checks,
        gpus: gpus.into_iter().map(|gpu| gpu.label).collect(),
        versions,
        seconds: done.map_or(0.0, |done| done.seconds),
        name: String::new(),
        digests: image.digests.clone(),
        level: String::new(),
        not_proven: Vec::new(),
        checked: String::new(),
    }
}

/// What the image's configuration says: who it runs as, and that nothing of the building machine is in it.
fn image_checks(image: &ImageInfo, forbidden: &[String]) -> Vec<Check> {
    let user =
        if image.user == "1000:1000" { vec![] } else { vec![format!("the image runs as `{}`", image.user)] };
    let labels = image.labels.iter().map(|(name, value)| (format!("label {name}"), value.clone()));
    let places: Vec<(String, String)> = labels
        .chain(image.env.iter().map(|line| {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            (format!("variable {name}"), value.to_owned())
        }))
        .chain(
            image
                .history
                .iter()
                .enumerate()
                .map(|(n, line)| (format!("history line {}", n + 1), line.clone())),
        )
        .collect();
    let mut problems = Vec::new();
    for (place, text) in &places {
        if forbidden.iter().any(|secret| text.contains(secret.as_str())) {
            problems.push(format!("{place} holds a credential"));
        } else if has_credentials(text) {
            problems.push(format!("{place} holds an address with credentials"));
        }
        let name = place.strip_prefix("variable ").unwrap_or_default().to_ascii_lowercase();
        if name.ends_with("_proxy")
            || matches!(name.as_str(), "pip_index_url" | "uv_default_index" | "uv_index_url")
        {
            problems.push(format!("{place} is the building machine's"));
        }
    }
    vec![
        Check::made_here("image-user", &user, "1000:1000"),
        Check::made_here(
            "image-addresses",
            &problems,
            "labels, variables and history name no address or credential",
        ),
    ]
}

/// True for `scheme://user:password@host`.
fn has_credentials(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', ' ', '"', '\'', '?']).next().unwrap_or_default();
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// The framework by the name of its Python module, which is what the agent asks.
pub(crate) fn module(framework: &str) -> &str {
    if framework == "pytorch" { "torch" } else { framework }
}

/// The version the framework will say of itself: PyTorch alone adds its variant.
pub(crate) fn promised_version(
    framework: &str,
    version: &FrameworkVersion,
    cuda: impl fmt::Display,
) -> String {
    if framework == "pytorch" { format!("{version}+{cuda}") } else { version.to_string() }
}

/// What the lock promises, in the form the agent reads.
pub fn expectation_file(lock: &Lock) -> String {
    let stack = &lock.stack;
    let mut text = String::new();
    let mut line = |key: &str, value: &str| {
        let _ = writeln!(text, "{key}={value}");
    };
    line("framework", module(&stack.framework));
    line("version", &promised_version(&stack.framework, &stack.version, stack.cuda));
    line("cuda", &stack.toolkit_minor());
    line("python", &stack.python.to_string());
    for (key, value) in [("cudnn", &stack.cudnn), ("nccl", &stack.nccl)] {
        if let Some(value) = value {
            line(key, &value.to_string());
        }
    }
    if let Some(triton) = &stack.triton {
        line("triton", triton);
    }
    if lock.base.cuda {
        line("base-cuda", "yes");
    }
    for (key, all) in [("arch", &stack.requires.gpu), ("ptx", &stack.requires.ptx)] {
        for capability in all {
            line(key, &capability.dotted());
        }
    }
    for capability in stack.target.capabilities() {
        line("target", &capability.dotted());
    }
    if stack.nvcc.is_some() {
        line("nvcc", &stack.toolkit_minor());
        for capability in stack.nvcc_targets() {
            line("nvcc-target", &capability.dotted());
        }
    }
    for wheel in &lock.wheels {
        line("distribution", &format!("{}=={}", wheel.name, wheel.version));
    }
    for library in &lock.added.may_lack {
        line("may-lack", library);
    }
    text
}

/// One line per check, what stands in the way first, each with its hint.
pub fn verdict_text(verdict: &Verdict) -> String {
    let mut checks: Vec<_> = verdict.checks.iter().collect();
    checks.sort_by_key(|check| check.outcome);
    let width = checks.iter().map(|check| check.id.len()).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let word = match check.outcome {
            Outcome::Failed => "failed",
            Outcome::Errored => "error",
            Outcome::Skipped => "skipped",
            Outcome::Passed => "ok",
        };
        let _ = writeln!(text, "{word:7} {:width$}  {}", check.id, check.detail);
        if let Some(hint) = &check.hint {
            let _ = writeln!(text, "{:7} {:width$}  hint: {hint}", "", "");
        }
    }
    text.truncate(text.trim_end().len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a good image whose agent printed that and nothing more.
    pub(super) fn verdict_of(lines: &str) -> Verdict {
        judge(lines, 0, &image(), &Expected::default())
    }

    pub(super) fn image() -> ImageInfo {
        ImageInfo {
            sizes: Vec::new(),
            id: "sha256:1".into(),
            tags: vec![],
            digests: vec![],
            size: 1,
            labels: BTreeMap::from([("io.envforge.name".to_owned(), "x".to_owned())]),
            env: vec!["PATH=/bin".into()],
            user: "1000:1000".into(),
            layers: vec![],
            history: vec!["RUN /bin/sh -c sh /mnt/system.sh".into()],
            architecture: "amd64".into(),
        }
    }

    fn expected() -> Expected {
        let required = ["one", "image-user", "image-addresses"].map(str::to_owned).to_vec();
        Expected { required, forbidden: vec!["planted-token".into()], ..Expected::default() }
    }

    const GOOD: &str = r#"{"schema":1,"agent":"envforge-agent"}
{"id":"one","stage":"static","outcome":"passed","detail":"fine","measured":{},"expected":{},"hint":null}
{"done":true,"seconds":1.25}
"#;

    #[test]
    fn a_good_report_is_static_only_and_never_passed() {
        let verdict = judge(GOOD, 0, &image(), &expected());
        assert_eq!((verdict.failures(), verdict.verdict, verdict.executed), (0, Word::StaticOnly, false));
        assert!((verdict.seconds - 1.25).abs() < f64::EPSILON);
        assert!(verdict.checks.iter().all(|check| check.required));
    }

    #[test]
    fn a_required_check_without_a_line_is_an_error() {
        for cut in ["", "garbage\n", &GOOD[..GOOD.find("{\"id\"").expect("a line")]] {
            let verdict = judge(cut, 137, &image(), &expected());
            assert_eq!(verdict.verdict, Word::Failed, "{cut}");
            let one = verdict.checks.iter().find(|check| check.id == "one").expect("named");
            assert_eq!(one.outcome, Outcome::Errored);
            assert!(one.detail.contains("137"));
        }
    }

    #[test]
    fn a_report_that_breaks_off_fails_even_with_every_line() {
        let cut = GOOD.split("{\"done\"").next().expect("a head");
        assert_eq!(judge(cut, 0, &image(), &expected()).failures(), 1);
    }

    #[test]
    fn a_required_check_that_was_skipped_stands_in_the_way() {
        let skipped = GOOD.replace("\"passed\"", "\"skipped\"");
        assert_eq!(judge(&skipped, 0, &image(), &expected()).failures(), 1);
    }

    #[test]
    fn the_configuration_of_the_image_is_judged_too() {
        type Change = fn(&mut ImageInfo);
        let cases: [(&str, Change); 5] = [
            ("runs as `root`", |image| image.user = "root".into()),
            ("variable X holds a credential", |image| image.env.push("X=planted-token".into())),
            ("history line 2 holds an address", |image| image.history.push("RUN curl http://u:p@h/".into())),
            ("variable https_proxy", |image| image.env.push("https_proxy=http://p".into())),
            ("label l holds a credential", |image| {
                drop(image.labels.insert("l".into(), "planted-token".into()));
            }),
        ];
        for (words, change) in cases {
            let mut image = image();
            change(&mut image);
            let verdict = judge(GOOD, 0, &image, &expected());
            assert_eq!(verdict.failures(), 1, "{words}");
            let text = verdict_text(&verdict);
            assert!(text.starts_with("failed") && text.contains(words), "{text}");
            assert!(!text.contains("planted"), "{text}");
        }
    }

    #[test]
    fn the_lock_becomes_lines_the_agent_reads() {
        let mut lock = crate::lock::sample::lock();
        lock.added.may_lack = vec!["libtbb.so.12".to_owned()];
        let text = expectation_file(&lock);
        assert!(text.ends_with("\nmay-lack=libtbb.so.12\n"), "{text}");
        assert!(text.starts_with("framework=torch\nversion=2.8.0+cu128\ncuda=12.8\n"), "{text}");
        assert!(
            text.contains("arch=7.0\narch=9.0\n") && text.contains("distribution=torch==2.8.0"),
            "{text}"
        );
    }
}
