//! Proves that nothing on the loader's path replaces the driver or of the framework's own CUDA.

use std::path::Path;

use envforge_protocol::CheckId;

use super::{Options, display_path};
use crate::libraries::{FoundVia, SearchPaths};
use crate::report::Report;

const ID: CheckId = CheckId::LoaderPath;
const HINT: &str = "unset LD_LIBRARY_PATH, or remove that directory from it or from /etc/ld.so.conf.d: the driver's libraries come from the \
     host, CUDA's from the framework's wheels";

pub(crate) fn run(options: &Options) -> Vec<Report> {
    vec![judge(options, &SearchPaths::of(&options.root))]
}

fn judge(options: &Options, places: &SearchPaths) -> Report {
    let name = |path: &Path| display_path(&options.root, path);
    let mut problems = Vec::new();
    let searched =
        places.folders().into_iter().filter(|(via, _)| matches!(via, FoundVia::Variable | FoundVia::Loader));
    for (via, folder) in searched {
        let driver = ["libcuda.so.1", "libcuda.so", "libnvidia-ml.so.1"].map(|file| folder.join(file));
        let there = driver.iter().find(|file| file.exists());
        if let Some(file) = there.filter(|_| folder.ends_with("stubs")) {
            let place =
                if via == FoundVia::Variable { "LD_LIBRARY_PATH" } else { "the loader's configuration" };
            problems.push(format!("{place} leads to {}, a stub, not the driver", name(file)));
        }
        // A build under a container runtime that injects the driver leaves empty files where it mounted them.
        let empty =
            |file: &&std::path::PathBuf| file.metadata().is_ok_and(|data| data.is_file() && data.len() == 0);
        problems.extend(driver.iter().filter(empty).map(|file| format!("{} is an empty file", name(file))));
    }
    let found = places.search();
    for other in found.iter().filter(|library| library.via == FoundVia::Variable) {
        let own = found.iter().find(|library| library.via == FoundVia::Python && library.name == other.name);
        if let Some(own) = own {
            problems.push(format!(
                "LD_LIBRARY_PATH puts {} before the framework's {}",
                name(&other.path),
                name(&own.path)
            ));
        }
    }
    problems.sort();
    problems.dedup();
    Report::of_problems(ID, "resolves to one CUDA and no stubs", &problems).hint(HINT)
}

#[cfg(test)]
mod tests {
    use envforge_protocol::Outcome;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }

    #[test]
    fn stubs_second_cuda_and_empty_driver_are_reported() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("there");
        write(&root, "opt/env/lib/python3.11/site-packages/nvidia/cudnn/lib/libcudnn.so.9", "x");
        write(&root, "usr/local/cuda/lib64/libcudnn.so.8", "x");
        write(&root, "usr/local/cuda/lib64/stubs/libcuda.so", "x");
        let options = Options { root: root.clone(), ..Options::default() };
        let judged = |variable: &str| {
            let places = SearchPaths { root: root.clone(), variable: variable.into(), prefixes: Vec::new() };
            judge(&options, &places)
        };
        assert_eq!(judged("").outcome, Outcome::Passed);
        let stubs = judged("/usr/local/cuda/lib64/stubs");
        assert_eq!(
            stubs.detail,
            "LD_LIBRARY_PATH leads to /usr/local/cuda/lib64/stubs/libcuda.so, a stub, not the driver"
        );
        let second = judged("/usr/local/cuda/lib64");
        assert!(
            second.detail.starts_with("LD_LIBRARY_PATH puts /usr/local/cuda/lib64/libcudnn.so.8 before"),
            "{}",
            second.detail
        );
        write(&root, "etc/ld.so.conf.d/cuda.conf", "/usr/local/cuda/lib64/stubs\n");
        assert!(judged("").detail.starts_with("the loader's configuration leads to"));
        write(&root, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "");
        assert!(judged("").detail.contains("/usr/lib/x86_64-linux-gnu/libcuda.so.1 is an empty file"));
    }
}
