//! What the outcome of an image's checks depends on. A whole report that was made under equal conditions stands in place of a run; if one
//! of them is not known, the checks run.

use camino::Utf8Path;
use serde::Serialize;

use crate::agent;
use crate::engine::{EngineInfo, GpuRequest, ImageInfo};
use crate::host;
use crate::model::lock::{Lock, LockedCheck};
use crate::model::request::Level;
use crate::model::verdict::expectation_file;
use crate::store::{Store, StoreError};
use crate::workflow::error::CommandError;
use crate::workflow::session::Session;

/// The conditions of a run.
#[derive(Serialize)]
struct Conditions<'a> {
    /// This program, which judges: its version, and its file as it is now.
    program: (&'static str, String),
    /// SHA-256 of its agent, which looks at the files.
    agent: String,
    /// The image's id.
    image: &'a str,
    /// Its layers, variables, labels and user.
    configuration: String,
    /// What the checks compare with.
    expectation: String,
    required: Vec<String>,
    project_checks: &'a [LockedCheck],
    /// What no file may contain.
    forbidden: Vec<String>,
    level: &'a str,
    engine: EngineIdentity<'a>,
    boot: host::Boot,
    /// Settings of engines and of the container toolkit, and CDI specifications, by the state of their files.
    engine_files: Vec<String>,
    /// `None`: the checks ask for no GPU.
    gpus: Option<GpuConditions>,
}

#[derive(Serialize)]
struct EngineIdentity<'a> {
    id: &'a str,
    name: &'a str,
    version: &'a str,
    storage_driver: Option<&'a str>,
}

#[derive(Serialize)]
struct GpuConditions {
    /// What the engine is asked for.
    request: String,
    driver: String,
    toolkit: String,
    /// UUIDs with their MIG devices.
    devices: Vec<String>,
}

impl Conditions<'_> {
    /// One digest of all. It is keyed: what is forbidden may be a password that can be guessed.
    fn digest(&self, store: &Store) -> Result<String, StoreError> {
        let text = serde_json::to_vec(self).expect("texts and lists serialise");
        store.keyed_digest("conditions of checks", &text)
    }
}

/// A run of the checks of an image that was built here.
pub(super) struct Run<'a> {
    pub(super) image: &'a ImageInfo,
    pub(super) lock: &'a Lock,
    /// That of the checks, `static` without a GPU.
    pub(super) level: Level,
    /// The checks that a tag requires.
    pub(super) required: Vec<String>,
    /// Whether the project's checks see its source, which is not part of the image.
    pub(super) with_source: bool,
    pub(super) gpus: Option<&'a GpuRequest>,
}

/// The digest of the conditions of a run now; `None`: one of them is not known, or changes without notice.
pub(super) fn conditions(session: &Session<'_>, run: Run<'_>) -> Result<Option<String>, CommandError> {
    let Run { image, lock, level, required, with_source, gpus } = run;
    // Speeds differ from run to run.
    if level == Level::Perf || with_source {
        return Ok(None);
    }
    let Some(boot) = host::boot() else { return Ok(None) };
    let Some(engine) = identity(session.engine.info(), &boot) else { return Ok(None) };
    let home = session.settings.environment.get("HOME").map(Utf8Path::new);
    let (Some(file), Some(engine_files)) = (host::program_file(), host::engine_files("/".into(), home))
    else {
        return Ok(None);
    };
    let gpus = match gpus {
        None => None,
        Some(request) => match gpu_conditions(request) {
            Some(found) => Some(found),
            None => return Ok(None),
        },
    };
    let mut forbidden = session.forbidden_strings();
    forbidden.sort();
    let conditions = Conditions {
        program: (env!("CARGO_PKG_VERSION"), file),
        agent: agent::sha256(),
        image: &image.id,
        configuration: image.fingerprint(),
        expectation: expectation_file(lock),
        required,
        project_checks: &lock.added.checks,
        forbidden,
        level: level.as_str(),
        engine,
        boot,
        engine_files,
        gpus,
    };
    Ok(Some(conditions.digest(&session.store)?))
}

/// An engine on this machine: what another one has is not known here. A socket of this machine may lead elsewhere, through ssh or into
/// a virtual machine: the engine there has another name or kernel.
fn identity<'a>(info: &'a EngineInfo, boot: &host::Boot) -> Option<EngineIdentity<'a>> {
    let is_here =
        info.local && info.host.as_ref() == Some(&boot.name) && info.kernel.as_ref() == Some(&boot.kernel);
    let id = info.id.as_deref().filter(|id| is_here && !id.is_empty())?;
    let storage_driver = info.storage_driver.as_deref();
    Some(EngineIdentity { id, name: &info.name, version: &info.version, storage_driver })
}

fn gpu_conditions(request: &GpuRequest) -> Option<GpuConditions> {
    let found = host::gpu_identities()?;
    let toolkit = host::container_toolkit()?;
    Some(GpuConditions {
        request: format!("{request:?}"),
        driver: found.driver,
        toolkit,
        devices: found.devices,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn boot() -> host::Boot {
        host::Boot { id: "b".to_owned(), kernel: "6.1".to_owned(), name: "box".to_owned() }
    }

    fn sample(checks: &[LockedCheck]) -> Conditions<'_> {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Conditions {
            program: ("1.0.0", "/proc/self/exe 1:2".to_owned()),
            agent: "a".to_owned(),
            image: "sha256:1",
            configuration: "sha256:2".to_owned(),
            expectation: "version = 2.8.0".to_owned(),
            required: owned(&["import"]),
            project_checks: checks,
            forbidden: owned(&["secret"]),
            level: "full",
            engine: EngineIdentity {
                id: "AB:CD",
                name: "Docker",
                version: "20.10",
                storage_driver: Some("overlay2"),
            },
            boot: boot(),
            engine_files: owned(&["/etc/cdi/nvidia.yaml 1:2"]),
            gpus: Some(GpuConditions {
                request: "all".to_owned(),
                driver: "580.1".to_owned(),
                toolkit: "1.17.8".to_owned(),
                devices: owned(&["GPU-1"]),
            }),
        }
    }

    /// A changed part of a run's conditions.
    type Change = fn(&mut Conditions<'_>);

    #[test]
    fn every_condition_counts() {
        fn gpus(conditions: &mut Conditions<'_>, change: fn(&mut GpuConditions)) {
            conditions.gpus.iter_mut().for_each(change);
        }
        let folder = tempfile::tempdir().expect("a folder");
        let root = Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let check = LockedCheck { name: "own".to_owned(), command: "true".to_owned() };
        let own = [check];
        let changes: [Change; 23] = [
            |_| {},
            |now| now.program.0 = "1.0.1",
            |now| now.program.1.push('3'),
            |now| now.agent.push('b'),
            // Another layer of the image: a `.pth`, an entry point, a package, a library.
            |now| now.image = "sha256:3",
            // LD_LIBRARY_PATH.
            |now| now.configuration.push('3'),
            |now| now.expectation.push('1'),
            |now| now.required.clear(),
            |now| now.forbidden.push("another credential of this machine".to_owned()),
            |now| now.level = "quick",
            |now| now.engine.id = "EF",
            |now| now.engine.version = "28.0",
            |now| now.boot.id.push('c'),
            |now| now.boot.kernel.push('c'),
            |now| now.boot.name.push('c'),
            // Another `default-runtime` of the engine, another mode of the toolkit, another library of a CDI specification.
            |now| now.engine_files[0].push('3'),
            |now| now.engine_files.push("/etc/docker/daemon.json 1:3".to_owned()),
            |now| now.engine_files.clear(),
            |now| gpus(now, |gpus| gpus.driver.push('2')),
            |now| gpus(now, |gpus| gpus.toolkit.push('2')),
            |now| gpus(now, |gpus| gpus.devices = vec!["GPU-2".to_owned()]),
            |now| gpus(now, |gpus| gpus.devices.push("MIG-1".to_owned())),
            |now| now.gpus = None,
        ];
        let mut found = BTreeSet::new();
        for change in changes {
            let mut now = sample(&[]);
            change(&mut now);
            found.insert(now.digest(&store).expect("a key"));
        }
        found.insert(sample(&own).digest(&store).expect("a key"));
        assert_eq!(found.len(), changes.len() + 1);
        // The state directory of another machine, if its key is another one.
        let other = Store::open(&root.join("cache"), &root.join("other")).expect("a store");
        assert!(found.insert(sample(&[]).digest(&other).expect("a key")));
        assert!(!found.insert(sample(&[]).digest(&store).expect("a key")), "equal conditions are equal");
    }

    #[test]
    fn engine_that_is_elsewhere_or_without_an_id_is_not_known() {
        let text = |text: &str| Some(text.to_owned());
        let (host, kernel) = (text("box"), text("6.1"));
        let local = EngineInfo { id: text("AB"), local: true, host, kernel, ..EngineInfo::sample() };
        let is_known = |info: &EngineInfo| identity(info, &boot()).is_some();
        assert!(is_known(&local));
        for elsewhere in [
            EngineInfo { local: false, ..local.clone() },
            EngineInfo { id: text(""), ..local.clone() },
            EngineInfo { id: None, ..local.clone() },
            // A socket that ssh leads to another machine, of the same kernel or not, and one of a virtual machine.
            EngineInfo { host: text("build-7"), ..local.clone() },
            EngineInfo { kernel: text("6.8"), ..local.clone() },
            EngineInfo { host: None, ..local.clone() },
            EngineInfo { kernel: None, ..local },
        ] {
            assert!(!is_known(&elsewhere), "{elsewhere:?}");
        }
    }
}
