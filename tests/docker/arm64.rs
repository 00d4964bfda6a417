//! An image for another processor than the engine's: locked and planned here, built where it can run.

use crate::scene::Scene;

#[test]
#[ignore = "needs docker"]
fn arm64_is_locked_with_its_own_packages_and_not_built() {
    let scene = Scene::new();
    let arm = ["--platform", "linux/arm64", "--base-provider", "bootstrap", "--target", "any"];
    let with = |words: &[&'static str]| -> Vec<&'static str> { words.iter().chain(&arm).copied().collect() };
    scene.succeed(&with(&["lock", "pytorch-cuda:2.11-cu130"]));
    let lock: toml::Table = scene.lock().parse().expect("TOML");
    let tables = |value: &toml::Value| -> Vec<toml::Table> {
        value.as_array().expect("a list").iter().map(|row| row.as_table().expect("a table").clone()).collect()
    };
    let text = |row: &toml::Table, key: &str| row[key].as_str().expect("a text").to_owned();
    let (base, system) = (tables(&lock["base"]["packages"]), tables(&lock["system"]));
    for deb in base.iter().chain(&system) {
        assert!(["arm64", "all"].contains(&text(deb, "architecture").as_str()), "{deb}");
    }
    assert!(base.iter().any(|deb| text(deb, "name") == "libc6" && text(deb, "architecture") == "arm64"));
    assert!(system.iter().any(|deb| text(deb, "name") == "gcc" && text(deb, "architecture") == "arm64"));
    let both = base.iter().filter(|deb| system.iter().any(|other| text(other, "name") == text(deb, "name")));
    assert_eq!(both.count(), 0, "what the base has is not installed again");
    let wheels: Vec<_> = tables(&lock["wheels"]).iter().map(|wheel| text(wheel, "file")).collect();
    assert!(wheels.iter().any(|file| file.starts_with("torch-") && file.contains("aarch64")), "{wheels:?}");
    assert!(!wheels.iter().any(|file| file.contains("x86_64")), "{wheels:?}");
    assert!(text(&tables(&lock["tools"])[0], "file").contains("aarch64"));

    // The context is whole; what would run it is not here.
    let run = scene.succeed(&with(&["build", "pytorch-cuda:2.11-cu130", "--dry-run"]));
    for part in ["debs/libgcc-12-dev_", "_arm64.deb", "tools/uv", "wheels/framework.txt", "Dockerfile"] {
        assert!(run.stdout.contains(part), "`{part}` is missing in: {}", run.stdout);
    }
    assert!(!run.stdout.contains("_amd64.deb"), "{}", run.stdout);
    let words = with(&["build", "pytorch-cuda:2.11-cu130"]);
    scene.fail(&words, 3, &["engine is linux/amd64", "linux/arm64", "--lockfile"]);
    let image = [
        "lock",
        "pytorch-cuda:2.11-cu130",
        "--upgrade",
        "--platform",
        "linux/arm64",
        "--base-provider",
        "image",
    ];
    scene.fail(&image, 3, &["engine is linux/amd64"]);
    scene.assert_nothing_left();
}
