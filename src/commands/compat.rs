//! `compat`: the matrix itself, checked and shown.
#![expect(clippy::disallowed_methods, reason = "reads compat files")]

use std::io::Read as _;

use camino::Utf8Path;
use serde_json::json;

use crate::failure::{Exit, Failure};
use crate::model::bounded_tar::BoundedTar;
use crate::model::compat::parse::parse;
use crate::model::compat::{Fault, Matrix, faults, read};
use crate::model::request;
use crate::model::sha256::sha256_hex;
use crate::pages;
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::matrix_override::{kept, key};

pub(super) fn lint(args: &request::CompatLint, settings: &Settings) -> Result<Exit, CommandError> {
    let (edition, rows, found) = match &args.dir {
        None => {
            let matrix = Matrix::current();
            (matrix.edition.clone(), matrix.rows().len(), faults(matrix))
        }
        Some(folder) => {
            let files = files(folder)?;
            let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
            let matrix = read(&files)?;
            (matrix.edition.clone(), matrix.rows().len(), faults(&matrix))
        }
    };
    if settings.output.json {
        let fault = |fault: &Fault| json!({ "file": fault.file, "row": fault.row, "problem": fault.problem.to_string() });
        let faults: Vec<_> = found.iter().map(fault).collect();
        Printer.json(&json!({ "schema": 1, "edition": edition, "rows": rows, "faults": faults }));
    } else {
        for fault in &found {
            Printer.text(&fault.to_string());
        }
        Printer.text(&format!("matrix {edition}: {rows} rows, {} faults", found.len()));
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::No })
}

/// The `.toml` files of a folder, by name.
fn files(folder: &Utf8Path) -> Result<Vec<(String, String)>, CommandError> {
    let mut files = Vec::new();
    for entry in fs_err::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            files.push((name, fs_err::read_to_string(&path)?));
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn show(args: &request::CompatShow, settings: &Settings) -> Exit {
    let matrix = Matrix::current();
    let wanted = args.row.trim().to_lowercase();
    let rows = matrix.rows();
    let found: Vec<_> = rows.iter().filter(|row| row.label().to_lowercase().starts_with(&wanted)).collect();
    if settings.output.json {
        let row = |row: &&&dyn crate::model::compat::Row| json!({ "row": row.label(), "file": row.file(), "fields": row.fields() });
        let rows: Vec<_> = found.iter().map(row).collect();
        Printer.json(&json!({ "schema": 1, "edition": matrix.edition, "rows": rows }));
    } else {
        for row in &found {
            Printer.text(&format!("{}: {}\n{}", row.file(), row.label(), row.fields()));
        }
    }
    if found.is_empty() {
        Printer.say(&format!(
            "row `{}` not found (examples: `variant pytorch 2.8.0 cu128 x86_64`, `toolkit 12.8.1`)",
            args.row
        ));
        return Exit::No;
    }
    Exit::Done
}

/// `compat site`: the matrix as pages.
pub(super) fn site(args: &request::CompatSite, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = settings.paths.current_dir.join(&args.dir);
    let matrix = Matrix::current();
    let pages = pages::site(matrix);
    for page in &pages {
        write_atomically(&folder.join(&page.name), page.text.as_bytes())?;
    }
    let names: Vec<_> = pages.iter().map(|page| page.name.as_str()).collect();
    if settings.output.json {
        Printer
            .json(&json!({ "schema": 1, "edition": matrix.edition, "directory": args.dir, "files": names }));
    } else {
        let index = args.dir.join("index.html");
        Printer.text(&format!("{index}: matrix {}, {} pages", matrix.edition, names.len()));
    }
    Ok(Exit::Done)
}

/// More than any matrix archive.
const LIMIT: u64 = 64 << 20;

/// Why a file is not the matrix archive that was requested.
#[derive(Debug, thiserror::Error)]
enum MatrixArchiveError {
    /// Its SHA-256 differs.
    #[error("SHA-256 mismatch for `{file}`: expected {wanted}, found {found}")]
    OtherHash { file: String, found: String, wanted: String },
    /// It is not a tar archive of matrix files.
    #[error("`{file}` is not a matrix archive")]
    NotAnArchive {
        file: String,
        #[source]
        cause: std::io::Error,
    },
}

impl Failure for MatrixArchiveError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec![match self {
            Self::OtherHash { .. } => "download it again, or check the published hash".to_owned(),
            Self::NotAnArchive { .. } => "create one with `tar -C compat -cf matrix.tar .`".to_owned(),
        }]
    }
}

/// `compat use`: takes another matrix than the program's own, checked by its hash and linted.
pub(super) fn use_archive(args: &request::CompatUse, settings: &Settings) -> Result<Exit, CommandError> {
    let path = kept(settings);
    let (Some(file), Some(wanted)) = (&args.file, &args.sha256) else {
        return match fs_err::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => {
                Printer.text(&format!("using built-in matrix {}", Matrix::embedded().edition));
                Ok(Exit::Done)
            }
        };
    };
    let mut bytes = Vec::new();
    fs_err::File::open(settings.paths.current_dir.join(file))?.take(LIMIT).read_to_end(&mut bytes)?;
    let found = sha256_hex(&bytes);
    if !found.eq_ignore_ascii_case(wanted) {
        return Err(
            MatrixArchiveError::OtherHash { file: file.to_string(), found, wanted: wanted.clone() }.into()
        );
    }
    let files = archived(&bytes)
        .map_err(|cause| MatrixArchiveError::NotAnArchive { file: file.to_string(), cause })?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = parse(&files)?;
    let mut kept = postcard::to_stdvec(&key()).expect("a text");
    kept.extend(postcard::to_stdvec(&matrix).expect("values of our own"));
    write_atomically(&path, &kept)?;
    if matrix.edition < Matrix::embedded().edition {
        let text = format!("the archive is older than the built-in matrix {}", Matrix::embedded().edition);
        reporter(settings.output).report(Event::Warning { text });
    }
    Printer.text(&format!("using matrix {}: {} rows", matrix.edition, matrix.rows().len()));
    Ok(Exit::Done)
}

/// The `.toml` files of a tar archive, packed or not, by name.
fn archived(bytes: &[u8]) -> std::io::Result<Vec<(String, String)>> {
    let unpacked: Box<dyn std::io::Read + '_> = match bytes {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    let mut files = Vec::new();
    for entry in BoundedTar::new(unpacked.take(LIMIT)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        if entry.header().entry_type().is_file() && Utf8Path::new(name).extension() == Some("toml") {
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            files.push((name.to_owned(), text));
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(std::io::Error::other("it contains no `.toml` file"));
    }
    Ok(files)
}
