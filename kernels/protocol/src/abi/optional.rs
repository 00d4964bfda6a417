//! The libraries that a package does without, or that the driver brings.

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

#[cfg(test)]
mod tests {
    use super::*;

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
