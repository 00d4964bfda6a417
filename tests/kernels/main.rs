//! Tests with NVIDIA's own wheels, no GPU and no engine: the kernels under every generation of NVRTC, and the agent on
//! trees that were broken on purpose. Those that download gigabytes, once, into `target/wheels`,
//! are ignored: `cargo test --test kernels -- --include-ignored` runs them.
#![expect(clippy::disallowed_methods, reason = "tests start programs and read files")]

#[expect(unsafe_code, reason = "the agent's own file")]
#[path = "../../kernels/agent/src/dlopen.rs"]
mod dlopen;
#[path = "../../kernels/agent/src/kernels.rs"]
mod kernels;
#[expect(unsafe_code, dead_code, reason = "the agent's own file")]
#[path = "../../kernels/agent/src/nvrtc.rs"]
mod nvrtc;

mod broken;
mod compile;
mod digest;
mod emulated;
mod headers;
mod product_scripts;
mod ptx;
mod ptx_execution;
mod ptx_machine;
mod ptxas;
mod real;
mod scripts;
