//! Rows whose wheels lie on a release page or in the framework's own index: locked from such pages of a test's own.

use crate::allow_source::source_distribution;
use crate::engine::bridge_address;
use crate::index::Index;
use crate::scene::Scene;
use crate::wheels::{Wheel, WheelSpec};

/// A page of links with the given wheels, and one that must never be taken from it.
fn release_page(path: &str, wheels: Vec<Wheel>) -> Index {
    let index = Index::on(bridge_address(), wheels);
    index.publish(vec![WheelSpec::new("filelock", "99.0").build()]);
    index.serve_page(path);
    index
}

/// The entry of a package in a lock.
fn entry<'lock>(lock: &'lock str, name: &str) -> &'lock str {
    let (_, wheels) = lock.split_once("wheels = [").expect("the list of wheels");
    wheels.lines().find(|line| line.contains(&format!("{{ name = \"{name}\","))).expect(name)
}

fn vllm() -> Wheel {
    WheelSpec::new("vllm", "0.11.0+cu129")
        .tag("cp38-abi3-manylinux1_x86_64")
        .requires("torch==2.8.0")
        .requires("filelock")
        .file("vllm/__init__.py", "__version__ = '0.11.0+cu129'\n")
        .build()
}

fn torch() -> Vec<Wheel> {
    let tag = "cp311-cp311-manylinux_2_28_x86_64";
    let wheel = |name: &str, version: &str| {
        let text = format!("__version__ = '{version}'\n");
        WheelSpec::new(name, version).tag(tag).file(&format!("{name}/__init__.py"), &text)
    };
    vec![
        wheel("torch", "2.8.0+cu129").requires("triton==3.4.0").requires("filelock").build(),
        wheel("torchvision", "0.23.0+cu129").requires("torch==2.8.0").build(),
        wheel("torchaudio", "2.8.0+cu129").requires("torch==2.8.0").build(),
    ]
}

#[test]
#[ignore = "needs docker"]
fn vllm_of_a_release_page_is_locked_with_its_torch() {
    let scene = Scene::new();
    let page = release_page("/v0.11.0/files.html", vec![vllm()]);
    let own = Index::on(bridge_address(), torch());
    let scene = scene
        .set("ENVFORGE_FRAMEWORK_INDEX", format!("{}/{{cuda}}", own.url()))
        .set("ENVFORGE_VLLM_INDEX", format!("flat+{}/v{{version}}/files.html", page.url()));
    let spec = "vllm-cuda:0.11.0-cu129-py3.11";
    scene.succeed(&["lock", spec, "--target", "any", "--lockfile", "vllm.lock"]);
    let lock = std::fs::read_to_string(scene.program.path("vllm.lock")).expect("made");
    for name in ["vllm", "torch", "torchvision", "torchaudio"] {
        assert!(entry(&lock, name).contains("index = \"framework\""), "{name}: {lock}");
    }
    assert!(entry(&lock, "vllm").contains("0.11.0+cu129-cp38-abi3"), "{lock}");
    assert!(!entry(&lock, "filelock").contains("99.0"), "a release page serves its row alone: {lock}");
    assert!(!lock.contains("://"), "no address is in a lock: {lock}");

    // Deleted there, the wheel is missing: no other index is asked.
    page.serve("/v0.11.0/files.html", b"<html></html>".to_vec());
    let says = ["vllm"];
    scene.fail(&["lock", spec, "--target", "any", "--lockfile", "again.lock"], 3, &says);
    scene.assert_nothing_left();
}

#[test]
#[ignore = "needs docker"]
fn jaxlib_of_a_page_of_links_is_locked_with_jax_of_the_default_index() {
    let scene = Scene::new();
    let jaxlib = WheelSpec::new("jaxlib", "0.4.25+cuda11.cudnn86")
        .tag("cp311-cp311-manylinux2014_x86_64")
        .file("jaxlib/__init__.py", "__version__ = '0.4.25'\n")
        .build();
    let page = release_page("/jax-releases/jax_cuda_releases.html", vec![jaxlib]);
    std::fs::write(
        scene.program.path("config.toml"),
        format!(
            "[index]\njax = {{ url = '{}/jax-releases/jax_cuda_releases.html', format = 'flat' }}\n",
            page.url()
        ),
    )
    .expect("ours");
    let config = scene.program.path("config.toml").to_string_lossy().into_owned();
    let scene = scene.set("ENVFORGE_CONFIG", config);
    let spec = "jax-cuda:0.4.25-cu11-py3.11";
    scene.succeed(&["lock", spec, "--target", "any", "--lockfile", "jax.lock"]);
    let lock = std::fs::read_to_string(scene.program.path("jax.lock")).expect("made");
    let jaxlib = entry(&lock, "jaxlib");
    assert!(jaxlib.contains("cuda11.cudnn86") && jaxlib.contains("index = \"framework\""), "{jaxlib}");
    assert!(entry(&lock, "jax").contains("index = \"default\""), "{lock}");
    scene.assert_nothing_left();
}

/// A page of links as a further index of a project: it is searched first, and double names are reported.
#[test]
#[ignore = "needs docker"]
fn page_of_links_of_a_project_wins_and_its_double_names_are_reported() {
    let scene = Scene::new();
    let page = release_page("/files.html", vec![WheelSpec::new("own-package", "1.0").build()]);
    let project = format!(
        "schema = 1\nname = 'small'\nspec = '{}'\n[packages]\npython = ['own-package', 'filelock']\n\
         indexes = [{{ name = 'pages', url = '{}/files.html', format = 'flat' }}]\n",
        crate::scene::SPEC,
        page.url()
    );
    std::fs::write(scene.program.path("envforge.toml"), project).expect("ours");
    let run = scene.succeed(&["lock"]);
    let lock = std::fs::read_to_string(scene.program.path("envforge.lock")).expect("made");
    for name in ["own-package", "filelock"] {
        assert!(entry(&lock, name).contains("index-name = \"pages\""), "{name}: {lock}");
    }
    let warning = "warning: `filelock` comes from index `pages`; a package of that name is also in `default`";
    assert!(run.stderr.contains(warning), "{}", run.stderr);
    scene.fail(&["lock", "--upgrade", "--as-of", "2026-03-01"], 3, &["index `pages` is a page of links"]);
    scene.assert_nothing_left();
}

/// flash-attn as it is published: the index has its source alone, a release page its wheels. Under the name apex the index has another
/// project.
#[test]
#[ignore = "needs docker"]
fn package_of_a_release_page_is_refused_with_its_file_and_locked_with_it() {
    let scene = Scene::new();
    let own = Index::on(bridge_address(), torch());
    let setup = [("setup.py", "raise SystemExit('it was run')\n")];
    let sources = ["flash-attn", "apex"].map(|name| source_distribution(name, "2.8.3.post2", &setup));
    let index = Index::on(bridge_address(), sources.to_vec());
    let scene = scene
        .set("ENVFORGE_FRAMEWORK_INDEX", format!("{}/{{cuda}}", own.url()))
        .set("ENVFORGE_INDEX_OWN", format!("{}/own", index.url()));
    let write = |package: &str, indexes: &str| {
        let project = format!(
            "schema = 1\nname = 'small'\nspec = 'pytorch-cuda:2.8-cu129-py3.11'\n[packages]\npython = ['{package}']\n\
             indexes = [{indexes}]\n"
        );
        std::fs::write(scene.program.path("envforge.toml"), project).expect("ours");
    };
    write("flash-attn", "'own'");
    let file = "flash_attn-2.8.3.post1+cu12torch2.8cxx11abiTRUE-cp311-cp311-linux_x86_64.whl";
    let download = format!("download `{file}` from");
    let says = [download.as_str(), "Dao-AILab/flash-attention/releases and pass it: `--wheel FILE`"];
    let refusal = scene.fail(&["lock"], 1, &says);
    assert!(!refusal.contains("--no-build"), "a hint of uv: {refusal}");
    write("apex", "'own'");
    let refusal = scene.fail(&["lock"], 1, &["do not build `apex`", "build NVIDIA/apex from its repository"]);
    assert!(!refusal.contains("allow-source"), "{refusal}");

    // The file, passed as the refusal says, stays in the lock.
    let wheel = WheelSpec::new("flash-attn", "2.8.3.post1+cu12torch2.8cxx11abiTRUE")
        .tag("cp311-cp311-linux_x86_64")
        .requires("filelock")
        .file("flash_attn/__init__.py", "")
        .build();
    assert_eq!(wheel.file, file);
    std::fs::write(scene.program.path(file), &wheel.bytes).expect("ours");
    write("flash-attn", "'own'");
    let lock = || std::fs::read_to_string(scene.program.path("envforge.lock")).expect("made");
    let is_local = |lock: &str| {
        let entry = entry(lock, "flash-attn");
        entry.contains("index = \"local\"") && entry.contains(&crate::wheels::sha256(&wheel.bytes))
    };
    scene.succeed(&["lock", "--wheel", file]);
    assert!(is_local(&lock()), "{}", lock());
    scene.succeed(&["lock", "--check"]);
    scene.succeed(&["lock", "--upgrade"]);
    assert!(is_local(&lock()), "without the option: {}", lock());

    // A mirror of the page.
    let page = release_page("/files.html", vec![wheel.clone()]);
    std::fs::remove_file(scene.program.path("envforge.lock")).expect("made");
    write("flash-attn", &format!("{{ name = 'pages', url = '{}/files.html', format = 'flat' }}", page.url()));
    scene.succeed(&["lock"]);
    assert!(entry(&lock(), "flash-attn").contains("index-name = \"pages\""), "{}", lock());
    scene.assert_nothing_left();
}
