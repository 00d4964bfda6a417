//! Frameworks with CUDA that no product of envforge is named for: what a refusal says of them.

use super::requirement_line::normalized;

/// A framework with CUDA that a file asks for by a name that is none of a product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherFramework {
    /// Its name: `PaddlePaddle`.
    pub name: &'static str,
    /// The package that asks for it: `paddlepaddle-gpu`.
    pub package: String,
    /// The product that is meant; `None`: envforge has none.
    pub product: Option<&'static str>,
}

/// The beginnings of names of packages, and their framework.
const WITHOUT_PRODUCT: [(&str, &str); 6] = [
    ("paddlepaddle-gpu", "PaddlePaddle"),
    ("mxnet-cu", "MXNet"),
    ("mindspore", "MindSpore"),
    ("oneflow", "OneFlow"),
    ("jittor", "Jittor"),
    ("llama-cpp-python", "llama.cpp"),
];

/// Packages of RAPIDS whose names say no CUDA, and the product.
const RAPIDS: [(&str, &str); 5] = [
    ("rapids", "cudf-cuda"),
    ("cudf", "cudf-cuda"),
    ("dask-cudf", "cudf-cuda"),
    ("cugraph", "cudf-cuda"),
    ("cuml", "cuml-cuda"),
];

/// The framework of a line that names a package: `paddlepaddle-gpu==2.6.1`, `rapidsai::rapids=24.10`.
pub(super) fn other_framework(line: &str) -> Option<OtherFramework> {
    let plain = line.rsplit_once("::").map_or(line, |(_, rest)| rest).trim();
    let end = plain.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c)).unwrap_or(plain.len());
    let package = normalized(&plain[..end]);
    if let Some((_, product)) = RAPIDS.iter().find(|(name, _)| *name == package) {
        return Some(OtherFramework { name: "RAPIDS", package, product: Some(*product) });
    }
    let (_, name) = WITHOUT_PRODUCT.iter().find(|(begin, _)| package.starts_with(begin))?;
    Some(OtherFramework { name, package, product: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_name_frameworks_without_a_product() {
        for (line, expected) in [
            ("paddlepaddle-gpu==2.6.1.post120", Some(("PaddlePaddle", None))),
            ("mxnet-cu110", Some(("MXNet", None))),
            ("mxnet", None),
            ("rapidsai::rapids=24.10", Some(("RAPIDS", Some("cudf-cuda")))),
            ("cudf", Some(("RAPIDS", Some("cudf-cuda")))),
            ("cuml>=24.10", Some(("RAPIDS", Some("cuml-cuda")))),
            ("rapids-logger", None),
            ("llama_cpp_python[server]", Some(("llama.cpp", None))),
            ("numpy", None),
            ("", None),
        ] {
            let found = other_framework(line).map(|one| (one.name, one.product));
            assert_eq!(found, expected, "{line}");
        }
    }
}
