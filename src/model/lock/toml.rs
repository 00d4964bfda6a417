//! `envforge.lock` in and out. The same lock is always the same text.

use serde::Deserialize;
use toml_edit::{DocumentMut, Item, Table};

use super::strings::control_character;
use super::types::Lock;
use crate::failure::{Exit, Failure};
use crate::model::visible::visible_line;

/// The schema of locks that are written. Raised when the same pins give another image.
pub const SCHEMA: u32 = 3;
/// The oldest schema that is read: the image of such a lock stays as it is.
const OLDEST: u32 = 2;

const HEADER: &str = "\
# Made by envforge: every version and hash an image is built from.
# Commit it, but do not edit it by hand: `envforge lock` updates it, `envforge lock --upgrade` resolves everything again.

";

/// A lock file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// Not a lock, or one with an unknown field or an invalid value.
    #[error("invalid lock file `{file}`: line {line}, column {column}: {detail}")]
    Malformed {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The problem.
        detail: String,
    },
    /// A lock of another schema.
    #[error("unsupported lock schema {found} in `{file}`, line {line} (supported: {OLDEST} to {SCHEMA})")]
    UnknownSchema {
        /// The file.
        file: String,
        /// The line of the schema.
        line: usize,
        /// The schema found.
        found: u32,
    },
    /// A control character where text is on one line.
    #[error("invalid lock file `{file}`: `{field}` contains the control character U+{:04X}", u32::from(*.character))]
    ControlCharacter {
        /// The file.
        file: String,
        /// The field: `wheels[3].version`.
        field: String,
        /// The character.
        character: char,
    },
}

impl Failure for LockError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![
            match self {
                Self::UnknownSchema { .. } if self.is_of_newer() => {
                    concat!(
                        "update envforge: this file requires a newer version than ",
                        env!("CARGO_PKG_VERSION")
                    )
                }
                Self::UnknownSchema { found: 1, .. } => {
                    "write `schema = 2` in that line: the pins stay the same, images are built again under another hash"
                }
                Self::UnknownSchema { .. } => "create a new lock file: `envforge lock --upgrade`",
                Self::Malformed { .. } | Self::ControlCharacter { .. } => {
                    "restore the file from version control, or create a new one: `envforge lock --upgrade`"
                }
            }
            .to_owned(),
        ]
    }
}

impl LockError {
    /// Whether a newer envforge made the lock.
    pub fn is_of_newer(&self) -> bool {
        matches!(self, Self::UnknownSchema { found, .. } if *found > SCHEMA)
    }
}

/// Writes each list of tables as inline tables, one on a line. Reasons keep their tables: they are prose.
fn put_entries_on_lines(table: &mut Table) {
    for (mut key, item) in table.iter_mut() {
        match item {
            Item::Table(inner) => put_entries_on_lines(inner),
            Item::ArrayOfTables(_) if key.get() != "reasons" => {
                item.make_value();
                // The key of a list of tables has no blank after it.
                key.leaf_decor_mut().set_suffix(" ");
                if let Some(array) = item.as_array_mut() {
                    for entry in array.iter_mut() {
                        entry.decor_mut().set_prefix("\n    ");
                    }
                    array.set_trailing_comma(true);
                    array.set_trailing("\n");
                }
            }
            _ => {}
        }
    }
}

#[derive(Deserialize)]
struct SchemaOnly {
    schema: toml::Spanned<u32>,
}

impl Lock {
    /// The lock as the text of its file: a line for each package.
    pub fn to_toml(&self) -> String {
        let body = toml::to_string(self).expect("every value of a lock has a TOML form");
        let mut document: DocumentMut = body.parse().expect("it is TOML");
        put_entries_on_lines(document.as_table_mut());
        format!("{HEADER}{document}")
    }

    /// Reads a lock; `file` is the name errors use.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, LockError> {
        let malformed = |error: toml::de::Error| {
            let (line, column) = position(text, error.span().map_or(0, |span| span.start));
            LockError::Malformed {
                file: file.to_owned(),
                line,
                column,
                detail: visible_line(error.message()),
            }
        };
        let schema = toml::from_str::<SchemaOnly>(text).map_err(malformed)?.schema;
        let found = *schema.get_ref();
        if !(OLDEST..=SCHEMA).contains(&found) {
            let (line, _) = position(text, schema.span().start);
            return Err(LockError::UnknownSchema { file: file.to_owned(), line, found });
        }
        let lock: Self = toml::from_str(text).map_err(malformed)?;
        if let Some(found) = control_character(&lock) {
            let (field, character) = (found.field, found.character);
            return Err(LockError::ControlCharacter { file: file.to_owned(), field, character });
        }
        Ok(lock)
    }

    /// Reads a lock from the bytes of a file.
    pub fn from_bytes(file: &str, bytes: &[u8]) -> Result<Self, LockError> {
        let text = std::str::from_utf8(bytes).map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            let (line, column) = position(&before, before.len());
            LockError::Malformed { file: file.to_owned(), line, column, detail: "invalid UTF-8".to_owned() }
        })?;
        Self::from_toml(file, text)
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
    use crate::model::lock::sample;

    fn read(text: &str) -> Result<Lock, LockError> {
        Lock::from_toml("envforge.lock", text)
    }

    fn line_of(text: &str, needle: &str) -> usize {
        text.lines().position(|line| line.contains(needle)).expect("there") + 1
    }

    #[test]
    fn lock_round_trips_through_its_file() {
        let lock = sample::lock();
        let text = lock.to_toml();
        assert!(text.starts_with("# Made by envforge"), "{text}");
        assert_eq!(read(&text).expect("reads"), lock);
        assert_eq!(text, read(&text).expect("reads").to_toml());
    }

    #[test]
    fn each_package_is_one_line_and_both_forms_are_read() {
        let lock = sample::lock();
        let text = lock.to_toml();
        for wheel in &lock.wheels {
            let line = text.lines().nth(line_of(&text, &wheel.sha256) - 1).expect("there");
            assert!(line.starts_with("    { name = ") && line.ends_with(" },"), "{line}");
            assert!(line.contains(&wheel.name) && line.contains(&wheel.file), "{line}");
        }
        let lists = [lock.wheels.len(), lock.system.len(), lock.base.packages.len(), lock.tools.len()];
        let entries = text.lines().filter(|line| line.starts_with("    { ")).count();
        assert!(entries >= lists.iter().sum() && entries > 3, "{text}");
        let tables = format!("{HEADER}{}", toml::to_string(&lock).expect("TOML"));
        assert!(tables.contains("[[wheels]]") && !text.contains("[[wheels]]"), "{text}");
        let old = read(&tables).expect("the older form");
        assert_eq!((old.hash(), &old), (lock.hash(), &lock));
    }

    #[test]
    fn error_names_unknown_field_with_line_and_column() {
        for (after, table, at) in
            [("[base]\n", "base", 1), ("[records]\n", "records", 1), ("wheels = [\n    { ", "wheel", 7)]
        {
            let end = if table == "wheel" { ", " } else { "\n" };
            let text = sample::lock().to_toml().replacen(after, &format!("{after}surprise = 1{end}"), 1);
            let error = read(&text).expect_err(table);
            let LockError::Malformed { line, column, ref detail, .. } = error else { panic!("{error}") };
            assert_eq!((line, column), (line_of(&text, "surprise"), at), "{error}");
            assert!(detail.contains("surprise"), "{error}");
            assert_eq!(error.exit(), Exit::Usage);
            assert!(!error.hints().is_empty());
        }
    }

    #[test]
    fn error_names_position_of_invalid_hash() {
        let lock = sample::lock();
        let text = lock.to_toml().replacen(&lock.wheels[0].sha256, "abc", 1);
        let error = read(&text).expect_err("refused");
        let LockError::Malformed { line, column, .. } = error else { panic!("{error}") };
        let bad = line_of(&text, "\"abc\"");
        let before = text.lines().nth(bad - 1).and_then(|line| line.find("\"abc\"")).expect("there");
        assert_eq!((line, column), (bad, before + 1), "{error}");
        assert!(error.to_string().contains("SHA-256"), "{error}");
    }

    #[test]
    fn rejects_paths_outside_the_mirror() {
        let lock = sample::lock();
        for bad in
            ["http://x/y.deb", "/etc/passwd", "../x.deb", "pool//x.deb", "pool/a b.deb", "pool/$(id).deb"]
        {
            let error = read(&lock.to_toml().replace(&lock.system[0].path, bad)).expect_err(bad);
            assert!(error.to_string().contains("invalid package path"), "{error}");
        }
        for bad in ["a/b.whl", "..", "a.whl; reboot"] {
            let error = read(&lock.to_toml().replace(&lock.wheels[0].file, bad)).expect_err(bad);
            assert!(error.to_string().contains("invalid file name"), "{error}");
        }
    }

    #[test]
    fn distinguishes_other_schema_from_malformed_file() {
        let newer = sample::lock().to_toml().replace("schema = 3", "schema = 4\nnews = true");
        let error = read(&newer).expect_err("refused");
        assert!(matches!(error, LockError::UnknownSchema { found: 4, line: 4, .. }), "{error}");
        assert_eq!(
            error.to_string(),
            "unsupported lock schema 4 in `envforge.lock`, line 4 (supported: 2 to 3)"
        );
        let hint =
            format!("update envforge: this file requires a newer version than {}", env!("CARGO_PKG_VERSION"));
        assert_eq!(error.hints(), [hint]);
        assert!(error.is_of_newer());
        let error = read(&newer.replace("schema = 4", "schema = 0")).expect_err("refused");
        assert!(
            matches!(error, LockError::UnknownSchema { found: 0, .. }) && !error.is_of_newer(),
            "{error}"
        );
        assert_eq!(error.hints(), ["create a new lock file: `envforge lock --upgrade`"]);
        let error = read(&sample::lock().to_toml().replace("schema = 3", "schema = 1")).expect_err("refused");
        assert!(error.to_string().contains("unsupported lock schema 1") && !error.is_of_newer(), "{error}");
        assert!(error.hints()[0].starts_with("write `schema = 2` in that line"), "{:?}", error.hints());
        let error = read("schema = 1\nspec = @\n").expect_err("refused");
        assert!(matches!(error, LockError::Malformed { line: 2, .. }), "{error}");
        let error = read("# é\n[x").expect_err("refused");
        assert!(matches!(error, LockError::Malformed { line: 2, .. }), "{error}");
    }

    #[test]
    fn hash_covers_deciding_fields_only() {
        let lock = sample::lock();
        let mut same = lock.clone();
        same.records.created = "2031-01-01T00:00:00Z".to_owned();
        same.records.content = Some("0".repeat(64));
        same.stack.matrix = "another".to_owned();
        same.stack.reasons.clear();
        same.stack.requires.gpu.clear();
        same.records.layout = Some(1);
        same.wheels[0].index_name = Some("internal".to_owned());
        same.base.content = None;
        assert_eq!(same.hash(), lock.hash());
        let mut other = lock.clone();
        other.added.as_of = Some("2026-11-20T00:00:00Z".to_owned());
        assert_ne!(other.hash(), lock.hash());
        let mut other = lock.clone();
        other.wheels[0].sha256 = "9".repeat(64);
        assert_ne!(other.hash(), lock.hash());
        let mut other = lock.clone();
        other.environment.insert("A".to_owned(), "b".to_owned());
        assert_ne!(other.hash(), lock.hash());
    }

    #[test]
    fn records_and_resolve_date_round_trip() {
        use crate::model::lock::LayerRecord;
        let mut lock = sample::lock();
        lock.added.as_of = Some("2026-11-20T00:00:00Z".to_owned());
        lock.wheels[0].index_name = Some("internal".to_owned());
        lock.records.layout = Some(1);
        lock.records.config = Some(format!("sha256:{}", "a".repeat(64)));
        lock.records.layers = vec![LayerRecord {
            component: "framework".to_owned(),
            diff_id: format!("sha256:{}", "b".repeat(64)),
            size: Some(10),
            digest: Some(format!("sha256:{}", "c".repeat(64))),
            compressed_size: None,
        }];
        let text = lock.to_toml();
        assert_eq!(read(&text).expect("reads"), lock);
        for (good, bad) in
            [("as-of = \"2026-11-20T00:00:00Z\"", "as-of = \"2026-11-20\""), ("sha256:bbbb", "md5:bbbb")]
        {
            assert!(text.contains(good), "{text}");
            let error = read(&text.replacen(good, bad, 1)).expect_err(bad);
            assert!(matches!(error, LockError::Malformed { .. }), "{error}");
        }
    }

    #[test]
    fn control_character_is_rejected_with_its_field() {
        let mut lock = sample::lock();
        lock.stack.suite = "bookworm\n[x]".to_owned();
        let error = read(&lock.to_toml()).expect_err("refused");
        assert_eq!(
            error.to_string(),
            "invalid lock file `envforge.lock`: `stack.suite` contains the control character U+000A"
        );
        assert_eq!(error.exit(), Exit::Usage);
    }

    proptest! {
        #[test]
        fn any_lock_round_trips_through_its_file(lock in sample::any_lock()) {
            let text = lock.to_toml();
            let back = read(&text).map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
            prop_assert_eq!(back.hash(), lock.hash());
            prop_assert_eq!(back, lock);
        }

        #[test]
        fn damaged_lock_returns_error_without_panic(cut in 0_usize..5000, junk in ".{0,6}") {
            let mut text = sample::lock().to_toml();
            let cut = text.floor_char_boundary(cut.min(text.len()));
            text.insert_str(cut, &junk);
            let _ = read(&text);
            text.truncate(cut);
            prop_assert!(read(&text).is_err() || cut > 100);
        }
    }
}
