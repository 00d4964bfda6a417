//! The caller's SSH client: its configuration for a container, and the Include line.
#![expect(clippy::disallowed_methods, reason = "writes the client's configuration")]

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::{Stream, StreamExt as _};

use crate::engine::{ExecRequest, Output};
use crate::model::request::ServiceOptions;
use crate::report::Event;
use crate::settings::Settings;
use crate::shell::{Services, ShellError, User, client_config, is_interactive};
use crate::store::{read_regular_text, write_atomically, write_in_place_of};
use crate::workflow::confirm::confirm;
use crate::workflow::error::CommandError;
use crate::workflow::named::short_id;
use crate::workflow::session::Session;

/// The most that a container says of its services, bytes, and how long that may take.
pub(super) const MOST_SAID: usize = 64 << 10;
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// The most of the client's configuration, bytes.
const LARGEST_CONFIG: u64 = 16 << 20;

/// The folder of the clients' configurations, in the state folder.
pub(crate) const CLIENTS: &str = "ssh";

/// The client's configuration of a container, and the key it is known by.
pub(crate) fn client_files(state: &Utf8Path, name: &str) -> [Utf8PathBuf; 2] {
    ["conf", "known_hosts"].map(|kind| state.join(CLIENTS).join(format!("{name}.{kind}")))
}

/// Removes the client's configuration of a container that ended, so that `ssh envforge-NAME` reaches no other one.
pub(crate) fn forget_client(state: &Utf8Path, name: &str) -> std::io::Result<()> {
    for file in client_files(state, name) {
        match fs_err::remove_file(file) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Writes the client's configuration and gives the command that uses it.
pub(crate) async fn client(
    session: &Session<'_>,
    args: &ServiceOptions,
    (name, container): (&str, &str),
    port: u16,
    user: &User,
) -> Result<String, CommandError> {
    let key = printed(session, container, Services::host_key_command()).await?;
    let folder = session.store.state_dir().join(CLIENTS);
    let [config, known] = client_files(session.store.state_dir(), name);
    write_atomically(&known, format!("envforge-{name} {key}\n").as_bytes())?;
    let identity = args.authorized_keys.as_ref().map(|file| session.settings.paths.current_dir.join(file));
    let identity = identity.and_then(|file| Some(file.as_str().strip_suffix(".pub")?.to_owned()));
    let text = client_config(name, port, user, known.as_str(), identity.as_deref());
    write_atomically(&config, text.as_bytes())?;
    if args.ssh_config && included(session, &folder).await? {
        return Ok(format!("ssh envforge-{name}"));
    }
    Ok(format!("ssh -F {config} envforge-{name}"))
}

/// True if ~/.ssh/config includes our files, after asking to add the line if it does not.
pub(crate) async fn included(session: &Session<'_>, folder: &Utf8Path) -> Result<bool, CommandError> {
    let Some(home) = home(session.settings) else { return Ok(false) };
    let path = home.join(".ssh/config");
    let line = format!("Include \"{folder}/*.conf\"");
    let before = match read_regular_text(&path, LARGEST_CONFIG) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error.into()),
    };
    if before.lines().any(|known| known.trim() == line) {
        return Ok(true);
    }
    if !is_interactive() {
        let text = format!("cannot ask without a terminal: add `{line}` as the first line of {path}");
        session.reporter.report(Event::Note { text });
        return Ok(false);
    }
    let yes = confirm(&format!("add `{line}` as the first line of {path}?")).await;
    if yes {
        write_in_place_of(&path, format!("{line}\n{before}").as_bytes(), 0o600)?;
    }
    Ok(yes)
}

pub(crate) fn home(settings: &Settings) -> Option<Utf8PathBuf> {
    settings.environment.get("HOME").map(Utf8PathBuf::from)
}

/// What a short command in a running container prints. The image may hold anything under the command's name.
pub(crate) async fn printed(
    session: &Session<'_>,
    container: &str,
    command: Vec<String>,
) -> Result<String, CommandError> {
    let request = ExecRequest { command, ..ExecRequest::default() };
    let (_, attached) = session.containers.exec(container, &request).await?;
    let said = said(attached.output, MOST_SAID, PATIENCE).await;
    let bytes = said.map_err(|why| ShellError::BadAnswer { container: short_id(container), why })?;
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// What a program prints to its end, or why that is not waited for: it prints too much, or takes too long.
async fn said(
    mut output: impl Stream<Item = std::io::Result<Output>> + Unpin,
    most: usize,
    patience: Duration,
) -> Result<Vec<u8>, String> {
    let (mut bytes, mut count) = (Vec::new(), 0);
    let read = async {
        while let Some(part) = output.next().await {
            let Ok(Output::Out(part) | Output::Err(part)) = &part else { continue };
            count += part.len();
            if count > most {
                return Err(format!("more than {most} bytes"));
            }
            bytes.extend_from_slice(part);
        }
        Ok(())
    };
    let slow = |_| Err(format!("no end after {} s", patience.as_secs_f32()));
    tokio::time::timeout(patience, read).await.unwrap_or_else(slow)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "an item of a stream")]
    fn part(bytes: &'static [u8]) -> std::io::Result<Output> {
        Ok(Output::Out(bytes.into()))
    }

    #[tokio::test]
    async fn program_that_prints_without_end_or_never_ends_is_not_waited_for() {
        let patience = Duration::from_millis(100);
        let short = stream::iter([part(b"a"), part(b"b")]);
        assert_eq!(said(short, 2, patience).await.expect("short"), b"ab");
        let minute = Duration::from_mins(1);
        let flood = stream::repeat_with(|| part(b"aaaa")).take(1000);
        assert_eq!(said(flood, 10, minute).await.expect_err("a flood"), "more than 10 bytes");
        let errors = stream::repeat_with(|| Ok(Output::Err(b"aaaa"[..].into()))).take(1000);
        assert_eq!(said(errors, 10, minute).await.expect_err("a flood"), "more than 10 bytes");
        let silent = stream::pending();
        let ended = tokio::time::timeout(minute, said(silent, 10, patience)).await;
        assert_eq!(ended.expect("it is not waited for").expect_err("silence"), "no end after 0.1 s");
    }
}
