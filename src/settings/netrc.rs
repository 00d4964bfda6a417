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

/// Who wrote an address.
#[derive(Debug, Clone, Copy)]
pub(super) enum Author<'a> {
    /// The user: settings, environment, command line. The address may be `http://`.
    User,
    /// A project, which anybody may have written. The addresses are those of the user's settings.
    Project(&'a [&'a SecretString]),
}

impl Author<'_> {
    /// Whether an address may have the login of its host. One of a project may only over TLS, at the usual port or at the very
    /// server that a setting of the user names: whoever wrote it chose the scheme and the port, and may listen there.
    fn may_have_login(self, url: &Url) -> bool {
        let Self::Project(own) = self else { return true };
        let is_same =
            |own: &&SecretString| parsed(own.expose_secret()).is_some_and(|own| own.origin() == url.origin());
        url.scheme() == "https" && (url.port().is_none() || own.iter().any(is_same))
    }
}

/// The address of a setting, which may have a form and placeholders.
fn parsed(text: &str) -> Option<Url> {
    let plain = text.trim();
    let plain = plain.strip_prefix(FLAT).unwrap_or(plain);
    Url::parse(&plain.replace("{cuda}", "cuda").replace("{version}", "1.0")).ok()
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

    /// Returns the address with the login of its host, unless it has its own or may have none. Its placeholders and form are
    /// kept. The one place that decides where a login goes.
    pub(super) fn with_login(&self, address: &SecretString, author: Author<'_>) -> SecretString {
        let text = address.expose_secret();
        let known = || {
            let (scheme, rest) = text.trim().split_once("://")?;
            let url = parsed(text)?;
            let bare = url.username().is_empty() && url.password().is_none();
            if !bare || !matches!(url.scheme(), "http" | "https") {
                return None;
            }
            let login = self.0.iter().find(|login| Some(&*login.host) == url.host_str())?;
            if !author.may_have_login(&url) {
                tracing::debug!(
                    origin = url.origin().ascii_serialization(),
                    "no login for an address of a project: not https, or a port that no setting names"
                );
                return None;
            }
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
        let with = |address: &str| netrc.with_login(&address.into(), Author::User).expose_secret().to_owned();
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
    fn address_of_a_project_gets_a_login_over_tls_at_a_port_of_the_user_only() {
        let netrc = Netrc::parse(TEXT);
        let own = ["https://wheels.test:8443/{cuda}", "flat+http://other.test:81/p"].map(SecretString::from);
        let own: Vec<&SecretString> = own.iter().collect();
        let has = |address: &str| {
            let found = netrc.with_login(&address.into(), Author::Project(&own));
            found.expose_secret().contains('@')
        };
        for address in
            ["https://wheels.test/simple", "https://wheels.test:443/s", "flat+https://wheels.test:8443/p"]
        {
            assert!(has(address), "{address}");
        }
        for address in [
            "http://wheels.test/simple",
            "http://wheels.test:443/simple",
            "https://wheels.test:8444/simple",
            "https://other.test:8443/simple",
            "http://other.test:81/p",
            "flat+http://other.test:81/p",
            "HTTP://WHEELS.test/simple",
            " http://wheels.test/simple",
        ] {
            assert!(!has(address), "{address}");
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
