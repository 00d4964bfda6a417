//! Proves that CUDA's libraries load, each in a process of its own, and are the versions of the lock by their own word.

use std::fs::File;
use std::path::Path;

use super::super::dl::Library;
use super::super::expect::Expectation;
use super::super::libraries::{self, Places};
use super::super::report::{Outcome, Report};
use super::super::{elf, versions};
use super::{Options, errored, shown};

pub(crate) fn cudart(options: &Options) -> Vec<Report> {
    run("cudart-load", "cudart", options)
}

pub(crate) fn cublas(options: &Options) -> Vec<Report> {
    run("cublas-load", "cublas", options)
}

pub(crate) fn cublaslt(options: &Options) -> Vec<Report> {
    run("cublaslt-load", "cublasLt", options)
}

pub(crate) fn cudnn(options: &Options) -> Vec<Report> {
    run("cudnn-load", "cudnn", options)
}

pub(crate) fn nccl(options: &Options) -> Vec<Report> {
    run("nccl-load", "nccl", options)
}

fn run(id: &str, name: &'static str, options: &Options) -> Vec<Report> {
    let expected = match options.promises() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[id], &problem),
    };
    let wanted = version_of(name, &expected);
    let found = Places::of(&options.root).search();
    let Some(library) = libraries::first(&found, name) else {
        return vec![match expected.nvidia(wheel(name)) {
            Some(wanted) => {
                Report::new(id, Outcome::Failed, format!("lib{name} {wanted} is not in the image"))
                    .hint("the wheel is installed without its library, or lies where no search finds it")
            }
            // Some frameworks hold it in a file of their own.
            None => Report::new(id, Outcome::Skipped, format!("lib{name} is not in the stack")),
        }];
    };
    let path = shown(&options.root, &library.path);
    let report = match load(name, &library.path, &path) {
        Err(problem) => {
            let report = Report::new(id, Outcome::Failed, format!("{path}: {problem}"));
            report.hint("the file is damaged or not of this stack: install it again")
        }
        Ok(None) => Report::new(id, Outcome::Passed, format!("{path} loads; it tells no version without a driver")),
        Ok(Some(version)) => match wanted {
            Some(wanted) => Report::of_value(id, &version, &wanted)
                .hint("another build took its place, or another one is found first: see `loader-path` and `one-cuda`"),
            None => Report::new(id, Outcome::Passed, version),
        },
    };
    vec![report.measure("path", &path)]
}

/// Loads the library and asks for its version.
fn load(name: &str, path: &Path, shown: &str) -> Result<Option<String>, String> {
    whole(path)?;
    // What the report says if the process dies here.
    eprintln!("loading {shown}");
    versions::version(name, Library::open(path)?)
}

/// A file that was cut would end this process by SIGBUS.
pub(crate) fn whole(path: &Path) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let extent = elf::extent(&file).ok_or("it is no ELF file of 64 bits")?;
    if length < extent {
        return Err(format!("it is cut short: {length} bytes, and its header promises {extent}"));
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

/// The version the lock promises, in the form the library tells it.
fn version_of(name: &str, expected: &Expectation) -> Option<String> {
    if name == "cudart" {
        // The runtime tells two parts, which are CUDA's.
        return expected.value("cuda").map(str::to_owned);
    }
    let version = expected.nvidia(wheel(name)).or_else(|| expected.value(name))?;
    Some(version.split('.').take(3).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_lock_promises_is_put_as_the_library_tells_it() {
        let lines = "cuda=12.8\ncudnn=9.10.2.21\nnccl=2.27.3\ndistribution=nvidia-cublas-cu12==12.8.4.1\n";
        let expected = Expectation::parse(lines).expect("reads");
        assert_eq!(version_of("cudnn", &expected).as_deref(), Some("9.10.2"));
        assert_eq!(version_of("nccl", &expected).as_deref(), Some("2.27.3"));
        assert_eq!(version_of("cublasLt", &expected).as_deref(), Some("12.8.4"));
        assert_eq!(version_of("cudart", &expected).as_deref(), Some("12.8"));
        assert_eq!(version_of("cublas", &Expectation::default()), None);
    }

    #[test]
    fn a_library_that_was_cut_is_named_before_it_can_crash_the_check() {
        let own = std::env::current_exe().expect("a program");
        assert_eq!(whole(&own), Ok(()));
        let bytes = std::fs::read(own).expect("readable");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &bytes[..5000]).expect("written");
        assert!(whole(file.path()).unwrap_err().starts_with("it is cut short"));
        std::fs::write(file.path(), "text").expect("written");
        assert!(whole(file.path()).is_err());
    }
}
