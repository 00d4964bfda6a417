//! `vendor`: everything a lock names in one folder, verified; and what a build takes from there.
#![expect(clippy::disallowed_methods, reason = "edge: copies and hashes files")]

use std::fmt::Write as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::lock::{Locked, deb_mirrors, lock_for, package_settings, stack};
use super::named_base::named_base;
use super::session::Session;
use super::wanted::{Wanted, wanted};
use super::{CommandError, Exit, vendor_base};
use crate::cli::VendorArgs;
use crate::lock::{IndexKind, Lock};
use crate::packages::{Upstream, UvSource, WheelSource, gather_debs, gather_uv};
use crate::plan::CachedFile;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::sha256::Sha256Hex;
use crate::stack::Stack;
use crate::store::{Store, write_atomically};
use crate::vendor::{Item, items, place};

/// Locks lie here, by their hash.
const LOCKS: &str = "locks";

/// What `vendor --json` prints.
#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    folder: &'a str,
    lock: &'a str,
    matrix: &'a str,
    files: usize,
    /// Files that came into the folder now.
    new: usize,
    bytes: u64,
}

/// What `vendor --check --json` prints.
#[derive(Serialize)]
struct CheckReport<'a> {
    schema: u32,
    folder: &'a str,
    files: usize,
    findings: &'a [Finding],
}

/// Something that is not as the locks of the folder say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    /// `damaged`, `missing`, `gone`, `yanked`, `changed`.
    pub(super) what: &'static str,
    pub(super) file: String,
}

impl Finding {
    fn text(&self) -> String {
        format!("{} is {}", self.file, self.what)
    }
}

pub(super) async fn vendor(args: &VendorArgs, settings: &Settings) -> Result<Exit, CommandError> {
    let folder = settings.current_dir.join(&args.dir);
    if args.check {
        return check(&folder, args.upstream, settings).await;
    }
    let wanted = wanted(args.spec.as_deref(), &args.project, &args.source, &args.target, settings)?;
    let named = named_base(settings, &wanted.source, &wanted.target).await?;
    let stack = stack(settings, &wanted.spec, &wanted.source, &wanted.target, named.as_ref())?;
    let session = Session::open(settings, wanted.source.network.as_deref()).await?;
    let locked = Box::pin(lock_for(&session, stack, named.as_ref(), &wanted)).await?;
    gather(&session, &wanted, &locked).await?;
    let lock = &locked.lock;
    let (mut new, mut bytes) = (0, 0);
    let all = items(lock);
    for item in &all {
        let target = folder.join(place(item.sha256()));
        let from = session.store.blob_path(item.sha256())?;
        bytes += fs_err::metadata(&from)?.len();
        // One that lies there is believed by its size here; `--check` reads it.
        if fs_err::metadata(&target)
            .is_ok_and(|found| fs_err::metadata(&from).is_ok_and(|own| own.len() == found.len()))
        {
            continue;
        }
        copy(&from, &target)?;
        new += 1;
    }
    let mut files = all.len();
    if let Some(saved) = vendor_base::save(&session, &locked.base, lock.stack.machine, &folder).await? {
        files += 1;
        bytes += saved.bytes;
        new += usize::from(saved.new);
    }
    let hash = lock.hash();
    write_atomically(&folder.join(LOCKS).join(format!("{hash}.lock")), lock.to_toml().as_bytes())?;
    if settings.output.json {
        let matrix = &lock.stack.matrix;
        let folder = folder.as_str();
        Printer.json(&Report { schema: 1, folder, lock: &hash, matrix, files, new, bytes });
    } else {
        Printer.text(folder.as_str());
        if !settings.output.quiet {
            let text = format!("{files} files, {new} of them new, {} MB", bytes / 1_000_000);
            Printer.say(&text);
        }
    }
    Ok(Exit::Done)
}

/// Makes everything a lock names present in the cache.
async fn gather(session: &Session<'_>, wanted: &Wanted, locked: &Locked) -> Result<(), CommandError> {
    let Locked { lock, base, .. } = locked;
    let (store, fetch) = (&session.store, &session.fetch);
    let settings = package_settings(session, &lock.stack, &wanted.indexes);
    let from = deb_mirrors(session, base, &lock.stack, &settings);
    gather_debs(lock, store, fetch, &from, Arc::clone(&session.reporter)).await?;
    let of_base =
        Lock { system: lock.base.packages.clone(), unpacked: Vec::new(), apt: Vec::new(), ..lock.clone() };
    gather_debs(&of_base, store, fetch, &from, Arc::clone(&session.reporter)).await?;
    let uv = UvSource { engine: &*session.engine, base_reference: &base.reference, settings: &settings };
    gather_uv(lock, &uv, store, fetch, Arc::clone(&session.reporter)).await?;
    let source = WheelSource { stack: &lock.stack, index: &settings.index, fetcher: fetch };
    let tools: Vec<_> = lock.tools.iter().map(crate::lock::LockedTool::as_wheel).collect();
    let sources: Vec<_> = lock.sources.iter().map(crate::lock::LockedSource::as_file).collect();
    let wheels: Vec<_> = lock.wheels.iter().chain(&tools).chain(&sources).collect();
    source.gather(&wheels, store, Arc::clone(&session.reporter)).await?;
    Ok(())
}

/// A copy that is there whole or not at all. No hard link: what happens to the folder is no matter of the cache.
pub(super) fn copy(from: &Utf8Path, to: &Utf8Path) -> Result<(), CommandError> {
    let folder = to.parent().unwrap_or(to);
    fs_err::create_dir_all(folder)?;
    let mut passing = tempfile::NamedTempFile::new_in(folder)?;
    std::io::copy(&mut fs_err::File::open(from)?, &mut passing)?;
    passing.persist(to).map_err(|error| error.error)?;
    Ok(())
}

/// `vendor --check`: every file of the folder's locks read and compared; with `--upstream` asked for, too.
async fn check(folder: &Utf8Path, upstream: bool, settings: &Settings) -> Result<Exit, CommandError> {
    let locks = locks_of(folder)?;
    if locks.is_empty() {
        return Err(CommandError::NoVendor { folder: folder.to_string() });
    }
    let mut findings = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    for lock in &locks {
        for item in items(lock) {
            if seen.insert(item.sha256().to_owned()) {
                findings.extend(verified(folder, item).err());
            }
        }
        let base = lock.base.digest.as_ref().map(|digest| format!("{digest} {}", lock.stack.machine));
        if base.is_some_and(|base| seen.insert(base)) {
            findings.extend(vendor_base::fault(folder, lock));
        }
    }
    let damaged = !findings.is_empty();
    if upstream {
        findings.extend(gone_upstream(&locks, settings).await?);
    }
    if settings.output.json {
        let (folder, findings) = (folder.as_str(), &findings);
        Printer.json(&CheckReport { schema: 1, folder, files: seen.len(), findings });
    } else {
        let mut text = String::new();
        for finding in &findings {
            let _ = writeln!(text, "{:<8} {}", finding.what, finding.file);
        }
        if !text.is_empty() {
            Printer.text(text.trim_end());
        }
        if !settings.output.quiet {
            Printer.say(&format!(
                "{} files of {} locks read, {} findings",
                seen.len(),
                locks.len(),
                findings.len()
            ));
        }
    }
    Ok(if damaged { Exit::No } else { Exit::Done })
}

/// What the indexes have deleted, withdrawn or changed since.
async fn gone_upstream(locks: &[Lock], settings: &Settings) -> Result<Vec<Finding>, CommandError> {
    let session = Session::open(settings, None).await?;
    let mut findings = Vec::new();
    for lock in locks {
        let source = WheelSource { stack: &lock.stack, index: &session.index, fetcher: &session.fetch };
        let sources: Vec<_> = lock.sources.iter().map(crate::lock::LockedSource::as_file).collect();
        let published = lock.wheels.iter().filter(|wheel| wheel.index != IndexKind::Local);
        for wheel in published.chain(&sources) {
            let what = match source.upstream(wheel).await? {
                Upstream::There(_) => continue,
                Upstream::Yanked(_) => "yanked",
                Upstream::Changed(_) => "changed",
                Upstream::Gone => "gone",
            };
            findings.push(Finding { what, file: wheel.file.clone() });
        }
    }
    findings.sort_by(|one, other| one.file.cmp(&other.file));
    findings.dedup();
    Ok(findings)
}

/// Reads a file of the folder and compares its hash with its name.
fn verified(folder: &Utf8Path, item: Item<'_>) -> Result<Utf8PathBuf, Finding> {
    held_to(folder, item.sha256()).map_err(|what| Finding { what, file: item.file().to_owned() })
}

/// Where the file of that hash lies in the folder; an error says that it is `missing` or `damaged`.
pub(super) fn held_to(folder: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, &'static str> {
    let path = folder.join(place(sha256));
    let mut file = fs_err::File::open(&path).map_err(|_| "missing")?;
    let found = hash(&mut file).map_err(|_| "damaged")?;
    if found == sha256 { Ok(path) } else { Err("damaged") }
}

/// The SHA-256 of a whole file, hex.
pub(super) fn hash(file: &mut fs_err::File) -> std::io::Result<String> {
    let mut hash = Sha256Hex::default();
    std::io::copy(file, &mut hash)?;
    Ok(hash.finish())
}

fn locks_of(folder: &Utf8Path) -> Result<Vec<Lock>, CommandError> {
    let mut all = Vec::new();
    for entry in fs_err::read_dir(folder.join(LOCKS)).into_iter().flatten().flatten() {
        let text = fs_err::read_to_string(entry.path())?;
        all.push(Lock::from_toml(&entry.path().display().to_string(), &text)?);
    }
    Ok(all)
}

/// The lock of a vendor folder that is what is wanted; `None`: it has none.
pub(super) fn lock_in(
    folder: &Utf8Path,
    stack: &Stack,
    wanted: &Wanted,
) -> Result<Option<Utf8PathBuf>, CommandError> {
    let fits = |lock: &Lock| lock.satisfied_by(stack, &wanted.added).is_empty();
    let found = locks_of(folder)?.into_iter().find(fits);
    Ok(found.map(|lock| folder.join(LOCKS).join(format!("{}.lock", lock.hash()))))
}

/// Takes what a lock names out of a vendor folder: all but the wheels into the cache, the wheels as files of the context.
pub(super) fn take(
    folder: &Utf8Path,
    lock: &Lock,
    store: &Store,
) -> Result<Vec<(String, CachedFile)>, CommandError> {
    let mut wheels = Vec::new();
    let mut wrong: Vec<_> = vendor_base::fault(folder, lock).iter().map(Finding::text).collect();
    for item in items(lock) {
        match (verified(folder, item), item) {
            (Err(finding), _) => wrong.push(finding.text()),
            (Ok(path), Item::Wheel(wheel)) => {
                let (size, sha256) = (fs_err::metadata(&path)?.len(), wheel.sha256.clone());
                // uv is both: it lies in the image and installs the others.
                if lock.tools.iter().any(|tool| tool.sha256 == wheel.sha256) {
                    store.put(&wheel.sha256, &fs_err::read(&path)?)?;
                }
                wheels.push((wheel.file.clone(), CachedFile { path, size, sha256 }));
            }
            (Ok(path), item) if store.find(item.sha256())?.is_none() => {
                let passing = store.temp_file()?;
                fs_err::copy(&path, passing.path())?;
                let kept = Utf8Path::from_path(passing.path()).map(Utf8Path::to_owned);
                if let Some(kept) = kept {
                    store.adopt(&kept, item.sha256())?;
                }
            }
            (Ok(_), _) => {}
        }
    }
    if wrong.is_empty() {
        return Ok(wheels);
    }
    Err(CommandError::VendorDamaged { folder: folder.to_string(), wrong })
}

/// Says that nothing is asked of any network.
pub(super) fn tell(session: &Session<'_>, folder: &Utf8Path) {
    let text = format!("without network: everything comes from {folder}");
    session.reporter.report(Event::Note { text });
}
