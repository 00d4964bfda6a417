//! Why the engine did not do what was asked, with what to do about it.

/// Why the engine did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// No engine answered.
    #[error("no container engine answers at `{address}`: {cause}")]
    Unreachable {
        /// Where it was looked for.
        address: String,
        /// What the connection said.
        cause: String,
    },
    /// The socket is there but closed to this user.
    #[error("no permission on the engine's socket `{address}`")]
    NoPermission {
        /// The socket.
        address: String,
    },
    /// The address has a form that is not spoken.
    #[error("the engine address `{address}` cannot be used: {reason}")]
    BadAddress {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A Docker context was named that is not there or cannot be read.
    #[error("no usable docker context `{name}`: {cause}")]
    BadContext {
        /// Its name.
        name: String,
        /// What went wrong.
        cause: String,
    },
    /// The engine works on a processor that envforge has no images for.
    #[error("the engine at `{address}` runs on `{machine}`, which is not supported")]
    Machine {
        /// Where it is.
        address: String,
        /// What it said.
        machine: String,
    },
    /// A secret is larger than the engine takes.
    #[error("secret `{id}` has {size} bytes; the engine takes {limit}")]
    SecretTooLarge {
        /// Its id.
        id: String,
        /// Its size.
        size: usize,
        /// The most the engine takes.
        limit: usize,
    },
    /// The image is not there.
    #[error("the engine has no image `{reference}`")]
    NoSuchImage {
        /// What was asked for.
        reference: String,
    },
    /// A build step failed.
    #[error("build step failed: {text}")]
    BuildFailed {
        /// The engine's words.
        text: String,
        /// The last lines the step printed.
        output: Vec<String>,
    },
    /// The disk of the engine is full.
    #[error("the engine's disk is full: {text}")]
    DiskFull {
        /// The engine's words.
        text: String,
    },
    /// The connection ended in the middle.
    #[error("the engine went away during {during}: {cause}")]
    Lost {
        /// What was going on.
        during: String,
        /// What the connection said.
        cause: String,
    },
    /// The engine answered with an error.
    #[error("the engine refused {during}: {text}")]
    Refused {
        /// What was asked.
        during: String,
        /// The engine's words.
        text: String,
    },
    /// A local file could not be read or written.
    #[error(transparent)]
    File(#[from] std::io::Error),
}

impl EngineError {
    /// What the user can do about it.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Unreachable { address, .. } if address.starts_with("unix://") => {
                "start it with `systemctl start docker`, or name another with DOCKER_HOST or `docker context use`"
            }
            Self::Unreachable { .. } => {
                "check that the engine listens there, or name another with DOCKER_HOST or `docker context use`"
            }
            Self::NoPermission { .. } => {
                "join the group of the socket (`sudo usermod -aG docker $USER`, then log in again), or use a rootless engine through DOCKER_HOST"
            }
            Self::BadAddress { .. } => "give DOCKER_HOST as `unix:///path/to.sock` or `tcp://host:port`",
            Self::BadContext { .. } => "list the contexts with `docker context ls`, or unset DOCKER_CONTEXT",
            Self::Machine { .. } => "use an engine on x86_64 or aarch64",
            Self::SecretTooLarge { .. } => "give a smaller certificate bundle or credential",
            Self::NoSuchImage { .. } => "pull or build it first",
            Self::DiskFull { .. } => {
                "free space on the engine's disk (`docker system df` shows what takes it), then run the same command again"
            }
            Self::Lost { .. } => {
                "see the engine's log (`journalctl -u docker`), then run the same command again"
            }
            Self::BuildFailed { .. } | Self::Refused { .. } | Self::File(_) => return Vec::new(),
        };
        vec![hint.to_owned()]
    }

    /// The program's exit code: 2 for a wrong address, context or secret, 3 for all that failed outside.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::BadAddress { .. } | Self::BadContext { .. } | Self::SecretTooLarge { .. } => 2,
            _ => 3,
        }
    }
}
