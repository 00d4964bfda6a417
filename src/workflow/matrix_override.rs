//! The matrix that `compat use` chose instead of the program's own, kept in the state directory.
#![expect(clippy::disallowed_methods, reason = "reads the chosen matrix")]

use camino::Utf8PathBuf;

use crate::model::compat::Matrix;
use crate::report::{Event, reporter};
use crate::settings::Settings;

/// Identifies the program that installed a matrix: another one may read it differently, or have a newer one.
pub(crate) fn key() -> String {
    format!("{} {}", env!("CARGO_PKG_VERSION"), Matrix::embedded().edition)
}

pub(crate) fn kept(settings: &Settings) -> Utf8PathBuf {
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
