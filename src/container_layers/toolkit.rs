//! The layer of /usr/local/cuda: links to the libraries of the wheels, the compiler, and the loader's cache.
//!
//! Its step needs the libraries in place, so it runs in an image of everything below it; what it changed is collected.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;

use super::directories::{Directories, Directory};
use super::error::LayerError;
use super::kept::{KeptLayer, find, keep};
use super::limits::LARGEST_TOOLKIT;
use super::step::Tools;
use crate::archive::saved_layers::SavedLayer;
use crate::engine::{ContainerFile, Network, RunRequest};
use crate::model::bounded_tar::BoundedTar;
use crate::model::sha256::sha256_hex;
use crate::model::whiteout::{DELETES, deletes};

const SCRIPT: &str = include_str!("../../templates/steps/toolkit.py");
const WHAT: &str = "/usr/local/cuda";
/// What the step may change.
const CHANGED: [&str; 5] =
    ["/usr/local/cuda", "/usr/local/bin", "/opt/nvidia", "/etc/ld.so.conf.d", "/etc/ld.so.cache"];

/// The step that makes /usr/local/cuda.
#[derive(Debug, Clone)]
pub struct Toolkit<'a> {
    /// An image of everything below, by tag.
    pub image: &'a str,
    /// Its layers.
    pub layers: &'a [String],
    /// Its directories, as far as the step puts files into them.
    pub known: &'a Directories,
    /// `runtime`, or the gcc major that nvcc accepts.
    pub argument: &'a str,
    /// SHA-256 of the packages to unpack, hex.
    pub packages: &'a [String],
}

impl Toolkit<'_> {
    /// What the layer is a function of.
    pub fn key(&self) -> String {
        let (layers, packages) = (self.layers.join(" "), self.packages.join(" "));
        sha256_hex(format!("toolkit 1\n{SCRIPT}\n{}\n{layers}\n{packages}\n", self.argument).as_bytes())
    }

    /// The layer, if the cache has it.
    pub fn kept(&self, tools: &Tools<'_>) -> Result<Option<KeptLayer>, LayerError> {
        let kept = if tools.no_cache { None } else { find(tools.store, &self.key())? };
        Ok(kept.and_then(|mut layers| layers.pop()))
    }
}

/// Makes the layer. `debs` are the packages to unpack, below /run/envforge/toolkit.
pub async fn toolkit_layer(
    tools: &Tools<'_>,
    toolkit: Toolkit<'_>,
    debs: Vec<ContainerFile>,
) -> Result<KeptLayer, LayerError> {
    let key = toolkit.key();
    let below = tools.engine.read_files(toolkit.image, &CHANGED, LARGEST_TOOLKIT).await?;
    let script = ContainerFile {
        path: "/run/envforge/toolkit.py".to_owned(),
        mode: 0o644,
        bytes: SCRIPT.as_bytes().into(),
    };
    let request = RunRequest {
        image: toolkit.image.to_owned(),
        command: ["/usr/bin/python3", "-I", "-B", "/run/envforge/toolkit.py", toolkit.argument]
            .map(str::to_owned)
            .to_vec(),
        user: Some("0:0".to_owned()),
        files: std::iter::once(script).chain(debs).collect(),
        network: Network::None,
        report_as: Some("toolkit".to_owned()),
        collect: CHANGED.map(str::to_owned).to_vec(),
        most_collected: Some(LARGEST_TOOLKIT),
        ..RunRequest::default()
    };
    let mut outcome = tools.engine.run(request, Arc::clone(&tools.reporter)).await?;
    if outcome.code != 0 {
        let text =
            String::from_utf8_lossy(&outcome.stderr).into_owned() + &String::from_utf8_lossy(&outcome.stdout);
        let output = text.lines().map(str::to_owned).collect();
        return Err(LayerError::Step { what: WHAT, code: outcome.code, output });
    }
    let collected = std::mem::take(&mut outcome.collected);
    let (known, store) = (toolkit.known.clone(), tools.store.clone());
    let made = tokio::task::spawn_blocking(move || {
        let scratch = || store.temp_file().map_err(std::io::Error::other);
        let raw = changes(&below, &collected, &known, scratch()?.into_file())?;
        let layer =
            SavedLayer::of(raw, scratch()?).map_err(|source| LayerError::Content { what: WHAT, source })?;
        keep(&store, &key, vec![layer]).map_err(LayerError::from)
    });
    let mut layers = made.await.map_err(std::io::Error::other)??;
    Ok(layers.remove(0))
}

type Tars = BTreeMap<String, Vec<u8>>;

/// Writes what `after` has and `before` has not, or has otherwise, with the directories above it.
fn changes<W: std::io::Write>(
    before: &Tars,
    after: &Tars,
    known: &Directories,
    out: W,
) -> std::io::Result<W> {
    let mut tar = tar::Builder::new(out);
    let mut listed = std::collections::BTreeSet::new();
    for (top, bytes) in after {
        let old = before.get(top).map(|bytes| hashes(bytes)).transpose()?.unwrap_or_default();
        let parent = top.trim_start_matches('/').rsplit_once('/').map_or("", |(parent, _)| parent);
        let mut archive = BoundedTar::new(bytes.as_slice());
        for entry in archive.entries()? {
            let mut entry = entry?;
            let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            let mut content = Vec::new();
            entry.read_to_end(&mut content)?;
            if old.get(&name) == Some(&hash(entry.header(), &entry_link(&entry), &content)?) {
                continue;
            }
            let path = format!("{parent}/{}", name.trim_end_matches('/'));
            if deletes(path.as_bytes()) {
                return Err(std::io::Error::other(format!("`/{}`: {DELETES}", path.escape_debug())));
            }
            for (end, _) in path.match_indices('/') {
                if listed.insert(path[..end].to_owned()) {
                    append_folder(&mut tar, &path[..end], known)?;
                }
            }
            let mut header = entry.header().clone();
            match header.entry_type() {
                tar::EntryType::Symlink | tar::EntryType::Link => {
                    let link = entry_link(&entry);
                    tar.append_link(&mut header, &path, String::from_utf8_lossy(&link).as_ref())?;
                }
                tar::EntryType::Directory => {
                    if listed.insert(path.clone()) {
                        tar.append_data(&mut header, format!("{path}/"), std::io::empty())?;
                    }
                }
                _ => tar.append_data(&mut header, &path, content.as_slice())?,
            }
        }
    }
    tar.into_inner()
}

fn append_folder(
    tar: &mut tar::Builder<impl std::io::Write>,
    path: &str,
    known: &Directories,
) -> std::io::Result<()> {
    let Directory { mode, uid, gid } = known.get(path).copied().unwrap_or(Directory::ROOT);
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Directory);
    header.set_mode(mode);
    header.set_uid(uid.into());
    header.set_gid(gid.into());
    header.set_size(0);
    tar.append_data(&mut header, format!("{path}/"), std::io::empty())
}

fn hashes(bytes: &[u8]) -> std::io::Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    for entry in BoundedTar::new(bytes).entries()? {
        let mut entry = entry?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        let hash = hash(entry.header(), &entry_link(&entry), &content)?;
        all.insert(name, hash);
    }
    Ok(all)
}

fn entry_link(entry: &tar::Entry<'_, impl std::io::Read>) -> Vec<u8> {
    entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// Everything of an entry but its time.
fn hash(header: &tar::Header, link: &[u8], content: &[u8]) -> std::io::Result<String> {
    let mut bytes =
        format!("{:?} {:o} {} {}\n", header.entry_type(), header.mode()?, header.uid()?, header.gid()?)
            .into_bytes();
    bytes.extend(link);
    bytes.push(0);
    bytes.extend(content);
    Ok(sha256_hex(&bytes))
}
