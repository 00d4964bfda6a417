//! The modules of a crate as they are declared: files, children, items, imports and every path in the code.

use std::collections::{BTreeMap, BTreeSet};

use super::scanner::{Scanner, parent};
use crate::rust_tokens::tokens;

/// Source files by their path from the root of the repository.
pub(super) type Files = BTreeMap<String, String>;

/// One name of a `use` tree.
#[derive(Debug, Clone)]
pub(super) struct Import {
    /// The name it gets here; `None` for `*`.
    pub(super) name: Option<String>,
    pub(super) path: PathText,
    /// Whether it is passed on (`pub use`, `pub(crate) use`).
    pub(super) is_public: bool,
}

/// A path as it is written.
#[derive(Debug, Clone)]
pub(super) struct PathText {
    pub(super) segments: Vec<String>,
    /// Whether it begins with `::`, so with the name of a crate.
    pub(super) is_absolute: bool,
    pub(super) line: usize,
}

/// One module of a crate: a file or a `mod x { … }` inside one.
#[derive(Debug, Default)]
pub(super) struct Module {
    pub(super) file: String,
    pub(super) root: usize,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    pub(super) items: BTreeSet<String>,
    pub(super) imports: Vec<Import>,
    pub(super) paths: Vec<PathText>,
    /// Identifiers outside `use`, that are no field or method.
    pub(super) idents: BTreeMap<String, usize>,
    /// Macros that are called: name and line.
    pub(super) macro_calls: Vec<(String, usize)>,
    /// Files that `#[path]` and `include!` refer to.
    pub(super) file_references: Vec<(String, usize)>,
    /// Whether it is compiled for tests only.
    pub(super) is_test: bool,
    /// Whether it holds anything but `mod` and `use`.
    pub(super) has_code: bool,
    /// The folder its child modules are read from.
    pub(super) folder: String,
}

/// All modules of the crates that were read.
#[derive(Debug, Default)]
pub(super) struct Modules {
    pub(super) all: Vec<Module>,
    /// Names of the macros that are defined, with the files that define them.
    pub(super) macros: BTreeMap<String, String>,
    /// Module files that are declared and missing.
    pub(super) missing: Vec<(String, String)>,
    /// The crate other crates import by this name.
    pub(super) library: Option<(String, usize)>,
}

impl Modules {
    /// Reads a crate from its root file and returns the index of its root module.
    pub(super) fn read_crate(&mut self, files: &Files, root: &str) -> usize {
        let index = self.all.len();
        let module = Module {
            file: root.to_owned(),
            root: index,
            folder: parent(root).to_owned(),
            ..Module::default()
        };
        self.all.push(module);
        self.read_file(files, index);
        index
    }

    /// Reads the file of a module.
    pub(super) fn read_file(&mut self, files: &Files, module: usize) {
        let tokens = tokens(&files[&self.all[module].file]);
        Scanner::new(self, files, &tokens).scan(module, true);
    }

    /// Adds a module below another.
    pub(super) fn add_child(&mut self, name: &str, child: Module) -> usize {
        let index = self.all.len();
        let parent = child.parent.expect("a child");
        self.all[parent].children.insert(name.to_owned(), index);
        self.all.push(child);
        index
    }
}
