//! `compat abi`: the libraries of a wheel against the locked wheels of an index of the test.

use std::path::Path;

use serde_json::Value;

use crate::index::Index;
use crate::made_wheel::MadeWheel;
use crate::program::{Program, Run};
use crate::shared_library::shared_library;
use crate::vendor::locked;
use crate::wheels::Wheel;
use crate::{assert_message, program};

const SPEC: &str = "pytorch-cuda:2.8-cu128";
const TORCH: &str = "torch-2.8.0-cp311-cp311-manylinux_2_28_x86_64.whl";
const EXTENSION: &str = "my_extension-1.0-cp311-cp311-linux_x86_64.whl";
const FITS: &str = "extern int _ZN3c104cuda9SetDeviceEab(void); extern int PyErr_Occurred(void);
    int start(void) { return _ZN3c104cuda9SetDeviceEab() + PyErr_Occurred(); }";

/// A lock with one wheel of torch, which an index has, and a wheel to check.
struct Scene {
    program: Program,
    index: Index,
}

fn library(folder: &Path, name: &str, source: &str, flags: &[&str]) -> Vec<u8> {
    std::fs::read(shared_library(folder, name, source, flags)).expect("read")
}

impl Scene {
    fn new() -> Self {
        let program = program();
        let folder = program.path("built");
        std::fs::create_dir_all(&folder).expect("ours");
        let of_torch = "int _ZN3c104cuda9SetDeviceEab(void) { return 0; }";
        let c10 = library(&folder, "libc10.so", of_torch, &["-Wl,-soname,libc10.so"]);
        let bytes = MadeWheel::new("torch").file("torch/lib/libc10.so", &c10).build();
        let torch =
            Wheel { project: "torch".to_owned(), file: TORCH.to_owned(), bytes, metadata: String::new() };
        let mut lock = crate::verify::lock();
        lock.wheels = vec![locked(&torch)];
        let name = format!("{}-x86_64.lock", lock.stack.name.replace(':', "_"));
        let file = program.path(format!("state/locks-of-specs/{name}"));
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("ours");
        std::fs::write(file, lock.to_toml()).expect("ours");
        let index = Index::local(vec![torch]);
        let program = program.with("ENVFORGE_INDEX", format!("{}/simple", index.url()));
        Self { program, index }
    }

    /// Checks a wheel with a library of that source and with those bytes changed.
    fn check(&self, source: &str, change: impl Fn(&mut Vec<u8>), more: &[&str]) -> Run {
        let mut extension = self.extension(source, &[]);
        change(&mut extension);
        self.check_wheel(&extension, more)
    }

    /// Checks a wheel whose library is linked with others too.
    fn check_linked(&self, source: &str, with: &[&str]) -> Run {
        self.check_wheel(&self.extension(source, with), &[])
    }

    fn extension(&self, source: &str, with: &[&str]) -> Vec<u8> {
        let needs = ["-Wl,--no-as-needed", "-l:libc10.so", "-Wl,-rpath,$ORIGIN/../torch/lib"];
        library(&self.program.path("built"), "_C.so", source, &[&needs, with].concat())
    }

    fn check_wheel(&self, extension: &[u8], more: &[&str]) -> Run {
        let wheel = MadeWheel::new("my_extension").file("my_extension/_C.so", extension).build();
        std::fs::write(self.program.path(EXTENSION), wheel).expect("ours");
        self.program.run(&[&["compat", "abi", EXTENSION, "--spec", SPEC], more].concat())
    }
}

#[test]
fn wheel_that_fits_is_reported_and_tables_are_made_once() {
    let scene = Scene::new();
    let run = scene.check(FITS, |_| {}, &[]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert_eq!(run.stdout, format!("{EXTENSION} is compatible with pytorch-cuda:2.8.0-cu128-py3.11\n"));
    assert!(run.stderr.contains(&format!("reading the symbols of {TORCH}")), "{}", run.stderr);
    assert_eq!(scene.index.take_downloads().len(), 1);
    let again = scene.check(FITS, |_| {}, &[]);
    assert_eq!(again.code, 0, "{}{}", again.stdout, again.stderr);
    assert!(!again.stderr.contains("reading the symbols"), "{}", again.stderr);
}

/// A base has what its Python depends on; a name that no such library has is missing all the same.
#[test]
fn libraries_that_the_python_of_a_base_needs_are_met() {
    let scene = Scene::new();
    let folder = scene.program.path("built");
    for (soname, symbol) in
        [("libz.so.1", "inflate"), ("libcrypt.so.1", "crypt_r"), ("libexpat.so.1", "XML_Parse")]
    {
        let stub = format!("int {symbol}(void) {{ return 0; }} int png_read(void) {{ return 0; }}");
        library(&folder, soname, &stub, &[&format!("-Wl,-soname,{soname}")]);
        let outcome = |symbol: &str| {
            let source = format!("extern int {symbol}(void); int other(void) {{ return {symbol}(); }}");
            scene.check_linked(&source, &[&format!("-l:{soname}")])
        };
        let run = outcome(symbol);
        assert_eq!(run.code, 0, "{soname}: {}{}", run.stdout, run.stderr);
        let run = outcome("png_read");
        assert_eq!(run.code, 1, "{soname}: {}{}", run.stdout, run.stderr);
        assert!(run.stdout.contains("png_read"), "{}", run.stdout);
    }
}

#[test]
fn missing_symbol_is_named_with_exit_code_1() {
    let scene = Scene::new();
    let run = scene.check(&FITS.replace("SetDeviceEab", "SetDeviceEa"), |_| {}, &[]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let finding = "my_extension/_C.so needs undefined symbol _ZN3c104cuda9SetDeviceEa (libc10.so has _ZN3c104cuda9SetDeviceEab)";
    let verdict = format!("{EXTENSION} is not compatible with pytorch-cuda:2.8.0-cu128-py3.11");
    assert_eq!(run.stdout.lines().collect::<Vec<_>>(), [finding, &verdict]);
    let json = scene.check(&FITS.replace("SetDeviceEab", "SetDeviceEa"), |_| {}, &["--json"]);
    let value: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!((json.code, &value["fits"]), (1, &Value::Bool(false)));
    assert_eq!(value["libraries"][0]["findings"][0]["kind"], "missing-symbol");
}

#[test]
fn newer_glibc_and_other_processor_are_findings() {
    let scene = Scene::new();
    let arm = |bytes: &mut Vec<u8>| bytes[18] = 183;
    let run = scene.check(FITS, arm, &[]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout.starts_with("my_extension/_C.so is built for aarch64, not for x86_64\n"),
        "{}",
        run.stdout
    );
    // A C library of the future, to link with.
    let folder = scene.program.path("built");
    std::fs::write(folder.join("map"), "GLIBC_2.99 { global: later; };").expect("ours");
    let map = format!("-Wl,--version-script={}", folder.join("map").display());
    library(&folder, "libc.so.6", "int later(void) { return 0; }", &["-Wl,-soname,libc.so.6", &map]);
    let later = format!("{FITS} extern int later(void); int more(void) {{ return later(); }}");
    let extension = library(
        &folder,
        "_C.so",
        &later,
        &["-Wl,--no-as-needed", "-l:libc10.so", "-l:libc.so.6", "-Wl,-rpath,$ORIGIN/../torch/lib"],
    );
    let run = scene.check(FITS, |bytes| bytes.clone_from(&extension), &[]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let finding = "my_extension/_C.so needs version GLIBC_2.99 of libc.so.6, which has GLIBC_2.36";
    assert_eq!(run.stdout.lines().next(), Some(finding));
}

#[test]
fn damaged_table_is_a_finding_and_another_file_an_error() {
    let scene = Scene::new();
    // The offset of the program headers.
    let run = scene.check(FITS, |bytes| bytes[32..40].fill(0xff), &[]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    assert!(run.stdout.starts_with("my_extension/_C.so: damaged program headers\n"), "{}", run.stdout);
    std::fs::write(scene.program.path(EXTENSION), "no zip").expect("ours");
    let run = scene.program.run(&["compat", "abi", EXTENSION, "--spec", SPEC]);
    assert_message(&run, 2, &[EXTENSION, "not a zip file"]);
    assert_message(&scene.program.run(&["compat", "abi", "a.txt", "--spec", SPEC]), 2, &["wheel name"]);
}

#[test]
fn wheel_of_the_index_is_chosen_for_the_lock_and_downloaded_once() {
    let scene = Scene::new();
    let publish = |tag: &str, source: &str| {
        let bytes =
            MadeWheel::new("my_extension").file("my_extension/_C.so", &scene.extension(source, &[])).build();
        let file = format!("my_extension-1.0-{tag}.whl");
        let (project, metadata) = ("my-extension".to_owned(), String::new());
        scene.index.publish(vec![Wheel { project, file: file.clone(), bytes, metadata }]);
        file
    };
    let check = |release: &str| scene.program.run(&["compat", "abi", release, "--spec", SPEC]);
    assert_message(&check("my-extension==1.0"), 1, &["no wheel of `my-extension 1.0`", "does not list"]);
    let other = publish("cp312-cp312-linux_x86_64", FITS);
    let reason = format!("`{other}`: it is for Python cp312-cp312; the stack has 3.11");
    assert_message(&check("my-extension==1.0"), 1, &["no wheel of `my-extension 1.0`", &reason]);
    assert_message(&check("my-extension==2.0"), 1, &["no file of that release; its newest wheel is of 1.0"]);
    let file = publish("cp311-cp311-linux_x86_64", &FITS.replace("SetDeviceEab", "SetDeviceEa"));
    scene.index.take_downloads();
    let run = check("My_Extension==1.0");
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let verdict = format!("{file} is not compatible with pytorch-cuda:2.8.0-cu128-py3.11");
    assert_eq!(run.stdout.lines().last(), Some(verdict.as_str()));
    assert!(run.stdout.contains("undefined symbol _ZN3c104cuda9SetDeviceEa "), "{}", run.stdout);
    let downloads = scene.index.take_downloads();
    assert!(downloads.iter().any(|path| path.contains(&file)), "{downloads:?}");
    assert_eq!(check("my-extension==1.0").code, 1);
    assert_eq!(scene.index.take_downloads(), Vec::<String>::new());
    assert_message(&check("my-extension=="), 2, &["invalid release", "NAME==VERSION"]);
}

#[test]
fn wheel_of_the_index_with_other_bytes_than_its_hash_is_refused() {
    let scene = Scene::new();
    let wheel = |content: &[u8]| Wheel {
        project: "my-extension".to_owned(),
        file: EXTENSION.to_owned(),
        bytes: MadeWheel::new("my_extension").file("my_extension/a.txt", content).build(),
        metadata: String::new(),
    };
    scene.index.publish(vec![wheel(b"one")]);
    scene.index.tamper(vec![wheel(b"other")]);
    let run = scene.program.run(&["compat", "abi", "my-extension==1.0", "--spec", SPEC]);
    assert_message(&run, 3, &[EXTENSION, "SHA-256"]);
}

#[test]
fn wheel_for_another_python_and_a_spec_without_lock_are_reported() {
    let scene = Scene::new();
    assert_eq!(scene.check(FITS, |_| {}, &[]).code, 0);
    let other = EXTENSION.replace("cp311", "cp312");
    std::fs::rename(scene.program.path(EXTENSION), scene.program.path(&other)).expect("ours");
    let run = scene.program.run(&["compat", "abi", &other, "--spec", SPEC]);
    assert_eq!(run.code, 1, "{}{}", run.stdout, run.stderr);
    let finding = format!(
        "{other}: its tags are `cp312-cp312` on `linux_x86_64`, and the lock has Python 3.11 on x86_64\n"
    );
    assert!(run.stdout.starts_with(&finding), "{}", run.stdout);
    let run = scene.program.run(&["compat", "abi", &other, "--spec", "pytorch-cuda:2.9-cu128"]);
    assert_message(&run, 2, &["lock file not found", "envforge lock SPEC"]);
}
