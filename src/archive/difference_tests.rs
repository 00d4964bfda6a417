//! One change of files as storage drivers write it: each gives the same layer, and that layer makes the files.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};

use proptest::prelude::*;
use tar::EntryType as T;

use super::difference::write_difference;
use super::section::Section;
use super::tree::{Tree, marker_of, parent_of};

/// An entry of a tar: path, kind, content or target, mode.
type Entry<'a> = (&'a str, T, &'a str, u32);

/// Files by path: kind, content or target, mode.
type Files = BTreeMap<String, (T, String, u32)>;

fn tar_of<'a>(entries: impl IntoIterator<Item = Entry<'a>>, time: u64) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, kind, content, mode) in entries {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(time);
        header.set_device_major(1).and_then(|()| header.set_device_minor(3)).expect("a device");
        if matches!(kind, T::Link | T::Symlink) {
            header.set_size(0);
            tar.append_link(&mut header, path, content).expect("a vector");
        } else {
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, path, content.as_bytes()).expect("a vector");
        }
    }
    tar.into_inner().expect("a vector")
}

fn section(tar: &[u8]) -> Section {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(tar).expect("written");
    Section::whole(file).expect("a file")
}

fn tree(layers: &[&[u8]]) -> Tree {
    let mut tree = Tree::default();
    for layer in layers {
        tree.add(&section(layer)).expect("a layer");
    }
    tree
}

/// The canonical form of a layer on another.
fn layer_on(below: &[u8], layer: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    write_difference(&tree(&[below]), &tree(&[below, layer]), &mut out).expect("written");
    out
}

/// Path, mode, and content or target of each entry.
fn listing(tar: &[u8]) -> Vec<String> {
    let mut archive = tar::Archive::new(tar);
    let line = |entry: std::io::Result<tar::Entry<'_, &[u8]>>| {
        let mut entry = entry.expect("an entry");
        let (path, mode) =
            (entry.path().expect("a path").display().to_string(), entry.header().mode().expect("a mode"));
        let mut text = String::new();
        entry.read_to_string(&mut text).expect("text");
        let target = entry.link_name().expect("a target").map(|target| format!("-> {}", target.display()));
        format!("{path} {mode:o} {}", target.unwrap_or(text)).trim_end().to_owned()
    };
    archive.entries().expect("a tar").map(line).collect()
}

const BELOW: [Entry<'_>; 11] = [
    ("bin/", T::Directory, "", 0o755),
    ("bin/perl", T::Regular, "perl", 0o755),
    ("bin/perl5", T::Link, "bin/perl", 0o755),
    ("log/", T::Directory, "", 0o755),
    ("log/old", T::Regular, "", 0o600),
    ("lib/", T::Directory, "", 0o755),
    ("lib/sub/", T::Directory, "", 0o755),
    ("lib/sub/a", T::Regular, "a", 0o644),
    ("lib/sub/b", T::Regular, "b", 0o644),
    ("tmp/", T::Directory, "", 0o1777),
    ("var", T::Symlink, "log", 0o777),
];

/// A step removes `log/old` and `lib/sub`, makes `lib/sub` anew with another `a`, adds `opt/new/x`, replaces a name of perl by the
/// same file, and writes in `tmp` what it then removes.
#[test]
fn layer_is_the_same_whichever_driver_tells_of_it() {
    let below = tar_of(BELOW, 1);
    let overlay2 = tar_of(
        [
            ("bin/", T::Directory, "", 0o755),
            ("bin/perl", T::Regular, "perl", 0o755),
            ("lib/", T::Directory, "", 0o755),
            ("lib/sub/", T::Directory, "", 0o755),
            ("lib/sub/.wh..wh..opq", T::Regular, "", 0o600),
            ("lib/sub/a", T::Regular, "A", 0o644),
            ("log/", T::Directory, "", 0o755),
            ("log/.wh.old", T::Regular, "", 0o600),
            ("opt/", T::Directory, "", 0o755),
            ("opt/.wh..wh..opq", T::Regular, "", 0o600),
            ("opt/new/", T::Directory, "", 0o700),
            ("opt/new/.wh..wh..opq", T::Regular, "", 0o600),
            ("opt/new/x", T::Regular, "x", 0o644),
            ("opt/new/y", T::Link, "opt/new/x", 0o644),
            ("run/envforge/", T::Directory, "", 0o755),
            ("run/", T::Directory, "", 0o755),
            ("tmp/", T::Directory, "", 0o1777),
        ],
        2,
    );
    let compared = tar_of(
        [
            ("opt/", T::Directory, "", 0o40_755),
            ("opt/new/", T::Directory, "", 0o40_700),
            ("opt/new/y", T::Regular, "x", 0o100_644),
            ("opt/new/x", T::Regular, "x", 0o100_644),
            ("lib/", T::Directory, "", 0o40_755),
            ("lib/sub/", T::Directory, "", 0o40_755),
            ("lib/sub/.wh.b", T::Regular, "", 0),
            ("lib/sub/a", T::Regular, "A", 0o100_644),
            ("log/", T::Directory, "", 0o40_755),
            ("log/.wh.old", T::Regular, "", 0),
            ("run/", T::Directory, "", 0o40_755),
        ],
        3,
    );
    let layer = layer_on(&below, &overlay2);
    let wanted = [
        "lib/ 755",
        "lib/sub/ 755",
        "lib/sub/.wh.b 600",
        "lib/sub/a 644 A",
        "log/ 755",
        "log/.wh.old 600",
        "opt/ 755",
        "opt/new/ 700",
        "opt/new/x 644 x",
        "opt/new/y 644 x",
        "run/ 755",
    ];
    assert_eq!(listing(&layer), wanted);
    assert!(layer_on(&below, &compared) == layer);
    assert!(layer_on(&below, &layer) == layer);
}

#[test]
fn every_property_of_a_path_counts_and_its_time_does_not() {
    let below = tar_of(BELOW, 1);
    assert_eq!(listing(&layer_on(&below, &tar_of(BELOW, 9))), Vec::<String>::new());
    for (entry, wanted) in [
        (("log/old", T::Regular, "x", 0o600), "log/old 600 x"),
        (("log/old", T::Regular, "", 0o644), "log/old 644"),
        (("log/old", T::Symlink, "x", 0o600), "log/old 600 -> x"),
        (("log/old/", T::Directory, "", 0o600), "log/old/ 600"),
    ] {
        assert_eq!(listing(&layer_on(&below, &tar_of([entry], 1))), ["log/ 755", wanted]);
    }
    for (path, kind, mode) in
        [("tmp/", T::Directory, 0o777), ("var", T::Symlink, 0o777), ("lib", T::Regular, 1)]
    {
        let layer = layer_on(
            &below,
            &tar_of(
                [(path, kind, "else", mode)].map(|mut entry| {
                    entry.2 = if kind == T::Directory { "" } else { "else" };
                    entry
                }),
                1,
            ),
        );
        assert_eq!(listing(&layer).len(), 1, "what lay below `{path}` needs no marker");
    }
    let mut owned = tar::Header::new_gnu();
    owned.set_mode(0o600);
    owned.set_uid(7);
    owned.set_gid(0);
    owned.set_size(0);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut owned, "log/old", std::io::empty()).expect("a vector");
    tar.append_pax_extensions([("SCHILY.xattr.security.capability", &[1][..])]).expect("a vector");
    owned.set_uid(0);
    tar.append_data(&mut owned, "log/older", std::io::empty()).expect("a vector");
    let changed = tar.into_inner().expect("a vector");
    let with_attribute = layer_on(&below, &changed);
    assert_eq!(listing(&with_attribute), ["log/ 755", "log/old 600", "log/older 600"]);
    let below = [&below[..below.len() - 1024], &with_attribute].concat();
    assert_eq!(listing(&layer_on(&below, &changed)), Vec::<String>::new());
}

#[test]
fn what_an_engine_puts_into_containers_is_no_difference() {
    let below = tar_of([("etc/hosts", T::Regular, "", 0o644), ("dev/null", T::Char, "", 0o666)], 1);
    let layer = tar_of(
        [
            ("etc/hosts", T::Regular, "mine", 0o644),
            ("etc/resolv.conf", T::Regular, "mine", 0o644),
            ("dev/.wh.null", T::Regular, "", 0),
            ("run/envforge/debs/", T::Directory, "", 0o755),
            ("proc/1", T::Regular, "", 0o644),
        ],
        1,
    );
    // The parents that the archive does not list.
    assert_eq!(listing(&layer_on(&below, &layer)), ["run/ 755"]);
}

#[test]
fn device_is_an_error_only_where_a_layer_adds_it() {
    let below = tar_of([("a", T::Char, "", 0o666), ("b", T::Fifo, "", 0o666)], 1);
    assert_eq!(listing(&layer_on(&below, &tar_of([("c", T::Regular, "", 0o644)], 1))), ["c 644"]);
    let mut above = tree(&[&below]);
    above.add(&section(&tar_of([("c", T::Fifo, "", 0o644)], 1))).expect("a layer");
    let error = write_difference(&tree(&[&below]), &above, Vec::new()).expect_err("a pipe");
    assert!(error.to_string().contains("unsupported file type of `c`"), "{error}");
}

#[test]
fn paths_that_lead_out_and_links_to_nothing_are_errors() {
    for entry in [("a/x", T::Link, "gone", 0o644), ("b", T::Link, "a", 0o644)] {
        let layer = tar_of([("a/", T::Directory, "", 0o755), entry], 1);
        assert!(Tree::default().add(&section(&layer)).is_err(), "{entry:?}");
    }
    let mut layer = tar_of([("aa/x", T::Regular, "", 0o644)], 1);
    layer[..2].copy_from_slice(b"..");
    let mut header = tar::Header::from_byte_slice(&layer[..512]).clone();
    header.set_cksum();
    layer[..512].copy_from_slice(header.as_bytes());
    let error = Tree::default().add(&section(&layer)).expect_err("outside");
    assert!(error.to_string().contains("leads out of its folder"), "{error}");
}

fn files() -> impl Strategy<Value = Files> {
    let path = prop::collection::vec(prop::sample::select(vec!["a", "b", "a-"]), 1..4);
    let kind = prop::sample::select(vec![T::Directory, T::Regular, T::Regular, T::Symlink]);
    let file = (path, kind, 0..2_u8, 0..2_u32);
    prop::collection::vec(file, 0..12).prop_map(|all| {
        let mut files = Files::new();
        for (names, kind, content, mode) in all {
            let path = names.join("/");
            for (end, _) in path.match_indices('/') {
                let parent = files.entry(path[..end].to_owned());
                parent.or_insert((T::Directory, String::new(), 0o755)).0 = T::Directory;
            }
            if kind != T::Directory {
                files.retain(|known, _| !known.starts_with(&format!("{path}/")));
            }
            files.insert(path, (kind, content.to_string(), 0o644 + mode));
        }
        for (kind, content, _) in files.values_mut() {
            if *kind == T::Directory {
                content.clear();
            }
        }
        files
    })
}

fn all_of(files: &Files) -> Vec<u8> {
    tar_of(
        files.iter().map(|(path, (kind, content, mode))| (path.as_str(), *kind, content.as_str(), *mode)),
        1,
    )
}

/// What changed, as a driver tells that compares two folders, or one that keeps what was written (`is_overlay`): then some
/// folders were made anew, and some paths were touched only.
fn told(below: &Files, above: &Files, is_overlay: bool, touched: &BTreeSet<String>) -> Vec<u8> {
    let mut markers = Vec::new();
    let is_new = |path: &String| {
        let is_folder = |files: &Files| files.get(path).is_some_and(|file| file.0 == T::Directory);
        is_folder(above) && (!is_folder(below) || touched.contains(path))
    };
    let anew: Vec<&String> = above.keys().filter(|path| is_overlay && is_new(path)).collect();
    let is_anew = |path: &str| anew.iter().any(|folder| path.starts_with(&format!("{folder}/")));
    markers.extend(anew.iter().map(|folder| format!("{folder}/.wh..wh..opq")));
    for path in below.keys().filter(|path| !above.contains_key(*path)) {
        let parent = String::from_utf8_lossy(parent_of(path.as_bytes())).into_owned();
        let is_folder = parent.is_empty() || above.get(&parent).is_some_and(|file| file.0 == T::Directory);
        if is_folder && !is_anew(path) {
            markers.push(String::from_utf8_lossy(&marker_of(path.as_bytes())).into_owned());
        }
    }
    let is_told = |path: &str, file| below.get(path) != Some(file) || touched.contains(path) || is_anew(path);
    let entries = above
        .iter()
        .filter(|(path, file)| is_told(path, file))
        .map(|(path, (kind, content, mode))| (path.as_str(), *kind, content.as_str(), *mode));
    let markers =
        markers.iter().map(|path| (path.as_str(), T::Regular, "", if is_overlay { 0o600 } else { 0 }));
    let mut all: Vec<Entry<'_>> = entries.chain(markers).collect();
    if is_overlay {
        all.sort_by(|a, b| b.0.cmp(a.0));
    }
    tar_of(all, 5)
}

proptest! {
    #[test]
    fn every_driver_gives_one_layer_and_it_makes_the_files(
        below in files(), above in files(), touched in prop::collection::btree_set("(a|b|a-)(/(a|b|a-)){0,2}", 0..6),
    ) {
        let bottom = all_of(&below);
        let compared = layer_on(&bottom, &told(&below, &above, false, &touched));
        let overlay = layer_on(&bottom, &told(&below, &above, true, &touched));
        prop_assert_eq!(listing(&compared), listing(&overlay));
        prop_assert!(compared == overlay);
        prop_assert!(!listing(&compared).iter().any(|line| line.contains(".wh..wh.")));
        // On what lies below, it makes what was to be made, and says so once.
        let (made, wanted) = (tree(&[&bottom, &compared]), tree(&[&all_of(&above)]));
        for (one, other) in [(&made, &wanted), (&wanted, &made)] {
            let mut rest = Vec::new();
            write_difference(one, other, &mut rest).expect("written");
            prop_assert_eq!(listing(&rest), Vec::<String>::new());
        }
        prop_assert!(layer_on(&bottom, &compared) == compared);
    }
}
