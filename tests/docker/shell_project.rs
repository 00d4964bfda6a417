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
