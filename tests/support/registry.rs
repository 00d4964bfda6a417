//! A real image registry with an engine that uses it, and a way to it that is cut in the middle of a layer.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

use base64::Engine as _;

use process::PASSWORD_WANTED;
pub(crate) use process::{PASSWORD, Registry, USER};

#[path = "registry_process.rs"]
mod process;

impl Registry {
    /// One that speaks TLS with a certificate that an authority of its own signed, and wants the password. It listens
    /// on the bridge's address: on loopback an engine asks for no certificate.
    pub(crate) fn with_private_authority() -> Self {
        let tls = "  tls:\n    certificate: server.crt\n    key: server.key\n";
        Self::start(crate::engine::bridge_address(), &format!("{tls}{PASSWORD_WANTED}"))
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

    /// True if no upload is left half-done. The registry itself keeps the hash states of those that were given up.
    pub(crate) fn has_no_uploads(&self) -> bool {
        let files = crate::scene::files_below(&self.folder.path().join("data"));
        !files.iter().any(|path| path.ends_with("data") && path.to_string_lossy().contains("/_uploads/"))
    }
}

/// The engine's trust in a registry.
pub(crate) struct Trust(PathBuf);

impl Drop for Trust {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
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
