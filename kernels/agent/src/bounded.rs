//! Reads texts of an image, which may be another's: what waits or never ends is not opened.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

/// The text of a regular file of at most so many bytes; `None`: it is not there, is no file, is larger or is no text.
pub(crate) fn text(path: &Path, largest: u64) -> Option<String> {
    // To open a pipe waits for whoever writes to it.
    let is_small = std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= largest);
    let file = is_small.then(|| File::open(path).ok()).flatten()?;
    let mut text = String::new();
    // A file of the kernel says that it is empty.
    file.take(largest).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_regular_file_within_the_bound_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("text");
        std::fs::write(&path, "12345").expect("written");
        assert_eq!(text(&path, 5).as_deref(), Some("12345"));
        assert_eq!(text(&path, 4), None, "a part is none");
        assert_eq!(text(folder.path(), 1 << 20), None);
        assert_eq!(text(Path::new("/dev/zero"), 1 << 20), None);
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("/dev/zero", &link).expect("a link");
        assert_eq!(text(&link, 1 << 20), None);
    }
}
