//! The layer of each wheel, and the comparison of index and matrix versions.

use std::collections::BTreeSet;
use std::str::FromStr as _;

use pep440_rs::Version;

use super::error::PackagesError;
use super::pylock::Resolution;
use super::settings::IndexSettings;
use crate::model::address::Address;
use crate::model::compat::tables::Channel;
use crate::model::lock::{IndexKind, LockedWheel, WheelLayer};
use crate::model::stack::Stack;

/// The package names that decide layers.
pub(super) struct Layers {
    /// The framework, its companions and all they need.
    pub(super) framework: BTreeSet<String>,
    /// The same and the developer stack; `None`: the user added nothing, so that is everything.
    pub(super) stack: Option<BTreeSet<String>>,
}

impl Layers {
    fn of(&self, name: &str) -> WheelLayer {
        let in_stack = self.stack.as_ref().is_none_or(|stack| stack.contains(name));
        match (self.framework.contains(name), in_stack) {
            (true, _) if name.starts_with("nvidia-") || name.starts_with("cutensor-") => WheelLayer::Cuda,
            (true, _) => WheelLayer::Framework,
            (false, true) => WheelLayer::Stack,
            (false, false) => WheelLayer::User,
        }
    }
}

/// Recognizes wheels of the framework's own index.
pub(super) struct FrameworkOrigin(Option<String>);

impl FrameworkOrigin {
    /// By where its files come from, if that is a server of its own; else by the variant in the version alone.
    pub(super) fn of(stack: &Stack, index: &IndexSettings) -> Self {
        let own = index.framework_index(&stack.framework, stack.cuda).map(|index| index.origin());
        let default = index.default.as_ref().map(Address::origin);
        Self(own.filter(|own| Some(own) != default.as_ref()))
    }
    fn kind(&self, wheel: &Resolution, stack: &Stack) -> IndexKind {
        if wheel.local {
            return IndexKind::Local;
        }
        let variant = || wheel.version.ends_with(&format!("+{}", stack.cuda));
        let origin = self.0.is_some() && self.0 == wheel.origin;
        match stack.channel {
            Channel::Framework if origin || variant() => IndexKind::Framework,
            Channel::Source if origin => IndexKind::Framework,
            _ => IndexKind::Default,
        }
    }
}

/// Returns the wheels as lock entries, sorted by layer, then name.
pub(super) fn locked_wheels(
    resolved: Vec<Resolution>,
    layers: &Layers,
    origin: &FrameworkOrigin,
    stack: &Stack,
) -> Vec<LockedWheel> {
    let mut wheels: Vec<_> = resolved
        .into_iter()
        .map(|wheel| LockedWheel {
            layer: layers.of(&wheel.name),
            index: origin.kind(&wheel, stack),
            index_name: None,
            name: wheel.name,
            version: wheel.version,
            file: wheel.file,
            sha256: wheel.sha256,
            size: wheel.size,
        })
        .collect();
    wheels.sort_by(|one, other| (one.layer, &one.name).cmp(&(other.layer, &other.name)));
    wheels
}

/// Checks that the framework, its companions, cuDNN, NCCL and Triton have the versions of the matrix. Libraries that
/// the framework's own wheel bundles have no wheel to look at; the checks of the image look inside.
pub(super) fn check_versions(wheels: &[LockedWheel], stack: &Stack) -> Result<(), PackagesError> {
    let version_of = |fits: &dyn Fn(&str) -> bool| {
        wheels.iter().find(|wheel| fits(&wheel.name)).map(|wheel| wheel.version.clone())
    };
    let pinned = stack.companions.iter().chain(&stack.parts);
    let pinned = pinned.map(|(name, version)| (name.as_str(), version.clone()));
    let framework = (!stack.is_toolkit()).then(|| (stack.package.as_str(), stack.version.to_string()));
    for (name, wanted) in pinned.chain(framework) {
        let found = version_of(&|other| other == name).unwrap_or_else(|| "nothing".to_owned());
        same(name, &wanted, &found)?;
    }
    let libraries =
        [("cuDNN", "nvidia-cudnn-", stack.cudnn.as_ref()), ("NCCL", "nvidia-nccl-", stack.nccl.as_ref())];
    for (what, prefix, wanted) in libraries {
        if let (Some(wanted), Some(found)) = (wanted, version_of(&|name| name.starts_with(prefix))) {
            same(what, &wanted.to_string(), &found)?;
        }
    }
    let triton = version_of(&|name| matches!(name, "triton" | "pytorch-triton"));
    match (&stack.triton, triton) {
        (Some(wanted), Some(found)) => same("triton", wanted, &found),
        _ => Ok(()),
    }
}

/// Compares as versions, without local parts: the variant is pinned where there is one.
fn same(package: &str, wanted: &str, found: &str) -> Result<(), PackagesError> {
    let public = |text: &str| Version::from_str(text).ok().map(Version::without_local);
    let equal = match (public(wanted), public(found)) {
        (Some(wanted), Some(found)) => wanted == found,
        _ => false,
    };
    if equal {
        return Ok(());
    }
    let (package, wanted, found) = (package.to_owned(), wanted.to_owned(), found.to_owned());
    Err(PackagesError::OtherVersion { package, wanted, found })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::sample;
    use crate::packages::output::{RECORDED, Sections};
    use crate::packages::pylock::{names, resolutions};

    fn recorded(change: impl FnOnce(&mut Stack)) -> (Vec<LockedWheel>, Stack) {
        let mut stack = sample::stack();
        change(&mut stack);
        let sections = Sections::parse(RECORDED.as_bytes()).expect("parses");
        let set = |name| names(sections.named(name).expect("there")).expect("names").into_iter().collect();
        let layers = Layers { framework: set("framework"), stack: Some(set("stack")) };
        let (all, _) = resolutions(sections.named("all").expect("all"), &stack, &[], &[]).expect("wheels");
        (locked_wheels(all, &layers, &FrameworkOrigin(None), &stack), stack)
    }

    fn layer(wheels: &[LockedWheel], name: &str) -> WheelLayer {
        wheels.iter().find(|wheel| wheel.name == name).unwrap_or_else(|| panic!("{name}")).layer
    }

    #[test]
    fn every_wheel_of_recorded_resolution_gets_its_layer() {
        let (wheels, _) = recorded(|_| {});
        for (name, wanted) in [
            ("nvidia-cudnn-cu12", WheelLayer::Cuda),
            ("nvidia-nccl-cu12", WheelLayer::Cuda),
            ("torch", WheelLayer::Framework),
            ("torchvision", WheelLayer::Framework),
            ("triton", WheelLayer::Framework),
            ("sympy", WheelLayer::Framework),
            ("numpy", WheelLayer::Framework),
            ("jupyterlab", WheelLayer::Stack),
            ("uv", WheelLayer::Stack),
            ("httpx", WheelLayer::Stack),
        ] {
            assert_eq!(layer(&wheels, name), wanted, "{name}");
        }
        assert!(
            wheels.windows(2).all(|pair| (pair[0].layer, &pair[0].name) < (pair[1].layer, &pair[1].name))
        );
        assert!(wheels.iter().all(|wheel| wheel.index == IndexKind::Default));
    }

    #[test]
    fn packages_of_the_user_are_in_the_user_layer() {
        let layers = Layers {
            framework: ["torch", "nvidia-nccl-cu12"].map(str::to_owned).into(),
            stack: Some(["torch", "nvidia-nccl-cu12", "pip"].map(str::to_owned).into()),
        };
        assert_eq!(layers.of("rich"), WheelLayer::User);
        assert_eq!(layers.of("nvidia-ml-py"), WheelLayer::User);
        assert_eq!(layers.of("pip"), WheelLayer::Stack);
        assert_eq!(layers.of("nvidia-nccl-cu12"), WheelLayer::Cuda);
        assert_eq!(Layers { stack: None, ..layers }.of("rich"), WheelLayer::Stack);
    }

    #[test]
    fn framework_wheels_are_recognized_by_variant_or_server() {
        let stack = Stack { channel: Channel::Framework, ..sample::stack() };
        let wheel = |version: &str, origin: &str| Resolution {
            name: "x".to_owned(),
            version: version.to_owned(),
            file: "x.whl".to_owned(),
            sha256: "0".repeat(64),
            size: None,
            origin: Some(origin.to_owned()),
            local: false,
        };
        let own = IndexSettings {
            default: Some("https://index.example.test/simple".parse().unwrap()),
            framework: Some("https://torch.example.test/whl/{cuda}".parse().unwrap()),
            ..IndexSettings::default()
        };
        let kind = |index: &IndexSettings, stack: &Stack, version, origin| {
            FrameworkOrigin::of(stack, index).kind(&wheel(version, origin), stack)
        };
        let (torch, other) = ("https://torch.example.test", "https://files.example.test");
        assert_eq!(kind(&own, &stack, "2.8.0+cu128", other), IndexKind::Framework);
        assert_eq!(kind(&own, &stack, "1.0", torch), IndexKind::Framework);
        assert_eq!(kind(&own, &stack, "1.0", other), IndexKind::Default);
        assert_eq!(kind(&own, &sample::stack(), "1.0", torch), IndexKind::Default, "it is not asked");
        let unset = IndexSettings { default: None, ..own.clone() };
        assert_eq!(kind(&unset, &stack, "1.0", torch), IndexKind::Framework);
        assert_eq!(kind(&unset, &stack, "1.0", other), IndexKind::Default);
        let shared = IndexSettings { default: Some(format!("{torch}/simple").parse().unwrap()), ..own };
        assert_eq!(kind(&shared, &stack, "1.0", torch), IndexKind::Default, "one server for both");
        assert_eq!(kind(&shared, &stack, "2.8.0+cu128", torch), IndexKind::Framework);
    }

    #[test]
    fn recorded_resolution_matches_the_matrix() {
        let (wheels, stack) = recorded(|_| {});
        check_versions(&wheels, &stack).expect("equal");
    }

    #[test]
    fn version_mismatch_error_names_both_versions() {
        let refused = |change: fn(&mut Stack), text: &str| {
            let (wheels, stack) = recorded(change);
            let error = check_versions(&wheels, &stack).expect_err(text);
            assert_eq!(error.to_string(), text);
            assert_eq!(error.exit(), Exit::No);
        };
        refused(
            |stack| stack.cudnn = Some("9.8.0.87".parse().unwrap()),
            "cuDNN version mismatch: matrix 9.8.0.87, index 9.10.2.21",
        );
        refused(
            |stack| stack.nccl = Some("2.26.2".parse().unwrap()),
            "NCCL version mismatch: matrix 2.26.2, index 2.27.3",
        );
        refused(
            |stack| stack.triton = Some("3.3.1".to_owned()),
            "triton version mismatch: matrix 3.3.1, index 3.4.0",
        );
        refused(
            |stack| stack.version = "2.8.1".parse().unwrap(),
            "torch version mismatch: matrix 2.8.1, index 2.8.0",
        );
        refused(
            |stack| drop(stack.companions.insert("torchtext".to_owned(), "0.18".to_owned())),
            "torchtext version mismatch: matrix 0.18, index nothing",
        );
    }

    #[test]
    fn versions_are_compared_as_versions() {
        same("x", "2.27", "2.27.0").expect("equal");
        same("torch", "2.7.1", "2.7.1+cu118").expect("equal but for the variant");
        assert!(same("x", "3.4.0", "3.4.0.post1").is_err());
    }
}
