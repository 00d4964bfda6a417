//! What squashfs-tools read of it, which are not ours.
#![expect(clippy::disallowed_methods, reason = "tests start a program")]

use std::collections::BTreeMap;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::process::Command;

use super::super::contents::BLOCK;
use super::*;
use crate::archive::tree::{Kind, Node};

/// A tree with the contents of its files.
#[derive(Default)]
struct Made {
    tree: Tree<Slot>,
    contents: Vec<Vec<u8>>,
}

impl Made {
    fn slot(&mut self, content: &[u8]) -> Slot {
        self.contents.push(content.to_vec());
        Slot::try_from(self.contents.len() - 1).expect("few")
    }

    fn file(&mut self, path: &str, content: &[u8]) -> Slot {
        let slot = self.slot(content);
        self.name(path, slot);
        slot
    }

    fn name(&mut self, path: &str, slot: Slot) {
        self.insert(path, Kind::File(slot), 0o644);
    }

    fn insert(&mut self, path: &str, kind: Kind<Slot>, mode: u32) {
        self.tree.insert(path.as_bytes().to_vec(), Node::of_root(kind, mode));
    }

    fn write(
        &self,
        compression: FileCompression,
        cores: usize,
        front: u64,
    ) -> (tempfile::NamedTempFile, u64) {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        let options = SquashfsOptions { compression, cores, front };
        let size = write_squashfs(file.as_file_mut(), options, &self.tree, |contents| {
            for (slot, content) in self.contents.iter().enumerate() {
                let slot = Slot::try_from(slot).expect("few");
                contents.add(slot, (content.len() as u64, None), |give| {
                    content.chunks(70_000).try_for_each(give).map_err(ClusterFileError::Write)
                })?;
            }
            Ok::<_, ClusterFileError>(())
        });
        let size = size.expect("written");
        assert_eq!(file.as_file().metadata().expect("there").len(), front + size);
        (file, size)
    }
}

const ZSTD: FileCompression = FileCompression::Zstd(1);

/// Bytes that no compressor makes smaller.
fn noise(count: usize) -> Vec<u8> {
    let mut state = count as u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..count).map(|_| next()).collect()
}

fn unsquashfs(arguments: &[&str]) -> String {
    let done = Command::new("unsquashfs").args(arguments).output().expect("squashfs-tools");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    text
}

/// One of each kind, and each size at which the form of a file changes.
fn everything() -> Made {
    let mut made = Made::default();
    made.file("empty", b"");
    made.file("small", b"small\n");
    made.file("same-as-small", b"small\n");
    let linked = made.file("linked", &noise(9_000));
    made.name("other/name-of-linked", linked);
    made.name("third-name-of-linked", linked);
    for size in [BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
        made.file(&format!("noise-{size}"), &noise(size));
        made.file(&format!("zeros-{size}"), &vec![0; size]);
    }
    made.insert("folder/empty", Kind::Directory, 0o700);
    made.insert("link", Kind::Symlink(b"folder/empty".to_vec()), 0o777);
    made.insert("pipe", Kind::Special(tar::EntryType::Fifo, 0, 0), 0o600);
    made.insert("null", Kind::Special(tar::EntryType::Char, 1, 3), 0o666);
    made.insert("disk", Kind::Special(tar::EntryType::Block, 259, 700), 0o660);
    let slot = made.slot(b"of a user");
    let owned = Node { uid: 1000, gid: 100, time: 315_619_200, ..Node::of_root(Kind::File(slot), 0o4750) };
    made.tree.insert(b"owned".to_vec(), owned);
    made.file(&"n".repeat(255), b"a long name");
    made
}

/// Everything that a folder holds: kind, mode, owner and content.
fn listing(folder: &std::path::Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs_err::read_dir(&next).expect("readable") {
            let path = entry.expect("an entry").path();
            let data = fs_err::symlink_metadata(&path).expect("there");
            let kind = data.file_type();
            let what = if kind.is_dir() {
                waiting.push(path.clone());
                "folder".to_owned()
            } else if kind.is_symlink() {
                format!("-> {}", fs_err::read_link(&path).expect("a link").display())
            } else if kind.is_file() {
                crate::model::sha256::sha256_hex(&fs_err::read(&path).expect("readable"))
            } else {
                format!("{:?} {}", (kind.is_fifo(), kind.is_char_device()), data.rdev())
            };
            let name = path.strip_prefix(folder).expect("below").to_string_lossy().into_owned();
            let mode = data.permissions().mode() & 0o7777;
            found.insert(name, format!("{mode:o} {}:{} {what}", data.uid(), data.gid()));
        }
    }
    found
}

fn expected(made: &Made) -> BTreeMap<String, String> {
    let line = |(path, node): (&[u8], &Node<Slot>)| {
        let what = match &node.kind {
            Kind::Directory => "folder".to_owned(),
            Kind::Symlink(target) => format!("-> {}", String::from_utf8_lossy(target)),
            Kind::File(slot) => crate::model::sha256::sha256_hex(&made.contents[*slot as usize]),
            Kind::Special(tar::EntryType::Fifo, ..) => "(true, false) 0".to_owned(),
            Kind::Special(kind, major, minor) => {
                let device = rustix::fs::makedev(*major, *minor);
                format!("(false, {}) {device}", *kind == tar::EntryType::Char)
            }
            Kind::Sparse => unreachable!("none is made"),
        };
        let path = String::from_utf8_lossy(path).into_owned();
        (path, format!("{:o} {}:{} {what}", node.mode, node.uid, node.gid))
    };
    made.tree.iter().map(line).collect()
}

#[test]
#[ignore = "needs squashfs-tools as root"]
fn other_program_unpacks_what_was_put_in() {
    let made = everything();
    for compression in [ZSTD, FileCompression::Zstd(9), FileCompression::Gzip(6), FileCompression::Lz4] {
        let (file, size) = made.write(compression, 2, 0);
        let folder = tempfile::tempdir().expect("a folder");
        let out = folder.path().join("out");
        let path = file.path().to_str().expect("UTF-8");
        unsquashfs(&["-no-progress", "-d", out.to_str().expect("UTF-8"), path]);
        assert_eq!(listing(&out), expected(&made), "{compression}");
        let inode = |name: &str| fs_err::metadata(out.join(name)).expect("there").ino();
        assert_eq!(inode("linked"), inode("other/name-of-linked"));
        assert_ne!(inode("small"), inode("same-as-small"), "they only share their content");
        assert_eq!(fs_err::metadata(out.join("owned")).expect("there").mtime(), 315_619_200);
        let said = unsquashfs(&["-s", path]);
        assert!(said.contains(&format!("Compression {}", compression.name())), "{said}");
        assert_eq!(size % 4096, 0);
    }
}

#[test]
#[ignore = "needs squashfs-tools"]
fn folder_of_70_000_names_and_a_file_of_4_gib_are_listed() {
    let mut made = Made::default();
    for number in 0..70_000 {
        made.file(&format!("many/file-{number}"), b"");
    }
    let huge = made.slot(b"");
    made.name("huge", huge);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let options = SquashfsOptions { compression: ZSTD, cores: 2, front: 0 };
    let size = (4 << 30) + 5;
    write_squashfs(file.as_file_mut(), options, &made.tree, |contents| {
        for slot in 0..70_000 {
            contents.add(slot, (0, None), |_| Ok::<_, Error>(()))?;
        }
        let zeros = vec![0; BLOCK];
        contents.add(huge, (size, None), |give| {
            (0..4096).try_for_each(|_| give(&zeros))?;
            give(&zeros[..5])
        })?;
        Ok::<_, Failed>(())
    })
    .unwrap_or_else(|error| panic!("{error:?}"));
    let path = file.path().to_str().expect("UTF-8");
    let said = unsquashfs(&["-lln", path]);
    assert_eq!(said.lines().filter(|line| line.contains("/many/file-")).count(), 70_000);
    let huge = said.lines().find(|line| line.ends_with("/huge")).expect("listed");
    assert!(huge.contains(" 4294967301 "), "{huge}");
}

/// Either error.
#[derive(Debug)]
#[expect(dead_code, reason = "shown when the test fails")]
enum Failed {
    File(ClusterFileError),
    Io(Error),
}

impl From<ClusterFileError> for Failed {
    fn from(error: ClusterFileError) -> Self {
        Self::File(error)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

#[test]
fn any_number_of_threads_gives_the_same_bytes_and_a_front_moves_them() {
    let made = everything();
    let bytes = |cores, front| fs_err::read(made.write(ZSTD, cores, front).0.path()).expect("readable");
    let one = bytes(1, 0);
    assert!(one == bytes(5, 0));
    assert!(one[..] == bytes(2, 32_768)[32_768..]);
    assert_eq!(&one[..4], b"hsqs");
}

#[test]
fn same_content_is_stored_once_and_a_known_one_is_not_asked_for() {
    let mut made = Made::default();
    made.file("a", &noise(2 * BLOCK));
    let (alone, _) = made.write(ZSTD, 1, 0);
    let small = noise(5_000);
    for number in 0..100 {
        made.file(&format!("small/{number}"), &small);
    }
    let second = made.slot(b"");
    made.name("b", second);
    let mut file = tempfile::tempfile().expect("a file");
    let options = SquashfsOptions { compression: ZSTD, cores: 1, front: 0 };
    let known = Some([7; 32]);
    let size = write_squashfs(&mut file, options, &made.tree, |contents| {
        for (slot, content) in made.contents.iter().enumerate().take(101) {
            let slot = Slot::try_from(slot).expect("few");
            let known = known.filter(|_| slot == 0);
            contents.add(slot, (content.len() as u64, known), |give| give(content))?;
        }
        contents.add(second, (made.contents[0].len() as u64, known), |_| {
            Err(Error::other("it was asked for again"))
        })?;
        Ok::<_, Failed>(())
    })
    .expect("written");
    let before = alone.as_file().metadata().expect("there").len();
    assert!(size < before + 16_384, "{size} after {before}");
}

#[test]
fn paths_that_a_squashfs_of_ours_does_not_hold_are_all_named() {
    let mut made = Made::default();
    let slot = made.file("fine", b"");
    let mut node = Node::of_root(Kind::File(slot), 0o755);
    node.xattrs.insert(b"security.capability".to_vec(), vec![1]);
    made.tree.insert(b"usr/bin/ping".to_vec(), node);
    made.insert("sparse", Kind::Sparse, 0o644);
    made.file(&"n".repeat(256), b"");
    let node = Node { uid: 1 << 32, ..Node::of_root(Kind::Directory, 0o755) };
    made.tree.insert(b"owned".to_vec(), node);
    made.insert("leads/nowhere", Kind::Symlink(Vec::new()), 0o777);
    made.insert("leads/far", Kind::Symlink(vec![b'x'; 4096]), 0o777);
    made.file("nul\0", b"");
    let node = Node { gid: u64::from(u32::MAX), ..Node::of_root(Kind::Directory, 0o755) };
    made.tree.insert(b"nobody".to_vec(), node);
    let mut out = std::io::Cursor::new(Vec::new());
    let options = SquashfsOptions { compression: ZSTD, cores: 1, front: 0 };
    let error = write_squashfs(&mut out, options, &made.tree, |_| Ok::<_, ClusterFileError>(()));
    let text = error.expect_err("refused").to_string();
    for expected in [
        "`usr/bin/ping`: extended attributes (security.capability)",
        "`sparse`: a sparse file",
        ": a name of more than 255 bytes",
        "`owned`: the owner 4294967296:0",
        "`nobody`: the owner 0:4294967295",
        "`leads/nowhere`: a link whose target",
        "`leads/far`: a link whose target",
        ": a name with a NUL byte",
    ] {
        assert!(text.contains(expected), "{text}");
    }
    for id in 0..66_000 {
        let node = Node { uid: id, ..Node::of_root(Kind::Directory, 0o755) };
        made.tree.insert(format!("of-{id}").into_bytes(), node);
    }
    let error = write_squashfs(&mut out, options, &made.tree, |_| Ok::<_, ClusterFileError>(()));
    assert!(error.expect_err("refused").to_string().contains("66002 users and groups"));
    assert!(!text.contains("fine") && out.get_ref().is_empty());
}
