//! The configuration of a site, `/etc/envforge/config.toml`, in a mount namespace of the test's own: it counts below every user's, and
//! what it rules cannot be loosened.

use std::path::Path;
use std::process::Command;

use crate::evidence::{Place, with_driver};
use crate::matrix::matrix_archive;
use crate::memory_registry::Habits;
use crate::program::{Program, Run};
use crate::verify::{H200, lock, report};
use crate::{assert_message, program};

/// A copy of /etc with the site's file, which the program sees in place of /etc.
struct Site {
    etc: std::path::PathBuf,
}

impl Site {
    fn new(program: &Program) -> Self {
        let etc = program.path("etc");
        let copied = Command::new("cp").args(["-a", "/etc"]).arg(&etc).output().expect("cp starts");
        assert!(etc.join("passwd").is_file(), "{copied:?}");
        drop(std::fs::remove_dir_all(etc.join("envforge")));
        std::fs::create_dir(etc.join("envforge")).expect("ours");
        Self { etc }
    }

    fn says(&self, text: &str) {
        std::fs::write(self.etc.join("envforge/config.toml"), text).expect("ours");
    }

    fn mode(&self, name: &str, mode: u32) {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.etc.join(name), mode).expect("ours");
    }

    /// Runs the program where this is /etc, and it is root's.
    fn run(&self, program: &Program, args: &[&str]) -> Run {
        let own = program.command(args);
        let mut command = program.command_of(Path::new("unshare"), &["--mount"]);
        if !rustix::process::getuid().is_root() {
            command.arg("--map-root-user");
        }
        command.args(["sh", "-c", "mount --bind \"$0\" /etc && exec \"$@\""]).arg(&self.etc);
        command.arg(own.get_program()).args(own.get_args());
        Run::of(&command.output().expect("unshare starts"))
    }
}

fn user_file(program: &Program, text: &str) -> String {
    let folder = program.path("home/.config/envforge");
    std::fs::create_dir_all(&folder).expect("ours");
    let file = folder.join("config.toml");
    std::fs::write(&file, text).expect("ours");
    file.to_string_lossy().into_owned()
}

#[test]
#[ignore = "needs a mount namespace"]
fn site_counts_below_the_user_and_doctor_says_which() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    let site = Site::new(&program);
    site.says("[mirrors]\ndebian = 'http://site.test/debian'\nubuntu = 'http://site.test/ubuntu'\n[policy]\nunknown = 'refuse'\n");
    let file = user_file(&program, "[mirrors]\ndebian = 'http://user.test/debian'\n");
    let run = site.run(&program, &["doctor", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let findings = json["findings"].as_array().expect("a list");
    let from = |text: &str| {
        let found = findings.iter().find(|one| one["text"].as_str().is_some_and(|own| own.contains(text)));
        found.unwrap_or_else(|| panic!("{text}: {findings:?}"))["from"]
            .as_str()
            .unwrap_or("nothing")
            .to_owned()
    };
    assert_eq!(from("http://user.test/debian"), file);
    assert_eq!(from("http://site.test/ubuntu"), "/etc/envforge/config.toml");
    assert_eq!(from("stacks that the matrix does not know are refused"), "/etc/envforge/config.toml");
    assert_eq!(from("configuration of this site: /etc/envforge/config.toml"), "nothing");
    let text = site.run(&program, &["doctor", "-v"]).stdout;
    assert!(text.contains("(from /etc/envforge/config.toml)"), "{text}");
}

#[test]
#[ignore = "needs a mount namespace"]
fn rules_of_a_site_are_tightened_never_loosened() {
    let mut program = program();
    let site = Site::new(&program);
    site.says("[policy]\nunknown = 'refuse'\n[trust]\nprojects = []\nkeys = []\n");
    let plan = ["plan", "pytorch-cuda:2.5.1-cu124", "--platform", "linux/arm64", "--gpu", "sm_90"];
    let refused =
        |run: &Run| assert!(run.code == 1 && run.stderr.contains("`[policy]` refuses it"), "{run:?}");
    refused(&site.run(&program, &plan));
    let loose = "[policy]\nunknown = 'warn'\n[trust]\nkeys = [{ file = '/mine.pub' }]\nprojects = ['/']\n";
    let says = [
        "loosens rules of this site",
        "policy.unknown = \"warn\", where the site has \"refuse\"",
        "trust.keys names /mine.pub",
        "trust.projects names /",
        "/etc/envforge/config.toml",
    ];
    // The user's own file, one that an argument names, one that the environment names.
    let file = user_file(&program, loose);
    assert_message(&site.run(&program, &plan), 2, &says);
    let named = program.path("loose.toml");
    std::fs::rename(file, &named).expect("ours");
    let named = named.to_string_lossy().into_owned();
    assert_message(&site.run(&program, &[&plan[..], &["--config", &named]].concat()), 2, &says);
    program.set("ENVFORGE_CONFIG", &named);
    assert_message(&site.run(&program, &plan), 2, &says);
    // An empty file is no way around it, nor is a home elsewhere.
    std::fs::write(&named, "").expect("ours");
    refused(&site.run(&program, &plan));
    program.set("HOME", "/nonexistent");
    program.set("XDG_CONFIG_HOME", "/nonexistent");
    refused(&site.run(&program, &plan));
}

#[test]
#[ignore = "needs a mount namespace"]
fn matrix_of_a_site_is_every_users() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    let site = Site::new(&program);
    let hash =
        matrix_archive(&program, "matrix.tar", &[("extra.toml", "schema = 1\nchecked = \"2030-01-02\"\n")]);
    std::fs::copy(program.path("matrix.tar"), site.etc.join("envforge/matrix.tar")).expect("ours");
    let file = "/etc/envforge/matrix.tar";
    site.says(&format!("[matrix]\nfile = '{file}'\nsha256 = '{hash}'\n"));
    user_file(&program, "[mirrors]\ndebian = 'http://user.test/debian'\n");
    let lint = site.run(&program, &["compat", "lint"]);
    assert!(lint.code == 0 && lint.stdout.starts_with("matrix 2030-01-02."), "{lint:?}");
    let doctor = site.run(&program, &["doctor", "-v"]).stdout.replace("\n         ", " ");
    assert!(doctor.contains(&format!("{file} (from /etc/envforge/config.toml)")), "{doctor}");
    std::fs::write(site.etc.join("envforge/matrix.tar"), "another").expect("ours");
    let says = ["SHA-256 mismatch", file, &hash];
    assert_message(&site.run(&program, &["plan", "pytorch-cuda:2.8"]), 2, &says);
}

/// A site that lists the projects leaves nobody the question.
#[test]
#[ignore = "needs a mount namespace"]
fn project_that_the_site_does_not_list_is_not_trusted_by_an_option() {
    let program = program().with("DOCKER_HOST", "unix:///nonexistent.sock");
    let site = Site::new(&program);
    let text = "schema = 1\nspec = \"pytorch-cuda:2.8-cu128\"\n[shell]\nmounts = [\"/etc:/mnt:ro\"]\n";
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    let says = ["is not trusted", "this site lists the projects it trusts"];
    // Agreed to once, when the site had no list.
    site.says("");
    let run = site.run(&program, &["shell", "--trust", "--", "true"]);
    assert!(!run.stderr.contains("is not trusted"), "{run:?}");
    site.says("[trust]\nprojects = []\n");
    assert_message(&site.run(&program, &["shell", "--trust", "--", "true"]), 125, &says);
    assert_message(&site.run(&program, &["shell", "--", "true"]), 125, &says);
    let folder = program.path(".").canonicalize().expect("there");
    site.says(&format!("[trust]\nprojects = ['{}']\n", folder.display()));
    let run = site.run(&program, &["shell", "--", "true"]);
    assert!(!run.stderr.contains("is not trusted"), "{run:?}");
}

#[test]
#[ignore = "needs a mount namespace"]
fn file_that_others_can_change_is_refused_and_a_newer_table_is_not() {
    let program = program();
    let site = Site::new(&program);
    let plan = ["plan", "pytorch-cuda:2.8-cu128", "--gpu", "sm_90", "--driver", "580"];
    site.says("[satellites]\nhost = 'x'\n");
    let run = site.run(&program, &plan);
    assert!(run.code == 0 && run.stderr.contains("`[satellites]` of /etc/envforge/config.toml"), "{run:?}");
    for (name, path) in [("envforge/config.toml", "/etc/envforge/config.toml"), ("envforge", "/etc/envforge")]
    {
        site.mode(name, 0o777);
        let says =
            ["/etc/envforge/config.toml", &format!("{path} is not root's alone"), "others can write it"];
        assert_message(&site.run(&program, &plan), 2, &says);
        site.mode(name, 0o755);
    }
    site.says("[policy]\nrequire-moon = true\n");
    assert_message(&site.run(&program, &plan), 2, &["/etc/envforge/config.toml", "require-moon"]);
}

/// A key that the site names is root's alone, as the file that names it.
#[test]
#[ignore = "needs a mount namespace"]
fn key_of_a_site_that_others_can_change_is_not_believed() {
    let place = Place::new(Habits::default());
    let tester = place.tester(with_driver(&report(&lock(), H200, true), "580.95.05"));
    let run = tester.verify(&["--attest", "--key", "key.pem"]);
    assert_eq!(run.code, 0, "{run:?}");
    let node = program();
    let site = Site::new(&node);
    std::fs::write(site.etc.join("envforge/lab.pub"), include_str!("../fixtures/evidence/p256.pub"))
        .expect("ours");
    site.mode("envforge/lab.pub", 0o644);
    site.says("[trust]\nkeys = [{ file = '/etc/envforge/lab.pub' }]\n");
    let admit = ["evidence", "admit", &place.image, "--gpu", "sm_90"];
    let run = site.run(&node, &admit);
    assert!(run.code == 0 && run.stdout.contains("admitted"), "{run:?}");
    site.mode("envforge/lab.pub", 0o666);
    assert_message(&site.run(&node, &admit), 2, &["/etc/envforge/lab.pub", "is not root's alone"]);
}
