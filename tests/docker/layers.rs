//! Layers given to a real engine: what it lacks, what it has lost, how many it takes, and what is left when it fails.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::Arc;

use envforge::engine::{
    Docker, Engine as _, EngineError, EngineSettings, ImageLayer, Images as _, LayerContent, LayeredImage,
    TemporaryTag, plain_config,
};
use envforge::model::sha256::sha256_hex;
use envforge::report::NullReporter;
use tokio::sync::mpsc;

use crate::engine::{Inventory, docker};
use crate::scene::{Scene, wait_until};

/// A layer of one file.
struct OneFile(Vec<u8>);

impl LayerContent for OneFile {
    fn write_to(&self, out: &mut dyn Write) -> std::io::Result<()> {
        out.write_all(&self.0)
    }
}

/// A layer whose content cannot be read.
struct Unreadable;

impl LayerContent for Unreadable {
    fn write_to(&self, _: &mut dyn Write) -> std::io::Result<()> {
        Err(std::io::Error::other("the disk is gone"))
    }
}

fn layer(name: &str, salt: u64) -> ImageLayer {
    let mut tar = tar::Builder::new(Vec::new());
    let text = format!("{name} {salt}");
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, name, text.as_bytes()).expect("memory takes it");
    let tar = tar.into_inner().expect("memory takes it");
    ImageLayer {
        title: name.to_owned(),
        diff_id: format!("sha256:{}", sha256_hex(&tar)),
        size: tar.len() as u64,
        content: Some(Arc::new(OneFile(tar))),
        packed: None,
    }
}

struct Fixture {
    engine: Docker,
    before: Inventory,
    salt: u64,
    _alone: std::fs::File,
}

impl Fixture {
    async fn new() -> Self {
        let alone = Scene::wait_for_the_engine();
        let settings =
            EngineSettings { docker_host: std::env::var("DOCKER_HOST").ok(), ..EngineSettings::default() };
        let engine = Docker::connect(&settings).await.expect("an engine");
        Self { engine, before: Inventory::now(), salt: rand::random(), _alone: alone }
    }

    /// Loads an image; `next` may do something before each layer is given.
    async fn load(
        &self,
        tag: &str,
        layers: Vec<ImageLayer>,
        mut next: impl FnMut(usize),
    ) -> Result<Vec<String>, EngineError> {
        let machine = self.engine.info().machine;
        // Few layers come one by one, many lie ready.
        let (sender, receiver) = mpsc::channel(if layers.len() > 3 { layers.len() } else { 1 });
        let image = LayeredImage {
            layers: receiver,
            config: Box::new(move |ids| plain_config(machine, ids)),
            scratch_tag: tag.to_owned(),
            title: "layers of a test".to_owned(),
            expected: None,
        };
        let give = async {
            for (number, layer) in layers.into_iter().enumerate() {
                next(number);
                // A load that failed takes no more.
                let _ = sender.send(layer).await;
            }
            drop(sender);
        };
        let load = self.engine.load_layers(image, Arc::new(NullReporter));
        let ((), loaded) = tokio::join!(give, load);
        loaded.map(|image| image.layers)
    }

    /// Nothing but what was there before, nor a private tag of this process, whose guards work in the background.
    fn assert_nothing_left(&self) {
        let own = format!("{}-", std::process::id());
        let tags = || docker(&["images", "--format", "{{.Tag}}", "envforge-scratch"]);
        wait_until("no private tag", || !tags().lines().any(|tag| tag.starts_with(&own)));
        let added = self.before.added();
        assert!(added.is_empty(), "left on the engine: {added:#?}");
    }
}

fn ids(layers: &[ImageLayer]) -> Vec<String> {
    layers.iter().map(|layer| layer.diff_id.clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker"]
async fn layers_the_engine_has_lost_meanwhile_are_sent_again() {
    let f = Fixture::new().await;
    let layers: Vec<_> = ["a", "b", "c"].iter().map(|name| layer(name, f.salt)).collect();
    let first = TemporaryTag::new(&f.engine);
    f.load(first.name(), layers[..2].to_vec(), |_| ()).await.expect("loaded");
    let second = TemporaryTag::new(&f.engine);
    let name = first.name().to_owned();
    // The load has asked what the engine has by the time it takes the third layer.
    let next = |number| {
        if number == 2 {
            std::thread::sleep(std::time::Duration::from_secs(2));
            docker(&["rmi", &name]);
        }
    };
    let found = f.load(second.name(), layers.clone(), next).await.expect("loaded at the second attempt");
    assert_eq!(found, ids(&layers));
    second.remove().await.expect("removed");
    drop(first);
    f.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker"]
async fn known_layers_are_not_written() {
    let f = Fixture::new().await;
    let layers: Vec<_> = ["a", "b"].iter().map(|name| layer(name, f.salt)).collect();
    let first = TemporaryTag::new(&f.engine);
    f.load(first.name(), layers.clone(), |_| ()).await.expect("loaded");
    let mut more: Vec<_> = layers
        .iter()
        .map(|layer| ImageLayer { content: Some(Arc::new(Unreadable)), ..layer.clone() })
        .collect();
    more.push(layer("c", f.salt));
    let second = TemporaryTag::new(&f.engine);
    assert_eq!(f.load(second.name(), more.clone(), |_| ()).await.expect("loaded"), ids(&more));
    // What was sent in two parts is one image: it can be saved.
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("saved.tar").to_string_lossy().into_owned();
    docker(&["save", "-o", &archive, second.name()]);
    second.remove().await.expect("removed");
    first.remove().await.expect("removed");
    f.assert_nothing_left();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker"]
async fn layer_that_cannot_be_read_or_is_another_leaves_nothing() {
    let f = Fixture::new().await;
    let good = layer("a", f.salt);
    for (bad, says) in [
        (ImageLayer { content: Some(Arc::new(Unreadable)), ..layer("b", f.salt) }, "the disk is gone"),
        (ImageLayer { size: 1, ..layer("b", f.salt) }, "more than 1 bytes"),
        (ImageLayer { diff_id: layer("x", f.salt).diff_id, ..layer("b", f.salt) }, "sha256:"),
    ] {
        let tag = TemporaryTag::new(&f.engine);
        let error = f.load(tag.name(), vec![good.clone(), bad], |_| ()).await.expect_err("refused");
        assert!(error.to_string().contains(says), "`{says}` is missing in {error}");
        drop(tag);
        f.assert_nothing_left();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs docker"]
async fn engine_takes_as_many_layers_as_images_may_have_and_refuses_more_than_it_can() {
    let f = Fixture::new().await;
    let layers: Vec<_> = (0..130).map(|number| layer(&format!("file{number}"), f.salt)).collect();
    let tag = TemporaryTag::new(&f.engine);
    let found =
        f.load(tag.name(), layers[..100].to_vec(), |_| ()).await.expect("100 layers are not too many");
    assert_eq!(found.iter().collect::<BTreeSet<_>>().len(), 100);
    tag.remove().await.expect("removed");
    let tag = TemporaryTag::new(&f.engine);
    let error = f.load(tag.name(), layers, |_| ()).await.expect_err("too many");
    assert!(error.to_string().contains("depth"), "{error}");
    drop(tag);
    f.assert_nothing_left();
}
