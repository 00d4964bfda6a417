//! Names that an entry of a wheel or of an archive must not have: those that another reader may take for another path.
//!
//! Pure. uv leaves some of these entries out without a message, and engines clean the paths of archives; here they are refused.

use std::collections::{BTreeMap, BTreeSet};

use super::whiteout::{DELETES, deletes};

/// Returns the problem of one name: `../x` leaves the tree. A trailing `/` marks a directory.
pub(crate) fn problem(name: &str) -> Option<&'static str> {
    let path = name.strip_suffix('/').unwrap_or(name);
    if path.starts_with('/') {
        return Some("the path is absolute");
    }
    if path.contains('\\') {
        return Some("the name contains a backslash");
    }
    if path.contains(char::is_control) {
        return Some("the name contains a control character");
    }
    if deletes(path.as_bytes()) {
        return Some(DELETES);
    }
    path.split('/').find_map(|part| match part {
        "" => Some("a part of the path is empty"),
        "." | ".." => Some("the path contains `.` or `..`"),
        _ => None,
    })
}

/// Returns the problems of names with each other: duplicate files, and files that are directories as well.
pub(crate) fn collisions<'a>(names: impl Iterator<Item = &'a str>) -> Vec<String> {
    let (mut files, mut folders) = (BTreeMap::<&str, usize>::new(), BTreeSet::new());
    for name in names {
        let path = name.strip_suffix('/');
        if let Some(folder) = path {
            folders.insert(folder);
        } else {
            *files.entry(name).or_default() += 1;
        }
        folders.extend(parents(path.unwrap_or(name)));
    }
    let mut found = Vec::new();
    for (name, count) in files {
        if count > 1 {
            found.push(format!("{}: {count} entries have this name", quoted(name)));
        }
        if folders.contains(name) {
            found.push(format!("{}: it is a file and a directory", quoted(name)));
        }
    }
    found
}

/// Returns every directory above a path, the nearest first.
pub(crate) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.rmatch_indices('/').map(|(at, _)| &path[..at])
}

/// Returns a name for messages: in backticks, without control characters.
pub(crate) fn quoted(name: &str) -> String {
    format!("`{}`", name.escape_debug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problem_is_reported_for_names_that_leave_the_tree() {
        for (name, expected) in [
            ("/tmp/evil.py", "absolute"),
            ("//x", "absolute"),
            ("../evil.py", "`..`"),
            ("a/../b", "`..`"),
            ("a/..", "`..`"),
            ("a/./b", "`.`"),
            ("..", "`..`"),
            ("a//b", "empty"),
            ("a//", "empty"),
            ("", "empty"),
            ("/", "empty"),
            ("a\\b", "backslash"),
            ("a\0b", "control"),
            ("a\nb", "control"),
            ("a\u{7f}", "control"),
            ("a\u{85}", "control"),
            (".wh.a", "deletes files"),
            ("a/.wh.b.pem", "deletes files"),
            ("a/.wh.b/c", "deletes files"),
            ("a/.wh..wh..opq", "deletes files"),
        ] {
            let found = problem(name).unwrap_or_else(|| panic!("{name:?} is accepted"));
            assert!(found.contains(expected), "{name:?}: {found}");
        }
        for name in ["a", "a/b.py", "a/", ".hidden/..x", "a b", "é.txt", "...", "a/-", "a.wh.b", ".wh"] {
            assert_eq!(problem(name), None, "{name:?}");
        }
    }

    #[test]
    fn collisions_are_duplicate_files_and_files_that_are_directories() {
        let found = |names: &[&str]| collisions(names.iter().copied());
        assert_eq!(found(&["a", "b/c", "b/d", "b/", "b/", "e/"]), Vec::<String>::new());
        assert_eq!(found(&["a", "b", "a"]), ["`a`: 2 entries have this name"]);
        assert_eq!(found(&["a/b/c", "a/b"]), ["`a/b`: it is a file and a directory"]);
        assert_eq!(found(&["a", "a/"]), ["`a`: it is a file and a directory"]);
    }
}
