//! The matrix in place of the built-in one: that of the configuration, else the one that `compat use` chose and the state directory keeps.
#![expect(clippy::disallowed_methods, reason = "reads the chosen matrix")]

use std::io::Read as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::{Exit, Failure};
use crate::model::bounded_tar::BoundedTar;
use crate::model::compat::Matrix;
use crate::model::compat::parse::parse;
use crate::model::sha256::sha256_hex;
use crate::report::{Event, reporter};
use crate::settings::{MatrixSettings, Settings};
use crate::store::write_atomically;
use crate::workflow::error::CommandError;

/// Identifies the program that installed a matrix: another one may read it differently, or have a newer one.
fn key() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), crate::model::compat::embedded().edition)
}

fn kept(settings: &Settings) -> Utf8PathBuf {
    settings.paths.state.join("edition")
}

/// The matrix of `[matrix]` as it was last read, so that not every call parses and lints it.
fn read_before(settings: &Settings) -> Utf8PathBuf {
    settings.paths.state.join("configured-matrix")
}

/// Returns the matrix that the configuration names, else the one chosen with `compat use`, else the built-in one; with the
/// configuration's own rows.
pub(crate) fn read_matrix(settings: &Settings) -> Result<Arc<Matrix>, CommandError> {
    let MatrixSettings { file, local } = &settings.matrix_files;
    if file.is_none() && local.is_none() {
        return Ok(chosen(settings).map_or_else(crate::model::compat::built_in, Arc::new));
    }
    let file = file
        .as_ref()
        .map(|(file, sha256)| Ok::<_, CommandError>((file, checked(file, sha256)?)))
        .transpose()?;
    let local = local.as_ref().map(|file| Ok::<_, CommandError>((file, bounded(file)?))).transpose()?;
    let chosen = if file.is_none() { chosen(settings) } else { None };
    let hash = |read: Option<&(&Utf8PathBuf, Vec<u8>)>| {
        read.map_or_else(|| "none".to_owned(), |(file, bytes)| format!("{file} {}", sha256_hex(bytes)))
    };
    let edition = chosen.as_ref().map_or("", |matrix| matrix.edition.as_str());
    let known = format!("{} {edition} {} {}", key(), hash(file.as_ref()), hash(local.as_ref()));
    if let Some(matrix) = kept_as(&read_before(settings), &known) {
        return Ok(Arc::new(matrix));
    }
    let mut matrix = match file {
        Some((file, bytes)) => parsed(file, &bytes)?,
        None => chosen.unwrap_or_else(|| crate::model::compat::embedded().clone()),
    };
    if let Some((file, bytes)) = local {
        matrix = matrix.with_local(file.as_str(), &text(file, bytes)?)?;
    }
    // A state directory that cannot be written costs time in each call, no more.
    let _ = keep(&read_before(settings), &known, &matrix);
    Ok(Arc::new(matrix))
}

/// The matrix that `compat use` chose, if this program did.
fn chosen(settings: &Settings) -> Option<Matrix> {
    let file = kept(settings);
    if let Some(matrix) = kept_as(&file, &key()) {
        return Some(matrix);
    }
    if file.is_file() {
        let text = format!(
            "the matrix archive in use was installed by another envforge version: using built-in matrix {} instead; run \
             `envforge compat use FILE --sha256 HASH` again, or `envforge compat use --builtin`",
            crate::model::compat::embedded().edition
        );
        reporter(settings.output).report(Event::Warning { text });
    }
    None
}

/// The matrix in a file of ours, if it was written under that key.
fn kept_as(file: &Utf8Path, key: &str) -> Option<Matrix> {
    let bytes = fs_err::read(file).ok()?;
    let (known, rest) = postcard::take_from_bytes::<String>(&bytes).ok()?;
    (known == key).then(|| postcard::from_bytes(rest).ok())?
}

fn keep(file: &Utf8Path, key: &str, matrix: &Matrix) -> Result<(), CommandError> {
    let mut bytes = postcard::to_stdvec(key).expect("a text");
    bytes.extend(postcard::to_stdvec(matrix).expect("values of our own"));
    Ok(write_atomically(file, &bytes)?)
}

/// Removes the chosen matrix, so that the built-in one is used again.
pub(crate) fn remove_override(settings: &Settings) -> Result<(), CommandError> {
    match fs_err::remove_file(kept(settings)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
        _ => Ok(()),
    }
}

/// Checks a matrix archive by its hash, lints it, uses it from the next call on, and returns it. An older matrix than the
/// built-in one is warned about.
pub(crate) fn install_archive(
    settings: &Settings,
    file: &Utf8Path,
    sha256: &str,
) -> Result<Matrix, CommandError> {
    if let Some((configured, _)) = &settings.matrix_files.file {
        let origin = settings.origin("matrix.file").unwrap_or_default();
        return Err(MatrixArchiveError::Configured { file: configured.to_string(), origin }.into());
    }
    let bytes = checked(&settings.paths.current_dir.join(file), sha256)?;
    let matrix = parsed(file, &bytes)?;
    keep(&kept(settings), &key(), &matrix)?;
    if matrix.edition < crate::model::compat::embedded().edition {
        let text = format!(
            "the archive is older than the built-in matrix {}",
            crate::model::compat::embedded().edition
        );
        reporter(settings.output).report(Event::Warning { text });
    }
    Ok(matrix)
}

/// The content of a file with that SHA-256.
fn checked(file: &Utf8Path, sha256: &str) -> Result<Vec<u8>, CommandError> {
    let bytes = bounded(file)?;
    let found = sha256_hex(&bytes);
    if found.eq_ignore_ascii_case(sha256) {
        return Ok(bytes);
    }
    Err(MatrixArchiveError::OtherHash { file: file.to_string(), found, wanted: sha256.to_owned() }.into())
}

fn bounded(file: &Utf8Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs_err::File::open(file)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads a matrix, an archive or one TOML file, and lints it.
fn parsed(file: &Utf8Path, bytes: &[u8]) -> Result<Matrix, CommandError> {
    if file.extension() == Some("toml") {
        return Ok(parse(&[(file.as_str(), &text(file, bytes.to_vec())?)])?);
    }
    let files = archived(bytes)
        .map_err(|cause| MatrixArchiveError::NotAnArchive { file: file.to_string(), cause })?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    Ok(parse(&files)?)
}

fn text(file: &Utf8Path, bytes: Vec<u8>) -> Result<String, MatrixArchiveError> {
    String::from_utf8(bytes).map_err(|error| MatrixArchiveError::NotText {
        file: file.to_string(),
        offset: error.utf8_error().valid_up_to(),
    })
}

/// The `.toml` files of a tar archive, packed or not, by name: those of the highest folder that has any. Folders in it are no part of the
/// matrix: `compat/` has a crate in it.
fn archived(bytes: &[u8]) -> std::io::Result<Vec<(String, String)>> {
    let unpacked: Box<dyn std::io::Read + '_> = match bytes {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    let mut files = Vec::new();
    for entry in BoundedTar::new(unpacked.take(LIMIT)).entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        if entry.header().entry_type().is_file() && Utf8Path::new(&path).extension() == Some("toml") {
            let mut text = String::new();
            entry.read_to_string(&mut text)?;
            files.push((path, text));
        }
    }
    let depth = |path: &str| path.trim_start_matches("./").matches('/').count();
    let highest = files.iter().map(|(path, _)| depth(path)).min();
    files.retain(|(path, _)| Some(depth(path)) == highest);
    for (path, _) in &mut files {
        *path = path.rsplit('/').next().unwrap_or_default().to_owned();
    }
    files.sort();
    if files.is_empty() {
        return Err(std::io::Error::other("it contains no `.toml` file"));
    }
    Ok(files)
}

/// More than any matrix archive.
const LIMIT: u64 = 64 << 20;

/// Why a file is not the matrix archive that was requested.
#[derive(Debug, thiserror::Error)]
enum MatrixArchiveError {
    /// Its SHA-256 differs.
    #[error("SHA-256 mismatch for `{file}`: expected {wanted}, found {found}")]
    OtherHash { file: String, found: String, wanted: String },
    /// It is not text.
    #[error("`{file}` is not UTF-8 text from byte {offset} on")]
    NotText { file: String, offset: usize },
    /// The configuration decides.
    #[error("`compat use` has no effect: {origin} sets `[matrix] file` to {file}")]
    Configured { file: String, origin: String },
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
            Self::OtherHash { .. } => {
                "download it again, or check the published hash and `[matrix] sha256`".to_owned()
            }
            Self::NotText { .. } => "write it as a file of compat/".to_owned(),
            Self::Configured { .. } => "change that key, or remove it".to_owned(),
            Self::NotAnArchive { .. } => "create one with `tar -C compat -cf matrix.tar .`".to_owned(),
        }]
    }
}
