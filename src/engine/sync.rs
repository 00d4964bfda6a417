//! The build context as BuildKit asks for it: fsutil's `DiffCopy`.
//!
//! First every file's name and mode in walk order, then the bytes of those the daemon wants, streamed from where they
//! lie. Times are all 0 and owners root, so that equal contexts are equal.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;

use bollard_buildkit_proto::fsutil::types::packet::PacketType;
use bollard_buildkit_proto::fsutil::types::{Packet, Stat};
use bollard_buildkit_proto::moby::filesync::packet::file_sync_server::FileSync;
use futures_util::Stream;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use crate::context::{ContextContent, ContextEntry};
use crate::sha256::{Sha256Hex, sha256_hex};

/// Go's `os.ModeDir`.
const DIRECTORY: u32 = 1 << 31;
/// Bytes in one packet, as fsutil itself sends them.
const CHUNK: usize = 32 * 1024;

/// One thing of the context in walk order; `None` is a folder.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) path: String,
    pub(super) entry: Option<ContextEntry>,
}

/// Serves a context.
#[derive(Debug, Clone)]
pub(super) struct ContextSync {
    context: Arc<Vec<Item>>,
    dockerfile: Arc<Vec<Item>>,
}

impl ContextSync {
    pub(super) fn new(entries: &[ContextEntry]) -> Self {
        let dockerfile: Vec<_> = entries.iter().filter(|entry| entry.path == "Dockerfile").cloned().collect();
        Self { context: Arc::new(walk(entries)), dockerfile: Arc::new(walk(&dockerfile)) }
    }
}

/// Names the content of a context. The daemon keeps what it received under this key and compares sizes and times only,
/// so two contexts may share a key only if they are the same.
pub(super) fn shared_key(entries: &[ContextEntry]) -> String {
    let mut hash = Sha256Hex::default();
    for item in walk(entries) {
        if let Some(entry) = item.entry {
            let content = match entry.content {
                ContextContent::Bytes(bytes) => sha256_hex(&bytes),
                ContextContent::File { sha256, .. } => sha256,
            };
            hash.update(format!("{}\0{:o}\0{content}\n", entry.path, entry.mode).as_bytes());
        }
    }
    hash.finish()
}

/// Entries with their folders, parents first, in the order of a walk: `a/b` comes before `a.txt`.
pub(super) fn walk(entries: &[ContextEntry]) -> Vec<Item> {
    let mut items: BTreeMap<Vec<String>, Option<ContextEntry>> = BTreeMap::new();
    for entry in entries {
        let parts: Vec<_> = entry.path.split('/').map(str::to_owned).collect();
        for depth in 1..parts.len() {
            items.entry(parts[..depth].to_vec()).or_insert(None);
        }
        items.insert(parts, Some(entry.clone()));
    }
    items.into_iter().map(|(parts, entry)| Item { path: parts.join("/"), entry }).collect()
}

fn stat(item: &Item) -> Stat {
    let (mode, size) = match &item.entry {
        None => (DIRECTORY | 0o755, 0),
        Some(entry) => (
            entry.mode & 0o777,
            match &entry.content {
                ContextContent::Bytes(bytes) => bytes.len() as u64,
                ContextContent::File { size, .. } => *size,
            },
        ),
    };
    Stat { path: item.path.clone(), mode, size: i64::try_from(size).unwrap_or(i64::MAX), ..Stat::default() }
}

fn packet(kind: PacketType, id: u32) -> Packet {
    Packet { r#type: kind.into(), id, ..Packet::default() }
}

type Sender = mpsc::Sender<Result<Packet, Status>>;

/// The daemon no longer listens.
struct Gone;

async fn send(out: &Sender, packet: Packet) -> Result<(), Gone> {
    out.send(Ok(packet)).await.map_err(|_| Gone)
}

/// Tells every name, then serves the requests until the daemon has all it wants.
async fn serve(items: &[Item], mut wanted: mpsc::UnboundedReceiver<u32>, out: &Sender) -> Result<(), Gone> {
    for item in items {
        send(out, Packet { stat: Some(stat(item)), ..packet(PacketType::PacketStat, 0) }).await?;
    }
    send(out, packet(PacketType::PacketStat, 0)).await?;
    while let Some(id) = wanted.recv().await {
        let entry = usize::try_from(id).ok().and_then(|id| items.get(id)?.entry.as_ref());
        let Some(entry) = entry else {
            let _ = out.send(Err(Status::invalid_argument(format!("no file {id}")))).await;
            return Err(Gone);
        };
        if let Err(error) = send_content(entry, id, out).await {
            let text = format!("context file `{}`: {error}", entry.path);
            let _ = out.send(Err(Status::internal(text))).await;
            return Err(Gone);
        }
    }
    send(out, packet(PacketType::PacketFin, 0)).await
}

async fn send_content(entry: &ContextEntry, id: u32, out: &Sender) -> std::io::Result<()> {
    let gone = |Gone| std::io::Error::from(std::io::ErrorKind::BrokenPipe);
    let data = |data: Vec<u8>| Packet { data, ..packet(PacketType::PacketData, id) };
    match &entry.content {
        ContextContent::Bytes(bytes) => {
            for chunk in bytes.chunks(CHUNK) {
                send(out, data(chunk.to_vec())).await.map_err(gone)?;
            }
        }
        ContextContent::File { path, .. } => {
            let mut file = fs_err::tokio::File::open(path.as_std_path()).await?;
            loop {
                let mut chunk = vec![0; CHUNK];
                let length = file.read(&mut chunk).await?;
                if length == 0 {
                    break;
                }
                chunk.truncate(length);
                send(out, data(chunk)).await.map_err(gone)?;
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
        let name = request.metadata().get("dir-name").and_then(|name| name.to_str().ok());
        let items = match name {
            Some("context") => Arc::clone(&self.context),
            Some("dockerfile") => Arc::clone(&self.dockerfile),
            other => return Err(Status::not_found(format!("no folder {other:?}"))),
        };
        let mut requests = request.into_inner();
        let (out, mut packets) = mpsc::channel(8);
        let (want, wanted) = mpsc::unbounded_channel();
        // Requests are read while names are still being sent: either side may fill the other's window.
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
            let (_, ()) = tokio::join!(serve(&items, wanted, &out), read);
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
    fn a_walk_names_folders_first_and_sorts_by_parts() {
        let items =
            walk(&[entry("a.txt", ""), entry("a/b/c", ""), entry("a/a", ""), entry("Dockerfile", "")]);
        let paths: Vec<_> = items.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["Dockerfile", "a", "a/a", "a/b", "a/b/c", "a.txt"]);
        assert_eq!(stat(&items[1]).mode, 0x8000_0000 | 0o755);
        assert_eq!(stat(&items[2]).mode, 0o644);
    }

    #[test]
    fn the_key_follows_content_mode_and_name_but_not_order() {
        let (a, b) = (entry("a", "1"), entry("b", "2"));
        let key = shared_key(&[a.clone(), b.clone()]);
        assert_eq!(key, shared_key(&[b.clone(), a.clone()]));
        assert_ne!(key, shared_key(&[entry("a", "3"), b.clone()]));
        assert_ne!(key, shared_key(&[ContextEntry { mode: 0o755, ..a }, b]));
    }
}
