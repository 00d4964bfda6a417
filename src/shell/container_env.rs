//! The environment, /etc and home directory of a container. Pure.

use std::collections::BTreeMap;
use std::io::Read as _;

use bytes::Bytes;

use super::user::User;
use crate::engine::{ContainerFile, OwnedFile, Tars};
use crate::model::bounded_tar::BoundedTar;
use crate::model::given::{Receiver, Thing};
use crate::model::image::paths::{HOME, MODELS};

/// The certificate file of Debian's programs.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";
/// Terminal types of every image.
const TERMINALS: [&str; 10] = [
    "ansi",
    "dumb",
    "linux",
    "screen",
    "screen-256color",
    "tmux",
    "tmux-256color",
    "vt100",
    "xterm",
    "xterm-256color",
];

/// The settings of this machine for a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct ContainerEnv {
    /// Proxy variables, by their upper-case names.
    pub(crate) proxies: BTreeMap<String, String>,
    /// The package index, with its secrets.
    pub(crate) index: Option<String>,
    /// Trusted certificates.
    pub(crate) ca_bundle: Option<Bytes>,
    /// Whether there is a volume of models.
    pub(crate) models: bool,
    /// The image that the home volume is for alone; `None`: it is the project's.
    pub(crate) own_home: Option<String>,
}

impl ContainerEnv {
    /// The same for a receiver, by the list of what goes where. `image` is the id of its image.
    pub(crate) fn for_receiver(self, receiver: Receiver, image: &str) -> Self {
        Self {
            proxies: receiver.proxies(&self.proxies, false),
            index: self.index.filter(|_| receiver.has(Thing::Index)),
            ca_bundle: self.ca_bundle.filter(|_| receiver.has(Thing::Certificates)),
            models: self.models && receiver.has(Thing::Models),
            own_home: (!receiver.has(Thing::Home)).then(|| image.to_owned()),
        }
    }

    /// Returns the environment; the caller's variables follow and win.
    pub(crate) fn environment(&self, user: &User) -> Vec<String> {
        let mut env =
            vec![format!("HOME={HOME}"), format!("USER={}", user.name()), format!("LOGNAME={}", user.name())];
        for (name, value) in &self.proxies {
            env.push(format!("{name}={value}"));
            env.push(format!("{}={value}", name.to_lowercase()));
        }
        if self.ca_bundle.is_some() {
            let names = ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_CERT"];
            env.extend(names.map(|name| format!("{name}={CERTIFICATES}")));
        }
        if self.models {
            env.push(format!("HF_HOME={MODELS}/huggingface"));
            env.push(format!("TORCH_HOME={MODELS}/torch"));
        }
        env
    }

    /// Returns the inputs of /etc besides image and user, for a volume's name. The address of an index may contain a
    /// password: names contain only a hash of this.
    pub(crate) fn fingerprint(&self) -> Vec<u8> {
        let ca = self.ca_bundle.as_deref().unwrap_or_default();
        [self.index.as_deref().unwrap_or_default().as_bytes(), b"\0", ca].concat()
    }
}

/// Returns the terminal type, if images know it, or a default.
pub(crate) fn term(caller: Option<&str>) -> &str {
    caller.filter(|term| TERMINALS.contains(term)).unwrap_or("xterm-256color")
}

/// Returns the files of /etc that differ from the image's: accounts, package index, certificates. Only the user can read
/// index addresses; they may contain a password and are therefore not variables.
pub(crate) fn etc_files(tars: &Tars, user: &User, inside: &ContainerEnv) -> Vec<OwnedFile> {
    let image = |path: &str| tars.get(path).map(|tar| first_text(tar)).unwrap_or_default();
    let root = (0, 0);
    let mut files = vec![
        file("/etc/passwd", 0o644, root, user.passwd(&image("/etc/passwd"), HOME)),
        file("/etc/group", 0o644, root, user.group(&image("/etc/group"))),
    ];
    if let Some(bytes) = &inside.ca_bundle {
        files.push(OwnedFile {
            file: ContainerFile { path: CERTIFICATES.to_owned(), mode: 0o644, bytes: bytes.clone() },
            owner: root,
        });
    }
    if let Some(index) = &inside.index {
        let toml = toml_edit::Value::from(index.as_str());
        files.push(file("/etc/pip.conf", 0o400, user.owner(), format!("[global]\nindex-url = {index}\n")));
        files.push(file(
            "/etc/uv/uv.toml",
            0o400,
            user.owner(),
            format!("[[index]]\nurl ={toml}\ndefault = true\n"),
        ));
    }
    files
}

/// Returns the initial files of a home directory: the image's /etc/skel and the mount points.
pub(crate) fn home_files(tars: &Tars, user: &User) -> Vec<OwnedFile> {
    let folder = |path: &str| file(path, 0o755, user.owner(), String::new());
    let mut files = vec![folder(&format!("{HOME}/.cache/")), folder(&format!("{MODELS}/"))];
    if let Some(tar) = tars.get("/etc/skel") {
        files.extend(skeleton(tar, user).unwrap_or_default());
    }
    files
}

fn file(path: &str, mode: u32, owner: (u32, u32), text: String) -> OwnedFile {
    OwnedFile { file: ContainerFile { path: path.to_owned(), mode, bytes: Bytes::from(text) }, owner }
}

/// Returns the text of the first file of a tar.
fn first_text(tar: &[u8]) -> String {
    let mut text = String::new();
    if let Ok(mut entries) = BoundedTar::new(tar).entries()
        && let Some(Ok(mut entry)) = entries.next()
    {
        // A file of accounts is text.
        let _ = entry.read_to_string(&mut text);
    }
    text
}

/// Returns the regular files of a skeleton with the user as owner.
fn skeleton(tar: &[u8], user: &User) -> std::io::Result<Vec<OwnedFile>> {
    let mut files = Vec::new();
    for entry in BoundedTar::new(tar).entries()? {
        let mut entry = entry?;
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let path = entry.path()?.into_owned();
        let mut parts = path.components();
        parts.next();
        let Some(relative) = parts.as_path().to_str().map(str::to_owned) else { continue };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        let mode = entry.header().mode()?;
        let file = ContainerFile { path: format!("{HOME}/{relative}"), mode, bytes: Bytes::from(bytes) };
        files.push(OwnedFile { file, owner: user.owner() });
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User { uid: 50000, gid: 50001, namespace: None }
    }

    fn tar(path: &str, text: &str) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, text.as_bytes()).expect("in memory");
        tar.into_inner().expect("in memory")
    }

    #[test]
    fn etc_files_hide_the_index_from_others() {
        let tars: Tars = [("/etc/passwd".to_owned(), tar("passwd", "root:x:0:0::/root:/bin/sh\n"))].into();
        let inside =
            ContainerEnv { index: Some("https://u:p@box/simple".to_owned()), ..ContainerEnv::default() };
        let files = etc_files(&tars, &user(), &inside);
        let of = |path: &str| files.iter().find(|one| one.file.path == path).expect(path);
        assert!(of("/etc/passwd").file.bytes.starts_with(b"dev:x:50000:50001:"));
        let index = of("/etc/pip.conf");
        assert_eq!((index.file.mode, index.owner), (0o400, (50000, 50001)));
        assert!(!inside.environment(&user()).iter().any(|variable| variable.contains("u:p")));
    }

    impl ContainerEnv {
        fn elsewhere(self) -> Self {
            self.for_receiver(Receiver::ShellOfElsewhere, "sha256:aa")
        }
    }

    /// The settings of a machine whose index and proxy have a login.
    fn with_login() -> ContainerEnv {
        let index = Some("https://u:planted@box/simple".to_owned());
        let proxies = BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://u:planted@proxy.test".to_owned())]);
        ContainerEnv { index, proxies, models: true, ..ContainerEnv::default() }
    }

    #[test]
    fn image_from_elsewhere_gets_no_index_in_etc() {
        let paths = |inside: &ContainerEnv| {
            let files = etc_files(&Tars::new(), &user(), inside);
            files.into_iter().map(|one| one.file.path).collect::<Vec<_>>()
        };
        let accounts = ["/etc/passwd", "/etc/group"];
        assert_eq!(paths(&with_login()), [&accounts[..], &["/etc/pip.conf", "/etc/uv/uv.toml"]].concat());
        assert_eq!(paths(&with_login().elsewhere()), accounts);
    }

    #[test]
    fn image_from_elsewhere_gets_no_login_in_any_file_or_variable() {
        let inside = with_login().elsewhere();
        let tars = Tars::new();
        let files = etc_files(&tars, &user(), &inside).into_iter().chain(home_files(&tars, &user()));
        let mut all: String =
            files.map(|one| String::from_utf8_lossy(&one.file.bytes).into_owned()).collect();
        all += &inside.environment(&user()).join("\n");
        assert!(!all.contains("planted"), "{all}");
        assert!(
            all.contains("dev:x:") && all.contains("HTTPS_PROXY=http://proxy.test"),
            "the rest stays: {all}"
        );
        assert!(!all.contains("HF_HOME=") && inside.own_home.is_some(), "no volume of others: {all}");
        assert!(
            with_login().environment(&user()).join("\n").contains("planted"),
            "an image of this machine has it"
        );
    }

    #[test]
    fn image_from_elsewhere_never_shares_etc_with_one_that_has_the_login() {
        assert_ne!(with_login().fingerprint(), with_login().elsewhere().fingerprint());
        assert_eq!(ContainerEnv::default().fingerprint(), with_login().elsewhere().fingerprint());
    }

    #[test]
    fn home_files_contain_the_images_skeleton() {
        let tars: Tars = [("/etc/skel".to_owned(), tar("skel/.bashrc", "alias ll='ls -l'"))].into();
        let files = home_files(&tars, &user());
        assert!(files.iter().all(|one| one.owner == (50000, 50001)));
        assert!(files.iter().any(|one| one.file.path == "/home/dev/.bashrc"));
    }

    #[test]
    fn term_replaces_an_unknown_terminal() {
        assert_eq!(term(Some("tmux-256color")), "tmux-256color");
        assert_eq!(term(Some("xterm-ghostty")), "xterm-256color");
        assert_eq!(term(None), "xterm-256color");
    }
}
