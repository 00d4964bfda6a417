//! The caller's SSH client: its configuration for a container, and the Include line.
#![expect(clippy::disallowed_methods, reason = "writes the client's configuration")]

use camino::{Utf8Path, Utf8PathBuf};
use futures_util::StreamExt as _;

use crate::engine::{ExecRequest, Output};
use crate::model::request::ServiceOptions;
use crate::report::Event;
use crate::settings::Settings;
use crate::shell::{Services, User, client_config, is_interactive};
use crate::store::write_atomically;
use crate::workflow::confirm::confirm;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

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
    let before = match fs_err::read_to_string(&path) {
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
        write_atomically(&path, format!("{line}\n{before}").as_bytes())?;
    }
    Ok(yes)
}

pub(crate) fn home(settings: &Settings) -> Option<Utf8PathBuf> {
    settings.environment.get("HOME").map(Utf8PathBuf::from)
}

/// What a short command in a running container prints.
pub(crate) async fn printed(
    session: &Session<'_>,
    container: &str,
    command: Vec<String>,
) -> Result<String, CommandError> {
    let request = ExecRequest { command, ..ExecRequest::default() };
    let (_, mut attached) = session.containers.exec(container, &request).await?;
    let mut bytes = Vec::new();
    while let Some(part) = attached.output.next().await {
        if let Ok(Output::Out(part)) = part {
            bytes.extend_from_slice(&part);
        }
    }
    Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
}
