//! From the text of `compat/*.toml` to the matrix.
//!
//! Owns the shape of the files, the expansion of source keys and the edition. Must not read a disk: texts are passed
//! in. Also compiled into `build.rs`.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use sha2::{Digest, Sha256};
use thiserror::Error;

use super::lint::{self, Fault};
use super::rows::{Row, every_table};
use super::tables::{
    Base, Capability, Chip, Companion, Compiler, ComponentWheel, Components, CudnnBuild, DeveloperStack,
    DriverBranch, ForwardCompat, Gpu, KnownVersion, Matrix, MinorFloor, NcclBuild, NumpyLimit, NvccPackage,
    NvccRepository, NvccVendor, NvccWheels, Product, Profilers, SourceBuild, SourceFloor, Toolkit,
    UnmeasuredLibrary, Variant,
};
use super::{from_source, toolkit};

/// The schema of the files this program reads.
const SCHEMA: u32 = 1;

/// Why compat files give no matrix.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CompatError {
    /// The text is no TOML, or not of the shape its table has.
    #[error("`{file}` line {line}, column {column}: {what}")]
    Malformed {
        /// The file's name.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser says.
        what: String,
    },
    /// The file is of another schema.
    #[error("`{file}` has schema {found}, this program reads {SCHEMA}")]
    Schema {
        /// The file's name.
        file: String,
        /// Its schema.
        found: u32,
    },
    /// A row names a source that `[sources]` does not have.
    #[error("`{file}`: {row} names the source `@{key}`, which is not in `[sources]`")]
    UnknownSource {
        /// The file's name.
        file: String,
        /// The row.
        row: String,
        /// The key it names.
        key: String,
    },
    /// The rows contradict each other, or name what is not there.
    #[error("{} in the compatibility matrix:\n{}", count(faults), lines(faults))]
    Faulty {
        /// Everything that is wrong.
        faults: Vec<Fault>,
    },
}

fn count(faults: &[Fault]) -> String {
    if faults.len() == 1 { "1 fault".to_owned() } else { format!("{} faults", faults.len()) }
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("  {fault}")).collect::<Vec<_>>().join("\n")
}

impl CompatError {
    /// What the user can do about it.
    pub fn hints(&self) -> Vec<String> {
        match self {
            Self::Malformed { .. } | Self::Faulty { .. } => {
                vec!["the fields of each table are described in compat/README.md".to_owned()]
            }
            Self::Schema { .. } => vec!["use compat files of the same release as this program".to_owned()],
            Self::UnknownSource { key, .. } => {
                vec![format!("add `{key} = \"...\"` to `[sources]` of that file")]
            }
        }
    }

    /// The process exit code: a file is wrong.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Malformed { .. }
            | Self::Schema { .. }
            | Self::UnknownSource { .. }
            | Self::Faulty { .. } => 2,
        }
    }
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
            Err(format!("`{text}` is not a day such as `2026-11-20`"))
        }
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// An entry of `[sources]`: the text alone, checked on the file's day, or with a day of its own.
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
    /// The full text of a row's `source`: keys (`@wheel @notes`) become their texts, and the day is added.
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
            schema: u32,
            checked: Day,
            #[serde(default)]
            sources: BTreeMap<String, SourceText>,
            $(#[serde(default)]
            $table: Vec<$row>,)*
        }

        impl File {
            /// Moves every row into the matrix, its source written out; gives the newest day.
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

/// Reads the matrix from files (name, text), without judging what the rows say.
pub fn read(files: &[(&str, &str)]) -> Result<Matrix, CompatError> {
    let mut files = files.to_vec();
    files.sort_unstable();
    let mut matrix = Matrix::default();
    let mut newest = Day::default();
    for (name, text) in &files {
        let file: File = toml::from_str(text).map_err(|error| malformed(name, text, &error))?;
        if file.schema != SCHEMA {
            return Err(CompatError::Schema { file: (*name).to_owned(), found: file.schema });
        }
        newest = newest.max(file.pour_into(&mut matrix, name)?);
    }
    toolkit::add(&mut matrix);
    from_source::add(&mut matrix);
    matrix.edition = edition(&newest, &files);
    Ok(matrix)
}

/// Reads the matrix from files (name, text) and refuses it if the lint finds a fault.
pub fn parse(files: &[(&str, &str)]) -> Result<Matrix, CompatError> {
    let matrix = read(files)?;
    let faults = lint::faults(&matrix);
    if faults.is_empty() { Ok(matrix) } else { Err(CompatError::Faulty { faults }) }
}

/// `2026-11-20.1a2b3c4d5e6f`: the newest day and the hash of all texts.
fn edition(newest: &Day, files: &[(&str, &str)]) -> String {
    let mut hash = Sha256::new();
    for (name, text) in files {
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name.as_bytes());
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    hash.finalize().iter().take(6).fold(format!("{newest}."), |text, byte| text + &format!("{byte:02x}"))
}

fn malformed(file: &str, text: &str, error: &toml::de::Error) -> CompatError {
    let offset = error.span().map_or(0, |span| span.start).min(text.len());
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or(before).chars().count() + 1;
    let what = error.message().lines().collect::<Vec<_>>().join(" ");
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
        read(&[("python_stack.toml", text)]).map(|matrix| matrix.stacks[0].source.clone())
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
    fn an_unknown_source_key_names_file_row_and_key() {
        let error = source_of(&format!("{HEAD}{}", stack("@gone"))).unwrap_err();
        let wanted =
            "`python_stack.toml`: stack 3.11 numpy 1.x names the source `@gone`, which is not in `[sources]`";
        assert_eq!(error.to_string(), wanted);
        assert!(error.hints()[0].contains("[sources]"));
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn broken_toml_gives_line_and_column() {
        let error = read(&[("driver.toml", "schema = 1\nchecked = \n")]).unwrap_err();
        let CompatError::Malformed { file, line, column, .. } = &error else { panic!("{error:?}") };
        assert_eq!((file.as_str(), *line, *column), ("driver.toml", 2, 11));
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn a_value_of_the_wrong_kind_gives_line_and_column() {
        let text = format!("{HEAD}\n[[branch]]\nbranch = 570\nmax_cuda = \"twelve\"\n");
        let error = read(&[("driver.toml", &text)]).unwrap_err();
        let CompatError::Malformed { line, column, what, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*line, *column), (6, 12), "{error}");
        assert!(what.contains("`twelve` is not a CUDA version"), "{what}");
    }

    #[test]
    fn unknown_fields_and_tables_are_refused() {
        for extra in ["[[stakc]]\n", "colour = 1\n"] {
            let text = format!("{HEAD}{extra}");
            assert!(matches!(read(&[("a.toml", &text)]), Err(CompatError::Malformed { .. })), "{extra}");
        }
        let text = format!("{HEAD}{}colour = 1\n", stack("x"));
        assert!(matches!(read(&[("a.toml", &text)]), Err(CompatError::Malformed { .. })));
    }

    #[test]
    fn a_day_must_be_a_day() {
        let error = read(&[("a.toml", "schema = 1\nchecked = \"yesterday\"\n")]).unwrap_err();
        assert!(error.to_string().contains("`yesterday` is not a day"), "{error}");
    }

    #[test]
    fn another_schema_is_refused() {
        let error = read(&[("a.toml", "schema = 2\nchecked = \"2026-11-20\"\n")]).unwrap_err();
        assert_eq!(error.to_string(), "`a.toml` has schema 2, this program reads 1");
    }

    #[test]
    fn a_matrix_with_faults_is_refused_with_every_row() {
        let text = format!("{HEAD}{}", stack(" "));
        let error = parse(&[("python_stack.toml", &text)]).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("python_stack.toml: stack 3.11 numpy 1.x: it has no source"), "{text}");
        assert!(text.contains("bases.toml"), "{text}");
    }

    #[test]
    fn the_edition_is_the_newest_day_and_follows_the_text_not_the_order() {
        let one = format!("{HEAD}{}", stack("x"));
        let two = "schema = 1\nchecked = \"2026-11-21\"\n";
        let edition = |files: &[(&str, &str)]| read(files).unwrap().edition;
        let there = edition(&[("a.toml", &one), ("b.toml", two)]);
        assert_eq!(there, edition(&[("b.toml", two), ("a.toml", &one)]));
        assert!(there.starts_with("2026-11-21."), "{there}");
        assert_eq!(there.len(), "2026-11-21.".len() + 12);
        assert_ne!(there, edition(&[("a.toml", &format!("{one}\n")), ("b.toml", two)]));
        assert_ne!(there, edition(&[("c.toml", &one), ("b.toml", two)]));
    }
}
