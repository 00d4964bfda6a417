//! An image opened for work: who runs inside, what is mounted, how a terminal is joined to it.
//!
//! Pure but for `terminal` and `drive`, which hold this machine's terminal and its signals.

mod devcontainer;
mod drive;
mod error;
mod inside;
mod options;
mod project;
mod services;
mod terminal;
mod tunnel;
mod user;

pub(crate) use devcontainer::{IMAGE_FOLDER, devcontainer};
pub(crate) use drive::{Driven, drive};
pub use error::ShellError;
pub(crate) use inside::{HOME, Inside, MODELS, WORKSPACE, etc_files, home_files, term};
pub(crate) use options::{Typed, env_file, is_name, memory_size, mounts, nano_cpus, ports, variables};
pub(crate) use project::{Project, free_name};
pub(crate) use services::{Jupyter, Services, Ssh, client_config, token, url, vscode_uri};
pub(crate) use terminal::{caller_ids, is_interactive};
pub(crate) use tunnel::{Ports, Tunnels};
pub(crate) use user::User;
