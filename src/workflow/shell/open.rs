//! Which container the call means: one that runs, or a new one of an image that may have to be built first.

use camino::Utf8Path;

use crate::engine::{Containers, SHELL_LABEL};
use crate::model::compat::Matrix;
use crate::model::request;
use crate::report::Event;
use crate::shell::labels::Shell;
use crate::shell::{Project, ProjectCode, ShellError, Tunnels, User, caller_ids, is_interactive};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::error::CommandError;
use crate::workflow::image_error::ImageError;
use crate::workflow::named::Named;
use crate::workflow::project_code::project_code;
use crate::workflow::project_trust::Judged;
use crate::workflow::proven::proven;
use crate::workflow::required_evidence::{proven_by_key, require_evidence};
use crate::workflow::session::Session;
use crate::workflow::shell::container_spec::ContainerSpec;
use crate::workflow::shell::image::{image, project_image};
use crate::workflow::shell::join::{Join, join, unchangeable};
use crate::workflow::shell::launch::{check_options, launch};
use crate::workflow::shell::opened::remember_opened;
use crate::workflow::shell::outcome::OpenOutcome;
use crate::workflow::shell::project;
use crate::workflow::shell::serve::of_running;
use crate::workflow::verify_target::spec_of;

/// Opens the container of the image that was typed, else that of the project's file with what was judged of it.
pub(crate) async fn open(
    session: &Session<'_>,
    typed: &request::Shell,
    of_file: Option<(&BuildRequest, &Judged)>,
) -> Result<OpenOutcome, CommandError> {
    let shells = shells(&*session.containers).await?;
    if let Some(shell) = named_container(typed, &shells, &session.matrix) {
        require_for(session, shell).await?;
        let named = Target { args: typed, shell, image: None, code: None };
        return join_running(session, typed, named).await.map(OpenOutcome::of_container);
    }
    let nothing = Judged::default();
    let (of_file, judged) = of_file.map_or((None, &nothing), |(wanted, judged)| (Some(wanted), judged));
    let folder = of_file.and_then(|wanted| wanted.folder.as_deref());
    let project = project(session, folder)?;
    let args = &match of_file {
        Some(wanted) => project::with_defaults(typed, &wanted.shell),
        None => typed.clone(),
    };
    let here = |shell: &&Shell| {
        shell.runs() && shell.folder == project.folder && shell.user.starts_with(&format!("{}:", project.uid))
    };
    if args.start.attach {
        let shell = attached_to(&shells, args.image.as_deref(), here)?;
        require_for(session, shell).await?;
        return join(session, shell, Join::Tmux, None).await;
    }
    // One that runs has its own refusals.
    if args.start.new || !shells.iter().any(|shell| here(&shell)) {
        check_options(session, args, (&project, judged, &shells)).await?;
    }
    let checks = typed.start.checks;
    let image = match of_file {
        Some(wanted) => project_image(session, wanted, checks).await?,
        None => image(session, args.image.as_deref().unwrap_or_default(), checks).await?,
    };
    remember_opened(&session.store, &image)?;
    require_evidence(session, &image.image, &image.reference).await?;
    note_state(session, &image, args.command.is_empty()).await?;
    let code = of_file.map(|wanted| project_code(session, wanted)).transpose()?.flatten();
    let code = code.as_ref();
    let running = shells.iter().filter(here).find(|shell| {
        shell.spec == image.reference && args.start.name.as_ref().is_none_or(|name| *name == shell.name)
    });
    match running {
        Some(shell) if !args.start.new => {
            require_for(session, shell).await?;
            let image = Some(image.image.id.as_str());
            join_running(session, typed, Target { args, shell, image, code }).await
        }
        _ => {
            let interactive = is_interactive();
            launch(
                session,
                ContainerSpec {
                    args,
                    project: &project,
                    image: &image,
                    judged,
                    code,
                    shells: &shells,
                    interactive,
                },
            )
            .await
        }
    }
}

/// Says what is proven of the image that is opened; before a command only what is not.
async fn note_state(session: &Session<'_>, image: &Named, opens: bool) -> Result<(), CommandError> {
    let proven = proven(&session.store, &*session.reporter, &image.image)?;
    if proven.is_verified() && !opens {
        return Ok(());
    }
    // A failure that this machine saw stands against every key.
    let by_key = if proven.leaves_open() { proven_by_key(session, &image.image).await? } else { None };
    let text = match by_key {
        Some(by) => format!("{}: proven {}", image.reference, by.text()),
        None => format!("{}: {proven}", image.reference),
    };
    session.reporter.report(Event::Note { text });
    Ok(())
}

/// An error unless the image of a running container is proven as the policy asks: it may be of an earlier build.
async fn require_for(session: &Session<'_>, shell: &Shell) -> Result<(), CommandError> {
    if session.settings.policy.require_evidence.is_none() {
        return Ok(());
    }
    let id = &shell.container.image;
    let gone = || ImageError::NotFound { image: id.clone(), text: "it was removed".to_owned() };
    let image = session.engine.image(id).await?.ok_or_else(gone)?;
    require_evidence(session, &image, &shell.name).await
}

/// The running container that is named in an image's place. A spec stays a spec, and `--new` or `--name` mean an image.
fn named_container<'a>(args: &request::Shell, shells: &'a [Shell], matrix: &Matrix) -> Option<&'a Shell> {
    let start = &args.start;
    let is_plain = !start.new && !start.attach && start.name.is_none();
    let name = args.image.as_deref().filter(|_| is_plain)?;
    shells.iter().find(|shell| shell.name == name && shell.runs()).filter(|_| spec_of(name, matrix).is_none())
}

/// A container that runs, and what is to run in it.
struct Target<'a> {
    args: &'a request::Shell,
    shell: &'a Shell,
    /// The image of today, if it is known.
    image: Option<&'a str>,
    code: Option<&'a ProjectCode>,
}

/// Runs the request in a container that runs.
async fn join_running(
    session: &Session<'_>,
    typed: &request::Shell,
    Target { args, shell, image, code }: Target<'_>,
) -> Result<OpenOutcome, CommandError> {
    if let Some(option) = unchangeable(typed) {
        return Err(ShellError::Running { name: shell.name.clone(), option }.into());
    }
    if args.services.any() || (args.start.detach && args.command.is_empty()) {
        let user = User::on(session.engine.info(), caller_ids());
        let mut told = of_running(session, &args.services, shell, &user).await?;
        if let Some(image) = session.engine.image(&shell.container.image).await? {
            told.proven = Some(proven(&session.store, &*session.reporter, &image)?);
        }
        return Ok(OpenOutcome::Served { told, container: None, tunnels: Tunnels::new() });
    }
    note(session, shell, image);
    let what = if args.command.is_empty() { Join::Terminal } else { Join::Command(&args.command) };
    join(session, shell, what, code).await
}

/// The project: the folder of its file, else the caller's, with no link in its path.
fn project(session: &Session<'_>, folder: Option<&Utf8Path>) -> Result<Project, CommandError> {
    let folder = folder.unwrap_or(&session.settings.paths.current_dir);
    let folder = folder.canonicalize_utf8().unwrap_or_else(|_| folder.to_owned());
    let project = Project { folder, uid: caller_ids().0 };
    if project.is_root() {
        return Err(ShellError::BadProject { path: project.folder.to_string() }.into());
    }
    Ok(project)
}

/// All containers of ours.
pub(crate) async fn shells(engine: &dyn Containers) -> Result<Vec<Shell>, CommandError> {
    Ok(engine.containers(SHELL_LABEL).await?.into_iter().filter_map(Shell::of).collect())
}

/// The running container that `--attach` means: by name or spec, else the one of this folder.
fn attached_to<'a>(
    shells: &'a [Shell],
    name: Option<&str>,
    here: impl Fn(&&Shell) -> bool,
) -> Result<&'a Shell, ShellError> {
    let running = || shells.iter().filter(|shell| shell.runs());
    let known = || running().map(|shell| shell.name.clone()).collect();
    let fitting: Vec<_> = match name {
        Some(name) => match running().find(|shell| shell.name == name) {
            Some(shell) => return Ok(shell),
            None => running().filter(here).filter(|shell| shell.spec.starts_with(name)).collect(),
        },
        None => running().filter(here).collect(),
    };
    match fitting.as_slice() {
        [one] => Ok(one),
        [] => {
            let what = name.map_or_else(
                || "is running for this directory".to_owned(),
                |name| format!("named `{name}` is running"),
            );
            Err(ShellError::NotFound { what, known: known() })
        }
        several => {
            Err(ShellError::Several { names: several.iter().map(|shell| shell.name.clone()).collect() })
        }
    }
}

/// Tells which container is joined, and that it is not of today's image if it is not.
fn note(session: &Session<'_>, shell: &Shell, image: Option<&str>) {
    let mut text = format!("joining running container `{}`", shell.name);
    if image.is_some_and(|image| shell.container.image != image) {
        text.push_str(" (started from an earlier build of this image)");
    }
    session.reporter.report(Event::Note { text });
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::engine::ContainerInfo;
    use crate::shell::labels::Ends;

    fn shell(name: &str, state: &str) -> Shell {
        let text = String::new;
        Shell {
            name: name.to_owned(),
            spec: text(),
            folder: text(),
            user: text(),
            gpus: text(),
            services: text(),
            ends: Ends::WhenStopped,
            container: ContainerInfo { state: state.to_owned(), ..ContainerInfo::default() },
        }
    }

    #[test]
    fn running_container_is_named_by_its_exact_name_and_a_spec_stays_one() {
        let shells = [shell("run1", "running"), shell("ended", "exited"), shell("pytorch-cuda", "running")];
        let named = |line: &str| {
            let Some(Command::Shell(args)) = Cli::parse_from(line.split(' ')).command else {
                panic!("it is `shell`")
            };
            named_container(&args.into(), &shells, crate::model::compat::embedded())
                .map(|shell| shell.name.clone())
        };
        for line in ["envforge shell run1", "envforge shell run1 -- true", "envforge shell run1 --vscode"] {
            assert_eq!(named(line).as_deref(), Some("run1"), "{line}");
        }
        for line in [
            "envforge shell",
            "envforge shell run",
            "envforge shell run1:latest",
            "envforge shell ended",
            "envforge shell pytorch-cuda",
            "envforge shell run1 --new",
            "envforge shell run1 --name run2",
            "envforge shell run1 --attach",
        ] {
            assert_eq!(named(line), None, "{line}");
        }
    }
}
