//! Errors of `shell`, with their exit codes and hints.

use crate::failure::{Exit, Failure};

/// An error of `shell`.
#[derive(Debug, thiserror::Error)]
pub enum ShellError {
    /// An invalid option value.
    #[error("invalid value `{found}` for `{option}`: {why}")]
    Option {
        /// The option.
        option: &'static str,
        /// The value.
        found: String,
        /// The problem.
        why: &'static str,
    },
    /// A mount in an image's place, as docker's `-v` takes it.
    #[error("`{text}` is not an image")]
    MountAsImage {
        /// The text.
        text: String,
        /// The hint that names its option.
        mount: String,
        /// Whether `-v` was given.
        verbose: bool,
    },
    /// An image where the command of the project begins, as in `docker run`.
    #[error("`{image}` is an image, not a command of the project")]
    ImageAsCommand {
        /// The image.
        image: String,
        /// The words after it.
        command: String,
    },
    /// A missing directory to mount.
    #[error("cannot mount `{path}`: no such file or directory")]
    NoFolder {
        /// The folder.
        path: String,
    },
    /// A folder that a project names is another one than when it was judged.
    #[error(
        "cannot mount `{path}`: it was changed while the container was prepared, and leads to `{found}` now"
    )]
    MovedFolder {
        /// The folder that was judged.
        path: String,
        /// Where it leads.
        found: String,
    },
    /// A variable of a project's file that the engine reads as a request for devices.
    #[error("variable `{name}` in `{file}` is set by envforge")]
    OwnVariable {
        /// The variable.
        name: String,
        /// The file.
        file: String,
    },
    /// A folder below another one that programs of the container can change.
    #[error(
        "cannot mount `{path}`: a program in the container can replace it through the mount of `{above}`"
    )]
    FolderBelowMount {
        /// The folder.
        path: String,
        /// The other one.
        above: String,
    },
    /// A folder of the project at a path that cannot be a link.
    #[error(
        "cannot mount `{path}` at `{target}`: a folder of the project is a link there, and `{target}` is in a mount"
    )]
    LinkInMount {
        /// The folder.
        path: String,
        /// The path in the container.
        target: String,
    },
    /// The root directory as project directory.
    #[error("cannot use `{path}` as the project directory")]
    BadProject {
        /// The folder.
        path: String,
    },
    /// A directory of this machine with a remote engine.
    #[error(
        "cannot use `{option} {path}`: the engine is on another machine and cannot access directories of this one"
    )]
    RemoteFolder {
        /// The option.
        option: &'static str,
        /// The folder.
        path: String,
    },
    /// `--env NAME` of an unset variable.
    #[error("environment variable `{name}` not found")]
    NoVariable {
        /// Its name.
        name: String,
    },
    /// `--require-gpu` without a GPU.
    #[error("no GPU available for the container: {because}")]
    NoGpu {
        /// The cause.
        because: String,
    },
    /// A changed setting of a running container.
    #[error("cannot change `{option}`: `{name}` is running")]
    Running {
        /// The container.
        name: String,
        /// The first such option.
        option: &'static str,
    },
    /// A name in use.
    #[error("container `{name}` already exists")]
    NameTaken {
        /// The name.
        name: String,
    },
    /// A missing container.
    #[error("no container {what}")]
    NotFound {
        /// `is named …`, `runs for …`.
        what: String,
        /// The existing containers.
        known: Vec<String>,
    },
    /// An ambiguous selection.
    #[error("several containers are running: {}", names.join(", "))]
    Several {
        /// Their names.
        names: Vec<String>,
    },
    /// `--ssh-agent` without an agent.
    #[error("SSH agent not found: SSH_AUTH_SOCK is not a socket")]
    NoAgent,
    /// A service open to other machines.
    #[error("`--bind {address}` exposes the service to other machines without encryption")]
    Insecure {
        /// The address.
        address: String,
    },
    /// A service open on every address of this machine.
    #[error("`--network host` exposes Jupyter and SSH to other machines")]
    HostNetwork,
    /// SSH for root on an address of the network.
    #[error(
        "cannot open SSH for root on `{address}`: the container's user is root, whose login stays on this machine"
    )]
    SshAsRoot {
        /// The address.
        address: String,
    },
    /// SSH on a rootless engine, where the user is root inside.
    #[error("SSH requires a user other than root, but rootless Docker maps you to root in the container")]
    SshOnRootless,
    /// No public key was found.
    #[error("no SSH public key found: the agent is empty and ~/.ssh has no `*.pub`")]
    NoKeys,
    /// No free port.
    #[error("no free port at or above {first}")]
    NoPort {
        /// The first candidate.
        first: u16,
    },
    /// A local port for a remote container in use.
    #[error("cannot listen on {address}")]
    PortTaken {
        /// Address and port.
        address: String,
        /// The cause.
        #[source]
        cause: std::io::Error,
    },
    /// A service without a response.
    #[error("no response on port {port}")]
    Silent {
        /// Its port.
        port: u16,
    },
    /// What a container says of its services is no answer.
    #[error("unexpected answer from container {container}: {why}")]
    BadAnswer {
        /// Its short id.
        container: String,
        /// Why.
        why: String,
    },
    /// An ended service.
    #[error("container exited with code {code}{}{said}", if said.is_empty() { "" } else { ":\n" })]
    Ended {
        /// Its exit code.
        code: i64,
        /// The last lines of its log.
        said: String,
        /// The known error in the log, with its fix.
        known: Option<String>,
    },
    /// A lost connection while attached; the program may still run.
    #[error("lost connection to the engine: {cause}")]
    EngineGone {
        /// The cause.
        cause: String,
    },
    /// An error of the engine.
    #[error(transparent)]
    Engine(#[from] crate::engine::EngineError),
    /// A failed change of the terminal's mode or signals.
    #[error("cannot use the terminal: {cause}")]
    Terminal {
        /// The cause.
        cause: std::io::Error,
    },
}

impl Failure for ShellError {
    fn exit(&self) -> Exit {
        match self {
            Self::NotFound { .. } | Self::NoGpu { .. } => Exit::No,
            Self::Terminal { .. }
            | Self::NoPort { .. }
            | Self::PortTaken { .. }
            | Self::Silent { .. }
            | Self::BadAnswer { .. }
            | Self::EngineGone { .. }
            | Self::Ended { .. } => Exit::Outside,
            Self::Engine(error) => error.exit(),
            Self::Option { .. }
            | Self::MountAsImage { .. }
            | Self::ImageAsCommand { .. }
            | Self::NoFolder { .. }
            | Self::MovedFolder { .. }
            | Self::OwnVariable { .. }
            | Self::FolderBelowMount { .. }
            | Self::LinkInMount { .. }
            | Self::BadProject { .. }
            | Self::RemoteFolder { .. }
            | Self::NoVariable { .. }
            | Self::Running { .. }
            | Self::NameTaken { .. }
            | Self::Several { .. }
            | Self::NoAgent
            | Self::Insecure { .. }
            | Self::HostNetwork
            | Self::SshAsRoot { .. }
            | Self::SshOnRootless
            | Self::NoKeys => Exit::Usage,
        }
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::Option { option: "--mount", .. } => {
                "use `SRC:DST`, or `SRC:DST:ro` for read-only".to_owned()
            }
            Self::Option { option: "--volume", .. } => {
                "use `NAME:DST`, with letters, digits, `_`, `.`, `-` in NAME".to_owned()
            }
            Self::Option { option: "--data", .. } => {
                "use `SRC` (mounted at /data/NAME) or `SRC:DST`".to_owned()
            }
            Self::Option { option: "--port", .. } => {
                "use `HOST:CONTAINER`, such as 6006:6006, or `IP:HOST:CONTAINER`".to_owned()
            }
            Self::Option { option: "--env-file", .. } => {
                "write one `NAME=VALUE` per line; `#` starts a comment".to_owned()
            }
            Self::Option { option: "--env", .. } => {
                "use `NAME=VALUE`, or `NAME` to pass the value of this machine".to_owned()
            }
            Self::Option { option: "--name", .. } => {
                "use letters, digits, `_`, `.` and `-`, starting with a letter or digit".to_owned()
            }
            Self::Option { option: "--cpus", .. } => "use a number of processors, such as 2.5".to_owned(),
            Self::Option { .. } => "use a size such as 512m or 64g".to_owned(),
            Self::MountAsImage { mount, verbose, .. } => {
                mount.clone() + if *verbose { " (`-v` is --verbose)" } else { "" }
            }
            Self::ImageAsCommand { image, command } => {
                format!("run it in that image: `envforge shell {image} -- {command}`")
            }
            Self::NoFolder { .. } => "create the directory first, or use another one".to_owned(),
            Self::OwnVariable { .. } => "remove it, or pass it yourself: `-e NAME=VALUE`".to_owned(),
            Self::MovedFolder { .. } => {
                "end what changes the folder (another container of the project may), then run it again".to_owned()
            }
            Self::FolderBelowMount { .. } => "mount the other one read-only, or only one of them".to_owned(),
            Self::LinkInMount { .. } => {
                "use another path in the container: the project is whole at /workspace".to_owned()
            }
            Self::BadProject { .. } => "change to your project directory".to_owned(),
            Self::RemoteFolder { .. } => {
                "copy the data to a volume and mount it with --volume, or send it: \
                 `tar c DIR | envforge shell … -- tar x`"
                    .to_owned()
            }
            Self::NoVariable { name } => format!("set the variable, or use `--env {name}=VALUE`"),
            Self::NoGpu { .. } => {
                "run `envforge plan` to see the image's requirements, or omit --require-gpu to use the CPU"
                    .to_owned()
            }
            Self::Running { name, .. } => {
                format!("stop it first with `envforge stop {name}`, or start another one with --new")
            }
            Self::NameTaken { name } => {
                format!("select another name with --name, or remove the container with `envforge stop {name}`")
            }
            Self::NotFound { known, .. } if known.is_empty() => {
                "start a container with `envforge shell SPEC --detach`".to_owned()
            }
            Self::NotFound { known, .. } => format!("use one of: {}", known.join(", ")),
            Self::Several { .. } => "select one with `envforge shell NAME --attach`".to_owned(),
            Self::NoAgent => {
                "start an agent (`eval $(ssh-agent)`; `ssh-add`), or omit --ssh-agent".to_owned()
            }
            Self::Insecure { .. } => {
                "omit --bind and open a tunnel from the other machine: `ssh -L 8888:127.0.0.1:8888 THIS-MACHINE`; \
                 add --insecure to expose it anyway"
                    .to_owned()
            }
            Self::HostNetwork => "omit --network host, or add --insecure to expose them anyway".to_owned(),
            Self::SshAsRoot { .. } => "omit --bind and go through this machine (`ssh -J`), or run envforge as an ordinary user".to_owned(),
            Self::SshOnRootless => {
                "open a terminal with `envforge shell`, or use --vscode or Podman".to_owned()
            }
            Self::NoKeys => "create a key with `ssh-keygen`, or specify public keys with --authorized-keys FILE".to_owned(),
            Self::PortTaken { .. } => "stop the process listening there (`ss -ltn`), or select another port with --port HOST:CONTAINER".to_owned(),
            Self::NoPort { .. } => "stop the process listening there (`ss -ltn`)".to_owned(),
            Self::Silent { .. } => "check `envforge ps` and `envforge logs NAME`".to_owned(),
            Self::BadAnswer { .. } => {
                "the image's own programs answer here: open it without services, and look at its `cat`".to_owned()
            }
            Self::EngineGone { .. } => {
                "run `envforge ps` to check whether it still runs, then `envforge shell NAME --attach` to reattach"
                    .to_owned()
            }
            Self::Ended { known: Some(known), .. } => known.clone(),
            Self::Ended { .. } => "run the service manually with `-- CMD` to see its error; images of envforge contain both services".to_owned(),
            Self::Engine(error) => return error.hints(),
            Self::Terminal { .. } => return Vec::new(),
        };
        vec![hint]
    }
}
