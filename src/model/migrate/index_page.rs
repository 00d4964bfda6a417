//! Addresses of package indexes: which of them say a CUDA.

use super::conda_spec::cuda_of;
use super::requirement_line::is_for_jetson;
use crate::model::versions::CudaVariant;

/// Hosts of the default index and of PyTorch's own.
const DEFAULT: [&str; 4] = ["pypi.org", "pypi.python.org", "files.pythonhosted.org", "download.pytorch.org"];

/// PyTorch's own host of wheels.
const PYTORCH: &str = "download.pytorch.org";

/// Packages of which PyTorch's own indexes have builds for each CUDA.
const OF_PYTORCH: [&str; 12] = [
    "torch",
    "torchvision",
    "torchaudio",
    "torchtext",
    "torchcodec",
    "torchao",
    "torchrec",
    "torch-tensorrt",
    "fbgemm-gpu",
    "xformers",
    "triton",
    "pytorch-triton",
];

/// Whether PyTorch's own indexes have builds of a package for each CUDA.
pub(super) fn is_on_pytorch_index(package: &str) -> bool {
    OF_PYTORCH.contains(&package)
}

/// What the address of an index means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IndexMeaning {
    /// Its wheels are for this CUDA: `https://download.pytorch.org/whl/cu128`.
    Cuda(CudaVariant),
    /// An index of another project, whose wheels are for this CUDA: `https://abetlen.github.io/llama-cpp-python/whl/cu125`. It says
    /// nothing of the CUDA of torch.
    Foreign(CudaVariant),
    /// Its wheels are previews for this CUDA: `…/whl/nightly/cu128`.
    Nightly(CudaVariant),
    /// Its wheels have no CUDA: `…/whl/cpu`, `…/whl/rocm6.3`.
    Without(String),
    /// Its wheels are for Jetson boards.
    Jetson,
    /// JAX's page of builds before it published them on the package index.
    OldJax,
    /// PyTorch's page of its builds with long-term support.
    OldPyTorch,
    /// The default index, or a framework's own: both are used anyway.
    Default,
    /// Another one.
    Other,
}

/// Reads an address.
pub(super) fn meaning(url: &str) -> IndexMeaning {
    let plain = url.split(['?', '#']).next().unwrap_or_default().trim_end_matches('/');
    let path = plain.split_once("://").map_or(plain, |(_, rest)| rest);
    let mut parts = path.split('/');
    let host = parts.next().unwrap_or_default().rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    let parts: Vec<_> = parts.map(str::to_ascii_lowercase).collect();
    if is_for_jetson(plain) {
        return IndexMeaning::Jetson;
    }
    if parts.last().is_some_and(|part| part == "jax_cuda_releases.html" || part == "jax_releases.html") {
        return IndexMeaning::OldJax;
    }
    let cuda = parts.iter().rev().find_map(|part| {
        // `cu128`, `cu12.8`, `torch-2.8.0+cu128.html`, `torch-2.6.0%2Bcu124.html`.
        let tag = part.rsplit(['+', '-', '_']).next().unwrap_or_default().trim_end_matches(".html");
        let tag = tag.strip_prefix("torch").unwrap_or(tag);
        let tag = tag.rsplit("%2b").next().unwrap_or(tag).replace('.', "");
        tag.parse::<CudaVariant>().ok().or_else(|| cuda_in_words(part))
    });
    let nightly = parts.iter().any(|part| part == "nightly" || part == "test");
    match cuda {
        Some(cuda) if !is_of_torch(&host, &parts) => return IndexMeaning::Foreign(cuda),
        Some(cuda) if nightly => return IndexMeaning::Nightly(cuda),
        Some(cuda) => return IndexMeaning::Cuda(cuda),
        None => {}
    }
    let without = parts.iter().rev().find(|part| {
        ["cpu", "xpu"].contains(&part.as_str())
            || part.starts_with("libtpu")
            || part.starts_with("rocm")
            || part.ends_with("+cpu.html")
    });
    if let Some(part) = without {
        return IndexMeaning::Without(part.clone());
    }
    if host == PYTORCH && parts.iter().any(|part| part == "lts" || part == "torch_lts.html") {
        return IndexMeaning::OldPyTorch;
    }
    if DEFAULT.contains(&host.as_str()) { IndexMeaning::Default } else { IndexMeaning::Other }
}

/// Whether an index has the CUDA of torch: PyTorch's own and its mirrors, pages of packages that are built for one torch, and
/// onnxruntime's feed, whose CUDA is that of onnxruntime. A host in a variable may be a mirror.
fn is_of_torch(host: &str, parts: &[String]) -> bool {
    let is_own = |part: &String| part.contains("torch") || part.contains("onnxruntime-cuda");
    host.contains("torch") || host.contains('$') || host == "data.dgl.ai" || parts.iter().any(is_own)
}

/// The CUDA of a name such as `onnxruntime-cuda-12`: its last word is a number.
fn cuda_in_words(part: &str) -> Option<CudaVariant> {
    let digits = part.rsplit_once("cuda")?.1.trim_start_matches(['-', '_']);
    let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_number.then(|| cuda_of(digits))?
}

/// Whether a requirement names a file of the default indexes by its address.
pub(super) fn is_file_of_default(written: &str) -> bool {
    let host = written.split_once("://").and_then(|(_, rest)| rest.split('/').next());
    host.is_some_and(|host| DEFAULT.contains(&host))
}

/// A short name for an index: `download.pytorch.org` gives `pytorch`, `pypi.nvidia.com` gives `nvidia`.
pub(super) fn name_of(url: &str) -> String {
    let host =
        url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', ':']).next().unwrap_or_default();
    let parts: Vec<_> = host.rsplit('@').next().unwrap_or_default().split('.').collect();
    let name = if parts.len() >= 2 { parts[parts.len() - 2] } else { parts[0] };
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    if name.is_empty() { "further".to_owned() } else { name.to_ascii_lowercase() }
}

/// Whether an address holds a login.
pub(super) fn has_login(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or_default().contains('@') || url.contains(['$', '?'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_say_their_cuda() {
        let cuda = |text: &str| text.parse().expect("a variant");
        for (url, expected) in [
            ("https://download.pytorch.org/whl/cu128", IndexMeaning::Cuda(cuda("cu128"))),
            ("https://download.pytorch.org/whl/cu121/", IndexMeaning::Cuda(cuda("cu121"))),
            ("https://download.pytorch.org/whl/cu113/torch_stable.html", IndexMeaning::Cuda(cuda("cu113"))),
            ("https://download.pytorch.org/whl/nightly/cu128", IndexMeaning::Nightly(cuda("cu128"))),
            ("https://data.pyg.org/whl/torch-2.6.0+cu124.html", IndexMeaning::Cuda(cuda("cu124"))),
            ("https://data.dgl.ai/wheels/torch-2.4/cu124/repo.html", IndexMeaning::Cuda(cuda("cu124"))),
            ("https://flashinfer.ai/whl/cu124/torch2.6/", IndexMeaning::Cuda(cuda("cu124"))),
            (
                "https://download.openmmlab.com/mmcv/dist/cu117/torch2.0/index.html",
                IndexMeaning::Cuda(cuda("cu117")),
            ),
            ("https://h.test/torch-2.4.0_cu121.html", IndexMeaning::Cuda(cuda("cu121"))),
            ("https://data.dgl.ai/wheels/cu118/repo.html", IndexMeaning::Cuda(cuda("cu118"))),
            ("https://mirror.h.test/pytorch-wheels/cu121", IndexMeaning::Cuda(cuda("cu121"))),
            ("https://huggingface.github.io/autogptq-index/whl/cu118/", IndexMeaning::Foreign(cuda("cu118"))),
            ("https://abetlen.github.io/llama-cpp-python/whl/cu125", IndexMeaning::Foreign(cuda("cu125"))),
            ("https://www.paddlepaddle.org.cn/packages/stable/cu123/", IndexMeaning::Foreign(cuda("cu123"))),
            ("https://download.pytorch.org/whl/lts/1.8/torch_lts.html", IndexMeaning::OldPyTorch),
            ("https://download.pytorch.org/whl/cpu", IndexMeaning::Without("cpu".to_owned())),
            ("https://download.pytorch.org/whl/rocm6.3", IndexMeaning::Without("rocm6.3".to_owned())),
            ("https://pypi.org/simple", IndexMeaning::Default),
            ("https://download.pytorch.org/whl/torch_stable.html", IndexMeaning::Default),
            ("https://pypi.nvidia.com/", IndexMeaning::Other),
            ("https://u:p@wheels.example.com/simple", IndexMeaning::Other),
            ("https://h.test/_packaging/onnxruntime-cuda-12/pypi/simple/", IndexMeaning::Cuda(cuda("cu12"))),
            ("https://pypi.jetson-ai-lab.io/jp6/cu126", IndexMeaning::Jetson),
            (
                "https://storage.googleapis.com/jax-releases/libtpu_releases.html",
                IndexMeaning::Without("libtpu_releases.html".to_owned()),
            ),
            ("https://storage.googleapis.com/jax-releases/jax_cuda_releases.html", IndexMeaning::OldJax),
        ] {
            assert_eq!(meaning(url), expected, "{url}");
        }
        assert_eq!(name_of("https://pypi.nvidia.com/"), "nvidia");
        assert!(has_login("https://u:p@h/x") && !has_login("https://h/x@1"));
    }
}
