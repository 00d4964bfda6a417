//! What other users of this machine can use: the engine's socket, a file with credentials.
#![expect(clippy::disallowed_methods, reason = "edge: reads files of this machine")]

use std::os::unix::fs::PermissionsExt as _;

use camino::Utf8Path;

use super::findings::{HostFinding, Severity};
use crate::model::project::secret::secret_in;

const OTHERS_WRITE: u32 = 0o002;
const OTHERS_READ: u32 = 0o004;

/// A warning if every user of this machine can write to the engine's socket.
pub fn open_socket(socket: &Utf8Path) -> Option<HostFinding> {
    if mode(socket)? & OTHERS_WRITE == 0 {
        return None;
    }
    let text =
        format!("every user of this machine can use the engine's socket `{socket}`, and be root by it");
    let hint = format!("`chmod o-rw {socket}`, and add users to its group instead");
    Some(HostFinding::with("engine-socket", Severity::Warning, text, hint))
}

/// A warning if every user of this machine can read a configuration file that holds credentials.
pub fn readable_credentials(file: &Utf8Path) -> Option<HostFinding> {
    if mode(file)? & OTHERS_READ == 0 {
        return None;
    }
    let text = fs_err::read_to_string(file).ok()?;
    let what = secret_in(&text.replace(" = ", "="))?;
    let text = format!("every user of this machine can read {what} in `{file}`");
    Some(HostFinding::with("config-readable", Severity::Warning, text, format!("`chmod 600 {file}`")))
}

fn mode(path: &Utf8Path) -> Option<u32> {
    Some(fs_err::metadata(path).ok()?.permissions().mode())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str, mode: u32) -> (tempfile::NamedTempFile, camino::Utf8PathBuf) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = camino::Utf8PathBuf::from_path_buf(file.path().to_owned()).expect("UTF-8");
        fs_err::write(&path, text).expect("written");
        fs_err::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("ours");
        (file, path)
    }

    #[test]
    fn socket_open_to_others_is_a_warning() {
        let (_open, path) = file("", 0o666);
        let finding = open_socket(&path).expect("a finding");
        assert_eq!((finding.id, finding.severity), ("engine-socket", Severity::Warning));
        assert!(finding.hint.expect("a hint").contains("chmod o-rw"));
        let (_closed, path) = file("", 0o660);
        assert_eq!(open_socket(&path), None);
        assert_eq!(open_socket("/nonexistent".into()), None);
    }

    #[test]
    fn configuration_with_credentials_must_not_be_readable_by_others() {
        let text = "[index]\ndefault = \"https://user:s3cretpassword@pypi.example.com/simple\"\n";
        let (_open, path) = file(text, 0o644);
        let finding = readable_credentials(&path).expect("a finding");
        assert_eq!((finding.id, finding.severity), ("config-readable", Severity::Warning));
        assert!(!finding.text.contains("s3cret"), "{}", finding.text);
        let (_password, path) = file("[registry]\npassword = \"s3cretpassword\"\n", 0o604);
        assert!(readable_credentials(&path).is_some());
        let (_closed, path) = file(text, 0o600);
        assert_eq!(readable_credentials(&path), None);
        let (_without, path) = file("[index]\ndefault = \"https://pypi.example.com/simple\"\n", 0o644);
        assert_eq!(readable_credentials(&path), None);
    }
}
