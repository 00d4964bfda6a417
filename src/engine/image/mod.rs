//! Images of the engine: inspect, list, tag, remove, pull, push, import, save, load, read.

mod delivered;
pub(super) mod images;
mod in_flight;
mod inspect;
pub(super) mod layered;
mod load_archive;
mod load_layers;
mod load_part;
pub(super) mod names;
mod progress;
pub(super) mod temporary_tag;
pub(super) mod types;
