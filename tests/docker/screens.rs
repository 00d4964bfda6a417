//! What a person sees of a real build, and what is said of its image: on a terminal that an emulator reads.

use serde_json::Value;

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG};
use crate::terminal::{Resize, Screen, screen_of};

fn on(scene: &Scene, columns: u16, args: &[&str]) -> Screen {
    let screen = screen_of(scene.program.command(args), columns, "", None);
    screen.is_clean();
    screen
}

#[test]
#[ignore = "needs docker"]
fn afternoon_at_a_terminal_is_readable_and_a_tag_verifies_nothing() {
    let scene = Scene::new();
    let locked = on(&scene, 80, &["lock", SPEC]);
    assert_eq!(locked.code, 0, "{}", locked.text);
    assert!(locked.has_color() && locked.text.contains("✓ "), "{}", locked.text);
    // The terminal becomes narrower while bars move.
    let resize = Resize { after: "envforge", columns: 60 };
    let built = screen_of(scene.program.command(&["build", SPEC]), 100, "", Some(resize));
    built.is_clean();
    assert_eq!(built.code, 0, "{}", built.text);
    let steps = built.text.lines().filter(|line| line.starts_with("✓ ")).count();
    assert!(steps >= 2, "each step that ended has a line: {}", built.text);
    for (columns, args) in [
        (40, &["verify", SPEC, "--level", "static"] as &[&str]),
        (200, &["shell", SPEC, "--", "true"]),
        (80, &["shell", SPEC, "--name", "screens", "--detach", "--", "sleep", "600"]),
        (120, &["ps"]),
        (1, &["ps"]),
        (80, &["images"]),
        (80, &["stop", "screens"]),
        (80, &["build", SPEC]),
    ] {
        let screen = on(&scene, columns, args);
        assert_eq!(screen.code, 0, "{args:?}: {}", screen.text);
    }
    tag_verifies_nothing(&scene);
    scene.assert_only_tags_added();
}

/// The image gets a name without `-unverified` from the engine: nothing that envforge says of it changes.
fn tag_verifies_nothing(scene: &Scene) {
    let own = "team-of-tests:1-unverified";
    let renamed = "team-of-tests:1";
    docker(&["tag", TAG, own]);
    docker(&["tag", TAG, renamed]);
    let json = |args: &[&str]| -> Value {
        serde_json::from_str(&scene.succeed(&[args, &["--json"]].concat()).stdout).expect("JSON")
    };
    let images = json(&["images"]);
    let row = images["images"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|row| row["tags"].as_array().is_some_and(|tags| tags.contains(&renamed.into())));
    let row = row.unwrap_or_else(|| panic!("{renamed}: {images}"));
    assert_eq!((&row["verified"], &row["standing"]), (&false.into(), &"static-only".into()), "{row}");
    for args in [&[] as &[&str], &["images"], &["inspect", renamed], &["verify", renamed, "--last"]] {
        let run = scene.succeed(args);
        assert!(!run.stdout.contains("verified at level"), "{args:?}: {}", run.stdout);
    }
    assert_eq!(json(&[])["image"]["verified"], false);
    docker(&["rmi", renamed, own]);
}
