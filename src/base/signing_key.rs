//! A key that may sign package indexes: which signatures are its own, and whether they count now.
//!
//! Owns validity: expiry and revocation of a key and its subkeys, as their self-signatures have it. The time is passed in.

use jiff::{SignedDuration, Timestamp};
use pgp::composed::{SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::types::{KeyDetails, Tag, VerifyingKey};

use super::signature_error::SignatureError;

/// Hashes without a known collision: not SHA-1, MD5 or RIPEMD-160.
const STRONG: [HashAlgorithm; 6] = [
    HashAlgorithm::Sha256,
    HashAlgorithm::Sha384,
    HashAlgorithm::Sha512,
    HashAlgorithm::Sha224,
    HashAlgorithm::Sha3_256,
    HashAlgorithm::Sha3_512,
];
/// Clocks of fresh machines are often off by a time zone.
const GRACE: SignedDuration = SignedDuration::from_hours(24);

/// A key with its subkeys.
#[derive(Debug, Clone)]
pub(super) struct SigningKey(SignedPublicKey);

impl SigningKey {
    /// Takes a key that is not checked yet: `judge` looks at its self-signatures.
    pub(super) fn new(key: SignedPublicKey) -> Self {
        Self(key)
    }

    /// The fingerprint of the primary key, hex.
    #[cfg(test)]
    pub(super) fn fingerprint(&self) -> String {
        hex(&self.0.primary_key)
    }

    /// Whether this key or one of its subkeys made the signature of the text, and the signature counts now; `None`: the
    /// signature is of another key.
    pub(super) fn judge(
        &self,
        signature: &Signature,
        signed: &str,
        now: Timestamp,
    ) -> Option<Result<(), SignatureError>> {
        let primary = &self.0.primary_key;
        if signed_by(signature, primary) {
            let made = verify(signature, primary, signed, now);
            return Some(made.and_then(|()| self.check_primary(now)));
        }
        let subkey = self.0.public_subkeys.iter().find(|subkey| signed_by(signature, &subkey.key))?;
        let may_sign = subkey.signatures.iter().any(|binding| binding.key_flags().sign());
        if !may_sign || subkey.verify_bindings(primary).is_err() {
            return None;
        }
        let made = verify(signature, &subkey.key, signed, now);
        Some(made.and_then(|()| self.check_primary(now)).and_then(|()| check_subkey(subkey, now)))
    }

    /// Fails if the primary key was revoked or has expired: its subkeys then do not count either.
    fn check_primary(&self, now: Timestamp) -> Result<(), SignatureError> {
        let (key, details) = (&self.0.primary_key, &self.0.details);
        // Any revocation counts: the keys of the keyring are built in, and none has one.
        if !details.revocation_signatures.is_empty() {
            return Err(SignatureError::KeyRevoked { key: hex(key) });
        }
        let of_users = details.users.iter().flat_map(|user| {
            let is_own = |signature: &&Signature| {
                signature.typ() != Some(SignatureType::CertRevocation)
                    && signature.verify_certification(key, Tag::UserId, &user.id).is_ok()
            };
            user.signatures.iter().filter(is_own)
        });
        let of_key = details.direct_signatures.iter().filter(|signature| signature.verify_key(key).is_ok());
        // A later signature of the same kind extends or shortens; the two kinds do not replace each other.
        let ends = [newest(of_users), newest(of_key)].into_iter().flatten();
        check_end(key, ends.filter_map(|signature| end_of_key(key, signature)).min(), now)
    }
}

/// Fails if a subkey was revoked or has expired.
fn check_subkey(subkey: &SignedPublicSubKey, now: Timestamp) -> Result<(), SignatureError> {
    let (key, all) = (&subkey.key, &subkey.signatures);
    if all.iter().any(|signature| signature.typ() == Some(SignatureType::SubkeyRevocation)) {
        return Err(SignatureError::KeyRevoked { key: hex(key) });
    }
    check_end(key, newest(all.iter()).and_then(|binding| end_of_key(key, binding)), now)
}

fn check_end(key: &impl KeyDetails, end: Option<Timestamp>, now: Timestamp) -> Result<(), SignatureError> {
    match end {
        Some(expired) if expired <= now => Err(SignatureError::KeyExpired { key: hex(key), expired, now }),
        _ => Ok(()),
    }
}

/// The newest signature made with a strong hash.
fn newest<'a>(signatures: impl Iterator<Item = &'a Signature>) -> Option<&'a Signature> {
    signatures.filter(|signature| weakness(signature).is_none()).max_by_key(|signature| signature.created())
}

/// The end of a key's validity by one of its self-signatures, counted from the creation of the key.
fn end_of_key(key: &impl KeyDetails, signature: &Signature) -> Option<Timestamp> {
    after(key.created_at(), signature.key_expiration_time()?)
}

/// A time after another; a duration of 0 stands for no end.
fn after(start: pgp::types::Timestamp, duration: pgp::types::Duration) -> Option<Timestamp> {
    let seconds = Some(duration.as_secs()).filter(|seconds| *seconds > 0)?;
    Timestamp::from_second(i64::from(start.as_secs()) + i64::from(seconds)).ok()
}

/// Whether a signature is named as made by this key; anybody can write that.
fn signed_by(signature: &Signature, key: &impl KeyDetails) -> bool {
    let (fingerprint, id) = (key.fingerprint(), key.legacy_key_id());
    signature.issuer_fingerprint().contains(&&fingerprint) || signature.issuer_key_id().contains(&&id)
}

/// The hash of a signature, if it is not strong.
fn weakness(signature: &Signature) -> Option<String> {
    let algorithm = signature.hash_alg().unwrap_or(HashAlgorithm::None);
    (!STRONG.contains(&algorithm)).then(|| algorithm.to_string())
}

/// Fails unless the key made the signature of this text, with a strong hash, and it counts now.
fn verify(
    signature: &Signature,
    key: &impl VerifyingKey,
    signed: &str,
    now: Timestamp,
) -> Result<(), SignatureError> {
    if let Some(algorithm) = weakness(signature) {
        return Err(SignatureError::WeakHash { algorithm });
    }
    // A certification or a key binding must not pass for a signature of a text.
    let of_a_text = matches!(signature.typ(), Some(SignatureType::Text | SignatureType::Binary));
    if !of_a_text || signature.verify(key, signed.as_bytes()).is_err() {
        return Err(SignatureError::Changed);
    }
    let seconds = signature.created().ok_or(SignatureError::Changed)?;
    let created = Timestamp::from_second(seconds.as_secs().into()).unwrap_or(Timestamp::MAX);
    if created.duration_since(now) > GRACE {
        return Err(SignatureError::NotYetValid { created, now });
    }
    match signature.signature_expiration_time().and_then(|duration| after(seconds, duration)) {
        Some(expired) if expired <= now => Err(SignatureError::Expired { expired, now }),
        _ => Ok(()),
    }
}

fn hex(key: &impl KeyDetails) -> String {
    format!("{:X}", key.fingerprint())
}
