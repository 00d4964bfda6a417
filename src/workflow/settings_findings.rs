//! The findings of `doctor` about the settings: sources of downloads, proxies, certificates, and files that other users can read.

use camino::Utf8Path;
use secrecy::ExposeSecret as _;

use crate::host::{self, HostFinding, Severity};
use crate::model::address::Address;
use crate::model::byte_size::gigabytes;
use crate::model::index_address::IndexAddress;
use crate::settings::{NamedSecret, Settings};
use crate::store::Store;
use crate::store::old_byte_code::take_images_with_old_byte_code;
use crate::store::unused::cache_size;

/// The engine's socket, if no setting names another.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Returns a finding for each setting of downloads, for exposed credentials and for the cache. Addresses are without their secrets.
pub(crate) fn settings_findings(settings: &Settings) -> Vec<HostFinding> {
    let ok = |id, text| HostFinding { id, severity: Severity::Ok, text, hint: None };
    let bad = |id, text, hint: &str| HostFinding {
        id,
        severity: Severity::Warning,
        text,
        hint: Some(hint.to_owned()),
    };
    let address = |id, what: &str, value: &str| match value
        .replace('{', "placeholder-")
        .replace('}', "-placeholder")
        .parse::<IndexAddress>()
    {
        Ok(address) => ok(
            id,
            format!(
                "{what}: {}",
                address.to_string().replace("-placeholder", "}").replace("placeholder-", "{")
            ),
        ),
        Err(error) => {
            bad(id, format!("{what}: {error}"), "docs/src/how-to/configuration.md lists where it is set")
        }
    };
    let mut all = Vec::new();
    match &settings.index.default {
        Some(index) => all.push(address("package-index", "package index", index.expose_secret())),
        None => all.push(ok("package-index", "package index: the tools' own default".to_owned())),
    }
    if let Some(index) = &settings.index.framework {
        all.push(address("framework-index", "framework index", index.expose_secret()));
    }
    for (name, index) in &settings.index.of_framework {
        all.push(address("framework-index", &format!("own index of {name}"), index.expose_secret()));
    }
    let set = [
        ("mirror", "Debian mirror", &settings.mirrors.debian),
        ("mirror", "Debian security mirror", &settings.mirrors.debian_security),
        ("mirror", "Ubuntu mirror", &settings.mirrors.ubuntu),
        ("mirror", "Ubuntu security mirror", &settings.mirrors.ubuntu_security),
        ("mirror", "mirror of NVIDIA's apt repositories", &settings.mirrors.nvidia),
    ];
    all.extend(set.iter().filter_map(|(id, what, value)| Some(address(*id, what, value.as_ref()?))));
    for (name, value) in &settings.index.named {
        all.push(address("further-index", &format!("package index `{name}`"), value.expose_secret()));
    }
    if let Some(layers) = &settings.registry.layers {
        let access = if layers.write { "read and written" } else { "read only" };
        all.push(ok("layers", format!("finished layers: {} ({access})", layers.repository)));
    }
    for (name, value) in &settings.network.proxies {
        // A list of hosts holds no secret, and a proxy may be written without a scheme.
        let shown = match (name.as_str(), value.parse::<Address>()) {
            ("NO_PROXY", _) => value.clone(),
            (_, Ok(address)) => address.to_string(),
            (_, Err(_)) => value.rsplit('@').next().unwrap_or_default().to_owned(),
        };
        all.push(ok("proxy", format!("proxy {name}: {shown}")));
    }
    match &settings.network.ca_bundle {
        Some(file) if file.is_file() => all.push(ok("ca-bundle", format!("CA certificates: {file}"))),
        Some(file) => {
            let hint = "correct `[network] ca-bundle` (ENVFORGE_CA_BUNDLE, SSL_CERT_FILE)";
            all.push(bad("ca-bundle", format!("CA certificates: `{file}` is not a file"), hint));
        }
        None => all.push(ok("ca-bundle", "CA certificates: the tools' own".to_owned())),
    }
    all.extend(exposure(settings));
    all.extend(old_byte_code(settings));
    let cache = &settings.paths.cache;
    let text = format!("{} of downloads and layers in {cache}", gigabytes(cache_size(cache)));
    all.push(ok("cache", text));
    all
}

/// What other users of this machine can use or read.
fn exposure(settings: &Settings) -> Vec<HostFinding> {
    let host = settings.engine.docker_host.as_deref();
    let socket = host.map_or(Some(DEFAULT_SOCKET), |address| address.strip_prefix("unix://"));
    let port = host.and_then(|address| host::open_port(address, settings.engine.tls_verify));
    let variable = |name: &str| settings.environment.get(name).cloned();
    let netrc = variable("NETRC").or_else(|| variable("HOME").map(|home| format!("{home}/.netrc")));
    let files = netrc.iter().map(Utf8Path::new).chain([settings.paths.config_file.as_path()]);
    let secrets = settings.secrets.iter().filter_map(|(name, secret)| match secret {
        NamedSecret::File(file) => host::readable_secret(name, file),
        _ => None,
    });
    let socket = socket.and_then(|socket| host::open_socket(socket.into()));
    let folders = [("state", &settings.paths.state), ("cache", &settings.paths.cache)];
    let folders = folders.into_iter().filter_map(|(what, folder)| host::writable_folder(what, folder));
    socket
        .into_iter()
        .chain(port)
        .chain(files.filter_map(host::readable_credentials))
        .chain(secrets)
        .chain(folders)
        .collect()
}

/// Images that may hold byte code of a cache that earlier versions filled: named once.
fn old_byte_code(settings: &Settings) -> Option<HostFinding> {
    let (cache, state) = (&settings.paths.cache, &settings.paths.state);
    if !cache.is_dir() || !state.is_dir() {
        return None;
    }
    let images = take_images_with_old_byte_code(&Store::open(cache, state).ok()?).ok()?;
    if images.is_empty() {
        return None;
    }
    let text = format!(
        "images {} may contain byte code that packages of another project compiled: an earlier version kept it for all",
        images.join(", ")
    );
    let hint = "build them again (this is reported once)".to_owned();
    Some(HostFinding { id: "old-byte-code", severity: Severity::Warning, text, hint: Some(hint) })
}
