//! The input files of `resolve.sh`: requirements and sources. They exist in a temporary container only.

use std::fmt::Write as _;

use super::apt::{standing, system_list};
use super::catalogue::catalogue;
use super::error::PackagesError;
use super::index_order::IndexOrder;
use super::local_wheel::LocalWheel;
use super::pylock::preferences;
use super::request::PackageRequest;
use super::script_file::{FOLDER, file};
use super::settings::PackageSettings;
use super::vendor::VendorSource;
use super::wheel_name::normalised;
use crate::engine::ContainerFile;
use crate::model::compat::Matrix;
use crate::model::compat::tables::Channel;
use crate::model::lock::LockedDeb;
use crate::model::resolve::excluded_releases;
use crate::model::sha256::sha256_hex;
use crate::model::stack::Stack;
use crate::model::versions::{FrameworkVersion, Machine};

/// The engine's cache volume of the resolver, mounted at /cache: uv, index responses and the Python of each base.
pub(super) const CACHE_VOLUME: &str = "envforge-resolve";
/// The script the container runs.
pub(super) const SCRIPT: &str = "/envforge/resolve.sh";
/// Path of the uv program, sent if the volume does not have it.
pub(super) const UV: &str = "/envforge/uv";
/// apt wants armoured keys to be called so.
const VENDOR_KEY: &str = "/envforge/vendor.asc";
const CA_BUNDLE: &str = "/envforge/ca.crt";

/// Every file of the container but the program uv, which is named by its hash. `runs_on` is the container's own processor.
pub(super) fn files(
    request: &PackageRequest<'_>,
    settings: &PackageSettings,
    vendor: Option<&VendorSource>,
    uv_sha256: &str,
    runs_on: Machine,
) -> Result<Vec<ContainerFile>, PackagesError> {
    let framework = framework_requirements(request.stack, request.local)?;
    let developer: String = catalogue().developer_wheels().map(|wheel| wheel + "\n").collect();
    let stack = format!("{framework}{developer}");
    let mut files = vec![
        file("resolve.sh", 0o644, include_str!("../../templates/packages/resolve.sh")),
        file("base", 0o644, base_key(request)),
        file("framework.in", 0o644, framework),
        file("uv.sha256", 0o644, uv_sha256),
    ];
    files.extend(IndexOrder::of(request, &settings.index)?.files(&uv_options(request)));
    if standing(request).is_none() {
        files.push(file("system.list", 0o644, system_list(request.stack)));
    }
    for wheel in request.unindexed_wheels() {
        files.push(ContainerFile {
            path: format!("{FOLDER}/{}", wheel.file),
            mode: 0o644,
            bytes: wheel.without_content(),
        });
    }
    if !request.added.apt.is_empty() {
        files.push(file("apt.list", 0o644, request.added.apt.join("\n") + "\n"));
    }
    if request.previous.is_none() || !request.fresh.is_empty() {
        files.push(file("refresh", 0o644, ""));
    }
    let requested = &request.added.python;
    if requested.is_empty() {
        files.push(file("all.in", 0o644, stack));
    } else {
        let additions = additions(requested)?;
        let pin = |wheel: &LocalWheel| format!("{}=={}\n", wheel.name, wheel.version);
        let built: String = request.built.iter().map(pin).collect();
        files.push(file("all.in", 0o644, format!("{stack}{additions}{built}")));
        files.push(file("stack.in", 0o644, stack));
    }
    for source in request.buildable_packages() {
        let of_it = |text: &&String| normalised(&named(text)) == source.name;
        let wishes: String = requested.iter().filter(of_it).flat_map(|text| [text, "\n"]).collect();
        let text = if wishes.is_empty() { format!("{}\n", source.name) } else { wishes };
        files.push(file(&format!("source-{}.in", source.name), 0o644, text));
    }
    if let Some(nvcc) = request.stack.nvcc.as_ref().filter(|nvcc| !nvcc.packages.is_empty()) {
        files.push(file("unpack.list", 0o644, nvcc.packages.join("\n") + "\n"));
    }
    if let Some(previous) = request.previous {
        files.push(file("pylock.all.toml", 0o644, preferences(previous, request.fresh)));
    }
    if request.stack.machine != runs_on {
        let list = |deb: &LockedDeb| format!("{}={}\n", deb.name, deb.version);
        files.push(file("foreign", 0o644, foreign(request.stack)));
        files.push(file("base.list", 0o644, request.base.packages.iter().map(list).collect::<String>()));
    }
    if let Some(vendor) = vendor {
        let line = format!("deb [signed-by={VENDOR_KEY}] {} /\n", vendor.root.expose());
        files.push(file("vendor.list", 0o600, line));
        files.push(ContainerFile { path: VENDOR_KEY.to_owned(), mode: 0o644, bytes: vendor.key.clone() });
    }
    files.extend(surroundings(settings));
    Ok(files)
}

/// A name unique to the base.
fn base_key(request: &PackageRequest<'_>) -> String {
    let packages: String = request.base.packages.iter().map(|deb| deb.sha256.as_str()).collect();
    let digest = request.base.digest.as_deref().unwrap_or_default();
    sha256_hex(format!("{} {digest} {packages}", request.base_reference).as_bytes())[..16].to_owned()
}

/// Returns the names of a foreign processor for Debian and uv. uv gets the base's C library version, up to the newest
/// one it supports: it selects the wheels that run there.
fn foreign(stack: &Stack) -> String {
    const UV_KNOWS: std::ops::RangeInclusive<u32> = 31..=40;
    let glibc = Matrix::current().base(&stack.base).map(|base| base.glibc.parts().to_vec());
    let minor = match glibc.as_deref() {
        Some([2, minor, ..]) if *minor >= *UV_KNOWS.start() => (*minor).min(*UV_KNOWS.end()),
        Some([2, minor, ..]) if *minor >= 28 => 28,
        _ => 17,
    };
    format!("{} {}-manylinux_2_{minor}\n", stack.machine.debian(), stack.machine)
}

/// Returns the files of every script: proxies, certificates, apt's archives.
pub(super) fn surroundings(settings: &PackageSettings) -> Vec<ContainerFile> {
    let mut files = vec![
        file("env", 0o600, environment(settings)),
        file("apt.conf", 0o644, apt_configuration(settings)),
        file("sources.list", 0o600, sources(settings)),
    ];
    if let Some(bundle) = &settings.index.ca_bundle {
        files.push(ContainerFile { path: CA_BUNDLE.to_owned(), mode: 0o644, bytes: bundle.clone() });
    }
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
    for (name, version) in &stack.parts {
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
    for (name, version) in stack.parts.iter().chain(libraries.iter().map(|(name, version)| (name, version))) {
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
fn additions(requested: &[String]) -> Result<String, PackagesError> {
    let plain = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && !text.contains(['\n', '\r', '@', '#', '\\'])
            && !text.contains("://")
    };
    match requested.iter().find(|text| !plain(text)) {
        Some(text) => Err(PackagesError::Requirement { text: text.clone() }),
        None => Ok(requested.iter().flat_map(|text| [text, "\n"]).collect()),
    }
}

/// The package a requirement is of.
fn named(requirement: &str) -> String {
    requirement.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_.".contains(*c)).collect()
}

/// Proxies and certificates, as shell assignments.
fn environment(settings: &PackageSettings) -> String {
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

fn apt_configuration(settings: &PackageSettings) -> String {
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
    if !settings.archives.is_empty() {
        text.push_str(
            "Dir::Etc::SourceList \"/envforge/sources.list\";\nDir::Etc::SourceParts \"/dev/null\";\n",
        );
    }
    text
}

fn sources(settings: &PackageSettings) -> String {
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
    for (package, releases) in excluded_releases(request.stack, Matrix::current()) {
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
    use crate::model::lock::{AllowedSource, Lock, LockMetadata, UserAdditions, sample};
    use crate::packages::settings::{Archive, IndexSettings, Proxies};

    fn settings() -> PackageSettings {
        PackageSettings {
            index: IndexSettings {
                default: Some("https://u:hunter2@index.example.test/simple".parse().unwrap()),
                framework: Some("https://index.example.test/whl/{cuda}".parse().unwrap()),
                of_framework: BTreeMap::new(),
                further: BTreeMap::new(),
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
        let files = files(&request, settings, None, "", Machine::X86_64).expect("files");
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
    fn apt_runs_only_if_its_inputs_changed() {
        let lock = sample::lock();
        let mut system = lock.system[0].clone();
        let as_locked = |name: &str| {
            system.name = name.to_owned();
            system.clone()
        };
        let system: Vec<_> = system_list(&lock.stack).lines().map(as_locked).collect();
        let records = LockMetadata { envforge: env!("CARGO_PKG_VERSION").to_owned(), ..lock.records.clone() };
        let lock = Lock { system, records, ..lock };
        let asks = |previous: &Lock, apt: &[&str], fresh: &[&str]| {
            let texts = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
            let (added, fresh) =
                (UserAdditions { apt: texts(apt), ..UserAdditions::default() }, texts(fresh));
            let request = PackageRequest {
                previous: Some(previous),
                fresh: &fresh,
                ..PackageRequest::sample(&lock, &lock.stack, &added)
            };
            let made = files(&request, &settings(), None, "", Machine::X86_64).expect("files");
            made.iter().any(|file| file.path == "/envforge/system.list")
        };
        assert!(!asks(&lock, &[], &[]));
        assert!(!asks(&lock, &[], &["torch"]), "a wheel to upgrade does not concern apt");
        assert!(asks(&lock, &["tree"], &[]), "another request");
        assert!(asks(&lock, &[], &[&lock.system[0].name]), "a distribution package to upgrade");
        let short = Lock { system: lock.system[1..].to_vec(), ..lock.clone() };
        assert!(asks(&short, &[], &[]), "a package is missing");
        let mut other = lock.clone();
        other.records.envforge = "0.0.0".to_owned();
        assert!(asks(&other, &[], &[]), "another envforge may want others");
        other = lock.clone();
        other.base.digest = Some("sha256:other".to_owned());
        assert!(asks(&other, &[], &[]), "another base");
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
    fn requested_apt_packages_are_resolved_with_built_in_ones() {
        let lock = sample::lock();
        let stack = sample::stack();
        let added =
            UserAdditions { apt: vec!["ffmpeg".to_owned(), "libgl1".to_owned()], ..UserAdditions::default() };
        let request = PackageRequest::sample(&lock, &stack, &added);
        let files = files(&request, &settings(), None, "", Machine::X86_64).expect("files");
        let list = files.iter().find(|file| file.path == "/envforge/apt.list").expect("there");
        assert_eq!(list.bytes, "ffmpeg\nlibgl1\n");
        assert!(!made(&stack, &[], &settings()).contains_key("/envforge/apt.list"));
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
        let error =
            files(&request, &PackageSettings::default(), None, "", Machine::X86_64).expect_err("no index");
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
        let files = files(&request, &settings(), None, "", Machine::X86_64).expect("files");
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
            let error = additions(&[bad.to_owned()]).expect_err(bad);
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
            let files = files(&request, &settings(), None, "", Machine::X86_64).expect("files");
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

    #[test]
    fn foreign_processor_is_passed_to_apt_and_uv() {
        let stack = Stack { machine: Machine::Aarch64, ..sample::stack() };
        let files = made(&stack, &[], &settings());
        assert_eq!(files["/envforge/foreign"], "arm64 aarch64-manylinux_2_36\n");
        let first = &sample::lock().base.packages[0];
        assert!(files["/envforge/base.list"].starts_with(&format!("{}={}\n", first.name, first.version)));
        assert!(!made(&sample::stack(), &[], &settings()).contains_key("/envforge/foreign"));
        for (base, platform) in
            [("debian:13", "2_40"), ("debian:11", "2_31"), ("ubuntu:20.04", "2_31"), ("mine:1", "2_17")]
        {
            let stack = Stack { base: base.to_owned(), ..stack.clone() };
            assert_eq!(foreign(&stack), format!("arm64 aarch64-manylinux_{platform}\n"), "{base}");
        }
    }

    #[test]
    fn secrets_are_only_in_private_files() {
        let lock = sample::lock();
        let stack = sample::stack();
        let added = UserAdditions::default();
        let request = PackageRequest::sample(&lock, &stack, &added);
        for file in files(&request, &settings(), None, "", Machine::X86_64).expect("files") {
            let secret = String::from_utf8_lossy(&file.bytes).contains("hunter2");
            assert!(!secret || file.mode == 0o600, "{}", file.path);
        }
    }

    #[test]
    fn proxies_certificates_and_archives_reach_apt_and_uv() {
        let files = made(&sample::stack(), &[], &settings());
        let env = &files["/envforge/env"];
        assert!(env.contains(r"export HTTPS_PROXY='http://a'\''b' https_proxy='http://a'\''b'"), "{env}");
        for name in ["SSL_CERT_FILE", "PIP_CERT"] {
            assert!(env.contains(&format!("{name}=/envforge/ca.crt")), "{env}");
        }
        assert_eq!(
            files["/envforge/sources.list"],
            "deb http://m.example.test/debian bookworm main\ndeb http://m.example.test/debian bookworm-updates main\n"
        );
        let apt = &files["/envforge/apt.conf"];
        assert!(
            apt.contains("CAInfo") && apt.contains("SourceParts") && !apt.contains("Valid-Until"),
            "{apt}"
        );
        let bare = PackageSettings { accept_expired: true, ..PackageSettings::default() };
        let apt = apt_configuration(&bare);
        assert!(
            !apt.contains("CAInfo") && !apt.contains("SourceParts") && apt.contains("Valid-Until"),
            "{apt}"
        );
    }
}
