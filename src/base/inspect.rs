//! Inspects a base image: distribution, C library, Python and CUDA.
//!
//! Owns the inspection script and the parser of its output. Decides only whether an image can be a base; compatibility is up to
//! `resolve`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::error::BaseError;
use super::image::image_base;
use super::mirrors::roots;
use super::request::BaseRequest;
use super::tools::BaseTools;
use crate::engine::{ContainerFile, EngineError, ImageInfo, Network, RunRequest};
use crate::model::address::Address;
use crate::model::versions::{GlibcVersion, PythonVersion};
use crate::registry::RetryPolicy;

const SCRIPT: &str = include_str!("look.sh");
const SCRIPT_PATH: &str = "/tmp/envforge-look.sh";
/// Maximum number of reported CUDA locations.
const SHOWN: usize = 4;

/// Properties of a base image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseInfo {
    /// `debian` or `ubuntu`, or one of their kind: `linuxmint`.
    pub distribution: String,
    /// The suite: `bookworm`.
    pub suite: String,
    /// Its C library.
    pub glibc: GlibcVersion,
    /// The Python of its own packages, if it is installed.
    pub python: Option<PythonVersion>,
    /// Signs of CUDA: variables, labels, directories, libraries.
    pub cuda: Vec<String>,
    /// Roots of the archives its own apt reads.
    pub mirrors: Vec<Address>,
}

/// Inspects the image of a request; pulls it if the engine does not have it.
pub async fn inspect_base(means: &BaseTools<'_>, request: &BaseRequest<'_>) -> Result<BaseInfo, BaseError> {
    let reference = &request.name;
    let id = image_base(means, request, RetryPolicy::NEEDED).await?.image_id;
    let image = means.engine.image(&id).await?.ok_or(EngineError::NoSuchImage { reference: id })?;
    let refused = |why: String| BaseError::NoBase { reference: reference.clone(), why };
    let wanted = request.machine.debian();
    if image.architecture != wanted {
        return Err(refused(format!("platform mismatch: expected {wanted}, found {}", image.architecture)));
    }
    let container = RunRequest {
        image: image.id.clone(),
        command: ["/bin/sh", SCRIPT_PATH].map(str::to_owned).to_vec(),
        user: Some("0:0".to_owned()),
        files: vec![ContainerFile {
            path: SCRIPT_PATH.to_owned(),
            mode: 0o644,
            bytes: Bytes::from_static(SCRIPT.as_bytes()),
        }],
        network: Network::None,
        ..RunRequest::default()
    };
    let outcome = means.engine.run(container, Arc::clone(&means.reporter)).await?;
    found(&String::from_utf8_lossy(&outcome.stdout), &image).map_err(refused)
}

/// Parses the output of the script; the error says why the image cannot be a base.
fn found(answers: &str, image: &ImageInfo) -> Result<BaseInfo, String> {
    let mut lines: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (key, value) in answers.lines().filter_map(|line| line.split_once('=')) {
        lines.entry(key).or_default().push(value.trim_end());
    }
    let one = |key: &str| lines.get(key).and_then(|values| values.first()).map(|value| (*value).to_owned());
    let name = one("pretty").or_else(|| one("id")).unwrap_or_else(|| "an unnamed system".to_owned());
    if one("done").is_none() {
        return Err("cannot run a shell; not a Debian- or Ubuntu-based image".to_owned());
    }
    if one("dpkg").is_none() {
        return Err(format!("it is {name}, without apt and dpkg"));
    }
    let id = one("id").unwrap_or_default();
    let like = one("like").unwrap_or_default();
    if !like.split(' ').chain([id.as_str()]).any(|kind| kind == "debian" || kind == "ubuntu") {
        return Err(format!("it is {name}, which is not Debian- or Ubuntu-based"));
    }
    let glibc = one("glibc").and_then(|text| text.parse().ok());
    Ok(BaseInfo {
        distribution: id,
        suite: one("codename").or_else(|| one("version")).unwrap_or_default(),
        glibc: glibc.ok_or_else(|| format!("it is {name}, without the GNU C library"))?,
        python: one("python").and_then(|text| text.parse().ok()),
        cuda: cuda_of(image, lines.get("cuda").map_or(&[], Vec::as_slice)),
        mirrors: roots(&apt_texts(answers)),
    })
}

/// Texts of the image's apt sources, by file.
fn apt_texts(answers: &str) -> Vec<(String, String)> {
    let mut texts: Vec<(String, String)> = Vec::new();
    for (file, line) in answers.lines().filter_map(|line| line.strip_prefix("apt:")?.split_once('=')) {
        match texts.last_mut().filter(|(last, _)| last == file) {
            Some((_, text)) => text.extend([line, "\n"]),
            None => texts.push((file.to_owned(), format!("{line}\n"))),
        }
    }
    texts
}

/// Returns the signs of CUDA, configuration first.
fn cuda_of(image: &ImageInfo, inside: &[&str]) -> Vec<String> {
    let variable = |line: &&String| {
        let name = line.split('=').next().unwrap_or_default();
        matches!(name, "CUDA_VERSION" | "NVIDIA_REQUIRE_CUDA" | "NV_CUDA_LIB_VERSION")
    };
    let short = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let mut all: Vec<String> = image.env.iter().filter(variable).map(short).collect();
    let labels = image.labels.iter().filter(|(name, _)| name.starts_with("com.nvidia."));
    all.extend(labels.map(|(name, value)| format!("label {name}={value}")));
    all.extend(inside.iter().map(|path| (*path).to_owned()));
    all.dedup();
    all.truncate(SHOWN);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(env: &[&str]) -> ImageInfo {
        ImageInfo {
            sizes: Vec::new(),
            id: "sha256:1".to_owned(),
            tags: Vec::new(),
            digests: Vec::new(),
            size: 1,
            labels: BTreeMap::new(),
            env: env.iter().map(|line| (*line).to_owned()).collect(),
            user: String::new(),
            layers: Vec::new(),
            history: Vec::new(),
            architecture: "amd64".to_owned(),
        }
    }

    const UBUNTU: &str = "id=ubuntu\nlike=debian\nversion=22.04\ncodename=jammy\npretty=Ubuntu 22.04.5 LTS\nglibc=2.35\n\
        python=3.10\ndpkg=amd64\napt:/etc/apt/sources.list=# deb http://off.test/ubuntu jammy main\n\
        apt:/etc/apt/sources.list=deb http://mirror.test/ubuntu/ jammy main\n\
        apt:/etc/apt/sources.list=deb http://mirror.test/ubuntu/ jammy-updates main\ndone=yes\n";

    #[test]
    fn debian_based_system_is_inspected_with_its_archives() {
        let found = found(UBUNTU, &image(&["PATH=/bin"])).expect("a base");
        assert_eq!((found.distribution.as_str(), found.suite.as_str()), ("ubuntu", "jammy"));
        assert_eq!((found.glibc.to_string().as_str(), found.python), ("2.35", "3.10".parse().ok()));
        assert_eq!(found.cuda, Vec::<String>::new());
        let mirrors: Vec<_> = found.mirrors.iter().map(ToString::to_string).collect();
        assert_eq!(mirrors, ["http://mirror.test/ubuntu/"]);
    }

    #[test]
    fn cuda_is_found_by_variable_label_directory_and_library() {
        let text = UBUNTU
            .replace("dpkg=amd64\n", "dpkg=amd64\ncuda=/usr/local/cuda-12.4\ncuda=/usr/lib/libnccl.so.2\n");
        let mut image =
            image(&["CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470"]);
        image.labels.insert("com.nvidia.cudnn.version".to_owned(), "9.1.0".to_owned());
        assert_eq!(
            found(&text, &image).expect("a base").cuda,
            [
                "CUDA_VERSION=12.4.1",
                "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                "label com.nvidia.cudnn.version=9.1.0",
                "/usr/local/cuda-12.4"
            ]
        );
    }

    #[test]
    fn unsupported_image_is_rejected_with_the_reason() {
        let why = |text: &str| found(text, &image(&[])).expect_err("refused");
        let alpine = "id=alpine\npretty=Alpine Linux v3.20\ndone=yes\n";
        assert_eq!(why(alpine), "it is Alpine Linux v3.20, without apt and dpkg");
        assert_eq!(why(""), "cannot run a shell; not a Debian- or Ubuntu-based image");
        let other = "id=fedora\nglibc=2.39\ndpkg=amd64\ndone=yes\n";
        assert_eq!(why(other), "it is fedora, which is not Debian- or Ubuntu-based");
        assert!(why(&UBUNTU.replace("glibc=2.35\n", "")).contains("without the GNU C library"));
    }
}
