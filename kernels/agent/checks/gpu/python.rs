//! Proves that the image's framework computes on the GPU as its users do: by scripts run in the image's own Python.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::super::super::gpu::driver::Facts;
use super::super::super::report::{Outcome, Report};
use super::super::Options;
use super::{Trouble, all_alike, machine};

pub(crate) const QUICK_IDS: &[&str] =
    &["framework-matmul", "framework-conv", "framework-autocast", "framework-graph", "framework-memory"];
pub(crate) const FULL_IDS: &[&str] = &["framework-compile", "framework-ddp"];

const TORCH: &str = include_str!("../../python/torch_gpu.py");
const OTHERS: &str = include_str!("../../python/others_gpu.py");
/// Those of `others_gpu.py`.
const OTHER_NAMES: [&str; 5] = ["tensorflow", "jax", "cupy", "numba", "onnxruntime"];

pub(crate) fn run_quick(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, QUICK_IDS, say);
}

pub(crate) fn run_full(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, FULL_IDS, say);
}

fn run(options: &Options, ids: &[&str], say: &mut dyn FnMut(Report)) {
    // PyTorch names the GPUs it uses itself; the others use the first.
    let first = match machine() {
        Ok((_, devices)) => devices.first().map(Facts::label).into_iter().collect(),
        Err(trouble) => return all_alike(ids, &trouble, say),
    };
    match start(options) {
        Ok((python, words)) => {
            script_lines(&python, &words, ids, first, say);
            let _ = std::fs::remove_file(&words[0]);
        }
        Err(trouble) => all_alike(ids, &trouble, say),
    }
}

/// The interpreter and what it is given besides the ids.
fn start(options: &Options) -> Result<(PathBuf, Vec<String>), Trouble> {
    let python = options.any_python().ok_or_else(|| Trouble::skip("Python is not in the image"))?;
    let expected = options.promises().map_err(Trouble::error)?;
    let other = expected.value("framework").filter(|name| OTHER_NAMES.contains(name));
    let torch = match (expected.value("framework"), other) {
        (Some("torch"), _) => true,
        (_, Some(_)) => false,
        _ => has(&python, "torch"),
    };
    // A file, not `-c`: the ranks that a script starts read it again.
    let file = std::env::temp_dir().join(format!("envforge-framework-{}.py", std::process::id()));
    std::fs::write(&file, if torch { TORCH } else { OTHERS })
        .map_err(|error| Trouble::error(format!("{}: {error}", file.display())))?;
    let more = (!torch).then(|| other.unwrap_or("-").to_owned());
    Ok((python, std::iter::once(file.display().to_string()).chain(more).collect()))
}

/// Whether a module is there; it is not imported.
fn has(python: &PathBuf, module: &str) -> bool {
    let script = format!("import importlib.util as u,sys; sys.exit(u.find_spec('{module}') is None)");
    let status =
        Command::new(python).args(["-c", &script]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a script and turns its lines into reports as they come.
fn script_lines(
    python: &PathBuf,
    words: &[String],
    ids: &[&str],
    mut gpus: Vec<String>,
    say: &mut dyn FnMut(Report),
) {
    let child = Command::new(python)
        .args(words)
        .args(ids)
        // Triton and CUDA keep caches there.
        .env("HOME", std::env::temp_dir())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            let trouble = Trouble::error(format!("{} could not be started: {error}", python.display()));
            return all_alike(ids, &trouble, say);
        }
    };
    let stderr = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            text
        })
    });
    let mut said = Vec::new();
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines().map_while(Result::ok))
    {
        match line.split_once('\t') {
            Some(("gpu", labels)) => gpus = labels.split('\t').map(str::to_owned).collect(),
            _ if line == "none" => {
                return all_alike(ids, &Trouble::skip("no framework that has a check is in the image"), say);
            }
            _ => {
                if let Some(report) = parsed(&line, ids, &gpus) {
                    said.push(report.id.clone());
                    say(report);
                }
            }
        }
    }
    let status = child.wait();
    let stderr = stderr.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let last =
        stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it said nothing").to_owned();
    let ended = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let missing: Vec<_> = ids.iter().copied().filter(|id| !said.iter().any(|known| known == id)).collect();
    // A framework that cannot start is a finding, not a failure to find out.
    all_alike(&missing, &Trouble::fail(format!("the framework ended ({ended}): {last}")), say);
}

fn parsed(line: &str, ids: &[&str], gpus: &[String]) -> Option<Report> {
    let mut parts = line.splitn(3, '\t');
    let (id, word, detail) = (parts.next()?, parts.next()?, parts.next()?);
    let all = [Outcome::Passed, Outcome::Failed, Outcome::Skipped];
    let outcome = all.into_iter().find(|outcome| outcome.word() == word)?;
    let id = ids.iter().find(|known| **known == id)?;
    let mut report = Report::new(id, outcome, detail).in_stage("gpu");
    if outcome != Outcome::Skipped {
        let named = gpus.iter().enumerate().map(|(at, label)| (format!("gpu.{at}"), label.clone()));
        report.measured.extend(named);
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(script: &str) -> Vec<Report> {
        let mut all = Vec::new();
        let words = ["-c", script, "python"].map(str::to_owned);
        script_lines(&"/bin/sh".into(), &words, &["one", "two"], Vec::new(), &mut |report| all.push(report));
        all
    }

    #[test]
    fn lines_become_reports_and_what_was_not_said_fails_with_the_last_words() {
        let all = lines(
            "printf 'gpu\\tA\\nnoise\\none\\tpassed\\tfine\\nthree\\tpassed\\tx\\n'; echo boom >&2; exit 3",
        );
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].id.as_str(), all[0].outcome), ("one", Outcome::Passed));
        assert_eq!(all[0].measured, [("gpu.0".to_owned(), "A".to_owned())]);
        assert_eq!((all[1].id.as_str(), all[1].outcome), ("two", Outcome::Failed));
        assert!(all[1].detail.contains('3') && all[1].detail.ends_with("boom"), "{}", all[1].detail);
    }

    #[test]
    fn an_image_without_a_framework_is_skipped() {
        assert!(lines("echo none").iter().all(|report| report.outcome == Outcome::Skipped));
    }

    #[test]
    fn the_scripts_know_every_id() {
        for id in QUICK_IDS.iter().chain(FULL_IDS) {
            assert!(TORCH.contains(&format!("\"{id}\":")), "{id}");
        }
        let python = Command::new("python3").arg("--version").output();
        if python.is_ok() {
            for script in [TORCH, OTHERS] {
                let parse = "import ast,sys; ast.parse(sys.argv[1])";
                let status = Command::new("python3").args(["-c", parse, script]).status().expect("runs");
                assert!(status.success());
            }
        }
    }
}
