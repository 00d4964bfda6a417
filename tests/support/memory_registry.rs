//! An image registry in memory, for evidence: with the API for referrers or without it, with tags that nobody may write again, and with
//! manifests that nobody may delete, as registries differ.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// How the registry behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Habits {
    /// It lists referrers itself.
    pub(crate) referrers: bool,
    /// It deletes manifests.
    pub(crate) deletes: bool,
    /// A tag that is there is refused with 409.
    pub(crate) fixed_tags: bool,
    /// The most microseconds that an answer waits, another number for each request.
    pub(crate) jitter: u64,
}

/// What it holds.
#[derive(Default)]
pub(crate) struct Content {
    /// By digest.
    pub(crate) blobs: BTreeMap<String, Vec<u8>>,
    /// Manifests by digest.
    pub(crate) manifests: BTreeMap<String, (String, Vec<u8>)>,
    /// Digests by tag.
    pub(crate) tags: BTreeMap<String, String>,
    uploads: BTreeMap<String, Vec<u8>>,
    /// Method and path of every request.
    pub(crate) requests: Vec<String>,
    /// Bytes that were sent.
    pub(crate) sent: usize,
    /// Every request is answered with this status, if it is set.
    pub(crate) broken: Option<u16>,
    /// What a tag that is fixed is refused with, in place of 409.
    pub(crate) fixed_status: Option<u16>,
    /// After so many more requests connections end without an answer, if it is set.
    pub(crate) cut: Option<usize>,
}

/// A running registry; its thread ends with the test program.
#[derive(Clone)]
pub(crate) struct MemoryRegistry {
    pub(crate) host: String,
    content: Arc<Mutex<Content>>,
}

pub(crate) fn digest_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold("sha256:".to_owned(), |all, byte| all + &format!("{byte:02x}"))
}

impl MemoryRegistry {
    pub(crate) fn start(habits: Habits) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let host = listener.local_addr().expect("an address").to_string();
        let content = Arc::<Mutex<Content>>::default();
        let shared = Arc::clone(&content);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&shared);
                std::thread::spawn(move || serve(stream, habits, &shared));
            }
        });
        Self { host, content }
    }

    pub(crate) fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().expect("no thread panics while it holds this")
    }

    /// Puts a manifest in under a tag, whatever it names. Returns its digest.
    pub(crate) fn put(&self, tag: &str, kind: &str, bytes: &[u8]) -> String {
        let digest = digest_of(bytes);
        let mut content = self.content();
        content.manifests.insert(digest.clone(), (kind.to_owned(), bytes.to_vec()));
        content.tags.insert(tag.to_owned(), digest.clone());
        digest
    }

    /// An image of that configuration, without layers. Returns its digest.
    pub(crate) fn put_image(&self, tag: &str, config: &str) -> String {
        let kind = "application/vnd.oci.image.manifest.v1+json";
        let config_type = "application/vnd.oci.image.config.v1+json";
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"{kind}","config":{{"mediaType":"{config_type}","digest":"{config}","size":2}},"layers":[]}}"#
        );
        self.put(tag, kind, manifest.as_bytes())
    }
}

fn serve(stream: TcpStream, habits: Habits, content: &Mutex<Content>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).is_err() {
        return;
    }
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else { return };
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).is_err() {
            return;
        }
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if headers.get("transfer-encoding").is_some_and(|value| value == "chunked") {
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() {
                return;
            }
            let Ok(size) = usize::from_str_radix(line.trim(), 16) else { return };
            let mut chunk = vec![0; size + 2];
            if reader.read_exact(&mut chunk).is_err() {
                return;
            }
            if size == 0 {
                break;
            }
            body.extend_from_slice(&chunk[..size]);
        }
    } else if let Some(size) = headers.get("content-length").and_then(|text| text.parse().ok()) {
        body = vec![0; size];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
    }
    let kind = headers.get("content-type").cloned().unwrap_or_default();
    let (answer, wait) = {
        let mut content = content.lock().expect("no thread panics while it holds this");
        content.requests.push(format!("{method} {target}"));
        match &mut content.cut {
            Some(0) => return,
            Some(left) => *left -= 1,
            None => {}
        }
        let number = content.requests.len() as u64;
        let wait = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        let answer = match content.broken {
            Some(status) => answer(status, "", b""),
            None => respond(&method, &target, (&kind, &body), habits, &mut content),
        };
        content.sent += answer.len();
        (answer, wait.checked_rem(habits.jitter).unwrap_or(0))
    };
    std::thread::sleep(Duration::from_micros(wait));
    let _ = reader.get_mut().write_all(&answer);
}

fn answer(status: u16, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn respond(
    method: &str,
    target: &str,
    (kind, body): (&str, &[u8]),
    habits: Habits,
    all: &mut Content,
) -> Vec<u8> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let name = path.rsplit('/').next().unwrap_or_default().replace("%3A", ":");
    let digest = |bytes: &[u8]| format!("docker-content-digest: {}\r\n", digest_of(bytes));
    if path.contains("/blobs/uploads/") {
        return match method {
            "POST" => {
                let id = format!("u{}", all.requests.len());
                all.uploads.insert(id.clone(), Vec::new());
                answer(202, &format!("location: {path}{id}\r\nrange: 0-0\r\n"), b"")
            }
            "PATCH" => {
                let upload = all.uploads.entry(name).or_default();
                upload.extend_from_slice(body);
                answer(
                    202,
                    &format!("location: {path}\r\nrange: 0-{}\r\n", upload.len().saturating_sub(1)),
                    b"",
                )
            }
            _ => {
                let mut blob = all.uploads.remove(&name).unwrap_or_default();
                blob.extend_from_slice(body);
                let found = digest_of(&blob);
                if !query.replace("%3A", ":").contains(&found) {
                    return answer(400, "", b"");
                }
                all.blobs.insert(found.clone(), blob);
                answer(201, &format!("docker-content-digest: {found}\r\n"), b"")
            }
        };
    }
    if path.contains("/blobs/") {
        return match all.blobs.get(&name) {
            Some(_) if method == "HEAD" => answer(200, "", b""),
            Some(blob) => answer(200, "", blob),
            None => answer(404, "", b""),
        };
    }
    if path.contains("/referrers/") {
        return if habits.referrers {
            answer(200, "", referrers(&name, all).as_bytes())
        } else {
            answer(404, "", b"")
        };
    }
    if path == "/v2/" {
        return answer(200, "", b"{}");
    }
    if !path.contains("/manifests/") {
        return answer(404, "", b"");
    }
    match method {
        "PUT" => {
            let found = digest_of(body);
            if !name.starts_with("sha256:") {
                if habits.fixed_tags && all.tags.contains_key(&name) {
                    return answer(
                        all.fixed_status.unwrap_or(409),
                        "",
                        br#"{"errors":[{"code":"TAG_INVALID","message":"the tag is immutable"}]}"#,
                    );
                }
                all.tags.insert(name, found.clone());
            }
            all.manifests.insert(found, (kind.to_owned(), body.to_vec()));
            let subject = if habits.referrers && body.windows(9).any(|part| part == b"\"subject\"") {
                "oci-subject: sha256:0\r\n"
            } else {
                ""
            };
            answer(201, &format!("{}{subject}", digest(body)), b"")
        }
        "DELETE" if habits.deletes => match all.manifests.remove(&name) {
            Some(_) => answer(202, "", b""),
            None => answer(404, "", b""),
        },
        "DELETE" => answer(405, "", b""),
        _ => {
            let wanted = all.tags.get(&name).cloned().unwrap_or(name);
            match all.manifests.get(&wanted) {
                Some((kind, bytes)) => {
                    answer(200, &format!("content-type: {kind}\r\n{}", digest(bytes)), bytes)
                }
                None => answer(404, "", b""),
            }
        }
    }
}

/// The manifests whose subject has that digest.
fn referrers(digest: &str, all: &Content) -> String {
    let mut found = Vec::new();
    for (own, (kind, bytes)) in &all.manifests {
        let Ok(manifest) = serde_json::from_slice::<serde_json::Value>(bytes) else { continue };
        if manifest["subject"]["digest"] == digest {
            found.push(serde_json::json!({
                "mediaType": kind, "digest": own, "size": bytes.len(), "artifactType": manifest["artifactType"],
                "annotations": manifest["annotations"],
            }));
        }
    }
    serde_json::json!({ "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": found })
        .to_string()
}
