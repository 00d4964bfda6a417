//! The agent's content digest of a directory against envforge's digest of the same tree as a tar archive.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;

use envforge::archive::content_digest::content_digest_of_tar;

/// A tree with one of each kind; devices and owners only where this user may make them.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = folder.path();
    for name in ["a", "a-b", "etc", "tmp", "proc", "opt/envforge"] {
        fs_err::create_dir_all(root.join(name)).expect("folder");
    }
    for (name, content) in
        [("a/x", "1"), ("a-b/x", "2"), ("etc/hosts", "mine"), ("etc/motd", ""), ("tmp/x", "3")]
    {
        fs_err::write(root.join(name), content).expect("file");
    }
    fs_err::write(root.join("big"), vec![7; (3 << 20) + 5]).expect("file");
    fs_err::write(root.join("opt/envforge/agent"), "an agent").expect("file");
    fs_err::set_permissions(root.join("etc/motd"), std::fs::Permissions::from_mode(0o4750)).expect("mode");
    fs_err::hard_link(root.join("a/x"), root.join("a/linked")).expect("hard link");
    symlink("../nowhere", root.join("a/link")).expect("symbolic link");
    let run = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).current_dir(root).status();
        status.is_ok_and(|status| status.success())
    };
    assert!(run(&["mkfifo", "pipe"]));
    // No line end: the tar crate cannot read a value with one.
    let value: Vec<u8> = (11..=255).collect();
    rustix::fs::setxattr(root.join("a/x"), "user.note", &value, rustix::fs::XattrFlags::empty())
        .expect("the temporary folder takes attributes");
    // Only root may do these; the rest of the tree is there in any case.
    let _ = run(&["mknod", "null", "c", "259", "65537"]) && run(&["chown", "12:345", "etc/motd"]);
    folder
}

#[test]
fn walk_and_tar_of_one_tree_agree() {
    let directory = tree();
    let root = directory.path();
    let program = tempfile::tempdir().expect("a temporary directory");
    let agent = program.path().join("agent");
    fs_err::write(&agent, envforge::agent::AGENT).expect("written");
    fs_err::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).expect("mode");
    let walked = stdout(Command::new(&agent).args(["digest", "--root"]).arg(root));
    // As an engine exports it.
    let tar = stdout(
        Command::new("tar")
            .args(["--create", "--xattrs", "--xattrs-include=user.*", "--xattrs-include=security.capability"])
            .args(["--numeric-owner", "--format=pax", "--directory"])
            .arg(root)
            .arg("."),
    );
    let by_tar = content_digest_of_tar(tar.as_slice()).expect("digest");
    assert_eq!(String::from_utf8_lossy(&walked).trim(), by_tar);
    fs_err::write(Path::new(root).join("a/x"), "other").expect("written");
    assert_ne!(stdout(Command::new(&agent).args(["digest", "--root"]).arg(root)), walked);
}

fn stdout(command: &mut Command) -> Vec<u8> {
    let output = command.output().expect("starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}
