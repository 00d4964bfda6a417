//! A matrix archive with files other than those of compat/.

use crate::program::Program;

/// Packs the files of compat/ and what is given in their place; gives the file's SHA-256.
pub(crate) fn matrix_archive(program: &Program, name: &str, changed: &[(&str, &str)]) -> String {
    let folder = program.path(name).with_extension("d");
    std::fs::create_dir(&folder).expect("a folder of ours");
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/compat")).expect("compat/") {
        let from = entry.expect("an entry").path();
        if from.is_file() {
            std::fs::copy(&from, folder.join(from.file_name().expect("a name"))).expect("a file of ours");
        }
    }
    // As `tar -C compat` packs it: the crate that lies there is no part of the matrix.
    std::fs::create_dir(folder.join("solver")).expect("a folder of ours");
    std::fs::write(folder.join("solver/Cargo.toml"), "[package]\n").expect("a file of ours");
    for (file, text) in changed {
        std::fs::write(folder.join(file), text).expect("a file of ours");
    }
    let kind = if name.ends_with("gz") { "-czf" } else { "-cf" };
    let mut tar = std::process::Command::new("tar");
    let packed = tar.arg("-C").arg(&folder).arg(kind).arg(program.path(name)).arg(".").status();
    assert!(packed.expect("tar starts").success());
    let said =
        std::process::Command::new("sha256sum").arg(program.path(name)).output().expect("sha256sum starts");
    String::from_utf8_lossy(&said.stdout).split(' ').next().expect("a hash").to_owned()
}
