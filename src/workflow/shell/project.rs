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
/// mounts are not among them: only those that were judged are mounted.
pub(super) fn with_defaults(typed: &request::Shell, shell: &Shell) -> request::Shell {
    let Shell { mounts: _, ports, memory, cpus, shm_size, jupyter } = shell;
    let mut args = typed.clone();
    args.inside.port = ports.iter().map(|port| port.to_string()).chain(args.inside.port).collect();
    let limits = &mut args.limits;
    limits.memory = limits.memory.take().or_else(|| memory.clone());
    limits.cpus = limits.cpus.take().or_else(|| cpus.map(|cpus| cpus.to_string()));
    limits.shm_size = limits.shm_size.take().or_else(|| shm_size.clone());
    args.services.jupyter |= *jupyter == Some(true) && args.command.is_empty();
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
                    ports = [\"6006\"]\nmemory = \"8g\"\ncpus = 1.5\njupyter = true\n";
        let project = ProjectFile::parse("envforge.toml", file).unwrap();
        let shell = project.environment("envforge.toml", None).unwrap().shell;
        let args = with_defaults(&typed("envforge shell --memory 4g --port 80:80"), &shell);
        assert_eq!(args.inside.mount, [] as [&str; 0], "only what was judged is mounted");
        assert_eq!(args.inside.port, ["6006", "80:80"]);
        assert_eq!((args.limits.memory.as_deref(), args.limits.cpus.as_deref()), (Some("4g"), Some("1.5")));
        assert!(args.services.jupyter, "as the project wishes");
        let command = with_defaults(&typed("envforge shell -- true"), &shell);
        assert!(!command.services.jupyter, "one command is run, not served");
    }
}
