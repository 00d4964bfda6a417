//! What a project requests of the machine that uses it, beyond its own image and folder. Pure: paths are resolved by
//! the caller.

use std::fmt;
use std::net::IpAddr;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use crate::model::sha256::sha256_hex;

/// The version of what is hashed.
const FORMAT: u32 = 1;

/// One request that needs the user's agreement.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostRequest {
    /// A mount of a path outside the project.
    Mount {
        /// The path on the host, without links.
        source: Utf8PathBuf,
        /// The path in the container.
        target: String,
        /// Whether the container cannot write to it.
        read_only: bool,
    },
    /// A port that other machines can reach.
    Port {
        /// The address on the host.
        address: IpAddr,
        /// The port on the host.
        host: u16,
        /// The port of the container.
        container: u16,
    },
    /// A secret of the user's configuration for a command of the build.
    Secret {
        /// Its name.
        name: String,
        /// The command that reads it.
        command: String,
    },
    /// The login of the user's proxy for the commands of the build.
    ProxyLogin,
    /// An apt source of the base that the project names, which is not the distribution's.
    AptSource {
        /// Its address.
        address: String,
    },
    /// A variable of the user for the container.
    Variable {
        /// Its name.
        name: String,
    },
    /// A file of variables outside the project.
    EnvFile {
        /// The path on the host, without links.
        path: Utf8PathBuf,
    },
    /// A named volume, which other projects may use, too.
    Volume {
        /// Its name.
        name: String,
        /// The path in the container.
        target: String,
    },
    /// The user's public SSH keys, which name the user.
    PublicKeys,
    /// A network with other members than the container.
    Network {
        /// `host`, or the name of an engine's network.
        name: String,
    },
}

impl HostRequest {
    /// Returns the request for a mount, unless the source is the project's folder or below it.
    pub fn of_mount(folder: &Utf8Path, source: Utf8PathBuf, target: String, read_only: bool) -> Option<Self> {
        is_outside(folder, &source).then_some(Self::Mount { source, target, read_only })
    }

    /// Returns the request for a file of variables, unless it lies in the project's folder.
    pub fn of_env_file(folder: &Utf8Path, path: Utf8PathBuf) -> Option<Self> {
        is_outside(folder, &path).then_some(Self::EnvFile { path })
    }

    /// Returns the request for a network, unless it is one of the container's own.
    pub fn of_network(name: &str) -> Option<Self> {
        (!["bridge", "none"].contains(&name)).then(|| Self::Network { name: name.to_owned() })
    }

    /// Returns the request for a port, unless only this machine can reach it.
    pub fn of_port(address: IpAddr, host: u16, container: u16) -> Option<Self> {
        (!address.is_loopback()).then_some(Self::Port { address, host, container })
    }
}

fn is_outside(folder: &Utf8Path, path: &Utf8Path) -> bool {
    path.components().any(|part| part.as_str() == "..") || !path.starts_with(folder)
}

/// One line for the user. The project's text is escaped: it must not move the cursor of the terminal that asks.
impl fmt::Display for HostRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount { source, target, read_only } => {
                let access = if *read_only { "read-only" } else { "writable" };
                let (source, target) = (source.as_str().escape_debug(), target.escape_debug());
                write!(f, "mount `{source}` at `{target}` ({access})")
            }
            Self::Port { address, host, container } => {
                write!(f, "open port {host} on {address} to other machines (container port {container})")
            }
            Self::AptSource { address } => {
                write!(f, "read the apt source `{}` of its base", address.escape_debug())
            }
            Self::Variable { name } => write!(f, "read your variable `{}`", name.escape_debug()),
            Self::EnvFile { path } => {
                write!(f, "read the variables of `{}`", path.as_str().escape_debug())
            }
            Self::Volume { name, target } => {
                write!(f, "mount volume `{}` at `{}`", name.escape_debug(), target.escape_debug())
            }
            Self::PublicKeys => f.write_str("copy your public SSH keys into its container"),
            Self::Network { name } if name == "host" => {
                f.write_str("use the network of this machine, with all its local services")
            }
            Self::Network { name } => write!(f, "join network `{}`", name.escape_debug()),
            Self::ProxyLogin => f.write_str("read the login of your proxy in the commands of `run`"),
            Self::Secret { name, command } => {
                write!(f, "read secret `{}` in `{}`", name.escape_debug(), command.escape_debug())
            }
        }
    }
}

/// Returns the SHA-256 that stands for these requests of the project in that folder. `commands` are those that run in
/// the same build: an earlier one can change what a later one does with its secret.
pub fn requests_digest(folder: &Utf8Path, requests: &[HostRequest], commands: &[&str]) -> String {
    let mut requests: Vec<_> = requests.iter().collect();
    requests.sort();
    let content = serde_json::to_string(&(FORMAT, folder, requests, commands));
    sha256_hex(content.expect("strings and numbers are JSON").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mount(source: &str) -> Option<HostRequest> {
        HostRequest::of_mount(Utf8Path::new("/w/p"), source.into(), "/x".to_owned(), false)
    }

    #[test]
    fn only_paths_outside_the_project_need_agreement() {
        assert_eq!((mount("/w/p"), mount("/w/p/data")), (None, None));
        for outside in ["/", "/w", "/w/pq", "/etc", "/w/p/../q", "relative"] {
            assert!(mount(outside).is_some(), "{outside}");
        }
    }

    #[test]
    fn only_ports_beyond_the_loopback_need_agreement() {
        let port = |address: &str| HostRequest::of_port(address.parse().expect("an address"), 80, 80);
        assert!(port("127.0.0.1").is_none() && port("127.8.8.8").is_none() && port("::1").is_none());
        assert!(port("0.0.0.0").is_some() && port("::").is_some() && port("10.0.0.1").is_some());
    }

    #[test]
    fn networks_of_others_and_files_outside_need_agreement() {
        let network = |name: &str| HostRequest::of_network(name).is_some();
        assert!(!network("bridge") && !network("none"));
        assert!(network("host") && network("default") && network("container:db") && network(""));
        let file = |path: &str| HostRequest::of_env_file(Utf8Path::new("/w/p"), path.into()).is_some();
        assert!(!file("/w/p/.env") && file("/w/.env") && file("/w/p/../.env"));
    }

    #[test]
    fn text_of_the_project_cannot_control_the_terminal() {
        let name = "a\u{1b}[2J\u{202e}".to_owned();
        let text = HostRequest::Secret { name, command: "x\ny".to_owned() }.to_string();
        assert!(!text.contains(['\u{1b}', '\n', '\u{202e}']), "{text:?}");
        assert!(text.contains("u{1b}[2J") && text.contains("x\\ny"), "{text}");
    }

    #[test]
    fn digest_depends_on_folder_requests_and_commands_but_not_on_order() {
        let (one, two) = (mount("/a").expect("outside"), mount("/b").expect("outside"));
        let digest = |folder: &str, requests: &[HostRequest], commands: &[&str]| {
            requests_digest(Utf8Path::new(folder), requests, commands)
        };
        let first = digest("/w/p", &[one.clone(), two.clone()], &["a"]);
        assert_eq!(first, digest("/w/p", &[two.clone(), one.clone()], &["a"]));
        assert_ne!(first, digest("/w/q", &[one.clone(), two.clone()], &["a"]));
        assert_ne!(first, digest("/w/p", std::slice::from_ref(&one), &["a"]));
        assert_ne!(first, digest("/w/p", &[one, two], &["b"]));
    }
}
