//! The certificate authorities an engine trusts for one registry: `certs.d/HOST/*.crt`, where Docker and Podman look too.
#![expect(clippy::disallowed_methods, reason = "reads the engine's certificate folders")]

use bytes::Bytes;
use camino::Utf8PathBuf;

use super::error::RegistryError;
use crate::failure::reason;

/// Returns the certificates (PEM) in those directories for a registry (`host` or `host:port`); `None` without any.
pub(super) fn trusted(folders: &[Utf8PathBuf], registry: &str) -> Result<Option<Bytes>, RegistryError> {
    let mut pem = Vec::new();
    for folder in folders.iter().map(|folder| folder.join(registry)) {
        // Most registries have no folder; one that cannot be read is the engine's alone.
        let Ok(entries) = folder.read_dir_utf8() else { continue };
        let mut files: Vec<_> = entries.flatten().map(|entry| entry.path().to_owned()).collect();
        files.retain(|file| file.extension() == Some("crt"));
        files.sort();
        for file in files {
            let cause = |error: std::io::Error| reason(&error);
            let text = match fs_err::read(&file) {
                Ok(text) => text,
                // Root's alone, as the engine is.
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => continue,
                Err(error) => return Err(RegistryError::Certificate { file, cause: cause(error) }),
            };
            pem.extend(text);
            pem.push(b'\n');
        }
    }
    Ok(if pem.is_empty() { None } else { Some(pem.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    #[test]
    fn certificates_are_read_from_the_registrys_directory() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        fs_err::create_dir_all(root.join("box:5000")).expect("a folder of ours");
        for (file, text) in [("b.crt", "B"), ("a.crt", "A"), ("client.key", "K"), ("client.cert", "C")] {
            fs_err::write(root.join("box:5000").join(file), text).expect("a file of ours");
        }
        let folders = [root.join("not-there"), root];
        let found = |registry| trusted(&folders, registry).expect("readable");
        assert_eq!(found("box:5000").as_deref(), Some(b"A\nB\n".as_slice()));
        assert_eq!((found("box"), found("other.test")), (None, None));
    }

    #[test]
    fn error_names_unreadable_certificate() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        fs_err::create_dir_all(root.join("box/ca.crt")).expect("a folder of ours");
        let error = trusted(&[root], "box").expect_err("a directory is not a certificate");
        assert!(error.to_string().contains("box/ca.crt"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }
}
