//! What a mount gives a container beyond a project's own files.
//!
//! Pure: paths are given absolute and without links.

use std::fmt;

use camino::Utf8Path;

/// File names of engines' sockets.
const SOCKETS: [&str; 5] = ["docker.sock", "podman.sock", "containerd.sock", "crio.sock", "buildkitd.sock"];
/// Directories of engines' sockets.
const SOCKET_FOLDERS: [&str; 4] = ["/run", "/var/run", "/run/containerd", "/run/podman"];

/// What a mount gives away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountRisk {
    /// An engine's socket, or the directory of one.
    EngineSocket,
    /// Every file of the machine.
    Machine {
        /// Whether the container cannot write to it.
        read_only: bool,
    },
    /// The user's home directory, or one above it.
    Home {
        /// Whether the container cannot write to it.
        read_only: bool,
    },
}

impl MountRisk {
    /// Returns the risk of a mount; `socket` is the one of the engine in use.
    pub(crate) fn of(
        source: &Utf8Path,
        read_only: bool,
        home: Option<&Utf8Path>,
        socket: Option<&Utf8Path>,
    ) -> Option<Self> {
        let is_socket = socket == Some(source)
            || source.file_name().is_some_and(|name| SOCKETS.contains(&name))
            || SOCKET_FOLDERS.contains(&source.as_str());
        // A home of `/` is that of a system account.
        let home = home.filter(|home| home.is_absolute() && home.as_str() != "/");
        if source.as_str() == "/" {
            Some(Self::Machine { read_only })
        } else if is_socket || socket.is_some_and(|socket| socket.parent() == Some(source)) {
            Some(Self::EngineSocket)
        } else if home.is_some_and(|home| home.starts_with(source)) {
            Some(Self::Home { read_only })
        } else {
            None
        }
    }
}

/// A clause whose subject is a program in the container.
impl fmt::Display for MountRisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verbs = |read_only: bool| if read_only { "can read" } else { "can read and change" };
        match self {
            Self::EngineSocket => f.write_str("can use the engine, and be root on this machine by it"),
            Self::Machine { read_only } => {
                write!(f, "{} every file of this machine that you can", verbs(*read_only))
            }
            Self::Home { read_only } => {
                write!(f, "{} your home directory, with its keys and logins", verbs(*read_only))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn risk(source: &str) -> Option<String> {
        let (home, socket) = (Utf8Path::new("/home/me"), Utf8Path::new("/srv/engine/own.socket"));
        MountRisk::of(source.into(), false, Some(home), Some(socket)).map(|risk| risk.to_string())
    }

    #[test]
    fn root_of_the_machine_is_a_risk() {
        assert_eq!(risk("/").as_deref(), Some("can read and change every file of this machine that you can"));
        let read_only = MountRisk::of("/".into(), true, None, None).expect("a risk");
        assert_eq!(read_only.to_string(), "can read every file of this machine that you can");
    }

    #[test]
    fn home_directory_and_those_above_it_are_a_risk() {
        for source in ["/home/me", "/home"] {
            let text = risk(source).expect(source);
            assert_eq!(text, "can read and change your home directory, with its keys and logins");
        }
        assert_eq!(MountRisk::of("/srv".into(), false, Some("/".into()), None), None);
    }

    #[test]
    fn engine_sockets_and_their_directories_are_a_risk() {
        for source in [
            "/run/docker.sock",
            "/run/user/1000/podman/podman.sock",
            "/srv/engine/own.socket",
            "/srv/engine",
            "/run",
        ] {
            assert!(risk(source).is_some_and(|text| text.contains("root on this machine")), "{source}");
        }
    }

    #[test]
    fn project_and_data_directories_are_no_risk() {
        for source in ["/home/me/project", "/home/metoo", "/data", "/srv", "/run/media/me/disk"] {
            assert_eq!(risk(source), None, "{source}");
        }
    }
}
