//! Where an engine listens: a socket file, a port with or without TLS, or another machine's docker client by ssh.
//!
//! Pure: reads text only.

use std::fmt;

use camino::Utf8PathBuf;

use super::EngineError;

/// Where the daemon listens if nothing else is said.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Certificate files of a connection with TLS, as docker names them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct TlsFiles {
    /// Who may sign the server's certificate; `None`: whom this machine trusts.
    pub(super) ca: Option<Utf8PathBuf>,
    /// Our certificate and its key, if the server asks for one.
    pub(super) identity: Option<(Utf8PathBuf, Utf8PathBuf)>,
}

/// Another machine, reached by its ssh server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SshTarget {
    pub(super) user: Option<String>,
    pub(super) host: String,
    pub(super) port: Option<u16>,
    /// The socket over there; `None`: what its docker client uses.
    pub(super) socket: Option<String>,
}

/// Where the daemon listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// A socket file of this machine.
    Unix(Utf8PathBuf),
    /// `host:port`, unencrypted.
    Tcp(String),
    /// `host:port` with TLS.
    Tls(String, TlsFiles),
    /// By ssh.
    Ssh(SshTarget),
}

impl Default for Address {
    fn default() -> Self {
        Self::Unix(DEFAULT_SOCKET.into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{path}"),
            Self::Tcp(host) | Self::Tls(host, _) => write!(f, "tcp://{host}"),
            Self::Ssh(target) => {
                f.write_str("ssh://")?;
                if let Some(user) = &target.user {
                    write!(f, "{user}@")?;
                }
                f.write_str(&target.host)?;
                if let Some(port) = target.port {
                    write!(f, ":{port}")?;
                }
                f.write_str(target.socket.as_deref().unwrap_or_default())
            }
        }
    }
}

impl Address {
    /// Reads an address as docker writes it. A tcp address is spoken to with TLS where there are files for it.
    pub(super) fn parse(text: &str, tls: Option<TlsFiles>) -> Result<Self, EngineError> {
        let bad = |reason| EngineError::BadAddress { address: hide_password(text), reason };
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err(bad("the path of a unix socket must be absolute")),
            Some((scheme @ ("tcp" | "http" | "https"), host)) => {
                let host = host.trim_end_matches('/');
                if host.contains('@') || host.contains('/') || host.is_empty() {
                    return Err(bad("a tcp address is `tcp://host:port` and nothing more"));
                }
                let tls = if scheme == "https" { Some(tls.unwrap_or_default()) } else { tls };
                let named = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
                let host = match (named, &tls) {
                    (true, _) => host.to_owned(),
                    (false, Some(_)) => format!("{host}:2376"),
                    (false, None) => format!("{host}:2375"),
                };
                Ok(match tls {
                    Some(files) => Self::Tls(host, files),
                    None => Self::Tcp(host),
                })
            }
            Some(("ssh", rest)) => ssh_target(rest).map(Self::Ssh).map_err(bad),
            _ => Err(bad("only unix://, tcp:// and ssh:// are spoken")),
        }
    }

    /// True if the daemon runs on this machine, as far as the address tells.
    pub(super) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

/// `user:password@host` without the password.
fn hide_password(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((before, host)) => {
            let start = before.find("://").map_or(0, |at| at + 3);
            match before[start..].split_once(':') {
                Some((user, _)) => format!("{}{user}:…@{host}", &before[..start]),
                None => text.to_owned(),
            }
        }
        None => text.to_owned(),
    }
}

fn ssh_target(rest: &str) -> Result<SshTarget, &'static str> {
    let (place, path) = rest.split_once('/').map_or((rest, ""), |(place, path)| (place, path));
    let (user, host) = match place.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, place),
    };
    let (host, port) = match host.rsplit_once(':') {
        Some((host, port)) => {
            (host, Some(port.parse().map_err(|_| "the port of an ssh address is a number")?))
        }
        None => (host, None),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err("an ssh address holds no password; use a key");
    }
    // ssh would read a dash as an option.
    if host.is_empty()
        || host.starts_with('-')
        || user.is_some_and(|user| user.starts_with('-') || user.is_empty())
    {
        return Err("an ssh address is `ssh://user@host:port`");
    }
    let socket = (!path.is_empty()).then(|| format!("/{path}"));
    Ok(SshTarget { user: user.map(str::to_owned), host: host.to_owned(), port, socket })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Address, EngineError> {
        Address::parse(text, None)
    }

    #[test]
    fn addresses_read_as_docker_writes_them() {
        for text in ["unix:///run/a.sock", "tcp://10.0.0.1:2376", "ssh://me@box", "ssh://box:2222/run/d.sock"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("tcp://box").unwrap().to_string(), "tcp://box:2375");
    }

    #[test]
    fn tls_changes_the_port_and_https_asks_for_it() {
        let tls = || Some(TlsFiles::default());
        assert_eq!(
            Address::parse("tcp://box", tls()).unwrap(),
            Address::Tls("box:2376".to_owned(), TlsFiles::default())
        );
        assert!(matches!(parse("https://box:9").unwrap(), Address::Tls(host, _) if host == "box:9"));
        // A socket file is as private as it gets.
        assert!(matches!(Address::parse("unix:///a", tls()).unwrap(), Address::Unix(_)));
    }

    #[test]
    fn addresses_not_spoken_say_so_and_are_the_callers_fault() {
        let texts = [
            "npipe:////x",
            "unix://relative",
            "box:2375",
            "tcp://",
            "ssh://",
            "ssh://-oProxyCommand=x",
            "ssh://box:x",
        ];
        for text in texts {
            let error = parse(text).unwrap_err();
            assert!(matches!(&error, EngineError::BadAddress { address, .. } if address == text), "{error}");
            assert_eq!(error.exit_code(), 2);
            assert_eq!(error.hints().len(), 1);
        }
    }

    #[test]
    fn a_password_in_an_address_is_not_repeated() {
        for text in ["ssh://me:hunter2@box", "tcp://me:hunter2@box:1"] {
            let text = parse(text).unwrap_err().to_string();
            assert!(!text.contains("hunter2") && text.contains("me:…@box"), "{text}");
        }
    }
}
