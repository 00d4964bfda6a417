//! `export --image`: files that name a pushed image. No engine is asked, nothing is built.

use std::path::Path;
use std::process::Command;

use clap::Parser as _;
use envforge::cli::Cli;
use envforge::model::lock::{Lock, LockedBase, UserAdditions};

use crate::evidence::{Place, assert_answer, with_driver};
use crate::gpu_daemon::GpuDaemon;
use crate::manifest::{documents, misfits, misfits_of, words};
use crate::memory_registry::Habits;
use crate::program::{Program, Run};
use crate::vendor::{base_tag, lock_and_index};
use crate::verify::{H200, SPEC, Scene, cdi, lock, report};
use crate::{assert_message, program};

fn reference() -> String {
    format!("registry.example.com/team/vision@sha256:{}", "a".repeat(64))
}

/// A project with its lock, on a machine without an engine.
fn project() -> Program {
    let program = program().with("DOCKER_HOST", "unix:///nothing/here.sock");
    write_project(&program);
    program
}

fn write_project(program: &Program) {
    let text = format!(
        "schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n[shell]\nports = [\"6006\"]\njupyter = true\n"
    );
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    std::fs::write(program.path("envforge.lock"), project_lock().to_toml()).expect("ours");
}

fn project_lock() -> Lock {
    Lock { added: UserAdditions { project: Some("p".to_owned()), ..UserAdditions::default() }, ..lock() }
}

/// Names and texts of the files of a folder, without folders below it.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut all: Vec<_> = entries
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).expect("a file"))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn each_format_names_the_pushed_image_in_some_kilobytes() {
    let program = project();
    for (format, named) in [
        ("compose", &["compose.yaml"][..]),
        ("devcontainer", &["devcontainer.json"]),
        ("apptainer", &["image.def"]),
        ("slurm", &["image.def", "job.sbatch"]),
    ] {
        let folder = format!("out-{format}");
        let run = program.run(&["export", format, &folder, "--image", &reference()]);
        assert_eq!(run.code, 0, "{format}: {}", run.stderr);
        let files = files(&program.path(&folder));
        let size: usize = files.iter().map(|(_, text)| text.len()).sum();
        assert!(size < 20_000, "{format}: {size} bytes");
        for name in named {
            let (_, text) =
                files.iter().find(|(file, _)| file == name).unwrap_or_else(|| panic!("{format}: {files:?}"));
            assert!(text.contains(&reference()), "{format}: {text}");
        }
        assert!(!files.iter().any(|(name, _)| [".gitignore", "image"].contains(&name.as_str())), "{files:?}");
    }
    // An export is overwritten by another one, and by nothing else.
    let again = ["export", "compose", "out-compose", "--image", &reference()];
    assert_message(&program.run(&again), 2, &["is not empty", "--force"]);
    assert_eq!(program.run(&[&again[..], &["--force"]].concat()).code, 0);
}

#[test]
fn export_without_an_engine_names_what_needs_none() {
    let program = project();
    for format in ["compose", "devcontainer", "apptainer", "slurm"] {
        let run = program.run(&["export", format, "out"]);
        assert_message(&run, 3, &["container engine", "`--image NAME@sha256:…`"]);
        assert_eq!(run.stderr.contains("[cluster]"), format == "slurm", "{}", run.stderr);
    }
    let run = program.run(&["export", "slurm", SPEC, "out"]);
    assert!(!run.stderr.contains("[cluster]"), "a spec has no cluster: {}", run.stderr);
}

/// A push is known by its lock: every format names it, until the project asks for another image.
#[test]
fn export_names_the_image_of_the_last_push() {
    let place = Place::new(Habits::default());
    let id = place.id.trim_start_matches("sha256:").to_owned();
    let lock = project_lock();
    let daemon = GpuDaemon { id, digests: vec![place.image.clone()], ..cdi(report(&lock, H200, true)) };
    let mut scene = Scene::new(daemon, &lock);
    scene.program.set("ENVFORGE_GPU", "");
    let program = &scene.program;
    write_project(program);
    let export = |args: &[&str]| program.run(&[&["export", "compose"], args].concat());
    let refused = export(&["none", "--image"]);
    assert_message(&refused, 1, &["was not pushed from this machine", "envforge push"]);

    let digest = place.image.split_once('@').expect("pinned").1.to_owned();
    place.registry.content().tags.insert("1-unverified".to_owned(), digest.clone());
    let tag = format!("{}/team/torch:1", place.registry.host);
    assert_eq!(program.run(&["push", SPEC, &tag]).code, 0);
    for (format, file) in [
        ("compose", "compose.yaml"),
        ("devcontainer", "devcontainer.json"),
        ("apptainer", "image.def"),
        ("slurm", "job.sbatch"),
    ] {
        let folder = format!("out-{format}");
        let run = program.run(&["export", format, &folder]);
        assert_eq!(run.code, 0, "{format}: {}", run.stderr);
        let said = format!("image of the last push: {tag}-unverified@{digest}");
        assert!(run.stderr.contains(&said), "{format}: {}", run.stderr);
        assert!(run.stderr.contains("was pushed before its checks passed on a GPU"), "{}", run.stderr);
        let text = std::fs::read_to_string(program.path(&folder).join(file)).expect(file);
        assert!(text.contains(&place.image), "{format}: {text}");
        assert!(!program.path(&folder).join("image").exists(), "{format}");
    }
    std::fs::write(program.path("site.toml"), "[policy]\nrequire-evidence = { level = 'full' }\n")
        .expect("ours");
    let refused = program.run(&["--config", "site.toml", "export", "compose", "policy"]);
    let says =
        ["is not proven as this machine's policy requires (level full)", "it was pushed as unverified"];
    assert_message(&refused, 1, &says);
    assert!(!program.path("policy").exists());
    assert_eq!(export(&["bare", "--image"]).code, 0);
    assert!(export(&["both", "--build", "--image", &reference()]).stderr.contains("cannot be used with"));
    let other = export(&["named", "--image", &reference()]);
    assert!(other.code == 0 && !other.stderr.contains("last push"), "{}", other.stderr);

    // The lock file is no longer what the project asks for, and then it is another one.
    let read = |name: &str| std::fs::read_to_string(program.path(name)).expect("ours");
    let project = read("envforge.toml");
    let changed = project.replace("schema = 1", "schema = 1\nrun = [\"true\"]");
    std::fs::write(program.path("envforge.toml"), changed).expect("ours");
    assert_message(&export(&["stale", "--image"]), 1, &["was not pushed"]);
    std::fs::write(program.path("envforge.toml"), project).expect("ours");
    assert_eq!(export(&["again", "--image"]).code, 0);
    let other = Lock {
        base: LockedBase { digest: Some(format!("sha256:{}", "2".repeat(64))), ..lock.base.clone() },
        ..lock
    };
    std::fs::write(program.path("envforge.lock"), other.to_toml()).expect("ours");
    assert_message(&export(&["other", "--image"]), 1, &["was not pushed"]);
}

/// A build holds its lock file until it ends, for minutes; an export only reads one that fits.
#[test]
fn export_does_not_wait_for_a_build_of_the_same_lock() {
    let (of_spec, index) = lock_and_index();
    let lock = Lock { added: project_lock().added, ..of_spec };
    let daemon = GpuDaemon { tags: vec![base_tag()], ..cdi(report(&lock, H200, true)) };
    let mut scene = Scene::new(daemon, &lock);
    scene.program.set("ENVFORGE_INDEX", format!("{}/simple", index.url()));
    scene.program.set("ENVFORGE_GPU", "");
    let program = &scene.program;
    write_project(program);
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
    let held = || {
        let entries = std::fs::read_dir(program.path("state/locks")).expect("a folder");
        let paths = entries.map(|entry| entry.expect("an entry").path());
        paths
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lock-")))
            .map(|path| std::fs::File::options().write(true).open(path).expect("ours"))
            .inspect(|file| file.try_lock().expect("no other process"))
            .collect::<Vec<_>>()
    };
    let run = program.run(&["vendor", "vendor"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let held = held();
    assert_eq!(held.len(), 1, "what a command that writes the lock file waits for");
    let call = |seconds: &str, args: &[&str]| {
        let args = [&[seconds, env!("CARGO_BIN_EXE_envforge")][..], args].concat();
        Run::of(&program.command_of(Path::new("timeout"), &args).output().expect("it starts"))
    };
    let run = call("600", &["export", "compose", "out"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(program.path("out/image/Dockerfile").is_file());
    assert_eq!(call("2", &["vendor", "other"]).code, 124, "it waits");
}

/// The project's own code goes with the files of tools that mount the project, and nothing of the user's is overwritten.
#[test]
fn code_of_a_project_goes_with_compose_and_devcontainer() {
    let program = project();
    let pyproject = "[project]\nname = 'p'\nversion = '1'\n[project.scripts]\np-train = 'p:main'\n";
    std::fs::create_dir_all(program.path("src/p")).expect("ours");
    std::fs::write(program.path("src/p/__init__.py"), "").expect("ours");
    std::fs::write(program.path("pyproject.toml"), pyproject).expect("ours");
    let export = |format: &str, folder: &str, more: &[&str]| {
        let image = reference();
        program.run(&[&["export", format, folder, "--image", &image], more].concat())
    };
    let read = |path: &str| std::fs::read_to_string(program.path(path)).expect(path);
    assert_eq!(export("compose", "deploy/dev", &[]).code, 0);
    let compose = read("deploy/dev/compose.yaml");
    for line in [
        "\"${PROJECT:-../..}:/workspace\"",
        "./project-code:/envforge/project:ro",
        "PYTHONPATH=/envforge/project",
    ] {
        assert!(compose.contains(line), "{line}: {compose}");
    }
    assert_eq!(read("deploy/dev/project-code/site/__editable__.p-1.pth"), "/workspace/src\n");
    assert!(read("deploy/dev/project-code/bin/p-train").contains("from p import main"));
    std::fs::create_dir_all(program.path(".devcontainer/project-code")).expect("ours");
    std::fs::write(program.path(".devcontainer/project-code/mine"), "").expect("ours");
    assert_message(
        &export("devcontainer", ".devcontainer", &["--force"]),
        2,
        &["project-code` is not empty"],
    );
    std::fs::remove_dir_all(program.path(".devcontainer")).expect("ours");
    assert_eq!(export("devcontainer", ".devcontainer", &[]).code, 0);
    let devcontainer = read(".devcontainer/devcontainer.json");
    assert!(
        devcontainer.contains("${localWorkspaceFolder}/.devcontainer/project-code,target=/envforge/project"),
        "{devcontainer}"
    );
    // A file of the tool cannot name a directory outside of the one it opens.
    let outside = tempfile::tempdir().expect("a folder");
    let outside = outside.path().join("x");
    let run = export("devcontainer", outside.to_str().expect("UTF-8"), &[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("export to a directory of the project"), "{}", run.stderr);
    // Without it the files are those of before.
    let text = read("envforge.toml").replace("schema = 1\n", "schema = 1\nproject = \"none\"\n");
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    assert_eq!(export("compose", "deploy/none", &[]).code, 0);
    let compose = read("deploy/none/compose.yaml");
    assert!(!compose.contains("PYTHONPATH"), "{compose}");
    assert!(compose.contains("\"${PROJECT:-../..}:/workspace\""), "the project, not the export: {compose}");
    assert!(!compose.contains("This directory is mounted"), "{compose}");
    // `editable` without a project is a mistake of the file.
    let text = read("envforge.toml").replace("\"none\"", "\"editable\"");
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    std::fs::write(program.path("pyproject.toml"), "[tool.ruff]\n").expect("ours");
    let refused = export("compose", "deploy/refused", &[]);
    assert_message(
        &refused,
        2,
        &["`project = \"editable\"`, but pyproject.toml has neither `[project]` nor `[tool.poetry]`"],
    );
    let text = read("envforge.toml").replace("\"editable\"", "\"install\"");
    std::fs::write(program.path("envforge.toml"), text).expect("ours");
    assert_eq!(program.run(&["plan"]).code, 0, "a plan reads no sources");
}

/// Every node of the fixture's kinds that the matrix says yes to, and no other.
#[test]
fn kubernetes_base_names_the_image_and_the_nodes_that_run_it() {
    let program = project();
    let run = program.run(&["export", "kubernetes", "base", "--image", &reference()]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let files = files(&program.path("base"));
    let text = |name: &str| &files.iter().find(|(file, _)| file == name).expect(name).1;
    for name in ["job.yaml", "shell.yaml", "verify.yaml", "verify-group.yaml", "jobset.yaml"] {
        assert!(text(name).contains(&reference()), "{name}");
        assert!(text(name).contains("runAsNonRoot: true") && !text(name).contains("privileged"), "{name}");
    }
    assert!(
        text("kustomization.yaml").contains("- job.yaml") && !text("kustomization.yaml").contains("jobset")
    );
    assert!(
        text("job.yaml").contains("name: p\n")
            && text("job.yaml").contains("nvidia.com/cuda.driver-version.major")
    );
    assert!(text("expect.yaml").contains("    framework=torch"), "{}", text("expect.yaml"));
    for (name, text) in files.iter().filter(|(name, _)| is_yaml(name)) {
        assert_eq!(documents(text).iter().flat_map(misfits).collect::<Vec<_>>(), [""; 0], "{name}");
        assert!(!text.contains("admit"), "{name}: no evidence is asked for");
    }
    // A word of a comment that `sed` replaces in a manifest is nowhere else in it.
    let group = text("verify-group.yaml");
    let places =
        |word: &str| group.lines().filter(|line| !line.starts_with('#') && line.contains(word)).count();
    assert_eq!((places("COUNT"), places("GPUS")), (2, 1), "{group}");
    let misspelt = text("job.yaml").replace("restartPolicy", "restartPolicies");
    let found = misfits(&documents(&misspelt)[0]);
    assert_eq!(found, ["Job.spec.template.spec.restartPolicies: no such field"]);
    let again = ["export", "kubernetes", "base", "--image", &reference()];
    assert_message(&program.run(&again), 2, &["base"]);
    assert_eq!(program.run(&[&again[..], &["--force"]].concat()).code, 0);
    assert_message(&program.run(&["export", "kubernetes", "other"]), 2, &["--image"]);
    let tag = ["export", "kubernetes", "other", "--image", "registry.example.com/team/vision:1"];
    assert_message(&program.run(&tag), 2, &["has no digest"]);
    assert!(!program.path("other").exists());
}

fn is_yaml(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "yaml")
}

/// What the kubelet does with a Job of the base: the files of its `ConfigMap` in a directory, and the init container's call with its path.
fn admitted(node: &Program) -> (Vec<String>, Run) {
    let read = |name: &str| {
        let text = std::fs::read_to_string(node.path("base").join(name)).expect(name);
        documents(&text).remove(0)
    };
    let folder = node.path("admit");
    let there = |text: &str| text.replace("/admit/", &format!("{}/", folder.display()));
    std::fs::create_dir_all(&folder).expect("ours");
    for (name, text) in read("admit.yaml")["data"].as_object().expect("files") {
        std::fs::write(folder.join(name), there(text.as_str().expect("a text"))).expect("ours");
    }
    let container = read("job.yaml")["spec"]["template"]["spec"]["initContainers"][0].clone();
    let call = [words(&container["command"]), words(&container["args"])].concat();
    if let Err(error) = Cli::try_parse_from(&call) {
        panic!("{call:?}: {error}");
    }
    let args: Vec<String> = call[1..].iter().map(|word| there(word)).collect();
    let run = node.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
    (call, run)
}

/// The init container asks what the configuration asks, and believes its keys.
#[test]
fn pods_of_the_base_start_only_with_the_evidence_that_the_configuration_asks_for() {
    const POLICY: &str = "[policy]\nrequire-evidence = { level = 'full', max-age = '30d', gpu = 'any' }\n";
    let place = Place::new(Habits::default());
    let tester = place.tester(with_driver(&report(&lock(), H200, true), "580.95.05"));
    assert_answer(&tester.verify(&["--attest", "--key", "key.pem"]), 0, &["attested"]);
    let node = Place::node();
    write_project(&node);
    let export = |config: &str| {
        std::fs::write(node.path("config.toml"), config).expect("ours");
        let args =
            ["--config", "config.toml", "export", "kubernetes", "base", "--force", "--image", &place.image];
        node.run(&args)
    };
    let trust = |key: &str, more: &str| {
        format!("[trust]\nkeys = [{{ file = '{}'{more} }}]\n", node.path(key).display())
    };
    let run = export(&(POLICY.to_owned() + &trust("lab.pub", "")));
    let image = format!("{}/team/envforge:{}", place.registry.host, env!("CARGO_PKG_VERSION"));
    assert!(run.code == 0 && run.stderr.contains(&image), "{run:?}");
    for (name, text) in files(&node.path("base")).iter().filter(|(name, _)| is_yaml(name)) {
        assert_eq!(documents(text).iter().flat_map(misfits).collect::<Vec<_>>(), [""; 0], "{name}");
        let asks = ["job.yaml", "shell.yaml", "jobset.yaml"].contains(&name.as_str());
        assert_eq!(text.contains("command: [envforge, evidence, admit]"), asks, "{name}");
        assert_eq!(text.contains(&image), asks, "{name}");
    }
    let listed = std::fs::read_to_string(node.path("base/kustomization.yaml")).expect("there");
    assert!(listed.contains("\n  - admit.yaml\n"), "{listed}");
    let readme = std::fs::read_to_string(node.path("base/README.md")).expect("there");
    assert!(readme.contains(&image), "{readme}");
    // Nobody has pushed an envforge there yet; one that is there is named by its digest.
    assert!(run.stderr.contains("named by its tag, since its digest is not known"), "{}", run.stderr);
    let pushed = place.registry.put_image(env!("CARGO_PKG_VERSION"), &place.id);
    let run = export(&(POLICY.to_owned() + &trust("lab.pub", "")));
    assert!(run.code == 0 && !run.stderr.contains("named by its tag"), "{run:?}");
    let job = std::fs::read_to_string(node.path("base/job.yaml")).expect("there");
    let pinned = format!("image: \"{}/team/envforge@{pushed}\"", place.registry.host);
    assert!(job.contains(&pinned) && !job.contains(&image), "{job}");
    let (call, run) = admitted(&node);
    let asked = [place.image.as_str(), "--config=/admit/config.toml", "--level=full", "--max-age=30d"];
    assert_eq!(call, [&["envforge", "evidence", "admit"][..], &asked].concat());
    assert_answer(&run, 0, &["admitted: level full on NVIDIA H200, driver 580.95.05"]);

    let agents = format!("agents = ['{}']\n", "f".repeat(64));
    for (config, says) in [
        (POLICY.to_owned() + &trust("other.pub", ""), "refused"),
        (POLICY.to_owned() + &trust("lab.pub", ", not-after = '2020-01-31'"), "refused"),
        (POLICY.to_owned() + &agents + &trust("lab.pub", ""), "refused"),
        (POLICY.replace("full", "perf") + &trust("lab.pub", ""), "level full is below perf"),
        // Keys alone ask for the node's GPUs, and this machine has none.
        (trust("lab.pub", ""), "this machine has no NVIDIA"),
    ] {
        assert_eq!(export(&config).code, 0, "{config}");
        assert_answer(&admitted(&node).1, 1, &[says]);
    }
    assert_message(&export(POLICY), 3, &["no key whose evidence counts"]);
    std::fs::remove_dir_all(node.path("base")).expect("ours");
    assert_eq!(export(&trust("lab.pub", ", for = ['provenance']")).code, 0);
    assert!(!node.path("base/admit.yaml").exists());
}

/// An image whose agent, at that path, says what it has and may do.
fn image_with_agent(folder: &Path, agent: &str) {
    let agent = folder.join(agent.trim_start_matches('/'));
    for name in ["bin", "tmp", "etc", "proc", "dev", "sys"].map(|name| folder.join(name)) {
        std::fs::create_dir_all(name).expect("ours");
    }
    std::fs::create_dir_all(agent.parent().expect("a folder")).expect("ours");
    std::fs::copy("/usr/bin/busybox", folder.join("bin/busybox")).expect("busybox-static");
    for name in ["sh", "id", "grep", "touch", "cat"] {
        std::os::unix::fs::symlink("busybox", folder.join("bin").join(name)).expect("ours");
    }
    let script = "#!/bin/sh\necho \"called: $*\"\nid -u\ngrep -E 'CapEff|NoNewPrivs|Seccomp:' /proc/self/status\n\
                  touch /there 2>/dev/null || echo 'read-only'\ngrep '^framework=' /envforge/expect.txt\necho \"$HOME\"\n";
    std::fs::write(&agent, script).expect("ours");
    std::fs::set_permissions(&agent, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("ours");
}

/// The container part of a Job, as Podman starts it: command, user, rights, volumes, log. It knows no nodes and no GPUs.
#[test]
#[ignore = "inner: .ci/debian13 runs it, with Podman 5.4"]
fn podman_runs_the_container_of_the_checks() {
    let program = project();
    assert_eq!(program.run(&["export", "kubernetes", "base", "--image", &reference()]).code, 0);
    let read = |name: &str| std::fs::read_to_string(program.path("base").join(name)).expect("written");
    let container = documents(&read("verify.yaml"))[0]["spec"]["template"]["spec"]["containers"][0].clone();
    let command = words(&container["command"]);
    image_with_agent(&program.path("image"), &command[0]);
    let podman = |args: &[&str]| {
        let mut podman = Command::new("podman");
        podman.args(["--runtime=runc", "--cgroup-manager=cgroupfs"]).args(args).current_dir(program.path(""));
        Run::of(&podman.env("PODMAN_IGNORE_CGROUPSV1_WARNING", "1").output().expect("podman"))
    };
    let mut tar = Command::new("tar");
    tar.args(["-C", "image", "-cf", "image.tar", "."]).current_dir(program.path(""));
    assert!(tar.status().expect("tar").success());
    let name = "localhost/envforge-verify:1";
    assert_eq!(podman(&["import", "image.tar", name]).code, 0);
    let job = read("verify.yaml").replace("generateName: p-verify-", "name: p-verify");
    let job = job.replace("NODE", "node1").replace("GPUS", "1").replace(&reference(), name);
    std::fs::write(program.path("play.yaml"), format!("{}\n---\n{job}", read("expect.yaml"))).expect("ours");
    let played = podman(&["kube", "play", "--network", "none", "play.yaml"]);
    let ended = podman(&["wait", "p-verify-pod-agent"]);
    let log = podman(&["logs", "p-verify-pod-agent"]);
    for args in [&["kube", "down", "--force", "play.yaml"][..], &["rmi", name]] {
        podman(args);
    }
    assert_eq!(played.code, 0, "{}{}", played.stdout, played.stderr);
    assert_eq!(ended.stdout.trim(), "0", "{}{}", log.stdout, log.stderr);
    let called = format!("called: {}", command[1..].join(" "));
    let rights = ["CapEff:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2"];
    let expected =
        [&[called.as_str(), "1000"][..], &rights, &["read-only", "framework=torch", "/tmp"]].concat();
    assert_eq!(log.stdout.lines().collect::<Vec<_>>(), expected, "{}", log.stderr);
}

/// The lock alone says it; no engine and no registry is asked.
#[test]
fn nfd_file_names_the_gpus_and_drivers_that_run_the_image() {
    let program = project();
    let run = program.run(&["export", "nfd", "nfd.yaml"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = std::fs::read_to_string(program.path("nfd.yaml")).expect("written");
    for part in [
        "\nversion: v1alpha1\n",
        "feature: local.label",
        "nvidia.com/gpu.compute.major: {op: In, value: [\"9\"]}",
    ] {
        assert!(text.contains(part), "`{part}` is missing: {text}");
    }
    assert!(
        text.contains("\n# oras attach --artifact-type application/vnd.nfd.image-compatibility.v1alpha1 "),
        "{text}"
    );
    // The types of Node Feature Discovery's API, and the number of values that it takes for each operator.
    let document = documents(&text).remove(0);
    assert_eq!(misfits_of(&document, "ImageCompatibility"), [""; 0]);
    let mut operators = 0;
    for one in document["compatibilities"][0]["rules"][0]["matchAny"].as_array().expect("alternatives") {
        for (label, expression) in one["matchFeatures"][0]["matchExpressions"].as_object().expect("labels") {
            let values = words(&expression["value"]);
            let numbers: Vec<u32> = values.iter().map(|value| value.parse().expect("a number")).collect();
            let fits = match expression["op"].as_str().expect("an operator") {
                "In" => !numbers.is_empty(),
                "Gt" | "Lt" => numbers.len() == 1,
                "GtLt" => numbers.len() == 2 && numbers[0] < numbers[1],
                _ => false,
            };
            assert!(fits, "{label}: {expression}");
            operators += 1;
        }
    }
    assert!(operators > 10, "{operators} were read");
    assert_message(&program.run(&["export", "nfd", "nfd.yaml"]), 2, &["already exists"]);
    assert_eq!(program.run(&["export", "nfd", "nfd.yaml", "--force"]).code, 0);
}

/// The schema of Kubernetes, which `kubectl` alone cannot check without a cluster. `JobSet` is not in it.
#[test]
#[ignore = "nightly: needs the package index: kubernetes-validate, 22 MB"]
fn kubernetes_base_passes_the_strict_schema() {
    let program = project();
    let venv = program.path("venv");
    let ran = |command: &mut Command| {
        let output = command.output().expect("it starts");
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    ran(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    ran(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "kubernetes-validate==1.37.0"]));
    let passes = |text: &str| {
        let file = program.path("manifest.yaml");
        std::fs::write(&file, text).expect("ours");
        let mut command = Command::new(venv.join("bin/kubernetes-validate"));
        command.arg("--strict").arg(&file).output().expect("it starts").status.success()
    };
    let key = program.path("lab.pub");
    std::fs::write(&key, include_str!("../fixtures/evidence/p256.pub")).expect("ours");
    let config = format!("[trust]\nkeys = [{{ file = '{}' }}]\n", key.display());
    std::fs::write(program.path("config.toml"), config).expect("ours");
    for config in [&[][..], &["--config", "config.toml"]] {
        let image = reference();
        let export = ["export", "kubernetes", "base", "--force", "--image", &image];
        let run = program.run(&[config, &export].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        for (name, text) in files(&program.path("base")) {
            if !is_yaml(&name) || ["kustomization.yaml", "jobset.yaml"].contains(&name.as_str()) {
                continue;
            }
            // As its first lines say; the validator itself wants a name.
            let text = text.replace("GPUS", "8").replace("NODE", "gpu-17").replace("COUNT", "16");
            let text = text.replace("generateName: p-verify-", "name: p-verify-1");
            assert!(passes(&text), "{name}");
            assert!(!passes(&format!("{text}speck: 1\n")), "{name}: a misspelt field");
        }
    }
    assert!(passes(include_str!("../../examples/admit/init-container.yaml")));
}

#[test]
fn tag_alone_and_a_missing_lock_are_refused() {
    let program = project();
    let run = program.run(&["export", "compose", "out", "--image", "registry.example.com/team/vision:1"]);
    assert_message(&run, 2, &["has no digest", "`envforge push` prints the digest"]);
    let run = program.run(&["export", "compose", "out", "--image", "Not A Name"]);
    assert_message(&run, 2, &["invalid image reference"]);
    std::fs::remove_file(program.path("envforge.lock")).expect("ours");
    let run = program.run(&["export", "compose", "out", "--image", &reference()]);
    assert_message(&run, 2, &["lock file not found", "envforge lock"]);
    assert!(!program.path("out").exists(), "nothing is left behind");
}

/// A project whose `[cluster]` has that text, with a directory for files next to it.
fn cluster_project(table: &str) -> Program {
    let program = project();
    write_cluster(&program, table);
    program
}

fn write_cluster(program: &Program, table: &str) {
    let text = std::fs::read_to_string(program.path("envforge.toml")).expect("ours");
    std::fs::write(program.path("envforge.toml"), format!("{text}[cluster]\n{table}\n")).expect("ours");
    std::fs::create_dir_all(program.path("images")).expect("ours");
}

/// The name of the file of the project's lock.
fn file_of_lock(program: &Program, end: &str) -> String {
    let lock = std::fs::read_to_string(program.path("envforge.lock")).expect("ours");
    let hash = Lock::from_toml("envforge.lock", &lock).expect("a lock").hash();
    format!("p-{}.{end}", &hash[..12])
}

/// One file for each lock: one that is there is not written again, whatever is in it.
#[test]
fn file_of_the_cluster_is_written_once_for_each_lock() {
    for (runtime, call, end) in [("pyxis", "squashfs", "sqsh"), ("apptainer", "sif", "sif")] {
        let program = cluster_project(&format!("runtime = \"{runtime}\"\nfolder = \"images\""));
        let name = file_of_lock(&program, end);
        let file = program.path("images").join(&name);
        // It is missing, and nothing was built here from which it could be written.
        let missing = program.run(&["export", call]);
        assert_eq!(missing.code, 3, "{}", missing.stderr);
        assert!(!file.exists());
        std::fs::write(&file, "whole").expect("ours");
        let run = program.run(&["export", call]);
        assert_eq!((run.code, run.stdout.trim_end()), (0, file.to_str().expect("UTF-8")), "{}", run.stderr);
        assert!(run.stderr.contains("the file of this lock exists: nothing written"), "{}", run.stderr);
        let run = program.run(&["export", call, "--json"]);
        let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
        assert_eq!((&report["written"], &report["size"]), (&false.into(), &5.into()), "{report}");
        assert_eq!(std::fs::read_to_string(&file).expect("there"), "whole");
        // --force would write it again; so would another lock.
        assert_eq!(program.run(&["export", call, "--force"]).code, 3);
        std::fs::rename(&file, program.path("images").join(format!("p-0123456789ab.{end}"))).expect("ours");
        assert_eq!(program.run(&["export", call]).code, 3);
        // What is not a file is not taken for one.
        std::os::unix::fs::symlink("/etc/passwd", &file).expect("ours");
        assert_message(&program.run(&["export", call]), 2, &["is a directory or a link, not a file"]);
    }
}

#[test]
fn call_without_a_file_says_what_the_cluster_lacks() {
    for (table, call, code, says) in [
        (
            "",
            "squashfs",
            2,
            &["`export squashfs` without FILE requires `[cluster] folder`", "export squashfs image.sqsh"][..],
        ),
        ("folder = \"images\"", "sif", 2, &["`[cluster] folder` requires `[cluster] runtime`", "apptainer"]),
        (
            "folder = \"images\"\nruntime = \"apptainer\"",
            "squashfs",
            2,
            &["`[cluster] runtime` is `apptainer`", "run `envforge export sif`"],
        ),
        (
            "folder = \"/not/mounted\"\nruntime = \"pyxis\"",
            "squashfs",
            3,
            &["cluster directory not found: `/not/mounted`", "mount the shared storage"],
        ),
        ("runtime = \"docker\"", "sif", 2, &["expected `pyxis` or `apptainer`"]),
    ] {
        let program = cluster_project(table);
        assert_message(&program.run(&["export", call]), code, says);
    }
    let program = cluster_project("folder = \"images\"\nruntime = \"pyxis\"");
    std::fs::remove_file(program.path("envforge.lock")).expect("ours");
    assert_message(&program.run(&["export", "squashfs"]), 2, &["lock file not found", "envforge lock"]);
}

/// The project's word counts, key by key, before that of the user.
#[test]
fn keys_of_the_cluster_come_from_the_project_first() {
    let program = cluster_project("runtime = \"apptainer\"");
    let settings = "[cluster]\nruntime = \"pyxis\"\nfolder = \"/of/the/user\"\n";
    std::fs::write(program.path("config.toml"), settings).expect("ours");
    let run = |call: &str| program.run(&["--config", "config.toml", "export", call]);
    assert_message(&run("squashfs"), 2, &["`[cluster] runtime` is `apptainer`"]);
    assert_message(&run("sif"), 3, &["cluster directory not found: `/of/the/user`"]);
    let doctor = program.run(&["--config", "config.toml", "doctor", "-v"]);
    assert!(doctor.stdout.contains("image files of the cluster: /of/the/user"), "{}", doctor.stdout);
    let text = std::fs::read_to_string(program.path("envforge.toml")).expect("ours");
    std::fs::write(program.path("envforge.toml"), text + "folder = \"images\"\n").expect("ours");
    std::fs::write(program.path("images").join(file_of_lock(&program, "sif")), "").expect("ours");
    assert_eq!(run("sif").code, 0);
}

/// No engine is asked and nothing is built; a pushed image that is named counts before the file.
#[test]
fn job_starts_the_file_of_the_cluster() {
    for (runtime, end, starts) in [
        ("pyxis", "sqsh", "srun --kill-on-bad-exit=1 --container-image=\"$file\""),
        ("apptainer", "sif", "srun --kill-on-bad-exit=1 apptainer exec --nv"),
    ] {
        let program = cluster_project(&format!("runtime = \"{runtime}\"\nfolder = \"images\""));
        let run = program.run(&["export", "slurm", "job"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        let name = file_of_lock(&program, end);
        assert!(run.stderr.contains(&format!("{name} does not exist yet")), "{}", run.stderr);
        let job = std::fs::read_to_string(program.path("job/job.sbatch")).expect("written");
        assert!(job.contains(starts) && job.contains(&format!("/images/{name}'")), "{job}");
        let names: Vec<String> = files(&program.path("job")).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, [".envforge-export", "README.md", "job.sbatch"]);
        let checked =
            std::process::Command::new("bash").arg("-n").arg(program.path("job/job.sbatch")).status();
        assert!(checked.expect("bash starts").success());
        assert_message(&program.run(&["export", "slurm", "job"]), 2, &["is not empty", "--force"]);
        std::fs::write(program.path("images").join(name), "").expect("ours");
        let run = program.run(&["export", "slurm", "job", "--force"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stderr.contains("does not exist yet"), "{}", run.stderr);
        assert_eq!(program.run(&["export", "slurm", "pushed", "--image", &reference()]).code, 0);
        let job = std::fs::read_to_string(program.path("pushed/job.sbatch")).expect("written");
        let named = if runtime == "pyxis" { reference().replacen('/', "#", 1) } else { reference() };
        assert!(job.contains(&named) && !job.contains(starts), "{job}");
        assert_eq!(job.contains("--container-image=\"$container\""), runtime == "pyxis", "{job}");
    }
}

/// No link, no other file and no file of a lock in use is listed, and nothing is removed: a job may wait for it.
#[test]
fn prune_lists_files_of_former_locks_on_the_cluster() {
    let of_spec = lock();
    let scene = Scene::new(cdi(report(&of_spec, H200, true)), &of_spec);
    let program = &scene.program;
    write_project(program);
    write_cluster(program, "runtime = \"pyxis\"\nfolder = \"images\"\n[environments.train]");
    let own_lock = std::fs::read_to_string(program.path("envforge.lock")).expect("ours");
    std::fs::write(program.path("envforge.train.lock"), &own_lock).expect("ours");
    let at = |name: &str| program.path("images").join(name);
    let current = file_of_lock(program, "sqsh");
    let old = ["p-aaaaaaaaaaaa.sqsh", "p-aaaaaaaaaaaa.sif", "p-train-bbbbbbbbbbbb.sqsh"];
    let others = [&*current, "other-aaaaaaaaaaaa.sqsh", "p-aaaaaaaaaaaa.sqsh.md5", "p-last-good.sqsh"];
    for name in old.iter().chain(&others) {
        std::fs::write(at(name), "old").expect("ours");
    }
    let link = at("p-cccccccccccc.sqsh");
    std::os::unix::fs::symlink(at(others[1]), &link).expect("ours");
    let is_there = |name: &&str| at(name).exists();

    let run = program.run(&["prune"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let lines = run.stdout.lines().filter(|line| line.starts_with("file "));
    let mut listed: Vec<String> = lines.map(str::to_owned).collect();
    let mut expected: Vec<String> =
        old.iter().map(|name| format!("file {} (0.00 GB)", at(name).display())).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
    assert!(run.stderr.contains("3 files of former locks on the cluster (0.00 GB)"), "{}", run.stderr);
    let json: serde_json::Value =
        serde_json::from_str(&program.run(&["prune", "--json"]).stdout).expect("JSON");
    assert_eq!((&json["removed"], &json["cluster"][0]["size"]), (&false.into(), &3.into()), "{json}");

    let run = program.run(&["prune", "--yes"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("3 files of former locks on the cluster"), "{}", run.stderr);
    assert!(old.iter().chain(&others).all(is_there) && link.is_symlink());

    // Without a current lock no file is a former one's, and outside a project there is no cluster.
    std::fs::remove_file(at(old[2])).expect("that of the environment with a lock");
    for gone in ["envforge.lock", "envforge.toml"] {
        std::fs::remove_file(program.path(gone)).expect("ours");
        let run = program.run(&["prune"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(!run.stderr.contains("cluster"), "{}", run.stderr);
    }
}
