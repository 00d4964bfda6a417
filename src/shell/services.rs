//! Services of a container: JupyterLab and an SSH server. Their files are sent on its input and stored in memory, so that
//! labels, variables, logs and images contain no secret.
//!
//! Pure: text from settings.

use std::fmt::Write as _;

use serde_json::json;

use super::user::User;
use crate::model::image::paths::WORKSPACE;

/// The directory of the files in the container: in memory, for the user only.
pub(crate) const FILES: &str = "/tmp/.envforge";
/// The directory of a project's host key: in its home, so that clients always see the same key.
const KEPT: &str = "/home/dev/.envforge";

/// The services of a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Services {
    pub(crate) jupyter: Option<Jupyter>,
    pub(crate) ssh: Option<Ssh>,
}

/// A JupyterLab.
#[derive(Clone)]
pub(crate) struct Jupyter {
    /// Its port, in the container and on the host.
    pub(crate) port: u16,
    /// 256 bits, hex.
    pub(crate) token: String,
    /// Whether requests with other host names are accepted.
    pub(crate) open: bool,
}

impl std::fmt::Debug for Jupyter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Jupyter({})", self.port)
    }
}

impl Jupyter {
    /// Returns the URL for a browser.
    pub(crate) fn url(&self, address: &str) -> String {
        url(address, self.port, &self.token)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Returns the URL for a browser.
pub(crate) fn url(address: &str, port: u16, token: &str) -> String {
    format!("http://{address}:{port}/lab?token={token}")
}

/// An SSH server.
#[derive(Debug, Clone)]
pub(crate) struct Ssh {
    /// Its port, in the container and on the host.
    pub(crate) port: u16,
    /// Lines of public keys.
    pub(crate) keys: String,
    /// The environment of a session, as `NAME=value`.
    pub(crate) env: Vec<String>,
}

/// Returns a new token of 256 bits.
pub(crate) fn token() -> String {
    let bytes: [u8; 32] = rand::random();
    hex(&bytes)
}

impl Services {
    /// Returns whether there is no service.
    pub(crate) fn is_empty(&self) -> bool {
        self.jupyter.is_none() && self.ssh.is_none()
    }

    /// Returns the label's value: `jupyter=8888 ssh=2222`.
    pub(crate) fn words(&self) -> String {
        let jupyter = self.jupyter.as_ref().map(|jupyter| format!("jupyter={}", jupyter.port));
        let ssh = self.ssh.as_ref().map(|ssh| format!("ssh={}", ssh.port));
        jupyter.into_iter().chain(ssh).collect::<Vec<_>>().join(" ")
    }

    /// Returns the container's command: reads the files from its input, starts all services, ends with the first one.
    pub(crate) fn command(&self) -> Vec<String> {
        let mut script = format!("set -eu; mkdir -m 700 {FILES}; tar -x -f - -C {FILES}; cd {WORKSPACE}\n");
        if self.jupyter.is_some() {
            script.push_str(
                "command -v jupyter >/dev/null || { echo 'this image has no JupyterLab' >&2; exit 127; }\n",
            );
        }
        if self.ssh.is_some() {
            script.push_str(
                "[ -x /usr/sbin/sshd ] || { echo 'this image has no SSH server' >&2; exit 127; }\n",
            );
            script.extend([format!(
                "mkdir -p -m 700 {KEPT}; cp {FILES}/authorized_keys {KEPT}/authorized_keys\n\
                 [ -f {KEPT}/host_key ] || ssh-keygen -q -t ed25519 -N '' -C '' -f {KEPT}/host_key\n\
                 /usr/sbin/sshd -D -e -f {FILES}/sshd_config </dev/null &\n"
            )]);
        }
        if self.jupyter.is_some() {
            script.extend([format!(
                "JUPYTER_RUNTIME_DIR={FILES}/runtime JUPYTER_PATH={FILES}/jupyter \
                 jupyter lab --config={FILES}/jupyter.json </dev/null &\n"
            )]);
        }
        script.push_str("wait -n\n");
        ["bash", "-c", &script].map(str::to_owned).to_vec()
    }

    /// Returns the command that prints the public host key.
    pub(crate) fn host_key_command() -> Vec<String> {
        ["cat", &format!("{KEPT}/host_key.pub")].map(str::to_owned).to_vec()
    }

    /// Returns the command that prints the token.
    pub(crate) fn token_command() -> Vec<String> {
        ["cat", &format!("{FILES}/token")].map(str::to_owned).to_vec()
    }

    /// Returns the files as a tar.
    pub(crate) fn archive(&self, user: &User) -> std::io::Result<Vec<u8>> {
        let mut tar = tar::Builder::new(Vec::new());
        let mut add = |path: &str, text: &str| {
            let mut header = tar::Header::new_gnu();
            header.set_mode(0o600);
            header.set_size(text.len() as u64);
            tar.append_data(&mut header, path, text.as_bytes())
        };
        if let Some(jupyter) = &self.jupyter {
            add("token", &jupyter.token)?;
            add("jupyter.json", &jupyter_config(jupyter, user))?;
            add("jupyter.py", include_str!("../../templates/jupyter/jupyter.py"))?;
            add("notebook/environment.ipynb", include_str!("../../templates/jupyter/environment.ipynb"))?;
            add("jupyter/kernels/python3/kernel.json", &kernel())?;
        }
        if let Some(ssh) = &self.ssh {
            add("authorized_keys", &ssh.keys)?;
            add("sshd_config", &sshd_config(ssh, user))?;
            add("session", &session())?;
        }
        tar.into_inner()
    }
}

fn jupyter_config(jupyter: &Jupyter, user: &User) -> String {
    json!({
        "ServerApp": {
            "ip": "0.0.0.0",
            "port": jupyter.port,
            "port_retries": 0,
            "open_browser": false,
            "root_dir": WORKSPACE,
            "allow_root": user.uid == 0,
            // Prevents access by pages of other sites through their own host name.
            "allow_remote_access": jupyter.open,
        },
        "IdentityProvider": { "token": jupyter.token },
    })
    .to_string()
}

/// Returns the kernel: the Python of a terminal, with the user's packages and the framework.
fn kernel() -> String {
    json!({
        "argv": ["/bin/sh", "-c", "exec python -m ipykernel_launcher -f \"$0\"", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "metadata": { "debugger": true },
    })
    .to_string()
}

/// What a login runs: in the project, where a terminal of `shell` begins too. The server itself would begin at home. A shell reads its
/// files for a login only as the first one (SHLVL).
fn session() -> String {
    format!(
        "cd {WORKSPACE}\n\
         unset SHLVL\n\
         case \"${{SSH_ORIGINAL_COMMAND-}}\" in\n\
         '') exec bash -l ;;\n\
         internal-sftp*) exec /usr/lib/openssh/sftp-server -d {WORKSPACE} ;;\n\
         *) exec bash -c \"$SSH_ORIGINAL_COMMAND\" ;;\n\
         esac\n"
    )
}

fn sshd_config(ssh: &Ssh, user: &User) -> String {
    let plain = |variable: &&String| !variable.contains('\n');
    let env: Vec<_> = ssh.env.iter().filter(plain).map(|variable| quoted(variable)).collect();
    // As root it would write of each terminal, on that terminal, that the image keeps no record of logins.
    let root = if user.uid == 0 {
        "PermitRootLogin prohibit-password\nPrintLastLog no\nLogLevel ERROR"
    } else {
        "PermitRootLogin no"
    };
    format!(
        "Port {port}\n\
         ListenAddress 0.0.0.0\n\
         HostKey {KEPT}/host_key\n\
         AuthorizedKeysFile {KEPT}/authorized_keys\n\
         PidFile none\n\
         UsePAM no\n\
         AuthenticationMethods publickey\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         {root}\n\
         AllowUsers {name}\n\
         X11Forwarding no\n\
         PrintMotd no\n\
         Subsystem sftp internal-sftp\n\
         ForceCommand /bin/sh {FILES}/session\n\
         SetEnv {env}\n",
        port = ssh.port,
        name = user.name(),
        env = env.join(" "),
    )
}

fn quoted(variable: &str) -> String {
    format!("\"{}\"", variable.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Returns the client's configuration for one container. The host key belongs to the project, independent of the port.
pub(crate) fn client_config(
    name: &str,
    port: u16,
    user: &User,
    known_hosts: &str,
    identity: Option<&str>,
) -> String {
    let identity = identity.map(|file| format!("  IdentityFile \"{file}\"\n")).unwrap_or_default();
    format!(
        "Host envforge-{name}\n  HostName 127.0.0.1\n  Port {port}\n  User {user}\n  HostKeyAlias envforge-{name}\n  \
         UserKnownHostsFile \"{known_hosts}\"\n  StrictHostKeyChecking yes\n  ForwardAgent no\n  \
         ForwardX11 no\n{identity}",
        user = user.name()
    )
}

/// Returns VS Code's address of a running container.
pub(crate) fn vscode_uri(container: &str) -> String {
    let place = json!({ "containerName": format!("/{container}") }).to_string();
    format!("vscode-remote://attached-container+{}{WORKSPACE}", hex(place.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user() -> User {
        User { uid: 50000, gid: 50000, namespace: None }
    }

    fn services() -> Services {
        Services {
            jupyter: Some(Jupyter { port: 8889, token: token(), open: false }),
            ssh: Some(Ssh {
                port: 2222,
                keys: "ssh-ed25519 AAAA".to_owned(),
                env: vec!["A=b \"c\"".to_owned()],
            }),
        }
    }

    #[test]
    fn token_has_256_bits_and_is_not_in_the_command() {
        let services = services();
        let token = services.jupyter.as_ref().expect("set").token.clone();
        assert_eq!(token.len(), 64);
        assert_ne!(token, super::token());
        assert!(!services.command().join(" ").contains(&token));
        assert!(!services.words().contains(&token) && !format!("{services:?}").contains(&token));
    }

    #[test]
    fn jupyter_gets_its_notebook_next_to_its_configuration() {
        let names = |services: &Services| -> Vec<String> {
            let archive = services.archive(&user()).expect("in memory");
            let mut archive = tar::Archive::new(archive.as_slice());
            let entries = archive.entries().expect("a tar");
            entries
                .map(|entry| entry.expect("an entry").path().expect("text").display().to_string())
                .collect()
        };
        let own = ["jupyter.json", "jupyter.py", "notebook/environment.ipynb"].map(str::to_owned);
        let all = names(&services());
        assert!(own.iter().all(|name| all.contains(name)), "{all:?}");
        let without = names(&Services { jupyter: None, ..services() });
        assert!(own.iter().all(|name| !without.contains(name)), "{without:?}");
    }

    #[test]
    fn sshd_config_accepts_only_keys_and_root_only_where_it_is_the_caller() {
        let config = sshd_config(services().ssh.as_ref().expect("set"), &user());
        for line in ["PasswordAuthentication no", "PermitRootLogin no", "AllowUsers dev", "UsePAM no"] {
            assert!(config.lines().any(|found| found == line), "{line} in\n{config}");
        }
        assert!(config.contains(r#"SetEnv "A=b \"c\"""#), "{config}");
        let root = User { uid: 0, gid: 0, namespace: None };
        let config = sshd_config(services().ssh.as_ref().expect("set"), &root);
        for line in ["PasswordAuthentication no", "PermitRootLogin prohibit-password", "AllowUsers root"] {
            assert!(config.lines().any(|found| found == line), "{line} in\n{config}");
        }
    }

    #[test]
    fn vscode_uri_contains_container_and_directory() {
        let uri = vscode_uri("envforge-a");
        let (hex, path) =
            uri.split_once('+').expect("+").1.split_at(2 * "{\"containerName\":\"/envforge-a\"}".len());
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex"))
            .collect();
        assert_eq!((bytes.as_slice(), path), (&b"{\"containerName\":\"/envforge-a\"}"[..], "/workspace"));
    }
}
