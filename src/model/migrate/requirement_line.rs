//! One requirement as people write it: PEP 508 with a local version, an address, a path, a repository.

use std::str::FromStr as _;

use camino::Utf8Path;
use pep440_rs::VersionSpecifiers;
use pep508_rs::{MarkerTree, Requirement, VersionOrUrl};

use super::place::Origin;
use super::reading::Asked;
use super::variables::variable_in;
use crate::model::local_version::without_local;
use crate::model::requirement_text::beyond_bounds;

/// A requirement, or what it is instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Line {
    Package(Box<Asked>),
    /// A wheel by its address or path: name and version are in its name.
    Wheel {
        asked: Box<Asked>,
        /// The Python that its name says, if it is for one alone and no marker says it.
        python: Option<VersionSpecifiers>,
    },
    /// Why it cannot be taken over.
    Not(String),
}

/// Reads a requirement without options.
pub(super) fn line(written: &str, origin: &Origin) -> Line {
    let text = written.trim();
    if let Some(why) = beyond_bounds(text) {
        return Line::Not(why);
    }
    if let Some(why) = path_or_repository(text) {
        return match wheel_of(text, origin) {
            Some(line) => line,
            None => Line::Not(why),
        };
    }
    let (plain, local) = without_local(&without_unknown_local(text));
    let parsed = match Requirement::from_str(&plain) {
        Ok(parsed) => parsed,
        Err(error) => {
            return Line::Not(match variable_in(text) {
                Some(name) => format!("the variable {name} has no value"),
                None => format!("not a requirement: {}", first_line(&error.message.to_string())),
            });
        }
    };
    let parsed: Requirement = parsed;
    let is_always = parsed.marker.is_true();
    let asked = |versions, local| {
        let extras: Vec<_> = parsed.extras.iter().map(ToString::to_string).collect();
        Box::new(Asked {
            origin: origin.clone(),
            written: text.to_owned(),
            name: parsed.name.to_string(),
            extras: if extras.is_empty() { String::new() } else { format!("[{}]", extras.join(",")) },
            versions,
            local,
            marker: parsed.marker,
            index: None,
        })
    };
    match &parsed.version_or_url {
        Some(VersionOrUrl::VersionSpecifier(versions)) => Line::Package(asked(versions.clone(), local)),
        None => Line::Package(asked(VersionSpecifiers::empty(), local)),
        Some(VersionOrUrl::Url(url)) => {
            let address = url.to_string();
            match WheelName::of(&address) {
                Some(_) if is_for_jetson(&address) => Line::Not(JETSON.to_owned()),
                Some(wheel) => {
                    let (plain, local) = without_local(&format!("=={}", wheel.version));
                    let versions = plain.parse().unwrap_or_else(|_| VersionSpecifiers::empty());
                    let python = wheel.python.filter(|_| is_always);
                    Line::Wheel { asked: asked(versions, local), python }
                }
                None => Line::Not(address_reason(&address)),
            }
        }
    }
}

/// A requirement without a local part that a variable would fill in: `torch==2.1.2` of `torch==2.1.2+cu${CUDA_VER}`.
fn without_unknown_local(text: &str) -> String {
    let Some((before, after)) = text.split_once('+') else { return text.to_owned() };
    let end = after.find([' ', ',', ';']).unwrap_or(after.len());
    if after[..end].contains('$') { format!("{before}{}", &after[end..]) } else { text.to_owned() }
}

/// A wheel given by an address or a path alone.
fn wheel_of(text: &str, origin: &Origin) -> Option<Line> {
    let (address, marker) = text.split_once(" ;").or_else(|| text.split_once("; ")).unwrap_or((text, ""));
    let WheelName { name, version, python } = WheelName::of(address.trim())?;
    if is_for_jetson(address) {
        return Some(Line::Not(JETSON.to_owned()));
    }
    let marker =
        if marker.trim().is_empty() { MarkerTree::TRUE } else { MarkerTree::from_str(marker.trim()).ok()? };
    let (plain, local) = without_local(&format!("=={version}"));
    let asked = Asked {
        origin: origin.clone(),
        written: text.to_owned(),
        name,
        extras: String::new(),
        versions: plain.parse().ok()?,
        local,
        marker,
        index: None,
    };
    let python = python.filter(|_| asked.marker.is_true());
    Some(Line::Wheel { asked: Box::new(asked), python })
}

/// The file name of a wheel.
struct WheelName {
    /// Normalized.
    name: String,
    version: String,
    /// The one Python it is for: 3.10 of `cp310-cp310`; `None`: several.
    python: Option<VersionSpecifiers>,
}

impl WheelName {
    /// Reads the name at the end of an address or path.
    fn of(address: &str) -> Option<Self> {
        let end = address.split(['?', '#']).next()?;
        let file = end.rsplit('/').next()?.replace("%2B", "+").replace("%2b", "+");
        let parts: Vec<_> = file.strip_suffix(".whl")?.split('-').collect();
        let [name, version, .., python, abi, _platform] = parts.as_slice() else { return None };
        let minor = python.strip_prefix("cp3").filter(|_| abi.starts_with(python));
        let python = minor.and_then(|minor| format!("==3.{minor}.*").parse().ok());
        Some(Self { name: normalized(name), version: (*version).to_owned(), python })
    }
}

/// Why a build for a Jetson is not taken over.
pub(super) const JETSON: &str = "for a Jetson, whose driver and CUDA are parts of JetPack: the matrix has no builds for it; use the containers of NVIDIA's JetPack";

/// Whether an address is one of builds for Jetson boards.
pub(super) fn is_for_jetson(address: &str) -> bool {
    let lower = address.to_ascii_lowercase();
    lower.contains("/compute/redist/jp") || lower.contains("jetson")
}

/// Returns the name by which an index knows a package.
pub(super) fn normalized(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.trim().chars() {
        let c = if matches!(c, '_' | '.' | '-') { '-' } else { c.to_ascii_lowercase() };
        if !(c == '-' && out.ends_with('-')) {
            out.push(c);
        }
    }
    out
}

/// Why a text that does not begin with a name is not taken over.
fn path_or_repository(text: &str) -> Option<String> {
    let repository = ["git+", "hg+", "svn+", "bzr+"].iter().any(|begin| text.starts_with(begin));
    if repository {
        return Some(address_reason(text));
    }
    if text.starts_with("http://") || text.starts_with("https://") || text.starts_with("file:") {
        return Some(address_reason(text));
    }
    let begins_as_path = text.starts_with(['.', '/', '~', '$']);
    let name = text.split(['[', ';', '<', '>', '=', '!', '~', ' ', '@']).next().unwrap_or_default();
    (begins_as_path || name.contains('/')).then(|| {
        "a folder or file of this machine: its code is mounted by `envforge shell`; a wheel is given with `--wheel FILE`".to_owned()
    })
}

fn address_reason(address: &str) -> String {
    if address.contains("git+")
        || address.starts_with("git@")
        || Utf8Path::new(address).extension() == Some("git")
    {
        return "a repository: it has no file that a hash could pin; build its wheel (`pip wheel`) and give it with `--wheel FILE`"
            .to_owned();
    }
    if address.starts_with("file:") {
        return "a file of the machine that wrote this (conda's pip list does so): name the version instead"
            .to_owned();
    }
    "an address: packages come from an index, pinned by hash; download it and give it with `--wheel FILE`"
        .to_owned()
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Line {
        line(text, &Origin::line("r.txt", 1))
    }

    #[test]
    fn requirements_keep_their_parts() {
        let Line::Package(asked) = read("Torch_Vision[x] == 0.22.0+cu128 ; python_version >= '3.9'") else {
            panic!("a package")
        };
        assert_eq!((asked.name.as_str(), asked.local.as_deref()), ("torch-vision", Some("cu128")));
        assert_eq!(asked.requirement(), "torch-vision[x]==0.22.0 ; python_full_version >= '3.9'");
        let Line::Package(asked) = read("transformers >= 4.51.3") else { panic!("a package") };
        assert_eq!(asked.requirement(), "transformers>=4.51.3");
    }

    #[test]
    fn local_part_of_a_variable_is_left_out() {
        for text in ["torch==2.1.2+cu${CUDA_VER}", "torch==2.1.2+$CU ; sys_platform == 'linux'"] {
            let Line::Package(asked) = read(text) else { panic!("a package: {text}") };
            assert_eq!((asked.versions.to_string().as_str(), asked.local), ("==2.1.2", None), "{text}");
            assert_eq!(asked.written, text);
        }
        assert!(matches!(read("torch==${TORCH}+cu118"), Line::Not(_)));
    }

    #[test]
    fn wheels_say_name_and_version() {
        for text in [
            "flash-attn @ https://h/flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl ; platform_system == \"Linux\"",
            "https://h/flash_attn-2.7.4.post1%2Bcu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
            "./wheels/flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp311-cp311-linux_x86_64.whl",
        ] {
            let Line::Wheel { asked, .. } = read(text) else { panic!("{text}: {:?}", read(text)) };
            assert_eq!(
                (asked.name.as_str(), asked.versions.to_string().as_str()),
                ("flash-attn", "==2.7.4.post1")
            );
            assert_eq!(asked.local.as_deref(), Some("cu12torch2.6cxx11abiFALSE"));
        }
    }

    #[test]
    fn other_lines_have_their_own_reason() {
        for (text, says) in [
            ("git+https://h/team/lib.git", "a repository"),
            ("lib @ git+https://h/team/lib.git@main", "a repository"),
            ("numpy @ file:///croot/numpy_1/work", "a file of the machine that wrote this"),
            ("./libs/one", "a folder or file"),
            ("submodules/rasterizer", "a folder or file"),
            ("https://h/x.tar.gz", "an address"),
            ("what is this", "not a requirement"),
            ("torch==${TORCH}", "the variable TORCH has no value"),
            ("torch==$TORCH-rc", "the variable TORCH has no value"),
        ] {
            let Line::Not(why) = read(text) else { panic!("{text}: {:?}", read(text)) };
            assert!(why.starts_with(says), "{text}: {why}");
        }
    }
}
