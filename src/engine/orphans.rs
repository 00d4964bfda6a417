//! Orphans of killed runs in the daemon: throwaway containers, ended shells, half-filled volumes and temporary tags.
//!
//! All of them carry their owner process. Removes only those of a process known to have ended, and never a running shell.

use std::collections::HashMap;

use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListImagesOptionsBuilder};

use super::container::guard::{RUN_LABEL, remove_by_name};
use super::container::types::OWNER_LABEL;
use super::container::volume::Volumes as _;
use super::container::volume_fill::PREPARES_LABEL;
use crate::engine::docker::Docker;
use crate::engine::error::EngineError;
use crate::engine::image::temporary_tag::{PRIVATE, owner_part};
use crate::engine::image::types::Images as _;
use crate::host::process_owner::owner_of;

/// Removes the orphans of ended processes. Containers first: they hold images.
pub(in crate::engine) async fn remove_orphans(docker: &Docker) -> Result<(), EngineError> {
    let daemon = &docker.daemon;
    let options = ListContainersOptionsBuilder::new().all(true);
    let containers = daemon.client.list_containers(Some(options.build())).await;
    for container in containers.map_err(|error| daemon.fault("listing containers", error))? {
        let labels = container.labels.unwrap_or_default();
        let run = labels.get(RUN_LABEL).is_some_and(|owner| is_orphan(owner));
        let ended = !matches!(container.state, Some(ContainerSummaryStateEnum::RUNNING));
        let shell = ended && labels.get(OWNER_LABEL).is_some_and(|owner| is_orphan(owner));
        if let Some(id) = container.id.filter(|_| run || shell) {
            tracing::debug!(%id, "removing an orphaned container");
            remove_by_name(daemon, &id).await?;
            for volume in labels.get(PREPARES_LABEL).iter().flat_map(|names| names.split(',')) {
                docker.remove_volume(volume).await?;
            }
        }
    }
    let filters = HashMap::from([("reference", vec![PRIVATE])]);
    let options = ListImagesOptionsBuilder::new().filters(&filters);
    let images = daemon.client.list_images(Some(options.build())).await;
    let images = images.map_err(|error| daemon.fault("listing images", error))?;
    for tag in images.iter().flat_map(|image| &image.repo_tags).filter(|tag| is_orphaned_tag(tag)) {
        tracing::debug!(%tag, "removing an orphaned tag");
        docker.remove_image(tag).await?;
    }
    Ok(())
}

fn is_orphan(owner: &str) -> bool {
    owner_of(owner).is_some_and(|owner| owner.is_gone())
}

fn is_orphaned_tag(reference: &str) -> bool {
    owner_part(reference).is_some_and(is_orphan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::process_owner::tests::{name_of_an_ended_process, name_of_another_host};
    use crate::host::process_owner::unique_name;

    #[test]
    fn temporary_tag_of_an_ended_process_is_an_orphan() {
        let ended = name_of_an_ended_process();
        assert!(is_orphan(&ended), "{ended}");
        assert!(is_orphaned_tag(&format!("{PRIVATE}:{ended}")));
        assert!(is_orphaned_tag(&format!("localhost/{PRIVATE}:{ended}")), "Podman");
    }

    #[test]
    fn temporary_tag_of_a_living_process_or_another_host_is_kept() {
        for name in [unique_name(), name_of_another_host()] {
            assert!(!is_orphan(&name), "{name}");
            assert!(!is_orphaned_tag(&format!("{PRIVATE}:{name}")), "{name}");
        }
    }

    #[test]
    fn tag_of_another_repository_is_kept() {
        let ended = name_of_an_ended_process();
        for reference in
            [format!("my-{PRIVATE}:{ended}"), format!("{PRIVATE}-2:{ended}"), "envforge-scratch:1".to_owned()]
        {
            assert!(!is_orphaned_tag(&reference), "{reference}");
        }
    }

    #[test]
    fn temporary_tag_has_at_most_128_characters() {
        let tag = unique_name();
        assert!(tag.len() <= 128, "{tag}");
    }
}
