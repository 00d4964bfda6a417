//! The question whether a project may use this machine: asked once for each content, remembered in the state folder.

use std::io::IsTerminal as _;

use camino::{Utf8Path, Utf8PathBuf};

use crate::engine::{Mount, MountSource};
use crate::failure::{Exit, Failure};
use crate::model::address::Address;
use crate::model::given::have_login;
use crate::model::project::{HostRequest, SpannedValue, requests_digest};
use crate::report::Printer;
use crate::settings::{SITE_FILE, Settings, TrustedProject};
use crate::shell::{LARGEST_ENV_FILE, MountArgs, ShellError, env_file, mounts, ports, variables};
use crate::store::{Store, is_trusted, read_text_at, remember_trusted};
use crate::workflow::build_request::BuildRequest;
use crate::workflow::confirm::confirm;
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// What a project is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// Its image is built.
    Build,
    /// Its image is built if it is missing, and opened.
    Shell,
}

/// A project that the user does not trust.
#[derive(Debug, thiserror::Error)]
#[error("project `{folder}` is not trusted: it requests access to this machine{}", list(requests))]
pub struct UntrustedProject {
    /// Its folder.
    pub folder: String,
    /// What it requests.
    pub requests: Vec<HostRequest>,
    /// The digests of these requests.
    pub digests: Vec<String>,
    /// The configuration file.
    pub config: String,
    /// Whether it is the site's, which lists the projects: nobody else adds one.
    pub is_closed: bool,
}

impl Failure for UntrustedProject {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        let digests: Vec<_> = self.digests.iter().map(|digest| format!("\"{digest}\"")).collect();
        let add = format!("`[trust]` with `projects = [{}]` to {}", digests.join(", "), self.config);
        if self.is_closed {
            return vec![format!("this site lists the projects it trusts: its administrator adds {add}")];
        }
        vec![
            "read envforge.toml, then pass `--trust` to allow these requests".to_owned(),
            format!("in CI, add {add}"),
        ]
    }
}

/// One line for each request.
fn list(requests: &[HostRequest]) -> String {
    requests.iter().fold(String::new(), |text, request| format!("{text}\n  - {request}"))
}

/// Requests that are accepted together.
struct Group {
    requests: Vec<HostRequest>,
    digest: String,
}

/// Returns once everything that the project requests is allowed; else the error lists all of it. Returns what its
/// container gets of this machine.
pub(crate) async fn require_trust(
    wanted: &BuildRequest,
    purpose: Use,
    trust: bool,
    settings: &Settings,
) -> Result<Judged, CommandError> {
    let Some(folder) = &wanted.folder else { return Ok(Judged::default()) };
    let mut groups = vec![secrets(wanted, folder, settings)];
    let (mut mounts, mut env_files) = (Vec::new(), Vec::new());
    if purpose == Use::Shell {
        let opened = openings(wanted, folder)?;
        groups.push(opened.group);
        (mounts, env_files) = (opened.mounts, opened.env_files);
    }
    groups.retain(|group| !group.requests.is_empty());
    if !groups.is_empty() {
        let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
        require_groups(groups, folder, trust, &store, settings).await?;
    }
    let env = match purpose {
        Use::Shell => variables_of(wanted, &env_files, settings)?,
        Use::Build => Vec::new(),
    };
    Ok(Judged { mounts, env })
}

/// Returns once these apt sources of the base that the project names are allowed.
pub(crate) async fn require_sources(
    session: &Session<'_>,
    wanted: &BuildRequest,
    sources: &[Address],
) -> Result<(), CommandError> {
    let Some(folder) = &wanted.folder else { return Ok(()) };
    let source = |address: &Address| HostRequest::AptSource { address: address.without_login() };
    let requests: Vec<_> = sources.iter().map(source).collect();
    let group = Group { digest: requests_digest(folder, &requests, &[]), requests };
    require_groups(vec![group], folder, wanted.trust, &session.store, session.settings).await
}

/// Returns once each of these groups is allowed; else the error lists all of the others.
async fn require_groups(
    groups: Vec<Group>,
    folder: &Utf8Path,
    trust: bool,
    store: &Store,
    settings: &Settings,
) -> Result<(), CommandError> {
    if is_configured(folder, settings) {
        return Ok(());
    }
    let mut open = Vec::new();
    for group in groups {
        let configured = TrustedProject::Requests(group.digest.clone());
        // What somebody once agreed to counts as long as the site leaves the question to them.
        let was_agreed =
            || Ok::<_, CommandError>(!settings.trust.is_closed && is_trusted(store, &group.digest)?);
        if !settings.trust.projects.contains(&configured) && !was_agreed()? {
            open.push(group);
        }
    }
    if open.is_empty() {
        return Ok(());
    }
    let is_closed = settings.trust.is_closed;
    let error = UntrustedProject {
        folder: folder.as_str().escape_debug().to_string(),
        requests: open.iter().flat_map(|group| group.requests.clone()).collect(),
        digests: open.iter().map(|group| group.digest.clone()).collect(),
        config: if is_closed { SITE_FILE.to_owned() } else { settings.paths.config_file.to_string() },
        is_closed,
    };
    if is_closed || (!trust && !agreed(&error).await) {
        return Err(error.into());
    }
    for group in &open {
        remember_trusted(store, &group.digest, &list(&group.requests))?;
    }
    Ok(())
}

/// Asks on a terminal; without one nobody agrees.
async fn agreed(asked: &UntrustedProject) -> bool {
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return false;
    }
    Printer.say(&format!(
        "project `{}` requests access to this machine{}",
        asked.folder,
        list(&asked.requests)
    ));
    confirm("allow this?").await
}

/// Whether the configuration trusts the folder.
fn is_configured(folder: &Utf8Path, settings: &Settings) -> bool {
    settings.trust.projects.iter().any(|project| match project {
        TrustedProject::Folder(path) => path.canonicalize_utf8().is_ok_and(|path| path == folder),
        TrustedProject::Requests(_) => false,
    })
}

/// The secrets that commands of the build read, and the login of a proxy, which every command gets.
fn secrets(wanted: &BuildRequest, folder: &Utf8Path, settings: &Settings) -> Group {
    let steps = &wanted.added.run;
    let mut requests: Vec<_> = steps
        .iter()
        .flat_map(|step| step.secrets.iter().map(|name| (name.clone(), step.command.clone())))
        .map(|(name, command)| HostRequest::Secret { name, command })
        .collect();
    if !steps.is_empty() && have_login(&settings.network.proxies) {
        requests.push(HostRequest::ProxyLogin);
    }
    let commands: Vec<_> = steps.iter().map(|step| step.command.as_str()).collect();
    Group { digest: requests_digest(folder, &requests, &commands), requests }
}

/// What the container of a project gets of this machine, as it was judged: what lies at a path later may be something else.
#[derive(Default)]
pub(crate) struct Judged {
    /// Its mounts.
    pub(crate) mounts: Vec<Mount>,
    /// Its variables, `NAME=VALUE`.
    pub(crate) env: Vec<String>,
}

/// What its container requests, parsed as `shell` parses it.
struct Openings {
    group: Group,
    mounts: Vec<Mount>,
    /// Files of variables, without links.
    env_files: Vec<Utf8PathBuf>,
}

fn openings(wanted: &BuildRequest, folder: &Utf8Path) -> Result<Openings, CommandError> {
    let shell = &wanted.shell;
    let (mount, data, volume) = (texts(&shell.mounts), texts(&shell.data), texts(&shell.volumes));
    let (mut requests, mut judged) = (Vec::new(), Vec::new());
    for mount in mounts(MountArgs { mount: &mount, data: &data, volume: &volume, current: folder })? {
        let source = match &mount.source {
            MountSource::Folder(source) => real(source.into()),
            MountSource::Volume(name) => {
                requests.push(HostRequest::Volume { name: name.clone(), target: mount.target });
                continue;
            }
        };
        // A link of the project may lead anywhere. What does not exist is refused before the container starts.
        let found = MountSource::Folder(source.to_string());
        judged.push(Mount { source: found, ..mount.clone() });
        requests.extend(HostRequest::of_mount(folder, source, mount.target, mount.read_only));
    }
    for port in ports(&texts(&shell.ports))? {
        requests.extend(HostRequest::of_port(port.address, port.host, port.container));
    }
    let env_files: Vec<_> = shell.env_file.iter().map(|path| real(folder.join(path.as_str()))).collect();
    requests.extend(env_files.iter().filter_map(|path| HostRequest::of_env_file(folder, path.clone())));
    let passed = shell.env.iter().filter(|text| !text.contains('='));
    requests.extend(passed.map(|name| HostRequest::Variable { name: name.to_string() }));
    if shell.ssh == Some(true) {
        requests.push(HostRequest::PublicKeys);
    }
    requests.extend(shell.network.iter().filter_map(|name| HostRequest::of_network(name)));
    let group = Group { digest: requests_digest(folder, &requests, &[]), requests };
    Ok(Openings { group, mounts: judged, env_files })
}

fn texts(list: &[SpannedValue<String>]) -> Vec<String> {
    list.iter().map(|text| text.to_string()).collect()
}

/// A path without links, or as it is where nothing lies.
fn real(path: Utf8PathBuf) -> Utf8PathBuf {
    path.canonicalize_utf8().unwrap_or(path)
}

/// The variables of the container: those of files first.
fn variables_of(
    wanted: &BuildRequest,
    env_files: &[Utf8PathBuf],
    settings: &Settings,
) -> Result<Vec<String>, CommandError> {
    let mut all = Vec::new();
    for path in env_files {
        let Some(text) = read_text_at(path, LARGEST_ENV_FILE)? else {
            let found = real(path.clone()).into_string();
            return Err(ShellError::MovedFolder { path: path.to_string(), found }.into());
        };
        let found = env_file(&text)?;
        // The engine reads them as a wish for devices.
        if let Some(variable) = found.iter().find(|variable| variable.starts_with("NVIDIA_")) {
            let name = variable.split('=').next().unwrap_or(variable).to_owned();
            return Err(ShellError::OwnVariable { name, file: path.to_string() }.into());
        }
        all.extend(found);
    }
    let here = |name: &str| settings.environment.get(name).cloned();
    all.extend(variables(&texts(&wanted.shell.env), here)?);
    Ok(all)
}
