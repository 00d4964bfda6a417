//! The table of checks for the documentation.

use std::fmt::Write as _;

use crate::check::CheckId;
use crate::outcome::Stage;

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
