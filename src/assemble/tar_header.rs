//! Headers of a layer's tar: ustar, with a pax record only for a value that ustar cannot hold.
//!
//! Pure. A change of any byte needs a new `LAYOUT_VERSION`.

/// Size of a block.
pub(super) const BLOCK: usize = 512;
/// Largest number of a field with seven digits.
const SEVEN_DIGITS: u64 = 0o7_777_777;
/// Largest number of a field with eleven digits.
const ELEVEN_DIGITS: u64 = 0o77_777_777_777;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A file of that size.
    File(u64),
    /// A directory.
    Folder,
    /// A symbolic link to that target.
    Symlink(&'a str),
}

/// Mode and owner of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) mode: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Returns the header blocks of an entry. Its time is 0, its owners have no names.
pub(super) fn header(path: &str, kind: Kind<'_>, access: Access) -> Vec<u8> {
    let path = if kind == Kind::Folder { format!("{path}/") } else { path.to_owned() };
    let (type_flag, size, link) = match kind {
        Kind::File(size) => (b'0', size, ""),
        Kind::Folder => (b'5', 0, ""),
        Kind::Symlink(target) => (b'2', 0, target),
    };
    let mut records = Vec::new();
    let split = split_path(&path);
    if split.is_none() {
        records.extend(record("path", &path));
    }
    if link.len() > 100 || !link.is_ascii() {
        records.extend(record("linkpath", link));
    }
    for (key, value, limit) in [
        ("size", size, ELEVEN_DIGITS),
        ("uid", access.uid.into(), SEVEN_DIGITS),
        ("gid", access.gid.into(), SEVEN_DIGITS),
    ] {
        if value > limit {
            records.extend(record(key, &value.to_string()));
        }
    }
    let mut blocks = Vec::new();
    if !records.is_empty() {
        let of_records = Access { mode: 0o644, uid: 0, gid: 0 };
        blocks.extend(block(("", "././@PaxHeader"), b'x', records.len() as u64, of_records, ""));
        records.resize(records.len().next_multiple_of(BLOCK), 0);
        blocks.extend(records);
    }
    // Readers without pax see the beginning of the path.
    blocks.extend(block(split.unwrap_or(("", path.as_str())), type_flag, size, access, link));
    blocks
}

/// Returns prefix and name of a path, if ustar can hold it.
fn split_path(path: &str) -> Option<(&str, &str)> {
    if !path.is_ascii() {
        return None;
    }
    if path.len() <= 100 {
        return Some(("", path));
    }
    // The name must not be empty: the slash at the end of a directory does not separate.
    let mut slashes = path.trim_end_matches('/').match_indices('/').map(|(at, _)| at);
    let at = slashes.find(|at| path.len() - at - 1 <= 100).filter(|at| (1..=155).contains(at))?;
    Some((&path[..at], &path[at + 1..]))
}

/// Returns a pax record; its length counts its own digits.
fn record(key: &str, value: &str) -> Vec<u8> {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}").into_bytes()
}

fn block((prefix, name): (&str, &str), type_flag: u8, size: u64, access: Access, link: &str) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut text = |at: usize, room: usize, text: &str| {
        let ascii = text.bytes().map(|byte| if byte.is_ascii() { byte } else { b'?' });
        for (to, byte) in block[at..at + room].iter_mut().zip(ascii) {
            *to = byte;
        }
    };
    text(0, 100, name);
    text(100, 7, &format!("{:07o}", access.mode & 0o7777));
    text(108, 7, &format!("{:07o}", u64::from(access.uid).min(SEVEN_DIGITS)));
    text(116, 7, &format!("{:07o}", u64::from(access.gid).min(SEVEN_DIGITS)));
    text(124, 11, &format!("{:011o}", size.min(ELEVEN_DIGITS)));
    text(136, 11, "00000000000");
    text(148, 8, "        ");
    text(157, 100, link);
    text(257, 5, "ustar");
    text(263, 2, "00");
    text(329, 7, "0000000");
    text(337, 7, "0000000");
    text(345, 155, prefix);
    block[156] = type_flag;
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Access = Access { mode: 0o755, uid: 0, gid: 0 };

    /// Reads the entry back with the `tar` crate: path, link target, size, owner, and the number of blocks.
    fn read(path: &str, kind: Kind<'_>, access: Access) -> (String, Option<String>, u64, u64, usize) {
        let bytes = header(path, kind, access);
        let mut archive = tar::Archive::new(bytes.as_slice());
        let entry = archive.entries().expect("a tar").next().expect("an entry").expect("a header");
        let path = String::from_utf8(entry.path_bytes().into_owned()).expect("UTF-8");
        let link = entry.link_name_bytes().map(|link| String::from_utf8(link.into_owned()).expect("UTF-8"));
        assert_eq!(entry.header().mtime().expect("a time"), 0);
        assert_eq!(entry.header().mode().expect("a mode"), access.mode);
        (path, link, entry.size(), entry.header().uid().expect("an owner"), bytes.len() / BLOCK)
    }

    #[test]
    fn paths_of_any_length_are_read_back() {
        let long = |folder: usize, name: usize| format!("{}/{}", "f".repeat(folder), "n".repeat(name));
        for (path, blocks) in [
            ("a".to_owned(), 1),
            (long(49, 50), 1),
            (long(50, 50), 1),
            (long(155, 100), 1),
            (long(156, 100), 3),
            (long(155, 101), 3),
            ("n".repeat(101), 3),
            ("é".to_owned(), 3),
            (format!("é/{}", "n".repeat(300)), 3),
            (format!("{}/{}/x", "f".repeat(60), "g".repeat(60)), 1),
        ] {
            assert_eq!(read(&path, Kind::File(0), ROOT), (path.clone(), None, 0, 0, blocks), "{path}");
        }
        for (path, blocks) in
            [("n".repeat(99), 1), ("n".repeat(100), 3), (long(100, 99), 1), (long(100, 100), 3)]
        {
            assert_eq!(read(&path, Kind::Folder, ROOT), (format!("{path}/"), None, 0, 0, blocks), "{path}");
        }
    }

    #[test]
    fn links_and_large_numbers_are_read_back() {
        for (target, blocks) in [("python", 1), (&"t".repeat(100), 1), (&"t".repeat(101), 3), ("é", 3)] {
            let expected = ("l".to_owned(), Some(target.to_owned()), 0, 0, blocks);
            assert_eq!(read("l", Kind::Symlink(target), ROOT), expected);
        }
        let large = ELEVEN_DIGITS + 1;
        assert_eq!(read("l", Kind::File(large), ROOT).2, large);
        assert_eq!(read("l", Kind::File(ELEVEN_DIGITS), ROOT).4, 1);
        assert_eq!(read("l", Kind::Folder, Access { uid: 2_097_151, ..ROOT }).3, 2_097_151);
        let mapped =
            String::from_utf8(header("l", Kind::Folder, Access { uid: 2_097_152, ..ROOT })).expect("ASCII");
        assert!(mapped.contains("15 uid=2097152\n"));
    }

    #[test]
    fn length_of_a_record_counts_its_own_digits() {
        for length in 1..300 {
            let record = record("path", &"x".repeat(length));
            let text = String::from_utf8(record.clone()).expect("ASCII");
            assert_eq!(text.split(' ').next(), Some(record.len().to_string().as_str()));
        }
    }
}
