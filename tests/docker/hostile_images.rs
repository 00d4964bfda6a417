//! Images of the hostile set whose code has to run: what an engine alone can stop. The others are cases of
//! `tests/hostile/images`.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::changed_image::ChangedImage;
use crate::engine::docker;
use crate::program::Run;
use crate::scene::Scene;

/// Every one of them is ended before this: the agent ends a check, the engine ends the container.
const LONGEST: Duration = Duration::from_mins(15);
/// The most memory that envforge may need for what an image does, in KiB.
const MEMORY: u64 = 200 << 10;
/// Labels that make the checks start the image's Python.
const CLAIM: &str = "LABEL io.envforge.name=pytorch-cuda:2.8.0-cu128-py3.11";

/// The base of the scene's lock after a command that reads those bytes.
fn made(scene: &Scene, name: &str, command: &str, input: &[u8], changes: &[&str]) -> ChangedImage {
    ChangedImage::of(&scene.base(), name, command, input, changes)
}

/// The base with that program as the Python of its environment, and further changes of its configuration.
fn with_python(scene: &Scene, name: &str, python: &str, changes: &[&str]) -> ChangedImage {
    let command = "mkdir -p /opt/env/bin && cat >/opt/env/bin/python && chmod 755 /opt/env/bin/python";
    made(scene, name, command, python.as_bytes(), changes)
}

/// Verifies an image and asserts that it was ended in time, with little memory, and left nothing.
#[track_caller]
fn verify(scene: &Scene, image: &ChangedImage) -> Run {
    let began = Instant::now();
    let mut child = scene.program.command(&["verify", &image.0, "--json"]).spawn().expect("it starts");
    let status = Path::new("/proc").join(child.id().to_string()).join("status");
    let mut peak = 0;
    while child.try_wait().expect("a child of ours").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now: Option<u64> = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
        peak = peak.max(now.unwrap_or_default());
        if began.elapsed() > LONGEST {
            child.kill().expect("a child of ours");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let run = Run::of(&child.wait_with_output().expect("a child of ours"));
    assert!(began.elapsed() < LONGEST, "it was not ended: {}{}", run.stdout, run.stderr);
    assert!(peak < MEMORY, "envforge needed {peak} KiB");
    let added = scene.added();
    assert!(added.containers.is_empty(), "{added:#?}");
    assert!(added.tags.iter().all(|tag| tag == &image.0), "an image from elsewhere earns no tag: {added:#?}");
    run
}

fn scene() -> Scene {
    // After the lock was made, which has the base.
    let index = "https://someone:planted-token@index.example.test/simple";
    Scene::locked().set("ENVFORGE_INDEX", index).set("ENVFORGE_INDEX_INTERNAL", index)
}

/// Verifies images whose Python is each of these programs.
fn each_is_ended(programs: &[(&str, &str)]) {
    let scene = scene();
    for (name, python) in programs {
        let image = with_python(&scene, name, python, &[CLAIM]);
        let run = verify(&scene, &image);
        assert_ne!(run.code, 0, "{name}: {}{}", run.stdout, run.stderr);
        // The machine still starts processes.
        docker(&["version"]);
    }
}

#[test]
#[ignore = "nightly: needs docker, fills both cores and waits for the limit, two minutes"]
fn fork_bomb_is_ended() {
    each_is_ended(&[("forks", "#!/bin/sh\nbomb() { bomb | bomb & }\nbomb\nsleep 100000\n")]);
}

#[test]
#[ignore = "nightly: needs docker and waits for each limit, five minutes"]
fn output_without_end_sleep_and_orphans_are_ended() {
    each_is_ended(&[
        (
            "prints",
            "#!/bin/sh\nexec yes '{\"id\":\"framework-import\",\"stage\":\"static\",\"outcome\":\"passed\"}'\n",
        ),
        ("errors", "#!/bin/sh\nexec yes endless >&2\n"),
        ("sleeps", "#!/bin/sh\nexec sleep 100000\n"),
        (
            "orphans",
            "#!/bin/sh\n(trap '' TERM HUP; sleep 100000) >/dev/null 2>&1 &\n(trap '' TERM HUP; exec yes) &\nexit 0\n",
        ),
    ]);
}

#[test]
#[ignore = "nightly: needs docker and waits for limits of disk and memory, two minutes"]
fn disk_and_memory_of_the_machine_are_not_filled() {
    let scene = scene();
    for (name, python) in [
        ("fills", "#!/bin/sh\nexec cat /dev/zero >/tmp/zero\n"),
        ("eats", "#!/bin/sh\nexec tail /dev/zero\n"),
    ] {
        let image = with_python(&scene, name, python, &[CLAIM]);
        let run = verify(&scene, &image);
        assert_ne!(run.code, 0, "{name}: {}{}", run.stdout, run.stderr);
        docker(&["version"]);
    }
}

/// A library whose constructor prints, if the program that starts is the agent itself.
const PRELOADED: &str = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void begin(void) {
    static const char line[] = "{\"id\":\"planted-preload\",\"stage\":\"static\",\"outcome\":\"passed\",\"detail\":\"planted-preload\"}\n";
    if (strcmp(program_invocation_short_name, "agent") == 0) write(1, line, sizeof line - 1);
}
"#;

#[test]
#[ignore = "needs docker"]
fn preloaded_library_and_agent_of_the_image_do_not_answer_for_the_agent() {
    let scene = scene();
    let folder = tempfile::tempdir().expect("a folder");
    let (source, library) = (folder.path().join("evil.c"), folder.path().join("evil.so"));
    std::fs::write(&source, PRELOADED).expect("ours");
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(built.expect("cc starts").success());
    let bytes = std::fs::read(&library).expect("built");
    let changes = ["ENV LD_PRELOAD=/evil.so", "ENV LD_AUDIT=/evil.so", CLAIM];
    let image = made(&scene, "preloads", "cat >/evil.so", &bytes, &changes);
    let run = verify(&scene, &image);
    assert!(
        !format!("{}{}", run.stdout, run.stderr).contains("planted-preload"),
        "{}{}",
        run.stdout,
        run.stderr
    );

    drop(image);

    // Where the agent is put, and what starts the container, is of the image's choice.
    let agent = "#!/bin/sh\necho '{\"schema\":1,\"agent\":\"planted-agent\"}'\necho '{\"done\":true,\"seconds\":1.0}'\n";
    let command = "mkdir -p /envforge /opt/envforge && cat >/envforge/agent && chmod 755 /envforge/agent && cp /envforge/agent /opt/envforge/agent && cp /envforge/agent /bin/start";
    let changes =
        ["ENTRYPOINT [\"/bin/start\"]", "CMD [\"/bin/start\"]", "HEALTHCHECK CMD /bin/start", CLAIM];
    let image = made(&scene, "answers", command, agent.as_bytes(), &changes);
    let run = verify(&scene, &image);
    assert!(!run.stdout.contains("planted-agent"), "{}", run.stdout);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("one JSON object");
    assert!(
        report["checks"].as_array().is_some_and(|checks| !checks.is_empty()),
        "the agent itself ran: {report}"
    );
    assert_ne!(report["verdict"], "passed");
}

#[test]
#[ignore = "needs docker"]
fn code_of_an_image_finds_no_network_no_login_and_no_writable_root() {
    let scene = scene();
    // What it finds is the reason why the import fails, which the report has.
    let python = "#!/bin/sh\n\
        found=$(env; cat /proc/self/mountinfo /envforge/* /run/secrets/* ~/.netrc /etc/pip.conf 2>/dev/null)\n\
        said=\n\
        case \"$found\" in *planted-token*) said=\"$said FOUND-LOGIN\" ;; esac\n\
        if touch /written 2>/dev/null; then said=\"$said FOUND-WRITABLE\"; fi\n\
        for name in /sys/class/net/*; do\n\
        case \"$name\" in */lo | */\\*) ;; *) said=\"$said FOUND-NETWORK\" ;; esac\n\
        done\n\
        grep -q '^CapEff:\t0000000000000000' /proc/self/status || said=\"$said FOUND-CAPABILITIES\"\n\
        grep -q '^NoNewPrivs:\t1' /proc/self/status || said=\"$said FOUND-PRIVILEGES\"\n\
        echo \"ImportError: LOOKED$said\" >&2\n\
        exit 1\n";
    let image = with_python(&scene, "looks", python, &[CLAIM, "USER 0:0", "VOLUME /data"]);
    let run = verify(&scene, &image);
    assert!(run.stdout.contains("LOOKED"), "its code ran: {}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("FOUND-"), "{}", run.stdout);
    let opened = scene.program.run(&["shell", &image.0, "--", "sh", "-c", "env; cat /etc/pip.conf ~/.netrc"]);
    assert!(!opened.stdout.contains("planted-token"), "{}", opened.stdout);
}
