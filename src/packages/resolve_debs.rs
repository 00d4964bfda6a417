//! The first run of the resolver: apt chooses the distribution packages above a base, of which it has files only.

use std::fmt::Write as _;
use std::sync::Arc;

use super::apt::{kept, locked_debs, system_list};
use super::catalogue::catalogue;
use super::error::{PackagesError, ToolOutput};
use super::failure::explain;
use super::inputs::{apt_downloads, ca_bundle, environment, sources};
use super::output::Answers;
use super::request::{PackageRequest, ResolverContext};
use super::resolver_image::Resolver;
use super::script_file::{FOLDER, command, file};
use super::settings::PackageSettings;
use super::vendor::{VendorSource, vendor_source};
use crate::base::{BaseApt, KEYS, SeenIndex, base_apt, index_date};
use crate::engine::{ContainerFile, RunRequest};
use crate::model::lock::{Lock, LockedDeb};
use crate::model::sha256::sha256_hex;
use crate::model::versions::Machine;
use crate::report::Event;
use crate::store::Store;

const SCRIPT: &str = "/envforge/resolve_debs.sh";
/// apt wants armoured keys to be called so.
const VENDOR_KEY: &str = "/envforge/vendor.asc";

/// The distribution packages above a base.
pub(super) struct ResolvedDebs {
    /// The system's.
    pub(super) system: Vec<LockedDeb>,
    /// Those to unpack.
    pub(super) unpacked: Vec<LockedDeb>,
    /// The user's.
    pub(super) apt: Vec<LockedDeb>,
}

/// Chooses them with apt.
pub(super) async fn resolve_debs(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
    resolver: &Resolver,
) -> Result<ResolvedDebs, PackagesError> {
    let ResolverContext { settings, store, .. } = tools;
    let vendor = vendor_source(request.stack.nvcc.as_ref(), &settings.vendor, tools.fetcher).await?;
    let mut libraries: Vec<_> = catalogue().replaceable(request.stack).map(|(_, file)| file).collect();
    libraries.dedup();
    let base = base_apt(tools.engine, request.base_reference, &libraries).await?;
    if settings.archives.is_empty() {
        for line in &base.left_out {
            let text = format!("{}: not used to select packages: {line}", request.base.name);
            tools.reporter.report(Event::Warning { text });
        }
    }
    let runs_on = tools.engine.info().machine;
    let files = |renew| files(request, settings, &base, vendor.as_ref(), Lists { renew, runs_on });
    let renew = request.renew || !request.fresh.is_empty();
    let mut answers = run(tools, request, resolver, files(renew)?).await?;
    match check_indexes(&answers, store, settings.accept_older) {
        // The lists that were kept: something else has read a newer index of that mirror since.
        Err(PackagesError::Older(_)) if !renew => {
            answers = run(tools, request, resolver, files(true)?).await?;
            check_indexes(&answers, store, settings.accept_older)?;
        }
        checked => checked?,
    }
    distribution(&answers, request)
}

async fn run(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
    resolver: &Resolver,
    files: Vec<ContainerFile>,
) -> Result<Answers, PackagesError> {
    let container = RunRequest {
        image: resolver.image.clone(),
        command: command(SCRIPT),
        user: Some("0:0".to_owned()),
        files,
        binds: vec![format!("{}:/lists", resolver.lists)],
        network: tools.settings.network,
        // Its lines are not reported: they hold addresses.
        report_as: None,
        ..RunRequest::default()
    };
    let outcome = tools.engine.run(container, Arc::clone(&tools.reporter)).await?;
    if outcome.code == 0 {
        return Answers::parse(&outcome.stdout);
    }
    Err(explain(outcome.code, &outcome.stderr, !request.added.python.is_empty()))
}

/// How apt's lists are read.
#[derive(Clone, Copy)]
struct Lists {
    /// Those that were kept do not count.
    renew: bool,
    /// The processor of the container. A base for another one is known by its list of packages alone.
    runs_on: Machine,
}

/// The files of the container.
fn files(
    request: &PackageRequest<'_>,
    settings: &PackageSettings,
    base: &BaseApt,
    vendor: Option<&VendorSource>,
    Lists { renew, runs_on }: Lists,
) -> Result<Vec<ContainerFile>, PackagesError> {
    let mut sources_of = Vec::new();
    if settings.archives.is_empty() {
        if base.sources.is_empty() {
            let cause = ["it has no apt source that may be used"].into_iter();
            let cause = cause.chain(base.left_out.iter().map(String::as_str)).collect::<Vec<_>>().join("\n");
            return Err(PackagesError::Mirror { cause: ToolOutput(cause), no_network: false });
        }
        sources_of.push(file("sources/base.sources", 0o644, base.sources.clone()));
        let key = |(name, bytes): &(String, _)| binary(&format!("{KEYS}/{name}"), bytes);
        sources_of.extend(base.keys.iter().map(key));
    } else {
        sources_of.push(file("sources/envforge.list", 0o600, sources(settings)));
    }
    let trusted = |(name, bytes): &(String, _)| binary(&format!("{FOLDER}/trusted.gpg.d/{name}"), bytes);
    sources_of.extend(base.trusted.iter().map(trusted));
    if let Some(vendor) = vendor {
        let line =
            format!("Types: deb\nURIs: {}\nSuites: /\nSigned-By: {VENDOR_KEY}\n", vendor.root.expose());
        sources_of.push(file("vendor.sources", 0o600, line));
        sources_of.push(binary(VENDOR_KEY, &vendor.key));
    }
    let is_foreign = request.stack.machine != runs_on;
    let machine = request.stack.machine.debian();
    let mut architectures = vec![machine.to_owned()];
    if !is_foreign {
        architectures.extend(base.foreign.iter().filter(|name| *name != machine).cloned());
    }
    let configuration = apt_configuration(settings, &architectures);
    let lists = format!("/lists/{}", key(&sources_of, &configuration));
    let mut files = vec![
        file("resolve_debs.sh", 0o644, include_str!("../../templates/packages/resolve_debs.sh")),
        file("answer.sh", 0o644, include_str!("../../templates/packages/answer.sh")),
        file("env", 0o600, environment(settings)),
        file("lists", 0o644, format!("{lists}\n")),
        file("apt.conf", 0o644, format!("{configuration}Dir::State::lists \"{lists}/apt\";\n")),
        file("preferences", 0o644, base.preferences.clone()),
        file("system.list", 0o644, system_list(request.stack, |file| base.has(file))),
    ];
    files.extend(ca_bundle(settings));
    files.extend(sources_of);
    if is_foreign {
        let list = |deb: &LockedDeb| format!("{}={}\n", deb.name, deb.version);
        files.push(file("base.list", 0o644, request.base.packages.iter().map(list).collect::<String>()));
    } else {
        files.push(file("status", 0o644, base.status.clone()));
    }
    if !request.added.apt.is_empty() {
        files.push(file("apt.list", 0o644, request.added.apt.join("\n") + "\n"));
    }
    if let Some(nvcc) = request.stack.nvcc.as_ref().filter(|nvcc| !nvcc.packages.is_empty()) {
        files.push(file("unpack.list", 0o644, nvcc.packages.join("\n") + "\n"));
    }
    if renew {
        files.push(file("renew", 0o644, ""));
    }
    Ok(files)
}

fn binary(path: &str, bytes: &bytes::Bytes) -> ContainerFile {
    ContainerFile { path: path.to_owned(), mode: 0o644, bytes: bytes.clone() }
}

/// What the lists of apt depend on: sources, keys and what apt accepts.
fn key(sources: &[ContainerFile], configuration: &str) -> String {
    let mut text = configuration.to_owned();
    for file in sources {
        let _ = write!(text, "\n{} {}", file.path, sha256_hex(&file.bytes));
    }
    sha256_hex(text.as_bytes())[..32].to_owned()
}

/// apt's configuration: nothing of the image it runs in, and of the base what was read of it.
fn apt_configuration(settings: &PackageSettings, architectures: &[String]) -> String {
    let mut text = "\
APT::Get::Always-Include-Phased-Updates \"true\";
Dir::Cache \"/tmp/apt\";
Dir::State::status \"/tmp/status\";
Dir::State::extended_states \"/tmp/extended_states\";
Dir::Etc::main \"/dev/null\";
Dir::Etc::parts \"/dev/null\";
Dir::Etc::netrc \"/dev/null\";
Dir::Etc::netrcparts \"/dev/null\";
Dir::Etc::SourceList \"/dev/null\";
Dir::Etc::SourceParts \"/tmp/sources\";
Dir::Etc::Trusted \"/dev/null\";
Dir::Etc::TrustedParts \"/envforge/trusted.gpg.d\";
Dir::Etc::Preferences \"/envforge/preferences\";
Dir::Etc::PreferencesParts \"/dev/null\";
"
    .to_owned();
    let _ = writeln!(text, "APT::Architecture \"{}\";", architectures[0]);
    for architecture in architectures {
        let _ = writeln!(text, "APT::Architectures:: \"{architecture}\";");
    }
    text + &apt_downloads(settings)
}

/// Fails if a mirror gave apt an older index than it served before.
fn check_indexes(answers: &Answers, store: &Store, accept_older: bool) -> Result<(), PackagesError> {
    let text = answers.named("indexes")?;
    let bad =
        |line: &str| PackagesError::Output { what: "list of package indexes", detail: format!("`{line}`") };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let (file, date) = line.split_once(' ').ok_or_else(|| bad(line))?;
        // A repository of one's own may have no date: then there is nothing to compare.
        if date.is_empty() {
            continue;
        }
        let date = index_date(date).ok_or_else(|| bad(line))?;
        SeenIndex::of_apt(file, date)
            .ok_or_else(|| bad(line))?
            .check::<PackagesError>(store, accept_older)?;
    }
    Ok(())
}

/// Packages of the distribution as apt found them.
fn distribution(answers: &Answers, request: &PackageRequest<'_>) -> Result<ResolvedDebs, PackagesError> {
    let optional = |uris: &str, show: &'static str| match answers.optional(uris) {
        Some(uris) => locked_debs(uris, answers.named(show)?),
        None => Ok(Vec::new()),
    };
    let system = locked_debs(answers.named("uris")?, answers.named("uris-show")?)?;
    let unpacked = optional("unpack-uris", "unpack-uris-show")?;
    let apt = optional("apt-uris", "apt-uris-show")?;
    let kept = |new, of: fn(&Lock) -> &Vec<LockedDeb>| kept(new, request.previous, request.base, of);
    Ok(ResolvedDebs { system: kept(system, |lock| &lock.system), unpacked, apt: kept(apt, |lock| &lock.apt) })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;

    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::{UserAdditions, sample};
    use crate::model::stack::Stack;
    use crate::packages::output::RECORDED_DEBS;
    use crate::packages::settings::{Archive, IndexSettings, Proxies};

    fn base() -> BaseApt {
        BaseApt {
            status: "Package: libc6\n".to_owned(),
            foreign: vec!["amd64".to_owned(), "i386".to_owned()],
            sources: "Types: deb\nURIs: http://own.test/\nSuites: ./\nSigned-By: /envforge/keys/0.gpg\n"
                .to_owned(),
            keys: vec![("0.gpg".to_owned(), Bytes::from_static(b"key"))],
            trusted: vec![("debian.asc".to_owned(), Bytes::from_static(b"keys"))],
            preferences: "Package: *\n".to_owned(),
            left_out: vec!["/etc/apt/auth.conf: a base has no logins".to_owned()],
            ..BaseApt::default()
        }
    }

    fn mirror() -> PackageSettings {
        let root = "http://u:hunter2@m.example.test/debian".parse().expect("an address");
        PackageSettings {
            index: IndexSettings {
                default: Some("https://u:hunter3@index.example.test/simple".parse().expect("an address")),
                ca_bundle: Some(Bytes::from_static(b"PEM")),
                proxies: Proxies(BTreeMap::from([("HTTPS_PROXY".to_owned(), "http://a'b".to_owned())])),
                ..IndexSettings::default()
            },
            archives: Archive::of_release("bookworm", &root, None, None),
            ..PackageSettings::default()
        }
    }

    const HERE: Lists = Lists { renew: false, runs_on: Machine::X86_64 };

    fn made(
        stack: &Stack,
        added: &UserAdditions,
        settings: &PackageSettings,
        lists: Lists,
    ) -> BTreeMap<String, String> {
        let lock = sample::lock();
        let request = PackageRequest::sample(&lock, stack, added);
        let files = files(&request, settings, &base(), None, lists).expect("files");
        let private = |file: &ContainerFile| {
            let has = |secret| String::from_utf8_lossy(&file.bytes).contains(secret);
            assert!(!has("hunter2") || file.mode == 0o600, "{}", file.path);
            assert!(!has("hunter3"), "apt gets no login of an index: {}", file.path);
        };
        files.iter().for_each(private);
        files.into_iter().map(|file| (file.path, String::from_utf8_lossy(&file.bytes).into_owned())).collect()
    }

    #[test]
    fn recorded_run_becomes_locked_packages() {
        let (lock, stack, none) = (sample::lock(), sample::stack(), UserAdditions::default());
        let answers = Answers::parse(RECORDED_DEBS.as_bytes()).expect("answers");
        let found = distribution(&answers, &PackageRequest::sample(&lock, &stack, &none)).expect("reads");
        assert!(found.system.iter().any(|deb| deb.name == "python3.11"));
        assert_eq!((found.unpacked.len(), found.apt.len()), (0, 0));
    }

    #[test]
    fn base_with_a_library_of_its_own_gets_no_package_for_it() {
        let (lock, stack, none) = (sample::lock(), sample::stack(), UserAdditions::default());
        let request = PackageRequest::sample(&lock, &stack, &none);
        let list = |base: &BaseApt| {
            let files = files(&request, &mirror(), base, None, HERE).expect("files");
            let list = files.iter().find(|file| file.path == "/envforge/system.list").expect("there");
            String::from_utf8_lossy(&list.bytes).into_owned()
        };
        assert!(list(&base()).contains("\nlibibverbs1\nibverbs-providers\nlibrdmacm1\n"));
        let with = BaseApt { libraries: ["libibverbs.so.1".to_owned()].into(), ..base() };
        let list = list(&with);
        assert!(list.contains("gcc\n") && !list.contains("verbs") && !list.contains("rdma"), "{list}");
    }

    #[test]
    fn own_archives_replace_those_of_the_base() {
        let none = UserAdditions::default();
        let files = made(&sample::stack(), &none, &mirror(), HERE);
        assert_eq!(
            files["/envforge/sources/envforge.list"],
            "deb http://u:hunter2@m.example.test/debian bookworm main\n\
             deb http://u:hunter2@m.example.test/debian bookworm-updates main\n"
        );
        assert!(
            !files.contains_key("/envforge/sources/base.sources")
                && !files.contains_key("/envforge/keys/0.gpg")
        );
        assert_eq!(files["/envforge/trusted.gpg.d/debian.asc"], "keys");
        let apt = &files["/envforge/apt.conf"];
        assert!(apt.contains("CAInfo") && !apt.contains("Valid-Until"), "{apt}");
        assert!(files["/envforge/env"].contains("HTTPS_PROXY"), "{}", files["/envforge/env"]);
    }

    #[test]
    fn base_without_a_known_mirror_keeps_its_sources_and_keys() {
        let (none, bare) = (
            UserAdditions::default(),
            PackageSettings { accept_expired: true, ..PackageSettings::default() },
        );
        let files = made(&sample::stack(), &none, &bare, HERE);
        assert_eq!(files["/envforge/sources/base.sources"], base().sources);
        assert_eq!(files["/envforge/keys/0.gpg"], "key");
        assert_eq!(
            (files["/envforge/status"].as_str(), files["/envforge/preferences"].as_str()),
            ("Package: libc6\n", "Package: *\n")
        );
        let apt = &files["/envforge/apt.conf"];
        assert!(!apt.contains("CAInfo") && apt.contains("Valid-Until"), "{apt}");
        let architectures: Vec<_> =
            apt.lines().filter(|line| line.starts_with("APT::Architecture")).collect();
        assert_eq!(
            architectures,
            [
                "APT::Architecture \"amd64\";",
                "APT::Architectures:: \"amd64\";",
                "APT::Architectures:: \"i386\";"
            ]
        );
        let (lock, stack) = (sample::lock(), sample::stack());
        let request = PackageRequest::sample(&lock, &stack, &none);
        let without = BaseApt { sources: String::new(), ..base() };
        let error = super::files(&request, &bare, &without, None, HERE).expect_err("no source");
        let cause = std::error::Error::source(&error).expect("why").to_string();
        assert!(cause.contains("auth.conf"), "{cause}");
    }

    #[test]
    fn base_of_another_processor_is_its_list() {
        let none = UserAdditions::default();
        let arm = Stack { machine: Machine::Aarch64, ..sample::stack() };
        let files = made(&arm, &none, &mirror(), HERE);
        let first = &sample::lock().base.packages[0];
        assert!(files["/envforge/base.list"].starts_with(&format!("{}={}\n", first.name, first.version)));
        assert!(!files.contains_key("/envforge/status"));
        let apt = &files["/envforge/apt.conf"];
        assert!(apt.contains("APT::Architecture \"arm64\";") && !apt.contains("i386"), "{apt}");
    }

    #[test]
    fn lists_are_kept_for_the_same_sources_alone() {
        let none = UserAdditions::default();
        let lists = |stack: &Stack, settings: &PackageSettings, lists: Lists| {
            let files = made(stack, &none, settings, lists);
            (files["/envforge/lists"].clone(), files.contains_key("/envforge/renew"))
        };
        let stack = sample::stack();
        let (first, renewed) = lists(&stack, &mirror(), HERE);
        assert!(first.starts_with("/lists/") && !renewed);
        let again = lists(&stack, &mirror(), Lists { renew: true, ..HERE });
        assert_eq!(again, (first.clone(), true));
        let arm = Stack { machine: Machine::Aarch64, ..sample::stack() };
        assert_ne!(lists(&arm, &mirror(), HERE).0, first);
        let expired = PackageSettings { accept_expired: true, ..mirror() };
        assert_ne!(lists(&stack, &expired, HERE).0, first);
        // The same configuration with another mirror, or another key.
        let root = "http://other.example.test/debian".parse().expect("an address");
        let archives = Archive::of_release("bookworm", &root, None, None);
        assert_ne!(lists(&stack, &PackageSettings { archives, ..mirror() }, HERE).0, first);
        let lock = sample::lock();
        let request = PackageRequest::sample(&lock, &stack, &none);
        let planted =
            BaseApt { trusted: vec![("debian.asc".to_owned(), Bytes::from_static(b"other"))], ..base() };
        let files = super::files(&request, &mirror(), &planted, None, HERE).expect("files");
        let found = files.iter().find(|file| file.path == "/envforge/lists").expect("there");
        assert_ne!(String::from_utf8_lossy(&found.bytes), first);
    }

    #[test]
    fn requested_apt_packages_are_resolved_with_built_in_ones() {
        let apt = vec!["ffmpeg".to_owned(), "libgl1".to_owned()];
        let added = UserAdditions { apt, ..UserAdditions::default() };
        assert_eq!(made(&sample::stack(), &added, &mirror(), HERE)["/envforge/apt.list"], "ffmpeg\nlibgl1\n");
        let none = UserAdditions::default();
        assert!(!made(&sample::stack(), &none, &mirror(), HERE).contains_key("/envforge/apt.list"));
    }

    #[test]
    fn older_index_of_apt_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let check = |text: &str, accept_older| {
            let answers = Answers::parse(text.as_bytes()).expect("answers");
            check_indexes(&answers, &store, accept_older)
        };
        check(RECORDED_DEBS, false).expect("the first");
        check(RECORDED_DEBS, false).expect("the same again");
        let old = RECORDED_DEBS.replace("Fri, 20 Nov 2026 05:30:11 UTC", "Thu, 19 Nov 2026 05:30:11 UTC");
        let error = check(&old, false).expect_err("older");
        assert_eq!(error.exit(), Exit::Outside);
        for part in
            ["`bookworm-security`", "`mirror.example.test/debian-security`", "2026-11-19", "2026-11-20"]
        {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(error.hints()[0].contains("--accept-older"), "{:?}", error.hints());
        check(&old, true).expect("accepted");
        let end = "{\"answer\":\"end\",\"text\":\"\"}\n";
        let one = |line: &str| format!("{{\"answer\":\"indexes\",\"text\":\"{line}\\n\"}}\n{end}");
        check(&one("own.test_debs_InRelease "), false).expect("an index without date");
        for line in [
            "own.test_debs_InRelease yesterday",
            "own.test_debs_InRelease",
            "own.test_debs Fri, 20 Nov 2026 05:30:11 UTC",
        ] {
            check(&one(line), false).expect_err(line);
        }
        check(end, false).expect_err("no list at all");
    }
}
