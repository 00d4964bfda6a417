//! Keys that sign evidence: ECDSA on P-256 with SHA-256, the kind that `cosign generate-key-pair` makes.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1, ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use secrecy::{ExposeSecret as _, SecretString};

use super::cosign_key::opened;
use super::key_error::KeyError;
use crate::model::sha256::sha256_hex;

/// What stands before the point of a P-256 key in a `SubjectPublicKeyInfo` (RFC 5480): two object ids and the bit string's head.
const SPKI_HEAD: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// The object id of elliptic-curve keys, to tell another curve from another algorithm.
const EC_KEY: [u8; 9] = [0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// Object ids in keys that cannot be used, with what they are: `openssl genpkey` makes them all.
const OTHERS: [(&[u8], &str); 7] = [
    (&[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], "damaged P-256"),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x22], "P-384"),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x23], "P-521"),
    (&[0x06, 0x05, 0x2b, 0x81, 0x04, 0x00, 0x0a], "secp256k1"),
    (&[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01], "RSA"),
    (&[0x06, 0x03, 0x2b, 0x65, 0x70], "Ed25519"),
    (&[0x06, 0x03, 0x2b, 0x65, 0x71], "Ed448"),
];
/// Bytes of an uncompressed point.
const POINT: usize = 65;
/// Characters of a fingerprint that are shown.
const SHOWN: usize = 16;
/// Characters of a line of PEM.
const LINE: usize = 64;

/// A public key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey {
    point: Vec<u8>,
}

impl PublicKey {
    /// Reads a `SubjectPublicKeyInfo` in PEM form, as cosign and openssl write it.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        match pem(text)? {
            ("PUBLIC KEY", der) => Self::from_der(&der),
            (kind, _) if kind.ends_with("PRIVATE KEY") => Err(KeyError::Private),
            (kind, _) => Err(KeyError::Kind(kind.to_owned())),
        }
    }

    fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        match der.strip_prefix(&SPKI_HEAD) {
            Some(point) if point.len() == POINT && point[0] == 4 => Ok(Self { point: point.to_vec() }),
            _ => Err(unsupported(der)),
        }
    }

    fn der(&self) -> Vec<u8> {
        [&SPKI_HEAD[..], &self.point].concat()
    }

    /// The key in PEM form.
    pub fn to_pem(&self) -> String {
        let text = STANDARD.encode(self.der());
        let lines: Vec<_> = text.as_bytes().chunks(LINE).map(|line| String::from_utf8_lossy(line)).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", lines.join("\n"))
    }

    /// SHA-256 of its DER form, as hex: what `openssl pkey -pubin -outform DER | sha256sum` prints.
    pub fn fingerprint(&self) -> String {
        sha256_hex(&self.der())
    }

    /// Whether the signature, ASN.1 DER, is this key's over these bytes.
    pub(super) fn has_signed(&self, bytes: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &self.point).verify(bytes, signature).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(short_fingerprint(&self.fingerprint()))
    }
}

/// The beginning of a fingerprint, which tells keys apart for people; all of what is shorter.
pub fn short_fingerprint(fingerprint: &str) -> &str {
    fingerprint.get(..SHOWN).unwrap_or(fingerprint)
}

/// A private key. Its `Debug` shows the public one.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey(of {})", self.public())
    }
}

impl SigningKey {
    /// Reads PKCS#8, or a key that cosign encrypted, in PEM form.
    pub fn from_pem(text: &SecretString, password: Option<&SecretString>) -> Result<Self, KeyError> {
        let der = match pem(text.expose_secret())? {
            ("PRIVATE KEY", der) => der,
            ("ENCRYPTED SIGSTORE PRIVATE KEY" | "ENCRYPTED COSIGN PRIVATE KEY", sealed) => {
                opened(&sealed, password.ok_or(KeyError::PasswordMissing)?)?
            }
            ("PUBLIC KEY", _) => return Err(KeyError::Public),
            (kind, _) => return Err(KeyError::Kind(kind.to_owned())),
        };
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &der, &random);
        match pair {
            Ok(pair) => Ok(Self { pair, random }),
            Err(_) => Err(unsupported(&der)),
        }
    }

    /// Its public key.
    pub fn public(&self) -> PublicKey {
        PublicKey { point: self.pair.public_key().as_ref().to_vec() }
    }

    /// A signature over bytes, ASN.1 DER.
    pub(super) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        let signature = self.pair.sign(&self.random, bytes).expect("the system has random numbers");
        signature.as_ref().to_vec()
    }

    /// A new key, for tests.
    #[cfg(test)]
    pub(super) fn new() -> Self {
        let random = SystemRandom::new();
        let der =
            EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).expect("random numbers");
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, der.as_ref(), &random);
        Self { pair: pair.expect("made just now"), random }
    }
}

/// Why a key cannot be used: what it is instead.
fn unsupported(der: &[u8]) -> KeyError {
    let has = |id: &[u8]| der.windows(id.len()).any(|part| part == id);
    KeyError::Unsupported(match OTHERS.iter().find(|(id, _)| has(id)) {
        Some((_, name)) => name,
        None if has(&EC_KEY) => "on another curve",
        None => "of an unknown algorithm",
    })
}

/// The kind and the bytes of the first block of PEM (RFC 7468).
fn pem(text: &str) -> Result<(&str, Vec<u8>), KeyError> {
    let (_, rest) = text.split_once("-----BEGIN ").ok_or(KeyError::NotPem)?;
    let (kind, rest) = rest.split_once("-----").ok_or(KeyError::NotPem)?;
    let (body, _) = rest.split_once(&format!("-----END {kind}-----")).ok_or(KeyError::NotPem)?;
    let body: String = body.chars().filter(|letter| !letter.is_ascii_whitespace()).collect();
    Ok((kind, STANDARD.decode(body).map_err(|_| KeyError::NotPem)?))
}
