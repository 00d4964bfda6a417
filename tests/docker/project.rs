//! A project file, end to end: everything it asks for is in the image, nothing secret is, and one change costs one layer.

use std::sync::OnceLock;

use serde_json::Value;

use crate::engine::docker;
use crate::scene::Scene;
use crate::wheels::WheelSpec;

const TOKEN: &str = "planted-token-a51c03";
const SECRET: &str = "planted-secret-99f2e1";

const PROJECT: &str = r#"
schema = 1
name = "small"
spec = "pytorch-cuda:2.7-cu118"
copy = [{ from = "configs", to = "/opt/my configs" }, { from = "one*.txt", to = "/opt/one.txt" }]
run = [
    "echo \"$GREETING\" > ~/greeting",
    { command = "wc -c < /run/secrets/hf > ~/length", secrets = ["hf"] },
]

[packages]
requirements = ["requirements.txt"]
apt = ["tree"]
indexes = ["own"]

[variables]
GREETING = "hello $HOME \"you\""

[verify]
checks = [{ name = "imports", command = "python -c 'import own_package; print(own_package.WORD)'" }]
"#;

struct Project {
    scene: Scene,
}

impl Project {
    fn new() -> Self {
        let scene = Scene::new();
        let own = |version: &str| {
            let wheel =
                WheelSpec::new("own-package", version).file("own_package/__init__.py", "WORD = 'mine'\n");
            wheel.build()
        };
        scene.index.publish(vec![own("1.0"), own("1.1")]);
        let address = format!("{}/own", scene.index.url_with("someone", TOKEN));
        let scene =
            scene.set("ENVFORGE_INDEX_OWN", address).set("HF", SECRET).set("ENVFORGE_CONFIG", "config.toml");
        let project = Self { scene };
        let folder = project.scene.program.path("");
        let config =
            format!("[secrets]\nhf = {{ env = 'HF' }}\n[trust]\nprojects = ['{}']\n", folder.display());
        project.write("config.toml", &config);
        project.write("envforge.toml", PROJECT);
        project.write("requirements.txt", "own-package==1.0\n");
        project.write("configs/a.yaml", "a: 1\n");
        project.write("one*.txt", "one\n");
        project
    }

    /// The same with its lock; the first one makes it for all.
    fn locked() -> Self {
        static LOCK: OnceLock<String> = OnceLock::new();
        let project = Self::new();
        if let Some(text) = LOCK.get() {
            project.write("envforge.lock", text);
        } else {
            project.scene.succeed(&["lock"]);
            // Another test may have been faster.
            drop(LOCK.set(project.lock()));
        }
        project
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.scene.program.path(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("ours");
        std::fs::write(path, text).expect("ours");
    }

    fn lock(&self) -> String {
        std::fs::read_to_string(self.scene.program.path("envforge.lock")).expect("beside the project file")
    }

    /// Builds and gives the tag.
    #[track_caller]
    fn build(&self) -> String {
        let run = self.scene.succeed(&["build"]);
        run.stdout.lines().next().expect("a tag").to_owned()
    }
}

fn layers(tag: &str) -> Vec<String> {
    let text = docker(&["inspect", "-f", "{{range .RootFS.Layers}}{{println .}}{{end}}", tag]);
    text.lines().map(str::to_owned).collect()
}

fn in_image(tag: &str, command: &str) -> String {
    docker(&["run", "--rm", "--network", "none", tag, "bash", "-c", command])
}

#[test]
#[ignore = "needs docker"]
fn project_gets_its_additions_and_one_package_is_one_layer() {
    let project = Project::new();
    project.scene.lock_frozen();
    let tag = project.build();
    assert!(tag.starts_with("envforge/small:") && tag.ends_with("-unverified"), "{tag}");
    assert_eq!(in_image(&tag, "tree --version | cut -c1-4"), "tree");
    assert_eq!(in_image(&tag, "python -c 'import own_package, torch; print(own_package.WORD)'"), "mine");
    assert_eq!(
        in_image(&tag, "cat ~/greeting; echo \"$GREETING\""),
        "hello $HOME \"you\"\nhello $HOME \"you\""
    );
    assert_eq!(
        in_image(&tag, "cat '/opt/my configs/a.yaml' /opt/one.txt; stat -c %U /opt/one.txt"),
        "a: 1\none\ndev"
    );
    assert_eq!(in_image(&tag, "cat ~/length"), SECRET.len().to_string());

    // Nothing secret is in the image, its history, the lock or what was said.
    let lock = project.lock();
    let history = docker(&["history", "--no-trunc", &tag]) + &docker(&["inspect", &tag]);
    let content = in_image(
        &tag,
        &format!("grep -rlaF -e {TOKEN} -e {SECRET} /opt /home /etc /run /var 2>/dev/null; true"),
    );
    assert_eq!(content, "");
    for text in [&lock, &history] {
        assert!(!text.contains(TOKEN) && !text.contains(SECRET), "{text}");
        assert!(!text.contains(&project.scene.index.url()), "an address: {text}");
    }
    assert!(project.scene.index.seen().iter().any(|seen| seen.authorization.is_some()), "the token was used");

    // Again: the same lock, the same image.
    assert_eq!(project.build(), tag);
    assert_eq!(project.lock(), lock);

    // Another file: the lock is changed without resolving anything, and no package layer is.
    project.scene.index.take_downloads();
    project.write("configs/a.yaml", "a: 2\n");
    let run = project.scene.succeed(&["build"]);
    assert!(run.stderr.contains("copied files: locked `configs"), "{}", run.stderr);
    assert!(!run.stderr.contains("resolve distribution packages"), "{}", run.stderr);
    let edited = run.stdout.lines().next().expect("a tag").to_owned();
    assert_eq!(in_image(&edited, "cat '/opt/my configs/a.yaml'"), "a: 2");
    let before = layers(&edited);

    // One pure-Python package more: everything below its layer is shared.
    project.write("requirements.txt", "own-package==1.0\nhumanize==4.9.0\n");
    project.scene.lock_with_only(&["lock"], &project.lock(), &["humanize-4.9.0"]);
    let more = project.build();
    let after = layers(&more);
    let shared = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    // Above: the user's packages, envforge's own files, two copies, two commands.
    assert_eq!(before.len() - shared, 6, "{before:#?}\n{after:#?}");
    project.scene.assert_no_temporary_files();
}

/// Copies, commands with a secret, a distribution package and a package of an index with a login.
#[test]
#[ignore = "needs docker"]
fn assembled_project_has_the_content_of_the_dockerfile_and_no_secret() {
    let project = Project::locked();
    let built = |builder: &str| -> Value {
        let run = project.scene.succeed(&["build", "--builder", builder, "--json"]);
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let assembled = built("assembled");
    let tag = assembled["tags"][0].as_str().expect("a tag").to_owned();
    assert_eq!(in_image(&tag, "python -c 'import own_package; print(own_package.WORD)'"), "mine");
    assert_eq!(in_image(&tag, "cat '/opt/my configs/a.yaml' /opt/one.txt"), "a: 1\none");
    assert_eq!(in_image(&tag, "cat ~/length"), SECRET.len().to_string());
    let said = docker(&["history", "--no-trunc", &tag]) + &docker(&["inspect", &tag]);
    let content = in_image(
        &tag,
        &format!("grep -rlaF -e {TOKEN} -e {SECRET} /opt /home /etc /run /var 2>/dev/null; true"),
    );
    assert_eq!(content, "");
    assert!(
        !said.contains(TOKEN) && !said.contains(SECRET) && !said.contains(&project.scene.index.url()),
        "{said}"
    );
    let digest = project.scene.succeed(&["lock", "--digest"]).stdout;

    // The lock records the content by now: another one is an error that names every difference.
    assert_ne!(built("dockerfile")["image"], assembled["image"]);
    assert_eq!(project.scene.succeed(&["lock", "--digest"]).stdout, digest);
}

#[test]
#[ignore = "needs docker"]
fn failing_project_check_leaves_no_tag() {
    let project = Project::locked();
    project.write("envforge.toml", &PROJECT.replace("own_package.WORD)", "own_package.NOTHING)"));
    project.scene.fail(&["build"], 1, &["project-imports", "NOTHING"]);
    let tags = project.scene.added().tags;
    assert!(!tags.iter().any(|tag| tag.starts_with("envforge/small")), "{tags:?}");
}

#[test]
#[ignore = "needs docker"]
fn unavailable_package_is_reported_with_its_requirement() {
    let project = Project::new();
    let toml = |packages: &str| {
        format!("schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.7-cu118'\n[packages]\n{packages}\n")
    };
    project.write("envforge.toml", &toml("apt = ['no-such-package-anywhere']"));
    project.scene.fail(&["lock"], 1, &["no-such-package-anywhere", "[packages] apt"]);
    project.write("envforge.toml", &toml("python = ['torch==2.5.0']"));
    // The matrix knows it before any index is asked.
    project.scene.fail(&["lock"], 1, &["companion-mismatch", "torch==2.5.0: the stack is torch 2.7.1"]);
    let wrong = "0".repeat(64);
    project.write("requirements.txt", &format!("own-package==1.0 --hash=sha256:{wrong}\n"));
    project.write("envforge.toml", &toml("requirements = ['requirements.txt']\nindexes = ['own']"));
    project.scene.fail(&["lock"], 1, &["own_package-1.0", "requirement files do not list"]);
    assert!(!project.scene.program.path("envforge.lock").exists(), "nothing was written");
    project.scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn spec_with_packages_equals_the_project_file() {
    let project = Project::new();
    let run = project.scene.succeed(&[
        "build",
        "pytorch-cuda:2.7-cu118",
        "--with",
        "humanize==4.9.0",
        "--apt",
        "tree",
    ]);
    let tag = run.stdout.lines().next().expect("a tag");
    assert!(tag.starts_with("envforge/pytorch-cuda:"), "{tag}");
    assert_eq!(in_image(tag, "tree --version | cut -c1-4; python -c 'import humanize'"), "tree");
    project.scene.assert_no_temporary_files();
}

#[test]
#[ignore = "needs docker"]
fn built_images_are_listed_described_compared_and_pruned() {
    let project = Project::locked();
    let first = project.build();
    project.write("configs/a.yaml", "a: 2\n");
    let second = project.build();
    let scene = &project.scene;
    let json = |args: &[&str]| -> Value {
        let run = scene.succeed(&[args, &["--json"]].concat());
        serde_json::from_str(&run.stdout).expect("JSON")
    };
    let images = json(&["images"]);
    let row = |tag: &str| {
        let rows = images["images"].as_array().expect("a list");
        rows.iter().find(|row| row["tags"][0] == tag).unwrap_or_else(|| panic!("{tag}: {images}")).clone()
    };
    assert_eq!((&row(&first)["in_use"], &row(&second)["in_use"]), (&Value::Bool(false), &Value::Bool(true)));
    assert_eq!(row(&second)["verified"], false);
    let id = |tag: &str| docker(&["inspect", "-f", "{{.Id}}", tag]);
    assert_eq!(id("envforge/small:current-unverified"), id(&second), "what was built last");
    assert_eq!(row(&first)["tags"].as_array().map(Vec::len), Some(1), "{images}");
    assert!(row(&second)["shared"].as_u64() > row(&second)["size"].as_u64().map(|size| size / 2), "{images}");

    let size = json(&["size"]);
    let component = |name: &str| {
        let all = size["components"].as_array().expect("a list");
        all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {size}")).clone()
    };
    assert!(component("added Python packages")["shared_with"].as_u64() >= Some(1), "{size}");
    assert!(component("added distribution packages")["size"].as_u64() > Some(0), "{size}");
    assert!(component("base")["size"].as_u64() > Some(50_000_000), "{size}");

    let diff = scene.succeed(&["diff", &first, &second]);
    assert!(diff.stdout.starts_with("copy: /opt/my configs "), "{}", diff.stdout);
    let document = scene.succeed(&["inspect", "--sbom"]).stdout;
    let document: Value = serde_json::from_str(&document).expect("JSON");
    let packages = document["packages"].as_array().expect("a list");
    for name in ["own-package", "torch", "tree", "python3"] {
        assert!(packages.iter().any(|package| package["name"] == name), "`{name}` is missing");
    }
    assert!(scene.succeed(&["inspect", &second]).stdout.contains("user       own-package 1.0"));

    let listed = scene.succeed(&["prune"]);
    assert!(listed.stdout.contains(&first) && !listed.stdout.contains(&second), "{}", listed.stdout);
    assert_eq!(json(&["images"])["images"], images["images"], "only listed");
    scene.succeed(&["prune", "--yes"]);
    let left = scene.succeed(&["images"]).stdout;
    assert!(!left.contains(&first) && left.contains(&second), "{left}");
    failed_build_is_shown_and_pruned(&project);
}

/// A build whose check fails has an image without a tag, which is neither forgotten nor kept for ever.
fn failed_build_is_shown_and_pruned(project: &Project) {
    let scene = &project.scene;
    project.write("envforge.toml", &PROJECT.replace("print(own_package.WORD)", "import absent"));
    let run = scene.program.run(&["build"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&scene.succeed(&[args, &["--json"]].concat()).stdout).expect("JSON")
    };
    let status = json(&[]);
    assert_eq!(status["image"]["standing"], "failed", "{status}");
    assert_eq!(status["next"], "envforge verify --last", "{status}");
    let listed = scene.succeed(&["images"]).stdout;
    let name = status["image"]["name"].as_str().expect("a short id").to_owned();
    let line =
        listed.lines().find(|line| line.starts_with(&name)).unwrap_or_else(|| panic!("{name}: {listed}"));
    assert!(line.contains("  failed: "), "{line}");
    let pruned = scene.succeed(&["prune", "--yes"]).stdout;
    assert!(pruned.contains(&name), "{pruned}");
    assert!(!scene.succeed(&["images"]).stdout.contains(&name), "it is gone");
}

#[test]
#[ignore = "nightly: needs docker and ENVFORGE_INDEX, an index of everything"]
fn offline_build_is_equal_and_a_changed_byte_is_reported() {
    let mut project = Project::new();
    // A run step without a secret: what a site without network has are its files.
    project.write(
        "envforge.toml",
        &PROJECT.replace("{ command = \"wc -c < /run/secrets/hf > ~/length\", secrets = [\"hf\"] },", ""),
    );
    let online = project.scene.succeed(&["build", "--base-provider", "bootstrap", "--no-cache"]);
    let tag = online.stdout.lines().next().expect("a tag").to_owned();
    let digest = project.scene.succeed(&["lock", "--digest"]).stdout;
    let gathered = project.scene.succeed(&["vendor", "vendor"]);
    assert!(gathered.stderr.contains("files, "), "{}", gathered.stderr);
    assert_eq!(project.scene.succeed(&["vendor", "vendor", "--check"]).stdout, "");
    let again = project.scene.succeed(&["vendor", "vendor"]);
    assert!(again.stderr.contains(" 0 of them new"), "{}", again.stderr);

    // Every address leads nowhere now, and the cache is an empty one.
    docker(&["rmi", &tag]);
    let cache = project.scene.program.path("other-cache").to_string_lossy().into_owned();
    for name in
        ["ENVFORGE_INDEX", "ENVFORGE_INDEX_OWN", "ENVFORGE_DEBIAN_MIRROR", "ENVFORGE_DEBIAN_SECURITY_MIRROR"]
    {
        project.scene.program.set(name, "http://127.0.0.1:9/x");
    }
    project.scene.program.set("ENVFORGE_FRAMEWORK_INDEX", "http://127.0.0.1:9/{cuda}");
    project.scene.program.set("ENVFORGE_CACHE_DIR", &cache);
    project.scene.index.take_downloads();
    project.scene.succeed(&["build", "--offline", "vendor", "--no-cache"]);
    assert_eq!(project.scene.index.take_downloads(), Vec::<String>::new());
    assert_eq!(project.scene.succeed(&["lock", "--digest"]).stdout, digest, "the same content");

    let mut files = crate::scene::files_below(&project.scene.program.path("vendor/files"));
    let file = files.remove(0);
    let mut bytes = std::fs::read(&file).expect("a file of the folder");
    bytes[0] ^= 1;
    std::fs::remove_file(&file).expect("ours");
    std::fs::write(&file, bytes).expect("ours");
    let run = project.scene.program.run(&["vendor", "vendor", "--check"]);
    assert_eq!((run.code, run.stdout.starts_with("damaged ")), (1, true), "{}{}", run.stdout, run.stderr);
    project.scene.fail(&["build", "--offline", "vendor"], 2, &["is damaged", "envforge vendor"]);
}

#[test]
#[ignore = "needs docker and docker-compose"]
fn compose_reads_an_exported_project() {
    let project = Project::locked();
    let text =
        PROJECT.replace("{ command = \"wc -c < /run/secrets/hf > ~/length\", secrets = [\"hf\"] },", "");
    project.write(
        "envforge.toml",
        &format!("{text}[shell]\nports = [\"6006\"]\nmemory = \"4g\"\njupyter = true\n"),
    );
    project.scene.succeed(&["export", "compose", "out"]);
    let folder = project.scene.program.path("out");
    assert!(folder.join("image/Dockerfile").is_file() && folder.join("README.md").is_file());
    let mut compose = std::process::Command::new("docker-compose");
    let call = compose.args(["--profile", "jupyter", "config"]).current_dir(&folder);
    let read = call.output().expect("docker-compose is installed");
    let said = String::from_utf8_lossy(&read.stdout).into_owned() + &String::from_utf8_lossy(&read.stderr);
    assert!(read.status.success(), "{said}");
    for part in [
        "envforge/small:",
        "127.0.0.1:6006:6006",
        "127.0.0.1:8888:8888",
        "mem_limit: 4g",
        "nvidia",
        "1000:1000",
        ":/home/dev",
        "no-new-privileges",
        "jupyter:",
    ] {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
}
