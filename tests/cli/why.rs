//! `why`: from a package of the lock to what was requested, offline. No engine is asked.

use std::time::Instant;

use envforge::model::lock::{Lock, UserAdditions};

use crate::program::Program;
use crate::vendor::locked;
use crate::verify::{SPEC, lock};
use crate::wheels::{Wheel, WheelSpec, sha256};
use crate::{assert_message, program};

/// A project that requested `front`, which requires `middle`, which requires `deep`.
fn wheels() -> [Wheel; 3] {
    [
        WheelSpec::new("front", "1.0").requires("middle>=1 ; sys_platform == 'linux'").build(),
        WheelSpec::new("middle", "1.5").requires("deep<3").requires("absent ; extra == 'x'").build(),
        WheelSpec::new("deep", "2.0").build(),
    ]
}

/// The project with its lock; the wheels are in the cache if `cached`.
fn project(cached: bool) -> Program {
    let program = program().with("DOCKER_HOST", "unix:///nothing/here.sock");
    let text = format!(
        "schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n[packages]\npython = [\"front\"]\n"
    );
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let added = UserAdditions {
        project: Some("p".to_owned()),
        python: vec!["front".to_owned()],
        ..UserAdditions::default()
    };
    let lock = Lock { added, wheels: wheels().iter().map(locked).collect(), ..lock() };
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
    for wheel in wheels().iter().filter(|_| cached) {
        let hash = sha256(&wheel.bytes);
        let folder = program.path("cache/sha256").join(&hash[..2]);
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(folder.join(&hash), &wheel.bytes).expect("ours");
    }
    program
}

#[test]
fn chain_leads_from_the_lock_to_what_was_requested() {
    let program = project(true);
    let run = program.run(&["why", "Deep"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for line in [
        "deep 2.0\n",
        "  file     deep-2.0-py3-none-any.whl, index `default`, layer user\n",
        "  version  chosen by the resolver, from what index `default` had on ",
        "  bounds   deep<3 (middle)\n",
        "  because  project: front -> front 1.0 requires middle>=1 -> middle 1.5 requires deep<3\n",
    ] {
        assert!(run.stdout.contains(line), "{line}: {}", run.stdout);
    }
    assert!(!run.stdout.contains("not known here"), "{}", run.stdout);
    let run = program.run(&["why", "deep", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&report["schema"], &report["layer"]), (&1.into(), &"user".into()));
    assert_eq!(report["chains"][0]["requested_by"], "project");
    assert_eq!(report["chains"][0]["through"][1]["requirement"], "deep<3");
    assert_eq!(report["unknown"], serde_json::json!([]));
}

#[test]
fn requirements_that_are_not_in_the_cache_are_not_known() {
    let program = project(false);
    let run = program.run(&["why", "deep"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("not known here: the requirements of 3 wheels"), "{}", run.stdout);
    assert!(!run.stdout.contains("because"), "{}", run.stdout);
    // What was requested is in the lock.
    assert!(program.run(&["why", "front"]).stdout.contains("because  project: front\n"));
    // A damaged wheel is like one that is missing.
    let program = project(true);
    let hash = sha256(&wheels()[1].bytes);
    std::fs::write(program.path("cache/sha256").join(&hash[..2]).join(&hash), "damaged").expect("ours");
    let run = program.run(&["why", "deep"]);
    assert!(run.stdout.contains("the requirements of 1 wheel missing"), "{}{}", run.stdout, run.stderr);
}

#[test]
fn package_that_is_not_locked_is_an_answer() {
    let program = project(true);
    assert_message(
        &program.run(&["why", "depe"]),
        1,
        &["`depe` is not in the lock of", "the lock has `deep`"],
    );
    assert_message(&program.run(&["why", "scipy"]), 1, &["`envforge add scipy` adds it"]);
    std::fs::remove_file(program.path("envforge.lock")).expect("ours");
    assert_message(&program.run(&["why", "deep"]), 1, &["lock file not found", "run `envforge lock` first"]);
}

/// Wheels of the number and size of a real image: what is read of them is their list of files and METADATA.
#[test]
#[ignore = "by hand: measures, on a quiet machine with a release build"]
#[expect(clippy::print_stderr, reason = "the figure of the run")]
fn answer_over_a_real_number_of_wheels() {
    let program = project(true);
    let mut all = Vec::new();
    for number in 0..180 {
        let mut spec = WheelSpec::new(&format!("package-{number}"), "1.0").requires("deep");
        for file in 0..400 {
            spec = spec.file(&format!("package_{number}/{file}.py"), "x = 1\n");
        }
        all.push(spec.build());
    }
    let text = std::fs::read_to_string(program.path("envforge.lock")).expect("a lock");
    let mut lock = Lock::from_bytes("envforge.lock", text.as_bytes()).expect("a lock");
    for wheel in &all {
        let hash = sha256(&wheel.bytes);
        let folder = program.path("cache/sha256").join(&hash[..2]);
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(folder.join(&hash), &wheel.bytes).expect("ours");
        lock.wheels.push(locked(wheel));
    }
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
    let started = Instant::now();
    assert_eq!(program.run(&["why", "deep"]).code, 0);
    eprintln!("{} wheels: {:?}", all.len(), started.elapsed());
}
