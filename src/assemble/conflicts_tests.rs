//! Paths of several distributions, inside one layer and between layers.

use super::*;
use crate::assemble::install::Installation;
use crate::assemble::layer::{LayerContent, LayerFile, LayerPlan};
use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
use crate::assemble::samples::{SITE, install};
use crate::assemble::write::write_layer;

fn find(wheels: &[&Installation]) -> Result<Conflicts, AssembleError> {
    let listings: Vec<Listing> = wheels.iter().map(|wheel| Listing::of(wheel)).collect::<Result<_, _>>()?;
    Conflicts::find(&listings)
}

fn wheel(name: &str, content: &[u8]) -> Installation {
    install(&MadeWheel::new(name).file("shared/x.py", content).file(&format!("{name}/a.py"), b""))
        .expect(name)
}

fn plan(wheels: &[&Installation], conflicts: &Conflicts) -> LayerPlan {
    LayerPlan::new(wheels, conflicts, BTreeMap::new()).expect("a layer")
}

/// The names of the wheels that give a path.
fn owners(plans: &[LayerPlan], path: &str) -> Vec<String> {
    let found = plans.iter().filter_map(|plan| plan.files().get(path));
    let owner = |file: &LayerFile| match &file.content {
        LayerContent::FromWheel { wheel, .. } => wheel.distribution().to_owned(),
        other => panic!("{other:?}"),
    };
    found.map(owner).collect()
}

#[test]
fn equal_files_are_no_conflict() {
    let (a, b) = (wheel("aa", b"same"), wheel("bb", b"same"));
    let conflicts = find(&[&b, &a]).expect("found");
    assert_eq!(conflicts.all(), []);
    assert!(conflicts.left_out("aa").is_empty());
    let path = format!("{SITE}/shared/x.py");
    assert_eq!(owners(&[plan(&[&a], &conflicts), plan(&[&b], &conflicts)], &path), ["aa", "bb"]);
}

#[test]
fn last_name_wins_whatever_the_layers_are() {
    let (a, b, c) = (wheel("aa", b"1"), wheel("bb", b"2"), wheel("cc", b"3"));
    let path = format!("{SITE}/shared/x.py");
    let conflicts = find(&[&c, &a, &b]).expect("found");
    let lost =
        |loser: &str| Conflict { path: path.clone(), loser: loser.to_owned(), winner: "cc".to_owned() };
    assert_eq!(conflicts.all(), [lost("aa"), lost("bb")]);
    assert_eq!(conflicts.left_out("aa"), BTreeSet::from([path.as_str()]));
    assert!(conflicts.left_out("cc").is_empty());
    for layers in [vec![vec![&a, &b, &c]], vec![vec![&c], vec![&b, &a]], vec![vec![&a], vec![&b], vec![&c]]] {
        let plans: Vec<LayerPlan> = layers.iter().map(|wheels| plan(wheels, &conflicts)).collect();
        assert_eq!(owners(&plans, &path), ["cc"]);
    }
}

#[test]
fn other_mode_is_a_conflict() {
    let file = |mode| MadeEntry::new("shared/x.py", b"same").mode(mode);
    let a = install(&MadeWheel::new("aa").entry(file(0o100_755))).expect("aa");
    let b = install(&MadeWheel::new("bb").entry(file(0o100_644))).expect("bb");
    assert_eq!(find(&[&a, &b]).expect("found").all().len(), 1);
}

#[test]
fn file_of_one_and_directory_of_another_is_an_error() {
    let file = install(&MadeWheel::new("aa").file("shared", b"")).expect("aa");
    for (name, path) in [("bb", "shared/x.py"), ("bb", "shared/")] {
        let folder = install(&MadeWheel::new(name).file(path, b"")).expect(name);
        let error = find(&[&folder, &file]).expect_err("refused");
        let expected = format!(
            "cannot install `aa` and `bb`: `{SITE}/shared` is a file of one and a directory of the other"
        );
        assert_eq!(error.to_string(), expected);
        let layer =
            LayerPlan::new(&[&folder, &file], &Conflicts::default(), BTreeMap::new()).expect_err("refused");
        assert!(
            layer.to_string().contains(&format!("`{SITE}/shared`: it is a file and a directory")),
            "{layer}"
        );
    }
}

#[test]
fn bytes_of_a_layer_do_not_depend_on_the_order_of_wheels() {
    // One content, compressed differently: the streams of the larger file differ.
    let large = MadeEntry::new("shared/large", &[7; 10_000]);
    let stored = large.clone().stored();
    let a = install(&MadeWheel::new("aa").entry(large)).expect("aa");
    let b = install(&MadeWheel::new("bb").entry(stored)).expect("bb");
    let conflicts = find(&[&a, &b]).expect("found");
    assert_eq!(conflicts.all(), []);
    let digests = |wheels: &[&Installation]| {
        write_layer(&plan(wheels, &conflicts), std::io::sink(), std::io::sink(), &mut |_| ())
            .expect("written")
    };
    assert_eq!(digests(&[&a, &b]), digests(&[&b, &a]));
}

#[test]
fn further_files_replace_those_of_wheels_and_are_checked() {
    let a = wheel("aa", b"1");
    let further =
        |path: &str| BTreeMap::from([(path.to_owned(), LayerFile::of_bytes(0o600, b"mine".as_slice()))]);
    let path = format!("{SITE}/shared/x.py");
    let plan = LayerPlan::new(&[&a], &Conflicts::default(), further(&path)).expect("a layer");
    assert_eq!(plan.files()[&path].mode, 0o600);
    for (path, expected) in
        [("../x", "`..`"), ("/x", "absolute"), ("x/", "ends with"), (SITE, "file and a directory")]
    {
        let error = LayerPlan::new(&[&a], &Conflicts::default(), further(path)).expect_err(path).to_string();
        assert!(error.starts_with("cannot assemble a layer:") && error.contains(expected), "{error}");
    }
}

#[test]
fn list_of_the_cache_with_a_name_that_deletes_files_is_refused() {
    let honest = Listing::of(&wheel("aa", b"1")).expect("listed");
    let list = serde_json::to_string(&Listing::of(&wheel("bb", b"1")).expect("listed")).expect("JSON");
    for name in ["bb/.wh.a.py", ".wh.aa/a.py", "shared/.wh..wh..opq"] {
        // As an earlier release has written it.
        let old: Listing = serde_json::from_str(&list.replace("bb/a.py", name)).expect("a list");
        let error = Conflicts::find(&[honest.clone(), old]).expect_err(name).to_string();
        assert!(error.contains(name) && error.contains("of `bb`"), "{error}");
    }
    Conflicts::find(&[honest, serde_json::from_str(&list).expect("a list")]).expect("no such name");
}
