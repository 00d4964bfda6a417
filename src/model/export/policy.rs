//! Policies of Kubernetes' admission controllers: pods start only with images whose evidence they verify themselves.
//!
//! Pure. A controller reads the signed summary of a key and its properties; what a policy cannot ask (the node's GPU and driver, the age of
//! the checks) is said in its first lines.

use std::fmt;

use serde_json::{Value, json};

use super::kubernetes::indented;
use crate::failure::{Exit, Failure};
use crate::model::image::render::rendered;
use crate::model::image_ref::{DEFAULT_REGISTRY, ImageRef};
use crate::model::request::{Level, PolicyController};
use crate::model::sha256::sha256_hex;
use crate::model::versions::ComputeCapability;

const KYVERNO: &str = include_str!("../../../templates/kubernetes/kyverno.yaml.j2");
const SIGSTORE: &str = include_str!("../../../templates/kubernetes/sigstore.yaml.j2");
/// The most characters of a resource's name.
const LONGEST: usize = 63;

/// The images of a policy: one repository, or all below a path that ends in `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageScope {
    text: String,
}

/// Why a text names no images for a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` names no images for a policy: {why}")]
pub struct ScopeError {
    /// The text.
    pub text: String,
    /// The problem.
    pub why: &'static str,
}

impl Failure for ScopeError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["write `HOST/NAME` for one repository, or `HOST/` or `HOST/PATH/` for all below it".to_owned()]
    }
}

impl ImageScope {
    /// Reads `HOST/NAME`, `HOST/` or `HOST/PATH/`.
    pub fn parse(text: &str) -> Result<Self, ScopeError> {
        let wrong = |why| ScopeError { text: text.to_owned(), why };
        // A path is read as the name of something below it.
        let name = if text.ends_with('/') { format!("{text}name") } else { text.to_owned() };
        let name: ImageRef = name.parse().map_err(|_| wrong("it is not the name of an image"))?;
        if !name.names_registry() {
            return Err(wrong("it names no registry"));
        }
        if name.registry() == DEFAULT_REGISTRY {
            return Err(wrong(
                "images of Docker Hub have names of several forms, and a policy compares text",
            ));
        }
        if name.tag().is_some() || name.digest().is_some() {
            return Err(wrong("it names a tag or a digest, and a policy is about a repository"));
        }
        Ok(Self { text: text.to_owned() })
    }

    fn is_path(&self) -> bool {
        self.text.ends_with('/')
    }

    /// As Kyverno matches names: `*` stands for anything.
    fn for_kyverno(&self) -> Vec<String> {
        let text = &self.text;
        if self.is_path() {
            vec![format!("{text}*")]
        } else {
            vec![text.clone(), format!("{text}:*"), format!("{text}@*")]
        }
    }

    /// As the policy controller matches them: `**` stands for anything, `*` for anything but `/`; `@` may not be written.
    fn for_sigstore(&self) -> Vec<String> {
        let text = &self.text;
        if self.is_path() {
            vec![format!("{text}**")]
        } else {
            vec![format!("{text}:**"), format!("{text}*sha256:**")]
        }
    }

    /// The condition in CEL.
    fn condition(&self) -> String {
        let text = &self.text;
        if self.is_path() {
            format!("image.startsWith('{text}')")
        } else {
            format!("image == '{text}' || image.startsWith('{text}:') || image.startsWith('{text}@')")
        }
    }
}

impl fmt::Display for ImageScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a policy asks for.
#[derive(Debug, Clone)]
pub struct EvidencePolicy {
    /// The images.
    pub images: ImageScope,
    /// Public keys in PEM form; the word of one is enough.
    pub keys: Vec<String>,
    /// The predicate type of the summary.
    pub predicate: &'static str,
    /// Compute capabilities that must be proven, each; empty: any GPU.
    pub capabilities: Vec<ComputeCapability>,
    /// The lowest level.
    pub level: Level,
}

impl EvidencePolicy {
    /// Returns the manifest for a controller, YAML.
    pub fn manifest(&self, controller: PolicyController) -> String {
        let key = |(number, pem): (usize, &String)| json!({ "name": format!("key{}", number + 1), "ten": indented(pem, 10), "twelve": indented(pem, 12) });
        let keys: Vec<Value> = self.keys.iter().enumerate().map(key).collect();
        let alternatives = self.alternatives();
        let cel = |names: &Vec<String>| format!("['{}']", names.join("', '"));
        let cue = |names: &Vec<String>| {
            format!("predicate: properties: list.MatchN(>0, \"{}\")\n", names.join("\" | \""))
        };
        let cue: String = alternatives.iter().map(cue).collect();
        let cue = format!("import \"list\"\npredicateType: \"{}\"\n{cue}", self.predicate);
        let values = json!({
            "name": self.name(),
            "images": self.images.text,
            "asked": self.asked(),
            "predicate": self.predicate,
            "keys": keys,
            "condition": self.images.condition(),
            "kyverno_globs": self.images.for_kyverno(),
            "sigstore_globs": self.images.for_sigstore(),
            "alternatives": alternatives.iter().map(cel).collect::<Vec<_>>(),
            "cue": indented(cue.trim_end(), 14),
        });
        let template = match controller {
            PolicyController::Kyverno => KYVERNO,
            PolicyController::Sigstore => SIGSTORE,
        };
        rendered(template.trim_end(), &values)
    }

    /// Properties of the summary, of each list at least one: `ENVFORGE_GPU_FULL_SM90`.
    fn alternatives(&self) -> Vec<Vec<String>> {
        let levels = [Level::Quick, Level::Full, Level::Perf];
        let levels: Vec<String> = levels
            .into_iter()
            .filter(|level| *level >= self.level)
            .map(|level| level.as_str().to_uppercase())
            .collect();
        let named = |end: &str| levels.iter().map(|level| format!("ENVFORGE_GPU_{level}{end}")).collect();
        if self.capabilities.is_empty() {
            return vec![named("")];
        }
        let sm = |capability: &ComputeCapability| format!("_SM{}", capability.dotted().replace('.', ""));
        self.capabilities.iter().map(|capability| named(&sm(capability))).collect()
    }

    /// `level full or higher, on sm_90 and sm_103`.
    fn asked(&self) -> String {
        let gpus: Vec<String> = self.capabilities.iter().map(ToString::to_string).collect();
        let gpus = if gpus.is_empty() { "any GPU".to_owned() } else { gpus.join(" and ") };
        format!("level {} or higher, on {gpus}", self.level.max(Level::Quick))
    }

    /// `envforge-registry-example-com-team-1a2b3c4d`: another question has another name, so that none takes the place of another.
    fn name(&self) -> String {
        let word =
            |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
        let name: String = self.images.text.trim_end_matches('/').chars().map(word).collect();
        let name: String = format!("envforge-{name}").chars().take(LONGEST - 9).collect();
        let asked = format!("{} {}", self.images, self.asked());
        format!("{}-{}", name.trim_end_matches('-'), &sha256_hex(asked.as_bytes())[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::{EvidencePolicy, ImageScope};
    use crate::model::request::{Level, PolicyController};

    fn policy(images: &str) -> EvidencePolicy {
        EvidencePolicy {
            images: ImageScope::parse(images).expect(images),
            keys: vec!["-----BEGIN PUBLIC KEY-----\nMFkw\n-----END PUBLIC KEY-----\n".to_owned()],
            predicate: "https://in-toto.io/attestation/svr/v0.1",
            capabilities: vec!["9.0".parse().expect("ours"), "10.3".parse().expect("ours")],
            level: Level::Full,
        }
    }

    #[test]
    fn images_are_a_repository_or_all_below_a_path() {
        for wrong in [
            "",
            "torch",
            "team/",
            "reg.example.com/",
            "reg.example.com/a b/",
            "reg.example.com/*",
            "reg.example.com/t:1",
            "docker.io/team/",
            "reg.example.com/t'x",
        ] {
            let found = ImageScope::parse(wrong);
            assert_eq!(found.is_ok(), wrong == "reg.example.com/", "{wrong}: {found:?}");
        }
        let error = ImageScope::parse("team/").expect_err("no registry").to_string();
        assert!(error.contains("names no registry"), "{error}");
    }

    #[test]
    fn every_capability_needs_a_property_of_the_level_or_a_higher_one() {
        let asked = policy("reg.example.com/team/").alternatives();
        let wanted = [
            ["ENVFORGE_GPU_FULL_SM90", "ENVFORGE_GPU_PERF_SM90"],
            ["ENVFORGE_GPU_FULL_SM103", "ENVFORGE_GPU_PERF_SM103"],
        ];
        assert_eq!(asked, wanted);
        let any = EvidencePolicy {
            capabilities: Vec::new(),
            level: Level::Static,
            ..policy("reg.example.com/team/")
        };
        assert_eq!(any.alternatives(), [["ENVFORGE_GPU_QUICK", "ENVFORGE_GPU_FULL", "ENVFORGE_GPU_PERF"]]);
        assert_eq!(any.asked(), "level quick or higher, on any GPU");
    }

    #[test]
    fn manifests_read_as_kept() {
        for (controller, name) in
            [(PolicyController::Kyverno, "kyverno"), (PolicyController::Sigstore, "sigstore")]
        {
            for (images, end) in
                [("reg.example.com:5000/team/", "path"), ("reg.example.com/team/torch", "repository")]
            {
                insta::assert_snapshot!(format!("policy_{name}_{end}"), policy(images).manifest(controller));
            }
        }
    }
}
