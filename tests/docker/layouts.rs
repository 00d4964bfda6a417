//! OCI layouts: written without the engine, read by skopeo and by `import`, and refused where a byte is another.

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::process::Command;

use serde_json::Value;

use crate::engine::docker;
use crate::registry::Registry;
use crate::scene::{SPEC, Scene};

fn skopeo(args: &[&str]) -> String {
    let run = Command::new("skopeo").args(args).output().expect("skopeo of the distribution");
    assert!(run.status.success(), "{args:?}: {}", String::from_utf8_lossy(&run.stderr));
    String::from_utf8(run.stdout).expect("UTF-8")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[test]
#[ignore = "needs docker"]
fn layout_is_the_image_that_a_registry_gets_and_comes_back() {
    let registry = Registry::open();
    let scene = Scene::locked();
    let reference = format!("{}/team/torch:2.7", registry.host());
    let built = scene.succeed(&["build", SPEC, "-t", &reference, "--push"]);
    let tag = format!("{reference}-unverified");
    let pinned = |line: &str| line.strip_prefix(&format!("{tag}@")).map(str::to_owned);
    let pushed = built.stdout.lines().find_map(pinned).expect("its digest");
    let id = docker(&["inspect", "-f", "{{.Id}}", &tag]);

    let written = json(&scene.succeed(&["export", "oci", &tag, "torch.tar", "--json"]).stdout);
    assert_eq!((written["digest"].as_str(), written["image"].as_str()), (Some(&*pushed), Some(&*id)));
    let tar = scene.program.path("torch.tar");
    let archive = format!("oci-archive:{}", tar.display());
    assert_eq!(skopeo(&["inspect", "--format", "{{.Digest}}", &archive]).trim(), pushed);
    let config = json(&skopeo(&["inspect", "--config", &archive]));
    let layers = json(&docker(&["inspect", "-f", "{{json .RootFS.Layers}}", &tag]));
    assert_eq!(config["rootfs"]["diff_ids"], layers);
    // skopeo compares each blob with its digest.
    let copy = format!("oci:{}", scene.program.path("copy").display());
    skopeo(&["copy", "-q", &archive, &copy]);
    scene.succeed(&["export", "oci", &tag, "again.tar"]);
    let bytes = |name: &str| std::fs::read(scene.program.path(name)).expect("a tar");
    assert!(bytes("torch.tar") == bytes("again.tar"), "the same image, the same bytes");

    docker(&["rmi", &tag]);
    for (path, name) in [("torch.tar", "imported:1"), ("copy", "imported:2-unverified")] {
        let imported = json(&scene.succeed(&["import", path, name, "--json"]).stdout);
        let wanted = format!("{}-unverified", name.trim_end_matches("-unverified"));
        assert_eq!(imported["tag"].as_str(), Some(&*wanted));
        assert_eq!((imported["digest"].as_str(), imported["image"].as_str()), (Some(&*pushed), Some(&*id)));
        assert_eq!(docker(&["inspect", "-f", "{{.Id}}", &wanted]), id);
        docker(&["rmi", &wanted]);
    }
    scene.assert_only_tags_added();
    scene.assert_no_temporary_files();
}

#[test]
#[ignore = "needs docker"]
fn changed_layout_is_refused_and_nothing_of_it_stays() {
    let scene = Scene::locked();
    scene.succeed(&["build", SPEC]);
    scene.succeed(&["export", "oci", SPEC, "image"]);
    let blobs = scene.program.path("image/blobs/sha256");
    let files = std::fs::read_dir(&blobs).expect("blobs").map(|entry| entry.expect("an entry").path());
    let largest = files.max_by_key(|path| path.metadata().expect("a file").len()).expect("a blob");
    let mut file = std::fs::File::options().read(true).write(true).open(&largest).expect("a blob");
    let mut byte = [0];
    file.seek(SeekFrom::End(-100)).expect("sought");
    file.read_exact(&mut byte).expect("read");
    file.seek(SeekFrom::End(-100)).expect("sought");
    file.write_all(&[byte[0] ^ 1]).expect("written");
    let name = largest.file_name().expect("a name").to_string_lossy().into_owned();
    scene.fail(
        &["import", "image", "imported:1"],
        1,
        &[&format!("blob sha256:{name} has the content of"), "nothing of it was used"],
    );
    let listed = docker(&["images", "-q", "imported"]);
    assert_eq!(listed, "");
    scene.assert_only_tags_added();
}
