//! `templates/packages/packages.toml` as values: the packages of every image in addition to the framework, and uv.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::model::address::Address;
use crate::model::lock::LockedTool;
use crate::model::stack::Stack;
use crate::model::versions::Machine;

/// Content of `templates/packages/packages.toml`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Catalogue {
    /// Version of the file's format.
    pub schema: u32,
    /// When its facts were read.
    pub checked: String,
    pub(super) framework_index: Vec<DefaultFrameworkIndex>,
    vendor_repositories: VendorRepositories,
    uv: Uv,
    system: Vec<Entry>,
    wheel: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DefaultFrameworkIndex {
    pub(super) framework: String,
    pub(super) address: String,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct VendorRepositories {
    address: String,
    #[expect(dead_code, reason = "says where the address comes from")]
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Uv {
    version: String,
    source: String,
    index: String,
    wheel: Vec<UvWheel>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UvWheel {
    machine: Machine,
    file: String,
    sha256: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    package: String,
    /// The framework whose images have it; `None`: every image has it.
    framework: Option<String>,
    /// The library whose images have it; `None`: every image has it.
    library: Option<Library>,
    /// The file that a base without the package may have, which then replaces it.
    file: Option<String>,
    reason: String,
}

/// A library that packages are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Library {
    Nccl,
}

impl Library {
    fn is_in(self, stack: &Stack) -> bool {
        match self {
            Self::Nccl => !stack.is_toolkit() && stack.nccl.is_some(),
        }
    }
}

/// The catalogue this program was built with.
pub fn catalogue() -> &'static Catalogue {
    static PARSED: LazyLock<Catalogue> = LazyLock::new(|| {
        toml::from_str(include_str!("../../templates/packages/packages.toml"))
            .expect("templates/packages/packages.toml is tested")
    });
    &PARSED
}

impl Catalogue {
    /// The index that uv asks where no setting names one.
    pub(super) fn default_index(&self) -> Address {
        self.uv.index.parse().expect("templates/packages/packages.toml is tested")
    }

    /// The directory of the vendor's apt repositories.
    pub(super) fn vendor_repositories(&self) -> Address {
        self.vendor_repositories.address.parse().expect("templates/packages/packages.toml is tested")
    }
    /// Distribution packages requested from apt for images of a stack.
    pub fn system(&self, stack: &Stack) -> impl Iterator<Item = &str> {
        self.system_of(stack).map(|entry| entry.package.as_str())
    }
    /// Of these the ones that a base can replace by a file, with its name.
    pub fn replaceable(&self, stack: &Stack) -> impl Iterator<Item = (&str, &str)> {
        self.system_of(stack).filter_map(|entry| Some((entry.package.as_str(), entry.file.as_deref()?)))
    }
    fn system_of(&self, stack: &Stack) -> impl Iterator<Item = &Entry> {
        let is_wanted = move |entry: &&Entry| {
            entry.framework.as_deref().is_none_or(|one| one == stack.framework)
                && entry.library.is_none_or(|library| library.is_in(stack))
        };
        self.system.iter().filter(is_wanted)
    }
    /// Requirements of the developer stack, uv's own version among them.
    pub fn developer_wheels(&self) -> impl Iterator<Item = String> {
        let wheels = self.wheel.iter().map(|entry| entry.package.clone());
        wheels.chain([format!("uv=={}", self.uv.version)])
    }
    /// The reason for a package or wheel in every image.
    pub fn reason_of(&self, package: &str) -> Option<&str> {
        let entry = self.system.iter().chain(&self.wheel).find(|entry| entry.package == package)?;
        Some(&entry.reason)
    }
    /// Every distribution package and wheel with its reason.
    pub fn entries(&self) -> [Vec<(&str, &str)>; 2] {
        [&self.system, &self.wheel].map(|entries| {
            entries.iter().map(|entry| (entry.package.as_str(), entry.reason.as_str())).collect()
        })
    }
    /// The source of each fact of the catalogue.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        let indexes = self.framework_index.iter().map(|index| index.source.as_str());
        [self.uv.source.as_str()].into_iter().chain(indexes)
    }
    /// uv for that processor; `None`: no wheel of it is known.
    pub fn uv(&self, machine: Machine) -> Option<LockedTool> {
        let wheel = self.uv.wheel.iter().find(|wheel| wheel.machine == machine)?;
        Some(LockedTool {
            name: "uv".to_owned(),
            version: self.uv.version.clone(),
            file: wheel.file.clone(),
            sha256: wheel.sha256.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lock::sample;
    use crate::model::sha256::is_sha256_hex;
    use crate::packages::wheel_name::WheelName;

    #[test]
    fn every_row_has_a_reason_or_source() {
        let all = catalogue();
        assert_eq!(all.schema, 1);
        let rows = all.system.iter().chain(&all.wheel);
        assert!(rows.clone().count() > 15);
        for row in rows {
            assert!(!row.reason.is_empty() && !row.package.is_empty(), "{row:?}");
        }
        assert!(!all.checked.is_empty());
        assert!(all.sources().count() >= 2 && all.sources().all(|source| !source.is_empty()));
        assert!(all.reason_of("gcc").is_some_and(|reason| reason.contains("Triton")));
        assert_eq!(all.reason_of("emacs"), None);
        for index in &all.framework_index {
            assert!(index.address.contains("{cuda}"), "{index:?}");
        }
    }

    #[test]
    fn no_package_is_listed_twice() {
        let mut system: Vec<_> = catalogue().system.iter().map(|entry| entry.package.as_str()).collect();
        let count = system.len();
        system.sort_unstable();
        system.dedup();
        assert_eq!(system.len(), count);
    }

    #[test]
    fn package_of_a_framework_is_in_its_images_alone() {
        let pytorch = sample::stack();
        let sglang = Stack { framework: "sglang".to_owned(), ..pytorch.clone() };
        let has = |stack: &Stack| catalogue().system(stack).any(|name| name == "libnuma1");
        assert!(has(&sglang) && !has(&pytorch));
        assert_eq!(catalogue().system(&sglang).count(), catalogue().system(&pytorch).count() + 1);
    }

    #[test]
    fn images_with_nccl_have_the_libraries_of_rdma() {
        let with = sample::stack();
        let without = Stack { nccl: None, ..with.clone() };
        let names = |stack: &Stack| -> Vec<String> {
            catalogue().replaceable(stack).map(|(name, file)| format!("{name} {file}")).collect()
        };
        let rdma = ["libibverbs1", "ibverbs-providers", "librdmacm1"];
        assert_eq!(names(&with), rdma.map(|name| format!("{name} libibverbs.so.1")));
        assert!(rdma.iter().all(|name| catalogue().system(&with).any(|known| known == *name)));
        assert_eq!(names(&without), [""; 0]);
        assert_eq!(catalogue().system(&without).count() + rdma.len(), catalogue().system(&with).count());
    }

    #[test]
    fn uv_has_wheel_and_hash_for_both_processors() {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let tool = catalogue().uv(machine).expect("a wheel");
            assert!(is_sha256_hex(&tool.sha256), "{tool:?}");
            let name: WheelName = tool.file.parse().expect("a wheel's name");
            assert_eq!((name.package.as_str(), name.version.as_str()), ("uv", tool.version.as_str()));
            assert!(tool.file.contains(&machine.to_string()), "{tool:?}");
        }
        assert!(catalogue().developer_wheels().any(|wheel| wheel.starts_with("uv==")));
    }
}
