//! `--base IMAGE` of images the matrix does not know, made here of a bootstrapped Debian 12 with a few files more.

use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG, base_of_lock, python_in};

/// An image made of a base by a command, removed with this value, and with it the private tag it got as a base.
struct Made(&'static str);

impl Made {
    fn new(name: &'static str, base: &str, changes: &[&str], command: &str) -> Self {
        let container = docker(&["create", "--network", "none", base, "/bin/sh", "-c", command]);
        docker(&["start", "--attach", &container]);
        let mut words = vec!["commit"];
        words.extend(changes.iter().flat_map(|change| ["--change", *change]));
        words.extend([container.as_str(), name]);
        docker(&words);
        docker(&["rm", &container]);
        Self(name)
    }

    fn id(&self) -> String {
        docker(&["inspect", "-f", "{{.Id}}", self.0])
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let private = format!("envforge-base:{}", &self.id()["sha256:".len()..][..16]);
        for image in [private.as_str(), self.0] {
            drop(std::process::Command::new("docker").args(["rmi", image]).output());
        }
    }
}

/// Locks for the bootstrapped Debian 12 and gives its tag.
fn debian_12(scene: &Scene) -> String {
    scene.succeed(&["lock", SPEC, "--base-provider", "bootstrap", "--lockfile", "plain.lock"]);
    let text = std::fs::read_to_string(scene.program.path("plain.lock")).expect("the lock");
    base_of_lock(&text)
}

#[test]
#[ignore = "nightly: needs docker and makes two bases, two minutes"]
fn custom_base_with_cuda_is_warned_about_and_locked_by_id() {
    let scene = Scene::new();
    let plant = "mkdir -p /usr/local/cuda-12.4/lib64 && : >/usr/local/cuda-12.4/lib64/libcufft.so.11 && \
                 : >/usr/local/cuda-12.4/lib64/libcufft.so.10 && useradd --uid 1000 --create-home ubuntu && \
                 echo mine >/etc/mine";
    let changes = ["ENV CUDA_VERSION=12.4.1", "ENV NVIDIA_REQUIRE_CUDA=cuda>=12.4"];
    let base = Made::new("basetest:cuda", &scene.bootstrapped_base(), &changes, plant);

    let run = scene.succeed(&["build", SPEC, "--base", "basetest:cuda", "--json"]);
    for part in ["debian bookworm, glibc 2.36, Python 3.11", "contains its own CUDA (CUDA_VERSION=12.4.1"] {
        assert!(run.stderr.contains(part), "`{part}` is missing in: {}", run.stderr);
    }
    let lock: toml::Table = scene.lock().parse().expect("TOML");
    let locked = lock["base"].as_table().expect("a table");
    assert_eq!(locked["provider"].as_str(), Some("image"));
    assert_eq!(locked["name"].as_str(), Some("basetest:cuda"));
    assert_eq!(locked["digest"].as_str(), Some(base.id().as_str()));
    assert_eq!(locked["cuda"].as_bool(), Some(true));
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let checks = report["verdict"]["checks"].as_array().expect("checks");
    let one_cuda = checks.iter().find(|check| check["id"] == "one-cuda").expect("the check");
    assert_eq!(one_cuda["outcome"], "passed", "{one_cuda}");
    assert!(
        one_cuda["detail"].as_str().is_some_and(|text| text.contains("in addition to those of the base"))
    );
    let inside = "import os, pwd; print(open('/etc/mine').read().strip(), pwd.getpwuid(os.getuid()).pw_name)";
    assert_eq!(python_in(TAG, inside), "mine dev");
    docker(&["rmi", "-f", TAG, "pytorch-cuda:2.7-cu118-unverified"]);
}

#[test]
#[ignore = "needs docker"]
fn incompatible_base_is_rejected_by_rule_before_the_build() {
    let scene = Scene::new();
    let debian = scene.bootstrapped_base();
    let _without_apt = Made::new("basetest:noapt", &debian, &[], "rm /usr/bin/apt-get");
    scene.fail(&["lock", SPEC, "--base", "basetest:noapt"], 1, &["as a base", "without apt and dpkg"]);
    // What the packages of a base say decides, not what its programs print: none of them runs.
    let old = "sed -i '/^Package: libc6$/,/^Version: /s/^Version: .*/Version: 2.12-1/' /var/lib/dpkg/status";
    let _old = Made::new("basetest:old", &debian, &[], old);
    scene.fail(&["lock", SPEC, "--base", "basetest:old"], 1, &["glibc-too-old", "2.12", "basetest:old"]);
    let python = "printf 'Package: python3-minimal\\nStatus: install ok installed\\nVersion: 3.6.9-1\\n\\n' \
                  >>/var/lib/dpkg/status";
    let _python = Made::new("basetest:python", &debian, &[], python);
    scene.fail(&["build", SPEC, "--base", "basetest:python"], 1, &["python-unsupported", "3.6"]);
    let name = "sed -i 's/^VERSION_CODENAME=.*/VERSION_CODENAME=\"..\\/x\"/' /usr/lib/os-release";
    let _name = Made::new("basetest:name", &debian, &[], name);
    scene.fail(
        &["lock", SPEC, "--base", "basetest:name"],
        1,
        &["VERSION_CODENAME", "`../x`", "as `bookworm`"],
    );
    let _trigger = Made::new("basetest:trigger", &debian, &["ONBUILD RUN id"], ":");
    scene.fail(
        &["lock", SPEC, "--base", "basetest:trigger"],
        1,
        &["instructions for builds", "ONBUILD RUN id"],
    );
    scene.fail(&["lock", SPEC, "--base", "basetest:gone"], 3, &["`basetest:gone`", "hint:"]);
}

/// A base whose programs do nothing but wait, with a hook of apt and a login: what it is comes from its files, and so do its packages.
#[test]
#[ignore = "needs docker"]
fn base_is_locked_without_running_anything_of_it() {
    let scene = Scene::new();
    let debian = debian_12(&scene);
    let plant = "printf 'APT::Update::Pre-Invoke {\"sleep 9999\";};\\n' >/etc/apt/apt.conf.d/99hook && \
        printf 'machine m login u password hunter2\\n' >/etc/apt/auth.conf && mkdir /root/keep && cp /bin/sleep /root/keep/ && \
        for name in /usr/bin/* /usr/sbin/* /usr/lib/apt/methods/*; do \
        case $name in */ln) ;; *) ln -f /root/keep/sleep $name ;; esac; done; ln -f /root/keep/sleep /usr/bin/ln; :";
    let base = Made::new("basetest:sleeps", &debian, &[], plant);
    let stopped = std::process::Command::new("docker")
        .args([
            "run",
            "--rm",
            "--network",
            "none",
            "basetest:sleeps",
            "/usr/bin/dpkg",
            "--print-architecture",
        ])
        .output()
        .expect("docker");
    assert!(!stopped.status.success(), "its programs do not work");
    let run = scene.succeed(&["lock", SPEC, "--base", "basetest:sleeps", "--lockfile", "named.lock"]);
    assert!(
        run.stderr.contains("base basetest:sleeps: debian bookworm, glibc 2.36, Python 3.11"),
        "{}",
        run.stderr
    );
    let read = |name: &str| -> toml::Table {
        let text = std::fs::read_to_string(scene.program.path(name)).expect("a lock");
        assert!(!text.contains("hunter2"));
        text.parse().expect("TOML")
    };
    let (plain, named) = (read("plain.lock"), read("named.lock"));
    for part in ["system", "wheels", "tools"] {
        assert!(plain.contains_key(part), "{:?}", plain.keys().collect::<Vec<_>>());
        assert_eq!(plain[part], named[part], "{part}");
    }
    assert_eq!(named["base"]["digest"].as_str(), Some(base.id().as_str()));
}
