//! Distributions that install one path: known ones by their module, those of the cache by their files.

use std::collections::BTreeMap;

use super::question::{FileContent, Misfit, MisfitKind, Question, SharedPath, WheelFiles};

/// A package, with the content of a file in it.
type Owner<'a> = (&'a str, FileContent);

/// Returns the pairs of packages that install a path with different content, with the first path of each pair.
pub fn shared_paths(wheels: &BTreeMap<String, WheelFiles>) -> Vec<SharedPath> {
    let mut owners: BTreeMap<&str, Vec<Owner<'_>>> = BTreeMap::new();
    for (package, files) in wheels {
        for (path, content) in files {
            owners.entry(path).or_default().push((package, *content));
        }
    }
    let mut pairs: BTreeMap<(&str, &str), (&str, usize)> = BTreeMap::new();
    for (path, mut all) in owners {
        all.dedup();
        for pair in all.windows(2).filter(|pair| pair[0].1 != pair[1].1 && pair[0].0 != pair[1].0) {
            pairs.entry((pair[0].0, pair[1].0)).or_insert((path, 0)).1 += 1;
        }
    }
    let shared = |((replaced, stays), (path, count)): ((&str, &str), (&str, usize))| SharedPath {
        replaced: replaced.to_owned(),
        stays: stays.to_owned(),
        path: path.to_owned(),
        count,
    };
    pairs.into_iter().map(shared).collect()
}

/// What the matrix knows by name, then what the files of the cache show.
pub(super) fn misfits(question: Question<'_>) -> Vec<Misfit> {
    let matrix = question.known.matrix;
    let mut all = Vec::new();
    for row in &matrix.same_modules {
        let wheels = question.lock.wheels.iter().map(|wheel| &wheel.name);
        let mut packages: Vec<String> = wheels.filter(|name| row.packages.contains(name)).cloned().collect();
        packages.sort();
        if packages.len() < 2 {
            continue;
        }
        let named: Vec<_> =
            packages.iter().map(|name| format!("`{name}`{}", question.required_by(name))).collect();
        let text = format!(
            "{} install the same module `{}`, and the files of the last replace the others: request one of them",
            named.join(" and "),
            row.module
        );
        let source = Some(row.source.clone());
        all.push(Misfit::new(MisfitKind::SamePath, packages, text, source));
    }
    for shared in question.known.shared {
        let pair = [&shared.replaced, &shared.stays];
        let is_added = question.added_wheels().any(|wheel| pair.contains(&&wheel.name));
        if !is_added || matrix.same_module(&shared.replaced, &shared.stays).is_some() {
            continue;
        }
        let more = if shared.count > 1 { format!(" and {} more", shared.count - 1) } else { String::new() };
        let (replaced, stays) = (&shared.replaced, &shared.stays);
        let text = format!(
            "`{replaced}`{} and `{stays}`{} install different files at `{}`{more}: those of `{stays}` stay",
            question.required_by(replaced),
            question.required_by(stays),
            shared.path
        );
        let packages = vec![replaced.clone(), stays.clone()];
        all.push(Misfit::new(MisfitKind::SamePath, packages, text, None));
    }
    all
}
