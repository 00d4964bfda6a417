//! Private keys as cosign encrypts them: scrypt and `secretbox`, written as JSON.

use crypto_secretbox::aead::{Aead as _, KeyInit as _};
use crypto_secretbox::{Key, Nonce, XSalsa20Poly1305};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;

use super::key_error::KeyError;

/// The most memory that opening a key may take: eight times what cosign writes (64 MiB), since a file from elsewhere chooses it.
const LARGEST_MEMORY: u64 = 512 << 20;

#[derive(Deserialize)]
struct Sealed {
    kdf: Kdf,
    cipher: Cipher,
    #[serde(with = "base64_text")]
    ciphertext: Vec<u8>,
}

#[derive(Deserialize)]
struct Kdf {
    name: String,
    params: Params,
    #[serde(with = "base64_text")]
    salt: Vec<u8>,
}

#[derive(Deserialize)]
struct Params {
    #[serde(rename = "N")]
    n: u64,
    r: u32,
    p: u32,
}

#[derive(Deserialize)]
struct Cipher {
    name: String,
    #[serde(with = "base64_text")]
    nonce: Vec<u8>,
}

mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use serde::{Deserialize as _, Deserializer, de::Error as _};

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
        STANDARD.decode(String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// The PKCS#8 form of a key that cosign encrypted with that password.
pub(super) fn opened(sealed: &[u8], password: &SecretString) -> Result<Vec<u8>, KeyError> {
    let odd = |what: &str| KeyError::Encryption(what.to_owned());
    let sealed: Sealed = serde_json::from_slice(sealed).map_err(|error| odd(&error.to_string()))?;
    if sealed.kdf.name != "scrypt" || sealed.cipher.name != "nacl/secretbox" {
        return Err(odd(&format!("{} with {}", sealed.kdf.name, sealed.cipher.name)));
    }
    let Params { n, r, p } = sealed.kdf.params;
    let memory = n.checked_mul(u64::from(r)).and_then(|blocks| blocks.checked_mul(128));
    if !n.is_power_of_two() || memory.is_none_or(|memory| memory > LARGEST_MEMORY) || p > 16 {
        return Err(odd(&format!("scrypt with N={n}, r={r}, p={p}")));
    }
    let log_n = u8::try_from(n.trailing_zeros()).expect("below 64");
    let params = scrypt::Params::new(log_n, r, p, 32).map_err(|error| odd(&error.to_string()))?;
    let mut key = Key::default();
    let password = password.expose_secret().as_bytes();
    scrypt::scrypt(password, &sealed.kdf.salt, &params, &mut key).map_err(|error| odd(&error.to_string()))?;
    if sealed.cipher.nonce.len() != Nonce::default().len() {
        return Err(odd("a nonce of another length"));
    }
    let nonce = Nonce::from_slice(&sealed.cipher.nonce);
    XSalsa20Poly1305::new(&key).decrypt(nonce, &*sealed.ciphertext).map_err(|_| KeyError::WrongPassword)
}
