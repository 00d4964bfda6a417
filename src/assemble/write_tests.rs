//! Layers as bytes: read back by other programs, equal each time, and refused when a wheel's content is wrong.

use std::collections::BTreeMap;
use std::io::Read as _;

use proptest::prelude::*;

use super::*;
use crate::assemble::conflicts::Conflicts;
use crate::assemble::install::Installation;
use crate::assemble::made_wheel::{MadeEntry, MadeWheel};
use crate::assemble::samples::{SITE, install, reasons};

/// Both forms of a layer and their digests.
fn written(plan: &LayerPlan) -> Result<(Vec<u8>, Vec<u8>, LayerDigests), AssembleError> {
    let (mut plain, mut gzip) = (Vec::new(), Vec::new());
    let digests = write_layer(plan, &mut plain, &mut gzip, &mut |_| ())?;
    Ok((plain, gzip, digests))
}

fn plan(wheels: &[&Installation], further: BTreeMap<String, LayerFile>) -> LayerPlan {
    LayerPlan::new(wheels, &Conflicts::default(), further).expect("a layer")
}

fn noise(size: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(size).collect()
}

/// A layer with entries of every kind, by hand below so that its digest is a test vector.
fn sample() -> LayerPlan {
    let made = MadeWheel::new("demo")
        .info("entry_points.txt", b"[console_scripts]\ndemo=demo:main\n")
        .file("demo/__init__.py", b"def main(): pass\n")
        .file("demo/large.bin", &noise(2_000_000))
        .entry(MadeEntry::new("demo/stored.bin", &noise(70_000)).stored())
        .entry(MadeEntry::new("demo/small_stored", b"stored").stored().mode(0o100_755))
        .file("demo/empty", b"")
        .file(&format!("demo/{}é", "long/".repeat(20)), b"far")
        .file("demo/none/", b"");
    let further = BTreeMap::from([
        (
            "opt/env/link".to_owned(),
            LayerFile {
                content: LayerContent::Symlink("bin/python".to_owned()),
                mode: 0o777,
                ..LayerFile::folder()
            },
        ),
        (
            "opt/env/lib/generated".to_owned(),
            LayerFile { uid: 1000, ..LayerFile::of_bytes(0o600, noise(1_500_000)) },
        ),
    ]);
    plan(&[&install(&made).expect("installed")], further)
}

/// An entry of a tar: path, mode, owner, link target, content.
type Entry = (String, u32, u64, Option<String>, Vec<u8>);

fn read(tar: &[u8]) -> Vec<Entry> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().expect("a tar").map(|entry| {
        let mut entry = entry.expect("an entry");
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("its content");
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
        let header = entry.header();
        assert_eq!((header.mtime().ok(), header.gid().ok()), (Some(0), Some(0)));
        let (mode, owner) = (header.mode().expect("a mode"), header.uid().expect("an owner"));
        let (path, link) = (text(&entry.path_bytes()), entry.link_name_bytes().map(|link| text(&link)));
        (path, mode, owner, link, content)
    });
    entries.collect()
}

#[test]
fn tar_contains_every_entry_and_parent_in_order() {
    let (plain, gzip, digests) = written(&sample()).expect("written");
    let entries = read(&plain);
    let paths: Vec<&str> = entries.iter().map(|entry| entry.0.as_str()).collect();
    assert!(paths.is_sorted_by_key(|path| path.trim_end_matches('/')), "{paths:?}");
    for folder in ["opt/", "opt/env/", "opt/env/bin/", "opt/env/lib/", &format!("{SITE}/demo/none/")] {
        assert!(paths.contains(&folder), "{folder}");
    }
    let find = |path: &str| entries.iter().find(|entry| entry.0 == path).unwrap_or_else(|| panic!("{path}"));
    let in_demo = |path: &str| find(&format!("{SITE}/demo/{path}"));
    assert!(in_demo("large.bin").4 == noise(2_000_000));
    assert!(in_demo("stored.bin").4 == noise(70_000));
    assert_eq!(
        (in_demo("small_stored").1, in_demo("small_stored").4.as_slice()),
        (0o755, b"stored".as_slice())
    );
    assert_eq!(in_demo(&format!("{}é", "long/".repeat(20))).4, b"far");
    assert_eq!((find("opt/").1, find("opt/").2), (0o755, 0));
    assert_eq!(find("opt/env/link").3.as_deref(), Some("bin/python"));
    assert_eq!((find("opt/env/lib/generated").1, find("opt/env/lib/generated").2), (0o600, 1000));
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(gzip.as_slice()).read_to_end(&mut unpacked).expect("gzip");
    assert!(unpacked == plain);
    let hash = |bytes: &[u8]| format!("sha256:{}", crate::model::sha256::sha256_hex(bytes));
    assert_eq!((digests.plain.diff_id, digests.plain.size), (hash(&plain), plain.len() as u64));
    assert_eq!((digests.gzip, digests.gzip_size), (hash(&gzip), gzip.len() as u64));
}

/// A change of these digests changes every layer: raise `LAYOUT_VERSION`.
#[test]
fn digests_are_those_of_this_layout_version() {
    let digests = written(&sample()).expect("written").2;
    assert_eq!(crate::assemble::LAYOUT_VERSION, 1);
    insta::assert_snapshot!(digests.plain.diff_id, @"sha256:34278269cd3a51687b8e87f54e694170d358ddda6ae40455278b18e8577a3441");
    insta::assert_snapshot!(digests.gzip, @"sha256:3a5601a1a167c1e0baabc5fa259d9713e627c1070359945bf1f0020c6f4612dd");
}

#[test]
fn plain_form_alone_is_the_same() {
    let plan = sample();
    let (plain, _, digests) = written(&plan).expect("written");
    let (mut alone, mut progress) = (Vec::new(), Vec::new());
    let digest = write_plain(&plan, &mut alone, &mut |bytes| progress.push(bytes)).expect("written");
    assert!(alone == plain && digest == digests.plain);
    assert_eq!(progress.len(), plan.files().len());
    assert!(progress.is_sorted() && progress.last() < Some(&digest.size));
}

#[test]
fn known_layer_is_the_same_and_a_damaged_file_of_it_is_refused() {
    let plan = sample();
    let mut known = Vec::new();
    write_known(&plan, &mut known).expect("written");
    let (plain, gzip, _) = written(&plan).expect("written");
    assert!(known == plain);
    known.clear();
    write_known_gzip(&plan, &mut known).expect("written");
    assert!(known == gzip);
    let entry = MadeEntry { crc32: 1, ..MadeEntry::new("demo/a.bin", b"x") };
    let made = install(&MadeWheel::new("demo").entry(entry).record("")).expect("installed");
    let layer = LayerPlan::new(&[&made], &Conflicts::default(), BTreeMap::new()).expect("a layer");
    let Err(AssembleError::Refused { reasons, .. }) = write_known(&layer, io::sink()) else {
        panic!("taken")
    };
    assert_eq!(reasons, ["`demo/a.bin`: CRC-32 mismatch"]);
}

#[test]
fn packed_tar_is_the_layer_of_the_same_files() {
    let files = [("opt/large", noise(2_500_000)), ("opt/small", b"x".to_vec())];
    let files = files.map(|(path, bytes)| (path.to_owned(), LayerFile::of_bytes(0o644, bytes)));
    let (plain, gzip, digests) = written(&plan(&[], files.into())).expect("a layer");
    let mut packed = Vec::new();
    assert_eq!(pack_tar(plain.as_slice(), &mut packed).expect("packed"), digests);
    assert!(packed == gzip);
    assert!(gunzip(&packed) == plain);
}

fn gunzip(packed: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::MultiGzDecoder::new(packed).read_to_end(&mut plain).expect("gzip");
    plain
}

#[test]
fn raw_streams_of_larger_files_are_in_the_compressed_form() {
    let entry = MadeEntry::new("demo/large.bin", &noise(100_000));
    let small = MadeEntry::new("demo/small.bin", &noise(4095));
    let made = MadeWheel::new("demo").entry(entry.clone()).entry(small.clone());
    let gzip = written(&plan(&[&install(&made).expect("installed")], BTreeMap::new())).expect("written").1;
    let contains = |packed: &[u8]| gzip.windows(packed.len()).any(|bytes| bytes == packed);
    assert!(contains(&entry.packed) && !contains(&small.packed));
}

#[test]
fn content_that_differs_from_zip_or_record_is_refused() {
    let written_reasons =
        |made: &MadeWheel| match written(&plan(&[&install(made).expect("installed")], BTreeMap::new())) {
            Err(AssembleError::Refused { reasons, .. }) => reasons,
            other => panic!("{other:?}"),
        };
    let demo = || MadeWheel::new("demo");
    let other = "sha256=mHUu4o1UhL3CgU-3CttqCy-zH2qbjueugf0vyc8wCzs";
    let recorded = demo().file("demo/a.py", b"x=2\n").record(&format!("demo/a.py,{other},4\n"));
    assert_eq!(written_reasons(&recorded), ["`demo/a.py`: the SHA-256 differs from RECORD"]);
    for size in [10, 10_000] {
        let good = MadeEntry::new("demo/a.bin", &noise(size));
        let cut = good.packed[..good.packed.len() - 1].to_vec();
        let longer = [good.packed.as_slice(), b"x"].concat();
        for (entry, reason) in [
            (MadeEntry { crc32: 1, ..good.clone() }, "CRC-32 mismatch"),
            (MadeEntry { packed: cut, ..good.clone() }, "its DEFLATE stream is truncated"),
            (MadeEntry { packed: longer, ..good.clone() }, "its DEFLATE stream ends early"),
        ] {
            let made = demo().entry(entry).record("");
            assert_eq!(written_reasons(&made), [format!("`demo/a.bin`: {reason}")]);
        }
    }
    // The same is found where the installer reads the content itself.
    let point = MadeEntry { crc32: 1, ..MadeEntry::new("demo-1.0.dist-info/entry_points.txt", b"") };
    assert_eq!(reasons(&demo().entry(point)), ["`demo-1.0.dist-info/entry_points.txt`: CRC-32 mismatch"]);
}

/// A receiver with little room.
struct Full(usize);

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn full_receivers_are_reported() {
    let plan = sample();
    for room in [0, 1000, 300_000, 3_000_000] {
        for error in [
            write_plain(&plan, Full(room), &mut |_| ()).expect_err("full"),
            write_layer(&plan, Full(room), io::sink(), &mut |_| ()).expect_err("full"),
            write_layer(&plan, io::sink(), Full(room), &mut |_| ()).expect_err("full"),
        ] {
            assert!(
                matches!(&error, AssembleError::Write(cause) if cause.kind() == io::ErrorKind::StorageFull)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_files_are_read_back(
        files in proptest::collection::btree_map("[a-cé]{1,120}(/[d-f ]{1,120}){0,3}", proptest::collection::vec(any::<u8>(), 0..9000), 0..8),
        stored in any::<bool>(),
    ) {
        let mut made = MadeWheel::new("demo");
        for (path, content) in &files {
            let entry = MadeEntry::new(&format!("{path}.x"), content);
            made = made.entry(if stored { entry.stored() } else { entry });
        }
        // A directory may have the name of a file, which is refused; that is tested elsewhere.
        let Ok(installed) = install(&made) else { return Ok(()) };
        let plan = plan(&[&installed], BTreeMap::new());
        let (plain, gzip, _) = written(&plan).expect("written");
        let mut unpacked = Vec::new();
        flate2::read::MultiGzDecoder::new(gzip.as_slice()).read_to_end(&mut unpacked).expect("gzip");
        prop_assert!(unpacked == plain);
        let entries: BTreeMap<String, Vec<u8>> = read(&plain).into_iter().map(|entry| (entry.0, entry.4)).collect();
        let listed = |(path, file): (&String, &LayerFile)| {
            if matches!(file.content, LayerContent::Folder) { format!("{path}/") } else { path.clone() }
        };
        prop_assert_eq!(entries.keys().cloned().collect::<Vec<_>>(), {
            let mut all: Vec<String> = plan.files().iter().map(listed).collect();
            all.sort();
            all
        });
        for (path, content) in &files {
            prop_assert_eq!(&entries[&format!("{SITE}/{path}.x")], content);
        }
    }
}

#[test]
#[ignore = "needs python3"]
#[expect(clippy::disallowed_methods, reason = "Python reads the layer")]
fn python_reads_both_forms() {
    let (plain, gzip, _) = written(&sample()).expect("written");
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs_err::write(folder.path().join("plain"), &plain).expect("written");
    fs_err::write(folder.path().join("gzip"), &gzip).expect("written");
    let code = "import gzip, hashlib, tarfile\n\
                assert gzip.open('gzip').read() == open('plain', 'rb').read()\n\
                for form in 'plain', 'gzip':\n\
                \x20   tar = tarfile.open(form)\n\
                \x20   for m in tar: print(m.name, oct(m.mode), m.uid, m.gid, m.mtime, m.uname, m.linkname, m.size,\n\
                \x20       m.isfile() and hashlib.sha256(tar.extractfile(m).read()).hexdigest())";
    let run = std::process::Command::new("python3").args(["-c", code]).current_dir(folder.path()).output();
    let run = run.expect("python3 starts");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let expected: Vec<String> = read(&plain)
        .iter()
        .map(|(path, mode, owner, link, content)| {
            let (name, link) = (path.trim_end_matches('/'), link.as_deref().unwrap_or_default());
            let is_file = !path.ends_with('/') && link.is_empty();
            let hash = if is_file { crate::model::sha256::sha256_hex(content) } else { "False".to_owned() };
            format!("{name} 0o{mode:o} {owner} 0 0  {link} {} {hash}\n", content.len())
        })
        .collect();
    assert_eq!(String::from_utf8_lossy(&run.stdout), expected.concat().repeat(2));
}
