//! The CUDA and the torch that a package says it is built for, in its version, its extras and its name.

use pep440_rs::VersionSpecifiers;

use super::index_page::is_on_pytorch_index;
use super::reading::{Asked, Strength};
use crate::model::compat::Matrix;
use crate::model::local_version::{LocalVersion, cuda_major};
use crate::model::versions::CudaVariant;

/// Returns the CUDA of a package, and how surely it is the stack's. A wheel of an extension runs with every minor of its CUDA.
pub(super) fn cuda_of_package(
    asked: &Asked,
    framework: &str,
    matrix: &Matrix,
) -> Option<(CudaVariant, Strength)> {
    let local = asked.local.as_deref();
    if let Some(cuda) = local.and_then(|local| LocalVersion::read(local).cuda) {
        return Some(if asked.name == framework {
            (cuda, Strength::Framework)
        } else if has_every_minor(asked, matrix) {
            (cuda, Strength::Index)
        } else {
            (CudaVariant { minor: None, ..cuda }, Strength::Package)
        });
    }
    // `cu124-ampere-torch250` of unsloth.
    let of_extra = extras(asked).filter(|extra| extra.starts_with("cu")).find_map(|extra| {
        let cuda = LocalVersion::read(extra).cuda?;
        cuda.minor.is_some().then_some(cuda)
    });
    if let Some(cuda) = of_extra {
        return Some((cuda, Strength::Index));
    }
    // `cuda12.cudnn89` of jaxlib.
    let major = local.and_then(|local| local.split('.').find_map(cuda_major));
    let cuda = major.map(|major| CudaVariant { major, minor: None }).or_else(|| major_in_name(asked))?;
    Some((cuda, Strength::Package))
}

/// The major of CUDA in a package's name or extra: 12 of `cupy-cuda12x`, `onnxruntime-gpu-cu12`, `jax[cuda12]`.
pub(super) fn major_in_name(asked: &Asked) -> Option<CudaVariant> {
    let major = asked.name.rsplit('-').next().and_then(cuda_major);
    let major = major.or_else(|| extras(asked).find_map(cuda_major))?;
    Some(CudaVariant { major, minor: None })
}

/// Returns the torch that a package is built for, the strictest condition first: `torch2.3` of a wheel's version, `torch250` of an extra.
pub(super) fn torch_of_package(asked: &Asked) -> Vec<VersionSpecifiers> {
    if asked.name == "torch" {
        return Vec::new();
    }
    let texts = asked.local.as_deref().into_iter().chain(extras(asked));
    let mut named =
        texts.filter(|text| text.to_ascii_lowercase().contains("torch") || text.starts_with("pt"));
    let found = named.find_map(|text| Some((text, LocalVersion::read(text).torch?)));
    let Some((text, (major, minor))) = found else { return Vec::new() };
    // Three digits are a release.
    let digits = text.rsplit("torch").next().filter(|_| asked.local.is_none()).unwrap_or_default();
    let is_release = digits.len() == 3 && digits.bytes().all(|b| b.is_ascii_digit());
    let release = is_release.then(|| format!("=={major}.{minor}.{}", &digits[2..]));
    let all = release.into_iter().chain([format!("=={major}.{minor}.*")]);
    all.filter_map(|text| text.parse().ok()).collect()
}

/// Returns the local part of a version as it is compared with the stack: of an extension, with the major of its CUDA alone.
pub(super) fn compared_local(asked: &Asked, matrix: &Matrix) -> Option<String> {
    let local = asked.local.as_deref()?;
    Some(if has_every_minor(asked, matrix) { local.to_owned() } else { without_minor(local) })
}

/// Whether a package is built for each minor of CUDA, so that its minor is the stack's: those of PyTorch's own indexes, those with a page
/// for each torch and CUDA, and those of an index of the project.
fn has_every_minor(asked: &Asked, matrix: &Matrix) -> bool {
    let has_pages =
        || matrix.coupled_packages.iter().any(|row| row.package == asked.name && row.pages.is_some());
    is_on_pytorch_index(&asked.name)
        || asked.index.is_some()
        || asked.written.contains("://download.pytorch.org/")
        || has_pages()
}

/// `cu12torch2.3` of `cu122torch2.3`.
fn without_minor(local: &str) -> String {
    let lower = local.to_ascii_lowercase();
    let begins = |at: &usize| lower[*at..].starts_with(|c: char| c.is_ascii_digit());
    let Some(at) = lower.match_indices("cu").map(|(at, name)| at + name.len()).find(begins) else {
        return local.to_owned();
    };
    let number = |from: usize| lower[from..].bytes().take_while(u8::is_ascii_digit).count();
    let length = number(at);
    let mut end = at + length;
    // `cu12.4`, but not `cu121.torch2.4`.
    if lower[end..].starts_with('.') && number(end + 1) > 0 {
        end += 1 + number(end + 1);
    }
    format!("{}{}", &local[..at + length.min(2)], &local[end..])
}

fn extras(asked: &Asked) -> impl Iterator<Item = &str> {
    asked.extras.trim_matches(['[', ']']).split(',').filter(|extra| !extra.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::migrate::place::Origin;
    use crate::model::migrate::requirement_line::{Line, line};

    fn asked(text: &str) -> Asked {
        match line(text, &Origin::line("r.txt", 1)) {
            Line::Package(asked) | Line::Wheel { asked, .. } => *asked,
            Line::Not(why) => panic!("{text}: {why}"),
        }
    }

    #[test]
    fn packages_say_cuda_and_torch() {
        use Strength::{Framework, Index, Package};
        let matrix = crate::model::compat::embedded();
        for (text, cuda, torch) in [
            ("torch==2.3.1+cu121", Some(("cu121", Framework)), ""),
            ("torchvision==0.18.1+cu121", Some(("cu121", Index)), ""),
            ("xformers==0.0.23.post1+cu118", Some(("cu118", Index)), ""),
            ("flash-attn==2.5.8+cu122torch2.3cxx11abifalse", Some(("cu12", Package)), "==2.3.*"),
            ("flash-attn==2.5.8+cu118torch2.3cxx11abiFALSE", Some(("cu11", Package)), "==2.3.*"),
            (
                "https://h/exllamav2-0.2.4+cu121.torch2.4.1-cp311-cp311-linux_x86_64.whl",
                Some(("cu12", Package)),
                "==2.4.*",
            ),
            (
                "flash-attn @ https://h/flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
                Some(("cu12", Package)),
                "==2.4.*",
            ),
            ("auto-gptq==0.7.1+cu118", Some(("cu11", Package)), ""),
            ("torch-scatter==2.1.2+pt24cu121", Some(("cu121", Index)), "==2.4.*"),
            ("unsloth[cu124-ampere-torch250]==2024.11.7", Some(("cu124", Index)), "==2.5.0 ==2.5.*"),
            ("jax[cuda12]==0.4.35", Some(("cu12", Package)), ""),
            ("jaxlib==0.4.25+cuda12.cudnn89", Some(("cu12", Package)), ""),
            ("cupy-cuda12x", Some(("cu12", Package)), ""),
            ("transformers[torch]==4.41.0", None, ""),
            ("numpy", None, ""),
        ] {
            let one = asked(text);
            let found = cuda_of_package(&one, "torch", matrix);
            let expected = cuda.map(|(cuda, strength)| (cuda.parse().expect("a variant"), strength));
            assert_eq!(found, expected, "{text}");
            let found: Vec<_> = torch_of_package(&one).iter().map(ToString::to_string).collect();
            assert_eq!(found.join(" "), torch, "{text}");
        }
    }

    #[test]
    fn extensions_are_compared_by_the_major_of_their_cuda() {
        for (text, expected) in [
            ("flash-attn==2.5.8+cu122torch2.3cxx11abiFALSE", "cu12torch2.3cxx11abiFALSE"),
            ("exllamav2==0.2.4+cu121.torch2.4.1", "cu12.torch2.4.1"),
            ("natten==0.17.5+torch260cu126", "torch260cu12"),
            ("x==1+cu12.4", "cu12"),
            ("x==1+computecanada", "computecanada"),
            ("torchvision==0.18.1+cu121", "cu121"),
        ] {
            let found = compared_local(&asked(text), crate::model::compat::embedded());
            assert_eq!(found.as_deref(), Some(expected), "{text}");
        }
    }
}
