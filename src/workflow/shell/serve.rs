//! JupyterLab, SSH and VS Code of a container: what they need is gathered before it starts, and told once they answer.

use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::time::Duration;

use camino::Utf8Path;
use futures_util::StreamExt as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::engine::{Containers, EngineInfo, Output, Port, Program};
use crate::host::{self, Bounds};
use crate::model::request::{self, ServiceOptions};
use crate::report::Event;
use crate::settings::Settings;
use crate::shell::labels::{Shell, container_name};
use crate::shell::{Jupyter, Services, ShellError, Ssh, User, token, url, vscode_uri};
use crate::store::{read_regular_text, read_typed_text, read_typed_text_early};
use crate::workflow::error::CommandError;
use crate::workflow::interrupt::Signals;
use crate::workflow::session::Session;
use crate::workflow::shell::explained::explained;
use crate::workflow::shell::service_urls::ServiceUrls;
use crate::workflow::shell::ssh_client::{MOST_SAID, PATIENCE, client, forget_client, home, printed};

/// Where the search for a free port begins.
const JUPYTER: u16 = 8888;
const SSH: u16 = 2222;
/// The most of a file of public keys, bytes.
const LARGEST_KEYS: u64 = 1 << 20;
/// Bounds of the agent's answer: its socket may lead to another machine.
const AGENT: Bounds = Bounds { time: Duration::from_secs(10), output: LARGEST_KEYS };
/// How long a service may take to answer, and how often it is asked.
const READY: (Duration, Duration) = (Duration::from_mins(2), Duration::from_millis(40));

impl ServiceOptions {
    /// True if anything is to be served.
    pub(crate) fn any(&self) -> bool {
        self.jupyter || self.ssh || self.vscode
    }

    fn address(&self) -> IpAddr {
        self.bind.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST))
    }
}

/// An error for services that cannot start here, or only with `--insecure`. Called before an image is built for them.
pub(super) async fn check_services(
    session: &Session<'_>,
    args: &ServiceOptions,
    user: &User,
    network: Option<&str>,
) -> Result<(), CommandError> {
    refuse_open(args, user, network, session.engine.info())?;
    match &args.authorized_keys {
        _ if !args.ssh => {}
        Some(file) => {
            read_typed_text_early(&session.settings.paths.current_dir.join(file), LARGEST_KEYS)?;
        }
        None => {
            public_keys(session.settings, None).await?;
        }
    }
    Ok(())
}

/// An error for services that other machines or programs could reach without `--insecure`, and for an SSH server that cannot run.
fn refuse_open(
    args: &ServiceOptions,
    user: &User,
    network: Option<&str>,
    info: &EngineInfo,
) -> Result<(), ShellError> {
    let address = args.address();
    // Services listen on every address of their network, which here is the machine's own.
    if (args.jupyter || args.ssh) && network == Some("host") && !args.insecure {
        return Err(ShellError::HostNetwork);
    }
    if (args.jupyter || args.ssh) && !address.is_loopback() && !args.insecure {
        return Err(ShellError::Insecure { address: address.to_string() });
    }
    // Its root is the caller, and the user that sshd handles strangers as may not exist in the caller's range of ids.
    if args.ssh && user.uid == 0 && info.rootless {
        return Err(ShellError::SshOnRootless);
    }
    // A login of root over the network stays on this machine.
    if args.ssh && user.uid == 0 && !address.is_loopback() {
        return Err(ShellError::SshAsRoot { address: address.to_string() });
    }
    Ok(())
}

/// What is to serve, with free ports, a fresh token and the caller's keys.
pub(crate) async fn services(
    session: &Session<'_>,
    args: &ServiceOptions,
    user: &User,
    network: Option<&str>,
) -> Result<Services, CommandError> {
    refuse_open(args, user, network, session.engine.info())?;
    let address = args.address();
    let mut services = Services::default();
    if args.jupyter {
        services.jupyter =
            Some(Jupyter { port: free(address, JUPYTER)?, token: token(), open: !address.is_loopback() });
    }
    if args.ssh {
        let keys = public_keys(session.settings, args.authorized_keys.as_deref()).await?;
        services.ssh = Some(Ssh { port: free(address, SSH)?, keys, env: Vec::new() });
    }
    Ok(services)
}

/// The ports they are reached by.
pub(super) fn ports(args: &ServiceOptions, services: &Services) -> Vec<Port> {
    let ports = [services.jupyter.as_ref().map(|it| it.port), services.ssh.as_ref().map(|it| it.port)];
    let open = |port: u16| Port { address: args.address(), host: port, container: port };
    ports.into_iter().flatten().map(open).collect()
}

/// The first free port from that one on.
fn free(address: IpAddr, first: u16) -> Result<u16, ShellError> {
    let is_free = |port: &u16| TcpListener::bind((address, *port)).is_ok();
    (first..first + 100).find(is_free).ok_or(ShellError::NoPort { first })
}

/// Public keys: those of the file, else of the agent and of ~/.ssh.
async fn public_keys(settings: &Settings, file: Option<&Utf8Path>) -> Result<String, CommandError> {
    if let Some(file) = file {
        return Ok(read_typed_text(&settings.paths.current_dir.join(file), LARGEST_KEYS).await?);
    }
    let mut keys = String::new();
    if let Ok(output) = host::run_within(host::child("ssh-add").arg("-L"), AGENT)
        && output.status.success()
    {
        keys.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    let entries = home(settings).map(|home| home.join(".ssh")).and_then(|folder| folder.read_dir_utf8().ok());
    let files =
        entries.into_iter().flatten().flatten().filter(|entry| entry.path().extension() == Some("pub"));
    for file in files {
        keys.extend([read_regular_text(file.path(), LARGEST_KEYS)?.trim_end(), "\n"]);
    }
    if keys.trim().is_empty() { Err(ShellError::NoKeys.into()) } else { Ok(keys) }
}

/// Sends a started container its files, waits until all answers, and gives what can be opened.
pub(super) async fn begin(
    session: &Session<'_>,
    args: &request::Shell,
    started: (&str, &str),
    services: &Services,
    user: &User,
) -> Result<ServiceUrls, CommandError> {
    let (name, container) = started;
    let program = Program::Command(container.to_owned());
    let address = args.services.address();
    let ready = async {
        if let Some(jupyter) = &services.jupyter {
            answers(address, jupyter.port, b"GET /api HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n", b" 200 ").await?;
        }
        if let Some(ssh) = &services.ssh {
            answers(address, ssh.port, b"", b"SSH-2.0").await?;
        }
        Ok::<_, ShellError>(())
    };
    if session.engine.info().local || !args.start.detach {
        tokio::select! {
            ready = ready => ready?,
            ended = session.containers.exit_code(&program) => {
                let LastWords { said, known } = last_words(&*session.containers, container).await;
                return Err(ShellError::Ended { code: ended?, said, known }.into());
            }
        }
    } else {
        tell_the_way(session, ports(&args.services, services).iter().map(|port| port.host));
    }
    let mut told = ServiceUrls { schema: 1, name: name.to_owned(), ..ServiceUrls::default() };
    told.jupyter = services.jupyter.as_ref().map(|jupyter| jupyter.url(&address.to_string()));
    if let Some(ssh) = &services.ssh {
        told.ssh = Some(client(session, &args.services, (name, container), ssh.port, user).await?);
    }
    told.vscode = args.services.vscode.then(|| vscode(name));
    told.open(session, &args.services);
    Ok(told)
}

/// How to reach ports of the engine's machine when no call of ours leads there.
fn tell_the_way(session: &Session<'_>, ports: impl Iterator<Item = u16>) {
    let options: Vec<_> = ports.map(|port| format!("-L {port}:127.0.0.1:{port}")).collect();
    let text = format!(
        "the engine is on another machine: forward its ports with `ssh {} HOST`, or omit --detach to have \
         `envforge shell` forward them",
        options.join(" ")
    );
    session.reporter.report(Event::Note { text });
}

fn vscode(name: &str) -> String {
    format!("code --folder-uri {}", vscode_uri(&container_name(name)))
}

/// What can be opened of a container that runs already; an error if it does not serve it.
pub(super) async fn of_running(
    session: &Session<'_>,
    args: &ServiceOptions,
    shell: &Shell,
    user: &User,
) -> Result<ServiceUrls, CommandError> {
    let port = |service: &str| -> Result<u16, ShellError> {
        let word = shell.services.split(' ').find_map(|word| word.strip_prefix(service)?.strip_prefix('='));
        let option = if service == "ssh" { "--ssh" } else { "--jupyter" };
        word.and_then(|port| port.parse().ok())
            .ok_or(ShellError::Running { name: shell.name.clone(), option })
    };
    let mut told = ServiceUrls { schema: 1, name: shell.name.clone(), ..ServiceUrls::default() };
    let id = shell.container.id.as_str();
    if args.jupyter {
        let port = port("jupyter")?;
        let address = shell.container.ports.iter().find(|open| open.host == port).map(|open| open.address);
        let address = address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)).to_string();
        told.jupyter = Some(url(&address, port, &printed(session, id, Services::token_command()).await?));
    }
    if args.ssh {
        told.ssh = Some(client(session, args, (&shell.name, id), port("ssh")?, user).await?);
    }
    told.vscode = args.vscode.then(|| vscode(&shell.name));
    told.open(session, args);
    Ok(told)
}

/// The end of a container's log.
struct LastWords {
    /// Its last lines.
    said: String,
    /// The known error in it, with its fix.
    known: Option<String>,
}

/// Lines of a log that are shown, and that are searched for a known error.
const SHOWN_LINES: usize = 5;
const SEARCHED_LINES: u32 = 200;

/// The last lines of a container's log.
async fn last_words(containers: &dyn Containers, container: &str) -> LastWords {
    let mut bytes = Vec::new();
    let mut lines = containers.logs(container, false, Some(SEARCHED_LINES));
    let heard = async {
        while let Some(Ok(Output::Out(part) | Output::Err(part))) = lines.next().await {
            // The end of a log tells why it ends.
            bytes.extend_from_slice(&part[part.len().saturating_sub(MOST_SAID)..]);
            bytes.drain(..bytes.len().saturating_sub(MOST_SAID));
        }
    };
    // What was heard until then is shown.
    let _ = tokio::time::timeout(PATIENCE, heard).await;
    let log = String::from_utf8_lossy(&bytes);
    let lines: Vec<_> = log.trim().lines().collect();
    let said = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    LastWords { said, known: explained(&log) }
}

/// Waits until a port says what is expected.
async fn answers(address: IpAddr, port: u16, ask: &[u8], expected: &[u8]) -> Result<(), ShellError> {
    let heard = async {
        loop {
            if let Ok(mut stream) = TcpStream::connect((address, port)).await
                && stream.write_all(ask).await.is_ok()
            {
                let mut head = [0; 64];
                let read = stream.read(&mut head).await.unwrap_or(0);
                if head[..read].windows(expected.len()).any(|part| part == expected) {
                    return;
                }
            }
            tokio::time::sleep(READY.1).await;
        }
    };
    tokio::time::timeout(READY.0, heard).await.map_err(|_| ShellError::Silent { port })
}

/// Waits until somebody ends the call, or the container ends by itself.
pub(crate) async fn until_ended(
    session: &Session<'_>,
    name: &str,
    container: &str,
    signals: &mut Signals,
) -> Result<u8, CommandError> {
    let program = Program::Command(container.to_owned());
    let result = tokio::select! {
        () = signals.received() => Ok(0),
        ended = session.containers.exit_code(&program) => {
            let LastWords { said, known } = last_words(&*session.containers, container).await;
            Err(ShellError::Ended { code: ended?, said, known })
        }
    };
    session.containers.stop(container, 5).await?;
    forget_client(session.store.state_dir(), name)?;
    Ok(result?)
}
