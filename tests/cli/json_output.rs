//! The reference of `--json` against what the commands print.

use std::collections::BTreeSet;
use std::path::Path;

use crate::help_examples::run_with;

/// Calls that need containers or an index of everything: tests beside their objects (`every_field_is_documented`)
/// compare their fields.
const ELSEWHERE: [&str; 14] = [
    "envforge evidence registry.example.com/torch:2.8",
    "envforge evidence admit registry.example.com/torch:2.8 --here",
    "envforge evidence withdraw registry.example.com/torch:2.8",
    "envforge add einops",
    "envforge build pytorch-cuda:2.8-cu128",
    "envforge build pytorch-cuda:2.8-cu128 jax-cuda:0.7",
    "envforge outdated",
    "envforge verify IMAGE@sha256:… --on slurm --as-they-free reports",
    "envforge why torch pytorch-cuda:2.8-cu128",
    "envforge push pytorch-cuda:2.8-cu128 box.test/torch:2.8",
    "envforge export oci pytorch-cuda:2.8-cu128 image.tar",
    "envforge export squashfs pytorch-cuda:2.8-cu128 torch.sqsh",
    "envforge import image.tar torch:2.8",
    "envforge shell pytorch-cuda:2.8-cu128 --jupyter",
];

/// The calls of the page with the fields of their objects.
pub(crate) fn documented() -> Vec<(String, BTreeSet<String>)> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/reference/json-output.md");
    let text = std::fs::read_to_string(page).expect("the page");
    let sections = text.split("\n## `").skip(1).map(|section| {
        let (call, body) = section.split_once('`').expect("a call");
        let fields = body.lines().filter_map(|line| line.strip_prefix("- `")?.split('`').next());
        (call.to_owned(), fields.map(str::to_owned).collect())
    });
    sections.collect()
}

#[test]
fn documented_objects_have_the_fields_that_are_printed() {
    let all = documented();
    assert!(all.len() >= 20, "{} objects", all.len());
    let mut wrong = Vec::new();
    let elsewhere: BTreeSet<_> = ELSEWHERE.into_iter().map(str::to_owned).collect();
    let calls: BTreeSet<_> = all.iter().map(|(call, _)| call.clone()).collect();
    assert!(elsewhere.is_subset(&calls), "not on the page: {:?}", elsewhere.difference(&calls));
    for (call, mut fields) in all.into_iter().filter(|(call, _)| !elsewhere.contains(call)) {
        fields.insert("schema".to_owned());
        let run = run_with(&format!("{call} --json"), ":");
        let Ok(object) = serde_json::from_str::<serde_json::Value>(&run.stdout) else {
            wrong.push(format!("{call}: no JSON: {}{}", run.stdout, run.stderr));
            continue;
        };
        let printed: BTreeSet<_> = object.as_object().expect("an object").keys().cloned().collect();
        if printed != fields {
            let (missing, gone) = (printed.difference(&fields), fields.difference(&printed));
            wrong.push(format!(
                "{call}: not documented: {:?}, not printed: {:?}",
                missing.collect::<Vec<_>>(),
                gone.collect::<Vec<_>>()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
