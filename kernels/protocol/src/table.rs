//! The table of checks for the documentation.

use std::fmt::Write as _;

use crate::check::{CheckId, Requirement};
use crate::outcome::Stage;

impl Requirement {
    /// Returns the images for whose tags the check is required, for the documentation.
    pub fn described(self) -> String {
        let list = |names: &[&str]| names.join(", ");
        match self {
            Self::Optional => "none: it may be skipped, or only warns".to_owned(),
            Self::EveryImage => "every image that envforge built".to_owned(),
            Self::Wheel(name) => format!(
                "images with a locked wheel `{name}`, or with that library in the framework's own wheel"
            ),
            Self::Nvcc => "images with nvcc".to_owned(),
            Self::Ptxas => "images that bring a ptxas for Triton".to_owned(),
            Self::Framework => "images with a framework".to_owned(),
            Self::TorchOr([]) => "images with PyTorch".to_owned(),
            Self::TorchOr(names) => format!("images with PyTorch, {}", list(names)),
            Self::ListedGpus(names) => format!("images with {} whose GPUs the matrix lists", list(names)),
            Self::Cudnn => "images of a framework with cuDNN".to_owned(),
            Self::Nccl => "images of a framework with NCCL".to_owned(),
            Self::LoginPath => {
                "images of locks of schema 3, which keep their PATH in login shells".to_owned()
            }
            Self::Triton => "images of a framework with Triton".to_owned(),
            Self::Unproven => "none yet: the check has not passed on a GPU itself".to_owned(),
            Self::TorchCompile => {
                "images with PyTorch and Triton, where that PyTorch compiles with their Python".to_owned()
            }
        }
    }
}

/// Writes the checks of some stages as a Markdown table; checks that prove the same share a row.
pub fn check_table(stages: &[Stage]) -> String {
    let checks: Vec<_> = CheckId::ALL.iter().filter(|check| stages.contains(&check.stage())).collect();
    let bounds = checks.iter().any(|check| !check.bound().is_empty());
    let mut text = if bounds {
        "| check | proves | bound |\n|---|---|---|\n".to_owned()
    } else {
        "| check | proves |\n|---|---|\n".to_owned()
    };
    let mut rows: Vec<Vec<&CheckId>> = Vec::new();
    for check in checks {
        match rows.iter_mut().find(|row| row[0].proves() == check.proves()) {
            Some(row) => row.push(check),
            None => rows.push(vec![check]),
        }
    }
    for row in rows {
        let names: Vec<_> = row.iter().map(|check| format!("`{check}`")).collect();
        let _ = write!(text, "| {} | {} |", names.join(", "), row[0].proves());
        let _ = match (bounds, row[0].bound()) {
            (false, _) => writeln!(text),
            (true, "") => writeln!(text, " |"),
            (true, bound) => writeln!(text, " {bound} |"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_check_is_in_one_row() {
        let text = check_table(&[Stage::Static]) + &check_table(&[Stage::Gpu, Stage::Perf]);
        for check in CheckId::ALL {
            assert!(text.matches(&format!("`{check}`")).count() >= 1, "{check}");
        }
        assert!(text.contains("| `framework-version`, `framework-cuda` | the framework imports"), "{text}");
    }
}
