//! `envforge shell`.

use std::net::IpAddr;

use camino::Utf8PathBuf;
use clap::Args;

const EXAMPLES: &str = "\
Examples:
  envforge shell pytorch-cuda:2.8-cu128                      a terminal in this folder; built first if needed
  envforge shell                                             the project here or above, with its [shell]
  envforge shell pytorch-cuda:2.8-cu128 -- python train.py   one command; its exit code is passed on
  envforge shell pytorch-cuda:2.8-cu128 --data /datasets --memory 64g --gpus 0,1
  envforge shell pytorch-cuda:2.8-cu128 --name run1 --detach -- python train.py
  envforge shell --attach run1                               a terminal that survives a lost connection
  envforge shell pytorch-cuda:2.8-cu128 --jupyter            JupyterLab on a free port, with a fresh token
  envforge shell pytorch-cuda:2.8-cu128 --ssh --vscode --detach
  tar c src | envforge shell IMAGE -- tar x -C /tmp

This folder is /workspace, and what is made there is yours. The home folder is a volume kept for each folder. Nothing else
can be written to; ports are open to this machine only. A second call joins the container that runs for this folder.
Exit codes: the command's own; 125 if envforge itself failed.";

/// Arguments of `shell`.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ShellArgs {
    /// A spec, or any image [default: the project here or above]; with --attach the name of a container.
    #[arg(value_name = "SPEC|IMAGE")]
    pub image: Option<String>,
    /// An environment of envforge.toml [default: what stands at its top].
    #[arg(long, value_name = "NAME", conflicts_with_all = ["image", "attach"])]
    pub environment: Option<String>,
    /// The project's folder or file [default: envforge.toml here or in a folder above].
    #[arg(long, value_name = "PATH", conflicts_with_all = ["image", "attach"])]
    pub project: Option<Utf8PathBuf>,
    /// The command instead of a terminal.
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<String>,
    /// What it serves instead of a terminal.
    #[command(flatten)]
    pub services: ServiceArgs,
    /// How the container is started and joined.
    #[command(flatten)]
    pub start: StartArgs,
    /// GPUs and limits.
    #[command(flatten)]
    pub limits: LimitArgs,
    /// What is mounted and passed.
    #[command(flatten)]
    pub inside: InsideArgs,
}

/// What it serves instead of a terminal.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Jupyter, SSH, VS Code (until Ctrl-C, or in the background with --detach)")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own on the command line")]
pub struct ServiceArgs {
    /// JupyterLab; prints its address with a fresh token.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub jupyter: bool,
    /// An SSH server for your keys alone; prints the command that connects.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub ssh: bool,
    /// Print the command that opens VS Code in the container.
    #[arg(long, conflicts_with_all = ["command", "attach"])]
    pub vscode: bool,
    /// Open what is printed.
    #[arg(long)]
    pub open: bool,
    /// The address it is reached by [default: 127.0.0.1]; any but the loopback needs --insecure.
    #[arg(long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// Accept that other machines reach it without encryption.
    #[arg(long)]
    pub insecure: bool,
    /// Public keys to let in [default: the agent's and ~/.ssh/*.pub].
    #[arg(long, value_name = "FILE")]
    pub authorized_keys: Option<Utf8PathBuf>,
    /// Ask to add one Include line to ~/.ssh/config, so that `ssh envforge-NAME` works.
    #[arg(long, requires = "ssh")]
    pub ssh_config: bool,
}

/// How the container is started and joined.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Container")]
pub struct StartArgs {
    /// The container's name in `ps`, `stop`, `logs` [default: the folder's name].
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Start another container although one runs for this folder and image.
    #[arg(long, conflicts_with = "attach")]
    pub new: bool,
    /// Leave it running in the background until `envforge stop`.
    #[arg(short, long, conflicts_with = "attach")]
    pub detach: bool,
    /// Join a running container in its tmux session `envforge`.
    #[arg(long, conflicts_with = "command")]
    pub attach: bool,
}

/// GPUs and limits.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "GPUs and limits")]
pub struct LimitArgs {
    /// Which GPUs: `all`, `none`, or indices and UUIDs apart by commas [default: all, if there is one].
    #[arg(long, value_name = "GPUS")]
    pub gpus: Option<String>,
    /// Refuse to start without a GPU.
    #[arg(long)]
    pub require_gpu: bool,
    /// The most memory: 64g [default: no limit].
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// The most processors: 2.5 [default: no limit].
    #[arg(long, value_name = "N")]
    pub cpus: Option<String>,
    /// Size of /dev/shm [default: 1 GB and 1 GB more for each GPU].
    #[arg(long, value_name = "SIZE")]
    pub shm_size: Option<String>,
    /// The most processes.
    #[arg(long, value_name = "N", default_value = "32768")]
    pub pids_limit: i64,
}

/// What is mounted and passed.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Mounts, ports, environment")]
pub struct InsideArgs {
    /// A folder of this machine: `SRC:DST`, or `SRC:DST:ro` (repeatable).
    #[arg(long, value_name = "SRC:DST[:ro]")]
    pub mount: Vec<String>,
    /// A data set, read-only: `SRC`, seen as /data/NAME, or `SRC:DST` (repeatable).
    #[arg(long, value_name = "SRC[:DST]")]
    pub data: Vec<String>,
    /// A named volume that stays: `NAME:DST` (repeatable).
    #[arg(long, value_name = "NAME:DST")]
    pub volume: Vec<String>,
    /// A port of the container: `HOST:CONTAINER` or `IP:HOST:CONTAINER` [default IP: 127.0.0.1] (repeatable).
    #[arg(short, long, value_name = "PORT")]
    pub port: Vec<String>,
    /// A variable: `NAME=VALUE`, or `NAME` to pass this machine's (repeatable).
    #[arg(short, long, value_name = "VARIABLE")]
    pub env: Vec<String>,
    /// A file of variables, one a line (repeatable).
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<Utf8PathBuf>,
    /// The network: `bridge`, `host`, `none`, or one of the engine's.
    #[arg(long, value_name = "NETWORK")]
    pub network: Option<String>,
    /// No volume for downloaded models (`HF_HOME`, `TORCH_HOME`), which all folders share otherwise.
    #[arg(long)]
    pub no_cache: bool,
    /// Leave out this machine's proxies, package index and CA certificates.
    #[arg(long)]
    pub no_host_network_settings: bool,
    /// Forward this machine's SSH agent, for git.
    #[arg(long)]
    pub ssh_agent: bool,
}

into_request!(ShellArgs => Shell { image, environment, project, command, services, start, limits, inside });

into_request!(ServiceArgs => ServiceOptions { jupyter, ssh, vscode, open, bind, insecure, authorized_keys, ssh_config });

into_request!(StartArgs => StartOptions { name, new, detach, attach });

into_request!(LimitArgs => LimitOptions { gpus, require_gpu, memory, cpus, shm_size, pids_limit });

into_request!(InsideArgs => ContainerOptions { mount, data, volume, port, env, env_file, network, no_cache, no_host_network_settings, ssh_agent });
