//! The libraries that a package does without or never loads, or that the driver brings.

use super::preloaded::TorchRelease;

/// Sonames that come from the driver or optional network hardware, never from the image: the file that may lack them
/// (empty: any) and the soname's beginning.
const ALLOWED: [(&str, &str); 17] = [
    ("", "libcuda.so"),
    ("", "libnvidia-"),
    ("", "libnvcuvid.so"),
    ("libcufile_rdma", "libibverbs"),
    ("libcufile_rdma", "libmlx5"),
    ("libcufile_rdma", "librdmacm"),
    ("nvshmem_", ""),
    // torchaudio plays and decodes with a system library if there is one, and says so if not.
    ("libtorchaudio_sox", "libsox"),
    ("_torchaudio_sox", "libsox"),
    ("_torio_ffmpeg", "libav"),
    ("libtorio_ffmpeg", "libav"),
    // torchcodec has itself once for each FFmpeg, and takes the one that the system has.
    ("libtorchcodec_", "libav"),
    ("libtorchcodec_", "libsw"),
    // It loads this one when a HEIC picture is to be read, and says then what it needs.
    ("libtorchcodec_heic", "libheif"),
    // One of three thread pools of Numba, for the CPU; it takes another where this one is missing.
    ("tbbpool", "libtbb"),
    // CuPy contracts tensors by cuTENSOR where that is installed beside it.
    ("cutensor.cpython", "libcutensor"),
    // ONNX Runtime works through TensorRT where that is installed beside it.
    ("libonnxruntime_providers_tensorrt", "libnv"),
];

/// Whether the library with that file name works without one of that soname, or the driver brings it.
pub fn may_be_missing(file: &str, soname: &str) -> bool {
    ALLOWED.iter().any(|(user, wanted)| file.starts_with(user) && soname.starts_with(wanted))
}

/// Libraries that their package imports only if they fit: torchao works in Python alone where its library is for another torch
/// (pull request 2908 of pytorch/ao).
const TRIED: [&str; 1] = ["torchao/_C"];

/// Whether the package of the library at that path of site-packages works without it.
pub fn is_only_tried(path: &str) -> bool {
    TRIED.iter().any(|start| path.starts_with(start))
}

/// Whether a library is that of another torch than this one. `core.py` of torch-c-dlpack-ext 0.1.5 loads
/// `libtorch_c_dlpack_addon_torch29-cuda.so`, or `-cpu.so`, with torch 2.9 alone, and none with a torch that has such functions itself.
pub fn is_for_another_torch(file: &str, (major, minor): TorchRelease) -> bool {
    let release = file.strip_prefix("libtorch_c_dlpack_addon_torch").and_then(|rest| rest.split_once('-'));
    release.is_some_and(|(release, _)| release != format!("{major}{minor}"))
}

/// Libraries whose package has one of them for each CUDA. `utils.py` of torch-memory-saver loads `STEM_cu13.*.so` on CUDA 13, and the
/// name without `_cu13` only on the accelerators of others (0.0.10) or never (0.0.9.post1); earlier releases have one library.
const FOR_ONE_CUDA: [&str; 2] =
    ["torch_memory_saver_hook_mode_preload", "torch_memory_saver_hook_mode_torch"];

/// Whether a library is that of another CUDA than this major: its package has one for this major, in the same folder.
pub fn is_for_another_cuda(file: &str, major: &str, has: impl Fn(&str) -> bool) -> bool {
    let Some(stem) = FOR_ONE_CUDA.into_iter().find(|stem| file.starts_with(stem)) else { return false };
    let own = format!("{stem}_cu{major}.abi3.so");
    file != own && has(&own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_of_another_torch_or_cuda_are_told_apart_by_their_names() {
        let file = "libtorch_c_dlpack_addon_torch29-cuda.so";
        assert!(is_for_another_torch(file, (2, 14)) && !is_for_another_torch(file, (2, 9)));
        assert!(!is_for_another_torch("_C.so", (2, 14)));
        let stem = "torch_memory_saver_hook_mode_torch";
        let [plain, cu12, cu13] = ["", "_cu12", "_cu13"].map(|cuda| format!("{stem}{cuda}.abi3.so"));
        let has = |name: &str| [&cu12, &cu13].iter().any(|one| *one == name);
        for (file, major, expected) in [
            (&plain, "13", true),
            (&cu12, "13", true),
            (&cu13, "13", false),
            (&cu12, "12", false),
            (&cu13, "12", true),
            // The package has nothing for this CUDA.
            (&cu12, "14", false),
        ] {
            assert_eq!(is_for_another_cuda(file, major, has), expected, "{file} {major}");
        }
        assert!(!is_for_another_cuda(&plain, "13", |_| false), "it has one library");
        assert!(!is_for_another_cuda("other_cu12.abi3.so", "13", |_| true));
    }

    #[test]
    fn only_the_named_files_may_lack_network_libraries() {
        assert!(may_be_missing("libcufile_rdma.so.1", "libibverbs.so.1"));
        assert!(!may_be_missing("libnccl.so.2", "libibverbs.so.1"));
        assert!(!may_be_missing("libtorch_cuda.so", "libcudart.so.12"));
    }

    #[test]
    fn only_the_named_libraries_may_fail_to_load() {
        assert!(is_only_tried("torchao/_C.abi3.so"));
        assert!(!is_only_tried("torchvision/_C.so"));
    }
}
