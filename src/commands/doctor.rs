//! `doctor`: what this machine is fit for, and what a message means.

use serde::Serialize;

use super::explain;
use crate::engine::{Engine as _, GpuAccess};
use crate::failure::Exit;
use crate::host::{self, EngineFacts, HostFacts, HostFinding, HostReport, Severity, SystemFacts};
use crate::model::counted::counted;
use crate::model::request;
use crate::model::wrap::{hanging, wrapped};
use crate::report::Printer;
use crate::settings::Settings;
use crate::workflow::error::CommandError;
use crate::workflow::session::connect;
use crate::workflow::settings_findings::settings_findings;

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
        return explain::explain(text, settings);
    }
    let matrix = &settings.matrix;
    let report = HostReport {
        gpus: host::detect(),
        system: host::system("/".into()),
        engine: engine(settings).await.map_err(|error| (error.to_string(), error.hints())),
        overrides: overrides(settings),
    };
    let mut findings = host::findings(&report, matrix);
    // A report is for others, who have no use for this site's addresses.
    if !args.report {
        findings.extend(settings_findings(settings));
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
        Printer.text(&wrapped(&summary(findings, settings.output.verbose > 0), settings.output.width));
    }
    Ok(if bad { Exit::No } else { Exit::Done })
}

/// Errors, warnings, what is in order if `all` is asked for, and one line of counts.
fn summary(mut findings: Vec<HostFinding>, all: bool) -> String {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let (errors, warnings, fine) = (count(Severity::Error), count(Severity::Warning), count(Severity::Ok));
    let more = if all || fine == 0 { "" } else { " (`-v` shows them)" };
    let counts = format!("{}, {}, {fine} ok{more}\n", counted(errors, "error"), counted(warnings, "warning"));
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
    let hint = finding.hint.as_ref().map(|hint| hanging("         hint: ", hint));
    let from = finding.from.as_ref().map(|from| format!(" (from {from})")).unwrap_or_default();
    hanging(&format!("{word}  "), &(finding.text.clone() + &from)) + &hint.unwrap_or_default()
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
        keeps_blobs: info.keeps_blobs,
        rootless: info.rootless,
        unkept_limits: info.unkept_limits.clone(),
        local: info.local,
        free: free.map(|found| found.f_bavail.saturating_mul(found.f_frsize)),
    })
}
