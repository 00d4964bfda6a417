//! Evidence in a file, for nodes that ask no registry.

use serde::{Deserialize, Serialize};

use super::documents::Attestation;
use super::envelope::Envelope;
use crate::failure::{Exit, Failure};
use crate::model::image_digest::Digest;

const SCHEMA: u32 = 1;
/// The most documents: as many as are read of a registry, in both forms.
const MOST_DOCUMENTS: usize = 2000;

/// The evidence of one image. Nothing in it is believed before a signature was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedEvidence {
    /// `registry/name`.
    pub name: String,
    /// The digest of its manifest.
    pub digest: Digest,
    /// The envelopes.
    pub found: Vec<Attestation>,
}

/// Why a file is not evidence.
#[derive(Debug, thiserror::Error)]
pub enum SavedError {
    /// Not the JSON of a file of evidence.
    #[error("`{file}` is not a file of `envforge evidence --save`: {why}")]
    Malformed {
        /// The file.
        file: String,
        /// Why.
        why: String,
    },
}

impl Failure for SavedError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        vec!["save it again: `envforge evidence IMAGE --save FILE`".to_owned()]
    }
}

#[derive(Serialize, Deserialize)]
struct Written {
    schema: u32,
    name: String,
    digest: Digest,
    envelopes: Vec<WrittenEnvelope>,
}

#[derive(Serialize, Deserialize)]
struct WrittenEnvelope {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    signer: Option<String>,
    envelope: serde_json::Value,
}

impl SavedEvidence {
    /// The file.
    pub fn to_json(&self) -> Vec<u8> {
        let written = |one: &Attestation| WrittenEnvelope {
            signer: one.signer.clone(),
            envelope: serde_json::from_slice(&one.envelope.to_json()).expect("an envelope is JSON"),
        };
        let envelopes = self.found.iter().map(written).collect();
        let (name, digest) = (self.name.clone(), self.digest.clone());
        let written = Written { schema: SCHEMA, name, digest, envelopes };
        serde_json::to_vec_pretty(&written).expect("texts and numbers serialise")
    }

    /// Reads the file.
    pub fn parse(file: &str, bytes: &[u8]) -> Result<Self, SavedError> {
        let malformed = |why: String| SavedError::Malformed { file: file.to_owned(), why };
        let written: Written = serde_json::from_slice(bytes).map_err(|error| malformed(error.to_string()))?;
        if written.schema != SCHEMA {
            return Err(malformed(format!("schema {}, this envforge reads {SCHEMA}", written.schema)));
        }
        if written.envelopes.len() > MOST_DOCUMENTS {
            return Err(malformed(format!("{} documents, limit {MOST_DOCUMENTS}", written.envelopes.len())));
        }
        let read = |one: WrittenEnvelope| {
            let envelope =
                Envelope::from_value(one.envelope).map_err(|error| malformed(error.to_string()))?;
            Ok(Attestation { envelope, signer: one.signer })
        };
        let found = written.envelopes.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { name: written.name, digest: written.digest, found })
    }
}
