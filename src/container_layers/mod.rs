//! Layers that only a container can make: the system, the user's distribution packages, the toolkit's links, byte code.
//!
//! Each step runs without network, secrets or shared caches, is made canonical, and is kept: the same inputs give the same
//! layer on every machine.

pub mod byte_code;
pub mod directories;
mod engine_layers;
mod environment;
mod error;
mod kept;
mod limits;
mod packed;
mod step;
pub mod toolkit;

pub use engine_layers::keep_layers_of;
pub use environment::check_environment;
pub use error::LayerError;
pub use kept::{KeptLayer, keep_plan, remember_taken, taken_before};
pub use limits::LARGEST_FINISHED;
pub use packed::keep_packed;
pub use step::{Step, Tools, step_layers};
