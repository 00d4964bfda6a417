//! The table of one library, and its text: what the CLI caches and tests replay.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::finding::OF_TORCH;
use crate::elf::{Object, VersionNeed};

/// What the dynamic loader knows of one library.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Its path: relative to site-packages for those of wheels, else absolute.
    pub path: String,
    /// Its own soname.
    pub soname: Option<String>,
    /// The processor, as ELF numbers it.
    pub machine: u16,
    /// Sonames it needs, in order.
    pub needed: Vec<String>,
    /// The folders of its RPATH, unexpanded; empty where it has a RUNPATH.
    pub rpath: Vec<String>,
    /// The folders of its RUNPATH, unexpanded.
    pub runpath: Vec<String>,
    /// The versions it needs.
    pub version_needs: Vec<VersionNeed>,
    /// The versions it defines.
    pub version_definitions: BTreeSet<String>,
    /// The symbols it must find elsewhere, `NAME` or `NAME@VERSION`; weak ones are left out.
    pub undefined: BTreeSet<String>,
    /// The symbols it has for others: `NAME@VERSION` for each version, `NAME` too where a reference without version finds it.
    pub exports: BTreeSet<String>,
    /// What it is taken to have, for a library that is not at hand: beginnings of names, `@VERSION`, `@FAMILY_*`.
    pub assumed: BTreeSet<String>,
}

/// The library of torch whose symbols every later library sees, with those of all that it needs.
pub const GLOBAL_DEPENDENCIES: &str = "libtorch_global_deps.so";

/// The libraries of the driver, which no image and no wheel has.
pub fn driver_libraries(machine: u16) -> [Table; 2] {
    let library = |soname: &str, assumed: BTreeSet<String>| Table {
        path: soname.to_owned(),
        soname: Some(soname.to_owned()),
        machine,
        assumed,
        ..Table::default()
    };
    // `cuInit`, but not `cublasCreate`.
    let of_cuda = ('A'..='Z').map(|letter| format!("cu{letter}")).collect();
    [library("libcuda.so.1", of_cuda), library("libnvidia-ml.so.1", BTreeSet::from(["nvml".to_owned()]))]
}

/// Whether a library uses torch.
pub fn asks_for_torch(table: &Table) -> bool {
    table.needed.iter().any(|soname| soname.starts_with("libtorch") || soname.starts_with("libc10"))
        || OF_TORCH.iter().any(|start| {
            let next = table.undefined.range((*start).to_owned()..).next();
            next.is_some_and(|symbol| symbol.starts_with(start))
        })
}

/// Text that is not one of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableError {
    /// The line, from 1.
    pub line: usize,
}

impl std::fmt::Display for TableError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {} is not one of a table of symbols", self.line)
    }
}

impl std::error::Error for TableError {}

impl Table {
    /// Returns the table of a library at that path.
    pub fn new(path: impl Into<String>, object: Object) -> Self {
        let Object { machine, dynamic, symbols, version_needs, version_definitions } = object;
        let rpath = if dynamic.runpath.is_empty() { dynamic.rpath } else { Vec::new() };
        let mut table = Self {
            path: path.into(),
            soname: dynamic.soname,
            machine,
            needed: dynamic.needed,
            rpath,
            runpath: dynamic.runpath,
            version_needs,
            version_definitions: version_definitions.into_iter().collect(),
            ..Self::default()
        };
        for symbol in symbols {
            let full = symbol.version.as_ref().map(|version| format!("{}@{version}", symbol.name));
            if !symbol.is_defined {
                if !symbol.is_weak {
                    table.undefined.insert(full.unwrap_or(symbol.name));
                }
                continue;
            }
            let is_named_alone = full.is_none() || !symbol.is_hidden_version;
            table.exports.extend(full);
            if is_named_alone {
                table.exports.insert(symbol.name);
            }
        }
        table
    }

    /// The file name.
    pub fn file(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Whether the library answers to that soname.
    pub fn is_called(&self, soname: &str) -> bool {
        self.soname.as_deref() == Some(soname) || self.file() == soname
    }

    /// Whether a reference to that symbol finds it here.
    pub fn answers(&self, symbol: &str) -> bool {
        let (name, version) =
            symbol.split_once('@').map_or((symbol, None), |(name, version)| (name, Some(version)));
        let is_assumed = |assumed: &String| match assumed.strip_prefix('@') {
            Some(family) => version.is_some_and(|version| match family.strip_suffix('*') {
                Some(start) => version.starts_with(start),
                None => version == family,
            }),
            None => name.starts_with(assumed),
        };
        if self.exports.contains(symbol) || self.assumed.iter().any(is_assumed) {
            return true;
        }
        if version.is_none() {
            return false;
        }
        // A symbol without any version answers a reference with one.
        let versioned = format!("{name}@");
        let has_version = self.exports.range(versioned.clone()..).next();
        self.exports.contains(name) && !has_version.is_some_and(|one| one.starts_with(&versioned))
    }

    /// Appends the table as lines.
    pub fn write(&self, text: &mut String) {
        let Self {
            path,
            soname,
            machine,
            needed,
            rpath,
            runpath,
            version_needs,
            version_definitions,
            undefined,
            exports,
            assumed,
        } = self;
        let mut lines = |word: &str, values: &mut dyn Iterator<Item = &str>| {
            for value in values {
                // A string takes all.
                let _ = writeln!(text, "{word} {value}");
            }
        };
        lines("library", &mut std::iter::once(path.as_str()));
        lines("machine", &mut std::iter::once(machine.to_string().as_str()));
        lines("soname", &mut soname.iter().map(String::as_str));
        lines("needs", &mut needed.iter().map(String::as_str));
        lines("rpath", &mut rpath.iter().map(String::as_str));
        lines("runpath", &mut runpath.iter().map(String::as_str));
        let asks: Vec<_> =
            version_needs.iter().map(|one| format!("{} {}", one.library, one.version)).collect();
        lines("asks", &mut asks.iter().map(String::as_str));
        lines("defines", &mut version_definitions.iter().map(String::as_str));
        lines("-", &mut undefined.iter().map(String::as_str));
        lines("+", &mut exports.iter().map(String::as_str));
        lines("assumed", &mut assumed.iter().map(String::as_str));
    }
}

/// Parses the text of tables.
///
/// # Errors
/// The first line that [`Table::write`] does not write.
pub fn tables(text: &str) -> Result<Vec<Table>, TableError> {
    let mut all: Vec<Table> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let error = TableError { line: index + 1 };
        let (word, value) = line.split_once(' ').ok_or(error.clone())?;
        let own = value.to_owned();
        if word == "library" {
            all.push(Table { path: own, ..Table::default() });
            continue;
        }
        let table = all.last_mut().ok_or(error.clone())?;
        match word {
            "machine" => table.machine = value.parse().map_err(|_| error)?,
            "soname" => table.soname = Some(own),
            "needs" => table.needed.push(own),
            "rpath" => table.rpath.push(own),
            "runpath" => table.runpath.push(own),
            "asks" => {
                let (library, version) = value.split_once(' ').ok_or(error)?;
                let (library, version) = (library.to_owned(), version.to_owned());
                table.version_needs.push(VersionNeed { library, version });
            }
            "defines" => drop(table.version_definitions.insert(own)),
            "-" => drop(table.undefined.insert(own)),
            "+" => drop(table.exports.insert(own)),
            "assumed" => drop(table.assumed.insert(own)),
            _ => return Err(error),
        }
    }
    Ok(all)
}
