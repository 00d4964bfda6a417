//! Where finished layers are looked for: a vendor directory, a repository of the team.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use camino::Utf8PathBuf;

use crate::failure::Failure as _;
use crate::model::image_ref::ImageRef;
use crate::registry::RegistryError;
use crate::report::{Event, Reporter};
use crate::settings::image_registry::LayerRepository;
use crate::workflow::error::CommandError;

/// Where finished layers are looked for.
#[derive(Clone, Default)]
pub(crate) struct LayerSources {
    /// A vendor directory.
    pub(crate) folder: Option<Utf8PathBuf>,
    /// A repository of a registry.
    repository: Option<LayerRepository>,
    /// Whether the repository refused to be read: it may still be written, which creates it in some registries.
    refused: Arc<AtomicBool>,
    /// Whether the repository failed once: it is not asked again.
    failed: Arc<AtomicBool>,
}

impl LayerSources {
    pub(crate) fn new(repository: Option<LayerRepository>) -> Self {
        Self { repository, ..Self::default() }
    }

    /// A vendor directory alone: no network is used.
    pub(crate) fn of_folder(folder: Utf8PathBuf) -> Self {
        Self { folder: Some(folder), ..Self::default() }
    }

    /// The repository to read, unless it failed.
    pub(crate) fn repository(&self) -> Option<&LayerRepository> {
        let is_off = self.failed.load(Ordering::Relaxed) || self.refused.load(Ordering::Relaxed);
        self.repository.as_ref().filter(|_| !is_off)
    }

    /// The repository, if layers go there and it did not fail.
    pub(crate) fn writable(&self) -> Option<&LayerRepository> {
        self.repository.as_ref().filter(|found| found.write && !self.failed.load(Ordering::Relaxed))
    }

    /// What an error of the repository means: one about content or this machine is returned. Of any other the first is
    /// reported, and the build goes on without the repository.
    pub(crate) fn fail(&self, error: RegistryError, reporter: &dyn Reporter) -> Result<(), CommandError> {
        if is_final(&error) {
            return Err(error.into());
        }
        if is_refusal(&error) && self.writable().is_some() {
            tracing::debug!(%error, "not readable, or not there yet: the first layer may create it");
            self.refused.store(true, Ordering::Relaxed);
            return Ok(());
        }
        let text = format!("{}: layers are made here instead of taken from there", error.reason());
        self.give_up(text, &error, reporter);
        Ok(())
    }

    /// Reports the first failure of the repository, which is not asked again.
    pub(crate) fn give_up(&self, text: String, error: &RegistryError, reporter: &dyn Reporter) {
        if self.failed.swap(true, Ordering::Relaxed) {
            return;
        }
        let has_advice = match error {
            RegistryError::Unreachable { source, .. } => source.is_of_unknown_issuer(),
            error => is_refusal(error),
        };
        let advice = error.hints().into_iter().next().filter(|_| has_advice);
        let text = [Some(text), advice].into_iter().flatten().collect::<Vec<_>>().join("; ");
        reporter.report(Event::Warning { text });
    }
}

/// Whether a registry refused a request for want of a login or of rights.
pub(crate) fn is_refusal(error: &RegistryError) -> bool {
    matches!(error, RegistryError::Unauthorized { .. })
}

/// Whether an error is about wrong content, this machine's disk or its settings, which no other source makes good.
pub(crate) fn is_final(error: &RegistryError) -> bool {
    matches!(
        error,
        RegistryError::WrongDigest { .. }
            | RegistryError::OtherBlob { .. }
            | RegistryError::Cache(_)
            | RegistryError::Content { .. }
            | RegistryError::Certificate { .. }
            | RegistryError::DockerConfig { .. }
    )
}

/// The reference of the layers of a key (SHA-256, hex).
pub(crate) fn reference_of(repository: &LayerRepository, key: &str) -> ImageRef {
    let text = format!("{}:layers-{key}", repository.repository.name());
    text.parse().expect("a name with a tag of hex digits")
}
