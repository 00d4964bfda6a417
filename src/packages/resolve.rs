//! One run of a temporary container of the base: stack in, locked packages out.
#![expect(clippy::disallowed_methods, reason = "edge: times its step and reads uv from the cache")]

use std::sync::Arc;
use std::time::Instant;

use camino::Utf8PathBuf;

use super::apt::{kept, locked_debs, standing};
use super::catalogue::catalogue;
use super::error::PackagesError;
use super::failure::explain_with;
use super::index_order::{IndexOrder, SharedName, shared_names};
use super::inputs::{CACHE_VOLUME, SCRIPT, UV, files};
use super::output::Sections;
use super::pylock::{SourceDist, names, resolutions};
use super::request::{PackageRequest, ResolverContext};
use super::settings::PackageSettings;
use super::uv::{uv_binary, uv_program};
use super::uv_source::UvSource;
use super::vendor::vendor_source;
use super::wheel_addresses::remember_addresses;
use super::wheels::{Layers, Origins, check_versions, locked_wheels};
use crate::base::{SeenIndex, index_date};
use crate::engine::{ContainerFile, RunRequest};
use crate::model::lock::{Lock, LockedDeb, LockedTool, LockedWheel};
use crate::model::versions::Machine;
use crate::report::Event;
use crate::store::Store;

const STEP: &str = "packages";

/// Exit code of the script if the volume does not have uv, which is too large to send each time.
const NO_UV: i64 = 51;

/// All packages above the base, pinned.
#[derive(Debug, Clone)]
pub struct ResolvedPackages {
    /// Distribution packages, sorted by name.
    pub system: Vec<LockedDeb>,
    /// Packages to unpack, sorted by name.
    pub unpacked: Vec<LockedDeb>,
    /// Packages of the distribution that the user added, with their dependencies, sorted by name.
    pub apt: Vec<LockedDeb>,
    /// Wheels, sorted by layer, then name.
    pub wheels: Vec<LockedWheel>,
    /// Source distributions without a compatible wheel: they have to be built, and everything resolved again with the built
    /// wheels.
    pub sources: Vec<SourceDist>,
    /// Packages whose name another index has too.
    pub shared_names: Vec<SharedName>,
    /// uv.
    pub tools: Vec<LockedTool>,
    /// The program uv that resolved, a file of the cache.
    pub uv_binary: Utf8PathBuf,
}

/// Resolves everything above the base of a stack.
pub async fn resolve_packages(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
) -> Result<ResolvedPackages, PackagesError> {
    let machine = request.stack.machine;
    let uv = |machine: Machine| {
        catalogue().uv(machine).ok_or_else(|| PackagesError::NoUv { machine: machine.to_string() })
    };
    let ResolverContext { engine, store, fetcher, settings, reporter } = tools;
    // The lock names the image's uv, the container runs its own.
    let (tool, own) = (uv(machine)?, uv(engine.info().machine)?);
    let source = UvSource { engine: *engine, base_reference: request.base_reference, settings };
    let uv_binary = uv_binary(&own, &source, store, fetcher, Arc::clone(reporter)).await?;

    let started = Instant::now();
    let id = STEP.to_owned();
    let what = if standing(request).is_some() { "wheels" } else { "distribution packages and wheels" };
    let text = format!("resolve {what} in a container of the base");
    reporter.report(Event::StepStarted { id: id.clone(), text });
    let done = run(tools, request, &uv_binary).await.and_then(|stdout| {
        if settings.index.default.is_none() {
            remember_addresses(store, Sections::parse(&stdout)?.named("all")?)?;
        }
        if standing(request).is_none() {
            check_indexes(&Sections::parse(&stdout)?, store, settings.accept_older)?;
        }
        read(&stdout, request, settings)
    });
    reporter.report(match &done {
        Ok(_) => Event::StepFinished { id, cached: false, seconds: started.elapsed().as_secs_f64() },
        Err(error) => Event::StepFailed { id, text: error.to_string() },
    });
    let Read { system, unpacked, apt, wheels, sources, shared_names } = done?;
    let tools = vec![tool];
    Ok(ResolvedPackages { system, unpacked, apt, wheels, sources, shared_names, tools, uv_binary })
}

async fn run(
    tools: &ResolverContext<'_>,
    request: &PackageRequest<'_>,
    uv: &Utf8PathBuf,
) -> Result<Vec<u8>, PackagesError> {
    let nvcc = request.stack.nvcc.as_ref().filter(|_| standing(request).is_none());
    let vendor = vendor_source(nvcc, &tools.settings.vendor, tools.fetcher).await?;
    // A file of the cache is named by its hash.
    let uv_sha256 = uv.file_name().unwrap_or_default();
    let mut files = files(request, tools.settings, vendor.as_ref(), uv_sha256, tools.engine.info().machine)?;
    let container = |files: &[ContainerFile]| RunRequest {
        image: request.base_reference.to_owned(),
        command: vec!["/bin/sh".to_owned(), SCRIPT.to_owned()],
        user: Some("0:0".to_owned()),
        files: files.to_vec(),
        binds: vec![format!("{CACHE_VOLUME}:/cache")],
        network: tools.settings.network,
        // Its lines are not reported: they hold addresses.
        report_as: None,
        ..RunRequest::default()
    };
    let mut outcome = tools.engine.run(container(&files), Arc::clone(&tools.reporter)).await?;
    if outcome.code == NO_UV {
        files.push(ContainerFile { path: UV.to_owned(), mode: 0o755, bytes: uv_program(uv)? });
        outcome = tools.engine.run(container(&files), Arc::clone(&tools.reporter)).await?;
    }
    if outcome.code == 0 {
        return Ok(outcome.stdout);
    }
    let order = IndexOrder::of(request, &tools.settings.index)?;
    let with_additions = !request.added.python.is_empty();
    Err(explain_with(outcome.code, &outcome.stderr, with_additions, |package| order.indexes_of(package)))
}

/// Result of a container run.
struct Read {
    system: Vec<LockedDeb>,
    unpacked: Vec<LockedDeb>,
    apt: Vec<LockedDeb>,
    wheels: Vec<LockedWheel>,
    sources: Vec<SourceDist>,
    shared_names: Vec<SharedName>,
}

fn read(
    stdout: &[u8],
    request: &PackageRequest<'_>,
    settings: &PackageSettings,
) -> Result<Read, PackagesError> {
    let sections = Sections::parse(stdout)?;
    let (found, wanted) = (sections.named("python")?.trim().to_owned(), request.stack.python.to_string());
    if found != wanted {
        return Err(PackagesError::Python { found, wanted });
    }
    let [system, unpacked, apt] = match standing(request) {
        Some(old) => [old.system.clone(), old.unpacked.clone(), old.apt.clone()],
        None => distribution(&sections, request)?,
    };

    let layers = Layers {
        framework: names(sections.named("framework")?)?.into_iter().collect(),
        stack: sections.optional("stack").map(names).transpose()?.map(|names| names.into_iter().collect()),
    };
    let order = IndexOrder::of(request, &settings.index)?;
    let origins: Origins = order.origins(sections.optional("origins").unwrap_or_default());
    let shared_names = shared_names(sections.optional("doubles").unwrap_or_default(), &origins);
    let (wheels, sources) = resolutions(
        sections.named("all")?,
        request.stack,
        &request.unindexed_wheels(),
        &request.buildable_packages(),
    )?;
    let sources = sources.into_iter().map(|source| source.with_login_of(&settings.index)).collect();
    let wheels = locked_wheels(wheels, &layers, &origins);
    check_versions(&wheels, request.stack)?;
    Ok(Read { system, unpacked, apt, wheels, sources, shared_names })
}

/// Fails if a mirror gave apt an older index than it served before.
fn check_indexes(sections: &Sections<'_>, store: &Store, accept_older: bool) -> Result<(), PackagesError> {
    let text = sections.named("indexes")?;
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

/// Packages of the distribution as apt found them: the system's, those to unpack, the user's.
fn distribution(
    sections: &Sections<'_>,
    request: &PackageRequest<'_>,
) -> Result<[Vec<LockedDeb>; 3], PackagesError> {
    let system = locked_debs(sections.named("uris")?, sections.named("show")?)?;
    let unpacked = match sections.optional("unpack-uris") {
        Some(uris) => locked_debs(uris, sections.named("unpack-show")?)?,
        None => Vec::new(),
    };
    let apt = match sections.optional("apt-uris") {
        Some(uris) => locked_debs(uris, sections.named("apt-show")?)?,
        None => Vec::new(),
    };
    let kept = |new, of: fn(&Lock) -> &Vec<LockedDeb>| kept(new, request.previous, request.base, of);
    Ok([kept(system, |lock| &lock.system), unpacked, kept(apt, |lock| &lock.apt)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::{Exit, Failure as _};
    use crate::model::lock::{UserAdditions, WheelLayer, sample};
    use crate::model::stack::Stack;
    use crate::packages::output::RECORDED;

    #[test]
    fn recorded_run_becomes_locked_packages() {
        let (lock, stack) = (sample::lock(), sample::stack());
        let none = UserAdditions::default();
        let Read { system, unpacked, apt, wheels, .. } = read(
            RECORDED.as_bytes(),
            &PackageRequest::sample(&lock, &stack, &none),
            &PackageSettings::default(),
        )
        .expect("reads");
        assert!(system.iter().any(|deb| deb.name == "python3.11"));
        assert_eq!(wheels.iter().filter(|wheel| wheel.layer == WheelLayer::Cuda).count(), 14);
        assert_eq!((unpacked.len(), apt.len()), (0, 0));
        let whole = Lock { system, wheels, ..sample::lock() };
        let text = whole.to_toml();
        assert_eq!(Lock::from_toml("envforge.lock", &text).expect("reads"), whole);
        assert!(!text.contains("://"), "no address is in a lock");
    }

    #[test]
    fn older_index_of_apt_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = camino::Utf8Path::from_path(folder.path()).expect("UTF-8");
        let store = Store::open(&root.join("cache"), &root.join("state")).expect("a store");
        let check = |text: &str, accept_older| {
            let sections = Sections::parse(text.as_bytes()).expect("sections");
            check_indexes(&sections, &store, accept_older)
        };
        check(RECORDED, false).expect("the first");
        check(RECORDED, false).expect("the same again");
        let old = RECORDED.replace("Fri, 20 Nov 2026 05:30:11 UTC", "Thu, 19 Nov 2026 05:30:11 UTC");
        let error = check(&old, false).expect_err("older");
        assert_eq!(error.exit(), Exit::Outside);
        for part in
            ["`bookworm-security`", "`mirror.example.test/debian-security`", "2026-11-19", "2026-11-20"]
        {
            assert!(error.to_string().contains(part), "{error}");
        }
        assert!(error.hints()[0].contains("--accept-older"), "{:?}", error.hints());
        check(&old, true).expect("accepted");
        let one = |line: &str| format!("\n==envforge:indexes==\n{line}\n==envforge:end==\n");
        check(&one("own.test_debs_InRelease "), false).expect("an index without date");
        for line in [
            "own.test_debs_InRelease yesterday",
            "own.test_debs_InRelease",
            "own.test_debs Fri, 20 Nov 2026 05:30:11 UTC",
        ] {
            check(&one(line), false).expect_err(line);
        }
        check("\n==envforge:end==\n", false).expect_err("no list at all");
    }

    #[test]
    fn base_with_another_python_is_rejected() {
        let lock = sample::lock();
        let stack = Stack { python: "3.12".parse().unwrap(), ..sample::stack() };
        let error = read(
            RECORDED.as_bytes(),
            &PackageRequest::sample(&lock, &stack, &UserAdditions::default()),
            &PackageSettings::default(),
        )
        .err()
        .expect("refused");
        assert_eq!(error.to_string(), "base has Python 3.11, but 3.12 is required");
        assert_eq!(error.exit(), Exit::No);
    }
}
