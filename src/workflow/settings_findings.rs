//! The findings of `doctor` about the settings: sources of downloads, proxies, certificates, and files that other users can read.

use camino::Utf8Path;
use secrecy::ExposeSecret as _;

use crate::host::{self, HostFinding, Severity};
use crate::model::address::Address;
use crate::model::byte_size::gigabytes;
use crate::model::counted::counted;
use crate::model::index_address::IndexAddress;
use crate::settings::{NamedSecret, ProvenOn, SITE_FILE, Settings, UnknownStacks};
use crate::store::Store;
use crate::store::old_byte_code::take_images_with_old_byte_code;
use crate::store::unused::cache_size;

/// The engine's socket, if no setting names another.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Returns a finding for each setting of downloads, for exposed credentials and for the cache. Addresses are without their secrets.
pub(crate) fn settings_findings(settings: &Settings) -> Vec<HostFinding> {
    let ok = |id, text| HostFinding { id, severity: Severity::Ok, text, hint: None, from: None };
    let bad = |id, text, hint: &str| HostFinding {
        severity: Severity::Warning,
        hint: Some(hint.to_owned()),
        ..ok(id, text)
    };
    let set = |finding: HostFinding, key: &str| HostFinding { from: settings.origin(key), ..finding };
    let address = |id, what: &str, value: &str, key: &str| {
        let parsed = value.replace('{', "placeholder-").replace('}', "-placeholder").parse::<IndexAddress>();
        let finding = match parsed {
            Ok(address) => {
                let address = address.to_string().replace("-placeholder", "}").replace("placeholder-", "{");
                ok(id, format!("{what}: {address}"))
            }
            Err(error) => {
                bad(id, format!("{what}: {error}"), "docs/src/how-to/configuration.md lists where it is set")
            }
        };
        set(finding, key)
    };
    let mut all = files(settings);
    match &settings.index.default {
        Some(index) => {
            all.push(address("package-index", "package index", index.expose_secret(), "index.default"));
        }
        None => all.push(ok("package-index", "package index: the tools' own default".to_owned())),
    }
    if let Some(index) = &settings.index.framework {
        let key = "index.framework";
        all.push(address("framework-index", "framework index", index.expose_secret(), key));
    }
    for (name, index) in &settings.index.of_framework {
        let (what, key) = (format!("own index of {name}"), format!("index.{name}"));
        all.push(address("framework-index", &what, index.expose_secret(), &key));
    }
    let mirrors = [
        ("Debian mirror", "mirrors.debian", &settings.mirrors.debian),
        ("Debian security mirror", "mirrors.debian-security", &settings.mirrors.debian_security),
        ("Ubuntu mirror", "mirrors.ubuntu", &settings.mirrors.ubuntu),
        ("Ubuntu security mirror", "mirrors.ubuntu-security", &settings.mirrors.ubuntu_security),
        ("mirror of NVIDIA's apt repositories", "mirrors.nvidia", &settings.mirrors.nvidia),
    ];
    let mirrors = mirrors.iter();
    all.extend(mirrors.filter_map(|(what, key, value)| Some(address("mirror", what, value.as_ref()?, key))));
    for (name, value) in &settings.index.named {
        let (what, key) = (format!("package index `{name}`"), format!("indexes.{name}"));
        all.push(address("further-index", &what, value.expose_secret(), &key));
    }
    if let Some(layers) = &settings.registry.layers {
        let access = if layers.write { "read and written" } else { "read only" };
        let text = format!("finished layers: {} ({access})", layers.repository);
        all.push(set(ok("layers", text), "registry.layers"));
    }
    if let Some(folder) = &settings.cluster.folder {
        all.push(set(ok("cluster", format!("image files of the cluster: {folder}")), "cluster.folder"));
    }
    for (name, value) in &settings.network.proxies {
        // A list of hosts holds no secret, and a proxy may be written without a scheme.
        let shown = match (name.as_str(), value.parse::<Address>()) {
            ("NO_PROXY", _) => value.clone(),
            (_, Ok(address)) => address.to_string(),
            (_, Err(_)) => value.rsplit('@').next().unwrap_or_default().to_owned(),
        };
        let key = format!("network.{}", name.to_lowercase().replace('_', "-"));
        all.push(set(ok("proxy", format!("proxy {name}: {shown}")), &key));
    }
    match &settings.network.ca_bundle {
        Some(file) if file.is_file() => {
            let text = format!("CA certificates: {file}");
            all.push(set(ok("ca-bundle", text), "network.ca-bundle"));
        }
        Some(file) => {
            let hint = "correct `[network] ca-bundle` (ENVFORGE_CA_BUNDLE, SSL_CERT_FILE)";
            let text = format!("CA certificates: `{file}` is not a file");
            all.push(set(bad("ca-bundle", text, hint), "network.ca-bundle"));
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

/// The configuration files, and the rules of those that hold for every call.
fn files(settings: &Settings) -> Vec<HostFinding> {
    let ok = |id, text| HostFinding { id, severity: Severity::Ok, text, hint: None, from: None };
    let of = |key: &str, id, text| HostFinding { from: settings.origin(key), ..ok(id, text) };
    let shown = |what, file: &Utf8Path| {
        let is_there = if file.exists() { "" } else { " (not there)" };
        ok("configuration", format!("configuration of {what}: {file}{is_there}"))
    };
    let mut all = vec![shown("this site", SITE_FILE.into()), shown("the user", &settings.paths.config_file)];
    let edition = &settings.matrix.edition;
    if let Some((file, _)) = &settings.matrix_files.file {
        all.push(of("matrix.file", "matrix", format!("matrix {edition}: {file}")));
    }
    if let Some(file) = &settings.matrix_files.local {
        let rows = settings.matrix.local.as_ref().map_or(0, |local| local.rows.len());
        let text = format!("matrix {edition}: {} of {file}", counted(rows, "row"));
        all.push(of("matrix.local", "matrix", text));
    }
    if let Some(required) = &settings.policy.require_evidence {
        let on = if required.gpu() == ProvenOn::Here { "this machine's GPUs" } else { "a GPU" };
        let text = format!(
            "policy: images need evidence of level {} on {on}, at most {} old",
            required.level(),
            required.max_age()
        );
        all.push(of("policy.require-evidence", "policy", text));
    }
    if settings.policy.unknown == Some(UnknownStacks::Refuse) {
        let text = "policy: stacks that the matrix does not know are refused".to_owned();
        all.push(of("policy.unknown", "policy", text));
    }
    if !settings.trust.keys.is_empty() {
        let keys = settings.trust.keys.iter().map(|key| key.file.as_str()).collect::<Vec<_>>().join(", ");
        all.push(of("trust.keys", "trusted-key", format!("keys whose evidence counts: {keys}")));
    }
    all
}

/// What other users of this machine can use or read.
fn exposure(settings: &Settings) -> Vec<HostFinding> {
    let host = settings.engine.docker_host.as_deref();
    let socket = host.map_or(Some(DEFAULT_SOCKET), |address| address.strip_prefix("unix://"));
    let port = host.and_then(|address| host::open_port(address, settings.engine.tls_verify));
    let variable = |name: &str| settings.environment.get(name).cloned();
    let netrc = variable("NETRC").or_else(|| variable("HOME").map(|home| format!("{home}/.netrc")));
    let files =
        netrc.iter().map(Utf8Path::new).chain([settings.paths.config_file.as_path(), SITE_FILE.into()]);
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
    Some(HostFinding { id: "old-byte-code", severity: Severity::Warning, text, hint: Some(hint), from: None })
}
