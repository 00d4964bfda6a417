//! The mounts every container has, and the volumes behind them.

use std::collections::BTreeMap;

use crate::engine::{Containers, EngineError, Mount, MountSource, NewVolume, VolumeSetup};
use crate::model::image::paths::{HOME, MODELS, WORKSPACE};
use crate::model::image::plan::NAME_LABEL;
use crate::model::sha256::sha256_hex;
use crate::report::Event;
use crate::shell::{ContainerEnv, User, etc_files, home_files};
use crate::workflow::error::CommandError;
use crate::workflow::named::Named;
use crate::workflow::session::Session;
use crate::workflow::shell::container_spec::ContainerSpec;

/// The label of a volume that holds /etc for a user of an image.
pub(crate) const ETC_LABEL: &str = "io.envforge.etc";

/// The label of a volume that holds a project's home, or stands for its folder.
pub(crate) const PROJECT_LABEL: &str = "io.envforge.project";

/// The mounts every container has: the project, the home, /etc with the user in it, models. What of it is new is made
/// the caller's first.
pub(crate) async fn standing_mounts(
    session: &Session<'_>,
    launch: &ContainerSpec<'_>,
    user: &User,
    inside: &ContainerEnv,
) -> Result<Vec<Mount>, CommandError> {
    let ContainerSpec { args, project, image, .. } = *launch;
    let labelled = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
    let fresh = |name: String, target: &str, labels| NewVolume {
        name,
        target: target.to_owned(),
        labels,
        copies: false,
        owner: Some(user.owner()),
    };
    let python =
        image.image.labels.get(NAME_LABEL).and_then(|name| name.split("-py").nth(1)?.split('-').next());
    let of_project = labelled(PROJECT_LABEL, project.folder.as_str());
    let etc = [image.image.id.as_bytes(), user.numbers().as_bytes(), &inside.fingerprint()].join(&b'\0');
    let etc = format!("envforge-etc-{}", &sha256_hex(&etc)[..16]);
    let home = match &inside.own_home {
        Some(image) => project.home_volume_of(image),
        None => project.home_volume(python),
    };
    let mut volumes = vec![
        NewVolume { copies: true, owner: None, ..fresh(etc, "/etc", labelled(ETC_LABEL, &image.image.id)) },
        fresh(home, HOME, of_project.clone()),
    ];
    let mut mounts = Vec::new();
    if session.engine.info().local {
        let source = MountSource::Folder(project.folder.to_string());
        mounts.push(Mount { source, target: WORKSPACE.to_owned(), read_only: false });
    } else {
        let text = format!(
            "the engine is on another machine and cannot access {}: {WORKSPACE} is a volume there; \
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
pub(crate) async fn prepare(
    session: &Session<'_>,
    image: &Named,
    user: &User,
    inside: &ContainerEnv,
    volumes: Vec<NewVolume>,
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
        containers.prepare(VolumeSetup { image, user_namespace, volumes, reads, fill }).await?;
    }
    Ok(())
}

pub(crate) async fn absent(
    containers: &dyn Containers,
    volumes: Vec<NewVolume>,
) -> Result<Vec<NewVolume>, EngineError> {
    let asked = volumes.into_iter().map(|volume| async move {
        let there = containers.has_volume(&volume.name).await?;
        Ok((!there).then_some(volume))
    });
    let answers: Result<Vec<_>, EngineError> = futures_util::future::try_join_all(asked).await;
    Ok(answers?.into_iter().flatten().collect())
}
