//! What an image was built from: SLSA provenance (<https://slsa.dev/provenance/v1>) that carries the lock, and its bill of materials.
//!
//! Pure. Provenance by a trusted key makes a digest ours on a machine that did not build it.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::statement::{InTotoStatement, StatementError, in_toto};
use crate::model::compat::Matrix;
use crate::model::image_digest::Digest;
use crate::model::lock::Lock;

/// The predicate type of provenance.
pub const PROVENANCE_TYPE: &str = "https://slsa.dev/provenance/v1";
/// The predicate type of a bill of materials.
pub const SBOM_TYPE: &str = "https://spdx.dev/Document";
/// What kind of build it is.
const BUILD_TYPE: &str = "pkg:cargo/envforge#lock";
/// The field of the predicate that holds what envforge reads.
const FIELD: &str = "io.envforge.provenance";
/// The version of that field.
const SCHEMA: u32 = 1;

/// What an image was built from, as its builder signs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// `registry/name`.
    pub name: String,
    /// The image's manifest.
    pub digest: Digest,
    /// When it was signed.
    pub issued: Timestamp,
    /// An id of the run that signed it.
    pub run: String,
    /// Version of the envforge that signed it; the lock names the one that locked.
    pub program: String,
    /// The platform, `linux/amd64`.
    pub platform: String,
    /// The lock, as its file.
    pub lock: String,
}

#[derive(Serialize, Deserialize)]
struct Extension {
    schema: u32,
    issued: Timestamp,
    program: String,
    lock: String,
}

impl Provenance {
    /// The statement of provenance.
    pub fn statement(&self, lock: &Lock) -> Vec<u8> {
        let extension = Extension {
            schema: SCHEMA,
            issued: self.issued,
            program: self.program.clone(),
            lock: self.lock.clone(),
        };
        let predicate = json!({
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": { "spec": lock.spec, "platform": self.platform, "lock": lock.hash() },
                "resolvedDependencies": materials(lock),
            },
            "runDetails": {
                "builder": { "id": "pkg:cargo/envforge" },
                "metadata": { "invocationId": self.run },
            },
            FIELD: extension,
        });
        in_toto((&self.name, std::slice::from_ref(&self.digest)), PROVENANCE_TYPE, &predicate)
    }

    /// The statement of the bill of materials.
    pub fn materials(&self, lock: &Lock, matrix: &Matrix) -> Vec<u8> {
        in_toto((&self.name, std::slice::from_ref(&self.digest)), SBOM_TYPE, &lock.spdx(&self.name, matrix))
    }

    /// Reads the provenance of that image; a statement of another kind or about another image is an error.
    pub fn parse(payload: &[u8], digest: &Digest) -> Result<Self, StatementError> {
        let statement = InTotoStatement::parse(payload)?;
        let predicate = statement.predicate();
        let InTotoStatement { name, digests, predicate_type, .. } = statement;
        let Some(extension) = predicate.get(FIELD).filter(|_| predicate_type == PROVENANCE_TYPE) else {
            return Err(StatementError::OtherKind(predicate_type));
        };
        if !digests.contains(digest) {
            return Err(StatementError::Malformed(format!("it is not about {digest}")));
        }
        let schema = extension.get("schema").and_then(Value::as_u64).unwrap_or(0);
        if schema != u64::from(SCHEMA) {
            return Err(StatementError::Newer(u32::try_from(schema).unwrap_or(u32::MAX)));
        }
        let malformed = |error: serde_json::Error| StatementError::Malformed(error.to_string());
        let Extension { issued, program, lock, .. } =
            serde_json::from_value(extension.clone()).map_err(malformed)?;
        let text =
            |path: &str| predicate.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        Ok(Self {
            name,
            digest: digest.clone(),
            issued,
            run: text("/runDetails/metadata/invocationId"),
            program,
            platform: text("/buildDefinition/externalParameters/platform"),
            lock,
        })
    }
}

/// Whether a payload is one that a later provenance of the same key takes the place of.
pub(crate) fn is_provenance_of_ours(payload: &[u8]) -> bool {
    let Ok(statement) = InTotoStatement::parse(payload) else { return false };
    let made_by = |tool: &Value| tool.as_str().is_some_and(|tool| tool.starts_with("Tool: envforge-"));
    match statement.predicate_type.as_str() {
        PROVENANCE_TYPE => statement.predicate().get(FIELD).is_some(),
        SBOM_TYPE => statement
            .predicate()
            .pointer("/creationInfo/creators")
            .and_then(Value::as_array)
            .is_some_and(|tools| tools.iter().any(made_by)),
        _ => false,
    }
}

/// What the image was made of: the base, packages and wheels, each with its SHA-256.
fn materials(lock: &Lock) -> Vec<Value> {
    let one = |name: &str, version: &str, sha256: &str| json!({ "name": format!("{name}=={version}"), "digest": { "sha256": sha256 } });
    let base = lock.base.digest.as_ref().and_then(|digest| digest.strip_prefix("sha256:"));
    let base = base.map(|digest| json!({ "name": lock.base.name, "digest": { "sha256": digest } }));
    let debs = lock.base.packages.iter().chain(lock.debs());
    let debs = debs.map(|deb| one(&deb.name, &deb.version, &deb.sha256));
    let wheels = lock.wheels.iter().map(|wheel| one(&wheel.name, &wheel.version, &wheel.sha256));
    let tools = lock.tools.iter().map(|tool| one(&tool.name, &tool.version, &tool.sha256));
    base.into_iter().chain(debs).chain(wheels).chain(tools).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;

    fn provenance() -> Provenance {
        Provenance {
            name: "box.test/team/torch".to_owned(),
            digest: Digest::of(b"manifest"),
            issued: "2026-11-28T10:00:00Z".parse().expect("a time"),
            run: "0".repeat(32),
            program: "0.2.0".to_owned(),
            platform: "linux/amd64".to_owned(),
            lock: sample::lock().to_toml(),
        }
    }

    #[test]
    fn what_is_signed_is_read_again_with_its_lock() {
        let (written, lock) = (provenance(), sample::lock());
        let payload = written.statement(&lock);
        let read = Provenance::parse(&payload, &written.digest).expect("ours");
        assert_eq!(read, written);
        assert_eq!(Lock::from_bytes("lock", read.lock.as_bytes()).expect("a lock").hash(), lock.hash());
        assert!(
            is_provenance_of_ours(&payload)
                && is_provenance_of_ours(&written.materials(&lock, crate::model::compat::embedded()))
        );
        let value: Value = serde_json::from_slice(&payload).expect("JSON");
        let materials =
            value["predicate"]["buildDefinition"]["resolvedDependencies"].as_array().expect("a list");
        let hashes = materials
            .iter()
            .filter(|one| one["digest"]["sha256"].as_str().is_some_and(|hex| hex.len() == 64));
        assert_eq!(hashes.count(), materials.len());
        assert!(materials.len() >= lock.wheels.len() + lock.base.packages.len());
    }

    #[test]
    fn another_image_kind_or_version_is_none() {
        let (written, lock) = (provenance(), sample::lock());
        let payload = written.statement(&lock);
        let parse = |payload: &[u8]| Provenance::parse(payload, &written.digest);
        let other = Provenance::parse(&payload, &Digest::of(b"another")).expect_err("refused");
        assert!(other.to_string().contains("not about"), "{other}");
        let text = String::from_utf8(payload).expect("text");
        let newer = text.replace(r#""schema":1"#, r#""schema":2"#);
        assert_eq!(parse(newer.as_bytes()), Err(StatementError::Newer(2)));
        let kind = text.replace(PROVENANCE_TYPE, "https://slsa.dev/provenance/v0.2");
        assert!(matches!(parse(kind.as_bytes()), Err(StatementError::OtherKind(_))));
        assert!(matches!(
            parse(&written.materials(&lock, crate::model::compat::embedded())),
            Err(StatementError::OtherKind(_))
        ));
        assert!(matches!(parse(b"[]"), Err(StatementError::Malformed(_))));
        // Those of other programs stay where they are.
        let foreign = text.replace(FIELD, "com.example.provenance");
        assert!(!is_provenance_of_ours(foreign.as_bytes()));
        assert!(!is_provenance_of_ours(b"{}"));
    }
}
