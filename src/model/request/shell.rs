//! `shell`.

use std::net::IpAddr;

use camino::Utf8PathBuf;

use super::spec_parts::SpecParts;

/// A request for `shell`.
#[derive(Debug, Clone)]
pub struct Shell {
    /// A spec, or any image.
    pub image: Option<String>,
    /// What the spec is restricted to.
    pub parts: SpecParts,
    /// An environment of envforge.toml.
    pub environment: Option<String>,
    /// The project's folder or file.
    pub project: Option<Utf8PathBuf>,
    /// Allow the mounts, ports and secrets that the project requests.
    pub trust: bool,
    /// The command instead of a terminal.
    pub command: Vec<String>,
    /// What it serves instead of a terminal.
    pub services: ServiceOptions,
    /// How the container is started and joined.
    pub start: StartOptions,
    /// GPUs and limits.
    pub limits: LimitOptions,
    /// What is mounted and passed.
    pub inside: ContainerOptions,
}

/// What it serves instead of a terminal.
#[derive(Debug, Clone, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct ServiceOptions {
    /// JupyterLab; prints its address with a fresh token.
    pub jupyter: bool,
    /// An SSH server for your keys alone; prints the command that connects.
    pub ssh: bool,
    /// Print the command that opens VS Code in the container.
    pub vscode: bool,
    /// Open what is printed.
    pub open: bool,
    /// The address it is reached by.
    pub bind: Option<IpAddr>,
    /// Accept that other machines reach it without encryption.
    pub insecure: bool,
    /// Public keys to let in.
    pub authorized_keys: Option<Utf8PathBuf>,
    /// Ask to add one Include line to ~/.ssh/config, so that `ssh envforge-NAME` works.
    pub ssh_config: bool,
}

/// How the container is started and joined.
#[derive(Debug, Clone, Default)]
pub struct StartOptions {
    /// The container's name in `ps`, `stop`, `logs`.
    pub name: Option<String>,
    /// Start another container although one runs for this folder and image.
    pub new: bool,
    /// Leave it running in the background until `envforge stop`.
    pub detach: bool,
    /// Join a running container in its tmux session `envforge`.
    pub attach: bool,
    /// Which checks of an image that is built first run before it opens.
    pub checks: ChecksBefore,
}

/// Which checks of an image that is built first run before it opens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChecksBefore {
    /// Those that `build` runs.
    #[default]
    All,
    /// None on a GPU.
    Static,
}

/// GPUs and limits.
#[derive(Debug, Clone, Default)]
pub struct LimitOptions {
    /// Which GPUs: `all`, `none`, or indices and UUIDs apart by commas.
    pub gpus: Option<String>,
    /// Refuse to start without a GPU.
    pub require_gpu: bool,
    /// The most memory: 64g.
    pub memory: Option<String>,
    /// The most processors: 2.5.
    pub cpus: Option<String>,
    /// Size of /dev/shm.
    pub shm_size: Option<String>,
    /// The most processes.
    pub pids_limit: i64,
}

/// What is mounted and passed.
#[derive(Debug, Clone, Default)]
pub struct ContainerOptions {
    /// A folder of this machine: `SRC:DST`, or `SRC:DST:ro`.
    pub mount: Vec<String>,
    /// A data set, read-only: `SRC`, seen as /data/NAME, or `SRC:DST`.
    pub data: Vec<String>,
    /// A named volume that stays: `NAME:DST`.
    pub volume: Vec<String>,
    /// A port of the container: `HOST:CONTAINER` or `IP:HOST:CONTAINER` [default IP: 127.0.0.1].
    pub port: Vec<String>,
    /// A variable: `NAME=VALUE`, or `NAME` to pass this machine's.
    pub env: Vec<String>,
    /// A file of variables, one a line.
    pub env_file: Vec<Utf8PathBuf>,
    /// The network: `bridge`, `host`, `none`, or one of the engine's.
    pub network: Option<String>,
    /// No volume for downloaded models (`HF_HOME`, `TORCH_HOME`), which all folders share otherwise.
    pub no_cache: bool,
    /// Leave out this machine's proxies, package index and CA certificates.
    pub no_host_network_settings: bool,
    /// Forward this machine's SSH agent, for git.
    pub ssh_agent: bool,
}

/// Returns the hint for a text of docker's `-v`: `/data:/data` mounts a directory, `cache:/data` a named volume.
pub fn mount_hint(text: &str) -> Option<String> {
    let (from, _) = text.split_once(":/").filter(|(from, _)| !from.is_empty())?;
    let is_path = from.starts_with(['.', '~']) || from.contains('/');
    let (what, option) = if is_path { ("directory", "--mount") } else { ("volume", "--volume") };
    Some(format!("to mount a {what}: `{option} {text}`"))
}

#[cfg(test)]
mod tests {
    use super::mount_hint;

    #[test]
    fn text_of_a_mount_is_recognized() {
        for (text, hint) in [
            ("/work/p:/data", Some("to mount a directory: `--mount /work/p:/data`")),
            ("./data:/data:ro", Some("to mount a directory: `--mount ./data:/data:ro`")),
            ("~/data:/data", Some("to mount a directory: `--mount ~/data:/data`")),
            ("data/sets:/data", Some("to mount a directory: `--mount data/sets:/data`")),
            ("cache:/root/.cache", Some("to mount a volume: `--volume cache:/root/.cache`")),
            ("pytorch-cuda:2.8-cu128", None),
            ("registry.example.com:5000/team/torch:2.8", None),
            ("debian@sha256:abc", None),
            ("/work/p", None),
            (":/data", None),
        ] {
            assert_eq!(mount_hint(text).as_deref(), hint, "{text}");
        }
    }
}
