//! A step of the Dockerfile builder whose layers are kept: without network, secrets or caches.
#![expect(clippy::disallowed_methods, reason = "edge: reads the engine's archive")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;

use super::error::LayerError;
use super::kept::{KeptLayer, find, keep};
use crate::archive::saved_layers::layers_above;
use crate::engine::{Engine, EngineError, ImageBuildRequest, ImageInfo, Network, TemporaryTag};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::sha256::sha256_hex;
use crate::report::Reporter;
use crate::store::Store;

/// Raised when the same inputs give other layers than before.
const LAYOUT: u32 = 2;

/// The longest that a step runs, in an emulated machine too: scripts of the base's packages may wait for ever.
const LONGEST: Duration = Duration::from_hours(2);

/// What making a layer needs.
#[derive(Clone)]
pub struct Tools<'a> {
    /// The engine that has the image below.
    pub engine: &'a dyn Engine,
    /// The cache.
    pub store: &'a Store,
    /// Receiver of events.
    pub reporter: Arc<dyn Reporter>,
    /// Whether layers of earlier builds count as absent.
    pub no_cache: bool,
}

/// A step above an image.
#[derive(Debug, Clone)]
pub struct Step<'a> {
    /// The image below.
    pub below: &'a ImageInfo,
    /// Its reference after FROM.
    pub reference: &'a str,
    /// The id of the image below where its configuration is somebody's: variables, a shell or triggers of it change what a step
    /// makes. None of an image of layers alone.
    pub configured: Option<String>,
    /// The instructions after FROM, one a line.
    pub instructions: String,
    /// The files they use.
    pub context: Vec<ContextEntry>,
}

impl Step<'_> {
    /// What the layers are a function of, as a hash: the image below, instructions and files.
    pub fn key(&self) -> String {
        let mut text = format!("{LAYOUT}\n{}\n{}\n", self.below.layers.join(" "), self.instructions);
        text.extend(self.configured.iter().flat_map(|id| ["configured as ", id, "\n"]));
        for entry in &self.context {
            let hash = match &entry.content {
                ContextContent::Bytes(bytes) => sha256_hex(bytes),
                ContextContent::File { sha256, .. } => sha256.clone(),
            };
            text.extend([&entry.path, " ", &hash, "\n"]);
        }
        sha256_hex(text.as_bytes())
    }

    /// The layers, if the cache has them.
    pub fn kept(&self, tools: &Tools<'_>) -> Result<Option<Vec<KeptLayer>>, LayerError> {
        Ok(if tools.no_cache { None } else { find(tools.store, &self.key())? })
    }
}

/// Returns the layers of a step, lowest first: from the cache, or made now.
pub async fn step_layers(tools: &Tools<'_>, step: Step<'_>) -> Result<Vec<KeptLayer>, LayerError> {
    let key = step.key();
    let _guard = tools.store.lock(&format!("layers-{}", &key[..16])).await?;
    if let Some(layers) = step.kept(tools)? {
        return Ok(layers);
    }
    let mut context = step.context;
    let dockerfile = format!("FROM {}\n{}\n", step.reference, step.instructions);
    context.push(ContextEntry::text("Dockerfile", dockerfile));
    context.sort_by(|a, b| a.path.cmp(&b.path));
    let scratch = TemporaryTag::new(tools.engine);
    let request = ImageBuildRequest {
        context,
        context_secret: tools.store.context_secret()?,
        secrets: Vec::new(),
        build_args: BTreeMap::new(),
        labels: BTreeMap::new(),
        network: Network::None,
        no_cache: tools.no_cache,
        scratch_tag: scratch.name().to_owned(),
    };
    within(LONGEST, tools.engine.build(request, Arc::clone(&tools.reporter))).await?;
    let saved = tools.store.temp_file()?;
    let path = Utf8Path::from_path(saved.path()).expect("the cache's path is UTF-8");
    tools.engine.save(scratch.name(), path.to_owned()).await?;
    scratch.remove().await?;
    let (archive, base) = (fs_err::File::open(saved.path())?.into_file(), step.below.layers.clone());
    let store = tools.store.clone();
    let made = tokio::task::spawn_blocking(move || {
        layers_above(archive, &base, || store.temp_file().map_err(std::io::Error::other))
    });
    let made = made.await.map_err(std::io::Error::other)??;
    Ok(keep(tools.store, &key, made)?)
}

/// Awaits a build that ends in that time. One that does not is dropped, which ends its container.
async fn within<T>(
    limit: Duration,
    build: impl Future<Output = Result<T, EngineError>>,
) -> Result<T, LayerError> {
    match tokio::time::timeout(limit, build).await {
        Ok(built) => Ok(built?),
        Err(_) => Err(LayerError::TooLong { limit }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn step_that_never_ends_is_an_error_after_its_time() {
        let never = std::future::pending::<Result<(), EngineError>>();
        let ended =
            tokio::time::timeout(Duration::from_mins(1), within(Duration::from_millis(1), never)).await;
        let error = ended.expect("it is not waited for").expect_err("ended");
        assert!(matches!(error, LayerError::TooLong { .. }), "{error}");
        assert!(LayerError::TooLong { limit: LONGEST }.to_string().ends_with("for more than 120 min"));
        within(LONGEST, std::future::ready(Ok(()))).await.expect("it ends in time");
    }

    fn below(layers: &[&str]) -> ImageInfo {
        let layers = layers.iter().map(|&layer| layer.to_owned()).collect();
        ImageInfo { layers, ..ImageInfo::default() }
    }

    #[test]
    fn key_has_all_that_could_change_the_layers() {
        let (one, other) = (below(&["a"]), below(&["b"]));
        let step = |below| Step {
            below,
            reference: "base",
            configured: None,
            instructions: "RUN x".to_owned(),
            context: vec![ContextEntry::text("debs/a", "deb".to_owned())],
        };
        let key = step(&one).key();
        assert_eq!(key, Step { reference: "the same by another name", ..step(&one) }.key());
        let text = |path: &str, text: &str| vec![ContextEntry::text(path, text.to_owned())];
        for changed in [
            step(&other),
            // The same layers, but the variables of somebody's image: `LD_PRELOAD`, `PATH`, a shell, a trigger.
            Step { configured: Some("sha256:2".to_owned()), ..step(&one) },
            Step { instructions: "RUN y".to_owned(), ..step(&one) },
            Step { context: text("debs/a", "another deb"), ..step(&one) },
            Step { context: text("debs/b", "deb"), ..step(&one) },
        ] {
            assert_ne!(key, changed.key(), "{changed:?}");
        }
    }
}
