//! The local part of a wheel's version: which CUDA and which torch it says the wheel was built for.

use pep440_rs::{Operator, Version, VersionSpecifiers};

use crate::versions::CudaVariant;

/// The facts in the local part of a version, `cu128` of `2.8.0+cu128` or `cu12torch2.8cxx11abiTRUE` of a wheel of flash-attn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalVersion {
    /// Its CUDA: `cu128`, or `cu12` where only the major is named.
    pub cuda: Option<CudaVariant>,
    /// Major and minor of its torch: 2 and 8 of `torch2.8`, `torch271` has 2 and 7.
    pub torch: Option<(u32, u32)>,
    /// Whether it says that the wheel has no CUDA: `cpu`, `rocm6.3`, `xpu`.
    pub other_accelerator: Option<String>,
}

impl LocalVersion {
    /// Reads the part behind `+`, in lower or upper case.
    pub fn read(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        let other = ["cpu", "rocm", "xpu", "hip"].into_iter().find(|name| text.starts_with(name));
        let number = |name: &str, most: usize| {
            text.match_indices(name).find_map(|(at, _)| {
                let rest = &text[at + name.len()..];
                let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
                let digits = rest[..end].trim_matches('.');
                (!digits.is_empty() && digits.len() <= most).then(|| digits.to_owned())
            })
        };
        // `cu126`, `cu12`, `cu12.6`: a dot behind it may begin the next part (`cu128.torch271`), which `trim_matches` took.
        let cuda = number("cu", 5).and_then(|digits| format!("cu{}", digits.replace('.', "")).parse().ok());
        let torch = number("torch", 6).or_else(|| number("pt", 6)).and_then(|digits| release(&digits));
        Self { cuda, torch, other_accelerator: other.map(|_| text.clone()) }
    }

    /// Why a wheel with it is none for this CUDA and torch; `None`: what it names is equal, or it names nothing.
    pub fn mismatch(&self, cuda: CudaVariant, torch: Option<(u32, u32)>) -> Option<String> {
        if let Some(other) = &self.other_accelerator {
            return Some(format!("`+{other}` is a build without CUDA, the stack has {cuda}"));
        }
        let same = |wanted: CudaVariant| {
            let minor = wanted.minor.is_none() || cuda.minor.is_none() || wanted.minor == cuda.minor;
            wanted.major == cuda.major && minor
        };
        if let Some(wanted) = self.cuda.filter(|wanted| !same(*wanted)) {
            return Some(format!("it is the build for {wanted}, the stack has {cuda}"));
        }
        let (wanted, own) = (self.torch?, torch?);
        (wanted != own).then(|| {
            format!("it is the build for torch {}.{}, the stack has {}.{}", wanted.0, wanted.1, own.0, own.1)
        })
    }
}

/// Major and minor of `2.8`, `2.7.1`, `28` or `271`; `None` for `210`, which people write for 2.1.0 and for 2.10.
fn release(digits: &str) -> Option<(u32, u32)> {
    if let Some((major, rest)) = digits.split_once('.') {
        let minor = rest.split('.').next().unwrap_or_default();
        return Some((major.parse().ok()?, minor.parse().ok()?));
    }
    let (major, rest) = digits.split_at_checked(1)?;
    let minor = match rest.len() {
        1 => rest,
        2 if !rest.starts_with('1') => &rest[..1],
        _ => return None,
    };
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns a requirement without the local part of its version, and that part: `torchvision==0.22.1+cu128` gives
/// `torchvision==0.22.1` and `cu128`.
pub fn without_local(requirement: &str) -> (String, Option<String>) {
    let end = requirement.find(';').unwrap_or(requirement.len());
    let Some(plus) = requirement[..end].find('+') else { return (requirement.to_owned(), None) };
    let rest = &requirement[plus + 1..];
    let length = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)).unwrap_or(rest.len());
    let local = rest[..length].to_owned();
    if local.is_empty() || requirement[..plus].contains('@') {
        return (requirement.to_owned(), None);
    }
    (format!("{}{}", &requirement[..plus], &rest[length..]), Some(local))
}

/// The major of CUDA in a part of a package's name or in an extra: 12 of `cu12`, `cuda12x`, `cuda12`, `cuda12_pip`.
pub fn cuda_major(part: &str) -> Option<u8> {
    let part = part.split(['_', '-']).next()?;
    let digits = part.strip_prefix("cuda").or_else(|| part.strip_prefix("cu"))?;
    let digits = digits.strip_suffix('x').unwrap_or(digits);
    if digits.len() == 2 { digits.parse().ok() } else { None }
}

/// The version that an equality names: 2.8.0 of `==2.8.0`.
pub fn exact(versions: &VersionSpecifiers) -> Option<Version> {
    versions.iter().find(|one| *one.operator() == Operator::Equal).map(|one| one.version().clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cuda(text: &str) -> CudaVariant {
        text.parse().expect("a variant")
    }

    #[test]
    fn local_parts_name_cuda_and_torch() {
        for (text, wanted, torch) in [
            ("cu128", Some("cu128"), None),
            ("cu12torch2.8cxx11abiTRUE", Some("cu12"), Some((2, 8))),
            ("cu128.torch271", Some("cu128"), Some((2, 7))),
            ("pt28cu128", Some("cu128"), Some((2, 8))),
            ("pt210cu130", Some("cu130"), None),
            ("cu122torch2.10cxx11abiFALSE", Some("cu122"), Some((2, 10))),
            ("pt24", None, Some((2, 4))),
            ("cu121.torch2.3.1", Some("cu121"), Some((2, 3))),
            ("computecanada", None, None),
            ("", None, None),
        ] {
            let local = LocalVersion::read(text);
            assert_eq!((local.cuda, local.torch), (wanted.map(cuda), torch), "{text}");
            assert_eq!(local.other_accelerator, None);
        }
        assert_eq!(LocalVersion::read("rocm6.3").other_accelerator.as_deref(), Some("rocm6.3"));
    }

    #[test]
    fn builds_for_another_stack_are_told() {
        let why = |text: &str| LocalVersion::read(text).mismatch(cuda("cu128"), Some((2, 8)));
        for same in ["cu128", "cu12", "pt28cu128", "cu12torch2.8cxx11abiTRUE", "1", "post1"] {
            assert_eq!(why(same), None, "{same}");
        }
        assert_eq!(why("cu126").as_deref(), Some("it is the build for cu126, the stack has cu128"));
        assert_eq!(why("pt27cu128").as_deref(), Some("it is the build for torch 2.7, the stack has 2.8"));
        assert_eq!(why("cpu").as_deref(), Some("`+cpu` is a build without CUDA, the stack has cu128"));
    }

    #[test]
    fn requirement_loses_its_local_part_only() {
        for (typed, plain, local) in [
            ("torch==2.8.0+cu128", "torch==2.8.0", Some("cu128")),
            (
                "torch == 2.8.0+cu128 ; python_version > '3'",
                "torch == 2.8.0 ; python_version > '3'",
                Some("cu128"),
            ),
            ("torch>=2.6.0+cu126,<3", "torch>=2.6.0,<3", Some("cu126")),
            ("torch==2.8.0", "torch==2.8.0", None),
            ("x @ https://host/x-1+cu12.whl", "x @ https://host/x-1+cu12.whl", None),
            ("x; extra == 'a+b'", "x; extra == 'a+b'", None),
        ] {
            assert_eq!(without_local(typed), (plain.to_owned(), local.map(str::to_owned)), "{typed}");
        }
    }
}
