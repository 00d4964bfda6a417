//! What a GPU must answer, worked out by the processor: number formats, inputs, products, convolutions, comparison.
//!
//! Pure: no library, no device, no clock. Everything is plain and slow on purpose; speed comes from small sizes.

mod compare;
mod convolution;
mod format;
mod freivalds;
mod input;
mod product;

pub(crate) use compare::{Mismatch, differences, frobenius};
pub(crate) use convolution::{Convolution, Layout, elements};
pub(crate) use format::Format;
pub(crate) use freivalds::freivalds;
pub(crate) use input::Generator;
pub(crate) use product::{Shape, product};
