//! A daemon on a unix socket that has one image and a GPU, and whose containers print what the test gives them. For what
//! no machine without a GPU can show: which GPUs are asked for, and what follows from a report of kernels that ran.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::http::{json, request};

/// How the daemon offers GPUs, and what its image and containers are.
#[derive(Clone, Default)]
pub(crate) struct GpuDaemon {
    /// CDI devices it lists.
    pub(crate) cdi: &'static [&'static str],
    /// OCI runtimes it lists.
    pub(crate) runtimes: &'static [&'static str],
    /// The id of its one image, without `sha256:`; empty: 64 times `a`.
    pub(crate) id: String,
    /// Tags of its one image.
    pub(crate) tags: Vec<String>,
    /// Where registries have it, `name@digest`.
    pub(crate) digests: Vec<String>,
    /// The image's label `io.envforge.lock`.
    pub(crate) lock: String,
    /// Tags of a second image with the same label; empty: there is none.
    pub(crate) second: Vec<String>,
    /// More labels of the image.
    pub(crate) labels: BTreeMap<String, String>,
    /// The image's variables.
    pub(crate) env: Vec<String>,
    /// Whether the tag is of another image as soon as a container was made.
    pub(crate) moves: bool,
    /// What a container prints.
    pub(crate) prints: String,
    /// What the agent prints of the device code of the image.
    pub(crate) code: String,
    /// What a container prints after that, again and again.
    pub(crate) endless: Option<String>,
    /// What the daemon says when a container with a GPU is started; `None`: it starts.
    pub(crate) refuses: Option<&'static str>,
}

/// The requests that a running [`GpuDaemon`] was sent: method, path, body.
#[derive(Clone, Default)]
pub(crate) struct Requests(Arc<Mutex<Vec<(String, String)>>>);

impl Requests {
    fn push(&self, what: String, body: String) {
        self.0.lock().expect("no thread panics while it holds this").push((what, body));
    }

    /// The references that were made tags, in order.
    pub(crate) fn tags(&self) -> Vec<String> {
        let all = self.0.lock().expect("no thread panics while it holds this");
        let value = |path: &str, name: &str| {
            let (_, rest) = path.split_once(&format!("{name}="))?;
            Some(rest.split('&').next().unwrap_or_default().replace("%3A", ":").replace("%2F", "/"))
        };
        let tagged = all.iter().filter(|(what, _)| what.starts_with("POST") && what.contains("/tag?"));
        tagged
            .filter_map(|(what, _)| Some(format!("{}:{}", value(what, "repo")?, value(what, "tag")?)))
            .collect()
    }

    /// True if something was asked for whose method and path contain that text.
    pub(crate) fn contain(&self, text: &str) -> bool {
        let all = self.0.lock().expect("no thread panics while it holds this");
        all.iter().any(|(what, _)| what.contains(text))
    }

    /// All files that were put into containers, as one text.
    pub(crate) fn files(&self) -> String {
        let all = self.0.lock().expect("no thread panics while it holds this");
        let put = all.iter().filter(|(what, _)| what.starts_with("PUT") && what.contains("/archive"));
        put.map(|(_, body)| body.as_str()).collect()
    }

    /// The bodies of the containers that ran the image's code.
    pub(crate) fn containers(&self) -> Vec<serde_json::Value> {
        self.created(|command| command.contains("--expect"))
    }

    /// The bodies of the containers whose command fits.
    pub(crate) fn created(&self, fits: impl Fn(&str) -> bool) -> Vec<serde_json::Value> {
        let all = self.0.lock().expect("no thread panics while it holds this");
        let created = all.iter().filter(|(what, _)| what.contains("/containers/create"));
        let bodies = created.map(|(_, body)| -> serde_json::Value {
            serde_json::from_str(body).expect("a container's configuration")
        });
        bodies.filter(|body| fits(&body["Entrypoint"].to_string())).collect()
    }
}

impl GpuDaemon {
    /// Listens at that path until the test program ends.
    pub(crate) fn listen(self, socket: &Path) -> Requests {
        let listener = UnixListener::bind(socket).expect("a socket of the test's own");
        let requests = Requests::default();
        let seen = requests.clone();
        std::thread::spawn(move || {
            let created = Arc::new(Mutex::new(BTreeMap::new()));
            for stream in listener.incoming().flatten() {
                let (daemon, seen, created) = (self.clone(), seen.clone(), Arc::clone(&created));
                std::thread::spawn(move || daemon.serve(stream, &seen, &created));
            }
        });
        requests
    }

    fn serve(&self, mut stream: UnixStream, seen: &Requests, created: &Mutex<BTreeMap<String, String>>) {
        let Some((what, body)) = request(&mut stream) else { return };
        seen.push(what.clone(), body.clone());
        if let Some((_, name)) = what.split_once("/containers/create?name=") {
            let name = name.split(['&', ' ']).next().unwrap_or_default().to_owned();
            created.lock().expect("held for a moment only").insert(name, body);
        }
        let (with_gpu, lists_code) = {
            let created = created.lock().expect("held for a moment only");
            let body = created.iter().find(|(name, _)| what.contains(&format!("/containers/{name}/")));
            let has = |text: &str| body.is_some_and(|(_, body)| body.contains(text));
            let with_gpu = has("DeviceRequests\":[{") || has("\"Runtime\":\"nvidia\"");
            (with_gpu, has("agent\",\"code\""))
        };
        let prints = if lists_code { &self.code } else { &self.prints };
        // The other side may be gone already, after an error that the test is about.
        if what.contains("/attach") {
            let begun = stream.write_all(UPGRADE).and_then(|()| stream.write_all(&frame(prints)));
            if let (Ok(()), Some(text)) = (begun, &self.endless) {
                let part = frame(&text.repeat((1 << 16) / text.len().max(1) + 1));
                while stream.write_all(&part).is_ok() {}
            }
            return;
        }
        let answer = match self.refuses.filter(|_| with_gpu && what.contains("/start")) {
            Some(words) => json(500, &format!("{{\"message\":{}}}", serde_json::Value::from(words))),
            None => self.answer(&what, !created.lock().expect("held for a moment only").is_empty()),
        };
        let _ = stream.write_all(answer.as_bytes());
    }

    fn answer(&self, what: &str, ran: bool) -> String {
        let (method, path) = what.split_once(' ').unwrap_or_default();
        let path = path.split('?').next().unwrap_or_default();
        match method {
            "GET" if path.ends_with("/version") => json(
                200,
                r#"{"Version":"28.0.0","ApiVersion":"1.48","MinAPIVersion":"1.24","Os":"linux","Arch":"amd64"}"#,
            ),
            "GET" if path.ends_with("/info") => json(200, &self.info()),
            "GET" if path.ends_with("/history") => json(200, "[]"),
            "GET" if path.ends_with("/get") => json(200, "an image as an archive"),
            "GET" if path.ends_with("/containers/json") => json(200, "[]"),
            "GET" if path.ends_with("/volumes") => json(200, r#"{"Volumes":[],"Warnings":null}"#),
            "GET" if path.ends_with("/images/json") => json(200, &self.list()),
            "GET" if path.contains("/images/") && self.is_named(path) => {
                json(200, &self.image(path, self.moves && ran && !path.contains("sha256:")))
            }
            "POST" if path.ends_with("/containers/create") => json(201, r#"{"Id":"c1","Warnings":[]}"#),
            "POST" if path.ends_with("/start") => json(204, ""),
            "POST" if path.ends_with("/wait") => json(200, r#"{"StatusCode":0}"#),
            "POST" if path.ends_with("/kill") => json(204, ""),
            "POST" if path.ends_with("/tag") => json(201, ""),
            // What is pushed is where registries have it already.
            "POST" if path.ends_with("/push") => {
                let digest = self.digests.first().and_then(|name| name.split_once('@'));
                let digest = digest.map(|(_, digest)| digest).unwrap_or_default();
                json(200, &format!(r#"{{"status":"any: digest: {digest} size: 1"}}"#))
            }
            "PUT" if path.ends_with("/archive") => json(200, ""),
            "GET" if path.ends_with("/archive") && what.contains("libc.so.6") => json(200, &libc()),
            "DELETE" => json(204, ""),
            _ => json(404, r#"{"message":"no such thing"}"#),
        }
    }

    /// The id of the one image, without `sha256:`.
    pub(crate) fn own_id(&self) -> String {
        if self.id.is_empty() { "a".repeat(64) } else { self.id.clone() }
    }

    fn is_named(&self, path: &str) -> bool {
        let name =
            path.split("/images/").nth(1).unwrap_or_default().trim_end_matches("/json").replace("%3A", ":");
        let name = name.replace("%2F", "/");
        let is_digest = name.starts_with("sha256:") || self.digests.contains(&name);
        is_digest || self.tags.contains(&name) || self.second.contains(&name)
    }

    /// The images as a list has them: their ids.
    fn list(&self) -> String {
        let ids = [("a", &self.tags), ("b", &self.second)].into_iter().filter(|(_, tags)| !tags.is_empty());
        let rows = ids.map(|(id, tags)| {
            serde_json::json!({
                "Id": format!("sha256:{}", id.repeat(64)), "ParentId": "", "RepoTags": tags, "RepoDigests": [],
                "Created": 1, "Size": 1, "SharedSize": -1, "Labels": {}, "Containers": -1,
            })
        });
        serde_json::Value::from(rows.collect::<Vec<_>>()).to_string()
    }

    fn info(&self) -> String {
        let mut runtimes = String::from(r#""runc":{"path":"runc"}"#);
        for name in self.runtimes {
            let _ = write!(runtimes, r#","{name}":{{"path":"{name}"}}"#);
        }
        let devices: Vec<_> =
            self.cdi.iter().map(|id| format!(r#"{{"Source":"cdi","ID":"{id}"}}"#)).collect();
        format!(
            r#"{{"Architecture":"x86_64","DockerRootDir":"/var/lib/docker","Runtimes":{{{runtimes}}},"DiscoveredDevices":[{}]}}"#,
            devices.join(",")
        )
    }

    fn image(&self, path: &str, has_moved: bool) -> String {
        let path = path.replace("%3A", ":").replace("%2F", "/");
        let is_second = self.second.iter().any(|tag| path.contains(&format!("/{tag}/")));
        let (id, tags) = if is_second || path.contains(&"b".repeat(64)) {
            ("b", &self.second)
        } else if has_moved {
            ("b", &self.tags)
        } else {
            ("a", &self.tags)
        };
        let mut labels = self.labels.clone();
        labels.insert("io.envforge.lock".to_owned(), self.lock.clone());
        let image = serde_json::json!({
            "Id": format!("sha256:{}", if id == "a" { self.own_id() } else { id.repeat(64) }),
            "RepoTags": tags,
            "RepoDigests": self.digests,
            "Architecture": "amd64",
            "Size": 1,
            "Config": { "User": "1000:1000", "Env": self.env, "Labels": labels },
        });
        image.to_string()
    }
}

/// The C library of the image, as a tar: a link, as distributions had them.
fn libc() -> String {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "libc.so.6", "libc-2.41.so").expect("in memory");
    String::from_utf8(tar.into_inner().expect("in memory")).expect("a tar of one link is text")
}

const UPGRADE: &[u8] = b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";

/// One frame of standard output.
fn frame(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("a short text");
    [&[1, 0, 0, 0], &length.to_be_bytes()[..], text.as_bytes()].concat()
}
