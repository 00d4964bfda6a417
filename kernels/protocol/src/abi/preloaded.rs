//! Libraries that torch loads by itself while it is imported, before any extension.
//!
//! Source: `_load_global_deps` and `_preload_cuda_deps` of `torch/__init__.py` in the `x86_64` wheels of 2.4.0 to 2.15.0 on the
//! package index, read 2026-11-26.

/// A release of torch: major and minor.
pub type TorchRelease = (u16, u16);

/// The first release that loads the run-time compiler and linker of CUDA wheels.
const COMPILERS_FROM: TorchRelease = (2, 6);
const COMPILERS: [(&str, &str); 2] = [("cuda_nvrtc", "libnvrtc"), ("nvjitlink", "libnvJitLink")];
/// The first release that loads all libraries of CUDA wheels.
const ALL_FROM: TorchRelease = (2, 10);
const ALL: [(&str, &str); 13] = [
    ("cublas", "libcublas"),
    ("cudnn", "libcudnn"),
    ("cuda_nvrtc", "libnvrtc-builtins"),
    ("cuda_runtime", "libcudart"),
    ("cuda_cupti", "libcupti"),
    ("cufft", "libcufft"),
    ("curand", "libcurand"),
    ("cusparse", "libcusparse"),
    ("cusparselt", "libcusparseLt"),
    ("cusolver", "libcusolver"),
    ("nccl", "libnccl"),
    ("nvshmem", "libnvshmem_host"),
    ("cufile", "libcufile"),
];

/// Reads the release of a version of torch: `2.8.0+cu128`, `2.8`.
pub fn torch_release(version: &str) -> Option<TorchRelease> {
    let mut parts = version.split(['.', '+', 'a', 'r']);
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

/// Whether that release of torch loads a library by its path below site-packages: `nvidia/cuda_nvrtc/lib/libnvrtc.so.12`.
pub fn is_preloaded(torch: TorchRelease, path: &str) -> bool {
    let Some((folder, file)) = path.strip_prefix("nvidia/").and_then(|path| path.split_once("/lib/")) else {
        return false;
    };
    // One folder for each library, or one for a CUDA major.
    let is_major = |folder: &str| folder.strip_prefix("cu").is_some_and(|major| major.parse::<u16>().is_ok());
    let is_one = |(of, name): &(&str, &str)| {
        let version = file.strip_prefix(name).and_then(|rest| rest.strip_prefix(".so."));
        // The pattern is `libnvrtc.so.*[0-9]`.
        version.is_some_and(|version| version.ends_with(|last: char| last.is_ascii_digit()))
            && (folder == *of || is_major(folder))
    };
    let compilers = torch >= COMPILERS_FROM && COMPILERS.iter().any(is_one);
    compilers || (torch >= ALL_FROM && ALL.iter().any(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_read_with_and_without_local_versions() {
        for (version, release) in
            [("2.8.0+cu128", (2, 8)), ("2.15.0", (2, 15)), ("2.9", (2, 9)), ("2.9a0", (2, 9))]
        {
            assert_eq!(torch_release(version), Some(release), "{version}");
        }
        assert_eq!(torch_release("main"), None);
    }

    #[test]
    fn each_release_loads_its_own_libraries() {
        let nvrtc = "nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
        let cufft = "nvidia/cufft/lib/libcufft.so.11";
        let of = |torch| [nvrtc, cufft].map(|path| is_preloaded(torch, path));
        assert_eq!(of((2, 5)), [false, false]);
        assert_eq!(of((2, 6)), [true, false]);
        assert_eq!(of((2, 9)), [true, false]);
        assert_eq!(of((2, 10)), [true, true]);
        assert!(is_preloaded((2, 12), "nvidia/cu13/lib/libnvrtc.so.13"));
        for other in [
            "nvidia/cuda_nvrtc/lib/libnvrtc.alt.so.12",
            "nvidia/cuda_nvrtc/lib/libnvrtc.so",
            "nvidia/cufft/lib/libcufftw.so.11",
            "nvidia/cublas/lib/libnvrtc.so.12",
            "other/cuda_nvrtc/lib/libnvrtc.so.12",
        ] {
            assert!(!is_preloaded((2, 12), other), "{other}");
        }
    }
}
