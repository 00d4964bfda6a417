//! Verbs without an argument: the project here, else the images of this machine.

use std::time::{Duration, SystemTime};

use envforge::model::lock::{Lock, UserAdditions};

use crate::gpu_daemon::GpuDaemon;
use crate::program::Run;
use crate::terminal::run_on_terminal;
use crate::verify::{H200, SPEC, Scene, cdi, lock, report};
use crate::{assert_message, envforge, program};

/// An engine with one unverified image that was built here.
fn scene() -> Scene {
    let lock = lock();
    Scene::new(cdi(report(&lock, H200, true)), &lock)
}

fn on_terminal(scene: &Scene, args: &[&str], typed: &str) -> Run {
    run_on_terminal(scene.program.command(args), typed)
}

/// The lock of a project called `p`.
fn project_lock() -> Lock {
    Lock { added: UserAdditions { project: Some("p".to_owned()), ..UserAdditions::default() }, ..lock() }
}

/// The folder of the program is a project now.
fn write_project(scene: &Scene, lock: Option<&Lock>) {
    let text = format!("schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n");
    std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    if let Some(lock) = lock {
        std::fs::write(scene.program.path("envforge.lock"), lock.to_toml()).expect("ours");
    }
}

#[test]
fn verify_alone_verifies_the_image_of_the_project() {
    let lock = project_lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    write_project(&scene, Some(&lock));
    let run = scene.program.run(&["verify"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(scene.requests.tags().contains(&"team/torch:1".to_owned()), "{:?}", scene.requests.tags());
    // The project changes, the image does not.
    let text = "schema = 1\nname = \"p\"\nspec = \"pytorch-cuda:2.7-cu128\"\n[target]\nany = true\n";
    std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    let run = scene.program.run(&["verify"]);
    assert!(run.stderr.contains("envforge.lock is out of date"), "{}", run.stderr);
}

#[test]
fn verify_alone_in_a_project_without_image_names_the_next_command() {
    let scene = scene();
    write_project(&scene, None);
    let run = scene.program.run(&["verify"]);
    assert_message(&run, 1, &["no image of `envforge.lock`", "envforge build"]);
}

#[test]
fn verify_with_image_and_environment_is_a_usage_error() {
    assert_message(&scene().program.run(&["verify", SPEC, "-E", "train"]), 2, &["--environment", SPEC]);
}

#[test]
fn verify_alone_without_terminal_lists_unverified_images_and_stops() {
    let scene = scene();
    let run = scene.program.run(&["verify"]);
    let name = format!("{}-unverified", lock().stack.name);
    assert_message(&run, 2, &["1 image is not verified yet", &name, "envforge verify"]);
    assert!(!scene.requests.contain("/containers/create"), "nothing ran");
}

#[test]
fn verify_alone_on_a_terminal_asks_first() {
    let scene = scene();
    let run = on_terminal(&scene, &["verify"], "n\n");
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("verify it? [y/N]"), "{}", run.stdout);
    assert!(!scene.requests.contain("/containers/create"), "nothing ran");
    let run = on_terminal(&scene, &["verify"], "y\n");
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("passed: "), "{}", run.stdout);
    assert!(scene.requests.tags().contains(&lock().stack.name));
}

#[test]
fn verify_alone_without_gpu_runs_the_static_level() {
    let lock = lock();
    let all = report(&lock, H200, true);
    let prints = all
        .lines()
        .filter(|line| !line.contains("\"stage\":\"gpu\""))
        .fold(String::new(), |text, line| text + line + "\n");
    let scene = Scene::new(cdi(prints), &lock);
    let mut command = scene.program.command(&["verify"]);
    command.env("ENVFORGE_GPU", "");
    let run = run_on_terminal(command, "y\n");
    assert_eq!(run.stdout.matches("no GPU on the engine's host").count(), 1, "{}", run.stdout);
    assert_eq!(scene.requests.tags(), [] as [String; 0]);
    let started = scene.requests.containers();
    assert!(started.iter().all(|body| body["Entrypoint"].to_string().contains("static")), "{started:?}");
    assert!(!started.is_empty());
}

#[test]
fn verify_alone_with_verified_images_has_nothing_to_do() {
    let lock = lock();
    let daemon = GpuDaemon { tags: vec![lock.stack.name.clone()], ..cdi(report(&lock, H200, true)) };
    let scene = Scene::new(daemon, &lock);
    // A tag without `-unverified` is not enough.
    assert_message(&scene.program.run(&["verify"]), 2, &["1 image is not verified yet"]);
    assert_eq!(scene.verify(&[]).code, 0);
    let run = scene.program.run(&["verify"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("nothing to verify"), "{}", run.stderr);
}

#[test]
fn verbs_alone_without_project_and_image_name_both_ways() {
    let lock = lock();
    let scene = Scene::new(cdi(String::new()), &lock);
    std::fs::remove_dir_all(scene.program.path("state/built-images")).expect("ours");
    for (verb, code) in [("verify", 2), ("shell", 125)] {
        let run = scene.program.run(&[verb]);
        assert_message(&run, code, &["no image of envforge", "envforge build pytorch-cuda", "envforge init"]);
    }
}

/// An engine with two images that were built here; the second was used before the first.
fn two_images() -> Scene {
    let lock = lock();
    let second = vec!["team/second:1".to_owned()];
    let scene = Scene::new(GpuDaemon { second, ..cdi(String::new()) }, &lock);
    let built = scene.program.path("state/built-images");
    std::fs::write(built.join("b".repeat(64)), lock.hash()).expect("ours");
    let hour_ago = SystemTime::now() - Duration::from_hours(1);
    let file = std::fs::File::options().write(true).open(built.join("b".repeat(64))).expect("ours");
    file.set_modified(hour_ago).expect("ours");
    scene
}

#[test]
fn shell_alone_opens_the_image_last_used() {
    let scene = two_images();
    let run = scene.program.run(&["shell", "--", "true"]);
    let first = format!("opening {}-unverified", lock().stack.name);
    assert!(run.stderr.contains(&first), "{}", run.stderr);
    // What is opened by its name is the last used then.
    let _ = scene.program.run(&["shell", "team/second:1", "--", "true"]);
    let run = scene.program.run(&["shell", "--", "true"]);
    assert!(run.stderr.contains("opening team/second:1"), "{}", run.stderr);
}

/// An image from elsewhere is not one of this machine's builds, but it was opened here.
#[test]
fn shell_alone_opens_an_image_from_elsewhere_again() {
    let scene = two_images();
    std::fs::remove_dir_all(scene.program.path("state/built-images")).expect("ours");
    let none = scene.program.run(&["shell", "--", "true"]);
    assert_message(&none, 125, &["no image of envforge"]);
    let _ = scene.program.run(&["shell", "team/second:1", "--", "true"]);
    let run = scene.program.run(&["shell", "--", "true"]);
    assert!(run.stderr.contains("no project here: opening team/second:1"), "{}", run.stderr);
    // One of this machine's own stands next to it, and is listed once.
    let own = format!("{}-unverified", lock().stack.name);
    let _ = scene.program.run(&["shell", &own, "--", "true"]);
    std::fs::create_dir_all(scene.program.path("state/built-images")).expect("ours");
    std::fs::write(scene.program.path("state/built-images").join("a".repeat(64)), lock().hash())
        .expect("ours");
    let run = on_terminal(&scene, &["shell", "--", "true"], "9\n");
    assert_eq!(run.stdout.matches(&own).count(), 1, "{}", run.stdout);
    assert_eq!(run.stdout.matches("team/second:1").count(), 1, "{}", run.stdout);
}

#[test]
fn shell_alone_on_a_terminal_asks_among_several_images() {
    let scene = two_images();
    let run = on_terminal(&scene, &["shell", "--", "true"], "2\n");
    assert!(run.stdout.contains("open which image?"), "{}", run.stdout);
    assert!(run.stdout.contains("opening team/second:1"), "{}", run.stdout);
    let run = on_terminal(&scene, &["shell", "--", "true"], "9\n");
    assert_eq!(run.code, 125, "{}", run.stdout);
    assert!(run.stdout.contains("no image chosen"), "{}", run.stdout);
}

#[test]
fn shell_runs_in_the_callers_directory_of_the_project() {
    let lock = project_lock();
    let scene = Scene::new(cdi(String::new()), &lock);
    write_project(&scene, Some(&lock));
    let folder = scene.program.path("src/deep");
    std::fs::create_dir_all(&folder).expect("ours");
    let mut command = scene.program.command(&["shell", "--", "true"]);
    command.current_dir(&folder);
    let run = run_on_terminal(command, "n\n");
    let created = scene.requests.created(|_| true);
    let folders: Vec<_> = created.iter().map(|body| &body["WorkingDir"]).collect();
    assert!(folders.contains(&&"/workspace/src/deep".into()), "{folders:?}{}", run.stdout);
}

#[test]
fn envforge_alone_shows_where_one_is_in_five_lines() {
    let scene = scene();
    let run = scene.program.run(&[]);
    assert_eq!((run.code, run.stdout.lines().count()), (0, 5), "{}{}", run.stdout, run.stderr);
    for part in ["none here", "-unverified (not verified: never checked here)", "next step  envforge verify"]
    {
        assert!(run.stdout.contains(part), "`{part}`: {}", run.stdout);
    }
    write_project(&scene, None);
    let run = scene.program.run(&[]);
    assert!(run.stdout.contains("lock file  missing\n"), "{}", run.stdout);
    assert!(run.stdout.contains("next step  envforge build\n"), "{}", run.stdout);

    let lock = project_lock();
    let scene = Scene::new(cdi(String::new()), &lock);
    write_project(&scene, Some(&lock));
    // Its GPUs are those of the project, which names any.
    let mut command = scene.program.command(&["--json"]);
    command.env_remove("ENVFORGE_GPU").env_remove("ENVFORGE_DRIVER");
    let run = Run::of(&command.output().expect("it starts"));
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!((&value["schema"], &value["lock"]), (&1.into(), &"up-to-date".into()), "{value}");
    assert_eq!((&value["image"]["verified"], &value["next"]), (&false.into(), &"envforge verify".into()));
}

#[test]
fn envforge_alone_without_engine_leads_to_doctor() {
    let run = program().with("DOCKER_HOST", "unix:///nonexistent.sock").run(&[]);
    assert_eq!((run.code, run.stdout.lines().count()), (0, 5), "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("engine does not answer") && run.stdout.contains("envforge doctor"));
}

#[test]
fn build_alone_offers_what_runs_on_this_machine() {
    let scene = scene();
    let mut command = scene.program.command(&["build"]);
    command.env("ENVFORGE_GPU", "sm_70").env("ENVFORGE_DRIVER", "535.104.05");
    let run = run_on_terminal(command, "q\n");
    assert_eq!(run.code, 0, "{}", run.stdout);
    assert!(run.stdout.contains("1  pytorch-cuda:") && run.stdout.contains("-cu126-"), "{}", run.stdout);
    assert!(run.stdout.contains("driver 535.104.05"), "{}", run.stdout);
    // The refusal of a product is not an offer: this vLLM has no code for that GPU.
    assert!(!run.stdout.contains("cuda:13"), "{}", run.stdout);
    let run = envforge(&["build"]);
    assert_message(&run, 2, &["could not find envforge.toml", "envforge init"]);
}

#[test]
fn shell_in_a_project_with_a_stale_lock_asks_to_rebuild() {
    let lock = project_lock();
    let scene = Scene::new(cdi(String::new()), &lock);
    write_project(&scene, Some(&lock));
    let text = "schema = 1\nname = \"p\"\nspec = \"pytorch-cuda:2.7-cu128\"\n[target]\nany = true\n";
    std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    let run = on_terminal(&scene, &["shell", "--", "true"], "n\n");
    assert!(run.stdout.contains("rebuild its image? [y/N]"), "{}", run.stdout);
    assert!(!run.stdout.contains("rebuilding"), "{}", run.stdout);
    assert!(scene.requests.contain("/containers/create"), "the image of the lock is opened: {}", run.stdout);
    let run = scene.program.run(&["shell", "--", "true"]);
    assert!(
        run.stderr.contains("is out of date (") && run.stderr.contains("rebuilding its image first"),
        "{}",
        run.stderr
    );
}

#[test]
fn push_size_and_inspect_alone_mean_the_image_of_the_project() {
    let lock = project_lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    write_project(&scene, Some(&lock));
    // Nothing listens there: it is the last step that fails.
    let alone = scene.program.run(&["push", "127.0.0.1:9/team/p:1"]);
    assert_eq!(alone.code, 3, "{}", alone.stderr);
    assert!(alone.stderr.contains("127.0.0.1:9"), "{}", alone.stderr);
    let named =
        scene.program.run(&["push", "--project", ".", "127.0.0.1:9/team/p:1", "127.0.0.1:9/team/p:2"]);
    assert_eq!(named.code, 3, "{}", named.stderr);
    let two = scene.program.run(&["push", "127.0.0.1:9/team/p:1", "127.0.0.1:9/team/p:2"]);
    assert_message(&two, 3, &["image `127.0.0.1:9/team/p:1` not found"]);
    for verb in ["inspect", "size"] {
        let run = scene.program.run(&[verb]);
        assert_eq!(run.code, 0, "{verb}: {}", run.stderr);
    }
}

#[test]
fn push_diff_and_stop_alone_outside_a_project_say_what_is_missing() {
    let scene = scene();
    let missing = "could not find envforge.toml";
    assert_message(&scene.program.run(&["push", "127.0.0.1:9/team/p:1"]), 2, &[missing]);
    assert_message(&scene.program.run(&["diff", SPEC]), 2, &[missing]);
    assert_message(&scene.program.run(&["stop"]), 1, &["no container", "running for this directory"]);
}

/// The first build takes ten minutes; what is refused after it was known before.
#[test]
fn shell_refuses_what_was_typed_before_it_builds_an_image() {
    let scene = Scene::new(GpuDaemon { tags: Vec::new(), ..cdi(String::new()) }, &lock());
    for (options, why) in [
        (&["--data", "/nothing/here"][..], "cannot mount `/nothing/here`: no such file or directory"),
        (&["--mount", "/nothing/here:/x"], "cannot mount `/nothing/here`"),
        (&["--env-file", "none.env"], "none.env`: no such file or directory"),
        (&["--port", "a:b"], "--port"),
        (&["--name", "a b"], "--name"),
        (&["--memory", "much"], "--memory"),
        (&["--env", "A-B=1"], "A-B"),
        (&["--gpus", "none", "--require-gpu"], "--gpus none"),
        (&["--jupyter", "--network", "host"], "--insecure"),
    ] {
        let run = scene.program.run(&[&["shell"][..], options, &["pytorch-cuda:2.7-cu128"]].concat());
        assert_eq!(run.code, 125, "{options:?}: {}", run.stderr);
        assert!(run.stderr.contains(why), "{options:?}: {}", run.stderr);
        assert!(!run.stderr.contains("building it first"), "{options:?}: {}", run.stderr);
    }
    assert!(!scene.requests.contain("/containers/create"), "nothing was begun");
}
