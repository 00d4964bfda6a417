//! Names of packages, products and libraries in a text.

/// Modules of packages whose extensions do not have the package's name.
const PACKAGES: &[(&str, &str)] = &[
    ("flash_attn", "flash-attn"),
    ("flashattn", "flash-attn"),
    ("fused_layer_norm", "apex"),
    ("amp_c", "apex"),
    ("fused_weight_gradient_mlp", "apex"),
    ("selective_scan", "mamba-ssm"),
    ("causal_conv1d", "causal-conv1d"),
    ("mmcv", "mmcv"),
    ("_ext.", "mmcv"),
    ("xformers", "xformers"),
    ("torchvision", "torchvision"),
    ("torchaudio", "torchaudio"),
    ("torchcodec", "torchcodec"),
    ("torchtext", "torchtext"),
    ("torch_scatter", "torch-scatter"),
    ("torch_sparse", "torch-sparse"),
    ("torch_cluster", "torch-cluster"),
    ("torch_spline", "torch-spline-conv"),
    ("pyg_lib", "pyg-lib"),
    ("libpyg", "pyg-lib"),
    ("detectron2", "detectron2"),
    ("pytorch3d", "pytorch3d"),
    ("deepspeed", "deepspeed"),
    ("transformer_engine", "transformer-engine"),
    ("vllm", "vllm"),
    ("auto_gptq", "auto-gptq"),
    ("autogptq", "auto-gptq"),
    ("awq", "autoawq"),
    ("exllamav2", "exllamav2"),
    ("bitsandbytes", "bitsandbytes"),
    ("onnxruntime", "onnxruntime-gpu"),
    ("cupy", "cupy"),
    ("faiss", "faiss-gpu"),
    ("tensorrt", "tensorrt"),
    ("libnvinfer", "tensorrt"),
    ("natten", "natten"),
    ("sgl_kernel", "sgl-kernel"),
    ("flashinfer", "flashinfer-python"),
    ("spconv", "spconv"),
    ("tinycudann", "tinycudann"),
    ("sageattention", "sageattention"),
    ("ctranslate2", "ctranslate2"),
    ("decord", "decord"),
];

/// Packages of extensions that are compiled at run time, by the exact name of the extension.
const EXTENSIONS: &[(&str, &str)] = &[
    ("cpu_adam", "deepspeed"),
    ("cpu_adagrad", "deepspeed"),
    ("cpu_lion", "deepspeed"),
    ("fused_adam", "deepspeed"),
    ("fused_lamb", "deepspeed"),
    ("fused_lion", "deepspeed"),
    ("utils", "deepspeed"),
    ("transformer", "deepspeed"),
    ("stochastic_transformer", "deepspeed"),
    ("transformer_inference", "deepspeed"),
    ("inference_core_ops", "deepspeed"),
    ("cutlass_ops", "deepspeed"),
    ("ragged_ops", "deepspeed"),
    ("ragged_device_ops", "deepspeed"),
    ("quantizer", "deepspeed"),
    ("fp_quantizer", "deepspeed"),
    ("random_ltd", "deepspeed"),
    ("sparse_attn", "deepspeed"),
    ("spatial_inference", "deepspeed"),
    ("evoformer_attn", "deepspeed"),
    ("async_io", "deepspeed"),
    ("gds", "deepspeed"),
    ("gsplat_cuda", "gsplat"),
    ("nerfacc_cuda", "nerfacc"),
    ("nvdiffrast_plugin", "nvdiffrast"),
    ("nvdiffrast_plugin_gl", "nvdiffrast"),
];

/// Returns the package that compiles an extension of this name: its name alone is not one.
pub(super) fn extension_of(module: &str) -> Option<String> {
    let lower = module.to_ascii_lowercase();
    let exact = EXTENSIONS.iter().find(|(name, _)| *name == lower).map(|(_, package)| (*package).to_owned());
    exact.or_else(|| package_of(&lower))
}

/// Folders of site-packages that no extension of the user is in.
const NOT_THE_CAUSE: &[&str] =
    &["pip", "setuptools", "torch", "uv", "importlib", "wheel", "pkg-resources", "triton", "numpy", "nvidia"];

/// Returns the package of the last file that a traceback names.
pub(super) fn package_near(before: &str) -> Option<String> {
    let built = before.rmatch_indices("pip-install-").find_map(|(at, _)| {
        let (_, below) = before[at..].split_once('/')?;
        let (folder, _) = below.split_once('/')?;
        folder.rsplit_once('_').filter(|(_, hash)| hash.len() == 32).map(|(name, _)| name.to_owned())
    });
    built
        .or_else(|| {
            let (at, _) = before.rmatch_indices("-packages/").next()?;
            let start = before[..at].rfind([' ', '"', '\'']).map_or(0, |blank| blank + 1);
            let end = before[at..].find([' ', '"', '\'']).map_or(before.len(), |end| at + end);
            package_of(&before[start..end])
        })
        .filter(|name| !NOT_THE_CAUSE.contains(&name.as_str()))
}

/// Returns envforge's product of a framework that a text names.
pub(super) fn product_near(text: &str) -> Option<&'static str> {
    let lower = text.to_ascii_lowercase();
    let products = [
        ("vllm", "vllm-cuda"),
        ("torch", "pytorch-cuda"),
        ("triton", "pytorch-cuda"),
        ("flash_attn", "pytorch-cuda"),
        ("tensorflow", "tensorflow-cuda"),
        ("jax", "jax-cuda"),
        ("cupy", "cupy-cuda"),
        ("onnxruntime", "onnxruntime-cuda"),
        ("tensorrt", "tensorrt-cuda"),
        ("numba", "numba-cuda"),
        ("cudf", "cudf-cuda"),
    ];
    products.iter().find(|(word, _)| lower.contains(word)).map(|(_, product)| *product)
}

/// NVIDIA's wheels by library, and whether the number of the library is CUDA's major.
const WHEELS: &[(&str, &str, bool)] = &[
    ("libcudart", "nvidia-cuda-runtime", true),
    ("libcublas", "nvidia-cublas", true),
    ("libnvrtc", "nvidia-cuda-nvrtc", true),
    ("libnvjitlink", "nvidia-nvjitlink", true),
    ("libcupti", "nvidia-cuda-cupti", true),
    ("libcusparselt", "nvidia-cusparselt", false),
    ("libcusparse", "nvidia-cusparse", false),
    ("libcusolver", "nvidia-cusolver", false),
    ("libcufft", "nvidia-cufft", false),
    ("libcurand", "nvidia-curand", false),
    ("libcufile", "nvidia-cufile", false),
    ("libnccl", "nvidia-nccl", false),
    ("libcudnn", "nvidia-cudnn", false),
    ("libnvtoolsext", "nvidia-nvtx", false),
    ("libnvshmem", "nvidia-nvshmem", false),
];

/// Returns the wheel that has a library: `nvidia-cuda-runtime-cu12` of `libcudart.so.12`.
pub(super) fn wheel_of(library: &str) -> Option<String> {
    let lower = library.to_ascii_lowercase();
    let (_, wheel, is_major) = WHEELS.iter().find(|(head, ..)| lower.starts_with(head))?;
    let number =
        lower.split_once(".so.").and_then(|(_, number)| number.split('.').next()?.parse::<u32>().ok());
    Some(match number.filter(|_| *is_major) {
        // From CUDA 13 on the names have no suffix.
        Some(major @ 11..=12) => format!("`{wheel}-cu{major}`"),
        Some(13..) => format!("`{wheel}`"),
        _ => format!("`{wheel}` of the stack's CUDA"),
    })
}

/// Debian's packages by library.
const DEBIAN: &[(&str, &str)] = &[
    ("libGL.so.1", "libgl1"),
    ("libEGL.so.1", "libegl1"),
    ("libgthread-2.0", "libglib2.0-0"),
    ("libglib-2.0", "libglib2.0-0"),
    ("libSM.so", "libsm6"),
    ("libXext.so", "libxext6"),
    ("libXrender.so", "libxrender1"),
    ("libX11.so", "libx11-6"),
    ("libsndfile.so", "libsndfile1"),
    ("libgomp.so", "libgomp1"),
    ("libmpi.so.40", "libopenmpi3"),
    ("libmpi_cxx.so.40", "libopenmpi3"),
    ("libnuma.so", "libnuma1"),
    ("libibverbs.so", "libibverbs1"),
    ("librdmacm.so", "librdmacm1"),
    ("libgfortran.so.5", "libgfortran5"),
    ("libav", "ffmpeg"),
    ("libopenblas.so", "libopenblas0"),
    ("libsox.so", "libsox-dev"),
];

/// Returns the distribution's package that has a library.
pub(super) fn debian_of(library: &str) -> Option<String> {
    let found = DEBIAN.iter().find(|(head, _)| library.starts_with(head));
    found.map(|(_, package)| format!("`{package}`"))
}

/// Returns the package of a library's path or name.
pub(super) fn package_of(file: &str) -> Option<String> {
    let lower = file.to_ascii_lowercase();
    let below = ["/site-packages/", "/dist-packages/"].iter().find_map(|mark| lower.rsplit_once(mark));
    let name = below.map_or(lower.rsplit('/').next().unwrap_or(&lower), |(_, name)| name);
    if let Some((_, package)) = PACKAGES.iter().find(|(module, _)| name.contains(module)) {
        return Some((*package).to_owned());
    }
    let (folder, _) = below?.1.split_once('/')?;
    let is_name = folder.starts_with(|c: char| c.is_ascii_alphabetic()) && !folder.contains('.');
    is_name.then(|| folder.replace('_', "-"))
}

/// Returns the package that a line names.
pub(super) fn named_on(line: &str) -> Option<String> {
    let lower = line.to_ascii_lowercase();
    let named = PACKAGES.iter().filter(|(module, _)| module.len() > 3 && lower.contains(module));
    named.map(|(_, package)| (*package).to_owned()).next_back()
}
