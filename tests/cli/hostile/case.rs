//! A case of the hostile set: its folder, its `expect.toml`, and whether what happened is what it asks for.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What must happen, as `expect.toml` has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// The exit code.
    pub(super) exit: i32,
    /// Texts that the output contains.
    #[serde(default)]
    says: Vec<String>,
    /// Texts that the output does not contain.
    #[serde(default)]
    silent: Vec<String>,
    /// Paths, below the folder of the program, that do not exist afterwards.
    #[serde(default)]
    absent: Vec<String>,
    /// The commands that are run, each from the beginning; a kind has its own without this.
    #[serde(default)]
    pub(super) commands: Vec<Vec<String>>,
    /// Requests that the engine gets; without it a case that is refused sends none that does something.
    #[serde(default)]
    pub(super) asks: Vec<String>,
    /// Environment variables of the program.
    #[serde(default)]
    pub(super) variables: std::collections::BTreeMap<String, String>,
}

/// One folder of the set.
#[derive(Debug)]
pub(super) struct Case {
    pub(super) folder: PathBuf,
    pub(super) expect: Expect,
}

/// What happened in one attempt.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) code: i32,
    /// Everything that was said.
    pub(super) output: String,
    /// What must never happen and did: `the engine was asked for /build`.
    pub(super) harm: Vec<String>,
    /// Where the paths of `absent` begin.
    pub(super) root: PathBuf,
}

impl Case {
    fn read(folder: PathBuf) -> Self {
        let text = read(&folder.join("expect.toml"));
        let named = text.strip_prefix("# Property ").and_then(|rest| rest.split_once(':'));
        let number = named.and_then(|(number, _)| number.parse::<u8>().ok());
        assert!(
            number.is_some_and(|number| (1..=35).contains(&number)),
            "expect.toml begins with `# Property N: …`"
        );
        Self { expect: parse(&folder.join("expect.toml"), &text), folder }
    }

    /// A TOML file of the folder as that type; the default without the file.
    pub(super) fn toml<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        let path = self.folder.join(name);
        if path.exists() { parse(&path, &read(&path)) } else { T::default() }
    }

    /// Every way in which the outcome is not the expected one.
    fn problems(&self, outcome: &Outcome) -> Vec<String> {
        let Expect { exit, says, silent, absent, commands: _, asks: _, variables: _ } = &self.expect;
        let mut found = outcome.harm.clone();
        if outcome.code != *exit {
            found.push(format!("exit code {}, expected {exit}", outcome.code));
        }
        let output = &outcome.output;
        found.extend(
            says.iter().filter(|text| !output.contains(*text)).map(|text| format!("`{text}` is missing")),
        );
        found
            .extend(silent.iter().filter(|text| output.contains(*text)).map(|text| format!("says `{text}`")));
        let exists = |path: &&String| outcome.root.join(path).symlink_metadata().is_ok();
        found.extend(absent.iter().filter(exists).map(|path| format!("`{path}` exists")));
        for never in ["panicked", "RUST_BACKTRACE", "\u{1b}"] {
            if output.contains(never) {
                found.push(format!("the output contains {never:?}"));
            }
        }
        if !found.is_empty() {
            found.push(format!("the output is: {output}"));
        }
        found
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn parse<T: DeserializeOwned>(path: &Path, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cases of a kind, by name.
fn folders(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile").join(kind);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut found: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    found.sort();
    found
}

/// Runs every case of a kind and panics with all that went wrong; there are at least `least` hostile ones.
#[track_caller]
pub(super) fn run_kind(kind: &str, least: usize, attempt: fn(&Case) -> Vec<Outcome>) {
    let (mut wrong, all) = (String::new(), folders(kind));
    let harmless = |path: &&PathBuf| path.ends_with("harmless");
    assert_eq!(all.iter().filter(harmless).count(), 1, "`{kind}/harmless` shows that refusals have a reason");
    if all.len() <= least {
        let _ = writeln!(wrong, "{} cases of {kind}, {least} are owed", all.len() - 1);
    }
    for folder in all {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let problems = catch_unwind(AssertUnwindSafe(|| {
            let case = Case::read(folder);
            let outcomes = attempt(&case);
            assert!(!outcomes.is_empty(), "the case has no command");
            outcomes.iter().flat_map(|outcome| case.problems(outcome)).collect()
        }));
        let panicked = |error: Box<dyn std::any::Any + Send>| {
            let text = error.downcast_ref::<String>().cloned();
            vec![
                text.or_else(|| error.downcast_ref::<&str>().map(|text| (*text).to_owned()))
                    .unwrap_or_default(),
            ]
        };
        for problem in problems.unwrap_or_else(panicked) {
            let _ = writeln!(wrong, "{kind}/{name}: {problem}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}
