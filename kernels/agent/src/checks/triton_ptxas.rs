//! Proves that the ptxas that the image gives to Triton compiles for the GPUs that Triton's own has no target for.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use envforge_protocol::{CheckId, Expectation, Key, Outcome, SkipReason};

use super::nvcc::{in_folder, listed, make_cubin, output, release};
use super::{Options, display_path, errored};
use crate::report::Report;

const ID: CheckId = CheckId::TritonPtxas;
/// The body of a kernel that does nothing.
const KERNEL: &str = ".address_size 64\n.visible .entry probe()\n{\n    ret;\n}\n";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let Some(variable) = expected.value(Key::Ptxas) else {
        let text = "Triton's own ptxas is used: no other is in the stack";
        return vec![Report::skipped(ID, SkipReason::NotInStack, text)];
    };
    let path = std::env::var_os(variable);
    vec![check(options, &expected, variable, path)]
}

/// Checks the ptxas at the path that a variable has.
fn check(options: &Options, expected: &Expectation, variable: &str, path: Option<OsString>) -> Report {
    let result = match path {
        Some(path) if Path::new(&path).is_absolute() => {
            let inside = Path::new(&path).strip_prefix("/").unwrap_or(Path::new(&path)).to_owned();
            let ptxas = options.root.join(inside);
            let shown = display_path(&options.root, &ptxas);
            let compiled = in_folder("ptxas", |folder| compiles_in(folder, &ptxas, expected));
            compiled.map(|targets| format!("{shown} compiles for {targets}"))
        }
        Some(path) => Err(format!("`{variable}` is not a path: `{}`", path.display())),
        None => Err(format!("`{variable}` is not set")),
    };
    let report = match result {
        Ok(detail) => Report::new(ID, Outcome::Passed, detail),
        Err(problem) => Report::new(ID, Outcome::Failed, problem),
    };
    report.hint("build again, and let no variable of the project replace it: Triton's own ptxas has no target for the GPU")
}

fn compiles_in(folder: &Path, ptxas: &Path, expected: &Expectation) -> Result<String, String> {
    let said = output(Command::new(ptxas).arg("--version"))?;
    let isa = newest_isa(&said).ok_or("`--version` of ptxas names no release of CUDA 12.6 or newer")?;
    let (source, cubin) = (folder.join("probe.ptx"), folder.join("probe.cubin"));
    for target in &expected.ptxas_targets {
        // Triton compiles for the variant of the GPU alone.
        let arch = format!("sm_{}a", target.replace('.', ""));
        let text = format!(".version {isa}\n.target {arch}\n{KERNEL}");
        std::fs::write(&source, text).map_err(|error| error.to_string())?;
        let _ = std::fs::remove_file(&cubin);
        let mut compiler = Command::new(ptxas);
        compiler.arg(format!("--gpu-name={arch}")).arg(&source).arg("-o").arg(&cubin);
        make_cubin(target, &mut compiler, &cubin)?;
    }
    listed(&expected.ptxas_targets)
}

/// Returns the newest PTX that a ptxas takes, as Triton computes it: `8.8` of `release 12.9`, `9.0` of `release 13.0`.
fn newest_isa(said: &str) -> Option<String> {
    let (major, minor) = release(said)?.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    match major {
        12 if minor >= 6 => Some(format!("8.{}", minor - 1)),
        13.. => Some(format!("{}.{minor}", major - 4)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const PATH: &str = "/opt/env/lib/python3.11/site-packages/nvidia/cu13/bin/ptxas";
    const GOOD: &str = "\
if [ \"$1\" = --version ]; then echo 'Cuda compilation tools, release 13.0, V13.0.88'; exit 0; fi
[ \"$1\" = --gpu-name=sm_121a ] || { echo \"ptxas fatal   : Value '${1#*=}' is not defined\" >&2; exit 255; }
grep -q '^.version 9.0$' \"$2\" && grep -q '^.target sm_121a$' \"$2\" && printf '\\177ELF' >\"$4\"
";

    /// A root with a ptxas of a few lines of shell, and an expectation.
    fn outcome(script: &str, promises: &str, path: Option<&str>) -> Report {
        // The check's directory is named by the process, which all tests share.
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let root = tempfile::tempdir().expect("folder");
        let ptxas = root.path().join(&PATH[1..]);
        std::fs::create_dir_all(ptxas.parent().expect("a folder")).expect("made");
        std::fs::write(&ptxas, format!("#!/bin/sh\n{script}")).expect("written");
        std::fs::set_permissions(&ptxas, std::fs::Permissions::from_mode(0o755)).expect("executable");
        let expected = Expectation::parse(promises).expect("reads");
        let options = Options { root: root.path().into(), ..Options::default() };
        check(&options, &expected, "TRITON_PTXAS_PATH", path.map(OsString::from))
    }

    #[test]
    fn ptxas_with_the_target_passes() {
        let report = outcome(GOOD, "ptxas-target=12.1\n", Some(PATH));
        assert_eq!(report.outcome, Outcome::Passed, "{}", report.detail);
        assert_eq!(report.detail, format!("{PATH} compiles for 12.1"));
    }

    #[test]
    fn ptxas_without_the_target_fails() {
        let failed = |script: &str, promises: &str, path: Option<&str>, words: &str| {
            let report = outcome(script, promises, path);
            assert_eq!(report.outcome, Outcome::Failed, "{words}");
            assert!(report.detail.contains(words), "{}", report.detail);
        };
        let wanted = "ptxas-target=12.1\n";
        failed(GOOD, "ptxas-target=10.7\n", Some(PATH), "for 10.7: ");
        failed(GOOD, "ptxas-target=10.7\n", Some(PATH), "Value 'sm_107a' is not defined");
        failed(GOOD, "", Some(PATH), "no target given");
        failed(GOOD, wanted, None, "`TRITON_PTXAS_PATH` is not set");
        failed(GOOD, wanted, Some("ptxas"), "is not a path: `ptxas`");
        failed(GOOD, wanted, Some("/opt/env/bin/ptxas"), "ptxas: ");
        failed("echo release 12.4,\n", wanted, Some(PATH), "no release of CUDA 12.6");
        failed("echo release 13.0,\n", wanted, Some(PATH), "no cubin");
        failed(
            "[ $1 = --version ] || echo text >$4; echo release 13.0,\n",
            wanted,
            Some(PATH),
            "not a cubin",
        );
    }

    #[test]
    fn newest_ptx_follows_from_the_release() {
        for (release, isa) in [("12.6", "8.5"), ("12.9", "8.8"), ("13.0", "9.0"), ("13.4", "9.4")] {
            assert_eq!(newest_isa(&format!("release {release}, V{release}.1")).as_deref(), Some(isa));
        }
        assert_eq!(newest_isa("release 11.8, V11.8.89"), None);
        assert_eq!(newest_isa("ptxas"), None);
    }

    #[test]
    fn stack_without_another_ptxas_is_skipped() {
        let root = tempfile::tempdir().expect("folder");
        let expect = root.path().join("expect");
        std::fs::write(&expect, "cuda=12.8\n").expect("written");
        let reports = run(&Options { expect: Some(expect), root: root.path().into(), ..Options::default() });
        assert_eq!(reports[0].outcome, Outcome::Skipped);
    }
}
