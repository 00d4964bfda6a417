//! `~/.netrc`: logins of hosts. Pure; its text is read by `Settings::load`.

use reqwest::Url;
use secrecy::{ExposeSecret as _, SecretString};

use crate::model::index_address::FLAT;

/// The login of a host.
#[derive(Debug, Clone)]
struct Login {
    host: String,
    user: SecretString,
    password: SecretString,
}

/// Logins by host.
#[derive(Debug, Clone, Default)]
pub struct Netrc(Vec<Login>);

impl Netrc {
    /// Parses the `machine` entries of a netrc file that have a login or a password. Ignores `default`, which would be
    /// sent to every host of a project.
    pub fn parse(text: &str) -> Self {
        let mut all: Vec<Login> = Vec::new();
        let mut lines = text.lines();
        let mut inside = false;
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    "machine" => {
                        inside = true;
                        let host = words.next().unwrap_or_default().to_owned();
                        all.push(Login { host, user: String::new().into(), password: String::new().into() });
                    }
                    "default" => inside = false,
                    "macdef" => {
                        // A macro goes on to the next empty line.
                        lines.by_ref().find(|line| line.trim().is_empty());
                        break;
                    }
                    "login" | "password" | "account" => {
                        let value = words.next().unwrap_or_default().trim_matches('"').into();
                        match all.last_mut() {
                            Some(login) if inside && word == "login" => login.user = value,
                            Some(login) if inside && word == "password" => login.password = value,
                            _ => {}
                        }
                    }
                    comment if comment.starts_with('#') => break,
                    _ => {}
                }
            }
        }
        let is_set = |text: &SecretString| !text.expose_secret().is_empty();
        all.retain(|login| !login.host.is_empty() && (is_set(&login.user) || is_set(&login.password)));
        Self(all)
    }

    /// Returns the address with the login of its host, unless it has its own. Its placeholders and form are kept.
    pub fn with_login(&self, address: &SecretString) -> SecretString {
        let text = address.expose_secret();
        let known = || {
            let (scheme, rest) = text.trim().split_once("://")?;
            let plain = text.trim().strip_prefix(FLAT).unwrap_or(text);
            let url = Url::parse(&plain.replace("{cuda}", "cuda").replace("{version}", "1.0")).ok()?;
            let bare = url.username().is_empty() && url.password().is_none();
            if !bare || !matches!(url.scheme(), "http" | "https") {
                return None;
            }
            let login = self.0.iter().find(|login| Some(&*login.host) == url.host_str())?;
            // Encoded as in a URL.
            let mut encoded = Url::parse("http://host/").ok()?;
            encoded.set_username(login.user.expose_secret()).ok()?;
            encoded.set_password(Some(login.password.expose_secret())).ok()?;
            let password = encoded.password().unwrap_or_default();
            Some(format!("{scheme}://{}:{password}@{rest}", encoded.username()).into())
        };
        known().unwrap_or_else(|| address.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\nmachine wheels.test login me password hunter2:@/x\nmacdef init\nmachine no.test\n\n\
                        machine other.test\n  login \"you\"\n  password s3\ndefault login anonymous password guest\nmachine empty.test\n";

    #[test]
    fn address_gets_the_login_of_its_host_unless_it_has_one() {
        let netrc = Netrc::parse(TEXT);
        let with = |address: &str| netrc.with_login(&address.into()).expose_secret().to_owned();
        assert_eq!(with("https://wheels.test/{cuda}/x"), "https://me:hunter2%3A%40%2Fx@wheels.test/{cuda}/x");
        assert_eq!(with("flat+http://other.test/v{version}"), "flat+http://you:s3@other.test/v{version}");
        assert_eq!(with("http://other.test:8080/simple"), "http://you:s3@other.test:8080/simple");
        for same in [
            "https://her:own@wheels.test/simple",
            "https://no.test/simple",
            "https://empty.test/",
            "https://sub.wheels.test/",
            "ssh://wheels.test/",
            "no address",
        ] {
            assert_eq!(with(same), same);
        }
    }

    #[test]
    fn no_secret_is_printed() {
        let shown = format!("{:?}", Netrc::parse(TEXT));
        assert!(
            shown.contains("wheels.test") && !shown.contains("hunter2") && !shown.contains("me\""),
            "{shown}"
        );
    }
}
