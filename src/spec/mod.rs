//! Specs: what a user asks for, `pytorch-cuda:2.8-cu128-py3.11-devel`.
//!
//! Owns the grammar, its errors and the canonical spelling. Must not know which names and versions exist: that is
//! data, and `resolve` answers for it.
//!
//! ```text
//! SPEC = NAME [":" VERSION ["+" CUDA]] ["-" CUDA] ["-" PYTHON] ["-" FLAVOUR]
//! ```

mod error;
mod parse;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use error::{SpecError, SpecProblem};

use crate::stack::Flavour;
use crate::versions::{CudaVariant, FrameworkVersion, PythonVersion, ToolkitVersion};

/// The CUDA a spec names: a major (`cu12`), a minor (`cu128`) or a toolkit release (`cuda12.8.1`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CudaWish {
    /// 12 of `cu128`.
    pub major: u8,
    /// 8 of `cu128`; `None` in `cu12`.
    pub minor: Option<u8>,
    /// 1 of `cuda12.8.1`; only where `minor` is given.
    pub patch: Option<u8>,
}

impl CudaWish {
    /// True if a variant built with this toolkit release is what was asked for.
    pub fn covers(self, variant: CudaVariant, toolkit: &ToolkitVersion) -> bool {
        let minor = self.minor.is_none() || self.minor == variant.minor;
        let patch = self.patch.is_none_or(|patch| toolkit.parts().get(2) == Some(&u32::from(patch)));
        self.major == variant.major && minor && patch
    }
    /// The version in words: `12.8.1`.
    pub fn dotted(self) -> String {
        [Some(self.major), self.minor, self.patch]
            .into_iter()
            .map_while(|part| part.map(|number| number.to_string()))
            .collect::<Vec<_>>()
            .join(".")
    }
}

impl From<CudaVariant> for CudaWish {
    fn from(variant: CudaVariant) -> Self {
        Self { major: variant.major, minor: variant.minor, patch: None }
    }
}

impl fmt::Display for CudaWish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.minor, self.patch) {
            (Some(_), Some(_)) => write!(f, "cuda{}", self.dotted()),
            (Some(_), None) if self.major < 10 => write!(f, "cu{}", self.dotted()),
            (minor, _) => CudaVariant { major: self.major, minor }.fmt(f),
        }
    }
}

/// What a user asks for. Prints as its canonical spelling; what was left out stays left out.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Spec {
    /// The product: `pytorch-cuda`.
    pub name: String,
    /// The version or its beginning; `None`: the newest that runs on the target.
    pub version: Option<FrameworkVersion>,
    /// The CUDA, if named.
    pub cuda: Option<CudaWish>,
    /// The Python, if named.
    pub python: Option<PythonVersion>,
    /// runtime or devel.
    pub flavour: Flavour,
}

impl Spec {
    /// A spec that names the product alone.
    pub fn of(name: &str) -> Self {
        Self { name: name.to_owned(), version: None, cuda: None, python: None, flavour: Flavour::Runtime }
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(version) = &self.version {
            write!(f, ":{version}")?;
        }
        if let Some(cuda) = self.cuda {
            write!(f, "-{cuda}")?;
        }
        if let Some(python) = self.python {
            write!(f, "-py{python}")?;
        }
        match self.flavour {
            Flavour::Runtime => Ok(()),
            Flavour::Devel => f.write_str("-devel"),
        }
    }
}

impl FromStr for Spec {
    type Err = SpecError;
    fn from_str(text: &str) -> Result<Self, SpecError> {
        parse::parse(text)
    }
}

impl Serialize for Spec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Spec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Splits `-unverified` off the end of what `shell` and `verify` are given; the flag says whether it was there.
pub fn strip_unverified(text: &str) -> (&str, bool) {
    text.strip_suffix("-unverified").map_or((text, false), |rest| (rest, true))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("pytorch-cuda", "pytorch-cuda")]
    #[case("pytorch-cuda:latest", "pytorch-cuda")]
    #[case("pytorch-cuda:2", "pytorch-cuda:2")]
    #[case("pytorch-cuda:2.8", "pytorch-cuda:2.8")]
    #[case("pytorch-cuda:v2.8", "pytorch-cuda:2.8")]
    #[case("PyTorch-CUDA:2.8-CU128", "pytorch-cuda:2.8-cu128")]
    #[case("pytorch-cuda:2.8.0+cu128", "pytorch-cuda:2.8.0-cu128")]
    #[case("pytorch-cuda:2.8.0+cu128-cu128", "pytorch-cuda:2.8.0-cu128")]
    #[case("pytorch-cuda:2.8-cu12.8", "pytorch-cuda:2.8-cu128")]
    #[case("pytorch-cuda:2.8-cuda12.8", "pytorch-cuda:2.8-cu128")]
    #[case("pytorch-cuda:2.8-cuda12.8.1", "pytorch-cuda:2.8-cuda12.8.1")]
    #[case("pytorch-cuda:2.8-cu12", "pytorch-cuda:2.8-cu12")]
    #[case("pytorch-cuda:2.8-cuda12", "pytorch-cuda:2.8-cu12")]
    #[case("pytorch-cuda-cu128", "pytorch-cuda-cu128")]
    #[case("pytorch-cuda-py311-devel", "pytorch-cuda-py3.11-devel")]
    #[case("pytorch-cuda:2.8-py39", "pytorch-cuda:2.8-py3.9")]
    #[case("pytorch-cuda:2.8-cu128-py3.11-runtime", "pytorch-cuda:2.8-cu128-py3.11")]
    #[case("pytorch-cuda:latest-cu128-devel", "pytorch-cuda-cu128-devel")]
    #[case("cuda:12.8", "cuda:12.8")]
    #[case("jax-cuda:0.4.38-cu12", "jax-cuda:0.4.38-cu12")]
    fn every_spelling_has_one_canonical_form(#[case] typed: &str, #[case] printed: &str) {
        assert_eq!(typed.parse::<Spec>().expect(typed).to_string(), printed);
    }

    #[rstest]
    #[case("", "^")]
    #[case("pytorch cuda:2.8", "       ^")]
    #[case(":2.8", "^")]
    #[case("pytorch-cuda:", "             ^")]
    #[case("pytorch-cuda:two", "             ^^^")]
    #[case("pytorch-cuda:2.8-cux28", "                 ^^^^^")]
    #[case("pytorch-cuda:2.8-", "                 ^")]
    #[case("pytorch-cuda:2.8-py3", "                 ^^^")]
    #[case("pytorch-cuda:2.8-cu128-cu126", "                       ^^^^^")]
    #[case("pytorch-cuda:2.8.0+cpu", "                   ^^^")]
    #[case("pytorch-cuda:2.8.0+cu128-cu126", "                         ^^^^^")]
    #[case("pytorch-cuda:2.8-devl", "                 ^^^^")]
    #[case("pytorch-cuda:2.8:3", "                ^")]
    #[case("pytorch-cuda:2.8-cuda12.8.1.3", "                 ^^^^^^^^^^^^")]
    #[case("pytorch-cuda:2.8-cu12345", "                 ^^^^^^^")]
    #[case("pytorch-cuda:99999999999", "             ^^^^^^^^^^^")]
    fn an_error_points_at_what_is_wrong(#[case] typed: &str, #[case] caret: &str) {
        let error = typed.parse::<Spec>().expect_err(typed);
        let drawn = error.snippet();
        let marks: String = drawn.lines().nth(1).expect("a caret line").chars().skip(4).collect();
        assert_eq!(marks, caret, "{typed}: {error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[rstest]
    #[case("pytorch-cuda:2.8-devl", "pytorch-cuda:2.8-devel")]
    #[case("pytorch-cuda:2.8-runtme", "pytorch-cuda:2.8-runtime")]
    #[case("pytorch-cuda:2.8-128", "pytorch-cuda:2.8-cu128")]
    #[case("pytorch-cuda:2.8-12.8", "pytorch-cuda:2.8-cu12.8")]
    #[case("pytorch-cuda:2.8-python3.11", "pytorch-cuda:2.8-py3.11")]
    #[case("pytorch-cuda:2.8-3.11", "pytorch-cuda:2.8-py3.11")]
    #[case("pytorch-cuda==2.8", "pytorch-cuda:2.8")]
    #[case("pytorch-cuda:latst", "pytorch-cuda:latest")]
    fn a_near_miss_gets_a_suggestion(#[case] typed: &str, #[case] meant: &str) {
        let error = typed.parse::<Spec>().expect_err(typed);
        assert_eq!(error.hints(), vec![format!("did you mean `{meant}`?")]);
    }

    #[test]
    fn a_spec_is_text_in_serde() {
        let spec: Spec = serde_json::from_str(r#""pytorch-cuda:v2.8-cuda12.8""#).expect("a spec");
        assert_eq!(serde_json::to_string(&spec).expect("text"), r#""pytorch-cuda:2.8-cu128""#);
        let error = serde_json::from_str::<Spec>(r#""pytorch-cuda:x""#).expect_err("not a version");
        assert!(error.to_string().contains("`x`"), "{error}");
    }

    #[test]
    fn unverified_is_split_off_only_at_the_end() {
        assert_eq!(strip_unverified("pytorch-cuda:2.8-unverified"), ("pytorch-cuda:2.8", true));
        assert_eq!(strip_unverified("pytorch-cuda:2.8"), ("pytorch-cuda:2.8", false));
        assert!("pytorch-cuda:2.8-unverified".parse::<Spec>().is_err());
    }

    #[test]
    fn a_wish_covers_what_it_leaves_open() {
        let toolkit: ToolkitVersion = "12.8.1".parse().expect("a toolkit");
        let variant: CudaVariant = "cu128".parse().expect("a variant");
        let wish = |text: &str| format!("p:1-{text}").parse::<Spec>().expect(text).cuda.expect(text);
        for yes in ["cu12", "cu128", "cuda12.8.1"] {
            assert!(wish(yes).covers(variant, &toolkit), "{yes}");
        }
        for no in ["cu11", "cu126", "cuda12.8.0", "cuda12.8.2"] {
            assert!(!wish(no).covers(variant, &toolkit), "{no}");
        }
    }

    prop_compose! {
        fn any_wish()(major in 7u8..30, minor in proptest::option::of(0u8..100), patch in proptest::option::of(0u8..100)) -> CudaWish {
            let minor = if major < 10 { Some(minor.unwrap_or(0)) } else { minor };
            CudaWish { major, minor, patch: minor.and(patch) }
        }
    }

    prop_compose! {
        fn any_spec()(
            name in "[a-z]{2,8}(-cuda)?",
            version in proptest::option::of("[0-9]{1,3}(\\.[0-9]{1,3}){0,3}"),
            cuda in proptest::option::of(any_wish()),
            python in proptest::option::of((2u8..4, 0u8..30)),
            devel in any::<bool>(),
        ) -> Spec {
            Spec {
                name,
                version: version.map(|text| text.parse().expect("generated to parse")),
                cuda,
                python: python.map(|(major, minor)| PythonVersion { major, minor }),
                flavour: if devel { Flavour::Devel } else { Flavour::Runtime },
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(spec in any_spec()) {
            let printed = spec.to_string();
            let parsed: Spec = printed.parse().expect("printed specs parse");
            prop_assert_eq!(parsed.to_string(), printed);
            prop_assert_eq!(parsed, spec);
        }

        #[test]
        fn no_text_panics_and_every_span_lies_inside(text in "\\PC{0,40}") {
            if let Err(error) = text.parse::<Spec>() {
                prop_assert!(error.span.end <= text.len() && text.get(error.span.clone()).is_some());
                prop_assert!(!error.snippet().is_empty());
            }
        }
    }
}
