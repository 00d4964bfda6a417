//! One tag for images of several platforms: an index, to which each engine adds the image of its own.
//!
//! A registry has no compare-and-swap. The tag is read right before it is written and again after it, until it holds what was merged;
//! of two writers at the same moment one can still be lost, which is why the answer says what the tag lacks.

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::{Registry, checked, parsed};
use super::client_session::{RepositorySession, TokenScope};
use super::error::RegistryError;
use super::evidence::contended;
use super::manifest::{ACCEPT, Manifest, is_platform_of, platform_of_config};
use super::retry::RetryPolicy;
use crate::model::image::labels::LOCK_LABEL;
use crate::model::image::manifest::{INDEX_TYPE, MANIFEST_TYPE};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::versions::Machine;

/// How often a tag is written that others write, too.
const WRITES: usize = 8;

/// What a tag of several platforms holds now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformIndex {
    /// Its digest.
    pub digest: Digest,
    /// Its images, by platform.
    pub images: Vec<PlatformImage>,
    /// Platforms that it was to hold and lacks.
    pub missing: Vec<Machine>,
    /// Images that the tag had and has no more, each by platform and digest.
    pub dropped: Vec<String>,
}

/// The image of one platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformImage {
    /// The platform.
    pub machine: Machine,
    /// Digest of its manifest.
    pub digest: Digest,
    /// The hash of the lock that it was built from, by its own label.
    pub lock: Option<String>,
}

/// An entry of an index, as it is written.
#[derive(Debug, Clone, PartialEq)]
struct Entry {
    image: PlatformImage,
    json: Value,
}

impl Registry {
    /// Puts the image with that digest into the index behind a tag, beside the images of the other platforms that the tag has. What the
    /// tag has of a platform that is not among `platforms`, or of the image's own, is replaced or left out. The repository must have the
    /// image.
    pub async fn add_platform(
        &self,
        tag: &ImageRef,
        digest: &Digest,
        platforms: &[Machine],
    ) -> Result<PlatformIndex, RegistryError> {
        let mut session = self.session(tag, TokenScope::Push, RetryPolicy::NEEDED)?;
        let own = entries(&mut session, tag, digest.as_str()).await?.found;
        let [own] = own.as_slice() else {
            let kind = "image of no platform that envforge builds for".to_owned();
            return Err(RegistryError::Kind { reference: tag.pinned(digest).to_string(), kind });
        };
        let mut dropped = Vec::new();
        for _ in 0..WRITES {
            let there = match entries(&mut session, tag, tag.wanted()).await {
                Ok(there) => there,
                Err(RegistryError::NotFound { .. }) => Entries::default(),
                Err(error) => return Err(error),
            };
            let (kept, left): (Vec<_>, Vec<_>) = there.found.into_iter().partition(|entry| {
                entry.image.machine != own.image.machine && platforms.contains(&entry.image.machine)
            });
            let replaced = left.iter().map(|entry| &entry.image).filter(|image| image.digest != *digest);
            let replaced = replaced.map(|image| format!("{} {}", image.machine.platform(), image.digest));
            for one in replaced.chain(there.others) {
                if !dropped.contains(&one) {
                    dropped.push(one);
                }
            }
            let mut all: Vec<_> = kept.into_iter().chain([own.clone()]).collect();
            // The same bytes, whoever writes them last.
            all.sort_by_key(|entry| entry.image.machine);
            let index = Bytes::from(index(&all));
            if there.index.as_ref() == Some(&index) {
                let images: Vec<_> = all.into_iter().map(|entry| entry.image).collect();
                let is_missing = |machine: &Machine| !images.iter().any(|image| image.machine == *machine);
                let missing = platforms.iter().copied().filter(is_missing).collect();
                return Ok(PlatformIndex { digest: Digest::of(&index), images, missing, dropped });
            }
            session.put(&format!("manifests/{}", tag.wanted()), INDEX_TYPE, index).await?;
        }
        Err(contended(tag, "the tag"))
    }
}

fn index(entries: &[Entry]) -> String {
    let manifests: Vec<_> = entries.iter().map(|entry| &entry.json).collect();
    json!({ "schemaVersion": 2, "mediaType": INDEX_TYPE, "manifests": manifests }).to_string()
}

/// What a name has.
#[derive(Default)]
struct Entries {
    /// The bytes, if it is an index.
    index: Option<Bytes>,
    /// Its images for platforms that envforge builds for.
    found: Vec<Entry>,
    /// All others, each by platform and digest.
    others: Vec<String>,
}

/// Returns what is behind a tag or digest.
async fn entries(
    session: &mut RepositorySession<'_>,
    tag: &ImageRef,
    name: &str,
) -> Result<Entries, RegistryError> {
    let answer = session.get(&format!("manifests/{name}"), &ACCEPT).await?;
    let digest = checked(tag, &answer, name.parse().ok().as_ref())?;
    let mut all = Entries::default();
    let entry = match parsed(tag, &answer)? {
        Manifest::Image { config, .. } => {
            let kind = answer.header("content-type").filter(|kind| ACCEPT.contains(kind));
            let kind = kind.unwrap_or(MANIFEST_TYPE).to_owned();
            entry(session, tag, (&digest, answer.body.len() as u64, &kind), &config).await?
        }
        Manifest::Index(listed) => {
            all.index = Some(answer.body.clone());
            let written: Written = serde_json::from_slice(&answer.body).unwrap_or_default();
            for (one, json) in listed.into_iter().zip(written.manifests) {
                let machine = MACHINES.into_iter().find(|machine| is_platform_of(&one.platform, *machine));
                match machine {
                    Some(machine) => {
                        let lock = json["annotations"][LOCK_LABEL].as_str().map(str::to_owned);
                        let image = PlatformImage { machine, digest: one.digest, lock };
                        all.found.push(Entry { image, json });
                    }
                    None => all.others.push(format!("{} {}", one.platform, one.digest)),
                }
            }
            return Ok(all);
        }
    };
    match entry {
        Ok(entry) => all.found.push(entry),
        Err(platform) => all.others.push(format!("{platform} {digest}")),
    }
    Ok(all)
}

/// The platforms that envforge builds for.
const MACHINES: [Machine; 2] = [Machine::X86_64, Machine::Aarch64];

/// The entries of an index as they are written.
#[derive(Default, Deserialize)]
struct Written {
    manifests: Vec<Value>,
}

/// What a configuration says of the lock.
#[derive(Default, Deserialize)]
struct Config {
    #[serde(default)]
    config: Value,
}

/// The entry of an image that is no part of an index yet; the error is its platform, if envforge builds for no such.
async fn entry(
    session: &mut RepositorySession<'_>,
    tag: &ImageRef,
    (digest, size, kind): (&Digest, u64, &str),
    config: &Digest,
) -> Result<Result<Entry, String>, RegistryError> {
    let answer = session.get(&format!("blobs/{config}"), &[]).await?;
    checked(tag, &answer, Some(config))?;
    let platform = platform_of_config(&answer.body).map_err(|error| RegistryError::NotARegistry {
        registry: tag.registry().to_owned(),
        what: format!("the image's configuration cannot be read: {error}"),
    })?;
    let Some(machine) = MACHINES.into_iter().find(|machine| is_platform_of(&platform, *machine)) else {
        return Ok(Err(platform));
    };
    let labels: Config = serde_json::from_slice(&answer.body).unwrap_or_default();
    let lock = labels.config["Labels"][LOCK_LABEL].as_str().map(str::to_owned);
    let mut json = json!({
        "mediaType": kind, "digest": digest, "size": size,
        "platform": { "architecture": machine.debian(), "os": "linux" },
    });
    if let Some(lock) = &lock {
        json["annotations"] = json!({ LOCK_LABEL: lock });
    }
    let image = PlatformImage { machine, digest: digest.clone(), lock };
    Ok(Ok(Entry { image, json }))
}

#[cfg(test)]
mod tests {
    use super::super::test_registry::{TestRegistry, Wrong};
    use super::*;
    use crate::fetch::{FetchSettings, Fetcher};
    use crate::settings::image_registry::RegistrySettings;

    const BOTH: [Machine; 2] = MACHINES;

    fn registry() -> Registry {
        Registry::new(Fetcher::new(&FetchSettings::default()).expect("a client"), RegistrySettings::default())
    }

    fn tag(server: &TestRegistry) -> ImageRef {
        format!("{}/team/torch:2.8", server.host).parse().expect("a reference")
    }

    /// An image that the repository has, by its digest and the name.
    fn image(server: &TestRegistry, architecture: &str, lock: &str, name: Option<&str>) -> Digest {
        let labels = if lock.is_empty() { json!({}) } else { json!({ LOCK_LABEL: lock }) };
        let config = json!({ "architecture": architecture, "os": "linux", "config": { "Labels": labels } });
        let config = config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST_TYPE, "layers": [],
            "config": { "digest": Digest::of(&config), "size": config.len() },
        });
        let manifest = manifest.to_string().into_bytes();
        let digest = Digest::of(&manifest);
        let mut state = server.state();
        state.blobs.insert(Digest::of(&config).to_string(), config);
        for name in [digest.as_str()].into_iter().chain(name) {
            state.manifests.insert(name.to_owned(), manifest.clone());
        }
        digest
    }

    fn written(server: &TestRegistry) -> Value {
        serde_json::from_slice(&server.state().manifests["2.8"]).expect("JSON")
    }

    fn has(machine: Machine, digest: &Digest, lock: &str) -> PlatformImage {
        PlatformImage { machine, digest: digest.clone(), lock: Some(lock.to_owned()) }
    }

    #[tokio::test]
    async fn each_engine_adds_its_own_and_the_last_makes_the_index_whole() {
        let (server, registry) = (TestRegistry::start().await, registry());
        let (arm, amd) = (image(&server, "arm64", "lock-b", None), image(&server, "amd64", "lock-a", None));
        let first = registry.add_platform(&tag(&server), &arm, &BOTH).await.expect("written");
        assert_eq!(first.images, [has(Machine::Aarch64, &arm, "lock-b")]);
        assert_eq!((first.missing, first.dropped), (vec![Machine::X86_64], Vec::new()));
        let both = registry.add_platform(&tag(&server), &amd, &BOTH).await.expect("written");
        let wanted = [has(Machine::X86_64, &amd, "lock-a"), has(Machine::Aarch64, &arm, "lock-b")];
        assert_eq!((both.images.as_slice(), both.missing.as_slice()), (&wanted[..], &[][..]));
        assert_eq!(both.digest, Digest::of(&server.state().manifests["2.8"]));
        let index = written(&server);
        assert_eq!(index["mediaType"], INDEX_TYPE);
        let [first, second] = index["manifests"].as_array().expect("a list").as_slice() else {
            panic!("{index}")
        };
        assert_eq!(first["platform"], json!({ "os": "linux", "architecture": "amd64" }));
        assert_eq!((&first["digest"], &second["digest"]), (&json!(amd), &json!(arm)));
        assert_eq!(second["annotations"], json!({ LOCK_LABEL: "lock-b" }));
        assert_eq!(first["size"], server.state().manifests[amd.as_str()].len());
        // Nothing is written twice.
        let puts = server.count("PUT");
        assert_eq!(
            registry.add_platform(&tag(&server), &amd, &BOTH).await.expect("there").digest,
            both.digest
        );
        assert_eq!(server.count("PUT"), puts);
    }

    #[tokio::test]
    async fn image_of_the_tag_is_kept_by_its_platform_and_what_goes_is_named() {
        let (server, registry) = (TestRegistry::start().await, registry());
        let old = image(&server, "amd64", "", Some("2.8"));
        let (arm, amd) = (image(&server, "arm64", "lock-b", None), image(&server, "amd64", "lock-a", None));
        let added = registry.add_platform(&tag(&server), &arm, &BOTH).await.expect("written");
        assert_eq!(
            added.images[0],
            PlatformImage { machine: Machine::X86_64, digest: old.clone(), lock: None }
        );
        assert!(written(&server)["manifests"][0].get("annotations").is_none());
        let replaced = registry.add_platform(&tag(&server), &amd, &BOTH).await.expect("written");
        assert_eq!(replaced.dropped, [format!("linux/amd64 {old}")]);
        let alone = registry.add_platform(&tag(&server), &amd, &[Machine::X86_64]).await.expect("written");
        assert_eq!(alone.dropped, [format!("linux/arm64 {arm}")]);
        assert_eq!(alone.images, [has(Machine::X86_64, &amd, "lock-a")]);
        let other = image(&server, "riscv64", "", Some("2.8"));
        let last = registry.add_platform(&tag(&server), &arm, &BOTH).await.expect("written");
        assert_eq!(last.dropped, [format!("linux/riscv64 {other}")]);
    }

    #[tokio::test]
    async fn two_writers_lose_nothing_and_a_refused_tag_is_an_error() {
        let (server, registry) = (TestRegistry::start().await, registry());
        let (arm, amd) = (image(&server, "arm64", "lock-b", None), image(&server, "amd64", "lock-a", None));
        // Another writer comes between reading and writing: the registry answers 201 to this one and keeps what the other wrote.
        registry.add_platform(&tag(&server), &arm, &BOTH).await.expect("written");
        let kept = "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_owned();
        server.wrong("PUT /v2/team/torch/manifests/2.8", 2, Wrong::Answer(kept));
        let both = registry.add_platform(&tag(&server), &amd, &BOTH).await.expect("written");
        assert_eq!((both.images.len(), written(&server)["manifests"].as_array().map(Vec::len)), (2, Some(2)));
        let fresh = image(&server, "amd64", "lock-c", None);
        server.answers("PUT /v2/team/torch/manifests/2.8", 100, "409 Conflict");
        let error = registry.add_platform(&tag(&server), &fresh, &BOTH).await.expect_err("refused");
        assert!(error.to_string().contains("409 Conflict"), "{error}");
        assert_eq!(written(&server)["manifests"][0]["digest"], json!(amd));
    }

    #[tokio::test]
    async fn tag_that_another_overwrites_each_time_is_given_up() {
        let (server, registry) = (TestRegistry::start().await, registry());
        let amd = image(&server, "amd64", "lock-a", None);
        let kept = "HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n".to_owned();
        server.wrong("PUT /v2/team/torch/manifests/2.8", 100, Wrong::Answer(kept));
        let error = registry.add_platform(&tag(&server), &amd, &BOTH).await.expect_err("given up");
        assert!(error.to_string().contains("overwritten by another writer"), "{error}");
    }
}
