//! `doctor`: hosts played by a fake NVML, and messages from stdin and arguments.

use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use crate::program;
use crate::program::Program;
use crate::terminal::run_on_terminal;

/// A folder with a `libnvidia-ml.so.1` that plays the host its variables describe.
static NVML: LazyLock<TempDir> = LazyLock::new(|| {
    // Below the target folder: a static is never dropped, so nobody removes this.
    let made = tempfile::Builder::new().prefix("fake-nvml-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
    let folder = made.expect("a folder");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake_nvml_host.c");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(folder.path().join("libnvidia-ml.so.1"))
        .arg(source)
        .output()
        .expect("a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    folder
});

/// A host: what the fake NVML is told, and the findings that must come out of it with their severity.
struct Host {
    name: &'static str,
    fake: &'static [(&'static str, &'static str)],
    finds: &'static [(&'static str, &'static str)],
    says: &'static [&'static str],
}

const H200: &str = "NVIDIA H200|9.0|141|-1|1|1|18";

const HOSTS: &[Host] = &[
    Host {
        name: "one H200",
        fake: &[("FAKE_GPUS", H200), ("FAKE_DRIVER", "570.124.06"), ("FAKE_CUDA", "12080")],
        finds: &[("driver", "ok"), ("gpu", "ok")],
        says: &["driver 570.124.06 (supports CUDA 12.8)", "GPU 0: NVIDIA H200 (sm_90), 141 GiB, 18 NVLink"],
    },
    Host {
        name: "eight H100",
        fake: &[("FAKE_GPUS", "8*NVIDIA H100 80GB HBM3|9.0|80|0|1|1|18"), ("FAKE_DRIVER", "550.54.15")],
        finds: &[("gpu", "ok"), ("gpu-topology", "ok")],
        says: &["GPU 7: NVIDIA H100 80GB HBM3 (sm_90), 80 GiB", "GPUs are connected over an NVLink switch"],
    },
    Host {
        name: "four A100, bridged in twos",
        fake: &[
            ("FAKE_GPUS", "4*NVIDIA A100 80GB PCIe|8.0|80|0|1|1|12"),
            ("FAKE_DRIVER", "550.54.15"),
            ("FAKE_LINKED", "1"),
            ("FAKE_WAY", "30"),
        ],
        finds: &[("gpu-topology", "ok")],
        says: &["0-1, 2-3 over 12 NVLink connections, the others over one PCIe host bridge"],
    },
    Host {
        name: "two RTX 4090 on two processors",
        fake: &[
            ("FAKE_GPUS", "2*NVIDIA GeForce RTX 4090|8.9|24|-1|1|0|0"),
            ("FAKE_DRIVER", "560.35.03"),
            ("FAKE_WAY", "50"),
        ],
        finds: &[("gpu-topology", "ok")],
        says: &["over PCIe and the link between NUMA nodes"],
    },
    Host {
        name: "an old V100 on an old driver",
        fake: &[
            ("FAKE_GPUS", "Tesla V100-SXM2-16GB|7.0|16|-1|1|1|6"),
            ("FAKE_DRIVER", "450.80.02"),
            ("FAKE_CUDA", "11000"),
        ],
        finds: &[("driver", "ok")],
        says: &["driver 450.80.02 (supports CUDA 11.0)"],
    },
    Host {
        name: "a driver too old to say its CUDA",
        fake: &[
            ("FAKE_GPUS", "Tesla K80|3.7|12|-1|1|1|0"),
            ("FAKE_DRIVER", "470.256.02"),
            ("FAKE_CUDA", "-1"),
        ],
        finds: &[("driver", "ok")],
        says: &["driver 470.256.02 (supports CUDA 11.4)", "GPU 0: Tesla K80 (sm_37)"],
    },
    Host {
        name: "a workstation without persistence",
        fake: &[("FAKE_GPUS", "NVIDIA GeForce RTX 4090|8.9|24|-1|0|0|0"), ("FAKE_DRIVER", "560.35.03")],
        finds: &[("persistence-off", "warning")],
        says: &["the first call of each program takes seconds"],
    },
    Host {
        name: "an A100 cut by MIG",
        fake: &[("FAKE_GPUS", "NVIDIA A100-SXM4-80GB|8.0|80|1|1|1|12"), ("FAKE_DRIVER", "535.104.05")],
        finds: &[("gpu", "ok")],
        says: &["MIG enabled"],
    },
    Host {
        name: "two kinds that one stack serves",
        fake: &[
            ("FAKE_GPUS", "Tesla T4|7.5|16|-1|1|1|0;NVIDIA L40S|8.9|48|-1|1|1|0"),
            ("FAKE_DRIVER", "570.124.06"),
        ],
        finds: &[("gpus-differ", "warning")],
        says: &["GPUs of 2 kinds: sm_75, sm_89; the newest PyTorch for all of them is pytorch-cuda:"],
    },
    Host {
        name: "two kinds that no stack serves",
        fake: &[
            ("FAKE_GPUS", "Tesla K80|3.7|12|-1|1|1|0;NVIDIA B200|10.0|180|0|1|1|18"),
            ("FAKE_DRIVER", "580.65.06"),
        ],
        finds: &[("gpus-differ", "error")],
        says: &["build one image per GPU"],
    },
    Host {
        name: "libraries of another version than the module",
        fake: &[("FAKE_NVML_INIT", "18")],
        finds: &[("driver-library-mismatch", "error")],
        says: &["Driver/library version mismatch", "reboot the host or reload the nvidia modules"],
    },
    Host {
        name: "no permission",
        fake: &[("FAKE_NVML_INIT", "4")],
        finds: &[("nvml-no-permission", "error")],
        says: &["Insufficient Permissions"],
    },
    Host {
        name: "a container that lost its GPU",
        fake: &[("FAKE_NVML_INIT", "999")],
        finds: &[("gpu-lost", "error")],
        says: &["systemctl daemon-reload"],
    },
    Host {
        name: "one GPU of two is lost",
        fake: &[
            ("FAKE_GPUS", "2*NVIDIA A40|8.6|48|-1|1|1|0"),
            ("FAKE_DRIVER", "550.54.15"),
            ("FAKE_LOST", "1"),
        ],
        finds: &[("gpu", "ok"), ("gpu-silent", "error")],
        says: &["GPU 1 does not respond: GPU is lost"],
    },
    Host {
        name: "a driver without a GPU",
        fake: &[("FAKE_GPUS", ""), ("FAKE_DRIVER", "550.54.15")],
        finds: &[("no-gpu", "warning")],
        says: &["the driver is loaded but lists no GPU"],
    },
    Host {
        name: "a module that is not loaded",
        fake: &[("FAKE_NVML_INIT", "9")],
        finds: &[("no-driver", "warning")],
        says: &["no NVIDIA driver on this machine"],
    },
    Host {
        name: "a version that is none",
        fake: &[("FAKE_GPUS", H200), ("FAKE_DRIVER", "N/A")],
        finds: &[("driver-silent", "error")],
        says: &["invalid driver version `N/A`"],
    },
    Host {
        name: "more GPUs than there can be",
        fake: &[("FAKE_GPUS", "4096*NVIDIA H200|9.0|141|-1|1|1|0"), ("FAKE_DRIVER", "570.124.06")],
        finds: &[("driver-silent", "error")],
        says: &["implausible GPU count 4096"],
    },
    Host {
        name: "a capability no GPU has",
        fake: &[("FAKE_GPUS", "NVIDIA H200|-7.3|141|-1|1|1|0"), ("FAKE_DRIVER", "570.124.06")],
        finds: &[("gpu-silent", "error")],
        says: &["implausible value from the driver"],
    },
];

fn doctor(fake: &[(&str, &str)], args: &[&str]) -> (i32, Value) {
    let mut program = program()
        .with("LD_LIBRARY_PATH", NVML.path().to_string_lossy())
        .with("DOCKER_HOST", "unix:///nonexistent/docker.sock");
    for (name, value) in fake {
        program.set(name, value);
    }
    let run = program.run(&[&["doctor"], args].concat());
    let value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{}{}", run.stdout, run.stderr));
    (run.code, value)
}

#[test]
fn every_host_gets_its_findings() {
    for host in HOSTS {
        let (code, report) = doctor(host.fake, &["--json"]);
        // The engine is out of reach on all of them.
        assert_eq!((code, &report["schema"]), (1, &Value::from(1)), "{}", host.name);
        let all = report["findings"].as_array().expect("a list");
        for (id, severity) in host.finds {
            let found = all.iter().find(|finding| finding["id"] == *id);
            let found = found.unwrap_or_else(|| panic!("{}: no {id} in {all:#?}", host.name));
            assert_eq!(found["severity"], *severity, "{}: {found}", host.name);
        }
        let lines: Vec<_> = all.iter().map(|one| format!("{} {}", one["text"], one["hint"])).collect();
        let text = lines.join("\n");
        for part in host.says {
            assert!(text.contains(part), "{}: `{part}` is not in\n{text}", host.name);
        }
        let errors = |id: &str| all.iter().any(|one| one["id"] == id && one["severity"] == "error");
        assert!(errors("engine"), "{}: {text}", host.name);
    }
}

#[test]
fn text_output_fits_80_columns() {
    let host = program()
        .with("LD_LIBRARY_PATH", NVML.path().to_string_lossy())
        .with("DOCKER_HOST", "unix:///nonexistent/docker.sock")
        .with("FAKE_GPUS", "2*Tesla K80|3.7|12|-1|0|1|0")
        .with("FAKE_DRIVER", "450.80.02")
        .with("NO_COLOR", "1");
    let error = "RuntimeError: CUDA error: no kernel image is available for execution on the device";
    for args in [&["doctor"][..], &["doctor", "--explain", error]] {
        let text = run_on_terminal(host.command(args), "").stdout;
        // A path or command longer than a line stays whole.
        let long = text.lines().find(|line| line.chars().count() > 80 && line.trim().contains(' '));
        assert!(text.lines().count() > 3 && long.is_none(), "{long:?} of\n{text}");
    }
}

#[test]
fn hanging_driver_is_given_up() {
    // Whoever waits for it gets an answer in the end, and reports no fault.
    let (code, report) = doctor(&[("FAKE_HANG", "300")], &["--json"]);
    assert_eq!(code, 1);
    assert!(report["findings"].to_string().contains("driver-hangs"), "{report}");
}

#[test]
fn report_contains_facts_but_no_addresses() {
    let secret = [
        ("FAKE_GPUS", H200),
        ("FAKE_DRIVER", "570.124.06"),
        ("ENVFORGE_INDEX", "https://u:hunter2@i.test/x"),
    ];
    let (_, report) = doctor(&secret, &["--report"]);
    assert_eq!(report["gpus"]["driver"], "570.124.06");
    assert_eq!(report["gpus"]["gpus"][0]["compute_capability"], "9.0");
    assert!(report["system"].is_object() && report["matrix"].is_string());
    let text = report.to_string();
    assert!(!text.contains("hunter2") && !text.contains("i.test"), "{text}");
}

#[test]
fn explain_matches_known_messages_only() {
    let run = crate::envforge(&[
        "doctor",
        "--explain",
        "docker: could not select device driver \"\" with capabilities: [[gpu]].",
    ]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.starts_with("no-gpu-runtime: ") && run.stdout.contains("cure: "), "{}", run.stdout);
    let run = crate::envforge(&["doctor", "--explain", "segmentation fault in my own program"]);
    assert_eq!((run.code, run.stdout.as_str()), (1, ""));
    assert!(run.stderr.contains("no known error found in this text"), "{}", run.stderr);
    let run = crate::envforge(&["doctor", "--json", "--explain", "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"]);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(value["findings"][0]["id"], "ptx-too-new");
}

#[test]
fn explain_shows_what_this_machine_has_of_what_the_fix_needs() {
    let here = |error: &str| {
        let fake = [("FAKE_GPUS", H200), ("FAKE_DRIVER", "550.54.15"), ("FAKE_CUDA", "12040")];
        let (_, report) = doctor(&fake, &["--json", "--explain", error]);
        report["findings"][0]["here"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(here("CUDA_ERROR_UNSUPPORTED_PTX_VERSION"), "driver 550.54.15 (supports CUDA 12.4)");
    let gpus = here("no kernel image is available for execution on the device");
    assert!(gpus.contains("H200") && gpus.contains("sm_90"), "{gpus}");
    assert_eq!(
        here("ModuleNotFoundError: No module named 'flash_attn'"),
        "",
        "it needs no fact of a machine"
    );
}

#[test]
fn explain_of_a_file_that_is_not_there_is_an_error() {
    for (name, why) in
        [("./train", "no such file or directory"), ("slurm-1.out", "no such"), ("/tmp", "is a directory")]
    {
        let run = crate::envforge(&["doctor", "--explain", name]);
        assert_eq!((run.code, run.stdout.as_str()), (3, ""), "{}", run.stderr);
        assert!(run.stderr.contains(name) && run.stderr.contains(why), "{}", run.stderr);
    }
}

#[test]
fn explain_marks_the_lines_of_a_log() {
    let program = program();
    let log = "epoch 1\nRuntimeError: CUDA error: no kernel image is available for execution on the device\nepoch 2\n";
    let file = program.path("log");
    std::fs::write(&file, log).expect("ours");
    let explain = |more: &[&str]| {
        let mut command = program.command(&[&["doctor", "--explain", "-"], more].concat());
        command.stdin(std::fs::File::open(&file).expect("ours"));
        crate::Run::of(&command.output().expect("it starts"))
    };
    let run = explain(&[]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(
        run.stdout.starts_with("line 2      no-code-for-gpu  RuntimeError: CUDA error"),
        "{}",
        run.stdout
    );
    assert!(run.stdout.contains("\nno-code-for-gpu: "), "{}", run.stdout);
    let value: Value = serde_json::from_str(&explain(&["--json"]).stdout).expect("JSON");
    assert_eq!(value["lines"][0]["line"], 2, "{value}");
    assert_eq!(value["findings"][0]["id"], value["lines"][0]["id"], "{value}");
}

#[test]
fn explain_names_the_cause_and_its_consequence() {
    let log = "Failed to load library libonnxruntime_providers_cuda.so\n\
               OSError: libcublasLt.so.12: cannot open shared object file: No such file or directory\n\
               torch 2.7.0+cu128\n\
               OSError: [Errno 28] No space left on device: '/data/out'\n";
    let run = crate::envforge(&["doctor", "--json", "--explain", log]);
    let value: Value = serde_json::from_str(&run.stdout).expect("JSON");
    let ids: Vec<_> =
        value["findings"].as_array().expect("a list").iter().map(|found| &found["id"]).collect();
    assert_eq!(ids, ["cuda-library-missing", "disk-full"]);
    assert_eq!(value["findings"][0]["role"], "cause");
    assert_eq!(value["findings"][1]["role"], "consequence");
    assert_eq!(value["findings"][0]["line"], 2);
    let hint = value["findings"][0]["hint"].as_str().expect("a text");
    assert!(hint.contains("pytorch-cuda:2.7.0-cu128") && hint.contains("nvidia-cublas-cu12"), "{hint}");
    let run = crate::envforge(&["doctor", "--explain", log]);
    assert!(run.stdout.contains("order: "), "{}", run.stdout);
}

#[test]
fn explain_gives_the_next_fix_after_one_that_was_tried() {
    let error = "RuntimeError: DataLoader worker (pid 13) is killed by signal: Bus error.";
    let run = crate::envforge(&["doctor", "--explain", error]);
    assert!(run.stdout.contains("--shm-size=1g"), "{}", run.stdout);
    let log = format!("$ docker run --ipc=host --gpus all trainer\n{error}\n");
    let run = crate::envforge(&["doctor", "--explain", &log]);
    assert!(run.stdout.contains("num_workers=0") && !run.stdout.contains("--shm-size=1g"), "{}", run.stdout);
}

#[test]
fn repository_of_layers_is_shown_with_its_rights() {
    let mut program =
        program().with("DOCKER_HOST", "unix:///nonexistent.sock").with("ENVFORGE_CONFIG", "config.toml");
    let config = "[registry]\nlayers = 'box:5000/team/layers'\n";
    std::fs::write(program.path("config.toml"), config).expect("ours");
    let shown = |program: &Program, rights: &str| {
        let run = program.run(&["doctor", "-v"]);
        let from = program.path("config.toml");
        let from = from.file_name().expect("a name").to_string_lossy().into_owned();
        let line = format!("ok       finished layers: box:5000/team/layers ({rights}) (from {from})\n");
        assert!(run.stdout.contains(&line), "`{line}` is missing in:\n{}", run.stdout);
    };
    shown(&program, "read only");
    program.set("ENVFORGE_LAYERS_WRITE", "true");
    shown(&program, "read and written");
    for (name, value, allowed) in [
        ("ENVFORGE_LAYERS_WRITE", "maybe", "`true` or `false`"),
        ("ENVFORGE_LAYERS", "team/layers", "HOST/NAME or HOST:PORT/NAME, without a tag"),
    ] {
        program.set(name, value);
        let run = program.run(&["plan", "pytorch-cuda:2.8-cu128"]);
        crate::assert_message(&run, 2, &[name, value, allowed]);
    }
}

#[test]
fn download_sources_are_shown_without_secrets() {
    let mut program = program()
        .with("DOCKER_HOST", "unix:///nonexistent.sock")
        .with("ENVFORGE_INDEX", "https://wheels.test/simple")
        .with("ENVFORGE_FRAMEWORK_INDEX", "https://frame.test/whl/{cuda}?key=hunter3")
        .with("ENVFORGE_INDEX_OWN", "https://me:hunter4@own.test/simple")
        .with("ENVFORGE_DEBIAN_MIRROR", "http://debian.test/debian")
        .with("HTTPS_PROXY", "http://me:hunter5@proxy.test:3128")
        .with("http_proxy", "me:hunter6@proxy.test:3128")
        .with("NO_PROXY", "localhost,.lan")
        .with("ENVFORGE_CA_BUNDLE", "/nonexistent.pem");
    std::fs::write(program.path("home/.netrc"), "machine wheels.test login me password hunter7\n")
        .expect("ours");
    let run = program.run(&["doctor", "-v"]);
    for line in [
        "ok       package index: https://***@wheels.test/simple (from ENVFORGE_INDEX)\n",
        "ok       framework index: https://frame.test/whl/{cuda}?*** (from ENVFORGE_FRAMEWORK_INDEX)\n",
        "ok       package index `own`: https://***@own.test/simple (from ENVFORGE_INDEX_OWN)\n",
        "ok       Debian mirror: http://debian.test/debian (from ENVFORGE_DEBIAN_MIRROR)\n",
        "ok       proxy HTTPS_PROXY: http://***@proxy.test:3128/ (from HTTPS_PROXY)\n",
        "ok       proxy HTTP_PROXY: proxy.test:3128 (from http_proxy)\n",
        "ok       proxy NO_PROXY: localhost,.lan (from NO_PROXY)\n",
        "warning  CA certificates: `/nonexistent.pem` is not a file (from ENVFORGE_CA_BUNDLE)\n",
    ] {
        assert!(run.stdout.contains(line), "`{line}` is missing in:\n{}", run.stdout);
    }
    let short = program.run(&["doctor"]).stdout;
    assert!(!short.contains("ok       ") && short.contains("warning  CA certificates"), "{short}");
    assert!(short.trim_end().ends_with(" ok (`-v` shows them)"), "{short}");
    program.set("ENVFORGE_INDEX", "hunter8");
    let other = program.run(&["doctor", "--json"]);
    assert!(
        other.stdout.contains("package index: not an `http://` or `https://` address"),
        "{}",
        other.stdout
    );
    for said in [run.stdout, run.stderr, other.stdout, other.stderr] {
        assert!(!said.contains("hunter"), "{said}");
    }
}
