//! Small wheels that carry the names, versions and requirements of a real framework release.

use crate::wheels::{Wheel, WheelSpec};

/// A release of PyTorch as its own index publishes it. The facts are those of the matrix' sources.
pub(crate) struct TorchRelease {
    torch: &'static str,
    variant: &'static str,
    cuda: &'static str,
    cudnn: u32,
    nccl: (u8, u8, u8),
    arch_flags: &'static str,
    triton: &'static str,
    torchvision: &'static str,
    torchaudio: &'static str,
    libraries: &'static [(&'static str, &'static str)],
}

/// torch 2.7.1 for CUDA 11.8: the last release of that line, published on the framework's own index only.
pub(crate) const TORCH_2_7_CU118: TorchRelease = TorchRelease {
    torch: "2.7.1",
    variant: "cu118",
    cuda: "11.8",
    cudnn: 90100,
    nccl: (2, 21, 5),
    arch_flags: "sm_37 sm_50 sm_60 sm_70 sm_75 sm_80 sm_86 sm_90",
    triton: "3.3.1",
    torchvision: "0.22.1",
    torchaudio: "2.7.1",
    // Those whose load and kernels a check proves are left out: a check fails if the wheel is there without its library.
    libraries: &[
        ("nvidia-cuda-cupti-cu11", "11.8.87"),
        ("nvidia-cufft-cu11", "10.9.0.58"),
        ("nvidia-curand-cu11", "10.3.0.86"),
        ("nvidia-cusolver-cu11", "11.4.1.48"),
        ("nvidia-cusparse-cu11", "11.7.5.86"),
        ("nvidia-nvtx-cu11", "11.8.86"),
    ],
};

/// torch 2.7.0 for CUDA 11.8: the patch release before.
pub(crate) const TORCH_2_7_0_CU118: TorchRelease = TorchRelease {
    torch: "2.7.0",
    triton: "3.3.0",
    torchvision: "0.22.0",
    torchaudio: "2.7.0",
    ..TORCH_2_7_CU118
};

/// torch 2.8.0 for CUDA 11.8, which nobody publishes, with the libraries of the release before.
pub(crate) const TORCH_2_8_CU118: TorchRelease = TorchRelease {
    torch: "2.8.0",
    triton: "3.4.0",
    torchvision: "0.23.0",
    torchaudio: "2.8.0",
    ..TORCH_2_7_CU118
};

/// The same release with a binary that was built for another CUDA than its name says.
pub(crate) const TORCH_2_7_CU118_MISBUILT: TorchRelease = TorchRelease { cuda: "12.6", ..TORCH_2_7_CU118 };

const ON_LINUX: &str = "; platform_system == \"Linux\" and platform_machine == \"x86_64\"";

impl TorchRelease {
    /// All wheels of the release for one Python (`cp311`). `salt` makes wheels that no cache has seen.
    pub(crate) fn wheels(&self, python: &str, salt: &str) -> Vec<Wheel> {
        let tag = format!("{python}-{python}-manylinux_2_28_x86_64");
        let mut wheels: Vec<_> =
            self.libraries.iter().map(|(name, version)| library(name, version)).collect();
        wheels.push(self.torch(&tag, salt));
        wheels.push(self.companion("torchvision", self.torchvision, &tag).requires("numpy").build());
        wheels.push(self.companion("torchaudio", self.torchaudio, &tag).build());
        wheels.push(
            WheelSpec::new("triton", self.triton)
                .tag(&format!("{python}-{python}-manylinux_2_27_x86_64.manylinux_2_28_x86_64"))
                .file("triton/__init__.py", &format!("__version__ = '{}'\n", self.triton))
                .build(),
        );
        wheels
    }

    fn torch(&self, tag: &str, salt: &str) -> Wheel {
        let version = format!("{}+{}", self.torch, self.variant);
        let (major, minor, patch) = self.nccl;
        let mut spec = WheelSpec::new("torch", &version).tag(tag);
        for requirement in
            ["filelock", "typing-extensions>=4.10.0", "sympy>=1.13.3", "networkx", "jinja2", "fsspec"]
        {
            spec = spec.requires(requirement);
        }
        for (name, pin) in self.libraries {
            spec = spec.requires(&format!("{name}=={pin}{ON_LINUX}"));
        }
        spec.requires(&format!("triton=={}{ON_LINUX}", self.triton))
            .file(
                "torch/__init__.py",
                "from torch.version import __version__\nfrom torch import _C, backends, cuda, version\n",
            )
            .file("torch/version.py", &format!("__version__ = '{version}'\ncuda = '{}'\n", self.cuda))
            .file("torch/_C.py", &format!("def _cuda_getArchFlags():\n    return '{}'\n", self.arch_flags))
            .file("torch/backends/__init__.py", "from torch.backends import cudnn\n")
            .file("torch/backends/cudnn/__init__.py", &format!("def version():\n    return {}\n", self.cudnn))
            .file("torch/cuda/__init__.py", IN_CUDA)
            .file("torch/cuda/nccl.py", &format!("def version():\n    return ({major}, {minor}, {patch})\n"))
            .file("torch/salt.py", &format!("SALT = '{salt}'\n"))
            .build()
    }

    fn companion(&self, name: &str, version: &str, tag: &str) -> WheelSpec {
        let version = format!("{version}+{}", self.variant);
        WheelSpec::new(name, &version)
            .tag(tag)
            .requires(&format!("torch=={}", self.torch))
            .file(&format!("{name}/__init__.py"), &format!("__version__ = '{version}'\n"))
    }
}

const IN_CUDA: &str = "\
from torch.cuda import nccl

def is_available():
    return False

def device_count():
    return 0

def get_arch_list():
    return []
";

fn library(name: &str, version: &str) -> Wheel {
    let folder = name.trim_start_matches("nvidia-").trim_end_matches("-cu11").replace('-', "_");
    WheelSpec::new(name, version)
        .tag("py3-none-manylinux2014_x86_64")
        .file("nvidia/__init__.py", "")
        .file(&format!("nvidia/{folder}/__init__.py"), "")
        .file(&format!("nvidia/{folder}/lib/__init__.py"), "")
        .build()
}
