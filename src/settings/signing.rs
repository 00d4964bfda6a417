//! The key of the environment that signs evidence.

use secrecy::SecretString;

use super::environment::Environment;
use super::variables;

/// What the environment says of the key. `Debug` shows none of it.
#[derive(Debug, Clone, Default)]
pub struct SigningSettings {
    /// The private key, in PEM form.
    pub key: Option<SecretString>,
    /// The password of a private key, which may be empty.
    pub password: Option<SecretString>,
}

impl SigningSettings {
    pub(super) fn of(environment: &Environment) -> Self {
        Self {
            key: variables::SIGNING_KEY.of(environment).map(Into::into),
            password: variables::SIGNING_PASSWORD.set_or_empty(environment).cloned().map(Into::into),
        }
    }
}
