//! Which index a package comes from: further indexes come first and win, a name in several is reported, one index can be chosen.

use crate::engine::bridge_address;
use crate::index::Index;
use crate::program::Run;
use crate::scene::{SPEC, Scene};
use crate::wheels::{Wheel, WheelSpec};

fn tool(version: &str) -> Wheel {
    WheelSpec::new("own-package", version)
        .file("own_package/__init__.py", &format!("WORD = '{version}'\n"))
        .build()
}

/// A project with an index `internal` and one that anybody can publish to.
struct Project {
    scene: Scene,
    internal: Index,
    public: Index,
}

impl Project {
    fn new() -> Self {
        let scene = Scene::new();
        let internal = Index::on(bridge_address(), vec![tool("1.0")]);
        let public = Index::on(bridge_address(), vec![tool("99.0")]);
        let address = |index: &Index| format!("{}/simple", index.url_with("someone", "planted-token"));
        let scene = scene
            .set("ENVFORGE_INDEX_INTERNAL", address(&internal))
            .set("ENVFORGE_INDEX_PUBLIC", address(&public));
        Self { scene, internal, public }
    }

    fn wants(&self, python: &str, indexes: &[&str]) {
        let text = format!(
            "schema = 1\nname = 'small'\nspec = '{SPEC}'\n[packages]\nindexes = {indexes:?}\npython = [{python}]\n"
        );
        std::fs::write(self.scene.program.path("envforge.toml"), text).expect("ours");
    }

    #[track_caller]
    fn lock(&self, more: &[&str]) -> (String, Run) {
        let run = self.scene.succeed(&[&["lock"], more].concat());
        let path = self.scene.program.path("envforge.lock");
        (std::fs::read_to_string(path).expect("beside the project file"), run)
    }
}

/// The entry of a package in a lock.
fn entry<'lock>(lock: &'lock str, name: &str) -> &'lock str {
    let (_, wheels) = lock.split_once("wheels = [").expect("the list of wheels");
    wheels.lines().find(|line| line.contains(&format!("{{ name = \"{name}\","))).expect(name)
}

#[test]
#[ignore = "needs docker"]
fn first_index_wins_over_a_newer_version_elsewhere() {
    let project = Project::new();
    project.wants("'own-package'", &["internal", "public"]);
    let (lock, run) = project.lock(&[]);
    let found = entry(&lock, "own-package");
    assert!(found.contains("version = \"1.0\"") && found.contains("index-name = \"internal\""), "{found}");
    assert!(!lock.contains("://") && !lock.contains("planted-token"), "no address is in a lock: {lock}");
    let warning =
        "warning: `own-package` comes from index `internal`; a package of that name is also in `public`";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    assert!(!entry(&lock, "filelock").contains("index-name"), "it comes from the default index");

    // The same lock again asks nobody and stays as it is, byte by byte.
    let asked = project.internal.seen().len() + project.public.seen().len();
    assert_eq!(project.lock(&[]).0, lock);
    assert_eq!(project.internal.seen().len() + project.public.seen().len(), asked);

    // The other way round the other one wins, and what moved is said.
    project.wants("'own-package'", &["public", "internal"]);
    assert_eq!(project.lock(&[]).0, lock, "a lock that exists stays valid");
    let (moved, run) = project.lock(&["--upgrade"]);
    assert!(entry(&moved, "own-package").contains("index-name = \"public\""), "{moved}");
    assert!(run.stderr.contains("index: own-package internal 1.0 -> public 99.0"), "{}", run.stderr);
    project.scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn package_of_one_index_comes_from_nowhere_else() {
    let project = Project::new();
    project.wants("{ name = 'own-package', index = 'public' }", &["internal"]);
    let (lock, run) = project.lock(&[]);
    let found = entry(&lock, "own-package");
    assert!(found.contains("version = \"99.0\"") && found.contains("index-name = \"public\""), "{found}");
    assert!(!run.stderr.contains("warning: `own-package`"), "it was chosen: {}", run.stderr);
    let of_others = |index: &Index| index.seen().iter().any(|seen| seen.path.contains("/filelock/"));
    assert!(of_others(&project.internal), "an index of the project is searched for everything");
    // uv asks the index of one package for the names of others too, while it sorts packages into layers; none comes from it.
    assert!(!entry(&lock, "filelock").contains("index-name"), "it comes from the default index");

    // Its index does not have the version: no other index is asked.
    project.wants("{ name = 'own-package<2', index = 'public' }", &["internal"]);
    let says = ["conflicting requirements", "`own-package<2` is required by envforge.toml"];
    project.scene.fail(&["lock"], 1, &says);

    // On the command line, without any other further index.
    let pin = "{ name = \"own-package\", index = \"internal\" }";
    let run = project.scene.succeed(&["lock", SPEC, "--with", pin, "--lockfile", "one.lock"]);
    let lock = std::fs::read_to_string(project.scene.program.path("one.lock")).expect("made");
    assert!(entry(&lock, "own-package").contains("index-name = \"internal\""), "{}{lock}", run.stderr);
    project.scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn framework_index_serves_no_other_package() {
    let project = Project::new();
    // The framework's index has it too, as a newer one: of the framework's row it is no package.
    project.scene.index.publish(vec![WheelSpec::new("filelock", "99.0").build(), tool("100.0")]);
    project.wants("'own-package'", &["internal"]);
    let (lock, _) = project.lock(&[]);
    assert!(entry(&lock, "own-package").contains("version = \"1.0\""), "{lock}");
    assert!(!entry(&lock, "filelock").contains("version = \"99.0\""), "{lock}");
    for name in ["torch", "torchvision", "triton", "nvidia-cufft-cu11"] {
        assert!(entry(&lock, name).contains("index = \"framework\""), "{name}");
    }
    project.scene.assert_nothing_left();
}

/// `--help` shows such a call. The uv of this program is newer than the date, and than every release that the date allows.
#[test]
#[ignore = "needs docker"]
fn date_limits_packages_but_not_the_uv_of_this_program() {
    let project = Project::new();
    project.scene.index.date("2025-06-04T00:00:00Z");
    project.internal.date("2026-02-01T00:00:00Z");
    project.internal.publish(vec![tool("2.0")]);
    project.internal.date("2026-04-01T00:00:00Z");
    project.wants("'own-package'", &["internal"]);
    let (lock, _) = project.lock(&["--as-of", "2026-03-01"]);
    assert!(entry(&lock, "own-package").contains("version = \"1.0\""), "{lock}");
    let uv = envforge::packages::catalogue()
        .developer_wheels()
        .find_map(|one| one.strip_prefix("uv==").map(str::to_owned));
    let uv = uv.expect("a version");
    assert!(entry(&lock, "uv").contains(&format!("version = \"{uv}\"")), "{lock}");
    let (lock, _) = project.lock(&["--upgrade"]);
    assert!(entry(&lock, "own-package").contains("version = \"2.0\""), "{lock}");
    project.scene.assert_nothing_left();
}
