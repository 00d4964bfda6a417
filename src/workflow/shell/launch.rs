//! Starts a new container: volumes, request, start, and what is given up when the engine refuses it.

use tokio::io::AsyncWriteExt as _;

use crate::engine::{
    Attached, ContainerRequest, EngineError, ImageInfo, Limits, Mount, MountSource, Program, SHELL_LABEL,
};
use crate::model::given::Receiver;
use crate::model::image::paths::WORKSPACE;
use crate::model::request;
use crate::report::Event;
use crate::shell::labels::{ContainerLabels, Ends, container_name};
use crate::shell::{
    ContainerEnv, LARGEST_ENV_FILE, LocalListeners, MountArgs, NewContainer, Services, ShellError, User,
    caller_ids, env_file, free_name, is_name, mounts, ports, term, variables,
};
use crate::store::built_images::built_from;
use crate::store::read_typed_text;
use crate::workflow::error::CommandError;
use crate::workflow::proven::proven;
use crate::workflow::session::Session;
use crate::workflow::shell::container_spec::ContainerSpec;
use crate::workflow::shell::join::{Join, RunningContainer, SHELL, program, workdir_of};
use crate::workflow::shell::limits::{gpu_count, limits, wanted_gpus, warn_of_limits};
use crate::workflow::shell::mount_check::{check_folders, warn_of_mounts};
use crate::workflow::shell::outcome::{OpenOutcome, Started, Then};
use crate::workflow::shell::serve;
use crate::workflow::shell::settled_mounts::{Settled, settle};
use crate::workflow::shell::volumes::standing_mounts;

/// Where a forwarded SSH agent is heard.
const AGENT: &str = "/run/envforge-agent.sock";
/// The command of a container that waits for terminals.
const WAITS: [&str; 3] = ["tail", "-f", "/dev/null"];

/// Starts a container, and in it what was asked for.
pub(super) async fn launch(
    session: &Session<'_>,
    launch: ContainerSpec<'_>,
) -> Result<OpenOutcome, CommandError> {
    let args = launch.args;
    let ends = match (args.start.detach, args.services.any(), args.command.is_empty() && launch.interactive) {
        (true, ..) => Ends::WhenStopped,
        (false, true, _) => Ends::WithCall,
        (false, false, true) => Ends::WithTerminals,
        (false, false, false) => Ends::WithCommand,
    };
    let user = User::on(session.engine.info(), caller_ids());
    let mut services =
        serve::services(session, &args.services, &user, args.inside.network.as_deref()).await?;
    let mut request = request(session, &launch, (&user, ends, &mut services)).await?;
    // The engine of another machine would open its ports there.
    let led = !session.engine.info().local && ends != Ends::WhenStopped;
    let led = if led {
        LocalListeners::take(&std::mem::take(&mut request.ports)).await?
    } else {
        LocalListeners::default()
    };
    let mut started =
        start(session, args, &mut request, ends == Ends::WithCommand || !services.is_empty()).await?;
    let tunnels = led.forward(&session.containers, started.guard.id());
    match ends {
        Ends::WhenStopped | Ends::WithCall => {
            if let Some(mut attached) = started.attached.take().filter(|_| !services.is_empty()) {
                let lost = |cause: std::io::Error| EngineError::Lost {
                    during: "sending files to the container".to_owned(),
                    cause: cause.to_string(),
                };
                attached.input.write_all(&services.archive(&user)?).await.map_err(lost)?;
                attached.input.shutdown().await.map_err(lost)?;
            }
            let name = request.labels[SHELL_LABEL].clone();
            let mut told = serve::begin(session, args, (&name, started.guard.id()), &services, &user).await?;
            told.proven = Some(proven(&session.store, &*session.reporter, &launch.image.image)?);
            let container = started.guard.keep();
            Ok(OpenOutcome::Served {
                told,
                container: (ends == Ends::WithCall).then_some(container),
                tunnels,
            })
        }
        Ends::WithTerminals => {
            let running = RunningContainer { id: started.guard.id(), folder: &launch.project.folder, ends };
            let opened = program(session, &running, Join::Terminal, tunnels).await?;
            started.guard.keep();
            Ok(opened)
        }
        Ends::WithCommand => {
            let container = started.guard.keep();
            let attached = started.attached.expect("a command is attached before its start");
            let program = Program::Command(container.clone());
            let then = Then::Remove;
            let terminal = request.terminal;
            Ok(OpenOutcome::Program(Box::new(Started {
                container,
                program,
                attached,
                terminal,
                pid_file: None,
                then,
                opens_again: true,
                tunnels,
            })))
        }
    }
}

/// Everything the container is created with.
async fn request(
    session: &Session<'_>,
    launch: &ContainerSpec<'_>,
    (user, ends, services): (&User, Ends, &mut Services),
) -> Result<ContainerRequest, CommandError> {
    let ContainerSpec { args, project, image, .. } = *launch;
    let info = session.engine.info();
    if user.uid == 0 && !info.rootless {
        let text = "running as root: the container's user is root without capabilities";
        session.reporter.report(Event::Warning { text: text.to_owned() });
    }
    warn_of_limits(session, args);
    let name = name(launch)?;
    let inside = inside(session, args, &image.image)?;
    let (gpus, gpu_words) = wanted_gpus(session, args)?;
    let typed = mounts(MountArgs {
        mount: &args.inside.mount,
        data: &args.inside.data,
        volume: &args.inside.volume,
        current: &session.settings.paths.current_dir,
    })?;
    // A path that was typed stands for the project's.
    let is_typed = |mount: &&Mount| typed.iter().any(|other| other.target == mount.target);
    let judged: Vec<Mount> = launch.judged.mounts.iter().filter(|mount| !is_typed(mount)).cloned().collect();
    check_folders(session, &[&judged[..], &typed].concat())?;
    let Settled { mut mounts, links, writable } = settle(&project.folder, &judged, typed)?;
    for link in writable {
        let text =
            format!("{} is a link to {}: programs in the container can write there", link.path, link.to);
        session.reporter.report(Event::Note { text });
    }
    mounts.extend(standing_mounts(session, launch, user, &inside).await?);
    warn_of_mounts(session, &mounts);
    let mut env = inside.environment(user);
    if args.inside.ssh_agent {
        let agent = session.settings.environment.get("SSH_AUTH_SOCK").filter(|_| info.local);
        let source = MountSource::Folder(agent.ok_or(ShellError::NoAgent)?.clone());
        mounts.push(Mount { source, target: AGENT.to_owned(), read_only: false });
        env.push(format!("SSH_AUTH_SOCK={AGENT}"));
    }
    let terminal = launch.interactive && ends == Ends::WithCommand;
    if terminal {
        env.push(format!("TERM={}", term(session.settings.environment.get("TERM").map(String::as_str))));
    }
    env.extend(launch.judged.env.iter().cloned());
    for file in &args.inside.env_file {
        let file = session.settings.paths.current_dir.join(file);
        env.extend(env_file(&read_typed_text(&file, LARGEST_ENV_FILE).await?)?);
    }
    env.extend(variables(&args.inside.env, |name| session.settings.environment.get(name).cloned())?);
    if let Some(ssh) = &mut services.ssh {
        // A session of sshd begins with nothing of the container's environment.
        ssh.env = image.image.env.iter().chain(&env).cloned().collect();
    }
    let command = match (ends, args.command.is_empty()) {
        _ if !services.is_empty() => services.command(),
        (_, false) => args.command.clone(),
        (Ends::WithCommand, true) => ["/bin/sh", "-c", SHELL].map(str::to_owned).to_vec(),
        (_, true) => WAITS.map(str::to_owned).to_vec(),
    };
    let numbers = format!("{}:{}", project.uid, caller_ids().1);
    let says = ContainerLabels {
        name: &name,
        spec: &image.reference,
        folder: project.folder.as_str(),
        user: &numbers,
        gpus: &gpu_words,
        services: &services.words(),
        ends,
    };
    let mut ports = ports(&args.inside.port)?;
    ports.extend(serve::ports(&args.services, services));
    let count = if gpus.is_some() { gpu_count(args) } else { Some(0) };
    let limits = Limits { unlocked: gpus.is_some(), ..limits(args, count)? };
    Ok(ContainerRequest {
        name: container_name(&name),
        image: image.image.id.clone(),
        command,
        own_entrypoint: image.image.labels.contains_key("io.envforge.schema"),
        env,
        user: user.numbers(),
        user_namespace: user.namespace.clone(),
        labels: says.labels(),
        terminal,
        workdir: if services.is_empty() {
            workdir_of(session, &project.folder)
        } else {
            WORKSPACE.to_owned()
        },
        mounts,
        links,
        ports,
        network: args.inside.network.clone().unwrap_or_else(|| "bridge".to_owned()),
        gpus,
        limits,
    })
}

/// The container's name: the one typed, or a free one after the folder's.
fn name(launch: &ContainerSpec<'_>) -> Result<String, ShellError> {
    let taken = |name: &str| launch.shells.iter().any(|shell| shell.name == name);
    match &launch.args.start.name {
        Some(name) if !is_name(name) => {
            let why = "invalid container name";
            Err(ShellError::Option { option: "--name", found: name.clone(), why })
        }
        Some(name) if taken(name) => Err(ShellError::NameTaken { name: name.clone() }),
        Some(name) => Ok(name.clone()),
        None => Ok(free_name(&launch.project.name(), taken)),
    }
}

/// What of this machine's settings goes inside.
fn inside(
    session: &Session<'_>,
    args: &request::Shell,
    image: &ImageInfo,
) -> Result<ContainerEnv, CommandError> {
    let here = built_from(&session.store, &image.id)?.is_some();
    let receiver = if here { Receiver::Shell } else { Receiver::ShellOfElsewhere };
    let all = ContainerEnv { models: !args.inside.no_cache, ..ContainerEnv::default() };
    let all = if args.inside.no_host_network_settings {
        all
    } else {
        ContainerEnv {
            proxies: session.settings.network.proxies.clone(),
            index: session.index.default.as_ref().map(|address| address.expose().to_owned()),
            ca_bundle: session.index.ca_bundle.clone(),
            ..all
        }
    };
    let inside = all.clone().for_receiver(receiver, &image.id);
    let lacks = [
        ("no address of the package index", all.index != inside.index),
        ("no login of the proxy", all.proxies != inside.proxies),
        ("no volume of models", all.models != inside.models),
        ("a home of its own", inside.own_home.is_some()),
    ];
    let lacks: Vec<&str> = lacks.iter().filter(|(_, differs)| *differs).map(|(what, _)| *what).collect();
    if !lacks.is_empty() {
        let text = format!("this image was not built here: it gets {}", lacks.join(", "));
        session.reporter.report(Event::Note { text });
    }
    Ok(inside)
}

/// A container that was started, still guarded.
struct Running<'a> {
    guard: NewContainer<'a>,
    attached: Option<Attached>,
}

/// Creates and starts it; what the engine refuses and can be done without is given up, with one line for each.
async fn start<'a>(
    session: &'a Session<'_>,
    args: &request::Shell,
    request: &mut ContainerRequest,
    attaches: bool,
) -> Result<Running<'a>, CommandError> {
    let containers = &*session.containers;
    loop {
        // By name: the guard must know it before the daemon does.
        let guard = NewContainer::of(containers, &request.name);
        let error = if let Err(error) = containers.create(request).await {
            // Nothing was made, and the name may be another's.
            if matches!(error, EngineError::Refused { .. }) {
                guard.keep();
            }
            error
        } else {
            let attached =
                if attaches { Some(containers.attach(&request.name, request.terminal).await?) } else { None };
            match containers.start(&request.name).await {
                Ok(()) => return Ok(Running { guard, attached }),
                Err(error) => error,
            }
        };
        let text = give_up(&error, args, request)?.ok_or(error)?;
        session.reporter.report(Event::Note { text });
    }
}

/// What can be done without, taken out of the request; `None`: nothing of that kind was refused.
fn give_up(
    error: &EngineError,
    args: &request::Shell,
    request: &mut ContainerRequest,
) -> Result<Option<String>, ShellError> {
    if let Some(finding) =
        error.gpu_unavailable().filter(|_| request.gpus.is_some() && args.limits.gpus.is_none())
    {
        if args.limits.require_gpu {
            return Err(ShellError::NoGpu { because: format!("{}; {}", finding.what, finding.why) });
        }
        request.gpus = None;
        request.limits.unlocked = false;
        return Ok(Some(format!("no GPU available: {}; running on CPU only", finding.what)));
    }
    if request.limits.unlocked && error.to_string().contains("rlimit") {
        request.limits.unlocked = false;
        let text = "the engine does not allow unlimited locked memory: NCCL may have less available";
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}
