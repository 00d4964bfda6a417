//! Wheels that are refused, each for its reason.

use proptest::prelude::*;

use super::*;
use crate::assemble::made_wheel::{MadeEntry, MadeWheel, zip_of};
use crate::assemble::samples::{locked, open, open_bytes, reasons};
use crate::failure::{Exit, Failure as _};
use crate::model::lock::WheelLayer;

fn demo() -> MadeWheel {
    MadeWheel::new("demo").file("demo/a.py", b"x = 1\n")
}

/// The one reason for which a wheel with that entry is refused.
fn refused(entry: MadeEntry) -> String {
    let [reason] = <[String; 1]>::try_from(reasons(&demo().entry(entry))).expect("one reason");
    reason
}

fn file() -> MadeEntry {
    MadeEntry::new("demo/b.py", b"content of b")
}

#[test]
fn wheel_with_another_hash_is_rejected_before_it_is_read() {
    let other = locked("demo", WheelLayer::Stack, b"other bytes");
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let error = Wheel::open(file.path().try_into().expect("UTF-8"), &other).expect_err("refused");
    assert!(
        matches!(&error, AssembleError::WrongHash { wanted, .. } if *wanted == other.sha256),
        "{error:?}"
    );
    assert_eq!(error.exit(), Exit::Outside);
    assert!(error.to_string().starts_with("SHA-256 mismatch for `demo-1.0-py3-none-any.whl`: expected `"));
    assert!(error.hints()[0].contains(&other.sha256));
    let missing = Wheel::open("/nowhere/demo.whl".into(), &other).expect_err("missing");
    assert!(missing.to_string().contains("/nowhere/demo.whl"), "{missing}");
}

#[test]
fn entries_that_cannot_be_installed_are_refused_by_name() {
    let patched = |change: fn(&mut MadeEntry)| {
        let mut entry = file();
        change(&mut entry);
        refused(entry)
    };
    for (found, expected) in [
        (refused(file().named(b"../evil.py")), "`../evil.py`: the path contains `.` or `..`"),
        (refused(file().named(b"/tmp/evil.py")), "`/tmp/evil.py`: the path is absolute"),
        (refused(file().named(b"a\\b")), "`a\\\\b`: the name contains a backslash"),
        (refused(file().named(b"a\0b")), "`a\\0b`: the name contains a control character"),
        (refused(file().named(b"a//b")), "`a//b`: a part of the path is empty"),
        (refused(file().named("é".as_bytes())), "`é`: the name is not marked as UTF-8"),
        (refused(file().named(b"\xff")), "`\u{fffd}`: the name is not UTF-8"),
        (refused(file().named(b"demo/a.py")), "`demo/a.py`: 2 entries have this name"),
        (refused(file().named(b"demo/a.py/b")), "`demo/a.py`: it is a file and a directory"),
        (refused(file().named(b"demo/b.py/")), "`demo/b.py/`: it is a directory with content"),
        (patched(|entry| entry.flags = 1), "`demo/b.py`: it is encrypted"),
        (patched(|entry| entry.flags = 1 << 13), "`demo/b.py`: it is encrypted"),
        (patched(|entry| entry.flags = 1 << 5), "`demo/b.py`: it contains patch data"),
        (patched(|entry| entry.method = 12), "`demo/b.py`: unsupported compression method 12"),
        (patched(|entry| entry.method = 0), "`demo/b.py`: stored with 14 bytes for 12"),
        (patched(|entry| entry.local_name = b"demo/c.py".to_vec()), "`demo/b.py`: its two headers differ"),
        (patched(|entry| entry.local_name = b"demo/longer".to_vec()), "`demo/b.py`: its two headers differ"),
        (
            patched(|entry| entry.extra = b"\x75\x70\x06\0\x01\0\0\0\0x".to_vec()),
            "`demo/b.py`: the entry has a second name",
        ),
    ] {
        assert_eq!(found, expected);
    }
}

#[test]
fn all_reasons_are_reported_at_once() {
    let made = demo().file("../a", b"").file("/b", b"").file("demo/a.py", b"").entry(file().named(b"\xff"));
    let error = open(&made).expect_err("refused");
    assert_eq!(error.exit(), Exit::No);
    assert_eq!(
        error.to_string(),
        "cannot install `demo-1.0-py3-none-any.whl`:\n  - `../a`: the path contains `.` or `..`\n  \
         - `/b`: the path is absolute\n  - `\u{fffd}`: the name is not UTF-8\n  - `demo/a.py`: 2 entries have this name"
    );
}

#[test]
fn dist_info_directory_must_be_the_locked_one() {
    assert_eq!(
        reasons(&demo().without("demo-1.0.dist-info/WHEEL")),
        ["`demo-1.0.dist-info/WHEEL`: file not found"]
    );
    assert!(reasons(&demo().file("other-1.0.dist-info/RECORD", b""))[0].contains("several"));
    let error = open_bytes("other", &demo().build()).expect_err("refused").to_string();
    assert!(error.contains("`demo-1.0.dist-info` is not of the locked `other 1.0`"), "{error}");
    open(&demo().file("demo/_vendor/other-1.0.dist-info/RECORD", b"")).expect("a vendored one is accepted");
}

#[test]
fn zip64_comments_and_data_descriptors_are_read() {
    let entries =
        |entries: Vec<MadeEntry>| entries.into_iter().map(|entry| MadeEntry { zip64: true, ..entry });
    let long: Vec<_> = entries(demo().all_entries()).collect();
    let names = |bytes: &[u8]| open_bytes("demo", bytes).expect("a wheel").entries().to_vec();
    let short = names(&demo().build());
    assert_eq!(names(&zip_of(&long, b"a comment", true)), short);
    assert_eq!(names(&zip_of(&long, b"", false)), short);
    assert_eq!(names(&zip_of(&demo().all_entries(), b"PK\x05\x06", false)), short);
    let described = demo().entry(MadeEntry { flags: 1 << 3, ..file() });
    assert_eq!(open(&described).expect("a wheel").entries().len(), short.len() + 1);
}

#[test]
fn damaged_zips_are_refused() {
    let good = demo().build();
    let end = good.len() - 22;
    let directory = good.windows(4).position(|bytes| bytes == b"PK\x01\x02").expect("a directory");
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        assert_ne!(bytes[at], byte);
        bytes[at] = byte;
        bytes
    };
    for (bytes, expected) in [
        (Vec::new(), "not a zip file"),
        (b"text".to_vec(), "not a zip file"),
        (good[..good.len() - 1].to_vec(), "not a zip file"),
        ([good.as_slice(), b"x"].concat(), "not a zip file"),
        ([b"x", good.as_slice()].concat(), "not at the end"),
        (changed(end + 4, 1), "split over several files"),
        (changed(end + 8, 9), "split over several files"),
        (changed(end + 12, 1), "not at the end"),
        (changed(directory, b'X'), "list of entries is damaged"),
        (changed(directory + 28, 0xff), "list of entries is damaged"),
        (changed(directory + 42, 0xff), "headers differ"),
        (changed(directory + 45, 0x7f), "outside the file"),
        (changed(directory + 22, 0x7f), "headers differ"),
    ] {
        let error = open_bytes("demo", &bytes).expect_err(expected).to_string();
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn entries_that_share_bytes_are_refused() {
    // The second entry of the directory points to the bytes of the first one, which has the same name length and fields.
    let same = |name: &str| MadeEntry { local_name: b"demo/x".to_vec(), ..MadeEntry::new(name, b"same") };
    let bytes = demo().entry(same("demo/x")).entry(same("demo/x")).build();
    let records: Vec<usize> =
        (0..bytes.len() - 4).filter(|at| bytes[*at..].starts_with(b"PK\x01\x02")).collect();
    let mut shared = bytes.clone();
    shared.copy_within(records[3] + 42..records[3] + 46, records[4] + 42);
    let error = open_bytes("demo", &shared).expect_err("refused").to_string();
    assert!(error.contains("`demo/x`: its bytes belong to another entry as well"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The same checks as in the fuzz target, near a good wheel.
    #[test]
    fn damaged_wheels_never_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        zip64 in any::<bool>(),
        cut in 0..60_usize,
    ) {
        let entries = demo().file("demo/b/", b"").entry(MadeEntry { zip64, ..file() }).all_entries();
        let mut bytes = zip_of(&entries, b"", zip64);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        crate::assemble::fuzzed::wheel(&bytes);
        bytes.truncate(bytes.len() - cut);
        crate::assemble::fuzzed::wheel(&bytes);
    }
}
