//! The content digest's format: what counts, and how it is encoded. The agent and envforge hash the same records.
//!
//! # The algorithm, for other implementations
//!
//! Every entry below `/` (not `/` itself) has one record; the records are concatenated in the order of their raw path
//! bytes, and the digest is the SHA-256 of the result, as lower-case hex. A record is a sequence of netstrings
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
//! A hard link is a regular file with the content of its target. Times and the sizes of directories do not count. A
//! socket is an error. Left out: `proc`, `sys` and `dev`, because every engine mounts its own there (Podman does not even
//! export the image's), everything below `run` and `tmp` (the directories themselves count), the paths `.dockerenv`,
//! `etc/hosts`, `etc/hostname`, `etc/resolv.conf`, `etc/mtab`, and the agent's own layer: `opt/envforge` and everything
//! below it.
//!
//! Test vector: directory `etc` (0755, 0:0), file `etc/motd` (0644, 0:0, content `hello\n`), symbolic link `motd`
//! (0777, 1000:1000) to `etc/motd`, and file `ping` (0755, 0:0, empty, `security.capability` = bytes 01 02) give
//! `83f01b5965ec72d7d313cd1373fabba0e65f7f0ac0b694e738b929277876c77b`.

use std::collections::BTreeMap;

/// The kind of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentKind {
    /// A regular file, hard links included.
    File {
        /// Size in bytes.
        size: u64,
        /// SHA-256 of the content, hex.
        sha256: String,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// The target, as written.
        target: Vec<u8>,
    },
    /// A character device: major, minor.
    Character(u32, u32),
    /// A block device: major, minor.
    Block(u32, u32),
    /// A named pipe.
    Pipe,
}

/// The properties of an entry that count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentEntry {
    /// Kind.
    pub kind: ContentKind,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u64,
    /// Group.
    pub gid: u64,
    /// Extended attributes that count.
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// Directories whose content is left out: running programs write there.
pub const FOLDERS: [&str; 2] = ["run", "tmp"];

/// Whether an extended attribute counts.
pub fn counts(xattr: &[u8]) -> bool {
    xattr == b"security.capability" || xattr.starts_with(b"user.")
}

/// Whether a relative path is left out.
pub fn is_left_out(path: &[u8]) -> bool {
    const PATHS: [&[u8]; 5] = [b".dockerenv", b"etc/hosts", b"etc/hostname", b"etc/resolv.conf", b"etc/mtab"];
    const WHOLE: [&[u8]; 4] = [b"proc", b"sys", b"dev", b"opt/envforge"];
    let below = |folder: &[u8]| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    PATHS.contains(&path)
        || WHOLE.iter().any(|folder| path == *folder || below(folder))
        || FOLDERS.iter().any(|folder| below(folder.as_bytes()))
}

/// Encodes the record of an entry.
pub fn record(path: &[u8], entry: &ContentEntry) -> Vec<u8> {
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

/// Decodes a list of records; `None` if it is not one.
pub fn parse_records(records: &[u8]) -> Option<BTreeMap<Vec<u8>, ContentEntry>> {
    let (mut fields, mut entries) = (Fields(records), BTreeMap::new());
    while !fields.0.is_empty() {
        let (path, entry) = fields.entry()?;
        entries.insert(path, entry);
    }
    Some(entries)
}

/// Netstrings, read from the front.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let colon = self.0.iter().take(20).position(|byte| *byte == b':')?;
        let length: usize = std::str::from_utf8(&self.0[..colon]).ok()?.parse().ok()?;
        let rest = &self.0[colon + 1..];
        let (field, rest) = rest.split_at_checked(length)?;
        self.0 = rest.strip_prefix(b",")?;
        Some(field)
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.next()?).ok()
    }

    fn entry(&mut self) -> Option<(Vec<u8>, ContentEntry)> {
        let path = self.next()?.to_owned();
        let kind = self.next()?;
        let mode = u32::from_str_radix(self.text()?, 8).ok()?;
        let (uid, gid) = (self.text()?.parse().ok()?, self.text()?.parse().ok()?);
        let mut xattrs = BTreeMap::new();
        for _ in 0..self.text()?.parse::<u32>().ok()? {
            xattrs.insert(self.next()?.to_owned(), self.next()?.to_owned());
        }
        let kind = match kind {
            b"f" => ContentKind::File { size: self.text()?.parse().ok()?, sha256: self.text()?.to_owned() },
            b"d" => ContentKind::Directory,
            b"l" => ContentKind::Symlink { target: self.next()?.to_owned() },
            b"c" | b"b" => {
                let (major, minor) = self.text()?.split_once(':')?;
                let (major, minor) = (major.parse().ok()?, minor.parse().ok()?);
                if kind == b"c" {
                    ContentKind::Character(major, minor)
                } else {
                    ContentKind::Block(major, minor)
                }
            }
            b"p" => ContentKind::Pipe,
            _ => return None,
        };
        Some((path, ContentEntry { kind, mode, uid, gid, xattrs }))
    }
}

/// The digest of [`test_vector`], as published above.
pub const TEST_VECTOR: &str = "83f01b5965ec72d7d313cd1373fabba0e65f7f0ac0b694e738b929277876c77b";

/// Returns the entries of the published test vector, by path.
pub fn test_vector() -> BTreeMap<Vec<u8>, ContentEntry> {
    let entry =
        |kind, mode, owner| ContentEntry { kind, mode, uid: owner, gid: owner, xattrs: BTreeMap::new() };
    let file = |size, sha256: &str| ContentKind::File { size, sha256: sha256.to_owned() };
    let motd = file(6, "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
    let empty = file(0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    let capability = BTreeMap::from([(b"security.capability".to_vec(), vec![1, 2])]);
    BTreeMap::from([
        (b"etc".to_vec(), entry(ContentKind::Directory, 0o755, 0)),
        (b"etc/motd".to_vec(), entry(motd, 0o644, 0)),
        (b"motd".to_vec(), entry(ContentKind::Symlink { target: b"etc/motd".to_vec() }, 0o777, 1000)),
        (b"ping".to_vec(), ContentEntry { xattrs: capability, ..entry(empty, 0o755, 0) }),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_encode_and_decode() {
        let mut entries = test_vector();
        let plain = |kind| ContentEntry { kind, mode: 0o600, uid: 1, gid: 2, xattrs: BTreeMap::new() };
        entries.insert(b"null".to_vec(), plain(ContentKind::Character(1, 3)));
        entries.insert(b"disk".to_vec(), plain(ContentKind::Block(259, 65537)));
        entries.insert(b"pipe".to_vec(), plain(ContentKind::Pipe));
        let records: Vec<u8> = entries.iter().flat_map(|(path, entry)| record(path, entry)).collect();
        assert_eq!(parse_records(&records), Some(entries.clone()));
        for cut in 1..records.len() {
            assert_ne!(parse_records(&records[..cut]), Some(entries.clone()), "{cut}");
        }
        assert_eq!(parse_records(b"x"), None);
        assert_eq!(parse_records(b""), Some(BTreeMap::new()));
    }

    #[test]
    fn test_vector_is_the_documented_one() {
        let records: Vec<u8> = test_vector().iter().flat_map(|(path, entry)| record(path, entry)).collect();
        let text = String::from_utf8_lossy(&records);
        assert!(
            text.starts_with(
                "3:etc,1:d,4:0755,1:0,1:0,1:0,8:etc/motd,1:f,4:0644,1:0,1:0,1:0,1:6,64:5891b5b5"
            ),
            "{text}"
        );
        assert!(text.contains("4:motd,1:l,4:0777,4:1000,4:1000,1:0,8:etc/motd,4:ping,1:f,4:0755,"), "{text}");
        assert!(
            include_str!("content.rs").contains(&format!("//! `{TEST_VECTOR}`")),
            "the documentation names it"
        );
    }

    #[test]
    fn left_out_paths_do_not_count() {
        for path in
            ["proc", "sys/x", "dev/null", "run/x", "tmp/x", ".dockerenv", "etc/hosts", "opt/envforge/agent"]
        {
            assert!(is_left_out(path.as_bytes()), "{path}");
        }
        for path in ["run", "tmp", "etc", "procs", "etc/hosts.allow", "opt/envforger", "home/tmp/x"] {
            assert!(!is_left_out(path.as_bytes()), "{path}");
        }
    }
}
