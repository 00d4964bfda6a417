//! Proves that CUDA's libraries load, each in a process of its own, and are the versions of the lock by their own word.

use std::fs::File;
use std::path::Path;

use envforge_protocol::{CheckId, Expectation, Key, Outcome, SkipReason, elf};

use super::{Options, display_path, errored};
use crate::dlopen::Library;
use crate::libraries::{self, SearchPaths};
use crate::report::Report;
use crate::versions;

pub(crate) fn cudart(options: &Options) -> Vec<Report> {
    run(CheckId::CudartLoad, "cudart", options)
}

pub(crate) fn cublas(options: &Options) -> Vec<Report> {
    run(CheckId::CublasLoad, "cublas", options)
}

pub(crate) fn cublaslt(options: &Options) -> Vec<Report> {
    run(CheckId::CublasltLoad, "cublasLt", options)
}

pub(crate) fn cudnn(options: &Options) -> Vec<Report> {
    run(CheckId::CudnnLoad, "cudnn", options)
}

pub(crate) fn nccl(options: &Options) -> Vec<Report> {
    run(CheckId::NcclLoad, "nccl", options)
}

fn run(id: CheckId, name: &'static str, options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[id], &problem),
    };
    let wanted = version_of(name, &expected);
    let found = SearchPaths::of(&options.root).search();
    let Some(library) = libraries::first(&found, name) else {
        return vec![match expected.nvidia(wheel(name)) {
            Some(wanted) => {
                Report::new(id, Outcome::Failed, format!("lib{name} {wanted} is not in the image"))
                    .hint("reinstall the wheel: its library is missing or is outside the search paths")
            }
            // Some frameworks hold it in a file of their own.
            None => Report::skipped(id, SkipReason::NotInStack, format!("lib{name} is not in the stack")),
        }];
    };
    let path = display_path(&options.root, &library.path);
    let report = match load(name, &library.path, &path) {
        Err(problem) => {
            let report = Report::new(id, Outcome::Failed, format!("{path}: {problem}"));
            report.hint("reinstall the library: the file is damaged or from another stack")
        }
        Ok(None) => Report::new(id, Outcome::Passed, format!("{path} loads (no version without a driver)")),
        Ok(Some(version)) => match wanted {
            Some(wanted) => Report::of_value(id, &version, &wanted)
                .hint("check `loader-path` and `one-cuda`: another build is installed or found first"),
            None => Report::new(id, Outcome::Passed, version),
        },
    };
    vec![report.measure("path", &path)]
}

/// Loads the library and asks for its version.
fn load(name: &str, path: &Path, shown: &str) -> Result<Option<String>, String> {
    whole(path)?;
    // The last line of stderr is reported if the process dies here.
    eprintln!("loading {shown}");
    versions::version(name, Library::open(path)?)
}

/// A file that was cut would end this process by SIGBUS.
pub(crate) fn whole(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let extent = elf::extent(&file).ok_or("not a 64-bit ELF file")?;
    if length < extent {
        return Err(format!("truncated: expected {extent} bytes, found {length}"));
    }
    Ok(())
}

/// NVIDIA's name for the wheel that holds it.
fn wheel(name: &str) -> &str {
    match name {
        "cudart" => "cuda-runtime",
        "cublasLt" => "cublas",
        other => other,
    }
}

/// Returns the locked version, in the form in which the library reports it.
fn version_of(name: &str, expected: &Expectation) -> Option<String> {
    if name == "cudart" {
        // The runtime reports two parts, which are CUDA's.
        return expected.value(Key::Cuda).map(str::to_owned);
    }
    let version = expected.nvidia(wheel(name)).or_else(|| expected.value(Key::parse(name)?))?;
    Some(version.split('.').take(3).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locked_version_has_the_librarys_form() {
        let lines = "cuda=12.8\ncudnn=9.10.2.21\nnccl=2.27.3\ndistribution=nvidia-cublas-cu12==12.8.4.1\n";
        let expected = Expectation::parse(lines).expect("reads");
        assert_eq!(version_of("cudnn", &expected).as_deref(), Some("9.10.2"));
        assert_eq!(version_of("nccl", &expected).as_deref(), Some("2.27.3"));
        assert_eq!(version_of("cublasLt", &expected).as_deref(), Some("12.8.4"));
        assert_eq!(version_of("cudart", &expected).as_deref(), Some("12.8"));
        assert_eq!(version_of("cublas", &Expectation::default()), None);
    }

    #[test]
    fn truncated_library_is_rejected_before_it_is_loaded() {
        let own = std::env::current_exe().expect("a program");
        assert_eq!(whole(&own), Ok(()));
        let bytes = std::fs::read(own).expect("readable");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &bytes[..5000]).expect("written");
        assert!(whole(file.path()).unwrap_err().starts_with("truncated"));
        std::fs::write(file.path(), "text").expect("written");
        assert!(whole(file.path()).is_err());
    }
}
