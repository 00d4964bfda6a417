//! An interpreter of the part of PTX that the files of `kernels/ptx` use: threads run one by one, warps and blocks meet at
//! shuffles, tensor-core instructions and barriers. What it does not know is an error with its line, never a guess.

mod arithmetic;
mod machine;
mod memory;
mod parse;
mod warp;

pub(crate) use machine::{Launch, run};
pub(crate) use memory::Memory;
pub(crate) use parse::Program;

/// A fault of the program, or something that the interpreter does not know.
pub(crate) type Fault = String;
