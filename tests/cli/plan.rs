//! `plan`: text and JSON.

use serde_json::Value;

use crate::terminal::run_on_terminal;
use crate::wheels::WheelSpec;
use crate::{assert_80_columns, envforge, program, said};

fn plan(args: &[&str]) -> (i32, Value) {
    let run = envforge(&[&["plan", "--json"], args].concat());
    let value = serde_json::from_str(&run.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}{}", run.stdout, run.stderr));
    (run.code, value)
}

#[test]
fn plan_output_is_readable() {
    insta::assert_snapshot!(said(&["plan", "pytorch-cuda:2.8-cu128"]));
}

#[test]
fn plan_for_a_machine_prints_its_reasons() {
    insta::assert_snapshot!(said(&[
        "plan",
        "pytorch-cuda:2.7",
        "--gpu",
        "NVIDIA A100-SXM4-80GB",
        "--driver",
        "535.104.05"
    ]));
}

#[test]
fn plan_json_has_the_documented_fields() {
    let (code, plan) = plan(&["pytorch-cuda:2.8-cu128-py311"]);
    assert_eq!(code, 0);
    let fields: Vec<_> = plan.as_object().expect("an object").keys().map(String::as_str).collect();
    for field in [
        "schema",
        "spec",
        "verdict",
        "name",
        "flavour",
        "platform",
        "channel",
        "experimental",
        "licence",
        "stack",
        "requires",
        "target",
        "base",
        "reasons",
        "refusals",
        "alternatives",
    ] {
        assert!(fields.contains(&field), "`{field}` is missing in {fields:?}");
    }
    assert_eq!(plan["schema"], 1);
    assert_eq!(plan["spec"], "pytorch-cuda:2.8-cu128-py311");
    assert_eq!(plan["verdict"], "ok");
    assert_eq!(plan["name"], "pytorch-cuda:2.8.0-cu128-py3.11");
    assert_eq!(plan["flavour"], "runtime");
    assert_eq!(plan["platform"], "linux/amd64");
    assert_eq!(plan["channel"], "default");
    assert_eq!(plan["experimental"], false);
    let stack = &plan["stack"];
    assert_eq!(stack["framework"]["name"], "pytorch");
    assert_eq!(stack["framework"]["version"], "2.8.0");
    assert_eq!(stack["cuda"]["variant"], "cu128");
    assert_eq!(stack["python"], "3.11");
    for field in ["cudnn", "nccl", "triton", "torchvision", "torchaudio", "glibc"] {
        assert!(stack[field].is_string(), "stack.{field}: {stack}");
    }
    assert!(plan["requires"]["driver"].as_str().is_some_and(|floor| floor.starts_with(">=")), "{plan}");
    assert!(
        plan["requires"]["gpu"].as_array().is_some_and(|gpus| gpus.contains(&Value::from("9.0"))),
        "{plan}"
    );
    assert_eq!(plan["target"]["source"], "any");
    assert_eq!(plan["base"]["name"], "debian:12");
    assert_eq!(plan["base"]["digest"], Value::Null);
    let reasons = plan["reasons"].as_array().expect("a list");
    for reason in reasons {
        for field in ["field", "chosen", "because", "source"] {
            assert!(reason[field].as_str().is_some_and(|text| !text.is_empty()), "{reason}");
        }
    }
    assert_eq!(plan["refusals"], Value::Array(vec![]));
}

#[test]
fn refusal_json_has_rules_sources_and_commands() {
    let (code, plan) = plan(&["pytorch-cuda:2.9-cu118"]);
    assert_eq!(code, 1);
    assert_eq!(plan["verdict"], "impossible");
    assert_eq!(plan["name"], Value::Null);
    let refusals = plan["refusals"].as_array().expect("a list");
    assert!(refusals.iter().any(|refusal| refusal["rule"] == "variant-unpublished"), "{plan}");
    assert!(
        refusals.iter().all(|refusal| refusal["source"].as_str().is_some_and(|text| !text.is_empty())),
        "{plan}"
    );
    let alternatives = plan["alternatives"].as_array().expect("a list");
    assert!((1..=3).contains(&alternatives.len()), "{plan}");
    for alternative in alternatives {
        let spec = alternative["spec"].as_str().expect("a spec");
        assert_eq!(alternative["command"], format!("envforge build {spec}"));
        assert_eq!(envforge(&["plan", spec]).code, 0, "{spec} is offered but impossible");
    }
}

#[test]
fn arguments_override_the_target_of_the_environment() {
    let program = crate::program().with("ENVFORGE_GPU", "sm_90").with("ENVFORGE_DRIVER", "535.104.05");
    let target = |args: &[&str]| {
        let run = program.run(&[&["plan", "--json", "pytorch-cuda:2.6-cu124"], args].concat());
        let plan: Value = serde_json::from_str(&run.stdout).expect("JSON");
        plan["target"].clone()
    };
    assert_eq!(target(&[])["source"], "named");
    assert_eq!(target(&[])["driver"], "535.104.05");
    assert_eq!(target(&["--target", "any"])["source"], "any");
    assert_eq!(target(&["--driver", "550.54.15"])["driver"], "550.54.15");
}

#[test]
fn omitted_version_resolves_to_the_newest_for_the_target() {
    let (code, newest) = plan(&["pytorch-cuda"]);
    assert_eq!(code, 0);
    let (code, for_pascal) =
        plan(&["pytorch-cuda", "--gpu", "NVIDIA GeForce GTX 1080 Ti", "--driver", "580.95.05"]);
    assert_eq!(code, 0, "{for_pascal}");
    assert_ne!(newest["name"], for_pascal["name"]);
    assert_eq!(for_pascal["target"]["source"], "named");
}

#[test]
fn plans_and_refusals_fit_80_columns() {
    for args in [
        vec!["pytorch-cuda"],
        vec!["pytorch-cuda:2.8-cu128"],
        vec!["pytorch-cuda:2.7-cu118"],
        vec!["pytorch-cuda:2.6-cu124-py3.10"],
        vec!["pytorch-cuda:1.13"],
        vec!["pytorch-cuda:2.9-cu118"],
        vec!["pytorch-cuda:2.8-cu128-py3.8"],
        vec!["pytorch-cuda:2.8-cu128", "--driver", "470.57.02"],
        vec!["pytorch-cuda:2.8-cu128", "--gpu", "sm_61"],
        vec!["pytorch-cuda:2.8-cu128", "--gpu", "NVIDIA Tesla K80", "--driver", "470.57.02"],
        vec!["pytorch-cuda:2.8-cu128", "--gpu", "no such GPU at all"],
    ] {
        let program = program().with("NO_COLOR", "1");
        let run = run_on_terminal(program.command(&[&["plan"], args.as_slice()].concat()), "");
        assert!(run.code <= 2, "{args:?}: {}", run.stderr);
        assert_80_columns(&run);
    }
}

#[test]
fn plan_needs_no_engine_network_or_writable_home() {
    let program = crate::program()
        .with("DOCKER_HOST", "unix:///nonexistent.sock")
        .with("ENVFORGE_INDEX", "http://127.0.0.1:9/simple")
        .with("ENVFORGE_DEBIAN_MIRROR", "http://127.0.0.1:9/debian")
        .with("ENVFORGE_CACHE_DIR", "/proc/nowhere")
        .with("ENVFORGE_STATE_DIR", "/proc/nowhere");
    assert_eq!(program.run(&["plan", "pytorch-cuda:2.8-cu128"]).code, 0);
}

#[test]
fn fifty_parallel_plans_are_identical() {
    let program = program();
    let start = || program.command(&["plan", "pytorch-cuda:2.8-cu128", "--json"]).spawn().expect("it starts");
    let children: Vec<_> = (0..50).map(|_| start()).collect();
    let said: Vec<_> = children
        .into_iter()
        .map(|child| child.wait_with_output().expect("a child of ours"))
        .map(|output| (output.status.code(), output.stdout))
        .collect();
    assert_eq!(said[0].0, Some(0));
    assert!(said.iter().all(|one| *one == said[0]), "all 50 say the same");
}

#[test]
fn restrictive_licence_is_planned() {
    let (code, licensed) = plan(&["tensorrt-cuda:8.6-py3.10"]);
    assert_eq!(code, 0, "{licensed}");
    assert!(licensed["licence"].as_str().is_some_and(|text| text.contains("NVIDIA TensorRT")), "{licensed}");
    let (_, free) = plan(&["warp-cuda:1.19"]);
    assert_eq!(free["licence"], Value::Null);
}

#[test]
fn unpublished_variant_is_planned_from_source() {
    let run = envforge(&["plan", "pytorch-cuda:2.8-cu118", "--gpu", "sm_89", "--driver", "520.61.05"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let first = run.stdout.lines().next().unwrap_or_default();
    assert_eq!(first, "torch 2.8.0 is not published for CUDA 11.8 and is built from source.");
    assert!(run.stdout.contains("pytorch-cuda:2.7.1-cu118"), "{}", run.stdout);
    let (code, plan) = plan(&["pytorch-cuda:2.8-cu118", "--gpu", "sm_89", "--driver", "520.61.05"]);
    assert_eq!((code, &plan["verdict"], &plan["channel"]), (0, &"ok".into(), &"source".into()));
    assert_eq!(plan["experimental"], true);
    assert_eq!(plan["requires"]["gpu"], serde_json::json!(["8.6"]));
    assert_eq!(plan["source_build"]["gcc"], 11);
    assert_eq!(plan["source_build"]["seconds"], Value::Null);
    let commands = plan["alternatives"].as_array().expect("a list");
    assert!(commands.iter().any(|offer| offer["spec"] == "pytorch-cuda:2.7.1-cu118"), "{plan}");
}

#[test]
fn no_source_rejects_a_plan_from_source() {
    let (code, plan) = plan(&["pytorch-cuda:2.8-cu118", "--no-source"]);
    assert_eq!((code, &plan["verdict"]), (1, &"impossible".into()));
    assert_eq!(plan["refusals"][0]["rule"], "variant-unpublished");
    let run = envforge(&["list", "pytorch-cuda", "--cuda", "cu118", "--no-source"]);
    assert!(!run.stdout.contains("2.8.0-cu118"), "{}", run.stdout);
    let run = envforge(&["list", "pytorch-cuda", "--cuda", "cu118"]);
    let line = run.stdout.lines().find(|line| line.contains("2.8.0-cu118")).expect("it is listed");
    assert!(line.contains(" src "), "{line}");
}

#[test]
fn incompatible_wheel_is_rejected_without_an_engine() {
    let program = program().with("DOCKER_HOST", "unix:///nowhere");
    let wheel = |name: &str, version: &str, tag: &str| {
        let wheel = WheelSpec::new(name, version).tag(tag).build();
        std::fs::write(program.path(&wheel.file), &wheel.bytes).expect("a folder of ours");
        wheel.file
    };
    let file = wheel("torch", "2.7.1+cu126", "cp312-cp312-win_amd64");
    for command in ["build", "lock"] {
        let run = program.run(&[command, "pytorch-cuda:2.8-cu118", "--wheel", &file]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        for said in ["2.7.1", "`cu126`", "cp312-cp312", "win_amd64"] {
            assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
        }
    }
    let fits = wheel("torch", "2.8.0+cu118", "cp311-cp311-linux_x86_64");
    let run = program.run(&["lock", "pytorch-cuda:2.8-cu118", "--wheel", &fits]);
    assert_eq!(run.code, 3, "it fits, and there is no engine: {}", run.stderr);
    let run = program.run(&["lock", "pytorch-cuda:2.8-cu128", "--wheel", &fits]);
    assert_eq!(run.code, 2, "{}", run.stderr);
    assert!(run.stderr.contains("has a published wheel"), "{}", run.stderr);
    let run = program.run(&["lock", "pytorch-cuda:2.8-cu118", "--wheel", "nothing.whl"]);
    assert_eq!(run.code, 2, "{}", run.stderr);
}

/// The file that the refusal of flash-attn names, passed as it says.
#[test]
fn wheel_of_a_requested_package_is_compared_without_an_engine() {
    let program = program().with("DOCKER_HOST", "unix:///nowhere");
    let named = |version: &str| {
        let wheel = WheelSpec::new("flash-attn", version).tag("cp311-cp311-linux_x86_64").build();
        std::fs::write(program.path(&wheel.file), &wheel.bytes).expect("a folder of ours");
        wheel.file
    };
    let spec = "pytorch-cuda:2.8-cu128";
    let fits = named("2.8.3.post1+cu12torch2.8cxx11abiTRUE");
    let run = program.run(&["lock", spec, "--with", "flash-attn", "--wheel", &fits]);
    assert_eq!(run.code, 3, "it fits, and there is no engine: {}", run.stderr);
    for check in [&["--check"][..], &[]] {
        let words = [&["lock", spec, "--with", "einops", "--wheel", &fits], check].concat();
        let run = program.run(&words);
        assert_eq!(run.code, 2, "{}", run.stderr);
        assert!(run.stderr.contains("cannot use --wheel: `flash-attn` is not requested"), "{}", run.stderr);
        assert!(run.stderr.contains("`--with flash-attn`"), "{}", run.stderr);
    }
    let other = named("2.8.3.post1+cu12torch2.7cxx11abiTRUE");
    let run = program.run(&["lock", spec, "--with", "flash-attn", "--wheel", &other]);
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("it is the build for torch 2.7, the stack has 2.8"), "{}", run.stderr);
}

#[test]
fn no_source_rejects_a_build_from_source() {
    for command in ["build", "lock"] {
        let run = envforge(&[command, "pytorch-cuda:2.8-cu118", "--no-source"]);
        assert_eq!(run.code, 1, "{}", run.stderr);
        assert!(run.stderr.contains("variant-unpublished"), "{}", run.stderr);
    }
}

/// Questions as people ask them, each with the exit code and what the answer says.
#[test]
fn machines_are_named_as_people_name_them() {
    const R570: &str = "570.133.20";
    let cases: &[(&[&str], i32, &[&str])] = &[
        // A branch alone is that branch as it is today.
        (&["pytorch-cuda:2.9-cu130", "--driver", "580"], 0, &["branch R580, from 580."]),
        (&["pytorch-cuda:2.9-cu130", "--driver", "R580"], 0, &["branch R580, from 580."]),
        (
            &["pytorch-cuda:2.9-cu130", "--driver", "R999"],
            2,
            &["`R999` is not a driver branch of the matrix"],
        ),
        (&["pytorch-cuda:2.9-cu130", "--driver", "570"], 1, &["requires driver >= 580"]),
        (&["tensorflow-cuda:2.17", "--driver", "525"], 0, &[]),
        // A family of data-centre GPUs is one of them.
        (
            &["pytorch-cuda:2.9-cu130", "--driver", R570, "--gpu", "H100", "--forward-compat"],
            0,
            &["in the image"],
        ),
        (
            &["pytorch-cuda:2.9-cu130", "--driver", R570, "--gpu", "RTX 4090", "--forward-compat"],
            1,
            &["limited to"],
        ),
        // What is only in machines of another processor is planned for it.
        (&["pytorch-cuda:2.11-cu130", "--gpu", "GB10"], 0, &["linux/arm64", "is only in such machines"]),
        (&["cuda:13.0", "--gpu", "Thor"], 0, &["linux/arm64"]),
        (
            &["pytorch-cuda:2.11-cu130", "--gpu", "GB10", "--platform", "amd64"],
            2,
            &["is only in machines of linux/arm64"],
        ),
        // The driver is also that of the GPU.
        (&["pytorch-cuda:2.8-cu128", "--gpu", "RTX5090"], 0, &["needs R570 or newer"]),
        (&["pytorch-cuda:2.7-cu126", "--gpu", "V100"], 0, &["needs R580 or older"]),
        (&["pytorch-cuda:2.8-cu128", "--gpu", "A100,H100"], 0, &["A100 (sm_80)", "H100 (sm_90)"]),
        (&["pytorch-cuda:2.8-cu128", "--gpu", "sm_90a", "--python", "3.12.4"], 0, &["Python         3.12"]),
        // What is known of old releases, and what is not.
        (&["pytorch-cuda:1.10.1-cu113-py3.8"], 0, &[]),
        (&["pytorch-cuda:1.11.0-cu113-py3.9"], 0, &[]),
        (&["tensorflow-cuda:2.15", "--gpu", "H100"], 0, &["PTX 8.0"]),
        (&["tensorflow-cuda:2.13", "--gpu", "H100"], 1, &["PTX that is not known to run"]),
        (&["jax-cuda:0.4.26", "--cuda", "11"], 1, &["with cu11, not confirmed: 0."]),
        // Packages are requested next to a product, and each with its own framework.
        (&["xformers"], 1, &["`xformers` is a package, not a product", "--with xformers"]),
        (&["pytorch-cuda:2.5", "--with", "vllm==0.8.5"], 1, &["requires torch 2.6.0, the stack has 2.5."]),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|(args, code, says)| {
            let run = envforge(&[&["plan"], *args].concat());
            let text = format!("{}{}", run.stdout, run.stderr);
            let plain = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let says_all = says
                .iter()
                .all(|part| plain.contains(&part.split_whitespace().collect::<Vec<_>>().join(" ")));
            (run.code != *code || !says_all).then(|| format!("{args:?}: {}\n{text}", run.code))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
