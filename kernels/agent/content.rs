//! What the content digest counts, and how: the one definition (DESIGN §6), shared by the agent and the program.
//!
//! # The algorithm, for those who write it again
//!
//! Every entry below `/` (not `/` itself) makes one record; records are put together in the order of their raw path
//! bytes, and the digest is the SHA-256 of the result, as lower-case hex. A record is a row of netstrings
//! (`LENGTH:BYTES,`, length in decimal):
//!
//! 1. the path, without leading `/` or `./` and without trailing `/`;
//! 2. the kind: `f` regular file, `d` directory, `l` symbolic link, `c` and `b` device, `p` named pipe;
//! 3. `mode & 07777` as four octal digits;
//! 4. the user id and 5. the group id, in decimal;
//! 6. the number of extended attributes, then for each, sorted by name: 7. its name, 8. its value. Only
//!    `security.capability` and `user.*` count;
//! 9. by kind: `f`: the size in decimal, then the SHA-256 of the content as lower-case hex; `l`: the target; `c` and `b`:
//!    `MAJOR:MINOR`; `d` and `p`: nothing.
//!
//! A hard link is a regular file with the content of its target. No times, no size of directories. A socket is an error.
//! Left out: `proc`, `sys` and `dev`, over which every engine mounts its own (Podman does not even tell what the image
//! has there), everything below `run` and `tmp` (the folders themselves count, as the image has them), the paths `.dockerenv`, `etc/hosts`, `etc/hostname`, `etc/resolv.conf`, `etc/mtab`, and the agent's own layer:
//! `opt/envforge` and everything below it.
//!
//! Test vector: directory `etc` (0755, 0:0), file `etc/motd` (0644, 0:0, content `hello\n`), symbolic link `motd`
//! (0777, 1000:1000) to `etc/motd`, and file `ping` (0755, 0:0, empty, `security.capability` = bytes 01 02) give
//! `83f01b5965ec72d7d313cd1373fabba0e65f7f0ac0b694e738b929277876c77b`.

use std::collections::BTreeMap;

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// A regular file, hard links included.
    File {
        /// Its size in bytes.
        size: u64,
        /// SHA-256 of its content, hex.
        sha256: String,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// Where it points, as written.
        target: Vec<u8>,
    },
    /// A character device: major, minor.
    Character(u32, u32),
    /// A block device: major, minor.
    Block(u32, u32),
    /// A named pipe.
    Pipe,
}

/// One entry of a file system, as far as it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentEntry {
    /// What it is.
    pub(crate) kind: ContentKind,
    /// Permission bits.
    pub(crate) mode: u32,
    /// Owner.
    pub(crate) uid: u64,
    /// Group.
    pub(crate) gid: u64,
    /// Extended attributes; those that do not count are left out.
    pub(crate) xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Folders whose content is left out: a running program fills them.
pub(crate) const FOLDERS: [&str; 2] = ["run", "tmp"];

/// True for an extended attribute that counts.
pub(crate) fn counts(xattr: &[u8]) -> bool {
    xattr == b"security.capability" || xattr.starts_with(b"user.")
}

/// True for a relative path that does not count.
pub(crate) fn is_left_out(path: &[u8]) -> bool {
    const PATHS: [&[u8]; 5] = [b".dockerenv", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf", b"etc/mtab"];
    const WHOLE: [&[u8]; 4] = [b"proc", b"sys", b"dev", b"opt/envforge"];
    let below = |folder: &[u8]| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    PATHS.contains(&path)
        || WHOLE.iter().any(|folder| path == *folder || below(folder))
        || FOLDERS.iter().any(|folder| below(folder.as_bytes()))
}

/// The record of an entry.
pub(crate) fn record(path: &[u8], entry: &ContentEntry) -> Vec<u8> {
    let mut record = Vec::new();
    let mut field = |bytes: &[u8]| {
        record.extend_from_slice(format!("{}:", bytes.len()).as_bytes());
        record.extend_from_slice(bytes);
        record.push(b',');
    };
    field(path);
    field(match entry.kind {
        ContentKind::File { .. } => b"f",
        ContentKind::Directory => b"d",
        ContentKind::Symlink { .. } => b"l",
        ContentKind::Character(..) => b"c",
        ContentKind::Block(..) => b"b",
        ContentKind::Pipe => b"p",
    });
    field(format!("{:04o}", entry.mode & 0o7777).as_bytes());
    field(entry.uid.to_string().as_bytes());
    field(entry.gid.to_string().as_bytes());
    let xattrs: Vec<_> = entry.xattrs.iter().filter(|(name, _)| counts(name)).collect();
    field(xattrs.len().to_string().as_bytes());
    for (name, value) in xattrs {
        field(name);
        field(value);
    }
    match &entry.kind {
        ContentKind::File { size, sha256 } => {
            field(size.to_string().as_bytes());
            field(sha256.as_bytes());
        }
        ContentKind::Symlink { target } => field(target),
        ContentKind::Character(major, minor) | ContentKind::Block(major, minor) => {
            field(format!("{major}:{minor}").as_bytes());
        }
        ContentKind::Directory | ContentKind::Pipe => {}
    }
    record
}
