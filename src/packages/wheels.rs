//! The layer of each wheel, and the comparison of index and matrix versions.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

use pep440_rs::Version;

use super::error::PackagesError;
use super::pylock::Resolution;
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

/// The index each package came from, by name; one that is not listed came from the default index.
pub(super) type Origins = BTreeMap<String, (IndexKind, Option<String>)>;

/// Returns the wheels as lock entries, sorted by layer, then name.
pub(super) fn locked_wheels(
    resolved: Vec<Resolution>,
    layers: &Layers,
    origins: &Origins,
) -> Vec<LockedWheel> {
    let origin = |wheel: &Resolution| match origins.get(&wheel.name) {
        _ if wheel.local => (IndexKind::Local, None),
        Some(origin) => origin.clone(),
        None => (IndexKind::Default, None),
    };
    let locked = |wheel: Resolution| {
        let (index, index_name) = origin(&wheel);
        LockedWheel {
            layer: layers.of(&wheel.name),
            index,
            index_name,
            name: wheel.name,
            version: wheel.version,
            file: wheel.file,
            sha256: wheel.sha256,
            size: wheel.size,
        }
    };
    let mut wheels: Vec<_> = resolved.into_iter().map(locked).collect();
    wheels.sort_by(|one, other| (one.layer, &one.name).cmp(&(other.layer, &other.name)));
    wheels
}

/// Checks that the framework, its companions, cuDNN, NCCL and Triton have the versions of the matrix. Libraries that
/// the framework's own wheel bundles have no wheel to look at; the checks of the image look inside.
pub(super) fn check_versions(wheels: &[LockedWheel], stack: &Stack) -> Result<(), PackagesError> {
    let version_of = |fits: &dyn Fn(&str) -> bool| {
        wheels.iter().find(|wheel| fits(&wheel.name)).map(|wheel| wheel.version.clone())
    };
    let companions = stack.companions.iter().map(|(name, version)| (name.as_str(), version.as_str()));
    let pinned = companions.chain(stack.toolkit_wheels()).map(|(name, version)| (name, version.to_owned()));
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
    use crate::packages::output::{Answers, RECORDED_WHEELS};
    use crate::packages::pylock::{names, resolutions};

    fn recorded(change: impl FnOnce(&mut Stack)) -> (Vec<LockedWheel>, Stack) {
        let mut stack = sample::stack();
        change(&mut stack);
        let sections = Answers::parse(RECORDED_WHEELS.as_bytes()).expect("parses");
        let set = |name| names(sections.named(name).expect("there")).expect("names").into_iter().collect();
        let layers = Layers { framework: set("framework"), stack: Some(set("stack")) };
        let (all, _) = resolutions(sections.named("all").expect("all"), &stack, &[], &[]).expect("wheels");
        (locked_wheels(all, &layers, &Origins::new()), stack)
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
    fn wheels_record_the_index_they_came_from() {
        let layers = Layers { framework: ["torch".to_owned()].into(), stack: Some(BTreeSet::new()) };
        let wheel = |name: &str, local| Resolution {
            name: name.to_owned(),
            version: "1.0".to_owned(),
            file: format!("{name}-1.0-py3-none-any.whl"),
            sha256: "0".repeat(64),
            size: None,
            local,
        };
        let origins = Origins::from([
            ("torch".to_owned(), (IndexKind::Framework, None)),
            ("ourtool".to_owned(), (IndexKind::Default, Some("internal".to_owned()))),
            ("built".to_owned(), (IndexKind::Default, Some("internal".to_owned()))),
        ]);
        let wheels =
            vec![wheel("torch", false), wheel("ourtool", false), wheel("built", true), wheel("rich", false)];
        let found: Vec<_> = locked_wheels(wheels, &layers, &origins)
            .into_iter()
            .map(|wheel| (wheel.name, wheel.index, wheel.index_name))
            .collect();
        let of = |name: &str, kind, index: Option<&str>| (name.to_owned(), kind, index.map(str::to_owned));
        assert_eq!(
            found,
            [
                of("torch", IndexKind::Framework, None),
                of("built", IndexKind::Local, None),
                of("ourtool", IndexKind::Default, Some("internal")),
                of("rich", IndexKind::Default, None),
            ]
        );
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
