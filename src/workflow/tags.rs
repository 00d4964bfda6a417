//! The tags an image is to have.

use crate::model::compat::Matrix;
use crate::model::image::plan::name;
use crate::model::lock::Lock;
use crate::model::request::RequestedSpec;

/// The canonical name, what was typed if it names a version, and what `--tag` asks for: without any suffix.
pub(crate) fn tags(spec: &RequestedSpec, wanted: &[String], lock: &Lock, matrix: &Matrix) -> Vec<String> {
    let (mut tags, typed) = (vec![name(lock)], spec.written());
    if lock.added.is_empty() && typed.contains(':') && !typed.ends_with(":latest") {
        tags.push(by_own_name(spec, matrix).replace('+', "-"));
    }
    tags.extend(wanted.iter().cloned());
    tags.dedup();
    tags
}

/// Returns a spec as it was typed, but with the product's own name: `pytorch-cuda:2.8` for `torch:2.8`.
pub(crate) fn by_own_name(spec: &RequestedSpec, matrix: &Matrix) -> String {
    let (typed, name) = (spec.written(), &spec.parsed().name);
    let product = matrix.product(name);
    // A spec is ASCII, and its name is its beginning.
    product.map_or_else(|| typed.to_owned(), |product| product.name.clone() + &typed[name.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spec_by_another_name_is_the_product() {
        for (typed, own) in [
            ("torch:2.8-cu128", "pytorch-cuda:2.8-cu128"),
            ("PyTorch:2.8", "pytorch-cuda:2.8"),
            ("tf", "tensorflow-cuda"),
            ("vllm:0.10.0-py312", "vllm-cuda:0.10.0-py312"),
            ("pytorch-cuda:2.8", "pytorch-cuda:2.8"),
            ("cuda:12.8", "cuda:12.8"),
            ("debian:12", "debian:12"),
        ] {
            assert_eq!(by_own_name(&typed.parse().expect("a spec"), crate::model::compat::embedded()), own);
        }
    }
}
