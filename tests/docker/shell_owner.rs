//! Who runs inside a shell, and whose the files are.

use std::os::unix::fs::MetadataExt as _;

use crate::engine::docker;
use crate::scene::TAG;
use crate::shell::Shells;

const SCRIPT: &str = "id -u; id -g; whoami; echo ~; touch \"made-by-$(id -u)\" ~/mine /tmp/mine && \
     find ~ ! -uid \"$(id -u)\"; cat /etc/envforge-no-such-file 2>/dev/null; \
     for place in / /etc /usr /opt/env /var/tmp /run /data; do touch $place/x 2>/dev/null && echo \"writable: $place\"; done; \
     grep -E 'Cap(Prm|Eff|Bnd)|NoNewPrivs' /proc/self/status | tr -s '\\t' ' '";

/// Asserts what a caller of that id may do inside, as whom, and whose his files are. Docker without root has one id for
/// him, 0; elsewhere he is himself.
#[track_caller]
pub(crate) fn assert_files_are_the_callers(shells: &Shells, uid: u32, inside: u32) {
    let run = shells.run_as(uid, &["shell", TAG, "--", "bash", "-c", SCRIPT]);
    assert_eq!(run.code, 0, "{uid}: {}", run.stderr);
    let name = if inside == 0 { "root" } else { "dev" };
    let none = "0000000000000000";
    let expected = format!(
        "{inside}\n{inside}\n{name}\n/home/dev\nCapPrm: {none}\nCapEff: {none}\nCapBnd: {none}\nNoNewPrivs: 1\n"
    );
    assert_eq!(run.stdout, expected, "{uid}");
    assert_eq!(run.stderr.contains("running as root"), uid == 0, "{}", run.stderr);
    let made = shells.project().join(format!("made-by-{inside}"));
    let made = std::fs::metadata(made).expect("it is in the project's folder");
    assert_eq!((made.uid(), made.gid()), (uid, uid));
}

#[test]
#[ignore = "needs docker"]
fn files_belong_to_the_caller_regardless_of_user_id() {
    let shells = Shells::new();
    // The image has a user of id 33.
    for uid in [0, 1000, 50000, 33] {
        assert_files_are_the_callers(&shells, uid, uid);
    }
    let again = shells.run_as(50000, &["shell", TAG, "--", "sh", "-c", "ls ~/mine; mkdir ~/more"]);
    assert_eq!(
        (again.code, again.stdout.as_str()),
        (0, "/home/dev/mine\n"),
        "the home folder stays: {}",
        again.stderr
    );
}

#[test]
#[ignore = "needs docker"]
fn projects_keep_separate_home_volumes() {
    let shells = Shells::new();
    shells.script("echo first >~/note; echo model >$HF_HOME.txt");
    assert_eq!(shells.script("cat ~/note"), "first");
    let other = shells.scene.program.path("other");
    std::fs::create_dir(&other).expect("a folder of ours");
    let args = ["shell", TAG, "--", "sh", "-c", "ls ~/note /workspace; cat $HF_HOME.txt"];
    let output = shells.command(&args).current_dir(&other).output().expect("it starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(stderr.contains("/home/dev/note"), "another project's home is not here: {stdout}{stderr}");
    assert!(stdout.ends_with("model\n"), "models are shared: {stdout}");
}

#[test]
#[ignore = "needs docker"]
fn data_is_read_only_volumes_persist_and_limits_are_enforced() {
    let shells = Shells::new();
    let data = shells.scene.program.path("set");
    std::fs::create_dir(&data).expect("a folder of ours");
    std::fs::write(data.join("a"), "1").expect("a file of ours");
    std::fs::write(shells.project().join("secrets"), "# c\nTOKEN=hunter2-planted\n").expect("a file of ours");
    let script = "cat /data/set/a; echo; touch /data/set/b 2>/dev/null && echo writable; touch /out/kept; \
                  df -B1 --output=size /dev/shm | tail -1; cat /sys/fs/cgroup/memory/memory.limit_in_bytes; echo $TOKEN";
    let data = data.to_str().expect("UTF-8");
    let args = [
        "shell",
        TAG,
        "--data",
        data,
        "--volume",
        "envforge-test-out:/out",
        "--memory",
        "512m",
        "--shm-size",
        "1g",
        "--cpus",
        "0.5",
        "--env-file",
        "secrets",
        "--",
        "sh",
        "-c",
        script,
    ];
    let shown = shells.succeed(&args);
    assert_eq!(
        shown.split_whitespace().collect::<Vec<_>>(),
        ["1", "1073741824", "536870912", "hunter2-planted"]
    );
    assert_eq!(shells.script("ls /out 2>/dev/null; echo none"), "none");
    let args = ["shell", TAG, "--volume", "envforge-test-out:/out", "--", "ls", "/out"];
    assert_eq!(shells.succeed(&args), "kept", "a named volume stays");
    let image = docker(&["inspect", TAG]) + &docker(&["history", "--no-trunc", TAG]);
    assert!(!image.contains("hunter2"), "a secret is in the image");
}
