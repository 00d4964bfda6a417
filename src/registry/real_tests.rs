//! Uploads to Debian's `docker-registry`.
#![expect(clippy::disallowed_methods, reason = "tests read what the registry has")]

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;

use super::real_registry::{PASSWORD, Registry as Process, USER};
use super::*;
use crate::fetch::{FetchSettings, Fetcher};
use crate::model::image::manifest::{BlobDescriptor, MANIFEST_TYPE, manifest};
use crate::model::image_digest::Digest;
use crate::model::image_ref::ImageRef;
use crate::model::layer_compression::LayerCompression;
use crate::model::versions::Machine;
use crate::report::{NullReporter, Reporter};
use crate::settings::image_registry::{EnvironmentLogin, RegistrySettings};

const CONFIG: &[u8] =
    br#"{"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[]},"config":{}}"#;

fn registry(host: &str) -> Registry {
    let login = EnvironmentLogin {
        registry: host.to_owned(),
        user: USER.to_owned(),
        password: SecretString::from(PASSWORD),
    };
    let insecure = vec![host.to_owned()];
    let settings = RegistrySettings { login: Some(login), insecure, ..RegistrySettings::default() };
    let fetch =
        FetchSettings { attempts: 4, first_pause: Duration::from_millis(1), ..FetchSettings::default() };
    Registry::new(Fetcher::new(&fetch).expect("a client"), settings)
}

fn blob(content: Bytes, known: bool) -> Blob {
    Blob {
        title: format!("{} bytes", content.len()),
        known: known.then(|| BlobDescriptor::of(&content)),
        content: Arc::new(content),
        mount_from: vec!["team/torch".to_owned()],
    }
}

fn noise(seed: u32, words: u32) -> Bytes {
    (0..words).flat_map(|at| (at ^ seed).wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

async fn push(registry: &Registry, image: &ImageRef, blobs: &[Blob]) -> Vec<(BlobDescriptor, BlobOrigin)> {
    let reporter: Arc<dyn Reporter> = Arc::new(NullReporter);
    registry.push_blobs(image, blobs, &reporter).await.expect("pushed")
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn image_is_pushed_found_again_and_mounted() {
    let process = Process::with_password();
    let registry = registry(&process.host());
    let image: ImageRef = format!("{}/team/torch:2.8", process.host()).parse().expect("a reference");
    let contents: Vec<Bytes> = (0..6).map(|seed| noise(seed, 700_000)).collect();
    let mut blobs = vec![blob(Bytes::from_static(CONFIG), true)];
    blobs.extend(contents.iter().enumerate().map(|(at, content)| blob(content.clone(), at % 2 == 0)));
    let pushed = push(&registry, &image, &blobs).await;
    assert!(pushed.iter().all(|(_, origin)| *origin == BlobOrigin::Sent));
    for ((descriptor, _), content) in pushed[1..].iter().zip(&contents) {
        assert_eq!(*descriptor, BlobDescriptor::of(content));
        let stored = std::fs::read(process.blob_path(descriptor.digest.as_str())).expect("it has the blob");
        assert!(stored == *content);
    }
    let all: Vec<BlobDescriptor> = pushed.into_iter().map(|(blob, _)| blob).collect();
    let bytes = Bytes::from(manifest(&all[0], &all[1..], LayerCompression::Gzip));
    let document = ManifestDocument { media_type: MANIFEST_TYPE, bytes: bytes.clone() };
    let digest = registry.put_manifest(&image, &document, &["2.8", "latest"]).await.expect("put");
    assert_eq!(digest, Digest::of(&bytes));
    for name in ["team/torch:2.8", "team/torch:latest", &format!("team/torch@{digest}")] {
        let name: ImageRef = format!("{}/{name}", process.host()).parse().expect("a reference");
        let found = registry.resolve(&name, Machine::X86_64, RetryPolicy::SHORT).await.expect("resolved");
        assert_eq!(found.digest, digest);
    }
    let again = push(&registry, &image, &blobs[..1]).await;
    assert_eq!(again[0].1, BlobOrigin::Present);
    let other: ImageRef = format!("{}/team/other:2.8", process.host()).parse().expect("a reference");
    let mounted = push(&registry, &other, &blobs[..2]).await;
    assert!(mounted.iter().all(|(_, origin)| *origin == BlobOrigin::Mounted), "{mounted:?}");
    let lacking = noise(99, 1000);
    assert_eq!(push(&registry, &other, &[blob(lacking, true)]).await[0].1, BlobOrigin::Sent);
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn manifest_of_a_blob_that_the_registry_lacks_is_refused() {
    let process = Process::open();
    let registry = registry(&process.host());
    let image: ImageRef = format!("{}/team/torch:2.8", process.host()).parse().expect("a reference");
    let bytes = Bytes::from(manifest(&BlobDescriptor::of(CONFIG), &[], LayerCompression::Gzip));
    let document = ManifestDocument { media_type: MANIFEST_TYPE, bytes };
    let error = registry.put_manifest(&image, &document, &["2.8"]).await.expect_err("refused");
    assert!(error.to_string().contains("400 Bad Request"), "{error}");
    let unknown = registry.resolve(&image, Machine::X86_64, RetryPolicy::SHORT).await;
    assert!(matches!(unknown, Err(RegistryError::NotFound { .. })), "{unknown:?}");
}

#[tokio::test]
#[ignore = "needs docker-registry"]
async fn upload_survives_dropped_connections() {
    let process = Process::open();
    let cuts = Arc::new(AtomicUsize::new(2));
    let host = cutting_proxy(process.port, 600_000, Arc::clone(&cuts));
    let registry = registry(&host);
    let image: ImageRef = format!("{host}/team/torch:2.8").parse().expect("a reference");
    let content = noise(7, 750_000);
    let pushed = push(&registry, &image, &[blob(content.clone(), true)]).await;
    assert_eq!(cuts.load(Ordering::SeqCst), 0, "the connections were cut");
    let stored = std::fs::read(process.blob_path(pushed[0].0.digest.as_str())).expect("it has the blob");
    assert!(stored == content);
}

/// A way to a registry on which so many connections end after they sent some bytes.
fn cutting_proxy(target: u16, bytes: usize, cuts: Arc<AtomicUsize>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let host = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let cuts = Arc::clone(&cuts);
            std::thread::spawn(move || carry(client, target, bytes, &cuts));
        }
    });
    host
}

fn carry(mut client: TcpStream, target: u16, bytes: usize, cuts: &AtomicUsize) {
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)) else { return };
    let (Ok(mut from_server), Ok(mut to_client)) = (server.try_clone(), client.try_clone()) else { return };
    std::thread::spawn(move || std::io::copy(&mut from_server, &mut to_client));
    let (mut sent, mut buffer) = (0, [0_u8; 16 * 1024]);
    while let Ok(count @ 1..) = client.read(&mut buffer) {
        sent += count;
        let is_cut = sent > bytes
            && cuts.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_cut || server.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    drop(client.shutdown(Shutdown::Both));
    drop(server.shutdown(Shutdown::Both));
}
