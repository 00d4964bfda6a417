//! NVIDIA's wheels, downloaded with the machine's pip and unpacked once, under `target/wheels`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder a requirement (`nvidia-nccl-cu12==2.27.3`) is unpacked in: what `site-packages` would hold.
pub(crate) fn unpacked(requirement: &str) -> PathBuf {
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("target").join("wheels");
    let name: String =
        requirement.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect();
    fs_err::create_dir_all(&cache).expect("made");
    // Tests run side by side, in one process or several.
    let lock = fs_err::File::create(cache.join(format!("{name}.lock"))).expect("a file");
    lock.file().lock().expect("locked");
    let folder = cache.join(&name);
    if !folder.is_dir() {
        let part = cache.join(format!("{name}.part"));
        let _ = fs_err::remove_dir_all(&part);
        let output = Command::new("python3")
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"])
            .args(["--no-deps", "--no-compile", "--only-binary", ":all:", "--target"])
            .arg(&part)
            .arg(requirement)
            .output()
            .expect("python3 with pip: install python3-pip");
        assert!(output.status.success(), "{requirement}: {}", String::from_utf8_lossy(&output.stderr));
        fs_err::rename(&part, &folder).expect("moved");
    }
    folder
}

/// The one file below a folder whose name begins so, by its canonical path.
pub(crate) fn file(folder: &Path, beginning: &str) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(&folder).expect("readable") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(beginning)) {
                return path.canonicalize().expect("there");
            }
        }
    }
    panic!("no {beginning}* below {}", folder.display())
}
