//! Starts a new container: volumes, request, start, and what is given up when the engine refuses it.
#![expect(clippy::disallowed_methods, reason = "reads the files of --env-file")]

use std::collections::BTreeMap;

use tokio::io::AsyncWriteExt as _;

use super::super::CommandError;
use super::super::gpus::{self, Wish};
use super::super::session::Session;
use super::super::verify::subject::Named;
use super::join::{Join, SHELL, program};
use super::labels::{Ends, Says, Shell, container_name};
use super::open::Opened;
use super::{Started, Then, serve};
use crate::cli::ShellArgs;
use crate::engine::{
    Attached, ContainerRequest, Containers, EngineError, FreshVolume, GpuChoice, Limits, Mount, MountSource,
    Preparation, Program, SHELL_LABEL, shm_size,
};
use crate::report::Event;
use crate::sha256::sha256_hex;
use crate::shell::{
    HOME, Inside, MODELS, Ports, Project, Services, ShellError, Typed, User, WORKSPACE, caller_ids, env_file,
    etc_files, free_name, home_files, is_name, memory_size, mounts, nano_cpus, ports, term, variables,
};

/// The label of a volume that holds /etc for a user of an image.
pub(in crate::commands) const ETC_LABEL: &str = "io.envforge.etc";
/// The label of a volume that holds a project's home, or stands for its folder.
const PROJECT_LABEL: &str = "io.envforge.project";
/// Where a forwarded SSH agent is heard.
const AGENT: &str = "/run/envforge-agent.sock";
/// The command of a container that waits for terminals.
const WAITS: [&str; 3] = ["tail", "-f", "/dev/null"];

/// What is started.
pub(super) struct Launch<'a> {
    pub(super) args: &'a ShellArgs,
    pub(super) project: &'a Project,
    pub(super) image: &'a Named,
    pub(super) shells: &'a [Shell],
    pub(super) interactive: bool,
}

/// Starts a container, and in it what was asked for.
pub(super) async fn launch(session: &Session<'_>, launch: Launch<'_>) -> Result<Opened, CommandError> {
    let args = launch.args;
    let ends = match (args.start.detach, args.services.any(), args.command.is_empty() && launch.interactive) {
        (true, ..) => Ends::WhenStopped,
        (false, true, _) => Ends::WithCall,
        (false, false, true) => Ends::WithTerminals,
        (false, false, false) => Ends::WithCommand,
    };
    let user = User::on(session.engine.info(), caller_ids());
    let mut services = serve::services(session, &args.services, &user, args.inside.network.as_deref())?;
    let mut request = request(session, &launch, (&user, ends, &mut services)).await?;
    // The engine of another machine would open its ports there.
    let led = !session.engine.info().local && ends != Ends::WhenStopped;
    let led = if led { Ports::take(&std::mem::take(&mut request.ports)).await? } else { Ports::default() };
    let mut started =
        start(session, args, &mut request, ends == Ends::WithCommand || !services.is_empty()).await?;
    let tunnels = led.lead(&session.containers, started.guard.id());
    match ends {
        Ends::WhenStopped | Ends::WithCall => {
            if let Some(mut attached) = started.attached.take().filter(|_| !services.is_empty()) {
                let lost = |cause: std::io::Error| EngineError::Lost {
                    during: "sending the container its files".to_owned(),
                    cause: cause.to_string(),
                };
                attached.input.write_all(&services.archive(&user)?).await.map_err(lost)?;
                attached.input.shutdown().await.map_err(lost)?;
            }
            let name = request.labels[SHELL_LABEL].clone();
            let told = serve::begin(session, args, (&name, started.guard.id()), &services, &user).await?;
            let container = started.guard.keep();
            Ok(Opened::Served { told, container: (ends == Ends::WithCall).then_some(container), tunnels })
        }
        Ends::WithTerminals => {
            let opened = program(session, started.guard.id(), ends, Join::Terminal, tunnels).await?;
            started.guard.keep();
            Ok(opened)
        }
        Ends::WithCommand => {
            let container = started.guard.keep();
            let attached = started.attached.expect("a command is attached before its start");
            let program = Program::Command(container.clone());
            let then = Then::Remove;
            let terminal = request.terminal;
            Ok(Opened::Program(Box::new(Started {
                container,
                program,
                attached,
                terminal,
                pid_file: None,
                then,
                tunnels,
            })))
        }
    }
}

/// Everything the container is created with.
async fn request(
    session: &Session<'_>,
    launch: &Launch<'_>,
    (user, ends, services): (&User, Ends, &mut Services),
) -> Result<ContainerRequest, CommandError> {
    let Launch { args, project, image, .. } = *launch;
    let info = session.engine.info();
    if user.uid == 0 && !info.rootless {
        let text = "you are root: the container's user is root, too, without any capability";
        session.reporter.report(Event::Warning { text: text.to_owned() });
    }
    warn_of_limits(session, args);
    let name = name(launch)?;
    let inside = inside(session, args);
    let (gpus, gpu_words) = wanted_gpus(session, args)?;
    let mut mounts = mounts(Typed {
        mount: &args.inside.mount,
        data: &args.inside.data,
        volume: &args.inside.volume,
        current: &session.settings.current_dir,
    })?;
    check_folders(session, &mounts)?;
    mounts.extend(standing_mounts(session, launch, user, &inside).await?);
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
    for file in &args.inside.env_file {
        env.extend(env_file(&fs_err::read_to_string(session.settings.current_dir.join(file))?)?);
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
    let says = Says {
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
        workdir: WORKSPACE.to_owned(),
        mounts,
        ports,
        network: args.inside.network.clone().unwrap_or_else(|| "bridge".to_owned()),
        gpus,
        limits,
    })
}

/// The container's name: the one typed, or a free one after the folder's.
fn name(launch: &Launch<'_>) -> Result<String, ShellError> {
    let taken = |name: &str| launch.shells.iter().any(|shell| shell.name == name);
    match &launch.args.start.name {
        Some(name) if !is_name(name) => {
            let why = "a container's name is no such text";
            Err(ShellError::Option { option: "--name", found: name.clone(), why })
        }
        Some(name) if taken(name) => Err(ShellError::NameTaken { name: name.clone() }),
        Some(name) => Ok(name.clone()),
        None => Ok(free_name(&launch.project.name(), taken)),
    }
}

/// What of this machine's settings goes inside.
fn inside(session: &Session<'_>, args: &ShellArgs) -> Inside {
    let models = !args.inside.no_cache;
    if args.inside.no_host_network_settings {
        return Inside { models, ..Inside::default() };
    }
    Inside {
        proxies: session.settings.proxies.clone(),
        index: session.index.default.as_ref().map(|address| address.expose().to_owned()),
        ca_bundle: session.index.ca_bundle.clone(),
        models,
    }
}

/// The GPUs to ask for, and the words for them.
fn wanted_gpus(
    session: &Session<'_>,
    args: &ShellArgs,
) -> Result<(Option<crate::engine::GpuRequest>, String), CommandError> {
    let wish = Wish::parse(args.limits.gpus.as_deref())?;
    let found = gpus::request(session, &wish);
    if found.is_none() && args.limits.require_gpu {
        let because = if wish == Wish::None { "--gpus none" } else { "the engine's machine has none" };
        return Err(ShellError::NoGpu { because: because.to_owned() }.into());
    }
    if found.is_none() && wish == Wish::IfAny {
        let text = "no GPU on the engine's machine: the container works on the CPU";
        session.reporter.report(Event::Note { text: text.to_owned() });
    }
    let words = match found.as_ref().map(|request| &request.choice) {
        None => "none".to_owned(),
        Some(GpuChoice::All) => "all".to_owned(),
        Some(GpuChoice::Named(names)) => names.join(","),
    };
    Ok((found, words))
}

/// How many GPUs, if they can be counted.
fn gpu_count(args: &ShellArgs) -> Option<usize> {
    match args.limits.gpus.as_deref() {
        Some(names) if names != "all" => Some(names.split(',').count()),
        _ => crate::host::detect().ok().map(|facts| facts.gpus.len()),
    }
}

/// The limits typed, for that many GPUs.
fn limits(args: &ShellArgs, gpus: Option<usize>) -> Result<Limits, ShellError> {
    let limits = &args.limits;
    let shm = match &limits.shm_size {
        Some(text) => memory_size("--shm-size", text)?,
        None => i64::try_from(shm_size(gpus)).unwrap_or(i64::MAX),
    };
    Ok(Limits {
        memory: limits.memory.as_deref().map(|text| memory_size("--memory", text)).transpose()?,
        nano_cpus: limits.cpus.as_deref().map(nano_cpus).transpose()?,
        shm_size: Some(shm),
        pids: Some(limits.pids_limit),
        unlocked: false,
    })
}

/// Limits that were typed and are not kept are told: the engine takes them without a word.
fn warn_of_limits(session: &Session<'_>, args: &ShellArgs) {
    let typed = [("--memory", args.limits.memory.is_some()), ("--cpus", args.limits.cpus.is_some())];
    let info = session.engine.info();
    let why = if info.rootless { "; without root it would by cgroups v2 alone" } else { "" };
    for (option, _) in typed.iter().filter(|(option, typed)| *typed && info.unkept_limits.contains(option)) {
        let text = format!("`{option}` does nothing: this engine keeps no such limit{why}");
        session.reporter.report(Event::Warning { text });
    }
}

/// Folders must be there, and an engine elsewhere cannot see them.
fn check_folders(session: &Session<'_>, mounts: &[Mount]) -> Result<(), ShellError> {
    for mount in mounts {
        let MountSource::Folder(path) = &mount.source else { continue };
        if !session.engine.info().local {
            let option = if mount.read_only { "--data" } else { "--mount" };
            return Err(ShellError::RemoteFolder { option, path: path.clone() });
        }
        if !std::path::Path::new(path).exists() {
            return Err(ShellError::NoFolder { path: path.clone() });
        }
    }
    Ok(())
}

/// The mounts every container has: the project, the home, /etc with the user in it, models. What of it is new is made
/// the caller's first.
async fn standing_mounts(
    session: &Session<'_>,
    launch: &Launch<'_>,
    user: &User,
    inside: &Inside,
) -> Result<Vec<Mount>, CommandError> {
    let Launch { args, project, image, .. } = *launch;
    let labelled = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let fresh = |name: String, target: &str, labels| FreshVolume {
        name,
        target: target.to_owned(),
        labels,
        copies: false,
        owner: Some(user.owner()),
    };
    let python = image
        .image
        .labels
        .get("io.envforge.name")
        .and_then(|name| name.split("-py").nth(1)?.split('-').next());
    let of_project = labelled(PROJECT_LABEL, project.folder.as_str());
    let etc = [image.image.id.as_bytes(), user.numbers().as_bytes(), &inside.fingerprint()].join(&b'\0');
    let etc = format!("envforge-etc-{}", &sha256_hex(&etc)[..16]);
    let mut volumes = vec![
        FreshVolume { copies: true, owner: None, ..fresh(etc, "/etc", labelled(ETC_LABEL, &image.image.id)) },
        fresh(project.home_volume(python), HOME, of_project.clone()),
    ];
    let mut mounts = Vec::new();
    if session.engine.info().local {
        let source = MountSource::Folder(project.folder.to_string());
        mounts.push(Mount { source, target: WORKSPACE.to_owned(), read_only: false });
    } else {
        let text = format!(
            "the engine is on another machine and cannot see {}: {WORKSPACE} is a volume there; \
             send files with `tar c . | envforge shell {} -- tar x`",
            project.folder, image.reference
        );
        session.reporter.report(Event::Note { text });
        volumes.push(fresh(project.workspace_volume(), WORKSPACE, of_project));
    }
    if inside.models {
        volumes.push(fresh(project.models_volume(), MODELS, BTreeMap::new()));
    }
    for volume in &volumes {
        mounts.push(Mount {
            source: MountSource::Volume(volume.name.clone()),
            target: volume.target.clone(),
            read_only: volume.target == "/etc",
        });
    }
    let named = args.inside.volume.iter().filter_map(|text| text.split_once(':'));
    volumes.extend(named.map(|(name, target)| fresh(name.to_owned(), target, BTreeMap::new())));
    prepare(session, image, user, inside, volumes).await?;
    Ok(mounts)
}

/// Makes those of the volumes that are not there.
async fn prepare(
    session: &Session<'_>,
    image: &Named,
    user: &User,
    inside: &Inside,
    volumes: Vec<FreshVolume>,
) -> Result<(), CommandError> {
    let containers = &*session.containers;
    if absent(containers, volumes.clone()).await?.is_empty() {
        return Ok(());
    }
    // Two calls at once make one volume; the second finds it whole.
    let _alone = session.store.lock("shell-volumes").await?;
    let volumes = absent(containers, volumes).await?;
    let has = |target: &str| volumes.iter().any(|volume| volume.target == target);
    let (etc, home) = (has("/etc"), has(HOME));
    let (user, inside, user_namespace) = (user.clone(), inside.clone(), user.namespace.clone());
    let mut reads = Vec::new();
    if etc {
        reads.extend(["/etc/passwd", "/etc/group"]);
    }
    if home {
        reads.push("/etc/skel");
    }
    let fill = Box::new(move |tars: &crate::engine::Tars| {
        let mut files = if etc { etc_files(tars, &user, &inside) } else { Vec::new() };
        if home {
            files.extend(home_files(tars, &user));
        }
        files
    });
    let reads = reads.into_iter().map(str::to_owned).collect();
    if !volumes.is_empty() {
        let image = image.image.id.clone();
        containers.prepare(Preparation { image, user_namespace, volumes, reads, fill }).await?;
    }
    Ok(())
}

async fn absent(
    containers: &dyn Containers,
    volumes: Vec<FreshVolume>,
) -> Result<Vec<FreshVolume>, EngineError> {
    let asked = volumes.into_iter().map(|volume| async move {
        let there = containers.has_volume(&volume.name).await?;
        Ok((!there).then_some(volume))
    });
    let answers: Result<Vec<_>, EngineError> = futures_util::future::try_join_all(asked).await;
    Ok(answers?.into_iter().flatten().collect())
}

/// A container that was started, still guarded.
struct Running<'a> {
    guard: Unkept<'a>,
    attached: Option<Attached>,
}

/// A container that is removed unless it is kept.
struct Unkept<'a> {
    containers: &'a dyn Containers,
    id: Option<String>,
}

impl Unkept<'_> {
    fn id(&self) -> &str {
        self.id.as_deref().expect("it was not given away")
    }

    fn keep(mut self) -> String {
        self.id.take().expect("it was not given away")
    }
}

impl Drop for Unkept<'_> {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.containers.discard_container(id);
        }
    }
}

/// Creates and starts it; what the engine refuses and can be done without is given up, with one line for each.
async fn start<'a>(
    session: &'a Session<'_>,
    args: &ShellArgs,
    request: &mut ContainerRequest,
    attaches: bool,
) -> Result<Running<'a>, CommandError> {
    let containers = &*session.containers;
    loop {
        // By name: the guard must know it before the daemon does.
        let guard = Unkept { containers, id: Some(request.name.clone()) };
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
    args: &ShellArgs,
    request: &mut ContainerRequest,
) -> Result<Option<String>, ShellError> {
    if let Some(finding) = error.no_gpu().filter(|_| request.gpus.is_some() && args.limits.gpus.is_none()) {
        if args.limits.require_gpu {
            return Err(ShellError::NoGpu { because: format!("{}; {}", finding.what, finding.why) });
        }
        request.gpus = None;
        request.limits.unlocked = false;
        return Ok(Some(format!("no GPU: {}; the container works on the CPU", finding.what)));
    }
    if request.limits.unlocked && error.to_string().contains("rlimit") {
        request.limits.unlocked = false;
        let text = "the engine allows no unlimited locked memory: NCCL may have to do with less";
        return Ok(Some(text.to_owned()));
    }
    Ok(None)
}
