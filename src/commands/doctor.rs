//! `doctor`: what this machine is fit for, and what a message means.

use camino::Utf8Path;
use secrecy::ExposeSecret as _;
use serde::Serialize;

use super::explain;
use crate::engine::{Engine as _, GpuAccess};
use crate::failure::Exit;
use crate::host::{self, EngineFacts, HostFacts, HostFinding, HostReport, Severity, SystemFacts};
use crate::model::address::Address;
use crate::model::byte_size::gigabytes;
use crate::model::compat::Matrix;
use crate::model::request;
use crate::model::wrap::wrap_hanging;
use crate::pages::doctor_page;
use crate::report::Printer;
use crate::settings::{NamedSecret, Settings};
use crate::store::unused::cache_size;
use crate::store::write_atomically;
use crate::workflow::error::CommandError;
use crate::workflow::session::connect;

/// The engine's socket, if no setting names another.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// The object that `doctor --json` prints.
#[derive(Serialize)]
struct DoctorReport {
    schema: u32,
    findings: Vec<HostFinding>,
}

/// The object that `doctor --report` prints.
#[derive(Serialize)]
struct FullReport {
    schema: u32,
    envforge: &'static str,
    matrix: String,
    gpus: Option<HostFacts>,
    gpus_unknown: Option<String>,
    system: SystemFacts,
    engine: Option<EngineFacts>,
    findings: Vec<HostFinding>,
}

pub(super) async fn doctor(args: &request::Doctor, settings: &Settings) -> Result<Exit, CommandError> {
    if let Some(text) = &args.explain {
        return explain::explain(text, settings.output.json);
    }
    let matrix = Matrix::current();
    let report = HostReport {
        gpus: host::detect(),
        system: host::system("/".into()),
        engine: engine(settings).await.map_err(|error| (error.to_string(), error.hints())),
        overrides: overrides(settings),
    };
    let mut findings = host::findings(&report, matrix);
    // A report is for others, who have no use for this site's addresses.
    if !args.report {
        findings.extend(in_force(settings));
    }
    if let Some(file) = &args.html {
        let page = doctor_page(&findings);
        write_atomically(&settings.paths.current_dir.join(file), page.as_bytes())?;
    }
    let bad = findings.iter().any(|finding| finding.severity == Severity::Error);
    if args.report {
        Printer.json(&FullReport {
            schema: 1,
            envforge: env!("CARGO_PKG_VERSION"),
            matrix: matrix.edition.clone(),
            gpus_unknown: report.gpus.as_ref().err().map(ToString::to_string),
            gpus: report.gpus.ok(),
            system: report.system,
            engine: report.engine.ok(),
            findings,
        });
    } else if settings.output.json {
        Printer.json(&DoctorReport { schema: 1, findings });
    } else {
        Printer.text(&summary(findings, settings.output.verbose > 0));
    }
    Ok(if bad { Exit::No } else { Exit::Done })
}

/// Where downloads come from and how they get here, as set. Addresses without their secrets.
fn in_force(settings: &Settings) -> Vec<HostFinding> {
    let ok = |id, text| HostFinding { id, severity: Severity::Ok, text, hint: None };
    let bad = |id, text, hint: &str| HostFinding {
        id,
        severity: Severity::Warning,
        text,
        hint: Some(hint.to_owned()),
    };
    let address = |id, what: &str, value: &str| match value.replace("{cuda}", "CUDA").parse::<Address>() {
        Ok(address) => ok(id, format!("{what}: {}", address.to_string().replace("CUDA", "{cuda}"))),
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
    socket
        .into_iter()
        .chain(port)
        .chain(files.filter_map(host::readable_credentials))
        .chain(secrets)
        .collect()
}

/// Errors, warnings, what is in order if `all` is asked for, and one line of counts.
fn summary(mut findings: Vec<HostFinding>, all: bool) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings, fine) = (count(Severity::Error), count(Severity::Warning), count(Severity::Ok));
    let more = if all || fine == 0 { "" } else { " (`-v` shows them)" };
    let counts = format!("{errors} errors, {warnings} warnings, {fine} ok{more}\n");
    findings.sort_by_key(|finding| match finding.severity {
        Severity::Error => 0,
        Severity::Warning => 1,
        Severity::Ok => 2,
    });
    let shown = findings.iter().filter(|finding| all || finding.severity != Severity::Ok);
    shown.map(line).collect::<String>() + &counts
}

fn line(finding: &HostFinding) -> String {
    let word = match finding.severity {
        Severity::Ok => "ok     ",
        Severity::Warning => "warning",
        Severity::Error => "error  ",
    };
    let hint = finding.hint.as_ref().map(|hint| wrap_hanging("         hint: ", hint));
    wrap_hanging(&format!("{word}  "), &finding.text) + &hint.unwrap_or_default()
}

fn overrides(settings: &Settings) -> Vec<&'static str> {
    let target = &settings.target;
    let set = [("ENVFORGE_GPU", target.gpu.is_some()), ("ENVFORGE_DRIVER", target.driver.is_some())];
    set.into_iter().filter(|(_, set)| *set).map(|(name, _)| name).collect()
}

async fn engine(settings: &Settings) -> Result<EngineFacts, CommandError> {
    let engine = connect(settings).await?;
    let info = engine.info();
    let access = info.gpu_access();
    let disk = info.data_root.as_ref().filter(|_| info.local);
    let free = disk.and_then(|folder| rustix::fs::statvfs(folder.as_str()).ok());
    Ok(EngineFacts {
        name: info.name.clone(),
        version: info.version.clone(),
        gpus: (access != GpuAccess::Request).then(|| access.to_string()),
        cgroup_driver: info.cgroup_driver.clone(),
        storage_driver: info.storage_driver.clone(),
        rootless: info.rootless,
        unkept_limits: info.unkept_limits.clone(),
        local: info.local,
        free: free.map(|found| found.f_bavail.saturating_mul(found.f_frsize)),
    })
}
