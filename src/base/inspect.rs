//! Inspects a base image: distribution, C library, Python and CUDA.
//!
//! Reads files of the image and its configuration; nothing of the image runs. Decides only whether an image can be a base;
//! compatibility is up to `resolve`.

use std::collections::BTreeMap;
use std::io::Read as _;

use super::dpkg_status::{Installed, STATUS, major_minor};
use super::error::BaseError;
use super::image::image_base;
use super::mirrors::roots;
use super::request::BaseRequest;
use super::tools::BaseTools;
use crate::engine::{EngineError, ImageInfo};
use crate::model::address::Address;
use crate::model::bounded_tar::BoundedTar;
use crate::model::os_release::OsRelease;
use crate::model::versions::{GlibcVersion, PythonVersion};
use crate::registry::RetryPolicy;

/// What is read, by the names that distributions have for it. A link is read as a link.
const OS_RELEASE: [&str; 2] = ["/etc/os-release", "/usr/lib/os-release"];
const PROGRAMS: [&str; 2] = ["/usr/bin/apt-get", "/usr/bin/dpkg"];
const SOURCES: [&str; 2] = ["/etc/apt/sources.list", "/etc/apt/sources.list.d"];
/// The directory of a CUDA toolkit, or a link to it.
const TOOLKIT: &str = "/usr/local/cuda";
/// The most of these files, bytes. A status has about 1 KB for a package (measured: 716 KB for 786 on Debian 12).
const LARGEST: u64 = 64 << 20;
/// A link in a tar: more than that is a directory with something in it.
const LARGEST_LINK: u64 = 4096;
/// Distribution packages with a part of CUDA, by the beginning of their names.
const OF_CUDA: [&str; 6] =
    ["cuda-cudart-", "cuda-toolkit-", "libcublas-", "libcublas12", "libcudnn", "libnccl2"];
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
    /// Signs of CUDA: variables, labels, directories, packages.
    pub cuda: Vec<String>,
    /// Roots of the archives its own apt reads.
    pub mirrors: Vec<Address>,
}

/// Inspects the image of a request without running it; pulls it if the engine does not have it.
pub async fn inspect_base(means: &BaseTools<'_>, request: &BaseRequest<'_>) -> Result<BaseInfo, BaseError> {
    let reference = &request.name;
    let id = image_base(means, request, RetryPolicy::NEEDED).await?.image_id;
    let image = means.engine.image(&id).await?.ok_or(EngineError::NoSuchImage { reference: id })?;
    let refused = |why: String| BaseError::NoBase { reference: reference.clone(), why };
    let wanted = request.machine.debian();
    if image.architecture != wanted {
        return Err(refused(format!("platform mismatch: expected {wanted}, found {}", image.architecture)));
    }
    let paths = [&OS_RELEASE[..], &[STATUS], &PROGRAMS, &SOURCES].concat();
    let files = means.engine.read_files(&image.id, &paths, LARGEST).await?;
    let has_toolkit = match means.engine.read_files(&image.id, &[TOOLKIT], LARGEST_LINK).await {
        Ok(found) => !found.is_empty(),
        Err(EngineError::TooLarge { .. }) => true,
        Err(error) => return Err(error.into()),
    };
    found(&files, has_toolkit, &image).map_err(refused)
}

/// What the files of an image say, each in the tar that the engine gave; the error says why the image cannot be a base.
fn found(
    files: &BTreeMap<String, Vec<u8>>,
    has_toolkit: bool,
    image: &ImageInfo,
) -> Result<BaseInfo, String> {
    let texts = |path: &str| files.get(path).map(|tar| texts_of(path, tar)).transpose();
    let first = |path: &str| Ok::<_, String>(texts(path)?.and_then(|texts| texts.into_iter().next()));
    // /etc/os-release is a link to the other one, or replaces it.
    let mut release = None;
    for path in OS_RELEASE {
        release = release.or(first(path)?);
    }
    let (_, text) = release.ok_or("it has no /etc/os-release; not a Debian- or Ubuntu-based image")?;
    let release = OsRelease::parse(&text);
    let name = release.pretty_name();
    let status = first(STATUS)?.filter(|_| PROGRAMS.iter().all(|program| files.contains_key(*program)));
    let Some((_, status)) = status else { return Err(format!("it is {name}, without apt and dpkg")) };
    if !release.kinds().any(|kind| kind == "debian" || kind == "ubuntu") {
        return Err(format!("it is {name}, which is not Debian- or Ubuntu-based"));
    }
    let named = |field: &str, value: Option<&str>| match value {
        Some(value) if OsRelease::is_name(value) => Ok(value.to_owned()),
        Some(value) => Err(format!("{field} of its os-release is `{value}`: expected a name as `bookworm`")),
        None => Ok(String::new()),
    };
    let installed = Installed::parse(&status);
    let unread = |package: &str| format!("its package {package} has a version that cannot be read");
    let version = |name: &str| installed.version(name).map(major_minor);
    let glibc = version("libc6").map(|version| version.parse().map_err(|_| unread("libc6")));
    let python = ["python3-minimal", "python3"].iter().find_map(|name| version(name));
    let python = python.map(|version| version.parse().map_err(|_| unread("python3")));
    let mut sources = Vec::new();
    for path in SOURCES {
        sources.extend(texts(path)?.unwrap_or_default());
    }
    sources.retain(|(path, _)| [".list", ".sources"].iter().any(|end| path.ends_with(end)));
    sources.sort();
    let toolkit = has_toolkit.then(|| TOOLKIT.to_owned());
    Ok(BaseInfo {
        distribution: named("ID", release.get("ID"))?,
        suite: named("VERSION_CODENAME", release.get("VERSION_CODENAME").or(release.get("VERSION_ID")))?,
        glibc: glibc.ok_or_else(|| format!("it is {name}, without the GNU C library (package libc6)"))??,
        python: python.transpose()?,
        cuda: cuda_of(image, toolkit.into_iter().chain(of_cuda(&installed))),
        mirrors: roots(&sources),
    })
}

/// Paths and texts of the regular files of a tar, which is of that path.
fn texts_of(path: &str, tar: &[u8]) -> Result<Vec<(String, String)>, String> {
    let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    let read = || -> std::io::Result<Vec<_>> {
        let mut texts = Vec::new();
        for entry in BoundedTar::new(tar).entries()? {
            let mut entry = entry?;
            if entry.header().entry_type().is_file() {
                let path = format!("{parent}/{}", entry.path()?.display());
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes)?;
                // Old files have names in other encodings.
                texts.push((path, String::from_utf8_lossy(&bytes).into_owned()));
            }
        }
        Ok(texts)
    };
    read().map_err(|error| format!("its {path} cannot be read: {error}"))
}

/// Packages with a part of CUDA.
fn of_cuda(installed: &Installed<'_>) -> Vec<String> {
    let is_of_cuda = |name: &&str| OF_CUDA.iter().any(|start| name.starts_with(start));
    installed.names().filter(is_of_cuda).map(|name| format!("package {name}")).collect()
}

/// Returns the signs of CUDA, configuration first.
fn cuda_of(image: &ImageInfo, inside: impl Iterator<Item = String>) -> Vec<String> {
    let variable = |line: &&String| {
        let name = line.split('=').next().unwrap_or_default();
        matches!(name, "CUDA_VERSION" | "NVIDIA_REQUIRE_CUDA" | "NV_CUDA_LIB_VERSION")
    };
    let short = |line: &String| line.split(' ').next().unwrap_or_default().to_owned();
    let mut all: Vec<String> = image.env.iter().filter(variable).map(short).collect();
    let labels = image.labels.iter().filter(|(name, _)| name.starts_with("com.nvidia."));
    all.extend(labels.map(|(name, value)| format!("label {name}={value}")));
    all.extend(inside);
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
            triggers: Vec::new(),
            architecture: "amd64".to_owned(),
        }
    }

    const RELEASE: &str = "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"22.04\"\nVERSION_CODENAME=jammy\n\
        PRETTY_NAME=\"Ubuntu 22.04.5 LTS\"\n";
    const PACKAGES: &str = "Package: libc6\nStatus: install ok installed\nVersion: 2.35-0ubuntu3.8\n\n\
        Package: python3-minimal\nStatus: install ok installed\nVersion: 3.10.6-1~22.04.1\n\n\
        Package: libnccl2\nStatus: deinstall ok config-files\nVersion: 2.21\n";
    const LIST: &str = "# deb http://off.test/ubuntu jammy main\ndeb http://mirror.test/ubuntu/ jammy main\n\
        deb http://mirror.test/ubuntu/ jammy-updates main\n";

    /// The answers of an engine for these files, each with its path in the image.
    fn answers(files: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        let tar = |path: &str, text: &str| {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            let name = path.rsplit('/').next().expect("a name");
            tar.append_data(&mut header, name, text.as_bytes()).expect("in memory");
            tar.into_inner().expect("in memory")
        };
        files.iter().map(|(path, text)| ((*path).to_owned(), tar(path, text))).collect()
    }

    /// Paths and texts.
    type Files = Vec<(&'static str, &'static str)>;

    fn ubuntu() -> Files {
        vec![
            ("/usr/lib/os-release", RELEASE),
            ("/var/lib/dpkg/status", PACKAGES),
            ("/usr/bin/apt-get", ""),
            ("/usr/bin/dpkg", ""),
            ("/etc/apt/sources.list", LIST),
        ]
    }

    #[test]
    fn debian_based_system_is_inspected_with_its_archives() {
        let found = found(&answers(&ubuntu()), false, &image(&["PATH=/bin"])).expect("a base");
        assert_eq!((found.distribution.as_str(), found.suite.as_str()), ("ubuntu", "jammy"));
        assert_eq!((found.glibc.to_string().as_str(), found.python), ("2.35", "3.10".parse().ok()));
        assert_eq!(found.cuda, Vec::<String>::new());
        let mirrors: Vec<_> = found.mirrors.iter().map(ToString::to_string).collect();
        assert_eq!(mirrors, ["http://mirror.test/ubuntu/"]);
    }

    #[test]
    fn cuda_is_found_by_variable_label_directory_and_package() {
        let variables = ["CUDA_VERSION=12.4.1", "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=470"];
        let mut of_vendor = image(&variables);
        of_vendor.labels.insert("com.nvidia.cudnn.version".to_owned(), "9.1.0".to_owned());
        let cuda = |has_toolkit, image| found(&answers(&ubuntu()), has_toolkit, image).expect("a base").cuda;
        assert_eq!(
            cuda(true, &of_vendor),
            [
                "CUDA_VERSION=12.4.1",
                "NVIDIA_REQUIRE_CUDA=cuda>=12.4",
                "label com.nvidia.cudnn.version=9.1.0",
                "/usr/local/cuda"
            ]
        );
        assert_eq!(cuda(true, &image(&[])), ["/usr/local/cuda"]);
        let packages = PACKAGES.replace("deinstall ok config-files", "install ok installed");
        let mut files = ubuntu();
        files[1].1 = &packages;
        assert_eq!(found(&answers(&files), false, &image(&[])).expect("a base").cuda, ["package libnccl2"]);
    }

    #[test]
    fn unsupported_image_is_rejected_with_the_reason() {
        let why = |change: &dyn Fn(&mut Files)| {
            let mut files = ubuntu();
            change(&mut files);
            found(&answers(&files), false, &image(&[])).expect_err("refused")
        };
        let alpine = "ID=alpine\nPRETTY_NAME=\"Alpine Linux v3.20\"\n";
        let without = |program: &'static str| {
            move |files: &mut Files| {
                files[0].1 = alpine;
                files.retain(|(path, _)| *path != program);
            }
        };
        for program in ["/usr/bin/apt-get", "/usr/bin/dpkg", "/var/lib/dpkg/status"] {
            assert_eq!(why(&without(program)), "it is Alpine Linux v3.20, without apt and dpkg");
        }
        assert!(why(&|files| files.clear()).contains("no /etc/os-release"));
        assert_eq!(
            why(&|files| files[0].1 = "ID=fedora\n"),
            "it is fedora, which is not Debian- or Ubuntu-based"
        );
        assert!(why(&|files| files[1].1 = "Package: dpkg\n").contains("without the GNU C library"));
        for (package, version) in [("libc6", "2.35"), ("python3", "3.10")] {
            let text: &str = PACKAGES.replace(version, "x").leak();
            let error = why(&|files| files[1].1 = text);
            assert!(error.contains(&format!("package {package} has a version that cannot")), "{error}");
        }
        for name in ["a b", "a/../b", "a\u{7}", "-a", "$(id)"] {
            let text: &str = format!("ID=debian\nVERSION_CODENAME='{name}'\n").leak();
            let error = why(&|files| files[0].1 = text);
            assert!(error.contains("VERSION_CODENAME") && error.contains("as `bookworm`"), "{error}");
        }
    }
}
