//! `shared-paths` in an image of envforge: every file that a package lists has its size, and every module its hash.
//!
//! Of several packages that list a path the last one by name counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::installed_files::{self, place};
use super::shared_paths::{self, records};
use super::{Options, display_path};
use crate::digest::sha256_of;

/// What a package lists of a file.
struct Listed {
    package: String,
    size: Option<u64>,
    /// SHA-256, hex.
    hash: Option<String>,
}

/// Returns the files that are not as their packages list them, each with its reason.
pub(super) fn changed(options: &Options) -> Vec<String> {
    let mut problems = Vec::new();
    for packages in options.packages() {
        for (file, listed) in listed_files(&packages) {
            let shown = display_path(&options.root, &file);
            problems.extend(problem(&file, &listed).map(|problem| format!("{shown} {problem}")));
        }
    }
    problems
}

/// The files that packages list with a size or a hash. Byte code is not among them: that of a wheel is made again.
fn listed_files(packages: &Path) -> BTreeMap<PathBuf, Listed> {
    let mut all = BTreeMap::new();
    for (package, record) in records(packages) {
        for line in record.lines() {
            let Some((name, size)) = installed_files::row(line) else { continue };
            let hash = shared_paths::row(line).map(|(_, hash)| hash);
            let is_listed =
                (size.is_some() || hash.is_some()) && !installed_files::is_byte_code(Path::new(&name));
            if let Some(file) = place(packages, &name).filter(|_| is_listed) {
                all.insert(file, Listed { package: package.clone(), size, hash });
            }
        }
    }
    all
}

fn problem(file: &Path, listed: &Listed) -> Option<String> {
    let package = &listed.package;
    let found = match std::fs::metadata(file) {
        Ok(found) if found.is_file() => found.len(),
        Ok(_) => return Some(format!("is not a file, {package} lists one")),
        Err(error) => return Some(format!("cannot be read, {package} lists it: {error}")),
    };
    if let Some(size) = listed.size.filter(|size| *size != found) {
        return Some(format!("has {found} bytes, {package} lists {size}"));
    }
    let is_module = file.extension().is_some_and(|extension| extension == "py");
    let hash = listed.hash.as_ref().filter(|_| is_module)?;
    match sha256_of(file) {
        Ok(found) if found == *hash => None,
        Ok(_) => Some(format!("is not the file of {package}")),
        Err(error) => Some(format!("cannot be read, {package} lists it: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKAGES: &str = "opt/env/lib/python3.11/site-packages";
    /// URL-safe base64 of the SHA-256 of `a`.
    const A: &str = "ypeBEsobvcr6wjGzmiPcTaeG7_gUfE5yuYB3ha_uSLs";

    /// The problems of an image with a package of one module, a text and a script, after a change.
    fn after(change: impl Fn(&Path)) -> Vec<String> {
        let root = tempfile::tempdir().expect("a folder");
        let packages = root.path().join(PACKAGES);
        let record = format!(
            "m/a.py,sha256={A},1\nm/t.txt,sha256={A},1\n../../../bin/m,sha256={A},1\nm/__pycache__/a.cpython-311.pyc,sha256={A},9\n\
             m-1.0.dist-info/RECORD,,\n"
        );
        for (path, text) in [
            ("m-1.0.dist-info/RECORD", record.as_str()),
            ("m/a.py", "a"),
            ("m/t.txt", "a"),
            ("m/__pycache__/a.cpython-311.pyc", "made again"),
            ("../../../bin/m", "a"),
        ] {
            let path = place(&packages, path).expect("relative");
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            std::fs::write(path, text).expect("written");
        }
        change(&packages);
        changed(&Options { root: root.path().into(), ..Options::default() })
    }

    #[test]
    fn files_are_those_that_packages_list() {
        assert_eq!(after(|_| ()), Vec::<String>::new());
        let write = |path: &'static str, text: &'static str| {
            after(move |packages| std::fs::write(packages.join(path), text).expect("written"))
        };
        assert_eq!(write("m/a.py", "b"), [format!("/{PACKAGES}/m/a.py is not the file of m")]);
        assert_eq!(write("m/t.txt", "bb"), [format!("/{PACKAGES}/m/t.txt has 2 bytes, m lists 1")]);
        assert_eq!(write("m/t.txt", "b"), Vec::<String>::new(), "only modules are read");
        assert_eq!(write("../../../bin/m", ""), ["/opt/env/bin/m has 0 bytes, m lists 1"]);
        let gone = after(|packages| std::fs::remove_file(packages.join("m/a.py")).expect("there"));
        assert!(gone.len() == 1 && gone[0].contains("m/a.py cannot be read, m lists it: "), "{gone:?}");
        let folder = after(|packages| {
            std::fs::remove_file(packages.join("m/a.py")).expect("there");
            std::fs::create_dir(packages.join("m/a.py")).expect("made");
        });
        assert_eq!(folder, [format!("/{PACKAGES}/m/a.py is not a file, m lists one")]);
    }

    #[test]
    fn file_of_the_last_package_by_name_counts() {
        let with = |other: &'static str| {
            after(move |packages| {
                let folder = packages.join(format!("{other}-1.0.dist-info"));
                std::fs::create_dir_all(&folder).expect("made");
                std::fs::write(folder.join("RECORD"), "m/t.txt,,5\n").expect("written");
            })
        };
        assert_eq!(with("B_before"), Vec::<String>::new());
        assert_eq!(with("z.behind"), [format!("/{PACKAGES}/m/t.txt has 1 bytes, z-behind lists 5")]);
    }
}
