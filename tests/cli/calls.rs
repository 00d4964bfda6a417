//! Calls with a common mistake: the answer names what was typed, and no option that was not.

use crate::gpu_daemon::GpuDaemon;
use crate::program::Run;
use crate::verify::{Scene, cdi, lock};
use crate::{assert_message, program};

/// An engine with the image of a lock, and a project called `p` in the program's folder.
fn project() -> Scene {
    let scene = Scene::new(cdi(String::new()), &lock());
    let text = "schema = 1\nname = \"p\"\nspec = \"pytorch-cuda:2.8-cu128\"\n[target]\nany = true\n";
    std::fs::write(scene.program.path("envforge.toml"), text).expect("ours");
    scene
}

/// The lines of a run's hints.
fn hints(run: &Run) -> String {
    run.stderr.lines().skip_while(|line| !line.starts_with("hint:")).collect::<Vec<_>>().join("\n")
}

#[test]
fn hint_names_locked_only_if_it_was_given() {
    let scene = project();
    for (args, code) in
        [(&["lock", "--check"][..], 1), (&["lock", "--diff"], 1), (&["inspect"], 1), (&["size"], 1)]
    {
        let run = scene.program.run(args);
        assert_message(&run, code, &["envforge.lock` not found", "run `envforge lock`"]);
        assert!(!run.stderr.contains("--locked"), "{args:?}: {}", run.stderr);
    }
    let run = scene.program.run(&["build", "--locked"]);
    assert_message(&run, 1, &["not found", "run `envforge lock`, or omit `--locked`"]);
}

#[test]
fn hint_names_the_option_for_environments_as_every_verb_has_it() {
    let scene = project();
    for (args, code) in [(&["shell", "--environment", "x"][..], 125), (&["plan", "-E", "x"], 2)] {
        let run = scene.program.run(args);
        assert_message(&run, code, &["environment `x` not found"]);
        assert_eq!(
            hints(&run),
            "hint: omit `--environment`: the file has only the default environment",
            "`-e` of `shell` is a variable"
        );
    }
}

/// The date may be that of the lock file: then there is no `--as-of` to omit.
#[test]
fn hint_for_a_dated_lock_names_how_to_drop_the_date() {
    let program = program();
    let text = "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu128'\n[packages]\npython = ['x']\n\
                indexes = [{ name = 'pages', url = 'http://127.0.0.1:9/files.html', format = 'flat' }]\n";
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/lock/vector.lock");
    std::fs::copy(lock, program.path("envforge.lock")).expect("ours");
    let run = program.run(&["lock", "--target", "any"]);
    assert_message(&run, 3, &["a page of links"]);
    assert!(hints(&run).contains("`envforge lock --upgrade`"), "{}", run.stderr);
    assert!(!hints(&run).contains("omit"), "{}", run.stderr);
}

#[test]
fn project_folder_or_file_is_an_operand_like_its_lock() {
    let scene = project();
    let image = format!("{}-unverified", lock().stack.name);
    for folder in [".", "./", "envforge.toml"] {
        assert_message(&scene.program.run(&["diff", &image, folder]), 1, &["envforge.lock` not found"]);
    }
    std::fs::write(scene.program.path("envforge.lock"), lock().to_toml()).expect("ours");
    for folder in [".", "./", "envforge.toml", "envforge.lock"] {
        for args in [&["diff", &image, folder, "--json"][..], &["inspect", folder, "--json"]] {
            let run = scene.program.run(args);
            assert!(run.code < 2, "{args:?}: {}{}", run.stdout, run.stderr);
            assert!(run.stdout.contains(&lock().stack.name), "{args:?}: {}{}", run.stdout, run.stderr);
        }
    }
}

#[test]
fn path_that_is_no_project_is_a_usage_error() {
    let scene = Scene::new(cdi(String::new()), &lock());
    let image = format!("{}-unverified", lock().stack.name);
    std::fs::create_dir(scene.program.path("empty")).expect("ours");
    for folder in [".", "./empty", ".."] {
        let run = scene.program.run(&["diff", &image, folder]);
        assert_message(&run, 2, &[&format!("no envforge.toml in `{folder}`"), "the directory of a project"]);
    }
    for (args, code) in [
        (&["diff", &image, "./missing.lock"][..], 2),
        (&["verify", "."], 2),
        (&["shell", ".", "--", "true"], 125),
        (&["shell", "/tmp", "--", "true"], 125),
    ] {
        assert_message(&scene.program.run(args), code, &["invalid image reference `"]);
    }
    // A folder whose name can be an image's is none: the engine is asked.
    let run = scene.program.run(&["inspect", "empty"]);
    assert_message(&run, 3, &["image `empty` not found"]);
    assert!(!scene.requests.contain("/images/./"), "no engine is asked for a path");
}

#[test]
fn mount_after_v_gets_the_option_it_means() {
    let scene = Scene::new(GpuDaemon::default(), &lock());
    let folder = scene.program.path("");
    let mount = format!("{}:/data", folder.display());
    let says = format!("to mount a directory: `--mount {mount}` (`-v` is --verbose)");
    let run = scene.program.run(&["shell", "-v", &mount]);
    assert_message(&run, 125, &[&format!("`{mount}` is not an image"), &says]);
    let run = scene.program.run(&["shell", "-v", &mount, "pytorch-cuda:2.8", "--", "true"]);
    assert_message(&run, 2, &["unexpected argument 'pytorch-cuda:2.8'", &says]);
    let run = scene.program.run(&["shell", "cache:/data"]);
    assert_message(&run, 125, &["to mount a volume: `--volume cache:/data`"]);
    assert!(!run.stderr.contains("verbose"), "{}", run.stderr);
    let run = scene.program.run(&["shell", "-v", "pytorch-cuda:2.8", "x"]);
    assert!(
        run.stderr.contains("unexpected argument 'x'") && !run.stderr.contains("mount"),
        "{}",
        run.stderr
    );
}

#[test]
fn verbose_lines_are_words() {
    let scene = project();
    for args in
        [&["doctor", "-v"][..], &["inspect", "-v"], &["shell", "-v", "team/torch:1-unverified", "--", "true"]]
    {
        let run = scene.program.run(args);
        assert!(
            run.stderr.contains("connected to Docker 28.0.0 (API 1.48, x86_64): "),
            "{args:?}: {}",
            run.stderr
        );
        for part in [" { ", "Some(", "None", "EngineInfo"] {
            assert!(
                !run.stderr.contains(part) && !run.stdout.contains(part),
                "{args:?}: {}{}",
                run.stdout,
                run.stderr
            );
        }
    }
}
