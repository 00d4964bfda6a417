//! A shell of a project: `shell` without an image, opened as the project's `[shell]` says.

use crate::scene::SPEC;
use crate::shell::Shells;

#[test]
#[ignore = "needs docker"]
fn shell_builds_a_project_once_and_opens_it_from_subdirectories() {
    let shells = Shells::without_image();
    let project = shells.project();
    std::fs::create_dir_all(project.join("src/deep")).expect("a folder of ours");
    std::fs::create_dir(project.join("images")).expect("a folder of ours");
    std::fs::write(project.join("images/one"), "seen\n").expect("a file of ours");
    let file = format!(
        "schema = 1\nname = \"seen\"\nspec = \"{SPEC}\"\n[variables]\nTEAM = \"vision\"\n\
         [shell]\nmounts = [\"images:/data/images:ro\"]\nmemory = \"512m\"\n"
    );
    std::fs::write(project.join("envforge.toml"), file).expect("a file of ours");
    let script = "pwd; cat /data/images/one; echo $TEAM; cat /sys/fs/cgroup/memory.max \
                  /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null; ls /workspace/envforge.toml";
    let shell = || {
        let mut command = shells.command(&["shell", "--", "sh", "-c", script]);
        command.current_dir(project.join("src/deep"));
        crate::program::Run::of(&command.output().expect("the program starts"))
    };
    let first = shell();
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(first.stdout, "/workspace/src/deep\nseen\nvision\n536870912\n/workspace/envforge.toml\n");
    assert!(first.stderr.contains("building it first"), "{}", first.stderr);
    let second = shell();
    assert_eq!((second.code, second.stdout), (0, first.stdout), "{}", second.stderr);
    assert!(!second.stderr.contains("building"), "{}", second.stderr);

    // In a container that runs, too.
    shells.succeed(&["shell", "--name", "run1", "--detach"]);
    for (folder, inside) in [("src", "/workspace/src"), (".", "/workspace")] {
        for words in [&["shell", "--", "pwd"][..], &["shell", "run1", "--", "pwd"]] {
            let mut command = shells.command(words);
            command.current_dir(project.join(folder));
            let run = crate::program::Run::of(&command.output().expect("the program starts"));
            assert_eq!((run.code, run.stdout.trim()), (0, inside), "{words:?}: {}", run.stderr);
        }
    }
    shells.succeed(&["stop", "run1"]);
}

/// A folder of the project is exchanged with a link to a folder of the host, and back, without end while containers start.
#[test]
#[ignore = "needs docker"]
fn folder_that_is_exchanged_while_containers_start_is_never_one_of_the_host() {
    const STARTS: usize = 50;
    let shells = Shells::without_image();
    let (project, host) = (shells.project(), shells.scene.program.path("host"));
    for folder in [project.join("data"), host.clone()] {
        std::fs::create_dir(folder).expect("a folder of ours");
    }
    std::fs::write(project.join("data/file"), "of-the-project\n").expect("a file of ours");
    std::fs::write(host.join("file"), "of-the-host\n").expect("a file of ours");
    std::os::unix::fs::symlink(&host, project.join("link")).expect("a link of ours");
    let file = format!(
        "schema = 1\nname = \"seen\"\nspec = \"{SPEC}\"\n[shell]\nmounts = [\"data:/data\", \"data:/again:ro\"]\n"
    );
    std::fs::write(project.join("envforge.toml"), file).expect("a file of ours");
    let script = "cat /data/file /again/file; echo x >/data/written";
    let first = shells.run(&["shell", "--", "sh", "-c", script]);
    assert_eq!(
        (first.code, first.stdout.as_str()),
        (0, "of-the-project\nof-the-project\n"),
        "{}",
        first.stderr
    );
    assert!(first.stderr.contains("/again is a link to /workspace/data"), "{}", first.stderr);

    let (stop, ends) = std::sync::mpsc::channel::<()>();
    let (mut started, mut refused) = (0, 0);
    std::thread::scope(|threads| {
        // Dropped, it ends the other thread, also where this one panics.
        let (_stop, project) = (stop, &project);
        threads.spawn(move || {
            while ends.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                let (data, link) = (project.join("data"), project.join("link"));
                let exchange = rustix::fs::RenameFlags::EXCHANGE;
                rustix::fs::renameat_with(rustix::fs::CWD, &data, rustix::fs::CWD, &link, exchange)
                    .expect("ours");
                std::thread::sleep(std::time::Duration::from_millis(3));
            }
        });
        for _ in 0..STARTS {
            let run = shells.run(&["shell", "--new", "--", "sh", "-c", script]);
            assert!(!run.stdout.contains("of-the-host"), "{}", run.stdout);
            match run.code {
                125 => {
                    let reasons = ["is not trusted", "was changed while", "cannot mount"];
                    assert!(reasons.iter().any(|reason| run.stderr.contains(reason)), "{}", run.stderr);
                    refused += 1;
                }
                _ => started += 1,
            }
        }
    });
    assert!(!host.join("written").exists(), "a program wrote to a folder of the host");
    assert!(started > 0 && refused > 0, "{started} started, {refused} refused: both were tried");
}

#[test]
#[ignore = "needs docker"]
fn project_sets_variables_network_and_data_and_typed_options_win() {
    let shells = Shells::without_image();
    let project = shells.project();
    for folder in ["src/deep", "sets", "others"] {
        std::fs::create_dir_all(project.join(folder)).expect("a folder of ours");
    }
    std::fs::write(project.join("sets/one"), "of-the-project\n").expect("a file of ours");
    std::fs::write(project.join("others/one"), "typed\n").expect("a file of ours");
    std::fs::write(project.join(".env"), "B=file\nC=file\n").expect("a file of ours");
    let file = format!(
        "schema = 1\nname = \"seen\"\nspec = \"{SPEC}\"\n[shell]\nnetwork = \"none\"\ngpus = \"none\"\ndata = [\"sets\"]\n\
         volumes = [\"envforge-test-words:/kept\"]\nenv = [\"A=project\", \"B=project\"]\nenv-file = [\".env\"]\n"
    );
    std::fs::write(project.join("envforge.toml"), file).expect("a file of ours");
    let script = "echo $A $B $C $debian_chroot; cat /data/sets/one; echo $(ls /sys/class/net); echo kept >/kept/file && pwd";
    let run = |options: &[&str]| {
        let words = [&["run"], options, &["sh", "-c", script]].concat();
        let mut command = shells.command(&words);
        command.current_dir(project.join("src/deep"));
        crate::program::Run::of(&command.output().expect("the program starts"))
    };
    let refused = run(&[]);
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    assert!(refused.stderr.contains("mount volume `envforge-test-words` at `/kept`"), "{}", refused.stderr);
    let first = run(&["--trust"]);
    assert_eq!(first.code, 0, "{}", first.stderr);
    assert_eq!(first.stdout, "project project file seen\nof-the-project\nlo\n/workspace/src/deep\n");
    let typed = run(&["-e", "A=typed", "--network", "bridge", "--data", "../../others:/data/sets"]);
    assert_eq!(
        typed.stdout, "typed project file seen\ntyped\neth0 lo\n/workspace/src/deep\n",
        "{}",
        typed.stderr
    );
    // `run` is `shell --`, with its exit code.
    assert_eq!(shells.run(&["run", "sh", "-c", "exit 7"]).code, 7);
    assert_eq!(shells.succeed(&["run", "--", "cat", "/kept/file"]), "kept");

    shells.succeed(&["shell", "--name", "run1", "--detach"]);
    assert_eq!(shells.succeed(&["run", "hostname"]), shells.succeed(&["shell", "run1", "--", "hostname"]));
    let mut stop = shells.command(&["stop"]);
    stop.current_dir(project.join("src/deep"));
    let stopped = crate::program::Run::of(&stop.output().expect("the program starts"));
    assert_eq!((stopped.code, stopped.stdout.as_str()), (0, "run1\n"), "{}", stopped.stderr);
    assert_ne!(shells.run(&["stop"]).code, 0, "nothing is left to stop");
}
