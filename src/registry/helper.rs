//! Credential helpers: `docker-credential-NAME get`, run as the docker client runs them.

use std::process::Stdio;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::credential::Login;
use super::docker_config::DEFAULT_KEY;
use crate::host::async_child;
use crate::model::bounded::too_large;
use crate::model::image_ref::DEFAULT_REGISTRY;

/// Timeout of a helper: some request a token from a cloud.
const PATIENCE: Duration = Duration::from_secs(30);
/// The most that a helper says, bytes: a token of a cloud has a few thousand.
const LARGEST_ANSWER: u64 = 1 << 20;
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
    let mut child = async_child(program)
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
    let mut answer = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(LARGEST_ANSWER + 1).read_to_end(&mut answer).await?;
    }
    if answer.len() as u64 > LARGEST_ANSWER {
        // Dropping the child ends it.
        return Err(too_large(LARGEST_ANSWER));
    }
    Ok((child.wait().await?.success(), answer))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// Runs a shell script as the helper.
    #[expect(clippy::disallowed_methods, reason = "writes the script")]
    async fn answer(script: &str) -> std::io::Result<(bool, Vec<u8>)> {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("docker-credential-x");
        fs_err::write(&program, format!("#!/bin/sh\n{script}\n")).expect("ours");
        fs_err::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("ours");
        run(program.to_str().expect("UTF-8"), "box.test").await
    }

    #[tokio::test]
    async fn answer_of_a_helper_is_read_to_its_end() {
        assert_eq!(
            answer("read server; echo to $server").await.expect("runs"),
            (true, b"to box.test\n".into())
        );
        let long = answer("head -c 1048576 /dev/zero; exit 1").await.expect("at the bound");
        assert_eq!((long.0, long.1.len()), (false, 1 << 20));
    }

    #[tokio::test]
    async fn helper_that_prints_without_end_is_ended() {
        let error = tokio::time::timeout(PATIENCE, answer("exec cat /dev/zero")).await.expect("ended");
        assert_eq!(error.expect_err("too large").kind(), std::io::ErrorKind::FileTooLarge);
    }
}
