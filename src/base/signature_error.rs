//! Why the signature of a package index is rejected.

use jiff::Timestamp;

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
    /// Signed over a hash for which other texts can be found.
    #[error("insecure signature: made with {algorithm}")]
    WeakHash {
        /// `SHA1`.
        algorithm: String,
    },
    /// The signature itself has an end.
    #[error("the signature expired on {expired} (current time {now})")]
    Expired {
        /// The end.
        expired: Timestamp,
        /// The time it was compared with.
        now: Timestamp,
    },
    /// The signature was made in the future: a clock is wrong.
    #[error("the signature is dated in the future: {created} (current time {now})")]
    NotYetValid {
        /// Its date.
        created: Timestamp,
        /// The time it was compared with.
        now: Timestamp,
    },
    /// The key that signed has expired.
    #[error("signing key {key} expired on {expired} (current time {now})")]
    KeyExpired {
        /// Its fingerprint.
        key: String,
        /// The end of its validity.
        expired: Timestamp,
        /// The time it was compared with.
        now: Timestamp,
    },
    /// The key that signed was revoked.
    #[error("signing key {key} was revoked by its owner")]
    KeyRevoked {
        /// Its fingerprint.
        key: String,
    },
    /// A key cannot be read.
    #[error("cannot read the key: {cause}")]
    Key {
        /// The parser's message.
        cause: String,
    },
}
