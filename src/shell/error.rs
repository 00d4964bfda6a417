//! Why a shell was not opened, with what to do about it.

/// Why a shell was not opened.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// An option has a form that is not known.
    #[error("`{option} {found}` cannot be read: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// What was given.
        found: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// A folder to mount is not there.
    #[error("`{path}` cannot be mounted: it is not there")]
    NoFolder {
        /// The folder.
        path: String,
    },
    /// The whole file system as project folder.
    #[error("`{path}` cannot be the project folder")]
    BadProject {
        /// The folder.
        path: String,
    },
    /// A folder of this machine for an engine on another.
    #[error("`{option} {path}`: the engine is on another machine and cannot see a folder of this one")]
    RemoteFolder {
        /// The option.
        option: &'static str,
        /// The folder.
        path: String,
    },
    /// `--env NAME` of a variable that is not set.
    #[error("the variable `{name}` is not set here")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// `--require-gpu`, and there is none.
    #[error("there is no GPU for the container: {because}")]
    NoGpu {
        /// Why.
        because: String,
    },
    /// A container's settings cannot be changed while it runs.
    #[error("`{name}` runs already, and `{option}` cannot be changed while it runs")]
    Running {
        /// The container.
        name: String,
        /// The first such option.
        option: &'static str,
    },
    /// A name that is taken.
    #[error("there is a container `{name}` already")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// Nothing of that name runs.
    #[error("no container {what}")]
    NotFound {
        /// `is named …`, `runs for …`.
        what: String,
        /// Those that there are.
        known: Vec<String>,
    },
    /// The name fits several.
    #[error("several containers run here: {}", names.join(", "))]
    Several {
        /// Their names.
        names: Vec<String>,
    },
    /// `--ssh-agent` without an agent.
    #[error("there is no SSH agent to forward: SSH_AUTH_SOCK names no socket")]
    NoAgent,
    /// Others than this machine could reach it.
    #[error("`--bind {address}` opens it to every machine that reaches this one, without encryption")]
    Insecure {
        /// The address.
        address: String,
    },
    /// What is served would be open on every address of this machine.
    #[error("with `--network host` Jupyter and SSH are open to every machine that reaches this one")]
    HostNetwork,
    /// SSH for root.
    #[error("there is no SSH login for root, and you are root in the container")]
    SshAsRoot,
    /// SSH on an engine where everybody is root inside.
    #[error("there is no SSH login for root, which Docker without root makes of you in the container")]
    SshOnRootless,
    /// No public key was found.
    #[error("there is no SSH key to let in: the agent has none, and ~/.ssh holds no `*.pub`")]
    NoKeys,
    /// All ports are taken.
    #[error("no port from {first} on is free")]
    NoPort {
        /// The first that was tried.
        first: u16,
    },
    /// A port that is to lead into a container on another machine.
    #[error("port {address} of this machine cannot lead into the container")]
    PortTaken {
        /// Address and port.
        address: String,
        /// Why.
        #[source]
        cause: std::io::Error,
    },
    /// A service does not answer.
    #[error("nothing answers on port {port}")]
    Silent {
        /// Its port.
        port: u16,
    },
    /// A service ended.
    #[error("the container ended by itself with exit code {code}{}{said}", if said.is_empty() { "" } else { ":\n" })]
    Ended {
        /// Its exit code.
        code: i64,
        /// The last lines of its log.
        said: String,
    },
    /// The engine ended while a program was joined; what ran may run on.
    #[error("the engine went away while the program ran: {cause}")]
    EngineGone {
        /// What the connection said.
        cause: String,
    },
    /// The engine.
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
    /// The terminal did not take its mode, or signals cannot be watched.
    #[error("the terminal cannot be used: {cause}")]
    Terminal {
        /// What the system said.
        cause: std::io::Error,
    },
}

impl ShellError {
    /// What the user can do.
    pub fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Option { option: "--mount", .. } => {
                "give `SRC:DST`, or `SRC:DST:ro` for reading only".to_owned()
            }
            Self::Option { option: "--volume", .. } => {
                "give `NAME:DST`, with letters, digits, `_`, `.`, `-` in NAME".to_owned()
            }
            Self::Option { option: "--data", .. } => {
                "give `SRC`, seen as /data/NAME, or `SRC:DST`".to_owned()
            }
            Self::Option { option: "--port", .. } => {
                "give `HOST:CONTAINER`, such as 6006:6006, or `IP:HOST:CONTAINER`".to_owned()
            }
            Self::Option { option: "--env-file", .. } => {
                "give one `NAME=VALUE` a line; `#` begins a comment".to_owned()
            }
            Self::Option { option: "--env", .. } => {
                "give `NAME=VALUE`, or `NAME` to pass this machine's".to_owned()
            }
            Self::Option { option: "--name", .. } => {
                "use letters, digits, `_`, `.` and `-`, and begin with a letter or digit".to_owned()
            }
            Self::Option { option: "--cpus", .. } => "give a number of processors, such as 2.5".to_owned(),
            Self::Option { .. } => "give a size such as 512m or 64g".to_owned(),
            Self::NoFolder { .. } => "make it first, or name another".to_owned(),
            Self::BadProject { .. } => "change to the folder of your project".to_owned(),
            Self::RemoteFolder { .. } => {
                "copy it there and name it as the engine's machine sees it with --volume, or send it: \
                 `tar c FOLDER | envforge shell … -- tar x`"
                    .to_owned()
            }
            Self::NoVariable { name } => format!("set it, or give `--env {name}=VALUE`"),
            Self::NoGpu { .. } => {
                "see `envforge plan` for what the image needs, or leave out --require-gpu to use the CPU"
                    .to_owned()
            }
            Self::Running { name, .. } => {
                format!("end it first with `envforge stop {name}`, or start another with --new")
            }
            Self::NameTaken { name } => {
                format!("name another with --name, or remove it with `envforge stop {name}`")
            }
            Self::NotFound { known, .. } if known.is_empty() => {
                "start one: `envforge shell SPEC --detach`".to_owned()
            }
            Self::NotFound { known, .. } => format!("there are: {}", known.join(", ")),
            Self::Several { .. } => "name one: `envforge shell NAME --attach`".to_owned(),
            Self::NoAgent => {
                "start one (`eval $(ssh-agent)`; `ssh-add`), or leave out --ssh-agent".to_owned()
            }
            Self::Insecure { .. } => {
                "leave --bind out and tunnel from the other machine: `ssh -L 8888:127.0.0.1:8888 THIS-MACHINE`; \
                 if you mean it, add --insecure"
                    .to_owned()
            }
            Self::HostNetwork => "leave out --network host; if you mean it, add --insecure".to_owned(),
            Self::SshAsRoot => "call envforge as an ordinary user, or use a terminal: `envforge shell`".to_owned(),
            Self::SshOnRootless => {
                "use a terminal (`envforge shell`) or --vscode, or Podman, where you are yourself inside".to_owned()
            }
            Self::NoKeys => "make one with `ssh-keygen`, or name public keys with --authorized-keys FILE".to_owned(),
            Self::PortTaken { .. } => "end what listens there (`ss -ltn`), or name another port with --port HOST:CONTAINER".to_owned(),
            Self::NoPort { .. } => "end what listens there (`ss -ltn`)".to_owned(),
            Self::Silent { .. } => "see `envforge ps` and `envforge logs NAME` for why".to_owned(),
            Self::EngineGone { .. } => {
                "`envforge ps` tells whether it runs on; `envforge logs NAME` and `envforge shell NAME --attach` lead back to it"
                    .to_owned()
            }
            Self::Ended { .. } => "an image of envforge has both; run the service by hand with `-- CMD` to see why it ended".to_owned(),
            Self::Engine(error) => return error.hints(),
            Self::Terminal { .. } => return Vec::new(),
        };
        vec![hint]
    }

    /// The program's exit code, where it is not that of `shell`.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::NotFound { .. } | Self::NoGpu { .. } => 1,
            Self::Terminal { .. }
            | Self::NoPort { .. }
            | Self::PortTaken { .. }
            | Self::Silent { .. }
            | Self::EngineGone { .. }
            | Self::Ended { .. } => 3,
            Self::Engine(error) => error.exit_code(),
            _ => 2,
        }
    }
}
