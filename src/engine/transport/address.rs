//! The address of an engine: a socket file, a port with or without TLS, or another machine's docker client over ssh.
//!
//! Pure: parses text only.

use std::fmt;

use camino::Utf8PathBuf;

use crate::engine::error::EngineError;

/// The default socket of the daemon.
const DEFAULT_SOCKET: &str = "/var/run/docker.sock";

/// Certificate files of a TLS connection, under Docker's names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in crate::engine) struct TlsFiles {
    /// The CA of the server's certificate; `None`: the machine's trusted CAs.
    pub(in crate::engine) ca: Option<Utf8PathBuf>,
    /// The client certificate and its key, if the server requires one.
    pub(in crate::engine) identity: Option<(Utf8PathBuf, Utf8PathBuf)>,
}

/// Another machine, connected over ssh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct SshTarget {
    pub(in crate::engine) user: Option<String>,
    pub(in crate::engine) host: String,
    pub(in crate::engine) port: Option<u16>,
    /// The socket on that machine; `None`: its docker client's.
    pub(in crate::engine) socket: Option<String>,
}

/// The address of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Address {
    /// A socket file of this machine.
    Unix(Utf8PathBuf),
    /// `host:port`, unencrypted.
    Tcp(String),
    /// `host:port` with TLS.
    Tls(String, TlsFiles),
    /// ssh.
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
    /// Parses an address in Docker's form. A tcp address uses TLS if there are files for it.
    pub(in crate::engine) fn parse(text: &str, tls: Option<TlsFiles>) -> Result<Self, EngineError> {
        let bad = |reason| EngineError::BadAddress { address: hide_password(text), reason };
        match text.split_once("://") {
            Some(("unix", path)) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(("unix", _)) => Err(bad("the path of a unix socket must be absolute")),
            Some((scheme @ ("tcp" | "http" | "https"), host)) => {
                let host = host.trim_end_matches('/');
                if host.contains('@') || host.contains('/') || host.is_empty() {
                    return Err(bad("a tcp address has the form `tcp://host:port`"));
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
            _ => Err(bad("unsupported scheme: use unix://, tcp:// or ssh://")),
        }
    }

    /// Returns whether the daemon runs on this machine, judged by the address.
    pub(in crate::engine) fn is_local(&self) -> bool {
        matches!(self, Self::Unix(_))
    }
}

/// Removes the password from `user:password@host`.
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
            (host, Some(port.parse().map_err(|_| "the port of an ssh address must be a number")?))
        }
        None => (host, None),
    };
    if user.is_some_and(|user| user.contains(':')) {
        return Err("an ssh address cannot contain a password; use a key");
    }
    // ssh would parse a dash as an option.
    if host.is_empty()
        || host.starts_with('-')
        || user.is_some_and(|user| user.starts_with('-') || user.is_empty())
    {
        return Err("an ssh address has the form `ssh://user@host:port`");
    }
    let socket = (!path.is_empty()).then(|| format!("/{path}"));
    Ok(SshTarget { user: user.map(str::to_owned), host: host.to_owned(), port, socket })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};

    fn parse(text: &str) -> Result<Address, EngineError> {
        Address::parse(text, None)
    }

    #[test]
    fn parse_accepts_dockers_addresses() {
        for text in ["unix:///run/a.sock", "tcp://10.0.0.1:2376", "ssh://me@box", "ssh://box:2222/run/d.sock"]
        {
            assert_eq!(parse(text).unwrap().to_string(), text);
        }
        assert_eq!(parse("tcp://box").unwrap().to_string(), "tcp://box:2375");
    }

    #[test]
    fn tls_changes_the_port_and_https_implies_tls() {
        let tls = || Some(TlsFiles::default());
        assert_eq!(
            Address::parse("tcp://box", tls()).unwrap(),
            Address::Tls("box:2376".to_owned(), TlsFiles::default())
        );
        assert!(matches!(parse("https://box:9").unwrap(), Address::Tls(host, _) if host == "box:9"));
        // A socket file needs no TLS.
        assert!(matches!(Address::parse("unix:///a", tls()).unwrap(), Address::Unix(_)));
    }

    #[test]
    fn unsupported_address_is_a_usage_error() {
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
            assert_eq!(error.exit(), Exit::Usage);
            assert_eq!(error.hints().len(), 1);
        }
    }

    #[test]
    fn error_hides_a_password() {
        for text in ["ssh://me:hunter2@box", "tcp://me:hunter2@box:1"] {
            let text = parse(text).unwrap_err().to_string();
            assert!(!text.contains("hunter2") && text.contains("me:…@box"), "{text}");
        }
    }
}
