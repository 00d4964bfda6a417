//! `envforge.lock` in and out. The same lock is always the same text.

use serde::Deserialize;

use super::types::Lock;
use crate::sha256::sha256_hex;

/// The version of the format written, and the only one read.
pub const SCHEMA: u32 = 1;

const HEADER: &str = "\
# Made by envforge: every version and hash an image is built from.
# Commit it, but do not edit it by hand: `envforge lock` updates it, `--upgrade` chooses everything anew.

";

/// Why a lock cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Not a lock, or one with a field or value that does not belong there.
    #[error("`{file}` is not a valid lock: line {line}, column {column}: {detail}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong there.
        detail: String,
    },
    /// A lock of another version of the format.
    #[error("`{file}` has lock format {found}; this envforge reads {SCHEMA} (line {line})")]
    UnknownSchema {
        /// The file.
        file: String,
        /// The line that says so.
        line: usize,
        /// The version found.
        found: u32,
    },
}

impl LockError {
    /// True if a newer envforge made the lock.
    pub fn is_of_newer(&self) -> bool {
        matches!(self, Self::UnknownSchema { found, .. } if *found > SCHEMA)
    }
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Malformed { .. } => {
                vec!["restore the file from version control, or make a new one with `--upgrade`".to_owned()]
            }
            Self::UnknownSchema { found, .. } if *found > SCHEMA => {
                vec!["it was made by a newer envforge: update this one".to_owned()]
            }
            Self::UnknownSchema { .. } => vec!["make a new one with `--upgrade`".to_owned()],
        }
    }
    /// The process's exit code.
    pub fn exit_code(&self) -> u8 {
        2
    }
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: toml::Spanned<u32>,
}

impl Lock {
    /// The lock as the text of its file.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).expect("every value of a lock has a TOML form");
        format!("{HEADER}{body}")
    }

    /// Reads a lock; `file` is the name errors use.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, LockError> {
        let malformed = |error: toml::de::Error| {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            LockError::Malformed { file: file.to_owned(), line, column, detail: error.message().to_owned() }
        };
        let schema = toml::from_str::<SchemaOnly>(text).map_err(malformed)?.schema;
        if *schema.get_ref() != SCHEMA {
            let (line, _) = position(text, schema.span().start);
            return Err(LockError::UnknownSchema { file: file.to_owned(), line, found: *schema.get_ref() });
        }
        toml::from_str(text).map_err(malformed)
    }

    /// The same of a file's bytes, which may be no text.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, LockError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let (line, column) = position(&before, before.len());
            LockError::Malformed {
                file: file.to_owned(),
                line,
                column,
                detail: "this is not UTF-8".to_owned(),
            }
        })?;
        Self::from_toml(file, text)
    }

    /// SHA-256 (hex) over everything that decides content: all but records, the matrix's edition and reasons.
    pub fn hash(&self) -> String {
        let mut decisive = self.clone().without_records();
        decisive.base.content = None;
        decisive.stack.matrix.clear();
        decisive.stack.reasons.clear();
        let bytes = serde_json::to_vec(&decisive).expect("every value of a lock has a JSON form");
        sha256_hex(&bytes)
    }
}

/// Line and column, from 1, of a byte offset.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::lock::sample;

    fn read(text: &str) -> Result<Lock, LockError> {
        Lock::from_toml("envforge.lock", text)
    }

    fn line_of(text: &str, needle: &str) -> usize {
        text.lines().position(|line| line.contains(needle)).expect("there") + 1
    }

    #[test]
    fn a_lock_survives_the_way_through_its_file() {
        let lock = sample::lock();
        let text = lock.to_toml();
        assert!(text.starts_with("# Made by envforge"), "{text}");
        assert_eq!(read(&text).expect("reads"), lock);
        assert_eq!(text, read(&text).expect("reads").to_toml());
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line_and_column() {
        for (after, table) in [("[base]\n", "base"), ("[records]\n", "records"), ("[[wheels]]\n", "wheel")] {
            let text = sample::lock().to_toml().replacen(after, &format!("{after}surprise = 1\n"), 1);
            let error = read(&text).expect_err(table);
            let LockError::Malformed { line, column, ref detail, .. } = error else { panic!("{error}") };
            assert_eq!((line, column), (line_of(&text, "surprise"), 1), "{error}");
            assert!(detail.contains("surprise"), "{error}");
            assert_eq!(error.exit_code(), 2);
            assert!(!error.hints().is_empty());
        }
    }

    #[test]
    fn a_hash_that_is_none_is_refused_where_it_stands() {
        let lock = sample::lock();
        let text = lock.to_toml().replacen(&lock.wheels[0].sha256, "abc", 1);
        let error = read(&text).expect_err("refused");
        let LockError::Malformed { line, column, .. } = error else { panic!("{error}") };
        assert_eq!((line, column), (line_of(&text, "\"abc\""), 10), "{error}");
        assert!(error.to_string().contains("SHA-256"), "{error}");
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        let lock = sample::lock();
        for bad in
            ["http://x/y.deb", "/etc/passwd", "../x.deb", "pool//x.deb", "pool/a b.deb", "pool/$(id).deb"]
        {
            let error = read(&lock.to_toml().replace(&lock.system[0].path, bad)).expect_err(bad);
            assert!(error.to_string().contains("below a mirror's root"), "{error}");
        }
        for bad in ["a/b.whl", "..", "a.whl; reboot"] {
            let error = read(&lock.to_toml().replace(&lock.wheels[0].file, bad)).expect_err(bad);
            assert!(error.to_string().contains("file name"), "{error}");
        }
    }

    #[test]
    fn another_format_is_told_apart_from_a_broken_file() {
        let newer = sample::lock().to_toml().replace("schema = 1", "schema = 2\nnews = true");
        let error = read(&newer).expect_err("refused");
        assert!(matches!(error, LockError::UnknownSchema { found: 2, line: 4, .. }), "{error}");
        assert!(error.hints()[0].contains("newer"));
        let error = read("schema = 1\nspec = @\n").expect_err("refused");
        assert!(matches!(error, LockError::Malformed { line: 2, .. }), "{error}");
        let error = read("# é\n[x").expect_err("refused");
        assert!(matches!(error, LockError::Malformed { line: 2, .. }), "{error}");
    }

    #[test]
    fn only_what_decides_content_is_in_the_hash() {
        let lock = sample::lock();
        let mut same = lock.clone();
        same.records.created = "2031-01-01T00:00:00Z".to_owned();
        same.records.content = Some("0".repeat(64));
        same.stack.matrix = "another".to_owned();
        same.stack.reasons.clear();
        assert_eq!(same.hash(), lock.hash());
        let mut other = lock.clone();
        other.wheels[0].sha256 = "9".repeat(64);
        assert_ne!(other.hash(), lock.hash());
        let mut other = lock.clone();
        other.environment.insert("A".to_owned(), "b".to_owned());
        assert_ne!(other.hash(), lock.hash());
    }

    proptest! {
        #[test]
        fn any_lock_survives_the_way_through_its_file(lock in sample::any_lock()) {
            let text = lock.to_toml();
            let back = read(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(back.hash(), lock.hash());
            prop_assert_eq!(back, lock);
        }

        #[test]
        fn a_damaged_lock_is_an_error_and_never_a_panic(cut in 0_usize..5000, junk in ".{0,6}") {
            let mut text = sample::lock().to_toml();
            let cut = text.floor_char_boundary(cut.min(text.len()));
            text.insert_str(cut, &junk);
            let _ = read(&text);
            text.truncate(cut);
            prop_assert!(read(&text).is_err() || cut > 100);
        }
    }
}
