//! `[policy] require-evidence`: what is not proven is neither started nor tagged.

use crate::assert_message;
use crate::evidence::{Place, assert_answer, with_driver, write_key};
use crate::gpu_daemon::GpuDaemon;
use crate::memory_registry::Habits;
use crate::program::Run;
use crate::verify::{H200, SPEC, Scene, cdi, lock, report};

fn passed() -> String {
    with_driver(&report(&lock(), H200, true), "580.95.05")
}

fn configure(scene: &Scene, text: &str) {
    let folder = scene.program.path("home/.config/envforge");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join("config.toml"), text).expect("ours");
}

const POLICY: &str = "[policy]\nrequire-evidence = { level = 'full', max-age = '30d', gpu = 'any' }\n";

/// A shell of the image; whatever the fake engine makes of it later, only a refusal has these codes and words.
fn shell(scene: &Scene, image: &str) -> Run {
    scene.program.run(&["shell", image, "--", "true"])
}

fn is_refused(run: &Run) -> bool {
    run.code == 125 && run.stderr.contains("is not proven as this machine's policy requires")
}

#[test]
fn shell_starts_only_what_was_proven_here_or_by_a_trusted_key() {
    let place = Place::new(Habits::default());
    let tester = place.tester(passed());
    configure(&tester, POLICY);
    let run = shell(&tester, SPEC);
    assert!(is_refused(&run), "{run:?}");
    for says in [
        "level full",
        "checked here: any GPU: no evidence",
        "`[trust] keys` names no key",
        "--level full",
        "config.toml",
    ] {
        assert!(run.stderr.contains(says), "{says}: {}", run.stderr);
    }
    assert!(tester.requests.created(|_| true).is_empty(), "a container was made");
    // A lower level is not enough.
    assert_answer(&tester.verify(&["--level", "quick"]), 0, &["passed"]);
    let run = shell(&tester, SPEC);
    assert!(is_refused(&run) && run.stderr.contains("level quick is below full"), "{run:?}");
    assert_answer(&tester.verify(&["--attest", "--key", "key.pem"]), 0, &["attested"]);
    let run = shell(&tester, SPEC);
    assert!(!is_refused(&run), "{run:?}");

    // Another machine has pulled it, and checked nothing.
    let puller = place.tester(passed());
    std::fs::remove_dir_all(puller.program.path("state/built-images")).expect("ours");
    write_key(&puller.program, "lab.pub", include_str!("../fixtures/evidence/p256.pub"), 0o644);
    let trust = |more: &str| {
        format!("[trust]\nkeys = [{{ file = '{}'{more} }}]\n", puller.program.path("lab.pub").display())
    };
    configure(&puller, &(POLICY.to_owned() + &trust("")));
    let run = shell(&puller, &place.image);
    assert!(!is_refused(&run), "{run:?}");
    assert!(run.stderr.contains("proven by key "), "{run:?}");
    for (config, says) in [
        (POLICY.to_owned(), "names no key"),
        (POLICY.to_owned() + &trust(", for = ['provenance']"), "names no key"),
        (POLICY.replace("full", "perf") + &trust(""), "level full is below perf"),
        (POLICY.to_owned() + &trust(", not-after = '2020-01-01'"), "`not-after`"),
        // This machine has no driver that could say which GPUs the engine has.
        (
            POLICY.replace("'any'", "'here'") + &trust(""),
            "the engine has GPUs, and this machine's driver shows none",
        ),
    ] {
        configure(&puller, &config);
        let run = shell(&puller, &place.image);
        assert!(is_refused(&run) && run.stderr.contains(says), "{says}: {run:?}");
    }
    // Not known is not proven.
    configure(&puller, &(POLICY.to_owned() + &trust("")));
    place.registry.content().broken = Some(503);
    let run = shell(&puller, &place.image);
    assert!(is_refused(&run) && run.stderr.contains("not known"), "{run:?}");
}

/// What `import --evidence` leaves behind proves an image where no registry is reached, by the same keys.
#[test]
fn evidence_that_came_with_an_image_counts_without_a_registry() {
    let place = Place::new(Habits::default());
    let tester = place.tester(passed());
    assert_answer(&tester.verify(&["--attest", "--key", "key.pem"]), 0, &["attested"]);
    let node = Place::node();
    assert_eq!(node.run(&["evidence", &place.image, "--save", "torch.evidence"]).code, 0);
    let saved = std::fs::read(node.path("torch.evidence")).expect("saved");
    place.registry.content().broken = Some(503);

    let digest = place.image.split_once("@sha256:").expect("pinned").1;
    let id = place.id.trim_start_matches("sha256:").to_owned();
    let importer = Scene::new(GpuDaemon { id: id.clone(), digests: Vec::new(), ..cdi(passed()) }, &lock());
    std::fs::remove_dir_all(importer.program.path("state/built-images")).expect("ours");
    write_key(&importer.program, "lab.pub", include_str!("../fixtures/evidence/p256.pub"), 0o644);
    let key = importer.program.path("lab.pub");
    configure(&importer, &format!("{POLICY}[trust]\nkeys = [{{ file = '{}' }}]\n", key.display()));
    let run = shell(&importer, "team/torch:1-unverified");
    assert!(is_refused(&run) && run.stderr.contains("none came with it"), "{run:?}");
    let write = |folder: &str, name: &str, bytes: &[u8]| {
        let folder = importer.program.path("state").join(folder);
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(folder.join(name), bytes).expect("ours");
    };
    write("evidence-of-images", digest, &saved);
    // About another image than the one that was imported, as far as this machine knows.
    assert!(is_refused(&shell(&importer, "team/torch:1-unverified")));
    write("pushed-images", &id, format!("sha256:{digest}\n").as_bytes());
    let run = shell(&importer, "team/torch:1-unverified");
    assert!(!is_refused(&run), "{run:?}");
    assert_shown_by_key(&importer);
    // The same file for another image: its statements name theirs.
    let other = "0".repeat(64);
    let forged = String::from_utf8(saved).expect("JSON").replace(digest, &other);
    write("evidence-of-images", &other, forged.as_bytes());
    write("pushed-images", &id, format!("sha256:{other}\n").as_bytes());
    let run = shell(&importer, "team/torch:1-unverified");
    assert!(is_refused(&run) && run.stderr.contains("about another image"), "{run:?}");
}

/// `images` names the key of evidence that is kept here, until this machine has seen the image fail.
fn assert_shown_by_key(scene: &Scene) {
    let text = "proven by key ";
    let run = scene.program.run(&["images"]);
    assert_answer(&run, 0, &[text, "level full on NVIDIA H200, driver 580.95.05", ", kept 20"]);
    assert!(run.stdout.contains(", registry not asked"), "{}", run.stdout);
    let json = scene.program.run(&["images", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let image = &json["images"][0];
    assert!(image["evidence"].as_str().is_some_and(|evidence| evidence.starts_with(text)), "{image}");
    assert_eq!(image["verified"], false, "{image}");
}

/// What a registry once said is shown without it, in the words of `shell`: by `images`, `verify` and its page.
#[test]
fn word_of_a_key_is_kept_and_shown_without_the_registry() {
    let place = Place::new(Habits { deletes: true, ..Habits::default() });
    let tester = place.tester(passed());
    assert_answer(&tester.verify(&["--attest", "--key", "key.pem"]), 0, &["attested"]);

    let is_static = |line: &&str| !line.contains("\"stage\":\"gpu\"");
    let lines = passed().lines().filter(is_static).fold(String::new(), |all, line| all + line + "\n");
    let puller = place.tester(lines);
    std::fs::remove_dir_all(puller.program.path("state/built-images")).expect("ours");
    write_key(&puller.program, "lab.pub", include_str!("../fixtures/evidence/p256.pub"), 0o644);
    let key = puller.program.path("lab.pub");
    configure(&puller, &format!("[trust]\nkeys = [{{ file = '{}', for = ['tests'] }}]\n", key.display()));
    let run = puller.program.run(&["images"]);
    assert!(!run.stdout.contains("proven by key"), "nothing was asked yet: {}", run.stdout);
    let run = shell(&puller, &place.image);
    assert!(run.stderr.contains("proven by key "), "{run:?}");
    place.registry.content().broken = Some(503);
    assert_shown_by_key(&puller);
    let checks = ["verify", &place.image, "--level", "static", "--html", "report.html"];
    assert_answer(&puller.program.run(&checks), 0, &["proven by key ", "level full on NVIDIA H200"]);
    let page = std::fs::read_to_string(puller.program.path("report.html")).expect("a page");
    assert!(page.contains("<dt>Evidence</dt><dd>proven by key "), "{page}");

    // A list from before the withdrawal, put back where the newer one was deleted: this machine has seen both.
    place.registry.content().broken = None;
    let (manifests, tags) = {
        let content = place.registry.content();
        (content.manifests.clone(), content.tags.clone())
    };
    let run = tester.program.run(&["evidence", "withdraw", &place.image, "--key", "key.pem"]);
    assert_answer(&run, 0, &["withdrawn: 1 entry"]);
    let run = shell(&puller, &place.image);
    assert!(!run.stderr.contains("proven by key "), "{run:?}");
    {
        let mut content = place.registry.content();
        (content.manifests, content.tags) = (manifests, tags);
    }
    let run = shell(&puller, &place.image);
    assert!(!run.stderr.contains("proven by key "), "{run:?}");
    assert!(!puller.program.run(&["images"]).stdout.contains("proven by key"));
}

/// Whoever removes an image's name in the registry keeps what the registry said, and not what it says since.
#[test]
fn policy_does_not_believe_a_registry_that_is_not_asked() {
    let place = Place::new(Habits::default());
    let tester = place.tester(passed());
    assert_answer(&tester.verify(&["--attest", "--key", "key.pem"]), 0, &["attested"]);
    let trusting = |scene: &Scene| {
        std::fs::remove_dir_all(scene.program.path("state/built-images")).expect("ours");
        write_key(&scene.program, "lab.pub", include_str!("../fixtures/evidence/p256.pub"), 0o644);
        let key = scene.program.path("lab.pub");
        configure(scene, &format!("{POLICY}[trust]\nkeys = [{{ file = '{}' }}]\n", key.display()));
    };
    let puller = place.tester(passed());
    trusting(&puller);
    let run = shell(&puller, &place.image);
    assert!(!is_refused(&run), "{run:?}");

    // The same machine after `docker tag IMAGE team/torch:1-unverified` and `docker rmi IMAGE`.
    let id = place.id.trim_start_matches("sha256:").to_owned();
    let renamed = Scene::new(GpuDaemon { id, digests: Vec::new(), ..cdi(passed()) }, &lock());
    trusting(&renamed);
    let state = |scene: &Scene, folder: &str| scene.program.path("state").join(folder);
    for folder in ["evidence-of-registries", "pushed-images"] {
        std::fs::create_dir_all(state(&renamed, folder)).expect("ours");
        for entry in std::fs::read_dir(state(&puller, folder)).expect("kept").flatten() {
            std::fs::copy(entry.path(), state(&renamed, folder).join(entry.file_name())).expect("ours");
        }
    }
    let run = shell(&renamed, "team/torch:1-unverified");
    assert!(is_refused(&run) && run.stderr.contains("evidence kept here is of a registry"), "{run:?}");
    // Evidence that came in a layout, too, does not outlive what the registry says.
    let (of_registry, of_layout) =
        (state(&renamed, "evidence-of-registries"), state(&renamed, "evidence-of-images"));
    std::fs::create_dir_all(&of_layout).expect("ours");
    for entry in std::fs::read_dir(&of_registry).expect("kept").flatten() {
        std::fs::copy(entry.path(), of_layout.join(entry.file_name())).expect("ours");
    }
    assert!(is_refused(&shell(&renamed, "team/torch:1-unverified")));
    std::fs::remove_dir_all(of_registry).expect("ours");
    let run = shell(&renamed, "team/torch:1-unverified");
    assert!(!is_refused(&run), "{run:?}");
}

#[test]
fn checks_of_a_stranger_prove_nothing() {
    let place = Place::new(Habits::default());
    let puller = place.tester(passed());
    std::fs::remove_dir_all(puller.program.path("state/built-images")).expect("ours");
    configure(&puller, POLICY);
    let run = puller.program.run(&["verify", &place.image]);
    assert_answer(&run, 0, &["passed"]);
    let run = shell(&puller, &place.image);
    assert!(is_refused(&run), "{run:?}");
}

#[test]
fn tag_without_unverified_needs_what_the_policy_asks() {
    let scene = Scene::new(cdi(passed()), &lock());
    configure(&scene, &POLICY.replace("full", "perf"));
    let run = scene.verify(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("level full is below perf"), "{}", run.stderr);
    assert!(scene.requests.tags().is_empty(), "{:?}", scene.requests.tags());
    configure(&scene, POLICY);
    assert_answer(&scene.verify(&[]), 0, &["passed"]);
    assert_eq!(scene.requests.tags().len(), 2);

    // A push of the same image.
    let place = Place::new(Habits::default());
    let scene = place.tester(passed());
    assert_answer(&scene.verify(&[]), 0, &["passed"]);
    let target = format!("{}/team/torch:2.8", place.registry.host);
    let digest = place.image.split_once('@').expect("pinned").1.to_owned();
    place.registry.content().tags.insert("2.8-unverified".to_owned(), digest);
    configure(&scene, &POLICY.replace("full", "perf"));
    let run = scene.program.run(&["push", SPEC, &target]);
    assert_answer(&run, 0, &[&format!("{target}-unverified@")]);
    assert!(run.stderr.contains("`[policy] require-evidence`"), "{}", run.stderr);
    configure(&scene, POLICY);
    assert_answer(&scene.program.run(&["push", SPEC, &target]), 0, &[&format!("{target}@")]);
}

#[test]
fn project_has_no_policy() {
    let program = crate::program();
    let text = "schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n[policy]\nunknown = \"warn\"\n";
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    assert_message(&program.run(&["plan"]), 2, &["policy"]);
}

/// `unknown = "refuse"`: a stack that is named and not known is no longer taken.
#[test]
fn policy_refuses_what_the_matrix_does_not_know() {
    let program = crate::program();
    let plan = ["plan", "pytorch-cuda:2.5.1-cu124", "--platform", "linux/arm64", "--gpu", "sm_90"];
    let run = program.run(&plan);
    assert!(run.code == 0 && run.stderr.contains("is not known"), "{run:?}");
    let folder = program.path("home/.config/envforge");
    std::fs::create_dir_all(&folder).expect("ours");
    std::fs::write(folder.join("config.toml"), "[policy]\nunknown = \"refuse\"\n").expect("ours");
    let run = program.run(&plan);
    assert!(run.code == 1 && run.stderr.contains("in `[policy]` refuses it"), "{run:?}");
}
