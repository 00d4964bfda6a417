//! The pages of `--html` and `maintain site`: bounds, bytes, and a real browser that must run nothing of a report.

mod browser_tests;
mod hostile;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use envforge::model::image::device_code::DeviceCode;
use envforge::model::verdict::{ImageExpectations, Verdict, judge};
use envforge::pages::{SizedComponent, SizedImage, diff_page, size_page};
use sha2::{Digest as _, Sha256};

use crate::gpu_daemon::GpuDaemon;
use crate::program::Program;
use crate::{assert_message, envforge, maintain, program, verify};

/// The most bytes of a page.
const LARGEST: usize = 500_000;

/// A report with every outcome, as `verify` keeps it.
fn report(name: &str) -> Verdict {
    let line = |id: &str, stage: &str, outcome: &str, detail: &str, more: &str| {
        format!(
            "{{\"id\":\"{id}\",\"stage\":\"{stage}\",\"outcome\":\"{outcome}\",\"detail\":\"{detail}\"{more}}}\n"
        )
    };
    let lines = line(
        "framework-version",
        "static",
        "passed",
        "torch 2.8.0+cu128",
        ",\"measured\":{\"value\":\"2.8.0+cu128\"},\"expected\":{\"value\":\"2.8.0+cu128\"}",
    ) + &line("one-cuda", "static", "passed", "one libcudart: 12.8.90", "")
        + &line("code-for-target", "static", "passed", "code for 7.5 8.0 8.6 9.0 10.0 12.0", "")
        + &line("nccl-broadcast", "gpu", "skipped", "one GPU", ",\"skip\":\"one-gpu\"")
        + &line(
            "driver",
            "gpu",
            "passed",
            "supports CUDA 12.8, 1 GPUs: NVIDIA H200 (sm_90)",
            ",\"measured\":{\"cuda\":\"12.8\",\"gpus\":\"1\"}",
        )
        + &line(
            "device",
            "gpu",
            "passed",
            "NVIDIA H200 (sm_90) 140 GiB; NVML agrees",
            ",\"measured\":{\"driver\":\"570.124.06\"}",
        )
        + &line("gemm-fp16", "gpu", "passed", "exact", ",\"measured\":{\"gpu.0\":\"NVIDIA H200 (sm_90)\"}")
        + &line(
            "convolution",
            "gpu",
            "failed",
            "CUDNN_STATUS_EXECUTION_FAILED at the second pass",
            ",\"hint\":\"run `envforge doctor`; another process may hold the memory of the GPU\"",
        )
        + &line(
            "speed-memory",
            "perf",
            "passed",
            "3100 GB/s, 65 % of the peak",
            ",\"measured\":{\"warning\":\"slow\",\"median\":\"3100\"}",
        )
        + "{\"done\":true,\"seconds\":41.5}\n";
    let image = envforge::model::image::info::ImageInfo {
        id: format!("sha256:{}", "a".repeat(64)),
        user: "1000:1000".to_owned(),
        digests: vec![format!("registry.example.com/team/torch@sha256:{}", "b".repeat(64))],
        ..Default::default()
    };
    let required = vec!["convolution".to_owned(), "gemm-fp16".to_owned(), "framework-version".to_owned()];
    let mut verdict = judge(
        &lines,
        "agent exited with code 0",
        &image,
        &ImageExpectations { required, ..Default::default() },
    );
    name.clone_into(&mut verdict.name);
    "full".clone_into(&mut verdict.level);
    "2026-11-23T12:00:00Z".clone_into(&mut verdict.checked);
    verdict.engine = Some("Docker 28.0.0".to_owned());
    verdict.lock = Some("c".repeat(64));
    verdict
}

/// What the agent lists of two libraries.
pub(crate) fn example_code() -> String {
    let lines = [
        r#"{"path":"/opt/env/lib/libtorch_cuda.so","size":1200000000,"code":{"sm_80":300000000,"sm_90":410000000,"compute_90":9000000}}"#,
        r#"{"path":"/opt/env/lib/libcublasLt.so.12","size":700000000,"code":{"sm_80":200000000,"sm_120":80000000}}"#,
        r#"{"path":"/opt/env/lib/libodd.so","size":90,"unknown":"unknown bytes at 0x10"}"#,
        r#"{"done":true,"seconds":1.5}"#,
    ];
    lines.join("\n")
}

/// An image by component and GPU architecture and two locks side by side, as pages for the book.
fn example_pages(folder: &Path) -> [PathBuf; 2] {
    let sizes = [
        ("base", 117_000_000, 3),
        ("system", 402_000_000, 2),
        ("CUDA libraries", 3_890_000_000, 1),
        ("framework", 2_410_000_000, 1),
        ("developer stack", 688_000_000, 0),
        ("added Python packages", 412_000_000, 0),
        ("toolkit", 6_000_000, 0),
        ("envforge's own", 2_000_000, 0),
    ];
    let components = sizes.map(|(name, size, shared_with)| SizedComponent { name, size, shared_with });
    let name = "pytorch-cuda:2.8.0-cu128-py3.12";
    let image = SizedImage { name, size: 7_927_000_000, own: 1_108_000_000, components: &components };
    let size = size_page(&image, &DeviceCode::parse(&example_code()).expect("lines of the agent"));
    let lock = |example: &str| {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example).join("envforge.lock");
        let bytes = std::fs::read(file).expect("a lock");
        envforge::model::lock::Lock::from_bytes("envforge.lock", &bytes).expect("a lock")
    };
    let (older, newer) = (lock("pytorch"), lock("cuda-extension"));
    let changes = older.changes(&newer);
    let diff = diff_page(&serde_json::json!({
        "from": "pytorch", "to": "cuda-extension", "changes": changes, "layers": null, "paths": null,
    }));
    let write = |name: &str, page: String| {
        let path = folder.join(name);
        std::fs::write(&path, page).expect("a folder of the test's own");
        path
    };
    [write("size.html", size), write("diff.html", diff)]
}

/// Keeps a report in the program's state folder, where `verify --last` finds it without an engine.
fn keep(program: &Program, verdict: &Verdict) {
    let folder = program.path("state/reports");
    std::fs::create_dir_all(&folder).expect("ours");
    let file = folder.join(format!("{}.json", verdict.image.trim_start_matches("sha256:")));
    std::fs::write(file, serde_json::to_vec(verdict).expect("JSON")).expect("ours");
}

/// Without an engine that answers.
fn offline() -> Program {
    let program = program();
    let nowhere = format!("unix://{}", program.path("no.sock").display());
    program.with("DOCKER_HOST", nowhere)
}

fn read(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).expect("a page")
}

/// Asserts what holds of every page: bounded, self-contained, closed by a policy whose hashes are those of its style and script.
#[track_caller]
fn assert_page(page: &str) {
    assert!(page.len() <= LARGEST, "{} bytes", page.len());
    assert!(page.starts_with("<!doctype html>\n"), "{}", &page[..80.min(page.len())]);
    let between = |from: &str, to: &str| {
        let start = page.find(from).expect(from) + from.len();
        &page[start..start + page[start..].find(to).expect(to)]
    };
    let hash = |text: &str| {
        format!("sha256-{}", base64::engine::general_purpose::STANDARD.encode(Sha256::digest(text)))
    };
    let policy = format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        hash(between("<style>", "</style>")),
        hash(between("<script>", "</script>"))
    );
    assert_eq!(between("http-equiv=\"Content-Security-Policy\" content=\"", "\""), policy);
    for (what, count) in
        [("<script", 1), ("<style", 1), (" style=", 0), ("<img", 0), ("<iframe", 0), ("<link", 0)]
    {
        assert_eq!(page.matches(what).count(), count, "{what}");
    }
    for what in ["src=", "javascript:", "url(", "@import"] {
        assert!(!page.contains(what), "{what}");
    }
}

/// The addresses of a page's links.
fn links(page: &str) -> Vec<&str> {
    page.split("href=\"").skip(1).map(|rest| rest.split('"').next().expect("a quote")).collect()
}

#[test]
fn verification_page_has_what_a_ticket_needs() {
    let program = offline();
    keep(&program, &report("registry.example.com/team/torch:2.8"));
    let run =
        program.run(&["verify", "registry.example.com/team/torch:2.8", "--last", "--html", "report.html"]);
    assert_eq!(run.code, 1, "the report failed: {}", run.stderr);
    let page = read(program.path("report.html"));
    assert_page(&page);
    assert_eq!(links(&page), Vec::<&str>::new());
    for part in [
        "registry.example.com/team/torch:2.8",
        "failed: 1 of ",
        "NVIDIA H200 (sm_90)",
        "570.124.06, supports CUDA 12.8",
        "Docker 28.0.0",
        "2026-11-23T12:00:00Z, level full, 41.5 s",
        &"a".repeat(64),
        &"b".repeat(64),
        &"c".repeat(64),
        "CUDNN_STATUS_EXECUTION_FAILED",
        "run `envforge doctor`",
        "Skipped: one-gpu",
        "framework 2.8.0+cu128",
    ] {
        assert!(page.contains(part), "`{part}` is missing");
    }
    // Every check has its row.
    let json = program.run(&["verify", "registry.example.com/team/torch:2.8", "--last", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.stdout).expect("JSON");
    let checks = json["checks"].as_array().expect("a list");
    assert_eq!(page.matches("<tr data-group=").count(), checks.len());
    for check in checks {
        assert!(page.contains(&format!("<code>{}</code>", check["id"].as_str().expect("an id"))), "{check}");
    }
}

#[test]
fn verification_by_an_engine_writes_lock_and_engine() {
    let lock = verify::lock();
    let scene = verify::Scene::new(
        GpuDaemon {
            cdi: &["nvidia.com/gpu=all"],
            prints: verify::report(&lock, verify::H200, true),
            ..GpuDaemon::default()
        },
        &lock,
    );
    let run = scene.verify(&["--html", "report.html", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(
        (json["engine"].as_str(), json["lock"].as_str()),
        (Some("Docker 28.0.0"), Some(lock.hash().as_str()))
    );
    let page = read(scene.program.path("report.html"));
    assert_page(&page);
    assert!(
        page.contains("Docker 28.0.0") && page.contains(&lock.hash()) && page.contains("verdict good"),
        "{page}"
    );
}

#[test]
fn same_report_gives_the_same_bytes() {
    let pages = || {
        let program = offline();
        keep(&program, &report("team/torch:1"));
        let run = program.run(&["verify", "team/torch:1", "--last", "--html", "verify.html"]);
        assert!(run.code <= 1, "{}", run.stderr);
        assert_eq!(maintain(&program, &["site", "site"]).code, 0);
        let mut all = BTreeMap::new();
        for folder in ["", "site"] {
            for entry in std::fs::read_dir(program.path(folder)).expect("a folder") {
                let path: PathBuf = entry.expect("an entry").path();
                if path.extension().is_some_and(|extension| extension == "html") {
                    all.insert(path.file_name().expect("a name").to_owned(), read(&path));
                }
            }
        }
        all
    };
    let (one, other) = (pages(), pages());
    assert!(one.len() > 100, "{} pages", one.len());
    assert!(one == other, "the bytes differ");
}

#[test]
fn site_has_a_page_for_each_gpu_and_its_links_lead_there() {
    let program = program();
    let run = maintain(&program, &["site", "public"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let files: Vec<_> = run.stdout.lines().filter_map(|line| line.rsplit('/').next()).collect();
    let matrix = envforge::model::compat::embedded();
    assert_eq!(files.len(), matrix.gpus.len() + 1);
    for file in &files {
        let page = read(program.path("public").join(file));
        assert_page(&page);
        let links = links(&page);
        assert!(!links.is_empty() && links.iter().all(|link| files.contains(link)), "{file}: {links:?}");
    }
    let index = read(program.path("public/index.html"));
    assert_eq!(links(&index).len(), matrix.gpus.len());
    let all = envforge(&["list", "--all", "--json"]);
    let all: serde_json::Value = serde_json::from_str(&all.stdout).expect("JSON");
    for entry in all["entries"].as_array().expect("a list") {
        assert!(
            index.contains(&format!("<code>{}</code>", entry["spec"].as_str().expect("a spec"))),
            "{entry}"
        );
    }
    assert_eq!(maintain(&program, &["site"]).code, 2);
    std::fs::write(program.path("taken"), "a file").expect("ours");
    assert_message(&maintain(&program, &["site", "taken"]), 3, &["taken"]);
}

#[test]
fn size_by_gpu_lists_the_code_of_every_library() {
    let lock = verify::lock();
    let daemon = GpuDaemon { code: example_code(), ..verify::cdi(String::new()) };
    let scene = verify::Scene::new(daemon, &lock);
    let run = scene.program.run(&["size", verify::SPEC, "--by", "gpu", "--json"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let json: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    let targets = serde_json::json!(
        {"sm_80": 500_000_000, "sm_90": 410_000_000, "sm_120": 80_000_000, "compute_90": 9_000_000}
    );
    assert_eq!(json["targets"], targets);
    assert_eq!(json["libraries"][0]["code"]["sm_90"], 410_000_000);
    assert_eq!(json["libraries"][2]["unknown"], "unknown bytes at 0x10");
    let container = &scene.requests.created(|command| command.contains("code"))[0];
    let host = &container["HostConfig"];
    assert_eq!((&host["NetworkMode"], &host["ReadonlyRootfs"]), (&"none".into(), &true.into()), "{host}");
    let run = scene.program.run(&["size", verify::SPEC, "--html", "size.html"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let page = read(scene.program.path("size.html"));
    assert_page(&page);
    for part in [
        "sm_120",
        "libcublasLt.so.12",
        "unknown bytes at 0x10",
        "compute_90: 9 MB, 0.9 %",
        "<span class=\"c0\"></span>machine code</li>",
        "<span class=\"c1\"></span>PTX</li>",
    ] {
        assert!(page.contains(part), "`{part}` is missing");
    }
}

#[test]
fn size_by_gpu_of_an_incomplete_list_is_an_error() {
    let lock = verify::lock();
    let code = example_code().lines().take(2).collect::<Vec<_>>().join("\n");
    let scene = verify::Scene::new(GpuDaemon { code, ..verify::cdi(String::new()) }, &lock);
    let run = scene.program.run(&["size", verify::SPEC, "--by", "gpu"]);
    assert_message(&run, 3, &["cannot read the device code", "the list is incomplete"]);
}
