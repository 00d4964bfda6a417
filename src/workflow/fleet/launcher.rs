//! The text that each node runs: values, the launcher of `templates/cluster/`, the agent.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::limits::Limits;
use super::subject::{NodeFile, Subject};
use crate::agent;
use crate::model::export::cluster::{RUNTIME, enroot_name};
use crate::model::image::render::shell_word;
use crate::model::request::{FileKind, Level};
use crate::workflow::check_container::without_file_checks;

const NODE: &str = include_str!("../../../templates/cluster/node.sh");
/// The place of that choice in the launcher.
const PLACE: &str = "#RUNTIME#\n";
/// Columns of the agent in base64.
const COLUMNS: usize = 4_000;

/// What nodes are given on standard input.
#[derive(Clone)]
pub(crate) struct Launcher {
    /// The call, which each report must name.
    pub(crate) nonce: String,
    /// The bytes for `bash -s`.
    pub(crate) input: Bytes,
    /// Those that ask alone whether a node has the image.
    probe: Bytes,
    /// Whether a node may have to fetch what is checked: a file is there or not.
    pub(super) fetches: bool,
}

impl Launcher {
    /// The launcher of an image or file. `expected`: the facts of its lock, if that is known.
    pub(crate) fn new(subject: &Subject, level: Level, expected: Option<&str>, limits: Limits) -> Self {
        Self::of(subject, level, expected, (limits, "yes"))
    }

    /// The launcher that asks a node whether it has the image: `Stage::Check` would come next there. It is of the same call.
    pub(super) fn probe(&self) -> Self {
        Self {
            nonce: self.nonce.clone(),
            input: self.probe.clone(),
            probe: Bytes::new(),
            fetches: self.fetches,
        }
    }

    /// A script for `sbatch`. Its node answers into a file, and the end of its input ends nothing.
    pub(crate) fn script(subject: &Subject, level: Level, expected: Option<&str>, limits: Limits) -> Bytes {
        let launcher = Self::of(subject, level, expected, (limits, "no"));
        let input = String::from_utf8_lossy(&launcher.input);
        // No line of base64 and none of the launcher has a hyphen at its beginning.
        Bytes::from(format!("#!/bin/bash\nexec bash -s <<'-end-'\n{input}-end-\n"))
    }

    fn of(
        subject: &Subject,
        level: Level,
        expected: Option<&str>,
        (limits, watched): (Limits, &str),
    ) -> Self {
        let nonce = format!("{:016x}", rand::random::<u64>());
        let mut words: Vec<String> =
            [level.as_str(), "--json", "--expect", "/envforge/expect.txt"].map(str::to_owned).to_vec();
        if expected.is_some() {
            words.extend(without_file_checks());
        }
        let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
        let (image, kind, sum, uri) = match subject {
            Subject::Image(image) => {
                (image.to_string(), "image", "", format!("docker://{}", enroot_name(image)))
            }
            Subject::File(NodeFile { path, sha256, kind }) => {
                let kind = match kind {
                    FileKind::Sif => "sif",
                    FileKind::Squashfs => "squashfs",
                };
                (path.to_string(), kind, sha256.as_str(), String::new())
            }
        };
        let mut text = format!(
            "nonce={nonce}\nwatched={watched}\nimage={}\nkind={kind}\nsum={sum}\nuri={}\nagent={}\nlevel={level}\npull_seconds={}\ncheck_seconds={}\nexpect={}\nwords=({})\n",
            shell_word(&image),
            shell_word(&uri),
            agent::sha256(),
            limits.pull.as_secs().max(1),
            limits.checks.as_secs().max(1),
            STANDARD.encode(expected.unwrap_or_default()),
            words.join(" "),
        );
        text += &NODE.replacen(PLACE, RUNTIME, 1);
        let probe = Bytes::from(format!("{text}probe\n.\n"));
        text += "main\n";
        for line in STANDARD.encode(agent::AGENT).as_bytes().chunks(COLUMNS) {
            text += &String::from_utf8_lossy(line);
            text.push('\n');
        }
        text += ".\n";
        let fetches = matches!(subject, Subject::Image(_));
        Self { nonce, input: Bytes::from(text), probe, fetches }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn launcher_has_its_values_the_choice_of_the_runtime_and_the_agent() {
        let image = format!("box.test/team/torch@sha256:{}", "a".repeat(64)).parse();
        let image = Subject::Image(image.expect("a reference"));
        let limits = Limits { pull: Duration::from_secs(5), checks: Duration::from_secs(7) };
        let launcher = Launcher::new(&image, Level::Quick, Some("framework=torch\n"), limits);
        let text = String::from_utf8(launcher.input.to_vec()).expect("text");
        assert!(
            text.starts_with(&format!(
                "nonce={}\nwatched=yes\nimage='box.test/team/torch@sha256:aa",
                launcher.nonce
            )),
            "{}",
            &text[..300]
        );
        assert!(
            text.contains("\npull_seconds=5\ncheck_seconds=7\n") && text.contains("words=('quick' '--json' ")
        );
        assert!(text.contains("--skip' 'secrets'") && !text.contains("#RUNTIME#"));
        assert!(text.contains("apptainer singularity docker podman"));
        assert!(text.ends_with("\n.\n"));
        let agent: String =
            text.rsplit_once("\nmain\n").expect("the agent").1.trim_end_matches(".\n").split('\n').collect();
        assert_eq!(STANDARD.decode(agent).expect("base64"), agent::AGENT);
        let probe = launcher.probe();
        let asks = String::from_utf8(probe.input.to_vec()).expect("text");
        assert_eq!(probe.nonce, launcher.nonce);
        assert!(asks.ends_with("\nprobe\n.\n") && !asks.contains("\nmain\n"), "no agent is sent for that");
        let foreign = Launcher::new(&image, Level::Quick, None, limits);
        let text = String::from_utf8(foreign.input.to_vec()).expect("text");
        assert!(text.contains("words=('quick' '--json' '--expect' '/envforge/expect.txt')\n"));
        assert_ne!(foreign.nonce, launcher.nonce);
        let script = Launcher::script(&image, Level::Quick, None, limits);
        let script = String::from_utf8(script.to_vec()).expect("text");
        let input = script.strip_prefix("#!/bin/bash\nexec bash -s <<'-end-'\n").expect("a script");
        let input = input.strip_suffix("\n.\n-end-\n").expect("its end");
        assert!(input.contains("\nwatched=no\n") && input.contains("\nkind=image\nsum=\n"));
        assert!(input.lines().all(|line| line != "-end-"));

        let file = |kind| NodeFile { path: "/it's/a".into(), sha256: "b".repeat(64), kind };
        for (kind, word) in [(FileKind::Sif, "sif"), (FileKind::Squashfs, "squashfs")] {
            let launcher = Launcher::new(&Subject::File(file(kind)), Level::Quick, None, limits);
            let text = String::from_utf8(launcher.input.to_vec()).expect("text");
            let values = format!("\nimage='/it'\\''s/a'\nkind={word}\nsum={}\n", "b".repeat(64));
            assert!(text.contains(&values), "{}", &text[..300]);
        }
    }
}
