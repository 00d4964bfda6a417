//! Images with NCCL have the libraries for InfiniBand, login shells have the image's PATH; a lock of an earlier release gives the
//! image that it always gave, until `lock` renews it.

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG};

/// Packages that an image has for NCCL alone, with what they need.
const OF_RDMA: [&str; 4] = ["ibverbs-providers", "libibverbs1", "libnl-route-3-200", "librdmacm1"];

/// What a login shell of the image says to these words, after `entry`.
fn login(words: &str) -> String {
    docker(&["run", "--rm", "--network", "none", TAG, "bash", "-lc", words])
}

/// The lock as an earlier release made it: another schema, without those packages and records.
fn of_an_earlier_release(lock: &str) -> String {
    let is_of_rdma =
        |line: &&str| OF_RDMA.iter().any(|name| line.contains(&format!("{{ name = \"{name}\", ")));
    let (removed, kept): (Vec<&str>, Vec<&str>) = lock.lines().partition(is_of_rdma);
    assert_eq!(removed.len(), OF_RDMA.len(), "{removed:#?}");
    let text = kept.join("\n") + "\n";
    let records = text.find("\n[records]\n").expect("records");
    let is_made_here = |line: &&str| {
        !["content", "layout", "config", "layers", "    {", "]"].iter().any(|start| line.starts_with(start))
    };
    let made: Vec<&str> = text[records..].lines().filter(is_made_here).collect();
    format!("{}{}\n", text[..records].replacen("schema = 3\n", "schema = 2\n", 1), made.join("\n"))
}

#[test]
#[ignore = "needs docker"]
fn lock_of_an_earlier_release_builds_as_it_is() {
    let scene = Scene::locked();
    let lock = scene.lock();
    let run = scene.succeed(&["build", SPEC, "-v"]);
    assert!(run.stderr.contains("login-shell"), "{}", run.stderr);
    let python = "command -v python || echo none";
    assert_eq!(login(python), "/opt/env/bin/python");
    let load = "python -c 'import ctypes; ctypes.CDLL(\"libibverbs.so.1\"); ctypes.CDLL(\"librdmacm.so.1\")' && echo loads";
    assert_eq!(login(load), "loads");
    let stranger = docker(&["run", "--rm", "--user", "50000:50000", TAG, "sh", "-lc", "echo $HOME $PATH"]);
    let (home, path) = stranger.split_once(' ').expect("two words");
    assert!(home.starts_with("/tmp/home.") && path.starts_with(&format!("{home}/.venv/bin:")), "{stranger}");
    assert!(path.contains(":/opt/env/bin:"), "{path}");

    let old = of_an_earlier_release(&lock);
    std::fs::write(scene.lock_path(), &old).expect("ours");
    let run = scene.succeed(&["build", SPEC, "--locked"]);
    let said = "it is of an earlier envforge: `envforge lock` adds libibverbs1, ibverbs-providers, librdmacm1 for InfiniBand and RoCE, \
                and the image's PATH in login shells";
    assert!(run.stderr.contains(said), "{}", run.stderr);
    assert_eq!(scene.lock(), old, "`--locked` writes nothing");
    assert_eq!(login(python), "none", "Debian's /etc/profile sets the PATH");
    assert_eq!(login("ls /usr/lib/*/libibverbs.so.1 /etc/profile.d/zz-envforge.sh 2>/dev/null | wc -l"), "0");
    let verify = scene.succeed(&["verify", TAG, "--json"]);
    let report: serde_json::Value = serde_json::from_str(&verify.stdout).expect("JSON");
    let check = |id: &str| {
        let all = report["checks"].as_array().expect("checks");
        all.iter().find(|check| check["id"] == id).cloned().unwrap_or_else(|| panic!("no {id}: {report}"))
    };
    assert_eq!(check("login-shell")["outcome"], "skipped", "{report}");

    let run = scene.succeed(&["build", SPEC]);
    assert!(run.stderr.contains(said) && scene.lock().contains("schema = 2\n"), "{}", run.stderr);
    scene.fail(&["lock", SPEC, "--check"], 1, &["libibverbs1", "PATH of login shells"]);
    scene.succeed(&["lock", SPEC]);
    let renewed = scene.lock();
    assert!(renewed.contains("schema = 3\n"), "{renewed}");
    for name in OF_RDMA {
        assert!(renewed.contains(&format!("{{ name = \"{name}\", ")), "{name}: {renewed}");
    }
}
