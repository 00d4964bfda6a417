//! Parses `compat/*.toml` to the matrix.
//!
//! Owns the shape of the files, the expansion of source keys and the matrix version. Must not read files: texts are
//! arguments.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, ValueDeserializer};

use super::coupled::{CoupledPackage, CoupledRelease, SourceRecipe};
use super::lint::{self, Fault};
use super::needs::{DistributionLibrary, FrameworkRequirement, SameModule, WheelLibraries};
use super::rows::{Row, every_table};
use super::tables::{
    Base, Capability, CatalogueImage, Chip, Companion, Compiler, ComponentWheel, Components, CondaName,
    CudnnBuild, DeveloperStack, DeviceCodeSize, DriverBranch, ForwardCompat, Gpu, ImpliedFramework,
    JitCompiler, KnownVersion, Matrix, MinorFloor, NcclBuild, NumpyLimit, NvccPackage, NvccRepository,
    NvccVendor, NvccWheels, Product, Profilers, PtxasWheels, RowlessWheels, SourceBuild, SourceFloor,
    Toolkit, UnmeasuredLibrary, Variant,
};
use super::{from_source, toolkit};
use crate::counted::counted;
use crate::required_version::{self, RequiredVersion, UnmetVersion};

/// The schema of the files this crate reads.
const SCHEMA: u32 = 1;

/// An error of compat files.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompatError {
    /// The text is not TOML, or does not match the tables.
    #[error("`{file}` line {line}, column {column}: {what}")]
    Malformed {
        /// The file's name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The parser's message.
        what: String,
    },
    /// The file is of another schema.
    #[error("unsupported schema {found} in `{file}` (supported: {SCHEMA})")]
    Schema {
        /// The file's name.
        file: String,
        /// Its schema.
        found: u32,
    },
    /// A file requires another version of envforge.
    #[error(transparent)]
    Version(#[from] UnmetVersion),
    /// A row refers to a source that is missing in `[sources]`.
    #[error("unknown source `@{key}` in `{file}`: {row} (not in `[sources]`)")]
    UnknownSource {
        /// The file's name.
        file: String,
        /// The row.
        row: String,
        /// The source key.
        key: String,
    },
    /// A machine's own file has a row that the matrix has.
    #[error(
        "{row} of `{file}` contradicts matrix {edition}, which has {known}: a local file adds rows, it replaces none"
    )]
    LocalContradicts {
        /// The machine's file.
        file: String,
        /// Its row.
        row: String,
        /// The matrix's row, with its file.
        known: String,
        /// The matrix.
        edition: String,
    },
    /// A machine's own file has another table than variants.
    #[error("{row} of `{file}`: a local file adds `[[variant]]` rows only")]
    LocalTable {
        /// The machine's file.
        file: String,
        /// The row.
        row: String,
    },
    /// Rows contradict each other or refer to missing rows.
    #[error("{} in the compatibility matrix:\n{}", counted(faults.len(), "fault"), lines(faults))]
    Faulty {
        /// All faults.
        faults: Vec<Fault>,
    },
}

impl CompatError {
    /// What a person can do about it, one imperative per line.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Malformed { .. } | Self::Faulty { .. } => {
                vec!["see compat/README.md for the fields of each table".to_owned()]
            }
            Self::LocalContradicts { .. } => {
                vec!["give the build a version of its own, such as `2.8.0+corp1`".to_owned()]
            }
            Self::LocalTable { .. } => {
                vec!["put other facts into a whole matrix, `[matrix] file`".to_owned()]
            }
            Self::Schema { .. } => vec!["use compat files of the same envforge release".to_owned()],
            Self::Version(unmet) => vec![unmet.hint()],
            Self::UnknownSource { key, .. } => {
                vec![format!("add `{key} = \"...\"` to `[sources]` of that file")]
            }
        }
    }
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n")
}

/// A day, `2026-11-20`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(try_from = "String")]
struct Day(String);

impl TryFrom<String> for Day {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        let shape =
            |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
        if text.len() == 10 && text.bytes().enumerate().all(shape) {
            Ok(Self(text))
        } else {
            Err(format!("invalid date `{text}` (expected `2026-11-20`)"))
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An entry of `[sources]`: a text with the file's date, or with its own.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum SourceText {
    Plain(String),
    Dated { text: String, checked: Day },
}

/// The sources of one file.
struct Sources {
    file: String,
    checked: Day,
    texts: BTreeMap<String, SourceText>,
}

impl Sources {
    /// Returns the full text of a row's `source`: keys (`@wheel @notes`) are replaced by their texts, and the date is added.
    fn expand(&self, row: &dyn Row) -> Result<String, CompatError> {
        let written = row.source().trim();
        if written.is_empty() {
            return Ok(String::new());
        }
        let mut parts: Vec<(String, Day)> = Vec::new();
        let mut literal: Vec<&str> = Vec::new();
        for word in written.split_whitespace() {
            match word.strip_prefix('@') {
                None => literal.push(word),
                Some(key) => parts.push(self.text_of(key, row)?),
            }
        }
        if !literal.is_empty() {
            parts.insert(0, (literal.join(" "), self.checked.clone()));
        }
        let one_day = parts.iter().all(|(_, day)| *day == parts[0].1);
        let texts: Vec<String> = if one_day {
            parts.iter().map(|(text, _)| text.clone()).collect()
        } else {
            parts.iter().map(|(text, day)| format!("{text} [{day}]")).collect()
        };
        let day = if one_day { format!(" [{}]", parts[0].1) } else { String::new() };
        Ok(format!("{}{day}", texts.join("; ")))
    }

    fn text_of(&self, key: &str, row: &dyn Row) -> Result<(String, Day), CompatError> {
        match self.texts.get(key) {
            Some(SourceText::Plain(text)) => Ok((text.clone(), self.checked.clone())),
            Some(SourceText::Dated { text, checked }) => Ok((text.clone(), checked.clone())),
            None => Err(CompatError::UnknownSource {
                file: self.file.clone(),
                row: row.label(),
                key: key.to_owned(),
            }),
        }
    }

    fn newest(&self) -> Day {
        let days = self.texts.values().filter_map(|text| match text {
            SourceText::Dated { checked, .. } => Some(checked),
            SourceText::Plain(_) => None,
        });
        days.chain([&self.checked]).max().cloned().unwrap_or_default()
    }
}

macro_rules! file_of_tables {
    ($($table:ident: $row:ident => $field:ident,)*) => {
        /// One compat file: any tables, in any file.
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct File {
            #[expect(dead_code, reason = "compared before the rows are read")]
            schema: u32,
            checked: Day,
            #[serde(default)]
            sources: BTreeMap<String, SourceText>,
            $(#[serde(default)]
            $table: Vec<$row>,)*
        }

        impl File {
            /// Moves every row into the matrix with its expanded source; returns the newest date.
            fn pour_into(self, matrix: &mut Matrix, file: &str) -> Result<Day, CompatError> {
                let sources = Sources { file: file.to_owned(), checked: self.checked, texts: self.sources };
                $(for mut row in self.$table {
                    let text = sources.expand(&row)?;
                    *row.source_mut() = text;
                    matrix.$field.push(row);
                })*
                Ok(sources.newest())
            }
        }
    };
}
every_table!(file_of_tables);

/// Parses the matrix from files (name, text), without lint.
pub fn read_unlinted(files: &[(&str, &str)]) -> Result<Matrix, CompatError> {
    let mut files = files.to_vec();
    files.sort_unstable();
    let mut matrix = Matrix::default();
    let mut newest = Day::default();
    for (name, text) in &files {
        let file = file(name, text)?;
        newest = newest.max(file.pour_into(&mut matrix, name)?);
    }
    toolkit::add(&mut matrix);
    from_source::add(&mut matrix);
    matrix.edition = edition(&newest, &files);
    Ok(matrix)
}

/// Parses one file; checks required version and schema first, since a newer file may have other tables.
fn file(name: &str, text: &str) -> Result<File, CompatError> {
    let broken = |error: toml::de::Error| malformed(name, text, &error);
    let mut root = DeTable::parse(text).map_err(broken)?;
    if let Some(value) = root.get_mut().remove(required_version::KEY) {
        let range = Spanned::<String>::deserialize(ValueDeserializer::from(value)).map_err(broken)?;
        match range.get_ref().parse::<RequiredVersion>() {
            Ok(range) => range.check(name)?,
            Err(error) => return Err(malformed_at(name, text, range.span().start, error.to_string())),
        }
    }
    if let Some(schema) = root.get_ref().get("schema") {
        let found = u32::deserialize(ValueDeserializer::from(schema.clone())).map_err(broken)?;
        if found != SCHEMA {
            return Err(CompatError::Schema { file: name.to_owned(), found });
        }
    }
    File::deserialize(toml::Deserializer::from(root)).map_err(broken)
}

/// Parses the matrix from files (name, text) and rejects it if the lint finds a fault.
pub fn parse(files: &[(&str, &str)]) -> Result<Matrix, CompatError> {
    let matrix = read_unlinted(files)?;
    let faults = lint::faults(&matrix);
    if faults.is_empty() { Ok(matrix) } else { Err(CompatError::Faulty { faults }) }
}

/// Returns `2026-11-20.1a2b3c4d5e6f`: the newest date and the hash of all texts.
fn edition(newest: &Day, files: &[(&str, &str)]) -> String {
    let mut all = Vec::new();
    for text in files.iter().flat_map(|(name, text)| [name, text]) {
        all.extend((text.len() as u64).to_le_bytes());
        all.extend(text.as_bytes());
    }
    format!("{newest}.{}", short_hash(&all))
}

/// The first 48 bits of the SHA-256 of some bytes, hex.
pub(super) fn short_hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(6).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

fn malformed(file: &str, text: &str, error: &toml::de::Error) -> CompatError {
    let what = error.message().lines().collect::<Vec<_>>().join(" ");
    malformed_at(file, text, error.span().map_or(0, |span| span.start), what)
}

fn malformed_at(file: &str, text: &str, offset: usize, what: String) -> CompatError {
    let before = text.get(..offset.min(text.len())).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    CompatError::Malformed { file: file.to_owned(), line, column, what }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = 1\nchecked = \"2026-11-20\"\n";

    fn stack(source: &str) -> String {
        format!(
            "[[stack]]\npython = \"3.11\"\nnumpy_line = \"1.x\"\nusable = true\nversions = {{ numpy = \"1.26.4\" }}\n\
             source = \"{source}\"\n"
        )
    }

    fn source_of(text: &str) -> Result<String, CompatError> {
        read_unlinted(&[("python_stack.toml", text)]).map(|matrix| matrix.stacks[0].source.clone())
    }

    #[test]
    fn a_literal_source_gets_the_day_of_its_file() {
        assert_eq!(
            source_of(&format!("{HEAD}{}", stack("read by hand"))).unwrap(),
            "read by hand [2026-11-20]"
        );
    }

    #[test]
    fn source_keys_become_their_texts_with_their_days() {
        let sources = "[sources]\na = \"wheel\"\nb = { text = \"notes\", checked = \"2026-11-21\" }\n";
        let both = source_of(&format!("{HEAD}{sources}{}", stack("@a @b"))).unwrap();
        assert_eq!(both, "wheel [2026-11-20]; notes [2026-11-21]");
        let one = source_of(&format!("{HEAD}{sources}{}", stack("@b"))).unwrap();
        assert_eq!(one, "notes [2026-11-21]");
        let mixed = source_of(&format!("{HEAD}{sources}{}", stack("@a and more"))).unwrap();
        assert_eq!(mixed, "and more; wheel [2026-11-20]");
    }

    #[test]
    fn unknown_source_key_is_reported_with_file_and_row() {
        let error = source_of(&format!("{HEAD}{}", stack("@gone"))).unwrap_err();
        let wanted =
            "unknown source `@gone` in `python_stack.toml`: stack 3.11 numpy 1.x (not in `[sources]`)";
        assert_eq!(error.to_string(), wanted);
        assert!(error.hints()[0].contains("[sources]"));
    }

    #[test]
    fn broken_toml_gives_line_and_column() {
        let error = read_unlinted(&[("driver.toml", "schema = 1\nchecked = \n")]).unwrap_err();
        let CompatError::Malformed { file, line, column, .. } = &error else { panic!("{error:?}") };
        assert_eq!((file.as_str(), *line, *column), ("driver.toml", 2, 11));
    }

    #[test]
    fn a_value_of_the_wrong_kind_gives_line_and_column() {
        let text = format!("{HEAD}\n[[branch]]\nbranch = 570\nmax_cuda = \"twelve\"\n");
        let error = read_unlinted(&[("driver.toml", &text)]).unwrap_err();
        let CompatError::Malformed { line, column, what, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*line, *column), (6, 12), "{error}");
        assert!(what.contains("`twelve` is not a CUDA version"), "{what}");
    }

    #[test]
    fn unknown_fields_and_tables_are_rejected() {
        for extra in ["[[stakc]]\n", "colour = 1\n"] {
            let text = format!("{HEAD}{extra}");
            assert!(
                matches!(read_unlinted(&[("a.toml", &text)]), Err(CompatError::Malformed { .. })),
                "{extra}"
            );
        }
        let text = format!("{HEAD}{}colour = 1\n", stack("x"));
        assert!(matches!(read_unlinted(&[("a.toml", &text)]), Err(CompatError::Malformed { .. })));
    }

    #[test]
    fn invalid_date_is_rejected() {
        let error = read_unlinted(&[("a.toml", "schema = 1\nchecked = \"yesterday\"\n")]).unwrap_err();
        assert!(error.to_string().contains("invalid date `yesterday`"), "{error}");
    }

    #[test]
    fn unsupported_schema_is_rejected() {
        let error = read_unlinted(&[("a.toml", "schema = 2\nchecked = \"2026-11-20\"\n")]).unwrap_err();
        assert_eq!(error.to_string(), "unsupported schema 2 in `a.toml` (supported: 1)");
    }

    #[test]
    fn unmet_required_version_is_reported_before_unknown_tables() {
        let text = "schema = 9\nrequired-version = '>=99'\n[[news]]\nx = 1\n";
        let error = read_unlinted(&[("pytorch.toml", text)]).unwrap_err();
        let CompatError::Version(unmet) = &error else { panic!("{error:?}") };
        assert_eq!((unmet.file.as_str(), unmet.required.as_str()), ("pytorch.toml", ">=99"));
        assert!(error.hints()[0].contains("cargo install envforge"), "{:?}", error.hints());
    }

    #[test]
    fn met_required_version_is_accepted() {
        let text = format!("required-version = '>=0.1'\n{HEAD}{}", stack("x"));
        assert_eq!(source_of(&text).unwrap(), "x [2026-11-20]");
    }

    #[test]
    fn malformed_required_version_gives_line_and_column() {
        let error = read_unlinted(&[("a.toml", &format!("{HEAD}required-version = '>=new'\n"))]).unwrap_err();
        let CompatError::Malformed { line, column, what, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*line, *column), (3, 20), "{error}");
        assert!(what.contains("invalid version range `>=new`"), "{what}");
        let error = read_unlinted(&[("a.toml", &format!("{HEAD}required-version = 2\n"))]).unwrap_err();
        assert!(matches!(error, CompatError::Malformed { line: 3, column: 20, .. }), "{error:?}");
    }

    #[test]
    fn faulty_matrix_is_rejected_with_every_row() {
        let text = format!("{HEAD}{}", stack(" "));
        let error = parse(&[("python_stack.toml", &text)]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("python_stack.toml: stack 3.11 numpy 1.x: missing source"), "{text}");
        assert!(text.contains("bases.toml"), "{text}");
    }

    #[test]
    fn edition_is_newest_date_and_independent_of_file_order() {
        let one = format!("{HEAD}{}", stack("x"));
        let two = "schema = 1\nchecked = \"2026-11-21\"\n";
        let edition = |files: &[(&str, &str)]| read_unlinted(files).unwrap().edition;
        let there = edition(&[("a.toml", &one), ("b.toml", two)]);
        assert_eq!(there, edition(&[("b.toml", two), ("a.toml", &one)]));
        assert!(there.starts_with("2026-11-21."), "{there}");
        assert_eq!(there.len(), "2026-11-21.".len() + 12);
        assert_ne!(there, edition(&[("a.toml", &format!("{one}\n")), ("b.toml", two)]));
        assert_ne!(there, edition(&[("c.toml", &one), ("b.toml", two)]));
    }
}
