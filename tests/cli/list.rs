//! `list`: text and JSON.

use serde_json::Value;

use crate::{assert_80_columns, envforge, said};

fn entries(args: &[&str]) -> Vec<Value> {
    let run = envforge(&[&["list", "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.stderr);
    let list: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(list["schema"], 1);
    list["entries"].as_array().expect("a list").clone()
}

#[test]
fn list_output_is_readable() {
    insta::assert_snapshot!(said(&["list", "pytorch-cuda:2.7", "--gpu", "sm_61"]));
}

#[test]
fn list_without_a_name_has_a_line_for_each_product() {
    let specs = |args: &[&str]| -> Vec<String> {
        let run = envforge(&[&["list"], args].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        let lines = run.stdout.lines().skip(1).take_while(|line| !line.is_empty());
        lines.map(|line| line.split(' ').next().expect("a spec").to_owned()).collect()
    };
    let products = |specs: &[String]| -> Vec<String> {
        let mut names: Vec<_> =
            specs.iter().filter_map(|spec| spec.split(':').next()).map(str::to_owned).collect();
        names.dedup();
        names
    };
    let (folded, all) = (specs(&[]), specs(&["--all"]));
    assert_eq!(products(&folded), products(&all));
    assert_eq!(folded.len(), products(&all).len(), "{folded:?}");
    assert!(all.len() > 10 * folded.len() && folded.len() > 10);
    for filter in [&["pytorch-cuda"][..], &["--framework", "pytorch"]] {
        let versions = specs(filter);
        assert!(versions.len() > 10 && products(&versions) == ["pytorch-cuda"], "{versions:?}");
    }
    let json: Value = serde_json::from_str(&envforge(&["list", "--json"]).stdout).expect("JSON");
    assert!(json["entries"].as_array().is_some_and(|entries| entries.len() > 10 * folded.len()));
}

#[test]
fn lists_fit_80_columns() {
    for args in [vec![], vec!["pytorch-cuda", "--all"], vec!["--gpu", "sm_61"], vec!["--for-this-machine"]] {
        let run = envforge(&[&["list"], args.as_slice()].concat());
        assert_eq!(run.code, 0, "{args:?}: {}", run.stderr);
        assert_80_columns(&run);
    }
}

#[test]
fn entries_have_the_documented_fields() {
    let all = entries(&["pytorch-cuda", "--all"]);
    assert!(all.len() >= 80, "{} entries", all.len());
    for entry in &all {
        let fields = entry.as_object().expect("an object");
        for field in
            ["spec", "channel", "python", "cudnn", "nccl", "gpu", "ptx", "driver", "runs_here", "why_not"]
        {
            assert!(fields.contains_key(field), "`{field}` is missing in {entry}");
        }
        assert!(entry["python"].as_array().is_some_and(|pythons| !pythons.is_empty()), "{entry}");
    }
}

#[test]
fn machine_filter_agrees_with_plan() {
    let kept =
        entries(&["pytorch-cuda", "--all", "--for-this-machine", "--gpu", "sm_61", "--driver", "535.104.05"]);
    assert!(!kept.is_empty());
    for entry in kept.iter().step_by(7) {
        let spec = entry["spec"].as_str().expect("a spec");
        let run = envforge(&["plan", spec, "--gpu", "sm_61", "--driver", "535.104.05"]);
        assert_eq!(run.code, 0, "{spec} is listed but refused: {}", run.stderr);
    }
    let cuda = entries(&["pytorch-cuda", "--all", "--cuda", "cu118"]);
    assert!(!cuda.is_empty());
    assert!(
        cuda.iter().all(|entry| entry["spec"].as_str().is_some_and(|spec| spec.contains("-cu118"))),
        "{cuda:?}"
    );
}

#[test]
fn framework_filter_accepts_every_name() {
    for name in ["jax", "jaxlib", "jax-cuda"] {
        let found = entries(&["--framework", name]);
        assert!(!found.is_empty(), "{name}");
        assert!(
            found
                .iter()
                .all(|entry| entry["spec"].as_str().is_some_and(|spec| spec.starts_with("jax-cuda:")))
        );
    }
    assert_eq!(envforge(&["list", "--framework", "caffe"]).code, 1);
}

#[test]
fn unknown_name_is_not_an_empty_list() {
    insta::assert_snapshot!(said(&["list", "pytroch-cuda"]));
    assert_eq!(envforge(&["list", "pytroch-cuda"]).code, 1);
}

#[test]
fn list_without_a_match_says_what_there_is_and_ends_with_1() {
    for (args, says) in [
        (&["pytorch-cuda", "--cuda", "cu999"][..], "pytorch-cuda has versions 1.8"),
        (&["pytorch-cuda:99"], "CUDA cu102"),
        (&["--python", "2.7"], "in the matrix, which has CUDA"),
    ] {
        let run = envforge(&[&["list"], args].concat());
        let text = run.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!((run.code, run.stdout.as_str()), (1, ""), "{args:?}: {text}");
        assert!(text.contains("no matching variants in the matrix") && text.contains(says), "{text}");
    }
    let json = envforge(&["list", "pytorch-cuda", "--cuda", "cu999", "--json"]);
    assert_eq!(json.code, 1, "{}", json.stdout);
}
