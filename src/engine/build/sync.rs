//! The build context in BuildKit's protocol: fsutil's `DiffCopy`.
//!
//! Sends every file's name and mode in walk order, then the bytes of the files that the daemon requests, streamed from
//! disk. The daemon caches received files under a key and compares only sizes and times: a file's time is derived from its
//! content, so that one key serves all contexts and no file is sent twice. Layers store whole seconds, which are all 0.

use std::pin::Pin;

use bollard_buildkit_proto::fsutil::types::packet::PacketType;
use bollard_buildkit_proto::fsutil::types::{Packet, Stat};
use bollard_buildkit_proto::moby::filesync::packet::file_sync_server::FileSync;
use futures_util::Stream;
use tokio::io::AsyncReadExt;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::walk::{Item, walk};
use crate::model::image::context::{ContextContent, ContextEntry};
use crate::model::sha256::sha256_hex;

/// Go's `os.ModeDir`.
const DIRECTORY: u32 = 1 << 31;
/// Bytes of one packet, as in fsutil.
const CHUNK: usize = 32 * 1024;
/// The key of the daemon's cache of received files.
pub(super) const SHARED_KEY: &str = "envforge";

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
}

impl ContextSync {
    pub(super) fn new(entries: &[ContextEntry]) -> Self {
        let served = |item: Item| Served { stat: stat(&item), entry: item.entry };
        Self { context: walk(entries).into_iter().map(served).collect() }
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

fn stat(item: &Item) -> Stat {
    let Some(entry) = &item.entry else {
        return Stat { path: item.path.clone(), mode: DIRECTORY | 0o755, ..Stat::default() };
    };
    Stat {
        path: item.path.clone(),
        mode: entry.mode & 0o777,
        size: i64::try_from(entry.size()).unwrap_or(i64::MAX),
        mod_time: time(entry),
        ..Stat::default()
    }
}

/// Derives a time within the first second, in nanoseconds, from the content.
fn time(entry: &ContextEntry) -> i64 {
    let sha256 = match &entry.content {
        ContextContent::Bytes(bytes) => &sha256_hex(bytes),
        ContextContent::File { sha256, .. } => sha256,
    };
    let start = sha256.get(..15).and_then(|digits| i64::from_str_radix(digits, 16).ok());
    start.unwrap_or_default() % 1_000_000_000
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
async fn serve(items: &[Served], mut wanted: mpsc::UnboundedReceiver<u32>, out: &Sender) -> Result<(), Gone> {
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
    fn walk_lists_directories_first_and_sorts_by_parts() {
        let items =
            walk(&[entry("a.txt", ""), entry("a/b/c", ""), entry("a/a", ""), entry("Dockerfile", "")]);
        let paths: Vec<_> = items.iter().map(|item| item.path.as_str()).collect();
        assert_eq!(paths, ["Dockerfile", "a", "a/a", "a/b", "a/b/c", "a.txt"]);
        assert_eq!(stat(&items[1]).mode, 0x8000_0000 | 0o755);
        assert_eq!(stat(&items[2]).mode, 0o644);
    }

    fn served(entries: &[ContextEntry], paths: &[&str]) -> Vec<String> {
        ContextSync::new(entries).at(paths).into_iter().map(|served| served.stat.path).collect()
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

    /// The daemon compares no content: a change of equal size must change the time, within the first second.
    #[test]
    fn time_depends_on_content_within_one_second() {
        let (a, b) = (entry("a", "1"), entry("b", "2"));
        assert_eq!(time(&a), time(&entry("z", "1")));
        assert_ne!(time(&a), time(&b));
        let sha256 = sha256_hex(b"1");
        let file = ContextContent::File { path: "/nowhere".into(), size: 1, sha256 };
        assert_eq!(time(&a), time(&ContextEntry { content: file, ..a.clone() }));
        assert!([&a, &b].iter().all(|entry| (0..1_000_000_000).contains(&time(entry))));
        assert_eq!(stat(&Item { path: "a".to_owned(), entry: Some(a.clone()) }).mod_time, time(&a));
    }
}
