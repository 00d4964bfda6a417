//! Whether a release of a coupled package fits a stack, by the matrix alone.
//!
//! Owns the comparison of one release with one stack. Must not choose: that is `companion_choice`.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::{Version, VersionSpecifiers};

use super::refusal::RuleViolation;
use super::rule::Rule;
use crate::local_version::LocalVersion;
use crate::matrix::Matrix;
use crate::matrix::coupled::{AbiClass, CoupledRelease, WheelPlace};
use crate::stack::Stack;
use crate::versions::{CudaVariant, FrameworkVersion, GlibcVersion, Machine, PythonVersion};

/// The parts of a stack that a coupled wheel must match.
#[derive(Debug, Clone)]
pub(super) struct Surroundings {
    pub(super) torch: FrameworkVersion,
    pub(super) cuda: CudaVariant,
    pub(super) python: PythonVersion,
    pub(super) machine: Machine,
    /// The glibc of the base, if it is a known one.
    pub(super) glibc: Option<GlibcVersion>,
    /// Whether torch has the new C++ ABI, if known.
    pub(super) cxx11_abi: Option<bool>,
    /// The torch releases whose symbols were compared with wheels of the package index.
    measured: BTreeSet<FrameworkVersion>,
}

/// Why a release does not fit, and whether an installer would notice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mismatch {
    pub(super) text: String,
    /// Whether METADATA or the file name tells an installer.
    pub(super) declared: bool,
}

impl Surroundings {
    /// Returns those of a stack; `None` if it has no torch.
    pub(super) fn of(stack: &Stack, matrix: &Matrix) -> Option<Self> {
        let own = (stack.package == "torch").then(|| stack.version.clone());
        let torch = own.or_else(|| stack.companions.get("torch")?.parse().ok())?;
        let row = matrix.variants.iter().find(|row| {
            let same = row.version == torch && row.machine == stack.machine && row.cuda == stack.cuda;
            row.framework == "pytorch" && same
        });
        let compared = matrix.coupled_releases.iter().filter(|row| row.place == WheelPlace::Default);
        Some(Self {
            torch: torch.public(),
            cuda: stack.cuda,
            python: stack.python,
            machine: stack.machine,
            glibc: matrix.base(&stack.base).map(|base| base.glibc.clone()),
            cxx11_abi: row.and_then(|row| row.cxx11_abi),
            measured: compared.flat_map(|row| row.loads.iter().cloned()).collect(),
        })
    }

    /// Returns the violation of a requirement whose local version (`cu121`, `cu12torch2.7`) names another CUDA or torch.
    pub(super) fn of_another(&self, typed: &str, local: &str, matrix: &Matrix) -> Option<RuleViolation> {
        let torch = (self.torch.major(), self.torch.minor());
        let why = LocalVersion::read(local).mismatch(self.cuda, Some(torch))?;
        let source = format!("local version of `{typed}`; matrix {}", matrix.edition);
        Some(RuleViolation::new(Rule::CompanionMismatch, format!("{typed}: {why}"), &source))
    }

    /// Returns every reason why a release does not fit.
    pub(super) fn mismatches(&self, row: &CoupledRelease) -> Vec<Mismatch> {
        let mut all = Vec::new();
        let mut must = |holds: bool, declared: bool, text: &dyn Fn() -> String| {
            if !holds {
                all.push(Mismatch { text: text(), declared });
            }
        };
        let torch = &self.torch;
        if let Some(wanted) = &row.torch {
            must(satisfies(torch, wanted), true, &|| {
                format!("requires torch{wanted}, the stack has {torch}")
            });
        }
        must(self.loads(row), row.place == WheelPlace::Page, &|| {
            let list = spans(&row.loads);
            let built = if row.place == WheelPlace::Page || row.abi == AbiClass::Pinned {
                "is built for"
            } else {
                "loads with"
            };
            format!("{built} torch {list}, the stack has {torch}")
        });
        let major = row.cuda_major.unwrap_or(self.cuda.major);
        must(major == self.cuda.major, false, &|| {
            format!("links CUDA {major}, the torch of the stack has CUDA {}", self.cuda.major)
        });
        must(self.has_cuda(row), row.place == WheelPlace::Page, &|| {
            let list: Vec<_> = row.cuda.iter().map(ToString::to_string).collect();
            format!("has code for {}, the stack has {}", list.join(", "), self.cuda)
        });
        let from = row.python_from.is_some_and(|first| first <= self.python);
        let any = row.python.is_empty() && row.python_from.is_none();
        must(any || from || row.python.contains(&self.python), true, &|| {
            format!("has no wheel for Python {}", self.python)
        });
        must(row.machine.is_none_or(|machine| machine == self.machine), true, &|| {
            format!("has no wheel for {}", self.machine)
        });
        if let (Some(needed), Some(own)) = (&row.glibc, &self.glibc) {
            must(own >= needed, false, &|| format!("needs glibc {needed}, the base has {own}"));
        }
        if let Some(doubt) = &row.doubt {
            must(false, false, &|| doubt.clone());
        }
        all
    }

    fn loads(&self, row: &CoupledRelease) -> bool {
        let unknown = row.place == WheelPlace::Default && !self.measured.contains(&self.torch);
        row.loads.is_empty() || unknown || row.loads.iter().any(|loaded| self.torch.starts_with(loaded))
    }

    fn has_cuda(&self, row: &CoupledRelease) -> bool {
        row.cuda.is_empty() || row.cuda.iter().any(|tag| self.serves(row, *tag))
    }

    /// Whether code for a CUDA serves the stack's.
    fn serves(&self, row: &CoupledRelease, tag: CudaVariant) -> bool {
        let whole = row.cuda_nearest || tag.minor.is_none();
        tag.major == self.cuda.major && (whole || tag.minor == self.cuda.minor)
    }

    /// Returns the name of a release's file, if the row knows its pattern.
    pub(super) fn file_name(&self, row: &CoupledRelease, version: &FrameworkVersion) -> Option<String> {
        let tag = row.cuda.iter().find(|tag| self.serves(row, **tag))?;
        let python = format!("cp{}{}", self.python.major, self.python.minor);
        let short = format!("{}.{}", self.torch.major(), self.torch.minor());
        let abi = match self.cxx11_abi {
            Some(true) => "TRUE",
            Some(false) => "FALSE",
            None => "*",
        };
        let pairs = [
            ("{version}", version.to_string()),
            ("{cuda}", tag.to_string()),
            ("{torch}", short.clone()),
            ("{digits}", short.replace('.', "")),
            ("{abi}", abi.to_owned()),
            ("{python}", python),
            ("{machine}", self.machine.to_string()),
        ];
        let pattern = row.wheel.clone()?;
        Some(pairs.iter().fold(pattern, |text, (name, value)| text.replace(name, value)))
    }
}

/// Whether a version satisfies a requirement; an unreadable one counts as satisfied.
pub(super) fn satisfies(version: &FrameworkVersion, wanted: &str) -> bool {
    match (Version::from_str(&version.to_string()), VersionSpecifiers::from_str(wanted)) {
        (Ok(version), Ok(wanted)) => wanted.contains(&version),
        _ => true,
    }
}

/// `2.4 to 2.8`, or the single release.
fn spans(versions: &[FrameworkVersion]) -> String {
    match (versions.iter().min(), versions.iter().max()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_string(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve::{ResolveOptions, resolve};
    use crate::target::Target;

    #[test]
    fn wheel_of_a_release_page_needs_the_glibc_of_its_build() {
        let (matrix, target) = (Matrix::embedded(), Target::any(Machine::X86_64));
        let is_row = |row: &&CoupledRelease| {
            let is_release = row.versions.iter().any(|version| version.to_string() == "2.8.3");
            row.package == "flash-attn" && row.place == WheelPlace::Page && is_release
        };
        let row = matrix.coupled_releases.iter().find(is_row).expect("a row");
        let why = |spec: &str| {
            let spec = spec.parse().expect("a spec");
            let stack = resolve(&spec, &target, matrix, &ResolveOptions::default()).expect("a stack");
            let around = Surroundings::of(&stack, matrix).expect("a torch");
            around.mismatches(row).into_iter().map(|mismatch| mismatch.text).collect::<Vec<_>>()
        };
        // Debian 11 and 12.
        assert_eq!(why("pytorch-cuda:2.7.1-cu128-py3.9"), ["needs glibc 2.32, the base has 2.31"]);
        assert_eq!(why("pytorch-cuda:2.7.1-cu128-py3.11"), Vec::<String>::new());
    }
}
