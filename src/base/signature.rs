//! Who signed a package index: checks OpenPGP clear signatures against the keys this program carries.
//!
//! Owns the keys and the check. Text outside the signature never leaves this file.

use jiff::Timestamp;
use pgp::composed::{CleartextSignedMessage, Deserializable as _, SignedPublicKey};
use pgp::packet::Signature;
use pgp::types::KeyDetails as _;

use super::limits::MOST_RELEASE_LINES;
use super::signature_error::SignatureError;
use super::signing_key::SigningKey;

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

/// Ubuntu's archive key; `keys/README.md` lists its source.
const UBUNTU_KEYS: [&[u8]; 1] = [include_bytes!("keys/ubuntu-archive-2018.gpg")];

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
pub struct Keyring(Vec<SigningKey>);

impl Keyring {
    /// Debian's keys, as this program carries them.
    pub fn debian() -> Result<Self, SignatureError> {
        Self::read(&DEBIAN_KEYS)
    }

    /// Ubuntu's keys, as this program carries them.
    pub fn ubuntu() -> Result<Self, SignatureError> {
        Self::read(&UBUNTU_KEYS)
    }

    /// The fingerprints of its primary keys, hex.
    #[cfg(test)]
    pub(super) fn fingerprints(&self) -> Vec<String> {
        self.0.iter().map(SigningKey::fingerprint).collect()
    }

    fn read(keys: &[&[u8]]) -> Result<Self, SignatureError> {
        let parse = |bytes: &&[u8]| {
            SignedPublicKey::from_bytes(*bytes)
                .map(SigningKey::new)
                .map_err(|error| SignatureError::Key { cause: error.to_string() })
        };
        keys.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// The text that was signed, if one of the keys did it with a signature that counts now.
    pub fn verified(&self, document: &[u8], now: Timestamp) -> Result<String, SignatureError> {
        let not_signed = |cause: String| SignatureError::NotSigned { cause };
        let text = std::str::from_utf8(document).map_err(|error| not_signed(error.to_string()))?;
        if text.lines().count() > MOST_RELEASE_LINES {
            return Err(not_signed(format!("more than {MOST_RELEASE_LINES} lines")));
        }
        let (message, _) =
            CleartextSignedMessage::from_string(text).map_err(|error| not_signed(error.to_string()))?;
        let signed = message.signed_text();
        // An index is signed by several keys, of which one may have ended.
        let mut refused = None;
        for signature in message.signatures() {
            for judgement in self.0.iter().filter_map(|key| key.judge(signature, &signed, now)) {
                match judgement {
                    Ok(()) => return Ok(signed.replace("\r\n", "\n")),
                    Err(error) => refused = refused.or(Some(error)),
                }
            }
        }
        let unknown = || SignatureError::UnknownKey {
            issuers: message.signatures().iter().flat_map(issuers).collect(),
        };
        Err(refused.unwrap_or_else(unknown))
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
    keyring_of(include_bytes!("fixtures/good.gpg"))
}

/// The keyring of one key, for documents of tests.
#[cfg(test)]
pub(crate) fn keyring_of(key: &[u8]) -> Keyring {
    Keyring::read(&[key]).expect("a test key")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("fixtures/good.InRelease");
    const OTHER: &str = include_str!("fixtures/other.InRelease");

    fn now() -> Timestamp {
        "2026-11-22T00:00:00Z".parse().expect("a time")
    }

    #[test]
    fn the_built_in_keys_are_those_of_the_table() {
        let table = include_str!("keys/README.md");
        let keyrings = [Keyring::debian(), Keyring::ubuntu()].map(|keyring| keyring.expect("keys"));
        let keys: Vec<_> = keyrings.iter().flat_map(Keyring::fingerprints).collect();
        assert_eq!(keys.len(), table.lines().filter(|line| line.contains(".gpg` |")).count());
        for fingerprint in keys {
            assert!(table.contains(&fingerprint), "{fingerprint}");
        }
    }

    #[test]
    fn signed_text_is_returned_without_surrounding_text() {
        let wrapped = format!("Codename: forged\n\n{GOOD}\nCodename: forged\n");
        for document in [GOOD, &wrapped] {
            match test_keyring().verified(document.as_bytes(), now()) {
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
        let error = test_keyring().verified(GOOD.replace("oldstable", "oldstabel").as_bytes(), now());
        assert_eq!(error, Err(SignatureError::Changed));
    }

    #[test]
    fn unknown_key_is_rejected_and_reported() {
        let error = test_keyring().verified(OTHER.as_bytes(), now()).expect_err("refused");
        let SignatureError::UnknownKey { issuers } = &error else { panic!("{error}") };
        assert_eq!(issuers.len(), 1);
        assert!(issuers[0].len() >= 16, "{issuers:?}");
        let debian = Keyring::debian().expect("keys").verified(GOOD.as_bytes(), now());
        assert!(matches!(debian, Err(SignatureError::UnknownKey { .. })), "{debian:?}");
    }

    #[test]
    fn unsigned_text_is_rejected() {
        for text in ["Suite: stable\n", "", "<html>not found</html>"] {
            let error = test_keyring().verified(text.as_bytes(), now()).expect_err("refused");
            assert!(matches!(error, SignatureError::NotSigned { .. }), "{error}");
        }
    }
}
