//! Why packages are in a lock: chains, bounds, and what is not known.

use super::*;
use crate::model::lock::sample;
use crate::model::stack::Reason;

fn wheel(name: &str, version: &str, layer: WheelLayer) -> LockedWheel {
    LockedWheel {
        name: name.to_owned(),
        version: version.to_owned(),
        file: format!("{}-{version}-py3-none-any.whl", name.replace('-', "_")),
        layer,
        ..sample::lock().wheels[0].clone()
    }
}

/// torch, its cuDNN, transformers with tokenizers and numpy, JupyterLab.
fn lock() -> Lock {
    let mut lock = sample::lock();
    lock.added.python = vec!["transformers[torch]>=4.40".to_owned(), "numpy<3".to_owned()];
    lock.wheels = vec![
        wheel("nvidia-cudnn-cu12", "9.10.2.21", WheelLayer::Cuda),
        wheel("torch", "2.8.0", WheelLayer::Framework),
        wheel("jupyterlab", "4.5.0", WheelLayer::Stack),
        wheel("accelerate", "1.12.0", WheelLayer::User),
        wheel("numpy", "2.3.5", WheelLayer::User),
        wheel("tokenizers", "0.22.1", WheelLayer::User),
        wheel("transformers", "4.57.1", WheelLayer::User),
        wheel("colorama", "0.4.6", WheelLayer::User),
    ];
    lock.stack.reasons.push(Reason {
        field: "cudnn".to_owned(),
        chosen: "9.10.2.21".to_owned(),
        because: "version the binary is built with".to_owned(),
        source: "torch's METADATA".to_owned(),
    });
    lock
}

fn requirements() -> Requirements {
    let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    [
        (
            "torch",
            list(&[
                "nvidia-cudnn-cu12==9.10.2.21 ; platform_system == 'Linux'",
                "colorama ; sys_platform == 'win32'",
            ]),
        ),
        (
            "transformers",
            list(&[
                "tokenizers<0.23,>=0.22",
                "numpy>=1.17",
                "accelerate>=0.26 ; extra == 'torch'",
                "torch ; extra == 'torch'",
                "jax ; extra == 'flax'",
            ]),
        ),
        ("tokenizers", list(&["numpy>=1.20"])),
        ("accelerate", list(&["torch>=2.0", "numpy<3.0.0,>=1.17"])),
        ("jupyterlab", Vec::new()),
        ("nvidia-cudnn-cu12", Vec::new()),
        ("numpy", Vec::new()),
    ]
    .map(|(name, list)| (name.to_owned(), list))
    .into()
}

fn origin(name: &str) -> Origin {
    lock()
        .origin(name, &requirements(), &["jupyterlab".to_owned(), "numpy".to_owned()])
        .expect("it is locked")
}

fn ways(origin: &Origin) -> Vec<String> {
    let way = |chain: &Chain| {
        let through: Vec<_> =
            chain.through.iter().map(|one| format!("{} asks {}", one.name, one.requirement)).collect();
        format!("{:?} {}: {}", chain.requested_by, chain.requested, through.join(", "))
    };
    origin.chains.iter().map(way).collect()
}

#[test]
fn chains_lead_from_everything_that_was_requested_the_shortest_first() {
    assert_eq!(
        ways(&origin("numpy")),
        [
            "Project numpy<3: ",
            "EveryImage numpy: ",
            "Project transformers[torch]>=4.40: transformers asks numpy>=1.17",
        ]
    );
    assert_eq!(
        ways(&origin("tokenizers")),
        ["Project transformers[torch]>=4.40: transformers asks tokenizers<0.23,>=0.22"]
    );
    // By an extra that was requested, and not by one that was not.
    let accelerate =
        "Project transformers[torch]>=4.40: transformers asks accelerate>=0.26 ; extra == 'torch'";
    assert_eq!(ways(&origin("accelerate")), [accelerate]);
    assert_eq!(ways(&origin("jupyterlab")), ["EveryImage jupyterlab: "]);
    let cudnn = ways(&origin("nvidia-cudnn-cu12"));
    assert_eq!(
        cudnn[0],
        "Spec pytorch-cuda:2.8-cu128: torch asks nvidia-cudnn-cu12==9.10.2.21 ; platform_system == 'Linux'"
    );
    assert!(cudnn[1].starts_with("Project transformers[torch]>=4.40: transformers asks torch"), "{cudnn:?}");
}

#[test]
fn requirement_of_another_platform_leads_nowhere() {
    let colorama = origin("colorama");
    assert_eq!((ways(&colorama).len(), colorama.bounds.len()), (0, 0));
}

#[test]
fn version_is_chosen_by_the_matrix_an_exact_requirement_or_an_index() {
    let cudnn = origin("nvidia-cudnn-cu12");
    assert_eq!(
        cudnn.chosen,
        "the row pytorch 2.8.0 for cu128 of the matrix: version the binary is built with"
    );
    assert_eq!(cudnn.source.as_deref(), Some("torch's METADATA"));
    let numpy = origin("numpy");
    assert_eq!(numpy.chosen, "the resolver, from what index `default` had on 2026-11-21, within the bounds");
    let whose: Vec<_> = numpy.bounds.iter().map(|(text, by)| format!("{text} ({by})")).collect();
    assert_eq!(
        whose,
        [
            "numpy<3 (the project)",
            "numpy>=1.17 (transformers)",
            "numpy<3.0.0,>=1.17 (accelerate)",
            "numpy>=1.20 (tokenizers)",
        ]
    );
    let mut pinned = lock();
    pinned.added.python.push("tokenizers==0.22.1".to_owned());
    let pinned = pinned.origin("tokenizers", &requirements(), &[]).expect("there");
    assert_eq!(pinned.chosen, "`tokenizers==0.22.1` of the project");
    let mut dated = lock();
    dated.added.as_of = Some("2026-03-02T00:00:00Z".to_owned());
    let dated = dated.origin("tokenizers", &requirements(), &[]).expect("there");
    assert!(dated.chosen.contains("had as of 2026-03-02T00:00:00Z"), "{}", dated.chosen);
}

#[test]
fn wheels_whose_requirements_are_not_known_are_named() {
    let none = lock().origin("tokenizers", &Requirements::new(), &[]).expect("it is locked");
    assert_eq!(none.chains, []);
    assert_eq!(none.unknown.len(), lock().wheels.len());
    assert_eq!(origin("tokenizers").unknown, ["colorama"]);
    assert_eq!(lock().origin("absent", &requirements(), &[]), None);
}

#[test]
fn packages_that_require_each_other_end() {
    let mut requirements = requirements();
    requirements.insert(
        "numpy".to_owned(),
        vec!["tokenizers".to_owned(), "numpy[all]".to_owned(), "not a requirement".to_owned()],
    );
    let found = lock().origin("tokenizers", &requirements, &[]).expect("it is locked");
    assert!(found.chains.iter().all(|chain| chain.through.len() < lock().wheels.len()), "{:?}", found.chains);
    assert_eq!(found.chains.len(), 2);
}

#[test]
fn packages_of_the_distribution_have_the_reason_that_the_lock_has() {
    let mut lock = lock();
    lock.added.apt = vec!["ffmpeg".to_owned()];
    lock.apt = vec![sample::deb("ffmpeg", "7:5.1"), sample::deb("libx264", "1")];
    let of = |name: &str| lock.origin_of_deb(name, &["python3".to_owned()]).expect(name);
    assert_eq!(ways(&of("ffmpeg")), ["Project ffmpeg: "]);
    assert_eq!(ways(&of("python3")), ["EveryImage python3: "]);
    let library = of("libx264");
    assert_eq!((library.chains.len(), library.unknown.as_slice()), (0, ["libx264".to_owned()].as_slice()));
    assert_eq!(of("libc6").chosen, "the base debian:12, of which it is a part");
    assert_eq!(lock.origin_of_deb("vim", &[]), None);
}

#[test]
fn nearest_names_are_those_of_the_lock() {
    let lock = lock();
    assert_eq!(lock.nearest_packages("tokenizer"), ["tokenizers"]);
    assert_eq!(lock.nearest_packages("numpi"), ["numpy"]);
    assert_eq!(lock.nearest_packages("jupyter"), ["jupyterlab"]);
    assert_eq!(lock.nearest_packages("zzz"), [] as [&str; 0]);
}

#[test]
fn metadata_lists_requirements_in_its_head_alone() {
    let text = "Metadata-Version: 2.1\nName: a\nRequires-Dist: b>=1 ; extra == 'x'\nRequires-Dist:c\n\nRequires-Dist: of the description\n";
    assert_eq!(required_by_metadata(text), ["b>=1 ; extra == 'x'", "c"]);
}
