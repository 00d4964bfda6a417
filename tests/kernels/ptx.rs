//! The PTX in `kernels/ptx` is what NVRTC 11.8 makes of the kernels.

use std::path::Path;

use crate::kernels::KERNELS;
use crate::nvrtc::{Nvrtc, Target};
use crate::real::{file, unpacked};

#[test]
#[ignore = "needs the package index: gigabytes of wheels"]
fn the_ptx_made_ahead_is_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels/ptx");
    let library = file(&unpacked("nvidia-cuda-nvrtc-cu11==11.8.89"), "libnvrtc.so.");
    let nvrtc = Nvrtc::open(&library).expect("it loads");
    let mut count = 0;
    for kernel in KERNELS {
        for ptx in kernel.ptx {
            let made =
                nvrtc.compile(kernel.name, kernel.source, Target::Ptx(ptx.lowest)).expect("it compiles");
            let made = String::from_utf8(made).expect("text");
            assert_eq!(made.trim_end_matches('\0'), ptx.text, "{}: run kernels/ptx/make.py", kernel.name);
            count += 1;
        }
    }
    let files = fs_err::read_dir(folder).expect("readable").map(|entry| entry.expect("an entry").path());
    assert_eq!(files.filter(|path| path.extension().is_some_and(|e| e == "ptx")).count(), count);
}
