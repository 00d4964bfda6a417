//! What is signed: in-toto statements about an image's digest.
//!
//! A statement of test results (<https://in-toto.io/attestation/test-result/v0.1>) carries the entries in a field of ours; readers ignore
//! fields they do not know. A summary (<https://in-toto.io/attestation/svr/v0.1>) repeats them as properties that a policy can ask for.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use super::entry::Entry;
use crate::model::image_digest::Digest;

/// The predicate type of the test results.
pub const RESULT_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// The predicate type of the summary.
pub const SUMMARY_TYPE: &str = "https://in-toto.io/attestation/svr/v0.1";
/// The predicate type of a signature, as cosign 3 makes one: Kyverno looks for attestations only where it finds a signature.
pub const SIGNATURE_TYPE: &str = "https://sigstore.dev/cosign/sign/v1";
/// The types of a statement: cosign writes the first one and reads both.
const STATEMENT_TYPES: [&str; 2] = ["https://in-toto.io/Statement/v0.1", "https://in-toto.io/Statement/v1"];
/// The version of the entries.
const SCHEMA: u32 = 1;
/// The most entries of a statement: a fleet has some dozens of GPU models and branches.
const MOST_ENTRIES: usize = 10_000;

/// Why a payload is not a statement of evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StatementError {
    /// A statement of another kind, which says nothing here.
    #[error("a statement of type `{0}`")]
    OtherKind(String),
    /// Not the JSON of a statement.
    #[error("malformed statement: {0}")]
    Malformed(String),
    /// Written by a newer envforge.
    #[error("schema {0} of a newer envforge")]
    Newer(u32),
}

/// A list of entries about an image at one time, by one signer.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// The image: `registry/name`.
    pub name: String,
    /// What it is about: the digest of the image's manifest, or of an index.
    pub digests: Vec<Digest>,
    /// Indexes that list the image and have a statement of this key of their own: it follows this one.
    pub indexes: Vec<Digest>,
    /// When it was signed.
    pub issued: Timestamp,
    /// Grows with each statement of one key about one image. Two different ones of one number are both refused.
    pub number: u64,
    /// An id of the run that made it.
    pub run: String,
    /// Edition of the compatibility matrix.
    pub matrix: String,
    /// Version of envforge.
    pub program: String,
    /// The entries.
    pub entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Extension {
    schema: u32,
    issued: Timestamp,
    number: u64,
    run: String,
    matrix: String,
    program: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    indexes: Vec<Digest>,
    entries: Vec<Entry>,
}

/// As much of the predicate as is read.
#[derive(Deserialize)]
struct Predicate {
    #[serde(rename = "io.envforge.evidence")]
    entries: Option<Box<RawValue>>,
}

/// The version of what a field holds.
#[derive(Deserialize)]
struct Versioned {
    schema: u64,
}

#[derive(Deserialize)]
struct Written {
    #[serde(rename = "_type")]
    kind: String,
    subject: Vec<WrittenSubject>,
    #[serde(rename = "predicateType")]
    predicate_type: String,
    predicate: Box<RawValue>,
}

#[derive(Deserialize)]
struct WrittenSubject {
    #[serde(default)]
    name: String,
    digest: std::collections::BTreeMap<String, String>,
}

/// A statement of any kind.
pub(super) struct InTotoStatement {
    /// The name of its first subject.
    pub(super) name: String,
    /// The subjects that have a SHA-256.
    pub(super) digests: Vec<Digest>,
    /// The kind.
    pub(super) predicate_type: String,
    /// What it says, not yet read: a list of entries takes ten times its size as a tree.
    predicate: Box<RawValue>,
}

impl InTotoStatement {
    /// Reads a statement.
    pub(super) fn parse(payload: &[u8]) -> Result<Self, StatementError> {
        let malformed = |error: serde_json::Error| StatementError::Malformed(error.to_string());
        let Written { kind, subject, predicate_type, predicate } =
            serde_json::from_slice(payload).map_err(malformed)?;
        if !STATEMENT_TYPES.contains(&kind.as_str()) {
            return Err(StatementError::OtherKind(kind));
        }
        let digests = subject.iter().filter_map(|subject| subject.digest.get("sha256"));
        let digests = digests.filter_map(|hex| format!("sha256:{hex}").parse().ok()).collect();
        let name = subject.into_iter().next().map(|subject| subject.name).unwrap_or_default();
        Ok(Self { name, digests, predicate_type, predicate })
    }

    /// What it says, as a tree.
    pub(super) fn predicate(&self) -> serde_json::Value {
        serde_json::from_str(self.predicate.get()).unwrap_or_default()
    }
}

/// The bytes of a statement about an image: its name and digests.
pub(super) fn in_toto(
    (name, digests): (&str, &[Digest]),
    kind: &str,
    predicate: &serde_json::Value,
) -> Vec<u8> {
    let hex = |digest: &Digest| digest.as_str().trim_start_matches("sha256:").to_owned();
    let subject = |digest: &Digest| json!({ "name": name, "digest": { "sha256": hex(digest) } });
    let subjects: Vec<_> = digests.iter().map(subject).collect();
    let statement = json!({
        "_type": STATEMENT_TYPES[0], "subject": subjects, "predicateType": kind, "predicate": predicate,
    });
    serde_json::to_vec(&statement).expect("a statement serialises: it holds text keys only")
}

/// The field of the predicate that holds the entries.
const FIELD: &str = "io.envforge.evidence";

impl Statement {
    /// The entries that stand: tests that passed and were not withdrawn.
    pub fn standing(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.stands())
    }

    /// The statement of test results. Its result is `PASSED` as long as an entry stands: a policy that knows no entries asks for that.
    pub fn results(&self) -> Vec<u8> {
        let stands = self.standing().next().is_some();
        let passed: BTreeSet<&str> =
            self.standing().flat_map(|entry| entry.passed.iter().map(String::as_str)).collect();
        let locks: BTreeSet<&str> = self.standing().map(|entry| entry.lock.as_str()).collect();
        let agents: BTreeSet<&str> = self.standing().map(|entry| entry.agent.as_str()).collect();
        let hashed = |name: &str, hash: &str| json!({ "name": name, "digest": { "sha256": hash } });
        let mut configuration: Vec<_> =
            locks.iter().filter(|hash| !hash.is_empty()).map(|hash| hashed("envforge.lock", hash)).collect();
        configuration
            .extend(agents.iter().filter(|hash| !hash.is_empty()).map(|hash| hashed("envforge-agent", hash)));
        configuration.push(json!({ "name": "envforge-matrix", "annotations": { "edition": self.matrix } }));
        let extension = Extension {
            schema: SCHEMA,
            issued: self.issued,
            number: self.number,
            run: self.run.clone(),
            matrix: self.matrix.clone(),
            program: self.program.clone(),
            indexes: self.indexes.clone(),
            entries: self.entries.clone(),
        };
        self.payload(
            RESULT_TYPE,
            &json!({
                "result": if stands { "PASSED" } else { "FAILED" },
                "configuration": configuration,
                "passedTests": passed,
                FIELD: extension,
            }),
        )
    }

    /// The summary; `None`: nothing stands, and a summary lists only what passed.
    pub fn summary(&self) -> Option<Vec<u8>> {
        let mut properties = BTreeSet::new();
        for entry in self.standing() {
            let level = entry.level.as_str().to_uppercase();
            let capability = entry.capability.dotted().replace('.', "");
            properties.insert("ENVFORGE_GPU_EXECUTED".to_owned());
            properties.insert(format!("ENVFORGE_GPU_{level}"));
            properties.insert(format!("ENVFORGE_GPU_{level}_SM{capability}"));
            properties.insert(format!("ENVFORGE_GPU_{level}_SM{capability}_R{}", entry.branch()));
            if entry.nccl > 1 {
                properties.insert(format!("ENVFORGE_NCCL_{}", entry.nccl));
            }
        }
        let id = format!("pkg:cargo/envforge@{}", self.program);
        let time = self.issued.to_string();
        let predicate = json!({ "verifier": { "id": id }, "timeCreated": time, "properties": properties });
        self.standing().next().is_some().then(|| self.payload(SUMMARY_TYPE, &predicate))
    }

    /// The signature; `None`: nothing stands, and a signature says that the image is good.
    pub fn signature(&self) -> Option<Vec<u8>> {
        let predicate = json!({ FIELD: { "issued": self.issued } });
        self.standing().next().is_some().then(|| self.payload(SIGNATURE_TYPE, &predicate))
    }

    fn payload(&self, kind: &str, predicate: &serde_json::Value) -> Vec<u8> {
        in_toto((&self.name, &self.digests), kind, predicate)
    }

    /// Reads a statement of test results that carries entries.
    pub fn parse(payload: &[u8]) -> Result<Self, StatementError> {
        let malformed = |error: serde_json::Error| StatementError::Malformed(error.to_string());
        let InTotoStatement { name, digests, predicate_type, predicate } = InTotoStatement::parse(payload)?;
        if predicate_type != RESULT_TYPE {
            return Err(StatementError::OtherKind(predicate_type));
        }
        let field = serde_json::from_str(predicate.get()).ok().and_then(|Predicate { entries }| entries);
        let Some(extension) = field else {
            return Err(StatementError::OtherKind(format!("{RESULT_TYPE}, without `{FIELD}`")));
        };
        let schema = serde_json::from_str(extension.get()).map_or(0, |Versioned { schema }| schema);
        if schema != u64::from(SCHEMA) {
            return Err(StatementError::Newer(u32::try_from(schema).unwrap_or(u32::MAX)));
        }
        let Extension { issued, number, run, matrix, program, indexes, entries, .. } =
            serde_json::from_str(extension.get()).map_err(malformed)?;
        if entries.len() > MOST_ENTRIES {
            return Err(StatementError::Malformed(format!(
                "{} entries, limit {MOST_ENTRIES}",
                entries.len()
            )));
        }
        Ok(Self { name, digests, indexes, issued, number, run, matrix, program, entries })
    }
}

/// When the statements that a signature goes with were signed; `None`: it is no signature, or cosign made it.
pub(crate) fn signature_issued(payload: &[u8]) -> Option<Timestamp> {
    let statement = InTotoStatement::parse(payload).ok()?;
    let predicate = (statement.predicate_type == SIGNATURE_TYPE).then(|| statement.predicate())?;
    predicate.get(FIELD)?.get("issued")?.as_str()?.parse().ok()
}
