//! The required checks of whole locks: the oldest and the newest row of each product, and the libraries in the wheels that their
//! requirements resolve to. `list.py` reads those from the package index, without an engine; this test knows the rest.
#![expect(clippy::disallowed_methods, reason = "reads and writes committed files")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use envforge_protocol::{CheckId, Requirement};

use super::catalogue::catalogue;
use super::inputs::framework_requirements;
use crate::model::compat;
use crate::model::compat::tables::{Channel, Product, Variant};
use crate::model::lock::{Lock, LockedWheel, sample};
use crate::model::resolve::{ResolveOptions, resolve};
use crate::model::stack::Stack;
use crate::model::target::Target;
use crate::model::verdict::required_checks::{gpu_checks, static_checks};
use crate::model::versions::Machine;

/// The files of libraries that a program finds by their names, by the wheel of NVIDIA that checks are required for. PyTorch's
/// private copies carry a hash in their names.
const FILES: [(&str, &str); 5] = [
    ("nvidia-cuda-runtime", "libcudart.so."),
    ("nvidia-cublas", "libcublas.so."),
    ("nvidia-cudnn", "libcudnn.so."),
    ("nvidia-nccl", "libnccl.so."),
    ("nvidia-cuda-nvrtc", "libnvrtc.so."),
];

/// Wheels of a row, and the libraries in each.
type Wheels = Vec<(String, Vec<String>)>;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/wheels").join(name)
}

fn stack_of(spec: &str) -> Option<Stack> {
    let spec = spec.parse().expect("a spec");
    resolve(&spec, &Target::any(Machine::X86_64), compat::embedded(), &ResolveOptions::default()).ok()
}

/// The specs of the oldest and the newest row of a product on the default index.
fn ends(product: &Product) -> [String; 2] {
    let matrix = compat::embedded();
    let is_listed = |row: &&Variant| {
        row.framework == product.framework
            && row.machine == Machine::X86_64
            && row.channel == Channel::Default
    };
    let mut rows: Vec<_> = matrix.variants.iter().filter(is_listed).collect();
    rows.sort_by_key(|row| (row.version.clone(), row.cuda));
    let mut specs: Vec<_> =
        rows.iter().map(|row| format!("{}:{}-{}", product.name, row.version, row.cuda)).collect();
    if rows.is_empty() {
        specs = matrix.components.iter().map(|row| format!("{}:{}", product.name, row.cuda)).collect();
        specs.retain(|spec| stack_of(spec).is_some());
    }
    [specs.first().expect("rows").clone(), specs.last().expect("rows").clone()]
}

fn rows() -> Vec<(String, Stack)> {
    let products = compat::embedded().products.iter().filter(|product| product.rows);
    let specs = products.flat_map(ends);
    specs.map(|spec| (spec.clone(), stack_of(&spec).unwrap_or_else(|| panic!("{spec} resolves")))).collect()
}

/// What `list.py` is to resolve: each row, its Python and C library, and the requirements that uv is given for it.
#[test]
fn requirements_of_rows_are_current() {
    let mut text = String::new();
    for (spec, stack) in rows() {
        let base = compat::embedded().base(&stack.base).expect("a base");
        let _ = writeln!(text, "row {spec} {} {}", stack.python, base.glibc);
        text += &framework_requirements(&stack, &[]).expect("published");
        text.extend(catalogue().developer_wheels().map(|wheel| wheel + "\n"));
    }
    let file = fixture("rows.txt");
    if std::env::var_os("UPDATE_WHEELS").is_some() {
        fs_err::write(&file, &text).expect("written");
    }
    let known = fs_err::read_to_string(&file).expect("readable");
    assert!(
        known == text,
        "rows.txt is out of date: run `UPDATE_WHEELS=1 cargo test --lib locked_rows`, then tests/fixtures/wheels/list.py"
    );
}

/// What the wheels of each row hold, as `list.py` read it.
fn libraries() -> BTreeMap<String, Wheels> {
    let text = fs_err::read_to_string(fixture("libraries.txt")).expect("readable");
    let mut rows = BTreeMap::<_, Wheels>::new();
    let mut row = String::new();
    for line in text.lines() {
        match (line.strip_prefix("row "), line.split_once(": ")) {
            (Some(spec), _) => spec.clone_into(&mut row),
            (None, Some(("-", wheels))) => {
                let wheels = wheels.split(' ').map(|name| (name.to_owned(), Vec::new()));
                rows.entry(row.clone()).or_default().extend(wheels);
            }
            (None, Some((wheel, libraries))) => {
                let name = wheel.split(' ').next().unwrap_or_default().to_owned();
                let libraries = libraries.split(' ').map(str::to_owned).collect();
                rows.entry(row.clone()).or_default().push((name, libraries));
            }
            (None, None) => panic!("{line}"),
        }
    }
    rows
}

/// The lock of a row, as far as required checks depend on it.
fn lock_of(stack: Stack, wheels: &Wheels) -> Lock {
    let mut lock = sample::lock();
    let any = lock.wheels.remove(0);
    let named = |name: &String| LockedWheel { name: name.clone(), ..any.clone() };
    lock.wheels = wheels.iter().map(|(name, _)| named(name)).collect();
    lock.stack = stack;
    lock
}

/// A check that calls a library is required exactly where a wheel of the lock has that library's file.
#[test]
fn oldest_and_newest_locks_require_the_libraries_that_their_wheels_hold() {
    let known = libraries();
    let rows = rows();
    assert_eq!(
        known.keys().collect::<BTreeSet<_>>(),
        rows.iter().map(|(spec, _)| spec).collect(),
        "libraries.txt is out of date: run tests/fixtures/wheels/list.py"
    );
    let mut required_somewhere = BTreeSet::new();
    for (spec, stack) in rows {
        let wheels = &known[&spec];
        let holds = |file: &str| wheels.iter().flat_map(|(_, all)| all).any(|name| name.starts_with(file));
        let lock = lock_of(stack, wheels);
        let required: BTreeSet<_> = static_checks(&lock).into_iter().chain(gpu_checks(&lock, true)).collect();
        let checks = |wanted: Requirement| CheckId::ALL.iter().filter(move |id| id.requirement() == wanted);
        for (part, file) in FILES {
            for check in checks(Requirement::Wheel(part)) {
                assert_eq!(required.contains(check.as_str()), holds(file), "{spec}: {check}, {file}");
            }
            if holds(file) {
                required_somewhere.insert(part);
            }
        }
        assert_eq!(holds("libcublasLt.so."), holds("libcublas.so."), "{spec}: cublaslt-load");
        assert_eq!(holds("libcudnn_"), holds("libcudnn.so."), "{spec}: cudnn-sublibraries");
        let has_triton = wheels.iter().any(|(name, _)| name == "triton");
        for check in checks(Requirement::Triton) {
            assert_eq!(required.contains(check.as_str()), has_triton, "{spec}: {check}");
        }
        // A row that promises a library has it in a wheel, or the framework has it inside under no name of its own.
        let is_static = lock.stack.shared.is_empty() && lock.stack.cuda.major < 11;
        for (version, file) in [(&lock.stack.cudnn, "libcudnn.so."), (&lock.stack.nccl, "libnccl.so.")] {
            assert!(version.is_none() || holds(file) || is_static, "{spec}: no {file}");
        }
    }
    let named: BTreeSet<_> = CheckId::ALL
        .iter()
        .filter_map(|id| match id.requirement() {
            Requirement::Wheel(part) => Some(part),
            _ => None,
        })
        .collect();
    assert_eq!(required_somewhere, named, "each library is in some row");
    assert_eq!(named, FILES.iter().map(|(part, _)| *part).collect());
}
