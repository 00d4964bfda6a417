//! `shell` without an image: the project here or above, opened as its `[shell]` says.

use crate::model::project::Shell;
use crate::model::request::{self, LockOptions, ProjectOptions, TargetOptions};
use crate::settings::Settings;
use crate::workflow::build_request::{BuildRequest, wanted};
use crate::workflow::error::CommandError;

/// The project that is meant.
pub(crate) fn project_of(args: &request::Shell, settings: &Settings) -> Result<BuildRequest, CommandError> {
    let project = ProjectOptions { environment: args.environment.clone(), project: args.project.clone() };
    wanted(None, &project, &LockOptions::default(), &TargetOptions::default(), settings)
}

/// What was typed, and behind it what the project says: lists are joined, of single values the typed one counts. The project's
/// mounts, data sets and variables are not among them: the container gets those that were judged.
pub(super) fn with_defaults(typed: &request::Shell, shell: &Shell) -> request::Shell {
    let Shell { mounts: _, data: _, env: _, env_file: _, ports, volumes, memory, cpus, shm_size, .. } = shell;
    let Shell { network, gpus, jupyter, ssh, .. } = shell;
    let mut args = typed.clone();
    let target = |volume: &str| volume.split_once(':').map(|(_, target)| target.to_owned());
    let is_typed = |volume: &str| args.inside.volume.iter().any(|typed| target(typed) == target(volume));
    let volumes = volumes.iter().map(|volume| volume.to_string()).filter(|volume| !is_typed(volume));
    args.inside.volume = volumes.chain(typed.inside.volume.clone()).collect();
    args.inside.network = args.inside.network.take().or_else(|| network.clone());
    args.inside.port = ports.iter().map(|port| port.to_string()).chain(args.inside.port).collect();
    let limits = &mut args.limits;
    limits.gpus = limits.gpus.take().or_else(|| gpus.clone());
    limits.memory = limits.memory.take().or_else(|| memory.clone());
    limits.cpus = limits.cpus.take().or_else(|| cpus.map(|cpus| cpus.to_string()));
    limits.shm_size = limits.shm_size.take().or_else(|| shm_size.clone());
    args.services.jupyter |= *jupyter == Some(true) && args.command.is_empty();
    args.services.ssh |= *ssh == Some(true) && args.command.is_empty();
    args
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::model::project::ProjectFile;

    fn typed(line: &str) -> request::Shell {
        let Some(Command::Shell(args)) = Cli::parse_from(line.split(' ')).command else {
            panic!("it is `shell`")
        };
        args.into()
    }

    #[test]
    fn the_projects_wishes_stand_behind_what_was_typed() {
        let file = "schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n[shell]\nmounts = [\"data:/data:ro\"]\n\
                    ports = [\"6006\"]\nmemory = \"8g\"\ncpus = 1.5\njupyter = true\nssh = true\n\
                    gpus = \"0\"\nnetwork = \"host\"\nvolumes = [\"a:/a\", \"b:/b\"]\ndata = [\"sets\"]\nenv = [\"A=1\"]\n";
        let project = ProjectFile::parse("envforge.toml", file).unwrap();
        let shell = project.environment("envforge.toml", None).unwrap().shell;
        let args = with_defaults(&typed("envforge shell --memory 4g --port 80:80"), &shell);
        assert_eq!(args.inside.mount, [] as [&str; 0], "only what was judged is mounted");
        assert_eq!(args.inside.port, ["6006", "80:80"]);
        assert_eq!((args.limits.memory.as_deref(), args.limits.cpus.as_deref()), (Some("4g"), Some("1.5")));
        assert!(args.services.jupyter && args.services.ssh, "as the project says");
        assert_eq!((args.limits.gpus.as_deref(), args.inside.network.as_deref()), (Some("0"), Some("host")));
        assert_eq!(args.inside.volume, ["a:/a", "b:/b"]);
        assert!(args.inside.data.is_empty() && args.inside.env.is_empty(), "only what was judged");
        let line = "envforge shell --gpus none --network none --volume mine:/a";
        let typed_wins = with_defaults(&typed(line), &shell);
        assert_eq!(typed_wins.limits.gpus.as_deref(), Some("none"));
        assert_eq!(typed_wins.inside.network.as_deref(), Some("none"));
        assert_eq!(typed_wins.inside.volume, ["b:/b", "mine:/a"]);
        let command = with_defaults(&typed("envforge shell -- true"), &shell);
        assert!(!command.services.jupyter && !command.services.ssh, "one command is run, not served");
    }
}
