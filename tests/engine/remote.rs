//! The machine's own daemon behind TLS and behind ssh, each on loopback.

use envforge::failure::{Exit, Failure as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use camino::Utf8Path;
use envforge::engine::{Builder as _, Docker, Engine as _, EngineError, EngineSettings, Runner as _};
use envforge::report::NullReporter;
use tokio::net::{TcpListener, UnixStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::{base, build_request, run, utf8};

fn engine_socket() -> String {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock").to_owned()
}

fn sh(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(folder).output().expect("sh starts");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `ca.pem`, and server and client certificates it signed; `other.pem` is a stranger's.
const CERTIFICATES: &str = "
new() { openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout $1.key -out $1.pem -subj /CN=$1 2>/dev/null; }
new ca; new other
sign() {
    openssl req -newkey rsa:2048 -nodes -keyout $1.key -out $1.csr -subj /CN=$1 2>/dev/null
    printf 'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' >$1.ext
    openssl x509 -req -in $1.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile $1.ext -out $1.pem 2>/dev/null
}
sign server; sign client
mkdir good stranger nameless
cp ca.pem good/; cp client.pem good/cert.pem; cp client.key good/key.pem
cp good/* stranger/; cp other.pem stranger/ca.pem
cp ca.pem nameless/
";

/// Serves the daemon with TLS, to clients with a certificate only; gives the port.
async fn tls_proxy(folder: &Path) -> u16 {
    let certificate = |name: &str| CertificateDer::from_pem_file(folder.join(name)).expect("a certificate");
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.pem")).expect("a root");
    let provider = Arc::new(ring::default_provider());
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider)).build();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).expect("a key");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_client_cert_verifier(clients.expect("a verifier"))
        .with_single_cert(vec![certificate("server.pem")], key)
        .expect("a configuration");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut client) = acceptor.accept(stream).await else { return };
                let mut engine = UnixStream::connect(engine_socket()).await.expect("the engine runs");
                let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
            });
        }
    });
    port
}

/// Pings, builds and runs through that connection.
async fn assert_builds(docker: &Docker, name: &str) {
    let image = base(docker, name).await;
    let (request, result) = build_request(&image, "result", "COPY data /data\nRUN copy /data/deep/a /made\n");
    docker.build(request, Arc::new(NullReporter)).await.expect("a build");
    let outcome = docker.run(run(&result, &["cat", "/made"]), Arc::new(NullReporter)).await.expect("a run");
    assert_eq!(outcome.stdout, b"from the context");
}

#[tokio::test]
#[ignore = "needs docker"]
async fn tls_engine_is_used_and_its_certificate_checked() {
    let folder = tempfile::tempdir().unwrap();
    sh(folder.path(), CERTIFICATES);
    let port = tls_proxy(folder.path()).await;
    let settings = |name: &str| EngineSettings {
        docker_host: Some(format!("tcp://127.0.0.1:{port}")),
        tls_verify: true,
        cert_path: Some(utf8(folder.path()).join(name)),
        ..EngineSettings::default()
    };
    let docker = Docker::connect(&settings("good")).await.expect("a greeting through TLS");
    assert!(!docker.info().local);
    assert_builds(&docker, "tls").await;

    for (name, why) in [("stranger", "UnknownIssuer"), ("nameless", "alert")] {
        let error = Docker::connect(&settings(name)).await.unwrap_err();
        let EngineError::Unreachable { cause, .. } = &error else { panic!("{name}: {error:?}") };
        assert!(cause.contains(why), "{name}: {error}");
        assert_eq!(error.exit(), Exit::Outside);
        assert!(error.hints()[0].contains("ca.pem"), "{:?}", error.hints());
    }
    let plain = EngineSettings { tls_verify: false, ..settings("good") };
    assert!(Docker::connect(&plain).await.is_err(), "the port speaks TLS only");
}

/// An ssh server for this user, ended with this value.
struct Sshd(Child);

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

const KEYS: &str = "
ssh-keygen -q -t ed25519 -N '' -f host; ssh-keygen -q -t ed25519 -N '' -f key
cp key.pub authorized; chmod 600 authorized host key
[ \"$(id -u)\" != 0 ] || mkdir -p /run/sshd
";

fn sshd(folder: &Utf8Path) -> (Sshd, u16) {
    sh(folder.as_std_path(), KEYS);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = format!(
        "ListenAddress 127.0.0.1:{port}\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\nUsePAM no\n\
         StrictModes no\nPasswordAuthentication no\nPidFile none\nPermitRootLogin yes\n"
    );
    fs_err::write(folder.join("sshd_config"), config).unwrap();
    let child = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f", folder.join("sshd_config").as_str()])
        .stderr(Stdio::null())
        .spawn()
        .expect("Debian's openssh-server is installed");
    let server = Sshd(child);
    for _ in 0..6000 {
        if std::net::TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return (server, port);
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("sshd does not listen");
}

#[test]
#[ignore = "needs docker"]
fn ssh_engine_is_used_and_its_error_reported() {
    let guard = tempfile::tempdir().unwrap();
    let folder = utf8(guard.path());
    let (_server, port) = sshd(folder);
    // ssh takes its settings from the home of the password file; a wrapper of that name gives it others.
    let wrapper = format!(
        "#!/bin/sh\nexec /usr/bin/ssh -F none -i {folder}/key -o IdentitiesOnly=yes -o UserKnownHostsFile={folder}/known \
         -o StrictHostKeyChecking=accept-new \"$@\"\n"
    );
    fs_err::create_dir(folder.join("bin")).unwrap();
    fs_err::write(folder.join("bin/ssh"), wrapper).unwrap();
    sh(folder.as_std_path(), "chmod 755 bin/ssh");
    let address = format!("ssh://127.0.0.1:{port}{}", engine_socket());
    let connect = |address: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["remote::build_at_the_given_address", "--exact", "--ignored", "--nocapture"])
            .env("PATH", format!("{folder}/bin:{}", std::env::var("PATH").unwrap()))
            .env("ENVFORGE_TEST_ADDRESS", address)
            .output()
            .unwrap()
    };
    let output = connect(&address);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");

    fs_err::remove_file(folder.join("authorized")).unwrap();
    let output = connect(&address);
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("Permission denied"), "{text}");
    assert!(text.contains("Unreachable"), "{text}");
}

/// Run by the test above in its own process with the wrapper as `ssh`.
#[tokio::test]
#[ignore = "inner: run by ssh_engine_is_used_and_its_error_reported"]
async fn build_at_the_given_address() {
    let docker_host = std::env::var("ENVFORGE_TEST_ADDRESS").ok();
    assert!(docker_host.is_some(), "no address was given");
    let settings = EngineSettings { docker_host, ..EngineSettings::default() };
    let docker = Docker::connect(&settings).await.expect("a greeting through ssh");
    assert_builds(&docker, "ssh").await;
}
