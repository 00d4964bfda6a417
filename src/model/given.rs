//! What of this machine goes into a container: the one list. `shell`, commands of a build, `verify` and exports follow it, and
//! SECURITY.md prints it.
//!
//! An image that was not built here is a stranger's program, and so are the commands of a project.

use std::collections::BTreeMap;

/// Something of the user or of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Thing {
    /// The default package index with its login: `/etc/pip.conf`, `/etc/uv/uv.toml`.
    Index,
    /// `~/.netrc`, logins of registries and mirrors.
    Logins,
    /// The addresses of the proxies.
    Proxy,
    /// The logins in these addresses.
    ProxyLogin,
    /// The CA certificates that this machine trusts.
    Certificates,
    /// The volume of models, with the token and the pickles that programs keep there.
    Models,
    /// The volume of the home directory.
    Home,
    /// Secrets of the configuration.
    Secrets,
}

/// Where it may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Receiver {
    /// A container of `shell`, of an image that was built here.
    Shell,
    /// A container of `shell`, of any other image.
    ShellOfElsewhere,
    /// A command of a project while its image is built.
    Run,
    /// The checks of an image.
    Verify,
    /// Files that `export` writes.
    Export,
}

/// Whether it goes there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gift {
    Yes,
    No,
    /// Once the user has answered the question of a project.
    Asked,
    /// In place of the project's, one for this image alone.
    Own,
}

const RECEIVERS: [(Receiver, &str); 5] = [
    (Receiver::Shell, "`shell`, built here"),
    (Receiver::ShellOfElsewhere, "`shell`, from elsewhere"),
    (Receiver::Run, "`run` steps"),
    (Receiver::Verify, "`verify`"),
    (Receiver::Export, "exports"),
];

/// The list, in the order of [`RECEIVERS`].
const LIST: [(Thing, &str, [Gift; 5]); 8] = {
    use Gift::{Asked, No, Own, Yes};
    [
        (Thing::Index, "package index with its login (`pip.conf`, `uv.toml`)", [Yes, No, No, No, No]),
        (Thing::Logins, "`~/.netrc`, logins of registries and mirrors", [No, No, No, No, No]),
        (Thing::Proxy, "address of the proxy", [Yes, Yes, Yes, No, No]),
        (Thing::ProxyLogin, "login of the proxy", [Yes, No, Asked, No, No]),
        (Thing::Certificates, "CA certificates", [Yes, Yes, No, No, No]),
        (Thing::Models, "volume of models", [Yes, No, No, No, No]),
        (Thing::Home, "home volume of the project", [Yes, Own, No, No, No]),
        (Thing::Secrets, "secrets of the configuration", [No, No, Asked, No, No]),
    ]
};

impl Receiver {
    /// Whether that goes there.
    pub(crate) fn gets(self, thing: Thing) -> Gift {
        let column = RECEIVERS.iter().position(|(one, _)| *one == self);
        let row = LIST.iter().find(|(one, ..)| *one == thing);
        column.zip(row).map_or(Gift::No, |(column, (_, _, gifts))| gifts[column])
    }

    /// Whether it gets that without a question.
    pub(crate) fn has(self, thing: Thing) -> bool {
        self.gets(thing) == Gift::Yes
    }

    /// Returns the proxies as they go there: without their logins, or none. `agreed`: the question of the project was answered.
    pub(crate) fn proxies(self, all: &BTreeMap<String, String>, agreed: bool) -> BTreeMap<String, String> {
        if !self.has(Thing::Proxy) {
            return BTreeMap::new();
        }
        let with_login = match self.gets(Thing::ProxyLogin) {
            Gift::Yes => true,
            Gift::Asked => agreed,
            Gift::No | Gift::Own => false,
        };
        let shown = |value: &str| if with_login { value.to_owned() } else { without_login(value) };
        all.iter().map(|(name, value)| (name.clone(), shown(value))).collect()
    }
}

/// Whether one of these proxies has a login.
pub(crate) fn have_login(proxies: &BTreeMap<String, String>) -> bool {
    proxies.values().any(|value| value.contains('@'))
}

/// The address of a proxy without its login. Programs disagree about a `/` in a password: nothing before the last `@` stays but the
/// scheme.
fn without_login(proxy: &str) -> String {
    let Some((before, host)) = proxy.rsplit_once('@') else { return proxy.to_owned() };
    match before.split_once("://") {
        Some((scheme, _)) => format!("{scheme}://{host}"),
        None => host.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> String {
        let mark = |gift: &Gift| match gift {
            Gift::Yes => "yes",
            Gift::No => "–",
            Gift::Asked => "after a question",
            Gift::Own => "one of its own",
        };
        let head: Vec<&str> = RECEIVERS.iter().map(|(_, title)| *title).collect();
        let mut text = format!("| | {} |\n|---|{}\n", head.join(" | "), "---|".repeat(head.len()));
        for (_, title, gifts) in &LIST {
            let gifts: Vec<&str> = gifts.iter().map(mark).collect();
            text = format!("{text}| {title} | {} |\n", gifts.join(" | "));
        }
        text
    }

    #[test]
    fn security_page_prints_the_list() {
        let page = include_str!("../../SECURITY.md");
        assert!(page.contains(&table()), "SECURITY.md lacks:\n{}", table());
    }

    #[test]
    fn image_from_elsewhere_gets_no_login_and_no_volume_of_others() {
        for thing in [Thing::Index, Thing::Logins, Thing::ProxyLogin, Thing::Models, Thing::Secrets] {
            assert_eq!(Receiver::ShellOfElsewhere.gets(thing), Gift::No, "{thing:?}");
        }
        assert_eq!(Receiver::ShellOfElsewhere.gets(Thing::Home), Gift::Own);
        for (_, _, gifts) in &LIST {
            assert_eq!(gifts[3..], [Gift::No; 2], "checks and exports get nothing");
        }
    }

    #[test]
    fn login_of_a_proxy_goes_to_commands_after_a_question_only() {
        let proxies = |receiver: Receiver, agreed| {
            let all =
                BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://me:hunter2@proxy.test:3128".to_owned())]);
            receiver.proxies(&all, agreed).remove("HTTPS_PROXY")
        };
        let (whole, bare) = (Some("http://me:hunter2@proxy.test:3128"), Some("http://proxy.test:3128"));
        for (receiver, agreed, expected) in [
            (Receiver::Shell, false, whole),
            (Receiver::ShellOfElsewhere, false, bare),
            (Receiver::ShellOfElsewhere, true, bare),
            (Receiver::Run, false, bare),
            (Receiver::Run, true, whole),
            (Receiver::Verify, true, None),
            (Receiver::Export, true, None),
        ] {
            assert_eq!(proxies(receiver, agreed).as_deref(), expected, "{receiver:?} {agreed}");
        }
    }

    #[test]
    fn nothing_of_a_login_stays_however_it_is_written() {
        for (proxy, expected) in [
            ("http://u:p@h:1", "http://h:1"),
            ("u:p@h:1", "h:1"),
            ("http://u:p/w@h", "http://h"),
            ("http://u:p@w@h/", "http://h/"),
            ("socks5://u@h", "socks5://h"),
            ("http://h:1", "http://h:1"),
            ("localhost,.test", "localhost,.test"),
        ] {
            assert_eq!(without_login(proxy), expected);
            assert!(!without_login(expected).contains('@'));
        }
    }
}
