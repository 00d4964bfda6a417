//! The input files of `resolve_wheels.sh`: requirements and indexes. They exist in a temporary container only.

use std::fmt::Write as _;

use super::catalogue::catalogue;
use super::error::PackagesError;
use super::index_order::IndexOrder;
use super::local_wheel::LocalWheel;
use super::pylock::preferences;
use super::python_target::PythonTarget;
use super::request::PackageRequest;
use super::script_file::{FOLDER, file};
use super::settings::PackageSettings;
use super::wheel_name::normalised;
use crate::engine::ContainerFile;
use crate::model::compat::Matrix;
use crate::model::compat::tables::Channel;
use crate::model::local_version::without_local;
use crate::model::project::requirement_name;
use crate::model::resolve::excluded_releases;
use crate::model::stack::Stack;
use crate::model::versions::{FrameworkVersion, Machine};

/// Path of the uv program, sent if the volume does not have it.
pub(super) const UV: &str = "/envforge/uv";
const CA_BUNDLE: &str = "/envforge/ca.crt";

/// Every file of the container of uv but the program, which is named by its hash.
pub(super) fn files(
    request: &PackageRequest<'_>,
    settings: &PackageSettings,
    python: &PythonTarget,
    uv_sha256: &str,
) -> Result<Vec<ContainerFile>, PackagesError> {
    let framework = framework_requirements(request.stack, request.local)?;
    let developer: String = catalogue().developer_wheels().map(|wheel| wheel + "\n").collect();
    let stack = format!("{framework}{developer}");
    let mut files = vec![
        file("resolve_wheels.sh", 0o644, include_str!("../../templates/packages/resolve_wheels.sh")),
        file("wheel_origins.sh", 0o644, include_str!("../../templates/packages/wheel_origins.sh")),
        file("answer.sh", 0o644, include_str!("../../templates/packages/answer.sh")),
        file("framework.in", 0o644, framework),
    ];
    files.extend(uv_files(settings, python, uv_sha256));
    files.extend(IndexOrder::of(request, &settings.index)?.files(&uv_options(request)));
    for wheel in request.unindexed_wheels() {
        files.push(ContainerFile {
            path: format!("{FOLDER}/{}", wheel.file),
            mode: 0o644,
            bytes: wheel.without_content(),
        });
    }
    if request.previous.is_none() || request.preferred.is_some() || !request.fresh.is_empty() {
        files.push(file("refresh", 0o644, ""));
    }
    let requested = &request.added.python;
    if requested.is_empty() {
        files.push(file("all.in", 0o644, stack));
    } else {
        let additions = additions(requested, request.stack, request.matrix)?;
        let pin = |wheel: &LocalWheel| format!("{}=={}\n", wheel.name, wheel.version);
        // Requirements of a build are not those that it was given for.
        let is_requested =
            |wheel: &&LocalWheel| requested.iter().any(|text| normalised(&named(text)) == wheel.name);
        let unindexed = request.local.iter().filter(is_requested).chain(request.built);
        let pins: String = unindexed.map(pin).collect();
        files.push(file("all.in", 0o644, format!("{stack}{additions}{pins}")));
        files.push(file("stack.in", 0o644, stack));
    }
    for source in request.buildable_packages() {
        let of_it = |text: &&String| normalised(&named(text)) == source.name;
        let wishes: String = requested.iter().filter(of_it).flat_map(|text| [text, "\n"]).collect();
        let text = if wishes.is_empty() { format!("{}\n", source.name) } else { wishes };
        files.push(file(&format!("source-{}.in", source.name), 0o644, text));
    }
    if let Some(preferences) = preferences(request) {
        files.push(file("pylock.all.toml", 0o644, preferences));
    }
    Ok(files)
}

/// The files of every script that runs uv.
pub(super) fn uv_files(
    settings: &PackageSettings,
    python: &PythonTarget,
    uv_sha256: &str,
) -> Vec<ContainerFile> {
    let mut files = vec![
        file("uv_program.sh", 0o644, include_str!("../../templates/packages/uv_program.sh")),
        file("uv.sha256", 0o644, uv_sha256),
        file("env", 0o600, environment(settings)),
    ];
    files.extend(python.files());
    files.extend(ca_bundle(settings));
    files
}

/// The certificates to trust.
pub(super) fn ca_bundle(settings: &PackageSettings) -> Option<ContainerFile> {
    let bundle = settings.index.ca_bundle.as_ref()?;
    Some(ContainerFile { path: CA_BUNDLE.to_owned(), mode: 0o644, bytes: bundle.clone() })
}

/// Returns the files of a script that installs packages: proxies, certificates, apt's archives.
pub(super) fn surroundings(settings: &PackageSettings) -> Vec<ContainerFile> {
    let mut files = vec![
        file("env", 0o600, environment(settings)),
        file("apt.conf", 0o644, apt_configuration(settings)),
        file("sources.list", 0o600, sources(settings)),
    ];
    files.extend(ca_bundle(settings));
    files
}

/// Returns the framework and its companions, pinned to the matrix versions.
pub(super) fn framework_requirements(stack: &Stack, local: &[LocalWheel]) -> Result<String, PackagesError> {
    let Stack { package, version, cuda, .. } = stack;
    let (local, companion_local) = match stack.channel {
        Channel::Default => (String::new(), String::new()),
        // Companions for Arm are published there without the variant in their version.
        Channel::Framework if stack.machine == Machine::Aarch64 => (format!("+{cuda}"), String::new()),
        Channel::Framework => (format!("+{cuda}"), format!("+{cuda}")),
        // The builder itself: its compilers and libraries are published.
        Channel::Source if stack.is_toolkit() => (String::new(), String::new()),
        Channel::Source => return built_requirements(stack, local),
    };
    let mut text = String::new();
    if !stack.is_toolkit() && stack.install.is_empty() {
        let _ = writeln!(text, "{package}=={version}{local}");
    }
    for requirement in &stack.install {
        let _ = writeln!(text, "{requirement}");
    }
    for (name, version) in stack.toolkit_wheels() {
        let _ = writeln!(text, "{name}=={version}");
    }
    for (name, version) in &stack.companions {
        let _ = writeln!(text, "{name}=={version}{companion_local}");
    }
    if let Some(bound) = &stack.numpy {
        let _ = writeln!(text, "numpy{bound}");
    }
    if let Some(bound) = setuptools(stack) {
        let _ = writeln!(text, "setuptools{bound}");
    }
    Ok(text)
}

/// The bound of setuptools, which PyTorch to 2.6 and its Triton import at run time while their METADATA does not require it for every
/// Python: `torch/utils/cpp_extension.py` and, to Triton 3.2, `triton/compiler.py`, `triton/common/build.py` or `triton/runtime/build.py`
/// of the wheels. To 2.1 it imports `pkg_resources`, which 82 has no more. Read, and `torch.compile` run with 2.0.1, 2.1.2
/// and 2.2.2 without setuptools, with 84, 81 and 69, on 2026-11-25.
fn setuptools(stack: &Stack) -> Option<&'static str> {
    let own = (stack.package == "torch").then(|| stack.version.clone());
    let torch = own.or_else(|| stack.companions.get("torch")?.parse().ok())?;
    let before = |version: &str| torch < version.parse::<FrameworkVersion>().expect("a version");
    if before("2.2") { Some("<82") } else { before("2.7").then_some("") }
}

/// Returns the requirements of an unpublished variant: prebuilt wheels and the libraries they were built with, which their
/// own requirements do not list.
fn built_requirements(stack: &Stack, local: &[LocalWheel]) -> Result<String, PackagesError> {
    let Stack { package, version, cuda, .. } = stack;
    if !local.iter().any(|wheel| wheel.name == *package) {
        let (package, version, cuda) = (package.clone(), version.to_string(), cuda.to_string());
        return Err(PackagesError::Unpublished { package, version, cuda });
    }
    let mut text = String::new();
    for wheel in local {
        let _ = writeln!(text, "{}=={}", wheel.name, wheel.version);
    }
    let libraries = stack.library_wheels();
    let libraries = libraries.iter().map(|(name, version)| (name.as_str(), version.as_str()));
    for (name, version) in stack.toolkit_wheels().into_iter().chain(libraries) {
        let _ = writeln!(text, "{name}=={version}");
    }
    if let Some(version) = &stack.triton {
        let _ = writeln!(text, "triton=={version}");
    }
    if let Some(bound) = &stack.numpy {
        let _ = writeln!(text, "numpy{bound}");
    }
    Ok(text)
}

/// Returns the user's own requirements. Rejects a line that uv would read as an option or an address: it cannot be pinned
/// without an address.
///
/// The local part of a version is left out for packages whose wheel the stack or the matrix chooses: the default index has
/// torchvision 0.23.0, never 0.23.0+cu128, and what the part says was compared with the stack before.
fn additions(requested: &[String], stack: &Stack, matrix: &Matrix) -> Result<String, PackagesError> {
    let plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !text.contains(['\n', '\r', '@', '#', '\\'])
            && !text.contains("://")
    };
    match requested.iter().find(|text| !plain(text)) {
        Some(text) => Err(PackagesError::Requirement { text: text.clone() }),
        None => Ok(requested.iter().map(|text| as_chosen(text, stack, matrix) + "\n").collect()),
    }
}

fn as_chosen(requirement: &str, stack: &Stack, matrix: &Matrix) -> String {
    let (plain, local) = without_local(requirement);
    let chosen = || {
        let name = requirement_name(&plain).ok()?;
        let known = name == stack.package
            || stack.companions.contains_key(&name)
            || matrix.coupled_packages.iter().any(|row| row.package == name);
        known.then_some(())
    };
    if local.is_some() && chosen().is_some() { plain } else { requirement.to_owned() }
}

/// The package a requirement is of.
fn named(requirement: &str) -> String {
    requirement.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect()
}

/// Proxies and certificates, as shell assignments.
pub(super) fn environment(settings: &PackageSettings) -> String {
    let mut text = String::new();
    for (name, value) in &settings.index.proxies.0 {
        let quoted = value.replace('\'', r"'\''");
        let _ = writeln!(text, "export {name}='{quoted}' {}='{quoted}'", name.to_lowercase());
    }
    if settings.index.ca_bundle.is_some() {
        let _ = writeln!(text, "export SSL_CERT_FILE={CA_BUNDLE} PIP_CERT={CA_BUNDLE}");
    }
    text
}

/// How apt downloads, in every container.
pub(super) fn apt_downloads(settings: &PackageSettings) -> String {
    let mut text = "\
Acquire::Retries \"3\";
Acquire::Languages \"none\";
APT::Update::Error-Mode \"any\";
"
    .to_owned();
    if settings.index.ca_bundle.is_some() {
        let _ = writeln!(text, "Acquire::https::CAInfo \"{CA_BUNDLE}\";");
    }
    if settings.accept_expired {
        text.push_str("Acquire::Check-Valid-Until \"false\";\n");
    }
    text
}

fn apt_configuration(settings: &PackageSettings) -> String {
    let mut text = apt_downloads(settings);
    if !settings.archives.is_empty() {
        text.push_str(
            "Dir::Etc::SourceList \"/envforge/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n",
        );
    }
    text
}

pub(super) fn sources(settings: &PackageSettings) -> String {
    let line = |archive: &super::settings::Archive| {
        format!("deb {} {} {}\n", archive.root.expose(), archive.suite, archive.components)
    };
    settings.archives.iter().map(line).collect()
}

/// The lines of uv's configurations that hold for every index.
fn uv_options(request: &PackageRequest<'_>) -> String {
    let mut text = String::new();
    if let Some(moment) = &request.added.as_of {
        let _ = writeln!(text, "exclude-newer = {}", toml::Value::from(moment.as_str()));
        // This program selects uv's version, whatever the user's date.
        let _ = writeln!(text, "exclude-newer-package = {{ uv = false }}");
    }
    text += &left_out(request);
    if !request.unindexed_wheels().is_empty() {
        let _ = writeln!(text, "find-links = [\"{FOLDER}\"]");
    }
    text
}

/// Returns the constraints that leave out releases whose wheels do not load next to the stack's torch, though their
/// requirements accept it.
fn left_out(request: &PackageRequest<'_>) -> String {
    let mut text = String::new();
    if request.added.python.is_empty() {
        return text;
    }
    let built = |name: &String| request.added.allow_source.iter().any(|source| source.name == *name);
    for (package, releases) in excluded_releases(request.stack, request.matrix) {
        if built(&package) {
            continue;
        }
        let versions: Vec<_> = releases.iter().map(|(version, _)| format!("!={version}")).collect();
        let _ = writeln!(text, "    \"{package}{}\",", versions.join(","));
    }
    if text.is_empty() { text } else { format!("constraint-dependencies = [\n{text}]\n") }
}

#[cfg(test)]
mod tests {
    use crate::failure::{Exit, Failure as _};
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::*;
    use crate::model::lock::{AllowedSource, UserAdditions, sample};
    use crate::packages::settings::{Archive, IndexSettings, Proxies};

    fn target() -> PythonTarget {
        let (version, glibc) = ("3.11.2".to_owned(), "2.36".parse().expect("a version"));
        PythonTarget { version, glibc, machine: Machine::X86_64 }
    }

    fn settings() -> PackageSettings {
        PackageSettings {
            index: IndexSettings {
                default: Some("https://u:hunter2@index.example.test/simple".parse().unwrap()),
                framework: Some("https://index.example.test/whl/{cuda}".parse().unwrap()),
                of_framework: BTreeMap::new(),
                further: BTreeMap::new(),
                of_project: false,
                ca_bundle: Some(Bytes::from_static(b"PEM")),
                proxies: Proxies(BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://a'b".to_owned())])),
            },
            archives: Archive::of_release(
                "bookworm",
                &"http://m.example.test/debian".parse().unwrap(),
                None,
                None,
            ),
            ..PackageSettings::default()
        }
    }

    fn made(stack: &Stack, requested: &[String], settings: &PackageSettings) -> BTreeMap<String, String> {
        let lock = sample::lock();
        let added = UserAdditions { python: requested.to_vec(), ..UserAdditions::default() };
        let request =
            PackageRequest { previous: Some(&lock), ..PackageRequest::sample(&lock, stack, &added) };
        let files = files(&request, settings, &target(), "").expect("files");
        let text = |file: ContainerFile| (file.path, String::from_utf8(file.bytes.to_vec()).unwrap());
        files.into_iter().map(text).collect()
    }

    fn framework_stack() -> Stack {
        let cuda = "cu118".parse().unwrap();
        Stack {
            version: "2.7.1".parse().unwrap(),
            cuda,
            channel: Channel::Framework,
            numpy: Some("<2".to_owned()),
            companions: BTreeMap::from([("torchvision".to_owned(), "0.22.1".to_owned())]),
            ..sample::stack()
        }
    }

    #[test]
    fn default_channel_pins_versions_and_uses_one_index() {
        let files = made(&sample::stack(), &[], &settings());
        assert_eq!(files["/envforge/framework.in"], "torch==2.8.0\ntorchaudio==2.8.0\ntorchvision==0.23.0\n");
        assert!(files["/envforge/all.in"].contains("\njupyterlab\n"));
        assert!(!files.contains_key("/envforge/stack.in"));
        assert_eq!(files["/envforge/uv.toml"].matches("[[index]]").count(), 1);
        assert!(files["/envforge/pylock.all.toml"].contains("name = \"torch\""));
    }

    #[test]
    fn ptxas_for_triton_is_pinned_once() {
        let ptxas = Some(sample::ptxas());
        let mut stack = Stack { ptxas, ..sample::stack() };
        let text = |stack: &Stack| framework_requirements(stack, &[]).expect("published");
        let pin = "nvidia-cuda-nvcc-cu12==12.9.86\n";
        assert_eq!(text(&stack).matches(pin).count(), 1, "{}", text(&stack));
        stack.parts.insert("nvidia-cuda-nvcc-cu12".to_owned(), "12.9.86".to_owned());
        assert_eq!(text(&stack).matches(pin).count(), 1, "nvcc needs it, too");
    }

    /// Without it `torch.compile` and every kernel of Triton end in a missing module, `setuptools` or `pkg_resources`.
    #[test]
    fn old_torch_gets_the_setuptools_that_it_imports() {
        let line = |stack: &Stack| {
            let text = framework_requirements(stack, &[]).expect("published");
            text.lines().find(|line| line.starts_with("setuptools")).map(str::to_owned)
        };
        for (torch, expected) in [
            ("1.8.0", Some("setuptools<82")),
            ("2.1.2", Some("setuptools<82")),
            ("2.2.0", Some("setuptools")),
            ("2.6.0", Some("setuptools")),
            ("2.7.0", None),
        ] {
            let own = Stack { version: torch.parse().unwrap(), ..sample::stack() };
            assert_eq!(line(&own).as_deref(), expected, "torch {torch}");
            let companions = BTreeMap::from([("torch".to_owned(), torch.to_owned())]);
            let vllm = Stack { package: "vllm".to_owned(), companions, ..sample::stack() };
            assert_eq!(line(&vllm).as_deref(), expected, "vLLM with torch {torch}");
        }
        let other = Stack { package: "jax".to_owned(), companions: BTreeMap::new(), ..sample::stack() };
        assert_eq!(line(&other), None);
    }

    #[test]
    fn mismatching_releases_are_left_out_unless_they_are_built() {
        let stack =
            Stack { version: "2.11.0".parse().unwrap(), cuda: "cu130".parse().unwrap(), ..sample::stack() };
        let constraints = |requested: &[String]| {
            let files = made(&stack, requested, &settings());
            let uv: toml::Table = files["/envforge/uv.toml"].parse().expect("valid TOML");
            let list = uv.get("constraint-dependencies").and_then(|list| list.as_array()).cloned();
            list.unwrap_or_default().iter().map(|one| one.as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let with = constraints(&["unsloth".to_owned()]);
        assert!(with.iter().any(|one| one.starts_with("xformers!=") && one.contains("!=0.0.35")), "{with:?}");
        assert!(with.iter().all(|one| !one.starts_with("torchvision")), "{with:?}");
        assert_eq!(constraints(&[]), Vec::<String>::new(), "nothing of the user's is resolved");
    }

    #[test]
    fn date_limits_uploads() {
        let (lock, stack) = (sample::lock(), sample::stack());
        let added =
            UserAdditions { as_of: Some("2026-03-02T00:00:00Z".to_owned()), ..UserAdditions::default() };
        let request = PackageRequest::sample(&lock, &stack, &added);
        let uv: toml::Table = uv_options(&request).parse().expect("valid TOML");
        assert_eq!(uv["exclude-newer"].as_str(), Some("2026-03-02T00:00:00Z"));
        let exempt = uv["exclude-newer-package"].as_table().expect("a table");
        assert_eq!(exempt.keys().collect::<Vec<_>>(), ["uv"], "this program selects its version");
        let undated = UserAdditions::default();
        assert_eq!(uv_options(&PackageRequest::sample(&lock, &stack, &undated)), "");
    }

    #[test]
    fn framework_channel_pins_variant() {
        let files = made(&framework_stack(), &[], &settings());
        assert_eq!(
            files["/envforge/framework.in"],
            "torch==2.7.1+cu118\ntorchvision==0.22.1+cu118\nnumpy<2\n"
        );
        assert_eq!(files["/envforge/framework.url"], "https://index.example.test/whl/cu118\n");
        let arm = Stack { machine: Machine::Aarch64, ..framework_stack() };
        assert!(framework_requirements(&arm, &[]).unwrap().contains("torchvision==0.22.1\n"));
    }

    #[test]
    fn unpublished_variant_is_rejected() {
        let stack = Stack { channel: Channel::Source, ..sample::stack() };
        let error = framework_requirements(&stack, &[]).expect_err("refused");
        assert_eq!(error.to_string(), "no published wheel of `torch 2.8.0` for `cu128`");
        assert_eq!(error.exit(), Exit::No);
        let unheard = Stack { framework: "unheard-of".to_owned(), ..framework_stack() };
        let (lock, added) = (sample::lock(), UserAdditions::default());
        let request = PackageRequest::sample(&lock, &unheard, &added);
        let error = files(&request, &PackageSettings::default(), &target(), "").expect_err("no index");
        assert!(error.hints()[0].contains("ENVFORGE_FRAMEWORK_INDEX"));
    }

    #[test]
    fn prebuilt_wheel_is_pinned_with_its_libraries() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let local = super::super::local_wheel::tests::wheel(&root, "torch", "2.8.0+cu128");
        let parts = BTreeMap::from([("nvidia-cublas-cu12".to_owned(), "12.8.4.1".to_owned())]);
        let stack = Stack { channel: Channel::Source, parts, ..sample::stack() };
        let lock = sample::lock();
        let added = UserAdditions::default();
        let request = PackageRequest {
            local: std::slice::from_ref(&local),
            ..PackageRequest::sample(&lock, &stack, &added)
        };
        let files = files(&request, &settings(), &target(), "").expect("files");
        let named = |path: &str| files.iter().find(|file| file.path == path).expect("there");
        assert_eq!(
            named("/envforge/framework.in").bytes,
            "torch==2.8.0+cu128\nnvidia-cublas-cu12==12.8.4.1\nnvidia-cudnn-cu12==9.10.2.21\n\
             nvidia-nccl-cu12==2.27.3\ntriton==3.4.0\n"
        );
        let uv = String::from_utf8(named("/envforge/uv.toml").bytes.to_vec()).expect("text");
        let uv: toml::Table = uv.parse().expect("valid TOML");
        assert_eq!(uv["find-links"].as_array().map(Vec::len), Some(1));
        assert_eq!(
            uv["index"].as_array().map(Vec::len),
            Some(1),
            "the framework's serves its libraries alone"
        );
        assert!(named("/envforge/framework.url").bytes.len() > 1, "one that is set may have the libraries");
        assert!(named(&format!("/envforge/{}", local.file)).bytes.len() < 2000, "METADATA alone");
    }

    #[test]
    fn additions_are_resolved_together_but_listed_separately() {
        let files = made(&sample::stack(), &["requests>=2".to_owned()], &settings());
        assert!(files["/envforge/all.in"].ends_with("requests>=2\n"));
        assert!(!files["/envforge/stack.in"].contains("requests"));
        for bad in ["-r /etc/passwd", "--index-url=x", "x @ http://h/x.whl", "a\nb", "", "http://h/x.whl"] {
            let error = additions(&[bad.to_owned()], &framework_stack(), crate::model::compat::embedded())
                .expect_err(bad);
            assert_eq!(error.exit(), Exit::Usage);
        }
    }

    #[test]
    fn allowed_source_is_requested_until_its_wheel_exists() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let wheel = super::super::local_wheel::tests::wheel(&root, "docopt", "0.6.2");
        let lock = sample::lock();
        let stack = sample::stack();
        let allow = |name: &str| AllowedSource { name: name.to_owned(), build: Vec::new() };
        let added = UserAdditions {
            python: vec!["DocOpt>=0.6".to_owned(), "requests".to_owned()],
            allow_source: vec![allow("docopt"), allow("further")],
            ..UserAdditions::default()
        };
        let made = |built: &[LocalWheel]| {
            let request = PackageRequest { built, ..PackageRequest::sample(&lock, &stack, &added) };
            let files = files(&request, &settings(), &target(), "").expect("files");
            let text = |file: ContainerFile| (file.path, String::from_utf8_lossy(&file.bytes).into_owned());
            files.into_iter().map(text).collect::<BTreeMap<_, _>>()
        };
        let first = made(&[]);
        assert_eq!(first["/envforge/source-docopt.in"], "DocOpt>=0.6\n");
        assert_eq!(first["/envforge/source-further.in"], "further\n");
        assert!(!first["/envforge/uv.toml"].contains("find-links"));
        let then = made(std::slice::from_ref(&wheel));
        assert!(!then.contains_key("/envforge/source-docopt.in"));
        assert!(then["/envforge/all.in"].ends_with("docopt==0.6.2\n"), "{}", then["/envforge/all.in"]);
        assert!(then["/envforge/uv.toml"].contains("find-links"));
        assert!(then.contains_key(&format!("/envforge/{}", wheel.file)));
        assert!(!then["/envforge/stack.in"].contains("docopt"));
    }

    /// flash-attn of a release page: its index has a source distribution of a later release.
    #[test]
    fn given_wheel_of_a_requested_package_is_the_one_that_is_resolved() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = camino::Utf8PathBuf::from_path_buf(folder.path().to_owned()).expect("UTF-8");
        let wheel = super::super::local_wheel::tests::wheel(&root, "flash_attn", "2.8.3");
        let (lock, stack) = (sample::lock(), sample::stack());
        let made = |requested: &str| {
            let allowed = AllowedSource { name: "flash-attn".to_owned(), build: Vec::new() };
            let added = UserAdditions {
                python: vec![requested.to_owned()],
                allow_source: vec![allowed],
                ..UserAdditions::default()
            };
            let local = std::slice::from_ref(&wheel);
            let request = PackageRequest { local, ..PackageRequest::sample(&lock, &stack, &added) };
            let files = files(&request, &settings(), &target(), "").expect("files");
            let text = |file: ContainerFile| (file.path, String::from_utf8_lossy(&file.bytes).into_owned());
            files.into_iter().map(text).collect::<BTreeMap<_, _>>()
        };
        let files = made("Flash_Attn>=2");
        assert!(files["/envforge/all.in"].ends_with("Flash_Attn>=2\nflash-attn==2.8.3\n"), "{files:?}");
        assert!(files["/envforge/uv.toml"].contains("find-links"));
        assert!(!files["/envforge/stack.in"].contains("flash-attn"), "it is no part of the stack");
        assert!(!files.contains_key("/envforge/source-flash-attn.in"), "nothing is built in its place");
        // The requirements of a source build are resolved with the same wheels at hand.
        assert!(made("ninja")["/envforge/all.in"].ends_with("ninja\n"));
    }

    #[test]
    fn secrets_are_only_in_private_files() {
        let lock = sample::lock();
        let stack = sample::stack();
        let added = UserAdditions::default();
        let request = PackageRequest::sample(&lock, &stack, &added);
        for file in files(&request, &settings(), &target(), "").expect("files") {
            let secret = String::from_utf8_lossy(&file.bytes).contains("hunter2");
            assert!(!secret || file.mode == 0o600, "{}", file.path);
        }
    }

    #[test]
    fn proxies_and_certificates_reach_uv() {
        let files = made(&sample::stack(), &[], &settings());
        let env = &files["/envforge/env"];
        assert!(env.contains(r"export HTTPS_PROXY='http://a'\''b' https_proxy='http://a'\''b'"), "{env}");
        for name in ["SSL_CERT_FILE", "PIP_CERT"] {
            assert!(env.contains(&format!("{name}=/envforge/ca.crt")), "{env}");
        }
        for of_apt in ["apt.conf", "sources.list", "system.list"] {
            assert!(!files.contains_key(&format!("/envforge/{of_apt}")), "uv has the index's login alone");
        }
    }

    #[test]
    fn installing_scripts_get_the_archives() {
        let text = |settings: &PackageSettings, path: &str| {
            let file = surroundings(settings).into_iter().find(|file| file.path == path).expect("there");
            String::from_utf8(file.bytes.to_vec()).expect("text")
        };
        assert_eq!(
            text(&settings(), "/envforge/sources.list"),
            "deb http://m.example.test/debian bookworm main\ndeb http://m.example.test/debian bookworm-updates main\n"
        );
        let apt = text(&settings(), "/envforge/apt.conf");
        assert!(
            apt.contains("CAInfo") && apt.contains("SourceParts") && !apt.contains("Valid-Until"),
            "{apt}"
        );
        let bare = PackageSettings { accept_expired: true, ..PackageSettings::default() };
        let apt = text(&bare, "/envforge/apt.conf");
        assert!(
            !apt.contains("CAInfo") && !apt.contains("SourceParts") && apt.contains("Valid-Until"),
            "{apt}"
        );
    }
}
