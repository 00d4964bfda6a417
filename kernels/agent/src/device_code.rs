//! `agent code`: the bytes of device code for each architecture, in every library of a file system.
//!
//! Fat binaries of shared libraries and programs count. Static libraries (`.a`) are not read: they are of a toolkit, and
//! nothing runs them.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use envforge_protocol::LibraryCode;
use envforge_protocol::elf::Source;

use super::fatbin::{self, Code};
use super::nvrtc::Target;
use super::walk;

/// The kernel's own and the engine's folders, which are no part of an image.
const LEFT_OUT: [&str; 3] = ["proc", "sys", "dev"];

/// The libraries below `root` that have device code, or whose code is unknown, by path. A file with several names counts
/// once, by the first of them.
pub(crate) fn libraries(root: &Path) -> std::io::Result<Vec<LibraryCode>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(root)? {
        let entry = entry?;
        let is_left_out = LEFT_OUT.iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_dir() && !is_left_out {
            files.extend(walk::files(&entry.path()));
        }
    }
    files.sort_unstable();
    let mut seen = BTreeSet::new();
    Ok(files.iter().filter_map(|path| library(root, path, &mut seen)).collect())
}

fn library(root: &Path, path: &Path, seen: &mut BTreeSet<(u64, u64)>) -> Option<LibraryCode> {
    let shown = Path::new("/").join(path.strip_prefix(root).unwrap_or(path)).to_string_lossy().into_owned();
    let found = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    let (metadata, file) = match found {
        Ok(found) => found,
        Err(error) => return Some(LibraryCode { path: shown, size: 0, code: Err(error.to_string()) }),
    };
    // Magic, 64 bit, little endian: no other program has CUDA code.
    if file.read(0, 6)? != [0x7f, b'E', b'L', b'F', 2, 1] || !seen.insert((metadata.dev(), metadata.ino())) {
        return None;
    }
    let code = match fatbin::all_code(&file) {
        Ok(None) => return None,
        Ok(Some(code)) => Ok(by_name(&code)),
        Err(reason) => Err(reason),
    };
    Some(LibraryCode { path: shown, size: metadata.len(), code })
}

fn by_name(code: &Code) -> Vec<(String, u64)> {
    let cubin = code.cubin.iter().map(|(chip, bytes)| (Target::Cubin(*chip).name(), *bytes));
    let ptx = code.ptx.iter().map(|(chip, bytes)| (Target::Ptx(*chip).name(), *bytes));
    cubin.chain(ptx).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fatbin::tests::library as with_code;

    #[test]
    fn libraries_with_code_are_listed_once_with_their_bytes() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path();
        for name in ["opt/env/lib", "usr/lib", "proc"] {
            std::fs::create_dir_all(root.join(name)).expect("made");
        }
        let write = |name: &str, bytes: &[u8]| std::fs::write(root.join(name), bytes).expect("written");
        write("opt/env/lib/libtorch_cuda.so", &with_code(&[(2, 80), (2, 80), (1, 90)]));
        write("usr/lib/libodd.so.1", &with_code(&[(9, 80)]));
        write("usr/lib/readme.so", b"no library");
        write("proc/libtorch_cuda.so", &with_code(&[(2, 80)]));
        std::fs::copy(std::env::current_exe().expect("a program"), root.join("usr/lib/plain"))
            .expect("copied");
        std::fs::hard_link(root.join("opt/env/lib/libtorch_cuda.so"), root.join("usr/lib/again.so"))
            .expect("linked");
        let found = libraries(root).expect("readable");
        let shown: Vec<_> = found.iter().map(LibraryCode::to_json).collect();
        let size = found[0].size;
        assert_eq!(
            shown[0],
            format!(
                "{{\"path\":\"/opt/env/lib/libtorch_cuda.so\",\"size\":{size},\
                 \"code\":{{\"sm_80\":176,\"compute_90\":88}}}}"
            )
        );
        assert!(
            shown[1].contains("\"/usr/lib/libodd.so.1\"") && shown[1].contains("\"unknown\":\""),
            "{shown:?}"
        );
        assert_eq!(shown.len(), 2, "{shown:?}");
    }
}
