//! A tiny daemon on a unix socket that greets like Docker 20.10 and answers one path with bytes of the test's choice.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};

use envforge::engine::EngineSettings;

use crate::http::{json, request};

const VERSION: &str =
    r#"{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12","Os":"linux","Arch":"amd64"}"#;
const INFO: &str =
    r#"{"Architecture":"x86_64","DockerRootDir":"/var/lib/docker","Runtimes":{"runc":{"path":"runc"}}}"#;

/// Lives as long as its folder; its thread ends with the test program.
pub(crate) struct FakeDaemon {
    folder: tempfile::TempDir,
}

impl FakeDaemon {
    /// Answers every request whose path contains `path` (or one of several, apart by `|`) with `answer`, then closes the connection.
    pub(crate) fn start(path: &'static str, answer: impl Into<String>) -> Self {
        Self::watched(path, answer, |_| {})
    }

    /// As [`FakeDaemon::start`]; `seen` gets each request, whole, before it is answered.
    pub(crate) fn watched(
        path: &'static str,
        answer: impl Into<String>,
        seen: impl Fn(&str) + Clone + Send + 'static,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("docker.sock")).unwrap();
        let answer = answer.into();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (answer, seen) = (answer.clone(), seen.clone());
                std::thread::spawn(move || serve(stream.unwrap(), (path, &answer), seen));
            }
        });
        Self { folder }
    }

    /// Settings that lead here.
    pub(crate) fn settings(&self) -> EngineSettings {
        let socket = self.folder.path().join("docker.sock");
        EngineSettings {
            docker_host: Some(format!("unix://{}", socket.display())),
            ..EngineSettings::default()
        }
    }
}

fn serve(mut stream: UnixStream, (path, answer): (&str, &str), seen: impl Fn(&str)) {
    let Some((asked, _)) = request(&mut stream) else { return };
    seen(&asked);
    let answer = if path.split('|').any(|path| asked.contains(path)) {
        answer.to_owned()
    } else if asked.ends_with("/version") {
        json(200, VERSION)
    } else if asked.ends_with("/info") {
        json(200, INFO)
    } else if asked.contains("/images/json") {
        json(200, "[]")
    } else {
        json(404, r#"{"message":"page not found"}"#)
    };
    // The other side may be gone already; that is what some tests are about.
    let _ = stream.write_all(answer.as_bytes());
}

/// A stream of messages; `whole` says whether it ends as a stream must, or is cut.
pub(crate) fn stream(messages: &[&str], whole: bool) -> String {
    let mut answer =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
    for message in messages {
        answer.extend([&format!("{:x}", message.len() + 2), "\r\n", message, "\r\n\r\n"]);
    }
    if whole {
        answer.push_str("0\r\n\r\n");
    }
    answer
}
