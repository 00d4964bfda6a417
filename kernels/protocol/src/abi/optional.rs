//! The libraries that a package does without or never loads, or that the driver brings.

use std::ffi::OsStr;
use std::path::Path;

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

/// Whether a library is a plug-in or a QML module of a Qt: opened on demand, and Qt goes on without one that does not load. Its database
/// drivers, themes and players ask for more than any distribution has; what a window needs is in the rows of `libraries.toml`.
pub fn is_plug_in_of_qt(path: &Path) -> bool {
    let names = || path.parent().into_iter().flat_map(Path::iter).filter_map(OsStr::to_str);
    let is_qt = |name: &str| {
        let rest = name.strip_prefix(['Q', 'q']).and_then(|rest| rest.strip_prefix('t'));
        rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
    };
    names().zip(names().skip(1)).any(|(qt, kind)| is_qt(qt) && ["plugins", "qml"].contains(&kind))
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

/// The beginning of the libraries of bitsandbytes: one for each CUDA, others for AMD and Intel, and one for the processor.
const BITSANDBYTES: &str = "libbitsandbytes_";

/// Whether a library of a folder is never loaded with this CUDA (`12.8`): its package has another one for it there.
pub fn is_for_another_cuda((folder, file): (&str, &str), cuda: &str, has: impl Fn(&str) -> bool) -> bool {
    let (major, minor) = cuda.split_once('.').unwrap_or((cuda, "0"));
    if let Some(stem) = FOR_ONE_CUDA.into_iter().find(|stem| file.starts_with(stem)) {
        let own = format!("{stem}_cu{major}.abi3.so");
        return file != own && has(&own);
    }
    let kind = file.strip_prefix(BITSANDBYTES).filter(|_| folder == "bitsandbytes");
    let is_of_a_gpu = kind.is_some_and(|kind| !kind.starts_with("cpu"));
    is_of_a_gpu && of_bitsandbytes(major, minor, has).is_some_and(|own| own != file)
}

/// The library that bitsandbytes loads, by `cextension.py`: up to 0.49 that of the CUDA of torch or none, from 0.50 on else the next
/// lower one of the major, else the next higher one.
fn of_bitsandbytes(major: &str, minor: &str, has: impl Fn(&str) -> bool) -> Option<String> {
    let minor: u32 = minor.parse().ok()?;
    let minors = (0..=minor).rev().chain(minor + 1..minor + 20);
    minors.map(|minor| format!("{BITSANDBYTES}cuda{major}{minor}.so")).find(|name| has(name))
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
        for (file, cuda, expected) in [
            (&plain, "13.0", true),
            (&cu12, "13.0", true),
            (&cu13, "13.0", false),
            (&cu12, "12.8", false),
            (&cu13, "12.8", true),
            // The package has nothing for this CUDA.
            (&cu12, "14.0", false),
        ] {
            assert_eq!(is_for_another_cuda(("x", file), cuda, has), expected, "{file} {cuda}");
        }
        assert!(!is_for_another_cuda(("x", &plain), "13.0", |_| false), "it has one library");
        assert!(!is_for_another_cuda(("x", "other_cu12.abi3.so"), "13.0", |_| true));
    }

    #[test]
    fn bitsandbytes_loads_the_library_of_the_nearest_cuda_of_the_major() {
        // The files of 0.50.2.
        let all =
            ["cpu", "cuda118", "cuda121", "cuda124", "cuda126", "cuda128", "cuda130", "rocm72", "xpu2026"];
        let file = |kind: &str| format!("libbitsandbytes_{kind}.so");
        let has = |name: &str| all.iter().any(|kind| file(kind) == *name);
        for (cuda, own) in [
            ("12.8", "cuda128"),
            ("12.9", "cuda128"),
            ("12.0", "cuda121"),
            ("13.2", "cuda130"),
            ("11.8", "cuda118"),
        ] {
            let loaded: Vec<_> = all
                .into_iter()
                .filter(|kind| !is_for_another_cuda(("bitsandbytes", &file(kind)), cuda, has))
                .collect();
            assert_eq!(loaded, ["cpu", own], "{cuda}");
        }
        // It has none for CUDA 14: each of its libraries is held to what it needs.
        assert!(all.iter().all(|kind| !is_for_another_cuda(("bitsandbytes", &file(kind)), "14.0", has)));
        assert!(!is_for_another_cuda(("bitsandbytes", "libbitsandbytes_cuda118.so"), "12.8", |_| false));
        assert!(
            !is_for_another_cuda(("another", "libbitsandbytes_xpu2026.so"), "12.8", has),
            "another package's"
        );
    }

    /// Paths of PyQt5-Qt5, PyQt6-Qt6, PySide6-Essentials and opencv-python.
    #[test]
    fn plug_ins_of_qt_are_told_by_their_folder() {
        for path in [
            "env/PyQt5/Qt5/plugins/mediaservice/libgstmediaplayer.so",
            "env/PyQt6/Qt6/plugins/sqldrivers/libqsqlmimer.so",
            "env/PySide6/Qt/qml/QtQuick/Pdf/libpdfquickplugin.so",
            "env/cv2/qt/plugins/platforms/libqxcb.so",
        ] {
            assert!(is_plug_in_of_qt(Path::new(path)), "{path}");
        }
        for path in [
            "env/PyQt6/Qt6/lib/libQt6Gui.so.6",
            "env/cv2/cv2.abi3.so",
            "env/tensorflow-plugins/plugins/libx.so",
            "env/PySide6/Qt/plugins",
            "env/Qtile/plugins/x.so",
        ] {
            assert!(!is_plug_in_of_qt(Path::new(path)), "{path}");
        }
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
