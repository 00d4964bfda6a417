//! The container engine as a test sees it: the docker client, what is there, and what was left behind.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the docker client; the test fails if it fails.
pub(crate) fn docker(args: &[&str]) -> String {
    let output = Command::new("docker").args(args).output().expect("the docker client starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "docker {}: {stderr}", args.join(" "));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Keeps the layers of an image on the engine under a tag of their own, so that the next test does not apply a gigabyte again:
/// an image of the same layers without any label.
pub(crate) fn keep_layers(image: &str) {
    const KEPT: &str = "tests-of-ef:layers";
    let layers = |image: &str| {
        let list = Command::new("docker").args(["inspect", "-f", "{{json .RootFS.Layers}}", image]).output();
        serde_json::from_slice::<Vec<String>>(&list.expect("docker starts").stdout).unwrap_or_default()
    };
    let (wanted, kept) = (layers(image), layers(KEPT));
    // Base, system and the empty environment: what lies above differs from test to test.
    if wanted.is_empty() || wanted.iter().zip(&kept).take_while(|(one, other)| one == other).count() >= 3 {
        return;
    }
    if !kept.is_empty() {
        docker(&["rmi", KEPT]);
    }
    let config = serde_json::json!({
        "architecture": std::env::consts::ARCH.replace("x86_64", "amd64").replace("aarch64", "arm64"),
        "os": "linux", "config": {}, "rootfs": { "type": "layers", "diff_ids": wanted },
    });
    // The engine has the layers: the archive only names them.
    let files: Vec<String> = wanted.iter().map(|id| format!("blobs/{}", id.replace(':', "/"))).collect();
    let list = serde_json::json!([{ "Config": "config.json", "RepoTags": [KEPT], "Layers": files }]);
    let mut tar = tar::Builder::new(Vec::new());
    for (name, text) in [("config.json", config.to_string()), ("manifest.json", list.to_string())] {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        tar.append_data(&mut header, name, text.as_bytes()).expect("memory takes it");
    }
    let archive = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(archive.path(), tar.into_inner().expect("memory takes it")).expect("written");
    docker(&["load", "-q", "-i", &archive.path().to_string_lossy()]);
}

/// The address of this machine that containers on the default bridge reach.
pub(crate) fn bridge_address() -> IpAddr {
    let text = docker(&[
        "network",
        "inspect",
        "bridge",
        "--format",
        "{{range .IPAM.Config}}{{.Gateway}} {{.Subnet}}\n{{end}}",
    ]);
    for line in text.lines() {
        let (gateway, subnet) = line.split_once(' ').expect("gateway and subnet");
        if let Ok(address) = gateway.parse() {
            return address;
        }
        // An engine that lists no gateway takes the first address of the subnet.
        if let Some(Ok(IpAddr::V4(network))) = subnet.split('/').next().map(str::parse) {
            return IpAddr::V4((u32::from(network) + 1).into());
        }
    }
    panic!("the default bridge has no address: {text}")
}

/// The socket of the engine that the tests use: that of `DOCKER_HOST`, or the default one.
pub(crate) fn engine_socket() -> PathBuf {
    let host = std::env::var("DOCKER_HOST").unwrap_or_default();
    host.strip_prefix("unix://").unwrap_or("/var/run/docker.sock").into()
}

/// The records of the engine's build cache, by id, but for those that are mounted while building: downloads, and what
/// compilers made.
pub(crate) fn build_cache() -> BTreeSet<String> {
    let text = docker(&["system", "df", "-v", "--format", "{{json .BuildCache}}"]);
    let records: Vec<serde_json::Value> = serde_json::from_str(&text).unwrap_or_default();
    let lasting = |record: &&serde_json::Value| record["CacheType"] != "exec.cachemount";
    let id = |record: &serde_json::Value| Some(record["ID"].as_str()?.trim_end_matches('*').to_owned());
    records.iter().filter(lasting).filter_map(id).collect()
}

/// Frees records of the build cache that were added since. What others use, now or as their parent, the engine keeps.
pub(crate) fn free_build_cache(before: &BTreeSet<String>) {
    // Each round frees the records that the last one left without children.
    for _ in 0..20 {
        let added: Vec<_> = build_cache().difference(before).cloned().collect();
        for id in &added {
            let filter = format!("id={id}");
            let args = ["builder", "prune", "-a", "-f", "--filter", &filter];
            drop(Command::new("docker").args(args).output());
        }
        if build_cache().difference(before).count() == added.len() {
            return;
        }
    }
}

/// Containers and images that envforge may have made, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inventory {
    /// Containers, `id image command`.
    pub(crate) containers: BTreeSet<String>,
    /// Tags, `repository:tag`.
    pub(crate) tags: BTreeSet<String>,
    /// Untagged images, by id.
    pub(crate) untagged: BTreeSet<String>,
}

impl Inventory {
    /// What is there now.
    pub(crate) fn now() -> Self {
        let lines = |args: &[&str]| docker(args).lines().map(str::to_owned).collect();
        let ours = |line: &String| line.contains("envforge") || line.contains("pytorch-cuda");
        let tags: BTreeSet<_> = lines(&["images", "--format", "{{.Repository}}:{{.Tag}}"]);
        let containers: BTreeSet<String> =
            lines(&["ps", "-a", "--no-trunc", "--format", "{{.ID}} {{.Image}} {{.Names}} {{.Labels}}"]);
        Self {
            containers: containers
                .into_iter()
                .filter(ours)
                .filter(|line| !belongs_to_a_running_program(line))
                .collect(),
            tags: tags.into_iter().filter(ours).filter(|tag| !is_in_the_making(tag)).collect(),
            untagged: lines(&["images", "--no-trunc", "-q", "--filter", "dangling=true"]),
        }
    }

    /// What is there now and was not then. A finished base is kept on purpose: the next build starts from it.
    pub(crate) fn added(&self) -> Self {
        let now = Self::now();
        let new = |then: &BTreeSet<String>, now: BTreeSet<String>| now.difference(then).cloned().collect();
        let mut tags: BTreeSet<_> = new(&self.tags, now.tags);
        tags.retain(|tag| !is_finished_base(tag));
        Self {
            containers: new(&self.containers, now.containers),
            tags,
            untagged: new(&self.untagged, now.untagged),
        }
    }

    /// True if there is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.containers.is_empty() && self.tags.is_empty() && self.untagged.is_empty()
    }
}

/// `envforge-base:` and 16 hex digits; anything else under that name is a base in the making.
fn is_finished_base(tag: &str) -> bool {
    let digest = tag.strip_prefix("envforge-base:").unwrap_or_default();
    digest.len() == 16 && digest.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True if a program that still runs builds under that private tag.
fn is_in_the_making(tag: &str) -> bool {
    let pid = tag.strip_prefix("envforge-scratch:").and_then(|rest| rest.split('-').next());
    pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}

/// True if the program that made the container still runs: on a shared engine that is somebody else's.
fn belongs_to_a_running_program(line: &str) -> bool {
    let pid = line.split("io.envforge.run=").nth(1).and_then(|label| label.split('-').next());
    pid.is_some_and(|pid| Path::new("/proc").join(pid).exists())
}
