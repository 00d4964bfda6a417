//! Proves that cuDNN's sub-libraries are next to it, complete and of one version: cuDNN loads them on first use, and ends
//! the process if one is missing.

use std::ffi::CStr;
use std::path::Path;

use envforge_protocol::{CheckId, SkipReason};

use super::library_load::whole;
use super::{Options, display_path};
use crate::dlopen::Library;
use crate::libraries::{self, SearchPaths};
use crate::report::Report;
use crate::versions;

const ID: CheckId = CheckId::CudnnSublibraries;
const HINT: &str = "reinstall cuDNN as one package of one version";

/// A part's name, and the call by which cuDNN loads it and compares versions; some have no such call.
type Part = (&'static str, Option<&'static CStr>);

const NINE: [Part; 6] = [
    ("graph", Some(c"cudnnGraphVersionCheck")),
    ("ops", Some(c"cudnnOpsVersionCheck")),
    ("cnn", Some(c"cudnnCnnVersionCheck")),
    ("adv", Some(c"cudnnAdvVersionCheck")),
    ("heuristic", None),
    ("engines_runtime_compiled", None),
];

const EIGHT: [Part; 6] = [
    ("ops_infer", Some(c"cudnnOpsInferVersionCheck")),
    ("ops_train", Some(c"cudnnOpsTrainVersionCheck")),
    ("cnn_infer", Some(c"cudnnCnnInferVersionCheck")),
    ("cnn_train", Some(c"cudnnCnnTrainVersionCheck")),
    ("adv_infer", Some(c"cudnnAdvInferVersionCheck")),
    ("adv_train", Some(c"cudnnAdvTrainVersionCheck")),
];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let found = SearchPaths::of(&options.root).search();
    let Some(library) = libraries::first(&found, "cudnn") else {
        return vec![Report::skipped(ID, SkipReason::NotInImage, "libcudnn is not in the image")];
    };
    let path = display_path(&options.root, &library.path);
    let file = library.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let major = file.split_once(".so.").map(|(_, rest)| rest.split('.').next().unwrap_or_default());
    let parts = match major {
        Some("9") => NINE,
        Some("8") => EIGHT,
        _ => {
            let text = format!("{path}: unknown cuDNN version");
            return vec![Report::skipped(ID, SkipReason::UnknownFormat, text)];
        }
    };
    let problems = incomplete_parts(&library.path, major.unwrap_or_default(), &parts);
    let problems = if problems.is_empty() { call(&library.path, &path, &parts) } else { problems };
    let good = format!("{} sub-libraries match {path}", parts.len());
    vec![Report::of_problems(ID, good, &problems).hint(HINT)]
}

/// Parts that are not there, or not whole.
fn incomplete_parts(library: &Path, major: &str, parts: &[Part]) -> Vec<String> {
    let folder = library.parent().unwrap_or(library);
    let fault = |(name, _): &Part| {
        let file = format!("libcudnn_{name}.so.{major}");
        let path = folder.join(&file);
        if !path.exists() {
            return Some(format!("{file} not found next to {}", library.file_name()?.to_string_lossy()));
        }
        whole(&path).err().map(|problem| format!("{file}: {problem}"))
    };
    parts.iter().filter_map(fault).collect()
}

/// Lets cuDNN load each part and compare its version.
fn call(library: &Path, shown: &str, parts: &[Part]) -> Vec<String> {
    let opened = match Library::open(library) {
        Ok(opened) => opened,
        Err(problem) => return vec![format!("{shown}: {problem}")],
    };
    let mut problems = Vec::new();
    for (part, check) in parts.iter().filter_map(|(part, check)| Some((part, (*check)?))) {
        let name = check.to_string_lossy();
        // The last line of stderr is reported if the process dies here.
        eprintln!("calling {name} of {shown}");
        match versions::status(opened, check) {
            Some(0) => {}
            Some(status) => {
                problems.push(format!("libcudnn_{part} has a different version: {name} returned {status}"));
            }
            None => problems.push(format!("{shown} has no `{name}`")),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_and_truncated_parts_are_reported() {
        let folder = tempfile::tempdir().expect("folder");
        let own = std::fs::read(std::env::current_exe().expect("a program")).expect("readable");
        for (name, _) in NINE {
            std::fs::write(folder.path().join(format!("libcudnn_{name}.so.9")), &own).expect("written");
        }
        let library = folder.path().join("libcudnn.so.9");
        assert_eq!(incomplete_parts(&library, "9", &NINE), [""; 0]);
        std::fs::remove_file(folder.path().join("libcudnn_cnn.so.9")).expect("removed");
        std::fs::write(folder.path().join("libcudnn_ops.so.9"), &own[..5000]).expect("written");
        let problems = incomplete_parts(&library, "9", &NINE);
        assert!(problems[0].starts_with("libcudnn_ops.so.9: truncated"), "{problems:?}");
        assert_eq!(problems[1], "libcudnn_cnn.so.9 not found next to libcudnn.so.9");
    }
}
