//! `envforge shell` and `envforge run`.

use std::net::IpAddr;

use camino::Utf8PathBuf;
use clap::Args;

use super::SpecPartArgs;
use crate::model::request;

const EXAMPLES: &str = "\
Examples:
  envforge shell pytorch-cuda:2.8-cu128                      start a shell in the current directory
  envforge shell                                             use the current project and its [shell] table
  envforge shell pytorch-cuda:2.8-cu128 -- python train.py   run one command and return its exit code
  envforge shell pytorch-cuda:2.8-cu128 --data /datasets --memory 64g --gpus 0,1
  envforge shell pytorch-cuda:2.8-cu128 --name run1 --detach -- python train.py
  envforge shell run1 -- nvidia-smi                          run a command in that container
  envforge shell --attach run1                               attach to a session that survives disconnects
  envforge shell pytorch-cuda:2.8-cu128 --jupyter            start JupyterLab on a free port with a new token
  envforge shell pytorch-cuda:2.8-cu128 --ssh --vscode --detach
  tar c src | envforge shell IMAGE -- tar x -C /tmp

A missing image is built first. The current directory is mounted at /workspace; new files belong to you. In a project its
directory is, and the command starts in your subdirectory. The home directory is a volume per project directory. Everything
else is read-only, and ports are reachable from this machine only. A second call joins the running container of this directory.
Exit codes: that of the command; 125 if envforge failed.";

const RUN_EXAMPLES: &str = "\
Examples:
  envforge run python train.py                 run a command in the image of the project
  envforge run --gpus 0 python train.py        options of envforge come before the command
  envforge run -E train -e WANDB_MODE=offline python train.py
  envforge run -- pytest -q                    the same as `envforge shell -- pytest -q`; imports the project's own code

A missing or outdated image is built first. The command starts in your current directory below the project, its output and
exit code are passed through, and its container is removed at the end. A second call joins the running container of this
directory. For an image without a project: `envforge shell IMAGE -- CMD`.";

/// Arguments of `shell`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShellArgs {
    /// Spec, image, or the name of a running container [default: current project].
    #[arg(value_name = "SPEC|IMAGE|NAME")]
    pub image: Option<String>,
    /// Environment from envforge.toml [default: its top-level keys].
    #[arg(short = 'E', long, value_name = "NAME", conflicts_with_all = ["image", "attach"])]
    pub environment: Option<String>,
    /// Project directory or file [default: envforge.toml in the current or a parent directory].
    #[arg(long, value_name = "PATH", conflicts_with_all = ["image", "attach"])]
    pub project: Option<Utf8PathBuf>,
    /// Allow what the project requests of this machine (mounts, ports, variables, secrets), now and later.
    #[arg(long, conflicts_with_all = ["image", "attach"])]
    pub trust: bool,
    /// Command to run instead of a shell.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// Attach to the tmux session `envforge` of a running container.
    #[arg(long, help_heading = "Container", conflicts_with_all = ["command", "new", "detach"])]
    pub attach: bool,
    /// Services to start instead of a shell.
    #[command(flatten)]
    pub services: ServiceArgs,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// How to start or join the container.
    #[command(flatten)]
    pub start: StartArgs,
    /// GPUs and limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Mounts, ports and variables.
    #[command(flatten)]
    pub inside: InsideArgs,
}

/// Arguments of `run`: those of `shell` for one command of the project.
#[derive(Debug, Clone, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// Command to run, with its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub command: Vec<String>,
    /// Environment from envforge.toml [default: its top-level keys].
    #[arg(short = 'E', long, value_name = "NAME")]
    pub environment: Option<String>,
    /// Project directory or file [default: envforge.toml in the current or a parent directory].
    #[arg(long, value_name = "PATH")]
    pub project: Option<Utf8PathBuf>,
    /// Allow what the project requests of this machine (mounts, ports, variables, secrets), now and later.
    #[arg(long)]
    pub trust: bool,
    /// Parts of the spec.
    #[command(flatten)]
    pub parts: SpecPartArgs,
    /// How to start or join the container.
    #[command(flatten)]
    pub start: StartArgs,
    /// GPUs and limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// Mounts, ports and variables.
    #[command(flatten)]
    pub inside: InsideArgs,
}

/// Services to start instead of a shell.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Jupyter, SSH, VS Code (until Ctrl-C, or in the background with --detach)")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct ServiceArgs {
    /// Start JupyterLab and print its URL with a new token.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub jupyter: bool,
    /// Start an SSH server (key login only) and print the connect command.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub ssh: bool,
    /// Print the command that opens VS Code in the container.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub vscode: bool,
    /// Open the printed URL.
    #[arg(long)]
    pub open: bool,
    /// Address to bind [default: 127.0.0.1]; others require --insecure.
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// Allow unencrypted access from other machines.
    #[arg(long)]
    pub insecure: bool,
    /// Public keys to authorize [default: those of the SSH agent and ~/.ssh/*.pub].
    #[arg(long, value_name = "FILE")]
    pub authorized_keys: Option<Utf8PathBuf>,
    /// Offer to add an Include line to ~/.ssh/config, which enables `ssh envforge-NAME`.
    #[arg(long, requires = "ssh")]
    pub ssh_config: bool,
}

/// How to start or join the container.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Container")]
pub struct StartArgs {
    /// Container name for `ps`, `stop` and `logs` [default: the directory name].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Start a new container even if one is running.
    #[arg(long)]
    pub new: bool,
    /// Run in the background until `envforge stop`.
    #[arg(short, long)]
    pub detach: bool,
    /// Open an image that has to be built first after its static checks, without those on a GPU.
    #[arg(long)]
    pub no_wait: bool,
}

/// GPUs and limits.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "GPUs and limits")]
pub struct LimitArgs {
    /// GPUs: `all`, `none`, or comma-separated indices or UUIDs [default: all available].
    ///
    /// A container with GPUs also gets this machine's InfiniBand and RoCE (`/dev/infiniband`), and unlimited locked memory.
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Fail if no GPU is available.
    #[arg(long)]
    pub require_gpu: bool,
    /// Memory limit, such as 64g [default: no limit].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// CPU limit, such as 2.5 [default: no limit].
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Size of /dev/shm [default: 1 GB plus 1 GB per GPU].
    #[arg(long, value_name = "SIZE")]
    pub shm_size: Option<String>,
    /// Process limit.
    #[arg(long, value_name = "N", default_value = "32768")]
    pub pids_limit: i64,
}

/// Mounts, ports and variables.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Mounts, ports, environment")]
pub struct InsideArgs {
    /// Mount a host directory: `SRC:DST`, or `SRC:DST:ro` (repeatable).
    #[arg(long, value_name = "SRC:DST[:ro]")]
    pub mount: Vec<String>,
    /// Mount a data set read-only: `SRC` at /data/NAME, or `SRC:DST` (repeatable).
    #[arg(long, value_name = "SRC[:DST]")]
    pub data: Vec<String>,
    /// Persistent named volume: `NAME:DST` (repeatable).
    #[arg(long, value_name = "NAME:DST")]
    pub volume: Vec<String>,
    /// Publish a port: `HOST:CONTAINER` or `IP:HOST:CONTAINER` [default IP: 127.0.0.1] (repeatable).
    #[arg(short, long, value_name = "PORT")]
    pub port: Vec<String>,
    /// Environment variable: `NAME=VALUE`, or `NAME` to pass the host's value (repeatable).
    #[arg(short, long, value_name = "VARIABLE")]
    pub env: Vec<String>,
    /// Environment file, one variable per line (repeatable).
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<Utf8PathBuf>,
    /// Network: `bridge`, `host`, `none`, or the name of an engine network.
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// Do not mount the shared volume for downloaded models (`HF_HOME`, `TORCH_HOME`).
    #[arg(long)]
    pub no_cache: bool,
    /// Do not pass the host's proxies, package index and CA certificates.
    #[arg(long)]
    pub no_host_network_settings: bool,
    /// Forward the host's SSH agent.
    #[arg(long)]
    pub ssh_agent: bool,
}

impl From<ShellArgs> for request::Shell {
    fn from(args: ShellArgs) -> Self {
        let ShellArgs { image, attach, services, .. } = args;
        let ShellArgs { command, environment, project, trust, parts, start, limits, inside, .. } = args;
        let run = RunArgs { command, environment, project, trust, parts, start, limits, inside };
        let of_project = Self::from(run);
        let start = request::StartOptions { attach, ..of_project.start };
        Self { image, services: services.into(), start, ..of_project }
    }
}

impl From<RunArgs> for request::Shell {
    fn from(args: RunArgs) -> Self {
        let RunArgs { command, environment, project, trust, parts, start, limits, inside } = args;
        let StartArgs { name, new, detach, no_wait } = start;
        let checks = if no_wait { request::ChecksBefore::Static } else { request::ChecksBefore::All };
        Self {
            image: None,
            parts: parts.into(),
            environment,
            project,
            trust,
            command,
            services: request::ServiceOptions::default(),
            start: request::StartOptions { name, new, detach, attach: false, checks },
            limits: limits.into(),
            inside: inside.into(),
        }
    }
}

into_request!(ServiceArgs => ServiceOptions { jupyter, ssh, vscode, open, bind, insecure, authorized_keys, ssh_config });

into_request!(LimitArgs => LimitOptions { gpus, require_gpu, memory, cpus, shm_size, pids_limit });

into_request!(InsideArgs => ContainerOptions { mount, data, volume, port, env, env_file, network, no_cache, no_host_network_settings, ssh_agent });
