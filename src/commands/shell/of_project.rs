//! `shell` without an image: the project here or above, opened as its `[shell]` says.

use camino::Utf8Path;

use super::super::CommandError;
use super::super::lock::{lock_path, read_lock, stack};
use super::super::named_base::named_base;
use super::super::session::Session;
use super::super::verify::subject::Named;
use super::super::wanted::{Wanted, wanted};
use super::open;
use crate::cli::{LockSource, ProjectArgs, ShellArgs, TargetArgs};
use crate::engine::ImageInfo;
use crate::plan::{LOCK_LABEL, UNVERIFIED};
use crate::project::Shell;
use crate::report::Event;
use crate::settings::Settings;

/// The project that is meant.
pub(super) fn project(args: &ShellArgs, settings: &Settings) -> Result<Wanted, CommandError> {
    let project = ProjectArgs { environment: args.environment.clone(), project: args.project.clone() };
    wanted(None, &project, &LockSource::default(), &TargetArgs::default(), settings)
}

/// What was typed, and behind it what the project says: lists are joined, of single values the typed one counts.
pub(super) fn with_defaults(typed: &ShellArgs, shell: &Shell, folder: &Utf8Path) -> ShellArgs {
    let Shell { mounts, ports, memory, cpus, shm_size, jupyter } = shell;
    let mut args = typed.clone();
    // Sources are relative to the project, wherever in it the caller is.
    let source = |text: &str| folder.join(text).into_string();
    args.inside.mount = mounts.iter().map(|mount| source(mount)).chain(args.inside.mount).collect();
    args.inside.port = ports.iter().map(|port| port.to_string()).chain(args.inside.port).collect();
    let limits = &mut args.limits;
    limits.memory = limits.memory.take().or_else(|| memory.clone());
    limits.cpus = limits.cpus.take().or_else(|| cpus.map(|cpus| cpus.to_string()));
    limits.shm_size = limits.shm_size.take().or_else(|| shm_size.clone());
    args.services.jupyter |= *jupyter == Some(true) && args.command.is_empty();
    args
}

/// The image of the project's lock; it is built if there is none, or if the lock no longer fits.
pub(super) async fn image(session: &Session<'_>, wanted: &Wanted) -> Result<Named, CommandError> {
    let named = named_base(session.settings, &wanted.source, &wanted.target).await?;
    let stack = stack(session.settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let path = lock_path(session.settings, &stack, &wanted.source);
    if let Some(lock) = read_lock(&path)?
        && lock.satisfied_by(&stack, &wanted.added).is_empty()
        && let Some(named) = tagged(session, &lock.hash()).await?
    {
        return Ok(named);
    }
    let text = format!("the image of {path} is not on this engine yet: building it first");
    session.reporter.report(Event::Note { text });
    open::build(session, wanted, stack, named.as_ref()).await?;
    let hash = read_lock(&path)?.map(|lock| lock.hash()).unwrap_or_default();
    let not_there =
        || CommandError::NoImage { image: wanted.spec.clone(), text: "it was removed meanwhile".to_owned() };
    tagged(session, &hash).await?.ok_or_else(not_there)
}

/// The image of that lock, by a verified tag if it has one.
async fn tagged(session: &Session<'_>, lock: &str) -> Result<Option<Named>, CommandError> {
    let images = session.engine.images(LOCK_LABEL).await?;
    Ok(images
        .into_iter()
        .filter(|image| image.labels.get(LOCK_LABEL).is_some_and(|label| label == lock))
        .find_map(named))
}

fn named(image: ImageInfo) -> Option<Named> {
    let tag = image.tags.iter().find(|tag| !tag.ends_with(UNVERIFIED)).or(image.tags.first())?.clone();
    Some(Named { reference: tag, image })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::project::ProjectFile;

    fn typed(line: &str) -> ShellArgs {
        let Command::Shell(args) = Cli::parse_from(line.split(' ')).command else { panic!("it is `shell`") };
        args
    }

    #[test]
    fn the_projects_wishes_stand_behind_what_was_typed() {
        let file = "schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n[shell]\nmounts = [\"data:/data:ro\"]\n\
                    ports = [\"6006\"]\nmemory = \"8g\"\ncpus = 1.5\njupyter = true\n";
        let project = ProjectFile::parse("envforge.toml", file).unwrap();
        let shell = project.environment("envforge.toml", None).unwrap().shell;
        let folder = Utf8Path::new("/work/p");
        let args = with_defaults(&typed("envforge shell --memory 4g --port 80:80"), &shell, folder);
        assert_eq!(args.inside.mount, ["/work/p/data:/data:ro"]);
        assert_eq!(args.inside.port, ["6006", "80:80"]);
        assert_eq!((args.limits.memory.as_deref(), args.limits.cpus.as_deref()), (Some("4g"), Some("1.5")));
        assert!(args.services.jupyter, "as the project wishes");
        let command = with_defaults(&typed("envforge shell -- true"), &shell, folder);
        assert!(!command.services.jupyter, "one command is run, not served");
    }
}
