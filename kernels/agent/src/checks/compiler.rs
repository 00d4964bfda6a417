//! Proves that C code compiles against Python's headers: Triton does so when a kernel is first used.

use std::process::{Command, Stdio};

use envforge_protocol::{CheckId, Outcome};

use super::Options;
use crate::report::Report;

const ID: CheckId = CheckId::Compiler;
const SOURCE: &str =
    "#include <Python.h>\n#include <math.h>\nint main(void) { return PY_MAJOR_VERSION == 3 ? 0 : 1; }\n";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let report = match compile(options) {
        Ok(version) => Report::new(ID, Outcome::Passed, version),
        Err(problem) => Report::new(ID, Outcome::Failed, problem),
    };
    vec![report.hint("add gcc and Python's headers to the image: torch.compile requires them")]
}

fn compile(options: &Options) -> Result<String, String> {
    let folder = std::env::temp_dir().join(format!("envforge-compiler-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let result = compile_in(&folder, options);
    let _ = std::fs::remove_dir_all(&folder);
    result
}

fn compile_in(folder: &std::path::Path, options: &Options) -> Result<String, String> {
    let source = folder.join("probe.c");
    std::fs::write(&source, SOURCE).map_err(|error| error.to_string())?;
    let include = output(
        Command::new(options.python())
            .args(["-c", "import sysconfig; print(sysconfig.get_paths()['include'])"]),
    )?;
    let program = folder.join("probe");
    output(Command::new("cc").arg(format!("-I{}", include.trim())).arg(&source).arg("-o").arg(&program))?;
    output(&mut Command::new(&program))?;
    let version = output(Command::new("cc").arg("--version"))?;
    Ok(version.lines().next().unwrap_or_default().to_owned())
}

fn output(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{name}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    Err(format!("{name}: {}", stderr.lines().find(|line| line.contains("error")).unwrap_or("failed")))
}
