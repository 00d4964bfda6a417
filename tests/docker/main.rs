//! Tests with a real container engine, all ignored; the helpers' own tests always run. The reason of an ignored test begins
//! with who runs it: `.ci/run` (`needs …`), `.ci/nightly` (`nightly: …`), a person (`by hand: …`), another test (`inner: …`).
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files")]

#[path = "../support/blocks.rs"]
mod blocks;
#[expect(dead_code, reason = "tests of pages use more of it")]
#[path = "../support/browser.rs"]
mod browser;
#[path = "../support/changed_image.rs"]
mod changed_image;
#[path = "../support/cut.rs"]
mod cut;
#[path = "../support/disk.rs"]
mod disk;
#[path = "../support/distant.rs"]
mod distant;
#[path = "../support/engine.rs"]
mod engine;
#[path = "../support/examples.rs"]
mod example;
#[path = "../support/framework.rs"]
mod framework;
#[path = "../support/index.rs"]
mod index;
#[path = "../support/made_wheel.rs"]
mod made_wheel;
#[path = "../support/matrix.rs"]
mod matrix;
#[path = "../support/program.rs"]
mod program;
#[path = "../support/registry.rs"]
mod registry;
mod resolver;
#[path = "../support/scene.rs"]
mod scene;
#[path = "../support/shell.rs"]
mod shell;
#[expect(dead_code, reason = "tests of the command line use more of it")]
#[path = "../support/terminal.rs"]
mod terminal;
#[path = "../support/wheels.rs"]
mod wheels;

mod a_real_pytorch;
mod allow_source;
mod arm64;
mod assemble_rules;
mod assembled;
mod base;
mod book;
mod channels;
mod cluster;
mod cluster_file;
mod content;
mod edit_packages;
mod engine_faults;
mod engine_table;
mod engines;
mod examples;
mod export;
mod faults;
mod folders;
mod hostile_images;
mod indexes;
mod interrupts;
mod kills;
mod layers;
mod layouts;
mod mirrors;
mod named_base;
mod older_lock;
mod packages;
mod project;
mod project_code;
mod project_faults;
mod registries;
mod screens;
mod secrets;
mod several;
mod shared_layers;
mod shell_browser;
mod shell_containers;
mod shell_owner;
mod shell_packages;
mod shell_project;
mod shell_services;
mod shell_terminal;
mod small_build;
mod source;
mod source_build;
mod states;
mod storage_drivers;
mod tool_locks;
mod toolkit;
mod verify;
