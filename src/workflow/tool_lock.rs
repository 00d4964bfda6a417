//! `lock --from`: the versions of another tool's lock file, and what became of them.

use camino::Utf8Path;
use serde::Serialize;

use crate::failure::reason;
use crate::model::counted::counted;
use crate::model::lock::{KeptVersions, KnownReasons, Lock, MovedVersion, OtherFile};
use crate::model::migrate::{LockSelection, ToolLockError, ToolVersions, tool_versions};
use crate::model::request;
use crate::model::resolve::excluded_releases;
use crate::model::stack::Stack;
use crate::packages::{cached_requirements, catalogue};
use crate::settings::Settings;
use crate::store::read_regular_text;
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::project::LARGEST_FILE;
use crate::workflow::session::Session;

/// Returns the request with the versions that the lock file of `--from` selects for the stack.
pub(crate) fn preferring(
    wanted: &BuildRequest,
    args: &request::Lock,
    stack: &Stack,
    settings: &Settings,
) -> Result<BuildRequest, CommandError> {
    let Some(file) = &args.from else { return Ok(wanted.clone()) };
    let path = settings.paths.current_dir.join(file);
    let unopened =
        |error: std::io::Error| ToolLockError::Unopened { file: file.to_string(), why: reason(&error) };
    let text = read_regular_text(&path, LARGEST_FILE).map_err(unopened)?;
    let pyproject = pyproject_of(&path);
    let selection = LockSelection {
        python: stack.python,
        machine: stack.machine,
        extras: &args.extra,
        groups: &args.group,
        pyproject: pyproject.as_ref(),
    };
    let preferred = tool_versions(file.as_str(), &text, &selection, &settings.matrix)?;
    Ok(BuildRequest { preferred: Some(preferred), ..wanted.clone() })
}

/// The pyproject.toml next to a lock file. Without a readable one its tool's own defaults hold.
fn pyproject_of(lock: &Utf8Path) -> Option<toml::Table> {
    let text = read_regular_text(&lock.with_file_name("pyproject.toml"), LARGEST_FILE).ok()?;
    text.parse().ok()
}

/// What became of the versions of a lock file of another tool: `from` of `lock --json`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct ToolLockReport {
    /// The lock file.
    file: String,
    /// The number of versions that are the same.
    kept: usize,
    /// The packages with another version.
    moved: Vec<MovedVersion>,
    /// The packages with the same version and another file.
    other_files: Vec<OtherFile>,
    /// The packages that are not in the image.
    unused: Vec<String>,
    /// The packages without a release of an index.
    left: Vec<LeftPackage>,
}

/// A package that was not looked for.
#[derive(Debug, Clone, Serialize)]
struct LeftPackage {
    name: String,
    reason: &'static str,
}

impl ToolLockReport {
    /// Compares a new lock with the versions that it was to keep.
    pub(crate) fn of(tool: &ToolVersions, lock: &Lock, session: &Session<'_>) -> Self {
        let requirements = cached_requirements(&session.store, &lock.wheels);
        let developer: Vec<String> = catalogue().developer_wheels().collect();
        let excluded = excluded_releases(&lock.stack, &session.matrix);
        let known = KnownReasons { requirements: &requirements, developer: &developer, excluded: &excluded };
        let KeptVersions { kept, moved, unused } = lock.kept_versions(&tool.versions, known);
        let other_files = lock.other_files(&tool.versions, &tool.hashes);
        let left = tool.left.iter().map(|(name, reason)| LeftPackage { name: name.clone(), reason });
        Self { file: tool.file.clone(), kept, moved, other_files, unused, left: left.collect() }
    }

    /// The same for people, one fact a line.
    pub(crate) fn lines(&self) -> Vec<String> {
        let Self { file, kept, moved, other_files, unused, left } = self;
        let mut lines = vec![format!("{file}: {} kept, {} moved", counted(*kept, "version"), moved.len())];
        lines.extend(moved.iter().map(|MovedVersion { name, from, to, reason }| {
            let reason = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("  {name} {from} -> {to}{reason}")
        }));
        lines.extend(other_files.iter().map(|OtherFile { name, version, file, sha256 }| {
            format!(
                "  {name} {version} is another file: {file}, SHA-256 {}, is not listed for it",
                &sha256[..12]
            )
        }));
        if !unused.is_empty() {
            lines.push(format!("  not in the image: {}", unused.join(", ")));
        }
        lines.extend(
            left.iter().map(|LeftPackage { name, reason }| format!("  {name} is left out: {reason}")),
        );
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_names_moved_versions_and_other_files() {
        let moved = MovedVersion {
            name: "rich".to_owned(),
            from: "13.9.4".to_owned(),
            to: "14.1.0".to_owned(),
            reason: Some("`rich>=14` of the project".to_owned()),
        };
        let other = OtherFile {
            name: "demo-one".to_owned(),
            version: "1.0".to_owned(),
            file: "demo_one-1.0-py3-none-any.whl".to_owned(),
            sha256: "0f".repeat(32),
        };
        let report = ToolLockReport {
            file: "uv.lock".to_owned(),
            kept: 2,
            moved: vec![moved],
            other_files: vec![other],
            unused: vec!["pytest".to_owned()],
            left: Vec::new(),
        };
        assert_eq!(
            report.lines(),
            [
                "uv.lock: 2 versions kept, 1 moved",
                "  rich 13.9.4 -> 14.1.0: `rich>=14` of the project",
                "  demo-one 1.0 is another file: demo_one-1.0-py3-none-any.whl, SHA-256 0f0f0f0f0f0f, is not listed for it",
                "  not in the image: pytest",
            ]
        );
    }
}
