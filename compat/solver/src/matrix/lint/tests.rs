//! Each rule of the lint catches a planted fault, and the repository's matrix has none.

use super::{Fault, Problem, faults};
use crate::matrix::tables::{Channel, KnownVersion, Matrix, OtherPtxas};

/// Returns the faults of the repository's matrix after `plant`.
fn planted(plant: impl FnOnce(&mut Matrix)) -> Vec<Fault> {
    let mut matrix = Matrix::embedded().clone();
    matrix.variants.sort_by_key(|row| row.framework != "pytorch");
    matrix.products.sort_by_key(|row| (row.framework != "pytorch", row.framework != "tensorflow"));
    matrix.jit.sort_by_key(|row| (row.triton.is_none(), row.framework.as_deref() == Some("tensorflow")));
    plant(&mut matrix);
    faults(&matrix)
}

/// Whether some fault is of this row and contains the text.
fn has(faults: &[Fault], row: &str, text: &str) -> bool {
    faults.iter().any(|fault| fault.row == row && fault.problem.to_string().contains(text))
}

/// The facts about another ptxas of Triton 3.4.0.
fn other_ptxas(matrix: &mut Matrix) -> &mut OtherPtxas {
    let mut rows = matrix.jit.iter_mut();
    let row = rows.find(|row| row.triton.as_deref() == Some("3.4.0")).expect("a row");
    row.other_ptxas.as_mut().expect("it takes another")
}

macro_rules! catches {
    ($($test:ident: $plant:expr => $row:expr, $text:expr;)*) => {$(
        #[test]
        fn $test() {
            let plant: fn(&mut Matrix) = $plant;
            let found = planted(plant);
            assert!(has(&found, $row, $text), "{found:#?}");
        }
    )*};
}

#[test]
fn embedded_matrix_has_no_fault() {
    assert_eq!(faults(Matrix::embedded()), []);
}

#[test]
fn fault_reports_its_file() {
    let found = planted(|matrix| matrix.variants[0].source.clear());
    assert_eq!(found[0].to_string(), "pytorch.toml: variant pytorch 1.12.0 cu102 x86_64: missing source");
}

catches! {
    a_row_without_source: |m| m.bases[0].source = " ".into() => "base debian:11", "missing source";
    the_same_row_twice: |m| m.gpus.push(m.gpus[0].clone()) => "gpu `Tesla M10`", "duplicate row";
    the_same_version_spelled_differently: |m| {
        let mut row = m.toolkits.iter().find(|row| row.cuda.to_string() == "12.8.0").unwrap().clone();
        row.cuda = "12.8".parse().unwrap();
        m.toolkits.push(row);
    } => "toolkit 12.8", "duplicate row";

    a_python_without_triton_that_the_row_does_not_have:
        |m| m.variants.iter_mut().find(|row| row.triton.is_some()).unwrap().triton_before = Some("3.99".parse().unwrap())
        => "variant pytorch 2.0.0 cu117 x86_64", "`triton_before`";
    a_branch_that_knows_less_cuda_than_an_older_one:
        |m| m.branches.last_mut().unwrap().max_cuda = "10.0".parse().unwrap()
        => "branch 615", "CUDA 10.0";
    a_branch_that_takes_an_old_gpu_back:
        |m| m.branches.last_mut().unwrap().oldest_gpu = "5.0".parse().unwrap()
        => "branch 615", "oldest GPU sm_50";
    a_branch_whose_oldest_gpu_has_no_row:
        |m| m.branches.last_mut().unwrap().oldest_gpu = "7.9".parse().unwrap()
        => "branch 615", "`sm_79`";
    a_capability_whose_last_branch_is_unknown:
        |m| m.capabilities.iter_mut().find(|row| row.cc.dotted() == "5.0").unwrap().last_driver_branch = Some(581)
        => "capability 5.0", "driver branch `581`";
    a_capability_dropped_while_a_branch_drives_it:
        |m| m.capabilities.iter_mut().find(|row| row.cc.dotted() == "7.5").unwrap().last_driver_branch = Some(595)
        => "branch 610", "last driver branch 595";
    a_floor_of_an_unknown_branch:
        |m| m.minor_floors[0].linux = "451.0".parse().unwrap() => "minor_floor 11", "driver branch `451`";
    a_compat_package_for_an_unknown_branch:
        |m| m.forward_compat[0].base_branches.push(571) => "forward_compat 13.4", "driver branch `571`";
    a_compat_package_that_a_branch_has_natively:
        |m| m.forward_compat[0].base_branches.push(615) => "forward_compat 13.4", "new to branch 615";
    a_compat_package_of_another_name:
        |m| m.forward_compat[0].package = "cuda-compat-12-0".into() => "forward_compat 13.4", "cuda-compat-12-0";
    a_toolkit_of_an_unknown_branch:
        |m| m.toolkits[0].branch = Some(441) => "toolkit 10.2.89", "driver branch `441`";
    a_toolkit_whose_driver_has_no_branch:
        |m| m.toolkits[0].branch = None => "toolkit 10.2.89", "branch of the native driver of `10.2.89`";
    a_toolkit_of_another_cuda_than_its_branch:
        |m| m.toolkits[0].branch = Some(450) => "toolkit 10.2.89", "that of CUDA 10.2.89";
    a_toolkit_whose_driver_is_of_another_branch:
        |m| m.toolkits[0].native_driver = Some("450.51.05".parse().unwrap()) => "toolkit 10.2.89", "driver 450.51.05";
    a_toolkit_whose_floor_is_above_its_driver:
        |m| m.toolkits[0].min_driver = "440.99".parse().unwrap() => "toolkit 10.2.89", "native driver 440.33";
    a_toolkit_whose_floor_is_above_that_of_its_major:
        |m| m.toolkits[1].min_driver = "450.90".parse().unwrap() => "toolkit 11.0.2", "lowest driver 450.90";

    a_compiler_target_without_row:
        |m| m.compilers[0].targets.push("8.1".parse().unwrap()) => "compiler 11.0", "`sm_81`";
    a_compiler_that_targets_a_capability_before_its_time:
        |m| m.compilers[0].targets.push("9.0".parse().unwrap()) => "compiler 11.0", "target sm_90";
    a_compiler_that_misses_a_living_capability:
        |m| { m.compilers[0].targets.pop(); } => "compiler 11.0", "no target sm_80";
    a_gpu_of_an_unknown_capability:
        |m| m.gpus[0].compute_capability = "5.9".parse().unwrap() => "gpu `Tesla M10`", "`sm_59`";
    a_gpu_of_another_architecture:
        |m| m.gpus[0].arch = "Pascal".into() => "gpu `Tesla M10`", "architecture Pascal";
    a_gpu_that_contradicts_its_chip: |m| {
        m.chips[0].names.push("Tesla M10".into());
    } => "gpu `Tesla M10`", "capability 5.0";
    two_gpus_of_one_name:
        |m| m.gpus[1].aliases.push("Tesla M10".into()) => "gpu `Tesla M4`", "name `Tesla M10`";
    a_chip_without_names: |m| { m.chips[0].names.clear(); m.chips[0].vgpu_boards.clear(); }
        => "chip GF100", "empty `names`";
    a_chip_of_an_unknown_capability:
        |m| m.chips[0].compute_capability = "2.5".parse().unwrap() => "chip GF100", "`sm_25`";
    cudnn_code_for_an_unknown_capability:
        |m| m.cudnn[0].code.sass.push("4.0".parse().unwrap()) => "cudnn 8.5.0.96 for CUDA 11 x86_64", "`sm_40`";
    nccl_code_for_an_unknown_capability:
        |m| m.nccl[0].code.ptx.push("4.0".parse().unwrap()) => "nccl nvidia-nccl-cu11 2.13.4 x86_64", "`sm_40`";
    components_of_a_toolkit_without_compiler:
        |m| m.components[0].cuda = "11.9.0".parse().unwrap() => "components 11.9.0", "compiler `11.9.0`";

    a_variant_of_an_unknown_toolkit:
        |m| m.variants[0].toolkit = "10.2.90".parse().unwrap() => "variant pytorch 1.12.0 cu102 x86_64", "toolkit `10.2.90`";
    a_variant_of_another_cuda_than_its_toolkit:
        |m| m.variants[0].toolkit = "11.8.0".parse().unwrap() => "variant pytorch 1.12.0 cu102 x86_64", "CUDA 10.2";
    a_variant_with_code_its_compiler_cannot_make:
        |m| m.variants[1].arch.as_mut().unwrap().push("12.0".parse().unwrap())
        => "variant pytorch 1.12.0 cu113 x86_64", "code for sm_120";
    a_variant_with_ptx_its_compiler_cannot_make:
        |m| m.variants[1].ptx.push("12.0".parse().unwrap()) => "variant pytorch 1.12.0 cu113 x86_64", "code for sm_120";
    a_variant_with_ptx_of_a_known_and_an_unknown_cuda:
        |m| (m.variants[1].ptx, m.variants[1].unknown_ptx) = (vec!["8.0".parse().unwrap()], true)
        => "variant pytorch 1.12.0 cu113 x86_64", "`unknown_ptx`";
    a_variant_with_ptx_of_a_newer_cuda_than_its_toolkit:
        |m| (m.variants[1].ptx, m.variants[1].ptx_cuda) = (vec!["8.0".parse().unwrap()], Some("11.4".parse().unwrap()))
        => "variant pytorch 1.12.0 cu113 x86_64", "`ptx_cuda` 11.4";
    a_variant_with_the_cuda_of_ptx_that_it_lacks:
        |m| (m.variants[1].ptx, m.variants[1].ptx_cuda) = (vec![], Some("11.2".parse().unwrap()))
        => "variant pytorch 1.12.0 cu113 x86_64", "`ptx_cuda` 11.2";
    a_variant_with_an_empty_list_of_targets:
        |m| m.variants[0].arch = Some(vec![]) => "variant pytorch 1.12.0 cu102 x86_64", "empty `arch`";
    a_variant_of_an_unknown_cudnn:
        |m| m.variants[0].cudnn = Some("1.2.3".parse().unwrap()) => "variant pytorch 1.12.0 cu102 x86_64", "cuDNN `1.2.3`";
    a_variant_of_an_unknown_nccl:
        |m| m.variants[0].nccl = Some("1.2.3".parse().unwrap()) => "variant pytorch 1.12.0 cu102 x86_64", "NCCL `1.2.3`";
    an_unmeasured_library_that_is_taken_away:
        |m| m.unmeasured.clear() => "variant pytorch 1.12.0 cu102 x86_64", "cuDNN `7.6.5.32`";
    a_variant_with_an_unknown_companion:
        |m| { m.variants[0].companions.insert("torchvision".into(), "0.1.0".into()); }
        => "variant pytorch 1.12.0 cu102 x86_64", "companion `torchvision 0.1.0`";
    a_companion_that_pins_another_version:
        |m| { m.variants[0].companions.insert("torchvision".into(), "0.23.0".into()); }
        => "variant pytorch 1.12.0 cu102 x86_64", "==2.8.0";
    a_variant_no_base_can_load:
        |m| m.variants[0].min_glibc = "2.99".parse().unwrap() => "variant pytorch 1.12.0 cu102 x86_64", "glibc `2.99`";
    a_variant_without_python:
        |m| m.variants[0].python.clear() => "variant pytorch 1.12.0 cu102 x86_64", "empty `python`";
    a_variant_of_no_product:
        |m| m.variants[0].framework = "caffe".into() => "variant caffe 1.12.0 cu102 x86_64", "`caffe`";
    two_defaults_of_one_release:
        |m| m.variants[1].channel = Channel::Default => "variant pytorch 1.12.0 cu113 x86_64", "channel default";
    a_range_of_known_versions_around_a_row: |m| {
        let row = m.known_versions.iter_mut().find(|row| row.framework == "numba" && row.last.is_some());
        row.unwrap().last = Some("0.14.0".parse().unwrap());
    } => "known_version numba 0.0.0 to 0.14.0", "no row here, a row in numba.toml: variant numba 0.14.0";
    a_range_of_known_versions_that_ends_before_it_begins: |m| {
        let row = m.known_versions.iter_mut().find(|row| row.framework == "numba" && row.last.is_some());
        row.unwrap().last = Some("0.0".parse().unwrap());
    } => "known_version numba 0.0.0 to 0.0", "from 0.0.0 here, to 0.0";
    two_reasons_for_one_version: |m| {
        let row = m.known_versions.iter_mut().find(|row| row.framework == "numba" && row.last.is_some());
        row.unwrap().last = Some("0.0.12".parse().unwrap());
    } => "known_version numba 0.0.12", "another one in numba.toml: known_version numba 0.0.0 to 0.0.12";
    a_known_version_that_has_rows: |m| m.known_versions.push(KnownVersion {
        framework: "pytorch".into(),
        version: "2.8.0".parse().unwrap(),
        last: None,
        what: "exists".into(),
        source: "test".into(),
    }) => "known_version pytorch 2.8.0", "no row here, a row in";
    a_numpy_limit_of_no_product:
        |m| m.numpy_limits.iter_mut().find(|row| row.first.is_none()).unwrap().framework = "caffe".into() => "numpy_limit caffe .. to 2.2.2", "`caffe`";
    a_product_that_hides_its_rows:
        |m| m.products[0].rows = false => "product pytorch-cuda", "no rows";
    a_product_that_promises_rows:
        |m| m.variants.retain(|row| row.framework != "tensorflow") => "product tensorflow-cuda", "variants of";
    a_part_without_a_wheel_of_its_toolkit:
        |m| m.variants[0].parts.push("cublas".into()) => "variant pytorch 1.12.0 cu102 x86_64", "part `cublas`";
    a_shared_library_that_no_check_calls:
        |m| m.variants[0].shared.push("cufft".into()) => "variant pytorch 1.12.0 cu102 x86_64", "known library `cufft`";
    a_requirement_without_a_bound:
        |m| m.variants[0].install.push("setuptools".into()) => "variant pytorch 1.12.0 cu102 x86_64", "requirement `setuptools`";
    a_source_build_of_a_published_variant:
        |m| { m.source_builds[0].version = "2.7.1".parse().unwrap(); }
        => "source_build pytorch 2.7.1 cu118 x86_64", "unpublished here, published in";
    a_source_build_below_its_floor:
        |m| m.source_floors.iter_mut().find(|row| row.line.to_string() == "2.8").unwrap().cuda = "12.0".parse().unwrap()
        => "source_build pytorch 2.8.0 cu118 x86_64", "CUDA 12.0 and newer";
    a_source_build_of_a_line_without_floor:
        |m| m.source_floors.retain(|row| row.line.to_string() != "2.8")
        => "source_build pytorch 2.8.0 cu118 x86_64", "source floor of `2.8.0`";
    a_source_build_with_an_invalid_hash:
        |m| m.source_builds[0].sha256 = Some("c70a".into()) => "source_build pytorch 2.8.0 cu118 x86_64", "SHA-256 `c70a`";
    a_source_build_with_another_archive_in_its_address:
        |m| m.source_builds[0].address = Some("https://example.test/other.tar.gz".into())
        => "source_build pytorch 2.8.0 cu118 x86_64", "address `https://example.test/other.tar.gz`";
    a_source_build_with_an_unknown_placeholder:
        |m| drop(m.source_builds[0].environment.insert("A".into(), "{archs}".into()))
        => "source_build pytorch 2.8.0 cu118 x86_64", "placeholder in `{archs}`";
    a_source_build_with_code_its_compiler_cannot_make:
        |m| m.source_variants[0].arch.as_mut().unwrap().push("12.0".parse().unwrap())
        => "variant pytorch 2.8.0 cu118 x86_64", "code for sm_120";
    a_product_without_a_licence_for_its_packages:
        |m| m.products[1].licence_covers.push("x".into()) => "product tensorflow-cuda", "`x`";
    an_alias_of_two_products:
        |m| m.products[1].aliases.push("torch".into()) => "product tensorflow-cuda", "alias `torch`";

    a_package_of_nvcc_on_no_base:
        |m| m.nvcc_packages[0].base = "debian:1".into() => "nvcc_package debian:1", "base `debian:1`";
    a_package_of_nvcc_of_no_toolkit:
        |m| m.nvcc_packages[0].cuda = "11.19".parse().unwrap() => "nvcc_package debian:11", "toolkit `11.19`";
    a_part_that_no_wheel_carries:
        |m| m.nvcc_wheels[0].parts.push("nvcp".into()) => "nvcc_wheels 13", "component `nvcp`";
    a_ptxas_wheel_without_nvcc:
        |m| m.ptxas_wheels[0].parts.clear() => "ptxas_wheels 12", "part `nvcc`";
    a_ptxas_wheel_of_no_toolkit:
        |m| m.ptxas_wheels[0].cuda_major = 9 => "ptxas_wheels 9", "toolkit `9`";
    a_ptxas_wheel_with_another_file:
        |m| m.ptxas_wheels[0].file = "nvidia/cuda_nvcc/bin/nvlink".into() => "ptxas_wheels 12", "file of ptxas";
    a_repository_with_half_a_fingerprint:
        |m| m.nvcc_repositories[0].fingerprint.truncate(16) => "nvcc_repository debian:11", "fingerprint";
    profilers_of_no_toolkit:
        |m| m.profilers[0].cuda = "11.19.0".parse().unwrap() => "profilers 11.19.0", "toolkit `11.19.0`";
    a_jit_compiler_of_an_unknown_capability:
        |m| m.jit[0].newest = Some("9.9".parse().unwrap()) => "jit triton 2.0.0", "`sm_99`";
    a_jit_compiler_of_no_product:
        |m| m.jit.last_mut().unwrap().framework = Some("caffe".into()) => "jit caffe 2.20.0", "`caffe`";
    a_jit_compiler_without_a_bound:
        |m| m.jit[0].newest = None => "jit triton 2.0.0", "empty `newest`";
    a_jit_compiler_of_nothing:
        |m| m.jit[0].triton = None => "jit any ", "either `framework` or `triton`";
    two_jit_compilers_of_one_release:
        |m| m.jit.last_mut().unwrap().first = Some("2.19.0".parse().unwrap()) => "jit tensorflow 2.19.0", "in tensorflow.toml: jit tensorflow 2.14.0";
    a_jit_compiler_that_ends_before_it_begins:
        |m| m.jit.last_mut().unwrap().last = Some("2.1.0".parse().unwrap()) => "jit tensorflow 2.20.0", "to 2.1.0";
    a_gpu_missing_above_the_newest:
        |m| m.jit[0].missing.push("12.0".parse().unwrap()) => "jit triton 2.0.0", "missing sm_120";
    another_ptxas_for_a_gpu_with_a_target:
        |m| other_ptxas(m).gpus.push("9.0".parse().unwrap()) => "jit triton 3.4.0", "another ptxas for sm_90";
    another_ptxas_for_no_gpu:
        |m| other_ptxas(m).gpus.clear() => "jit triton 3.4.0", "empty `other_ptxas.gpus`";
    another_ptxas_of_a_major_without_wheels:
        |m| other_ptxas(m).newest_cuda_major = 99 => "jit triton 3.4.0", "ptxas wheels of CUDA `99`";
    another_ptxas_of_no_triton:
        |m| m.jit.last_mut().unwrap().other_ptxas = Some(other_ptxas(m).clone()) => "jit tensorflow 2.20.0", "rows with `triton`";
    a_triton_without_a_wheel_for_a_python_of_its_torch:
        |m| m.jit[0].python.retain(|python| python.to_string() != "3.11")
        => "variant pytorch 2.0.0 cu117 x86_64", "triton 2.0.0 for Python 3.11 here, no such wheel in jit.toml";

    device_code_of_an_unknown_variant:
        |m| m.device_code[0].version = "2.99".parse().unwrap() => "device_code pytorch 2.99 cu128 x86_64", "variant `2.99`";
    device_code_larger_than_its_sum:
        |m| m.device_code[0].megabytes = 9 => "device_code pytorch 2.8.0 cu128 x86_64", "9 MB in all here";
    device_code_of_an_unknown_capability:
        |m| { m.device_code[0].machine_code.insert("4.0".parse().unwrap(), 0); }
        => "device_code pytorch 2.8.0 cu128 x86_64", "capability `4.0`";
    device_code_without_architectures:
        |m| m.device_code[0].machine_code.clear() => "device_code pytorch 2.8.0 cu128 x86_64", "empty `machine_code`";
    a_recipe_for_a_release_that_is_not_published:
        |m| m.source_recipes[0].versions.push("9.9".parse().unwrap())
        => "source_recipe causal-conv1d 1.7.0, 9.9", "source distribution `9.9`";
    a_recipe_with_a_variable_that_is_no_name:
        |m| drop(m.source_recipes[0].environment.insert("A;B".into(), "1".into()))
        => "source_recipe causal-conv1d 1.7.0", "name of a variable `A;B`";
    a_recipe_with_an_invalid_hash:
        |m| m.source_recipes[0].sha256[0] = "c70a".into() => "source_recipe causal-conv1d 1.7.0", "SHA-256 `c70a`";
    a_recipe_without_the_hash_of_a_release:
        |m| m.source_recipes[0].sha256.clear() => "source_recipe causal-conv1d 1.7.0", "one hash for each";
    a_recipe_without_releases:
        |m| m.source_recipes[0].versions.clear() => "source_recipe causal-conv1d ", "empty `versions`";
    two_recipes_for_a_release:
        |m| { let row = m.source_recipes[0].clone(); m.source_recipes.push(row); }
        => "source_recipe causal-conv1d 1.7.0", "the same release in recipes.toml";
    a_recipe_with_an_unknown_placeholder:
        |m| drop(m.source_recipes[0].environment.insert("A".into(), "{archs}".into()))
        => "source_recipe causal-conv1d 1.7.0", "placeholder in `{archs}`";
    a_coupled_release_of_an_unknown_package:
        |m| m.coupled_packages.retain(|row| row.package != "xformers") => "coupled_release xformers 0.0.27 default", "coupled_package `xformers`";
    a_coupled_release_twice: |m| {
        let mut row = m.coupled_releases.iter().find(|row| row.package == "xformers").unwrap().clone();
        row.versions.push("0.0.99".parse().unwrap());
        row.versions.reverse();
        m.coupled_releases.push(row);
    } => "coupled_release xformers 0.0.99 default", "the same release in companions.toml: coupled_release xformers 0.0.27 default";
    a_coupled_release_without_versions:
        |m| m.coupled_releases[0].versions.clear() => "coupled_release torchvision  default", "empty `versions`";
    a_wheel_whose_name_lies_about_its_torch: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "mamba-ssm" && !row.loads.is_empty());
        row.unwrap().torch = Some("==2.9.0".into());
    } => "coupled_release mamba-ssm 2.2.3.post2 page", "built for torch 2.1, 2.2, 2.3, 2.4, 2.5 here, requires torch==2.9.0";
    a_wheel_whose_name_hides_its_torch: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "mamba-ssm" && !row.loads.is_empty());
        row.unwrap().wheel = Some("mamba_ssm-{version}-{python}.whl".into());
    } => "coupled_release mamba-ssm 2.2.3.post2 page", "torch in the name of the wheel";
    a_wheel_with_an_unknown_placeholder: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "mamba-ssm" && !row.loads.is_empty());
        row.unwrap().wheel = Some("mamba_ssm-{version}-{torch}-{abis}.whl".into());
    } => "coupled_release mamba-ssm 2.2.3.post2 page", "placeholder in";
    a_pinned_release_with_a_range: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "xformers").unwrap();
        row.torch = Some(">=2.3".into());
    } => "coupled_release xformers 0.0.27 default", "ABI class pinned here, requires torch>=2.3";
    a_pinned_release_without_torch: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "xformers").unwrap();
        (row.torch, row.loads) = (None, Vec::new());
    } => "coupled_release xformers 0.0.27 default", "names its torch";
    a_link_to_a_cuda_without_files: |m| {
        let row = m.coupled_releases.iter_mut().find(|row| row.package == "mamba-ssm" && !row.cuda.is_empty());
        row.unwrap().cuda_major = Some(13);
    } => "coupled_release mamba-ssm 2.2.3.post2 page", "links CUDA 13";
    a_trap_without_a_way_out:
        |m| m.coupled_packages.iter_mut().find(|row| row.package == "apex").unwrap().instead = None
        => "coupled_package apex", "`trap` and `instead`";
    a_module_of_one_package:
        |m| m.same_modules[0].packages.truncate(1) => "same_module cv2", "two packages or more, sorted `cv2`";
    a_package_with_two_modules: |m| {
        let other = m.same_modules[1].packages[0].clone();
        m.same_modules[0].packages.push(other);
    } => "same_module cv2", "one module for `onnxruntime`";
    a_wheel_that_loads_nothing:
        |m| m.wheel_libraries[0].libraries.clear() => "wheel_libraries opencv-python", "empty `libraries`";
    a_library_in_no_package:
        |m| m.wheel_libraries[0].libraries[0] = "libx.so.1".into()
        => "wheel_libraries opencv-python", "distribution_library `libx.so.1`";
    companions_in_a_circle: |m| {
        let torch = |row: &&mut crate::matrix::tables::Variant| {
            row.framework == "pytorch" && row.version.to_string() == "2.11.0"
        };
        for row in m.variants.iter_mut().filter(torch) {
            row.companions.insert("vllm".into(), "0.20.0".into());
        }
    } => "variant vllm 0.20.0 cu130 x86_64", "in a circle";

    a_base_without_compiler: |m| m.bases[0].gcc.clear() => "base debian:11", "empty `gcc`";
    a_base_of_another_distribution:
        |m| m.bases[0].distribution = "ubuntu".into() => "base debian:11", "distribution `ubuntu`";
    no_default_base: |m| m.bases.iter_mut().for_each(|row| row.default = false) => "base", "exactly one base";
    two_default_bases: |m| m.bases[0].default = true => "base", "exactly one base";
    an_empty_stack: |m| m.stacks[0].versions.clear() => "stack 3.8 numpy 1.x", "empty `versions`";
    a_stack_of_the_other_numpy:
        |m| { m.stacks[0].versions.insert("numpy".into(), "2.0.0".into()); } => "stack 3.8 numpy 1.x", "numpy 2";
}

#[test]
fn all_faults_are_reported_not_only_the_first() {
    let found = planted(|matrix| {
        matrix.variants[0].source.clear();
        matrix.bases[0].gcc.clear();
    });
    assert!(found.iter().any(|fault| fault.problem == Problem::NoSource));
    assert!(found.iter().any(|fault| fault.problem == Problem::Empty { field: "gcc" }));
}
