//! The directories of a container: they must exist, and risky ones are named.

use camino::{Utf8Path, Utf8PathBuf};

use crate::engine::{Mount, MountSource};
use crate::report::Event;
use crate::shell::{MountRisk, ShellError};
use crate::workflow::session::Session;

/// The engine's socket, if no setting names another.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Refuses directories that do not exist, and those of this machine for an engine elsewhere.
pub(crate) fn check_folders(session: &Session<'_>, mounts: &[Mount]) -> Result<(), ShellError> {
    for mount in mounts {
        let MountSource::Folder(path) = &mount.source else { continue };
        if !session.engine.info().local {
            let option = if mount.read_only { "--data" } else { "--mount" };
            return Err(ShellError::RemoteFolder { option, path: path.clone() });
        }
        if !std::path::Path::new(path).exists() {
            return Err(ShellError::NoFolder { path: path.clone() });
        }
    }
    Ok(())
}

/// Warns of mounts that give a container more than a project's files.
pub(crate) fn warn_of_mounts(session: &Session<'_>, mounts: &[Mount]) {
    let home = session.settings.environment.get("HOME");
    let host = session.settings.engine.docker_host.as_deref();
    for text in warnings(home.map(String::as_str), host, mounts) {
        session.reporter.report(Event::Warning { text });
    }
}

fn warnings(home: Option<&str>, docker_host: Option<&str>, mounts: &[Mount]) -> Vec<String> {
    let home = home.map(|home| real(Utf8Path::new(home)));
    let socket = match docker_host {
        Some(address) => address.strip_prefix("unix://"),
        None => Some(DEFAULT_SOCKET),
    };
    let socket = socket.map(|socket| real(Utf8Path::new(socket)));
    let warning = |mount: &Mount| {
        let MountSource::Folder(path) = &mount.source else { return None };
        let source = real(Utf8Path::new(path));
        let risk = MountRisk::of(&source, mount.read_only, home.as_deref(), socket.as_deref())?;
        Some(format!("`{path}` is mounted at {}: a program in the container {risk}", mount.target))
    };
    mounts.iter().filter_map(warning).collect()
}

/// Returns the path without links, as far as it exists.
fn real(path: &Utf8Path) -> Utf8PathBuf {
    path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(source: &Utf8Path) -> Mount {
        let source = MountSource::Folder(source.to_string());
        Mount { source, target: "/data".to_owned(), read_only: false }
    }

    #[test]
    fn warnings_name_mount_and_risk_through_links() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = Utf8PathBuf::from_path_buf(temp.path().canonicalize().expect("there")).expect("UTF-8");
        let (home, link) = (root.join("me"), root.join("link"));
        fs_err::create_dir(&home).expect("made");
        fs_err::create_dir(home.join("project")).expect("made");
        fs_err::os::unix::fs::symlink(&home, &link).expect("made");
        let host = format!("unix://{}", root.join("engine/own.socket"));
        let said = |source: &Utf8Path| warnings(Some(home.as_str()), Some(&host), &[folder(source)]);
        assert_eq!(
            said(&link),
            [format!(
                "`{link}` is mounted at /data: a program in the container can read and change your home directory, with its keys \
                 and logins"
            )]
        );
        assert!(said(Utf8Path::new("/"))[0].contains("every file of this machine"));
        assert!(said(&root.join("engine"))[0].contains("root on this machine"));
        assert_eq!(said(&home.join("project")), [] as [String; 0]);
        let volume = Mount { source: MountSource::Volume("home".to_owned()), ..folder(&home) };
        assert_eq!(warnings(Some(home.as_str()), None, &[volume]), [] as [String; 0]);
    }
}
