//! Discovery of the engine: settings, docker contexts, then the usual sockets.
//!
//! Reads only Docker's configuration directory of the settings.
#![expect(clippy::disallowed_methods, reason = "reads the docker context from its file")]

use std::fmt;

use camino::Utf8Path;
use serde::Deserialize;

use super::address::{Address, TlsFiles};
use crate::engine::error::EngineError;
use crate::model::sha256::sha256_hex;
use crate::settings::EngineSettings;

#[derive(Deserialize)]
struct ConfigFile {
    #[serde(rename = "currentContext")]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct ContextFile {
    #[serde(rename = "Endpoints")]
    endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Endpoints {
    docker: Option<Endpoint>,
}

#[derive(Deserialize)]
struct Endpoint {
    #[serde(rename = "Host")]
    host: Option<String>,
    #[serde(rename = "SkipTLSVerify", default)]
    skip_tls_verify: bool,
}

/// Returns the selected address, if any.
pub(in crate::engine) fn chosen(settings: &EngineSettings) -> Result<Option<Address>, EngineError> {
    if let Some(host) = settings.docker_host.as_deref().filter(|host| !host.is_empty()) {
        let folder = settings.cert_path.as_deref().or(settings.docker_config.as_deref());
        let tls = settings.tls_verify.then(|| folder.map(tls_files).unwrap_or_default());
        return Address::parse(host, tls).map(Some);
    }
    let named = settings.docker_context.as_deref().filter(|name| !name.is_empty());
    let Some(folder) = settings.docker_config.as_deref() else {
        return match named {
            None | Some("default") => Ok(None),
            Some(name) => Err(bad_context(name, "no docker configuration directory")),
        };
    };
    let name = match named {
        Some(name) => Some(name.to_owned()),
        None => current_context(folder)?,
    };
    match name.as_deref() {
        None | Some("" | "default") => Ok(None),
        Some(name) => context_address(folder, name).map(Some),
    }
}

/// Returns the usual addresses in order: Docker, rootless Docker, rootless Podman, Podman.
pub(in crate::engine) fn usual(settings: &EngineSettings) -> Vec<Address> {
    let mut all = vec![Address::default()];
    if let Some(folder) = &settings.runtime_dir {
        all.extend(["docker.sock", "podman/podman.sock"].map(|name| Address::Unix(folder.join(name))));
    }
    all.push(Address::Unix("/run/podman/podman.sock".into()));
    all
}

fn bad_context(name: &str, cause: impl fmt::Display) -> EngineError {
    EngineError::BadContext { name: name.to_owned(), cause: cause.to_string() }
}

/// Returns the existing files of a directory under Docker's names.
fn tls_files(folder: &Utf8Path) -> TlsFiles {
    let file = |name: &str| Some(folder.join(name)).filter(|path| path.is_file());
    TlsFiles { ca: file("ca.pem"), identity: file("cert.pem").zip(file("key.pem")) }
}

/// Returns the current context. A missing configuration means the default, as in the docker client.
fn current_context(folder: &Utf8Path) -> Result<Option<String>, EngineError> {
    let path = folder.join("config.json");
    let text = match fs_err::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(EngineError::File(error)),
    };
    let file: ConfigFile = serde_json::from_str(&text)
        .map_err(|error| bad_context("(current)", format!("cannot parse `{path}`: {error}")))?;
    Ok(file.current_context)
}

fn context_address(folder: &Utf8Path, name: &str) -> Result<Address, EngineError> {
    // The directory of a context is the SHA-256 of its name.
    let id = sha256_hex(name.as_bytes());
    let path = folder.join("contexts/meta").join(&id).join("meta.json");
    let text = fs_err::read_to_string(&path).map_err(|error| bad_context(name, error))?;
    let file: ContextFile =
        serde_json::from_str(&text).map_err(|error| bad_context(name, format!("`{path}`: {error}")))?;
    let absent = || bad_context(name, format!("no docker endpoint in `{path}`"));
    let endpoint = file.endpoints.docker.ok_or_else(absent)?;
    let host = endpoint.host.filter(|host| !host.is_empty()).ok_or_else(absent)?;
    if endpoint.skip_tls_verify {
        let cause = "it skips the certificate check, which envforge requires; add the server's ca.pem \
                     (`docker context update --docker host=…,ca=…`)";
        return Err(bad_context(name, cause));
    }
    let files = folder.join("contexts/tls").join(&id).join("docker");
    let tls = files.is_dir().then(|| tls_files(&files)).filter(|files| *files != TlsFiles::default());
    Address::parse(&host, tls)
}

#[cfg(test)]
mod tests {
    use camino::Utf8PathBuf;

    use super::*;
    use crate::failure::{Exit, Failure as _};

    fn folder_with(context: &str, host: &str, current: Option<&str>) -> (tempfile::TempDir, Utf8PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        let meta = folder.join("contexts/meta").join(sha256_hex(context.as_bytes()));
        fs_err::create_dir_all(&meta).unwrap();
        let text =
            format!(r#"{{"Name":"{context}","Metadata":{{}},"Endpoints":{{"docker":{{"Host":"{host}"}}}}}}"#);
        fs_err::write(meta.join("meta.json"), text).unwrap();
        if let Some(current) = current {
            fs_err::write(folder.join("config.json"), format!(r#"{{"currentContext":"{current}"}}"#))
                .unwrap();
        }
        (guard, folder)
    }

    #[test]
    fn docker_host_overrides_the_current_context() {
        let (_guard, folder) = folder_with("lab", "unix:///lab.sock", Some("lab"));
        let mut settings = EngineSettings { docker_config: Some(folder), ..EngineSettings::default() };
        assert_eq!(chosen(&settings).unwrap().unwrap().to_string(), "unix:///lab.sock");
        settings.docker_context = Some("default".to_owned());
        assert_eq!(chosen(&settings).unwrap(), None);
        settings.docker_host = Some("tcp://box:1".to_owned());
        assert_eq!(chosen(&settings).unwrap().unwrap().to_string(), "tcp://box:1");
    }

    #[test]
    fn context_with_certificates_uses_tls() {
        let (_guard, folder) = folder_with("lab", "tcp://lab", Some("lab"));
        let settings = EngineSettings { docker_config: Some(folder.clone()), ..EngineSettings::default() };
        assert_eq!(chosen(&settings).unwrap(), Some(Address::Tcp("lab:2375".to_owned())));
        let files = folder.join("contexts/tls").join(sha256_hex(b"lab")).join("docker");
        fs_err::create_dir_all(&files).unwrap();
        fs_err::write(files.join("ca.pem"), "").unwrap();
        let tls = TlsFiles { ca: Some(files.join("ca.pem")), identity: None };
        assert_eq!(chosen(&settings).unwrap(), Some(Address::Tls("lab:2376".to_owned(), tls)));
    }

    #[test]
    fn docker_tls_verify_uses_the_certificate_path() {
        let guard = tempfile::tempdir().unwrap();
        let folder = Utf8PathBuf::from_path_buf(guard.path().to_owned()).unwrap();
        for name in ["ca.pem", "cert.pem", "key.pem"] {
            fs_err::write(folder.join(name), "").unwrap();
        }
        let settings = EngineSettings {
            docker_host: Some("tcp://box:1".to_owned()),
            tls_verify: true,
            cert_path: Some(folder.clone()),
            ..EngineSettings::default()
        };
        let identity = Some((folder.join("cert.pem"), folder.join("key.pem")));
        let tls = TlsFiles { ca: Some(folder.join("ca.pem")), identity };
        assert_eq!(chosen(&settings).unwrap(), Some(Address::Tls("box:1".to_owned(), tls)));
    }

    #[test]
    fn context_without_certificate_check_is_rejected() {
        let (_guard, folder) = folder_with("lab", r#"tcp://lab","SkipTLSVerify":true,"x":""#, Some("lab"));
        let settings = EngineSettings { docker_config: Some(folder), ..EngineSettings::default() };
        let error = chosen(&settings).unwrap_err();
        assert!(error.to_string().contains("certificate"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }

    #[test]
    fn missing_context_is_reported() {
        let (_guard, folder) = folder_with("lab", "unix:///lab.sock", None);
        let settings = EngineSettings {
            docker_config: Some(folder),
            docker_context: Some("other".to_owned()),
            ..EngineSettings::default()
        };
        let error = chosen(&settings).unwrap_err();
        assert!(matches!(&error, EngineError::BadContext { name, .. } if name == "other"), "{error}");
        assert_eq!(error.exit(), Exit::Usage);
    }

    #[test]
    fn usual_sockets_are_tried_docker_first() {
        let settings =
            EngineSettings { runtime_dir: Some("/run/user/7".into()), ..EngineSettings::default() };
        assert_eq!(chosen(&settings).unwrap(), None);
        let all: Vec<_> = usual(&settings).iter().map(ToString::to_string).collect();
        assert_eq!(all.len(), 4);
        assert_eq!(all[0], Address::default().to_string());
        assert_eq!(all[2], "unix:///run/user/7/podman/podman.sock");
    }
}
