//! The scripts of the resolver, each with a fake apt-get or uv on the PATH: what they ask, what they answer, how they fail.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use envforge::model::sha256::sha256_hex;

/// Folders of a container, below a folder of this machine.
struct Container {
    root: tempfile::TempDir,
}

impl Container {
    fn new() -> Self {
        let container = Self { root: tempfile::tempdir().expect("a folder") };
        for folder in ["envforge", "lists", "cache", "tmp", "fakes"] {
            std::fs::create_dir_all(container.path(folder)).expect("ours");
        }
        for script in std::fs::read_dir("templates/packages").expect("the scripts") {
            let path = script.expect("readable").path();
            if path.extension().is_some_and(|extension| extension == "sh") {
                let text = std::fs::read_to_string(&path).expect("text");
                let name = path.file_name().expect("a name").to_str().expect("UTF-8");
                container.put(&format!("envforge/{name}"), &container.here(&text));
            }
        }
        container.put("envforge/env", "");
        container
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    /// A text whose absolute paths are below the folder.
    fn here(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for folder in ["envforge", "lists", "cache", "tmp"] {
            for end in ["/", " ", "\"", "\n"] {
                let own = format!("{}{end}", self.path(folder).display());
                text = text.replace(&format!("/{folder}{end}"), &own.replace('/', "\u{1}"));
            }
        }
        text.replace('\u{1}', "/")
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }

    /// A program on the PATH that writes down its arguments.
    fn fake(&self, name: &str, body: &str) {
        let log = self.path("asked");
        let text = format!("#!/bin/sh\necho \"{name} $*\" >>{}\n{}", log.display(), self.here(body));
        self.put(&format!("fakes/{name}"), &text);
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(&format!("fakes/{name}")), mode).expect("ours");
    }

    fn command(&self, script: &str) -> Command {
        let path = format!("{}:{}", self.path("fakes").display(), std::env::var("PATH").expect("a PATH"));
        let mut command = Command::new("sh");
        command.arg(self.path(&format!("envforge/{script}"))).env("PATH", path);
        command
    }

    fn run(&self, script: &str) -> Output {
        self.command(script).output().expect("sh starts")
    }

    /// The answers of a run that ended well.
    #[track_caller]
    fn answers(&self, script: &str) -> BTreeMap<String, String> {
        let output = self.run(script);
        assert!(output.status.success(), "{:?} {}", output.status, String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let answer = |line: &str| {
            let value: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            let field = |name: &str| value[name].as_str().expect("a text").to_owned();
            (field("answer"), field("text"))
        };
        text.lines().map(answer).collect()
    }

    /// What the fakes were asked since the last call.
    fn asked(&self) -> String {
        let path = self.path("asked");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        drop(std::fs::remove_file(path));
        text
    }
}

const TREE: &str =
    "'http://m.test/debian/pool/main/t/tree/tree_2.1.0-1_amd64.deb' tree_2.1.0-1_amd64.deb 52 MD5Sum:0";
const HTOP: &str =
    "'http://m.test/debian/pool/main/h/htop/htop_1%3a3.2-1_all.deb' htop_1%3a3.2-1_all.deb 52 MD5Sum:0";

/// apt-get that lists tree, and htop where it is asked for.
fn debs() -> Container {
    let container = Container::new();
    for (name, text) in [("lists", "/lists/key\n"), ("status", "Package: libc6\n"), ("system.list", "tree\n")]
    {
        container.put(&format!("envforge/{name}"), &container.here(text));
    }
    container.put("envforge/sources/envforge.list", "deb http://m.test/debian bookworm main\n");
    container.fake(
        "apt-get",
        &format!(
            "case \"$*\" in\n\
             update*) [ ! -f /tmp/sources/vendor.sources ] || [ ! -f /envforge/vendor-fails ] || exit 100\n\
             [ ! -f /envforge/fails ] || exit 100\n\
             echo 'Date: Fri, 20 Nov 2026 05:30:11 UTC' >/lists/key/apt/m.test_debian_InRelease;;\n\
             *unknown*) echo 'E: Unable to locate package unknown' >&2; exit 100;;\n\
             download*) echo \"{HTOP}\";;\n\
             *planted*) echo \"'http://m.test/a' -oDir_1_amd64.deb 52 MD5Sum:0\";;\n\
             *other*) echo \"{HTOP}\";;\n\
             *htop*) echo \"{TREE}\"; echo \"{HTOP}\";;\n\
             *) echo \"{TREE}\";;\n\
             esac\n"
        ),
    );
    container
        .fake("apt-cache", "echo 'Package: tree\nSHA256: 0\nDescription: a \"tree\" \\\\ of\tfiles\n'\n");
    container
}

#[test]
fn apt_answers_as_json_and_reads_its_lists_once_a_day() {
    let container = debs();
    let answers = container.answers("resolve_debs.sh");
    assert_eq!(answers["indexes"], "m.test_debian_InRelease Fri, 20 Nov 2026 05:30:11 UTC\n");
    let uris = TREE.split(' ').take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(answers["uris"], format!("{uris}\n"));
    assert_eq!(answers["uris-show"], "Package: tree\nSHA256: 0\n\n");
    assert!(answers.contains_key("end") && !answers.contains_key("apt-uris"));
    let asked = container.asked();
    assert!(asked.starts_with("apt-get update -qq\n"), "{asked}");
    assert!(asked.contains("apt-get install --no-install-recommends --print-uris -qq tree\n"), "{asked}");
    assert!(asked.contains("apt-cache show tree:amd64=2.1.0-1\n"), "{asked}");

    container.answers("resolve_debs.sh");
    assert!(!container.asked().contains("update"), "the lists are of today");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_hours(25);
    let done = std::fs::File::open(container.path("lists/key/done")).expect("a mark");
    done.set_modified(yesterday).expect("ours");
    container.answers("resolve_debs.sh");
    assert!(container.asked().contains("update"), "they are too old");
    container.put("envforge/renew", "");
    container.answers("resolve_debs.sh");
    assert!(container.asked().contains("update"), "they are not to count");
}

#[test]
fn packages_of_the_user_and_of_the_vendor_are_answered_apart() {
    let container = debs();
    container.put("envforge/apt.list", "htop\n");
    container.put("envforge/unpack.list", "nvcc\n");
    container.put("envforge/vendor.sources", "Types: deb\n");
    let answers = container.answers("resolve_debs.sh");
    assert!(answers["uris"].contains("tree_") && !answers["uris"].contains("htop_"));
    assert!(answers["apt-uris"].contains("htop_") && !answers["apt-uris"].contains("tree_"));
    assert!(answers["unpack-uris"].contains("htop_"));
    let asked = container.asked();
    assert_eq!(asked.matches("apt-get update").count(), 2, "the vendor's on its own: {asked}");
    assert!(asked.contains("apt-cache show htop=1:3.2-1\n"), "{asked}");
    container.answers("resolve_debs.sh");
    let path = container.path("tmp/sources/vendor.sources");
    assert!(path.exists() && !container.asked().contains("update"));
}

#[test]
fn failed_step_of_apt_has_its_code_and_keeps_no_list() {
    for (inputs, code) in [
        (&["fails"][..], 40),
        (&["vendor.sources", "vendor-fails"], 47),
        (&["system.list=unknown"], 41),
        (&["apt.list=unknown"], 49),
        (&["apt.list=other"], 50),
        (&["system.list=planted"], 41),
        (&["unpack.list=unknown"], 48),
    ] {
        let container = debs();
        for input in inputs {
            let (name, text) = input.split_once('=').unwrap_or((input, ""));
            container.put(&format!("envforge/{name}"), text);
        }
        let output = container.run("resolve_debs.sh");
        assert_eq!(output.status.code(), Some(code), "{inputs:?}");
        let is_kept = container.path("lists/key/done").exists();
        assert_eq!(is_kept, ![40, 47].contains(&code), "{inputs:?}");
        assert!(!String::from_utf8_lossy(&output.stdout).contains("\"end\""), "{inputs:?}");
    }
}

#[test]
fn base_that_is_a_list_stands_in_the_status_as_installed() {
    let container = debs();
    std::fs::remove_file(container.path("envforge/status")).expect("ours");
    container.put("envforge/base.list", "libc6=2.36-9\n");
    container.answers("resolve_debs.sh");
    let status = std::fs::read_to_string(container.path("tmp/status")).expect("made");
    assert!(status.starts_with("Package: tree\nStatus: install ok installed\n"), "{status}");
    assert!(container.asked().contains("apt-cache show libc6=2.36-9\n"));
}

/// Two runs may not write the same lists at once.
#[test]
fn second_run_waits_for_the_lists_of_the_first() {
    let container = debs();
    let held = container.path("lists/key/lock");
    std::fs::create_dir_all(held.parent().expect("a folder")).expect("ours");
    let held = std::fs::File::create(held).expect("ours");
    held.lock().expect("the file system has locks");
    let mut waiting =
        container.command("resolve_debs.sh").stdout(std::process::Stdio::null()).spawn().expect("sh");
    std::thread::sleep(std::time::Duration::from_millis(500));
    assert!(waiting.try_wait().expect("ours").is_none(), "it waits");
    assert_eq!(container.asked(), "");
    drop(held);
    assert!(waiting.wait().expect("ours").success());
}

/// uv that writes a lock with one package, wherever it is to write one.
const UV: &str = "#!/bin/sh\n\
    echo \"uv $*\" >>/tmp/uv-asked\n\
    [ ! -f /envforge/no-solution ] || { echo 'No solution found' >&2; exit 1; }\n\
    while [ $# -gt 0 ]; do\n\
    if [ \"$1\" = --output-file ]; then printf '[[packages]]\\nname = \"tree\"\\nversion = \"1\"\\nmarker = \"a \\\\ b\"' >\"$2\"; fi\n\
    shift\n\
    done\n\
    printf 'tree==1\\n    # from https://index.test/simple\\n'\n";

fn wheels() -> (Container, String) {
    let container = Container::new();
    let uv = container.here(UV);
    let hash = sha256_hex(uv.as_bytes());
    container.put("envforge/uv", &uv);
    container.put("envforge/uv.sha256", &hash);
    container.put("envforge/python", "/envforge/python-0123\n");
    for file in ["uv.toml", "all.in", "framework.in"] {
        container.put(&format!("envforge/{file}"), "");
    }
    (container, hash)
}

fn asked_of_uv(container: &Container) -> String {
    let path = container.path("tmp/uv-asked");
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    drop(std::fs::remove_file(path));
    text
}

#[test]
fn uv_is_asked_with_the_stated_python_and_answers_as_json() {
    let (container, _) = wheels();
    let answers = container.answers("resolve_wheels.sh");
    assert_eq!(answers["all"], "[[packages]]\nname = \"tree\"\nversion = \"1\"\nmarker = \"a \\ b\"\n");
    assert_eq!(answers["framework"], answers["all"]);
    assert!(!answers.contains_key("stack") && !answers.contains_key("origins"));
    let asked = asked_of_uv(&container);
    assert!(asked.lines().all(|line| line.contains("--python /envforge/python-0123 ")), "{asked}");
    assert!(asked.lines().all(|line| !line.contains("--refresh")), "{asked}");
    assert_eq!(std::fs::read_to_string(container.path("tmp/constraints.txt")).expect("made"), "tree==1\n");
    container.put("envforge/refresh", "");
    container.put("envforge/stack.in", "");
    assert!(container.answers("resolve_wheels.sh").contains_key("stack"));
    assert_eq!(asked_of_uv(&container).matches("--refresh").count(), 1, "the whole set alone");
}

/// An allowed package with the wheel of an old pre-release alone is built: uv takes that wheel where it may.
#[test]
fn wheel_of_a_prerelease_is_no_reason_not_to_build() {
    let (container, _) = wheels();
    let refuses = "case \"$*\" in *'--prerelease explicit'*) echo 'No solution found' >&2; exit 1 ;; esac\n";
    let uv = container.here(&UV.replacen("#!/bin/sh\n", &format!("#!/bin/sh\n{refuses}"), 1));
    container.put("envforge/uv", &uv);
    container.put("envforge/uv.sha256", &sha256_hex(uv.as_bytes()));
    container.put("envforge/source-demo.in", "demo\n");
    container.answers("resolve_wheels.sh");
    let asked = asked_of_uv(&container);
    assert!(asked.contains("--no-binary demo "), "{asked}");
    let text = std::fs::read_to_string(container.path("tmp/uv.toml")).expect("made");
    assert!(text.contains("name = \"demo\"") && text.contains("requires-dist = []"), "{text}");
}

#[test]
fn index_of_each_package_is_answered() {
    let (container, _) = wheels();
    container.put("envforge/order", "internal https://index.test/simple /x\ndefault - /y\n");
    container.put("envforge/sources.toml", "\n[tool.uv.sources]\n");
    let answers = container.answers("resolve_wheels.sh");
    assert_eq!(answers["origins"], "tree https://index.test/simple\n");
    assert!(answers.contains_key("doubles"));
    let project = std::fs::read_to_string(container.path("tmp/in/all/pyproject.toml")).expect("made");
    assert!(project.contains("[tool.uv.sources]"), "{project}");
}

#[test]
fn uv_of_another_hash_is_never_run() {
    let (container, hash) = wheels();
    container.put("envforge/uv.sha256", &"0".repeat(64));
    assert_eq!(container.run("resolve_wheels.sh").status.code(), Some(51));
    assert_eq!(asked_of_uv(&container), "");
    // Once it was sent it lies in the cache, until somebody changes it there.
    container.put("envforge/uv.sha256", &hash);
    container.answers("resolve_wheels.sh");
    std::fs::remove_file(container.path("envforge/uv")).expect("ours");
    container.answers("resolve_wheels.sh");
    assert!(!asked_of_uv(&container).is_empty());
    let program = container.path(&format!("cache/uv-{hash}"));
    let mut text = std::fs::read_to_string(&program).expect("there");
    text.push('#');
    std::fs::write(&program, text).expect("ours");
    for script in ["resolve_wheels.sh", "addresses.sh"] {
        assert_eq!(container.run(script).status.code(), Some(51), "{script}");
    }
    assert_eq!(asked_of_uv(&container), "");
}

#[test]
fn set_without_a_solution_has_its_code() {
    let (container, _) = wheels();
    container.put("envforge/no-solution", "");
    for script in ["resolve_wheels.sh", "addresses.sh"] {
        let output = container.run(script);
        assert_eq!(output.status.code(), Some(43), "{script}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("No solution found"), "{script}");
    }
}

#[test]
fn any_text_is_one_line_of_json() {
    let container = Container::new();
    let text = "a \"quoted\" \\ back\\nslash\ttab\r\n{\"answer\":\"end\",\"text\":\"\"}\n==envforge:end==\nümläut\n\nlast";
    container.put("tmp/text", text);
    container.put(
        "envforge/say.sh",
        &container
            .here(". /envforge/answer.sh\nanswer text /tmp/text\n: >/tmp/none\nanswer none /tmp/none\n"),
    );
    let answers = container.answers("say.sh");
    assert_eq!(answers["text"], format!("{text}\n"));
    assert_eq!((answers["none"].as_str(), answers.len()), ("", 2));
}

#[test]
fn scripts_are_short() {
    for script in std::fs::read_dir("templates/packages").expect("the scripts") {
        let path = script.expect("readable").path();
        if path.extension().is_some_and(|extension| extension == "sh") {
            let lines = std::fs::read_to_string(&path).expect("text").lines().count();
            assert!(lines <= 150, "{} has {lines} lines", Path::new(&path).display());
        }
    }
}
