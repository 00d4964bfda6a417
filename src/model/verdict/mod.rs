//! Judges the agent's lines and the image's configuration by the required checks: passed or failed, with hints.
//!
//! Pure. A required check without a line is an error, never a pass.

mod by_name;
mod check;
#[cfg(test)]
mod fuzz;
#[cfg(test)]
pub(crate) mod fuzzed;
mod gpu_coverage;
mod junit;
mod lines;
mod proof;
#[cfg(test)]
mod replay;
pub mod required_checks;
pub mod speed;
pub mod standing;
pub mod tag_policy;
mod text;

use std::collections::BTreeMap;
use std::fmt;

use envforge_protocol::{CheckId, ExpectationText, Key, Scope};
pub use envforge_protocol::{Outcome, SkipReason};
use serde::{Deserialize, Serialize};

pub use check::{Check, is_allowed_skip, is_kernel_check};
pub use gpu_coverage::{GpuCoverage, labels, model_of, ran_on};
pub use junit::junit;
pub use proof::{ImageState, Proof, Proven};
pub use text::{Detail, check_lines, outcome_word, summary, unseen_line, verdict_text};

use self::lines::Lines;
use crate::model::image::info::ImageInfo;
use crate::model::lock::Lock;
use crate::model::versions::{ComputeCapability, FrameworkVersion};
use crate::model::visible::visible_line_within;

/// The overall result of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VerdictStatus {
    /// Everything required ran on a GPU and passed.
    Passed,
    /// Something failed or errored.
    Failed,
    /// Nothing failed, and the host hindered a required check: another program holds the GPU.
    Undecided,
    /// Nothing failed, and nothing ran on a GPU.
    StaticOnly,
}

/// The report of one image, as `verify --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Version of the format.
    pub schema: u32,
    /// The image's ID.
    pub image: String,
    /// Whether anything ran on a GPU.
    pub executed: bool,
    /// The overall result.
    pub verdict: VerdictStatus,
    /// The checks, in the order they ran.
    pub checks: Vec<Check>,
    /// GPUs the checks ran on.
    pub gpus: Vec<String>,
    /// Versions found inside.
    pub versions: BTreeMap<String, String>,
    /// Wall-clock seconds inside the container.
    pub seconds: f64,
    /// The image as given on the command line.
    #[serde(default)]
    pub name: String,
    /// Registry digests of the image (`name@sha256:...`).
    #[serde(default)]
    pub digests: Vec<String>,
    /// The level: `static`, `quick`, `full` or `perf`.
    #[serde(default)]
    pub level: String,
    /// Target compute capabilities on which nothing ran.
    #[serde(default)]
    pub not_proven: Vec<ComputeCapability>,
    /// Time of the check, RFC 3339, UTC.
    #[serde(default)]
    pub checked: String,
    /// Name and version of the container engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Hash of the lock that the image was held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<String>,
    /// Whether it was checked as an image from elsewhere: then the report is the image's own word, whatever becomes of the image later.
    #[serde(default)]
    pub sandboxed: bool,
    /// Digest of the conditions it was made under, for the reports of this machine; `None`: they were not all known.
    #[serde(skip)]
    pub conditions: Option<String>,
}

impl Verdict {
    /// Counts the checks that bar a tag: failed, errored, or required and skipped.
    pub fn failures(&self) -> usize {
        self.checks.iter().filter(|check| check.is_bad()).count()
    }

    /// Returns what the report says of the image: without the project's checks that ran with the project's source mounted.
    #[must_use]
    pub fn of_image(&self) -> Self {
        let mut report = self.clone();
        report.checks.retain(|check| !check.is_of_mounted_project());
        report.verdict = status(&report.checks, report.executed);
        report
    }
}

/// The overall result of checks.
fn status(checks: &[Check], executed: bool) -> VerdictStatus {
    let bad = checks.iter().any(Check::is_bad);
    let hindered = checks.iter().any(|check| check.required && check.is_hindered());
    match (bad, hindered, executed) {
        (true, ..) => VerdictStatus::Failed,
        (false, true, _) => VerdictStatus::Undecided,
        (false, false, true) => VerdictStatus::Passed,
        (false, false, false) => VerdictStatus::StaticOnly,
    }
}

/// The requirements on an image.
#[derive(Clone, Default)]
pub struct ImageExpectations {
    /// Ids of the required checks.
    pub required: Vec<String>,
    /// Texts that must not be in its configuration.
    pub forbidden: Vec<String>,
    /// Whether envforge did not build the image: its own rules do not apply.
    pub foreign: bool,
    /// Results of the project's own checks.
    pub extra: Vec<Check>,
}

impl std::fmt::Debug for ImageExpectations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Expected({} required, {} forbidden texts)", self.required.len(), self.forbidden.len())
    }
}

/// Judges an image by the agent's output; `end` says how it ended: `agent exited with code 1`.
pub fn judge(lines: &str, end: &str, image: &ImageInfo, expected: &ImageExpectations) -> Verdict {
    let Lines { mut checks, seconds, excess } = Lines::read(lines);
    if expected.foreign {
        checks.retain(|check| CheckId::parse(&check.id).is_none_or(|id| id.scope() == Scope::Any));
    } else {
        checks.extend(image_checks(image, &expected.forbidden));
    }
    checks.extend(expected.extra.iter().cloned());
    for id in &expected.required {
        let mut found = false;
        // Every line of it: what the image printed first may not stand for the result.
        for check in checks.iter_mut().filter(|check| check.id == *id) {
            (check.required, found) = (true, true);
        }
        if !found {
            let absent = Check::made_here(id, &[], &format!("no result; {end}"));
            let stage = CheckId::parse(id).map_or(absent.stage.clone(), |id| id.stage().to_string());
            checks.push(Check { required: true, outcome: Outcome::Errored, stage, ..absent });
        }
    }
    let problem = match excess {
        Some(excess) => Some(format!("not a report of the agent: {excess}; {end}")),
        None => seconds.is_none().then(|| format!("incomplete report; {end}")),
    };
    if let Some(detail) = problem {
        checks.push(Check {
            outcome: Outcome::Errored,
            ..Check::made_here(CheckId::Agent.as_str(), &[], &detail)
        });
    }
    let checks: Vec<_> =
        checks.into_iter().map(Check::without_unproven_failure).map(Check::diagnosed).collect();
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
        verdict: status(&checks, executed),
        checks,
        gpus: gpus.into_iter().map(|gpu| gpu.label).collect(),
        versions,
        seconds: seconds.unwrap_or(0.0),
        name: String::new(),
        digests: image.digests.clone(),
        level: String::new(),
        not_proven: Vec::new(),
        checked: String::new(),
        engine: None,
        lock: None,
        sandboxed: false,
        conditions: None,
    }
}

/// A report that others wrote, within the bounds of one that the agent printed. Which checks are required stays as it says.
pub fn bounded_report(report: Verdict) -> Verdict {
    let one = |check: Check| {
        let required = check.required;
        lines::bounded(check).map(|check| Check { required, ..check })
    };
    let word = |text: &String| visible_line_within(text, lines::LONGEST_VALUE);
    let few = |texts: &[String]| texts.iter().take(lines::MOST_VALUES).map(word).collect();
    Verdict {
        checks: report.checks.into_iter().take(lines::MOST_CHECKS).filter_map(one).collect(),
        seconds: report.seconds.clamp(0.0, lines::MOST_SECONDS),
        image: word(&report.image),
        name: word(&report.name),
        level: word(&report.level),
        checked: word(&report.checked),
        engine: report.engine.as_ref().map(word),
        lock: report.lock.as_ref().map(word),
        gpus: few(&report.gpus),
        digests: few(&report.digests),
        versions: lines::values(report.versions),
        not_proven: report.not_proven.into_iter().take(lines::MOST_VALUES).collect(),
        schema: report.schema,
        executed: report.executed,
        verdict: report.verdict,
        sandboxed: report.sandboxed,
        conditions: None,
    }
}

/// Checks the image's configuration: its user, and that it contains nothing of the build host.
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
            problems.push(format!("{place} contains a credential"));
        } else if has_credentials(text) {
            problems.push(format!("{place} contains an address with credentials"));
        }
        let name = place.strip_prefix("variable ").unwrap_or_default().to_ascii_lowercase();
        if name.ends_with("_proxy")
            || matches!(name.as_str(), "pip_index_url" | "uv_default_index" | "uv_index_url")
        {
            problems.push(format!("{place} comes from the build host"));
        }
    }
    vec![
        Check::made_here(CheckId::ImageUser.as_str(), &user, "1000:1000"),
        Check::made_here(
            CheckId::ImageAddresses.as_str(),
            &problems,
            "no address or credential in labels, variables and history",
        ),
    ]
}

/// Whether a text contains `scheme://user:password@host`.
fn has_credentials(text: &str) -> bool {
    text.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', ' ', '"', '\'', '?']).next().unwrap_or_default();
        authority.split_once('@').is_some_and(|(user, _)| user.contains(':'))
    })
}

/// Returns the name of a framework's Python module, which the agent imports.
pub(crate) fn module(framework: &str) -> &str {
    if framework == "pytorch" { "torch" } else { framework }
}

/// Returns the version that the framework reports: only PyTorch adds its variant, and a team's own build its label instead.
pub(crate) fn promised_version(
    framework: &str,
    version: &FrameworkVersion,
    cuda: impl fmt::Display,
) -> String {
    if framework == "pytorch" && version.label().is_empty() {
        format!("{version}+{cuda}")
    } else {
        version.to_string()
    }
}

/// The distribution's package that has the library which NCCL opens for InfiniBand and RoCE.
const RDMA_PACKAGE: &str = "libibverbs1";

/// Writes the facts of a lock as the agent's expectation file.
pub fn expectation_file(lock: &Lock) -> String {
    let stack = &lock.stack;
    let mut text = ExpectationText::default();
    text.add(Key::Framework, module(&stack.framework));
    text.add(Key::Version, promised_version(&stack.framework, &stack.version, stack.cuda));
    text.add(Key::Cuda, stack.toolkit_minor());
    text.add(Key::Python, stack.python);
    for (key, value) in [(Key::Cudnn, &stack.cudnn), (Key::Nccl, &stack.nccl)] {
        if let Some(value) = value {
            text.add(key, value);
        }
    }
    if let Some(triton) = &stack.triton {
        text.add(Key::Triton, triton);
    }
    if lock.base.cuda {
        text.add(Key::BaseCuda, "yes");
    }
    if lock.keeps_login_path() {
        text.add(Key::LoginPath, "yes");
    }
    if lock.debs().any(|deb| deb.name == RDMA_PACKAGE) {
        text.add(Key::Rdma, "yes");
    }
    for (key, all) in [(Key::Arch, &stack.requires.gpu), (Key::Ptx, &stack.requires.ptx)] {
        for capability in all {
            text.add(key, capability.dotted());
        }
    }
    for capability in stack.target.capabilities() {
        text.add(Key::Target, capability.dotted());
    }
    if stack.nvcc.is_some() {
        text.add(Key::Nvcc, stack.toolkit_minor());
        for capability in stack.nvcc_targets() {
            text.add(Key::NvccTarget, capability.dotted());
        }
    }
    if let Some(ptxas) = &stack.ptxas {
        text.add(Key::Ptxas, ptxas.variable.as_str());
        for capability in &ptxas.gpus {
            text.add(Key::PtxasTarget, capability.dotted());
        }
    }
    for wheel in &lock.wheels {
        text.add_distribution(&wheel.name, &wheel.version);
    }
    for library in &lock.added.may_lack {
        text.add(Key::MayLack, library);
    }
    text.into_string()
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Stage;

    use super::*;

    /// Judges a good image by these lines.
    pub(crate) fn verdict_of(lines: &str) -> Verdict {
        judge(lines, "agent exited with code 0", &image(), &ImageExpectations::default())
    }

    pub(crate) fn image() -> ImageInfo {
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
            triggers: vec![],
            architecture: "amd64".into(),
        }
    }

    fn expected() -> ImageExpectations {
        let required = ["one", "image-user", "image-addresses"].map(str::to_owned).to_vec();
        ImageExpectations {
            required,
            forbidden: vec!["planted-token".into()],
            ..ImageExpectations::default()
        }
    }

    const GOOD: &str = r#"{"schema":1,"agent":"envforge-agent"}
{"id":"one","stage":"static","outcome":"passed","detail":"fine","measured":{},"expected":{},"hint":null}
{"done":true,"seconds":1.25}
"#;

    /// Code of the image may print a line of any check before the agent does.
    #[test]
    fn forged_line_does_not_stand_for_the_result() {
        let forged = r#"{"id":"one","stage":"static","outcome":"passed","detail":"forged"}"#;
        let real = |outcome: &str| {
            let line = format!(r#"{{"id":"one","stage":"static","outcome":"{outcome}","detail":"real"}}"#);
            let lines = format!("{forged}\n{line}\n{{\"done\":true,\"seconds\":1}}");
            judge(&lines, "agent exited with code 0", &image(), &expected()).verdict
        };
        assert_eq!(real("passed"), VerdictStatus::StaticOnly);
        for outcome in ["skipped", "failed", "errored"] {
            assert_eq!(real(outcome), VerdictStatus::Failed, "{outcome}");
        }
    }

    #[test]
    fn report_out_of_bounds_fails_whatever_it_says() {
        let line = r#"{"id":"two","stage":"static","outcome":"passed","detail":"fine"}"#;
        for excess in [format!("{line}\n").repeat(2_000), line.replace("fine", &"x".repeat(70_000))] {
            let verdict =
                judge(&(GOOD.to_owned() + &excess), "agent exited with code 0", &image(), &expected());
            assert_eq!(verdict.verdict, VerdictStatus::Failed);
            let last = verdict.checks.last().expect("checks");
            assert!(last.detail.starts_with("not a report of the agent: "), "{}", last.detail);
            assert!(last.detail.ends_with("agent exited with code 0"), "{}", last.detail);
        }
    }

    /// A busy GPU says nothing about the image: neither a failure nor a pass.
    #[test]
    fn busy_host_leaves_the_verdict_undecided() {
        let skipped = |reason: &str| {
            format!(
                r#"{{"id":"two","stage":"gpu","outcome":"skipped","detail":"busy","skip":"{reason}"}}
{{"id":"three","stage":"gpu","outcome":"passed","detail":"exact","measured":{{"gpu.0":"NVIDIA H200 (sm_90)"}}}}
{GOOD}"#
            )
        };
        let requires = |id: &str| {
            let mut expected = expected();
            expected.required.push(id.to_owned());
            expected
        };
        for (reason, required, status) in [
            ("host-busy", "two", VerdictStatus::Undecided),
            ("host-busy", "three", VerdictStatus::Passed),
            ("not-in-image", "two", VerdictStatus::Failed),
        ] {
            let verdict = judge(&skipped(reason), "agent exited with code 0", &image(), &requires(required));
            assert_eq!(verdict.verdict, status, "{reason}, {required} required");
        }
        let failed =
            skipped("host-busy").replace("passed\",\"detail\":\"exact", "failed\",\"detail\":\"wrong");
        assert_eq!(
            judge(&failed, "agent exited with code 0", &image(), &requires("two")).verdict,
            VerdictStatus::Failed
        );
    }

    #[test]
    fn checks_of_a_mounted_project_are_no_fact_of_the_image() {
        let plain = Check::of_project("smoke", 0, "fine");
        let verdict = |extra: Vec<Check>| {
            let expected = ImageExpectations { extra, ..expected() };
            judge(GOOD, "agent exited with code 0", &image(), &expected)
        };
        let failed = || Check::of_project("imports", 1, "ModuleNotFoundError");
        let run = verdict(vec![plain.clone(), failed().with_mounted_project()]);
        assert_eq!((run.failures(), run.verdict), (1, VerdictStatus::Failed));
        let image = run.of_image();
        assert_eq!((image.failures(), image.verdict), (0, VerdictStatus::StaticOnly));
        assert!(image.checks.contains(&plain), "a check of the image alone stays");
        assert_eq!(image.checks.len() + 1, run.checks.len());
        let alone = verdict(vec![failed()]);
        assert_eq!(alone.of_image(), alone);
        assert_eq!(alone.of_image().verdict, VerdictStatus::Failed);
        let hint = failed().without_project().hint.expect("a hint");
        assert!(hint.contains("run `envforge verify` in the project's directory"), "{hint}");
        assert_eq!(plain.clone().without_project(), plain);
    }

    /// A check that nobody saw pass may be wrong itself: its failure is listed and fails no image.
    #[test]
    fn failure_of_an_unproven_check_is_a_warning() {
        let line = |id: &str, outcome: &str| {
            format!(r#"{{"id":"{id}","stage":"gpu","outcome":"{outcome}","detail":"boom"}}"#) + "\n" + GOOD
        };
        for outcome in ["failed", "errored"] {
            let verdict =
                judge(&line("nccl-processes", outcome), "agent exited with code 1", &image(), &expected());
            assert_eq!((verdict.failures(), verdict.verdict), (0, VerdictStatus::StaticOnly), "{outcome}");
            let text = verdict_text(&verdict, Detail::Problems);
            assert!(
                text.starts_with(
                    "skipped nccl-processes  failed, and the check itself has never passed on a GPU: boom"
                ),
                "{text}"
            );
            assert_eq!(
                judge(&line("framework-graph", outcome), "agent exited with code 1", &image(), &expected())
                    .failures(),
                1
            );
        }
        let passed =
            judge(&line("nccl-processes", "passed"), "agent exited with code 0", &image(), &expected());
        assert_eq!(passed.checks[0].outcome, Outcome::Passed);
    }

    #[test]
    fn good_static_report_is_static_only() {
        let verdict = judge(GOOD, "agent exited with code 0", &image(), &expected());
        assert_eq!(
            (verdict.failures(), verdict.verdict, verdict.executed),
            (0, VerdictStatus::StaticOnly, false)
        );
        assert!((verdict.seconds - 1.25).abs() < f64::EPSILON);
        assert!(verdict.checks.iter().all(|check| check.required));
    }

    #[test]
    fn required_check_without_a_line_is_an_error() {
        for cut in ["", "garbage\n", &GOOD[..GOOD.find("{\"id\"").expect("a line")]] {
            let verdict = judge(cut, "agent exited with code 137", &image(), &expected());
            assert_eq!(verdict.verdict, VerdictStatus::Failed, "{cut}");
            let one = verdict.checks.iter().find(|check| check.id == "one").expect("named");
            assert_eq!(one.outcome, Outcome::Errored);
            assert!(one.detail.contains("137"));
        }
    }

    #[test]
    fn incomplete_report_fails_even_with_every_line() {
        let cut = GOOD.split("{\"done\"").next().expect("a head");
        assert_eq!(judge(cut, "agent exited with code 0", &image(), &expected()).failures(), 1);
    }

    #[test]
    fn skipped_required_check_bars_the_tag() {
        let skipped = GOOD.replace("\"passed\"", "\"skipped\"");
        assert_eq!(judge(&skipped, "agent exited with code 0", &image(), &expected()).failures(), 1);
    }

    #[test]
    fn image_configuration_is_judged() {
        type Change = fn(&mut ImageInfo);
        let cases: [(&str, Change); 5] = [
            ("runs as `root`", |image| image.user = "root".into()),
            ("variable X contains a credential", |image| image.env.push("X=planted-token".into())),
            ("history line 2 contains an address", |image| {
                image.history.push("RUN curl http://u:p@h/".into());
            }),
            ("variable https_proxy", |image| image.env.push("https_proxy=http://p".into())),
            ("label l contains a credential", |image| {
                drop(image.labels.insert("l".into(), "planted-token".into()));
            }),
        ];
        for (words, change) in cases {
            let mut image = image();
            change(&mut image);
            let verdict = judge(GOOD, "agent exited with code 0", &image, &expected());
            assert_eq!(verdict.failures(), 1, "{words}");
            let text = verdict_text(&verdict, Detail::Problems);
            assert!(text.starts_with("failed") && text.contains(words), "{text}");
            assert!(!text.contains("planted"), "{text}");
        }
    }

    #[test]
    fn lock_becomes_lines_that_the_agent_parses() {
        let mut lock = crate::model::lock::sample::lock();
        lock.added.may_lack = vec!["libtbb.so.12".to_owned()];
        let text = expectation_file(&lock);
        assert!(text.ends_with("\nmay-lack=libtbb.so.12\n"), "{text}");
        assert!(text.starts_with("framework=torch\nversion=2.8.0+cu128\ncuda=12.8\n"), "{text}");
        assert!(
            text.contains("arch=7.0\narch=9.0\n") && text.contains("distribution=torch==2.8.0"),
            "{text}"
        );
        assert!(!text.contains("ptxas"), "{text}");
        lock.stack.ptxas = Some(crate::model::lock::sample::ptxas());
        let text = expectation_file(&lock);
        assert!(text.contains("\nptxas=TRITON_PTXAS_PATH\nptxas-target=12.1\n"), "{text}");
    }

    #[test]
    fn agents_line_parses_with_all_its_fields() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let line = envforge_protocol::ReportLine {
            id: CheckId::NcclBroadcast,
            stage: Stage::Gpu,
            outcome: Outcome::Skipped,
            detail: "one GPU".into(),
            measured: pair("a", "1"),
            expected: pair("b", "2"),
            hint: Some("add a GPU".into()),
            skip: Some(SkipReason::OneGpu),
        };
        let parsed: Check = serde_json::from_str(&line.to_json()).expect("a check");
        let Check { id, stage, required, outcome, detail, measured, expected, hint, skip } = &parsed;
        assert_eq!((id.as_str(), stage.as_str(), *required), ("nccl-broadcast", "gpu", false));
        assert_eq!((*outcome, detail.as_str(), *skip), (line.outcome, "one GPU", line.skip));
        assert_eq!((&measured["a"], &expected["b"], hint), (&"1".to_owned(), &"2".to_owned(), &line.hint));
        let written = serde_json::to_value(&parsed).expect("JSON");
        let fields = written.as_object().expect("an object").keys().filter(|name| *name != "required");
        let mut known = envforge_protocol::field::LINE;
        known.sort_unstable();
        assert_eq!(fields.collect::<Vec<_>>(), known);
        let without = line.to_json().replace(",\"skip\":\"one-gpu\"", "");
        let parsed: Check = serde_json::from_str(&without).expect("a check");
        assert_eq!(parsed.skip, None);
        assert!(!serde_json::to_string(&parsed).expect("JSON").contains("\"skip\""));
        let later = line.to_json().replace("one-gpu", "unknown-reason");
        assert_eq!(serde_json::from_str::<Check>(&later).expect("a check").skip, None, "allows nothing");
    }

    #[test]
    fn agents_head_and_last_line_parse() {
        let report = format!(
            "{}\n{}\n{}\n",
            envforge_protocol::header_line(),
            GOOD.lines().nth(1).expect("a line"),
            envforge_protocol::done_line(1.25)
        );
        assert_eq!(report, GOOD);
    }

    #[test]
    fn foreign_image_is_not_held_to_envforges_rules() {
        let line = |id: &str| {
            format!("{{\"id\":\"{id}\",\"stage\":\"static\",\"outcome\":\"failed\",\"detail\":\"x\"}}\n")
        };
        let lines = line("pip-check") + &line("nvcc") + &line("loader-path") + &line("a-later-check");
        let expected = ImageExpectations { foreign: true, ..ImageExpectations::default() };
        let verdict = judge(&lines, "agent exited with code 0", &image(), &expected);
        let ids: Vec<_> = verdict.checks.iter().map(|check| check.id.as_str()).collect();
        assert_eq!(ids, ["pip-check", "loader-path", "a-later-check", "agent"]);
    }
}
