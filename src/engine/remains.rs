//! What killed runs of envforge left in the daemon: throwaway containers, shells that nobody waits for, volumes half
//! filled and private tags, removed by the next run.
//!
//! All carry the process that made them; only what belongs to a process known to have ended is touched, and never a
//! shell that runs.

use std::collections::HashMap;

use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{ListContainersOptionsBuilder, ListImagesOptionsBuilder};

use super::EngineError;
use super::connect::Daemon;
use super::container::{RUN_LABEL, remove_by_name};
use super::lasting::OWNER_LABEL;
use super::passing::PRIVATE;
use super::preparing::PREPARES_LABEL;
use crate::owner::owner_of;

fn is_remains(name: &str) -> bool {
    owner_of(name).is_some_and(|owner| owner.is_gone())
}

impl Daemon {
    /// Removes what ended processes left. Containers first: they hold images.
    pub(super) async fn remove_remains(&self) -> Result<(), EngineError> {
        let filters = |name: &str, value: &str| HashMap::from([(name.to_owned(), vec![value.to_owned()])]);
        let options = ListContainersOptionsBuilder::new().all(true);
        let containers = self.client.list_containers(Some(options.build())).await;
        for container in containers.map_err(|error| self.fault("listing containers", error))? {
            let labels = container.labels.unwrap_or_default();
            let run = labels.get(RUN_LABEL).is_some_and(|owner| is_remains(owner));
            let over = !matches!(container.state, Some(ContainerSummaryStateEnum::RUNNING));
            let shell = over && labels.get(OWNER_LABEL).is_some_and(|owner| is_remains(owner));
            if let Some(id) = container.id.filter(|_| run || shell) {
                tracing::debug!(%id, "removing a container that a killed run left");
                remove_by_name(self, &id).await?;
                for volume in labels.get(PREPARES_LABEL).iter().flat_map(|names| names.split(',')) {
                    self.remove_volume(volume).await?;
                }
            }
        }
        let options = ListImagesOptionsBuilder::new().filters(&filters("reference", PRIVATE));
        let images = self.client.list_images(Some(options.build())).await;
        for tag in
            images.map_err(|error| self.fault("listing images", error))?.into_iter().flat_map(|i| i.repo_tags)
        {
            if tag.starts_with(PRIVATE) && is_remains(&tag) {
                tracing::debug!(%tag, "removing a tag that a killed run left");
                self.remove_image(&tag).await?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_running_process_has_is_no_remains() {
        let tag = format!("{PRIVATE}:{}", crate::owner::own_name());
        assert!(
            tag.len() <= "envforge-scratch:".len() + 128,
            "an image tag has at most 128 characters: {tag}"
        );
        assert!(!is_remains(&tag));
        assert!(!is_remains("envforge-scratch:1"), "of another kind");
    }
}
