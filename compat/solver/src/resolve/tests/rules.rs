//! One test for each rule, several on a matrix changed so that the rule has something to say.
use rstest::rstest;

use super::{spec, target, x86};
use crate::matrix::Matrix;
use crate::matrix::tables::{Channel, Variant};
use crate::resolve::{ResolveOptions, Rule, Unsatisfiable, resolve};
use crate::target::Target;
use crate::versions::{ComputeCapability, GlibcVersion, Machine};

fn refused(text: &str, target: &Target, matrix: &Matrix) -> Unsatisfiable {
    resolve(&spec(text), target, matrix, &ResolveOptions::default()).expect_err(text)
}

fn rules(refusal: &Unsatisfiable) -> Vec<Rule> {
    refusal.refusals.iter().map(|refused| refused.rule).collect()
}

fn text_of(refusal: &Unsatisfiable, rule: Rule) -> &str {
    let found = refusal.refusals.iter().find(|refused| refused.rule == rule);
    &found.unwrap_or_else(|| panic!("{rule} is not in {:?}", refusal.refusals)).text
}

#[rstest]
#[case("pytroch-cuda:2.8", &[], None, &[Rule::UnknownName])]
#[case("pytorch-cuda:2.88", &[], None, &[Rule::UnknownVersion])]
#[case("pytorch-cuda:2.9-cu118", &[], None, &[Rule::VariantUnpublished])]
#[case("pytorch-cuda:2.9-cu118-py3.15", &[], None, &[Rule::VariantUnpublished, Rule::PythonUnsupported, Rule::NoBaseForPython])]
#[case("pytorch-cuda:2.8-py3.8", &[], None, &[Rule::PythonUnsupported])]
#[case("pytorch-cuda:2.15-py3.15", &[], None, &[Rule::NoBaseForPython])]
#[case("pytorch-cuda:2.8-cu128", &["sm_80"], Some("470.256.02"), &[Rule::DriverTooOld])]
#[case("pytorch-cuda:2.8-cu126", &["sm_61"], Some("590.48.01"), &[Rule::DriverDropsGpu])]
#[case("pytorch-cuda:2.8-cu126", &["sm_90"], Some("470.256.02"), &[Rule::DriverTooOld, Rule::DriverDropsGpu])]
#[case("pytorch-cuda:2.6-cu124", &["sm_120"], Some("580.65.06"), &[Rule::GpuNotInBinary, Rule::JitLacksGpu])]
#[case("pytorch-cuda:2.11-cu130", &["sm_70"], Some("580.65.06"), &[Rule::GpuNotInBinary, Rule::ToolkitDropsGpu, Rule::CudnnDropsGpu])]
#[case("pytorch-cuda:2.6-cu118", &["sm_37"], Some("470.256.02"), &[Rule::CudnnDropsGpu])]
fn exactly_these_rules_are_violated(
    #[case] text: &str,
    #[case] gpus: &[&str],
    #[case] driver: Option<&str>,
    #[case] wanted: &[Rule],
) {
    let refusal = refused(text, &x86(gpus, driver), Matrix::embedded());
    assert_eq!(rules(&refusal), wanted, "{:#?}", refusal.refusals);
}

#[test]
fn unpublished_cu118_lists_last_release_and_published_variants() {
    let options = ResolveOptions { no_source: true, ..ResolveOptions::default() };
    let asked = spec("pytorch-cuda:2.8-cu118");
    let refusal = resolve(&asked, &x86(&[], None), Matrix::embedded(), &options).expect_err("refused");
    let text = text_of(&refusal, Rule::VariantUnpublished);
    assert!(text.contains("2.0.0 to 2.7.1") && text.contains("cu126, cu128, cu129"), "{text}");
    let offers: Vec<_> = refusal.alternatives.iter().map(|offer| offer.spec.to_string()).collect();
    assert_eq!(offers, ["pytorch-cuda:2.8.0-cu126", "pytorch-cuda:2.7.1-cu118", "pytorch-cuda:2.8.0-cu128"]);
}

#[test]
fn cuda_below_the_build_floor_is_reported() {
    let refusal = refused("pytorch-cuda:2.9-cu118", &x86(&[], None), Matrix::embedded());
    let text = text_of(&refusal, Rule::VariantUnpublished);
    assert!(text.ends_with("its build system requires CUDA 12.0 or newer"), "{text}");
    let refusal = refused("pytorch-cuda:2.9-cu121", &x86(&[], None), Matrix::embedded());
    assert!(!text_of(&refusal, Rule::VariantUnpublished).contains("its build"));
}

#[test]
fn only_a_requested_cuda_is_built_from_source() {
    let (matrix, options) = (Matrix::embedded(), ResolveOptions::default());
    let target = x86(&["sm_70"], Some("470.57.02"));
    for (asked, built) in [
        ("pytorch-cuda:2.8-cu118", true),
        ("pytorch-cuda:2.8.0-cu11.8-devel", true),
        ("pytorch-cuda:2-cu118", false),
        ("pytorch-cuda-cu118", false),
        ("pytorch-cuda:2-cu11", false),
    ] {
        let stack = resolve(&spec(asked), &target, matrix, &options).expect(asked);
        assert_eq!(stack.source_build.is_some(), built, "{asked}: {}", stack.name);
    }
    // A major requests a published variant.
    refused("pytorch-cuda:2.8-cu11", &x86(&[], None), matrix);
    let arm = super::target(&[], None, Machine::Aarch64);
    refused("pytorch-cuda:2.8-cu118", &arm, matrix);
}

#[test]
fn ptx_runs_on_a_newer_gpu_only_with_a_driver_that_supports_it() {
    let mut matrix = Matrix::embedded().clone();
    for row in &mut matrix.variants {
        row.arch = Some(vec!["8.0".parse().expect("a capability")]);
        row.ptx = vec!["8.0".parse().expect("a capability")];
    }
    let options = ResolveOptions::default();
    let asked = spec("pytorch-cuda:2.8-cu128");
    let old = x86(&["sm_90"], Some("550.54.14"));
    let text = text_of(&refused("pytorch-cuda:2.8-cu128", &old, &matrix), Rule::GpuNotInBinary).to_owned();
    assert!(text.contains("newer than this driver supports"), "{text}");
    assert!(resolve(&asked, &x86(&["sm_90"], Some("570.124.06")), &matrix, &options).is_ok());
    let unknown = resolve(&asked, &x86(&["sm_90"], None), &matrix, &options).expect("allowed and stated");
    assert_eq!(unknown.requires.driver, unknown.requires.driver_native);
    // Never downwards: PTX of 8.0 does nothing for a 7.5.
    let older = refused("pytorch-cuda:2.8-cu128", &x86(&["sm_75"], None), &matrix);
    assert_eq!(rules(&older), [Rule::GpuNotInBinary]);
}

/// ONNX Runtime 1.26 is built with CUDA 12.8 and gets the libraries of 12.9: a driver with 12.8 compiles its PTX.
#[test]
fn ptx_is_compiled_by_drivers_with_the_cuda_of_its_compiler() {
    let plan = |asked: &str, driver: Option<&str>| {
        let (spec, target) = (spec(asked), x86(&["sm_120"], driver));
        resolve(&spec, &target, Matrix::embedded(), &ResolveOptions::default()).expect("resolves")
    };
    let stack = plan("onnxruntime-cuda:1.26", Some("570.124.06"));
    let reason = stack.reasons.iter().find(|reason| reason.field == "gpu").expect("a reason");
    assert!(reason.because.contains("by a driver with CUDA 12.8 or newer"), "{}", reason.because);
    let needed = plan("onnxruntime-cuda:1.26", None).requires.driver.expect("a driver");
    assert!(needed.major() == 570, "{needed}");
    plan("onnxruntime-cuda:1.23", Some("570.124.06"));
    let mut matrix = Matrix::embedded().clone();
    let row = matrix.variants.iter_mut().filter(|row| row.framework == "onnxruntime");
    row.for_each(|row| row.ptx_cuda = None);
    let refusal = refused("onnxruntime-cuda:1.26", &x86(&["sm_120"], Some("570.124.06")), &matrix);
    let text = text_of(&refusal, Rule::GpuNotInBinary);
    assert!(text.contains("its PTX is of CUDA 12.9, which is newer than this driver supports"), "{text}");
}

/// The CUDA of libcudf was not read: no driver is called too old for its PTX, and none is trusted with it.
#[test]
fn ptx_of_an_unknown_cuda_counts_for_no_gpu() {
    for driver in [Some("550.54.14"), Some("580.65.06"), None] {
        let refusal = refused("cudf-cuda:24.12-cu12", &x86(&["sm_120"], driver), Matrix::embedded());
        let text = text_of(&refusal, Rule::GpuNotInBinary);
        assert!(text.contains("sm_90 and PTX that is not known to run, which counts for no GPU"), "{text}");
        assert!(!text.contains("its PTX is of CUDA"), "{text}");
    }
}

/// It needs the PyTorch that it pins: a GPU without code in that PyTorch is refused. Where its own kernels were read, so is one without
/// code in them.
#[test]
fn sglang_runs_only_on_gpus_of_its_torch() {
    let matrix = Matrix::embedded();
    let rows: Vec<_> = matrix.variants.iter().filter(|row| row.framework == "sglang").collect();
    assert!(!rows.is_empty());
    for row in rows {
        let of_row = |torch: &&Variant| {
            let same = torch.framework == "pytorch" && torch.cuda == row.cuda && torch.machine == row.machine;
            same && torch.version.to_string() == row.companions["torch"]
        };
        let torch = matrix.variants.iter().find(of_row).expect("a row of its torch");
        let (arch, of_torch) = (row.arch.as_ref().expect("read"), torch.arch.as_ref().expect("read"));
        assert!(!arch.is_empty() && arch.iter().all(|cc| of_torch.contains(cc)), "sglang {}", row.version);
        assert_eq!(row.ptx, torch.ptx, "sglang {}", row.version);
    }
    for asked in ["sglang-cuda", "sglang-cuda:0.5.5", "sglang-cuda:0.5.23"] {
        let text = text_of(&refused(asked, &x86(&["sm_61"], None), matrix), Rule::GpuNotInBinary).to_owned();
        assert!(text.contains("has no code for sm_61"), "{asked}: {text}");
        assert!(resolve(&spec(asked), &x86(&["sm_90"], None), matrix, &ResolveOptions::default()).is_ok());
    }
}

/// The wheels of `x86_64` say nothing of those of aarch64: their GPU code, C library and requirements were read.
#[test]
fn rows_of_aarch64_are_their_own() {
    let matrix = Matrix::embedded();
    let rows = |framework: &str| {
        let of_index = |row: &&Variant| row.machine == Machine::Aarch64 && row.channel == Channel::Default;
        let rows = matrix.variants.iter().filter(of_index).filter(|row| row.framework == framework);
        rows.cloned().collect::<Vec<_>>()
    };
    let thor: ComputeCapability = "11.0".parse().expect("a capability");
    let oldest: GlibcVersion = "2.34".parse().expect("a glibc");
    for row in rows("vllm") {
        assert!(row.arch.as_ref().is_some_and(|arch| arch.contains(&thor)), "vllm {}", row.version);
        // tilelang, which they require, has a wheel for glibc 2.34 and no older one.
        assert!(row.min_glibc >= oldest, "vllm {}", row.version);
    }
    let counts = ["vllm", "sglang", "cudf", "cuml"].map(|framework| rows(framework).len());
    assert!(counts.iter().zip([19, 11, 26, 14]).all(|(found, least)| *found >= least), "{counts:?}");
    let arm = |gpu: &str| target(&[gpu], None, Machine::Aarch64);
    assert!(resolve(&spec("vllm-cuda:0.33.0"), &arm("sm_110"), matrix, &ResolveOptions::default()).is_ok());
    let text =
        text_of(&refused("sglang-cuda:0.5.23", &arm("sm_80"), matrix), Rule::GpuNotInBinary).to_owned();
    assert!(text.contains("has no code for sm_80"), "{text}");
    let text =
        text_of(&refused("vllm-cuda:0.12.0", &arm("sm_90"), matrix), Rule::VariantUnpublished).to_owned();
    assert!(text.contains("built without CUDA"), "{text}");
}

#[test]
fn base_with_an_old_c_library_is_rejected() {
    let mut matrix = Matrix::embedded().clone();
    for base in &mut matrix.bases {
        base.glibc = "2.17".parse().expect("a glibc");
    }
    let refusal = refused("pytorch-cuda:2.8", &x86(&[], None), &matrix);
    assert_eq!(rules(&refusal), [Rule::GlibcTooOld]);
    assert!(text_of(&refusal, Rule::GlibcTooOld).contains(">= 2.28"));
}

#[test]
fn devel_rejects_compilers_that_nvcc_does_not_support() {
    let mut matrix = Matrix::embedded().clone();
    for base in &mut matrix.bases {
        base.gcc = vec![99];
        base.clang = vec![99];
    }
    let refusal = refused("pytorch-cuda:2.8-devel", &x86(&[], None), &matrix);
    assert_eq!(rules(&refusal), [Rule::HostCompilerTooNew]);
    assert!(resolve(&spec("pytorch-cuda:2.8"), &x86(&[], None), &matrix, &ResolveOptions::default()).is_ok());
}

#[test]
fn devel_without_nvcc_source_is_rejected_and_suggests_devel() {
    let mut options = ResolveOptions::default();
    options.toolkit.vendor = false;
    let asked = spec("pytorch-cuda:2.8-cu128-devel");
    let refusal = resolve(&asked, &x86(&[], None), Matrix::embedded(), &options).expect_err("no nvcc 12.8");
    assert_eq!(rules(&refusal), [Rule::ToolkitUnavailable]);
    let offers: Vec<_> = refusal.alternatives.iter().map(|offer| offer.spec.to_string()).collect();
    assert!(offers.len() == 3 && offers.iter().all(|offer| offer.ends_with("-devel")), "{offers:?}");
}

#[test]
fn numpy_of_the_wrong_line_is_rejected() {
    let mut matrix = Matrix::embedded().clone();
    matrix.stacks.retain(|stack| stack.numpy_line == "2.x");
    let refusal = refused("pytorch-cuda:2.1-py3.11", &x86(&[], None), &matrix);
    assert_eq!(rules(&refusal), [Rule::NumpyAbi]);
}

#[test]
fn forward_compatibility_is_suggested_and_used_only_when_allowed() {
    let h100 = x86(&["NVIDIA H100 80GB HBM3"], Some("535.104.05"));
    let refusal = refused("pytorch-cuda:2.15", &h100, Matrix::embedded());
    assert!(text_of(&refusal, Rule::DriverTooOld).contains("`--forward-compat`"));
    let admit = ResolveOptions { forward_compat: true, ..ResolveOptions::default() };
    let stack =
        resolve(&spec("pytorch-cuda:2.15"), &h100, Matrix::embedded(), &admit).expect("legal on R535");
    assert_eq!(stack.forward_compat.expect("in use").package, "cuda-compat-13-2");
    let geforce = x86(&["NVIDIA GeForce RTX 4090"], Some("535.104.05"));
    let refusal = refused("pytorch-cuda:2.15", &geforce, Matrix::embedded());
    assert!(!text_of(&refusal, Rule::DriverTooOld).contains("`--forward-compat`"));
    assert!(resolve(&spec("pytorch-cuda:2.15"), &geforce, Matrix::embedded(), &admit).is_err());
    let unknown_gpu = x86(&[], Some("535.104.05"));
    assert!(resolve(&spec("pytorch-cuda:2.15"), &unknown_gpu, Matrix::embedded(), &admit).is_err());
}

#[test]
fn omitted_parts_are_chosen_as_documented() {
    let choose = |text: &str, target: &Target| {
        resolve(&spec(text), target, Matrix::embedded(), &ResolveOptions::default()).expect(text).name
    };
    assert_eq!(choose("pytorch-cuda:2.8", &x86(&[], None)), "pytorch-cuda:2.8.0-cu128-py3.11");
    assert_eq!(choose("pytorch-cuda:2.5", &x86(&[], None)), "pytorch-cuda:2.5.1-cu124-py3.11");
    assert_eq!(choose("pytorch-cuda:2.8", &x86(&["sm_61"], None)), "pytorch-cuda:2.8.0-cu126-py3.11");
    assert_eq!(choose("pytorch-cuda", &x86(&["sm_70"], None)), "pytorch-cuda:2.14.1-cu126-py3.11");
    assert_eq!(choose("pytorch-cuda:2-cu118", &x86(&[], None)), "pytorch-cuda:2.7.1-cu118-py3.11");
    assert_eq!(choose("pytorch-cuda:2.8-devel", &x86(&[], None)), "pytorch-cuda:2.8.0-cu128-py3.11-devel");
}

#[test]
fn experimental_build_is_chosen_if_no_other_runs() {
    let options = ResolveOptions::default();
    let choose = |text: &str, gpu: &str| {
        resolve(&spec(text), &x86(&[gpu], None), Matrix::embedded(), &options).expect(text)
    };
    let stack = choose("pytorch-cuda:2.7", "sm_120");
    assert_eq!((stack.name.as_str(), stack.experimental), ("pytorch-cuda:2.7.1-cu128-py3.11", true));
    assert_eq!(choose("pytorch-cuda:2.7-cu128", "sm_120").name, stack.name);
    assert!(!choose("pytorch-cuda:2.7", "sm_90").experimental);
}

#[test]
fn unlisted_builds_require_an_explicit_request() {
    let mut matrix = Matrix::embedded().clone();
    let row = |row: &&mut crate::matrix::tables::Variant| {
        row.framework == "pytorch" && row.version.to_string() == "2.7.1" && row.cuda.to_string() == "cu128"
    };
    for row in matrix.variants.iter_mut().filter(row) {
        row.status = crate::matrix::tables::Status::Unlisted;
    }
    let blackwell = x86(&["sm_120"], None);
    let refusal = refused("pytorch-cuda:2.7.1", &blackwell, &matrix);
    assert_eq!(rules(&refusal), [Rule::GpuNotInBinary]);
    let named = resolve(&spec("pytorch-cuda:2.7.1-cu128"), &blackwell, &matrix, &ResolveOptions::default());
    assert_eq!(named.expect("named").name, "pytorch-cuda:2.7.1-cu128-py3.11");
}

/// A Jetson Thor got torch 2.5.1 for CUDA 12.4, whose compiler has no target for it, as the default.
#[test]
fn unread_code_is_bounded_by_its_compiler_and_never_a_default() {
    let thor = target(&["11.0"], None, Machine::Aarch64);
    let bounded = refused("pytorch-cuda:2.5.1-cu124", &thor, Matrix::embedded());
    let text = text_of(&bounded, Rule::GpuNotInBinary);
    assert!(text.contains("was not read") && text.contains("CUDA 12.4 has no target for sm_110"), "{text}");
    let hopper = target(&["9.0"], None, Machine::Aarch64);
    let refusal = refused("pytorch-cuda:2.5", &hopper, Matrix::embedded());
    assert_eq!(rules(&refusal), [Rule::GpuCodeUnknown]);
    assert!(text_of(&refusal, Rule::GpuCodeUnknown).contains("request `pytorch-cuda:2.5.1-cu124`"));
    let other = refused("pytorch-cuda-cu124", &hopper, Matrix::embedded());
    assert!(rules(&other).contains(&Rule::GpuCodeUnknown), "its version is not named: {other:?}");
    let named =
        resolve(&spec("pytorch-cuda:2.5.1-cu124"), &hopper, Matrix::embedded(), &ResolveOptions::default());
    assert!(!named.expect("named").gpu_code_is_known());
    let strict = ResolveOptions { refuse_unknown: true, ..ResolveOptions::default() };
    let refused = resolve(&spec("pytorch-cuda:2.5.1-cu124"), &hopper, Matrix::embedded(), &strict);
    let refusal = refused.expect_err("the policy");
    assert!(text_of(&refusal, Rule::GpuCodeUnknown).contains("in `[policy]` refuses it"), "{refusal:?}");
}

/// vLLM's own kernels are for more GPUs than the PyTorch it calls.
#[test]
fn vllm_is_bounded_by_the_code_of_its_torch() {
    let mut matrix = Matrix::embedded().clone();
    let is_it = |row: &&mut crate::matrix::tables::Variant| {
        row.framework == "vllm" && row.companions.contains_key("torch") && row.machine == Machine::X86_64
    };
    let newest =
        matrix.variants.iter_mut().filter(is_it).max_by_key(|row| row.version.clone()).expect("a row");
    newest.arch.get_or_insert_default().insert(0, "7.0".parse().expect("a capability"));
    let named = format!("vllm-cuda:{}-{}", newest.version, newest.cuda);
    let refusal = refused(&named, &x86(&["sm_70"], None), &matrix);
    let text = text_of(&refusal, Rule::GpuNotInBinary);
    assert!(text.starts_with("vllm ") && text.contains(" calls torch "), "{text}");
}

#[test]
fn unknown_gpu_code_is_accepted_and_reported() {
    let arm = target(&["9.0"], None, Machine::Aarch64);
    let answer =
        resolve(&spec("pytorch-cuda:2.8-cu129"), &arm, Matrix::embedded(), &ResolveOptions::default());
    let stack = answer.expect("named");
    let reason = stack.reasons.iter().find(|reason| reason.field == "gpu").expect("a reason");
    assert!(reason.because.contains("unknown"), "{}", reason.because);
    assert!(stack.requires.gpu.is_empty());
}

#[test]
fn misspelt_name_suggests_the_known_one() {
    let refusal = refused("torhc:2.8-cu128", &x86(&[], None), Matrix::embedded());
    assert_eq!(refusal.alternatives[0].spec.to_string(), "pytorch-cuda:2.8-cu128");
    assert_eq!(refusal.hints(), ["run `envforge build pytorch-cuda:2.8-cu128`"]);
}

#[test]
fn known_version_without_rows_reports_facts_and_alternatives() {
    let mut matrix = Matrix::embedded().clone();
    matrix.known_versions = vec![crate::matrix::tables::KnownVersion {
        framework: "pytorch".to_owned(),
        version: "1.6.0".parse().expect("a version"),
        last: None,
        what: "published for CUDA 9.2, 10.1 and 10.2".to_owned(),
        source: "a test".to_owned(),
    }];
    let refusal = refused("pytorch-cuda:1.6", &x86(&[], None), &matrix);
    let text = text_of(&refusal, Rule::UnknownVersion);
    assert!(
        text.contains("published for CUDA 9.2, 10.1 and 10.2") && text.contains("closest: 1.8."),
        "{text}"
    );
    assert_eq!(refusal.refusals[0].source, "a test");
    assert!(refusal.alternatives[0].spec.to_string().starts_with("pytorch-cuda:1.8."));
}

#[test]
fn misspelt_version_suggests_the_closest_spelling() {
    let refusal = refused("pytorch-cuda:2.88", &x86(&[], None), Matrix::embedded());
    assert!(text_of(&refusal, Rule::UnknownVersion).contains("closest: 2.8.0"));
    assert_eq!(refusal.alternatives[0].spec.to_string(), "pytorch-cuda:2.8.0-cu128");
}

#[test]
fn only_one_alternative_drops_the_python() {
    let refusal = refused("pytorch-cuda:2.8-py3.8", &x86(&[], None), Matrix::embedded());
    let offers: Vec<_> = refusal.alternatives.iter().map(|offer| offer.spec.to_string()).collect();
    assert_eq!(offers[0], "pytorch-cuda:2.8.0-cu128");
    assert!(offers[1..].iter().all(|offer| offer.ends_with("-py3.8")), "{offers:?}");
}

fn chosen(text: &str, target: &Target) -> crate::stack::Stack {
    let answer = resolve(&spec(text), target, Matrix::embedded(), &ResolveOptions::default());
    answer.unwrap_or_else(|refusal| panic!("{text}: {:#?}", refusal.refusals))
}

/// torch 2.9.1 was refused for a GB10 because of the ptxas of its Triton alone.
#[test]
fn image_brings_the_ptxas_that_triton_lacks() {
    let gb10 = target(&["NVIDIA GB10"], Some("580.95.05"), Machine::Aarch64);
    let stack = chosen("pytorch-cuda:2.9.1-cu130", &gb10);
    let ptxas = stack.ptxas.as_ref().expect("Triton 3.5.1 has no target for it");
    assert_eq!(ptxas.cuda, stack.toolkit, "the variant's own release has it");
    assert_eq!(
        (ptxas.variable.as_str(), ptxas.file.as_str()),
        ("TRITON_PTXAS_PATH", "nvidia/cu13/bin/ptxas")
    );
    assert_eq!(
        ptxas.parts.keys().collect::<Vec<_>>(),
        ["nvidia-cuda-crt", "nvidia-cuda-nvcc", "nvidia-nvvm"]
    );
    assert!(stack.parts.is_empty() && stack.nvcc.is_none(), "the toolkit is not in the image");
    let reason = stack.reasons.iter().find(|reason| reason.field == "ptxas").expect("a reason");
    let says =
        "has no target for NVIDIA GB10 (sm_121); the image has the ptxas of the nvcc wheel of CUDA 13.0";
    assert!(
        reason.because.contains(says) && reason.because.ends_with("sets TRITON_PTXAS_PATH"),
        "{reason:?}"
    );
    assert!(
        reason.source.contains("triton.compile") && reason.source.contains("Requires-Dist"),
        "{reason:?}"
    );

    let newer = chosen("pytorch-cuda:2.9.1-cu128", &gb10).ptxas.expect("CUDA 12.8 has no target either");
    assert_eq!(newer.cuda.to_string(), "12.9.2", "the next minor of that major, at its newest patch");
    assert_eq!(
        newer.parts.into_iter().collect::<Vec<_>>(),
        [("nvidia-cuda-nvcc-cu12".to_owned(), "12.9.86".to_owned())]
    );
}

#[test]
fn stack_whose_triton_has_the_target_gets_no_other_ptxas() {
    for (text, gpu) in [
        ("pytorch-cuda:2.9.1-cu130", "sm_120"),
        ("pytorch-cuda:2.9.1-cu128", "sm_90"),
        ("pytorch-cuda:2.10-cu130", "sm_121"),
    ] {
        let stack = chosen(text, &x86(&[gpu], Some("580.95.05")));
        assert_eq!(stack.ptxas, None, "{text} on {gpu}");
        assert!(stack.reasons.iter().all(|reason| reason.field != "ptxas"));
    }
    let any = chosen("pytorch-cuda:2.9.1-cu130", &x86(&[], None));
    assert_eq!(any.ptxas, None, "no GPU is named");
}

/// One GPU of the target suffices, and all that lack a target are named.
#[test]
fn ptxas_serves_every_gpu_of_the_target() {
    let mixed = x86(&["sm_90", "sm_103", "sm_121"], Some("580.95.05"));
    let gpus = chosen("pytorch-cuda:2.9.1-cu130", &mixed).ptxas.expect("two lack it").gpus;
    assert_eq!(gpus.iter().map(ToString::to_string).collect::<Vec<_>>(), ["sm_103", "sm_121"]);
}

#[test]
fn triton_that_no_ptxas_helps_is_refused_with_the_reason() {
    let says = |text: &str, gpu: &str, words: &str| {
        let target = target(&[gpu], Some("615.31"), Machine::Aarch64);
        let refusal = refused(text, &target, Matrix::embedded());
        let found = text_of(&refusal, Rule::JitLacksGpu);
        assert!(found.contains(words), "{found}");
    };
    says("pytorch-cuda:2.7.1-cu128", "NVIDIA GB10", "a variable that shells cannot set");
    says("pytorch-cuda:2.9.0-cu130", "NVIDIA GB300", "its LLVM does not compile tl.dot");
    says("pytorch-cuda:2.11-cu128", "sm_110", "no ptxas of CUDA 12 that it takes has one");
}

/// nvcc of the devel flavour and ptxas come in the same wheels.
#[test]
fn ptxas_of_another_release_than_nvcc_is_refused() {
    let mut matrix = Matrix::embedded().clone();
    for row in matrix.compilers.iter_mut().filter(|row| row.cuda.to_string() == "13.0") {
        row.targets.retain(|target| target.dotted() != "12.1");
    }
    let gb10 = x86(&["sm_121"], Some("580.95.05"));
    let options = ResolveOptions::default();
    let runtime = resolve(&spec("pytorch-cuda:2.9.1-cu130"), &gb10, &matrix, &options).expect("runtime");
    assert_eq!(runtime.ptxas.expect("of the next minor").cuda.minor(), 1);
    let refusal = refused("pytorch-cuda:2.9.1-cu130-devel", &gb10, &matrix);
    let text = text_of(&refusal, Rule::JitLacksGpu);
    assert!(
        text.contains("ptxas of CUDA 13.1") && text.contains("the image has nvcc of CUDA 13.0"),
        "{text}"
    );
}
