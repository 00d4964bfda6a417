//! Proves that the image's framework computes on the GPU as its users do: by scripts run in the image's own Python.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use envforge_protocol::{CheckGroup, CheckId, Key, Outcome, SkipReason};

use super::{CheckFailure, all_alike, machine};
use crate::checks::Options;
use crate::gpu::driver::Facts;
use crate::report::Report;

const QUICK_IDS: &[CheckId] = CheckGroup::FrameworkGpu.checks();
const FULL_IDS: &[CheckId] = CheckGroup::FrameworkFull.checks();
const TRAIN_IDS: &[CheckId] = CheckGroup::FrameworkTrain.checks();
const DDP_IDS: &[CheckId] = CheckGroup::FrameworkDdp.checks();
const GENERATE_IDS: &[CheckId] = CheckGroup::FrameworkGenerate.checks();

const TORCH: &str = include_str!("../../python/torch_gpu.py");
const OTHERS: &str = include_str!("../../python/others_gpu.py");
const VLLM: &str = include_str!("../../python/vllm_gpu.py");
/// Those of `others_gpu.py`.
const OTHER_NAMES: [&str; 5] = ["tensorflow", "jax", "cupy", "numba", "onnxruntime"];

pub(crate) fn run_quick(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, QUICK_IDS, say);
}

pub(crate) fn run_full(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, FULL_IDS, say);
}

pub(crate) fn run_train(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, TRAIN_IDS, say);
}

pub(crate) fn run_ddp(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, DDP_IDS, say);
}

pub(crate) fn run_generate(options: &Options, say: &mut dyn FnMut(Report)) {
    run(options, GENERATE_IDS, say);
}

fn run(options: &Options, ids: &[CheckId], say: &mut dyn FnMut(Report)) {
    run_program(options, ids, start, say);
}

/// What finds the interpreter and its arguments before the ids; the first is the program, a file that is removed afterwards.
type Start = fn(&Options, &[CheckId]) -> Result<(PathBuf, Vec<String>), CheckFailure>;

/// Runs a program in the image's own Python, on the GPUs that the image has code for.
pub(super) fn run_program(options: &Options, ids: &[CheckId], start: Start, say: &mut dyn FnMut(Report)) {
    // PyTorch names the GPUs it uses itself; the others use the first.
    let (gpus, visible) = match machine(options) {
        Ok((_, devices)) => {
            let listed = std::env::var("CUDA_VISIBLE_DEVICES").ok();
            (devices.first().map(Facts::label).into_iter().collect(), visible(&devices, listed.as_deref()))
        }
        Err(failure) => return all_alike(ids, &failure, say),
    };
    match start(options, ids) {
        Ok((python, words)) => {
            let mut command = Command::new(python);
            command.args(&words).env("CUDA_VISIBLE_DEVICES", visible);
            script_lines(command, ids, gpus, say);
            let _ = std::fs::remove_file(&words[0]);
        }
        Err(failure) => all_alike(ids, &failure, say),
    }
}

/// Returns the GPUs that the framework may see, as `CUDA_VISIBLE_DEVICES` lists them: those that the image has code for.
/// Ordinals count within the list that is set already.
fn visible(devices: &[Facts], listed: Option<&str>) -> String {
    let listed: Vec<_> = listed.into_iter().flat_map(|text| text.split(',')).collect();
    let name = |facts: &Facts| {
        let at = usize::try_from(facts.ordinal).ok();
        at.and_then(|at| listed.get(at)).map_or_else(|| facts.ordinal.to_string(), |name| (*name).to_owned())
    };
    devices.iter().map(name).collect::<Vec<_>>().join(",")
}

/// Returns the interpreter and its arguments before the ids.
fn start(options: &Options, ids: &[CheckId]) -> Result<(PathBuf, Vec<String>), CheckFailure> {
    let python = interpreter(options)?;
    let expected = options.expectation_if_given().map_err(CheckFailure::error)?;
    let other = expected.value(Key::Framework).filter(|name| OTHER_NAMES.contains(name));
    let torch = match (expected.value(Key::Framework), other) {
        (Some("torch"), _) => true,
        (_, Some(_)) => false,
        _ => has(&python, "torch"),
    };
    let generates = ids == GENERATE_IDS;
    if generates && !has(&python, "vllm") {
        return Err(CheckFailure::skip(SkipReason::NotInImage, "vLLM is not in the image"));
    }
    let script = if generates {
        VLLM
    } else if torch {
        TORCH
    } else {
        OTHERS
    };
    let file = program_file(script)?;
    let more = (!torch && !generates).then(|| other.unwrap_or("-").to_owned());
    Ok((python, std::iter::once(file).chain(more).collect()))
}

/// Returns the image's Python.
pub(super) fn interpreter(options: &Options) -> Result<PathBuf, CheckFailure> {
    let python = options.any_python();
    python.ok_or_else(|| CheckFailure::skip(SkipReason::NotInImage, "Python is not in the image"))
}

/// Writes a program to a file, not for `-c`: the ranks that it starts read it again, and Triton and Warp read their kernels there.
pub(super) fn program_file(program: &str) -> Result<String, CheckFailure> {
    let file = std::env::temp_dir().join(format!("envforge-framework-{}.py", std::process::id()));
    let written = std::fs::write(&file, program);
    written.map_err(|error| CheckFailure::error(format!("{}: {error}", file.display())))?;
    Ok(file.display().to_string())
}

/// Whether a module is there; it is not imported.
pub(super) fn has(python: &PathBuf, module: &str) -> bool {
    let script = format!("import importlib.util as u,sys; sys.exit(u.find_spec('{module}') is None)");
    let status =
        Command::new(python).args(["-c", &script]).stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Runs a script and turns its lines into reports as they come.
fn script_lines(mut command: Command, ids: &[CheckId], mut gpus: Vec<String>, say: &mut dyn FnMut(Report)) {
    let child = command
        .args(ids.iter().map(|id| id.as_str()))
        // Triton and CUDA keep caches there.
        .env("HOME", std::env::temp_dir())
        // TensorFlow takes nearly all of the memory and JAX three quarters: other processes would have none.
        .envs([("TF_FORCE_GPU_ALLOW_GROWTH", "true"), ("XLA_PYTHON_CLIENT_PREALLOCATE", "false")])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            let program = command.get_program().display();
            let failure = CheckFailure::error(format!("cannot start {program}: {error}"));
            return all_alike(ids, &failure, say);
        }
    };
    let stderr = child.stderr.take().map(|mut pipe| {
        std::thread::spawn(move || {
            let mut text = String::new();
            let _ = pipe.read_to_string(&mut text);
            text
        })
    });
    let mut reported = Vec::new();
    for line in
        child.stdout.take().into_iter().flat_map(|pipe| BufReader::new(pipe).lines().map_while(Result::ok))
    {
        match line.split_once('\t') {
            Some(("gpu", labels)) => gpus = labels.split('\t').map(str::to_owned).collect(),
            _ if line == "none" => {
                let skip =
                    CheckFailure::skip(SkipReason::NotInImage, "no supported framework is in the image");
                return all_alike(ids, &skip, say);
            }
            _ => {
                if let Some(report) = parsed(&line, ids, &gpus) {
                    reported.push(report.id);
                    say(report);
                }
            }
        }
    }
    let status = child.wait();
    let stderr = stderr.and_then(|reader| reader.join().ok()).unwrap_or_default();
    let last = stderr.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("no output").to_owned();
    let ended = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let missing: Vec<_> =
        ids.iter().copied().filter(|id| !reported.iter().any(|known| known == id)).collect();
    // A framework that cannot start is a finding, not a failure to find out.
    all_alike(&missing, &CheckFailure::fail(format!("the framework exited ({ended}): {last}")), say);
}

/// Parses `id<TAB>outcome<TAB>detail`; a skipped check's outcome is `skipped:REASON`.
fn parsed(line: &str, ids: &[CheckId], gpus: &[String]) -> Option<Report> {
    let mut parts = line.splitn(3, '\t');
    let (id, word, detail) = (parts.next()?, parts.next()?, parts.next()?);
    let (word, reason) = word.split_once(':').map_or((word, None), |(word, reason)| (word, Some(reason)));
    let outcome = Outcome::parse(word).filter(|outcome| *outcome != Outcome::Errored)?;
    let id = *ids.iter().find(|known| known.as_str() == id)?;
    let mut report = Report::new(id, outcome, detail);
    report.skip = reason.and_then(SkipReason::parse);
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
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "python"]);
        let ids = [CheckId::FrameworkMatmul, CheckId::FrameworkConv];
        script_lines(command, &ids, Vec::new(), &mut |report| all.push(report));
        all
    }

    #[test]
    fn lines_become_reports_and_missing_ones_fail() {
        let all = lines(
            "printf 'gpu\\tA\\nnoise\\nframework-matmul\\tpassed\\tfine\\nthree\\tpassed\\tx\\n'; echo boom >&2; exit 3",
        );
        assert_eq!(all.len(), 2);
        assert_eq!((all[0].id, all[0].outcome), (CheckId::FrameworkMatmul, Outcome::Passed));
        assert_eq!(all[0].measured, [("gpu.0".to_owned(), "A".to_owned())]);
        assert_eq!((all[1].id, all[1].outcome), (CheckId::FrameworkConv, Outcome::Failed));
        assert!(all[1].detail.contains('3') && all[1].detail.ends_with("boom"), "{}", all[1].detail);
    }

    /// A framework would also use the GPU that the image has no code for, and fail on it.
    #[test]
    fn framework_sees_only_gpus_that_the_image_has_code_for() {
        let gpu = |ordinal| Facts {
            ordinal,
            handle: 0,
            name: "A".to_owned(),
            capability: (9, 0),
            memory: 0,
            multiprocessors: 0,
            clock: 0,
            memory_clock: 0,
            memory_bus: 0,
            ecc: false,
            exclusive: false,
            integrated: false,
            maps_memory: true,
            bus: String::new(),
        };
        let second_and_third = [gpu(1), gpu(2)];
        assert_eq!(visible(&second_and_third, None), "1,2");
        assert_eq!(visible(&second_and_third, Some("7,5,GPU-3f")), "5,GPU-3f");
    }

    #[test]
    fn image_without_a_framework_is_skipped() {
        let all = lines("echo none");
        assert_eq!(all.len(), 2);
        assert!(all.iter().all(|report| report.skip == Some(SkipReason::NotInImage)));
        let all = lines("printf 'framework-matmul\\tskipped:one-gpu\\tone GPU\\n'");
        assert_eq!((all[0].outcome, all[0].skip), (Outcome::Skipped, Some(SkipReason::OneGpu)));
    }

    #[test]
    fn scripts_give_known_reasons_to_skip() {
        for script in [TORCH, OTHERS, VLLM] {
            let raised: Vec<_> = script.split("raise SkipCheck(").skip(1).collect();
            assert!(!raised.is_empty());
            for call in raised {
                let reason = call.strip_prefix('"').and_then(|rest| rest.split_once('"'));
                let reason = reason.map_or("", |(reason, _)| reason);
                assert!(SkipReason::parse(reason).is_some(), "{call:.60}");
            }
        }
    }

    #[test]
    fn the_scripts_know_every_id() {
        for id in [QUICK_IDS, FULL_IDS, TRAIN_IDS, DDP_IDS].concat() {
            assert!(TORCH.contains(&format!("\"{id}\":")), "{id}");
        }
        assert!(VLLM.contains(&format!("\"{}\"", GENERATE_IDS[0])));
        let python = Command::new("python3").arg("--version").output();
        if python.is_ok() {
            for script in [TORCH, OTHERS, VLLM] {
                let parse = "import ast,sys; ast.parse(sys.argv[1])";
                let status = Command::new("python3").args(["-c", parse, script]).status().expect("runs");
                assert!(status.success());
            }
        }
    }
}
