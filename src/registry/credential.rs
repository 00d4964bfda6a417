//! What a registry is told to let us in. Printing it shows the user name and nothing else.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::hidden::Hidden;

/// How one logs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// User name and password (or access token in its place).
    Password {
        /// The user.
        user: String,
        /// The password.
        password: Hidden,
    },
    /// A refresh token, which the registry's token server exchanges.
    IdentityToken(Hidden),
    /// A bearer token, sent as it is.
    RegistryToken(Hidden),
}

/// A login and the registry it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credential {
    /// The registry as its owner names it: `registry.example.com:5000`.
    pub registry: String,
    /// How one logs in.
    pub login: Login,
}

impl Login {
    /// User name and password out of the `auth` field of Docker's configuration.
    pub(super) fn of_auth_field(text: &str) -> Option<Self> {
        let decoded = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
        let (user, password) = decoded.split_once(':')?;
        // Docker's own files end some passwords with NUL.
        let password = password.trim_end_matches('\0');
        Some(Self::Password { user: user.to_owned(), password: Hidden::new(password) })
    }
    /// The value of an `Authorization` header that needs no token server; none if only a token server takes it.
    pub(super) fn header(&self) -> Option<Hidden> {
        match self {
            Self::Password { user, password } => Some(Hidden::new(format!(
                "Basic {}",
                STANDARD.encode(format!("{user}:{}", password.expose()))
            ))),
            Self::RegistryToken(token) => Some(bearer(token)),
            Self::IdentityToken(_) => None,
        }
    }
}

/// The value of an `Authorization` header with a bearer token.
pub(super) fn bearer(token: &Hidden) -> Hidden {
    Hidden::new(format!("Bearer {}", token.expose()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_printing_shows_a_secret() {
        let password = Login::Password { user: "ann".to_owned(), password: Hidden::new("hunter2") };
        let credentials = [
            password,
            Login::IdentityToken(Hidden::new("hunter2")),
            Login::RegistryToken(Hidden::new("hunter2")),
        ]
        .map(|login| Credential { registry: "box:5000".to_owned(), login });
        let text = format!("{credentials:?} {:#?} {}", credentials[0], Hidden::new("hunter2"));
        assert!(!text.contains("hunter2") && text.contains("ann"), "{text}");
    }

    #[test]
    fn the_auth_field_holds_user_and_password_which_may_hold_colons() {
        let auth = STANDARD.encode("ann:pass:word\0");
        let login = Login::of_auth_field(&auth).expect("a login");
        assert_eq!(login, Login::Password { user: "ann".to_owned(), password: Hidden::new("pass:word") });
        assert_eq!(
            login.header().expect("basic").expose(),
            format!("Basic {}", STANDARD.encode("ann:pass:word"))
        );
        for text in ["", "no base64!", &STANDARD.encode("nocolon")] {
            assert_eq!(Login::of_auth_field(text), None, "{text}");
        }
    }
}
