//! What is said of an image is what its reports prove; its tags and labels say nothing.

use std::fs;
use std::path::PathBuf;

use envforge::model::lock::Lock;
use serde_json::Value;

use crate::gpu_daemon::GpuDaemon;
use crate::program::{Program, Run};
use crate::verify::{H200, SPEC, Scene, cdi, lock, report};

const H200_FULL: &str = "verified at level full on NVIDIA H200 (sm_90), driver not recorded, ";
const A100: &str = "NVIDIA A100 (sm_80)";

/// The same program on an engine whose containers print something else.
struct Engine {
    scene: Scene,
    lock: Lock,
    count: u32,
}

impl Engine {
    /// An engine whose one image was built here and is not checked yet.
    fn new() -> Self {
        let lock = lock();
        Self { scene: Scene::new(cdi(report(&lock, H200, true)), &lock), lock, count: 0 }
    }

    fn program(&self) -> &Program {
        &self.scene.program
    }

    /// Puts another daemon in the engine's place; the image has those tags and its containers print that.
    fn becomes(&mut self, tags: &[&str], prints: String) {
        self.count += 1;
        let socket = self.scene.program.path(format!("docker-{}.sock", self.count));
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        GpuDaemon { tags, lock: self.lock.hash(), ..cdi(prints) }.listen(&socket);
        self.scene.program.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    }

    /// Checks the image under that tag, with containers that print that.
    fn verify(&mut self, tag: &str, prints: String, more: &[&str]) -> Run {
        self.becomes(&[tag], prints);
        self.program().run(&[&["verify", tag], more].concat())
    }

    fn reports(&self) -> PathBuf {
        self.program().path("state/reports").join("a".repeat(64))
    }

    /// What every command says of the image under that tag, which must be the same.
    fn says(&self, tag: &str) -> String {
        let json = |args: &[&str]| -> Value {
            let run = self.program().run(args);
            assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
            serde_json::from_str(&run.stdout).expect("JSON")
        };
        let status = json(&["--json"]);
        let images = json(&["images", "--json"]);
        let inspected = json(&["inspect", tag, "--json"]);
        let all = [&status["image"], &images["images"][0], &inspected];
        for answer in all {
            assert_eq!(answer["verified"], inspected["verified"], "{answer}");
            assert_eq!(answer["standing"], inspected["standing"], "{answer}");
            assert_eq!(answer["proven"], inspected["proven"], "{answer}");
            assert_eq!(answer["verified"], Value::from(answer["standing"] == "verified"), "{answer}");
        }
        let texts: Vec<_> = [vec![], vec!["images"], vec!["inspect", tag], vec!["prune"]]
            .iter()
            .map(|args| self.program().run(args).stdout)
            .collect();
        let says_verified = |text: &String| text.contains("(verified at") || text.contains("  verified");
        for text in &texts[..3] {
            assert_eq!(says_verified(text), inspected["verified"] == true, "{text}");
        }
        inspected["standing"].as_str().expect("a word").to_owned()
    }
}

/// The report of an agent whose check of that id failed.
fn failing(lock: &Lock, id: &str, full: bool) -> String {
    let text = report(lock, H200, full);
    let line = text.lines().find(|line| line.contains(&format!("\"id\":\"{id}\""))).expect("the check");
    text.replace(line, &line.replace("\"passed\"", "\"failed\""))
}

/// The report of an agent that found no GPU.
fn static_only(lock: &Lock) -> String {
    let lines = report(lock, H200, true);
    lines
        .lines()
        .filter(|line| !line.contains("\"stage\":\"gpu\""))
        .map(|line| line.to_owned() + "\n")
        .collect()
}

/// The report of an agent whose GPU another program held.
fn busy(lock: &Lock) -> String {
    let text = report(lock, H200, true);
    let is_product = |line: &&str| line.contains("\"id\":\"gemm-fp32-own\"");
    let line = text.lines().find(is_product).expect("the check");
    let skipped = line.replace("\"outcome\":\"passed\"", "\"outcome\":\"skipped\",\"skip\":\"host-busy\"");
    text.replace(line, &skipped)
}

#[test]
fn tag_of_any_spelling_says_nothing() {
    let mut engine = Engine::new();
    for tags in [&["team:1"][..], &["team:1", "x:1-unverified"], &["pytorch-cuda:2.8.0-cu128-py3.11"]] {
        engine.becomes(tags, String::new());
        assert_eq!(engine.says(tags[0]), "not-checked", "{tags:?}");
        let run = engine.program().run(&[]);
        assert!(run.stdout.contains("(not verified: never checked here)"), "{}", run.stdout);
    }
}

#[test]
fn proven_image_keeps_its_state_under_every_tag() {
    let mut engine = Engine::new();
    let good = report(&engine.lock, H200, true);
    let run = engine.verify("x:1-unverified", good, &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for tag in ["x:1-unverified", "team:1", "another/name:latest"] {
        engine.becomes(&[tag], String::new());
        assert_eq!(engine.says(tag), "verified");
        let run = engine.program().run(&[]);
        assert!(run.stdout.contains(&format!("{tag} ({H200_FULL}")), "{}", run.stdout);
        let run = engine.program().run(&["images"]);
        assert!(run.stdout.contains("  verified: full, NVIDIA H200 (sm_90), "), "{}", run.stdout);
    }
}

#[test]
fn image_from_elsewhere_with_our_label_is_not_verified() {
    let mut engine = Engine::new();
    // Pulled or imported: its label names a lock that is known here, but it was not built here.
    fs::remove_dir_all(engine.program().path("state/built-images")).expect("ours");
    engine.becomes(&["pytorch-cuda:2.8.0-cu128-py3.11"], report(&engine.lock, H200, true));
    let run = engine.program().run(&["images", "--json"]);
    let images: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(images["images"][0]["verified"], false, "{images}");
    let run = engine.program().run(&["verify", "pytorch-cuda:2.8.0-cu128-py3.11"]);
    let run = engine.program().run(&["images", "--json"]).stdout + &run.stdout;
    assert!(!run.contains("\"verified\": true") && !run.contains("verified:"), "{run}");
}

#[test]
fn lower_level_after_a_higher_one_changes_nothing() {
    let mut engine = Engine::new();
    let (full, quick) = (report(&engine.lock, H200, true), report(&engine.lock, H200, false));
    engine.verify("x:1", full, &[]);
    for (prints, level) in [(quick, "quick"), (static_only(&engine.lock), "static")] {
        let run = engine.verify("x:1", prints, &["--level", level]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stderr.contains("withdraws"), "{}", run.stderr);
        assert_eq!(engine.says("x:1"), "verified", "{level}");
    }
    let run = engine.program().run(&["verify", "x:1", "--last"]);
    assert!(run.stdout.contains("passed: ") && run.stdout.contains(H200), "{}", run.stdout);
}

#[test]
fn failure_after_a_pass_withdraws_it_and_says_so() {
    let mut engine = Engine::new();
    let full = report(&engine.lock, H200, true);
    engine.verify("x:1", full.clone(), &[]);
    let run = engine.verify("x:1", failing(&engine.lock, "gemm-fp32-own", false), &["--level", "quick"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(
        run.stderr.contains("this failure withdraws what was proven of the image:\n  level full on"),
        "{}",
        run.stderr
    );
    assert_eq!(engine.says("x:1"), "failed");
    let run = engine.program().run(&[]);
    assert!(run.stdout.contains("(failed at level quick on NVIDIA H200"), "{}", run.stdout);
    // The same GPU passes again; then another GPU fails, and this one still stands.
    engine.verify("x:1", full, &[]);
    assert_eq!(engine.says("x:1"), "verified");
    engine.verify("x:1", failing(&engine.lock, "gemm-fp32-own", true).replace(H200, A100), &[]);
    assert_eq!(engine.says("x:1"), "verified");
    let run = engine.program().run(&["inspect", "x:1"]);
    assert!(run.stdout.contains(&format!("; failed at level full on {A100}")), "{}", run.stdout);
}

#[test]
fn busy_gpu_changes_nothing() {
    let mut engine = Engine::new();
    let run = engine.verify("x:1-unverified", busy(&engine.lock), &[]);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(engine.says("x:1-unverified"), "not-checked");
    let full = report(&engine.lock, H200, true);
    engine.verify("x:1-unverified", full, &[]);
    engine.verify("x:1-unverified", busy(&engine.lock), &[]);
    assert_eq!(engine.says("x:1-unverified"), "verified");
}

#[test]
fn deleted_or_cut_report_proves_nothing() {
    let mut engine = Engine::new();
    let full = report(&engine.lock, H200, true);
    engine.verify("x:1", full.clone(), &[]);
    let file =
        fs::read_dir(engine.reports()).expect("reports").next().expect("one").expect("an entry").path();
    let whole = fs::read(&file).expect("ours");
    fs::write(&file, &whole[..whole.len() / 2]).expect("ours");
    assert_eq!(engine.says("x:1"), "not-checked");
    let run = engine.program().run(&[]);
    assert!(
        run.stderr.contains("cannot be read") && run.stderr.contains(file.to_str().expect("UTF-8")),
        "{}",
        run.stderr
    );
    fs::remove_file(&file).expect("ours");
    assert_eq!(engine.says("x:1"), "not-checked");
    engine.verify("x:1", full, &[]);
    assert_eq!(engine.says("x:1"), "verified");
}

#[test]
fn state_folder_of_another_machine_proves_its_own_images_alone() {
    let mut engine = Engine::new();
    let full = report(&engine.lock, H200, true);
    engine.verify("x:1", full, &[]);
    let other = Engine::new();
    let theirs = other.program().path("state/reports");
    fs::create_dir_all(&theirs).expect("ours");
    // The report of the image of theirs, as if it was of the image here.
    let copied = theirs.join("a".repeat(64));
    fs::create_dir(&copied).expect("ours");
    for entry in fs::read_dir(engine.reports()).expect("reports") {
        let entry = entry.expect("an entry");
        let text = fs::read_to_string(entry.path()).expect("ours").replace(&"a".repeat(64), &"c".repeat(64));
        fs::write(copied.join(entry.file_name()), text).expect("ours");
    }
    assert_eq!(other.says(&format!("{}-unverified", other.lock.stack.name)), "not-checked");
}

#[test]
fn spec_means_the_image_of_its_lock_whatever_has_its_tag() {
    let lock = lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    let plan = scene.program.run(&["plan", SPEC, "--json"]);
    assert_eq!(plan.code, 0, "{}", plan.stderr);
    let name = serde_json::from_str::<Value>(&plan.stdout).expect("JSON")["name"]
        .as_str()
        .expect("a name")
        .to_owned();
    let file = format!("state/locks-of-specs/{}-x86_64.lock", name.replace([':', '/'], "_"));
    fs::rename(scene.program.path("state/locks-of-specs/one.lock"), scene.program.path(file)).expect("ours");
    // Somebody gave the spec's tag to another image, which was not built here.
    let socket = scene.program.path("moved.sock");
    let daemon = GpuDaemon {
        tags: vec!["team:1".to_owned()],
        second: vec![name, SPEC.to_owned()],
        lock: lock.hash(),
        ..cdi(report(&lock, H200, true))
    };
    daemon.listen(&socket);
    let mut program = scene.program;
    program.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    let run = program.run(&["verify", SPEC, "--json"]);
    let verdict: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(verdict["image"], format!("sha256:{}", "a".repeat(64)), "{}", run.stderr);
    assert_eq!(verdict["name"], "team:1");
}

#[test]
fn two_runs_at_once_keep_both_reports() {
    let mut engine = Engine::new();
    engine.becomes(&["x:1"], report(&engine.lock, H200, true));
    let children: Vec<_> = (["full", "quick"].iter())
        .map(|level| {
            let mut command = engine.program().command(&["verify", "x:1", "--level", level]);
            command.spawn().expect("the program starts")
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(fs::read_dir(engine.reports()).expect("reports").count(), 2);
    assert_eq!(engine.says("x:1"), "verified");
}

/// Objects that say what is proven also say other things: no name stands twice.
#[test]
fn no_name_stands_twice_in_an_object() {
    let mut engine = Engine::new();
    let full = report(&engine.lock, H200, true);
    engine.verify("x:1", full, &[]);
    for args in [&["--json"][..], &["images", "--json"], &["inspect", "x:1", "--json"], &["ps", "--json"]] {
        let run = engine.program().run(args);
        let mut open: Vec<std::collections::BTreeSet<String>> = Vec::new();
        for line in run.stdout.lines().map(str::trim) {
            if let Some((name, _)) = line.strip_prefix('"').and_then(|line| line.split_once("\":")) {
                let names = open.last_mut().expect("an object");
                assert!(names.insert(name.to_owned()), "`{name}` stands twice: {}", run.stdout);
            }
            if line.ends_with(['{', '[']) {
                open.push(std::collections::BTreeSet::new());
            } else if line.starts_with(['}', ']']) {
                open.pop();
            }
        }
    }
}

/// A failure is a fact of the image, whoever built it: no tag of a registry gets it, not even one that says that it is not verified.
#[test]
fn image_from_elsewhere_whose_checks_failed_is_pushed_under_no_tag() {
    let mut engine = Engine::new();
    fs::remove_dir_all(engine.program().path("state/built-images")).expect("ours");
    engine.verify("x:1", failing(&engine.lock, "gemm-fp32-own", true), &[]);
    for target in ["box.test/torch:1", "box.test/torch:1-unverified"] {
        let run = engine.program().run(&["push", "x:1", target]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        let says = "an image whose checks failed gets no tag: failed at level full on NVIDIA H200";
        assert!(run.stderr.contains(says) && run.stderr.contains("digest"), "{}", run.stderr);
        assert!(!run.stderr.contains("pushing as"), "{}", run.stderr);
    }
    // One that passed, and one that was never checked, would get the tag that says so.
    let file = engine.reports();
    fs::remove_dir_all(file).expect("ours");
    let run = engine.program().run(&["push", "x:1", "127.0.0.1:9/torch:1"]);
    assert!(
        run.stderr.contains("pushing as -unverified: it was not built and checked here"),
        "{}",
        run.stderr
    );
}

#[test]
fn tag_that_moves_to_the_verified_image_is_named_with_both() {
    let mut engine = Engine::new();
    engine.count += 1;
    let socket = engine.program().path("moves.sock");
    let daemon = GpuDaemon {
        tags: vec!["x:1-unverified".to_owned(), "y:1-unverified".to_owned()],
        second: vec!["x:1".to_owned()],
        lock: engine.lock.hash(),
        ..cdi(report(&engine.lock, H200, true))
    };
    daemon.listen(&socket);
    engine.scene.program.set("DOCKER_HOST", format!("unix://{}", socket.display()));
    let run = engine.program().run(&["verify", "x:1-unverified"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let says = format!("tag x:1 moves from image {} to {}", "b".repeat(12), "a".repeat(12));
    assert_eq!(run.stderr.matches(&says).count(), 1, "{}", run.stderr);
    assert!(!run.stderr.contains("tag y:1 moves"), "a new tag moves from nowhere: {}", run.stderr);
}

#[test]
fn image_that_was_built_here_from_a_lock_that_is_gone_is_named_once() {
    let mut engine = Engine::new();
    let good = report(&engine.lock, H200, true);
    engine.verify("x:1", good.clone(), &[]);
    assert_eq!(engine.says("x:1"), "verified");
    let lock = engine.program().path("state/locks-of-specs/one.lock");
    fs::rename(&lock, engine.program().path("kept.lock")).expect("ours");
    let says = format!(
        "image {} was built here, but its lock {} is gone",
        "a".repeat(12),
        &engine.lock.hash()[..12]
    );
    for args in [&["images"][..], &["inspect", "x:1"], &["verify", "x:1"], &["verify", "x:1", "--last"]] {
        let run = engine.program().run(args);
        assert_eq!(run.stderr.matches(&says).count(), 1, "{args:?}: {}", run.stderr);
    }
    // What the line says helps, also later.
    let kept = engine.program().path("kept.lock");
    let run = engine.verify("x:1", good, &["--lock", kept.to_str().expect("UTF-8")]);
    assert!(run.code == 0 && !run.stderr.contains("is gone"), "{}", run.stderr);
    let run = engine.program().run(&["images"]);
    assert!(run.stdout.contains("  verified: full") && run.stderr.is_empty(), "{}{}", run.stdout, run.stderr);
}

/// What is asked about a GPU that is not here is answered from the files and kept nowhere.
#[test]
fn answer_about_an_absent_gpu_changes_nothing_that_stands() {
    let mut engine = Engine::new();
    let good = report(&engine.lock, H200, true);
    engine.verify("x:1", good, &[]);
    let statics = static_only(&engine.lock);
    let mut answer = |outcome: &str, skip: &str| {
        let line = format!(
            "{{\"id\":\"code-for-target\",\"stage\":\"static\",\"outcome\":\"{outcome}\",\"detail\":\"libtorch_cuda.so\"{skip}}}\n"
        );
        let run = engine.verify("x:1", line + &statics, &["--gpu", "sm_120"]);
        assert_eq!(engine.says("x:1"), "verified", "{}{}", run.stdout, run.stderr);
        run
    };
    let passed = answer("passed", "");
    assert_eq!(passed.code, 0, "{}", passed.stderr);
    assert!(passed.stderr.contains("x:1 has code for sm_120: libtorch_cuda.so"), "{}", passed.stderr);
    let failed = answer("failed", "");
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    assert!(failed.stdout.contains("code-for-target"), "{}", failed.stdout);
    assert_eq!(answer("skipped", ",\"skip\":\"unknown-format\"").code, 1, "it may not run there");
    let nothing = answer("skipped", ",\"skip\":\"not-in-image\"");
    assert_eq!(nothing.code, 0, "{}", nothing.stderr);
    assert!(nothing.stderr.contains("not known whether x:1 has code for sm_120"), "{}", nothing.stderr);
}

#[test]
fn damaged_report_is_warned_of_once_in_a_command() {
    let mut engine = Engine::new();
    let good = report(&engine.lock, H200, true);
    engine.verify("x:1", good.clone(), &[]);
    let damaged = engine.reports().join("full-damaged.json");
    fs::write(&damaged, "{").expect("ours");
    let file = damaged.to_str().expect("UTF-8");
    for args in [
        &["verify", "x:1"][..],
        &["verify", "x:1", "--last"],
        &["images"],
        &["shell", "x:1", "--", "true"],
        &[],
    ] {
        let run = engine.program().run(args);
        assert_eq!(run.stderr.matches(file).count(), 1, "{args:?}: {}", run.stderr);
    }
}

/// Only the option that was given is in the message: not every command has both.
#[test]
fn option_of_a_project_beside_an_image_is_named_alone() {
    for (option, other) in [("--environment", "--project"), ("--project", "--environment")] {
        for verb in ["verify", "lock"] {
            let run = crate::envforge(&[verb, SPEC, option, "x"]);
            assert_eq!(run.code, 2, "{verb}: {}", run.stderr);
            assert!(
                run.stderr.contains(&format!("`{option}` cannot be combined with a spec")),
                "{}",
                run.stderr
            );
            assert!(!run.stderr.contains(other), "{}", run.stderr);
        }
    }
}
