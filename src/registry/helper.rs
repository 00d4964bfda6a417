//! Credential helpers: `docker-credential-NAME get`, run as the docker client runs them.

use std::process::Stdio;
use std::time::Duration;

use serde::Deserialize;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::credential::Login;
use super::docker_config::DEFAULT_KEY;
use super::hidden::Hidden;
use super::reference::DEFAULT_REGISTRY;

/// How long a helper may think: some ask a cloud for a fresh token.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a helper prints when it knows of no login.
const NONE: &str = "credentials not found";
/// The user name that stands for an identity token.
const TOKEN_USER: &str = "<token>";

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    username: String,
    secret: Hidden,
}

/// The login a helper keeps for a registry; `Err` says why it could not be asked, and never what it answered.
pub(super) async fn ask_helper(name: &str, registry: &str) -> Result<Option<Login>, String> {
    let program = format!("docker-credential-{name}");
    if name.contains(['/', '\0']) {
        return Err(format!("`{program}` is no name of a program"));
    }
    let server = if registry == DEFAULT_REGISTRY { DEFAULT_KEY } else { registry };
    let Ok(answer) = tokio::time::timeout(PATIENCE, run(&program, server)).await else {
        return Err(format!("`{program}` did not answer within {} s", PATIENCE.as_secs()));
    };
    let (success, stdout) = answer.map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    if !success {
        // Helpers report on stdout; only the one known text is looked for, since the rest may hold anything.
        let unknown = String::from_utf8_lossy(&stdout).contains(NONE);
        return if unknown { Ok(None) } else { Err(format!("`{program} get` failed for `{registry}`")) };
    }
    let answer: Answer = serde_json::from_slice(&stdout)
        .map_err(|_| format!("`{program} get` answered no login for `{registry}`"))?;
    Ok(match answer.username.as_str() {
        _ if answer.secret.expose().is_empty() => None,
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
