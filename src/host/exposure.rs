//! What other users of this machine can use: the engine's socket, a file with credentials.
#![expect(clippy::disallowed_methods, reason = "edge: reads files of this machine")]

use std::net::IpAddr;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use camino::Utf8Path;

use super::findings::{HostFinding, Severity};
use crate::model::project::secret::{credential_in_file, secret_in};

const OTHERS_WRITE: u32 = 0o002;
const GROUP_WRITE: u32 = 0o020;
const OTHERS_READ: u32 = 0o004;
const OTHERS_ENTER: u32 = 0o001;

/// A warning if every user of this machine can write to the engine's socket.
pub fn open_socket(socket: &Utf8Path) -> Option<HostFinding> {
    if mode(socket)? & OTHERS_WRITE == 0 || !is_reachable(socket) {
        return None;
    }
    let text =
        format!("every user of this machine can use the engine's socket `{socket}`, and be root by it");
    let hint = format!("`chmod o-rw {socket}`, and add users to its group instead");
    Some(HostFinding::with("engine-socket", Severity::Warning, text, hint))
}

/// A warning if an engine listens on the network without TLS.
pub fn open_port(docker_host: &str, tls: bool) -> Option<HostFinding> {
    // A login in it is not shown.
    let host = docker_host.strip_prefix("tcp://").filter(|_| !tls)?.rsplit('@').next()?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name).trim_matches(['[', ']']);
    let is_loopback =
        name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let who = if is_loopback { "every user of this machine" } else { "everybody who reaches that address" };
    let text = format!("the engine at `tcp://{host}` has no TLS: {who} can use it, and be root by it");
    let hint = "set DOCKER_TLS_VERIFY and DOCKER_CERT_PATH, or use `ssh://`";
    Some(HostFinding::with("engine-socket", Severity::Warning, text, hint.to_owned()))
}

/// A warning if every user of this machine can read a configuration file that holds credentials.
pub fn readable_credentials(file: &Utf8Path) -> Option<HostFinding> {
    if mode(file)? & OTHERS_READ == 0 || !is_reachable(file) {
        return None;
    }
    let text = fs_err::read_to_string(file).ok()?;
    let what = match text.parse::<toml::Table>() {
        Ok(table) => credential_of(&toml::Value::Table(table), "")?,
        Err(_) if file.file_name() == Some(".netrc") => credential_in_file(file.file_name(), &text)?,
        Err(_) => secret_in(&text.replace(" = ", "="))?,
    };
    let text = format!("every user of this machine can read {what} in `{file}`");
    Some(HostFinding::with("config-readable", Severity::Warning, text, format!("`chmod 600 {file}`")))
}

/// A warning if every user of this machine can read a file that holds a secret and nothing else.
pub fn readable_secret(name: &str, file: &Utf8Path) -> Option<HostFinding> {
    if mode(file)? & OTHERS_READ == 0 || !is_reachable(file) {
        return None;
    }
    let text = format!("every user of this machine can read secret `{name}` in `{file}`");
    Some(HostFinding::with("config-readable", Severity::Warning, text, format!("`chmod 600 {file}`")))
}

/// A warning if others can write to a directory of envforge's: what it finds there it takes for its own. A group of the user alone,
/// as many distributions make one for each, is nobody else.
pub fn writable_folder(what: &str, folder: &Utf8Path) -> Option<HostFinding> {
    let found = fs_err::metadata(folder).ok()?;
    let mode = found.permissions().mode();
    let of_group = mode & GROUP_WRITE != 0 && found.gid() != rustix::process::getegid().as_raw();
    let who = match (mode & OTHERS_WRITE != 0 && is_reachable(folder), of_group) {
        (true, _) => "every user of this machine",
        (false, true) => "every member of its group",
        (false, false) => return None,
    };
    let text = format!("{who} can write to the {what} directory `{folder}`");
    Some(HostFinding::with("folder-writable", Severity::Warning, text, format!("`chmod go-w {folder}`")))
}

/// Describes a credential among the values of a configuration.
fn credential_of(value: &toml::Value, key: &str) -> Option<&'static str> {
    match value {
        toml::Value::String(text) => secret_in(text).or_else(|| secret_in(&format!("{key}={text}"))),
        toml::Value::Array(items) => items.iter().find_map(|item| credential_of(item, key)),
        toml::Value::Table(table) => table.iter().find_map(|(key, value)| credential_of(value, key)),
        _ => None,
    }
}

/// Whether every user may enter the directories above a file.
fn is_reachable(path: &Utf8Path) -> bool {
    let path = path.canonicalize_utf8().unwrap_or_else(|_| path.to_owned());
    path.ancestors().skip(1).all(|folder| mode(folder).is_some_and(|mode| mode & OTHERS_ENTER != 0))
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
        let private = tempfile::tempdir().expect("a folder that is the user's alone");
        let inside = Utf8Path::from_path(private.path()).expect("UTF-8").join("engine.sock");
        fs_err::write(&inside, "").expect("written");
        fs_err::set_permissions(&inside, std::fs::Permissions::from_mode(0o666)).expect("ours");
        fs_err::set_permissions(private.path(), std::fs::Permissions::from_mode(0o700)).expect("ours");
        assert_eq!(open_socket(&inside), None, "no other user can enter its directory");
        fs_err::set_permissions(private.path(), std::fs::Permissions::from_mode(0o711)).expect("ours");
        assert!(open_socket(&inside).is_some());
    }

    #[test]
    fn folder_that_others_can_write_to_is_a_warning() {
        let folder = tempfile::tempdir().expect("a folder");
        let inside = Utf8Path::from_path(folder.path()).expect("UTF-8").join("cache");
        fs_err::create_dir(&inside).expect("ours");
        let found = |outer: u32, mode: u32| {
            fs_err::set_permissions(folder.path(), std::fs::Permissions::from_mode(outer)).expect("ours");
            fs_err::set_permissions(&inside, std::fs::Permissions::from_mode(mode)).expect("ours");
            writable_folder("cache", &inside).map(|finding| finding.text)
        };
        for (outer, mode) in [(0o755, 0o755), (0o755, 0o775), (0o700, 0o777)] {
            assert_eq!(found(outer, mode), None, "{outer:o} {mode:o}");
        }
        assert!(found(0o755, 0o777).is_some_and(|text| text.starts_with("every user")));
        assert_eq!(writable_folder("cache", "/nonexistent".into()), None);
    }

    #[test]
    fn engine_port_without_tls_is_a_warning() {
        for (host, who) in [
            ("tcp://10.0.0.1:2375", "everybody who reaches that address"),
            ("tcp://build.example.test", "everybody who reaches that address"),
            ("tcp://127.0.0.1:2375", "every user of this machine"),
            ("tcp://[::1]:2375", "every user of this machine"),
        ] {
            let finding = open_port(host, false).expect(host);
            assert_eq!((finding.id, finding.severity), ("engine-socket", Severity::Warning));
            assert!(finding.text.contains(who), "{}", finding.text);
            assert_eq!(open_port(host, true), None, "{host}");
        }
        for host in ["unix:///var/run/docker.sock", "ssh://me@box"] {
            assert_eq!(open_port(host, false), None, "{host}");
        }
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
        for text in [
            "[indexes]\ninternal   =   'https://abcdef123@host.example.com/simple'\n",
            "[registry]\ntoken\t= \"s3cretpassword\"\n",
            "[network]\nhttp-proxy = 'http://me:s3cret@proxy.example.com'\n",
        ] {
            let (_file, path) = file(text, 0o644);
            assert!(readable_credentials(&path).is_some(), "{text}");
        }
        let harmless = "[secrets]\nhf = { env = 'HF_TOKEN' }\nkey = { file = '/run/key' }\n";
        let (_file, path) = file(harmless, 0o644);
        assert_eq!(readable_credentials(&path), None, "names of secrets are none");
        let (_closed, path) = file(text, 0o600);
        assert_eq!(readable_credentials(&path), None);
        let (_secret, path) = file("s3cretpassword", 0o644);
        let finding = readable_secret("hf", &path).expect("a finding");
        assert!(finding.text.contains("secret `hf`") && !finding.text.contains("s3cret"), "{}", finding.text);
        let (_private, path) = file("s3cretpassword", 0o640);
        assert_eq!(readable_secret("hf", &path), None);
        let (_without, path) = file("[index]\ndefault = \"https://pypi.example.com/simple\"\n", 0o644);
        assert_eq!(readable_credentials(&path), None);
    }
}
