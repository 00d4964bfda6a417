//! `verify` with an engine that has a GPU: what is asked of it, and which tags a report earns.

use std::collections::BTreeMap;

use envforge::model::image::plan::environment_of;
use envforge::model::image_digest::Digest;
use envforge::model::lock::{
    BaseProvider, IndexKind, Lock, LockMetadata, LockedBase, LockedWheel, SCHEMA, UserAdditions, WheelLayer,
};
use envforge::model::resolve::{ResolveOptions, resolve};
use envforge::model::target::Target;
use envforge::model::verdict::required_checks::{gpu_checks, static_checks};
use envforge::model::versions::Machine;
use wiremock::matchers::{body_string, method, path};
use wiremock::{Mock, ResponseTemplate};

use crate::gpu_daemon::{GpuDaemon, Requests};
use crate::program::{Program, Run};
use crate::{assert_message, program};

/// Asserts that the program ends with 3, tells the error once and says all of that.
#[track_caller]
fn assert_outside(run: &Run, says: &[&str]) {
    assert_eq!(run.code, 3, "{}", run.stderr);
    assert_eq!(run.stderr.lines().filter(|line| line.starts_with("error: ")).count(), 1, "{}", run.stderr);
    for part in says {
        assert_eq!(run.stderr.matches(part).count(), 1, "`{part}` once: {}", run.stderr);
    }
}

pub(crate) const SPEC: &str = "pytorch-cuda:2.8-cu128";
pub(crate) const H200: &str = "NVIDIA H200 (sm_90)";

pub(crate) fn lock() -> Lock {
    let spec = SPEC.parse().expect("a spec");
    let target = Target::any(Machine::X86_64);
    let stack = resolve(&spec, &target, envforge::model::compat::embedded(), &ResolveOptions::default())
        .expect("resolves");
    let base = LockedBase {
        provider: BaseProvider::Image,
        name: "debian:12".to_owned(),
        suite: "bookworm".to_owned(),
        digest: Some(format!("sha256:{}", "1".repeat(64))),
        content: None,
        image: None,
        packages: Vec::new(),
        cuda: false,
    };
    let (environment, records) = (environment_of(&stack, &UserAdditions::default()), LockMetadata::default());
    let (tools, system, wheels) = (Vec::new(), Vec::new(), Vec::new());
    Lock {
        schema: SCHEMA,
        spec: SPEC.to_owned(),
        added: UserAdditions::default(),
        stack,
        base,
        tools,
        system,
        unpacked: Vec::new(),
        apt: Vec::new(),
        sources: Vec::new(),
        wheels,
        environment,
        records,
    }
}

fn line(id: &str, stage: &str, outcome: &str, detail: &str, gpu: &str) -> String {
    let measured = if gpu.is_empty() { BTreeMap::new() } else { BTreeMap::from([("gpu.0", gpu)]) };
    let line = serde_json::json!({
        "id": id, "stage": stage, "outcome": outcome, "detail": detail, "measured": measured, "expected": {}, "hint": null,
    });
    line.to_string() + "\n"
}

/// What an agent prints whose every check passed on that GPU; `level`: quick leaves some out.
pub(crate) fn report(lock: &Lock, gpu: &str, full: bool) -> String {
    let mut text = String::from("{\"schema\":1,\"agent\":\"envforge-agent\"}\n");
    for id in static_checks(lock).iter().filter(|id| !id.starts_with("image-")) {
        text += &line(id, "static", "passed", "fine", "");
    }
    for id in gpu_checks(lock, full) {
        text += &line(&id, "gpu", "passed", "exact", gpu);
    }
    text + "{\"done\":true,\"seconds\":9.5}\n"
}

pub(crate) struct Scene {
    pub(crate) program: Program,
    pub(crate) requests: Requests,
}

impl Scene {
    pub(crate) fn new(daemon: GpuDaemon, lock: &Lock) -> Self {
        let program = program();
        let folder = program.path("state/locks-of-specs");
        std::fs::create_dir_all(&folder).expect("ours");
        std::fs::write(folder.join("one.lock"), lock.to_toml()).expect("ours");
        let built = program.path("state/built-images");
        std::fs::create_dir_all(&built).expect("ours");
        std::fs::write(built.join(daemon.own_id()), lock.hash()).expect("ours");
        let socket = program.path("docker.sock");
        let own = [format!("{}-unverified", lock.stack.name), "team/torch:1-unverified".to_owned()];
        let tags = own.into_iter().chain(daemon.tags.clone()).collect();
        let requests = GpuDaemon { tags, lock: lock.hash(), ..daemon }.listen(&socket);
        // Not empty, which would mean: no GPU.
        let program =
            program.with("DOCKER_HOST", format!("unix://{}", socket.display())).with("ENVFORGE_GPU", "sm_90");
        Self { program, requests }
    }

    pub(crate) fn verify(&self, more: &[&str]) -> Run {
        self.program.run(&[&["verify", SPEC], more].concat())
    }
}

pub(crate) fn cdi(prints: String) -> GpuDaemon {
    GpuDaemon { cdi: &["nvidia.com/gpu=0", "nvidia.com/gpu=all"], prints, ..GpuDaemon::default() }
}

#[test]
fn executed_kernels_earn_the_verified_tag() {
    let lock = lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    let run = scene.verify(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let last = run.stdout.trim_end().lines().next_back().expect("a line");
    assert!(last.starts_with("passed: ") && last.contains(H200), "{last}");
    assert!(last.contains("not proven on 7.0 7.5 8.0 8.6 10.0 12.0"), "{last}");
    assert_eq!(scene.requests.tags(), [lock.stack.name.clone(), "team/torch:1".to_owned()]);
    let containers = scene.requests.containers();
    let host = &containers[0]["HostConfig"];
    assert_eq!(host["DeviceRequests"][0]["Driver"], "cdi");
    assert_eq!(host["DeviceRequests"][0]["DeviceIDs"][0], "nvidia.com/gpu=all");
    assert_eq!(host["NetworkMode"], "none");
    assert!(host["ShmSize"].as_u64().expect("a size") > 1 << 30);
    // Code of the image: closed, bounded, and without the list of credentials.
    for (name, value) in
        [("ReadonlyRootfs", true.into()), ("PidsLimit", 16_384.into()), ("CapDrop", vec!["ALL"].into())]
    {
        let value: serde_json::Value = value;
        assert_eq!(host[name], value, "{name}");
    }
    assert_eq!(host["LogConfig"]["Type"], "none");
    assert!(host["Tmpfs"]["/tmp"].as_str().expect("options").contains("size="), "{host}");
    assert!(!containers[0].to_string().contains("--forbidden"), "{}", containers[0]);
    // The files: no GPU, and nothing of the image runs.
    let files = scene.requests.created(|command| command.contains("--forbidden"));
    assert_eq!(files.len(), 1);
    assert_eq!(files[0]["Entrypoint"][0], "/envforge/agent");
    assert_eq!(files[0]["HostConfig"]["NetworkMode"], "none");
    assert_eq!(files[0]["HostConfig"]["DeviceRequests"], serde_json::Value::Null);

    let report: serde_json::Value =
        serde_json::from_str(&scene.program.run(&["verify", SPEC, "--last", "--json"]).stdout).expect("JSON");
    assert_eq!((&report["executed"], &report["verdict"]), (&true.into(), &"passed".into()));
    assert_eq!(report["gpus"][0], H200);
}

/// A registry that has the image under its digest and takes the tag `1` so often; its repository and the digest.
async fn registry_with_the_image(puts: u64) -> (wiremock::MockServer, String, Digest) {
    let registry = wiremock::MockServer::start().await;
    let manifest = r#"{"schemaVersion":2,"config":{"digest":"sha256:"#.to_owned() + &"b".repeat(64) + "\"}}";
    let digest = Digest::of(manifest.as_bytes());
    let name = format!("{}/team/torch", registry.address());
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let manifests = "/v2/team/torch/manifests";
    Mock::given(path(format!("{manifests}/{digest}")))
        .respond_with(ResponseTemplate::new(200).set_body_raw(manifest.clone(), kind))
        .mount(&registry)
        .await;
    Mock::given(method("PUT"))
        .and(path(format!("{manifests}/1")))
        .and(body_string(manifest))
        .respond_with(ResponseTemplate::new(201))
        .expect(puts)
        .mount(&registry)
        .await;
    (registry, name, digest)
}

#[tokio::test(flavor = "multi_thread")]
async fn push_adds_the_verified_tag_to_the_same_digest() {
    let (_registry, name, digest) = registry_with_the_image(1).await;
    let lock = lock();
    let daemon = GpuDaemon {
        tags: vec![format!("{name}:1-unverified")],
        digests: vec![format!("{name}@{digest}")],
        ..cdi(report(&lock, H200, false))
    };
    let scene = Scene::new(daemon.clone(), &lock);
    let run = scene.verify(&["--level", "quick", "--push"]);
    assert_message(
        &run,
        1,
        &[
            "nothing was pushed: the required check",
            "hint: run `verify --push` on a machine with a GPU of the target",
        ],
    );
    assert!(run.stdout.contains("passed: "), "the report is told all the same: {}", run.stdout);
    assert!(scene.requests.tags().is_empty());

    let scene = Scene::new(GpuDaemon { prints: report(&lock, H200, true), ..daemon }, &lock);
    let run = scene.verify(&["--push"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains(&format!("pushed: {name}:1@{digest}")), "{}", run.stdout);
    assert!(scene.requests.tags().contains(&format!("{name}:1")));

    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    let run = scene.verify(&["--push"]);
    assert_message(&run, 2, &["nothing to push: no tag names a registry"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn push_of_a_restrictive_licence_warns() {
    let warning = "`torch` is under a restrictive licence (Agreement)";
    let of_user = "`tensorrt` is under a restrictive licence (Software License Agreement for NVIDIA TensorRT";
    let (registry, name, digest) = registry_with_the_image(2).await;
    for licence in [None, Some("Agreement".to_owned())] {
        let mut lock = lock();
        lock.stack.licence.clone_from(&licence);
        let has_tensorrt = licence.is_none();
        if has_tensorrt {
            lock.wheels.push(LockedWheel {
                name: "tensorrt".to_owned(),
                version: "8.6.0".to_owned(),
                file: "tensorrt-8.6.0-cp310-none-manylinux_2_17_x86_64.whl".to_owned(),
                sha256: "3".repeat(64),
                size: None,
                index: IndexKind::Default,
                index_name: None,
                layer: WheelLayer::User,
            });
        }
        let daemon = GpuDaemon {
            tags: vec![format!("{name}:1-unverified")],
            digests: vec![format!("{name}@{digest}")],
            ..cdi(report(&lock, H200, true))
        };
        let scene = Scene::new(daemon, &lock);
        let run = scene.verify(&["--push"]);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert_eq!(run.stderr.matches(warning).count(), usize::from(licence.is_some()), "{}", run.stderr);
        assert_eq!(run.stderr.matches(of_user).count(), usize::from(has_tensorrt), "{}", run.stderr);
        let target = format!("{}/team/other:1", registry.address());
        let run = scene.program.run(&["push", SPEC, &target]);
        assert_eq!(run.code, 3, "this registry takes no upload: {}", run.stderr);
        assert_eq!(run.stderr.matches(warning).count(), usize::from(licence.is_some()), "{}", run.stderr);
        assert_eq!(run.stderr.matches(of_user).count(), usize::from(has_tensorrt), "{}", run.stderr);
    }
}

#[test]
fn wrong_result_fails_and_earns_no_tag() {
    let lock = lock();
    let good = report(&lock, H200, true);
    let wrong = line("gemm-fp16-own", "gpu", "failed", "CUBLAS_STATUS_EXECUTION_FAILED", "");
    let lines = good.lines().map(|text| if text.contains("gemm-fp16-own") { wrong.trim_end() } else { text });
    let scene = Scene::new(cdi(lines.collect::<Vec<_>>().join("\n")), &lock);
    let run = scene.verify(&[]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stdout.starts_with("failed  gemm-fp16-own"), "{}", run.stdout);
    assert!(run.stdout.contains("hint: an earlier error surfaced late"), "{}", run.stdout);
    assert!(scene.requests.tags().is_empty());
}

/// Another program holds the GPU: exit 3, as for everything outside envforge, and no tag.
#[test]
fn busy_gpu_leaves_the_verdict_undecided() {
    let lock = lock();
    let good = report(&lock, H200, true);
    let busy = line("gemm-fp16-own", "gpu", "skipped", "NVIDIA H200 (sm_90) is busy", "")
        .replace("\"hint\":null", "\"hint\":null,\"skip\":\"host-busy\"");
    let lines = good.lines().map(|text| if text.contains("gemm-fp16-own") { busy.trim_end() } else { text });
    let scene = Scene::new(cdi(lines.collect::<Vec<_>>().join("\n")), &lock);
    let run = scene.verify(&[]);
    assert_eq!(run.code, 3, "{}{}", run.stdout, run.stderr);
    let last = run.stdout.trim_end().lines().next_back().expect("a line");
    assert!(
        run.stdout.starts_with("skipped gemm-fp16-own") && last.starts_with("undecided: "),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("not tagged as verified: the host is busy: NVIDIA H200"), "{}", run.stderr);
    assert!(scene.requests.tags().is_empty());
}

#[test]
fn image_not_proven_on_a_target_gpu_stays_unverified() {
    let lock = lock();
    let on_quick = report(&lock, H200, false);
    let elsewhere = report(&lock, "Tesla P100-PCIE-16GB (sm_60)", true);
    let cut = report(&lock, H200, true).replace("{\"done\"", "{\"gone\"");
    for (prints, level, code, says) in [
        (on_quick, "quick", 0, "the required check `framework-compile` was not executed at level quick"),
        (elsewhere, "full", 0, "checks ran on Tesla P100-PCIE-16GB (sm_60)"),
        (cut, "full", 1, "failed"),
    ] {
        let scene = Scene::new(cdi(prints), &lock);
        let run = scene.verify(&["--level", level]);
        assert_eq!(run.code, code, "{}{}", run.stdout, run.stderr);
        assert!(run.stderr.contains(says), "{}", run.stderr);
        assert!(scene.requests.tags().is_empty());
    }
}

/// The label of the image names a lock that is known here, and everything it prints passed.
#[test]
fn image_from_elsewhere_with_a_copied_label_earns_no_tag() {
    let lock = lock();
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    std::fs::remove_file(scene.program.path("state/built-images").join("a".repeat(64))).expect("there");
    let run = scene.verify(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stderr.contains("this image was not built here: checking it in a sandbox"), "{}", run.stderr);
    assert!(scene.requests.tags().is_empty());
    assert!(
        scene.requests.created(|command| command.contains("--forbidden")).is_empty(),
        "no list of credentials"
    );
    let run = scene.verify(&["--push"]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("nothing was pushed: the image was not built here"), "{}", run.stderr);

    // One that was built here from another lock is not that lock's either.
    std::fs::write(scene.program.path("state/built-images").join("a".repeat(64)), "0".repeat(64))
        .expect("ours");
    assert!(scene.verify(&[]).stderr.contains("was not built here"));
    assert!(scene.requests.tags().is_empty());
}

#[test]
fn engine_without_gpu_runs_static_checks_unless_gpus_are_given() {
    let lock = lock();
    let refuses = Some(
        "nvidia-container-cli: initialization error: load library failed: libnvidia-ml.so.1: cannot open shared object file",
    );
    let whole = report(&lock, H200, true);
    let statics: Vec<_> = whole.lines().filter(|line| !line.contains("\"gpu\"")).collect();
    let statics = statics.join(
        "
",
    ) + "
";
    let daemon = GpuDaemon { runtimes: &["nvidia"], prints: statics, refuses, ..GpuDaemon::default() };
    let scene = Scene::new(daemon, &lock);
    let run = scene.verify(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.ends_with("nothing ran on a GPU\n"), "{}", run.stdout);
    assert!(run.stderr.contains("no GPU: "), "{}", run.stderr);
    assert!(scene.requests.tags().is_empty());
    let containers = scene.requests.containers();
    assert_eq!((&containers[0]["HostConfig"]["Runtime"], containers.len()), (&"nvidia".into(), 2));
    let run = scene.verify(&["--gpus", "0"]);
    assert_outside(&run, &["libnvidia-ml.so.1", "hint: install the full driver on that host"]);
    let environment = scene.requests.containers()[2]["Env"].to_string();
    assert!(environment.contains("NVIDIA_VISIBLE_DEVICES=0"), "{environment}");
}

#[test]
fn driver_too_old_for_the_image_is_explained() {
    let lock = lock();
    let refuses = Some(
        "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container: unknown",
    );
    let scene = Scene::new(GpuDaemon { refuses, ..cdi(String::new()) }, &lock);
    let run = scene.verify(&[]);
    assert_outside(
        &run,
        &["unsatisfied condition: cuda>=12.8", "hint: update the driver, or build for this one"],
    );
    assert!(scene.requests.tags().is_empty());
}

#[test]
fn recorded_speeds_are_sent_to_the_agent_next_time() {
    let lock = lock();
    let speed = line("speed-memory", "perf", "passed", "4100 GB/s", H200)
        .replace("\"gpu.0\"", "\"median\":\"4100.5\",\"gpu.0\"");
    let prints = report(&lock, H200, true).replace("{\"done\"", &format!("{speed}{{\"done\""));
    let scene = Scene::new(cdi(prints), &lock);
    let run = scene.verify(&["--level", "quick", "--record"]);
    assert!(run.stderr.contains("recorded 1 speeds as the baseline of this host"), "{}", run.stderr);
    assert!(!scene.requests.files().contains("recorded.memory"), "only level perf compares speeds");
    let run = scene.verify(&["--level", "perf"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(scene.requests.files().contains("recorded.memory=4100.5"), "{}", run.stderr);
    let scene = Scene::new(cdi(report(&lock, H200, true)), &lock);
    let run = scene.verify(&["--record"]);
    assert!(run.stderr.contains("no speeds measured: nothing recorded"), "{}", run.stderr);
}

#[test]
fn invalid_gpus_and_second_lock_are_usage_errors() {
    let run = program().run(&["verify", "a", "--gpus", "first"]);
    assert_message(&run, 2, &["invalid value `first` for `--gpus`", "nvidia-smi -L"]);
    assert_message(&program().run(&["verify", "a", "--gpu", "nonsense"]), 2, &["nonsense"]);
    assert_eq!(program().run(&["verify", "a", "--gpu", "sm_120", "--gpus", "0"]).code, 2);
    let run = program().run(&["verify", "a", "b", "--lock", "x.lock"]);
    assert_message(&run, 2, &["--lock"]);
}
