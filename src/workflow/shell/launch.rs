//! Starts a new container: volumes, request, start, and what is given up when the engine refuses it.

use tokio::io::AsyncWriteExt as _;

use crate::engine::{
    Attached, ContainerRequest, EngineError, ImageInfo, Limits, Mount, MountSource, Program, SHELL_LABEL,
};
use crate::model::given::Receiver;
use crate::model::image::paths::WORKSPACE;
use crate::model::image::plan::NAME_LABEL;
use crate::model::request;
use crate::report::Event;
use crate::shell::labels::{ContainerLabels, Ends, Shell, container_name};
use crate::shell::{
    ContainerEnv, LARGEST_ENV_FILE, LocalListeners, MountArgs, NewContainer, Project, Services, ShellError,
    User, caller_ids, env_file, free_name, is_name, mounts, ports, project_variables, term, variables,
};
use crate::store::built_images::built_from;
use crate::store::{read_typed_text, read_typed_text_early};
use crate::workflow::error::CommandError;
use crate::workflow::named::Named;
use crate::workflow::project_trust::Judged;
use crate::workflow::proven::proven;
use crate::workflow::session::Session;
use crate::workflow::shell::container_spec::ContainerSpec;
use crate::workflow::shell::join::{Join, RunningContainer, SHELL, program, workdir_of};
use crate::workflow::shell::limits::{
    gpu_count, limits, rdma_folders, required_gpus, wanted_gpus, warn_of_limits,
};
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
            let folder = &launch.project.folder;
            let running = RunningContainer { id: started.guard.id(), folder, ends, code: launch.code };
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

/// An error for options that this machine cannot satisfy: a directory that does not exist, a GPU that is not there. Called before an
/// image is built for them, which takes minutes.
pub(super) async fn check_options(
    session: &Session<'_>,
    args: &request::Shell,
    (project, judged, shells): (&Project, &Judged, &[Shell]),
) -> Result<(), CommandError> {
    let user = User::on(session.engine.info(), caller_ids());
    serve::check_services(session, &args.services, &user, args.inside.network.as_deref()).await?;
    name(args, project, shells)?;
    settled_mounts(session, args, project, judged)?;
    if args.inside.ssh_agent {
        ssh_agent(session)?;
    }
    for file in &args.inside.env_file {
        let file = session.settings.paths.current_dir.join(file);
        if let Some(text) = read_typed_text_early(&file, LARGEST_ENV_FILE)? {
            env_file(&text)?;
        }
    }
    variables(&args.inside.env, |name| session.settings.environment.get(name).cloned())?;
    ports(&args.inside.port)?;
    limits(args, Some(0))?;
    required_gpus(session, args)?;
    Ok(())
}

/// The directories and links of the container: those of the project's file, unless a path that was typed stands for one.
fn settled_mounts(
    session: &Session<'_>,
    args: &request::Shell,
    project: &Project,
    judged: &Judged,
) -> Result<Settled, ShellError> {
    let typed = mounts(MountArgs {
        mount: &args.inside.mount,
        data: &args.inside.data,
        volume: &args.inside.volume,
        current: &session.settings.paths.current_dir,
    })?;
    let is_typed = |mount: &&Mount| typed.iter().any(|other| other.target == mount.target);
    let judged: Vec<Mount> = judged.mounts.iter().filter(|mount| !is_typed(mount)).cloned().collect();
    check_folders(session, &[&judged[..], &typed].concat())?;
    settle(&project.folder, &judged, typed)
}

/// The socket of the caller's SSH agent.
fn ssh_agent(session: &Session<'_>) -> Result<String, ShellError> {
    let agent = session.settings.environment.get("SSH_AUTH_SOCK").filter(|_| session.engine.info().local);
    agent.cloned().ok_or(ShellError::NoAgent)
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
    let name = name(args, project, launch.shells)?;
    let inside = inside(session, args, &image.image)?;
    let (gpus, gpu_words) = wanted_gpus(session, args)?;
    let Settled { mut mounts, links, writable } = settled_mounts(session, args, project, launch.judged)?;
    for link in writable {
        let text =
            format!("{} is a link to {}: programs in the container can write there", link.path, link.to);
        session.reporter.report(Event::Note { text });
    }
    mounts.extend(standing_mounts(session, launch, user, &inside).await?);
    warn_of_mounts(session, &mounts);
    let mut env = inside.environment(user);
    env.extend(prompt_name(image).map(|name| format!("debian_chroot={name}")));
    if args.inside.ssh_agent {
        let source = MountSource::Folder(ssh_agent(session)?);
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
    if launch.code.is_some() {
        env.extend(project_variables(&image.image.env, &env));
    }
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
    let command = match launch.code {
        Some(code) => code.before(command),
        None => command,
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
    let devices = rdma_folders(session, args, gpus.is_some());
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
        devices,
        has_sshd_of_root: services.ssh.is_some() && user.uid == 0,
        limits,
    })
}

/// The container's name: the one typed, or a free one after the folder's.
fn name(args: &request::Shell, project: &Project, shells: &[Shell]) -> Result<String, ShellError> {
    let taken = |name: &str| shells.iter().any(|shell| shell.name == name);
    match &args.start.name {
        Some(name) if !is_name(name) => {
            let why = "invalid container name";
            Err(ShellError::Option { option: "--name", found: name.clone(), why })
        }
        Some(name) if taken(name) => Err(ShellError::NameTaken { name: name.clone() }),
        Some(name) => Ok(name.clone()),
        None => Ok(free_name(&project.name(), taken)),
    }
}

/// The name in the prompt: that of the project, else of the image. Prompts of Debian and Ubuntu begin with this variable in brackets;
/// nothing else looks at it.
fn prompt_name(image: &Named) -> Option<String> {
    let own = image.image.labels.get(NAME_LABEL).unwrap_or(&image.reference);
    let project = own.strip_prefix("envforge/").and_then(|rest| rest.split_once(':'));
    let name = project.map_or(own.as_str(), |(project, _)| project);
    // Another party's label is put on the caller's terminal.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/+".contains(c);
    (!name.is_empty() && name.len() < 64 && name.chars().all(is_plain)).then(|| name.to_owned())
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
        request.devices.clear();
        request.limits.unlocked = false;
        return Ok(Some(format!("no GPU available: {}; running on CPU only", finding.what)));
    }
    if let Some(text) = without_devices(error, &mut request.devices) {
        return Ok(Some(text));
    }
    if request.limits.unlocked && error.to_string().contains("rlimit") {
        request.limits.unlocked = false;
        let text = "the engine does not allow unlimited locked memory: NCCL may have less available";
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}

/// Takes out devices that the engine does not pass: its machine may be another one than this, or it may not be allowed to.
fn without_devices(error: &EngineError, devices: &mut Vec<String>) -> Option<String> {
    let text = error.to_string();
    if !devices.iter().any(|device| text.contains(device.as_str())) {
        return None;
    }
    let refused = std::mem::take(devices).join(", ");
    Some(format!("the engine does not pass {refused}: NCCL uses TCP between nodes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_that_the_engine_refuses_are_left_out() {
        let refused =
            |text: &str| EngineError::Refused { during: "creating a".to_owned(), text: text.to_owned() };
        // As Docker 20.10 says it.
        let absent = refused(
            "error gathering device information while adding custom device \"/dev/infiniband\": no such file or directory",
        );
        let mut devices = vec!["/dev/infiniband".to_owned()];
        assert_eq!(
            without_devices(&refused("error setting rlimit type 8: operation not permitted"), &mut devices),
            None
        );
        let text = without_devices(&absent, &mut devices).expect("left out");
        assert_eq!(text, "the engine does not pass /dev/infiniband: NCCL uses TCP between nodes");
        assert_eq!((devices.len(), without_devices(&absent, &mut devices)), (0, None), "it is tried once");
    }

    #[test]
    fn prompt_names_project_or_image_and_nothing_of_a_terminal() {
        let name = |label: Option<&str>, reference: &str| {
            let mut image = ImageInfo::default();
            image.labels.extend(label.map(|label| (NAME_LABEL.to_owned(), label.to_owned())));
            prompt_name(&Named { reference: reference.to_owned(), image })
        };
        let project =
            name(Some("envforge/vision-ft:0123456789ab"), "envforge/vision-ft:0123456789ab-unverified");
        assert_eq!(project.as_deref(), Some("vision-ft"));
        let spec = name(Some("pytorch-cuda:2.8.0-cu128-py3.11"), "team/torch:1");
        assert_eq!(spec.as_deref(), Some("pytorch-cuda:2.8.0-cu128-py3.11"));
        assert_eq!(name(None, "team/torch:1").as_deref(), Some("team/torch:1"));
        for hostile in ["a\u{1b}[31m", "$(id)", "`id`", "a b", ""] {
            assert_eq!(name(Some(hostile), "x"), None, "{hostile:?}");
        }
    }
}
