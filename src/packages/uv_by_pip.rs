//! uv's own wheel without a configured index: pip downloads it from its default index, in a temporary container of the
//! image that resolves.

use std::io::Read as _;
use std::sync::Arc;

use pep440_rs::Version;

use super::error::{PackagesError, ToolOutput};
use super::failure::explain;
use super::inputs::surroundings;
use super::limits::LARGEST_UV;
use super::redact::without_addresses;
use super::script_file::{command, file};
use super::settings::PackageSettings;
use super::uv_source::{UvSource, unusable};
use crate::engine::{ContainerFile, RunRequest};
use crate::model::bounded_tar::BoundedTar;
use crate::model::lock::LockedTool;
use crate::report::Reporter;

const SCRIPT: &str = "/envforge/uv_by_pip.sh";
/// Directory of the downloaded wheel.
const FOLDER: &str = "/tmp/wheel";

/// Returns the wheel of a locked tool. pip checks its hash; the cache checks it again.
pub(super) async fn wheel_by_pip(
    tool: &LockedTool,
    source: &UvSource<'_>,
    reporter: Arc<dyn Reporter>,
) -> Result<Vec<u8>, PackagesError> {
    let resolver = source.image.resolver().await?;
    let settings = PackageSettings { archives: resolver.archives, ..source.settings.clone() };
    let container = RunRequest {
        image: resolver.image,
        command: command(SCRIPT),
        user: Some("0:0".to_owned()),
        files: files(tool, &settings)?,
        network: settings.network,
        // Its lines are not reported: they hold addresses.
        report_as: None,
        collect: vec![FOLDER.to_owned()],
        most_collected: Some(LARGEST_UV),
        ..RunRequest::default()
    };
    let outcome = source.engine.run(container, reporter).await?;
    if outcome.code != 0 {
        return Err(fault(outcome.code, &outcome.stderr, &tool.file));
    }
    let missing = || PackagesError::NoUvWheel { file: tool.file.clone() };
    let collected = outcome.collected.get(FOLDER).ok_or_else(missing)?;
    let wheel = file_of_tar(collected, &tool.file).map_err(|error| unusable(tool, &error.to_string()))?;
    wheel.ok_or_else(missing)
}

fn files(tool: &LockedTool, settings: &PackageSettings) -> Result<Vec<ContainerFile>, PackagesError> {
    let mut files = surroundings(settings);
    files.push(file("uv_by_pip.sh", 0o644, include_str!("../../templates/packages/uv_by_pip.sh")));
    files.push(file("uv.in", 0o644, requirement(tool)?));
    files.push(file(
        "platform",
        0o644,
        platform(tool).ok_or_else(|| unusable(tool, "its name has no platform"))?,
    ));
    Ok(files)
}

/// The version is parsed, so that nothing of a lock written by hand reaches pip as an option.
fn requirement(tool: &LockedTool) -> Result<String, PackagesError> {
    let version: Version =
        tool.version.parse().map_err(|_| unusable(tool, &format!("`{}` is not a version", tool.version)))?;
    Ok(format!("uv=={version} --hash=sha256:{}\n", tool.sha256))
}

/// Returns the first platform tag of the wheel, which pip gets regardless of its own platform.
fn platform(tool: &LockedTool) -> Option<String> {
    let tag = tool.file.strip_suffix(".whl")?.rsplit('-').next()?.split('.').next()?;
    tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then(|| format!("{tag}\n"))
}

fn file_of_tar(tar: &[u8], name: &str) -> std::io::Result<Option<Vec<u8>>> {
    for entry in BoundedTar::new(tar).entries()? {
        let mut entry = entry?;
        if entry.path()?.file_name().is_some_and(|found| found == name) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes)?;
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// The error behind an exit code of `uv_by_pip.sh`.
fn fault(code: i64, stderr: &[u8], file: &str) -> PackagesError {
    let text = without_addresses(String::from_utf8_lossy(stderr).trim());
    match code {
        45 => PackagesError::Pip { cause: ToolOutput(text) },
        46 => pip_fault(text, file),
        code => explain(code, stderr, false),
    }
}

fn pip_fault(text: String, file: &str) -> PackagesError {
    let says = |any: &[&str]| any.iter().any(|words| text.contains(words));
    let unreachable = says(&[
        "connection broken by",
        "Max retries exceeded",
        "Read timed out",
        "connection error",
        " Server Error",
    ]);
    let refused = says(&["401 Client Error", "403 Client Error", "HTTP error 401", "HTTP error 403"]);
    let tampered = says(&["DO NOT MATCH THE HASHES"]);
    let absent = says(&["No matching distribution found"]);
    let cause = ToolOutput(text);
    match () {
        () if tampered => PackagesError::UvHash { file: file.to_owned(), cause },
        () if refused => PackagesError::IndexAccess { cause },
        // pip goes on after these and finds nothing: they come first.
        () if unreachable => PackagesError::Index { package: Some("uv".to_owned()), cause },
        () if absent => PackagesError::NoUvWheel { file: file.to_owned() },
        () => PackagesError::Pip { cause },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    const FILE: &str = "uv-0.0.1-py3-none-any.whl";

    fn tool(version: &str) -> LockedTool {
        LockedTool {
            name: "uv".to_owned(),
            version: version.to_owned(),
            file: FILE.to_owned(),
            sha256: "0".repeat(64),
        }
    }

    #[test]
    fn pip_output_becomes_an_error_with_a_setting() {
        let none = "ERROR: No matching distribution found for uv==0.0.1";
        let said = |text: &str| fault(46, format!("{text}\n{none}").as_bytes(), FILE);
        for text in [
            "WARNING: Retrying (Retry(total=4)) after connection broken by 'SSLError(1)': /simple/uv/",
            "Could not fetch URL https://u:hunter2@h.test/simple/uv/: connection error: \
             HTTPSConnectionPool(host='h.test', port=443): Max retries exceeded with url: /simple/uv/ - skipping",
        ] {
            let error = said(text);
            assert_eq!(error.to_string(), "cannot reach the package index for `uv`");
            let cause = std::error::Error::source(&error).expect("pip's words").to_string();
            assert!(!cause.contains("hunter2") && !cause.contains("h.test"), "{cause}");
        }
        let refused =
            said("Could not fetch URL https://h.test/uv/: 403 Client Error: Forbidden for url - skipping");
        assert!(matches!(refused, PackagesError::IndexAccess { .. }), "{refused:?}");
        let tampered =
            fault(46, b"ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.", FILE);
        assert!(matches!(tampered, PackagesError::UvHash { .. }), "{tampered:?}");
        let absent =
            said("Could not fetch URL https://h.test/uv/: 404 Client Error: Not Found for url - skipping");
        assert!(matches!(absent, PackagesError::NoUvWheel { .. }), "{absent:?}");
        let other = fault(46, b"Illegal instruction", FILE);
        let lacking = fault(45, b"E: Unable to locate package python3-pip", FILE);
        for error in [refused, tampered, absent, other, lacking] {
            assert_eq!(error.exit(), Exit::Outside);
            let hint = &error.hints()[0];
            assert!(
                ["[index] default", "ENVFORGE_INDEX", "PIP_INDEX_URL"].iter().all(|name| hint.contains(name))
            );
        }
        assert!(matches!(fault(40, b"E: 500", FILE), PackagesError::Mirror { .. }));
    }

    #[test]
    fn named_file_is_extracted_from_tar() {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(5);
        tar.append_data(&mut header, format!("wheel/{FILE}"), b"wheel".as_slice()).expect("appended");
        let tar = tar.into_inner().expect("tar");
        assert_eq!(file_of_tar(&tar, FILE).expect("reads").as_deref(), Some(b"wheel".as_slice()));
        assert_eq!(file_of_tar(&tar, "other.whl").expect("reads"), None);
        assert!(file_of_tar(&tar[..100], FILE).is_err());
    }

    #[test]
    fn requirement_accepts_only_a_version() {
        assert_eq!(
            requirement(&tool("0.0.1")).expect("made"),
            format!("uv==0.0.1 --hash=sha256:{}\n", "0".repeat(64))
        );
        for bad in ["0.0.1 --index-url=x", "0.0.1\n-r /etc/passwd", ""] {
            assert!(matches!(requirement(&tool(bad)), Err(PackagesError::UvWheel { .. })), "{bad}");
        }
    }
}
