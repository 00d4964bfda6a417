//! A server of the hostile set: answers as `answers.toml` describes, counts what it sends and keeps what it was sent.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde::Deserialize;

/// More than any document: an endless body ends here, if nobody stops reading before.
const ENDLESS: u64 = 1 << 30;

/// An answer to requests whose path contains a text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) path: String,
    #[serde(default = "ok")]
    pub(super) status: u16,
    /// Header lines.
    #[serde(default)]
    pub(super) head: Vec<String>,
    #[serde(default)]
    pub(super) body: String,
    /// The length in the head, if not that of the body.
    pub(super) length: Option<u64>,
    /// Whether the body is repeated without end, in a response without length.
    #[serde(default)]
    pub(super) endless: bool,
    /// Bytes instead of the body, for files that a test makes.
    #[serde(skip)]
    pub(super) bytes: Option<Vec<u8>>,
}

impl Answer {
    /// These bytes, for requests of that path.
    pub(super) fn plain(path: &str, bytes: Vec<u8>) -> Self {
        let (path, bytes) = (path.to_owned(), Some(bytes));
        Self { path, status: 200, head: Vec::new(), body: String::new(), length: None, endless: false, bytes }
    }
}

fn ok() -> u16 {
    200
}

/// What a server was sent and has sent.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    /// Heads of requests.
    pub(super) heads: Vec<String>,
    /// Bytes of bodies.
    pub(super) sent: u64,
}

/// A running server; it ends with the test program.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    pub(super) traffic: Arc<Mutex<Traffic>>,
}

impl Server {
    /// A listener, whose address the answers may contain.
    pub(super) fn bind() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        (listener, address)
    }

    /// Answers by the first answer that fits, else with 404.
    pub(super) fn start((listener, address): (TcpListener, SocketAddr), answers: Vec<Answer>) -> Self {
        let traffic = Arc::<Mutex<Traffic>>::default();
        let seen = Arc::clone(&traffic);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answers, seen) = (answers.clone(), Arc::clone(&seen));
                std::thread::spawn(move || drop(serve(&stream, &answers, &seen)));
            }
        });
        Self { address, traffic }
    }
}

fn serve(mut stream: &TcpStream, answers: &[Answer], traffic: &Mutex<Traffic>) -> std::io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::new(stream);
    while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head)? > 0 {}
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    traffic.lock().expect("no panic").heads.push(head);
    let Some(answer) = answers.iter().find(|answer| path.contains(&answer.path)) else {
        return stream.write_all(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let body = answer.bytes.as_deref().unwrap_or(answer.body.as_bytes());
    write!(stream, "HTTP/1.1 {} X\r\nConnection: close\r\n", answer.status)?;
    for line in &answer.head {
        write!(stream, "{line}\r\n")?;
    }
    if !answer.endless {
        write!(stream, "Content-Length: {}\r\n", answer.length.unwrap_or(body.len() as u64))?;
    }
    stream.write_all(b"\r\n")?;
    let (part, most) =
        if answer.endless { (body.repeat((1 << 16) / body.len()), ENDLESS) } else { (body.to_vec(), 1) };
    let mut sent = 0;
    while sent < most {
        stream.write_all(&part)?;
        sent += (part.len() as u64).max(1);
        traffic.lock().expect("no panic").sent += part.len() as u64;
    }
    stream.flush()?;
    stream.shutdown(std::net::Shutdown::Write)
}
