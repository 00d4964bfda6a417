//! What people bring: requirement files, project files, locks of other tools, conda environments, Dockerfiles, read as text.
//!
//! Owns the readers, each from a text to a [`Reading`], and the decision of the one project that all readings of a folder ask for. Runs
//! nothing, asks nobody, and loses no line in silence: what is not taken over is in the reading with its reason.

mod built_for;
mod compose;
mod conda;
mod conda_lock;
mod conda_spec;
mod conditions;
mod decide;
mod dockerfile;
mod frameworks;
mod image;
mod image_name;
mod index_page;
mod index_use;
mod ini;
mod installs;
mod lock_selection;
mod locks;
mod other_framework;
mod outcome;
mod overruled;
mod pipfile;
mod place;
mod poetry;
mod poetry_lock;
mod pylock;
mod pyproject;
mod pythons;
mod reading;
mod requirement_line;
mod requirements;
mod script;
mod setup;
mod shell_words;
mod stages;
mod starter;
mod tool_lock;
mod tool_lock_error;
mod uv_lock;
mod variables;

pub use compose::{from_compose, from_devcontainer};
pub use conda::{from_environment, from_pixi};
pub use conda_lock::{
    from_conda_explicit, from_conda_export, from_conda_lock, from_pixi_lock, is_conda_explicit,
    is_conda_export,
};
pub use decide::{
    Question, decide, implies_a_framework, is_without_any_cuda, names_a_cuda, names_a_framework,
};
pub use dockerfile::from_dockerfile;
pub use image::{ImageContent, from_image, is_record};
pub use installs::{from_cog, from_definition, from_notebook, from_shell_script};
pub use lock_selection::{LockSelection, Mismatch};
pub use locks::{from_pdm_lock, from_poetry_lock, from_pylock, from_uv_lock};
pub use other_framework::OtherFramework;
pub use outcome::{Change, Migration, ProjectPackage, Refusal, Row};
pub use pipfile::{from_pipfile, from_pipfile_lock};
pub use place::Origin;
pub use pyproject::{from_pyproject_toml, from_uv_toml};
pub use pythons::{from_python_version, from_runtime_file};
pub use reading::{Given, IndexSeen, Kind, Note, Reading};
pub use requirements::{constraints_of, from_requirement_lines};
pub use script::from_script;
pub use setup::{from_setup_cfg, from_setup_py};
pub use starter::starter;
pub use tool_lock::{ToolVersions, is_pylock_name, tool_versions};
pub use tool_lock_error::ToolLockError;
