//! The agent's GPU checks against fake libraries: start-up failures are distinguished, missing computation never passes,
//! one wrong element is detected.

use serde_json::Value;

use super::fake_gpu::agent;

/// Statuses of cuInit, their names, and a word of each fix.
#[test]
#[ignore = "needs g++"]
fn startup_status_has_its_own_fix() {
    let cases = [
        ("34", "CUDA_ERROR_STUB_LIBRARY", "stubs"),
        ("46", "CUDA_ERROR_DEVICE_UNAVAILABLE", "exclusive"),
        ("100", "CUDA_ERROR_NO_DEVICE", "--gpus all"),
        ("802", "CUDA_ERROR_SYSTEM_NOT_READY", "fabric manager"),
        ("803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "own libcuda"),
        ("804", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "cuda-compat"),
        ("999", "CUDA_ERROR_UNKNOWN", "nvidia-uvm"),
    ];
    for (code, name, cure) in cases {
        let answer = agent(&["run", "driver"], &[("FAKE_CUINIT", code)]);
        let (outcome, detail) = answer.told("driver");
        assert_eq!((answer.code, outcome), (1, "failed"), "{code}");
        assert!(detail.contains(name) && detail.contains("supports CUDA 12.8"), "{detail}");
        let hint = answer.check("driver")["hint"].as_str().unwrap_or_default().to_owned();
        assert!(format!("{detail} {hint}").contains(cure), "{code}: {detail}: {hint}");
    }
}

#[test]
#[ignore = "needs g++"]
fn unknown_status_is_reported_as_a_number() {
    let answer = agent(&["run", "driver"], &[("FAKE_CUINIT", "12345")]);
    assert!(answer.told("driver").1.contains("cuInit returned 12345, an unknown status"));
}

#[test]
#[ignore = "needs g++"]
fn zero_gpus_fail_even_when_the_driver_succeeds() {
    let answer = agent(&["run", "driver"], &[("FAKE_COUNT", "0")]);
    assert_eq!(answer.told("driver").0, "failed");
    assert!(answer.told("driver").1.contains("0 GPUs"));
    let answer = agent(&["run", "driver"], &[("FAKE_COUNT_RC", "3")]);
    assert!(answer.told("driver").1.contains("CUDA_ERROR_NOT_INITIALIZED"));
}

#[test]
#[ignore = "needs g++"]
fn crashing_driver_is_reported_and_stops_the_rest() {
    let answer = agent(&["quick", "--stage", "gpu"], &[("FAKE_CRASH", "1")]);
    assert_eq!(answer.code, 1);
    assert!(answer.told("driver").1.contains("signal 6"));
    assert_eq!(answer.told("gemm-fp32-own"), ("errored", "not run: the check `driver` did not pass"));
    assert_eq!(answer.lines.last().expect("an end")["done"], true);
}

/// The worst fake: every call succeeds and nothing is computed.
#[test]
#[ignore = "needs g++"]
fn driver_without_computation_fails_every_kernel_check() {
    let answer = agent(&["run", "memory", "gemm-own", "conv-own", "gemm-cublas", "conv-cudnn", "nccl"], &[]);
    for id in [
        "memory-pattern",
        "arithmetic-own",
        "gemm-fp32-own",
        "gemm-tf32-own",
        "gemm-fp16-own",
        "gemm-bf16-own",
        "conv-own",
        "gemm-fp64-cublas",
        "gemm-int8-cublas",
        "gemm-fp8-cublas",
        "conv-cudnn-forward",
        "conv-cudnn-backward-data",
        "conv-cudnn-backward-filter",
        "nccl-all-reduce",
    ] {
        assert_eq!(answer.told(id).0, "failed", "{id}");
    }
}

#[test]
#[ignore = "needs g++"]
fn correct_results_pass_and_name_the_gpu() {
    let words = [
        "run",
        "driver",
        "memory",
        "gemm-own",
        "conv-own",
        "gemm-cublas",
        "gemm-large",
        "conv-cudnn",
        "nccl",
    ];
    let answer = agent(&words, &[("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "2"), ("FAKE_NVML", "1")]);
    for line in answer.lines.iter().filter(|line| line["id"].is_string()) {
        assert_eq!(line["outcome"], "passed", "{line:#}");
        assert_eq!(line["stage"], "gpu");
        assert!(line["measured"]["gpu.0"].is_string(), "{line:#}");
    }
    assert_eq!(answer.code, 0);
    assert_eq!(answer.check("device")["measured"]["driver"], "570.86.15");
    assert_eq!(answer.told("nccl-transport").1, "P2P/CUMEM (2 channels)");
}

#[test]
#[ignore = "needs g++"]
fn one_wrong_element_fails_the_check() {
    let words = ["run", "memory", "gemm-own", "conv-own", "gemm-cublas", "gemm-large", "conv-cudnn", "nccl"];
    let variables = [("FAKE_COMPUTE", "1"), ("FAKE_WRONG", "1"), ("FAKE_COUNT", "2")];
    let answer = agent(&words, &variables);
    let spared = ["memory-copies", "memory-peers", "arithmetic-own", "nccl-transport"];
    for line in answer.lines.iter().filter(|line| line["id"].is_string()) {
        let spared = spared.iter().any(|id| line["id"] == **id);
        assert!(spared || line["outcome"] == "failed", "{line:#}");
    }
    let corrupt = agent(&["run", "memory"], &[("FAKE_COMPUTE", "1"), ("FAKE_CORRUPT", "1")]);
    assert_eq!(corrupt.told("memory-copies").0, "failed");
}

/// NVRTC 10.2 has neither a list of architectures nor machine code; cuBLAS 10 names the arithmetic by a data type.
#[test]
#[ignore = "needs g++"]
fn libraries_of_cuda_10_are_tested() {
    let answer = agent(
        &["run", "nvrtc", "gemm-own", "gemm-cublas"],
        &[("FAKE_COMPUTE", "1"), ("FAKE_OLD", "1"), ("FAKE_CC", "75")],
    );
    assert_eq!((answer.told("nvrtc").0, &answer.check("nvrtc")["skip"]), ("skipped", &"not-offered".into()));
    assert_eq!(answer.check("gemm-fp16-own")["measured"]["target"], "compute_70, made ahead");
    for precision in ["fp64", "fp32", "fp16", "int8"] {
        let id = format!("gemm-{precision}-cublas");
        assert_eq!(answer.told(&id).0, "passed", "{:#}", answer.check(&id));
        assert_eq!(answer.check(&id)["measured"]["cublas"], "10202");
    }
}

#[test]
#[ignore = "needs g++"]
fn peers_are_copied_through_the_host_and_directly() {
    let both = agent(&["run", "memory"], &[("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "2")]);
    let expected = ("passed", "2 pairs of GPUs through the host, 2 directly");
    assert_eq!(both.told("memory-peers"), expected);
    for way in ["through the host", "directly"] {
        let variables = [("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "3"), ("FAKE_BAD_PEERS", way)];
        let answer = agent(&["run", "memory"], &variables);
        let (outcome, detail) = answer.told("memory-peers");
        assert_eq!(outcome, "failed", "{way}");
        assert!(detail.contains(&format!("GPU 0 to GPU 1 {way}: first wrong byte")), "{detail}");
    }
}

#[test]
#[ignore = "needs g++"]
fn unsupported_precision_is_skipped() {
    let answer = agent(&["run", "gemm-own", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_CC", "75")]);
    for (id, outcome) in [
        ("gemm-fp32-own", "passed"),
        ("gemm-fp16-own", "passed"),
        ("gemm-bf16-own", "skipped"),
        ("gemm-tf32-cublas", "skipped"),
        ("gemm-int8-cublas", "passed"),
        ("gemm-fp8-cublas", "skipped"),
    ] {
        assert_eq!(answer.told(id).0, outcome, "{id}");
        let reason = if outcome == "skipped" { Value::from("compute-capability") } else { Value::Null };
        assert_eq!(answer.check(id)["skip"], reason, "{id}");
    }
}

/// All of the memory of a GPU that shares the host's is the host's: taking it would end other programs.
#[test]
#[ignore = "needs g++"]
fn memory_of_the_host_is_not_taken_whole() {
    let answer =
        |integrated| agent(&["run", "memory-all"], &[("FAKE_COMPUTE", "1"), ("FAKE_INTEGRATED", integrated)]);
    assert_eq!(answer("0").told("memory-all").0, "passed");
    let shared = answer("1");
    assert_eq!(shared.told("memory-all").0, "skipped");
    assert_eq!(shared.check("memory-all")["skip"], "not-offered");
}

/// A GPU in exclusive mode gives a second process error 46: the children must follow each other.
#[test]
#[ignore = "needs g++"]
fn exclusive_gpu_is_not_shared_by_the_children() {
    let folder = tempfile::tempdir().expect("a folder");
    let lock = folder.path().join("lock");
    let lock = lock.to_str().expect("text");
    let words = ["run", "driver", "gemm-own", "conv-own", "conv-cudnn"];
    let answer = agent(&words, &[("FAKE_COMPUTE", "1"), ("FAKE_COMPUTE_MODE", "3"), ("FAKE_LOCK", lock)]);
    assert_eq!(answer.code, 0, "{:#?}", answer.lines);
}

/// Without the persistence daemon a GPU that nobody holds is shut down between the checks.
#[test]
#[ignore = "needs g++"]
fn gpu_is_held_open_while_the_checks_run() {
    let clients = |more: &[(&str, &str)]| {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let path = file.path().to_str().expect("text");
        let variables = [("FAKE_COMPUTE", "1"), ("FAKE_CLIENTS", path), ("FAKE_FREE", "4096")];
        let answer = agent(&["run", "driver", "gemm-own", "conv-own"], &[&variables, more].concat());
        assert_eq!(answer.code, 0, "{:#?}", answer.lines);
        let mut held = 0;
        let text = fs_err::read_to_string(path).expect("readable");
        let counts = text.lines().map(|line| {
            held += if line.starts_with('+') { 1 } else { -1 };
            held
        });
        counts.collect::<Vec<i32>>()
    };
    // The driver's process comes and goes; a killed one does not say that it ends.
    let held = clients(&[]);
    assert_eq!(held[..2], [1, 0], "{held:?}");
    assert_eq!(held.last(), Some(&1), "the holder is killed at the end: {held:?}");
    for without in [("FAKE_COMPUTE_MODE", "3"), ("FAKE_FREE", "1024")] {
        let held = clients(&[without]);
        assert_eq!(held.last(), Some(&0), "{without:?}: {held:?}");
    }
}

/// Another program holds the GPU or its memory: that says nothing about the image.
#[test]
#[ignore = "needs g++"]
fn busy_gpu_is_skipped_with_its_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let lock = folder.path().join("lock");
    let held = std::fs::File::create(&lock).expect("a file");
    held.lock().expect("locked");
    let lock = lock.to_str().expect("text");
    let holders =
        [("FAKE_LOCK", lock, "CUDA_ERROR_DEVICE_UNAVAILABLE"), ("FAKE_RETAIN_RC", "2", "OUT_OF_MEMORY")];
    for (name, value, status) in holders {
        let answer = agent(&["run", "memory", "gemm-own", "nccl"], &[("FAKE_COMPUTE", "1"), (name, value)]);
        for id in ["memory-copies", "gemm-fp32-own", "nccl-all-reduce"] {
            let line = answer.check(id);
            assert_eq!(
                (&line["outcome"], &line["skip"]),
                (&"skipped".into(), &"host-busy".into()),
                "{line:#}"
            );
            assert!(line["detail"].as_str().is_some_and(|text| text.contains(status)), "{line:#}");
            assert!(line["hint"].is_string(), "{line:#}");
        }
    }
    let answer = agent(&["run", "gemm-own"], &[("FAKE_RETAIN_RC", "719")]);
    assert_eq!(answer.told("gemm-fp32-own").0, "failed");
    assert!(answer.check("gemm-fp32-own")["hint"].is_string(), "a fault of the context keeps its fix");
}

/// No check asks for more than a part of what is free: what cannot be had is held by another program.
#[test]
#[ignore = "needs g++"]
fn full_memory_is_the_hosts_and_no_fault_of_the_image() {
    let answer = agent(&["run", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_FREE", "16")]);
    assert_eq!(answer.told("gemm-fp32-cublas").0, "passed");
    let line = answer.check("gemm-fp8-cublas");
    assert_eq!((&line["outcome"], &line["skip"]), (&"skipped".into(), &"host-busy".into()), "{line:#}");
    assert!(
        line["detail"].as_str().is_some_and(|text| text.contains("the GPU's memory is full: cuMemAlloc"))
    );
    assert!(line["hint"].is_string(), "{line:#}");
}

/// A library whose first call fails is not damaged: the call's own fix is given.
#[test]
#[ignore = "needs g++"]
fn first_call_of_a_library_keeps_its_fix() {
    let created =
        |status| agent(&["run", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_CREATE_RC", status)]);
    let answer = created("1");
    let line = answer.check("gemm-fp32-cublas");
    assert_eq!(line["outcome"], "failed");
    assert!(
        line["detail"].as_str().is_some_and(|text| text.contains("CUBLAS_STATUS_NOT_INITIALIZED")),
        "{line:#}"
    );
    assert!(!line["hint"].as_str().unwrap_or_default().contains("damaged"), "{line:#}");
    assert_eq!(created("3").check("gemm-fp32-cublas")["skip"], "host-busy", "cuBLAS found no memory");
}

/// A display card next to the GPU that the image is for.
#[test]
#[ignore = "needs g++"]
fn gpu_without_code_is_named_and_not_tested() {
    let folder = tempfile::tempdir().expect("a folder");
    let expect = folder.path().join("expect");
    std::fs::write(&expect, "cuda=12.8\narch=9.0\n").expect("written");
    let words = ["run", "driver", "gemm-own", "memory", "--expect", expect.to_str().expect("text")];
    let variables = [("FAKE_COMPUTE", "1"), ("FAKE_COUNT", "2"), ("FAKE_CC_OTHERS", "61")];
    let answer = agent(&words, &variables);
    let (outcome, detail) = answer.told("device");
    assert_eq!(outcome, "passed", "{detail}");
    assert!(detail.ends_with("not tested: the image has no code for NVIDIA H200 (sm_61)"), "{detail}");
    assert_eq!(answer.told("gemm-fp32-own").0, "passed");
    assert!(answer.check("gemm-fp32-own")["measured"]["gpu.1"].is_null());
    assert_eq!(answer.told("memory-peers").0, "skipped");
}

#[test]
#[ignore = "needs g++"]
fn precision_that_cublas_does_not_offer_is_skipped() {
    let answer = agent(&["run", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_LT_RC", "15")]);
    assert_eq!(answer.told("gemm-fp8-cublas").0, "skipped");
    assert_eq!(answer.check("gemm-fp8-cublas")["skip"], "not-offered");
    let answer = agent(&["run", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_LT_RC", "13")]);
    assert_eq!(answer.told("gemm-fp8-cublas").0, "failed");
}

/// Fast accumulation is what frameworks use, and less exact: the correctness check never asks for it.
#[test]
#[ignore = "needs g++"]
fn only_the_speed_of_fp8_uses_fast_accumulation() {
    let answer = agent(&["run", "speed-gemm"], &[("FAKE_NO_FAST", "1")]);
    assert_eq!(answer.told("speed-gemm-fp8").0, "failed");
    let exact = agent(&["run", "gemm-cublas"], &[("FAKE_COMPUTE", "1"), ("FAKE_NO_FAST", "1")]);
    assert_eq!(exact.told("gemm-fp8-cublas").0, "passed");
}

#[test]
#[ignore = "needs g++"]
fn slice_of_a_gpu_is_not_compared_with_the_whole_gpus_peak() {
    let folder = tempfile::tempdir().expect("a folder");
    let expect = folder.path().join("expect");
    std::fs::write(&expect, "peak.memory=1000000000\n").expect("written");
    let words = ["run", "speed-memory", "--expect", expect.to_str().expect("text")];
    let line =
        |name| agent(&words, &[("FAKE_NAME", name)]).check("speed-memory")["measured"]["warning"].clone();
    assert!(line("NVIDIA H200").is_string());
    assert!(line("NVIDIA H200 MIG 1g.18gb").is_null());
}

#[test]
#[ignore = "needs g++"]
fn one_gpu_scales_a_collective_and_skips_the_rest() {
    let answer = agent(&["run", "nccl", "speed-nccl"], &[("FAKE_COMPUTE", "1")]);
    assert_eq!(answer.told("nccl-all-reduce").0, "passed");
    for id in ["nccl-broadcast", "speed-nccl"] {
        assert_eq!(answer.told(id), ("skipped", "one GPU"));
        assert_eq!(answer.check(id)["skip"], "one-gpu");
    }
    assert!(answer.check("nccl-all-reduce")["skip"].is_null());
}

#[test]
#[ignore = "needs g++"]
fn driver_is_compared_with_lock_and_nvml() {
    let folder = tempfile::tempdir().expect("a folder");
    let expect = folder.path().join("expect");
    std::fs::write(&expect, "cuda=13.0\narch=8.0\n").expect("written");
    let words = ["run", "driver", "--expect", expect.to_str().expect("text")];
    let (outcome, detail) = {
        let answer = agent(&words, &[("FAKE_NVML", "1"), ("FAKE_NVML_NAME", "Tesla T4")]);
        let (outcome, detail) = answer.told("device");
        (outcome.to_owned(), detail.to_owned())
    };
    assert_eq!(outcome, "failed");
    for words in ["no code for NVIDIA H200 (sm_90)", "the lock requires 13.0", "NVML Tesla T4"] {
        assert!(detail.contains(words), "{detail}");
    }
}

#[test]
#[ignore = "needs g++"]
fn nvml_version_mismatch_fails_the_device_check() {
    let answer = agent(&["run", "driver"], &[("FAKE_NVML", "1"), ("FAKE_NVML_INIT", "18")]);
    let (outcome, detail) = answer.told("device");
    assert!(outcome == "failed" && detail.contains("NVML_ERROR_LIB_RM_VERSION_MISMATCH"), "{detail}");
}

#[test]
#[ignore = "needs g++"]
fn speed_only_warns() {
    let folder = tempfile::tempdir().expect("a folder");
    let expect = folder.path().join("expect");
    std::fs::write(&expect, "peak.memory=1000000000\nrecorded.host-to-device=0.001\n").expect("written");
    let words = ["run", "speed-memory", "--expect", expect.to_str().expect("text")];
    // A try of the fake takes a millisecond: with 20 MiB free a copy is nearly as fast as the link.
    let answer = agent(&words, &[("FAKE_NVML", "1"), ("FAKE_THROTTLE", "4"), ("FAKE_FREE", "20")]);
    assert_eq!(answer.code, 0);
    let line = answer.check("speed-memory");
    assert_eq!((line["outcome"].as_str(), line["stage"].as_str()), (Some("passed"), Some("perf")));
    assert_eq!(line["measured"]["verdict"], "throttled");
    assert_eq!(line["measured"]["warning"], "below 50 % of this model's peak; clocks reduced by power limit");
    assert_eq!(line["measured"]["throttled"], "power limit");
    assert_eq!(line["measured"]["spread_percent"], "0.0");
    let copied = answer.check("speed-host-to-device");
    assert!(
        copied["measured"]["warning"].is_null() && copied["measured"]["verdict"] == "normal",
        "{copied:#}"
    );
    let calm = agent(&words, &[("FAKE_NVML", "1")]);
    assert_eq!(calm.check("speed-memory")["measured"]["verdict"], "slow");
}

/// A copy is held to the link as it is under load, a collective to the links between GPUs, if there are any.
#[test]
#[ignore = "needs g++"]
fn peaks_of_copies_and_collectives_are_those_of_the_links() {
    let folder = tempfile::tempdir().expect("a folder");
    let expect = folder.path().join("expect");
    std::fs::write(&expect, "peak.bus=123456\npeak.host-to-device=1\n").expect("written");
    let words = ["run", "speed-memory", "speed-nccl", "--expect", expect.to_str().expect("text")];
    let peaks = |variables: &[(&str, &str)]| {
        let answer = agent(&words, &[&[("FAKE_COUNT", "2"), ("FAKE_NVML", "1")], variables].concat());
        let peak = |id: &str| answer.check(id)["measured"]["peak"].as_str().map(str::to_owned);
        (peak("speed-host-to-device"), peak("speed-nccl"))
    };
    let text = |rate: f64| Some(rate.to_string());
    let wide = text(3.938 * 16.0);
    assert_eq!(peaks(&[]), (wide.clone(), wide.clone()), "an idle GPU says generation 1");
    let narrow = text(0.985 * 8.0);
    assert_eq!(peaks(&[("FAKE_PCIE", "3 8 5 16")]), (narrow.clone(), narrow));
    assert_eq!(peaks(&[("FAKE_NVLINKS", "18 0")]), (wide, Some("123456".to_owned())));
    assert_eq!(peaks(&[("FAKE_NAME", "NVIDIA H200 MIG 1g.18gb")]), (None, None), "a slice has no peak");
    let unknown = agent(&words, &[("FAKE_COUNT", "2")]);
    assert!(unknown.check("speed-host-to-device")["measured"]["peak"].is_null());
}

#[test]
#[ignore = "needs g++"]
fn failed_kernel_reports_the_drivers_status() {
    let answer = agent(&["run", "gemm-own"], &[("FAKE_SYNC_RC", "700")]);
    let (outcome, detail) = answer.told("gemm-fp32-own");
    assert!(outcome == "failed" && detail.contains("CUDA_ERROR_ILLEGAL_ADDRESS"), "{detail}");
    let answer = agent(&["run", "gemm-own"], &[("FAKE_LAUNCH_RC", "209")]);
    assert!(answer.told("gemm-fp32-own").1.contains("CUDA_ERROR_NO_BINARY_FOR_GPU"));
}

/// What is wrong with the host is reported and says nothing about the image.
#[test]
#[ignore = "needs g++"]
fn health_of_the_host_warns_and_never_fails() {
    let good = agent(&["run", "health"], &[("FAKE_NVML", "1")]);
    assert_eq!(good.told("host-health"), ("passed", "no finding"));
    assert!(good.check("host-health")["measured"]["warning"].is_null());
    for (name, value, finding) in [
        ("FAKE_PCIE", "5 8 5 16", "PCIe link has 8 of 16 lanes"),
        ("FAKE_ECC", "3", "3 uncorrected memory errors"),
        ("FAKE_ROWS", "0 1 1 0", "waits to be replaced"),
        ("FAKE_ROWS", "0 1 0 1", "no spare is left"),
        ("FAKE_NVLINKS", "17 1", "1 of 18 NVLinks are down"),
    ] {
        let answer = agent(&["run", "health"], &[("FAKE_NVML", "1"), ("FAKE_COUNT", "2"), (name, value)]);
        let line = answer.check("host-health");
        assert_eq!((answer.code, line["outcome"].as_str()), (0, Some("passed")), "{line:#}");
        let warning = line["measured"]["warning"].as_str().unwrap_or_default();
        assert_eq!(warning.matches(finding).count(), 2, "one of each GPU: {warning}");
    }
    let without = agent(&["run", "health"], &[]);
    assert_eq!(without.check("host-health")["skip"], "not-reported");
}
