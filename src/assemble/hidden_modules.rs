//! Modules of a project's wheel that hide those of a package, or the other way round: `yaml.py` beside `yaml/__init__.py`.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8Path;

use super::listing::Listing;

/// The directory that modules are imported from, within their paths.
const SITE: &str = "/site-packages/";

/// Each name that two distributions, one of them `project`, have a module of in different files. Only one of them can be imported;
/// different files at one path are a conflict of paths.
pub fn hidden_modules(all: &[Listing], project: &str) -> Vec<String> {
    let is_project = |listing: &&Listing| listing.distribution() == project;
    let own: BTreeMap<&str, BTreeSet<&str>> = all.iter().find(is_project).map(modules).unwrap_or_default();
    let mut found = Vec::new();
    for package in all.iter().filter(|listing| !is_project(listing)) {
        for (name, theirs) in modules(package) {
            let Some(ours) = own.get(name).filter(|ours| **ours != theirs) else { continue };
            let first = |files: &BTreeSet<&str>| files.first().copied().unwrap_or_default().to_owned();
            let (ours, theirs) = (first(ours), first(&theirs));
            found.push(format!(
                "`import {name}`: `{ours}` of the project, `{theirs}` of `{}`",
                package.distribution()
            ));
        }
    }
    found
}

/// The files that each top-level module of a wheel is imported from. A directory without `__init__.py` may be of several.
fn modules(listing: &Listing) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found = BTreeMap::<&str, BTreeSet<&str>>::new();
    for path in listing.files().keys() {
        let Some((_, file)) = path.split_once(SITE) else { continue };
        let is_module = || matches!(Utf8Path::new(file).extension(), Some("py" | "so"));
        let name = match file.split_once('/') {
            Some((folder, "__init__.py")) => folder,
            None if is_module() => file.split('.').next().unwrap_or_default(),
            _ => continue,
        };
        found.entry(name).or_default().insert(file);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assemble::made_wheel::MadeWheel;
    use crate::assemble::samples::install;

    fn listing(name: &str, files: &[&str]) -> Listing {
        let wheel = files.iter().fold(MadeWheel::new(name), |wheel, file| wheel.file(file, b""));
        Listing::of(&install(&wheel).expect("installed")).expect("listed")
    }

    #[test]
    fn module_of_the_name_of_a_package_is_found_in_whatever_file() {
        let yaml = listing("pyyaml", &["yaml/__init__.py", "_yaml/__init__.py"]);
        let found = |files: &[&str]| hidden_modules(&[yaml.clone(), listing("code", files)], "code");
        let says = "`import yaml`: `yaml.py` of the project, `yaml/__init__.py` of `pyyaml`";
        assert_eq!(found(&["yaml.py", "code/yaml.py"]), [says]);
        assert_eq!(found(&["_yaml.cpython-311-x86_64-linux-gnu.so"]).len(), 1);
        // The same path is a conflict of paths, and a directory of several distributions is none.
        assert_eq!(found(&["yaml/__init__.py"]), [""; 0]);
        assert_eq!(found(&["yaml/more.py", "code/__init__.py"]), [""; 0]);
        // Two packages are not the project's affair.
        let other = listing("other", &["yaml.py"]);
        assert_eq!(hidden_modules(&[yaml, other, listing("code", &["code.py"])], "code"), [""; 0]);
    }
}
