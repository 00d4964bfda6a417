//! Why a key cannot be used, and what to do about it.

use crate::failure::{Exit, Failure};

/// Why a text is not a key that can be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Not PEM at all.
    #[error("not a key in PEM form")]
    NotPem,
    /// A private key was needed.
    #[error("this is a public key; signing needs the private one")]
    Public,
    /// A public key was needed.
    #[error("this is a private key; checking evidence needs the public one alone")]
    Private,
    /// Another kind of PEM.
    #[error("unsupported kind of key `{0}`")]
    Kind(String),
    /// Another algorithm or curve than ECDSA on P-256, or damaged.
    #[error("unsupported key: {0} (evidence is signed with ECDSA P-256)")]
    Unsupported(&'static str),
    /// The key is encrypted and no password was given.
    #[error("the key is encrypted, and COSIGN_PASSWORD is not set")]
    PasswordMissing,
    /// The password does not open it.
    #[error("wrong password in COSIGN_PASSWORD, or a damaged key")]
    WrongPassword,
    /// The encryption is not one that cosign writes.
    #[error("unsupported encryption of the key: {0}")]
    Encryption(String),
}

impl Failure for KeyError {
    fn exit(&self) -> Exit {
        Exit::Usage
    }

    fn hints(&self) -> Vec<String> {
        let hint = match self {
            Self::NotPem | Self::Public | Self::Unsupported(_) => {
                "make a key: `cosign generate-key-pair`, or `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem`"
            }
            Self::Private => {
                "pass the public key: `cosign.pub`, or `openssl pkey -in key.pem -pubout -out key.pub`"
            }
            Self::Kind(kind) if kind == "EC PRIVATE KEY" || kind == "ENCRYPTED PRIVATE KEY" => {
                "convert it: `openssl pkcs8 -topk8 -nocrypt -in KEY -out key.pem`, or `cosign import-key-pair --key KEY`"
            }
            Self::Kind(_) | Self::Encryption(_) => "use a key that cosign made, or PKCS#8 in PEM form",
            Self::PasswordMissing => "set COSIGN_PASSWORD (empty for a key without a password)",
            Self::WrongPassword => "set COSIGN_PASSWORD to the password of this key",
        };
        vec![hint.to_owned()]
    }
}
