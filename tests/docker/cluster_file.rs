//! Files that a cluster starts: what squashfs-tools read of them is the image, and their scripts start it.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::disk::SmallDisk;
use crate::engine::docker;
use crate::registry::Registry;
use crate::scene::{SPEC, Scene, TAG, files_below, interrupt_when};

/// What an engine puts into each container, and what is in the file for its runtimes.
const ELSEWHERE: [&str; 6] =
    [".dockerenv", "dev", "etc/hostname", "etc/hosts", "etc/resolv.conf", "etc/mtab"];
const OF_RUNTIMES: [&str; 6] = [
    ".singularity.d",
    "etc/environment",
    "etc/fstab",
    "etc/profile.d/zz-envforge.sh",
    "etc/rc",
    "etc/rc.local",
];

fn counts(path: &str) -> bool {
    let is_below = |folder: &str| path == folder || path.starts_with(&format!("{folder}/"));
    !ELSEWHERE.iter().chain(&OF_RUNTIMES).any(|folder| is_below(folder))
}

fn hash(bytes: &[u8]) -> String {
    format!("{:?}", <[u8; 32]>::from(Sha256::digest(bytes)))
}

/// The paths of the image as its engine exports them.
fn of_engine() -> BTreeMap<String, String> {
    let container = docker(&["create", TAG, "true"]);
    let mut export =
        Command::new("docker").args(["export", &container]).stdout(Stdio::piped()).spawn().expect("docker");
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut archive = tar::Archive::new(export.stdout.take().expect("piped"));
    for entry in archive.entries().expect("a tar") {
        let mut entry = entry.expect("an entry");
        let clean = |path: &[u8]| String::from_utf8_lossy(path).trim_matches('/').to_owned();
        let path = clean(&entry.path_bytes());
        let header = entry.header();
        let (mode, owner) = (header.mode().expect("a mode") & 0o7777, header.uid().expect("a user"));
        let kind = header.entry_type();
        let target = entry.link_name_bytes().map(|target| String::from_utf8_lossy(&target).into_owned());
        let what = if kind.is_hard_link() {
            found[&clean(target.expect("a target").as_bytes())].clone()
        } else if kind.is_dir() {
            format!("{mode:o} {owner} folder")
        } else if kind.is_symlink() {
            format!("-> {}", target.expect("a target"))
        } else {
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("readable");
            format!("{mode:o} {owner} {}", hash(&content))
        };
        found.insert(path, what);
    }
    assert!(export.wait().expect("a child of ours").success());
    docker(&["rm", &container]);
    found.retain(|path, _| !path.is_empty() && counts(path));
    found
}

/// The same of an unpacked file.
fn of_folder(folder: &Path) -> BTreeMap<String, String> {
    let (mut found, mut waiting) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(next) = waiting.pop() {
        for entry in std::fs::read_dir(&next).expect("readable") {
            let path = entry.expect("an entry").path();
            let data = path.symlink_metadata().expect("there");
            let (mode, owner) = (data.permissions().mode() & 0o7777, data.uid());
            let what = if data.is_symlink() {
                format!("-> {}", path.read_link().expect("a link").display())
            } else if data.is_dir() {
                waiting.push(path.clone());
                format!("{mode:o} {owner} folder")
            } else {
                format!("{mode:o} {owner} {}", hash(&std::fs::read(&path).expect("readable")))
            };
            found.insert(path.strip_prefix(folder).expect("below").to_string_lossy().into_owned(), what);
        }
    }
    found.retain(|path, _| counts(path));
    found
}

/// Runs a command in an unpacked file as the runtimes do: without the variables of an engine.
fn in_folder(folder: &Path, command: &[&str]) -> String {
    let run =
        Command::new("/usr/sbin/chroot").arg(folder).args(command).env_clear().output().expect("chroot");
    assert!(run.status.success(), "{command:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8").trim().to_owned()
}

#[test]
#[ignore = "needs docker"]
fn zstd_layers_are_the_same_image_and_an_engine_that_cannot_read_them_is_named() {
    let registry = Registry::open();
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    let reference = format!("{}/team/torch:2.7", registry.host());
    let run = scene.succeed(&["push", SPEC, &reference, "--compression", "zstd"]);
    let version = docker(&["version", "-f", "{{.Server.Version}}"]);
    let is_old =
        version.split('.').next().and_then(|major| major.parse().ok()).is_some_and(|major: u32| major < 23);
    assert_eq!(run.stderr.contains("cannot pull layers compressed with zstd"), is_old, "{}", run.stderr);
    let pinned = run.stdout.trim().replace("-unverified@", "@");
    let (name, digest) = pinned.split_once('@').expect("a digest");
    let name = name.rsplit_once(':').expect("a tag").0;
    let image = format!("docker://{name}@{digest}");
    let read = |args: &[&str]| -> Value {
        let run = Command::new("skopeo").args(args).arg(&image).output().expect("skopeo of the distribution");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
        serde_json::from_slice(&run.stdout).expect("JSON")
    };
    let manifest = read(&["inspect", "--tls-verify=false", "--raw"]);
    for layer in manifest["layers"].as_array().expect("layers") {
        assert_eq!(layer["mediaType"], "application/vnd.oci.image.layer.v1.tar+zstd");
    }
    let config = read(&["inspect", "--tls-verify=false", "--config"]);
    let layers: Value =
        serde_json::from_str(&docker(&["inspect", "-f", "{{json .RootFS.Layers}}", TAG])).expect("JSON");
    assert_eq!(config["rootfs"]["diff_ids"], layers);
    docker(&["rmi", &format!("{reference}-unverified")]);
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn squashfs_and_sif_are_the_image_and_their_scripts_start_it() {
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    let written = scene.succeed(&["export", "squashfs", SPEC, "torch.sqsh", "--json"]).stdout;
    let written: Value = serde_json::from_str(&written).expect("JSON");
    let file = scene.program.path("torch.sqsh");
    assert_eq!(written["size"].as_u64(), Some(file.metadata().expect("there").len()));
    assert_eq!(written["image"].as_str(), Some(docker(&["inspect", "-f", "{{.Id}}", TAG]).as_str()));

    let folder = scene.program.path("unpacked");
    let unpacked = Command::new("unsquashfs").args(["-no-progress", "-d"]).arg(&folder).arg(&file).output();
    let unpacked = unpacked.expect("squashfs-tools");
    assert!(unpacked.status.success(), "{}", String::from_utf8_lossy(&unpacked.stderr));
    let (image, unpacked) = (of_engine(), of_folder(&folder));
    assert!(image.len() > 5_000, "{}", image.len());
    let different: Vec<_> = image.iter().filter(|(path, what)| unpacked.get(*path) != Some(what)).collect();
    assert!(different.is_empty(), "{different:?}");
    let more: Vec<_> = unpacked.keys().filter(|path| !image.contains_key(*path)).collect();
    assert!(more.is_empty(), "{more:?}");

    let python = "import sys, os; print(sys.prefix, os.environ['PIP_CONSTRAINT'])";
    let prefix = "/opt/env /opt/envforge/constraints.txt";
    // enroot gives the variables of /etc/environment and runs /etc/rc; a login shell alone has the PATH.
    let rc = format!("set -a; . /etc/environment; exec sh /etc/rc python3 -c \"{python}\"");
    assert_eq!(in_folder(&folder, &["/bin/sh", "-c", &rc]), prefix);
    assert_eq!(in_folder(&folder, &["/bin/bash", "-lc", "command -v python3"]), "/opt/env/bin/python3");
    let apptainer = format!(
        "for file in /.singularity.d/env/*.sh; do . $file; done; /.singularity.d/runscript python3 -c \"{python}\""
    );
    assert_eq!(in_folder(&folder, &["/bin/sh", "-c", &apptainer]), prefix);
    let libraries = "for file in /.singularity.d/env/*.sh; do . $file; done; echo $LD_LIBRARY_PATH";
    assert!(in_folder(&folder, &["/bin/sh", "-c", libraries]).ends_with("/.singularity.d/libs"));

    // Without the engine, from the lock: the same bytes behind the front of a SIF.
    let mut command = scene.program.command(&["export", "sif", SPEC, "torch.sif"]);
    let run = command.env("DOCKER_HOST", "unix:///nowhere.sock").output().expect("it starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let bytes = |name: &str| std::fs::read(scene.program.path(name)).expect("there");
    let (squashfs, sif) = (bytes("torch.sqsh"), bytes("torch.sif"));
    assert!(sif[32_768..] == squashfs);
    assert!(sif.starts_with(b"#!/usr/bin/env run-singularity\n\0SIF_MAGIC"));

    scene.fail(&["export", "squashfs", SPEC, "torch.sqsh"], 2, &["torch.sqsh` already exists", "--force"]);
    scene.succeed(&["export", "squashfs", SPEC, "torch.sqsh", "--force", "--compression", "gzip:1"]);
    assert_ne!(bytes("torch.sqsh"), squashfs);
    scene.assert_only_tags_added();
    scene.assert_no_temporary_files();
}

/// The wheels of the image fit, all of it does not: the disk is full in the middle.
#[test]
#[ignore = "needs docker"]
fn full_disk_and_ctrl_c_in_the_middle_leave_nothing_of_a_file() {
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    let whole = scene.succeed(&["export", "squashfs", SPEC, "whole.sqsh", "--json"]).stdout;
    let whole: Value = serde_json::from_str(&whole).expect("JSON");
    let whole = whole["size"].as_u64().expect("a size");
    let size_of =
        |line: &str| line.split("size = ").nth(1)?.split([',', ' ', '}']).next()?.parse::<u64>().ok();
    let wheels: u64 = scene.lock().lines().filter(|line| line.contains(".whl\"")).filter_map(size_of).sum();
    assert!(wheels > 0 && wheels < whole, "{wheels} and {whole}");
    let room = format!("{}k", (wheels + whole) / 2048);
    let disk = SmallDisk::on(scene.program.path("small-disk"), &room);
    let args = ["export", "squashfs", SPEC, "small-disk/torch.sqsh"];
    let said = scene.fail(&args, 3, &["cannot write `", "small-disk/torch.sqsh`", "No space left on device"]);
    assert!(said.contains("free disk space on that file system"), "{said}");
    assert!(!said.contains("/.envforge-"), "a name that is no user's: {said}");
    assert!(files_below(disk.path()).is_empty(), "{:?}", files_below(disk.path()));
    disk.grow("2g");
    scene.succeed(&args);
    assert_eq!(files_below(disk.path()).len(), 1);

    // At that level the file takes minutes.
    let args =
        ["export", "squashfs", SPEC, "out/torch.sqsh", "--compression", "zstd:19", "--progress", "json"];
    let run = interrupt_when(scene.program.command(&args).spawn().expect("it starts"), "\"id\":\"file\"");
    assert_eq!(run.code, 130, "{}", run.stderr);
    let out = scene.program.path("out");
    assert!(files_below(&out).is_empty(), "{:?}", files_below(&out));
    scene.assert_only_tags_added();
}
