//! Rows of a machine's own file in addition to those of the matrix: builds of a team that are not published.

use std::collections::BTreeMap;

use super::lint::{self, Fault};
use super::parse::{CompatError, read_unlinted, short_hash};
use super::rows::Row;
use super::tables::{LocalRows, Matrix, Variant};

impl Matrix {
    /// Adds the variants of a file. Errors: what is wrong in it, a row that the matrix has, any other table.
    pub fn with_local(mut self, file: &str, text: &str) -> Result<Self, CompatError> {
        let own = read_unlinted(&[(file, text)])?;
        if let Some(other) = own.rows().iter().find(|row| !row.label().starts_with("variant ")) {
            return Err(CompatError::LocalTable { file: file.to_owned(), row: other.label() });
        }
        let known: BTreeMap<String, &Variant> =
            self.variants.iter().map(|row| (lint::key(&row.label()), row)).collect();
        for row in &own.variants {
            if let Some(known) = known.get(&lint::key(&row.label())) {
                return Err(CompatError::LocalContradicts {
                    file: file.to_owned(),
                    row: row.label(),
                    known: known.reference(),
                    edition: self.edition,
                });
            }
        }
        let rows = own.variants.iter().map(Row::label).collect();
        self.variants.extend(own.variants);
        self.edition = joined_edition(&self.edition, &own.edition);
        self.local = Some(LocalRows { file: file.to_owned(), rows });
        let faults: Vec<Fault> =
            lint::faults(&self)
                .into_iter()
                .map(|fault| {
                    if self.has_local(&fault.row) { Fault { file: file.to_owned(), ..fault } } else { fault }
                })
                .collect();
        if faults.is_empty() { Ok(self) } else { Err(CompatError::Faulty { faults }) }
    }

    /// Whether a variant is of this machine's own file.
    pub fn is_local(&self, row: &Variant) -> bool {
        self.local.is_some() && self.has_local(&row.label())
    }

    /// Returns the file that holds a row: one of compat/, or this machine's own.
    pub fn file_of(&self, row: &dyn Row) -> String {
        match &self.local {
            Some(local) if local.rows.contains(&row.label()) => local.file.clone(),
            _ => row.file(),
        }
    }

    fn has_local(&self, label: &str) -> bool {
        self.local.as_ref().is_some_and(|local| local.rows.contains(label))
    }
}

/// The newer of both days and a hash of both.
fn joined_edition(matrix: &str, own: &str) -> String {
    let day = |edition: &str| edition.split('.').next().unwrap_or_default().to_owned();
    format!("{}.{}", day(matrix).max(day(own)), short_hash(format!("{matrix} {own}").as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "schema = 1\nchecked = \"2030-01-02\"\n";

    /// The row of torch 2.8.0+cu128 with another version.
    fn row(version: &str) -> String {
        let matrix = Matrix::embedded();
        let public = matrix.variants.iter().find(|row| row.label() == "variant pytorch 2.8.0 cu128 x86_64");
        let row = Variant {
            version: version.parse().unwrap(),
            source: "built at Example Corp".to_owned(),
            ..public.expect("a row").clone()
        };
        // Companions follow as a table of their own.
        let fields = row.fields().replace("[companions]", "[variant.companions]");
        format!("[[variant]]\n{fields}\n")
    }

    fn with(text: &str) -> Result<Matrix, CompatError> {
        Matrix::embedded().clone().with_local("/site/local.toml", &format!("{HEAD}{text}"))
    }

    #[test]
    fn own_build_is_added_and_marked() {
        let matrix = with(&row("2.8.0+corp1")).expect("a sound file");
        let own: Vec<_> = matrix.variants.iter().filter(|row| matrix.is_local(row)).collect();
        assert_eq!(own.len(), 1);
        assert_eq!(own[0].version.to_string(), "2.8.0+corp1");
        assert_eq!(matrix.file_of(own[0]), "/site/local.toml");
        assert!(own[0].source.contains("built at Example Corp [2030-01-02]"), "{}", own[0].source);
        assert!(matrix.edition.starts_with("2030-01-02.") && matrix.edition != Matrix::embedded().edition);
    }

    #[test]
    fn row_of_the_matrix_is_not_replaced_in_any_spelling() {
        for version in ["2.8.0", "2.8"] {
            let error = with(&row(version)).expect_err("refused");
            let text = error.to_string();
            let both = [format!("variant pytorch {version} cu128 x86_64"), "/site/local.toml".to_owned()];
            for words in
                both.iter().map(String::as_str).chain(["pytorch.toml: variant pytorch 2.8.0 cu128 x86_64"])
            {
                assert!(text.contains(words), "{words}: {text}");
            }
        }
    }

    #[test]
    fn faults_name_the_own_file() {
        let unknown = row("2.8.0+corp1").replace("toolkit = \"12.8.1\"", "toolkit = \"12.8.77\"");
        let text = with(&unknown).expect_err("no such toolkit").to_string();
        assert!(
            text.contains("/site/local.toml: variant pytorch 2.8.0+corp1") && text.contains("12.8.77"),
            "{text}"
        );
        let twice = row("2.8.0+corp1").repeat(2);
        let text = with(&twice).expect_err("a row twice").to_string();
        assert!(text.contains("/site/local.toml") && text.contains("duplicate row"), "{text}");
        let other = row("2.8.0+corp1").replace("channel = \"default\"", "channel = \"framework\"");
        let text = with(&other).expect_err("two local parts").to_string();
        assert!(text.contains("version 2.8.0+corp1 here, the framework's own channel"), "{text}");
        let driver = "[[minor_floor]]\ncuda_major = 99\nlinux = \"1.0\"\nsource = \"x\"\n";
        let text = with(driver).expect_err("a row of another table").to_string();
        assert!(text.contains("/site/local.toml") && text.contains("minor_floor 99"), "{text}");
    }
}
