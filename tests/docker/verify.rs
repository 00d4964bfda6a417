//! `verify` on real images: one of ours, one that was broken on purpose, one that envforge did not build.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::changed_image::ChangedImage;
use crate::engine::docker;
use crate::scene::{SPEC, Scene, TAG, assert_message};

/// The image after a command ran in it as root; labels and configuration stay.
fn changed(from: &str, name: &str, command: &str) -> ChangedImage {
    ChangedImage::of(from, name, command, &[], &["USER 1000:1000", r#"ENTRYPOINT ["tini"]"#])
}

fn last_line(text: &str) -> &str {
    text.trim_end().lines().next_back().unwrap_or_default()
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("one JSON object")
}

#[test]
#[ignore = "needs docker"]
fn verify_compares_an_image_with_its_lock() {
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    let run = scene.succeed(&["verify", SPEC]);
    assert!(last_line(&run.stdout).ends_with("; nothing ran on a GPU"), "{}", run.stdout);
    assert!(!run.stdout.contains("failed") && !run.stdout.contains("distributions"), "{}", run.stdout);
    let run = scene.succeed(&["verify", SPEC, "-v"]);
    assert!(run.stdout.contains("ok      distributions"), "{}", run.stdout);

    let report = json(&scene.succeed(&["verify", TAG, "--json", "--junit", "report.xml"]).stdout);
    assert_eq!(
        (&report["schema"], &report["executed"], &report["verdict"]),
        (&1.into(), &false.into(), &"static-only".into())
    );
    assert_eq!(report["image"], docker(&["inspect", "-f", "{{.Id}}", TAG]));
    assert!(report["checks"].as_array().expect("checks").len() > 10);
    assert!(!report["not_proven"].as_array().expect("a list").is_empty());
    assert_xml(&scene.program.path("report.xml"));

    let again = json(&scene.succeed(&["verify", TAG, "--last", "--json"]).stdout);
    assert_eq!(again, report, "the report is kept");

    let broken = changed(TAG, "broken", "rm -rf /opt/env/lib/python3.11/site-packages/idna*");
    let run = scene.program.run(&["verify", &broken.0, TAG, "--json", "--junit", "two.xml"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    let both = json(&run.stdout);
    assert_eq!(both["verdict"], "failed");
    let failed = |report: &serde_json::Value| -> Vec<String> {
        let checks = report["checks"].as_array().expect("checks").iter();
        checks
            .filter(|check| check["outcome"] == "failed")
            .map(|check| check["id"].as_str().expect("an id").to_owned())
            .collect()
    };
    assert_eq!(failed(&both["reports"][0]), ["distributions", "pip-check"]);
    assert_eq!(failed(&both["reports"][1]), Vec::<String>::new());
    assert_xml(&scene.program.path("two.xml"));
    let tags = scene.added().tags;
    assert!(tags.iter().all(|tag| tag.ends_with("-unverified") || tag == &broken.0), "{tags:?}");
}

#[test]
#[ignore = "needs docker"]
fn foreign_image_runs_in_the_sandbox() {
    let scene = Scene::locked();
    let base = scene.base();
    let run = scene.succeed(&["verify", &base, "--json"]);
    let report = json(&run.stdout);
    assert_eq!((&report["verdict"], &report["executed"]), (&"static-only".into(), &false.into()));
    let ids: Vec<_> =
        report["checks"].as_array().expect("checks").iter().map(|check| check["id"].clone()).collect();
    assert!(
        !ids.contains(&"leftovers".into()) && !ids.contains(&"image-user".into()),
        "no rule of ours: {ids:?}"
    );
    scene.assert_nothing_left();

    let old = changed(&base, "musl", "touch /lib/ld-musl-$(uname -m).so.1; rm /lib/*-linux-gnu/libc.so.6");
    let run = scene.program.run(&["verify", &old.0]);
    assert_eq!(run.code, 3);
    assert_message(&run.stderr, &["musl found", "glibc 2."]);
}

/// Compiles a library from that text, linked with what the options name.
fn library(out: &Path, source: &str, options: &[&str]) {
    std::fs::create_dir_all(out.parent().expect("a folder")).expect("made");
    let text = out.with_extension("c");
    std::fs::write(&text, source).expect("written");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-nostdlib", "-o"]).args([out, &text]).args(options);
    assert!(cc.status().expect("a C compiler").success(), "{}", out.display());
}

/// The base with a Python of its own that has torch and an extension of it, compiled from that text.
fn with_extension(scene: &Scene, name: &str, source: &str) -> ChangedImage {
    let folder = tempfile::tempdir().expect("a folder");
    let packages = folder.path().join("usr/local/lib/python3.11/site-packages");
    library(&packages.join("torch/lib/libc10.so"), "int c10(void) { return 0; }", &["-Wl,-soname,libc10.so"]);
    let torch = format!("-L{}", packages.join("torch/lib").display());
    let needs = ["-Wl,--no-as-needed", &torch, "-l:libc10.so", "-Wl,-rpath,$ORIGIN/../torch/lib"];
    library(&packages.join("vision/_C.so"), source, &needs);
    let python = folder.path().join("usr/local/bin/python3");
    std::fs::create_dir_all(python.parent().expect("a folder")).expect("made");
    let program = "#!/bin/sh\ncase \"$2 $3\" in 'pip check') exit 0;; esac\nprintf 'version=2.7.1\\ncuda=None\\nend=\\n'\n";
    std::fs::write(&python, program).expect("written");
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).expect("its mode");
    let packed = Command::new("tar").arg("-C").arg(folder.path()).args(["-cf", "-", "usr"]).output();
    let packed = packed.expect("tar starts");
    assert!(packed.status.success(), "{}", String::from_utf8_lossy(&packed.stderr));
    ChangedImage::of(&scene.base(), name, "tar -xf - --no-same-owner -C /", &packed.stdout, &[])
}

#[test]
#[ignore = "needs docker"]
fn foreign_image_with_an_extension_that_cannot_load_fails() {
    let scene = Scene::locked();
    let good = with_extension(&scene, "good-extension", "int start(void) { return 0; }");
    let run = scene.succeed(&["verify", &good.0, "-v"]);
    assert!(run.stdout.contains("1 extensions find every symbol"), "{}", run.stdout);

    let source =
        "extern int _ZN3c104cuda9SetDeviceEa(void); int start(void) { return _ZN3c104cuda9SetDeviceEa(); }";
    let broken = with_extension(&scene, "broken-extension", source);
    let run = scene.program.run(&["verify", &broken.0]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.contains("extension-abi") && run.stdout.contains("vision/_C.so"), "{}", run.stdout);
}

/// Python reads the file as XML.
#[track_caller]
fn assert_xml(path: &std::path::Path) {
    let code = "import sys, xml.dom.minidom as m; s = m.parse(sys.argv[1]).getElementsByTagName('testsuite'); assert s and all(int(t.getAttribute('tests')) == len(t.getElementsByTagName('testcase')) for t in s)";
    let output = Command::new("python3").args(["-c", code]).arg(path).output().expect("python3 starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
