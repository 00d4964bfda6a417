//! A registry on this machine that takes uploads, and does what a test wants it to do wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::model::image_digest::Digest;

/// What it does wrong.
#[derive(Clone)]
pub(crate) enum Wrong {
    /// It answers this, headers and body included, and does nothing.
    Answer(String),
    /// It keeps so many bytes of the body and closes the connection.
    Cut(usize),
    /// It does what was asked, and closes the connection without an answer.
    NoAnswer,
    /// It forgets all uploads, and then does what was asked.
    Forget,
}

/// What it holds and has seen.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    pub(crate) manifests: BTreeMap<String, Vec<u8>>,
    /// Method, path and query, and whether a login came along.
    pub(crate) requests: Vec<(String, String, Option<String>)>,
    pub(crate) uploads: BTreeMap<String, Vec<u8>>,
    begun: usize,
    faults: Vec<(String, usize, Wrong)>,
    /// The token that counts now; `None`: everybody may do everything.
    pub(crate) token: Option<String>,
}

/// A running registry; it ends with the test's runtime.
pub(crate) struct TestRegistry {
    pub(crate) host: String,
    state: Arc<Mutex<State>>,
}

impl TestRegistry {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let state = Arc::<Mutex<State>>::default();
        let (shared, name) = (Arc::clone(&state), host.clone());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (state, host) = (Arc::clone(&shared), name.clone());
                tokio::spawn(async move { serve(stream, &state, &host).await });
            }
        });
        Self { host, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics with it")
    }

    /// The next `times` requests of that method, or of that method and address so far as it is given, do this instead.
    pub(crate) fn wrong(&self, method: &str, times: usize, wrong: Wrong) {
        self.state().faults.push((method.to_owned(), times, wrong));
    }

    /// The same with a status alone.
    pub(crate) fn answers(&self, method: &str, times: usize, status: &str) {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
        self.wrong(method, times, Wrong::Answer(answer));
    }

    /// How many requests of that method came.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.state().requests.iter().filter(|(seen, _, _)| seen == method).count()
    }
}

async fn serve(stream: TcpStream, state: &Mutex<State>, host: &str) {
    let mut stream = BufReader::new(stream);
    while let Some(head) = head(&mut stream).await {
        let (answer, close) = answer(&mut stream, &head, state, host).await;
        let written = stream.get_mut().write_all(&answer).await;
        if close || written.is_err() {
            return;
        }
    }
}

struct Head {
    method: String,
    target: String,
    headers: BTreeMap<String, String>,
}

async fn head(stream: &mut BufReader<TcpStream>) -> Option<Head> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok().filter(|count| *count > 0)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, target) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    Some(Head { method, target, headers })
}

/// The body, or so many bytes of it.
async fn body(stream: &mut BufReader<TcpStream>, head: &Head, most: usize) -> Vec<u8> {
    let mut body = Vec::new();
    if head.headers.get("transfer-encoding").is_some_and(|value| value == "chunked") {
        while body.len() < most {
            let mut line = String::new();
            if stream.read_line(&mut line).await.is_err() {
                break;
            }
            let Ok(size) = usize::from_str_radix(line.trim(), 16) else { break };
            let mut chunk = vec![0; size + 2];
            if stream.read_exact(&mut chunk).await.is_err() || size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(size) = head.headers.get("content-length").and_then(|text| text.parse::<usize>().ok())
    {
        body = vec![0; size.min(most)];
        if stream.read_exact(&mut body).await.is_err() {
            body.clear();
        }
    }
    body.truncate(most);
    body
}

/// The answer to a request, and whether the connection ends.
async fn answer(
    stream: &mut BufReader<TcpStream>,
    head: &Head,
    state: &Mutex<State>,
    host: &str,
) -> (Vec<u8>, bool) {
    let login = head.headers.get("authorization").cloned();
    let wrong = {
        let mut state = state.lock().expect("no test panics with it");
        state.requests.push((head.method.clone(), head.target.clone(), login.clone()));
        let request = format!("{} {}", head.method, head.target);
        let fault = state.faults.iter_mut().find(|(of, times, _)| request.starts_with(of) && *times > 0);
        fault.map(|(_, times, wrong)| {
            *times -= 1;
            wrong.clone()
        })
    };
    match wrong {
        Some(Wrong::Answer(answer)) => {
            body(stream, head, usize::MAX).await;
            return (answer.into_bytes(), false);
        }
        Some(Wrong::Cut(most)) => {
            let body = body(stream, head, most).await;
            respond(head, login.as_deref(), &body, &mut state.lock().expect("no test panics with it"), host);
            return (Vec::new(), true);
        }
        _ => {}
    }
    let body = body(stream, head, usize::MAX).await;
    let mut state = state.lock().expect("no test panics with it");
    if matches!(wrong, Some(Wrong::Forget)) {
        state.uploads.clear();
    }
    let answer = respond(head, login.as_deref(), &body, &mut state, host);
    if matches!(wrong, Some(Wrong::NoAnswer)) { (Vec::new(), true) } else { (answer, false) }
}

fn respond(head: &Head, login: Option<&str>, body: &[u8], state: &mut State, host: &str) -> Vec<u8> {
    let empty = |status: &str, headers: &str| {
        format!("HTTP/1.1 {status}\r\n{headers}content-length: 0\r\n\r\n").into_bytes()
    };
    let document = |bytes: &[u8]| {
        [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len()).as_bytes(), bytes].concat()
    };
    let (path, query) = head.target.split_once('?').unwrap_or((&head.target, ""));
    let field = |name: &str| {
        let found = query.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
        found.map(|value| value.replace("%3A", ":").replace("%2F", "/"))
    };
    if path == "/token" {
        let token = format!("token-{}", state.requests.len());
        state.token = Some(token.clone());
        let text = format!(r#"{{"token":"{token}"}}"#);
        return document(text.as_bytes());
    }
    if let Some(token) = &state.token
        && login != Some(format!("Bearer {token}").as_str())
    {
        let challenge = format!("www-authenticate: Bearer realm=\"http://{host}/token\",service=\"s\"\r\n");
        return empty("401 Unauthorized", &challenge);
    }
    let name = path.rsplit('/').next().unwrap_or_default().to_owned();
    let located = |name: &str, size: usize| {
        format!(
            "location: /v2/team/torch/blobs/uploads/{name}?at={size}\r\nrange: 0-{}\r\n",
            size.saturating_sub(1)
        )
    };
    match (head.method.as_str(), path.contains("/uploads/"), path.contains("/manifests/")) {
        ("HEAD", false, false) if state.blobs.contains_key(&name) => empty("200 OK", ""),
        ("GET", false, _) if state.blobs.contains_key(&name) => document(&state.blobs[&name]),
        ("GET", false, true) if state.manifests.contains_key(&name) => document(&state.manifests[&name]),
        ("POST", true, false) => {
            state.begun += 1;
            let upload = format!("upload-{}", state.begun);
            state.uploads.insert(upload.clone(), Vec::new());
            empty("202 Accepted", &located(&upload, 0))
        }
        ("PUT", false, true) => {
            state.manifests.insert(name, body.to_vec());
            empty("201 Created", &format!("docker-content-digest: {}\r\n", Digest::of(body)))
        }
        (_, true, false) if !state.uploads.contains_key(&name) => empty("404 Not Found", ""),
        ("PATCH", true, false) => {
            let upload = state.uploads.get_mut(&name).expect("it is there");
            upload.extend_from_slice(body);
            let size = upload.len();
            empty("202 Accepted", &located(&name, size))
        }
        ("GET", true, false) => {
            let size = state.uploads[&name].len();
            empty("204 No Content", &located(&name, size))
        }
        ("PUT", true, false) => {
            let blob = state.uploads.remove(&name).expect("it is there");
            let digest = Digest::of(&blob).to_string();
            if field("digest").as_ref() != Some(&digest) {
                return empty("400 Bad Request", "");
            }
            state.blobs.insert(digest.clone(), blob);
            empty("201 Created", &format!("docker-content-digest: {digest}\r\n"))
        }
        ("DELETE", true, false) => {
            state.uploads.remove(&name);
            empty("204 No Content", "")
        }
        _ => empty("404 Not Found", ""),
    }
}
