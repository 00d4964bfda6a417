//! `verify FILE --on`: the file of an image on stand-in nodes, by the runtime that each of them has.

use std::path::Path;

use envforge::model::lock::{Lock, UserAdditions};

use crate::assert_message;
use crate::fake_nodes::{FakeNodes, IMAGE};
use crate::fleet::{ask, ask_about, assert_rows, json, rows, scene};
use crate::program::Program;
use crate::verify::{SPEC, lock};

/// A file that begins as a squashfs does; returns its path.
fn squashfs(program: &Program) -> String {
    let path = program.path("torch.sqsh");
    std::fs::write(&path, b"hsqs, and so on").expect("ours");
    path.to_str().expect("UTF-8").to_owned()
}

/// The front of a SIF.
fn sif(program: &Program) -> String {
    let path = program.path("torch.sif");
    let line = format!("{:\0<32}SIF_MAGIC\0", "#!/usr/bin/env run-singularity\n");
    std::fs::write(&path, line).expect("ours");
    path.to_str().expect("UTF-8").to_owned()
}

/// A call of a stand-in without what differs each time: the folder of the launcher and the number of the call.
fn told(program: &Program, call: &str) -> String {
    let folder = format!("{}/envforge-verify.", program.path("tmp").display());
    let mut text = String::new();
    let mut parts = call.split(&folder);
    text += parts.next().unwrap_or_default();
    for part in parts {
        text += "WORK";
        text += &part[6..];
    }
    match text.split_once("envforge-verify-") {
        Some((before, after)) => format!("{before}NAME{}", &after[18..]),
        None => text,
    }
}

const VARIABLES: &str = "NCCL_SOCKET_IFNAME=lo XDG_CACHE_HOME=/tmp/.cache CUDA_CACHE_PATH=/tmp/.nv TRITON_CACHE_DIR=/tmp/.triton \
                         TORCHINDUCTOR_CACHE_DIR=/tmp/.inductor";
const AGENT: &str = "/envforge/agent full --json --expect /envforge/expect.txt";

fn options(before: &str, variables: &str) -> String {
    variables.split_whitespace().flat_map(|variable| [before, " ", variable, " "]).collect()
}

#[test]
fn file_is_started_by_the_runtime_of_each_node_and_another_file_is_named() {
    let (program, nodes) = scene();
    nodes.idle(5, "");
    for (node, runtime) in
        [("node1", "apptainer"), ("node2", "enroot"), ("node4", "apptainer"), ("node5", "enroot")]
    {
        nodes.runtime(node, runtime);
    }
    nodes.fault("node4", "other-file");
    nodes.fault("node5", "no-file");
    let file = squashfs(&program);
    // The path may be relative here; it is the whole one on nodes.
    let run = ask_about(&program, "torch.sqsh", "slurm", &["--json"]);
    let report = json(&run);
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(report["image"], format!("{file}@sha256:{}", sha256(&file)));
    assert_rows(
        &rows(&report),
        &[
            "node1: ok",
            "node2: ok",
            "node3: no-report watch the node, looking for a container runtime: error: ",
            &format!(
                "node4: no-report watch apptainer, reading the image's file: {file} is another file here, with the SHA-256 bbbbbbbb"
            ),
            &format!(
                "node5: no-report watch enroot, reading the image's file: sha256sum: {file}: No such file"
            ),
        ],
    );
    let text = report.to_string();
    assert!(text.contains("has none of: apptainer singularity pyxis enroot"), "{text}");
    let runtimes: Vec<&str> = ["node1", "node2"]
        .iter()
        .filter_map(|name| {
            report["nodes"].as_array()?.iter().find(|node| node["node"] == *name)?["runtime"].as_str()
        })
        .collect();
    assert_eq!(runtimes, ["apptainer", "enroot"]);

    let calls: Vec<String> = nodes
        .calls("apptainer")
        .iter()
        .chain(&nodes.calls("enroot"))
        .map(|call| told(&program, call))
        .collect();
    let linker = "LD_PRELOAD= LD_AUDIT= GLIBC_TUNABLES=";
    let of_apptainer = options("--env", &format!("{VARIABLES} {linker}"));
    let of_enroot = options(
        "--env",
        &format!("{VARIABLES} HOME=/tmp {linker} NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES"),
    );
    assert_eq!(
        calls,
        [
            format!(
                "node1 apptainer exec --nv {of_apptainer}--containall --cleanenv --net --network none --workdir WORK/scratch --pwd / \
                 --bind WORK/carried:/envforge:ro {file} {AGENT}"
            ),
            format!("node2 enroot create --name NAME -- {file}"),
            format!(
                "node2 enroot start {of_enroot}--rc WORK/rc --mount WORK/scratch:/tmp:none:x-create=dir,rbind \
                 --mount WORK/carried:/envforge:none:x-create=dir,rbind,ro -- NAME {AGENT}"
            ),
            "node2 enroot remove --force NAME".to_owned(),
        ]
    );
    assert_nothing_left(&program, &nodes);
}

fn sha256(path: &str) -> String {
    let output = std::process::Command::new("sha256sum").arg(path).output().expect("sha256sum");
    String::from_utf8_lossy(&output.stdout)[..64].to_owned()
}

fn assert_nothing_left(program: &Program, nodes: &FakeNodes) {
    let count = |folder: &Path, start: &str| {
        let entries = std::fs::read_dir(folder).expect("ours").flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start)).count()
    };
    assert_eq!(count(&program.path("tmp"), "envforge-verify"), 0);
    assert_eq!(count(&program.path("nodes"), "unpacked"), 0, "{}", nodes.read("calls"));
}

/// A step inside of the job: nothing of the step around it holds for it.
#[test]
fn pyxis_starts_a_squashfs_as_a_step_of_the_job() {
    let (mut program, nodes) = scene();
    // What the environment of a batch job may have for envforge and cosign is not for the image.
    program.set("COSIGN_REPOSITORY", "box.test/signatures");
    // Nor are credentials, whatever they are called.
    let secrets = ["HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "PLANTED_LOGIN"];
    for name in secrets {
        program.set(name, "planted");
    }
    std::fs::create_dir(program.path("nodes/environments")).expect("ours");
    nodes.idle(2, "");
    nodes.ordinary_user();
    nodes.write("pyxis", "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n");
    nodes.fault("node2", "failed");
    let file = squashfs(&program);
    let run = ask_about(&program, &file, "slurm", &["--json"]);
    let report = json(&run);
    assert_rows(&rows(&report), &["node1: ok", "node2: failed drain gemm-tf32-own: 3 elements differ"]);
    assert_eq!(report["nodes"][0]["runtime"], "pyxis");
    let calls: Vec<String> = nodes.calls("srun").iter().map(|call| told(&program, call)).collect();
    let step = |node: &str, more: &str| {
        format!(
            "{node} srun --jobid=7 --overlap --nodes=1 --ntasks=1 --nodelist={node} --chdir=/ --cpu-bind=none --mpi=none --input=none \
             --container-image={file} --container-readonly --no-container-mount-home --no-container-remap-root \
             --no-container-entrypoint --container-workdir=/ {more}--container-mounts=WORK/carried:/envforge:ro,WORK/scratch:/tmp \
             /usr/bin/env -u LD_PRELOAD -u LD_AUDIT -u GLIBC_TUNABLES HOME=/tmp {VARIABLES} {AGENT}"
        )
    };
    for node in ["node1", "node2"] {
        assert!(calls.contains(&step(node, "")), "{calls:#?}");
    }
    let environment = nodes.read("environment");
    let has = |name: &str| environment.lines().any(|line| line.starts_with(name));
    assert!(has("SLURMD_NODENAME=") && has("NVIDIA_VISIBLE_DEVICES=all"), "{environment}");
    assert!(!has("SLURM_LABELIO") && !has("SLURM_STEP_GPUS") && !has("SLURM_JOB_ID"), "{environment}");
    assert!(!has("ENVFORGE_") && !has("COSIGN_"), "{environment}");
    assert!(has("PATH=") && has("HOME="), "{environment}");
    assert!(!environment.contains("planted"), "{environment}");
    let of_node = variables_of(&program, "nvidia-smi");
    for name in secrets {
        assert!(of_node.contains(&format!("{name}=planted\n")), "{name} did not reach the node: {of_node}");
    }
    // A newer one gives the step a network of its own.
    nodes.write("pyxis", "      --container-image=PATH\n      --container-unshare=NAMESPACES\n");
    nodes.write("calls", "");
    ask_about(&program, &file, "slurm:node1", &[]);
    let calls: Vec<String> = nodes.calls("srun").iter().map(|call| told(&program, call)).collect();
    assert!(calls.contains(&step("node1", "--container-unshare=net ")), "{calls:#?}");
    assert_nothing_left(&program, &nodes);

    // A SIF is no squashfs, and an image of a registry goes to an engine first.
    let run = ask_about(&program, &sif(&program), "slurm:node1", &[]);
    assert!(run.stdout.contains("has none of: apptainer singularity"), "{}", run.stdout);
    let run = ask(&program, "slurm:node1", &["--json"]);
    assert_eq!(json(&run)["nodes"][0]["runtime"], "docker");
}

/// The variables of every call of a stand-in.
fn variables_of(program: &Program, name: &str) -> String {
    let entries = std::fs::read_dir(program.path("nodes/environments")).expect("ours").flatten();
    let is_of = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&format!("{name}-")))
    };
    let files = entries.map(|entry| entry.path()).filter(is_of);
    files.map(|path| std::fs::read_to_string(path).expect("ours")).collect()
}

/// Nodes without an engine: enroot fetches the image by its digest, and starts it, or pyxis does.
#[test]
fn image_of_a_registry_is_started_by_enroot_and_by_pyxis() {
    let (mut program, nodes) = scene();
    program.set("ENVFORGE_WITH", "pyxis enroot");
    nodes.idle(2, "");
    nodes.runtime("node1", "enroot");
    let calls = |tool: &str| -> Vec<String> {
        nodes
            .calls(tool)
            .iter()
            .map(|call| told(&program, call))
            .filter(|call| call.starts_with("node1 "))
            .collect()
    };
    let import =
        format!("node1 enroot import --output WORK/image.sqsh docker://{}", IMAGE.replacen('/', "#", 1));
    let report = json(&ask(&program, "slurm", &["--json"]));
    let none = "node2: no-report watch the node, looking for a container runtime: error: ";
    assert_rows(&rows(&report), &["node1: ok", none]);
    assert_eq!(report["nodes"][1]["runtime"], "enroot", "{report}");
    let of_enroot = calls("enroot");
    assert_eq!(
        of_enroot[..2],
        [import.clone(), "node1 enroot create --name NAME -- WORK/image.sqsh".to_owned()]
    );
    assert!(
        of_enroot[2].starts_with("node1 enroot start ")
            && of_enroot[2].ends_with(&format!(" -- NAME {AGENT}"))
    );
    assert_eq!(of_enroot[3..], ["node1 enroot remove --force NAME"]);
    let alone = "node1 unshare --user --map-current-user --keep-caps --net -- bash -c ";
    let starts = calls("unshare");
    assert!(starts.len() == 2 && starts.iter().all(|call| call.starts_with(alone)), "{starts:#?}");
    assert!(starts[1].contains(" enroot start "), "{starts:#?}");
    assert_nothing_left(&program, &nodes);

    // Where a user may have no network of his own nothing is fetched.
    nodes.write("calls", "");
    nodes.fault("node1", "no-user-namespaces");
    let report = json(&ask(&program, "slurm:node1", &["--json"]));
    assert_rows(
        &rows(&report),
        &[
            "node1: no-report watch enroot, fetching the image: enroot would give an image of a registry the node's network",
        ],
    );
    assert!(calls("enroot").is_empty(), "{}", nodes.read("calls"));
    nodes.fault("node1", "");

    // A pyxis that leaves an image the node's network starts none that others made.
    let image_option = "      --container-image=[USER@][REGISTRY#]IMAGE[:TAG]|PATH\n";
    nodes.write("pyxis", image_option);
    nodes.write("calls", "");
    let report = json(&ask(&program, "slurm:node1", &["--json"]));
    assert_rows(
        &rows(&report),
        &["node1: no-report watch pyxis, fetching the image: pyxis here has no --container-unshare"],
    );
    assert!(calls("enroot").is_empty(), "{}", nodes.read("calls"));
    assert!(!nodes.read("calls").contains("--container-image="), "{}", nodes.read("calls"));
    assert_nothing_left(&program, &nodes);

    nodes.write("pyxis", &format!("{image_option}      --container-unshare=NAMESPACES\n"));
    nodes.write("calls", "");
    let report = json(&ask(&program, "slurm:node1", &["--json"]));
    assert_rows(&rows(&report), &["node1: ok"]);
    assert_eq!(report["nodes"][0]["runtime"], "pyxis");
    assert_eq!(calls("enroot"), [import]);
    let steps = calls("srun");
    assert!(steps.len() == 1 && steps[0].contains(" --container-image=WORK/image.sqsh "), "{steps:#?}");
    assert!(steps[0].contains(" --container-unshare=net "), "{steps:#?}");
    assert_nothing_left(&program, &nodes);
}

/// What an image of a registry is started within by enroot, for real: the loopback alone, the same user, no rights.
#[test]
#[ignore = "needs root"]
fn own_network_is_a_loopback_without_rights() {
    let script = include_str!("../../templates/cluster/node.sh");
    let start = script.find("alone=(").expect("it is defined");
    let end = start + script[start..].find(" bash)\n").expect("its end") + " bash)\n".len();
    let asks = "id -u; grep CapEff /proc/self/status; tail -n +3 /proc/net/dev | cut -d: -f1";
    let text = format!("{}\"${{alone[@]}}\" bash -c '{asks}'", &script[start..end]);
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "bash", "-c", &text];
    let output = std::process::Command::new("setpriv").args(user).output().expect("setpriv");
    let told = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = told.lines().map(str::trim).collect();
    assert_eq!(
        lines,
        ["65534", "CapEff:\t0000000000000000", "lo"],
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// In a project with a directory of its cluster no image is named: its file is the one that `export` writes there.
#[test]
fn project_of_a_cluster_is_asked_about_by_its_file() {
    let (program, nodes) = scene();
    nodes.idle(1, "");
    nodes.runtime("node1", "apptainer");
    let project = |table: &str| {
        let text = format!("schema = 1\nname = \"p\"\nspec = \"{SPEC}\"\n[target]\nany = true\n{table}");
        std::fs::write(program.path("envforge.toml"), text).expect("ours");
    };
    project("");
    let verify = |more: &[&str]| {
        program.run(&[&["verify", "--on", "slurm", "--level", "static", "--json"], more].concat())
    };
    assert_message(
        &verify(&[]),
        2,
        &["--on requires one image by its digest, got none", "`[cluster] folder`"],
    );
    project("[cluster]\nruntime = \"apptainer\"\nfolder = \"images\"\n");
    assert_message(&verify(&[]), 2, &["lock file not found", "envforge lock"]);
    let added = UserAdditions { project: Some("p".to_owned()), ..UserAdditions::default() };
    let lock = Lock { added, ..lock() };
    std::fs::write(program.path("envforge.lock"), lock.to_toml()).expect("ours");
    let name = format!("images/p-{}.sif", &lock.hash()[..12]);
    let says: [&str; 3] = [
        "image file of the project not found: ",
        &name,
        "hint: write it in the project: `envforge export sif`",
    ];
    assert_message(&verify(&[]), 2, &says);
    assert!(nodes.read("calls").is_empty(), "{}", nodes.read("calls"));
    std::fs::create_dir(program.path("images")).expect("ours");
    std::fs::rename(sif(&program), program.path(&name)).expect("ours");
    let run = verify(&[]);
    let report = json(&run);
    let file = program.path(&name).display().to_string();
    assert_eq!(report["image"], format!("{file}@sha256:{}", sha256(&file)), "{}", run.stderr);
    let calls = nodes.calls("apptainer");
    assert!(calls.len() == 1 && calls[0].contains(&format!(" {file} /envforge/agent static ")), "{calls:#?}");
    assert!(calls[0].contains(" --skip secrets"), "the lock is known: {calls:#?}");
    let run = verify(&["--as-they-free", "reports"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(json(&run)["image"].as_str().is_some_and(|image| image.starts_with(&file)), "{}", run.stdout);
}

/// The file lies on the hosts alone, and root starts none.
#[test]
fn file_of_hosts_is_named_by_its_digest_and_started_by_no_root() {
    let (program, nodes) = scene();
    for host in ["h1", "h2"] {
        nodes.fault(host, "ok");
        nodes.runtime(host, "apptainer");
    }
    let file = sif(&program);
    let named = format!("{file}@sha256:{}", sha256(&file));
    let run = ask_about(&program, &named, "ssh:h[1-2]", &["--json"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(json(&run)["image"], named);
    assert!(!run.stderr.contains("read "), "it is not read here: {}", run.stderr);
    std::fs::write(program.path("nodes/node/id"), "#!/bin/sh\necho 0\n").expect("ours");
    let run = ask_about(&program, &named, "ssh:h1", &[]);
    assert_eq!(run.code, 3, "{}", run.stdout);
    assert!(run.stdout.contains("ask as an ordinary user"), "{}", run.stdout);
    let calls = nodes.calls("apptainer");
    assert_eq!(calls.len(), 2, "{calls:#?}");
}

#[test]
fn file_is_left_to_jobs_that_wait() {
    let (program, nodes) = scene();
    nodes.idle(1, "node2|gpu*|allocated|gpu:h200:2|||none\n");
    nodes.runtime("node1", "apptainer");
    nodes.runtime("node2", "apptainer");
    nodes.fault("node2", "other-file");
    let file = squashfs(&program);
    let run = ask_about(&program, &file, "slurm", &["--as-they-free", "reports"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let merged = json(&program.run(&["verify", "--merge", "reports", "--json"]));
    let other =
        format!("node2: no-report watch apptainer, reading the image's file: {file} is another file here");
    assert_rows(&rows(&merged), &["node1: ok", &other]);
}

#[test]
fn file_that_no_node_could_start_is_refused_here() {
    let (program, nodes) = scene();
    nodes.idle(1, "");
    std::fs::write(program.path("x.sif"), "#!/bin/sh\n").expect("ours");
    let file = squashfs(&program);
    for (name, more, says) in [
        ("x.sif", &[][..], &["`x.sif` is neither a squashfs nor a SIF", "envforge export squashfs"][..]),
        ("gone.sqsh", &[], &["cannot read image file `gone.sqsh`: ", "hint: if nodes alone have it"]),
        ("gone.sqsh@sha256:12", &[], &["invalid SHA-256 `12` of `gone.sqsh`"]),
        (&file, &["--attest", "--key", "x"], &["--attest requires an image in a registry, got the file"]),
    ] {
        assert_message(&ask_about(&program, name, "slurm", more), 2, says);
    }
    assert!(nodes.read("calls").is_empty(), "{}", nodes.read("calls"));
    // No engine is asked for an image of that name.
    let gone = program.run(&["verify", "gone.sif"]);
    assert_message(&gone, 2, &["cannot read image file `gone.sif`: no such file or directory"]);
}

/// This machine as a node that has Apptainer.
fn scene_here() -> (Program, FakeNodes) {
    let (mut program, nodes) = scene();
    nodes.runtime("here", "apptainer");
    program.set("PATH", format!("{}:{}", program.path("nodes/only-here").display(), nodes.path(true)));
    program.set("FLEET_NODE", "here");
    (program, nodes)
}

#[test]
fn file_is_verified_on_this_machine_and_its_report_is_kept_by_its_digest() {
    let (mut program, nodes) = scene_here();
    let file = squashfs(&program);
    let image = format!("sha256:{}", sha256(&file));
    let run = program.run(&["verify", "torch.sqsh", "--json"]);
    let first = json(&run);
    assert_eq!(run.code, 0, "{}", run.stderr);
    for (field, value) in
        [("image", &*image), ("name", "torch.sqsh"), ("level", "static"), ("engine", "apptainer")]
    {
        assert_eq!(first[field], value, "{field}: {first}");
    }
    assert!(run.stderr.contains("no GPU on this machine"), "{}", run.stderr);
    let calls = nodes.calls("apptainer");
    assert!(calls.len() == 1 && calls[0].contains("/envforge/agent static --json"), "{calls:#?}");
    assert!(calls[0].contains(&format!(":ro {file} ")) && calls[0].contains("--network none"), "{calls:#?}");

    // With a GPU the level is that of images, and a failed check counts.
    program.set("ENVFORGE_GPU", "sm_90");
    let smi = program.path("nodes/node/nvidia-smi");
    let of_node = std::fs::read_to_string(&smi).expect("ours");
    let answer =
        "case $1 in --query-gpu=driver_version*) echo '570.86.15, NVIDIA H200, 9.0, 143771'; exit ;; esac\n";
    std::fs::write(&smi, of_node.replacen("#!/bin/bash\n", &format!("#!/bin/bash\n{answer}"), 1))
        .expect("ours");
    nodes.fault("here", "failed");
    let run = program.run(&["verify", &file]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.contains("gemm-tf32-own") && run.stdout.contains("3 elements differ"),
        "{}",
        run.stdout
    );
    assert!(nodes.calls("apptainer")[1].contains("/envforge/agent full --json"));

    // The report is that of the bytes, whatever the file is called.
    std::fs::rename(&file, program.path("renamed.sqsh")).expect("ours");
    let run = program.run(&["verify", "renamed.sqsh", "--last", "--json"]);
    assert_eq!((run.code, &json(&run)["image"]), (1, &(&*image).into()), "{}", run.stderr);
    assert_eq!(json(&run)["level"], "full");
    std::fs::write(program.path("renamed.sqsh"), b"hsqs, and another image").expect("ours");
    assert_message(&program.run(&["verify", "renamed.sqsh", "--last"]), 1, &["no verification report for"]);
    assert_eq!(nodes.calls("apptainer").len(), 2);
    assert_nothing_left(&program, &nodes);
}

/// A runtime takes a path: what lies there after the file was read counts for nothing, though it is the right file again at the end.
#[test]
fn file_that_is_another_one_while_it_is_started_gives_no_report() {
    let (program, nodes) = scene_here();
    let file = squashfs(&program);
    let before = sha256(&file);
    let says = "watch apptainer, reading the image's file: ";
    let why = format!("{file} was changed while it was checked");
    for fault in ["exchanged-file", "rewritten-file"] {
        nodes.fault("here", fault);
        let run = program.run(&["verify", &file]);
        assert_message(&run, 3, &["cannot verify `", &why]);
        assert_eq!(sha256(&file), before, "{fault}: it was put back");
        assert_message(&program.run(&["verify", &file, "--last"]), 1, &["no verification report for"]);
    }
    nodes.idle(2, "");
    for (node, fault) in [("node1", "exchanged-file"), ("node2", "ok")] {
        nodes.runtime(node, "apptainer");
        nodes.fault(node, fault);
    }
    // One after the other: both nodes have the same file.
    for (node, row) in [("node1", format!("node1: no-report {says}{why}")), ("node2", "node2: ok".to_owned())]
    {
        let report = json(&ask_about(&program, &file, &format!("slurm:{node}"), &["--json"]));
        assert_rows(&rows(&report), &[&row]);
    }
    assert_nothing_left(&program, &nodes);
}

#[test]
fn file_without_a_runtime_here_names_apptainer_and_the_way_to_nodes() {
    let (program, nodes) = scene();
    let file = sif(&program);
    // Root's containers would have root's capabilities.
    std::fs::write(program.path("nodes/node/id"), "#!/bin/sh\necho 0\n").expect("ours");
    let run = program.run(&["verify", &file]);
    assert_message(&run, 3, &["on this machine: root's containers of apptainer", "ask as an ordinary user"]);
    nodes.ordinary_user();
    let run = program.run(&["verify", &file]);
    let says = ["cannot start `", "has none of: apptainer singularity", "install Apptainer", "--on ssh:HOST"];
    assert_message(&run, 3, &says);
    assert_message(&program.run(&["verify", &file, "--last"]), 1, &["no verification report for"]);
}

#[test]
fn options_about_images_are_refused_for_a_file() {
    let (program, nodes) = scene_here();
    squashfs(&program);
    for (more, says) in [
        (&["--push"][..], "--push cannot be combined with the file `torch.sqsh`"),
        (&["--record"], "--record cannot be combined with the file `torch.sqsh`"),
        (&["--gpus", "0"], "--gpus cannot be combined with the file `torch.sqsh`"),
        (&["--attest", "--key", "x"], "--attest requires an image in a registry, got the file `torch.sqsh`"),
        (&["IMAGE"], "`torch.sqsh` cannot be combined with other images"),
    ] {
        assert_message(&program.run(&[&["verify", "torch.sqsh"], more].concat()), 2, &[says]);
    }
    std::fs::write(program.path("x.sif"), "#!/bin/sh\n").expect("ours");
    assert_message(&program.run(&["verify", "x.sif"]), 2, &["`x.sif` is neither a squashfs nor a SIF"]);
    assert!(nodes.read("calls").is_empty(), "{}", nodes.read("calls"));
}
