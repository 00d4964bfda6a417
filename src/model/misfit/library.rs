//! Libraries of the operating system that locked wheels load and the image lacks.

use super::question::{Misfit, MisfitKind, Question};
use crate::model::compat::needs::WheelLibraries;
use crate::model::lock::LockedWheel;

/// The most libraries, or packages, of a wheel that its text names.
const NAMED: usize = 6;

/// Returns the first names and how many more there are.
pub(super) fn in_short(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMED)].join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

pub(super) fn misfits(question: Question<'_>) -> Vec<Misfit> {
    let rows = &question.known.matrix.wheel_libraries;
    let row_of = |wheel: &LockedWheel| rows.iter().find(|row| row.package == wheel.name);
    let wheels = question.lock.wheels.iter();
    wheels.filter_map(|wheel| misfit(question, wheel, row_of(wheel)?)).collect()
}

fn misfit(question: Question<'_>, wheel: &LockedWheel, row: &WheelLibraries) -> Option<Misfit> {
    let (lock, matrix) = (question.lock, question.known.matrix);
    let (mut libraries, mut apt) = (Vec::<String>::new(), Vec::<String>::new());
    for library in row.libraries.iter().filter(|library| !lock.added.may_lack.contains(library)) {
        let package = matrix.distribution_libraries.iter().find(|known| known.library == *library)?;
        if question.has_deb(&package.package) {
            continue;
        }
        libraries.push(library.clone());
        if !apt.contains(&package.package) {
            apt.push(package.package.clone());
        }
    }
    if libraries.is_empty() {
        return None;
    }
    let as_read = if wheel.version == row.read { String::new() } else { format!(", as {} does", row.read) };
    let text = format!(
        "`{} {}`{} loads libraries that the image lacks{as_read}: {} (apt: {})",
        wheel.name,
        wheel.version,
        question.required_by(&wheel.name),
        in_short(&libraries),
        in_short(&apt)
    );
    let (packages, source) = (vec![wheel.name.clone()], Some(row.source.clone()));
    Some(Misfit { kind: MisfitKind::SystemLibrary, packages, text, apt, libraries, source })
}

impl Question<'_> {
    /// Whether the image has a package of the distribution, which later releases call `libasound2t64` in place of `libasound2`.
    fn has_deb(&self, name: &str) -> bool {
        let is_it = |deb: &str| deb == name || deb.strip_suffix("t64") == Some(name);
        let base = self.lock.base.packages.iter();
        base.chain(self.lock.debs()).any(|deb| is_it(&deb.name))
    }
}
