//! A package index of a test's own: serves the wheels it is given, fails where it is told to, remembers who asked for what.
//!
//! One thread per connection, HTTP/1.1 without keep-alive, gone when the value is dropped.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::wheels::{Wheel, sha256};

/// The media type of a page in its JSON form.
const JSON: &str = "application/vnd.pypi.simple.v1+json";

/// What goes wrong with requests whose path contains a given text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection ends in the middle of the body, the first time only.
    CutOnce,
    /// The connection ends in the middle of the body, each time.
    CutAlways,
    /// An HTTP status without a useful body.
    Status(u16),
    /// No answer until the index is dropped.
    Stall,
    /// An answer in pieces, with pauses of that many milliseconds before each.
    Slow(u64),
}

/// A request as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    /// `GET`.
    pub(crate) method: String,
    /// The path with its query.
    pub(crate) path: String,
    /// The credentials it carried, as sent.
    pub(crate) authorization: Option<String>,
    /// Whether it wants pages in their JSON form alone.
    pub(crate) json: bool,
    /// Whether it takes pages in their JSON form.
    takes_json: bool,
}

#[derive(Default)]
struct State {
    wheels: BTreeMap<String, Vec<Wheel>>,
    tampered: BTreeMap<String, Vec<u8>>,
    yanked: BTreeSet<String>,
    uploaded: BTreeMap<String, String>,
    files: BTreeMap<String, Vec<u8>>,
    faults: Vec<(String, Fault)>,
    seen: Vec<Seen>,
    closing: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no request panics while it holds the state")
    }
}

/// A running index.
pub(crate) struct Index {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl Index {
    /// An index on this machine's loopback.
    pub(crate) fn local(wheels: Vec<Wheel>) -> Self {
        Self::on(IpAddr::V4(Ipv4Addr::LOCALHOST), wheels)
    }

    /// An index at that address of this machine, at a free port.
    pub(crate) fn on(address: IpAddr, wheels: Vec<Wheel>) -> Self {
        let listener = TcpListener::bind((address, 0)).expect("a free port at that address");
        let index = Self { address: listener.local_addr().expect("a bound socket"), shared: Arc::default() };
        index.publish(wheels);
        let shared = Arc::clone(&index.shared);
        std::thread::spawn(move || accept(&listener, &shared));
        index
    }

    /// Adds wheels, or puts them in the place of those of the same file name.
    pub(crate) fn publish(&self, wheels: Vec<Wheel>) {
        let mut state = self.shared.lock();
        for wheel in wheels {
            let files = state.wheels.entry(wheel.project.clone()).or_default();
            files.retain(|known| known.file != wheel.file);
            files.push(wheel);
        }
    }

    /// Serves other bytes for files of the same names; the pages go on announcing the hashes of the true ones.
    pub(crate) fn tamper(&self, wheels: Vec<Wheel>) {
        self.shared.lock().tampered.extend(wheels.into_iter().map(|wheel| (wheel.file, wheel.bytes)));
    }

    /// Withdraws a file as publishers do: it is there, and its page says that it should not be chosen.
    pub(crate) fn yank(&self, file: &str) {
        self.shared.lock().yanked.insert(file.to_owned());
    }

    /// Lists an upload time for every file of now that has none, in the JSON form of the pages.
    pub(crate) fn date(&self, moment: &str) {
        let mut state = self.shared.lock();
        let files: Vec<_> = state.wheels.values().flatten().map(|wheel| wheel.file.clone()).collect();
        for file in files {
            state.uploaded.entry(file).or_insert_with(|| moment.to_owned());
        }
    }

    /// Deletes a file.
    pub(crate) fn delete(&self, file: &str) {
        for wheels in self.shared.lock().wheels.values_mut() {
            wheels.retain(|wheel| wheel.file != file);
        }
    }

    /// Serves bytes at a path, whatever they are; with `#json` at its end, to requests for the JSON form of the page.
    pub(crate) fn serve(&self, path: &str, bytes: Vec<u8>) {
        self.shared.lock().files.insert(path.to_owned(), bytes);
    }

    /// Serves one page with links to all wheels of now at a path, as release pages are.
    pub(crate) fn serve_page(&self, path: &str) {
        let mut state = self.shared.lock();
        let wheels: Vec<_> = state.wheels.values().flatten().cloned().collect();
        let text = page(&wheels, &state.yanked);
        state.files.insert(path.to_owned(), text.into_bytes());
    }

    /// Makes requests fail whose path contains that text.
    pub(crate) fn fail(&self, path: &str, fault: Fault) {
        self.shared.lock().faults.push((path.to_owned(), fault));
    }

    /// Takes all faults back.
    pub(crate) fn heal(&self) {
        let mut state = self.shared.lock();
        state.faults.clear();
        state.tampered.clear();
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Its address without path: `http://127.0.0.1:4711`.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The same with credentials in it.
    pub(crate) fn url_with(&self, user: &str, password: &str) -> String {
        format!("http://{user}:{password}@{}", self.address)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.shared.lock().seen.clone()
    }

    /// Whole wheels asked for since the last call of this function.
    pub(crate) fn take_downloads(&self) -> Vec<String> {
        let seen = std::mem::take(&mut self.shared.lock().seen);
        seen.into_iter()
            .filter(|request| request.method == "GET" && is_wheel(&request.path))
            .map(|request| request.path)
            .collect()
    }

    /// Waits until somebody asks for a path that contains that text.
    pub(crate) fn wait_for(&self, path: &str, limit: Duration) -> bool {
        let asked = |state: &mut State| !state.seen.iter().any(|request| concerns(&request.path, path));
        let waited = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), limit, asked)
            .expect("no request panics while it holds the state");
        !waited.1.timed_out()
    }
}

impl Drop for Index {
    fn drop(&mut self) {
        self.shared.lock().closing = true;
        self.shared.changed.notify_all();
        // Wakes the accepting thread, which then ends and closes the socket.
        drop(TcpStream::connect(self.address));
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().closing {
            return;
        }
        if let Ok(stream) = stream {
            let shared = Arc::clone(shared);
            // A client that goes away in the middle is the client's business.
            std::thread::spawn(move || drop(answer(&stream, &shared)));
        }
    }
}

fn answer(mut stream: &TcpStream, shared: &Shared) -> std::io::Result<()> {
    let Some(request) = read_request(stream)? else { return Ok(()) };
    let fault = {
        let mut state = shared.lock();
        state.seen.push(request.clone());
        shared.changed.notify_all();
        let fault = state.faults.iter().position(|(text, _)| concerns(&request.path, text));
        match fault.map(|at| (at, state.faults[at].1)) {
            Some((at, Fault::CutOnce)) => {
                state.faults.remove(at);
                Some(Fault::CutAlways)
            }
            other => other.map(|(_, fault)| fault),
        }
    };
    let (status, kind, body) = match fault {
        Some(Fault::Status(status)) => (status, "text/plain", b"told to fail\n".to_vec()),
        Some(Fault::Stall) => {
            let stalled =
                |state: &mut State| !state.closing && state.faults.iter().any(|(_, f)| *f == Fault::Stall);
            drop(shared.changed.wait_while(shared.lock(), stalled));
            return Ok(());
        }
        _ => content(&request, &shared.lock()),
    };
    let middle = body.len() / 2;
    let pause = || {
        if let Some(Fault::Slow(milliseconds)) = fault {
            std::thread::sleep(Duration::from_millis(milliseconds));
        }
    };
    pause();
    write!(
        stream,
        "HTTP/1.1 {status} {}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        if status == 200 { "OK" } else { "No" },
        body.len()
    )?;
    if request.method != "HEAD" {
        stream.write_all(&body[..middle])?;
        pause();
        stream.write_all(if fault == Some(Fault::CutAlways) { &[] } else { &body[middle..] })?;
    }
    stream.flush()?;
    stream.shutdown(std::net::Shutdown::Write)
}

fn read_request(stream: &TcpStream) -> std::io::Result<Option<Seen>> {
    let mut lines = BufReader::new(stream).lines();
    let Some(first) = lines.next().transpose()? else { return Ok(None) };
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let (mut authorization, mut json, mut takes_json) = (None, false, false);
    for line in lines {
        let line = line?;
        if line.is_empty() {
            break;
        }
        json |= line.eq_ignore_ascii_case(&format!("accept: {JSON}"));
        takes_json |= line.to_ascii_lowercase().starts_with(&format!("accept: {JSON}"));
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("authorization")
        {
            authorization = Some(value.trim().to_owned());
        }
    }
    Ok(Some(Seen { method, path, authorization, json, takes_json }))
}

/// Status, media type and body of a path. Any folder may precede the project (`/cu118/torch/`).
fn content(request: &Seen, state: &State) -> (u16, &'static str, Vec<u8>) {
    let path =
        request.path.split(['?', '#']).next().unwrap_or_default().replace("%2B", "+").replace("%2b", "+");
    let last = path.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    if let Some(bytes) = state.files.get(&format!("{path}#json")).filter(|_| request.json) {
        return (200, JSON, bytes.clone());
    }
    if let Some(bytes) = state.files.get(&path) {
        return (200, "application/octet-stream", bytes.clone());
    }
    let wheels = || state.wheels.values().flatten();
    if let Some(name) = last.strip_suffix(".metadata") {
        return wheels()
            .find(|wheel| wheel.file == name)
            .map_or_else(missing, |wheel| (200, "text/plain", wheel.metadata.clone().into_bytes()));
    }
    if let Some(bytes) = state.tampered.get(last) {
        return (200, "application/octet-stream", bytes.clone());
    }
    if is_wheel(last) {
        return wheels()
            .find(|wheel| wheel.file == last)
            .map_or_else(missing, |wheel| (200, "application/octet-stream", wheel.bytes.clone()));
    }
    match state.wheels.get(last) {
        Some(files)
            if request.takes_json && files.iter().any(|wheel| state.uploaded.contains_key(&wheel.file)) =>
        {
            (200, JSON, dated_page(last, files, &state.uploaded).into_bytes())
        }
        Some(files) => (200, "text/html", page(files, &state.yanked).into_bytes()),
        None => missing(),
    }
}

/// True if the path contains that text; the metadata beside a wheel is another file than the wheel.
fn concerns(path: &str, text: &str) -> bool {
    const METADATA: &str = ".metadata";
    path.contains(text) && path.ends_with(METADATA) == text.ends_with(METADATA)
}

/// A wheel, or a source distribution.
fn is_wheel(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "whl") || path.ends_with(".tar.gz")
}

fn missing() -> (u16, &'static str, Vec<u8>) {
    (404, "text/plain", b"no such file\n".to_vec())
}

/// The page of a project: one link per wheel, with the hash of the wheel and of its metadata.
fn page(wheels: &[Wheel], yanked: &BTreeSet<String>) -> String {
    let mut text = String::from("<!DOCTYPE html>\n<html><body>\n");
    for wheel in wheels {
        let (whole, metadata) = (sha256(&wheel.bytes), sha256(wheel.metadata.as_bytes()));
        let (link, name) = (wheel.file.replace('+', "%2B"), &wheel.file);
        let withdrawn = if yanked.contains(name) { "data-yanked=\"broken\"" } else { "" };
        let metadata =
            format!("data-dist-info-metadata=\"sha256={metadata}\" data-core-metadata=\"sha256={metadata}\"");
        writeln!(text, "<a href=\"/files/{link}#sha256={whole}\" {metadata} {withdrawn}>{name}</a><br>")
            .expect("a string takes all");
    }
    text.push_str("</body></html>\n");
    text
}

/// The same in its JSON form, with the upload times of the files that have one.
fn dated_page(name: &str, wheels: &[Wheel], uploaded: &BTreeMap<String, String>) -> String {
    let file = |wheel: &Wheel| {
        let (whole, metadata) = (sha256(&wheel.bytes), sha256(wheel.metadata.as_bytes()));
        let (link, file) = (wheel.file.replace('+', "%2B"), &wheel.file);
        let time =
            uploaded.get(file).map(|time| format!(", \"upload-time\": \"{time}\"")).unwrap_or_default();
        format!(
            "{{\"filename\": \"{file}\", \"url\": \"/files/{link}\", \"hashes\": {{\"sha256\": \"{whole}\"}}, \
             \"core-metadata\": {{\"sha256\": \"{metadata}\"}}{time}}}"
        )
    };
    let files: Vec<_> = wheels.iter().map(file).collect();
    let files = files.join(", ");
    format!("{{\"meta\": {{\"api-version\": \"1.1\"}}, \"name\": \"{name}\", \"files\": [{files}]}}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheels::WheelSpec;
    use std::io::Read;

    fn wheel() -> Wheel {
        WheelSpec::new("demo-tool", "1.0+local").file("demo_tool.py", "x = 1\n").build()
    }

    fn get(index: &Index, path: &str) -> (String, Vec<u8>) {
        let mut stream = TcpStream::connect(index.address).expect("the index listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic abc\r\n\r\n")
            .expect("it reads");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).expect("it answers");
        let head =
            answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        let body = answer.split_off(head);
        (String::from_utf8(answer).expect("a text head"), body)
    }

    #[test]
    fn serves_the_page_the_wheel_and_its_metadata_and_remembers_who_asked() {
        let index = Index::local(vec![wheel()]);
        let (head, page) = get(&index, "/cu118/demo-tool/");
        let page = String::from_utf8(page).expect("text");
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        assert!(page.contains("/files/demo_tool-1.0%2Blocal-py3-none-any.whl#sha256="), "{page}");
        assert!(page.contains(&sha256(&wheel().bytes)), "{page}");
        assert_eq!(get(&index, "/files/demo_tool-1.0%2Blocal-py3-none-any.whl").1, wheel().bytes);
        let metadata = get(&index, "/files/demo_tool-1.0%2Blocal-py3-none-any.whl.metadata").1;
        assert_eq!(metadata, wheel().metadata.as_bytes());
        assert!(get(&index, "/cu118/other/").0.starts_with("HTTP/1.1 404"));
        assert_eq!(index.seen()[0].authorization.as_deref(), Some("Basic abc"));
        assert_eq!(index.take_downloads(), ["/files/demo_tool-1.0%2Blocal-py3-none-any.whl"]);
        assert!(index.take_downloads().is_empty());
    }

    #[test]
    fn dated_files_are_listed_with_their_times_in_json() {
        let index = Index::local(vec![wheel()]);
        index.date("2026-02-01T00:00:00Z");
        index.publish(vec![WheelSpec::new("demo-tool", "2.0").build()]);
        index.date("2026-04-01T00:00:00Z");
        let ask = |accept: &str| {
            let mut stream = TcpStream::connect(index.address).expect("the index listens");
            write!(stream, "GET /simple/demo-tool/ HTTP/1.1\r\nAccept: {accept}\r\n\r\n").expect("it reads");
            let mut answer = String::new();
            stream.read_to_string(&mut answer).expect("it answers");
            answer
        };
        let answer = ask(&format!("{JSON}, text/html;q=0.1"));
        let body = answer.split("\r\n\r\n").nth(1).expect("a body");
        let page: serde_json::Value = serde_json::from_str(body).expect("JSON");
        let times: Vec<_> =
            page["files"].as_array().expect("files").iter().map(|file| &file["upload-time"]).collect();
        assert_eq!(times, ["2026-02-01T00:00:00Z", "2026-04-01T00:00:00Z"]);
        assert!(ask("text/html").contains("<a href="), "a page for people");
    }

    #[test]
    fn faults_are_those_asked_for() {
        let index = Index::local(vec![wheel()]);
        let path = "/files/demo_tool-1.0+local-py3-none-any.whl";
        let other = WheelSpec::new("demo-tool", "1.0+local").file("demo_tool.py", "x = 2\n").build();
        index.tamper(vec![other.clone()]);
        assert_eq!(get(&index, path).1, other.bytes);
        let page = String::from_utf8(get(&index, "/demo-tool/").1).expect("text");
        assert!(page.contains(&sha256(&wheel().bytes)) && !page.contains(&sha256(&other.bytes)), "{page}");
        index.heal();
        index.fail(".whl", Fault::CutOnce);
        assert_eq!(get(&index, path).1.len(), wheel().bytes.len() / 2);
        assert_eq!(get(&index, path).1, wheel().bytes);
        index.fail("/files/", Fault::Status(503));
        assert!(get(&index, path).0.starts_with("HTTP/1.1 503"));
    }

    #[test]
    fn a_stalled_request_is_seen_and_let_go_at_the_end() {
        let index = Index::local(vec![wheel()]);
        index.fail("demo", Fault::Stall);
        let address = index.address;
        let client = std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("the index listens");
            write!(stream, "GET /demo-tool/ HTTP/1.1\r\n\r\n").expect("it reads");
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).map(|_| answer.len())
        });
        assert!(index.wait_for("/demo-tool/", Duration::from_secs(10)));
        drop(index);
        assert_eq!(client.join().expect("no panic").ok(), Some(0));
    }
}
