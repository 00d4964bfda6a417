//! A real image registry on this machine: Debian's `docker-registry`, with a password or without, and a way to it that
//! is cut in the middle of a layer.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;

/// The one user. The password holds what plain and URL-safe base64 write differently.
pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "planted~pass?word>7f3a";
/// The password as htpasswd keeps it: bcrypt by Python's `crypt`, with the fewest rounds.
const HTPASSWD: &str = "ann:$2b$04$frCw89UUO9mBOqBa0fwpS.Az3g9WBSf.m9D3MtTYvQjeZ/oCxAgx6\n";

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const PASSWORD_WANTED: &str = "auth:\n  htpasswd:\n    realm: test\n    path: htpasswd\n";

/// A running registry; it and all it holds end with this value.
pub(crate) struct Registry {
    process: Child,
    address: IpAddr,
    port: u16,
    folder: tempfile::TempDir,
}

impl Registry {
    /// One that everybody may read and write.
    pub(crate) fn open() -> Self {
        Self::start(LOOPBACK, "")
    }

    /// One that speaks TLS with a certificate that an authority of its own signed, and wants the password. It listens
    /// on the bridge's address: on loopback an engine asks for no certificate.
    pub(crate) fn with_private_authority() -> Self {
        let tls = "  tls:\n    certificate: server.crt\n    key: server.key\n";
        Self::start(crate::engine::bridge_address(), &format!("{tls}{PASSWORD_WANTED}"))
    }

    /// One that wants the password for everything.
    pub(crate) fn with_password() -> Self {
        Self::start(LOOPBACK, PASSWORD_WANTED)
    }

    fn start(address: IpAddr, more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("envforge-registry-").tempdir().expect("a folder");
        std::fs::write(folder.path().join("htpasswd"), HTPASSWD).expect("a file of ours");
        let free = TcpListener::bind((address, 0)).expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        if more.contains("tls:") {
            sign_a_certificate(folder.path(), address);
        }
        let config = format!(
            "version: 0.1\nlog:\n  level: error\n  accesslog:\n    disabled: true\nstorage:\n  filesystem:\n    \
             rootdirectory: data\nhttp:\n  addr: {address}:{port}\n{more}"
        );
        std::fs::write(folder.path().join("config.yml"), config).expect("a file of ours");
        let process = Command::new(program())
            .args(["serve", "config.yml"])
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("docker-registry starts");
        let registry = Self { process, address, port, folder };
        let end = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect((address, port)).is_err() {
            assert!(Instant::now() < end, "docker-registry does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
        registry
    }

    /// `ADDRESS:PORT`.
    pub(crate) fn host(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    /// Has the engine of this machine, and all who look where it looks, trust the registry's authority until the value
    /// goes.
    pub(crate) fn trust(&self) -> Trust {
        let folder = Path::new("/etc/docker/certs.d").join(self.host());
        std::fs::create_dir_all(&folder).expect("the engine's folder is writable");
        std::fs::copy(self.authority(), folder.join("ca.crt")).expect("a file of ours");
        Trust(folder)
    }

    /// The certificate of its own authority.
    pub(crate) fn authority(&self) -> PathBuf {
        self.folder.path().join("ca.crt")
    }

    /// The text of a Docker configuration that holds its login.
    pub(crate) fn docker_config(&self) -> String {
        let auth = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{PASSWORD}"));
        format!(r#"{{"auths":{{"{}":{{"auth":"{auth}"}}}}}}"#, self.host())
    }

    /// Puts an image of the engine into it under that name; the engine keeps nothing of it.
    pub(crate) fn publish(&self, image: &str, name: &str) {
        let folder = self.folder.path().join("docker-config");
        std::fs::create_dir_all(&folder).expect("a folder of ours");
        std::fs::write(folder.join("config.json"), self.docker_config()).expect("a file of ours");
        let tag = format!("{}/{name}", self.host());
        crate::engine::docker(&["tag", image, &tag]);
        crate::engine::docker(&["--config", &folder.to_string_lossy(), "push", "-q", &tag]);
        crate::engine::docker(&["rmi", &tag]);
    }

    /// Where the document of that digest lies on the registry's disk.
    pub(crate) fn blob_path(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let path = format!("data/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
        self.folder.path().join(path)
    }

    /// True if no upload is left half-done. The registry itself keeps the hash states of those that were given up.
    pub(crate) fn has_no_uploads(&self) -> bool {
        let files = crate::scene::files_below(&self.folder.path().join("data"));
        !files.iter().any(|path| path.ends_with("data") && path.to_string_lossy().contains("/_uploads/"))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The engine's trust in a registry.
pub(crate) struct Trust(PathBuf);

impl Drop for Trust {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Makes an authority (`ca.crt`) and a certificate for that address signed by it (`server.crt`, `server.key`).
fn sign_a_certificate(folder: &Path, address: IpAddr) {
    let script = format!(
        "set -e
        new() {{ openssl ecparam -genkey -name prime256v1 -noout -out $1.key; }}
        new ca; new server
        openssl req -x509 -new -key ca.key -days 2 -subj /CN=envforge-test-authority -out ca.crt
        openssl req -new -key server.key -subj /CN=registry -out server.csr
        printf 'subjectAltName=IP:{address}\n' > names
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.crt"
    );
    let output =
        Command::new("bash").args(["-c", &script]).current_dir(folder).output().expect("bash starts");
    assert!(output.status.success(), "openssl: {}", String::from_utf8_lossy(&output.stderr));
}

/// The registry's program: the machine's own, or unpacked from the distribution's package, once.
fn program() -> PathBuf {
    let installed = Path::new("/usr/bin/docker-registry");
    if installed.is_file() {
        return installed.to_owned();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("docker-registry");
    let program = folder.join("usr/bin/docker-registry");
    if !program.is_file() {
        std::fs::create_dir_all(&folder).expect("the target folder is writable");
        let script = "set -e; apt-get download docker-registry >&2; dpkg -x docker-registry_*.deb .; rm docker-registry_*.deb";
        let output =
            Command::new("bash").args(["-c", script]).current_dir(&folder).output().expect("bash starts");
        assert!(program.is_file(), "docker-registry: {}", String::from_utf8_lossy(&output.stderr));
    }
    program
}

/// A way to a registry on which every layer is cut after some bytes; documents pass whole.
pub(crate) struct CuttingProxy {
    port: u16,
}

impl CuttingProxy {
    /// Begins to listen; its threads end with the test program.
    pub(crate) fn before(registry: &Registry, bytes: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let target = registry.port;
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                std::thread::spawn(move || cut(client, target, bytes));
            }
        });
        Self { port }
    }

    /// `127.0.0.1:PORT`.
    pub(crate) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// Carries both ways; the answers of one connection together are cut after so many bytes.
fn cut(mut client: TcpStream, target: u16, bytes: usize) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let (Ok(mut from_client), Ok(mut to_server)) = (client.try_clone(), server.try_clone()) else { return };
    std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server));
    let mut left = bytes;
    let mut buffer = [0_u8; 16 * 1024];
    while left > 0 {
        let Ok(count @ 1..) = server.read(&mut buffer) else { break };
        let count = count.min(left);
        if client.write_all(&buffer[..count]).is_err() {
            break;
        }
        left -= count;
    }
    drop(client.shutdown(std::net::Shutdown::Both));
    drop(server.shutdown(std::net::Shutdown::Both));
}
