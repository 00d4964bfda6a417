//! The tables of `tests/hostile/README.md`: for each property of trust the cases that failed once its defence was removed, and
//! those whose defence is still to be removed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Cases that each property is owed.
const LEAST: usize = 3;
/// Each of them is owed.
const PROPERTIES: usize = 35;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The texts in backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// A row: the property, the files of the defence, the cases that it holds.
struct Row<'a> {
    property: usize,
    defence: Vec<&'a str>,
    cases: Vec<&'a str>,
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let [_, property, defence, cases, _] = cells[..] else { return None };
        Some(Row { property: property.parse().ok()?, defence: quoted(defence), cases: quoted(cases) })
    };
    text.lines().filter_map(row).collect()
}

/// The cases outside of tables.
fn unlisted(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('|')).flat_map(quoted)
}

/// Why a case is not one: `wheels/traversal` is a folder of the set, `src/store/lock.rs::name` a test.
fn problem(case: &str) -> Option<String> {
    let Some((file, test)) = case.split_once("::") else {
        let folder = root().join("tests/hostile").join(case);
        return (!folder.join("expect.toml").is_file()).then(|| format!("`{case}` is not a case"));
    };
    let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
    (!text.contains(&format!("fn {test}("))).then(|| format!("`{file}` has no test `{test}`"))
}

/// All folders of the set, without those that are accepted.
fn folders() -> BTreeSet<String> {
    let names = |path: &Path| {
        let entries =
            std::fs::read_dir(path).expect("a folder of the set").map(|entry| entry.expect("readable"));
        let folders = entries.filter(|entry| entry.path().is_dir());
        folders.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let set = root().join("tests/hostile");
    let of_kind = |kind: String| {
        let cases = names(&set.join(&kind)).into_iter().filter(|case| !case.starts_with("harmless"));
        cases.map(move |case| format!("{kind}/{case}")).collect::<Vec<_>>()
    };
    names(&set).into_iter().flat_map(of_kind).collect()
}

#[test]
fn each_property_has_three_cases_that_hold_it() {
    let text = std::fs::read_to_string(root().join("tests/hostile/README.md")).expect("the table");
    let (table, rest) = text.split_once("\n## Not seen to fail").expect("two parts");
    let mut wrong = Vec::new();
    let mut of_property = BTreeMap::<usize, BTreeSet<&str>>::new();
    let seen: BTreeSet<&str> = rows(table).into_iter().flat_map(|row| row.cases).collect();
    let in_rows = rows(rest).into_iter().flat_map(|row| row.cases);
    let unseen: BTreeSet<&str> = unlisted(rest).chain(in_rows).collect();
    for Row { property, defence, cases } in rows(table).into_iter().chain(rows(rest)) {
        if defence.is_empty() || cases.is_empty() {
            wrong.push(format!("property {property}: a row without defence or cases"));
        }
        wrong.extend(
            defence.iter().filter(|file| !root().join(file).exists()).map(|file| format!("no {file}")),
        );
        of_property.entry(property).or_default().extend(cases);
    }
    for property in 1..=PROPERTIES {
        let count = of_property.get(&property).map_or(0, BTreeSet::len);
        if count < LEAST {
            wrong.push(format!("property {property}: {count} cases, {LEAST} are owed"));
        }
    }
    wrong.extend(seen.union(&unseen).filter_map(|case| problem(case)));
    wrong.extend(unseen.intersection(&seen).map(|case| format!("`{case}` is in both parts")));
    let listed: BTreeSet<String> = seen.union(&unseen).map(|case| (*case).to_owned()).collect();
    wrong.extend(folders().difference(&listed).map(|case| format!("`{case}` is in neither part")));
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
