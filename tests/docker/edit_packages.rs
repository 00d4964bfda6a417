//! `add` and `remove` with a resolver: file and lock change together, or not at all.

use crate::scene::{SPEC, Scene};
use crate::wheels::WheelSpec;

#[test]
#[ignore = "needs docker"]
fn package_is_added_and_removed_with_its_lock() {
    let scene = Scene::new();
    let own = |version: &str| WheelSpec::new("own-package", version).build();
    scene.index.publish(vec![own("1.0"), own("1.1")]);
    let address = format!("{}/own", scene.index.url());
    let scene = scene.set("ENVFORGE_INDEX_OWN", address);
    let read = |name: &str| std::fs::read_to_string(scene.program.path(name)).expect("in the project");
    let file = format!(
        "schema = 1\nname = \"small\"\nspec = \"{SPEC}\"  # fixed\n[packages]\nindexes = [\"own\"]  # ours\n"
    );
    std::fs::write(scene.program.path("envforge.toml"), &file).expect("a file of ours");

    let run = scene.succeed(&["add", "own-package<1.1"]);
    assert!(run.stderr.contains("envforge.toml: added `own-package<1.1`"), "{}", run.stderr);
    assert!(run.stdout.ends_with("envforge.lock\n"), "{}", run.stdout);
    assert_eq!(read("envforge.toml"), format!("{file}python = [\"own-package<1.1\"]\n"));
    let locked = |lock: &str, version: &str| lock.contains(&format!("own_package-{version}-"));
    let lock = read("envforge.lock");
    assert!(locked(&lock, "1.0"), "{lock}");

    let before = read("envforge.toml");
    scene.fail(&["add", "own-package==9"], 1, &["own-package", "envforge.toml is unchanged"]);
    assert_eq!((read("envforge.toml"), read("envforge.lock")), (before, lock));

    let run = scene.succeed(&["add", "own-package", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (&report["changes"][0]["from"], &report["lock"]["new"]),
        (&"own-package<1.1".into(), &true.into())
    );
    // A wider limit keeps what is locked, as `lock` does.
    assert!(locked(&read("envforge.lock"), "1.0"));
    scene.succeed(&["remove", "own_package"]);
    assert_eq!(read("envforge.toml"), format!("{file}python = []\n"));
    assert!(!read("envforge.lock").contains("own_package"));
}
