#![expect(clippy::disallowed_methods, reason = "tests write files and run git")]

use std::collections::BTreeMap;
use std::io::Read as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use super::*;
use crate::failure::{Exit, Failure as _};

/// A project in a directory of its own.
struct Project(tempfile::TempDir);

impl Project {
    fn of(files: &[(&str, &str)]) -> Self {
        let project = Self(tempfile::tempdir().expect("a temporary folder"));
        for (name, text) in files {
            project.write(name, text);
        }
        project
    }

    /// A project whose files git knows.
    fn in_git(files: &[(&str, &str)]) -> Self {
        let project = Self::of(files);
        project.git(&["init", "--quiet"]);
        project.git(&["add", "--all"]);
        project
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.0.path().join("p").join(name)).expect("UTF-8")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, text).expect("a file");
    }

    fn git(&self, arguments: &[&str]) {
        let who = ["-c", "user.name=a", "-c", "user.email=a@b.test", "-c", "protocol.file.allow=always"];
        let output = Command::new("git").arg("-C").arg(self.path("")).args(who).args(arguments).output();
        let output = output.expect("git runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    fn sources(&self) -> Result<ProjectSources, SourcesError> {
        collect_sources(&self.path(""))
    }

    fn error(&self) -> String {
        self.sources().expect_err("refused").to_string()
    }
}

/// Mode and content of each entry.
fn entries(sources: &ProjectSources) -> BTreeMap<String, (u32, String)> {
    let mut archive = tar::Archive::new(sources.archive.as_slice());
    let one = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").to_string_lossy().into_owned();
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        if let Some(to) = entry.link_name().expect("a name") {
            text = format!("-> {}", to.display());
        }
        (path, (entry.header().mode().expect("a mode"), text))
    };
    archive.entries().expect("a tar").map(one).collect()
}

fn paths(sources: &ProjectSources) -> Vec<String> {
    entries(sources).into_keys().collect()
}

#[test]
fn sources_are_what_git_knows_as_it_lies_there() {
    let project = Project::in_git(&[("pyproject.toml", "a"), ("src/x/__init__.py", "1"), ("gone.py", "1")]);
    std::fs::set_permissions(project.path("pyproject.toml"), std::fs::Permissions::from_mode(0o700))
        .expect("mode");
    std::fs::remove_file(project.path("gone.py")).expect("removed");
    project.write("src/x/__init__.py", "2");
    project.write("src/x/new.py", "1");
    project.write("envforge.lock", "1");
    let found = project.sources().expect("sources");
    assert_eq!(
        entries(&found),
        BTreeMap::from([
            ("project/pyproject.toml".to_owned(), (0o755, "a".to_owned())),
            ("project/src/x/__init__.py".to_owned(), (0o644, "2".to_owned())),
        ])
    );
    assert_eq!(
        found.notes,
        ["left out of the project's wheel, since git does not know them: `src/x/new.py`"]
    );
    assert_eq!(project.sources().expect("again"), found);
}

#[test]
fn hash_is_over_paths_modes_and_contents() {
    let hash = |files: &[(&str, &str)], executable: Option<&str>| {
        let project = Project::of(files);
        if let Some(name) = executable {
            std::fs::set_permissions(project.path(name), std::fs::Permissions::from_mode(0o755))
                .expect("mode");
        }
        project.sources().expect("sources").sha256
    };
    let first = hash(&[("a.py", "1")], None);
    assert_eq!(hash(&[("a.py", "1")], None), first, "not over the directory or a time");
    for other in
        [hash(&[("b.py", "1")], None), hash(&[("a.py", "2")], None), hash(&[("a.py", "1")], Some("a.py"))]
    {
        assert_ne!(other, first);
    }
}

#[test]
fn sources_outside_a_repository_are_all_that_gitignore_does_not_name() {
    let project = Project::of(&[
        (".gitignore", "data/\n*.ckpt\n"),
        ("a.py", "1"),
        ("data/x", "1"),
        ("in/model.ckpt", "1"),
        ("in/.gitignore", "!kept.ckpt\n"),
        ("in/kept.ckpt", "1"),
        ("__pycache__/a.pyc", "1"),
    ]);
    let found = project.sources().expect("sources");
    let expected =
        [".gitignore", "a.py", "in/.gitignore", "in/kept.ckpt"].map(|path| format!("project/{path}"));
    assert_eq!((paths(&found), found.notes), (expected.to_vec(), Vec::new()));
}

#[test]
fn links_stay_links_and_must_not_lead_out() {
    let project = Project::of(&[("a/x.py", "1")]);
    symlink("a/x.py", project.path("b.py")).expect("a link");
    symlink("a", project.path("c")).expect("a link");
    let found = entries(&project.sources().expect("sources"));
    assert_eq!(found["project/b.py"].1, "-> a/x.py");
    assert_eq!(found["project/c"].1, "-> a");
    symlink("/etc/passwd", project.path("d")).expect("a link");
    assert_eq!(project.error(), "`d` points outside the project: `/etc/passwd`");
    std::fs::remove_file(project.path("d")).expect("ours");
    symlink(project.path("a"), project.path("d")).expect("a link");
    assert!(project.error().starts_with("`d` is a link that only this machine can follow"));
    std::fs::remove_file(project.path("d")).expect("ours");
    symlink("nothing", project.path("d")).expect("a link");
    assert_eq!(project.error(), "`d` is a link that only this machine can follow: `nothing`");
}

#[test]
fn submodule_is_part_of_the_sources_or_refused_by_name() {
    let other = Project::in_git(&[("lib.py", "1")]);
    other.git(&["commit", "--quiet", "-m", "one"]);
    let project = Project::in_git(&[("a.py", "1")]);
    project.git(&["submodule", "--quiet", "add", other.path("").as_str(), "third/lib"]);
    let found = project.sources().expect("sources");
    assert_eq!(
        paths(&found),
        [".gitmodules", "a.py", "third/lib/lib.py"].map(|path| format!("project/{path}"))
    );
    std::fs::remove_dir_all(project.path("third/lib")).expect("ours");
    std::fs::create_dir(project.path("third/lib")).expect("a folder");
    let error = project.sources().expect_err("missing");
    assert_eq!(error.to_string(), "submodule `third/lib` is not checked out");
    assert_eq!(
        (error.exit(), error.hints()),
        (Exit::Usage, vec!["run `git submodule update --init third/lib`".to_owned()])
    );
}

#[test]
fn too_many_bytes_are_refused_with_the_largest_files_before_they_are_read() {
    let project = Project::of(&[("a.py", "1")]);
    for (name, size) in [("data.bin", 5_u64 << 30), ("b.bin", 2 << 20), ("c.bin", 1 << 20)] {
        std::fs::File::create(project.path(name)).expect("a file").set_len(size).expect("sparse");
    }
    let error = project.error();
    assert!(error.contains("limit 100 MB") && error.contains("the largest: `data.bin` ("), "{error}");
    assert!(error.contains("`c.bin`") && !error.contains("a.py"), "{error}");
}

#[test]
fn file_with_a_secret_is_refused_without_its_text() {
    let token = format!("hf_{}", "aB3dE".repeat(7));
    let project = Project::in_git(&[("a.py", &format!("TOKEN = '{token}'"))]);
    let error = project.error();
    assert_eq!(error, "`a.py`, a source of the project, contains a token");
    let project = Project::in_git(&[(".env", "DB_PASSWORD=hunter2\n")]);
    assert!(project.error().starts_with("`.env`, a source of the project, contains"));
}

#[test]
fn programs_of_a_repository_do_not_run() {
    let project = Project::in_git(&[("a.py", "1")]);
    let ran = project.path("../ran");
    project.write(".git/trap", &format!("#!/bin/sh\ntouch {ran}\n"));
    std::fs::set_permissions(project.path(".git/trap"), std::fs::Permissions::from_mode(0o755))
        .expect("mode");
    project.git(&["config", "core.fsmonitor", project.path(".git/trap").as_str()]);
    project.sources().expect("sources");
    assert!(!ran.exists(), "the program of core.fsmonitor ran");
}

/// Lets git believe that missing objects are elsewhere, where a program of the project would fetch them.
fn promise(project: &Project) -> Utf8PathBuf {
    let ran = project.path("../ran");
    for [name, value] in [
        ["core.repositoryformatversion", "1"],
        ["extensions.partialClone", "origin"],
        ["remote.origin.promisor", "true"],
        ["remote.origin.url", "ssh://elsewhere.test/x"],
        ["core.sshCommand", &format!("touch {ran}; false")],
    ] {
        project.git(&["config", name, value]);
    }
    ran
}

/// Removes an object of a repository.
fn lose(project: &Project, name: &str) {
    let output = Command::new("git").arg("-C").arg(project.path("")).args(["rev-parse", name]).output();
    let hash = String::from_utf8(output.expect("git runs").stdout).expect("text");
    let (folder, file) = hash.trim().split_at(2);
    std::fs::remove_file(project.path(&format!(".git/objects/{folder}/{file}"))).expect("an object");
}

#[test]
fn program_that_a_partial_clone_names_does_not_run() {
    let files = [(".gitignore", "data"), ("pyproject.toml", "a"), ("src/a.py", "1"), ("other/b.py", "1")];
    let sparse = || {
        let project = Project::in_git(&files);
        project.git(&["commit", "--quiet", "--message", "x"]);
        project.git(&["sparse-checkout", "init", "--cone", "--sparse-index"]);
        project.git(&["sparse-checkout", "set", "src"]);
        project
    };
    // A directory that the index holds as one entry, and rules that only the index has.
    let project = sparse();
    lose(&project, "HEAD:other");
    let ran = promise(&project);
    drop(project.sources());
    assert!(!ran.exists());

    let project = Project::in_git(&files);
    project.git(&["commit", "--quiet", "--message", "x"]);
    project.git(&["update-index", "--skip-worktree", ".gitignore"]);
    std::fs::remove_file(project.path(".gitignore")).expect("ours");
    project.write("new.py", "1");
    lose(&project, "HEAD:.gitignore");
    let ran = promise(&project);
    drop(project.sources());
    assert!(!ran.exists());
}

#[test]
fn directory_that_looks_like_a_repository_is_none() {
    let project = Project::of(&[("pyproject.toml", "a"), ("src/a.py", "1")]);
    project.git(&["init", "--quiet", "--bare", "."]);
    let worktree = project.path("");
    project.git(&["config", "core.bare", "false"]);
    project.git(&["config", "core.worktree", worktree.as_str()]);
    project.git(&["add", "src"]);
    let error = project.error();
    assert!(error.contains("git cannot list the files") && error.contains("safe.bareRepository"), "{error}");
}

#[test]
fn repository_that_knows_no_file_is_an_error_and_not_a_directory_without_rules() {
    let project = Project::of(&[("pyproject.toml", "a"), ("secrets.json", "1")]);
    project.git(&["init", "--quiet"]);
    project.write(".git/info/exclude", "secrets.json\n");
    assert_eq!(project.error(), "git knows no file of the project");
}
