//! `lock --from` with a lock file that uv made, and `export pylock` of what comes out: with the real resolver and index.

use std::path::Path;

use envforge::model::lock::Lock;

use crate::scene::{SPEC, Scene};

fn lock(scene: &Scene) -> Lock {
    let bytes = std::fs::read(scene.program.path("envforge.lock")).expect("written");
    Lock::from_bytes("envforge.lock", &bytes).expect("a lock")
}

fn version<'lock>(lock: &'lock Lock, name: &str) -> &'lock str {
    let wheel = lock.wheels.iter().find(|wheel| wheel.name == name);
    wheel.map_or("", |wheel| &wheel.version)
}

#[test]
#[ignore = "needs docker"]
fn versions_of_another_tool_are_kept_and_come_back_from_an_export() {
    let scene = Scene::new();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool_locks/uv/uv.lock");
    // The stack has 2.7.1.
    let uv_lock = std::fs::read_to_string(fixture).expect("a fixture");
    let uv_lock =
        uv_lock.replace("name = \"torch\"\nversion = \"2.7.1\"", "name = \"torch\"\nversion = \"2.7.0\"");
    std::fs::write(scene.program.path("uv.lock"), uv_lock).expect("ours");
    let text = format!(
        "schema = 1\nname = 'small'\nspec = '{SPEC}'\n[target]\nany = true\n[packages]\npython = ['einops', 'opt-einsum', 'rich>=14', 'networkx']\n"
    );
    std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    let run = scene.succeed(&["lock", "--from", "uv.lock"]);
    let made = lock(&scene);
    // Of the project, of a dependency of it, and of one that the other lock alone names.
    for (name, kept) in [
        ("einops", "0.8.0"),
        ("opt-einsum", "3.3.0"),
        ("networkx", "3.5"),
        ("markdown-it-py", "3.0.0"),
        ("mdurl", "0.1.2"),
    ] {
        assert_eq!(version(&made, name), kept, "{name}: {}", run.stderr);
    }
    assert!(version(&made, "rich") >= "14", "{}", run.stderr);
    for line in [
        "uv.lock: ",
        &format!("  rich 13.9.4 -> {}: `rich>=14` of the project\n", version(&made, "rich")),
        "  torch 2.7.0 -> 2.7.1+cu118: `torch==2.7.1` of the matrix\n",
        "  not in the image: ",
    ] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
    // The versions are the lock's own from now on, and the same ones again change nothing.
    let before = std::fs::read(scene.program.path("envforge.lock")).expect("written");
    let run = scene.succeed(&["lock", "--from", "uv.lock", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert!(report["from"]["kept"].as_u64() > Some(5), "{report}");
    assert_eq!(std::fs::read(scene.program.path("envforge.lock")).expect("written"), before);
    scene.succeed(&["lock", "--check"]);

    scene.succeed(&["export", "pylock", "pylock.toml"]);
    let text = std::fs::read_to_string(scene.program.path("pylock.toml")).expect("written");
    let pylock: toml::Table = text.parse().expect("TOML");
    let packages = pylock["packages"].as_array().expect("packages");
    assert_eq!(packages.len(), made.wheels.len());
    for wheel in &made.wheels {
        assert!(text.contains(&wheel.sha256) && text.contains(&wheel.file), "{}", wheel.file);
    }
    // Without its own lock the export alone gives the same files.
    std::fs::rename(scene.program.path("envforge.lock"), scene.program.path("first.lock")).expect("ours");
    let run = scene.succeed(&["lock", "--from", "pylock.toml"]);
    assert_eq!(lock(&scene).wheels, made.wheels, "{}", run.stderr);
    assert!(
        run.stderr.contains(&format!("pylock.toml: {} versions kept, 0 moved", made.wheels.len())),
        "{}",
        run.stderr
    );
    scene.assert_nothing_left();
}
