//! Programs that envforge starts. They inherit its environment without its secrets.
#![expect(clippy::disallowed_methods, reason = "edge: the one place where programs are started")]

use std::ffi::OsStr;
use std::process::Command;

/// What signs evidence and logs in to a registry. Only envforge itself needs it, while `srun` and `sbatch` would hand it to every node, and
/// an editor to all that runs in it.
const SECRETS: [&str; 5] = [
    "COSIGN_PASSWORD",
    "COSIGN_PRIVATE_KEY",
    "DOCKER_AUTH_CONFIG",
    "ENVFORGE_REGISTRY_PASSWORD",
    "ENVFORGE_SIGNING_KEY",
];

/// A program that is not started yet.
pub(crate) fn child(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in SECRETS {
        command.env_remove(name);
    }
    command
}

/// The same, to be waited for without blocking.
pub(crate) fn async_child(program: impl AsRef<OsStr>) -> tokio::process::Command {
    child(program).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::VARIABLES;

    #[test]
    fn every_secret_variable_is_withheld() {
        let names = VARIABLES.iter().flat_map(|variable| variable.names).copied();
        let secret =
            names.filter(|name| ["PASSWORD", "SIGNING", "AUTH"].iter().any(|word| name.contains(word)));
        let unknown: Vec<&str> = secret.filter(|name| !SECRETS.contains(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
        for command in [&child("true"), async_child("true").as_std()] {
            let removed: Vec<_> = command.get_envs().filter(|(_, value)| value.is_none()).collect();
            assert!(SECRETS.iter().all(|name| removed.contains(&(OsStr::new(name), None))), "{removed:?}");
        }
    }
}
