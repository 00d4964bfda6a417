//! A real registry: bases resolved and pulled by digest, images pushed, and what goes wrong on the way.

use std::os::unix::fs::PermissionsExt;

use envforge::base::private_tag;
use envforge::model::image_digest::Digest;
use serde_json::Value;

use crate::engine::docker;
use crate::program::Run;
use crate::registry::{CuttingProxy, PASSWORD, Registry, USER};
use crate::scene::{SPEC, Scene, files_below, interrupt_when};

/// Lets the program log in by the environment, without TLS.
fn logged_in(scene: Scene, registry: &Registry, password: &str) -> Scene {
    scene
        .set("ENVFORGE_REGISTRY", format!("http://{}", registry.host()))
        .set("ENVFORGE_REGISTRY_USER", USER)
        .set("ENVFORGE_REGISTRY_PASSWORD", password)
}

/// A registry with the small build's base under its public name, as a mirror of the default registry.
fn mirror_of_the_base(scene: &Scene, registry: &Registry) {
    registry.publish(&scene.bootstrapped_base(), "library/debian:12");
}

#[test]
#[ignore = "needs docker"]
fn base_comes_from_a_registry_and_the_image_is_pushed_to_one() {
    let registry = Registry::with_password();
    let scene = logged_in(Scene::new(), &registry, PASSWORD);
    mirror_of_the_base(&scene, &registry);
    let scene = scene.set("ENVFORGE_IMAGE_MIRROR", registry.host());
    let wanted = format!("{}/team/torch:2.7", registry.host());
    let args = ["build", SPEC, "--base-provider", "image", "-t", &wanted, "--push", "-v"];
    let run = scene.succeed(&args);
    let tag = format!("{wanted}-unverified");

    let lock = scene.lock();
    let table: toml::Table = lock.parse().expect("TOML");
    assert_eq!(table["base"]["provider"].as_str(), Some("image"));
    assert_eq!(table["base"]["name"].as_str(), Some("debian:12"));
    let digest: Digest = table["base"]["digest"].as_str().expect("a digest").parse().expect("a digest");
    checked(&registry, digest.as_str());
    for text in [
        &run.stdout,
        &run.stderr,
        &lock,
        &docker(&["inspect", &tag]),
        &docker(&["history", "--no-trunc", &tag]),
    ] {
        assert!(!text.contains("planted~pass"), "the password is in: {text}");
    }
    assert!(
        !lock.contains(&registry.host())
            && !docker(&["history", "--no-trunc", &tag]).contains(&registry.host())
    );
    for folder in ["state", "home", "tmp"] {
        for file in files_below(&scene.program.path(folder)) {
            let content = std::fs::read(&file).unwrap_or_default();
            let found = content.windows(PASSWORD.len()).any(|window| window == PASSWORD.as_bytes());
            assert!(!found, "the password is in {}", file.display());
        }
    }

    let pushed =
        run.stdout.lines().find_map(|line| line.strip_prefix(&format!("{tag}@"))).expect("its digest");
    assert!(run.stdout.lines().any(|line| line == tag), "{}", run.stdout);
    let id = docker(&["inspect", "-f", "{{.Id}}", &tag]);
    assert_whole(&registry, pushed, &id);
    assert!(registry.has_no_uploads());

    // Pulled back by digest it is the same image.
    docker(&["rmi", &tag]);
    let pinned = format!("{}/team/torch@{pushed}", registry.host());
    let config = scene.program.path("docker-config");
    std::fs::create_dir(&config).expect("a folder");
    std::fs::write(config.join("config.json"), registry.docker_config()).expect("a file");
    docker(&["--config", &config.to_string_lossy(), "pull", "-q", &pinned]);
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", &pinned]), id);
    docker(&["rmi", &pinned]);
    forget_the_pulled_base(&registry, &digest);
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "needs docker"]
fn assembled_image_is_pushed_without_the_engine_and_mounted_elsewhere() {
    let registry = Registry::open();
    let scene = Scene::locked();
    let first = format!("{}/team/torch:2.7", registry.host());
    let key = scene.program.path("key.pem");
    std::fs::write(&key, include_str!("../fixtures/evidence/p256.pem")).expect("ours");
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).expect("ours");
    let run = scene.succeed(&["build", SPEC, "-t", &first, "--push", "--attest", "--key", "key.pem", "-v"]);
    assert!(run.stderr.contains("attested: "), "{}", run.stderr);
    assert!(!run.stderr.contains("pushing through the engine"), "{}", run.stderr);
    let tag = format!("{first}-unverified");
    let digest = |text: &str, tag: &str| {
        text.lines().find_map(|line| line.strip_prefix(&format!("{tag}@"))).expect("its digest").to_owned()
    };
    let pushed = digest(&run.stdout, &tag);
    let id = docker(&["inspect", "-f", "{{.Id}}", &tag]);
    assert_whole(&registry, &pushed, &id);

    // The same layers in another repository, by its digest alone: mounted, nothing is sent.
    let other = format!("{}/team/other", registry.host());
    let run = scene.succeed(&["push", &tag, &other, "-v", "--evidence"]);
    assert!(run.stderr.contains("sent=0"), "{}", run.stderr);
    assert_eq!(digest(&run.stdout, &other), pushed);
    // What was signed of it goes with it, from where it was pushed first: its provenance and its materials.
    let copied = format!("evidence copied: 2 statements to {other}@{pushed}");
    assert!(run.stderr.contains(&copied), "{}", run.stderr);

    // As the image of its platform in a tag for two.
    let platforms = |list: &'static str| ["push", &tag, &first, "--platform", list].map(str::to_owned);
    let words = platforms("linux/amd64,linux/arm64");
    let run = scene.succeed(&words.each_ref().map(String::as_str));
    let index = digest(&run.stdout, &tag);
    assert!(run.stderr.contains("holds linux/amd64 (lock "), "{}", run.stderr);
    assert!(run.stderr.contains("has no image for linux/arm64: push one"), "{}", run.stderr);
    let document: Value = serde_json::from_slice(&checked(&registry, &index)).expect("JSON");
    assert_eq!(document["manifests"][0]["digest"], pushed.as_str());
    let label = docker(&["inspect", "-f", "{{index .Config.Labels \"io.envforge.lock\"}}", &tag]);
    assert_eq!(document["manifests"][0]["annotations"]["io.envforge.lock"], label.as_str());
    let words = platforms("linux/arm64");
    scene.fail(&words.each_ref().map(String::as_str), 2, &["does not name linux/amd64"]);
    scene.fail(&["push", &tag, &other, "--platform", "linux/amd64"], 2, &["requires references with a tag"]);

    // In a layout, too, which another machine keeps.
    let run = scene.succeed(&["export", "oci", &tag, "carried.tar", "--evidence"]);
    assert!(run.stderr.contains("with evidence: 2 statements"), "{}", run.stderr);
    let import = |more: &[&str]| {
        let mut import = scene.program.command(&[&["import", "carried.tar", "carried:1"], more].concat());
        import.env("ENVFORGE_STATE_DIR", scene.program.path("third state"));
        let run = Run::of(&import.output().expect("it starts"));
        assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
        run.stderr
    };
    let said = import(&[]);
    assert!(said.contains("the layout carries evidence (2 statements), which `--evidence` keeps"), "{said}");
    let said = import(&["--evidence"]);
    assert!(said.contains(&format!("evidence kept: 2 statements about {pushed}")), "{said}");
    docker(&["rmi", "carried:1-unverified"]);
    std::fs::remove_file(scene.program.path("carried.tar")).expect("ours");

    // Pulled back it is the same image, by the tag for two platforms, too.
    docker(&["rmi", &tag]);
    docker(&["pull", "-q", &tag]);
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", &tag]), id);
    docker(&["rmi", &tag]);
    let pinned = format!("{other}@{pushed}");
    docker(&["pull", "-q", &pinned]);
    assert_eq!(docker(&["inspect", "-f", "{{.Id}}", &pinned]), id);
    docker(&["rmi", &pinned]);

    // On a machine that never saw its lock it is ours by the word of that key.
    let pinned = format!("{}/team/torch@{pushed}", registry.host());
    docker(&["pull", "-q", &pinned]);
    let public = scene.program.path("lab.pub");
    std::fs::write(&public, include_str!("../fixtures/evidence/p256.pub")).expect("ours");
    let config = format!("[trust]\nkeys = [{{ file = '{}' }}]\n", public.display());
    std::fs::write(scene.program.path("other.toml"), config).expect("ours");
    let verify = ["verify", &pinned, "--level", "static", "--config", "other.toml"];
    let mut other = scene.program.command(&verify);
    other.env("ENVFORGE_STATE_DIR", scene.program.path("other state"));
    let run = Run::of(&other.output().expect("it starts"));
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(run.stderr.contains("by the word of key "), "{}", run.stderr);
    docker(&["rmi", &pinned]);
    assert!(registry.has_no_uploads());
    scene.assert_only_tags_added();
}

/// Reads the image from the registry's disk: every document has the digest it goes by, every layer the content that the
/// engine built.
#[track_caller]
fn assert_whole(registry: &Registry, manifest: &str, id: &str) {
    let json = |digest: &str| -> Value { serde_json::from_slice(&checked(registry, digest)).expect("JSON") };
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let manifest = json(manifest);
    assert_eq!(text(&manifest["config"]["digest"]), id, "the image is its configuration");
    let config = json(id);
    let layers = manifest["layers"].as_array().expect("layers");
    let contents = config["rootfs"]["diff_ids"].as_array().expect("layers");
    assert_eq!(layers.len(), contents.len());
    for (layer, content) in layers.iter().zip(contents) {
        let layer = text(&layer["digest"]);
        assert_eq!(sum(registry, "cat", &layer), layer);
        assert_eq!(sum(registry, "gzip -dc", &layer), text(content));
    }
}

/// The digest of a layer as it lies there, after a program has read it: the tools are faster than a debug build.
fn sum(registry: &Registry, reader: &str, digest: &str) -> String {
    let script =
        format!("set -o pipefail; {reader} < '{}' | sha256sum", registry.blob_path(digest).display());
    let output = std::process::Command::new("bash").args(["-c", &script]).output().expect("bash starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout);
    format!("sha256:{}", said.split_whitespace().next().unwrap_or_default())
}

#[track_caller]
fn checked(registry: &Registry, digest: &str) -> Vec<u8> {
    let bytes = std::fs::read(registry.blob_path(digest)).unwrap_or_else(|error| panic!("{digest}: {error}"));
    assert_eq!(Digest::of(&bytes).as_str(), digest);
    bytes
}

/// What a pull over the mirror left: the name by digest, and the private tag.
fn forget_the_pulled_base(registry: &Registry, digest: &Digest) {
    let pulled = format!("{}/library/debian@{digest}", registry.host());
    for name in [pulled, private_tag(digest.as_str())] {
        drop(std::process::Command::new("docker").args(["rmi", &name]).output());
    }
}

#[test]
#[ignore = "needs docker"]
fn registry_refusals_are_reported_before_the_build() {
    let registry = Registry::with_password();
    let scene = Scene::new().set("ENVFORGE_IMAGE_MIRROR", registry.host());
    let host = registry.host();
    let tag = format!("{host}/team/torch:2.7");
    let push = ["build", SPEC, "-t", &tag, "--push"];

    // No login.
    scene.fail(
        &push,
        3,
        &[&format!("registry `{host}`: access denied to `team/torch` without a login"), "docker login"],
    );
    // A wrong password.
    let scene = logged_in(scene, &registry, "wrong");
    let said = scene.fail(&push, 3, &["with the login of `ann`", "docker login"]);
    assert!(!said.contains("wrong"), "{said}");
    // The right one, and nothing there.
    let scene = logged_in(scene, &registry, PASSWORD);
    let mirrored = ["lock", SPEC, "--base-provider", "image"];
    scene.fail(
        &mirrored,
        3,
        &["cannot find `debian:12` in any registry", &format!("not found in registry `{host}`")],
    );
    // The same by a helper program, as `docker login` leaves it.
    let scene = scene.set("ENVFORGE_REGISTRY", "another.test").set("ENVFORGE_CONFIG", "config.toml");
    let insecure = format!("[registry]\ninsecure = ['http://{host}']\n");
    std::fs::write(scene.program.path("config.toml"), insecure).expect("ours");
    let bin = scene.program.path("bin");
    std::fs::create_dir(&bin).expect("a folder");
    let helper = bin.join("docker-credential-envforge-test");
    let answer = format!(r#"{{"ServerURL":"{host}","Username":"{USER}","Secret":"{PASSWORD}"}}"#);
    std::fs::write(
        &helper,
        format!("#!/bin/sh\nread server\n[ \"$1 $server\" = 'get {host}' ] && echo '{answer}'\n"),
    )
    .expect("a file");
    std::fs::set_permissions(&helper, std::fs::Permissions::from_mode(0o755)).expect("ours to change");
    let docker_folder = scene.program.path("home/.docker");
    std::fs::create_dir(&docker_folder).expect("a folder");
    std::fs::write(docker_folder.join("config.json"), r#"{"credsStore":"envforge-test"}"#).expect("a file");
    scene.fail(&mirrored, 3, &["without a login", "docker-credential-envforge-test"]);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").expect("a PATH"));
    let scene = scene.set("PATH", path);
    scene.fail(&mirrored, 3, &[&format!("not found in registry `{host}`")]);

    // The registry is gone.
    drop(registry);
    scene.fail(&mirrored, 3, &["cannot reach", "[mirrors] images"]);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "nightly: needs docker and waits for the engine's own retries, 75 s"]
fn pull_fails_when_a_layer_is_always_cut() {
    let registry = Registry::open();
    let scene = Scene::new();
    mirror_of_the_base(&scene, &registry);
    // The engine must not have the layers of the base already, so one is pulled that it has never seen.
    publish_noise(&scene, &registry);
    let proxy = CuttingProxy::before(&registry, 300_000);
    let scene = scene.set("ENVFORGE_IMAGE_MIRROR", format!("{}/cut", proxy.host()));
    let lock = ["lock", SPEC, "--base-provider", "image"];
    scene.fail(&lock, 3, &["debian:12", "hint:"]);
    scene.assert_nothing_left();
    let scene = scene.set("ENVFORGE_IMAGE_MIRROR", registry.host());
    scene.succeed(&lock);
    let table: toml::Table = scene.lock().parse().expect("TOML");
    let digest: Digest = table["base"]["digest"].as_str().expect("a digest").parse().expect("a digest");
    forget_the_pulled_base(&registry, &digest);
}

#[test]
#[ignore = "needs docker"]
fn private_registry_is_trusted_where_the_engine_trusts_it() {
    let registry = Registry::with_private_authority();
    let host = registry.host();
    let scene = logged_in(Scene::new(), &registry, PASSWORD);
    let scene = scene.set("ENVFORGE_REGISTRY", &host).set("ENVFORGE_IMAGE_MIRROR", &host);
    let lock = ["lock", SPEC, "--base-provider", "image"];
    let folder = format!("/etc/docker/certs.d/{host}/ca.crt");
    scene.fail(&lock, 3, &[&format!("cannot reach registry `{host}`"), "certificate authority", &folder]);
    // Another authority does not help.
    let other = Registry::with_private_authority();
    let scene = scene.set("ENVFORGE_CA_BUNDLE", other.authority().to_string_lossy());
    scene.fail(&lock, 3, &["certificate authority"]);
    // The right one named as the bundle: this program gets through.
    let bundle = format!(
        "{}{}",
        std::fs::read_to_string("/etc/ssl/certs/ca-certificates.crt").expect("this machine's authorities"),
        std::fs::read_to_string(registry.authority()).expect("a file of ours")
    );
    let path = scene.program.path("bundle.pem");
    std::fs::write(&path, bundle).expect("a file of ours");
    let scene = scene.set("ENVFORGE_CA_BUNDLE", path.to_string_lossy());
    scene.fail(&lock, 3, &[&format!("not found in registry `{host}`")]);
    // Where the engine trusts it nothing more is needed: a base goes there by the engine's own push and comes from there.
    let scene = scene.set("ENVFORGE_CA_BUNDLE", "/etc/ssl/certs/ca-certificates.crt");
    let trust = registry.trust();
    mirror_of_the_base(&scene, &registry);
    let wanted = format!("{host}/team/torch:2.7");
    scene.succeed(&["build", SPEC, "--base-provider", "image", "-t", &wanted]);
    let tag = format!("{wanted}-unverified");
    let table: toml::Table = scene.lock().parse().expect("TOML");
    let digest: Digest = table["base"]["digest"].as_str().expect("a digest").parse().expect("a digest");
    // An engine that trusts it no more says what helps.
    drop(trust);
    docker(&["rmi", &tag]);
    forget_the_pulled_base(&registry, &digest);
    scene.fail(&["build", SPEC, "-t", &wanted, "--push"], 3, &["certificate authority", &folder]);
    scene.assert_only_tags_added();
}

#[test]
#[ignore = "nightly: needs docker and ENVFORGE_INDEX, an index of everything"]
fn vendored_registry_base_is_built_on_offline() {
    let registry = Registry::open();
    let scene = Scene::new();
    mirror_of_the_base(&scene, &registry);
    let mut scene = scene.set("ENVFORGE_IMAGE_MIRROR", registry.host());
    let tag = scene.succeed(&["build", SPEC, "--base-provider", "image"]).stdout;
    let tag = tag.lines().next().expect("a tag").to_owned();
    let content = scene.succeed(&["lock", "--digest", SPEC]).stdout;
    let gathered = scene.succeed(&["vendor", SPEC, "vendor"]).stderr;
    assert!(gathered.contains("files, "), "{gathered}");
    assert!(scene.succeed(&["vendor", SPEC, "vendor"]).stderr.contains(" 0 of them new"));
    assert_eq!(scene.succeed(&["vendor", "vendor", "--check"]).stdout, "");

    // No registry, no address that leads anywhere, an engine without the base.
    let table: toml::Table = scene.lock().parse().expect("TOML");
    let digest: Digest = table["base"]["digest"].as_str().expect("a digest").parse().expect("a digest");
    let forget = || {
        docker(&["rmi", "-f", &tag]);
        forget_the_pulled_base(&registry, &digest);
    };
    forget();
    for name in ["ENVFORGE_INDEX", "ENVFORGE_DEBIAN_MIRROR", "ENVFORGE_DEBIAN_SECURITY_MIRROR"] {
        scene.program.set(name, "http://127.0.0.1:9/x");
    }
    scene.program.set("ENVFORGE_IMAGE_MIRROR", "127.0.0.1:9");
    scene.program.set("ENVFORGE_FRAMEWORK_INDEX", "http://127.0.0.1:9/{cuda}");
    let scene = scene.with_empty_cache();
    let run = scene.succeed(&["build", SPEC, "--offline", "vendor", "--no-cache"]);
    assert!(run.stderr.contains("loading the base debian:12 from"), "{}", run.stderr);
    // Nor the image that resolves, whose record went with the cache.
    assert!(!run.stderr.contains("in which packages are resolved"), "{}", run.stderr);
    let records = files_below(&scene.program.path("state/base"));
    assert!(!records.iter().any(|file| file.to_string_lossy().contains("resolver-")), "{records:?}");
    assert_eq!(scene.succeed(&["lock", "--digest", SPEC]).stdout, content, "the same content");

    // One byte of the base changed.
    let record = files_below(&scene.program.path("vendor/bases")).remove(0);
    let record: toml::Table = std::fs::read_to_string(record).expect("a record").parse().expect("TOML");
    let archive = record["archive"].as_str().expect("a hash");
    let file = scene.program.path(format!("vendor/files/{}/{archive}", &archive[..2]));
    let mut bytes = std::fs::read(&file).expect("the archive");
    bytes[1000] ^= 1;
    std::fs::write(&file, bytes).expect("ours");
    forget();
    let run = scene.program.run(&["vendor", "vendor", "--check"]);
    assert_eq!((run.code, run.stdout), (1, format!("damaged  debian:12@{digest}\n")), "{}", run.stderr);
    scene.fail(&["build", SPEC, "--offline", "vendor"], 2, &["is damaged", "envforge vendor"]);
}

/// Publishes an image of one incompressible layer under `cut/library/debian:12`, and takes it from the engine.
fn publish_noise(scene: &Scene, registry: &Registry) {
    let noise = scene.program.path("noise");
    std::fs::create_dir(&noise).expect("a folder");
    let bytes: Vec<u8> = (0..500_000_u64).flat_map(|_| rand::random::<u64>().to_le_bytes()).collect();
    std::fs::write(noise.join("noise.bin"), bytes).expect("a file");
    let archive = scene.program.path("noise.tar");
    let folder = noise.to_string_lossy().into_owned();
    let archive_text = archive.to_string_lossy().into_owned();
    let made = std::process::Command::new("tar").args(["-C", &folder, "-cf", &archive_text, "."]).status();
    assert!(made.expect("tar starts").success());
    let tag = "envforge-test-noise:1";
    docker(&["import", &archive_text, tag]);
    registry.publish(tag, "cut/library/debian:12");
    docker(&["rmi", tag]);
    std::fs::remove_file(archive).expect("a file of ours");
}

#[test]
#[ignore = "needs docker"]
fn silent_registry_is_reported_and_the_base_is_bootstrapped() {
    // The default registry is asked after its mirror, over a proxy that is not there.
    let scene =
        Scene::new().set("ENVFORGE_IMAGE_MIRROR", "127.0.0.1:1").set("HTTPS_PROXY", "http://127.0.0.1:1");
    let child = scene.program.command(&["lock", SPEC]).spawn().expect("the program starts");
    let run = interrupt_when(child, "bootstrapping the base from packages");
    assert_eq!(run.code, 130, "{}", run.stderr);
    let first: Vec<_> =
        run.stderr.lines().take_while(|line| !line.contains("bootstrapping the base")).collect();
    assert!(!first.iter().any(|line| line.contains("pull") || line.contains("error")), "{}", run.stderr);
    let notes = run.stderr.lines().filter(|line| line.contains("cannot reach registry `docker.io`"));
    assert_eq!(notes.count(), 1, "{}", run.stderr);
    scene.assert_nothing_left();
}
