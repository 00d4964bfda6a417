//! Locks of earlier releases keep their image: files, Dockerfile and configuration were recorded with the release that made them.
#![expect(clippy::disallowed_methods, reason = "reads the fixtures")]

use std::fmt::Write as _;

use bytes::Bytes;

use super::config::{MadeLayer, config};
use super::context::ContextContent;
use super::info::ImageInfo;
use super::plan::{BaseSource, BuildPlan, CachedFile, ContextFiles, plan};
use crate::model::lock::{Lock, LockedDeb};
use crate::model::sha256::sha256_hex;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lock/products");

fn planned(lock: &Lock) -> BuildPlan {
    let paths = |debs: &[LockedDeb]| debs.iter().map(|deb| deb.path.clone().into()).collect();
    let uv = CachedFile { path: "uv".into(), size: 1, sha256: "c".repeat(64) };
    let local = lock.local_wheels().map(|wheel| (wheel.file.clone(), uv.clone())).collect();
    let files = ContextFiles {
        bottom: BaseSource::Image("base".to_owned()),
        debs: paths(&lock.system),
        unpacked: paths(&lock.unpacked),
        apt: paths(&lock.apt),
        copies: Vec::new(),
        wheels: Vec::new(),
        local,
        uv,
        agent: Bytes::from_static(b"agent"),
    };
    plan(lock, files)
}

/// What decides the image: the steps of the Dockerfile without its comments, and every file of the context.
fn recipe(plan: &BuildPlan) -> String {
    let mut text = String::new();
    for entry in &plan.context {
        let (hash, size) = match &entry.content {
            ContextContent::Bytes(bytes) if entry.path == "Dockerfile" => {
                let dockerfile = std::str::from_utf8(bytes).expect("text");
                let steps: Vec<_> = dockerfile.lines().filter(|line| !line.starts_with('#')).collect();
                (sha256_hex(steps.join("\n").as_bytes()), 0)
            }
            ContextContent::Bytes(bytes) => (sha256_hex(bytes), bytes.len() as u64),
            ContextContent::File { size, sha256, .. } => (sha256.clone(), *size),
        };
        let _ = writeln!(text, "{} {:o} {size} {hash}", entry.path, entry.mode);
    }
    text
}

/// The configuration of the image on a base of one layer.
fn configuration(lock: &Lock, plan: &BuildPlan) -> String {
    let base = ImageInfo {
        layers: vec!["sha256:base".to_owned()],
        env: vec!["PATH=/usr/bin".to_owned()],
        ..ImageInfo::default()
    };
    let made = ["system", "cuda", "framework", "stack", "files"].map(|component| MadeLayer {
        component: component.to_owned(),
        title: component.to_owned(),
        diff_id: format!("sha256:{component}"),
    });
    config(&plan.image, &base, lock.stack.machine, &made)
}

#[test]
fn lock_of_an_earlier_release_keeps_its_image() {
    let sums = fs_err::read_to_string(format!("{FIXTURES}/SHA256")).expect("a fixture");
    let recorded = fs_err::read_to_string(format!("{FIXTURES}/IMAGES")).expect("a fixture");
    let mut found = String::new();
    for file in sums.lines().filter_map(|line| line.split_once("  ")).map(|(_, file)| file) {
        let text = fs_err::read_to_string(format!("{FIXTURES}/{file}")).expect("a fixture");
        let lock = Lock::from_toml(file, &text).expect(file);
        let plan = planned(&lock);
        let digests = [recipe(&plan), configuration(&lock, &plan)].map(|text| sha256_hex(text.as_bytes()));
        let _ = writeln!(found, "{}  {file}", digests.join("  "));
    }
    assert_eq!(found, recorded, "an old lock has another image: it must have a schema of its own");
}
