//! What an extension is refused for.

use std::fmt;

/// A reason why the dynamic loader refuses a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Finding {
    /// The library is for another processor.
    OtherProcessor {
        /// The library.
        library: String,
        /// The processor it is for.
        found: u16,
        /// The processor it would run on.
        wanted: u16,
    },
    /// A library that it needs is not there.
    MissingLibrary {
        /// The soname.
        soname: String,
        /// The library that needs it.
        needed_by: String,
    },
    /// A library is there but lacks a version.
    MissingVersion {
        /// The library that lacks it.
        library: String,
        /// The version.
        version: String,
        /// The newest version of that family that the library has, if it has one.
        newest: Option<String>,
        /// The library that asks for it.
        needed_by: String,
    },
    /// No library in reach has a symbol.
    MissingSymbol {
        /// The symbol, as the loader names it.
        symbol: String,
        /// A symbol of nearly that name that is there, with its library.
        near: Option<(String, String)>,
        /// The library that asks for it.
        needed_by: String,
    },
    /// Nothing that the loader finds by itself has a symbol, but another installed library has: a package that loads that one
    /// first works.
    SymbolOfAnother {
        /// The symbol, as the loader names it.
        symbol: String,
        /// The library that has it.
        library: String,
        /// The library that asks for it.
        needed_by: String,
    },
}

/// What the symbols of torch begin with.
pub(super) const OF_TORCH: [&str; 7] =
    ["_ZN3c10", "_ZNK3c10", "_ZN2at", "_ZNK2at", "_ZN5torch", "_ZNK5torch", "aoti_torch_"];

impl Finding {
    /// The kind, as JSON names it.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::OtherProcessor { .. } => "other-processor",
            Self::MissingLibrary { .. } => "missing-library",
            Self::MissingVersion { .. } => "missing-version",
            Self::MissingSymbol { .. } => "missing-symbol",
            Self::SymbolOfAnother { .. } => "symbol-of-another",
        }
    }

    /// Whether the library cannot be loaded, whatever its package loads before.
    pub const fn is_fatal(&self) -> bool {
        !matches!(self, Self::SymbolOfAnother { .. })
    }

    /// Whether the finding remains if a missing library of the system is installed, which may have other symbols.
    pub fn holds_without_a_library(&self) -> bool {
        match self {
            Self::OtherProcessor { .. } | Self::MissingVersion { .. } => true,
            Self::MissingSymbol { symbol, .. } => OF_TORCH.iter().any(|start| symbol.starts_with(start)),
            Self::MissingLibrary { .. } | Self::SymbolOfAnother { .. } => false,
        }
    }

    /// Whether that version is what is missing.
    pub(super) fn is_of_version(&self, wanted: &str) -> bool {
        matches!(self, Self::MissingVersion { version, .. } if version == wanted)
    }
}

/// The name of a processor that ELF numbers so.
fn processor(machine: u16) -> String {
    match machine {
        3 => "i386".to_owned(),
        21 => "ppc64le".to_owned(),
        62 => "x86_64".to_owned(),
        183 => "aarch64".to_owned(),
        other => format!("ELF machine {other}"),
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherProcessor { library, found, wanted } => {
                write!(f, "{library} is built for {}, not for {}", processor(*found), processor(*wanted))
            }
            Self::MissingLibrary { soname, needed_by } => write!(f, "{needed_by} needs {soname}"),
            Self::MissingVersion { library, version, newest, needed_by } => {
                write!(f, "{needed_by} needs version {version} of {library}")?;
                newest.as_ref().map_or(Ok(()), |newest| write!(f, ", which has {newest}"))
            }
            Self::MissingSymbol { symbol, near, needed_by } => {
                write!(f, "{needed_by} needs undefined symbol {symbol}")?;
                near.as_ref().map_or(Ok(()), |(near, library)| write!(f, " ({library} has {near})"))
            }
            Self::SymbolOfAnother { symbol, library, needed_by } => {
                write!(f, "{needed_by} needs {symbol} of {library}, which must be loaded before it")
            }
        }
    }
}
