//! Libraries that a C compiler makes here, audited as an extension is: what the loader would refuse is found, and nothing else.
#![expect(clippy::disallowed_methods, reason = "compiles libraries and reads them")]

use std::path::{Path, PathBuf};
use std::process::Command;

use envforge_protocol::abi::{Finding, Place, Table, World, tables};
use envforge_protocol::elf::{ElfError, object};
use shared_library::shared_library as library;

#[path = "../../../tests/support/shared_library.rs"]
mod shared_library;

/// A fresh folder of that name.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("made");
    folder
}

fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).expect("read")
}

fn table(path: &Path, shown: &str) -> Table {
    Table::new(shown, object(bytes(path).as_slice()).expect("a library"))
}

const OF_TORCH: &str = "int _ZN3c104cuda9SetDeviceEab(void) { return 0; }";
const VERSIONED: &str = "int versioned(void) { return 1; }";
const EXTENSION: &str = "extern int _ZN3c104cuda9SetDeviceEab(void); extern int optional(void) __attribute__((weak)); \
     extern int own(void); int start(void) { return _ZN3c104cuda9SetDeviceEab() + (optional ? optional() : 0) + own(); }";
const SIBLING: &str = "int own(void) { return 2; }";

/// torch with one library, an extension of it and a library of the extension's own wheel.
struct Built {
    folder: PathBuf,
}

impl Built {
    fn new(name: &str) -> Self {
        let folder = folder(name);
        std::fs::write(folder.join("versions"), "NEW_1.2 { global: versioned; }; NEW_1.10 { };")
            .expect("written");
        let script = format!("-Wl,--version-script={}", folder.join("versions").display());
        library(&folder, "libc10.so", OF_TORCH, &["-Wl,-soname,libc10.so"]);
        library(&folder, "libversioned.so", VERSIONED, &["-Wl,-soname,libversioned.so", &script]);
        library(&folder, "libown.so", SIBLING, &["-Wl,-soname,libown.so"]);
        Self { folder }
    }

    fn extension(&self, source: &str, flags: &[&str]) -> PathBuf {
        let needs = ["-Wl,--no-as-needed", "-l:libc10.so", "-l:libown.so", "-Wl,-rpath,$ORIGIN/../own.libs"];
        library(&self.folder, "ext.so", source, &[&needs[..], flags].concat())
    }

    fn world(&self, extension: &Path) -> World {
        let mut world = World::default();
        world.add(Place::Packages, table(&self.folder.join("libc10.so"), "torch/lib/libc10.so"));
        world.add(Place::System, table(&self.folder.join("libversioned.so"), "/usr/lib/libversioned.so"));
        world.add(Place::Packages, table(&self.folder.join("libown.so"), "own.libs/libown.so"));
        world.add(Place::Packages, table(extension, "own/ext.so"));
        world.load(|one| one.path == "torch/lib/libc10.so", |_| false);
        world
    }

    fn audit(&self, source: &str, flags: &[&str]) -> Vec<String> {
        let extension = self.extension(source, flags);
        self.world(&extension).audit("own/ext.so").iter().map(ToString::to_string).collect()
    }
}

#[test]
fn weak_symbols_and_those_of_the_same_wheel_are_no_findings() {
    let built = Built::new("fits");
    assert_eq!(built.audit(EXTENSION, &[]), [""; 0]);
    let extension = table(&built.extension(EXTENSION, &[]), "own/ext.so");
    let asked: Vec<_> = extension.undefined.iter().map(String::as_str).collect();
    assert_eq!(asked, ["_ZN3c104cuda9SetDeviceEab", "own"], "the weak one is not asked for");
}

#[test]
fn missing_symbol_is_reported_with_a_near_one() {
    let built = Built::new("symbol");
    let older = EXTENSION.replace("SetDeviceEab", "SetDeviceEa").replace("own()", "gone()");
    assert_eq!(
        built.audit(&older.replace("extern int own", "extern int gone"), &[]),
        [
            "own/ext.so needs undefined symbol _ZN3c104cuda9SetDeviceEa (libc10.so has _ZN3c104cuda9SetDeviceEab)",
            "own/ext.so needs undefined symbol gone"
        ]
    );
}

#[test]
fn missing_library_and_path_of_another_wheel_are_reported() {
    let built = Built::new("library");
    let gone = library(&built.folder, "libgone.so", "", &["-Wl,-soname,libgone.so.13"]);
    assert_eq!(built.audit(EXTENSION, &["-l:libgone.so"]), ["own/ext.so needs libgone.so.13"]);
    // In site-packages, but where the extension does not look and nothing loaded it.
    let extension = built.extension(EXTENSION, &["-l:libgone.so"]);
    let mut world = built.world(&extension);
    world.add(Place::Packages, table(&gone, "elsewhere/libgone.so"));
    let missing =
        Finding::MissingLibrary { soname: "libgone.so.13".to_owned(), needed_by: "own/ext.so".to_owned() };
    assert_eq!(world.audit("own/ext.so"), [missing]);
    world.load(|one| one.path == "elsewhere/libgone.so", |_| false);
    assert_eq!(world.audit("own/ext.so"), [], "a loaded library is found by its soname");
}

#[test]
fn symbol_of_a_library_that_the_package_loads_first_is_not_fatal() {
    let built = Built::new("first");
    let extension =
        built.extension(&EXTENSION.replace("own()", "first()").replace("int own", "int first"), &[]);
    let first = library(&built.folder, "libfirst.so", "int first(void) { return 3; }", &[]);
    let mut world = built.world(&extension);
    assert!(world.audit("own/ext.so")[0].is_fatal(), "no library has it");
    world.add(Place::Packages, table(&first, "own/libfirst.so"));
    let found = world.audit("own/ext.so");
    let text = "own/ext.so needs first of own/libfirst.so, which must be loaded before it";
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [text]);
    assert!(!found[0].is_fatal());
}

#[test]
fn module_beside_all_packages_finds_its_libraries_and_no_path_leads_out_of_them() {
    let built = Built::new("top");
    let top = library(
        &built.folder,
        "top.so",
        "",
        &["-Wl,--no-as-needed", "-l:libown.so", "-Wl,-rpath,$ORIGIN/own.libs"],
    );
    let out = library(
        &built.folder,
        "out.so",
        "",
        &["-Wl,--no-as-needed", "-l:libown.so", "-Wl,-rpath,$ORIGIN/../../own.libs"],
    );
    let mut world = built.world(&built.extension(EXTENSION, &[]));
    world.add(Place::Packages, table(&top, "top.so"));
    world.add(Place::Packages, table(&out, "out/out.so"));
    assert_eq!(world.audit("top.so"), []);
    let missing =
        Finding::MissingLibrary { soname: "libown.so".to_owned(), needed_by: "out/out.so".to_owned() };
    assert_eq!(world.audit("out/out.so"), [missing]);
}

#[test]
fn symbol_of_torch_is_missing_beside_a_missing_library() {
    let built = Built::new("beside");
    library(&built.folder, "libgone.so", "int other(void) { return 0; }", &["-Wl,-soname,libgone.so.13"]);
    let asks = EXTENSION
        .replace("SetDeviceEab", "SetDeviceEa")
        .replace("own()", "other()")
        .replace("int own", "int other");
    let extension = built.extension(&asks, &["-l:libgone.so"]);
    let found = built.world(&extension).audit("own/ext.so");
    let held: Vec<_> = found.iter().filter(|one| one.holds_without_a_library()).map(Finding::kind).collect();
    assert_eq!((found.len(), held), (3, vec!["missing-symbol"]), "{found:?}");
}

#[test]
fn missing_version_is_reported_with_the_newest() {
    let built = Built::new("version");
    let asks = format!("{EXTENSION} extern int versioned(void); int more(void) {{ return versioned(); }}");
    assert_eq!(built.audit(&asks, &["-l:libversioned.so"]), [""; 0]);
    let extension = built.extension(&asks, &["-l:libversioned.so"]);
    // The same library, older.
    let older = "NEW_1.1 { global: versioned; };";
    std::fs::write(built.folder.join("versions"), older).expect("written");
    let script = format!("-Wl,--version-script={}", built.folder.join("versions").display());
    library(&built.folder, "libversioned.so", VERSIONED, &["-Wl,-soname,libversioned.so", &script]);
    let found = built.world(&extension).audit("own/ext.so");
    let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["own/ext.so needs version NEW_1.2 of libversioned.so, which has NEW_1.1"]);
}

#[test]
fn other_processor_is_reported() {
    let built = Built::new("processor");
    let extension = built.extension(EXTENSION, &[]);
    let mut changed = bytes(&extension);
    changed[18..20].copy_from_slice(&183_u16.to_le_bytes());
    let arm = Table::new("own/ext.so", object(changed.as_slice()).expect("readable"));
    let mut world = built.world(&extension);
    world.add(Place::Packages, arm);
    let found = world.audit("own/ext.so");
    let library = "own/ext.so".to_owned();
    assert_eq!(found, [Finding::OtherProcessor { library, found: 183, wanted: 62 }]);
    assert_eq!(found[0].to_string(), "own/ext.so is built for aarch64, not for x86_64");
}

#[test]
fn stripped_extension_is_read_by_its_program_headers() {
    let built = Built::new("stripped");
    // No export: GNU's hash table knows no symbol.
    let only_asks = "extern int gone(void); static int (*const keep)(void) __attribute__((used)) = gone;";
    let extension = built.extension(only_asks, &["-Wl,--hash-style=gnu"]);
    let asks = |bytes: &[u8]| Table::new("own/ext.so", object(bytes).expect("a library")).undefined;
    let whole = bytes(&extension);
    assert!(asks(&whole).contains("gone"));
    let mut without_sections = whole.clone();
    for at in [40..48, 58..60, 60..62] {
        without_sections[at].fill(0);
    }
    assert!(asks(&without_sections).contains("gone"), "the relocations know how many symbols there are");
    let status = Command::new("strip").arg("--strip-all").arg(&extension).status();
    assert!(status.expect("binutils").success());
    assert!(asks(&bytes(&extension)).contains("gone"));
    // A static object has no dynamic section at all.
    let mut no_dynamic = whole.clone();
    let headers =
        usize::try_from(u64::from_le_bytes(whole[32..40].try_into().expect("eight"))).expect("small");
    for header in no_dynamic[headers..].chunks_exact_mut(56).take(usize::from(whole[56])) {
        if header[0] == 2 {
            header[0] = 0;
        }
    }
    assert_eq!(object(no_dynamic.as_slice()), Err(ElfError::NoSymbols));
    assert_eq!(object(&b"#!/bin/sh\n"[..]), Err(ElfError::NotElf));
}

#[test]
fn damaged_tables_are_errors_and_never_panic() {
    let built = Built::new("damaged");
    let script = format!("-Wl,--version-script={}", built.folder.join("versions").display());
    let whole = bytes(&library(
        &built.folder,
        "libdamaged.so",
        &[OF_TORCH, VERSIONED].concat(),
        &[&script, "-l:libc10.so"],
    ));
    let read = object(whole.as_slice()).expect("a library");
    assert!(read.symbols.len() > 1 && read.version_definitions == ["NEW_1.2", "NEW_1.10"], "{read:?}");
    let mut errors = 0;
    for length in (0..whole.len()).step_by(7) {
        errors += usize::from(object(&whole[..length]).is_err());
    }
    let mut broken = whole.clone();
    // Every byte of the tables, and every second one after them.
    for at in 0..whole.len() {
        let kept = broken[at];
        for value in [0, 0xff, 0x80, kept.wrapping_add(1), kept ^ 0x10] {
            broken[at] = value;
            errors += usize::from(object(broken.as_slice()).is_err());
        }
        broken[at] = kept;
    }
    assert!(errors > 100, "{errors} of them are noticed");
}

/// Names that overlap in the string table, or a list that ends nowhere, would fill any memory.
#[test]
fn tables_of_kilobytes_do_not_become_gigabytes() {
    let built = Built::new("bomb");
    let script = format!("-Wl,--version-script={}", built.folder.join("versions").display());
    let many: Vec<_> = (0..300).map(|index| format!("int f{index}(void) {{ return 0; }}")).collect();
    let long = format!("int {}(void) {{ return 0; }}", "a".repeat(20_000));
    let path = library(
        &built.folder,
        "libbomb.so",
        &[many.join("\n").as_str(), &long, VERSIONED].join("\n"),
        &[&script],
    );
    let whole = bytes(&path);
    assert!(object(whole.as_slice()).is_ok());
    // Every symbol gets the longest name.
    let at = whole.windows(20_000).position(|part| part.iter().all(|byte| *byte == b'a')).expect("the name");
    let sections =
        usize::try_from(u64::from_le_bytes(whole[40..48].try_into().expect("eight"))).expect("small");
    let mut bomb = whole.clone();
    let (mut dynsym, mut dynstr) = (0..0, 0);
    for header in whole[sections..].chunks_exact(64) {
        let number = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().expect("eight"));
        let place = |at: usize| usize::try_from(number(at)).expect("small");
        match header[4] {
            11 => dynsym = place(24)..place(24) + place(32),
            3 if number(8) & 2 != 0 => dynstr = place(24),
            _ => {}
        }
    }
    let name = u32::try_from(at - dynstr).expect("small").to_le_bytes();
    for symbol in bomb[dynsym].chunks_exact_mut(24).skip(1) {
        symbol[..4].copy_from_slice(&name);
    }
    assert_eq!(object(bomb.as_slice()), Err(ElfError::Damaged("string table")));
}

/// The list of versions ends at its last entry, whatever length it claims.
#[test]
fn version_list_that_claims_more_entries_is_read_once() {
    let built = Built::new("versions");
    let asks = format!("{EXTENSION} extern int versioned(void); int more(void) {{ return versioned(); }}");
    let mut changed = bytes(&built.extension(&asks, &["-l:libversioned.so"]));
    let needs = object(changed.as_slice()).expect("a library").version_needs;
    let sections =
        usize::try_from(u64::from_le_bytes(changed[40..48].try_into().expect("eight"))).expect("small");
    let of_needs = |header: &&[u8]| header[4..8] == 0x6fff_fffe_u32.to_le_bytes();
    let header = changed[sections..].chunks_exact(64).find(of_needs).expect("version needs");
    let at = usize::try_from(u64::from_le_bytes(header[24..32].try_into().expect("eight"))).expect("small");
    changed[at + 2..at + 4].copy_from_slice(&u16::MAX.to_le_bytes());
    assert_eq!(object(changed.as_slice()).expect("a library").version_needs, needs);
}

#[test]
fn text_of_tables_reads_back() {
    let built = Built::new("text");
    let all: Vec<_> = built.world(&built.extension(EXTENSION, &["-l:libversioned.so"])).tables().to_vec();
    let mut text = String::new();
    for one in &all {
        one.write(&mut text);
    }
    assert_eq!(tables(&text), Ok(all));
    assert_eq!(tables("library a\nnonsense b\n").map_err(|error| error.line), Err(2));
}
