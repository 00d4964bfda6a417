//! Evidence of a fleet: signed once, where the reports come together. Nodes hold no key.
#![expect(clippy::disallowed_methods, reason = "dates what was proven")]

use std::sync::Arc;

use jiff::Timestamp;

use crate::agent;
use crate::evidence::SigningKey;
use crate::fleet::{Fleet, entries};
use crate::model::compat::Matrix;
use crate::model::image_ref::ImageRef;
use crate::model::lock::Lock;
use crate::model::request::TargetOptions;
use crate::registry::{EvidenceSubject, Registry};
use crate::report::Reporter;
use crate::settings::Settings;
use crate::store::Store;
use crate::store::built_images::{built_from, pushed_names};
use crate::workflow::error::CommandError;
use crate::workflow::evidence::{Attester, EvidenceError};
use crate::workflow::proven::lock_of_build;
use crate::workflow::session::downloads;
use crate::workflow::target::machine;

/// An image whose reports may be signed: this machine built it from a lock that is known, and its registry has what was pushed from here.
pub(crate) struct Signed<'a> {
    registry: Registry,
    matrix: &'a Matrix,
    image: &'a ImageRef,
    subject: EvidenceSubject,
    key: SigningKey,
    /// The lock that it was built from.
    pub(crate) lock: Lock,
}

impl<'a> Signed<'a> {
    /// Asks the registry, and no engine. An error before any node is asked.
    pub(crate) async fn of(
        image: &'a ImageRef,
        key: SigningKey,
        settings: &'a Settings,
        reporter: &Arc<dyn Reporter>,
    ) -> Result<Self, CommandError> {
        let (fetch, _) = downloads(settings)?;
        let registry = Registry::new(fetch, settings.registry.clone());
        let subject =
            registry.evidence_subject(image, machine(&TargetOptions::default(), &settings.matrix)).await?;
        let store = Store::open(&settings.paths.cache, &settings.paths.state)?;
        let id = subject.config.as_str();
        let is_of_digest = |name: &String| name.ends_with(subject.manifest.digest.as_str());
        let is_pushed = pushed_names(&store, id)?.iter().any(is_of_digest);
        // What another key said of it is not said again under this one.
        let is_built = built_from(&store, id)?.is_some();
        match lock_of_build(&store, &**reporter, id)? {
            Some(lock) if is_pushed && is_built => {
                Ok(Self { registry, matrix: &settings.matrix, image, subject, key, lock })
            }
            _ => Err(EvidenceError::Foreign { image: image.to_string() }.into()),
        }
    }

    /// Signs what the reports prove, or withdraws, and attaches it; `with_nodes`: with the names of the nodes that passed. Returns the image
    /// by its digest with the key.
    pub(crate) async fn attach(
        &self,
        (fleet, with_nodes): (&Fleet, bool),
        reporter: &Arc<dyn Reporter>,
    ) -> Result<String, CommandError> {
        let hash = self.lock.hash();
        let mut new = entries(fleet, &agent::sha256(), Timestamp::now(), with_nodes);
        for entry in &mut new {
            entry.lock.clone_from(&hash);
        }
        if new.is_empty() {
            let why = "no node's report names a GPU with a driver";
            return Err(EvidenceError::NothingProven { image: self.image.to_string(), why }.into());
        }
        let Self { registry, matrix, key, .. } = self;
        let attester = Attester { registry, key, matrix, reporter };
        let attached = attester.attach((self.image, &self.subject), &new).await?;
        Ok(format!("{} by key {}", attached.pinned, attached.key))
    }
}
