//! Credential helpers: `docker-credential-NAME get`, run as the docker client runs them.

use std::process::Stdio;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::credential::Login;
use super::docker_config::DEFAULT_KEY;
use crate::model::image_ref::DEFAULT_REGISTRY;

/// Timeout of a helper: some request a token from a cloud.
const PATIENCE: Duration = Duration::from_secs(30);
/// Output of a helper without a login.
const NONE: &str = "credentials not found";
/// The user name that marks an identity token.
const TOKEN_USER: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: SecretString,
}

/// Returns the login of a helper for a registry. Errors never contain the helper's output.
pub(super) async fn ask_helper(name: &str, registry: &str) -> Result<Option<Login>, String> {
    let program = format!("docker-credential-{name}");
    if name.contains(['/', '\0']) {
        return Err(format!("invalid program name `{program}`"));
    }
    let server = if registry == DEFAULT_REGISTRY { DEFAULT_KEY } else { registry };
    let Ok(answer) = tokio::time::timeout(PATIENCE, run(&program, server)).await else {
        return Err(format!("`{program}` timed out after {} s", PATIENCE.as_secs()));
    };
    let (success, stdout) = answer.map_err(|error| format!("cannot run `{program}`: {error}"))?;
    if !success {
        // Helpers report on stdout; only the one known text is looked for, since the rest may hold anything.
        let unknown = String::from_utf8_lossy(&stdout).contains(NONE);
        return if unknown { Ok(None) } else { Err(format!("`{program} get` failed for `{registry}`")) };
    }
    let answer: Answer = serde_json::from_slice(&stdout)
        .map_err(|_| format!("cannot parse the output of `{program} get` for `{registry}`"))?;
    Ok(match answer.username.as_str() {
        _ if answer.secret.expose_secret().is_empty() => None,
        TOKEN_USER => Some(Login::IdentityToken(answer.secret)),
        _ => Some(Login::Password { user: answer.username, password: answer.secret }),
    })
}

async fn run(program: &str, server: &str) -> std::io::Result<(bool, Vec<u8>)> {
    let mut child = Command::new(program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A helper that does not read is one that answers anyway.
        drop(stdin.write_all(server.as_bytes()).await);
    }
    let output = child.wait_with_output().await?;
    Ok((output.status.success(), output.stdout))
}
