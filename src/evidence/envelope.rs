//! Signed payloads: DSSE version 1 (secure-systems-lab/dsse), in the one form that cosign 2 and 3 both read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use super::key::{PublicKey, SigningKey};

/// The type of the payloads.
pub(super) const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";
/// Signatures of an envelope that are looked at: anybody can add some.
const MOST_SIGNATURES: usize = 16;

/// Why a document is not an envelope of evidence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Not the JSON of an envelope.
    #[error("not a DSSE envelope: {0}")]
    Malformed(String),
    /// A payload of another type: the signature covers it.
    #[error("a payload of type `{0}`")]
    Kind(String),
    /// A part is not base64.
    #[error("{0} is not base64")]
    Encoding(&'static str),
}

/// A payload with its signatures. Nothing in it is believed before a key has been found that made one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope {
    payload: Vec<u8>,
    signatures: Vec<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Written {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<WrittenSignature>,
}

#[derive(Serialize, Deserialize)]
struct WrittenSignature {
    /// Empty: cosign 3 refuses another one.
    #[serde(default)]
    keyid: String,
    sig: String,
}

impl Envelope {
    /// Signs a payload.
    pub fn sign(payload: Vec<u8>, key: &SigningKey) -> Self {
        let signature = key.sign(&signed_bytes(&payload));
        Self { payload, signatures: vec![signature] }
    }

    /// A payload with a signature of nobody.
    #[cfg(test)]
    pub(crate) fn of_nobody(payload: &str) -> Self {
        Self { payload: payload.as_bytes().to_vec(), signatures: vec![vec![0; 3]] }
    }

    /// The envelope as JSON.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.written()).expect("an envelope serialises: it holds texts only")
    }

    fn written(&self) -> Written {
        let signature =
            |bytes: &Vec<u8>| WrittenSignature { keyid: String::new(), sig: STANDARD.encode(bytes) };
        Written {
            payload_type: PAYLOAD_TYPE.to_owned(),
            payload: STANDARD.encode(&self.payload),
            signatures: self.signatures.iter().map(signature).collect(),
        }
    }

    /// The same inside a bundle, where a signature has no key id.
    pub(super) fn to_bundle_value(&self) -> serde_json::Value {
        let signature = |bytes: &Vec<u8>| serde_json::json!({ "sig": STANDARD.encode(bytes) });
        serde_json::json!({
            "payload": STANDARD.encode(&self.payload),
            "payloadType": PAYLOAD_TYPE,
            "signatures": self.signatures.iter().map(signature).collect::<Vec<_>>(),
        })
    }

    /// Reads an envelope.
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        let value =
            serde_json::from_slice(bytes).map_err(|error| EnvelopeError::Malformed(error.to_string()))?;
        Self::from_value(value)
    }

    pub(super) fn from_value(value: serde_json::Value) -> Result<Self, EnvelopeError> {
        let written: Written =
            serde_json::from_value(value).map_err(|error| EnvelopeError::Malformed(error.to_string()))?;
        if written.payload_type != PAYLOAD_TYPE {
            return Err(EnvelopeError::Kind(written.payload_type));
        }
        let payload =
            STANDARD.decode(&written.payload).map_err(|_| EnvelopeError::Encoding("the payload"))?;
        let signatures = written.signatures.iter().take(MOST_SIGNATURES);
        let signatures = signatures.map(|one| STANDARD.decode(&one.sig)).collect::<Result<_, _>>();
        Ok(Self { payload, signatures: signatures.map_err(|_| EnvelopeError::Encoding("a signature"))? })
    }

    /// What the key signed; `None`: none of the signatures is that key's.
    pub fn payload_by(&self, key: &PublicKey) -> Option<&[u8]> {
        let bytes = signed_bytes(&self.payload);
        self.signatures.iter().any(|signature| key.has_signed(&bytes, signature)).then_some(&*self.payload)
    }

    /// The payload, whoever signed it.
    pub fn unchecked_payload(&self) -> &[u8] {
        &self.payload
    }
}

/// What a signature covers: DSSE's pre-authentication encoding, so that no payload of one type passes as another's.
fn signed_bytes(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    [head.as_bytes(), payload].concat()
}
