//! `vendor`: everything a lock names in one folder, verified; and what a build takes from there.
#![expect(clippy::disallowed_methods, reason = "edge: copies and hashes files")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use super::lock::{Locked, deb_mirrors, lock_for, package_settings, stack};
use super::named_base::named_base;
use super::session::Session;
use super::wanted::{Wanted, index_address, unknown_index, wanted};
use super::{CommandError, Exit, vendor_base};
use crate::address::Address;
use crate::cli::VendorArgs;
use crate::lock::{IndexKind, Lock};
use crate::packages::{Upstream, UvSource, WheelSource, gather_debs, gather_uv};
use crate::plan::CachedFile;
use crate::report::{Event, Printer};
use crate::settings::Settings;
use crate::sha256::{Sha256Hex, is_sha256_hex};
use crate::stack::Stack;
use crate::store::{Store, copy_atomically, write_atomically};
use crate::vendor::{Item, items, place};

/// Locks lie here, by their hash.
const LOCKS: &str = "locks";
/// Not what its name says.
const DAMAGED: &str = "damaged";

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
    /// Where a damaged file lies in the folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) path: Option<String>,
}

impl Finding {
    /// What is wrong with the file of that hash: `damaged` or `missing`.
    pub(super) fn of(what: &'static str, file: String, sha256: &str) -> Self {
        Self { what, file, path: (what == DAMAGED).then(|| place(sha256)) }
    }

    fn text(&self) -> String {
        let place = self.path.as_ref().map(|path| format!(" ({path})")).unwrap_or_default();
        format!("{} is {}{place}", self.file, self.what)
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
        copy_atomically(&from, &target)?;
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

/// `vendor --check`: every file of the folder's locks read and compared; with `--upstream` asked for, too.
async fn check(folder: &Utf8Path, upstream: bool, settings: &Settings) -> Result<Exit, CommandError> {
    let (locks, mut findings) = locks_of(folder)?;
    if locks.is_empty() && findings.is_empty() {
        return Err(CommandError::NoVendor { folder: folder.to_string() });
    }
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
            let _ = write!(text, "{:<8} {}", finding.what, finding.file);
            let _ = finding.path.iter().try_for_each(|path| write!(text, " ({path})"));
            text.push('\n');
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
        let mut index = session.index.clone();
        index.further = further(lock, settings)?;
        let source = WheelSource { stack: &lock.stack, index: &index, fetcher: &session.fetch };
        let sources: Vec<_> = lock.sources.iter().map(crate::lock::LockedSource::as_file).collect();
        let published = lock.wheels.iter().filter(|wheel| wheel.index != IndexKind::Local);
        for wheel in published.chain(&sources) {
            let what = match source.upstream(wheel).await? {
                Upstream::There(_) => continue,
                Upstream::Yanked(_) => "yanked",
                Upstream::Changed(_) => "changed",
                Upstream::Gone => {
                    match lock.added.indexes.iter().find(|name| !index.further.contains_key(*name)) {
                        // It may be there.
                        Some(name) => return Err(unknown_index(name, settings)),
                        None => "gone",
                    }
                }
            };
            findings.push(Finding { what, file: wheel.file.clone(), path: None });
        }
    }
    findings.sort_by(|one, other| one.file.cmp(&other.file));
    findings.dedup();
    Ok(findings)
}

/// The further indexes of a lock that are configured here.
fn further(lock: &Lock, settings: &Settings) -> Result<BTreeMap<String, Address>, CommandError> {
    let configured = |name: &String| Some((name.clone(), settings.indexes.get(name)?));
    let parsed = |(name, text): (String, &String)| Ok((name, index_address(text, settings)?));
    lock.added.indexes.iter().filter_map(configured).map(parsed).collect()
}

/// Reads a file of the folder and compares its hash with its name.
fn verified(folder: &Utf8Path, item: Item<'_>) -> Result<Utf8PathBuf, Finding> {
    let sha256 = item.sha256();
    held_to(folder, sha256).map_err(|what| Finding::of(what, item.file().to_owned(), sha256))
}

/// Where the file of that hash lies in the folder; an error says that it is `missing` or `damaged`.
pub(super) fn held_to(folder: &Utf8Path, sha256: &str) -> Result<Utf8PathBuf, &'static str> {
    let path = folder.join(place(sha256));
    let mut file = fs_err::File::open(&path).map_err(|_| "missing")?;
    let found = hash(&mut file).map_err(|_| DAMAGED)?;
    if found == sha256 { Ok(path) } else { Err(DAMAGED) }
}

/// The SHA-256 of a whole file, hex.
pub(super) fn hash(file: &mut fs_err::File) -> std::io::Result<String> {
    let mut hash = Sha256Hex::default();
    std::io::copy(file, &mut hash)?;
    Ok(hash.finish())
}

/// The locks of a folder, and those that are not what their names say. Other files beside them are no locks.
fn locks_of(folder: &Utf8Path) -> Result<(Vec<Lock>, Vec<Finding>), CommandError> {
    let (mut all, mut damaged) = (Vec::new(), Vec::new());
    for entry in fs_err::read_dir(folder.join(LOCKS)).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(hash) = name.strip_suffix(".lock").filter(|hash| is_sha256_hex(hash)) else { continue };
        let shown = entry.path().display().to_string();
        match Lock::from_bytes(&shown, &fs_err::read(entry.path())?) {
            Ok(lock) if lock.hash() == hash => all.push(lock),
            Err(error) if error.is_of_newer() => return Err(error.into()),
            _ => {
                let path = format!("{LOCKS}/{name}");
                let file = "a lock".to_owned();
                damaged.push(Finding { what: DAMAGED, file, path: Some(path) });
            }
        }
    }
    damaged.sort_by(|one, other| one.path.cmp(&other.path));
    Ok((all, damaged))
}

/// The lock of a vendor folder that is what is wanted; `None`: it has none.
pub(super) fn lock_in(
    folder: &Utf8Path,
    stack: &Stack,
    wanted: &Wanted,
) -> Result<Option<Utf8PathBuf>, CommandError> {
    let (locks, damaged) = locks_of(folder)?;
    if let Some(lock) = locks.iter().find(|lock| lock.satisfied_by(stack, &wanted.added).is_empty()) {
        return Ok(Some(folder.join(LOCKS).join(format!("{}.lock", lock.hash()))));
    }
    if locks.is_empty() && damaged.is_empty() {
        return Err(CommandError::NoVendor { folder: folder.to_string() });
    }
    // The one that is wanted may be among them.
    not_whole(folder, damaged.iter().map(Finding::text).collect()).map(|()| None)
}

/// An error if something of the folder is wrong.
fn not_whole(folder: &Utf8Path, wrong: Vec<String>) -> Result<(), CommandError> {
    let folder = folder.to_string();
    if wrong.is_empty() { Ok(()) } else { Err(CommandError::VendorDamaged { folder, wrong }) }
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
    if !wrong.is_empty() && !folder.join(LOCKS).is_dir() {
        return Err(CommandError::NoVendor { folder: folder.to_string() });
    }
    not_whole(folder, wrong).map(|()| wheels)
}

/// Says that nothing is asked of any network.
pub(super) fn tell(session: &Session<'_>, folder: &Utf8Path) {
    let text = format!("without network: everything comes from {folder}");
    session.reporter.report(Event::Note { text });
}
