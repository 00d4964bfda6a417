//! Registry logins. Printing one shows the user name only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

/// Login method.
#[derive(Debug, Clone)]
pub enum Login {
    /// User name and password (or access token in its place).
    Password {
        /// The user.
        user: String,
        /// The password.
        password: SecretString,
    },
    /// A refresh token, which the registry's token server exchanges.
    IdentityToken(SecretString),
    /// A bearer token, sent as it is.
    RegistryToken(SecretString),
}

/// A login and the registry it is for.
#[derive(Debug, Clone)]
pub struct Credential {
    /// The registry: `registry.example.com:5000`.
    pub registry: String,
    /// Login method.
    pub login: Login,
}

impl Login {
    /// Parses user name and password of the `auth` field of Docker's configuration.
    pub(super) fn of_auth_field(text: &str) -> Option<Self> {
        let decoded = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        // Docker's own files end some passwords with NUL.
        let password = password.trim_end_matches('\0');
        Some(Self::Password { user: user.to_owned(), password: SecretString::from(password) })
    }
    /// Returns the value of an `Authorization` header; `None` if the login requires a token server.
    pub(super) fn header(&self) -> Option<SecretString> {
        match self {
            Self::Password { user, password } => Some(SecretString::from(format!(
                "Basic {}",
                STANDARD.encode(format!("{user}:{}", password.expose_secret()))
            ))),
            Self::RegistryToken(token) => Some(bearer(token)),
            Self::IdentityToken(_) => None,
        }
    }
}

/// Returns the value of an `Authorization` header with a bearer token.
pub(super) fn bearer(token: &SecretString) -> SecretString {
    SecretString::from(format!("Bearer {}", token.expose_secret()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_shows_no_secret() {
        let password = Login::Password { user: "ann".to_owned(), password: SecretString::from("hunter2") };
        let credentials = [
            password,
            Login::IdentityToken(SecretString::from("hunter2")),
            Login::RegistryToken(SecretString::from("hunter2")),
        ]
        .map(|login| Credential { registry: "box:5000".to_owned(), login });
        let text = format!("{credentials:?} {:#?}", credentials[0]);
        assert!(!text.contains("hunter2") && text.contains("ann"), "{text}");
    }

    #[test]
    fn auth_field_password_may_contain_colons() {
        let auth = STANDARD.encode("ann:pass:word\0");
        let login = Login::of_auth_field(&auth).expect("a login");
        let Login::Password { user, password } = &login else { panic!("{login:?}") };
        assert_eq!((user.as_str(), password.expose_secret()), ("ann", "pass:word"));
        assert_eq!(
            login.header().expect("basic").expose_secret(),
            format!("Basic {}", STANDARD.encode("ann:pass:word"))
        );
        for text in ["", "no base64!", &STANDARD.encode("nocolon")] {
            assert!(Login::of_auth_field(text).is_none(), "{text}");
        }
    }
}
