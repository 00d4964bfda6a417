//! `~/.netrc`: who we are to which host. Pure; its text is read by `Settings::load`.

use reqwest::Url;

/// Logins by host. Never printed.
#[derive(Clone, Default)]
pub struct Netrc(Vec<(String, String, String)>);

impl std::fmt::Debug for Netrc {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.iter().map(|(host, ..)| host)).finish()
    }
}

impl Netrc {
    /// Reads the `machine` entries of a netrc file that have a login and a password. Its `default` is left alone: it would be sent
    /// to every host that a project names.
    pub fn parse(text: &str) -> Self {
        let mut all: Vec<(String, String, String)> = Vec::new();
        let mut lines = text.lines();
        let mut inside = false;
        while let Some(line) = lines.next() {
            let mut words = line.split_whitespace();
            while let Some(word) = words.next() {
                match word {
                    "machine" => {
                        inside = true;
                        all.push((words.next().unwrap_or_default().to_owned(), String::new(), String::new()));
                    }
                    "default" => inside = false,
                    "macdef" => {
                        // A macro goes on to the next empty line.
                        lines.by_ref().find(|line| line.trim().is_empty());
                        break;
                    }
                    "login" | "password" | "account" => {
                        let value = words.next().unwrap_or_default().trim_matches('"').to_owned();
                        match all.last_mut() {
                            Some((_, login, _)) if inside && word == "login" => *login = value,
                            Some((_, _, password)) if inside && word == "password" => *password = value,
                            _ => {}
                        }
                    }
                    comment if comment.starts_with('#') => break,
                    _ => {}
                }
            }
        }
        all.retain(|(host, login, password)| !host.is_empty() && (!login.is_empty() || !password.is_empty()));
        Self(all)
    }

    /// That address with the login of its host, if it has none of its own. `{cuda}` in it stays.
    pub fn with_login(&self, address: &str) -> String {
        let known = || {
            let url = Url::parse(&address.replace("{cuda}", "cuda")).ok()?;
            let bare = url.username().is_empty() && url.password().is_none();
            let (scheme, rest) = address.trim().split_once("://")?;
            if !bare || !matches!(url.scheme(), "http" | "https") {
                return None;
            }
            let (_, login, password) = self.0.iter().find(|(host, ..)| Some(&**host) == url.host_str())?;
            // The way an address writes them.
            let mut words = Url::parse("http://host/").ok()?;
            words.set_username(login).ok()?;
            words.set_password(Some(password)).ok()?;
            let password = words.password().unwrap_or_default();
            Some(format!("{scheme}://{}:{password}@{rest}", words.username()))
        };
        known().unwrap_or_else(|| address.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\nmachine wheels.test login me password hunter2:@/x\nmacdef init\nmachine no.test\n\n\
                        machine other.test\n  login \"you\"\n  password s3\ndefault login anonymous password guest\nmachine empty.test\n";

    #[test]
    fn an_address_gets_the_login_of_its_host_unless_it_has_one() {
        let netrc = Netrc::parse(TEXT);
        let with = |address: &str| netrc.with_login(address);
        assert_eq!(with("https://wheels.test/{cuda}/x"), "https://me:hunter2%3A%40%2Fx@wheels.test/{cuda}/x");
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
    fn nothing_secret_is_printed() {
        let shown = format!("{:?}", Netrc::parse(TEXT));
        assert!(
            shown.contains("wheels.test") && !shown.contains("hunter2") && !shown.contains("me\""),
            "{shown}"
        );
    }
}
