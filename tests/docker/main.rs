//! Tests with a real container engine: `cargo test --features docker`. Without that feature those that need the engine
//! are listed as ignored; the helpers' own tests always run.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files")]

#[path = "../support/engine.rs"]
mod engine;
#[path = "../support/framework.rs"]
mod framework;
#[path = "../support/index.rs"]
mod index;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/scene.rs"]
mod scene;
#[path = "../support/wheels.rs"]
mod wheels;

mod base;
mod export;
mod faults;
mod interrupts;
mod packages;
mod pytorch_28;
mod secrets;
mod small_build;
