//! The matrix that `compat use` chose instead of the program's own, kept in the state directory.
#![expect(clippy::disallowed_methods, reason = "reads the chosen matrix")]

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::failure::{Exit, Failure};
use crate::model::bounded_tar::BoundedTar;
use crate::model::compat::Matrix;
use crate::model::compat::parse::parse;
use crate::model::sha256::sha256_hex;
use crate::report::{Event, reporter};
use crate::settings::Settings;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;

/// Identifies the program that installed a matrix: another one may read it differently, or have a newer one.
fn key() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), Matrix::embedded().edition)
}

fn kept(settings: &Settings) -> Utf8PathBuf {
    settings.paths.state.join("edition")
}

/// Uses the matrix chosen on this machine, if there is one.
pub(crate) fn apply_override(settings: &Settings) {
    let Ok(bytes) = fs_err::read(kept(settings)) else { return };
    match postcard::take_from_bytes::<String>(&bytes) {
        Ok((known, rest)) if known == key() => {
            if let Ok(matrix) = postcard::from_bytes::<Matrix>(rest) {
                return matrix.choose();
            }
        }
        _ => {}
    }
    let text = format!(
        "the matrix archive in use was installed by another envforge version: using built-in matrix {} instead; run `envforge \
         compat use FILE --sha256 HASH` again, or `envforge compat use --builtin`",
        Matrix::embedded().edition
    );
    reporter(settings.output).report(Event::Warning { text });
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
    let mut bytes = Vec::new();
    fs_err::File::open(settings.paths.current_dir.join(file))?.take(LIMIT).read_to_end(&mut bytes)?;
    let found = sha256_hex(&bytes);
    if !found.eq_ignore_ascii_case(sha256) {
        let (file, wanted) = (file.to_string(), sha256.to_owned());
        return Err(MatrixArchiveError::OtherHash { file, found, wanted }.into());
    }
    let files = archived(&bytes)
        .map_err(|cause| MatrixArchiveError::NotAnArchive { file: file.to_string(), cause })?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = parse(&files)?;
    let mut kept_bytes = postcard::to_stdvec(&key()).expect("a text");
    kept_bytes.extend(postcard::to_stdvec(&matrix).expect("values of our own"));
    write_atomically(&kept(settings), &kept_bytes)?;
    if matrix.edition < Matrix::embedded().edition {
        let text = format!("the archive is older than the built-in matrix {}", Matrix::embedded().edition);
        reporter(settings.output).report(Event::Warning { text });
    }
    Ok(matrix)
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
