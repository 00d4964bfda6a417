//! The build context in BuildKit's protocol: fsutil's `DiffCopy`.
//!
//! Sends every file's name and mode in walk order, then the bytes of the files that the daemon requests, streamed from
//! disk. The daemon keeps received files under a key and compares only their sizes and times: the key is a keyed hash of the
//! whole context, so that a file of another one never stands for a file of this one, and nobody else can put files there who
//! knows the context. Times are 0, as in layers.

use std::pin::Pin;

use bollard_buildkit_proto::fsutil::types::packet::PacketType;
use bollard_buildkit_proto::fsutil::types::{Packet, Stat};
use bollard_buildkit_proto::moby::filesync::packet::file_sync_server::FileSync;
use futures_util::{Stream, StreamExt as _};
use ring::hmac;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;
use tonic::{Request, Response, Status, Streaming};

use super::walk::{Item, walk};
use crate::engine::sent_file::{Comparison, Refusal, compared};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::sha256::{hex, sha256_hex};

/// Go's `os.ModeDir`.
const DIRECTORY: u32 = 1 << 31;
/// Bytes of one packet, as in fsutil.
const CHUNK: usize = 32 * 1024;
/// One entry of the context in the daemon's form.
#[derive(Debug, Clone)]
struct Served {
    stat: Stat,
    entry: Option<ContextEntry>,
}

/// A server of a context.
#[derive(Debug, Clone)]
pub(super) struct ContextSync {
    context: Vec<Served>,
    refusal: Refusal,
}

impl ContextSync {
    pub(super) fn new(entries: &[ContextEntry], refusal: &Refusal) -> Self {
        let served = |item: Item| Served { stat: stat(&item), entry: item.entry };
        Self { context: walk(entries).into_iter().map(served).collect(), refusal: refusal.clone() }
    }

    /// Returns the entries at and below these paths, with parents; all entries without paths or with patterns.
    fn at(&self, paths: &[&str]) -> Vec<Served> {
        let paths: Vec<_> = paths.iter().map(|path| path.trim_matches('/')).collect();
        let all =
            paths.is_empty() || paths.iter().any(|path| path.is_empty() || path.contains(['*', '?', '[']));
        let is_below = |path: &str, folder: &str| {
            path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let wanted = |served: &&Served| {
            let own = served.stat.path.as_str();
            all || paths.iter().any(|path| is_below(own, path) || is_below(path, own))
        };
        self.context.iter().filter(wanted).cloned().collect()
    }
}

/// Returns the key of the daemon's cache of received files: every path, mode and content decides it, and the secret.
pub(super) fn context_key(entries: &[ContextEntry], secret: &[u8]) -> String {
    let line = |entry: &ContextEntry| {
        let sha256 = match &entry.content {
            ContextContent::Bytes(bytes) => &sha256_hex(bytes),
            ContextContent::File { sha256, .. } => sha256,
        };
        // A path has no NUL.
        format!("{:o} {sha256} {}\0", entry.mode & 0o777, entry.path)
    };
    let mut lines: Vec<_> = entries.iter().map(line).collect();
    lines.sort();
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    hex(hmac::sign(&key, lines.concat().as_bytes()).as_ref())
}

fn stat(item: &Item) -> Stat {
    let Some(entry) = &item.entry else {
        return Stat { path: item.path.clone(), mode: DIRECTORY | 0o755, ..Stat::default() };
    };
    Stat {
        path: item.path.clone(),
        mode: entry.mode & 0o777,
        size: i64::try_from(entry.size()).unwrap_or(i64::MAX),
        ..Stat::default()
    }
}

fn packet(kind: PacketType, id: u32) -> Packet {
    Packet { r#type: kind.into(), id, ..Packet::default() }
}

type Sender = mpsc::Sender<Result<Packet, Status>>;

/// A closed connection of the daemon.
struct Gone;

async fn send(out: &Sender, packet: Packet) -> Result<(), Gone> {
    out.send(Ok(packet)).await.map_err(|_| Gone)
}

/// Sends every name, then serves the requests until the daemon ends them.
async fn serve(
    items: &[Served],
    mut wanted: mpsc::UnboundedReceiver<u32>,
    out: &Sender,
    refusal: &Refusal,
) -> Result<(), Gone> {
    for item in items {
        send(out, Packet { stat: Some(item.stat.clone()), ..packet(PacketType::PacketStat, 0) }).await?;
    }
    send(out, packet(PacketType::PacketStat, 0)).await?;
    while let Some(id) = wanted.recv().await {
        let entry = usize::try_from(id).ok().and_then(|id| items.get(id)?.entry.as_ref());
        let Some(entry) = entry else {
            let _ = out.send(Err(Status::invalid_argument(format!("no file {id}")))).await;
            return Err(Gone);
        };
        if let Err(error) = send_content((entry, id), out, refusal).await {
            let text = format!("context file `{}`: {error}", entry.path);
            let _ = out.send(Err(Status::internal(text))).await;
            return Err(Gone);
        }
    }
    send(out, packet(PacketType::PacketFin, 0)).await
}

async fn send_content(
    (entry, id): (&ContextEntry, u32),
    out: &Sender,
    refusal: &Refusal,
) -> std::io::Result<()> {
    let gone = |Gone| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let data = |data: Vec<u8>| Packet { data, ..packet(PacketType::PacketData, id) };
    match &entry.content {
        ContextContent::Bytes(bytes) => {
            for chunk in bytes.chunks(CHUNK) {
                send(out, data(chunk.to_vec())).await.map_err(gone)?;
            }
        }
        ContextContent::File { path, sha256, .. } => {
            let file = fs_err::tokio::File::open(path.as_std_path()).await?;
            let comparison = Comparison::new(path, sha256, refusal);
            let mut chunks = std::pin::pin!(compared(ReaderStream::with_capacity(file, CHUNK), comparison));
            while let Some(chunk) = chunks.next().await {
                send(out, data(chunk?.to_vec())).await.map_err(gone)?;
            }
        }
    }
    send(out, data(Vec::new())).await.map_err(gone)
}

type Packets = Pin<Box<dyn Stream<Item = Result<Packet, Status>> + Send>>;

#[tonic::async_trait]
impl FileSync for ContextSync {
    type DiffCopyStream = Packets;
    type TarStreamStream = Packets;

    async fn diff_copy(&self, request: Request<Streaming<Packet>>) -> Result<Response<Packets>, Status> {
        let asked = request.metadata();
        let name = asked.get("dir-name").and_then(|name| name.to_str().ok());
        let paths: Vec<_> =
            asked.get_all("followpaths").iter().filter_map(|path| path.to_str().ok()).collect();
        let items = match name {
            // The Dockerfile is in the context too, and listed in the paths.
            Some("context" | "dockerfile") => self.at(&paths),
            other => return Err(Status::not_found(format!("no directory {other:?}"))),
        };
        let mut requests = request.into_inner();
        let refusal = self.refusal.clone();
        let (out, mut packets) = mpsc::channel(8);
        let (want, wanted) = mpsc::unbounded_channel();
        // Reads requests while still sending names: either side may fill the other's window.
        tokio::spawn(async move {
            let read = async {
                while let Ok(Some(packet)) = requests.message().await {
                    match PacketType::try_from(packet.r#type) {
                        Ok(PacketType::PacketReq) if want.send(packet.id).is_ok() => {}
                        _ => break,
                    }
                }
                drop(want);
            };
            let (_, ()) = tokio::join!(serve(&items, wanted, &out, &refusal), read);
        });
        Ok(Response::new(Box::pin(futures_util::stream::poll_fn(move |cx| packets.poll_recv(cx)))))
    }

    async fn tar_stream(&self, _: Request<Streaming<Packet>>) -> Result<Response<Packets>, Status> {
        Err(Status::unimplemented("the context is served by DiffCopy"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn entry(path: &str, text: &'static str) -> ContextEntry {
        let content = ContextContent::Bytes(Bytes::from_static(text.as_bytes()));
        ContextEntry { path: path.to_owned(), mode: 0o644, content }
    }

    #[test]
    fn walk_lists_directories_first_and_sorts_by_parts() {
        let items =
            walk(&[entry("a.txt", ""), entry("a/b/c", ""), entry("a/a", ""), entry("Dockerfile", "")]);
        let paths: Vec<_> = items.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["Dockerfile", "a", "a/a", "a/b", "a/b/c", "a.txt"]);
        assert_eq!(stat(&items[1]).mode, 0x8000_0000 | 0o755);
        assert_eq!(stat(&items[2]).mode, 0o644);
    }

    fn served(entries: &[ContextEntry], paths: &[&str]) -> Vec<String> {
        ContextSync::new(entries, &Refusal::default())
            .at(paths)
            .into_iter()
            .map(|served| served.stat.path)
            .collect()
    }

    #[test]
    fn sync_sends_only_requested_paths_and_parents() {
        let entries =
            [entry("Dockerfile", ""), entry("debs/a.deb", ""), entry("debs.txt", ""), entry("wheels/w", "")];
        assert_eq!(served(&entries, &["/debs"]), ["debs", "debs/a.deb"]);
        assert_eq!(served(&entries, &["debs/a.deb", "Dockerfile"]), ["Dockerfile", "debs", "debs/a.deb"]);
        assert!(served(&entries, &[".dockerignore"]).is_empty());
        for all in [&[][..], &["wheels/*"], &["/"]] {
            assert_eq!(served(&entries, all).len(), 6, "{all:?}");
        }
    }

    fn context_key(entries: &[ContextEntry]) -> String {
        super::context_key(entries, b"of this machine")
    }

    /// What is sent of a file that is known by the hash of a text.
    #[expect(clippy::disallowed_methods, reason = "a file to send")]
    async fn sent(content: &str, known: &str) -> (Vec<u8>, std::io::Result<()>) {
        let folder = tempfile::tempdir().unwrap();
        let path = camino::Utf8PathBuf::from_path_buf(folder.path().join("f")).unwrap();
        std::fs::write(&path, content).unwrap();
        let content = ContextContent::File { path, size: 0, sha256: sha256_hex(known.as_bytes()) };
        let entry = ContextEntry { path: "debs/f".to_owned(), mode: 0o644, content };
        let (out, mut packets) = mpsc::channel(100);
        let result = send_content((&entry, 0), &out, &Refusal::default()).await;
        drop(out);
        let mut bytes = Vec::new();
        while let Some(packet) = packets.recv().await {
            bytes.extend(packet.unwrap().data);
        }
        (bytes, result)
    }

    #[tokio::test]
    async fn file_of_other_content_is_never_sent_whole() {
        let text = "x".repeat(3 * CHUNK + 5);
        let (bytes, result) = sent(&text, &text).await;
        assert!(bytes == text.as_bytes() && result.is_ok());
        let (bytes, result) = sent(&text, "other").await;
        assert_eq!(bytes.len(), 3 * CHUNK);
        assert!(result.unwrap_err().to_string().ends_with("has other content than expected"));
    }

    /// The daemon compares no content: another one of equal size needs another key.
    #[test]
    fn key_of_the_cache_depends_on_every_path_mode_and_content() {
        let context = [entry("a", "1"), entry("b", "2")];
        let key = context_key(&context);
        assert_eq!(key.len(), 64);
        let [one, other] = context.clone();
        assert_eq!(context_key(&[other.clone(), one.clone()]), key, "the order of entries is no part of it");
        let sha256 = sha256_hex(b"1");
        let file = ContextContent::File { path: "/nowhere".into(), size: 1, sha256 };
        assert_eq!(context_key(&[ContextEntry { content: file, ..one.clone() }, other.clone()]), key);
        let executable = ContextEntry { mode: 0o755, ..other.clone() };
        let changed = [
            vec![entry("a", "3"), other.clone()],
            vec![entry("a", "2"), entry("b", "1")],
            vec![entry("c", "1"), other],
            vec![one.clone(), executable],
            vec![one],
        ];
        assert_ne!(super::context_key(&context, b"of another machine"), key, "it can be foreseen");
        let keys: std::collections::BTreeSet<_> =
            changed.iter().map(|entries| context_key(entries)).collect();
        assert!(keys.len() == changed.len() && !keys.contains(&key), "{keys:?}");
    }
}
