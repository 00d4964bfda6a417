//! Proves that nvcc has the locked version and compiles for the target's GPUs with a host compiler it accepts.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use envforge_protocol::{CheckGroup, CheckId, Expectation, Key, Outcome, SkipReason};

use super::{Options, errored};
use crate::report::Report;

const IDS: &[CheckId] = CheckGroup::Nvcc.checks();
/// Where the image has it; a check of another root runs that root's.
const NVCC: &str = "usr/local/cuda/bin/nvcc";
/// A kernel with a header of the toolkit, and a host part that links the runtime and prints the version it was compiled
/// for (the runtime's own answer needs a driver).
const SOURCE: &str = "\
#include <cuda_fp16.h>
#include <cstdio>
__global__ void scale(__half *data, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = __float2half(__half2float(data[i]) * by);
}
int main() {
    int count = 0;
    cudaGetDeviceCount(&count);
    std::printf(\"%d\\n\", CUDART_VERSION);
    return 0;
}
";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(IDS, &problem),
    };
    let Some(wanted) = expected.value(Key::Nvcc) else {
        let skipped = |id: &CheckId| Report::skipped(*id, SkipReason::NotInStack, "nvcc is not in the stack");
        return IDS.iter().map(skipped).collect();
    };
    let nvcc = options.root.join(NVCC);
    vec![version(&nvcc, wanted), compiles(&nvcc, wanted, &expected)]
}

fn version(nvcc: &Path, wanted: &str) -> Report {
    let hint = "report this: nvcc's package contains another release than the matrix lists";
    match output(Command::new(nvcc).arg("--version")) {
        Ok(text) => {
            Report::of_value(CheckId::NvccVersion, release(&text).unwrap_or("nothing"), wanted).hint(hint)
        }
        Err(problem) => Report::new(CheckId::NvccVersion, Outcome::Failed, problem).hint(hint),
    }
}

/// The release that a compiler of CUDA answers to `--version`: `12.4` of `Cuda compilation tools, release 12.4, V12.4.131`.
pub(super) fn release(text: &str) -> Option<&str> {
    text.split_once("release ")?.1.split([',', '\n']).next()
}

fn compiles(nvcc: &Path, wanted: &str, expected: &Expectation) -> Report {
    let report = match in_folder("nvcc", |folder| compile_in(folder, nvcc, wanted, expected)) {
        Ok(detail) => Report::new(CheckId::Nvcc, Outcome::Passed, detail),
        Err(problem) => Report::new(CheckId::Nvcc, Outcome::Failed, problem),
    };
    report.hint(
        "build again, or report this: nvcc requires cicc, libdevice, the toolkit's headers and a compatible gcc",
    )
}

fn compile_in(folder: &Path, nvcc: &Path, wanted: &str, expected: &Expectation) -> Result<String, String> {
    let source = folder.join("probe.cu");
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    for target in &expected.nvcc_targets {
        let cubin = folder.join(format!("probe.{target}.cubin"));
        let arch = format!("-arch=sm_{}", target.replace('.', ""));
        make_cubin(
            target,
            Command::new(nvcc).args([&arch, "-cubin", "-o"]).arg(&cubin).arg(&source),
            &cubin,
        )?;
    }
    let targets = listed(&expected.nvcc_targets)?;
    let program = folder.join("probe");
    output(Command::new(nvcc).arg("-o").arg(&program).arg(&source))?;
    let runtime = output(&mut Command::new(&program))?;
    let runtime = dotted(runtime.trim()).ok_or_else(|| format!("the program printed `{runtime}`"))?;
    if runtime != wanted {
        return Err(format!("CUDA version mismatch: nvcc is {wanted}, its headers are {runtime}"));
    }
    Ok(format!("compiles for {targets}; a program links and runs"))
}

/// `12040` as `12.4`.
fn dotted(number: &str) -> Option<String> {
    let number: u32 = number.parse().ok()?;
    Some(format!("{}.{}", number / 1000, number % 1000 / 10))
}

/// Runs a check in a directory of its own, which is removed.
pub(super) fn in_folder(
    name: &str,
    check: impl FnOnce(&Path) -> Result<String, String>,
) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("envforge-{name}-{}", std::process::id()));
    let result =
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string()).and_then(|()| check(&folder));
    let _ = std::fs::remove_dir_all(&folder);
    result
}

/// Runs a compiler that must write a cubin for a target.
pub(super) fn make_cubin(target: &str, compiler: &mut Command, cubin: &Path) -> Result<(), String> {
    output(compiler).map_err(|problem| format!("for {target}: {problem}"))?;
    let bytes = std::fs::read(cubin).map_err(|error| format!("for {target}: no cubin: {error}"))?;
    if bytes.starts_with(b"\x7fELF") {
        Ok(())
    } else {
        Err(format!("for {target}: the output is not a cubin"))
    }
}

/// The targets for a report. An error: there is none.
pub(super) fn listed(targets: &BTreeSet<String>) -> Result<String, String> {
    let all: Vec<&str> = targets.iter().map(String::as_str).collect();
    if all.is_empty() { Err("no target given".to_owned()) } else { Ok(all.join(", ")) }
}

/// What a program prints, or the line of it that says why it failed.
pub(super) fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said =
        [output.stderr, output.stdout].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let line = said.lines().find(|line| line.contains("error") || line.contains("fatal"));
    Err(format!("{name}: {}", line.or(said.lines().next()).unwrap_or("failed without output")))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A root with an nvcc of a few lines of shell, and an expectation.
    fn outcomes(script: &str, promises: &str) -> Vec<Report> {
        // The check's directory is named by the process, which all tests share.
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let root = tempfile::tempdir().expect("folder");
        let nvcc = root.path().join(NVCC);
        std::fs::create_dir_all(nvcc.parent().expect("a folder")).expect("made");
        std::fs::write(&nvcc, format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(&nvcc, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let expect = root.path().join("expect");
        std::fs::write(&expect, promises).expect("written");
        run(&Options { expect: Some(expect), root: root.path().into(), ..Options::default() })
    }

    const GOOD: &str = "\
if [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 12.4, V12.4.131'; exit 0; fi
while [ \"$1\" != -o ]; do [ \"$1\" != -arch=sm_61 ] || exit 1; shift; done
case \"$2\" in
*.cubin) printf '\\177ELF' >\"$2\" ;;
*) printf '#!/bin/sh\\necho 12040\\n' >\"$2\"; chmod +x \"$2\" ;;
esac
";

    #[test]
    fn matching_compiler_passes() {
        let reports = outcomes(GOOD, "nvcc=12.4\nnvcc-target=7.0\nnvcc-target=9.0\n");
        assert!(reports.iter().all(|report| report.outcome == Outcome::Passed), "{:?}", reports[1].detail);
        assert_eq!(reports[1].detail, "compiles for 7.0, 9.0; a program links and runs");
    }

    #[test]
    fn mismatch_fails_its_check() {
        let failed = |script: &str, promises: &str, check: usize, words: &str| {
            let reports = outcomes(script, promises);
            assert_eq!(reports[check].outcome, Outcome::Failed, "{words}");
            assert!(reports[check].detail.contains(words), "{}", reports[check].detail);
        };
        failed(GOOD, "nvcc=12.8\nnvcc-target=9.0\n", 0, "`12.4`");
        failed(GOOD, "nvcc=12.8\nnvcc-target=9.0\n", 1, "its headers are 12.4");
        failed(GOOD, "nvcc=12.4\nnvcc-target=6.1\n", 1, "for 6.1");
        failed(GOOD, "nvcc=12.4\n", 1, "no target");
        failed("exit 0\n", "nvcc=12.4\nnvcc-target=9.0\n", 1, "no cubin");
        failed("echo 'nvcc fatal: no gcc' >&2; exit 1\n", "nvcc=12.4\nnvcc-target=9.0\n", 1, "no gcc");
    }

    #[test]
    fn stack_without_nvcc_is_skipped() {
        assert!(outcomes("exit 1\n", "cuda=12.4\n").iter().all(|report| report.outcome == Outcome::Skipped));
    }
}
