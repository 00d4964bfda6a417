//! `compat use`: another edition of the matrix than the program's own, checked by its hash and kept in the state folder.
#![expect(clippy::disallowed_methods, reason = "reads the edition's file, keeps and finds the chosen one")]

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};

use super::{CommandError, Exit};
use crate::cli::CompatUseArgs;
use crate::compat::Matrix;
use crate::report::{Event, Printer, reporter};
use crate::settings::Settings;
use crate::sha256::sha256_hex;
use crate::store::write_atomically;

/// More than any edition.
const LIMIT: u64 = 64 << 20;

/// A chosen edition is of the program that chose it: another one may read it otherwise, or know more by itself.
fn key() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), Matrix::embedded().edition)
}

fn kept(settings: &Settings) -> Utf8PathBuf {
    settings.state_dir.join("edition")
}

/// Puts the edition in force that was chosen on this machine, if one was.
pub(super) fn in_force(settings: &Settings) {
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
        "the chosen edition of the matrix was for another envforge: its own one {} is used; choose again with `envforge \
         compat use`, or end this with `envforge compat use --builtin`",
        Matrix::embedded().edition
    );
    reporter(settings.output).report(Event::Warning { text });
}

pub(super) fn use_edition(args: &CompatUseArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let path = kept(settings);
    let (Some(file), Some(wanted)) = (&args.file, &args.sha256) else {
        return match fs_err::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => {
                Printer.text(&format!("edition {} of this program is in force", Matrix::embedded().edition));
                Ok(Exit::Done)
            }
        };
    };
    let mut bytes = Vec::new();
    fs_err::File::open(settings.current_dir.join(file))?.take(LIMIT).read_to_end(&mut bytes)?;
    let found = sha256_hex(&bytes);
    if !found.eq_ignore_ascii_case(wanted) {
        return Err(CommandError::OtherEdition { file: file.to_string(), found, wanted: wanted.clone() });
    }
    let files = files(&bytes).map_err(|cause| CommandError::NoEdition { file: file.to_string(), cause })?;
    let files: Vec<_> = files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let matrix = crate::compat::parse::parse(&files)?;
    let mut kept = postcard::to_stdvec(&key()).expect("a text");
    kept.extend(postcard::to_stdvec(&matrix).expect("values of our own"));
    write_atomically(&path, &kept)?;
    if matrix.edition < Matrix::embedded().edition {
        let text = format!("it is older than this program's own, {}", Matrix::embedded().edition);
        reporter(settings.output).report(Event::Warning { text });
    }
    Printer.text(&format!("edition {} is in force: {} rows", matrix.edition, matrix.rows().len()));
    Ok(Exit::Done)
}

/// The `.toml` files of a tar archive, packed or not, by name.
fn files(bytes: &[u8]) -> std::io::Result<Vec<(String, String)>> {
    let unpacked: Box<dyn std::io::Read + '_> = match bytes {
        [0x1f, 0x8b, ..] => Box::new(flate2::read::GzDecoder::new(bytes)),
        _ => Box::new(bytes),
    };
    let mut files = Vec::new();
    for entry in tar::Archive::new(unpacked.take(LIMIT)).entries()? {
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
        return Err(std::io::Error::other("there is no `.toml` file in it"));
    }
    Ok(files)
}
