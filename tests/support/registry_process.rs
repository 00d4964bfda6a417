//! A real image registry on this machine: Debian's `docker-registry`, with a password or without. Needs no engine.

use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The one user. The password holds what plain and URL-safe base64 write differently.
pub(crate) const USER: &str = "ann";
pub(crate) const PASSWORD: &str = "planted~pass?word>7f3a";
/// The password as htpasswd keeps it: bcrypt by Python's `crypt`, with the fewest rounds.
const HTPASSWD: &str = "ann:$2b$04$frCw89UUO9mBOqBa0fwpS.Az3g9WBSf.m9D3MtTYvQjeZ/oCxAgx6\n";

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const PASSWORD_WANTED: &str = "auth:\n  htpasswd:\n    realm: test\n    path: htpasswd\n";

/// A running registry; it and all it holds end with this value.
pub(crate) struct Registry {
    process: Child,
    address: IpAddr,
    pub(crate) port: u16,
    pub(crate) folder: tempfile::TempDir,
}

impl Registry {
    /// One that everybody may read and write.
    pub(crate) fn open() -> Self {
        Self::start(LOOPBACK, "")
    }

    /// One that wants the password for everything.
    pub(crate) fn with_password() -> Self {
        Self::start(LOOPBACK, PASSWORD_WANTED)
    }

    /// One on a free port of that address, with more lines of configuration.
    pub(crate) fn start(address: IpAddr, more: &str) -> Self {
        let free = TcpListener::bind((address, 0)).expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        Self::at((address, port), more)
    }

    /// One on that address and port, with more lines of configuration.
    pub(crate) fn at((address, port): (IpAddr, u16), more: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("envforge-registry-").tempdir().expect("a folder");
        std::fs::write(folder.path().join("htpasswd"), HTPASSWD).expect("a file of ours");
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
        let end = Instant::now() + Duration::from_mins(5);
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

    /// Where the document of that digest lies on the registry's disk.
    pub(crate) fn blob_path(&self, digest: &str) -> PathBuf {
        let hex = digest.strip_prefix("sha256:").expect("a digest");
        let path = format!("data/docker/registry/v2/blobs/sha256/{}/{hex}/data", &hex[..2]);
        self.folder.path().join(path)
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
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
    let folder = Path::new(option_env!("CARGO_TARGET_TMPDIR").unwrap_or("/tmp")).join("docker-registry");
    let program = folder.join("usr/bin/docker-registry");
    std::fs::create_dir_all(&folder).expect("the target folder is writable");
    // Tests run at the same time, in several processes.
    let one_at_a_time = std::fs::File::create(folder.join("lock")).expect("the folder is ours");
    one_at_a_time.lock().expect("the file system has locks");
    if !program.is_file() {
        let script = "set -e; apt-get download docker-registry >&2; dpkg -x docker-registry_*.deb .; rm docker-registry_*.deb";
        let output =
            Command::new("bash").args(["-c", script]).current_dir(&folder).output().expect("bash starts");
        assert!(program.is_file(), "docker-registry: {}", String::from_utf8_lossy(&output.stderr));
    }
    program
}
