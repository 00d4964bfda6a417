//! Proves that the libraries of the environment that use torch find every symbol and version they ask for.
//!
//! Works on tables of symbols alone: nothing is loaded. Libraries that are missing as a whole are the matter of
//! `linker-closure`; an extension that lacks one is not judged here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use envforge_protocol::abi::{
    Finding, GLOBAL_DEPENDENCIES, Place, SYSTEM_FOLDERS, Table, TorchRelease, World, asks_for_torch,
    driver_libraries, is_for_another_torch, is_only_tried, is_preloaded, torch_release,
};
use envforge_protocol::elf::{self, ElfError};
use envforge_protocol::{CheckId, SkipReason};

use super::{NO_PYTHON, Options, display_path, errored};
use crate::report::Report;
use crate::walk;

const ID: CheckId = CheckId::ExtensionAbi;
/// Folders of site-packages whose libraries are no extensions of torch; those that one needs are read all the same.
const NO_EXTENSIONS: [&str; 3] = ["torch", "nvidia", "triton"];

pub(crate) fn run(options: &Options) -> Vec<Report> {
    let expected = match options.expectation_if_given() {
        Ok(expected) => expected,
        Err(problem) => return errored(&[ID], &problem),
    };
    let has_torch = |packages: &PathBuf| packages.join("torch/lib").is_dir();
    let folders = options.packages();
    if folders.is_empty() && !options.has_own_environment() {
        return vec![Report::skipped(ID, SkipReason::NotInImage, NO_PYTHON)];
    }
    let Some(packages) = folders.into_iter().find(has_torch) else {
        return vec![Report::of_problems(ID, "0 extensions: torch is not installed", &[])];
    };
    if options.interpreter().is_none() {
        // Extensions take Python's symbols from it.
        return vec![Report::skipped(ID, SkipReason::NotInImage, "Python is not in the image")];
    }
    let (extensions, damaged) = extensions(&packages);
    let (mut judged, mut others, mut allowed, mut problems) = (0, 0, BTreeSet::new(), BTreeSet::new());
    for (path, reason) in &damaged {
        let file = path.rsplit('/').next().unwrap_or(path);
        if expected.may_lack.contains(file) {
            allowed.insert(file);
        } else {
            problems.insert(reason.clone());
        }
    }
    let torch = installed_torch(&packages);
    if !extensions.is_empty() {
        for (extension, mut findings) in audited(options, &packages, &extensions) {
            let lacks_a_library = findings.iter().any(|one| matches!(one, Finding::MissingLibrary { .. }));
            if lacks_a_library {
                findings.retain(Finding::holds_without_a_library);
            }
            let may_fail = || {
                expected.may_lack.contains(extension.file())
                    || is_only_tried(&extension.path)
                    || torch.is_some_and(|torch| is_for_another_torch(extension.file(), torch))
            };
            if !findings.iter().any(Finding::is_fatal) {
                *(if lacks_a_library { &mut others } else { &mut judged }) += 1;
            } else if may_fail() {
                allowed.insert(extension.file());
            } else {
                let fatal = findings.iter().filter(|one| one.is_fatal());
                problems.extend(fatal.map(ToString::to_string));
            }
        }
    }
    let problems: Vec<_> = problems.into_iter().collect();
    let mut good = format!("{judged} extensions find every symbol");
    if others > 0 {
        let _ = write!(good, "; {others} lack a library and were not judged");
    }
    if !allowed.is_empty() {
        let names: Vec<_> = allowed.into_iter().collect();
        let _ = write!(good, "; may fail to load: {}", names.join(", "));
    }
    vec![Report::of_problems(ID, good, &problems).hint(hint(options))]
}

fn hint(options: &Options) -> &'static str {
    if options.has_own_environment() {
        "use the release of the package that was built for this torch (`envforge compat abi` checks a wheel), or list the \
         library's file name in `[verify] may-lack` of envforge.toml if your code never loads it"
    } else {
        "install the release of the package that was built for this torch: `envforge compat abi` checks a wheel"
    }
}

/// The libraries of other packages that use torch, and path and reason of those that cannot be read.
fn extensions(packages: &Path) -> (Vec<Table>, Vec<(String, String)>) {
    let (mut found, mut damaged) = (Vec::new(), Vec::new());
    let Ok(entries) = std::fs::read_dir(packages) else { return (found, damaged) };
    for entry in entries.flatten() {
        if NO_EXTENSIONS.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        let mut look = |path: &Path| match read(packages, path) {
            Some(Ok(table)) if asks_for_torch(&table) => found.push(table),
            // A program or data of another kind, or a library for a chip or firmware.
            None | Some(Ok(_) | Err(ElfError::NotElf | ElfError::OtherClass | ElfError::NoSymbols)) => {}
            Some(Err(error @ ElfError::Damaged(_))) => {
                let path = relative(packages, path);
                let reason = format!("{path}: {error}");
                damaged.push((path, reason));
            }
        };
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk::visit(&path, &mut look),
            Ok(kind) if kind.is_file() => look(&path),
            _ => {}
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    (found, damaged)
}

/// Whether a library is a module of another Python: `x.cpython-310-x86_64-linux-gnu.so` beside Python 3.11.
pub(super) fn is_of_another_python(packages: &Path, name: &str) -> bool {
    let Some((_, tag)) = name.split_once(".cpython-") else { return false };
    let python = packages.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let version = python.and_then(|name| name.strip_prefix("python"));
    // Debian's `python3` is for every one of its releases.
    let wanted = version.filter(|version| version.contains('.')).map(|version| version.replace('.', ""));
    wanted.is_some_and(|wanted| tag.split(['-', '.']).next() != Some(wanted.as_str()))
}

fn relative(packages: &Path, path: &Path) -> String {
    path.strip_prefix(packages).unwrap_or(path).display().to_string()
}

/// The table of a library; `None` for a file that is not called one or cannot be opened.
fn read(packages: &Path, path: &Path) -> Option<Result<Table, ElfError>> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    if !name.contains(".so") || is_of_another_python(packages, name) {
        return None;
    }
    let file = File::open(path).ok()?;
    Some(elf::object(&file).map(|object| Table::new(relative(packages, path), object)))
}

/// The findings of each extension.
fn audited<'a>(
    options: &Options,
    packages: &Path,
    extensions: &'a [Table],
) -> Vec<(&'a Table, Vec<Finding>)> {
    let mut found = found(options, packages, extensions);
    let audit = |world: &World| -> Vec<_> {
        extensions.iter().map(|extension| (extension, world.audit(&extension.path))).collect()
    };
    let audited = audit(&found.world);
    let mut findings = audited.iter().flat_map(|(_, findings)| findings);
    if !findings.any(|one| matches!(one, Finding::MissingSymbol { .. })) {
        return audited;
    }
    // A package may load a library first that no other one needs by its name.
    found.add_all();
    audit(&found.world)
}

/// Everything that the extensions meet: all that they and torch need, found as the loader would find it.
fn found<'a>(options: &'a Options, packages: &'a Path, extensions: &[Table]) -> Found<'a> {
    let mut found = Found {
        packages,
        root: &options.root,
        by_name: BTreeMap::new(),
        seen: BTreeSet::new(),
        wanted: VecDeque::new(),
        world: World::default(),
    };
    walk::visit(packages, &mut |path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.contains(".so") {
            found.by_name.entry(name.to_owned()).or_default().push(path.to_owned());
        }
    });
    let machine = extensions.first().map_or(0, |one| one.machine);
    for driver in driver_libraries(machine) {
        found.world.add(Place::System, driver);
    }
    let python = options.interpreter().and_then(|python| resolved(&options.root, &python));
    if let Some(interpreter) = &python {
        found.add(interpreter, Place::System);
    }
    let folders = system_folders(options, packages);
    found.wanted.extend(extensions.iter().map(|one| one.file().to_owned()));
    found.wanted.push_back(GLOBAL_DEPENDENCIES.to_owned());
    found.wanted.extend(found.by_name.keys().filter(|name| name.starts_with("_C.")).cloned());
    let torch = installed_torch(packages).unwrap_or_default();
    let preloaded = |path: &&PathBuf| is_preloaded(torch, &relative(packages, path));
    let preloaded = found.by_name.iter().filter(|(_, paths)| paths.iter().any(|path| preloaded(&path)));
    found.wanted.extend(preloaded.map(|(name, _)| name.clone()).collect::<Vec<_>>());
    let mut asked = BTreeSet::new();
    while let Some(soname) = found.wanted.pop_front() {
        if !asked.insert(soname.clone()) {
            continue;
        }
        for path in found.by_name.get(&soname).cloned().unwrap_or_default() {
            found.add(&path, Place::Packages);
        }
        let paths = folders.iter().map(|folder| folder.join(&soname));
        if let Some(path) = paths.into_iter().find_map(|path| resolved(&options.root, &path)) {
            found.add(&path, Place::System);
        }
    }
    let interpreter = python.map(|path| display_path(&options.root, &path));
    found.world.import_torch(torch, |one| Some(&one.path) == interpreter.as_ref());
    found
}

/// Where the loader finds libraries that are not among the packages, in its order.
fn system_folders(options: &Options, packages: &Path) -> Vec<PathBuf> {
    if options.has_own_environment() {
        return SYSTEM_FOLDERS.iter().map(|folder| options.root.join(folder)).collect();
    }
    let mut folders = options.loader_folders();
    folders.retain(|folder| !folder.starts_with(packages));
    folders
}

/// The release of the torch that is installed.
fn installed_torch(packages: &Path) -> Option<TorchRelease> {
    let entries = std::fs::read_dir(packages).ok()?.flatten();
    let mut names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.find_map(|name| torch_release(name.strip_prefix("torch-")?.strip_suffix(".dist-info")?))
}

/// A world that grows by what its libraries need.
struct Found<'a> {
    packages: &'a Path,
    root: &'a Path,
    /// The libraries of site-packages by file name.
    by_name: BTreeMap<String, Vec<PathBuf>>,
    /// The files that were read.
    seen: BTreeSet<PathBuf>,
    /// The libraries that those need.
    wanted: VecDeque<String>,
    world: World,
}

impl Found<'_> {
    /// Adds every further library of site-packages.
    fn add_all(&mut self) {
        for path in std::mem::take(&mut self.by_name).into_values().flatten() {
            self.add(&path, Place::Packages);
        }
    }

    fn add(&mut self, path: &Path, place: Place) {
        if !self.seen.insert(path.to_owned()) {
            return;
        }
        let Some(object) = File::open(path).ok().and_then(|file| elf::object(&file).ok()) else { return };
        self.wanted.extend(object.dynamic.needed.iter().cloned());
        let shown = match place {
            Place::Packages => relative(self.packages, path),
            Place::System => display_path(self.root, path),
        };
        self.world.add(place, Table::new(shown, object));
    }
}

/// The file that a path of the image leads to; links are those of the image, not of the file system around it.
pub(super) fn resolved(root: &Path, path: &Path) -> Option<PathBuf> {
    const LINKS: usize = 16;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        let Ok(target) = std::fs::read_link(&path) else { return path.is_file().then_some(path) };
        path = match target.strip_prefix("/") {
            Ok(inside) => root.join(inside),
            Err(_) => path.parent()?.join(target),
        };
    }
    None
}
