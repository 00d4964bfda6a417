//! Pre-releases that were locked though the user's own requirement asks for none: the resolver takes one where no release fits.

use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};
use pep508_rs::{Requirement, VersionOrUrl};

use crate::model::compat::Matrix;
use crate::model::local_version::without_local;
use crate::model::lock::LockedWheel;
use crate::model::resolve::companion_advice;
use crate::model::stack::Stack;
use crate::workflow::error::CommandError;
use crate::workflow::lock_error::LockingError;

/// Refuses wheels of pre-releases of packages that the user requests without naming one.
pub(crate) fn check_prereleases(
    wheels: &[LockedWheel],
    requirements: &[String],
    stack: &Stack,
    matrix: &Matrix,
) -> Result<(), CommandError> {
    let mut found = Vec::new();
    for typed in requirements {
        let Ok(parsed): Result<Requirement, _> = Requirement::from_str(&without_local(typed).0) else {
            continue;
        };
        let asks = match &parsed.version_or_url {
            Some(VersionOrUrl::VersionSpecifier(versions)) => names_one(versions),
            Some(VersionOrUrl::Url(_)) => true,
            None => false,
        };
        let name = parsed.name.to_string();
        let wheel = wheels.iter().filter(|_| !asks).find(|wheel| wheel.name == name);
        if let Some(wheel) = wheel.filter(|wheel| is_prerelease(&wheel.version)) {
            let advice = companion_advice(&name, stack, matrix);
            found.push((typed.clone(), name, wheel.version.clone(), advice));
        }
    }
    if found.is_empty() {
        return Ok(());
    }
    let packages = found.iter().map(|(typed, _, version, _)| format!("`{typed}`: {version}")).collect();
    let mut hints: Vec<_> = found.iter().filter_map(|(.., advice)| advice.clone()).collect();
    let named: Vec<_> = found.iter().map(|(_, name, version, _)| format!("`{name}=={version}`")).collect();
    hints.push(format!("to lock it anyway, name it: {}", named.join(", ")));
    Err(LockingError::Prerelease { packages, hints }.into())
}

fn is_prerelease(version: &str) -> bool {
    Version::from_str(version).is_ok_and(|version| version.any_prerelease())
}

/// Whether a version in it is a pre-release.
fn names_one(versions: &VersionSpecifiers) -> bool {
    versions.iter().any(|one| one.version().any_prerelease())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn check(requirement: &str, version: &str) -> Result<(), CommandError> {
        let lock = sample::lock();
        let mut wheel = lock.wheels[0].clone();
        "deepspeed".clone_into(&mut wheel.name);
        version.clone_into(&mut wheel.version);
        check_prereleases(&[wheel], &[requirement.to_owned()], &lock.stack, crate::model::compat::embedded())
    }

    #[test]
    fn prerelease_is_locked_only_if_the_requirement_names_one() {
        for (requirement, version) in [
            ("deepspeed", "0.18.2"),
            ("deepspeed", "0.18.2.post1"),
            ("deepspeed==0.3.1.dev5", "0.3.1.dev5"),
            ("deepspeed>=0.3.1rc1", "0.3.1rc1"),
            ("another", "0.3.1.dev5"),
        ] {
            assert!(check(requirement, version).is_ok(), "{requirement} {version}");
        }
        for requirement in ["deepspeed", "deepspeed>=0.3", "DeepSpeed"] {
            let error = check(requirement, "0.3.1.dev5").expect_err(requirement);
            assert!(error.to_string().contains(&format!("`{requirement}`: 0.3.1.dev5")), "{error}");
            let hints = error.hints();
            assert!(hints.iter().any(|hint| hint.contains("--allow-source deepspeed")), "{hints:?}");
            assert!(hints.iter().any(|hint| hint.contains("`deepspeed==0.3.1.dev5`")), "{hints:?}");
        }
    }
}
