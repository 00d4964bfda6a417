//! The scripts of products: each product of the matrix has one, it computes with a fake of the product, and a wrong result fails it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use envforge::model::compat::tables::{Product, Variant};

use crate::scripts::outcomes;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scripts() -> PathBuf {
    root().join("kernels/agent/src/python/products")
}

/// Names of the products that have a script.
fn scripted() -> BTreeSet<String> {
    let entries = std::fs::read_dir(scripts()).expect("the folder");
    let names = entries.map(|entry| entry.expect("an entry").path());
    names.map(|path| path.file_stem().expect("a name").to_str().expect("text").to_owned()).collect()
}

/// The frameworks that `probe.py` queries itself; their checks on a GPU are `framework-*`.
fn built_in() -> BTreeSet<String> {
    let probe = std::fs::read_to_string(scripts().with_file_name("probe.py")).expect("readable");
    let line = probe.lines().find(|line| line.starts_with("PROBES = ")).expect("the list");
    let names = line.split_once(" in (").and_then(|(_, rest)| rest.split_once(')')).expect("a tuple").0;
    names.split(", ").map(|name| if name == "torch" { "pytorch" } else { name }.to_owned()).collect()
}

/// Returns the files that a product of the matrix needs and lacks, and the facts that its script does not report.
fn gaps(product: &Product, rows: &[Variant]) -> Vec<String> {
    let name = &product.framework;
    if !product.rows || product.package.is_none() || built_in().contains(name) {
        return Vec::new();
    }
    let files = [
        format!("kernels/agent/src/python/products/{name}.py"),
        format!("tests/fixtures/ok/{name}/case.toml"),
    ];
    let mut gaps: Vec<_> = files.iter().filter(|file| !root().join(file).is_file()).cloned().collect();
    let Ok(script) = std::fs::read_to_string(root().join(&files[0])) else { return gaps };
    let rows = || rows.iter().filter(|row| row.framework == *name);
    let promised =
        [("cudnn", rows().any(|row| row.cudnn.is_some())), ("nccl", rows().any(|row| row.nccl.is_some()))];
    for (fact, is_promised) in promised {
        let reports = [&format!("attempt(\"{fact}\""), "of_torch(", "libraries()"];
        if is_promised && !reports.iter().any(|call| script.contains(*call)) {
            gaps.push(format!("{}: no `{fact}` in `facts`", files[0]));
        }
    }
    gaps
}

#[test]
fn every_product_has_a_check_script_and_a_case() {
    let matrix = envforge::model::compat::embedded();
    let gaps: Vec<_> = matrix.products.iter().flat_map(|product| gaps(product, &matrix.variants)).collect();
    assert_eq!(gaps, Vec::<String>::new());
    let frameworks: BTreeSet<_> = matrix.products.iter().map(|product| product.framework.clone()).collect();
    assert!(scripted().is_subset(&frameworks), "a script of no product: {:?}", scripted());
    assert!(built_in().is_disjoint(&scripted()), "queried twice: {:?}", scripted());
}

#[test]
fn product_without_a_script_is_reported_by_name() {
    let matrix = envforge::model::compat::embedded();
    let mut product =
        matrix.products.iter().find(|product| product.framework == "tensorrt").expect("a row").clone();
    "absent".clone_into(&mut product.framework);
    let wanted = ["kernels/agent/src/python/products/absent.py", "tests/fixtures/ok/absent/case.toml"];
    assert_eq!(gaps(&product, &matrix.variants), wanted);
    // Warp's script reports no cuDNN, and its rows promise none.
    "warp".clone_into(&mut product.framework);
    assert_eq!(gaps(&product, &matrix.variants), Vec::<String>::new());
    let mut row = matrix.variants.iter().find(|row| row.framework == "tensorrt").expect("a row").clone();
    "warp".clone_into(&mut row.framework);
    assert_eq!(gaps(&product, &[row]), ["kernels/agent/src/python/products/warp.py: no `cudnn` in `facts`"]);
}

/// Runs the kernel of a product as the agent does: its script between the runner and the call.
fn kernel(name: &str, variables: &[(&str, &str)]) -> String {
    let read = |path: PathBuf| std::fs::read_to_string(path).expect("readable");
    let runner = read(scripts().with_file_name("product_gpu.py"));
    let program = format!("{runner}{}\nrun(kernel)\n", read(scripts().join(format!("{name}.py"))));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("program.py");
    std::fs::write(&file, program).expect("written");
    outcomes(file.to_str().expect("text"), &["product-kernel"], variables)
        .remove("product-kernel")
        .expect("a line")
}

#[test]
#[ignore = "needs python3"]
fn kernel_of_every_product_passes_on_its_fake() {
    for name in scripted() {
        let found = kernel(&name, &[]);
        assert!(found.starts_with("passed "), "{name}: {found}");
    }
}

#[test]
#[ignore = "needs python3"]
fn wrong_result_fails_the_kernel_of_every_product() {
    for name in scripted() {
        let found = kernel(&name, &[("FAKE_WRONG", "product")]);
        assert!(found.starts_with("failed AssertionError: "), "{name}: {found}");
    }
}

#[test]
#[ignore = "needs python3"]
fn kernel_without_a_gpu_fails_for_every_product() {
    for name in scripted() {
        let found = kernel(&name, &[("FAKE_COUNT", "0")]);
        assert!(found.starts_with("failed "), "{name}: {found}");
    }
}

/// Returns what `probe.py` reports as CUDA in an image with this unusable library, and with a wheel of the runtime of CUDA 11.
fn cuda_of(library: &str, has_wheel: bool) -> String {
    let packages = tempfile::tempdir().expect("a folder");
    let folder = packages.path().join("nvidia/cuda_runtime/lib");
    std::fs::create_dir_all(&folder).expect("made");
    std::fs::write(folder.join(library), "no library").expect("written");
    if has_wheel {
        let info = packages.path().join("nvidia_cuda_runtime_cu11-11.8.89.dist-info");
        std::fs::create_dir(&info).expect("made");
        std::fs::write(info.join("METADATA"), "Name: nvidia-cuda-runtime-cu11\nVersion: 11.8.89\n")
            .expect("written");
    }
    let probe = std::fs::read_to_string(scripts().with_file_name("probe.py")).expect("readable");
    let paths = format!(
        "import sysconfig\nsysconfig.get_paths = lambda: {{'purelib': '{}'}}\n",
        packages.path().display()
    );
    let output = Command::new("python3")
        .args(["-c", &format!("{paths}{probe}"), "x", "def facts():\n    attempt('cuda', runtime)\n"])
        .env("PYTHONPATH", packages.path())
        .output()
        .expect("python3 runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("cuda="));
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr))).to_owned()
}

#[test]
#[ignore = "needs python3"]
fn broken_cuda_runtime_is_reported_by_its_own_name() {
    for (library, has_wheel) in
        [("libcudart.so.12", false), ("libcudart.so.12", true), ("libcudart.so.11.0", false)]
    {
        let found = cuda_of(library, has_wheel);
        assert!(found.starts_with("OSError(") && found.contains(library), "{library}: {found}");
    }
    assert_eq!(cuda_of("libcudart.so.11.0", true), "11.8", "the wheel says what the runtime does not");
}

/// One was not, and its images failed the check `nvrtc`.
#[test]
fn agent_knows_each_framework_that_loads_the_nvrtc_of_torch() {
    let check = include_str!("../../kernels/agent/src/checks/nvrtc.rs");
    let list = check.lines().find(|line| line.starts_with("const LOADS_BUILTINS")).unwrap();
    let matrix = envforge::model::compat::embedded();
    let uses_torch = |row: &&Variant| row.companions.contains_key("torch");
    let frameworks: Vec<_> =
        matrix.variants.iter().filter(uses_torch).map(|row| format!("\"{}\"", row.framework)).collect();
    assert!(frameworks.iter().any(|name| name == "\"vllm\""), "{frameworks:?}");
    let unknown = frameworks.iter().find(|name| *name != "\"pytorch\"" && !list.contains(*name));
    assert_eq!(unknown, None, "{list}");
}
