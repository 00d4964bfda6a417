//! Whether an extension fits the libraries that it will meet: the dynamic loader's answer, worked out from tables of symbols
//! alone. Pure: the agent reads the tables from an image, the CLI from locked wheels.
//!
//! A [`Table`] is one library. A [`World`] has the libraries that `import torch` loads, those that the loader finds by path,
//! and the C++ library, Python and glibc. [`World::audit`] gives the [`Finding`]s of one extension: what `dlopen` with
//! `RTLD_NOW` would refuse it for.

mod closure;
mod finding;
mod optional;
mod preloaded;
mod table;
mod world;

pub use closure::{LoaderView, SYSTEM_FOLDERS, Unmet, of_another_cuda};
pub use finding::Finding;
pub use optional::{
    is_for_another_cuda, is_for_another_torch, is_only_tried, is_plug_in_of_qt, may_be_missing,
};
pub use preloaded::{TorchRelease, is_preloaded, torch_release};
pub use table::{GLOBAL_DEPENDENCIES, Table, TableError, asks_for_torch, driver_libraries, tables};
pub use world::{Place, World};
