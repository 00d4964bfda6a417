//! The `envforge` program: parse, run, exit code; nothing else.

use std::process::ExitCode;

use envforge::cli::Cli;

/// Settings of glibc's allocator. Left alone it has eight heaps for each processor and raises the size from which on a freed
/// block goes back to the system to 32 MiB: the threads that write layers then keep what they freed (608 MB instead of 381 MB
/// for a project of 20 packages, docs/src/benchmarks.md).
#[cfg(target_env = "gnu")]
const ALLOCATOR: [(libc::c_int, libc::c_int); 2] =
    [(libc::M_ARENA_MAX, 2), (libc::M_MMAP_THRESHOLD, 128 << 10)];

fn main() -> ExitCode {
    return_freed_memory();
    let Cli { global, command } = Cli::read(std::env::args_os());
    envforge::commands::run(&global.into(), command.into())
}

#[cfg(target_env = "gnu")]
fn return_freed_memory() {
    for (setting, value) in ALLOCATOR {
        #[expect(unsafe_code, reason = "a call of the C library; the allocator has no safe interface")]
        // SAFETY: takes two numbers and no pointer; no other thread runs yet.
        unsafe {
            libc::mallopt(setting, value);
        }
    }
}

#[cfg(not(target_env = "gnu"))]
fn return_freed_memory() {}
