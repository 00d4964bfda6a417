//! Who signed a package index: checks OpenPGP clear signatures against the keys this program carries.
//!
//! Owns the keys and the check. Text outside the signature never leaves this file.

use pgp::composed::{CleartextSignedMessage, Deserializable as _, SignedPublicKey};
use pgp::packet::{Signature, SignatureType};
use pgp::types::{KeyDetails, VerifyingKey};

/// Debian's archive keys; `keys/README.md` lists their sources.
const DEBIAN_KEYS: [&[u8]; 9] = [
    include_bytes!("keys/debian-archive-bullseye-automatic.gpg"),
    include_bytes!("keys/debian-archive-bullseye-security-automatic.gpg"),
    include_bytes!("keys/debian-archive-bullseye-stable.gpg"),
    include_bytes!("keys/debian-archive-bookworm-automatic.gpg"),
    include_bytes!("keys/debian-archive-bookworm-security-automatic.gpg"),
    include_bytes!("keys/debian-archive-bookworm-stable.gpg"),
    include_bytes!("keys/debian-archive-trixie-automatic.gpg"),
    include_bytes!("keys/debian-archive-trixie-security-automatic.gpg"),
    include_bytes!("keys/debian-archive-trixie-stable.gpg"),
];

/// Why a signature is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// The text carries no clear signature at all.
    #[error("not a signed text: {cause}")]
    NotSigned {
        /// The parser's message.
        cause: String,
    },
    /// Signed by an unknown key.
    #[error("unknown signing key {} (not a key of the distribution)", issuers.join(", "))]
    UnknownKey {
        /// Fingerprints or key ids of the signers.
        issuers: Vec<String>,
    },
    /// Signed by a known key, but the text was modified.
    #[error("bad signature: the content was modified")]
    Changed,
    /// A key cannot be read.
    #[error("cannot read the key: {cause}")]
    Key {
        /// The parser's message.
        cause: String,
    },
}

/// The fingerprint (hex) of a key, armoured or not. More than one key in the file is an error: only one was checked.
pub fn fingerprint_of(key: &[u8]) -> Result<String, SignatureError> {
    let bad = |cause: String| SignatureError::Key { cause };
    let (keys, _) = SignedPublicKey::from_reader_many(key).map_err(|error| bad(error.to_string()))?;
    let keys: Vec<_> = keys.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?;
    // A second armoured block is not read by us, but it may be by others.
    let blocks = String::from_utf8_lossy(key).matches("-----BEGIN PGP").count();
    match keys.as_slice() {
        [one] if blocks <= 1 => Ok(format!("{:X}", one.primary_key.fingerprint())),
        _ => Err(bad(format!("expected one key, found {}", keys.len().max(blocks)))),
    }
}

/// The keys an index may be signed with.
#[derive(Debug, Clone)]
pub struct Keyring(Vec<SignedPublicKey>);

impl Keyring {
    /// Debian's keys, as this program carries them.
    pub fn debian() -> Result<Self, SignatureError> {
        Self::read(&DEBIAN_KEYS)
    }

    fn read(keys: &[&[u8]]) -> Result<Self, SignatureError> {
        let parse = |bytes: &&[u8]| {
            SignedPublicKey::from_bytes(*bytes)
                .map_err(|error| SignatureError::Key { cause: error.to_string() })
        };
        keys.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// The text that was signed, if one of the keys did it.
    pub fn verified(&self, document: &[u8]) -> Result<String, SignatureError> {
        let not_signed = |cause: String| SignatureError::NotSigned { cause };
        let text = std::str::from_utf8(document).map_err(|error| not_signed(error.to_string()))?;
        let (message, _) =
            CleartextSignedMessage::from_string(text).map_err(|error| not_signed(error.to_string()))?;
        let signed = message.signed_text();
        let mut named = false;
        for signature in message.signatures() {
            match self.judge(signature, &signed) {
                Judgement::Good => return Ok(signed.replace("\r\n", "\n")),
                Judgement::Bad => named = true,
                Judgement::NotOurs => {}
            }
        }
        if named {
            return Err(SignatureError::Changed);
        }
        Err(SignatureError::UnknownKey { issuers: message.signatures().iter().flat_map(issuers).collect() })
    }

    fn judge(&self, signature: &Signature, signed: &str) -> Judgement {
        let mut judgement = Judgement::NotOurs;
        for key in &self.0 {
            if signed_by(signature, &key.primary_key) {
                judgement = judgement.or(verify(signature, &key.primary_key, signed));
            }
            for subkey in &key.public_subkeys {
                let may_sign = subkey.signatures.iter().any(|binding| binding.key_flags().sign());
                let bound = || subkey.verify_bindings(&key.primary_key).is_ok();
                if signed_by(signature, &subkey.key) && may_sign && bound() {
                    judgement = judgement.or(verify(signature, &subkey.key, signed));
                }
            }
        }
        judgement
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judgement {
    Good,
    Bad,
    NotOurs,
}

impl Judgement {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Good, _) | (_, Self::Good) => Self::Good,
            (Self::Bad, _) | (_, Self::Bad) => Self::Bad,
            _ => Self::NotOurs,
        }
    }
}

fn signed_by(signature: &Signature, key: &impl KeyDetails) -> bool {
    let (fingerprint, id) = (key.fingerprint(), key.legacy_key_id());
    signature.issuer_fingerprint().contains(&&fingerprint) || signature.issuer_key_id().contains(&&id)
}

fn verify(signature: &Signature, key: &impl VerifyingKey, signed: &str) -> Judgement {
    // A certification or a key binding must not pass for a signature of a text.
    let of_a_text = matches!(signature.typ(), Some(SignatureType::Text | SignatureType::Binary));
    if of_a_text && signature.verify(key, signed.as_bytes()).is_ok() {
        Judgement::Good
    } else {
        Judgement::Bad
    }
}

fn issuers(signature: &Signature) -> Vec<String> {
    let fingerprints: Vec<_> = signature.issuer_fingerprint().iter().map(|f| format!("{f:X}")).collect();
    if fingerprints.is_empty() {
        return signature.issuer_key_id().iter().map(|id| id.to_string().to_uppercase()).collect();
    }
    fingerprints
}

/// The keyring of the tests' own key, for documents in `fixtures/`.
#[cfg(test)]
pub(crate) fn test_keyring() -> Keyring {
    Keyring::read(&[include_bytes!("fixtures/good.gpg")]).expect("the test key")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("fixtures/good.InRelease");
    const OTHER: &str = include_str!("fixtures/other.InRelease");

    #[test]
    fn the_built_in_keys_are_those_of_the_table() {
        let table = include_str!("keys/README.md");
        let keys = Keyring::debian().expect("keys");
        assert_eq!(keys.0.len(), table.lines().filter(|line| line.contains(".gpg` |")).count());
        for key in &keys.0 {
            let fingerprint = format!("{:X}", key.primary_key.fingerprint());
            assert!(table.contains(&fingerprint), "{fingerprint}");
        }
    }

    #[test]
    fn signed_text_is_returned_without_surrounding_text() {
        let wrapped = format!("Codename: forged\n\n{GOOD}\nCodename: forged\n");
        for document in [GOOD, &wrapped] {
            match test_keyring().verified(document.as_bytes()) {
                Ok(text) => {
                    assert!(text.starts_with("Origin: Debian\n"), "{text}");
                    assert!(text.contains("\n-- are escaped\n"), "{text}");
                    assert!(!text.contains("forged") && !text.contains("PGP"), "{text}");
                }
                Err(error) => assert!(document != GOOD, "{error}"),
            }
        }
    }

    #[test]
    fn modified_text_is_rejected() {
        let error = test_keyring().verified(GOOD.replace("oldstable", "oldstabel").as_bytes());
        assert_eq!(error, Err(SignatureError::Changed));
    }

    #[test]
    fn unknown_key_is_rejected_and_reported() {
        let error = test_keyring().verified(OTHER.as_bytes()).expect_err("refused");
        let SignatureError::UnknownKey { issuers } = &error else { panic!("{error}") };
        assert_eq!(issuers.len(), 1);
        assert!(issuers[0].len() >= 16, "{issuers:?}");
        let debian = Keyring::debian().expect("keys").verified(GOOD.as_bytes());
        assert!(matches!(debian, Err(SignatureError::UnknownKey { .. })), "{debian:?}");
    }

    #[test]
    fn unsigned_text_is_rejected() {
        for text in ["Suite: stable\n", "", "<html>not found</html>"] {
            let error = test_keyring().verified(text.as_bytes()).expect_err("refused");
            assert!(matches!(error, SignatureError::NotSigned { .. }), "{error}");
        }
    }
}
