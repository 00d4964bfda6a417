//! Vendor folders of the hostile set: a whole folder, of which `vendor.toml` changes a part, beside an engine that does not
//! have the base.

use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde::Deserialize;

use super::case::{Case, Outcome};
use super::project::{Edit, Scene, lock, outcome};
use crate::wheels::{WheelSpec, sha256};

/// What is wrong with the folder.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Folder {
    /// The entries of the base's archive, if not one with the correct tag.
    entry: Vec<Entry>,
    /// Bytes instead of the archive, under its name.
    archive: Option<String>,
    /// Changes of the base's record.
    record: Vec<Edit>,
    /// Changes of the lock, whose name stays.
    lock: Vec<Edit>,
    /// The lock's name, if not its hash.
    lock_name: Option<String>,
    /// Bytes instead of the wheel, under its name.
    wheel: Option<String>,
    /// Files below the folder in whose place a pipe is that nobody writes to; `*` is the only file of its folder.
    pipe: Vec<String>,
    /// A link in place of the wheel.
    wheel_link: Option<String>,
}

/// An entry of the archive; `{tag}` is the tag of the base.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    name: String,
    content: String,
    /// The target of a symbolic link.
    link: Option<String>,
}

impl Folder {
    fn archive(&self, tag: &str) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        let usual = [
            ("x.json", r#"{"rootfs":{"type":"layers","diff_ids":[]}}"#),
            ("manifest.json", r#"[{"Config":"x.json","RepoTags":["{tag}"],"Layers":[]}]"#),
        ];
        let usual =
            usual.map(|(name, content)| Entry { name: name.into(), content: content.into(), link: None });
        for entry in if self.entry.is_empty() { usual.iter() } else { self.entry.iter() } {
            let content = entry.content.replace("{tag}", tag);
            let mut header = tar::Header::new_gnu();
            // As bytes: `tar` would clean or refuse the names that this is about.
            let name = &mut header.as_old_mut().name;
            name[..entry.name.len()].copy_from_slice(entry.name.as_bytes());
            if let Some(target) = &entry.link {
                header.set_entry_type(tar::EntryType::Symlink);
                header.set_link_name(target).expect("a short target");
                header.set_size(0);
            } else {
                header.set_size(content.len() as u64);
                header.set_mode(0o644);
            }
            header.set_cksum();
            let bytes = if entry.link.is_some() { &[] } else { content.as_bytes() };
            tar.append(&header, bytes).expect("in memory");
        }
        tar.into_inner().expect("in memory")
    }

    fn write(&self, scene: &Scene) {
        let uv = WheelSpec::new("uv", "1.0").file("uv-1.0.data/scripts/uv", "a program\n").build();
        let one = WheelSpec::new("demo-one", "1.0").file("demo_one.py", "ONE = 1\n").build();
        let mut lock = lock();
        (lock.tools[0].file, lock.tools[0].sha256) = (uv.file, sha256(&uv.bytes));
        lock.wheels[0].sha256 = sha256(&one.bytes);
        let text = lock.to_toml();
        scene.write("project/envforge.lock", &text);
        let name = self.lock_name.clone().unwrap_or_else(|| format!("{}.lock", lock.hash()));
        scene.write(&format!("project/vendor/locks/{name}"), &Edit::all(&self.lock, text));
        let place = |hash: &str| format!("project/vendor/files/{}/{hash}", &hash[..2]);
        let write = |path: &str, bytes: &[u8]| {
            scene.write(path, "");
            std::fs::write(scene.program.path(path), bytes).expect("ours");
        };
        write(&place(&sha256(&uv.bytes)), &uv.bytes);
        let wheel = place(&sha256(&one.bytes));
        write(&wheel, self.wheel.as_ref().map_or(&one.bytes[..], |text| text.as_bytes()));
        if let Some(target) = &self.wheel_link {
            std::fs::remove_file(scene.program.path(&wheel)).expect("ours");
            std::os::unix::fs::symlink(Path::new(target), scene.program.path(&wheel)).expect("ours");
        }
        let hex = "a".repeat(64);
        let archive = self.archive(&format!("envforge-base:{}", &hex[..16]));
        let hash = sha256(&archive);
        write(&place(&hash), self.archive.as_ref().map_or(&archive[..], |text| text.as_bytes()));
        let record = format!(
            "digest = \"sha256:{hex}\"\nname = \"debian:12\"\nmachine = \"x86_64\"\narchive = \"{hash}\"\n"
        );
        scene.write(&format!("project/vendor/bases/{hex}-x86_64.toml"), &Edit::all(&self.record, record));
        for path in &self.pipe {
            let mut path = scene.program.path("project/vendor").join(path);
            if path.ends_with("*") {
                path.pop();
                let mut entries = std::fs::read_dir(&path).expect("a folder of ours");
                path = entries.next().expect("one file").expect("readable").path();
            }
            std::fs::remove_file(&path).expect("ours");
            mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).expect("ours");
        }
    }
}

/// Runs the commands of a case, each with a new folder.
pub(super) fn attempt(case: &Case) -> Vec<Outcome> {
    let folder: Folder = case.toml("vendor.toml");
    let attempt = |args: &Vec<String>| {
        let scene = Scene::with_tags(case, Vec::new());
        folder.write(&scene);
        outcome(case, &scene, args)
    };
    case.expect.commands.iter().map(attempt).collect()
}
