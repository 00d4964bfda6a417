//! Joins a container that runs.

use camino::Utf8Path;

use crate::engine::ExecRequest;
use crate::model::image::paths::WORKSPACE;
use crate::model::request;
use crate::report::Event;
use crate::shell::labels::{Ends, Shell};
use crate::shell::{ProjectCode, Tunnels, is_interactive, term, workdir};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;
use crate::workflow::shell::outcome::{OpenOutcome, Started, Then};

/// The session that a lost connection does not end.
const TMUX: &str = "tmux new-session -A -s envforge";
/// Becomes bash, or what the image has instead.
pub(super) const SHELL: &str = "exec \"$(command -v bash || echo sh)\"";

/// What is run in it.
pub(super) enum Join<'a> {
    /// A shell.
    Terminal,
    /// That command.
    Command(&'a [String]),
    /// The tmux session.
    Tmux,
}

/// A container that runs.
pub(super) struct RunningContainer<'a> {
    pub(super) id: &'a str,
    /// Its project, the folder at /workspace.
    pub(super) folder: &'a Utf8Path,
    pub(super) ends: Ends,
    /// The code of that project.
    pub(super) code: Option<&'a ProjectCode>,
}

pub(super) async fn join(
    session: &Session<'_>,
    shell: &Shell,
    what: Join<'_>,
    code: Option<&ProjectCode>,
) -> Result<OpenOutcome, CommandError> {
    if matches!(what, Join::Terminal) && shell.ends == Ends::WhenStopped && is_interactive() {
        let text = format!(
            "`envforge shell {} --attach` opens its tmux session `envforge`, which a lost connection does not end",
            shell.name
        );
        session.reporter.report(Event::Note { text });
    }
    let folder = Utf8Path::new(&shell.folder);
    let container = RunningContainer { id: &shell.container.id, folder, ends: shell.ends, code };
    program(session, &container, what, Tunnels::new()).await
}

/// Returns the directory of a container that the caller is in. Another machine's /workspace is a volume, which has none of the
/// caller's.
pub(super) fn workdir_of(session: &Session<'_>, folder: &Utf8Path) -> String {
    if !session.engine.info().local {
        return WORKSPACE.to_owned();
    }
    let current = &session.settings.paths.current_dir;
    workdir(folder, &current.canonicalize_utf8().unwrap_or_else(|_| current.clone()))
}

/// Runs a program in a running container.
pub(super) async fn program(
    session: &Session<'_>,
    running: &RunningContainer<'_>,
    what: Join<'_>,
    tunnels: Tunnels,
) -> Result<OpenOutcome, CommandError> {
    let sh = |script: &str| ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    let command = match what {
        Join::Terminal => sh(SHELL),
        Join::Tmux => sh(&format!("exec {TMUX}")),
        Join::Command(words) => words.to_vec(),
    };
    let command = match running.code {
        Some(code) => code.before(command),
        None => command,
    };
    let terminal = is_interactive();
    let workdir = Some(workdir_of(session, running.folder));
    let mut request = ExecRequest { command, workdir, terminal, stdin: true, ..ExecRequest::default() };
    let mut pid_file = None;
    if terminal {
        request.env =
            vec![format!("TERM={}", term(session.settings.environment.get("TERM").map(String::as_str)))];
    } else {
        // The engine passes no signal to what runs beside the container's own command: it says who it is.
        let file = format!("/tmp/.envforge-{:016x}", rand::random::<u64>());
        let script = format!("echo $$ >{file}; exec \"$@\"");
        request.command.splice(0..0, sh(&script).into_iter().chain(["sh".to_owned()]));
        pid_file = Some(file);
    }
    let (program, attached) = session.containers.exec(running.id, &request).await?;
    let then = if running.ends == Ends::WithTerminals { Then::RemoveIfLast } else { Then::Keep };
    let container = running.id.to_owned();
    let started =
        Started { container, program, attached, terminal, pid_file, then, opens_again: true, tunnels };
    Ok(OpenOutcome::Program(Box::new(started)))
}

/// The first option that means something only when a container starts.
pub(super) fn unchangeable(args: &request::Shell) -> Option<&'static str> {
    let (limits, inside) = (&args.limits, &args.inside);
    let options = [
        ("--gpus", limits.gpus.is_some()),
        ("--memory", limits.memory.is_some()),
        ("--cpus", limits.cpus.is_some()),
        ("--shm-size", limits.shm_size.is_some()),
        ("--mount", !inside.mount.is_empty()),
        ("--data", !inside.data.is_empty()),
        ("--volume", !inside.volume.is_empty()),
        ("--port", !inside.port.is_empty()),
        ("--env", !inside.env.is_empty()),
        ("--env-file", !inside.env_file.is_empty()),
        ("--network", inside.network.is_some()),
        ("--ssh-agent", inside.ssh_agent),
        ("--bind", args.services.bind.is_some()),
    ];
    options.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
}
