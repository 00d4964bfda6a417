//! Containers of `shell`: user, mounts, services and the attached terminal.
//!
//! Pure except for `terminal`, `attach` and `port_forward`, which own this machine's terminal, signals and ports.

mod attach;
mod container_env;
mod error;
pub(crate) mod labels;
mod mount_risk;
mod new_container;
mod options;
mod port_forward;
mod project;
mod project_code;
mod services;
mod terminal;
mod user;

pub(crate) use attach::{AttachTarget, PassedSignals, ProgramEnd, attach_terminal};
pub(crate) use container_env::{ContainerEnv, etc_files, home_files, term};
pub use error::ShellError;
pub(crate) use mount_risk::MountRisk;
pub(crate) use new_container::NewContainer;
pub(crate) use options::{
    LARGEST_ENV_FILE, MountArgs, env_file, is_name, memory_size, mounts, nano_cpus, ports, variables,
};
pub(crate) use port_forward::{LocalListeners, Tunnels};
pub(crate) use project::{Project, free_name, workdir};
pub(crate) use project_code::{ProjectCode, project_variables};
pub(crate) use services::{Jupyter, Services, Ssh, client_config, token, url, vscode_uri};
pub(crate) use terminal::{caller_ids, is_interactive};
pub(crate) use user::User;
